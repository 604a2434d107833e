"""Judging conditionals by rows that they have not seen: scores, tests, where one fails, and which is best."""

from mcce.judging.criticism import Criticism
from mcce.judging.feature import FeatureCriticism, criticise_feature
from mcce.judging.scores import N_DRAWS, LevelCounts, Scores, score_conditional

__all__ = [
    "N_DRAWS",
    "Criticism",
    "FeatureCriticism",
    "LevelCounts",
    "Scores",
    "criticise_feature",
    "score_conditional",
]
