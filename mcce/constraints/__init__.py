"""What may change, and how: said by the user, checked against a table, and resolved to restrictions by feature."""

from mcce.constraints.allow import Allow, NoCopies, Only, PerFactual, allow, no_copies, only, per_factual
from mcce.constraints.reading import Constraint, read
from mcce.constraints.resolve import Constraints, FactualConstraints, resolve
from mcce.constraints.rules import ResolvedRule, Rule, rule

__all__ = [
    "Allow",
    "Constraint",
    "Constraints",
    "FactualConstraints",
    "NoCopies",
    "Only",
    "PerFactual",
    "ResolvedRule",
    "Rule",
    "allow",
    "no_copies",
    "only",
    "per_factual",
    "read",
    "resolve",
    "rule",
]
