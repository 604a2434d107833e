"""Joint generators: models of whole rows, drawn given the fixed features and the decision; their base class.

1. The table is encoded, and its columns ordered: the fixed features, the decision if there is one, then the mutable
   features, each part in data order (`mcce.generators.layout`). A subclass learns from this table (`_fit`).
2. To draw, a subclass is handed the givens of some rows and their random streams (`_draw`); all randomness comes from
   these, so that a row is a function of seed, stream key and draw index, in any block, order, thread or process.
3. Draws are checked and put on the column's grid; restrictions and rules are obeyed by rejection, or by a subclass that
   draws inside them itself (`mcce.generators.joint.drawing`).
4. A subclass that has a density says that of each mutable feature given those before it (`_log_densities`). They sum
   to log p(mutable | fixed, decision).
5. A class can be stored if `stored_joint` or `mcce.register_generator` has registered it: what its `_fit` learns then
   stands in ``model_``, an object whose class says how it is written and checked (`mcce.storage.state.stateful`), with
   a method ``check_columns(features, n_given)``, unless the generator has a `check_model` of its own. Written are the
   settings, the columns, the seed, the model, and the fixed values (and decisions) of the training rows, which `sample`
   bootstraps; the layout follows from these. What is read is checked as a whole (`mcce.generators.storing`).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce import exceptions
from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.parameters import Learner
from mcce.base.threads import count_jobs, one_native_thread, run_in_threads
from mcce.exceptions import InputError, SamplerError
from mcce.generators.base import GENERATORS, Drawn, DrawRequest
from mcce.generators.givens import weighted_rows
from mcce.generators.joint.drawing import UNREACHED, JointBlock, JointDraw, Withins
from mcce.generators.layout import ChainLayout, arrange
from mcce.generators.sampling import Allowed, Rules, Weighted, sample_rows
from mcce.generators.storing import Donors, check_donors, check_training_rows, fitted_fields, read_fitted, unfitted
from mcce.rng import RowStreams, hash_rows, resolve_seed
from mcce.samplers.base import samplers_without_donors
from mcce.storage import load_fields, save_fields
from mcce.storage.fields import require
from mcce.storage.state import Fields, is_registered, register
from mcce.table import Data, Feature, Kind, Schema, Table, as_frame
from mcce.table.checks import check_fixed, warn_of_columns

Class = TypeVar("Class", bound=type[Any])
Self = TypeVar("Self", bound="JointGenerator")

BLOCK_ROWS = 8192
FITTED = ("seed_", "schema_", "conditions_on_decision_", "training_givens_", "model_")


def stored_joint(name: str) -> Callable[[Class], Class]:
    """Register a class of joint generators under the name that files have for it (step 5)."""

    def decorate(cls: Class) -> Class:
        cls.store_as(name)
        return cls

    return decorate


class JointGenerator(Learner, ABC):
    """A joint model of the mutable features given the fixed ones and the decision, for ``MCCE(model, generator=...)``.

    To write one, subclass this and implement two methods:

    ``_fit(table, n_given)``
        Learn from the training rows, a `mcce.table.Table`: the first `n_given` columns are given (the fixed features,
        then the decision), the others are to be drawn. Numbers stand for themselves, levels are codes, NaN is missing.
        What is learned goes into attributes with a trailing underscore; to be stored, into ``model_``
        (`mcce.generators.joint.base`). With ``takes_weights = True``, `table.weights` are None or the positive
        weights of the rows (`mcce.table.weights`).
    ``_draw(givens, streams)``
        Return the mutable features of one row for each row of `givens`, as (rows, features). All randomness comes from
        `streams` (`mcce.rng.RowStreams`).

    Constructors take at least `fixed`, `kinds`, `random_state` and `n_jobs`.

    What may be overridden:

    ``_log_densities(table)``
        Log densities of the mutable features of each row, (rows, features), each given those before it.
    ``draw_within(givens, streams, within, weighted=...)``
        Draw inside restrictions, by mutable feature (0, 1, ...), and say which rows nothing can be drawn for; with
        ``restricts = True``. Otherwise rows are drawn again until they are inside, `attempts` times at most.

    Attributes
    ----------
    restricts : whether it draws inside restrictions itself.
    thread_safe : whether blocks of rows may be drawn in several threads.
    draws_observed : whether all numbers that are drawn are training values, which are on the column's grid.
    attempts : how often a row is drawn, at most, until it obeys restrictions and rules; where the generator draws
        inside restrictions only rules are left, and a chain's number is enough (`RULE_ATTEMPTS`).
    takes_weights : whether `_fit` heeds the weights of training rows; else `fit` refuses them.
    schema_, seed_, fixed_, conditions_on_decision_, training_givens_ : see `mcce.generators.base.Generator`.
    training_weights_, training_hashes_ : see `mcce.ChainModel`.
    model_ : what was learned, of a class that can be stored.

    Examples
    --------
    Whole training rows with the same decision, whatever is fixed:

    >>> import mcce
    >>> import numpy as np
    >>> class WholeRows(mcce.generators.JointGenerator):
    ...     def __init__(self, *, fixed=(), kinds=None, random_state=None, n_jobs=None):
    ...         self.fixed, self.kinds, self.random_state, self.n_jobs = fixed, kinds, random_state, n_jobs
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
    takes_weights: ClassVar[bool] = False

    fixed: Sequence[Hashable]
    kinds: Mapping[Any, Kind] | None
    random_state: int | None
    n_jobs: int | None
    schema_: Schema
    seed_: int
    conditions_on_decision_: bool
    training_givens_: Floats
    training_weights_: Floats | None
    training_hashes_: npt.NDArray[np.uint64] | None
    model_: Any
    _layout: ChainLayout

    @abstractmethod
    def _fit(self, table: Table, n_given: int) -> None:
        """Learn from the training rows, of which the first columns are given."""

    @abstractmethod
    def _draw(self, givens: Floats, streams: RowStreams) -> Floats:
        """Return the mutable features of one row for each row of `givens`."""

    def _log_densities(self, table: Table) -> Floats:
        """Return the log densities of the mutable features of each row, each given those before it."""
        raise SamplerError(
            f"{self!r} has no density; use a generator that has ({_joint(_has_density)}), or a chain. "
            "Counterfactuals need none: their log_density is then missing."
        )

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
            A weight for each row, as in `mcce.ChainModel.fit`; a generator that does not take any refuses them.
        progress : bool or None
            Whether to show a progress bar while drawing; None shows one in a terminal or notebook after a second.
        schema : Schema or None
            What the columns are, if `X` is a part of a larger table that may hold more levels; None reads it from `X`.
        """
        vars(self).pop("training_givens_", None)  # a fit that fails leaves no half-fitted generator
        self.seed_ = resolve_seed(self.random_state)
        if sample_weight is not None:
            self.check_weights()
        X, decision, weights = weighted_rows(X, decision, sample_weight)
        arranged = arrange(
            X,
            decision,
            fixed=self.fixed,
            visit_sequence="data",
            predictors=None,
            kinds=self.kinds,
            schema=schema,
            weights=weights,
            progress=progress,
        )
        self.schema_, self._layout = arranged.schema, arranged.layout
        self.conditions_on_decision_ = decision is not None
        warn_of_columns(arranged.table, self.fixed_)
        self.training_hashes_ = hash_rows(arranged.table.matrix)
        self._fit(arranged.ordered, self._layout.n_given)
        self.training_givens_ = np.asfortranarray(arranged.ordered.matrix[:, : self._layout.n_given])
        self.training_weights_ = weights
        return self

    def check_weights(self) -> None:
        """Refuse weights of training rows, unless the class declares to heed them."""
        if not self.takes_weights:
            raise SamplerError(
                f"{self!r} does not take sample_weight, and would learn from all rows alike; use a generator that does "
                f"({joint_generators_of_weights()}), a chain, or leave sample_weight out."
            )

    @one_native_thread()
    def sample(
        self,
        n: int = 1,
        given: Data | None = None,
        *,
        decision: bool | None = None,
        random_state: int | None = None,
        progress: bool | None = None,
        within: Mapping[Any, Allowed] | None = None,
        rules: Rules = (),
        importance: bool = False,
        resample: bool = False,
    ) -> pd.DataFrame | Weighted:
        """Draw rows, inside what is allowed: the parameters and the result are those of `mcce.ChainModel.sample`.

        Rows drawn by rejection follow the joint distribution conditioned on what is allowed; so do those of an
        `AdversarialForest`, which draws inside. The importance of rows is then all of one mean.
        """
        self.check_fitted()
        return sample_rows(
            self,
            self._layout,
            (),
            n,
            given,
            decision=decision,
            random_state=random_state,
            within=within,
            rules=rules,
            importance=importance,
            resample=resample,
            progress=progress,
        )

    def draw(self, request: DrawRequest, *, progress: bool | None = None, n_jobs: int | None = None) -> Drawn:
        """Draw one row for each row of the request, block by block in any order (steps 2 and 3)."""
        self.check_fitted()
        n = len(request)
        rows = np.empty((n, len(self.schema_)), order="F")
        rejected_by, log_weight = np.empty(n, dtype=np.int64), np.empty(n)
        tried = np.zeros(len(request.constraints) + 1, dtype=np.int64)
        size = BLOCK_ROWS if self.thread_safe else max(n, 1)

        def draw_block(begin: int) -> Ints:
            part = slice(begin, min(begin + size, n))
            block = JointBlock(self, self._layout, request.take(part)).draw()
            rows[part] = self._layout.in_data_order(request.givens[part], block.values)
            rejected_by[part], log_weight[part] = block.rejected_by, block.log_weight
            return block.tried()

        threads = count_jobs(self.n_jobs if n_jobs is None else n_jobs) if self.thread_safe else 1
        for tried_in_block in run_in_threads(draw_block, list(range(0, n, size)), threads, "drawing", progress):
            tried += tried_in_block
        told = len(request.constraints) + self.conditions_by_rejection
        return Drawn(
            rows,
            rejected_by >= 0,
            log_weight if request.weighted else None,
            rejected_by,
            (*request.constraints, UNREACHED)[:told],
            tuple(tried[:told].tolist()),
        )

    def draw_free(self, givens: Floats, streams: RowStreams) -> JointDraw:
        """Draw whole rows without restrictions."""
        return JointDraw(self._draw(givens, streams), np.zeros(givens.shape[0], dtype=bool))

    def draw_within(self, givens: Floats, streams: RowStreams, within: Withins, *, weighted: bool) -> JointDraw:
        """Draw whole rows inside restrictions of mutable features; only generators that `restricts` can."""
        raise SamplerError(f"{self!r} does not draw inside restrictions; rows are drawn again until they are inside.")

    def log_density(
        self, X: Data, *, decision: bool | Bools = True, training: bool = False, per_feature: bool = False
    ) -> pd.Series[float] | pd.DataFrame:
        """Return the log density of the mutable features of each row, given its fixed ones: log p(x^m | x^f, y').

        The parameters and the measures that it is a density of are those of `mcce.ChainModel.log_density`; a row
        cannot be left out of its own density (`training`).
        """
        self.check_fitted()
        frame, _ = as_frame(X)
        table = self.schema_.encode(X)
        if self.conditions_on_decision_:
            self._layout.check_decision(decision, table.n_rows)
        columns = self.feature_log_densities(table.matrix, decision, training=training)
        each = pd.DataFrame(columns, index=frame.index)
        return each if per_feature else each.sum(axis=1).rename("log_density")

    @one_native_thread()
    def feature_log_densities(
        self, matrix: Floats, decision: bool | Bools = True, *, training: bool = False
    ) -> dict[Any, Floats]:
        """Return, by mutable feature, the log densities of encoded rows given their fixed values and those before."""
        self.check_fitted()
        if training:
            raise SamplerError(
                f"{self!r} cannot leave a training row out of its density; leave training=True out: each row then "
                "vouches for itself."
            )
        found = self._log_densities(self._layout.order(matrix, decision))
        features = self._layout.features[self._layout.n_given :]
        return {feature.name: np.ascontiguousarray(found[:, k]) for k, feature in enumerate(features)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted generator to one file, without pickle; what is there is replaced.

        **The file holds training values**: those that the model is made of, and the fixed values of every training row.
        Generators that wrap another package's model cannot be saved so; pickle them.
        """
        fields = {"generator": self.stored("all")}
        save_fields(path, "JointGenerator", fields, {"donors": "all"}, itemgetter("generator"))

    @classmethod
    def store_as(cls, name: str) -> None:
        """Let objects of this class be stored under a name, unless they have one (step 5)."""
        if not is_registered(cls):
            register(name, cls, cls._write, cls._read)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Return the generator in a file that `save` wrote; nothing in a file is run.

        Parameters
        ----------
        path : str or path
        n_jobs : int or None
            Threads, as in the constructor.
        """
        generator = load_fields(path, "JointGenerator", itemgetter("generator"))
        if not isinstance(generator, cls):
            raise InputError(f"{os.fspath(path)!r} holds a {type(generator).__name__}; use its own load.")
        generator.n_jobs = n_jobs
        return generator

    def check_model(self, features: Sequence[Feature], n_given: int) -> None:
        """Refuse a model that was read and is not of these columns, of which the first are given."""
        model = self.model_
        require(hasattr(model, "check_columns"), f"model_ is a {type(model).__name__}, which is no model")
        model.check_columns(features, n_given)

    def stored(self: Self, donors: Donors) -> Self:
        """Return the generator as it is to be stored; it has none without training values."""
        if not hasattr(self, "training_givens_"):
            raise exceptions.NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) before saving it.")
        if not is_registered(type(self)) or not hasattr(self, "model_"):
            raise SamplerError(
                f"{self!r} cannot be saved: what it has learned could not be checked when it is read. Pickle it, or "
                f"use a generator made of arrays ({_joint(is_registered)}), or a chain."
            )
        check_donors(donors)
        if donors == "none":
            raise SamplerError(
                f"donors='none' cannot be done for {self!r}: it is made of training values. Save with donors='all', or "
                f"use a chain of coefficients ({samplers_without_donors()})."
            )
        return self

    def _write(self) -> Fields:
        """Return what is stored of the generator (step 5)."""
        if not hasattr(self, "training_givens_"):
            raise InputError("which is not fitted; call fit(X).")
        settings = {name: unfitted(value) for name, value in self.get_params(deep=False).items() if name != "n_jobs"}
        return {"settings": settings, **fitted_fields(self, FITTED)}

    @classmethod
    def _read(cls: type[Self], fields: Fields) -> Self:
        """Return the generator of these fields, checked as a whole."""
        generator: Self = read_fitted(cls, fields, cls._parameter_names(), FITTED)
        generator.training_hashes_ = None
        names = generator.schema_.names
        fixed = check_fixed(generator.fixed, names)
        mutable = [name for name in names if name not in fixed]
        require(len(mutable) > 0, "all columns are fixed")
        layout = ChainLayout.arrange(generator.schema_, fixed, mutable, generator.conditions_on_decision_)
        generator._layout = layout
        check_training_rows(generator.training_givens_, generator.training_weights_, layout)
        generator.check_model(layout.features, layout.n_given)
        return generator

    @property
    def fixed_(self) -> list[Any]:
        """The fixed features, in data order."""
        return [self.schema_.names[j] for j in self._layout.fixed_positions]

    def givens_of(self, matrix: Floats, decision: bool | Bools = True) -> Floats:
        """Return the givens of encoded rows (columns in data order): their fixed values, then the decision."""
        return self._layout.givens_of(matrix, decision)

    def check_fitted(self) -> None:
        """Refuse a call that needs `fit` first."""
        if not hasattr(self, "training_givens_"):
            raise exceptions.NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) first.")

    def _known_schema(self) -> Schema | None:
        return self.schema_ if hasattr(self, "training_givens_") else None


def _joint(declares: Callable[[type[JointGenerator]], object]) -> str:
    """Return the names of the joint generators that declare something, for a message."""
    return GENERATORS.names_that(lambda cls: issubclass(cls, JointGenerator) and declares(cls))


def _has_density(cls: type[JointGenerator]) -> bool:
    return cls._log_densities is not JointGenerator._log_densities


def joint_generators_of_weights() -> str:
    """Return the names of the joint generators that take weights, for a message."""
    return _joint(lambda cls: cls.takes_weights)
