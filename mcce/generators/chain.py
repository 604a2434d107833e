"""The chain: p(mutable | fixed, decision) as a product of univariate conditionals (paper, equation 2).

1. Order the columns: the fixed features as in the data, the decision if there is one, then the mutable features in
   visiting order.
2. Fit one sampler for each mutable feature on all columns before it; the fits do not depend on each other and run in
   threads.
3. To draw a row, go through the mutable features in that order; each is drawn given the fixed values and the values
   drawn before it.

A row's random numbers are a function of the seed, the feature, the row's fixed values and the index of the draw
(`mcce.rng`), so blocks of rows can be drawn in any order and by any number of threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from mcce.checks import check_count
from mcce.exceptions import InputError, NotFittedError, SamplerError, did_you_mean, listing, spell
from mcce.generators.predictors import Predictors, choose_predictors
from mcce.generators.visit import VisitSequence, make_visit_sequence
from mcce.rng import RowStreams, UInts, derive_key, hash_rows, resolve_seed
from mcce.samplers import ConditionalSampler, make_sampler
from mcce.samplers.base import HANDED_ON
from mcce.table import Data, Feature, Floats, Kind, Schema, Table, as_frame
from mcce.table.dtypes import holds_missing
from mcce.workers import count_jobs, run_in_threads

Samplers = str | ConditionalSampler | Mapping[Any, str | ConditionalSampler]

REST = "*"
SPOT_ROWS = 16  # encoded training rows that a chain keeps, to ask a model about them again
LARGEST = 1e150  # beyond, squares overflow; a range below its inverse is lost when squared
BLOCK_ROWS = 8192  # a block's columns stay in the cache while its features are drawn


class ChainModel:
    """A chain of conditional samplers: a generative model of a table.

    Parameters
    ----------
    sampler : str, ConditionalSampler or dict
        One sampler for every feature, or ``{feature: sampler, ..., "*": sampler for the rest}``.
    fixed : list of column names
        Features that are conditioned on and never drawn.
    visit_sequence : "data", "correlation" or list
        Order of the mutable features, see `mcce.generators.visit`.
    predictors : dict or None
        ``{feature: [columns]}``: the columns that a feature is modelled on, fixed ones or features visited before it.
        The decision always comes on top. A feature that is not named is modelled on all of them.
    kinds : dict or None
        Overrides of column kinds, ``{column: "numeric" | "categorical" | "ordered"}``.
    random_state : int or None
        Seed of the draws; None takes a fresh one at `fit` (kept as `seed_`).
    n_jobs : int or None
        Threads to use; None for all cores. The results do not depend on it.

    Attributes
    ----------
    schema_ : Schema
    visit_sequence_ : list of the mutable features in visiting order
    associations_ : DataFrame behind a correlation order, or None
    samplers_ : dict of fitted samplers by feature
    seed_ : int
    spot_rows_ : a few encoded training rows, spread over the table

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> rows = chain.sample(given=loans.X.loc[[0, 1], ["age", "sex"]], n=100)
    >>> rows.shape, rows.index.names
    ((200, 10), FrozenList(['id', 'draw']))
    >>> chain.sample(n=500).shape
    (500, 10)
    """

    def __init__(
        self,
        *,
        sampler: Samplers = "cart",
        fixed: Sequence[Hashable] = (),
        visit_sequence: VisitSequence = "data",
        predictors: Predictors | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.sampler = sampler
        self.fixed = fixed
        self.visit_sequence = visit_sequence
        self.predictors = predictors
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: Data, decision: npt.NDArray[np.bool_] | None = None, *, progress: bool | None = None
    ) -> ChainModel:
        """Fit the conditionals.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows, features only.
        decision : bool array or None
            One more column to condition on: whether each row has the wanted decision.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        vars(self).pop("samplers_", None)  # a fit that fails leaves no half-fitted chain
        self.seed_ = resolve_seed(self.random_state)
        self.schema_ = Schema.from_data(X, self.kinds)
        table = self.schema_.encode(X)
        check_magnitudes(table, "X")
        fixed = check_fixed(self.fixed, self.schema_.names)
        self.visit_sequence_, self.associations_ = make_visit_sequence(self.visit_sequence, table, fixed)
        if not self.visit_sequence_:
            raise InputError(f"all {len(fixed)} columns of X are fixed; leave at least one mutable.")
        self.conditions_on_decision_ = decision is not None
        self.spot_rows_ = table.matrix[spot_positions(table.n_rows)]
        self._arrange(table, fixed, decision)
        self._given_columns = choose_predictors(
            self.predictors,
            [feature.name for feature in self._features],
            self._n_given,
            with_decision=self.conditions_on_decision_,
        )
        samplers = self._make_samplers()
        first = self._n_given

        def fit_one(k: int) -> ConditionalSampler:
            return samplers[k].fit(self._given(self._ordered, first + k), self._ordered.column(first + k))

        # later conditionals have more givens: the longest fits first keeps the threads busy to the end
        latest_first = range(len(samplers) - 1, -1, -1)
        threads = count_jobs(self.n_jobs) if all(s.thread_safe for s in samplers) else 1
        limit = threadpool_limits(1, "blas") if any(s.uses_blas for s in samplers) else contextlib.nullcontext()
        with limit:
            fitted = list(run_in_threads(fit_one, list(latest_first), threads, "fitting", progress))[::-1]
        self.samplers_ = dict(zip(self.visit_sequence_, fitted))
        self.training_givens_ = np.asfortranarray(self._ordered.matrix[:, :first])
        del self._ordered
        return self

    def sample(
        self,
        n: int = 1,
        given: Data | None = None,
        *,
        decision: bool | None = None,
        random_state: int | None = None,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Draw rows.

        Parameters
        ----------
        n : int
            Rows to draw: for each row of `given`, or in all.
        given : DataFrame or None
            Fixed features to condition on. None draws them too, jointly, by a bootstrap of the training rows.
        decision : bool or None
            For a chain fitted with a decision, the decision to condition on. None means True with `given`, and as in
            the bootstrapped row without.
        random_state : int or None
            Seed of these draws; None uses the chain's `seed_`. The same seed gives the same rows.

        Returns
        -------
        DataFrame with the training columns and dtypes, indexed by (id, draw), where id is the index of `given`, or by
        0, 1, ... without `given`.
        """
        self.check_fitted()
        n = check_count(n, "n")
        if decision is not None and not (self.conditions_on_decision_ and isinstance(decision, (bool, np.bool_))):
            raise InputError(
                f"decision is {decision!r}; it must be True, False or None."
                if self.conditions_on_decision_
                else "this chain was fitted without a decision; there is none to condition on."
            )
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        if given is None:
            start, keys, index = self._bootstrap_givens(n, decision, seed)
            drawn = self.draw(start, keys, np.arange(n, dtype=np.uint64), seed, progress=progress)
            return self.schema_.decode(drawn, index)
        start, index = self._encode_givens(given, True if decision is None else decision)
        keys = hash_rows(start)
        occurrence = pd.Series(keys).groupby(keys, sort=False).cumcount().to_numpy().astype(np.uint64)
        draws: UInts = np.asarray(
            occurrence[:, None] * np.uint64(n) + np.arange(n, dtype=np.uint64), dtype=np.uint64
        ).ravel()
        drawn = self.draw(np.repeat(start, n, axis=0), np.repeat(keys, n), draws, seed, progress=progress)
        return self.schema_.decode(drawn, draw_index(index, n))

    def draw(
        self,
        start: Floats,
        rows: UInts,
        draws: UInts,
        seed: int,
        *,
        progress: bool | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Draw one row for each row of `start` (encoded givens: fixed features, then the decision).

        `rows` and `draws` identify each row's random numbers. Returns an encoded matrix, columns in data order.
        """
        self.check_fitted()
        out = np.empty((start.shape[0], len(self.schema_)), order="F")
        keys = [derive_key(seed, "draw", name) for name in self.visit_sequence_]
        samplers = [self.samplers_[name] for name in self.visit_sequence_]

        def draw_block(begin: int) -> None:
            block = slice(begin, min(begin + BLOCK_ROWS, out.shape[0]))
            matrix = np.empty((block.stop - begin, self._n_given + len(samplers)), order="F")
            matrix[:, : self._n_given] = start[block]
            complete = not np.isnan(matrix[:, : self._n_given].sum())
            handed_on: dict[str, Any] = {}
            for k, sampler in enumerate(samplers, self._n_given):
                streams = RowStreams(keys[k - self._n_given], rows[block], draws[block])
                table = Table(self._features, matrix, complete=complete, _shared={HANDED_ON: handed_on})
                drawn = sampler.sample(self._given(table, k), streams)
                if drawn.shape != (matrix.shape[0],):
                    raise SamplerError(
                        f"{sampler!r} drew an array of shape {drawn.shape} for {self._features[k].name!r} and "
                        f"{matrix.shape[0]} rows; sample() returns one value a row."
                    )
                complete = complete and not np.isnan(drawn.sum())
                matrix[:, k] = drawn
            for j, k in enumerate(self._place_in_chain):
                out[block, j] = matrix[:, k]

        threads = count_jobs(self.n_jobs if n_jobs is None else n_jobs) if all(s.thread_safe for s in samplers) else 1
        begins = list(range(0, out.shape[0], BLOCK_ROWS))
        for _ in run_in_threads(draw_block, begins, threads, "drawing", progress):
            pass
        return out

    def log_density(
        self,
        X: Data,
        *,
        decision: bool | npt.NDArray[np.bool_] = True,
        training: bool = False,
        per_feature: bool = False,
    ) -> pd.Series[float] | pd.DataFrame:
        """Return the log density of the mutable features of each row, given its fixed ones: log p(x^m | x^f, y').

        Criterion 1 of the paper asks that it be above some log(epsilon).

        Parameters
        ----------
        X : DataFrame or array
            Rows with the training columns.
        decision : bool or bool array
            For a chain fitted with a decision, the decision to condition on.
        training : bool
            Whether `X` are the training rows, in their order: samplers that draw donors then leave each row itself
            out, so that it does not vouch for itself.
        per_feature : bool
            Whether to return one column for each mutable feature instead of their sum.

        Notes
        -----
        Densities are with respect to the counting measure for levels and for numbers with point mass, and to the
        Lebesgue measure for other numbers (dates: in their encoded unit). Each sampler's docstring says what its
        density is; donor samplers have a smoothed surrogate, see `mcce.samplers.donors.density`.
        """
        self.check_fitted()
        frame, _ = as_frame(X)
        table = self.schema_.encode(X)
        if training and table.n_rows != self.training_givens_.shape[0]:
            raise InputError(
                f"X has {table.n_rows} rows, but the chain was trained on {self.training_givens_.shape[0]}; "
                "training=True needs the training rows in their order."
            )
        matrix = np.empty((table.n_rows, len(self._features)), order="F")
        matrix[:, self._place_in_chain] = table.matrix
        if self.conditions_on_decision_:
            if np.asarray(decision).dtype != bool or np.shape(decision) not in ((), (table.n_rows,)):
                raise InputError("decision must be True or False, for all rows or one a row.")
            matrix[:, self._n_given - 1] = decision
        ordered = Table(self._features, matrix)
        rows = np.arange(table.n_rows, dtype=np.int64)
        columns: dict[Any, Floats] = {}
        for k, (name, sampler) in enumerate(self.samplers_.items(), self._n_given):
            own: dict[str, Any] = {"training_rows": rows} if training and sampler.leaves_one_out else {}
            columns[name] = sampler.log_density(self._given(ordered, k), matrix[:, k], **own)
        each = pd.DataFrame(columns, index=frame.index)
        return each if per_feature else each.sum(axis=1).rename("log_density")

    def check_fitted(self) -> None:
        """Refuse a call that needs `fit` first."""
        if not hasattr(self, "samplers_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) first.")

    @property
    def fixed_(self) -> list[Any]:
        """The fixed features, in data order."""
        return [self.schema_.names[j] for j in self._fixed_positions]

    def encode_fixed(self, matrix: Floats, decision: bool = True) -> Floats:
        """Return the givens of encoded rows (columns in data order): their fixed values, then the decision."""
        start = np.empty((matrix.shape[0], self._n_given), order="F")
        start[:, : len(self._fixed_positions)] = matrix[:, self._fixed_positions]
        if self.conditions_on_decision_:
            start[:, -1] = float(decision)
        return start

    def __repr__(self) -> str:
        sampler = self.sampler if not isinstance(self.sampler, Mapping) else dict(self.sampler)
        return f"ChainModel(sampler={sampler!r}, fixed={list(self.fixed)!r}, visit_sequence={self.visit_sequence!r})"

    def _arrange(self, table: Table, fixed: list[Any], decision: npt.NDArray[np.bool_] | None) -> None:
        """Step 1: put the columns in chain order; remember where each data column stands in it."""
        names = self.schema_.names
        self._fixed_positions = [names.index(name) for name in fixed]
        in_chain = self._fixed_positions + [names.index(name) for name in self.visit_sequence_]
        features = [table.features[j] for j in in_chain]
        columns = [table.matrix[:, j] for j in in_chain]
        self._n_given = len(fixed)
        if decision is not None:
            if np.shape(decision) != (table.n_rows,) or np.asarray(decision).dtype != bool:
                raise InputError(
                    f"decision has shape {np.shape(decision)} and dtype {np.asarray(decision).dtype} for "
                    f"{table.n_rows} rows of X; give one boolean a row."
                )
            features.insert(self._n_given, _decision_feature(names))
            columns.insert(self._n_given, np.asarray(decision, dtype=np.float64))
            self._n_given += 1
        self._features = tuple(features)
        self._ordered = Table(self._features, np.asfortranarray(np.column_stack(columns)))
        place = {j: k for k, j in enumerate(in_chain)}
        shift = int(decision is not None)
        self._place_in_chain = [place[j] + (shift if place[j] >= len(fixed) else 0) for j in range(len(names))]

    def _given(self, table: Table, k: int) -> Table:
        """Return the columns that chain column `k` is modelled on."""
        if k in self._given_columns:
            return table.select(self._given_columns[k])
        return table.first(k)

    def _make_samplers(self) -> list[ConditionalSampler]:
        chosen = dict(self.sampler) if isinstance(self.sampler, Mapping) else {REST: self.sampler}
        for name in chosen:
            if name != REST and name not in self.visit_sequence_:
                what = "is fixed and has no sampler" if name in self.schema_.names else "is not a column of X"
                raise InputError(f"sampler names {name!r}, which {what}; {did_you_mean(name, self.visit_sequence_)}")
        without = [name for name in self.visit_sequence_ if name not in chosen]
        if without and REST not in chosen:
            raise InputError(f'sampler says nothing of {listing(without)}; add "*": ... for the rest.')
        samplers = [make_sampler(chosen.get(name, chosen.get(REST, "cart"))) for name in self.visit_sequence_]
        for k, sampler in enumerate(samplers, self._n_given):
            feature = self._features[k]
            sampler.check_target(feature)
            involved = [*(self._features[j] for j in self._given_columns.get(k, range(k))), feature]
            seen_missing = [f.name for f in involved if f.has_missing]
            if seen_missing and not sampler.handles_missing:
                raise SamplerError(
                    f"{sampler!r} for {feature.name!r} does not handle missing values, and {listing(seen_missing)} has "
                    "some; fill them, or use a sampler that does (cart)."
                )
        return samplers

    def _encode_givens(self, given: Data, decision: bool) -> tuple[Floats, pd.Index[Any]]:
        fixed = self.fixed_
        if not isinstance(given, pd.DataFrame):
            raise InputError(
                f"given is a {type(given).__name__}; give a DataFrame with the fixed features {listing(fixed)}."
            )
        extra = [name for name in given.columns if name not in fixed]
        if extra:
            raise InputError(
                f"given has the column(s) {listing(extra)}, which are not fixed in this chain; leave them out."
            )
        if isinstance(given.index, pd.MultiIndex):
            raise InputError(
                "the index of given has several levels; it names the rows. Use given.reset_index(drop=True)."
            )
        table = self.schema_.subset(fixed).encode(given, "given") if fixed else Table((), np.empty((len(given), 0)))
        check_magnitudes(table, "given")
        check_missing(table, given.index, "given")
        incomplete = [name for j, name in enumerate(fixed) if np.isnan(table.matrix[:, j]).any()]
        refusing = [repr(s) for s in self.samplers_.values() if not s.handles_missing]
        if incomplete and refusing:
            raise InputError(
                f"given has missing values in {listing(incomplete)}, which {refusing[0]} does not handle; fill them, "
                "or use a sampler that does (cart)."
            )
        start = np.empty((len(given), self._n_given), order="F")
        start[:, : len(fixed)] = table.matrix
        if self.conditions_on_decision_:
            start[:, -1] = float(decision)
        return start, given.index

    def _bootstrap_givens(self, n: int, decision: bool | None, seed: int) -> tuple[Floats, UInts, pd.Index[Any]]:
        pool = self.training_givens_
        if self.conditions_on_decision_ and decision is not None:
            pool = pool[pool[:, -1] == float(decision)]
            if not len(pool):
                raise InputError(
                    f"no training row has the decision {decision}; there is nothing to draw the fixed features from."
                )
        streams = RowStreams(derive_key(seed, "bootstrap"), np.zeros(n, dtype=np.uint64), np.arange(n, dtype=np.uint64))
        return pool[streams.integer(len(pool))], np.zeros(n, dtype=np.uint64), pd.RangeIndex(n)


def spot_positions(n: int) -> npt.NDArray[np.intp]:
    """Return the positions of a few rows spread over a table."""
    return np.unique(np.linspace(0, max(n - 1, 0), SPOT_ROWS).astype(np.intp))


def draw_index(ids: pd.Index[Any], n: int) -> pd.MultiIndex:
    """Return the index (id, draw) of `n` draws for each id."""
    codes, distinct = pd.factorize(ids)
    levels: Any = [distinct, pd.RangeIndex(n)]
    pairs: Any = [np.repeat(codes, n), np.tile(np.arange(n), len(ids))]
    return pd.MultiIndex(levels=levels, codes=pairs, names=["id", "draw"])


def check_fixed(fixed: Sequence[Hashable], columns: list[Any]) -> list[Any]:
    """Return the fixed features in data order; unknown and repeated names are errors."""
    if isinstance(fixed, str) or not isinstance(fixed, Iterable):
        raise InputError(f"fixed is {fixed!r}; give a list of column names, for example ['age', 'sex'].")
    names = list(fixed)
    for name in names:
        if name not in columns:
            raise InputError(f"fixed feature {name!r} is not a column of X; {did_you_mean(name, columns)}")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"fixed names {listing(twice)} more than once.")
    return [name for name in columns if name in names]


def check_magnitudes(table: Table, where: str) -> None:
    """Refuse numbers so large, or ranges so small, that squared distances leave the range of floats."""
    for j, feature in enumerate(table.features):
        if not feature.is_numeric:
            continue
        size = float(np.nanmax(np.abs(table.matrix[:, j]), initial=0.0))
        if size > LARGEST or 0.0 < feature.span < 1.0 / LARGEST:
            found = f"numbers of size {size:.3g}" if size > LARGEST else f"numbers in a range of {feature.span:.3g}"
            raise InputError(
                f"column {feature.name!r} of {where} holds {found}, whose squares are out of the range of floats; "
                "rescale it."
            )


def check_missing(table: Table, index: pd.Index[Any], where: str) -> None:
    """Refuse missing values in columns whose training dtype cannot hold any."""
    for j, feature in enumerate(table.features):
        missing = np.flatnonzero(np.isnan(table.matrix[:, j]))
        if missing.size and not holds_missing(feature.dtype):
            raise InputError(
                f"column {feature.name!r} of {where} has {missing.size} missing value(s), the first in row "
                f"{spell(index[missing[0]])}, which the training data's dtype {feature.dtype} cannot hold; fill them, "
                "or train on a dtype that can be missing (float64, Int64, boolean)."
            )


def _decision_feature(names: list[Any]) -> Feature:
    """Return the decision as a two-level feature, under a name that no column has."""
    name = "<decision>"
    while name in names:
        name = f"<{name}>"
    return Feature(name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)
