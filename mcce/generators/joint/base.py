"""Joint generators: models of whole rows, drawn given the fixed features and the decision; their base class.

1. The table is encoded, and its columns ordered: the fixed features, the decision if there is one, then the mutable
   features, each part in data order (`mcce.generators.layout`). A subclass learns from this table (`_fit`).
2. To draw, a subclass gets the givens of some rows and their random streams (`_draw`). All randomness comes from these,
   so that a row is a function of seed, stream key and draw index, in any block, order, thread or process.
3. Draws are checked and rounded to the column's grid. Restrictions and rules are applied by rejection, or by a subclass
   that draws inside restrictions (`mcce.generators.joint.drawing`).
4. A subclass with a density returns the log density of each mutable feature given those before it (`_log_densities`).
   They sum to log p(mutable | fixed, decision).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats
from mcce.base.threads import count_jobs, one_native_thread
from mcce.exceptions import SamplerError
from mcce.generators.base import Generator
from mcce.generators.drawing import draw_in_blocks
from mcce.generators.joint.drawing import UNREACHED, JointBlock, Withins
from mcce.generators.requests import RULE_ATTEMPTS, Drawn, DrawRequest
from mcce.rng import RowStreams
from mcce.samplers import RestrictedDraw, Within
from mcce.table import Data, Kind, Schema, Table
from mcce.table.checks import warn_of_columns

Self = TypeVar("Self", bound="JointGenerator")

BLOCK_ROWS = 8192


class SequentialStep(Protocol):
    """The distributions of the next column in some rows."""

    def draw_within(self, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed value for each row, or a missing value where allowed."""

    def log_density(self, values: Floats) -> Floats:
        """Return the log density or log probability of each value."""


class JointGenerator(Generator):
    """A joint model of the mutable features given the fixed ones and the decision, for ``MCCE(model, generator=...)``.

    To write one, subclass this and implement two methods:

    ``_fit(table, n_given)``
        Fit to the training rows, a `mcce.table.Table`: the first `n_given` columns are given (the fixed features, then
        the decision), the others are drawn. Numbers are as in the data, levels are codes, NaN is missing. Fitted
        attributes have a trailing underscore; the model to be stored is ``model_`` (`mcce.generators.base`). With
        ``takes_weights = True``, `table.weights` are None or the positive weights of the rows (`mcce.table.weights`).
    ``_draw(givens, streams)``
        Return the mutable features of one row for each row of `givens`, as (rows, features). All randomness comes from
        `streams` (`mcce.rng.RowStreams`).

    Constructors take at least `fixed`, `kinds`, `random_state` and `n_jobs`.

    Optional methods:

    ``_log_densities(table)``
        Log densities of the mutable features of each row, (rows, features), each given those before it.
    ``draw_within(givens, streams, within, weighted=...)``
        Draw inside restrictions by mutable feature (0, 1, ...), and return which rows cannot be drawn; requires
        ``restricts = True``. Otherwise rows are redrawn until they are inside, `attempts` times at most.

    Attributes
    ----------
    restricts : whether `draw_within` is implemented.
    thread_safe : whether blocks of rows may be drawn in several threads.
    draws_observed : whether all numbers that are drawn are training values, which are on the column's grid.
    attempts : largest number of draws of a row until it satisfies restrictions and rules. A generator that draws inside
        restrictions is redrawn for rules only, so the number of a chain suffices (`RULE_ATTEMPTS`).
    takes_weights : whether `_fit` uses the weights of training rows; otherwise weights are an error.
    schema_, seed_, fixed_, ... : see `mcce.generators.Generator`.

    Examples
    --------
    A generator that draws whole training rows with the same decision, and ignores the fixed features:

    >>> import mcce
    >>> import numpy as np
    >>> class WholeRows(mcce.generators.JointGenerator):
    ...     def _fit(self, table, n_given):
    ...         self.rows_, self.decision_ = table.matrix[:, n_given:], table.matrix[:, n_given - 1]
    ...     def _draw(self, givens, streams):
    ...         drawn, uniform = np.empty((len(givens), self.rows_.shape[1])), streams.uniform()
    ...         for decision in np.unique(givens[:, -1]):
    ...             mine, donors = givens[:, -1] == decision, np.flatnonzero(self.decision_ == decision)
    ...             drawn[mine] = self.rows_[donors[(uniform[mine] * donors.size).astype(int)]]
    ...         return drawn
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> explainer = mcce.MCCE(
    ...     lambda rows: rows["salary"] / 120_000, fixed=["age"], generator=WholeRows(fixed=["age"], random_state=1)
    ... )
    >>> found = explainer.fit(X).explain(X.head(20), n_samples=100)
    >>> bool((found.frame["salary"] >= 60_000).all())
    True
    >>> generator = WholeRows(fixed=["age"], random_state=1).fit(X, X["salary"] > 60_000)
    >>> generator.sample(3, X[["age"]].head(2), within={"savings": (0, 20_000)}).shape
    (6, 3)
    >>> generator.log_density(X)
    Traceback (most recent call last):
    mcce.exceptions.SamplerError: WholeRows(fixed=['age'], random_state=1) has no density; use a generator that has ...
    """

    restricts: ClassVar[bool] = False
    thread_safe: ClassVar[bool] = True
    draws_observed: ClassVar[bool] = False
    conditions_by_rejection: ClassVar[bool] = False
    attempts: ClassVar[int] = 200

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
    def _fit(self, table: Table, n_given: int) -> None:
        """Fit to the training rows, whose first columns are given."""

    @abstractmethod
    def _draw(self, givens: Floats, streams: RowStreams) -> Floats:
        """Return the mutable features of one row for each row of `givens`."""

    def _log_densities(self, table: Table) -> Floats:
        """Return the log densities of the mutable features of each row, each given those before it."""
        raise NotImplementedError

    @classmethod
    def has_density(cls) -> bool:
        """Return whether the class implements `_log_densities`."""
        return cls._log_densities is not JointGenerator._log_densities

    @one_native_thread()
    def fit(
        self: Self,
        X: Data,
        decision: Bools | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        progress: bool | None = None,
        schema: Schema | None = None,
    ) -> Self:
        """Learn the joint distribution of the training rows.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows, features only.
        decision : bool array or None
            One more column to condition on: whether each row has the wanted decision.
        sample_weight : array or None
            A weight for each row, as in `mcce.ChainModel.fit`; an error if the generator does not take weights.
        progress : bool or None
            Whether to show a progress bar while drawing; None shows one in a terminal or notebook after a second.
        schema : Schema or None
            Columns of a larger table of which `X` is a part, and which may have more levels; None reads them from `X`.
        """
        arranged = self._arrange(X, decision, sample_weight=sample_weight, schema=schema, progress=progress)
        warn_of_columns(arranged.table, self.fixed_)
        self._fit(arranged.ordered, self._layout.n_given)
        self.training_givens_ = arranged.givens
        return self

    def draw(self, request: DrawRequest, *, progress: bool | None = None) -> Drawn:
        """Draw one row for each row of the request, block by block in any order (steps 2 and 3)."""
        self.check_fitted()
        size = BLOCK_ROWS if self.thread_safe else max(len(request), 1)
        threads = count_jobs(self.n_jobs) if self.thread_safe else 1
        constraints = (*request.constraints, *([UNREACHED] if self.conditions_by_rejection else []))

        def draw(part: DrawRequest) -> JointBlock:
            return JointBlock(self, self._layout, part).draw()

        return draw_in_blocks(draw, request, len(self.schema_), size, threads, progress, constraints)

    def draw_free(self, givens: Floats, streams: RowStreams) -> RestrictedDraw:
        """Draw whole rows without restrictions."""
        return RestrictedDraw(self._draw(givens, streams), np.zeros(givens.shape[0], dtype=bool))

    def draw_within(self, givens: Floats, streams: RowStreams, within: Withins, *, weighted: bool) -> RestrictedDraw:
        """Draw whole rows inside restrictions of mutable features; only for generators with `restricts`."""
        raise SamplerError(f"{self!r} does not draw inside restrictions; rows are redrawn until they are inside.")

    @one_native_thread()
    def feature_log_densities(
        self, matrix: Floats, decision: bool | Bools = True, *, training: bool = False
    ) -> Mapping[Any, Floats]:
        """Return the log densities of encoded rows by mutable feature, given fixed values and features before it."""
        self.check_fitted()
        if training:
            raise SamplerError(
                f"{self!r} cannot leave a training row out of its density; leave training=True out: each row then "
                "adds to its own density."
            )
        if not self.has_density():
            return super().feature_log_densities(matrix, decision)
        found = self._log_densities(self._layout.order(matrix, decision))
        features = self._layout.features[self._layout.n_given :]
        return {feature.name: np.ascontiguousarray(found[:, k]) for k, feature in enumerate(features)}


class SequentialGenerator(JointGenerator):
    """A joint model that draws one column after the other, each from its conditional given all before it.

    Restrictions truncate the conditionals; the mass of a row is the product of the masses that they leave.
    """

    restricts: ClassVar[bool] = True
    attempts: ClassVar[int] = RULE_ATTEMPTS
    takes_weights: ClassVar[bool] = True
    draws_observed: ClassVar[bool] = True

    @abstractmethod
    def _conditionals(self, rows: Floats, n_given: int) -> Iterator[SequentialStep]:
        """Yield the conditional of each mutable column given the columns before it, which are set when it is drawn."""

    def _draw(self, givens: Floats, streams: RowStreams) -> Floats:
        return self.draw_within(givens, streams, {}, weighted=False).values

    def draw_within(self, givens: Floats, streams: RowStreams, within: Withins, *, weighted: bool) -> RestrictedDraw:
        """Draw whole rows, each column inside its restriction, given all before it."""
        n, n_given = givens.shape
        rows = np.full((n, len(self._layout.features)), np.nan, order="F")
        rows[:, :n_given] = givens
        log_mass, anything = np.zeros(n), Within(missing=np.ones(n, dtype=bool))
        for j, conditional in enumerate(self._conditionals(rows, n_given), n_given):
            found = conditional.draw_within(streams.child("column", j), within.get(j - n_given, anything))
            rows[:, j] = found.values
            if j - n_given in within:
                assert found.log_mass is not None
                log_mass += found.log_mass
                if found.rejected.any():  # a rejected row continues with a value that is not allowed
                    free = conditional.draw_within(streams.child("free", j), anything).values
                    rows[found.rejected, j] = free[found.rejected]
        values, rejected = rows[:, n_given:], np.isneginf(log_mass)
        values[rejected] = np.nan
        return RestrictedDraw(values, rejected, log_mass)

    def _log_densities(self, table: Table) -> Floats:
        first = self._layout.n_given
        each = enumerate(self._conditionals(table.matrix, first), first)
        return np.column_stack([conditional.log_density(table.matrix[:, j]) for j, conditional in each])
