"""The protocol of a generator, a model of the data that draws rows and says their density; requests and draws.

A `Generator` models p(mutable | fixed, decision) as a whole. `ChainModel` is the one that the paper proposes; a joint
model is another. All it knows of a draw travels in one frozen object, `DrawRequest`, so that the same request gives the
same rows in any block, order, thread or process.

A class of generators registers itself by name (`register_generator`), so that ``MCCE(model, generator="mixture")``
makes one: its constructor is handed the fixed features and what else it takes of the explainer's settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.registry import Registry
from mcce.exceptions import InputError, listing
from mcce.samplers import Within
from mcce.table import Data, Schema

Class = TypeVar("Class", bound=type[Any])
METHODS = ("fit", "givens_of", "draw", "feature_log_densities")
RULE_ATTEMPTS = 50  # at drawing a row so that it obeys rules


class RowRule(Protocol):
    """A relation between features of a row, and of its factual; its text, ``str(rule)``, names it in reports.

    Tables are encoded, with the columns of the data in their order. Features that are not drawn yet are NaN.

    Attributes
    ----------
    columns : positions of the features that it reads in a drawn row.

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
        """Positions of the features that it reads in a drawn row."""

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        """Return whether each row obeys the rule."""

    def within_for(self, column: int, rows: Floats, factuals: Floats | None) -> Within | None:
        """Return exactly what each row's `column` may be, given the rule's other features; None if it is not simple.

        A row that the rule leaves free in `column` has infinite bounds, all levels, and may be missing.
        """


@dataclass(frozen=True)
class DrawRequest:
    """All that the draws depend on, one row each.

    Attributes
    ----------
    givens : encoded fixed values, in data order, then the decision if the generator conditions on one.
    stream_keys, draw_indices : the row's random numbers are a function of these two and the seed.
    seed : int
    restrictions : what a feature's draws are restricted to, by feature; those not named are free.
    rules : what must hold between the features of a row.
    factuals : encoded rows, columns in data order, that rules compare the drawn ones with; None if no rule does.
    weighted : whether the draws are to carry their weights; estimating those of rules takes more draws.

    Examples
    --------
    >>> import mcce
    >>> import numpy as np
    >>> from mcce.generators.base import DrawRequest
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

    A rejected row has values that are not allowed, or missing; it is no candidate.

    Attributes
    ----------
    log_weight : of each row, the log of how much of the generator's conditionals its restrictions and rules left; -inf
        if it is rejected. None if the request does not ask for weights, or the generator has none.
    rejected_by : for each row, the number of the first constraint that rejects it, by its place in `constraints`; -1 if
        none does. None if the generator does not say.
    constraints : the restricted features, then the rules by their texts.
    tried : for each constraint, the number of rows that came to it and that it restricts.

    Examples
    --------
    >>> import mcce
    >>> import numpy as np
    >>> from mcce.generators.base import DrawRequest
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
        """Return, for each constraint, the number of rows that came to it, and of those that passed."""
        rejected_by = np.empty(0, dtype=np.int64) if self.rejected_by is None else self.rejected_by
        rejected = np.bincount(rejected_by[rejected_by >= 0], minlength=len(self.constraints))
        tried = np.asarray(self.tried, dtype=np.int64)
        names = pd.Index(self.constraints, dtype=object, name="constraint", tupleize_cols=False)
        return pd.DataFrame({"tried": tried, "passed": tried - rejected}, index=names)


class Generator(Protocol):
    """A model of the mutable features given the fixed ones and the decision.

    Attributes
    ----------
    schema_ : the columns of the training table.
    seed_ : seed of the draws.
    fixed_ : the features that are given, in data order.
    conditions_on_decision_ : whether the decision is given too.
    training_givens_ : the givens of the training rows.

    Examples
    --------
    A fitted chain is one; a joint model has the same methods.

    >>> import mcce
    >>> import numpy as np
    >>> from mcce.generators.base import DrawRequest
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
    >>> generator = mcce.ChainModel(fixed=["age"], random_state=1)
    >>> generator = generator.fit(X, X["salary"] > 60_000)
    >>> matrix = generator.schema_.encode(X).matrix
    >>> generator.fixed_, generator.givens_of(matrix[:1], True).tolist()
    (['age'], [[36.0, 1.0]])
    >>> draws = np.arange(300, dtype=np.uint64)
    >>> request = DrawRequest(generator.givens_of(matrix, False), np.zeros(300, dtype=np.uint64), draws, seed=1)
    >>> bool(np.mean(generator.draw(request).rows[:, 1] <= 60_000) > 0.95)
    True
    >>> [*generator.feature_log_densities(matrix)]
    ['salary']
    """

    schema_: Schema
    seed_: int
    conditions_on_decision_: bool
    training_givens_: Floats

    @property
    def fixed_(self) -> list[Any]:
        """The features that are given, in data order."""

    def fit(self, X: Data, decision: Bools | None = None, *, progress: bool | None = None) -> Any:
        """Learn the joint distribution of the training rows."""

    def givens_of(self, matrix: Floats, decision: bool | Bools = True) -> Floats:
        """Return the givens of encoded rows: their fixed values, then the decision."""

    def draw(self, request: DrawRequest, *, progress: bool | None = None, n_jobs: int | None = None) -> Drawn:
        """Draw one row for each row of the request."""

    def feature_log_densities(
        self, matrix: Floats, decision: bool | Bools = True, *, training: bool = False
    ) -> Mapping[Any, Floats]:
        """Return, by mutable feature, the log densities of encoded rows; they sum to that of the row."""


def _register(name: str, generator: Any) -> None:
    """Register a class of generators, after a look that it is one and can be made by name."""
    lacking = [method for method in METHODS if not callable(getattr(generator, method, None))]
    if not isinstance(generator, type) or lacking:
        what = f"lacks {listing(lacking)}" if lacking else "is no class"
        raise InputError(
            f"register_generator({name!r}) got {generator!r}, which {what}; it needs a class with the methods of "
            "mcce.generators.base.Generator."
        )
    parameters = inspect.signature(generator).parameters
    if "fixed" not in parameters:
        raise InputError(f"register_generator({name!r}): the constructor of {generator.__name__} takes no fixed.")
    needed = [
        each.name
        for each in parameters.values()
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and each.name != "fixed"
    ]
    if needed:
        raise InputError(
            f"register_generator({name!r}): the constructor of {generator.__name__} needs {listing(needed)}, which a "
            "name does not say; give defaults."
        )
    GENERATORS.add(name, generator)
    if hasattr(generator, "store_as"):
        generator.store_as(f"generator.{name}")


GENERATORS: Registry[type[Any]] = Registry("generator", "mcce.generators", _register)


def register_generator(name: str) -> Callable[[Class], Class]:
    """Make a class of generators available by name, as a decorator.

    Parameters
    ----------
    name : str
        For ``MCCE(model, generator=name)``. The class is called with `fixed`, and with `kinds`, `random_state` and
        `n_jobs` of the explainer if its constructor takes them; other parameters need defaults. A name can be given
        once.

    Notes
    -----
    A `JointGenerator` can then be stored too, if what it learns is in ``model_`` (`mcce.generators.joint.base`).

    Examples
    --------
    >>> import mcce
    >>> mcce.register_generator("mixture")(mcce.generators.MixtureGenerator).__name__
    'MixtureGenerator'
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 120_000, fixed=["age"], generator="mixture", random_state=1)
    >>> explainer.fit(X).generator_
    MixtureGenerator(fixed=['age'], random_state=1)
    """

    def decorate(cls: Class) -> Class:
        GENERATORS.register(name, cls)
        return cls

    return decorate


def available_generators() -> dict[str, type[Any]]:
    """Return the classes of generators by name, plug-ins included.

    Examples
    --------
    >>> import mcce
    >>> mcce.available_generators()["mixture"].__name__
    'MixtureGenerator'
    """
    return dict(sorted(GENERATORS.all().items()))
