"""Constraints on counterfactuals: `allow` for single features, `rule` for several, `no_copies`."""

from mcce.constraints.allow import Allow, Constraint, NoCopies, Rule, allow, no_copies, rule
from mcce.constraints.formula import Formula, read_formula
from mcce.constraints.resolve import Constraints, read_constraints, resolve

__all__ = [
    "Allow",
    "Constraint",
    "Constraints",
    "Formula",
    "NoCopies",
    "Rule",
    "allow",
    "no_copies",
    "read_constraints",
    "read_formula",
    "resolve",
    "rule",
]
