"""The base class of generators, the requests that they draw, and weights of rows.

`Generator.fit` reads the training table once and arranges its columns: the fixed features in the order of `fixed`, then
the others in visiting order. Matrices, requests and drawn rows have this arrangement; frames have the order of the
data. A subclass implements `_fit` and `draw`.

Weights of rows exist here only: whole numbers repeat rows while their sum is at most max(10 n, 10^6), other weights
resample to n rows systematically (with cumulative weights W, the row with W > (i + u) W_n / n for i = 0, ..., n - 1 and
one uniform u). Rows of weight 0 are dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator

from mcce._utils import Bools, Floats, Ints, UInts, check_count, one_native_thread
from mcce.exceptions import InputError, NotFittedError, listing, spell, warn
from mcce.rng import RowStreams, derive_key, hash_rows, resolve_seed
from mcce.samplers import Within
from mcce.table import Data, Kind, Schema, Table, as_frame
from mcce.table.checks import check_fixed

Self = TypeVar("Self", bound="Generator")

MOST_ROWS = 10**9  # drawn at once
MOST_COPIES = 10**6  # of repeated rows, or 10 for each row if that is more


class RowRule(Protocol):
    """A rule between the columns of a row, and perhaps those of its factual."""

    @property
    def columns(self) -> tuple[int, ...]:
        """Positions of the columns that the rule reads in a drawn row."""

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        """Return whether each row satisfies the rule; columns that are not drawn yet are NaN."""


@dataclass(frozen=True)
class DrawRequest:
    """A request for draws, one row for each draw. Positions are those of the arranged columns.

    Attributes
    ----------
    given : fixed values, then the decision (1 or 0) if the generator conditions on one.
    rows, draws : the random numbers of a draw are a function of these two and the seed.
    seed : int
    within : restrictions of the draws by column; other columns are free.
    rules : rules between the columns of a row.
    factuals : encoded rows with which rules compare the draws; None if no rule does.

    Examples
    --------
    >>> import mcce, numpy as np
    >>> from mcce.generators import DrawRequest
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
    >>> chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(X)
    >>> index = np.arange(3, dtype=np.uint64)
    >>> request = DrawRequest(given=np.full((3, 1), 36.0), rows=np.zeros_like(index), draws=index, seed=1)
    >>> bool((chain.draw(request.take(slice(1, 3))).rows == chain.draw(request).rows[1:]).all())
    True
    """

    given: Floats
    rows: UInts
    draws: UInts
    seed: int
    within: Mapping[int, Within] = field(default_factory=dict)
    rules: tuple[Any, ...] = ()  # RowRules
    factuals: Floats | None = None

    def __len__(self) -> int:
        return int(self.given.shape[0])

    def take(self, rows: Any) -> DrawRequest:
        """Return the request for some of the draws: a slice or an index array."""
        return replace(
            self,
            given=self.given[rows],
            rows=self.rows[rows],
            draws=self.draws[rows],
            within={j: within.take(rows) for j, within in self.within.items()},
            factuals=None if self.factuals is None else self.factuals[rows],
        )


@dataclass(frozen=True)
class Drawn:
    """Encoded rows, and which are rejected: no value was drawn within their restrictions and rules."""

    rows: Floats
    rejected: Bools


class Generator(BaseEstimator, ABC):  # type: ignore[misc]
    """A model of the mutable features given the fixed ones and the decision, for ``MCCE(model, generator=...)``.

    To write one, subclass this, keep the parameters `fixed`, `kinds`, `random_state` and `n_jobs`, and implement

    ``_fit(table, decision)``
        Learn from encoded rows (weights have repeated or resampled them): the first ``n_fixed_`` columns are fixed. Set
        fitted attributes with a trailing underscore.
    ``draw(request)``
        Return one row for each row of a `DrawRequest` as `Drawn`. All randomness comes from the request's seed, rows
        and draws, as by ``RowStreams(derive_key(request.seed, "draw"), request.rows, request.draws)``.

    and optionally ``_log_density(table, decision)``, a matrix with one column for each mutable feature.
    `mcce.testing.check_generator` checks a generator.

    Attributes
    ----------
    schema_ : the arranged columns.
    fixed_, n_fixed_ : the fixed features and their number.
    seed_ : seed of fit and draws.
    conditions_on_decision_ : whether the decision is given.
    training_, training_decision_ : the encoded training rows, unrepeated, and their decisions or None.
    copies_ : the training rows that `_fit` saw, with repetitions; None if each is there once.

    Examples
    --------
    A generator that draws whole training rows, and ignores fixed features and decision:

    >>> import mcce, numpy as np
    >>> from mcce.generators import Drawn, Generator
    >>> from mcce.rng import RowStreams
    >>> class WholeRows(Generator):
    ...     def _fit(self, table, decision):
    ...         self.rows_ = table.matrix
    ...     def draw(self, request):
    ...         streams = RowStreams(request.seed, request.rows, request.draws)
    ...         rows = self.rows_[streams.integer(len(self.rows_))]
    ...         rows[:, : self.n_fixed_] = request.given[:, : self.n_fixed_]
    ...         return Drawn(rows, self.breaks(request, rows))
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
    >>> WholeRows(fixed=["age"], random_state=1).fit(X).sample(3, given=X[["age"]].head(2)).shape
    (6, 2)
    """

    schema_: Schema
    fixed_: list[Any]
    n_fixed_: int
    seed_: int
    conditions_on_decision_: bool
    training_: Floats
    training_decision_: Bools | None
    copies_: Ints | None

    def __init__(
        self,
        *,
        fixed: Sequence[Hashable] = (),
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.fixed = fixed
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs

    @abstractmethod
    def _fit(self, table: Table, decision: Bools | None) -> None:
        """Learn from arranged rows."""

    @abstractmethod
    def draw(self, request: DrawRequest) -> Drawn:
        """Draw one row for each row of the request."""

    def _log_density(self, table: Table, decision: Bools | None) -> Floats:
        raise InputError(f"{self!r} has no density; use a mcce.ChainModel of samplers that have a distribution.")

    def _visit(self, table: Table, fixed: list[Any]) -> list[Any]:
        """Return the mutable features in the order of the arrangement."""
        return [name for name in table.names if name not in fixed]

    @one_native_thread()
    def fit(
        self: Self, X: Data, decision: npt.ArrayLike | None = None, *, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows, features only.
        decision : bool array or None
            One more column to condition on: whether each row has the wanted decision.
        sample_weight : array or None
            A weight for each row. Whole numbers count copies: a row of weight 2 is two rows. Rows of weight 0 are left
            out.
        """
        self.__dict__.pop("training_", None)  # it marks the generator as fitted
        seed = resolve_seed(self.random_state)
        n_rows = len(as_frame(X))
        has_decision = check_decision(decision, n_rows)
        copies = None
        if sample_weight is not None:
            weights = read_weights(sample_weight, n_rows)
            kept = np.flatnonzero(weights)
            X = rows_of(X, kept)
            has_decision = None if has_decision is None else has_decision[kept]
            copies = copies_by_weight(weights[kept], seed)
        schema = Schema.from_data(X, self.kinds)
        in_data_order = schema.encode(X)
        fixed = check_fixed(self.fixed, schema.names)
        if isinstance(self.fixed, (set, frozenset)):  # the order of a set differs between processes
            fixed = [name for name in schema.names if name in fixed]
        visited = self._visit(in_data_order if copies is None else in_data_order.take(copies), fixed)
        if not visited:
            raise InputError(f"all {len(fixed)} columns of X are fixed; leave at least one mutable.")
        arranged = schema.arrange([*fixed, *visited])
        order = [schema.position(name) for name in arranged.names]
        self.seed_, self.schema_, self.fixed_, self.n_fixed_ = seed, arranged, fixed, len(fixed)
        self.conditions_on_decision_, self.training_decision_ = has_decision is not None, has_decision
        self.copies_ = copies
        rows = np.asfortranarray(in_data_order.matrix[:, order])
        if copies is None:
            self._fit(Table(arranged.features, rows), has_decision)
        else:
            decisions = None if has_decision is None else has_decision[copies]
            self._fit(Table(arranged.features, np.asfortranarray(rows[copies])), decisions)
        self.training_ = rows
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "training_" in vars(self)

    def check_fitted(self) -> None:
        """Raise if the generator is not fitted."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) first.")

    def givens_of(self, rows: Floats, decision: bool | Bools = True) -> Floats:
        """Return what is given in encoded rows: their fixed values, then the decision if there is one."""
        givens = np.empty((rows.shape[0], self.n_fixed_ + self.conditions_on_decision_), order="F")
        givens[:, : self.n_fixed_] = rows[:, : self.n_fixed_]
        if self.conditions_on_decision_:
            givens[:, -1] = decision
        return givens

    @one_native_thread()
    def sample(
        self,
        n: int = 1,
        *,
        given: pd.DataFrame | None = None,
        decision: bool | None = None,
        random_state: int | None = None,
    ) -> pd.DataFrame:
        """Draw rows.

        Parameters
        ----------
        n : int
            Number of rows: for each row of `given`, or in total without.
        given : DataFrame or None
            Fixed features to condition on. None takes those of training rows at random.
        decision : bool or None
            For a generator fitted with a decision, the decision to condition on. None is True with `given`, and the
            decision of the training row without.
        random_state : int or None
            Seed of these draws; None uses `seed_`.

        Returns
        -------
        DataFrame with the training columns and dtypes, indexed by (id, draw), where id is the index of `given`, or by
        0, 1, ... without `given`.
        """
        self.check_fitted()
        n = check_count(n, "n", most=MOST_ROWS)
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        if decision is not None and not self.conditions_on_decision_:
            raise InputError("this generator was fitted without a decision; leave decision out.")
        if decision is not None and not isinstance(decision, (bool, np.bool_)):
            raise InputError(f"decision is {spell(decision)}; it must be True, False or None.")
        if given is None:
            request = DrawRequest(
                self._bootstrap(n, decision, seed), np.zeros(n, np.uint64), np.arange(n, dtype=np.uint64), seed
            )
            index: pd.Index[Any] = pd.RangeIndex(n)
        else:
            fixed, ids = self._encode_given(given)
            givens = self.givens_of(fixed, True if decision is None else decision)
            keys = hash_rows(givens)
            earlier = pd.Series(keys).groupby(keys, sort=False).cumcount().to_numpy(np.uint64)  # equal rows differ
            draws = (earlier[:, None] * np.uint64(n) + np.arange(n, dtype=np.uint64)).ravel()
            request = DrawRequest(np.repeat(givens, n, axis=0), np.repeat(keys, n), draws, seed)
            repeated: Any = [np.repeat(ids, n), np.tile(np.arange(n), len(ids))]
            index = pd.MultiIndex.from_arrays(repeated, names=["id", "draw"])
        drawn = self.draw(request)
        kept = ~drawn.rejected
        if not kept.all():
            warn(f"{int((~kept).sum())} of {kept.size} rows could not be drawn, and are left out.")
        return self.schema_.decode(drawn.rows[kept], index[kept])

    def _bootstrap(self, n: int, decision: bool | None, seed: int) -> Floats:
        """Return what is given in n training rows drawn at random; `decision` takes those that have it."""
        donors = np.arange(len(self.training_)) if self.copies_ is None else self.copies_
        decisions = self.training_decision_
        if decision is not None and decisions is not None:
            donors = donors[decisions[donors] == decision]
            if not donors.size:
                raise InputError(f"no training row has the decision {decision}; there is nothing to draw.")
        streams = RowStreams(derive_key(seed, "bootstrap"), np.zeros(n, np.uint64), np.arange(n, dtype=np.uint64))
        drawn = donors[streams.integer(donors.size)]
        return self.givens_of(self.training_[drawn], True if decisions is None else decisions[drawn])

    def _encode_given(self, given: Any) -> tuple[Floats, pd.Index[Any]]:
        """Encode the fixed features that a user gives; return them with the index of the rows."""
        frame = as_frame(given, "given")
        extra = [name for name in frame.columns if name not in self.fixed_]
        if extra:
            raise InputError(f"given has the column(s) {listing(extra)}, which are not fixed; leave them out.")
        if isinstance(frame.index, pd.MultiIndex):
            raise InputError(
                "the index of given has several levels; it names the rows. Use given.reset_index(drop=True)."
            )
        if not self.fixed_:
            return np.empty((len(frame), 0)), frame.index
        return self.schema_.subset(self.fixed_).encode(frame, "given").matrix, frame.index

    @one_native_thread()
    def log_density(self, X: Data, decision: bool | npt.ArrayLike = True) -> pd.DataFrame:
        """Return the log density of each mutable feature, given the columns before it.

        The sum of a row is log p(x^m | x^f, y'). Densities are probabilities for levels and numbers with point mass,
        and with respect to the Lebesgue measure for other numbers.

        Parameters
        ----------
        X : DataFrame or array
            Rows with the training columns.
        decision : bool or bool array
            For a generator fitted with a decision, the decision to condition on.
        """
        self.check_fitted()
        table = self.schema_.encode(X)
        decisions = None
        if self.conditions_on_decision_:
            if np.asarray(decision).dtype != bool or np.shape(decision) not in ((), (table.n_rows,)):
                raise InputError("decision must be True or False, for all rows or for each row.")
            decisions = np.broadcast_to(np.asarray(decision), table.n_rows)
        mutable = pd.Index(self.schema_.names[self.n_fixed_ :], tupleize_cols=False)
        return pd.DataFrame(self._log_density(table, decisions), index=as_frame(X).index, columns=mutable)

    def breaks(self, request: DrawRequest, rows: Floats) -> Bools:
        """Return which drawn rows break a restriction or a rule of a request."""
        broken = np.zeros(len(request), dtype=bool)
        for j, within in request.within.items():
            broken |= ~within.allows(rows[:, j])
        for rule in request.rules:
            broken |= ~np.asarray(rule.holds(rows, request.factuals), dtype=bool)
        return broken


# ---------------------------------------------------------------- settings and weights


def check_decision(decision: Any, n_rows: int) -> Bools | None:
    """Return the decisions of the training rows; raise unless there is one boolean for each."""
    if decision is None:
        return None
    decisions = np.asarray(decision)
    if decisions.shape != (n_rows,) or decisions.dtype != bool:
        raise InputError(
            f"decision has shape {decisions.shape} and dtype {decisions.dtype} for {n_rows} rows of X; give one "
            "boolean for each row."
        )
    return decisions


def rows_of(X: Data, rows: Ints) -> Data:
    """Return some rows of a table, as a table of the same kind."""
    if isinstance(X, (pd.DataFrame, np.ndarray)):
        return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
    import narwhals as nw

    return nw.from_native(X, eager_only=True)[rows].to_native()


def read_weights(sample_weight: Any, n_rows: int) -> Floats:
    """Return the weights of rows as floats; raise unless each is a number of at least 0, and one is above 0."""
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight is not an array of numbers ({error}); give one weight for each row.") from None
    if weights.shape != (n_rows,):
        raise InputError(f"sample_weight has shape {weights.shape}, and X has {n_rows} rows; give one weight for each.")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise InputError(
            f"sample_weight holds {weights[wrong[0]]} in row {wrong[0]} (counted from 0); weights are finite "
            "numbers of at least 0, and 0 leaves a row out."
        )
    if not weights.any():
        raise InputError(f"sample_weight is zero for all {n_rows} rows, which leaves no rows; leave it out.")
    return weights


def copies_by_weight(weights: Floats, seed: int) -> Ints | None:
    """Return the rows that represent weighted rows, each as often as its weight says; None if each is there once.

    Examples
    --------
    >>> copies_by_weight(np.array([2.0, 1.0]), seed=1).tolist()
    [0, 0, 1]
    """
    n, total = weights.size, float(weights.sum())
    if (weights == 1.0).all():
        return None
    if (weights == np.floor(weights)).all() and total <= max(10 * n, MOST_COPIES):
        return np.repeat(np.arange(n), weights.astype(np.int64))
    uniform = float(RowStreams.from_seed(derive_key(seed, "weights"), 1).uniform()[0])
    cumulative = np.cumsum(weights)
    marks = (np.arange(n) + uniform) * (cumulative[-1] / n)
    return np.minimum(np.searchsorted(cumulative, marks, side="right"), n - 1)
