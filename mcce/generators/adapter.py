"""Any object with ``fit(X)`` and ``sample(n, given)`` as a generator of whole rows.

Such a model draws many rows from one random state. So rows are drawn in blocks of `BLOCK` with the same given values,
and a row is the one at its draw index: the seed of a block is a hash of the request's seed, the identity of the row and
the number of the block, so a row does not depend on the other rows of a request. Restrictions and rules are applied by
rejection, with at most `MOST_ATTEMPTS` draws of a row, each with another seed.
"""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Bools, Floats, Ints
from mcce.exceptions import InputError, listing
from mcce.generators.base import Drawn, DrawRequest, Generator
from mcce.generators.layout import Layout
from mcce.rng import derive_key, hash_rows
from mcce.table import Feature, Kind, Table

BLOCK = 100
MOST_ATTEMPTS = 20
TRIALS = 20  # draws that are compared to see whether the seed matters
SEEDING = ("set_random_state", "_set_random_state")
_ONE_AT_A_TIME = RLock()  # threads share the global random states


class SampleGenerator(Generator):
    """Draws from a model with the methods ``fit(X)`` and ``sample(n, given)``.

    Parameters
    ----------
    model : object
        An unfitted model; it is copied. ``fit(X)`` gets a frame with the training columns and, if the generator
        conditions on the decision, one more of booleans, named ``"<decision>"``. ``sample(n, given)`` returns a frame
        of `n` rows, or fewer if no more have the values of `given`, a dict by column. A parameter `random_state` or
        `seed` of it gets an integer; besides, the global states of Python and numpy are seeded, and `set_random_state`
        is called if the model has it.
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`; blocks are drawn one at a time.

    Notes
    -----
    The generator has no density.

    Examples
    --------
    >>> import mcce
    >>> class Alike:
    ...     def fit(self, X):
    ...         self.X = X
    ...     def sample(self, n, given, random_state=None):
    ...         alike = self.X
    ...         for name, value in given.items():
    ...             alike = alike[alike[name] == value]
    ...         return alike.sample(n, replace=True, random_state=random_state)
    >>> X = mcce.datasets.load_loans(500).X[["sex", "housing", "salary"]]
    >>> generator = mcce.SampleGenerator(Alike(), fixed=["sex"], random_state=1).fit(X)
    >>> generator.sample(3, given=X[["sex"]].head(2)).shape
    (6, 3)
    """

    model_: Any

    def __init__(
        self,
        model: Any,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
        self.model = model

    def _fit(self, table: Table, decision: Bools | None) -> None:
        for name in ("fit", "sample"):
            if isinstance(self.model, type) or not callable(getattr(self.model, name, None)):
                raise InputError(
                    f"model is {self.model!r}, which has no method {name!r}; give an unfitted object with fit(X) and "
                    "sample(n, given)."
                )
        self._layout = Layout.of(self.schema_, self.n_fixed_, decision is not None, None)
        frame = self.schema_.decode(table.matrix)
        if decision is not None:
            frame[self._layout.features[self.n_fixed_].name] = decision
        self.model_ = copy.deepcopy(self.model)
        self.model_.fit(frame)
        self._check_reproducible(self._layout.chain_table(table.matrix, decision))

    def _check_reproducible(self, table: Table) -> None:
        """Raise if the draws of the model are not a function of the seed."""
        givens = table.matrix[:, : self._layout.n_given]
        rows = pd.DataFrame({"given": hash_rows(givens), "row": hash_rows(table.matrix)})
        n_outcomes = rows.groupby("given")["row"].transform("nunique").to_numpy()
        given = np.repeat(givens[[np.argmax(n_outcomes)]], TRIALS, axis=0)
        seeds = (derive_key(self.seed_, "trial"), derive_key(self.seed_, "another trial"))
        first, other, again = (self._block(given, seed) for seed in (seeds[0], seeds[1], seeds[0]))
        if not np.array_equal(first, again, equal_nan=True):
            raise InputError(
                f"the model {self.model!r} draws different rows with the same seed, so its draws cannot be reproduced; "
                "give its sample() a parameter random_state."
            )
        if n_outcomes.max() > 1 and np.array_equal(first, other, equal_nan=True):
            raise InputError(
                f"the model {self.model!r} draws the same rows with different seeds; give its sample() a parameter "
                "random_state."
            )

    def draw(self, request: DrawRequest) -> Drawn:
        """Draw one row for each row of the request, block by block."""
        self.check_fitted()
        rows, rejected = self._draw_once(request, request.seed)
        rejected |= self.breaks(request, rows)
        for attempt in range(1, MOST_ATTEMPTS):
            waiting = np.flatnonzero(rejected)
            if not waiting.size or not (request.within or request.rules):
                break
            part = request.take(waiting)
            rows[waiting], failed = self._draw_once(part, derive_key(request.seed, "again", attempt))
            rejected[waiting] = failed | self.breaks(part, rows[waiting])
        return Drawn(rows, rejected)

    def _draw_once(self, request: DrawRequest, seed: int) -> tuple[Floats, Bools]:
        """Return one row for each row of the request, and which of them the model could not draw."""
        rows: Floats = np.empty((len(request), len(self.schema_)), order="F")
        rows[:, : self.n_fixed_] = request.given[:, : self.n_fixed_]
        rejected = np.zeros(len(request), dtype=np.bool_)
        block, place = np.divmod(request.draws, np.uint64(BLOCK))
        for members in _groups(np.column_stack([hash_rows(request.given), request.rows, block])):
            first = members[0]
            block_seed = derive_key(seed, "draw", int(request.rows[first]), int(block[first]))
            drawn = self._block(request.given[[first]], block_seed)
            at = place[members].astype(np.intp)
            rejected[members] = at >= len(drawn)
            rows[members, self.n_fixed_ :] = drawn[np.minimum(at, len(drawn) - 1)]
        return rows, rejected

    def _block(self, given: Floats, seed: int) -> Floats:
        """Return the mutable features of a block of rows with the same given values."""
        features = self._layout.features[: self._layout.n_given]
        given_values = {f.name: pd.Series(f.decode(given[:, j])).iloc[0] for j, f in enumerate(features)}
        draw = self.model_.sample
        seed_names = [name for name in ("random_state", "seed") if name in inspect.signature(draw).parameters]
        with seeded(self.model_, seed):
            drawn = draw(BLOCK, given_values, **{name: seed % 2**32 for name in seed_names[:1]})
        if not isinstance(drawn, pd.DataFrame):
            raise InputError(
                f"the model {self.model!r} drew a {type(drawn).__name__}; sample() must return a DataFrame."
            )
        if not len(drawn):
            raise InputError(
                f"the model {self.model!r} drew no rows given {given_values}; sample() must return at least one."
            )
        mutable = self.schema_.features[self.n_fixed_ :]
        absent = [feature.name for feature in mutable if feature.name not in drawn.columns]
        if absent:
            raise InputError(
                f"the model {self.model!r} drew rows without {listing(absent)}; it must draw all features."
            )
        return np.column_stack([self._encode(drawn[feature.name].iloc[:BLOCK], feature) for feature in mutable])

    def _encode(self, column: pd.Series[Any], feature: Feature) -> Floats:
        """Return a drawn column as floats and codes, on the grid of the feature."""
        try:
            if feature.grid is not None and not feature.is_date:  # a model may draw 2.7 for a whole number
                values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
                values = feature.grid.round(values)
            else:
                values = feature.encode(column.reset_index(drop=True), "the drawn rows")
        except (InputError, TypeError, ValueError) as error:
            raise InputError(f"the model {self.model!r} drew invalid values of {feature.name!r}: {error}") from error
        if np.isnan(values).any() and not feature.holds_missing:
            raise InputError(
                f"the model {self.model!r} drew missing values for {feature.name!r}, which its dtype {feature.dtype} "
                "cannot hold; let it draw none."
            )
        return np.asarray(values, dtype=np.float64)


def _groups(keys: Any) -> list[Ints]:
    """Return the positions of rows with equal keys, group by group."""
    _, group = np.unique(keys, axis=0, return_inverse=True)
    ends = np.cumsum(np.bincount(group.ravel()))
    return np.split(np.argsort(group.ravel(), kind="stable"), ends[:-1]) if ends.size else []


@contextmanager
def seeded(model: Any, seed: int) -> Iterator[None]:
    """Seed a model and, within the context, the global random states of Python and numpy."""
    with _ONE_AT_A_TIME:
        before = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002  # the model may draw from it; restored below
            for method in SEEDING:
                if callable(getattr(model, method, None)):
                    getattr(model, method)(seed % 2**32)
                    break
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002
