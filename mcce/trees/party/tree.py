"""A tree of party: nodes with their tests.

Rows go their way as in any `Tree`; the tests are what its nodes show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.arrays import Floats, Int32s
from mcce.soundness import BOOL, FLOAT, INT32, check_array
from mcce.state import stateful
from mcce.trees.tree import Tree


@stateful("CtreeTree")
@dataclass(frozen=True)
class CtreeTree(Tree):
    """A conditional inference tree: a `Tree` with its tests.

    Attributes
    ----------
    number : the number of a node in party's order, from 1: parents first, left before right. The left child of a cut
        between two unordered levels is that of the first level, which may be party's right one.
    cut : x <= cut goes left, for numbers and the codes of ordered levels; NaN elsewhere.
    seen : beside `masks`, whether a level occurs in the node.
    cut_statistic : standardised two-sample statistic of the cut; 0 in a leaf.
    criterion : largest criterion of a node's variables; 0 if none was tested.
    statistics, criteria : test statistic and criterion of each node and variable. A variable that was chosen but has no
        admissible cut has criterion minus infinity.
    """

    number: Int32s
    cut: Floats
    seen: npt.NDArray[np.bool_]
    cut_statistic: Floats
    criterion: Floats
    statistics: Floats
    criteria: Floats

    def check_state(self) -> None:
        """Refuse arrays that are no such tree."""
        super().check_state()
        n = self.n_nodes
        check_array(self.number, "number", INT32, n)
        for name in ("cut", "cut_statistic", "criterion"):
            check_array(getattr(self, name), name, FLOAT, n)
        check_array(self.seen, "seen", BOOL, self.masks.size)
        check_array(self.statistics, "statistics", FLOAT, n, None)
        check_array(self.criteria, "criteria", FLOAT, *self.statistics.shape)
