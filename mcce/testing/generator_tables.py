"""Small tables that generators are checked on, and what is drawn from them."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Bools, Floats
from mcce.generators.base import Drawn, DrawRequest, Generator

ROWS = 400
FIXED = ("group", "age")


@dataclass(frozen=True)
class Training:
    """A table with a decision, and what is fixed."""

    X: pd.DataFrame
    decision: Bools
    fixed: tuple[str, ...]


def mixed_table(seed: int) -> Training:
    """Return columns of every kind; income, rooms and job depend on the decision, job, since and debt on the group."""
    rng = np.random.default_rng([seed, 1])
    group = rng.integers(0, 2, ROWS)
    wanted = rng.random(ROWS) < 0.5
    job = np.where(rng.random(ROWS) < 0.75, group + wanted, rng.integers(0, 3, ROWS))
    income = 30.0 + 20.0 * wanted + rng.gamma(2.0, 4.0, ROWS)
    frame = pd.DataFrame(
        {
            "income": np.round(income, 2),
            "group": np.array(["a", "b"], dtype=object)[group],
            "job": _levels(job, ["clerk", "cook", "pilot", "never"]),
            "age": 20 + rng.integers(0, 5, ROWS),
            "grade": _levels(rng.integers(0, 3, ROWS), ["low", "mid", "high"], ordered=True),
            "rooms": (1 + rng.poisson(1.0 + 2.0 * wanted)).astype(np.int16),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, ROWS) + 250 * group, unit="D"),
            "debt": np.where(rng.random(ROWS) < 0.2, np.nan, np.round(rng.normal(5.0 + 4.0 * group, 2.0), 3)),
        }
    )
    return Training(frame, wanted, FIXED)


def small_table(seed: int) -> Training:
    """Return three columns of few levels, all combinations of which can be counted, and a decision that tells."""
    rng = np.random.default_rng([seed, 2])
    group, wanted = rng.integers(0, 2, ROWS), rng.random(ROWS) < 0.4
    home = (rng.random(ROWS) < 0.2 + 0.5 * wanted).astype(int)
    size = np.digitize(rng.logistic(size=ROWS) + 1.5 * home - group, [-0.5, 1.0])
    frame = pd.DataFrame(
        {
            "group": _levels(group, ["a", "b"]),
            "home": _levels(home, ["rents", "owns"]),
            "size": _levels(size, ["small", "middle", "large"], ordered=True),
        }
    )
    return Training(frame, wanted, ("group",))


def _levels(codes: Any, levels: list[str], *, ordered: bool = False) -> pd.Series[Any]:
    return pd.Series(pd.Categorical(np.array(levels)[codes], categories=levels, ordered=ordered))


def fit(generator: Generator, training: Training, *, with_decision: bool = True, **more: Any) -> Any:
    """Return a copy of the generator, told what is fixed and fitted."""
    made: Any = copy.deepcopy(generator)
    made.fixed = list(training.fixed)
    made.fit(training.X, training.decision if with_decision else None, progress=False, **more)
    return made


_SHARED: dict[tuple[int, int, str], tuple[Generator, Any]] = {}


def fitted_once(generator: Generator, seed: int, table: str = "mixed") -> tuple[Training, Any]:
    """Return a table and a copy fitted to it, which checks that only draw have in common."""
    training = {"mixed": mixed_table, "small": small_table}[table](seed)
    key = (id(generator), seed, table)
    if key not in _SHARED or _SHARED[key][0] is not generator:
        if len(_SHARED) > 8:
            _SHARED.clear()
        _SHARED[key] = generator, fit(generator, training)
    return training, _SHARED[key][1]


def forget_fits() -> None:
    """Let the next checks fit anew."""
    _SHARED.clear()


def factuals_for(fitted: Any, training: Training, n: int) -> Floats:
    """Return encoded training rows, three of each group in turn, `n` times."""
    matrix: Floats = fitted.schema_.encode(training.X).matrix
    group = matrix[:, fitted.schema_.names.index("group")]
    some = np.concatenate([np.flatnonzero(group == code)[:3] for code in (0.0, 1.0)])
    return np.asarray(matrix[some[np.arange(n) % some.size]])


def request_for(fitted: Any, training: Training, n: int, seed: int, decision: bool | Bools = True) -> DrawRequest:
    """Return a request for `n` rows with the fixed values of a few training rows, each with a stream of its own."""
    keys, draws = np.arange(n, dtype=np.uint64) % np.uint64(6), np.arange(n, dtype=np.uint64) // np.uint64(6)
    givens = fitted.givens_of(factuals_for(fitted, training, n), decision)
    return DrawRequest(givens, keys * np.uint64(7919), draws, seed)


@dataclass(frozen=True)
class MoreRoomsThan:
    """A rule: `rooms` is at least what the factual's is, or at least 2."""

    place: int
    by_factual: bool
    columns: tuple[int, ...] = field(default=())

    def holds(self, rows: Floats, factuals: Floats | None) -> Bools:
        """Return whether each row has as many rooms."""
        least: Any = factuals[:, self.place] if self.by_factual and factuals is not None else 2.0
        return np.asarray(rows[:, self.place] >= least)

    def within_for(self, column: int, rows: Floats, factuals: Floats | None) -> None:
        """Set no bounds: rows that break the rule are drawn again."""

    def __str__(self) -> str:
        return "rooms >= factual rooms" if self.by_factual else "rooms >= 2"


def rule_of_rooms(fitted: Any, *, by_factual: bool) -> MoreRoomsThan:
    """Return a rule on the column `rooms`."""
    place = fitted.schema_.names.index("rooms")
    return MoreRoomsThan(place, by_factual, (place,))


def column(fitted: Any, drawn: Drawn, name: str) -> Floats:
    """Return one drawn column."""
    return np.asarray(drawn.rows[:, fitted.schema_.names.index(name)])


equal = functools.partial(np.array_equal, equal_nan=True)
