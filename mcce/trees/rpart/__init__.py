"""The trees of R's rpart, split by split; loaded when the first is grown."""

from typing import TYPE_CHECKING

from mcce.base.lazy import loaded_when_used

if TYPE_CHECKING:  # what `__getattr__` does, for type checkers and editors
    from mcce.trees.rpart.tree import (
        MAX_DEPTH,
        MAX_SUBSET_LEVELS,
        RpartTree,
        class_weights,
        control,
        grow,
        sort_column,
    )

__all__ = ["MAX_DEPTH", "MAX_SUBSET_LEVELS", "RpartTree", "class_weights", "control", "grow", "sort_column"]

if not TYPE_CHECKING:  # where it would say that every name exists
    __getattr__ = loaded_when_used(__name__, {"mcce.trees.rpart.tree": __all__})
