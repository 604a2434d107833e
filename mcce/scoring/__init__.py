"""Scores of one fitted conditional on rows that it has not seen, row by row."""

from mcce.scoring.conditional import N_DRAWS, Scores, score_conditional
from mcce.scoring.levels import LevelCounts

__all__ = ["N_DRAWS", "LevelCounts", "Scores", "score_conditional"]
