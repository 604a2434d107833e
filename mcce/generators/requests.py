"""Requests for draws, and drawn rows.

A draw depends only on one frozen object, `DrawRequest`, so that the same request gives the same rows in any block,
order, thread or process.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.samplers import Within

RULE_ATTEMPTS = 50  # draws of a row until it satisfies the rules


class RowRule(Protocol):
    """A rule between the features of a row and of its factual; reports name it by its text, ``str(rule)``.

    Tables are encoded, with the columns of the data in their order. Features that are not drawn yet are NaN.

    Attributes
    ----------
    columns : positions of the features that the rule reads in a drawn row.

    Examples
    --------
    >>> import mcce
    >>> class SavesLessThanItEarns:
    ...     columns = (0, 1)
    ...     def holds(self, rows, factuals):
    ...         return rows[:, 1] < rows[:, 0]
    ...     def within_for(self, column, rows, factuals):
    ...         return None  # not as bounds: rows that break it are drawn again
    ...     def __str__(self):
    ...         return "savings < salary"
    >>> X = mcce.datasets.load_loans(300).X[["salary", "savings"]]
    >>> rows = mcce.ChainModel(random_state=1).fit(X).sample(200, rules=[SavesLessThanItEarns()])
    >>> bool((rows["savings"] < rows["salary"]).all())
    True
    """

    @property
    def columns(self) -> tuple[int, ...]:
        """Positions of the features that the rule reads in a drawn row."""

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        """Return whether each row satisfies the rule."""

    def within_for(self, column: int, rows: Floats, factuals: Floats | None) -> Within | None:
        """Return the exact restriction of `column` in each row, given the rule's other features; None if there is none.

        A row whose `column` is free has infinite bounds; all levels and missing values are allowed.
        """


@dataclass(frozen=True)
class DrawRequest:
    """A request for draws, with one row for each draw.

    Attributes
    ----------
    givens : encoded fixed values, in data order, then the decision if the generator conditions on one.
    stream_keys, draw_indices : the row's random numbers are a function of these two and the seed.
    seed : int
    restrictions : restrictions of the draws by feature; other features are free.
    rules : rules between the features of a row.
    factuals : encoded rows, columns in data order, with which rules compare the drawn ones; None if no rule does.
    weighted : whether to compute the weights of the draws; estimating those of rules takes more draws.

    Examples
    --------
    >>> import mcce
    >>> import numpy as np
    >>> from mcce.generators.requests import DrawRequest
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
    >>> chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(X)
    >>> keys, draws = np.zeros(3, dtype=np.uint64), np.arange(3, dtype=np.uint64)
    >>> request = DrawRequest(givens=np.full((3, 1), 36.0), stream_keys=keys, draw_indices=draws, seed=1)
    >>> chain.draw(request).rows[:, 0].tolist()
    [36.0, 36.0, 36.0]
    >>> bool((chain.draw(request.take(slice(1, 3))).rows == chain.draw(request).rows[1:]).all())
    True
    """

    givens: Floats
    stream_keys: UInts
    draw_indices: UInts
    seed: int
    restrictions: Mapping[Hashable, Within] = field(default_factory=dict)
    rules: tuple[RowRule, ...] = ()
    factuals: Floats | None = None
    weighted: bool = False

    @property
    def constraints(self) -> tuple[Hashable, ...]:
        """The constraints that may reject a row: the restricted features, then the rules by their texts."""
        return (*self.restrictions, *map(str, self.rules))

    def __len__(self) -> int:
        return int(self.givens.shape[0])

    def take(self, rows: Any) -> DrawRequest:
        """Return the request for some of the rows: a slice or an index array."""
        return replace(
            self,
            givens=self.givens[rows],
            stream_keys=self.stream_keys[rows],
            draw_indices=self.draw_indices[rows],
            restrictions={name: within.take(rows) for name, within in self.restrictions.items()},
            factuals=None if self.factuals is None else self.factuals[rows],
        )


@dataclass(frozen=True)
class Drawn:
    """Encoded rows, columns in data order, and which are rejected: they could not be drawn within their restrictions.

    A rejected row has values that are not allowed, or missing; it is not a candidate.

    Attributes
    ----------
    log_weight : of each row, the log mass that its restrictions and rules leave of the generator's conditionals; -inf
        if it is rejected. None if the request is not `weighted`, or the generator has no weights.
    rejected_by : for each row, the place in `constraints` of the first constraint that rejects it; -1 if it is not
        rejected. None if the generator does not record it.
    constraints : the restricted features, then the rules by their texts.
    tried : for each constraint, the number of rows that reached it and that it restricts.

    Examples
    --------
    >>> import mcce
    >>> import numpy as np
    >>> from mcce.generators.requests import DrawRequest
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
    >>> chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(X)
    >>> keys, draws = np.zeros(2, dtype=np.uint64), np.arange(2, dtype=np.uint64)
    >>> rich = mcce.Within(low=np.array([60_000.0, 1e9]))
    >>> drawn = chain.draw(DrawRequest(np.full((2, 1), 36.0), keys, draws, 1, restrictions={"salary": rich}))
    >>> drawn.rejected.tolist()
    [False, True]
    >>> drawn.acceptance()
                tried  passed
    constraint
    salary          2       1
    """

    rows: Floats
    rejected: Bools
    log_weight: Floats | None = None
    rejected_by: Ints | None = None
    constraints: tuple[Hashable, ...] = ()
    tried: tuple[int, ...] = ()

    def acceptance(self) -> pd.DataFrame:
        """Return, for each constraint, the numbers of rows that reached it and that passed it."""
        rejected_by = np.empty(0, dtype=np.int64) if self.rejected_by is None else self.rejected_by
        rejected = np.bincount(rejected_by[rejected_by >= 0], minlength=len(self.constraints))
        tried = np.asarray(self.tried, dtype=np.int64)
        names = pd.Index(self.constraints, dtype=object, name="constraint", tupleize_cols=False)
        return pd.DataFrame({"tried": tried, "passed": tried - rejected}, index=names)
