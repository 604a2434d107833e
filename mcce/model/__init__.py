"""The model that is explained: what it may be, which of its answers are wanted, and how it is queried."""

from mcce.model.decision import Interval, Labels, Predicate, read_decision
from mcce.model.query import Answer, Query, bind, check_wanted
from mcce.model.source import read_model

__all__ = [
    "Answer",
    "Interval",
    "Labels",
    "Predicate",
    "Query",
    "bind",
    "check_wanted",
    "read_decision",
    "read_model",
]
