"""The trees of R's rpart, bit for bit."""

from mcce.trees.rpart.tree import RpartTree, grow_rpart

__all__ = ["RpartTree", "grow_rpart"]
