"""Models of other packages as generators, drawn in blocks, so that a row is a function of seed, key and draw index.

`SampleGenerator` takes any model with ``fit(X)`` and ``sample(n, given)``, `SynthesizerGenerator` synthesizers with
SDV's interface. Such a model draws many rows from one random state. So:

1. A copy of the user's model is fitted to a frame with the user's columns and dtypes and, if the generator conditions
   on the decision, a column of booleans for it.
2. Rows are drawn in blocks of `BLOCK` rows with the same givens. The seed of a block is a hash of the request's seed,
   the row's stream key and the number of the block; a row is the one at its draw index. So a row does not depend on
   the other rows of a request or on their order.
3. Before a block is drawn, the global random states of Python, numpy and, if it is loaded, torch are set; they are
   restored afterwards. The model is seeded by the user's function `seed` or else by its method `set_random_state`
   (SDV's `_set_random_state`), if it has one. One block is drawn at a time.
4. `fit` raises if the draws are not reproducible: different rows with the same seed, or the same rows with different
   seeds.
5. Drawn rows are checked: all columns, known levels, no missing values where the dtype does not allow them.

`SampleGenerator`: ``sample(n, given)`` returns a frame of `n` rows with the mutable columns. `given` is a dict of the
fixed values and the decision by column, empty if nothing is given. If fewer rows are returned, the remaining rows of
the block are rejected by "the fixed values".

`SynthesizerGenerator`:

6. ``fit(frame)`` fits the synthesizer; ``sample(num_rows)`` draws rows.
7. Rows with given values come from ``sample_remaining_columns(known_columns)`` if there is such a method, else from
   ``sample_from_conditions([condition])``; a condition has ``num_rows`` and ``column_values``, also as the methods
   ``get_num_rows()`` and ``get_column_values()``.
8. From a synthesizer without these methods, `TRIED` rows are drawn at a time, `TRIES` times at most, and rows with the
   given values are kept: levels and missing values must be equal, numbers within a share of their range (`tolerance`).
   The fixed values of kept rows are then the given ones.
9. Rows of a block that could not be drawn given their fixed values are rejected by "the fixed values".
"""

from __future__ import annotations

import copy
import inspect
import random
import sys
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.base.checks import check_share
from mcce.exceptions import InputError, SamplerError, listing, spell
from mcce.generators.base import generators_of_weights
from mcce.generators.joint.base import JointGenerator
from mcce.rng import RowStreams, derive_key, hash_rows
from mcce.samplers import RestrictedDraw
from mcce.samplers.estimator import takes_sample_weight
from mcce.table import Feature, Kind, Schema, Table
from mcce.table.dtypes import holds_missing, is_dated

BLOCK = 100
ATTEMPTS = 20  # draws of a row until it is allowed: each draws a whole block
SEEDING = ("set_random_state", "_set_random_state")
_ONE_AT_A_TIME = RLock()  # threads share the global random states

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
        """Return an unfitted copy of the user's model."""

    @abstractmethod
    def _draw_block(self, n: int, given: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, int]:
        """Return `n` rows, and how many of the first have the values of `given`, a frame of one row."""

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
                f"parameter; add it, use another generator ({generators_of_weights()}), or leave sample_weight out."
            )
        self.foreign_ = model
        self._check_reproducible(table)

    def _check_reproducible(self, table: Table) -> None:
        """Raise if the draws of the model are not a function of the seed (step 4)."""
        given = table.matrix[:1, : self._n_given]
        seeds = (derive_key(self.seed_, "trial"), derive_key(self.seed_, "another trial"))
        first, other, again = (self._block(given, seed)[0] for seed in (seeds[0], seeds[1], seeds[0]))
        constant = bool((table.matrix == table.matrix[:1]).all())
        if not np.array_equal(first, again, equal_nan=True):
            raise SamplerError(
                f"{self!r} draws different rows with the same seed, so its draws cannot be reproduced; give a function "
                "that seeds it: seed=lambda model, seed: ..."
            )
        if np.array_equal(first, other, equal_nan=True) and not constant:
            raise SamplerError(
                f"{self!r} draws the same rows with different seeds: its random state is not set; give a function that "
                "seeds it: seed=lambda model, seed: ..."
            )

    def _draw(self, givens: Floats, streams: RowStreams) -> Floats:
        return self.draw_free(givens, streams).values

    def draw_free(self, givens: Floats, streams: RowStreams) -> RestrictedDraw:
        """Draw whole rows, block by block (step 2)."""
        n_mutable = len(self._features) - self._n_given
        values, rejected = np.empty((givens.shape[0], n_mutable)), np.zeros(givens.shape[0], dtype=bool)
        number, place = np.divmod(streams.draws, np.uint64(BLOCK))
        _, block = np.unique(np.column_stack([hash_rows(givens), streams.rows, number]), axis=0, return_inverse=True)
        ends = np.cumsum(np.bincount(block.ravel()))
        for rows in np.split(np.argsort(block.ravel(), kind="stable"), ends[:-1]):
            at = rows[0]
            seed = derive_key(streams.key, int(streams.rows[at]), int(number[at]))
            drawn, n_met = self._block(givens[[at]], seed)
            values[rows] = drawn[place[rows].astype(np.intp)]
            rejected[rows] = place[rows] >= n_met
        return RestrictedDraw(values, rejected)

    def _block(self, given: Floats, seed: int) -> tuple[Floats, int]:
        """Return the mutable features of one block of rows, and how many rows have the givens."""
        known = Schema(self._features[: self._n_given]).decode(given) if self._n_given else pd.DataFrame(index=[0])
        frame, n_met = self._draw_block(BLOCK, known, seed)
        return self._encoded(frame, self._features[self._n_given :]), n_met

    def _call(self, draw: Callable[..., Any], *arguments: Any, seed: int) -> pd.DataFrame:
        """Seed the model and return its draws (step 3)."""
        with seeded(self.foreign_, seed, self.seed):
            drawn = draw(*arguments)
        if not isinstance(drawn, pd.DataFrame):
            raise SamplerError(f"{self!r} drew a {type(drawn).__name__}; its rows must come as a pandas DataFrame.")
        return drawn

    def _encoded(self, frame: pd.DataFrame, features: tuple[Feature, ...]) -> Floats:
        """Return drawn columns as floats and codes (step 5)."""
        absent = [feature.name for feature in features if feature.name not in frame.columns]
        if absent:
            raise SamplerError(f"{self!r} drew rows without the column(s) {listing(absent)}; it must draw them all.")
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
            raise SamplerError(f"{self!r} drew invalid values of {feature.name!r}: {error}") from error
        if np.isnan(values).any() and not holds_missing(feature.dtype):
            raise SamplerError(
                f"{self!r} drew missing values for {feature.name!r}, which its dtype {feature.dtype} cannot hold; "
                "train on a dtype with missing values, or let the model draw none."
            )
        return np.asarray(values, dtype=np.float64)


@contextmanager
def seeded(model: Any, seed: int, how: Seeding | None) -> Iterator[None]:
    """Seed a model and, within the context, the global random states (step 3)."""
    methods = (getattr(model, name, None) for name in SEEDING)
    with _ONE_AT_A_TIME:
        torch = sys.modules.get("torch")
        before = random.getstate(), np.random.get_state(), None if torch is None else torch.random.get_rng_state()  # noqa: NPY002
        try:
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002  # the model may draw from it; restored below
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


class SampleGenerator(ForeignGenerator):
    """Draws from a model with the methods ``fit(X)`` and ``sample(n, given)``.

    Parameters
    ----------
    model : object
        An unfitted model; it is copied. ``fit(X)`` gets a frame with the training columns and, if the generator
        conditions on the decision, one more of booleans, named ``"<decision>"``. ``sample(n, given)`` returns a frame
        of `n` rows given the values of a dict by column. A parameter `random_state` or `seed` of it gets an integer. To
        take weights of rows, its `fit` needs a parameter `sample_weight`.
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`; blocks are drawn one at a time.
    seed : callable or None
        ``seed(model, number)`` seeds a model with its own random state. None seeds the global states of Python, numpy
        and torch, and calls `set_random_state` if there is one.

    Notes
    -----
    The generator has no density, and can be saved only by pickle. Restrictions and rules are applied by rejection, with
    at most 20 draws of a row. A subclass of `mcce.generators.JointGenerator` can have a density, can be saved, and
    draws faster, since it need not draw in blocks.

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
    ...         return (alike if len(alike) else self.X).sample(n, replace=True, random_state=random_state)
    >>> X = mcce.datasets.load_loans(500).X[["sex", "housing", "salary"]]
    >>> generator = mcce.generators.SampleGenerator(Alike(), fixed=["sex"], random_state=1)
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 120_000, fixed=["sex"], generator=generator).fit(X)
    >>> len(explainer.explain(X.head(20), n_samples=100)) > 0
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        seed: Seeding | None = None,
    ) -> None:
        super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
        self.model = model
        self.seed = seed

    def _copy_foreign(self, frame: pd.DataFrame) -> Any:
        for name in ("fit", "sample"):
            if isinstance(self.model, type) or not callable(getattr(self.model, name, None)):
                raise InputError(
                    f"model is {spell(self.model)}, which has no method {name!r}; give an unfitted object with "
                    "fit(X) and sample(n, given)."
                )
        return copy.deepcopy(self.model)

    def _draw_block(self, n: int, given: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, int]:
        draw = self.foreign_.sample
        taken = [name for name in ("random_state", "seed") if name in inspect.signature(draw).parameters]
        values = given.iloc[0].to_dict() if len(given.columns) else {}
        drawn = self._call(partial(draw, n, values, **{name: seed % 2**32 for name in taken[:1]}), seed=seed)
        if not len(drawn):
            raise SamplerError(f"{self!r} drew no rows given {values}; let sample(n, given) return at least one.")
        n_met = min(len(drawn), n)
        while len(drawn) < n:  # placeholders for rows that could not be drawn
            drawn = pd.concat([drawn, drawn], ignore_index=True)
        return drawn.iloc[:n], n_met


TRIED, TRIES = 1000, 20


@dataclass(frozen=True)
class SynthesizerCondition:
    """Values to condition draws on, with the interface of SDV's conditions."""

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
        or `sample_from_conditions`; it is copied. Or a function that makes one from the training frame, for
        synthesizers that need the columns in advance (SDV's metadata): the frame has one more column of booleans if the
        generator conditions on the decision. To take weights of rows, its `fit` needs a parameter `sample_weight`.
    fixed, kinds, random_state, n_jobs : as in `mcce.ChainModel`; blocks are drawn one at a time.
    seed : callable or None
        ``seed(synthesizer, number)`` seeds a synthesizer with its own random state. None seeds the global states of
        Python, numpy and torch, and calls `set_random_state` if there is one.
    tolerance : float
        Without conditional sampling, largest deviation of a fixed number, as a share of its range.

    Notes
    -----
    The generator has no density, and can be saved only by pickle. Restrictions and rules are applied by rejection, with
    at most 20 draws of a row. Without conditional sampling, up to 20 times 1000 rows are drawn for each block of 100.
    If too few of them have the fixed values, the remaining rows of the block are rejected.

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
        super().__init__(fixed=fixed, kinds=kinds, random_state=random_state, n_jobs=n_jobs)
        self.synthesizer = synthesizer
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
                    f"synthesizer is {spell(made)}, which has no method {name!r}; give an unfitted object with "
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
            condition = SynthesizerCondition(n, given.iloc[0].to_dict())
            drawn = self._call(model.sample_from_conditions, [condition], seed=seed)
        else:
            return self._draw_until_given(n, given, seed)
        if len(drawn) >= n:
            return drawn.iloc[:n], n
        others = self._call(model.sample, n - len(drawn), seed=seed)
        return pd.concat([drawn, others], ignore_index=True), len(drawn)

    def _draw_until_given(self, n: int, given: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, int]:
        """Draw until enough rows have the given values (step 8)."""
        matching: list[pd.DataFrame] = []
        others = None
        for number in range(TRIES):
            drawn = self._call(self.foreign_.sample, TRIED, seed=derive_key(seed, "try", number))
            matching.append(drawn[self._matches(drawn, given)])
            others = drawn if others is None else others
            if sum(map(len, matching)) >= n:
                break
        n_met = min(sum(map(len, matching)), n)
        return pd.concat([*matching, others], ignore_index=True).iloc[:n], n_met

    def _matches(self, drawn: pd.DataFrame, given: pd.DataFrame) -> Bools:
        features = self._features[: self._n_given]
        matrix, wanted = self._encoded(drawn, features), self._encoded(given, features)
        meets = np.ones(len(drawn), dtype=bool)
        for k, feature in enumerate(features):
            reach = self.tolerance * feature.span if feature.is_numeric else 0.0
            near = np.abs(matrix[:, k] - wanted[0, k]) <= reach
            meets &= near | (np.isnan(matrix[:, k]) & np.isnan(wanted[0, k]))
        return meets
