"""Conditional samplers on processes whose truth is known: as conditionals, and by the answers that they lead to.

    python -m benchmarks.samplers [--other PYTHON] [--samplers cart,...] [--only conditionals|answers] [--quick]

1. Conditionals: y given three columns in six processes, 1,500 training rows, 2,500 fresh ones. The loss (CRPS of
   numbers, Brier score of levels, from 100 draws a row) above that of draws from the truth in per cent, the mean log
   score minus that of the truth (with a uniform part of 0.001), CPU milliseconds of `fit`, microseconds of a draw.
2. Answers: refused people of five known processes (`benchmarks.known`), explained by the plain method with draws of
   their own, and by the sparse search at the floor .1; the share of answers that are likely, with its standard error
   over data seeds, and the changes per answer.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.known import KNOWN, Known
from benchmarks.settings import Report, arguments, emit, interpreters, run_worker

N_TRAIN, N_NEW, N_DRAWS = 1500, 2500, 100
UNIFORM = 1e-3  # part of the log score, so that an impossible value costs about log 0.001
CONDITIONALS = ["marginal", "cart", "ctree", "forest", "norm", "normrank", "pmm", "copula", "mixture", "twopart"]
CONDITIONALS += ["negbin", "gamma", "quantile", "polyreg", "estimator"]
ANSWERS = ["marginal", "cart", "ctree", "parametric", "mixture"]
FLOOR, CASES, SEEDS = 0.1, 60, 4


@dataclass(frozen=True)
class Process:
    """y given three columns `x0`, `x1`, `g`: draws of y, its log density, and the sampler's names that suit it."""

    name: str
    draw: Callable[[np.random.Generator, pd.DataFrame], np.ndarray]
    log_density: Callable[[pd.DataFrame, np.ndarray], np.ndarray]
    atoms: tuple[float, ...] | None = ()  # values with point mass; None for all values

    def target(self, y: np.ndarray) -> Any:
        """Return draws as a column."""
        return pd.Categorical.from_codes(y.astype(int), list("abcd")) if self.name == "levels" else y


def givens(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Return two numbers and a level."""
    g = pd.Categorical.from_codes(rng.integers(0, 3, n), list("abc"))
    return pd.DataFrame({"x0": rng.standard_normal(n), "x1": rng.standard_normal(n), "g": g})


def _code(x: pd.DataFrame) -> np.ndarray:
    return x["g"].cat.codes.to_numpy()


def _line(x: pd.DataFrame) -> np.ndarray:
    return (x["x0"] - 0.5 * x["x1"]).to_numpy() + np.array([0.0, 1.0, -1.0])[_code(x)]


def _curve(x: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, spread, and the distance of the two modes, which only one group has."""
    mean = 2 * np.sin(2 * x["x0"].to_numpy()) * np.where(_code(x) == 1, -1.0, 1.0) + x["x1"].to_numpy() * (
        _code(x) == 0
    )
    return mean, 0.3 * np.exp(0.5 * x["x1"].to_numpy()), np.where(_code(x) == 2, 2.0, 0.0)


def _draw_curve(rng: np.random.Generator, x: pd.DataFrame) -> np.ndarray:
    mean, spread, apart = _curve(x)
    return mean + apart * rng.choice([-1, 1], len(x)) + spread * rng.standard_normal(len(x))


def _curve_density(x: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    mean, spread, apart = _curve(x)
    modes = [stats.norm.logpdf(y, mean + sign * apart, spread) for sign in (-1, 1)]
    return np.asarray(np.logaddexp(*modes) - np.log(2))


def _p_zero(x: pd.DataFrame) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-(0.8 * x["x1"].to_numpy() - 0.5 + (_code(x) == 1)))))


def _draw_zeros(rng: np.random.Generator, x: pd.DataFrame) -> np.ndarray:
    y = np.exp(1 + 0.6 * x["x0"].to_numpy() + 0.5 * rng.standard_normal(len(x)))
    return np.where(rng.random(len(x)) < _p_zero(x), 0.0, y)


def _zeros_density(x: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        rest = np.log1p(-_p_zero(x)) + stats.lognorm.logpdf(y, 0.5, scale=np.exp(1 + 0.6 * x["x0"].to_numpy()))
    return np.where(y == 0, np.log(_p_zero(x)), rest)


def _mean(x: pd.DataFrame) -> np.ndarray:
    return np.asarray(np.exp(1 + 0.5 * x["x0"].to_numpy() + 0.4 * (_code(x) == 2)))


def _level_shares(x: pd.DataFrame) -> np.ndarray:
    a, b, c = x["x0"].to_numpy(), x["x1"].to_numpy(), _code(x) - 1.0
    odds = np.exp(np.column_stack([1.5 * a * b, 1.5 * c * a, -1.5 * a * b * c, 0.5 * c * b]))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


PROCESSES = [
    Process("linear", lambda rng, x: rng.normal(_line(x), 1.0), lambda x, y: stats.norm.logpdf(y, _line(x), 1.0)),
    Process("curved", _draw_curve, _curve_density),
    Process("zeros", _draw_zeros, _zeros_density, (0.0,)),
    Process(
        "counts",
        lambda rng, x: rng.negative_binomial(3, 3 / (3 + _mean(x))).astype(float),
        lambda x, y: stats.nbinom.logpmf(y, 3, 3 / (3 + _mean(x))),
        None,
    ),
    Process(
        "gamma",
        lambda rng, x: rng.gamma(2.0, _mean(x) / 2),
        lambda x, y: stats.gamma.logpdf(y, 2.0, scale=_mean(x) / 2),
    ),
    Process(
        "levels",
        lambda rng, x: (rng.random(len(x))[:, None] > _level_shares(x).cumsum(axis=1)).sum(axis=1).clip(0, 3) * 1.0,
        lambda x, y: np.log(_level_shares(x)[np.arange(len(x)), y.astype(int)]),
        None,
    ),
]


# --------------------------------------------------------------------------------------------------------- measuring


def loss(draws: np.ndarray, y: np.ndarray, is_level: bool) -> np.ndarray:
    """Return the CRPS (or Brier score) of each row by its draws, without bias for their number."""
    m = draws.shape[1]
    if is_level:
        shares = np.stack([(draws == k).mean(axis=1) for k in range(4)], axis=1)
        return np.asarray(((shares - (y[:, None] == np.arange(4))) ** 2 - shares * (1 - shares) / (m - 1)).sum(axis=1))
    ordered = np.sort(draws, axis=1)
    between = 2 * (ordered * (2 * np.arange(1, m + 1) - m - 1)).sum(axis=1) / (m * (m - 1))
    return np.asarray(np.abs(draws - y[:, None]).mean(axis=1) - between / 2)


def log_score(log_density: np.ndarray, y: np.ndarray, seen: np.ndarray, atoms: tuple[float, ...] | None) -> float:
    """Return the mean log score, with a uniform part over the point masses and the range."""
    n_atoms = np.unique(seen).size if atoms is None else len(atoms)
    is_atom = np.ones(y.size, dtype=bool) if atoms is None else np.isin(y, atoms)
    uniform = np.where(is_atom, 1 / (n_atoms + 1), 1 / np.ptp(seen))
    return float(np.logaddexp(np.log1p(-UNIFORM) + log_density, np.log(UNIFORM * uniform)).mean())


def measure_conditional(process: Process, name: str, n_train: int, n_new: int) -> dict[str, float]:
    """Return the figures of a sampler on a process; they are computed from public methods of a chain."""
    import mcce

    rng = np.random.default_rng(5)
    x, new = givens(rng, n_train), givens(rng, n_new)
    y, y_new = process.draw(rng, x), process.draw(rng, new)
    repeated = new.loc[new.index.repeat(N_DRAWS)].reset_index(drop=True)
    truth = process.draw(rng, repeated).reshape(n_new, N_DRAWS)
    is_level = process.name == "levels"

    def make() -> Any:
        return mcce.ChainModel(fixed=list(x), sampler={"y": make_sampler(name, is_level)}, random_state=1)

    table = x.assign(y=process.target(y))
    make().fit(table.head(200)).sample(given=new.head(5))  # compiles
    begun = time.process_time()
    chain = make().fit(table)
    fitted = time.process_time()
    drawn = chain.sample(given=repeated)["y"]
    ended = time.process_time()
    values = (drawn.cat.codes if is_level else drawn).to_numpy(dtype=float).reshape(n_new, N_DRAWS)
    best = loss(truth, y_new, is_level).mean()
    figures = {
        "loss": 100 * (loss(values, y_new, is_level).mean() / best - 1),
        "fit_ms": 1e3 * (fitted - begun),
        "draw_us": 1e6 * (ended - fitted) / len(repeated),
    }
    try:
        density = chain.log_density(new.assign(y=process.target(y_new)))
    except mcce.exceptions.MCCEError:  # a sampler that only draws
        return figures
    density = density.to_numpy().reshape(n_new, -1).sum(axis=1)
    scores = [log_score(d, y_new, y, process.atoms) for d in (density, process.log_density(new, y_new))]
    return {**figures, "log_score": scores[0] - scores[1]}


def make_sampler(name: str, is_level: bool) -> Any:
    """Return a registered name, or a forest of scikit-learn as a conditional."""
    if name != "estimator":
        return name
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    import mcce

    forest = RandomForestClassifier if is_level else RandomForestRegressor
    return mcce.samplers.EstimatorSampler(forest(100, min_samples_leaf=5, random_state=1))


def measure_answers(known: Known, name: str, seed: int, n_train: int, n_cases: int) -> Iterator[dict[str, Any]]:
    """Yield share of likely answers and changes, of the plain and of the sparse search."""
    import mcce

    X, factuals = known.cases(seed, n_train, n_cases)
    explainer = mcce.MCCE(known.score, fixed=list(known.fixed), sampler=name, random_state=1).fit(X)
    for search, how in (("plain", {"independent": True}), ("sparse", {"sparse": True, "floor": FLOOR})):
        begun = time.process_time()
        found = explainer.explain(factuals, progress=False, **how)
        figures = {"seconds": time.process_time() - begun, "L0": found.measures["L0"].mean(), "answers": len(found)}
        yield {"search": search, "likely": known.is_likely(found.frame).mean(), **figures}


def work(task: dict[str, Any]) -> None:
    """Run the task of a worker: one sampler on all processes."""
    from mcce.exceptions import MCCEError

    name, quick = task["sampler"], task["quick"]
    if task["part"] == "conditionals":
        for process in PROCESSES:
            try:
                emit(
                    process=process.name,
                    **measure_conditional(process, name, *((300, 100) if quick else (N_TRAIN, N_NEW))),
                )
            except (MCCEError, ValueError) as error:  # a family that does not model such a column
                print(f"{process.name}, {name}: {str(error)[:150]}", file=sys.stderr)
        return
    for known in KNOWN:
        for seed in range(task["seeds"]) if known.name != "heavy tails" else ():
            for figures in measure_answers(known, name, seed, *((500, 5) if quick else (3000, CASES))):
                emit(process=known.name, **figures)


def run(report: Report, part: str, samplers: list[str], seeds: int, other: str | None, quick: bool) -> None:
    """Measure samplers in processes of their own, versions in turn."""
    for name in samplers:
        for version, python in interpreters(other).items():
            task = {"part": part, "sampler": name, "quick": quick, "seeds": seeds}
            records = pd.DataFrame(run_worker(python, "benchmarks.samplers", ["--worker", json.dumps(task)]))
            if records.empty:
                continue
            if part == "conditionals":
                for record in records.reindex(columns=["process", "loss", "log_score", "fit_ms", "draw_us"]).to_dict(
                    "records"
                ):
                    report.add(version=version, sampler=name, **record)
                continue
            for (process, search), group in records.groupby(["process", "search"], sort=False):
                error = group["likely"].sem() if len(group) > 1 else np.nan
                means = group[["likely", "L0", "answers", "seconds"]].mean().to_dict()
                report.add(version=version, sampler=name, process=process, search=search, **means, se=error)


def main() -> None:
    """Run the benchmark, or one of its workers."""
    parser = arguments(__doc__, "samplers")
    parser.add_argument("--other", help="interpreter with another version of mcce, measured in turns")
    parser.add_argument("--samplers", help="names, separated by commas")
    parser.add_argument("--only", choices=["conditionals", "answers"])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of the data of the answers (%(default)s)")
    parser.add_argument("--worker", help="(internal)")
    options = parser.parse_args()
    if options.worker:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work(json.loads(options.worker))
        return
    for part, default in (("conditionals", CONDITIONALS), ("answers", ANSWERS)):
        if options.only in (None, part):
            report = Report(f"samplers_{part}", options)
            names = options.samplers.split(",") if options.samplers else default[:3] if options.quick else default
            run(report, part, names, 1 if options.quick else options.seeds, options.other, options.quick)
            report.write()


if __name__ == "__main__":
    main()
