"""The trees of R's rpart, split by split."""

from mcce.trees.rpart.tree import MAX_DEPTH, MAX_SUBSET_LEVELS, RpartTree, class_weights, control, grow, sort_column

__all__ = ["MAX_DEPTH", "MAX_SUBSET_LEVELS", "RpartTree", "class_weights", "control", "grow", "sort_column"]
