"""Small tables with known properties, and samplers and generators fitted to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats
from sklearn.base import clone

from mcce._utils import Bools, Floats
from mcce.exceptions import InputError
from mcce.generators import DrawRequest, Generator
from mcce.rng import RowStreams
from mcce.samplers import ConditionalSampler, Distribution, Within, distribution_of
from mcce.table import KINDS, Column, Kind, Schema, Table

TRAINING_ROWS = 600
GIVENS = ("height", "grade", "job", "sex")
_CUTS = (-1.0, 0.5, 2.0)  # of a logistic variable: four levels, none rare


@dataclass(frozen=True)
class Problem:
    """Training data of one conditional; the target depends on nothing or, `by_sex`, on the two-level given alone."""

    given: Table
    target: Column

    @property
    def kind(self) -> Kind:
        """Kind of the target."""
        return self.target.feature.kind

    def copies(self, times: int = 4) -> npt.NDArray[np.intp]:
        """Return the training row of each row to draw."""
        return np.tile(np.arange(self.given.n_rows), times)


def make_problem(
    kind: Kind,
    seed: int,
    *,
    givens: tuple[str, ...] = GIVENS,
    numbers: str = "any",
    by_sex: bool = False,
    missing_givens: bool = False,
    missing_target: bool = False,
    unobserved: bool = False,
    decimals: int | None = None,
) -> Problem:
    """Return a training problem; a numeric target is positive and approximately normal, a count or a share."""
    rng = np.random.default_rng(seed)
    n = TRAINING_ROWS
    sex = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170.0, 10.0, n),
            "grade": levels_of(rng.integers(0, 3, n), ["low", "mid", "high"], ordered=True),
            "job": levels_of(rng.choice(3, n, p=[0.6, 0.3, 0.1]), ["clerk", "cook", "pilot"]),
            "sex": levels_of(sex, ["f", "m"]),
        }
    )
    if missing_givens:
        frame["height"] = frame["height"].mask(rng.random(n) < 0.2)
        frame["job"] = frame["job"].mask(rng.random(n) < 0.2)
    target: pd.Series[Any]
    if kind == "numeric":
        values: Any = 10.0 + np.abs(rng.normal(50.0, 20.0, n) - 10.0) + 80.0 * sex * by_sex
        if numbers == "counts":
            values = stats.nbinom.ppf(rng.random(n), 3.0, 3.0 / (7.0 + 12.0 * sex * by_sex))
        elif numbers == "shares":
            values = values / 250.0
        target = pd.Series(values if decimals is None else np.round(values, decimals))
        target = target.astype(np.int64) if numbers == "counts" or decimals == 0 else target
    else:
        codes = np.digitize(rng.logistic(size=n) + 3.0 * sex * by_sex, _CUTS)
        levels = ["a", "b", "c", "d"] if kind == "ordered" else ["d", "b", "a", "c"]
        if unobserved:
            levels.insert(2, "never")
            codes = np.where(codes < 2, codes, codes + 1)
        target = levels_of(codes, levels, ordered=kind == "ordered")
    frame = frame[list(givens)]
    frame["target"] = target.mask(rng.random(n) < 0.3) if missing_target else target
    table = Schema.from_data(frame).encode(frame)
    return Problem(table.first(len(givens)), table.column(len(givens)))


def levels_of(codes: npt.NDArray[Any], levels: list[str], *, ordered: bool = False) -> pd.Series[Any]:
    """Return a column of levels from their codes."""
    return pd.Series(pd.Categorical(np.array(levels)[codes], categories=levels, ordered=ordered))


@dataclass
class Bench:
    """A sampler under test, and its fits, which checks that only draw share."""

    sampler: ConditionalSampler
    seed: int = 0
    uses_given: bool = True
    _fits: dict[Any, tuple[Problem, ConditionalSampler]] = field(default_factory=dict)

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that the sampler handles."""
        return [kind for kind in KINDS if kind in self.sampler.handles]

    def unfitted(self) -> Any:
        """Return a clone; a `random_state` of None is set, as a chain does."""
        sampler = clone(self.sampler)
        if sampler.get_params(deep=False).get("random_state", 0) is None:
            sampler.set_params(random_state=self.seed)
        return sampler

    def problem(self, kind: Kind, *, seed: int = 0, **options: Any) -> Problem:
        """Return a problem with numbers that the sampler can be fitted to: any, else counts, else shares."""
        numbers = self.numbers if kind == "numeric" else "any"
        return make_problem(kind, self.seed + seed, numbers=numbers, **options)

    @cached_property
    def numbers(self) -> str:
        """The first kind of numbers that the sampler can be fitted to."""
        return next((numbers for numbers in ("any", "counts", "shares") if self._can_be_fitted(numbers)), "any")

    def _can_be_fitted(self, numbers: str) -> bool:
        problem = make_problem("numeric", self.seed, numbers=numbers)
        try:
            self.unfitted().fit(problem.given, problem.target)
        except InputError:
            return False
        except Exception:  # another check reports it
            return True
        return True

    def fit(self, problem: Problem) -> Any:
        """Return a clone that is fitted to the problem."""
        sampler = self.unfitted()
        sampler.fit(problem.given, problem.target)
        return sampler

    def fitted(self, **options: Any) -> Iterator[tuple[Kind, Problem, Any]]:
        """Yield each kind with a problem and a clone fitted to it, which must not be changed."""
        for kind in self.kinds:
            key = (kind, *sorted(options.items()))
            if key not in self._fits:
                problem = self.problem(kind, **options)
                self._fits[key] = problem, self.fit(problem)
            yield kind, *self._fits[key]


def distribution(fitted: ConditionalSampler, problem: Problem, rows: Any = slice(None)) -> Distribution:
    """Return the distributions of some training rows."""
    return distribution_of(fitted, problem.given.take(rows), problem.target.feature)


def draw(
    fitted: ConditionalSampler, problem: Problem, seed: int, rows: Any = slice(None), within: Within | None = None
) -> tuple[Floats, Bools]:
    """Draw one value for each of some training rows, as a chain does."""
    distributions = distribution(fitted, problem, rows)
    return distributions.sample(RowStreams.from_seed(seed, len(distributions)), within)


# -------------------------------------------------------------------------------------------------------- generators

ROWS = 500
FIXED = ("group", "age")


@dataclass(frozen=True)
class Training:
    """A table with a decision."""

    X: pd.DataFrame
    decision: Bools
    fixed: tuple[str, ...]


def mixed_table(seed: int) -> Training:
    """Return columns of every kind; income, rooms and job depend on the decision, job, since and debt on the group."""
    rng = np.random.default_rng([seed, 1])
    group = rng.integers(0, 2, ROWS)
    wanted = rng.random(ROWS) < 0.5
    job = np.where(rng.random(ROWS) < 0.75, group + wanted, rng.integers(0, 3, ROWS))
    frame = pd.DataFrame(
        {
            "income": np.round(30.0 + 20.0 * wanted + rng.gamma(2.0, 4.0, ROWS), 2),
            "group": np.array(["a", "b"], dtype=object)[group],
            "job": levels_of(job, ["clerk", "cook", "pilot", "never"]),
            "age": 20 + rng.integers(0, 5, ROWS),
            "grade": levels_of(rng.integers(0, 3, ROWS), ["low", "mid", "high"], ordered=True),
            "rooms": (1 + rng.poisson(1.0 + 2.0 * wanted)).astype(np.int16),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, ROWS) + 250 * group, unit="D"),
            "debt": np.where(rng.random(ROWS) < 0.2, np.nan, np.round(rng.normal(5.0 + 4.0 * group, 2.0), 3)),
        }
    )
    return Training(frame, wanted, FIXED)


def small_table(seed: int) -> Training:
    """Return three columns of few levels, whose combinations can be enumerated, and an informative decision."""
    rng = np.random.default_rng([seed, 2])
    group, wanted = rng.integers(0, 2, ROWS), rng.random(ROWS) < 0.4
    home = (rng.random(ROWS) < 0.2 + 0.5 * wanted).astype(int)
    size = np.digitize(rng.logistic(size=ROWS) + 1.5 * home - group, [-0.5, 1.0])
    frame = pd.DataFrame(
        {
            "group": levels_of(group, ["a", "b"]),
            "home": levels_of(home, ["rents", "owns"]),
            "size": levels_of(size, ["small", "middle", "large"], ordered=True),
        }
    )
    return Training(frame, wanted, ("group",))


@dataclass
class GeneratorBench:
    """A generator under test, and its fits, which checks that only draw share."""

    generator: Generator
    seed: int = 0
    _fits: dict[str, tuple[Training, Any]] = field(default_factory=dict)

    def fit(self, training: Training, *, with_decision: bool = True, **more: Any) -> Any:
        """Return a clone that is fitted to the table, with its fixed features."""
        generator = clone(self.generator).set_params(fixed=list(training.fixed))
        generator.fit(training.X, training.decision if with_decision else None, **more)
        return generator

    def fitted(self, table: str = "mixed") -> tuple[Training, Any]:
        """Return a table and a clone fitted to it, which must not be changed."""
        if table not in self._fits:
            training = (mixed_table if table == "mixed" else small_table)(self.seed)
            self._fits[table] = training, self.fit(training)
        return self._fits[table]

    def request(self, fitted: Any, training: Training, n: int, decision: bool | Bools = True) -> DrawRequest:
        """Return a request for n rows with the fixed values of six training rows, each with its own stream."""
        matrix: Floats = fitted.schema_.encode(training.X).matrix
        group = matrix[:, list(fitted.schema_.names).index("group")]
        six = np.concatenate([np.flatnonzero(group == code)[:3] for code in (0.0, 1.0)])
        index = np.arange(n, dtype=np.uint64)
        givens = fitted.givens_of(matrix[six[np.arange(n) % 6]], decision)
        return DrawRequest(givens, index % np.uint64(6) * np.uint64(7919), index // np.uint64(6), self.seed)
