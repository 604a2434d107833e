"""The conditional inference trees of R's party, bit for bit."""

from mcce.trees.ctree.tree import CTree, grow_ctree

__all__ = ["CTree", "grow_ctree"]
