"""Comparison of sparse counterfactuals with those published by the authors of LiCE.

    python -m benchmarks.lice FOLDER [--data adult,credit] [--folds 0,1,2,3,4] [--floor 0.05] [--out FILE]

FOLDER is a checkout of the repository Epanemu/LiCE (Nemecek, Pevny and Marecek, ICLR 2025). It stores, for five folds
of Adult and German credit, the training rows, a network (ONNX), 100 factuals and the counterfactuals of eleven methods.

1. Explain the same factuals for the same networks under the same rules: the wanted decision is the other one; race and
   sex (on German credit three features) are fixed; age and, on Adult, education may only rise; more education, or more
   years in the job or the residence, needs a higher age.
2. For each factual take, as in the evaluation of the authors, the stored row of a method that it rates highest among
   those that are valid and keep the fixed features and directions.
3. Judge the rows of all methods by the same judges, which no search uses: the mean distance to the five nearest
   training rows, an isolation forest (for both the share beyond 95 % of real test rows), and three retrained networks.
   Methods are compared on the factuals that both explain, with paired standard errors.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier

import mcce
from benchmarks import report
from benchmarks.page import Page, read_names
from benchmarks.speed import describe_machine

METHODS = ["LiCE_optimize", "LiCE_median", "LiCE_quartile", "MIO_no_spn", "DiCE", "VAE", "FACE_knn", "PROPLACE"]
EDUCATION = ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"]
EDUCATION += ["Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"]
EMPLOYMENT = ["A71", "A72", "A73", "A74", "A75"]
FIGURES = ["L0", "L1", "near5", "far", "odd", "refits"]
OURS = "mcce, sparse"
TITLES = {"adult": "Adult", "credit": "German credit"}
NOTES = """\
Means over the factuals that a method explains within the rules (expl.). L1: sum of range-scaled differences, 1 for
another level. near5: mean distance, as L1, to the five nearest training rows. far, odd: share of rows beyond 95 % of
the real test rows by near5 and by an isolation forest. refits: share of three networks, trained on the same rows, that
return the decision. sec.: seconds per factual; for mcce including the fit, for the others as stored, on the machine of
the authors. The second table has means of mcce minus means of the other method on the factuals that both explain, with
paired standard errors."""
N_REFITS = 3
FLOOR = 0.05  # the default of sparse counterfactuals
QUANTILE = 0.95  # share of the real test rows beyond which a row is an outlier


@dataclass(frozen=True)
class Task:
    """The rules of one data set, and the encoding of its network."""

    ordered: dict[str, list[str]]
    fixed: tuple[str, ...]
    rising: tuple[str, ...]
    older: tuple[str, ...]  # an increase of these needs a higher age
    age: str

    def constraints(self) -> list[Any]:
        """Return the rules as constraints of `mcce`."""
        needs_age = [f"`{name}` <= was(`{name}`) or `{self.age}` > was(`{self.age}`)" for name in self.older]
        return [mcce.allow(name, direction="increase") for name in self.rising] + [mcce.rule(r) for r in needs_age]


TASKS = {
    "adult": Task(
        ordered={"education": EDUCATION},
        fixed=("race", "sex"),
        rising=("age", "education"),
        older=("education",),
        age="age",
    ),
    "credit": Task(
        ordered={"Present employment since": EMPLOYMENT},
        fixed=(
            "Number of people being liable to provide maintenance for",
            "Personal status and sex",
            "foreign worker",
        ),
        rising=("Age",),
        older=("Present residence since", "Present employment since"),
        age="Age",
    ),
}


class Network:
    """A stored network with the encoding of its authors: numbers scaled by their range, levels as indicators."""

    def __init__(self, score: Callable[[np.ndarray], np.ndarray], training: pd.DataFrame, task: Task) -> None:
        self.score = score
        self.task = task
        self.columns = list(training.columns)
        numbers = training.select_dtypes("number").columns
        self.ranges = {name: (training[name].min(), training[name].max()) for name in numbers}
        self.levels = {
            name: task.ordered.get(name, sorted(training[name].unique()))
            for name in self.columns
            if name not in numbers
        }

    def encode(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the encoded rows; for two levels there is one indicator, of the second."""
        parts = []
        for name in self.columns:
            if name in self.ranges:
                low, high = self.ranges[name]
                parts.append(((rows[name].astype(float) - low) / (high - low)).to_numpy()[:, None])
            else:
                indicators = rows[name].astype(str).to_numpy()[:, None] == np.array(self.levels[name], dtype=object)
                parts.append(indicators[:, 1:] if len(self.levels[name]) == 2 else indicators)
        return np.hstack(parts).astype(np.float32)

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        """Return one score per row; above 0 is the second class."""
        return self.score(self.encode(rows))


def load_onnx(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    """Return the network of a file as a function of encoded rows."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda encoded: np.asarray(session.run(None, {name: encoded})[0]).ravel()


class ArraysOnly(pickle.Unpickler):
    """An unpickler that reads arrays and plain values only."""

    def find_class(self, module: str, name: str) -> Any:
        """Return numpy's constructors of arrays, scalars and types."""
        from numpy._core import multiarray

        allowed = {"_reconstruct": multiarray._reconstruct, "scalar": multiarray.scalar, "ndarray": np.ndarray}
        if module.partition(".")[0] == "numpy" and name in {*allowed, "dtype"}:
            return allowed.get(name, np.dtype)
        raise pickle.UnpicklingError(f"the file holds {module}.{name}; only arrays are read")


def read_stored(file: BinaryIO, factuals: pd.DataFrame, network: Network) -> tuple[pd.DataFrame, pd.Series]:
    """Return the rows of one method by factual, and its seconds per factual (step 2)."""
    rows, seconds = {}, {}
    flips = {i: bool(score > 0) for i, score in zip(factuals.index, network(factuals), strict=True)}
    for i, result in ArraysOnly(file).load().items():
        seconds[i] = result["time"]
        stored = [row[: factuals.shape[1]] for row in np.asarray(result["CE"], dtype=object)]
        if not stored:
            continue
        frame = pd.DataFrame(stored, columns=factuals.columns).astype(object)
        frame = frame.where(frame.notna(), factuals.loc[[i] * len(frame)].reset_index(drop=True).astype(object))
        frame = frame.astype(factuals.dtypes.astype(object).where(factuals.dtypes != "int64", "float64").to_dict())
        valid = (network(frame) > 0) != flips[i]
        valid &= _keeps_rules(frame, factuals.loc[i], network.task)
        if valid.any():
            rated = result.get("stats", {}).get("ll_computed", [])
            order = np.asarray(rated) if len(rated) == len(frame) else -np.arange(len(frame))
            rows[i] = frame.loc[np.where(valid, order, -np.inf).argmax()]
    return pd.DataFrame.from_dict(rows, orient="index"), pd.Series(seconds)


def _keeps_rules(rows: pd.DataFrame, factual: pd.Series, task: Task) -> np.ndarray:
    """Return which rows keep fixed features and directions; the third kind of rule is not required of other methods."""
    kept = np.ones(len(rows), dtype=bool)
    for name in task.fixed:
        kept &= (rows[name] == factual[name]).to_numpy()
    for name in task.rising:
        if name in task.ordered:
            order = task.ordered[name]
            kept &= rows[name].map(order.index).to_numpy() >= order.index(factual[name])
        else:
            kept &= rows[name].to_numpy(float) >= float(factual[name])
    return kept


def explain(
    training: pd.DataFrame, factuals: pd.DataFrame, network: Network, floor: float = FLOOR
) -> tuple[pd.DataFrame, float]:
    """Return the best sparse counterfactual of each factual, and the seconds of fits and explanations."""
    task, found = network.task, []
    orders = {name: pd.CategoricalDtype(levels, ordered=True) for name, levels in task.ordered.items()}
    high = network(factuals) > 0
    begin = time.perf_counter()
    for wanted in (True, False):
        explainer = mcce.MCCE(
            network,
            decision=(np.nextafter(0, 1), np.inf) if wanted else (-np.inf, 0.0),
            fixed=list(task.fixed),
            constraints=task.constraints(),
            random_state=1,
        ).fit(training.astype(orders))
        rows = factuals[high != wanted].astype(orders)
        found.append(explainer.explain(rows, sparse=True, floor=floor).frame.droplevel("rank"))
    return pd.concat(found), time.perf_counter() - begin


class Judges:
    """The judges of step 3, fitted to the rows of one fold."""

    def __init__(self, network: Network, training: pd.DataFrame, response: np.ndarray, test: pd.DataFrame) -> None:
        self.network = network
        encoded = network.encode(training)
        self.weights = np.concatenate([self._weight(name) for name in network.columns])
        self.neighbours = NearestNeighbors(n_neighbors=5, metric="manhattan").fit(encoded * self.weights)
        self.forest = IsolationForest(n_estimators=300, random_state=0).fit(encoded)
        self.refits = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for seed in range(N_REFITS):
                self.refits.append(
                    MLPClassifier(hidden_layer_sizes=(20, 10), max_iter=20, random_state=seed).fit(encoded, response)
                )
        self.limits = {name: np.quantile(values, QUANTILE) for name, values in self._outlying(test).items()}

    def _weight(self, name: str) -> np.ndarray:
        """Return factors that put two levels one step apart."""
        n = len(self.network.levels.get(name, ()))
        return np.ones(1) if n in (0, 2) else np.full(n, 0.5)

    def _outlying(self, rows: pd.DataFrame) -> dict[str, np.ndarray]:
        encoded = self.network.encode(rows)
        distances = self.neighbours.kneighbors(encoded * self.weights)[0]
        return {"near5": distances.mean(axis=1), "forest": -self.forest.score_samples(encoded)}

    def judge(self, rows: pd.DataFrame, factuals: pd.DataFrame) -> pd.DataFrame:
        """Return the figures of the rows of one method."""
        factuals = factuals.loc[rows.index]
        after, before = self.network.encode(rows), self.network.encode(factuals)
        apart = np.column_stack([_differs(rows[c], factuals[c]) for c in rows.columns])
        wanted = self.network(factuals) <= 0
        outlying = self._outlying(rows)
        return pd.DataFrame(
            {
                "L0": apart.sum(axis=1),
                "L1": (np.abs(after - before) * self.weights).sum(axis=1),
                "near5": outlying["near5"],
                "far": outlying["near5"] > self.limits["near5"],
                "odd": outlying["forest"] > self.limits["forest"],
                "refits": np.mean([refit.predict(after) == wanted for refit in self.refits], axis=0),
            },
            index=rows.index,
        )


def _differs(after: pd.Series, before: pd.Series) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(before):
        return ~np.isclose(after.to_numpy(float), before.to_numpy(float), atol=1e-6)
    return after.astype(str).to_numpy() != before.astype(str).to_numpy()


def run(
    folder: Path, data: str, folds: list[int], floor: float = FLOOR
) -> tuple[dict[str, pd.DataFrame], dict[str, float], int]:
    """Return the figures of each method by fold and factual, seconds per factual, and the number of factuals."""
    figures: dict[str, list[pd.DataFrame]] = {}
    seconds: dict[str, list[float]] = {}
    n_factuals = 0
    for fold in folds:
        place = folder / "results" / "real_data" / data / str(fold)
        names = ("X_train", "y_train", "X_test", "X_subtest")
        training, y, test, factuals = (pd.read_csv(place / "data" / f"{name}.csv", index_col=0) for name in names)
        response = y.iloc[:, 0].to_numpy() == y.iloc[:, 0].max()
        network = Network(load_onnx(place / "models" / "nn.onnx"), training, TASKS[data])
        judges = Judges(network, training, response, test)
        n_factuals += len(factuals)
        rows, duration = explain(training, factuals, network, floor)
        methods = {OURS: (rows, duration / len(factuals))}
        for name in METHODS:
            with (place / "CEs" / f"{name}.pickle").open("rb") as file:
                stored, times = read_stored(file, factuals, network)
            methods[name] = (stored, float(times.mean()))
        for name, (found, each) in methods.items():
            seconds.setdefault(name, []).append(each)
            if len(found):
                judged = judges.judge(found[factuals.columns], factuals)
                judged.index = pd.MultiIndex.from_product([[fold], judged.index])
                figures.setdefault(name, []).append(judged)
    means = {name: float(np.mean(each)) for name, each in seconds.items()}
    return {name: pd.concat(parts) for name, parts in figures.items()}, means, n_factuals


def compare(figures: dict[str, pd.DataFrame]) -> list[list[str]]:
    """Return the means of mcce minus those of each other method, on the factuals that both explain."""
    ours, lines = figures[OURS], []
    for name, theirs in figures.items():
        both = ours.index.intersection(theirs.index)
        if name != OURS and not both.empty:
            gaps = ours.loc[both].astype(float) - theirs.loc[both].astype(float)
            cells = (f"{gaps[column].mean():+.3f} ({gaps[column].sem():.3f})" for column in FIGURES)
            lines.append([name, str(len(both)), *cells])
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lice", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a checkout of the repository Epanemu/LiCE")
    parser.add_argument("--data", default=",".join(TASKS), help=f"comma-separated, of: {', '.join(TASKS)}")
    parser.add_argument("--folds", default="0,1,2,3,4", help="comma-separated, of: 0,1,2,3,4")
    parser.add_argument("--floor", type=float, default=FLOOR, help="least plausibility of the rows of mcce")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    chosen = parser.parse_args(arguments)
    names = read_names(parser, "--data", chosen.data, list(TASKS))
    folds = [int(fold) for fold in read_names(parser, "--folds", chosen.folds, list("01234"))]
    page = Page("Comparison with LiCE on its data, networks and factuals")
    page.write_line(report.about(describe_machine()))
    page.write_line(NOTES)
    for data in names:
        figures, seconds, n_factuals = run(chosen.folder, data, folds, chosen.floor)
        page.title(f"{TITLES[data]}: {n_factuals} factuals of {len(folds)} folds, floor {chosen.floor:g}")
        table = [
            [name, f"{len(rows)}/{n_factuals}", *(f"{rows[c].mean():.3f}" for c in FIGURES), f"{seconds[name]:.2f}"]
            for name, rows in figures.items()
        ]
        page.table(["", "expl.", *FIGURES, "sec."], table)
        page.table(["mcce minus", "both", *FIGURES], compare(figures))
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
