"""Constraints on changes: read, checked against a table, and resolved to restrictions by feature."""

from mcce.constraints.allow import Allow, NoCopies, OfFactuals, Only, PerFactual, allow, no_copies, only, per_factual
from mcce.constraints.anonymous import KAnonymous, k_anonymous
from mcce.constraints.base import Constraint, available_constraints, register_constraint
from mcce.constraints.reading import read
from mcce.constraints.resolve import Constraints, FactualConstraints, resolve, simplest
from mcce.constraints.rules import ResolvedRule, Rule, rule, transitions

__all__ = [
    "Allow",
    "Constraint",
    "Constraints",
    "FactualConstraints",
    "KAnonymous",
    "NoCopies",
    "OfFactuals",
    "Only",
    "PerFactual",
    "ResolvedRule",
    "Rule",
    "allow",
    "available_constraints",
    "k_anonymous",
    "no_copies",
    "only",
    "per_factual",
    "read",
    "register_constraint",
    "resolve",
    "rule",
    "simplest",
    "transitions",
]
