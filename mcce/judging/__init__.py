"""Judging of conditionals: on new rows, and by cross-validation."""

from mcce.judging.comparison import compare_conditionals
from mcce.judging.criticism import Criticism, criticise

__all__ = ["Criticism", "compare_conditionals", "criticise"]
