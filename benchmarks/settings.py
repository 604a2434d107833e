"""What the benchmarks share: problems (data, model, factuals), measured processes, and their results.

The data, the binarised levels and the networks are those of the paper's experiment 1: scikit-learn's MLP with the
paper's layers, batch sizes and learning rates, 20 epochs. The loans are simulated and keep their levels.

A worker measures one version of mcce in a process of its own, which prints its results as lines of JSON. Another
version is that of another interpreter (``--other PYTHON``); problems are made once and given to both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DATA = ("adult", "fico", "gmc", "german")
NETWORKS = {  # layers, batch size, learning rate
    "adult": ((18, 9, 3), 1024, 0.002),
    "gmc": ((18, 9, 3), 2048, 0.002),
    "fico": ((81, 27, 3), 8, 0.0005),
    "german": ((81, 16, 3), 16, 0.002),
    "loans": ((18, 9, 3), 32, 0.002),
}
MODELS = ("mlp", "forest", "boosting", "logistic")
IN_OTHER = (  # its own mcce is imported first, then the benchmarks of this folder
    "import sys, runpy, mcce; root, module, *sys.argv[1:] = sys.argv[1:]; sys.path.insert(0, root); "
    "runpy.run_module(module, run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True)
class Problem:
    """A model and the rows to explain; the wanted decision is a probability of at least 0.5."""

    name: str
    X: pd.DataFrame
    y: np.ndarray  # whether the response is the wanted one
    factuals: pd.DataFrame
    model: Any
    fixed: list[str]
    categorical: list[str]
    decision: tuple[float, float] = (0.5, 1.0)

    def score(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the model's probability of the wanted response."""
        return np.asarray(self.model.predict_proba(rows)[:, 1])

    def wanted(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows have the wanted decision."""
        return self.score(rows) >= self.decision[0]

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The argument `kinds` of mcce: binarised levels look like numbers."""
        return {c: "categorical" for c in self.categorical if not isinstance(self.X[c].dtype, pd.CategoricalDtype)}

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return floats, with the codes of levels."""
        levels = {c for c in self.X if isinstance(self.X[c].dtype, pd.CategoricalDtype)}
        columns = {c: frame[c].cat.codes if c in levels else frame[c] for c in self.X}
        return pd.DataFrame(columns, index=frame.index).astype(float)

    def decode(self, codes: pd.DataFrame) -> pd.DataFrame:
        """Return the frame of these floats, as the model was trained on it."""
        columns: dict[str, Any] = {}
        for c, dtype in self.X.dtypes.items():
            values = codes[c].to_numpy()
            is_level = isinstance(dtype, pd.CategoricalDtype)
            columns[str(c)] = (
                pd.Categorical.from_codes(values.astype(int), dtype=dtype) if is_level else values.astype(dtype)
            )
        return pd.DataFrame(columns, index=codes.index)


class Timed:
    """A model that counts its queries and rows, and its CPU seconds."""

    def __init__(self, score: Callable[[pd.DataFrame], np.ndarray]) -> None:
        self.score = score
        self.queries, self.rows, self.seconds = 0, 0, 0.0

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the model's answer."""
        begun = time.process_time()
        answer = self.score(rows)
        self.seconds += time.process_time() - begun
        self.queries += 1
        self.rows += len(rows)
        return answer

    def measure(self, work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, dict[str, float]]:
        """Return what a function returns, and its CPU seconds, those of the model, queries and rows."""
        self.queries, self.rows, self.seconds = 0, 0, 0.0
        begun = time.process_time()
        answer = work(*arguments, **options)
        seconds = time.process_time() - begun
        return answer, {"seconds": seconds, "model": self.seconds, "queries": self.queries, "rows": self.rows}


def make_problem(
    data: str,
    model: str = "mlp",
    n_factuals: int = 1000,
    *,
    folder: str | None = None,
    n_train: int | None = None,
    binarised: bool = True,
    seed: int = 0,
) -> Problem:
    """Load the data, train the model, and take the first factuals without the wanted decision."""
    from mcce import datasets

    if data == "loans":
        dataset, wanted = datasets.load_loans(), False
    else:
        loader = getattr(datasets, f"load_{data}")
        dataset = loader(find_data(folder), as_in_paper=True) if binarised else loader(find_data(folder))
        wanted = dataset.decision
    X, y = dataset.X, (dataset.y == wanted).to_numpy().astype(int)
    if not binarised and data != "loans":
        X, y = X.dropna(), y[X.notna().all(axis=1).to_numpy()]
    if n_train is not None and n_train < len(X):
        rows = np.random.default_rng(0).permutation(len(X))[:n_train]
        X, y = X.iloc[rows], y[rows]
    X = X.reset_index(drop=True)
    levels = [c for c in X if isinstance(X[c].dtype, pd.CategoricalDtype)]
    original = [] if data == "loans" else loader(find_data(folder)).X.select_dtypes("category").columns
    problem = Problem(data, X, y, X, train(data, model, X, y, seed), dataset.fixed, [*(levels or original)])
    refused = X[~problem.wanted(X)].iloc[:n_factuals]
    return Problem(data, X, y, refused, problem.model, dataset.fixed, problem.categorical)


def train(data: str, model: str, X: pd.DataFrame, y: np.ndarray, seed: int) -> Any:
    """Return a fitted model."""
    levels = [c for c in X if isinstance(X[c].dtype, pd.CategoricalDtype)]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    fitted: Any
    if model == "boosting":
        fitted = HistGradientBoostingClassifier(random_state=seed, categorical_features="from_dtype")
    elif model == "forest":
        fitted = make_pipeline(
            make_column_transformer((one_hot, levels), remainder="passthrough"),
            RandomForestClassifier(200, random_state=seed),
        )
    else:
        layers, batch, rate = NETWORKS[data]
        network = MLPClassifier(
            layers, batch_size=min(batch, max(len(X) // 20, 8)), learning_rate_init=rate, max_iter=20, random_state=seed
        )
        last = network if model == "mlp" else LogisticRegression(max_iter=1000)
        fitted = make_pipeline(make_column_transformer((one_hot, levels), remainder=StandardScaler()), last)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 20 epochs, as in the paper
        return fitted.fit(X, y)


def find_data(folder: str | None) -> str | None:
    """Return the folder of the data: the argument, else MCCE_DATA, else ../shared/data if there is one."""
    beside = ROOT.parent / "shared" / "data"
    return folder or os.environ.get("MCCE_DATA") or (str(beside) if beside.is_dir() else None)


# --------------------------------------------------------------------------------------------------------- processes


def run_worker(python: str, module: str, arguments: Sequence[str], **environment: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of JSON that a module prints in a process with one native thread."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    command = [python, "-W", "ignore", "-c", IN_OTHER, str(ROOT), module, *arguments]
    with tempfile.TemporaryDirectory() as folder:  # not the root, whose mcce would come first
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **threads, **environment}, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        if process.wait():
            raise SystemExit(f"{module} {' '.join(arguments)} ended with exit code {process.returncode} in {python}")


def interpreters(other: str | None) -> dict[str, str]:
    """Return the interpreters to compare, by the name of their version in the results."""
    return {"now": sys.executable, **({"other": other} if other else {})}


def emit(**record: Any) -> None:
    """Print one result of a worker."""
    print(json.dumps(record), flush=True)


# ----------------------------------------------------------------------------------------------------------- results


def arguments(doc: str | None, name: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the command; no figure means anything")
    parser.add_argument("--out", type=Path, help="folder of the CSV file; with --quick that of temporary files")
    return parser


class Report:
    """A table that is printed row by row, and written as a CSV file with date and machine at the end."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        folder = options.out or (Path(tempfile.gettempdir()) if options.quick else RESULTS)
        self.path = folder / f"{name}.csv"
        self.rows: list[dict[str, Any]] = []
        self.columns: list[str] = []

    def add(self, **row: Any) -> None:
        """Add and print a row; a head comes before rows with other columns."""
        cells = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in row.items()}
        if [*row] != self.columns:
            self.columns = [*row]
            print("\n" + "  ".join(f"{name:>{max(10, len(name))}}" for name in row))
        print("  ".join(f"{cell:>{max(10, len(name))}}" for name, cell in cells.items()), flush=True)
        self.rows.append(row)

    def write(self) -> None:
        """Write the file."""
        cpu = next((line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), "")
        about = {"date": date.today().isoformat(), "machine": f"{platform.machine()} {cpu} x{os.cpu_count()}"}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(self.rows).assign(**about).to_csv(self.path, index=False, float_format="%.6g")
        print(f"\nwritten to {self.path}")


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
