"""The trees of R's rpart, split by split."""

from mcce.trees.rpart.growing import MAX_SUBSET_LEVELS, class_weights, control, grow, sort_column
from mcce.trees.rpart.tree import MAX_DEPTH, RpartTree

__all__ = ["MAX_DEPTH", "MAX_SUBSET_LEVELS", "RpartTree", "class_weights", "control", "grow", "sort_column"]
