"""Costs of differential privacy: generated rows and counterfactuals at several epsilons, compared with plain trees.

    python -m benchmarks.dp [--data DIR] [--only adult,loans] [--epsilon 0.1,1,3,10] [--repeats R] [--out FILE]
                            [--training DIR] [--rows DIR]

1. Set aside a fifth of the rows, at most 5000; train the model (gradient boosting) on the others, and fit explainers to
   these: trees (`cart`) and `mcce.Privacy`, with the public bounds below, R times for each epsilon, with other noise.
2. Realism: how well a forest distinguishes generated rows from the rows set aside (`mcce.diagnostics.discriminator`).
3. Counterfactuals of 200 of the rows set aside that do not have the wanted decision: whole draws as in the paper, and
   sparse ones.
4. Private generators of other packages are measured by rows that they drew (`benchmarks/dp_others.py`).
   `--training DIR` writes their training rows with the decision, DATA.csv, and the public information, DATA.json;
   `--rows DIR` reads their draws, DATA-LABEL.csv with the same columns, for each label. These rows are a joint
   generator (`ReadyRows`): a candidate is a row with the factual's decision and levels of fixed features that is among
   the nearest by fixed numbers; these are then set to the factual's.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import mcce
from benchmarks import report
from benchmarks.page import Page, read_names
from benchmarks.settings import Probability, find_data, load_data
from benchmarks.speed import describe_machine
from mcce.diagnostics import discriminator

DATA = ("adult", "loans")
EPSILONS = (0.1, 1.0, 3.0, 10.0)
NEAREST = 200
DECISION = "<decision>"
WANTED = {"adult": 0.5, "loans": 0.9}
# stated independently of the rows; more than two numbers are the edges of bins
BOUNDS: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {
        "age": (17, 90),
        "fnlwgt": (0, 50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 400_000, 600_000, 1_500_000),
        "education-num": (1, 16),
        "capital-gain": (0, 1, 2500, 5000, 7500, 10_000, 20_000, 100_000),
        "capital-loss": (0, 1, 1500, 1750, 2000, 2500, 5000),
        "hours-per-week": (1, 20, 30, 36, 40, 41, 46, 51, 61, 100),
    },
    "loans": {
        "age": (18, 90),
        "years_employed": (0, 60),
        "salary": (0, 20_000, 30_000, 40_000, 50_000, 60_000, 80_000, 120_000, 500_000),
        "savings": (0, 1, 5000, 10_000, 20_000, 40_000, 80_000, 160_000, 1_000_000),
        "loan_amount": (0, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000),
    },
}
HEAD = ["", "discriminator", "explained", "L0", "L1", "valid draws", "sparse: explained", "L0", "L1"]
NOTES = """\
discriminator: accuracy of a random forest that distinguishes generated rows from rows set aside; 0.5 is chance.
explained: share of factuals with a counterfactual (all of these are valid). L0: features changed; L1: Gower distance
summed over the features, scaled by the ranges of the training rows. valid draws: share of candidates with the wanted
decision. sparse: the same with sparse=True, floor=0.05; a private explainer fits the plausibility to synthetic rows.
Means over the repeats. epsilon covers the whole fit: fixed features, decision and all others."""


class ReadyRows:
    """Given rows, resampled conditionally on fixed values: a model for `mcce.generators.SampleGenerator`."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.rows = rows

    def fit(self, X: pd.DataFrame) -> None:
        """Store only the dtypes of the training rows."""
        self.rows = self.rows[X.columns].astype(X.dtypes.to_dict())

    def sample(self, n: int, given: dict[Any, Any], random_state: int) -> pd.DataFrame:
        """Return rows with the given levels, if any, and the nearest numbers."""
        alike, numbers = self.rows, []
        for name, value in given.items():
            if pd.api.types.is_numeric_dtype(alike[name].dtype) and not pd.api.types.is_bool_dtype(alike[name].dtype):
                numbers.append(name)
            elif (same := alike[name] == value).any():
                alike = alike[same]
        away = sum((alike[name] - given[name]).abs() / max(np.ptp(self.rows[name]), 1) for name in numbers)
        if numbers:
            alike = alike.iloc[np.argsort(np.asarray(away), kind="stable")[:NEAREST]]
        return alike.sample(n, replace=True, random_state=random_state)


def public(name: str, X: pd.DataFrame) -> dict[str, dict[str, list[Any]]]:
    """Return the bin edges of numbers, as in the samplers of mcce, and the levels of categories."""
    private = mcce.Privacy(bounds=BOUNDS[name], levels="dtype", max_depth=0)
    samplers = mcce.ChainModel(sampler=private).fit(X.head(10), progress=False).samplers_  # bins ignore the rows
    levels = {c: [str(v) for v in X[c].cat.categories] for c in X if isinstance(X[c].dtype, pd.CategoricalDtype)}
    return {"edges": {c: samplers[c].bins_.edges.tolist() for c in BOUNDS[name]}, "levels": levels}


def measure_ready(
    explainer: Any, rows: pd.DataFrame, new: pd.DataFrame, factuals: pd.DataFrame, schema: mcce.Schema
) -> dict[str, float]:
    """Return the figures of given rows: unchanged for realism, by the paper's method for counterfactuals (step 4)."""
    known = rows[new.columns].astype(new.dtypes.to_dict())
    drawn = known.sample(len(new), replace=len(known) < len(new), random_state=0).reset_index(drop=True)
    return {"discriminator": discriminator(new, drawn, n_seeds=2, n_trees=100, n_jobs=1).accuracy} | found_by(
        explainer, factuals, schema, (False,)
    )


def measure(explainer: Any, new: pd.DataFrame, factuals: pd.DataFrame, schema: mcce.Schema) -> dict[str, float]:
    """Return the figures of one fitted explainer (steps 2 and 3)."""
    drawn = explainer.generator_.sample(len(new), progress=False).reset_index(drop=True)
    discriminated = discriminator(new, drawn[new.columns], n_seeds=2, n_trees=100, n_jobs=1)
    return {"discriminator": discriminated.accuracy} | found_by(explainer, factuals, schema, (False, True))


def found_by(explainer: Any, factuals: pd.DataFrame, schema: mcce.Schema, ways: tuple[bool, ...]) -> dict[str, float]:
    """Return the figures of counterfactuals, whole or sparse (step 3)."""
    figures = {}
    candidates = explainer.generate(factuals, n_samples=100, progress=False)
    figures["valid"] = float(np.mean(explainer.decision_.evaluate(candidates, "candidates").wanted))
    for sparse in ways:
        found = explainer.explain(factuals, sparse=sparse, progress=False)
        of = factuals.loc[found.frame.index.get_level_values(0)]
        distance = mcce.gower_distance(found.frame.reset_index(drop=True), of, training=schema) if len(found) else []
        figures |= {
            f"explained {sparse}": len(found) / len(factuals),
            f"L0 {sparse}": found.measures["L0"].mean(),
            f"L1 {sparse}": float(np.mean(distance)) * len(schema),
        }
    return figures


def run(
    name: str,
    folder: Path | None,
    epsilons: list[float],
    repeats: int,
    training: Path | None = None,
    ready: Path | None = None,
) -> tuple[pd.DataFrame, str, bool]:
    """Return the figures by sampler, a title, and whether the data is a stand-in."""
    data, standin = load_data(name, folder)
    order = np.random.default_rng(0).permutation(len(data.X))
    n_new = min(5000, len(order) // 5)
    X, new = data.X.iloc[order[n_new:]].reset_index(drop=True), data.X.iloc[order[:n_new]].reset_index(drop=True)
    y = np.asarray(data.wanted, dtype=int)[order[n_new:]]
    score = Probability(HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype").fit(X, y))
    decision = mcce.Interval(WANTED[name], 1.0)
    factuals = new[~decision.contains(score(new))].head(200)
    schema = mcce.Schema.from_data(data.X)
    if training is not None:
        X.assign(**{DECISION: decision.contains(score(X))}).to_csv(training / f"{name}.csv", index=False)
        (training / f"{name}.json").write_text(json.dumps(public(name, X)))
    lines = []
    samplers: list[tuple[str, Any, int]] = [("cart, not private", "cart", 1)]
    for epsilon in epsilons:
        private = mcce.Privacy(epsilon=epsilon, bounds=BOUNDS[name], levels="dtype")
        samplers.append((f"epsilon {epsilon:g}", private, repeats))
    delta = 1e-6
    private = mcce.Privacy(epsilon=1.0, delta=delta, bounds=BOUNDS[name], levels="dtype")
    samplers.append((f"epsilon 1, delta {delta:g}", private, repeats))
    for label, sampler, times in samplers:
        for repeat in range(times):
            explainer = mcce.MCCE(score, decision=decision, fixed=data.fixed, sampler=sampler, random_state=repeat + 1)
            explainer.fit(X, progress=False)
            lines.append({"sampler": label, **measure(explainer, new, factuals, schema)})
            print(label, lines[-1], flush=True)
    for path in [] if ready is None else sorted(ready.glob(f"{name}-*.csv")):
        rows = pd.read_csv(path, keep_default_na=False)
        generator = mcce.generators.SampleGenerator(ReadyRows(rows), fixed=data.fixed, random_state=1)
        explainer = mcce.MCCE(score, decision=decision, fixed=data.fixed, generator=generator)
        explainer.fit(X, progress=False)
        label = path.stem.removeprefix(f"{name}-")
        lines.append({"sampler": label, **measure_ready(explainer, rows, new, factuals, schema)})
        print(label, lines[-1], flush=True)
    figures = pd.DataFrame(lines).groupby("sampler", sort=False).mean()
    return figures, f"{name}: {len(X):,} rows, {len(schema)} features and a decision", standin


def _figure(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dp", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", default=",".join(DATA), help=f"comma-separated, of: {', '.join(DATA)}")
    parser.add_argument("--epsilon", default=",".join(f"{e:g}" for e in EPSILONS), help="comma-separated")
    parser.add_argument("--repeats", type=int, default=3, help="fits for each epsilon")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    parser.add_argument("--training", type=Path, help="folder to write the training rows to, for other packages")
    parser.add_argument("--rows", type=Path, help="folder with the rows that other packages drew")
    chosen = parser.parse_args(arguments)
    names = read_names(parser, "--only", chosen.only, DATA)
    page = Page("What differential privacy costs")
    page.write_line(report.about(describe_machine()))
    page.write_line(NOTES)
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mcce.MCCEWarning)
            epsilons = [float(text) for text in chosen.epsilon.split(",")]
            figures, title, standin = run(
                name, find_data(chosen.data), epsilons, chosen.repeats, chosen.training, chosen.rows
            )
        page.title(title)
        if standin:
            page.write_line(report.STANDIN)
        columns = ["discriminator", "explained False", "L0 False", "L1 False", "valid"]
        columns += ["explained True", "L0 True", "L1 True"]
        page.table(HEAD, [[label, *(_figure(row[c]) for c in columns)] for label, row in figures.iterrows()])
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
