"""Several counterfactuals for one person: their diversity and cost; mcce compared with DiCE.

    python -m benchmarks.diversity [--factuals N] [--rows N] [--k K] [--limit SECONDS] [--out FILE]

1. Train a model on the generated loans (`mcce.datasets.load_loans`); the wanted decision is a probability of default
   below 10 per cent; age and sex are fixed.
2. Explain the same refused people with K counterfactuals each: the best K and K diverse ones, of whole draws (the
   paper's method) and of crossed draws (`sparse=True`); and by DiCE's `random` and `genetic`, if dice-ml is installed.
   DiCE stops after SECONDS for a person.
3. Measure all with the same functions, on valid and distinct rows: share of people with K rows; changes and Gower
   distance to the factual; and, between pairs of rows of one person, Gower distance and share of features that differ.
"""

from __future__ import annotations

import argparse
import platform
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import mcce
from benchmarks.settings import ROOT
from mcce.distances.measures import changed_columns, gower
from mcce.explain.diverse import diversity_table
from mcce.table import Schema

RESULTS = ROOT / "benchmarks" / "results" / "diversity.md"
FIXED = ["age", "sex"]
HIGHEST = 0.1
RESPONSE = "granted"
HEAD = ["rows", "explained", "L0", "gower", "pairwise gower", "pairwise features", "seconds"]
NOTES = """
`python -m benchmarks.diversity`: people who were refused a loan, {k} counterfactuals each. rows: valid, distinct rows
per person that keep age and sex. explained: share of people with {k} of them. L0 and gower: from the person's row, mean
over all rows. pairwise: mean Gower distance and share of features that differ, between two rows of the same person.
seconds: all people, without fitting. DiCE stops after {limit:g} seconds per person.
"""


class Loans:
    """The problem: training rows, the model, and people who were refused."""

    def __init__(self, n_rows: int | None, n_factuals: int) -> None:
        loans = mcce.datasets.load_loans() if n_rows is None else mcce.datasets.load_loans(n_rows)
        self.X = loans.X
        self.schema = Schema.from_data(self.X)
        trees = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype")
        self.model = trees.fit(loans.X, loans.y)
        self.factuals = self.X[~self.is_wanted(self.X)].iloc[:n_factuals]

    def is_wanted(self, frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict_proba(frame)[:, 1] < HIGHEST)

    def as_trained(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows of DiCE, whose levels are text, with the training dtypes."""
        columns = {}
        for name, dtype in self.X.dtypes.items():
            column = frame[name]
            if pd.api.types.is_bool_dtype(dtype):
                column = column.astype(str) == "True"
            elif pd.api.types.is_integer_dtype(dtype):
                column = np.rint(column.astype(float))
            columns[name] = column.astype(dtype)
        return pd.DataFrame(columns, index=frame.index)


def explain_by_mcce(loans: Loans, k: int, **options: bool) -> tuple[dict[object, pd.DataFrame], float]:
    """Return the counterfactuals by person, and the seconds."""
    wanted = mcce.Interval(0, HIGHEST, closed="left", of=True)
    explainer = mcce.MCCE(loans.model, decision=wanted, fixed=FIXED, random_state=1).fit(loans.X)
    explainer.explain(loans.factuals.iloc[:1], n_counterfactuals=k, **options)  # compiles, and fits cached parts
    begun = time.perf_counter()
    found = explainer.explain(loans.factuals, n_counterfactuals=k, progress=False, **options)
    seconds = time.perf_counter() - begun
    return {i: rows.droplevel("id") for i, rows in found.frame.groupby(level="id")}, seconds


def explain_by_dice(loans: Loans, k: int, method: str, limit: float) -> tuple[dict[object, pd.DataFrame], float]:
    """Return DiCE's counterfactuals by person, and the seconds."""
    import dice_ml

    class Granting:
        """The model for DiCE: a score of 0.5 or more, class 1, is a probability of default below the threshold."""

        classes_ = np.array([0, 1])

        def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
            p = loans.model.predict_proba(loans.as_trained(frame))[:, 1]
            granted = np.where(p < HIGHEST, 1 - 0.5 * p / HIGHEST, 0.499 * (1 - p) / (1 - HIGHEST))
            return np.column_stack([1 - granted, granted])

        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return (self.predict_proba(frame)[:, 1] >= 0.5).astype(int)

    numbers = [f.name for f in loans.schema.features if f.is_numeric]
    texts = {name: str for name in loans.X.columns if name not in numbers}
    table = loans.X.astype(texts).assign(**{RESPONSE: loans.is_wanted(loans.X).astype(int)})
    data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name=RESPONSE)
    explainer = dice_ml.Dice(data, dice_ml.Model(model=Granting(), backend="sklearn"), method=method)
    seed = {"random_seed": 1} if method == "random" else {}
    mutable = [name for name in loans.X.columns if name not in FIXED]
    answers = {}
    begun = time.perf_counter()
    for i in loans.factuals.index:
        query = loans.factuals.loc[[i]].astype(texts)
        signal.signal(signal.SIGALRM, _raise_timeout)
        signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            found = explainer.generate_counterfactuals(
                query, total_CFs=k, desired_class=1, features_to_vary=mutable, verbose=False, **seed
            )
        except Exception as error:  # DiCE raises if it finds nothing
            print(f"DiCE {method}, person {i}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        rows = found.cf_examples_list[0].final_cfs_df
        if rows is not None and len(rows):
            answers[i] = loans.as_trained(rows.reset_index(drop=True))
    return answers, time.perf_counter() - begun


def _raise_timeout(*_: object) -> None:
    raise TimeoutError("given up")


def measure(loans: Loans, answers: dict[object, pd.DataFrame], k: int) -> dict[str, float]:
    """Return the figures of step 3, of valid distinct rows."""
    owner, kept = [], []
    for place, i in enumerate(loans.factuals.index):
        if i not in answers:
            continue
        rows = answers[i].drop_duplicates()
        same = (rows[FIXED].astype(object) == loans.factuals.loc[i, FIXED].astype(object)).all(axis=1)
        rows = rows[loans.is_wanted(rows) & same.to_numpy()].iloc[:k]
        owner += [place] * len(rows)
        kept.append(rows)
    matrix = loans.schema.encode(pd.concat([loans.X.iloc[:0], *kept], ignore_index=True).astype(loans.X.dtypes)).matrix
    people = loans.schema.encode(loans.factuals).matrix
    table = diversity_table(np.array(owner, dtype=np.int64), matrix, loans.schema.features)
    n = len(loans.factuals)
    return {
        "rows": len(owner) / n,
        "explained": float((table["rows"] == k).sum() / n),
        "L0": changed_columns(matrix, people[owner]).sum(axis=1).mean(),
        "gower": gower(loans.schema.features).between(matrix, people[owner]).mean(),
        "pairwise gower": table["gower"].mean(),
        "pairwise features": table["features"].mean(),
    }


def find_dice_problem() -> str | None:
    """Return why DiCE is skipped; None if it is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import dice_ml  # noqa: F401
    except ImportError as error:
        return f"DiCE is skipped: {error}; `pip install dice-ml`."
    return None


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--factuals", type=int, default=50)
    parser.add_argument("--rows", type=int, default=None, help="rows of the loans, all by default")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of DiCE for a person")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    loans, k = Loans(options.rows, options.factuals), options.k
    ways: dict[str, Callable[[], tuple[dict[object, pd.DataFrame], float]]] = {
        f"{mode}, {kind}": lambda sparse=sparse, diverse=diverse: explain_by_mcce(
            loans, k, sparse=sparse, diverse=diverse
        )
        for mode, sparse in (("whole draws", False), ("sparse", True))
        for kind, diverse in (("best", False), ("diverse", True))
    }
    reason = find_dice_problem()
    if reason is None:
        for method in ("random", "genetic"):
            ways[f"DiCE {method}"] = lambda method=method: explain_by_dice(loans, k, method, options.limit)
    figures = {}
    for name, explain in ways.items():
        answers, seconds = explain()
        figures[name] = measure(loans, answers, k) | {"seconds": seconds}
    table = pd.DataFrame(figures).T[HEAD].to_string(float_format=lambda value: f"{value:.3f}")
    text = "\n".join([table, *([reason] if reason else [])])
    print(text)
    about = (
        f"{len(loans.factuals)} people; {platform.system()} {platform.machine()}, Python {platform.python_version()}."
    )
    options.out.write_text(
        f"# Counterfactuals that differ\n{NOTES.format(k=k, limit=options.limit)}\n{about}\n\n```\n{text}\n```\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
