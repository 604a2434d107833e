"""Synthesizers with SDV's interface as generators.

1. ``fit(frame)`` learns; ``sample(num_rows)`` draws rows.
2. Rows with given values come from ``sample_remaining_columns(known_columns)`` if there is such a method, else from
   ``sample_from_conditions([condition])``; a condition has ``num_rows`` and ``column_values``, also as the methods
   ``get_num_rows()`` and ``get_column_values()``.
3. A synthesizer that has neither is drawn from again and again, `TRIED` rows at a time, `TRIES` times at most, and
   rows with the given values are kept: levels and missing values must be equal, numbers lie within a share of their
   range (`tolerance`), and are then set.
4. Rows of a block that could not be had are dead, of "the fixed values".

How draws become reproducible, and what is refused: `mcce.generators.joint.foreign`.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Bools
from mcce.checks import check_share
from mcce.exceptions import InputError, spell
from mcce.generators.joint.foreign import ForeignGenerator, Seeding
from mcce.rng import derive_key
from mcce.table import Kind

TRIED, TRIES = 1000, 20


@dataclass(frozen=True)
class Condition:
    """What rows are to be drawn given, as SDV's own conditions say it."""

    num_rows: int
    column_values: dict[Any, Any]

    def get_num_rows(self) -> int:
        """Return how many rows to draw."""
        return self.num_rows

    def get_column_values(self) -> dict[Any, Any]:
        """Return the given values by column."""
        return self.column_values


class SynthesizerGenerator(ForeignGenerator):
    """Draws from a synthesizer with SDV's interface.

    Parameters
    ----------
    synthesizer : object or callable
        An unfitted synthesizer with `fit` and `sample`, and, to draw given the fixed values, `sample_remaining_columns`
        or `sample_from_conditions`; it is copied. Or a function that makes one from the training frame, for those that
        have to know the columns beforehand (SDV's metadata): the frame has one more column of booleans if the
        generator conditions on the decision. To take weights of rows, its `fit` has a parameter `sample_weight`.
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`; blocks are drawn one at a time.
    seed : callable or None
        ``seed(synthesizer, number)`` seeds a synthesizer that has a random state of its own. None seeds the global
        states of Python, numpy and torch, and calls `set_random_state` if there is one.
    tolerance : float
        Without conditional sampling, how far a fixed number may be off, as a share of its range.

    Notes
    -----
    It has no density, and cannot be saved but by pickle. Restrictions and rules are obeyed by rejection, of 20 draws at
    most. Without conditional sampling, 20 times 1000 rows are drawn for
    each hundred; rows with the fixed values that are not among them are dead, and no candidates.

    Examples
    --------
    >>> import mcce
    >>> class Bootstrap:
    ...     def fit(self, data):
    ...         self.data = data
    ...     def sample(self, num_rows):
    ...         return self.data.sample(num_rows, replace=True)
    >>> X = mcce.datasets.load_loans(500).X[["sex", "housing", "salary"]]
    >>> generator = mcce.generators.SynthesizerGenerator(Bootstrap(), fixed=["sex"], random_state=1)
    >>> rows = generator.fit(X).sample(5, X[["sex"]].head(2))
    >>> rows["sex"].tolist() == X["sex"].head(2).repeat(5).tolist()
    True
    """

    def __init__(
        self,
        synthesizer: Any,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        seed: Seeding | None = None,
        tolerance: float = 0.05,
    ) -> None:
        self.synthesizer = synthesizer
        self.fixed = fixed
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.seed = seed
        self.tolerance = tolerance

    def _copy_foreign(self, frame: pd.DataFrame) -> Any:
        if self.tolerance != 0.0:
            check_share(self.tolerance, "tolerance")
        made = self.synthesizer
        if callable(made) and not hasattr(made, "fit"):
            made = made(frame.copy())
        for name in ("fit", "sample"):
            if isinstance(made, type) or not callable(getattr(made, name, None)):
                raise InputError(
                    f"synthesizer is {spell(made)}, which has no method {name!r} to call; give an unfitted object with "
                    "fit(frame) and sample(num_rows), or a function of the training frame that returns one."
                )
        return copy.deepcopy(made)

    def _draw_block(self, n: int, given: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, int]:
        model = self.foreign_
        if not len(given.columns):
            return self._call(model.sample, n, seed=seed), n
        if callable(getattr(model, "sample_remaining_columns", None)):
            known = given.loc[given.index.repeat(n)].reset_index(drop=True)
            drawn = self._call(model.sample_remaining_columns, known, seed=seed)
        elif callable(getattr(model, "sample_from_conditions", None)):
            condition = Condition(n, given.iloc[0].to_dict())
            drawn = self._call(model.sample_from_conditions, [condition], seed=seed)
        else:
            return self._draw_until_given(n, given, seed)
        if len(drawn) >= n:
            return drawn.iloc[:n], n
        others = self._call(model.sample, n - len(drawn), seed=seed)
        return pd.concat([drawn, others], ignore_index=True), len(drawn)

    def _draw_until_given(self, n: int, given: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, int]:
        """Draw until enough rows have the given values (step 3)."""
        met: list[pd.DataFrame] = []
        others = None
        for number in range(TRIES):
            drawn = self._call(self.foreign_.sample, TRIED, seed=derive_key(seed, "try", number))
            met.append(drawn[self._meets(drawn, given)])
            others = drawn if others is None else others
            if sum(map(len, met)) >= n:
                break
        n_met = min(sum(map(len, met)), n)
        return pd.concat([*met, others], ignore_index=True).iloc[:n], n_met

    def _meets(self, drawn: pd.DataFrame, given: pd.DataFrame) -> Bools:
        features = self._features[: self._n_given]
        matrix, wanted = self._encoded(drawn, features), self._encoded(given, features)
        meets = np.ones(len(drawn), dtype=bool)
        for k, feature in enumerate(features):
            reach = self.tolerance * feature.span if feature.is_numeric else 0.0
            near = np.abs(matrix[:, k] - wanted[0, k]) <= reach
            meets &= near | (np.isnan(matrix[:, k]) & np.isnan(wanted[0, k]))
        return meets
