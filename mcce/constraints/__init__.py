"""Constraints on counterfactuals: `allow` for single features, `rule` for several, `no_copies`."""

from mcce.constraints.allow import Allow, Constraint, NoCopies, Rule, allow, no_copies, rule
from mcce.constraints.formula import Formula, read_formula
from mcce.constraints.resolve import Constraints, ResolvedRule, resolve

__all__ = [
    "Allow",
    "Constraint",
    "Constraints",
    "Formula",
    "NoCopies",
    "ResolvedRule",
    "Rule",
    "allow",
    "no_copies",
    "read_formula",
    "resolve",
    "rule",
]
