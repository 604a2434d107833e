"""The base class of generators: models of the mutable features given the fixed ones and the decision.

A subclass implements two methods, `fit` and `draw`, and `fit` sets five attributes (see `Generator`). `ChainModel`, the
model of the paper, is a subclass; `mcce.generators.JointGenerator` is the base of models of whole rows, and easier to
subclass. This module has the parts that all generators share:

1. `sample` turns the user's bounds and rules into a `DrawRequest`, draws, and returns a frame
   (`mcce.generators.sampling`).
2. `log_density` sums the densities of the features (`feature_log_densities`).
3. `save` writes the settings, the columns, the seed, the fitted parts that the class names (`fitted`), and the fixed
   values (and decisions) of the training rows, which `sample` bootstraps. `load` checks the whole file before anything
   is drawn. Generators of a registered class can be saved (`store_as`, `mcce.register_generator`). The fitted model is
   then in ``model_``, an object whose class defines how it is written and checked
   (`mcce.storage.state.stateful`), with a method ``check_columns(features, n_given)`` unless the generator overrides
   `check_model`.
"""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, overload

import numpy as np
import pandas as pd

from mcce import exceptions
from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.checks import check_count
from mcce.base.parameters import Learner
from mcce.base.registry import Registry
from mcce.base.threads import one_native_thread
from mcce.exceptions import InputError, SamplerError, did_you_mean, listing, spell
from mcce.generators.graph import Graph
from mcce.generators.layout import Arranged, ChainLayout, arrange
from mcce.generators.requests import Drawn, DrawRequest
from mcce.generators.sampling import (
    MOST_ROWS,
    Allowed,
    Rules,
    SampleOptions,
    Weighted,
    bootstrap_givens,
    choose_rows,
    draw_index,
    encode_given,
    occurrences,
    read_restrictions,
    read_rules,
    weighted_rows,
)
from mcce.privacy.account import PrivacyAccount
from mcce.privacy.settings import Privacy
from mcce.rng import hash_rows, resolve_seed
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import samplers_without_donors
from mcce.samplers.registry import Recipe
from mcce.storage import load_fields, save_fields
from mcce.storage.fields import FLOAT, check_array, check_codes, check_flag, check_type, check_weights, require
from mcce.storage.state import Fields, is_registered, register
from mcce.table import Data, Feature, Kind, Schema, as_frame
from mcce.table.checks import check_fixed
from mcce.table.frames import like_input

if TYPE_CHECKING:
    from typing_extensions import Unpack

Donors = Literal["all", "none"]
Self = TypeVar("Self", bound="Generator")
Class = TypeVar("Class", bound="type[Generator]")


class Generator(Learner, ABC):
    """A model of the mutable features given the fixed ones and the decision, for ``MCCE(model, generator=...)``.

    To write one, subclass this and implement two methods:

    ``fit(X, decision=None, *, progress=None)``
        Fit to the training rows, and set the first five attributes below. ``self._arrange(X, decision)`` reads the
        table and sets four of them from the parameters `fixed`, `kinds` and `random_state`; its result has the givens.
        With ``takes_weights = True``, `fit` also takes `sample_weight`.
    ``draw(request, *, progress=None)``
        Draw one row for each row of a `mcce.generators.requests.DrawRequest`, and return them as
        `mcce.generators.requests.Drawn`. All randomness comes from the request's seed, stream keys and draw indices.

    `mcce.generators.JointGenerator` implements both, for a model that draws whole rows given the fixed values.
    `mcce.testing.check_generator` checks a generator.

    Optional methods:

    ``feature_log_densities(matrix, decision=True, *, training=False)``
        Log densities of encoded rows, by mutable feature; their sum is the log density of the row.
    ``check_model(features, n_given)``
        Raise if `model_`, read from a file, does not belong to these columns.

    Attributes
    ----------
    schema_ : the columns of the training table.
    seed_ : seed of the draws.
    fixed_ : the features that are given, in data order.
    conditions_on_decision_ : whether the decision is given too.
    training_givens_ : the givens of the training rows, see `givens_of`. Set last: they mark a generator as fitted.
    training_weights_ : weights of the training rows; None if there are none.
    training_hashes_ : hashes of the training rows; None if unknown, as in a generator read from a file.
    model_ : the fitted model, of a class that can be stored.
    visit_sequence_, samplers_ : visiting order and samplers of a chain; None and empty otherwise.
    graph_ : causal graph of a chain; None otherwise.
    privacy, account_ : the `mcce.Privacy` of the fit, and the budget spent; None without differential privacy.
    takes_weights : whether `fit` takes `sample_weight`.

    Examples
    --------
    A generator that draws whole training rows with the same decision, and ignores the fixed features:

    >>> import mcce
    >>> import numpy as np
    >>> from mcce.generators.requests import Drawn
    >>> from mcce.rng import RowStreams
    >>> class WholeRows(mcce.generators.Generator):
    ...     def __init__(self, fixed=(), kinds=None, random_state=None):
    ...         self.fixed, self.kinds, self.random_state = fixed, kinds, random_state
    ...     def fit(self, X, decision=None, *, progress=None):
    ...         read = self._arrange(X, decision)
    ...         self.rows_, self.training_givens_ = read.table.matrix, read.givens
    ...         return self
    ...     def draw(self, request, *, progress=None):
    ...         self.check_fitted()
    ...         uniform = RowStreams(request.seed, request.stream_keys, request.draw_indices).uniform()
    ...         rows, own = np.empty((len(request), len(self.schema_))), self.training_givens_[:, -1]
    ...         for decision in np.unique(request.givens[:, -1]):
    ...             mine, donors = request.givens[:, -1] == decision, np.flatnonzero(own == decision)
    ...             rows[mine] = self.rows_[donors[(uniform[mine] * donors.size).astype(int)]]
    ...         for k, name in enumerate(self.fixed_):
    ...             rows[:, self.schema_.position(name)] = request.givens[:, k]
    ...         rejected = np.zeros(len(request), dtype=bool)
    ...         for name, within in request.restrictions.items():
    ...             rejected |= ~within.allows(rows[:, self.schema_.position(name)])
    ...         for rule in request.rules:
    ...             rejected |= ~rule.holds(rows, request.factuals)
    ...         return Drawn(rows, rejected)
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> generator = WholeRows(fixed=["age"], random_state=1)
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 120_000, fixed=["age"], generator=generator).fit(X)
    >>> bool((explainer.explain(X.head(20), n_samples=100).frame["salary"] >= 60_000).all())
    True
    >>> generator = generator.fit(X, X["salary"] > 60_000)
    >>> generator.fixed_, generator.sample(3, X[["age"]].head(2)).shape
    (['age'], (6, 3))
    >>> generator.givens_of(generator.schema_.encode(X.head(1)).matrix, True).tolist()
    [[36.0, 1.0]]
    >>> generator.log_density(X)
    Traceback (most recent call last):
    mcce.exceptions.SamplerError: WholeRows(fixed=['age'], random_state=1) has no density; use a generator that has ...
    """

    takes_weights: ClassVar[bool] = False
    fitted: ClassVar[tuple[str, ...]] = ("seed_", "schema_", "conditions_on_decision_", "training_givens_", "model_")

    fixed: Sequence[Hashable]
    kinds: Mapping[Any, Kind] | None = None
    random_state: int | None = None
    n_jobs: int | None = None
    schema_: Schema
    seed_: int
    fixed_: list[Any]
    conditions_on_decision_: bool
    training_givens_: Floats
    training_weights_: Floats | None = None
    training_hashes_: UInts | None = None
    model_: Any
    visit_sequence_: list[Any] | None = None
    samplers_: Mapping[Any, ConditionalSampler] = MappingProxyType({})
    graph_: Graph | None = None
    account_: PrivacyAccount | None = None
    _layout: ChainLayout

    @abstractmethod
    def fit(self: Self, X: Data, decision: Bools | None = None, *, progress: bool | None = None) -> Self:
        """Learn the distribution of the training rows."""

    @abstractmethod
    def draw(self, request: DrawRequest, *, progress: bool | None = None) -> Drawn:
        """Draw one row for each row of the request."""

    def feature_log_densities(
        self, matrix: Floats, decision: bool | Bools = True, *, training: bool = False
    ) -> Mapping[Any, Floats]:
        """Return the log densities of encoded rows by mutable feature; their sum is the log density of the row."""
        raise SamplerError(
            f"{self!r} has no density; use a generator that has ({GENERATORS.names_that(lambda c: c.has_density())}). "
            "Counterfactuals do not need it: their log_density is then missing."
        )

    @classmethod
    def has_density(cls) -> bool:
        """Return whether the class implements densities."""
        return cls.feature_log_densities is not Generator.feature_log_densities

    def _arrange(
        self,
        X: Data,
        decision: Bools | None,
        *,
        sample_weight: Any = None,
        **named: Any,
    ) -> Arranged:
        """Read the training table, and set the attributes that `fit` must set, except `training_givens_`.

        `named` are further parameters of `mcce.generators.layout.arrange`.
        """
        vars(self).pop("training_givens_", None)  # a fit that fails leaves no half-fitted generator
        self.seed_ = resolve_seed(self.random_state)
        if sample_weight is not None:
            self.check_weights()
        X, decision, weights = weighted_rows(X, decision, sample_weight)
        arranged = arrange(X, decision, fixed=self.fixed, kinds=self.kinds, weights=weights, **named)
        self.schema_, self._layout = arranged.schema, arranged.layout
        self.fixed_ = [arranged.schema.names[j] for j in arranged.layout.fixed_positions]
        self.conditions_on_decision_ = decision is not None
        self.training_hashes_ = hash_rows(arranged.table.matrix)
        self.training_weights_ = weights
        return arranged

    def check_weights(self) -> None:
        """Raise unless the class takes weights of training rows."""
        if not self.takes_weights:
            raise SamplerError(
                f"{self!r} does not take sample_weight; use a generator that does ({generators_of_weights()}), or "
                "leave sample_weight out."
            )

    @property
    def privacy(self) -> Privacy | None:
        """The `mcce.Privacy` of the fit; None without differential privacy."""
        return None

    def require_training_rows(self, needed_by: str, remedy: str) -> None:
        """Raise if the fit is private: `needed_by` must not read the training rows."""
        if self.privacy is not None:
            raise InputError(f"{needed_by} needs the training rows, which are not kept with mcce.Privacy; {remedy}")

    def rows_in_place_of_training(self) -> Data | None:
        """Return the rows that replace the training rows after a private fit, as the model reads them; else None."""
        return None

    def describe(self) -> dict[str, object]:
        """Return the settings that results report."""
        return {"random_state": self.seed_, "sampler": type(self).__name__}

    def conditional(self, feature: Any) -> ConditionalSampler:
        """Return the fitted sampler of a feature; see its `summary()`."""
        self.check_fitted()
        if feature in self.samplers_:
            return self.samplers_[feature]
        if not self.samplers_:
            raise InputError(f"a {type(self).__name__} has no conditionals; use a chain.")
        raise InputError(f"{feature!r} has no conditional; {did_you_mean(feature, self.samplers_)}")

    def criticise(self, *args: Any, **options: Any) -> Any:
        """Test each conditional on new rows; only a chain has conditionals."""
        raise InputError(
            f"criticise() tests the conditionals of a chain; a {type(self).__name__} has no conditionals. Use a chain."
        )

    def check_graph(self, *args: Any, **options: Any) -> Any:
        """Test the independences that a causal graph implies; only a chain has a graph."""
        raise InputError(f"check_graph() needs the graph of a chain; a {type(self).__name__} has none. Use a chain.")

    def intervene(self, *args: Any, **options: Any) -> Any:
        """Return rows after an intervention; only a chain has parents and descendants."""
        raise InputError(
            f"intervene() follows the visit sequence and the predictors of a chain; a {type(self).__name__} models "
            "all features jointly, without causes and effects. Use mcce.ChainModel."
        )

    def conditionals_around(self, *args: Any, **options: Any) -> Any:
        """Return the distribution of any features of a row given its others; only a chain has conditionals."""
        raise InputError(
            f"features of a row given all others are drawn by the conditionals of a chain; a {type(self).__name__} has "
            "no conditionals. Use a chain."
        )

    def givens_of(self, matrix: Floats, decision: bool | Bools = True) -> Floats:
        """Return the givens of encoded rows (columns in data order): their fixed values, then the decision."""
        positions = [self.schema_.position(name) for name in self.fixed_]
        givens = np.empty((matrix.shape[0], len(positions) + self.conditions_on_decision_), order="F")
        givens[:, : len(positions)] = matrix[:, positions]
        if self.conditions_on_decision_:
            givens[:, -1] = decision
        return givens

    @overload
    def sample(
        self, n: int = ..., given: Data | None = ..., *, importance: Literal[True], **options: Unpack[SampleOptions]
    ) -> Weighted: ...

    @overload
    def sample(
        self,
        n: int = ...,
        given: Data | None = ...,
        *,
        importance: Literal[False] = ...,
        **options: Unpack[SampleOptions],
    ) -> pd.DataFrame: ...

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
        """Draw rows, optionally within restrictions and rules.

        Parameters
        ----------
        n : int
            Number of rows to draw: for each row of `given`, or in total without `given`.
        given : DataFrame or None
            Fixed features to condition on. None draws them jointly by a (weighted) bootstrap of the training rows.
        decision : bool or None
            For a generator fitted with a decision, the decision to condition on. None means True with `given`, and the
            decision of the bootstrapped row without.
        random_state : int or None
            Seed of these draws; None uses `seed_`. The same seed gives the same rows.
        within : dict or None
            Restrictions of mutable features: ``(low, high)`` for numbers and ordered levels (None for no bound),
            a list of levels, or a `Within` with one row for each row of `given`, or one for all.
        rules : text, `mcce.rule`, or a list of them
            Rules between the features of a row, as in ``rules=["savings <= salary"]``. There is no factual, so
            ``was()`` is an error; a function of two frames gets the rows as both. A
            `mcce.generators.requests.RowRule` is accepted too.
        importance : bool
            Whether to return the importance of the rows too.
        resample : bool
            Whether to resample the rows by their importance. Resampled rows have equal weight; some occur repeatedly.

        Returns
        -------
        DataFrame with the training columns and dtypes, indexed by (id, draw), where id is the index of `given`, or by
        0, 1, ... without `given`. polars and pyarrow input gives the same kind of frame, with id and draw as columns.
        With `importance`, also a Series of importances, with mean 1 over the draws of an id (over all draws without
        `given`), rejected ones included. Rows that could not be drawn within the restrictions are rejected and left
        out; a warning counts them.

        Notes
        -----
        Truncating one conditional after the other is not conditioning the joint: in rows that a chain draws `within`
        bounds or by `rules`, earlier features keep the distribution that they have without them. The importance
        corrects this: weighted by it, or resampled, the rows follow the joint distribution conditioned on the
        restrictions and rules. Rows drawn by rejection, or by an `AdversarialForest`, follow it without weights; their
        importance is 1.
        """
        self.check_fitted()
        n = check_count(n, "n", most=MOST_ROWS)
        if importance and resample:
            raise InputError(
                "importance=True has no effect with resample=True: resampled rows have equal weight; leave one of them "
                "out."
            )
        try:
            request, index, group = self._request(n, given, decision, random_state)
            request = replace(
                request,
                restrictions=read_restrictions(within, self.schema_, self.fixed_, len(request) // n, n),
                rules=read_rules(rules, self.schema_),
                weighted=importance or resample,
            )
            drawn = self.draw(request, progress=progress)
            rows, places, weight = choose_rows(drawn, request, group, resample=resample)
            frame: pd.DataFrame = like_input(self.schema_.decode(drawn.rows[rows], index[places]), self.schema_.frames)
            if not importance:
                return frame
            return frame, like_input(pd.Series(weight, index=index[places], name="importance"), self.schema_.frames)
        except MemoryError as error:
            raise InputError(
                f"n is {n}, more rows than fit into memory ({error}); draw fewer at a time, each time with another "
                "random_state."
            ) from error

    def _request(
        self, n: int, given: Data | None, decision: bool | None, random_state: int | None
    ) -> tuple[DrawRequest, pd.Index[Any], Ints]:
        """Return the request for `n` draws for each row of `given`, or in total; also their index and row numbers."""
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        conditions = self.conditions_on_decision_
        if decision is not None and not (conditions and isinstance(decision, (bool, np.bool_))):
            raise InputError(
                f"decision is {decision!r}; it must be True, False or None."
                if conditions
                else "this generator was fitted without a decision; leave decision out."
            )
        if given is None:
            if not len(self.training_givens_):
                raise InputError(
                    "this generator was saved with donors='none', without the training rows from which fixed values "
                    "are drawn; give the fixed values by `given`."
                )
            givens = bootstrap_givens(self.training_givens_, n, decision, seed, self.training_weights_)
            keys, draws = np.zeros(n, dtype=np.uint64), np.arange(n, dtype=np.uint64)
            return DrawRequest(givens, keys, draws, seed), pd.RangeIndex(n), np.zeros(n, dtype=np.int64)
        fixed, ids = encode_given(given, self.schema_, self.fixed_)
        self._check_incomplete([name for j, name in enumerate(self.fixed_) if np.isnan(fixed[:, j]).any()])
        givens = np.empty((len(ids), len(self.fixed_) + conditions), order="F")
        givens[:, : len(self.fixed_)] = fixed
        if conditions:
            givens[:, -1] = decision is None or decision
        keys = hash_rows(givens)
        first = occurrences(keys)[:, None] * np.uint64(n)
        draws = np.asarray(first + np.arange(n, dtype=np.uint64), dtype=np.uint64).ravel()
        request = DrawRequest(np.repeat(givens, n, axis=0), np.repeat(keys, n), draws, seed)
        return request, draw_index(ids, n), np.repeat(np.arange(len(ids)), n)

    def _check_incomplete(self, names: Sequence[Any]) -> None:
        """Raise if `names`, the fixed features with missing values in `given`, must not have missing values."""

    @one_native_thread()
    def log_density(
        self, X: Data, *, decision: bool | Bools = True, training: bool = False, per_feature: bool = False
    ) -> pd.Series[float] | pd.DataFrame:
        """Return the log density of the mutable features of each row, given its fixed ones: log p(x^m | x^f, y').

        Criterion 1 of the paper, p(x^m | x^f) > epsilon, has no y': fit without a decision for it.

        Parameters
        ----------
        X : DataFrame or array
            Rows with the training columns.
        decision : bool or bool array
            For a generator fitted with a decision, the decision to condition on.
        training : bool
            Whether `X` are the training rows, in their order. Each row is then left out of its own density. It is an
            error for joint generators and for samplers that cannot leave a row out (`leaves_one_out`).
        per_feature : bool
            Whether to return one column for each mutable feature instead of their sum.

        Notes
        -----
        Densities are with respect to the counting measure for levels and numbers with point mass, and to the Lebesgue
        measure for other numbers (dates: encoded), the same for all samplers (`mcce.samplers.density`).

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(1000).X[["age", "education", "salary"]]
        >>> chain = mcce.ChainModel(sampler="ctree", fixed=["age"], random_state=1).fit(X[:800])
        >>> density = chain.log_density(X[800:])
        >>> of_the_best_paid = chain.log_density(X[800:].assign(salary=X["salary"].max()))
        >>> bool(density.median() > of_the_best_paid.median())
        True
        >>> chain.log_density(X[800:], per_feature=True).columns.tolist()
        ['education', 'salary']
        """
        self.check_fitted()
        frame, _ = as_frame(X)
        table = self.schema_.encode(X)
        if training and table.n_rows != self.training_givens_.shape[0]:
            raise InputError(
                f"X has {table.n_rows} rows, but the generator was trained on {self.training_givens_.shape[0]}; "
                "training=True needs the training rows in their order."
            )
        if self.conditions_on_decision_:
            ChainLayout.check_decision(decision, table.n_rows)
        columns = self.feature_log_densities(table.matrix, decision, training=training)
        each = pd.DataFrame(columns, index=frame.index)
        return each if per_feature else each.sum(axis=1).rename("log_density")

    def save(self, path: str | os.PathLike[str], *, donors: Donors = "all") -> None:
        """Write the fitted generator to one file, without pickle; an existing file is replaced.

        **The file contains training values**, unless the fit is private (`mcce.Privacy`): the values that the generator
        draws or consists of, and the fixed values of every training row. ``mcce inspect FILE`` lists what it discloses.
        Generators that wrap another package's model cannot be saved this way; pickle them.

        Parameters
        ----------
        path : str or path
        donors : "all" or "none"
            "none" leaves the training values out; the file then has ranges, level names and estimates. It is an error
            unless all samplers consist of coefficients (norm, logreg, polyreg, polr). A chain saved this way draws
            only with `given`, and norm has no density.

        Examples
        --------
        >>> import mcce, tempfile
        >>> loans = mcce.datasets.load_loans(200)
        >>> chain = mcce.ChainModel(fixed=["age", "sex"], random_state=1).fit(loans.X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     chain.save(f"{folder}/loans.mcce")
        ...     again = mcce.ChainModel.load(f"{folder}/loans.mcce")
        >>> again.sample(n=5).equals(chain.sample(n=5))
        True
        """
        fields = {"generator": self.stored(donors)}
        save_fields(path, "Generator", fields, {"donors": self.kept_values(donors)}, itemgetter("generator"))

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Return the generator from a file written by `save`.

        No code in a file is run. A damaged, crafted or newer file raises `InputError`. Samplers of other packages
        must be installed and registered (`mcce.register_sampler`).

        Parameters
        ----------
        path : str or path
        n_jobs : int or None
            Threads to use; None for all cores.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
        >>> chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     chain.save(f"{folder}/chain.mcce")
        ...     again = mcce.generators.Generator.load(f"{folder}/chain.mcce")
        >>> again.sample(10).equals(chain.sample(10))
        True
        """
        generator = load_fields(path, "Generator", itemgetter("generator"))
        if not isinstance(generator, cls):
            raise InputError(
                f"{os.fspath(path)!r} contains a {type(generator).__name__}; use {type(generator).__name__}.load."
            )
        generator.n_jobs = n_jobs
        return generator

    @classmethod
    def store_as(cls, name: str) -> None:
        """Register this class for storage under a name, unless it has one (step 3)."""
        if not is_registered(cls):
            register(name, cls, cls._write, cls._read)

    def kept_values(self, donors: Donors) -> str:
        """Return which training values a file contains: "all", "none", or "private" after a private fit."""
        return donors if self.privacy is None else "private"

    def stored(self: Self, donors: Donors) -> Self:
        """Return the generator to store: itself, or a copy without training values."""
        if not self.__sklearn_is_fitted__():
            raise exceptions.NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) before saving it.")
        if not is_registered(type(self)) or not all(hasattr(self, name) for name in self.fitted):
            raise SamplerError(
                f"{self!r} cannot be saved: its fitted model cannot be checked on loading. Pickle it, or use a "
                f"generator made of arrays ({GENERATORS.names_that(is_registered)})."
            )
        if donors not in ("all", "none"):
            raise InputError(f"donors is {donors!r}; it must be 'all' or 'none'.")
        return self if donors == "all" else self._without_donors()

    def _without_donors(self: Self) -> Self:
        """Return a copy without training values."""
        raise SamplerError(
            f"donors='none' is not possible for {self!r}, which consists of training values. Save with donors='all', "
            f"or use a chain of samplers made of coefficients ({samplers_without_donors()})."
        )

    def settings(self) -> dict[str, Any]:
        """Return the parameters by name, without `n_jobs`."""
        return {name: value for name, value in self.get_params(deep=False).items() if name != "n_jobs"}

    def check_model(self, features: Sequence[Feature], n_given: int) -> None:
        """Raise if a model read from a file does not match these columns, of which the first are given."""
        model = self.model_
        require(hasattr(model, "check_columns"), f"model_ is a {type(model).__name__}, which is not a model")
        model.check_columns(features, n_given)

    def _write(self) -> Fields:
        """Return the stored fields of the generator (step 3)."""
        if not self.__sklearn_is_fitted__():
            raise InputError("which is not fitted; call fit(X).")
        settings = {name: unfitted(value) for name, value in self.settings().items()}
        fields = {**{name: getattr(self, name) for name in self.fitted}, "settings": settings}
        fields["training_givens_"] = np.asfortranarray(self.training_givens_)
        return fields if self.training_weights_ is None else {**fields, "training_weights_": self.training_weights_}

    @classmethod
    def _read(cls: type[Self], fields: Fields) -> Self:
        """Return the generator of these fields, checked as a whole."""
        check_type(fields["settings"], "settings", dict)
        known = {*cls._parameter_names()}
        require({*fields["settings"]} <= known, f"settings has a name that is not a parameter of {cls.__name__}")
        generator = cls(**fields["settings"])
        for name in cls.fitted:
            setattr(generator, name, fields[name])
        generator.training_weights_ = fields.get("training_weights_")
        generator.seed_ = resolve_seed(generator.seed_)
        check_type(generator.schema_, "schema_", Schema)
        check_flag(generator.conditions_on_decision_, "conditions_on_decision_")
        generator.fixed_ = check_fixed(generator.fixed, generator.schema_.names)
        mutable = [name for name in generator.schema_.names if name not in generator.fixed_]
        require(len(mutable) > 0, "all columns are fixed")
        generator._layout = layout = generator._lay_out(mutable)
        _check_training_rows(generator.training_givens_, generator.training_weights_, layout)
        generator.check_model(layout.features, layout.n_given)
        return generator

    def _lay_out(self, mutable: list[Any]) -> ChainLayout:
        """Return the columns of a generator read from a file, in the order in which it was fitted."""
        return ChainLayout.arrange(self.schema_, self.fixed_, mutable, self.conditions_on_decision_)

    def check_fitted(self) -> None:
        """Raise if the generator is not fitted."""
        if not self.__sklearn_is_fitted__():
            raise exceptions.NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) first.")

    def _known_schema(self) -> Schema | None:
        return self.schema_ if "training_givens_" in vars(self) else None


def stored_as(name: str) -> Callable[[Class], Class]:
    """Register a class of generators under its name in files."""

    def decorate(cls: Class) -> Class:
        cls.store_as(name)
        return cls

    return decorate


def unfitted(value: Any) -> Any:
    """Return a setting as lists, dicts and unfitted samplers."""
    if isinstance(value, ConditionalSampler):
        return Recipe(value)
    if isinstance(value, type) and issubclass(value, ConditionalSampler):
        return Recipe(value())
    if isinstance(value, Mapping):
        return {key: unfitted(each) for key, each in value.items()}
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else value


def _check_training_rows(givens: Floats, weights: Floats | None, layout: ChainLayout) -> None:
    """Raise if the givens or weights of the training rows do not match the columns."""
    check_array(givens, "training_givens_", FLOAT, None, layout.n_given)
    for j, feature in enumerate(layout.features[: layout.n_given]):
        column = givens[:, j]
        if feature.is_numeric:
            require(not np.isinf(column).any(), "training_givens_ has an infinite number")
        else:
            check_codes(column, "training_givens_", feature.n_levels)
    if weights is not None:
        check_weights(weights, "training_weights_", givens.shape[0])


def check_is_generator(generator: object, role: str) -> None:
    """Raise unless an object is a generator."""
    if not isinstance(generator, Generator):
        what = "a class, not an object" if isinstance(generator, type) else f"a {type(generator).__name__}"
        raise InputError(
            f"{role} got {spell(generator)}, {what}; give a registered name ({GENERATORS.names_that(bool)}), or an "
            "unfitted object of a subclass of mcce.generators.Generator, which implements fit and draw."
        )


def _register(name: str, generator: Any) -> None:
    """Register a class of generators; raise if it cannot be constructed by name."""
    if not (isinstance(generator, type) and issubclass(generator, Generator)):
        raise InputError(
            f"register_generator({name!r}) got {generator!r}; it needs a subclass of mcce.generators.Generator, which "
            "implements fit and draw."
        )
    if inspect.isabstract(generator):
        absent = listing(sorted(generator.__abstractmethods__))
        raise InputError(f"register_generator({name!r}): {generator.__name__} lacks {absent}; implement it.")
    parameters = inspect.signature(generator).parameters
    if "fixed" not in parameters:
        raise InputError(f"register_generator({name!r}): {generator.__name__} has no parameter 'fixed'; add it.")
    needed = [
        each.name
        for each in parameters.values()
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and each.name != "fixed"
    ]
    if needed:
        raise InputError(
            f"register_generator({name!r}): the constructor of {generator.__name__} needs {listing(needed)}, which "
            "cannot be given by name; give defaults."
        )
    GENERATORS.add(name, generator)
    generator.store_as(f"generator.{name}")


GENERATORS: Registry[type[Generator]] = Registry("generator", "mcce.generators", _register)


def generators_of_weights() -> str:
    """Return the names of the generators that take weights, for a message."""
    return GENERATORS.names_that(lambda cls: cls.takes_weights)
