"""Judging conditionals by rows that they have not seen: scores, tests, where one fails, and which is best."""

from typing import TYPE_CHECKING

from mcce.base.lazy import loaded_when_used
from mcce.judging.scores import LEVEL, N_DRAWS, LevelCounts, Scores, score_conditional

if TYPE_CHECKING:  # what `__getattr__` does, for type checkers and editors
    from mcce.judging.criticism import Criticism
    from mcce.judging.feature import FeatureCriticism, criticise_feature

__all__ = [
    "LEVEL",
    "N_DRAWS",
    "Criticism",
    "FeatureCriticism",
    "LevelCounts",
    "Scores",
    "criticise_feature",
    "score_conditional",
]

_HOMES = {
    "mcce.judging.criticism": ("Criticism",),
    "mcce.judging.feature": ("FeatureCriticism", "criticise_feature"),
}

if not TYPE_CHECKING:  # where it would say that every name exists
    __getattr__ = loaded_when_used(__name__, _HOMES)
