"""What may change, and how: said by the user, checked against a table, and resolved to restrictions by feature."""

from mcce.constraints.allowing import Allow, allow
from mcce.constraints.personal import Only, PerFactual, only, per_factual
from mcce.constraints.reading import Constraint, read
from mcce.constraints.resolved import Constraints, FactualConstraints
from mcce.constraints.resolving import resolve
from mcce.constraints.rules import ResolvedRule, Rule, rule

__all__ = [
    "Allow",
    "Constraint",
    "Constraints",
    "FactualConstraints",
    "Only",
    "PerFactual",
    "ResolvedRule",
    "Rule",
    "allow",
    "only",
    "per_factual",
    "read",
    "resolve",
    "rule",
]
