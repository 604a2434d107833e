"""Models of other packages as generators: drawn in blocks, so that a row is a function of seed, key and draw index.

A foreign model draws many rows from one random state. So:

1. It is fitted to the training rows as a frame with the user's columns and dtypes, and, if the generator conditions on
   the decision, a column of booleans for it. The user's model is copied first. Weights of the rows are handed to a
   `fit` that takes `sample_weight`; another is refused.
2. Rows are drawn in blocks of `BLOCK` rows with the same givens. The seed of a block is a hash of the request's seed,
   the row's stream key and the number of the block; a row is the one at its draw index. So nothing depends on what else
   is drawn, nor in which order.
3. Before a block is drawn the model is seeded: by the function `seed` if the user gives one, else by its method
   `set_random_state` (SDV's `_set_random_state`), if it has one; and the global random states of Python, numpy and, if
   it is loaded, torch are set and, after the block, put back as they were. One block is drawn at a time.
4. What cannot be reproduced is refused at `fit`: a model that draws different rows with the same seed, or the same
   rows with different seeds.
5. What comes back is checked: all columns, known levels, no missing values where the dtype has none.
"""

from __future__ import annotations

import inspect
import random
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from mcce.arrays import Floats
from mcce.exceptions import InputError, SamplerError, listing
from mcce.generators.joint.base import JointGenerator
from mcce.generators.joint.drawing import JointDraw
from mcce.generators.joint.storing import OURS
from mcce.rng import RowStreams, derive_key, hash_rows
from mcce.table import Feature, Schema, Table
from mcce.table.dtypes import holds_missing, is_dated

BLOCK = 100
ATTEMPTS = 20  # of drawing a row inside what is allowed: each draws a whole block
SEEDING = ("set_random_state", "_set_random_state")
_ONE_AT_A_TIME = RLock()  # the global random states are one

Seeding = Callable[[Any, int], object]


class ForeignGenerator(JointGenerator):
    """A fitted model of another package, as `self.foreign_`."""

    thread_safe: ClassVar[bool] = False
    conditions_by_rejection: ClassVar[bool] = True
    attempts: ClassVar[int] = ATTEMPTS
    takes_weights: ClassVar[bool] = True

    seed: Seeding | None
    foreign_: Any

    @abstractmethod
    def _copy_foreign(self, frame: pd.DataFrame) -> Any:
        """Return a copy of the user's model that is not fitted."""

    @abstractmethod
    def _draw_block(self, n: int, given: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, int]:
        """Return `n` rows, of which the first so many have the values of `given`, a frame of one row."""

    def _fit(self, table: Table, n_given: int) -> None:
        self._features, self._n_given = table.features, n_given
        places = [*self._layout.place_in_chain, *([n_given - 1] if self._layout.with_decision else [])]
        columns = Schema([table.features[k] for k in places])
        frame = columns.decode(table.matrix[:, places])
        model = self._copy_foreign(frame)
        if table.weights is None:
            model.fit(frame)
        elif takes_sample_weight(model):
            model.fit(frame, sample_weight=table.weights.copy())
        else:
            raise SamplerError(
                f"{self!r} does not take sample_weight, because the fit of its {type(model).__name__} has no such "
                "parameter, and would learn from all rows alike; give that one, use another generator "
                f"({OURS}) or a chain, or leave sample_weight out."
            )
        self.foreign_ = model
        self._check_reproducible(table)

    def _check_reproducible(self, table: Table) -> None:
        """Refuse a model whose draws are not a function of the seed (step 4)."""
        given = table.matrix[:1, : self._n_given]
        seeds = (derive_key(self.seed_, "trial"), derive_key(self.seed_, "another trial"))
        first, other, again = (self._block(given, seed)[0] for seed in (seeds[0], seeds[1], seeds[0]))
        constant = bool((table.matrix == table.matrix[:1]).all())
        if not np.array_equal(first, again, equal_nan=True):
            raise SamplerError(
                f"{self!r} draws different rows with the same seed, so that nothing could be reproduced; give a "
                "function that seeds it: seed=lambda model, seed: ..."
            )
        if np.array_equal(first, other, equal_nan=True) and not constant:
            raise SamplerError(
                f"{self!r} draws the same rows whatever the seed: it has a random state of its own; give a function "
                "that seeds it: seed=lambda model, seed: ..."
            )

    def _draw(self, givens: Floats, streams: RowStreams) -> Floats:
        return self.draw_free(givens, streams).values

    def draw_free(self, givens: Floats, streams: RowStreams) -> JointDraw:
        """Draw whole rows, block by block (step 2)."""
        n_mutable = len(self._features) - self._n_given
        values, dead = np.empty((givens.shape[0], n_mutable)), np.zeros(givens.shape[0], dtype=bool)
        number, place = np.divmod(streams.draws, np.uint64(BLOCK))
        _, block = np.unique(np.column_stack([hash_rows(givens), streams.rows, number]), axis=0, return_inverse=True)
        ends = np.cumsum(np.bincount(block.ravel()))
        for rows in np.split(np.argsort(block.ravel(), kind="stable"), ends[:-1]):
            at = rows[0]
            seed = derive_key(streams.key, int(streams.rows[at]), int(number[at]))
            drawn, n_met = self._block(givens[[at]], seed)
            values[rows] = drawn[place[rows].astype(np.intp)]
            dead[rows] = place[rows] >= n_met
        return JointDraw(values, dead)

    def _block(self, given: Floats, seed: int) -> tuple[Floats, int]:
        """Return the mutable features of one block of rows, and how many of them have the givens."""
        known = Schema(self._features[: self._n_given]).decode(given) if self._n_given else pd.DataFrame(index=[0])
        frame, n_met = self._draw_block(BLOCK, known, seed)
        return self._encoded(frame, self._features[self._n_given :]), n_met

    def _call(self, draw: Callable[..., Any], *arguments: Any, seed: int, **options: Any) -> pd.DataFrame:
        """Return what the model draws once it is seeded (step 3)."""
        with seeded(self.foreign_, seed, self.seed):
            drawn = draw(*arguments, **options)
        if not isinstance(drawn, pd.DataFrame):
            raise SamplerError(f"{self!r} drew a {type(drawn).__name__}; its rows must come as a pandas DataFrame.")
        return drawn

    def _encoded(self, frame: pd.DataFrame, features: tuple[Feature, ...]) -> Floats:
        """Return drawn columns as floats and codes (step 5)."""
        lacking = [feature.name for feature in features if feature.name not in frame.columns]
        if lacking:
            raise SamplerError(f"{self!r} drew rows without the column(s) {listing(lacking)}; it must draw them all.")
        matrix = np.empty((len(frame), len(features)), order="F")
        for k, feature in enumerate(features):
            matrix[:, k] = self._encoded_column(frame[feature.name], feature)
        return matrix

    def _encoded_column(self, column: pd.Series[Any], feature: Feature) -> Floats:
        try:
            if feature.is_numeric and not is_dated(feature.dtype):
                values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                values = feature.encode(column.reset_index(drop=True), "the drawn rows")
        except (InputError, TypeError, ValueError) as error:
            raise SamplerError(f"{self!r} drew {feature.name!r} as what it is not: {error}") from error
        if np.isnan(values).any() and not holds_missing(feature.dtype):
            raise SamplerError(
                f"{self!r} drew missing values for {feature.name!r}, which its dtype {feature.dtype} cannot hold; let "
                "the model draw none, or train on a dtype that can be missing."
            )
        return np.asarray(values, dtype=np.float64)


def takes_sample_weight(model: Any) -> bool:
    """Return whether the `fit` of a model has a parameter `sample_weight`."""
    return "sample_weight" in inspect.signature(model.fit).parameters


@contextmanager
def seeded(model: Any, seed: int, how: Seeding | None) -> Iterator[None]:
    """Seed a model, and the global random states until the end (step 3)."""
    methods = (getattr(model, name, None) for name in SEEDING)
    with _ONE_AT_A_TIME:
        torch = sys.modules.get("torch")
        before = random.getstate(), np.random.get_state(), None if torch is None else torch.random.get_rng_state()  # noqa: NPY002
        try:
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002  # the model may draw from it; we put it back
            if torch is not None:
                torch.manual_seed(seed % 2**63)
            if how is not None:
                how(model, seed % 2**32)
            else:
                for method in filter(callable, methods):
                    method(seed % 2**32)
                    break
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002
            if torch is not None:
                torch.random.set_rng_state(before[2])
