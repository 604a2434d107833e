"""LiCE's stored answers beside mcce's: the same people, networks and rules.

    python -m benchmarks.lice --stored FOLDER [--only adult,credit] [--quick]

FOLDER is `results/real_data` of the repository Epanemu/LiCE (Nemecek, Pevny and Marecek 2025), which holds for Adult
and German Credit ("credit") five splits, the networks, 100 test people of each split and the answers of eleven methods.

1. Pickles are read as arrays and numbers only, networks as arrays.
2. Every person wants the other decision. mcce, with `sparse=True`, is fitted to the training rows for each decision and
   held to LiCE's rules: features that stay, features that only rise, and causes that rise only with their effect.
3. Of each stored method the first answer counts that has the wanted decision and obeys the first two rules. Numbers
   within 1e-6 of their range of the factual's are unchanged.
4. Judges as in `benchmarks.judging`; `far` is the share of answers whose mean distance to the five nearest training
   rows exceeds that of 95 % of these. Stored seconds were measured by LiCE's authors on another machine.
"""

from __future__ import annotations

import pickle
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy._core import multiarray
from scipy.special import expit

from benchmarks.judging import Judge, paired
from benchmarks.peers import SPARSE, explain_by_mcce
from benchmarks.settings import Problem, Report, arguments

FIGURES = ["L0", "gower_sum", "far", "forest", "outlier", "mixture"]
SCHOOLS = [
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
]  # fmt: skip
READ = ("numpy.ndarray", "numpy.dtype", "numpy.core.multiarray._reconstruct", "numpy.core.multiarray.scalar")


@dataclass(frozen=True)
class Rules:
    """LiCE's settings of a data set, from its folder `data_config`."""

    n_folds: int
    wanted: str
    fixed: list[str]
    rising: list[str]
    causes: list[tuple[str, str]]  # if the first rises, so does the second
    ordered: dict[str, list[str]]

    def constraints(self) -> list[Any]:
        """Return the rules as constraints of mcce; fixed features are an argument of their own."""
        import mcce

        rises = [mcce.allow(name, direction="increase") for name in self.rising]
        texts = [f"`{b}` > was(`{b}`) if `{a}` > was(`{a}`) else True" for a, b in self.causes]
        return [*rises, *map(mcce.rule, texts)]


RULES = {
    "adult": Rules(
        n_folds=3,
        wanted=">50K",
        fixed=["race", "sex"],
        rising=["age", "education"],
        causes=[("education", "age")],
        ordered={"education": SCHOOLS},
    ),
    "credit": Rules(
        n_folds=5,
        wanted="Good",
        fixed=["Number of people being liable to provide maintenance for", "Personal status and sex", "foreign worker"],
        rising=["Age"],
        causes=[("Present residence since", "Age"), ("Present employment since", "Age")],
        ordered={"Present employment since": ["A71", "A72", "A73", "A74", "A75"]},
    ),
}


class Arrays(pickle.Unpickler):
    """Read arrays and numbers from a pickle; any other class is an error."""

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few functions that make arrays and numbers."""
        if f"{module}.{name}" not in READ:
            raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}; only arrays and numbers are read")
        return getattr(np if module == "numpy" else multiarray, name)


class Network:
    """LiCE's network: ramps behind indicators of levels and numbers scaled to the training rows' range."""

    def __init__(self, file: Path, X: pd.DataFrame) -> None:
        with zipfile.ZipFile(file) as stored:
            parts = [np.frombuffer(stored.read(f"nn/data/{k}"), dtype=np.float32) for k in range(6)]
        self.layers = [(w.reshape(b.size, -1).T, b) for w, b in zip(parts[::2], parts[1::2], strict=True)]
        self.levels = {c: X[c].cat.categories for c in X if isinstance(X[c].dtype, pd.CategoricalDtype)}
        self.ranges = {c: (X[c].min(), X[c].max()) for c in X if c not in self.levels}

    def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the probabilities of both decisions; of two levels, only the second has an indicator."""
        parts = []
        for c in rows:
            if c in self.levels:
                marks = rows[[c]].to_numpy() == np.asarray(self.levels[c], dtype=object)
                parts.append(marks[:, 1:] if marks.shape[1] == 2 else marks)
            else:
                low, high = self.ranges[c]
                parts.append((rows[[c]].to_numpy(dtype=float) - low) / (high - low))
        values = np.hstack(parts).astype(np.float32)
        for weights, biases in self.layers:
            last = values @ weights + biases
            values = np.maximum(last, 0)
        return np.column_stack([expit(-last[:, 0]), expit(last[:, 0])])


def read_fold(folder: Path, name: str) -> tuple[Problem, pd.Index]:
    """Return a split as a problem whose factuals are the people and all training rows, and the index of the people."""
    rules = RULES[name]
    files = (folder / "data" / f"{part}.csv" for part in ("X_train", "y_train", "X_subtest"))
    X, y, people = (pd.read_csv(file, index_col=0) for file in files)
    levels = list(X.select_dtypes(exclude="number"))
    types: dict[Any, Any] = dict.fromkeys(X, float)
    for c in levels:
        known = rules.ordered.get(c, np.unique(X[c].astype(object)))
        types[c] = pd.CategoricalDtype(known, ordered=c in rules.ordered)
    X, people = X.astype(types), people.astype(types)
    wanted, network = (y.iloc[:, 0] == rules.wanted).to_numpy(), Network(folder / "models" / "nn.pt", X)
    return Problem(name, X, wanted, pd.concat([people, X]), network, rules.fixed, levels), people.index


def read_answers(file: Path, problem: Problem, span: pd.Series, people: pd.Index) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the first permitted answers of a method, and the seconds of each person (steps 1 and 3)."""
    with file.open("rb") as stored:
        answers = Arrays(stored).load()
    columns = list(problem.X)
    found: dict[Any, pd.Series] = {}
    for person in people:
        values = [list(row)[: len(columns)] for row in answers[person]["CE"]]
        if not values:
            continue
        factual = problem.factuals.loc[[person] * len(values)].reset_index(drop=True)
        rows = pd.DataFrame(values, columns=columns, dtype=object)
        rows = rows.where(rows.notna(), factual.astype(object)).astype(problem.X.dtypes.to_dict())
        codes, own = problem.encode(rows), problem.encode(factual)
        codes = codes.mask((codes - own).abs() <= 1e-6 * span.reindex(columns, fill_value=1.0), own)
        steps, rules = codes - own, RULES[problem.name]
        good = (steps[rules.fixed] == 0).all(axis=1) & (steps[rules.rising] >= 0).all(axis=1)
        good &= problem.wanted(problem.decode(codes)) != problem.wanted(factual)
        if good.any():
            found[person] = codes.loc[good.idxmax()]
    cost = pd.DataFrame({"seconds": [float(answers[person]["time"]) for person in people]}, index=people)
    return pd.DataFrame.from_dict(found, orient="index", columns=columns), cost


def explain_fold(folder: Path, name: str, n_people: int) -> dict[str, pd.DataFrame]:
    """Return for each method the figures of the people in a split, NaN without an answer (steps 2 to 4)."""
    problem, people = read_fold(folder, name)
    people = people[:n_people]
    judge = Judge(problem, "mlp", n_refits=0)
    real = np.random.default_rng(2).permutation(problem.X.index)[:2000]
    limit = judge.judge(problem.encode(problem.X.loc[real]))["near5"].quantile(0.95)
    factuals, ours, costs = problem.factuals.loc[people], [], []
    for decision in (0, 1):
        those = factuals[problem.wanted(factuals) != decision]
        model = partial(lambda wanted, rows: problem.model.predict_proba(rows)[:, wanted], decision)
        rules = {"fixed": problem.fixed, "constraints": RULES[name].constraints()}
        rows, cost = explain_by_mcce(model, problem.X, those, {"sparse": True}, **rules)
        ours.append(problem.encode(rows))
        costs.append(pd.DataFrame(cost, index=those.index))
    answers = {SPARSE: (pd.concat(ours), pd.concat(costs))}
    for file in sorted((folder / "CEs").glob("*.pickle")):
        answers[file.stem] = read_answers(file, problem, judge.span, people)
    judged = {}
    for method, (rows, cost) in answers.items():
        figures = judge.judge(rows) if len(rows) else pd.DataFrame(columns=["near5"], dtype=float)
        figures["far"] = (figures["near5"] > limit).astype(float)
        judged[method] = figures.reindex(people, columns=FIGURES).join(cost)
    return judged


def main() -> None:
    """Run the benchmark."""
    parser = arguments(__doc__, "lice")
    parser.add_argument("--stored", type=Path, help="LiCE's folder results/real_data; without it nothing is compared")
    parser.add_argument("--only", default=",".join(RULES), help="data sets (%(default)s)")
    options = parser.parse_args()
    if not options.stored:
        print("skipped: --stored names no folder with LiCE's results/real_data (github.com/Epanemu/LiCE)")
        return
    report = Report("lice", options)
    for name in options.only.split(","):
        n_folds, n_people = (1, 10) if options.quick else (RULES[name].n_folds, 100)
        folds = [explain_fold(options.stored / name / str(k), name, n_people) for k in range(n_folds)]
        every = {method: pd.concat({k: fold[method] for k, fold in enumerate(folds)}) for method in folds[0]}
        for method, figures in every.items():
            counts = {"asked": len(figures), "answered": int(figures["L0"].count())}
            report.add(data=name, method=method, **counts, **figures.mean().to_dict())
            if method != SPARSE:
                report.rows[-1].update(paired(figures[FIGURES], every[SPARSE][FIGURES], "sparse"))
    report.write()


if __name__ == "__main__":
    main()
