"""Are counterfactuals fit to send? Counts of useless advice, and rows judged by independent judges.

    python -m benchmarks.advice [--only PART,...] [--factuals N] [--skip N] [--floors F,...] [--out FILE]

1. loans. The refusals of a logistic model are explained; count the people advised to take a larger loan, to stay more
   than two years longer in a job, to erase a default, or to earn more while unemployed. A nearest-neighbour test on
   other loans judges the rows by the ranks of numbers and the mean distance to the five nearest: a row passes if it is
   as near as the nearest 95 per cent of real rows. Accepted real rows show the attainable figures.
2. messy. A table with a debt in two currencies, a year of birth and an age, past dates, names, and ordered counts;
   count answers that change only one of several related columns, or that change unchangeable facts.
3. gaussians, moons, tails, levels, chain. Known processes: six normals with correlation 0.5; two moons beside a ring;
   five correlated columns with tails of a t distribution (3 degrees of freedom); eight levels and counts; eight columns
   in a non-linear chain. The judge is the true density, at the level that 95 per cent of real rows exceed.
   Sparse answers are shown without and with the rule `mcce.joint_density`.
4. adult, gmc, fico, german. The paper's data sets and networks; one half of the rows explains, the other half judges:
   local outlier factor, isolation forest and a Gaussian mixture (share of rows below the 5 per cent level of real
   ones), and ten refits of the network on bootstrap samples (share that still accept). On FICO, the share of rows that
   violate a definition that no real row violates. The walk of NICE, held to the fixed values (`benchmarks.walk`), is
   the reference; differences from it are paired, over the factuals that both explain, with standard errors.

A setting chosen by these figures must be reported on other factuals: `--skip N` leaves out the first N of each part.
`--out` writes FILE.md and FILE.json; `--beside` adds the lines of such a file of another version.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mcce
from benchmarks import report
from benchmarks.page import Page, read_names, read_shares
from benchmarks.settings import Problem, Setting, find_data, load_data, make_problem
from benchmarks.speed import describe_machine
from benchmarks.walk import run_walk
from mcce.datasets import load_loans

PAPER = ("adult", "gmc", "fico", "german")
KNOWN = ("gaussians", "moons", "tails", "levels", "chain")
PARTS = ("loans", "messy", *KNOWN, *PAPER)
FLOORS = "0,0.05,0.1,0.25,0.5"
LEVEL = 0.05
MOST_JUDGING = 5000  # training rows of a judge
REFITS = 10
HELD = "walk, held"
REAL = "real accepted"
NOTES = """\
L0, L1: mean changes, mean sum of range-scaled differences. below: share of answers below the requested floor.
seconds: CPU seconds of fit and explain, warm; with a rule, of its fit as well. Loans: larger loan, years, erased,
unemployed count people. near: share that passes the nearest-neighbour test. Known processes: true is the share above
the 5 per cent level of the true density. The paper's data: lof, forest, mixture are shares of rows below the 5 per
cent level of real rows, lasts the share of refits that accept, broken the share of rows that violate a definition;
+/- columns are differences to the held walk with standard errors (negative is better, except for lasts)."""


@dataclass(frozen=True)
class Line:
    """One line of the tables: the method, the part, and the figures by name."""

    part: str
    way: str
    figures: dict[str, float | str]


@dataclass(frozen=True)
class Answers:
    """Counterfactuals as a frame indexed by factual, whether each is below its floor, and the CPU seconds they took."""

    rows: pd.DataFrame
    below: float = 0.0
    seconds: float = float("nan")


@dataclass(frozen=True)
class Question:
    """A problem: training rows, factuals, a model and its wanted decision."""

    X: pd.DataFrame
    factuals: pd.DataFrame
    model: Any
    decision: Any
    fixed: list[str]
    kinds: dict[str, str] = field(default_factory=dict)
    constraints: tuple[Any, ...] = ()

    def explainer(self) -> mcce.MCCE:
        """Return a fitted explainer."""
        options = {"decision": self.decision, "fixed": self.fixed, "kinds": self.kinds or None, "random_state": 1}
        options |= {"constraints": self.constraints}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about unchangeable columns, which the messy table has
            return mcce.MCCE(self.model, **options).fit(self.X)

    def answers(self, floors: list[float]) -> Iterator[tuple[str, Answers]]:
        """Explain at each floor; the seconds include the fits of the generator and of the plausibility."""
        self.explainer().explain(self.factuals.iloc[:2], n_samples=20, sparse=True)  # compiles the kernels
        begun = time.process_time()
        explainer = self.explainer()
        explainer.explain(self.factuals.iloc[:1], n_samples=1, sparse=True)
        prepared = time.process_time() - begun
        for floor in floors:
            begun = time.process_time()
            found = explainer.explain(self.factuals, sparse=True, floor=floor)
            seconds = prepared + time.process_time() - begun
            below = float((found.measures["plausibility"] < floor).mean())
            yield f"sparse, floor {floor:g}", Answers(found.frame.droplevel("rank"), below, seconds)

    def changes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return range-scaled differences from the factuals, 1 for another level."""
        old, out = self.factuals.loc[rows.index], {}
        for name in self.X.columns:
            number = pd.api.types.is_numeric_dtype(self.X[name]) and not pd.api.types.is_bool_dtype(self.X[name])
            if number and self.kinds.get(name) != "categorical":
                span = float(self.X[name].max() - self.X[name].min()) or 1.0
                out[name] = (rows[name].astype(float) - old[name].astype(float)).abs().to_numpy() / span
            else:
                new, own = rows[name].astype(object).to_numpy(), old[name].astype(object).to_numpy()
                out[name] = ((new != own) & ~(pd.isna(new) & pd.isna(own))).astype(float)
        return pd.DataFrame(out, index=rows.index)

    def figures(self, answers: Answers) -> dict[str, float | str]:
        """Return the figures common to all lines."""
        steps = self.changes(answers.rows)
        return {
            "n": len(answers.rows),
            "L0": float((steps > 0).sum(axis=1).mean()),
            "L1": float(steps.sum(axis=1).mean()),
            "below": answers.below,
            "seconds": answers.seconds,
        }


# ---------------------------------------------------------------- loans and a messy table


def _logistic(X: pd.DataFrame, y: Any) -> Any:
    numbers = make_column_selector(dtype_include="number")
    encode = make_column_transformer(
        (StandardScaler(), numbers), remainder=OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    )
    return make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, y)


class NearTest:
    """A conformal test by the mean distance to the five nearest of some rows, by ranks of numbers among these."""

    def __init__(self, rows: pd.DataFrame, fresh: pd.DataFrame) -> None:
        self.rows = rows
        self.tree = NearestNeighbors(n_neighbors=5, metric="euclidean").fit(self._points(rows))
        self.level = float(np.quantile(self._distance(fresh), 1 - LEVEL))

    def passes(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows are as near as 95 per cent of fresh real rows."""
        return self._distance(rows) <= self.level

    def _distance(self, rows: pd.DataFrame) -> np.ndarray:
        return self.tree.kneighbors(self._points(rows))[0].mean(axis=1)

    def _points(self, rows: pd.DataFrame) -> np.ndarray:
        parts = []
        for name in self.rows:
            known, values = self.rows[name], rows[name]
            if pd.api.types.is_numeric_dtype(known) and not pd.api.types.is_bool_dtype(known):
                ordered = np.sort(known.to_numpy(float))
                low, high = (np.searchsorted(ordered, values.to_numpy(float), side) for side in ("left", "right"))
                parts.append(((low + high) / 2 / len(ordered))[:, None])
            else:
                levels = np.unique(known.astype(str).to_numpy(object))
                parts.append((values.astype(str).to_numpy(object)[:, None] == levels) / 2)
        return np.hstack(parts)


def loans_question(n: int, skip: int = 0) -> Question:
    """Return the problem of the loans, with `n` refused people."""
    loans = load_loans()
    model = _logistic(loans.X, loans.y)
    refused = loans.X[model.predict_proba(loans.X)[:, 1] >= 0.1].iloc[skip : skip + n]
    return Question(loans.X, refused, model, mcce.Interval(0, 0.1, closed="left", of=True), ["age", "sex"])


def count_useless_advice(rows: pd.DataFrame, old: pd.DataFrame) -> dict[str, float]:
    """Count useless advice."""
    salary = rows["salary"].to_numpy() / np.maximum(old["salary"].to_numpy(), 1)
    unemployed = rows["employment"].astype(str).to_numpy() == "unemployed"
    return {
        "larger loan": int((rows["loan_amount"].to_numpy() > old["loan_amount"].to_numpy()).sum()),
        "years": int((rows["years_employed"].to_numpy() > old["years_employed"].to_numpy() + 2).sum()),
        "erased": int((rows["defaulted_last_year"].to_numpy() != old["defaulted_last_year"].to_numpy()).sum()),
        "unemployed": int((unemployed & (salary > 1)).sum()),
    }


def run_loans(n: int, skip: int, floors: list[float]) -> Iterator[Line]:
    """Step 1."""
    question = loans_question(n, skip)
    others = load_loans(6000, random_state=1).X
    test = NearTest(others.iloc[:3000], others.iloc[3000:])
    accepted = others.iloc[3000:][question.model.predict_proba(others.iloc[3000:])[:, 1] < 0.1]
    for way, answers in question.answers(floors):
        old = question.factuals.loc[answers.rows.index]
        near = float(test.passes(answers.rows).mean())
        yield Line("loans", way, question.figures(answers) | count_useless_advice(answers.rows, old) | {"near": near})
    yield Line("loans", REAL, {"n": len(accepted), "near": float(test.passes(accepted).mean())})


def messy_customers(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return customers with the columns of a bank's table, and who repaid."""
    rng = np.random.default_rng(seed)
    age = rng.integers(19, 75, n)
    unemployed = rng.random(n) < 0.1
    salary = np.where(unemployed, 0.0, np.round(np.exp(10.3 + 0.01 * (age - 40) + 0.4 * rng.normal(size=n)), -2))
    debt = np.round(0.5 * np.exp(9.5 + 0.8 * rng.normal(size=n)), -1)
    long_ago = rng.poisson(2.0, n)
    lately = rng.binomial(long_ago, 0.4)
    opened = pd.Timestamp("2012-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), unit="D")
    defaulted = rng.random(n) < 0.15
    default_day = opened + pd.to_timedelta(rng.integers(10, 1200, n), unit="D")
    employers = np.array([f"company {k}" for k in range(60)])
    rent, food = np.round(rng.gamma(4, 200, n), 0), np.round(rng.gamma(5, 80, n), 0)
    X = pd.DataFrame(
        {
            "age": age,
            "birth_year": 2024 - age,
            "employment": pd.Categorical(np.where(unemployed, "none", rng.choice(["full", "part"], n, p=[0.8, 0.2]))),
            "employer": pd.Categorical(np.where(unemployed, "none", employers[rng.integers(0, 60, n)])),
            "salary": salary,
            "debt_eur": debt,
            "debt_nok": np.round(11.5 * debt, 0),
            "enquiries_year": long_ago,
            "enquiries_quarter": lately,
            "children": rng.poisson(0.9, n),
            "opened": opened,
            "default_day": pd.Series(default_day).where(defaulted),
            "savings": np.where(rng.random(n) < 0.3, 0.0, np.round(np.exp(8 + rng.normal(size=n)), -2)),
            "rent": rent,
            "food": food,
            "spending": rent + food,
        }
    )
    risk = -1.2 * np.log1p(salary / 20_000) + debt / 8000 + 0.3 * lately + defaulted - X["savings"] / 20_000
    return X, (risk + rng.logistic(size=n) * 0.7 < 0).to_numpy()


def messy_question(n: int, skip: int = 0) -> Question:
    """Return the problem of refused customers; the model reads dates as days."""
    X, repaid = messy_customers(2000)
    model = _logistic(_days(X), repaid)

    def score(rows: pd.DataFrame) -> np.ndarray:
        return model.predict_proba(_days(rows))[:, 1]

    return Question(X, X[score(X) < 0.5].iloc[skip : skip + n], score, (0.5, 1.0), ["age"])


def _days(rows: pd.DataFrame) -> pd.DataFrame:
    out = rows.copy()
    for name in ("opened", "default_day"):
        days = (pd.to_datetime(rows[name]) - pd.Timestamp("2010-01-01")).dt.days.astype(float)
        out[name] = days.fillna(0.0)
    return out


def count_impossible_changes(rows: pd.DataFrame, steps: pd.DataFrame) -> dict[str, float]:
    """Count answers that split copies, violate relations, or change the past or a name."""
    changed = steps > 0
    copies = [changed["debt_eur"] != changed["debt_nok"], changed["birth_year"]]
    none = rows["employment"].astype(str) == "none"
    broken = [
        rows["enquiries_quarter"] > rows["enquiries_year"],
        (rows["spending"].astype(float) - rows["rent"] - rows["food"]).abs() > 0.5,
        (rows["salary"].astype(float) == 0) != none,
        (rows["employer"].astype(str) == "none") != none,
        pd.to_datetime(rows["default_day"]) < pd.to_datetime(rows["opened"]),
    ]
    past = changed[["opened", "default_day", "children"]].any(axis=1)
    return {
        "copies split": int(np.logical_or.reduce([c.to_numpy() for c in copies]).sum()),
        "relations": int(np.logical_or.reduce([b.to_numpy() for b in broken]).sum()),
        "past": int(past.sum()),
        "name": int(changed["employer"].sum()),
    }


def run_messy(n: int, skip: int, floors: list[float]) -> Iterator[Line]:
    """Step 2."""
    question = messy_question(n, skip)
    for way, answers in question.answers(floors):
        odd = count_impossible_changes(answers.rows, question.changes(answers.rows))
        yield Line("messy", way, question.figures(answers) | odd)


# ---------------------------------------------------------------- known processes


@dataclass(frozen=True)
class Process:
    """A known process: draws, the log of its density, and a model."""

    draw: Callable[[int, np.random.Generator], pd.DataFrame]
    log_density: Callable[[pd.DataFrame], np.ndarray]
    score: Callable[[pd.DataFrame], np.ndarray]
    least: float
    fixed: list[str]


def draw_gaussians(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw six normals with correlation 0.5."""
    values = np.sqrt(0.5) * (rng.standard_normal((n, 1)) + rng.standard_normal((n, 6)))
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(6)])


def gaussians_density(rows: pd.DataFrame) -> np.ndarray:
    """Return the log density of `draw_gaussians`."""
    covariance = 0.5 * (np.eye(6) + np.ones((6, 6)))
    return scipy.stats.multivariate_normal(np.zeros(6), covariance).logpdf(rows.to_numpy())


MOON_NOISE, RING_NOISE = 0.1, 0.08
_ANGLES = (np.arange(400) + 0.5) / 400 * np.pi
_MOONS = np.vstack(
    [
        np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)]),
        np.column_stack([1 - np.cos(_ANGLES), 0.5 - np.sin(_ANGLES)]),
    ]
)


def draw_moons(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw two half moons in the first two columns, a ring in the others."""
    angle, second = np.pi * rng.random(n), rng.random(n) < 0.5
    x = np.where(second, 1 - np.cos(angle), np.cos(angle))
    y = np.where(second, 0.5 - np.sin(angle), np.sin(angle))
    moons = np.column_stack([x, y]) + MOON_NOISE * rng.standard_normal((n, 2))
    turn, radius = 2 * np.pi * rng.random(n), 1 + RING_NOISE * rng.standard_normal(n)
    ring = np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
    return pd.DataFrame(np.hstack([moons, ring]), columns=["a", "b", "c", "d"])


def moons_density(rows: pd.DataFrame) -> np.ndarray:
    """Return the log density of `draw_moons`: an integral over the arcs, times that of radius and angle."""
    points = rows.to_numpy()
    square = ((points[:, None, :2] - _MOONS[None]) ** 2).sum(axis=2) / (2 * MOON_NOISE**2)
    moons = scipy.special.logsumexp(-square, axis=1) - np.log(len(_MOONS) * 2 * np.pi * MOON_NOISE**2)
    radius = np.hypot(points[:, 2], points[:, 3])
    ring = scipy.stats.norm.logpdf(radius, 1, RING_NOISE) - np.log(2 * np.pi * np.maximum(radius, 1e-9))
    return np.asarray(moons + ring)


_TAILS = scipy.stats.multivariate_t(np.zeros(5), 0.5 * (np.eye(5) + np.ones((5, 5))), df=3)


def draw_tails(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw five correlated columns with heavy tails."""
    return pd.DataFrame(_TAILS.rvs(n, random_state=rng), columns=list("abcde"))


def tails_density(rows: pd.DataFrame) -> np.ndarray:
    """Return the log density of `draw_tails`."""
    return np.asarray(_TAILS.logpdf(rows.to_numpy()))


REGION, CAR = np.array([0.4, 0.3, 0.2, 0.1]), np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
JOB = np.array([[0.8, 0.1, 0.1], [0.3, 0.3, 0.4], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2]])
HOME = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.05, 0.15, 0.8]])
DEGREE = np.array([[0.6, 0.25, 0.1, 0.05], [0.1, 0.5, 0.3, 0.1], [0.05, 0.15, 0.3, 0.5]])
KIDS, CARDS = np.array([0.5, 1.5, 3.0]), np.array([[1.0, 2.0, 4.0], [2.0, 3.0, 5.0], [1.0, 4.0, 6.0]])
LATE = np.array([0.3, 1.0, 2.5])
OF_LEVELS = {"region": "NESW", "job": "abc", "home": "xyz", "car": "ny", "degree": "pqrs"}


def draw_levels(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw five columns of levels and three counts, each given the preceding ones."""

    def choose(shares: np.ndarray) -> np.ndarray:
        return (rng.random(n)[:, None] > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)

    region = choose(np.tile(REGION, (n, 1)))
    job = choose(JOB[region])
    home = choose(HOME[job])
    codes = {"region": region, "job": job, "home": home, "car": choose(CAR[home]), "degree": choose(DEGREE[job])}
    kids = rng.poisson(KIDS[home])
    counts = {"kids": kids, "cards": rng.poisson(CARDS[job, home]), "late": rng.poisson(LATE[np.minimum(kids, 2)])}
    levels = {name: np.array(list(OF_LEVELS[name]))[code] for name, code in codes.items()}
    return pd.DataFrame(levels).assign(**{name: count.astype(float) for name, count in counts.items()})


def _codes(rows: pd.DataFrame) -> list[np.ndarray]:
    levels = [pd.Categorical(rows[name].astype(str), list(of)).codes.astype(int) for name, of in OF_LEVELS.items()]
    return [*levels, *(rows[name].to_numpy(float).astype(int) for name in ("kids", "cards", "late"))]


def levels_density(rows: pd.DataFrame) -> np.ndarray:
    """Return the log probability of `draw_levels`."""
    region, job, home, car, degree, kids, cards, late = _codes(rows)
    shares = REGION[region] * JOB[region, job] * HOME[job, home] * CAR[home, car] * DEGREE[job, degree]
    counts = scipy.stats.poisson.logpmf(kids, KIDS[home]) + scipy.stats.poisson.logpmf(cards, CARDS[job, home])
    return np.asarray(np.log(shares) + counts + scipy.stats.poisson.logpmf(late, LATE[np.minimum(kids, 2)]))


def levels_score(rows: pd.DataFrame) -> np.ndarray:
    """Return the score of levels and counts."""
    region, job, home, car, degree, kids, cards, late = _codes(rows)
    levels = 0.5 * (home == 0) + 0.6 * (job == 1) + 0.4 * car + 0.3 * degree + 0.3 * (region == 2)
    return np.asarray(levels + 0.2 * kids - 0.5 * late - 0.15 * cards)


def _links(x: dict[str, np.ndarray]) -> dict[str, tuple[Callable[[], np.ndarray], float]]:
    """Return the mean of each column given the preceding ones, and its standard deviation."""
    return {
        "a": (lambda: np.zeros(1), 1.0),
        "b": (lambda: 0.7 * x["a"] ** 2 - 0.7, 0.5),
        "c": (lambda: np.sin(2 * x["a"]) + 0.5 * x["b"], 0.4),
        "d": (lambda: np.abs(x["c"]) * x["a"], 0.5),
        "e": (lambda: np.tanh(2 * x["d"]) + 0.3 * x["b"], 0.3),
        "f": (lambda: 0.5 * x["e"] * x["c"], 0.5),
        "g": (lambda: np.where(x["f"] > 0, 1.5, -1.5) + 0.3 * x["a"], 0.5),
        "h": (lambda: 0.5 * x["g"] ** 2 - 0.5 * x["e"], 0.6),
    }


def draw_chain(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw eight columns, each a non-linear function of preceding ones plus noise."""
    x: dict[str, np.ndarray] = {}
    for name, (mean, deviation) in _links(x).items():
        x[name] = mean() + deviation * rng.standard_normal(n)
    return pd.DataFrame(x)


def chain_density(rows: pd.DataFrame) -> np.ndarray:
    """Return the log density of `draw_chain`."""
    x = {name: rows[name].to_numpy(float) for name in "abcdefgh"}
    return np.asarray(sum(scipy.stats.norm.logpdf(x[name], mean(), sd) for name, (mean, sd) in _links(x).items()))


CHAIN_WEIGHTS = np.array([1.0, 1.0, 0.5, 0.0, -0.3, 0.4, 0.3, 0.2])
PROCESSES = {
    "gaussians": Process(draw_gaussians, gaussians_density, lambda r: r.to_numpy().sum(axis=1), 2.0, ["x0"]),
    "moons": Process(
        draw_moons, moons_density, lambda r: (r["a"] + 0.5 * r["b"] + r["c"] + 0.5 * r["d"]).to_numpy(), 1.2, []
    ),
    "tails": Process(draw_tails, tails_density, lambda r: r.to_numpy().sum(axis=1), 2.0, ["a"]),
    "levels": Process(draw_levels, levels_density, levels_score, 1.2, ["region"]),
    "chain": Process(draw_chain, chain_density, lambda r: r.to_numpy(float) @ CHAIN_WEIGHTS, 1.4, []),
}


def process_question(name: str, n: int, skip: int = 0) -> Question:
    """Return the problem of a known process."""
    process, rng = PROCESSES[name], np.random.default_rng(5)
    X = process.draw(3000, rng)
    factuals = X[process.score(X) < process.least].iloc[skip : skip + n]
    return Question(X, factuals, process.score, (process.least, np.inf), process.fixed)


def run_process(name: str, n: int, skip: int, floors: list[float]) -> Iterator[Line]:
    """Step 3."""
    process, question = PROCESSES[name], process_question(name, n, skip)
    fresh = process.draw(20_000, np.random.default_rng(6))
    density = process.log_density(fresh)
    level = float(np.quantile(density, LEVEL))

    own = pd.Series(process.log_density(question.factuals), question.factuals.index)

    def true(rows: pd.DataFrame) -> dict[str, float]:
        """Return the share of dense rows: of all, by factual, and with those that are as dense as their factual."""
        after, before = process.log_density(rows[question.X.columns]), own[rows.index].to_numpy()
        dense, usual = after >= level, before >= level
        return {
            "true": float(dense.mean()),
            "usual factuals": int(usual.sum()),
            "true, usual": float(dense[usual].mean()),
            "true, unusual": float(dense[~usual].mean()),
            "true or kept": float((after >= np.minimum(level, before)).mean()),
        }

    for way, answers in question.answers(floors):
        yield Line(name, way, question.figures(answers) | true(answers.rows))
    for floor in floors:
        begun = time.process_time()
        ruled = replace(question, constraints=(mcce.joint_density(question.X, floor),))
        fitted = time.process_time() - begun
        for way, answers in ruled.answers([floor]):
            answers = replace(answers, seconds=fitted + answers.seconds)
            yield Line(name, f"{way}, joint density", question.figures(answers) | true(answers.rows))
    accepted = fresh[process.score(fresh) >= process.least]
    yield Line(name, REAL, {"n": len(accepted), "true": float((process.log_density(accepted) >= level).mean())})


# ---------------------------------------------------------------- the paper's data sets


class Judges:
    """Judges fitted on rows that no method uses: which rows are below the 5 per cent level of real ones."""

    def __init__(self, rows: np.ndarray, seed: int = 0) -> None:
        order = np.random.default_rng(seed).permutation(len(rows))
        held = min(MOST_JUDGING, len(rows) // 3)
        level, learn = rows[order[:held]], rows[order[held : held + MOST_JUDGING]]
        self.mean, self.sd = learn.mean(axis=0), np.where(learn.std(axis=0) > 0, learn.std(axis=0), 1.0)
        points = self._points(learn)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about equal rows and components that have not converged
            self.judges = {
                "lof": LocalOutlierFactor(n_neighbors=20, novelty=True).fit(points),
                "forest": IsolationForest(n_estimators=200, random_state=seed).fit(points),
                "mixture": GaussianMixture(n_components=10, reg_covar=1e-3, max_iter=50, random_state=seed).fit(points),
            }
            self.levels = {name: np.quantile(scores, LEVEL) for name, scores in self._scores(level).items()}

    def below(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return, by judge, which rows are below the level."""
        return {name: scores < self.levels[name] for name, scores in self._scores(rows).items()}

    def _points(self, rows: np.ndarray) -> np.ndarray:
        return (rows - self.mean) / self.sd

    def _scores(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: judge.score_samples(self._points(rows)) for name, judge in self.judges.items()}


@dataclass(frozen=True)
class Case:
    """A data set of the paper: the problem on one half of its rows, judges on the other, and refits of the model."""

    name: str
    problem: Problem
    judges: Judges
    refits: list[Any]
    real: pd.DataFrame

    @property
    def question(self) -> Question:
        """The problem in the form of this benchmark."""
        p = self.problem
        return Question(p.X, p.factuals, p.score, p.decision, p.fixed, p.kinds)

    def judge(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the figures of numeric rows, one column for each judge."""
        frame = self.problem.decode(rows)
        out: dict[str, np.ndarray] = {k: v.astype(float) for k, v in self.judges.below(rows.to_numpy()).items()}
        accepted = [self.problem.decision.contains(m.predict_proba(frame)[:, 1]) for m in self.refits]
        out["lasts"] = np.mean(accepted, axis=0) if accepted else np.full(len(rows), np.nan)
        if self.name == "fico":
            out["broken"] = broken_definitions(frame).astype(float)
        return pd.DataFrame(out, index=rows.index)


def broken_definitions(rows: pd.DataFrame) -> np.ndarray:
    """Return which rows of FICO violate a definition: enquiries without the last week cannot exceed all enquiries."""
    return (rows["NumInqLast6Mexcl7days"] > rows["NumInqLast6M"]).to_numpy()


def make_case(name: str, n: int, folder: Path | None, refits: int = REFITS, skip: int = 0) -> Case:
    """Train the network on all rows, and split them into halves."""
    whole = make_problem(Setting(name, name, name, "mlp", 10**9, 1000), folder)
    half = np.random.default_rng(11).permutation(len(whole.X))
    mine, theirs = np.sort(half[: len(half) // 2]), np.sort(half[len(half) // 2 :])
    X = whole.X.iloc[mine]
    factuals = X[~whole.decision.contains(whole.score(X))].iloc[skip : skip + n]
    y = load_data(name, folder)[0].wanted.astype(int)
    model, again = whole.score.model, []  # type: ignore[attr-defined]
    for k in range(refits):
        some = np.random.default_rng([12, k]).integers(0, len(y), len(y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            again.append(clone(model).fit(whole.X.iloc[some], np.asarray(y)[some]))
    judges = Judges(whole.encode(whole.X.iloc[theirs]).to_numpy())
    accepted = X[whole.decision.contains(whole.score(X))]
    real = accepted.sample(min(len(accepted), 1000), random_state=0)
    return Case(name, replace(whole, X=X, factuals=factuals), judges, again, whole.encode(real))


def run_paper(name: str, n: int, skip: int, floors: list[float], folder: Path | None, refits: int) -> Iterator[Line]:
    """Step 4."""
    case = make_case(name, n, folder, refits, skip)
    question = case.question
    begun = time.process_time()
    held = Answers(run_walk(case.problem, held=True).rows, 0.0, time.process_time() - begun)
    of_walk = case.judge(held.rows)
    decoded = case.problem.decode(held.rows)
    yield Line(name, HELD, question.figures(replace(held, rows=decoded)) | of_walk.mean().to_dict())
    for way, answers in question.answers(floors):
        judged = case.judge(case.problem.encode(answers.rows))
        yield Line(name, way, question.figures(answers) | judged.mean().to_dict() | paired(judged, of_walk))
    yield Line(name, REAL, {"n": len(case.real)} | case.judge(case.real).mean().to_dict())


def paired(ours: pd.DataFrame, walk: pd.DataFrame) -> dict[str, str]:
    """Return mean differences from the walk, with standard errors, over the factuals that both explain."""
    both = ours.index.intersection(walk.index)
    gap = ours.loc[both] - walk.loc[both]
    return {f"+/- {c}": f"{gap[c].mean():+.3f} ({gap[c].std() / max(len(gap), 1) ** 0.5:.3f})" for c in gap}


# ---------------------------------------------------------------- the page


def show(page: Page, lines: list[Line]) -> None:
    """Print the lines of a part."""
    names = list(dict.fromkeys(name for line in lines for name in line.figures))

    def cell(value: float | str | None) -> str:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return ""
        return value if isinstance(value, str) else str(value) if isinstance(value, int) else f"{value:.3f}"

    page.table(["", *names], [[line.way, *(cell(line.figures.get(name)) for name in names)] for line in lines])


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advice", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", default=",".join(PARTS), help=f"comma-separated, of: {', '.join(PARTS)}")
    parser.add_argument("--factuals", type=int, default=200, help="factuals of each part; at most 500 of the loans")
    parser.add_argument("--skip", type=int, default=0, help="factuals to skip before these")
    parser.add_argument("--floors", default=FLOORS, help="floors, comma-separated")
    parser.add_argument("--refits", type=int, default=REFITS, help="bootstrap refits of the networks")
    parser.add_argument("--out", type=Path, help="write FILE.md and FILE.json")
    parser.add_argument("--beside", type=Path, help="FILE.json of another version, for comparison")
    chosen = parser.parse_args(arguments)
    names = read_names(parser, "--only", chosen.only, PARTS)
    floors = read_shares(parser, "--floors", chosen.floors)
    other = [Line(**each) for each in json.loads(chosen.beside.read_text())] if chosen.beside else []
    page = Page("Are counterfactuals fit to send?")
    page.write_line(report.about(describe_machine()))
    page.write_line(NOTES)
    n, skip, lines = chosen.factuals, chosen.skip, []
    runs: dict[str, Callable[[], Iterator[Line]]] = {
        "loans": lambda: run_loans(500 if n == 200 else n, skip, floors),
        "messy": lambda: run_messy(n, skip, floors),
        **{name: partial(run_process, name, n, skip, floors) for name in PROCESSES},
        **{name: partial(run_paper, name, n, skip, floors, find_data(chosen.data), chosen.refits) for name in PAPER},
    }
    for name in names:
        page.title(name)
        found = list(runs[name]())
        before = [replace(line, way=f"before: {line.way}") for line in other if line.part == name]
        show(page, [*before, *found])
        lines += found
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
        figures = [{"part": line.part, "way": line.way, "figures": line.figures} for line in lines]
        chosen.out.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
