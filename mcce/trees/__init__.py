"""Trees on encoded tables: CART with its own kernels, R's rpart and ctree, and their display."""

from mcce.trees.cart import CartTree
from mcce.trees.display import Tree

__all__ = ["CartTree", "Tree"]
