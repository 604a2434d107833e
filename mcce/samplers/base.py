"""The contract of a conditional: p(target | given), fitted once, drawn from row by row."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from mcce.exceptions import NotFittedError, SamplerError, listing
from mcce.rng import RowStreams
from mcce.table import KINDS, Column, Feature, Table

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Self = TypeVar("Self", bound="ConditionalSampler")

HANDED_ON = "handed on"  # in a chain, `given.shared` has a dict of this name: what samplers leave for the next
_REJECTION_ROUNDS = 200


@dataclass(frozen=True)
class Within:
    """What each row's draw is restricted to: an interval for numbers, a set of levels for categories.

    Attributes
    ----------
    low, high : array or None
        Closed bounds of each row, in encoded units (a level's code for an ordered target).
    levels : (rows, levels) boolean array or None
        Levels allowed in each row.

    A missing value is never allowed.
    """

    low: Floats | None = None
    high: Floats | None = None
    levels: Bools | None = None

    def allows(self, values: Floats) -> Bools:
        """Return whether each row's value is allowed."""
        allowed = ~np.isnan(values)
        if self.low is not None:
            allowed &= values >= self.low
        if self.high is not None:
            allowed &= values <= self.high
        if self.levels is not None:
            codes = np.where(allowed, values, 0.0).astype(np.intp)
            allowed &= self.levels[np.arange(values.size), codes]
        return allowed

    def take(self, rows: npt.NDArray[Any]) -> Within:
        """Return the restriction of some rows."""
        return Within(*(None if part is None else part[rows] for part in (self.low, self.high, self.levels)))


class ConditionalSampler(ABC):
    """A model of one column given others: p(target | given).

    To write one, subclass this and implement two methods; everything else has a working default or refuses clearly.

    ``fit(given, target)``
        `given` is a `Table`: ``given.matrix`` is a float64 matrix (rows, columns) in which numbers stand for
        themselves, levels are codes 0, 1, ... and NaN is missing; ``given.features[j]`` says what column j is
        (``kind`` is "numeric", "categorical" or "ordered"; ``levels``). It may have no columns at all. `target` is a
        `Column`: ``target.values`` and ``target.feature``. Return `self`. Learned state goes into attributes with a
        trailing underscore; constructor parameters stay as they are.
    ``sample(given, rng)``
        Return one float64 draw for each row of `given` (the same columns as in `fit`), encoded like the target: a level
        code that exists, a number, or NaN where the training target was missing. All randomness comes from `rng`
        (`mcce.rng.RowStreams`): ``rng.uniform()``, ``rng.normal()``, ``rng.integer(high)``, ``rng.categorical(p)`` each
        give one number per row. So a row's draw never depends on the rows beside it. With `within`, return a draw
        from the conditional restricted to the allowed values, and NaN in the rows where none can be drawn.

    Attributes
    ----------
    handles : set of str
        Kinds of target that the sampler models; the chain checks it once, before fitting.
    handles_missing : bool
        Whether missing values may stand in the givens and in the target.
    thread_safe : bool
        Whether `fit` and `sample` of different objects, and `sample` of one, may run in several threads.
    uses_blas : bool
        Whether `fit` spends its time in linear algebra; the chain then gives each of its threads one BLAS thread,
        because small problems wait longer for several than they gain.
    leaves_one_out : bool
        Whether `log_density` takes `training_rows`, the positions of the rows among the training rows, and leaves
        each row itself out.
    ignores_given : bool
        Whether the draws do not depend on the givens, on purpose; `mcce.testing` then does not expect them to.

    Notes
    -----
    Attributes above belong to the class. These methods are optional:

    ``sample(given, rng, within=...)``
        The helper `sample_by_rejection` restricts any sampler by drawing again; override for something exact.
    ``supports(given, values)``
        Could the conditional have produced this value? Needed for anchored draws.
    ``log_density(given, values)``
        Log density (numbers) or log probability (levels) of each value.
    ``get_state()``, ``set_state(state)``
        The fitted state as a dict of numpy arrays and JSON values; the default takes all attributes that end in an
        underscore and refuses anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce import ConditionalSampler
    >>> class RoundedNormal(ConditionalSampler):
    ...     '''A normal distribution that ignores the givens, rounded.'''
    ...     handles = {"numeric"}
    ...     ignores_given = True
    ...     def fit(self, given, target):
    ...         self.mean_, self.sd_ = float(np.mean(target.values)), float(np.std(target.values))
    ...         return self
    ...     def sample(self, given, rng, within=None):
    ...         self.check_fitted("mean_")
    ...         if within is not None:
    ...             return self.sample_by_rejection(given, rng, within)
    ...         return np.round(self.mean_ + self.sd_ * rng.normal())
    >>> RoundedNormal()
    RoundedNormal()

    `mcce.testing.check_sampler` tells whether a sampler keeps this contract.
    """

    handles: ClassVar[frozenset[str] | set[str]] = frozenset(KINDS)
    handles_missing: ClassVar[bool] = False
    thread_safe: ClassVar[bool] = False
    uses_blas: ClassVar[bool] = False
    leaves_one_out: ClassVar[bool] = False
    ignores_given: ClassVar[bool] = False

    @abstractmethod
    def fit(self: Self, given: Table, target: Column) -> Self:
        """Learn p(target | given)."""

    @abstractmethod
    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row of `given`, restricted to `within` if that is given."""

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the conditional could have produced each value."""
        raise SamplerError(
            f"{self!r} cannot tell which values its conditional supports; use a sampler that implements supports()."
        )

    def log_density(self, given: Table, values: Floats) -> Floats:
        """Return the log density or log probability of each value."""
        raise SamplerError(f"{self!r} has no density; use a sampler that implements log_density().")

    def sample_by_rejection(self, given: Table, rng: RowStreams, within: Within) -> Floats:
        """Draw until the value is allowed, row by row; NaN where 200 draws were all refused."""
        values = np.full(given.n_rows, np.nan)
        waiting = np.arange(given.n_rows)
        for attempt in range(_REJECTION_ROUNDS):
            if waiting.size == 0:
                break
            tried = self.sample(given.take(waiting), rng.child("attempt", attempt).take(waiting))
            allowed = within.take(waiting).allows(tried)
            values[waiting[allowed]] = tried[allowed]
            waiting = waiting[~allowed]
        return values

    def get_state(self) -> dict[str, Any]:
        """Return the fitted state: numpy arrays and JSON values by attribute name."""
        state = {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}
        for name, value in state.items():
            if not isinstance(value, (np.ndarray, str, bool, int, float, type(None))):
                raise SamplerError(
                    f"{type(self).__name__}.{name} is a {type(value).__name__}; a sampler with such state implements "
                    "get_state() and set_state() itself."
                )
        return state

    def set_state(self: Self, state: dict[str, Any]) -> Self:
        """Take over a state made by `get_state`."""
        for name, value in state.items():
            setattr(self, name, value)
        return self

    # ---- what follows is the same for every sampler

    def get_params(self) -> dict[str, Any]:
        """Return the constructor parameters by name."""
        signature = inspect.signature(type(self).__init__)
        names = [
            p.name
            for p in signature.parameters.values()
            if p.name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
        return {name: getattr(self, name) for name in names}

    def clone(self: Self) -> Self:
        """Return an unfitted sampler with the same parameters."""
        return type(self)(**self.get_params())

    def check_target(self, feature: Feature) -> None:
        """Refuse a target that the class does not declare to handle."""
        if feature.kind not in self.handles:
            raise SamplerError(
                f"{self!r} cannot model {feature.name!r}: it is {feature.kind}, and the sampler handles "
                f"{listing(sorted(self.handles))}. Choose another sampler for it."
            )

    def check_fitted(self, attribute: str) -> None:
        """Refuse a call that needs `fit` first."""
        if not hasattr(self, attribute):
            raise NotFittedError(f"{self!r} is not fitted; call fit(given, target) first.")

    def __repr__(self) -> str:
        defaults = {
            p.name: p.default
            for p in inspect.signature(type(self).__init__).parameters.values()
            if p.default is not p.empty
        }
        # compared as written: arrays and estimators need not have a truth value
        changed = {k: v for k, v in self.get_params().items() if k not in defaults or repr(defaults[k]) != repr(v)}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"
