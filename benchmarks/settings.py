"""Problems that the benchmarks measure: data, models, factuals and numbers of samples.

1. A `Setting` names a data set, a model and sizes; `SETTINGS` lists them.
2. `make_problem` loads the data (the loaders of `mcce.datasets`, or a stand-in of `benchmarks.standins` where
   the file is absent), trains the model on whether the response is the wanted one, and takes the first
   factuals that do not have the wanted decision.

The data, the binarised categories and the networks are those of the paper's Experiment 1: scikit-learn's MLP
with the paper's layers, batch sizes and learning rates, 20 epochs. The loans keep their levels.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
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

from benchmarks.standins import load_standin
from mcce import Interval
from mcce.base.threads import one_native_thread
from mcce.datasets import Dataset, load_adult, load_fico, load_german, load_gmc, load_loans

ROOT = Path(__file__).resolve().parents[1]

# layers, batch size, learning rate
NETWORKS = {
    "adult": ((18, 9, 3), 1024, 0.002),
    "gmc": ((18, 9, 3), 2048, 0.002),
    "fico": ((81, 27, 3), 8, 0.0005),
    "german": ((81, 16, 3), 16, 0.002),
    "loans": ((18, 9, 3), 32, 0.002),
}
MODELS = ("mlp", "forest", "boosting", "logistic")
LOADERS: dict[str, Callable[[Path], Dataset]] = {
    "adult": load_adult,
    "gmc": lambda folder: load_gmc(folder, trim=3),
    "fico": lambda folder: load_fico(folder, drop_special=True),
    "german": load_german,
}


@dataclass(frozen=True)
class Setting:
    """One setting of the benchmark: data, model, number of factuals and of samples."""

    name: str
    title: str
    data: str
    model: str
    n_factuals: int
    n_samples: int
    binarised: bool = True
    independent: bool = False
    n_train: int | None = None  # None: all rows
    n_features: int | None = None  # of simulated data

    @property
    def problem_name(self) -> str:
        """The name shared by settings with the same data and model."""
        return f"{self.data}-{self.model}-{self.binarised}-{self.n_train}-{self.n_features}-{self.n_factuals}"

    def tiny(self) -> Setting:
        """Return the setting with tiny sizes, to try the command."""
        return replace(self, n_factuals=max(20, self.n_factuals // 100), n_samples=50, n_train=1000)


@dataclass(frozen=True)
class Problem:
    """A problem to explain: `score` is the model, a function of frames like `X`."""

    X: pd.DataFrame
    factuals: pd.DataFrame
    score: Callable[[pd.DataFrame], np.ndarray]
    decision: Interval
    fixed: list[str]
    categorical: list[str]
    standin: bool
    refit: Callable[[int], Callable[[pd.DataFrame], np.ndarray]] | None = None  # the same model from another seed

    @property
    def kinds(self) -> dict[str, str]:
        """The argument `kinds` of `MCCE`: binarised categories look like numbers."""
        binarised = [c for c in self.categorical if not isinstance(self.X[c].dtype, pd.CategoricalDtype)]
        return dict.fromkeys(binarised, "categorical")

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return floats, with the codes of category columns."""
        columns = {
            c: frame[c].cat.codes if isinstance(self.X[c].dtype, pd.CategoricalDtype) else frame[c]
            for c in self.X.columns
        }
        return pd.DataFrame(columns, index=frame.index).astype(float)

    def decode(self, codes: pd.DataFrame) -> pd.DataFrame:
        """Return the frame of these floats, as the model was trained on it."""
        columns: dict[str, Any] = {}
        for c, dtype in self.X.dtypes.items():
            if isinstance(dtype, pd.CategoricalDtype):
                columns[c] = pd.Categorical.from_codes(codes[c].to_numpy().astype(int), dtype=dtype)
            else:
                columns[c] = codes[c].to_numpy().astype(dtype)
        return pd.DataFrame(columns, index=codes.index)


SETTINGS = [
    Setting("adult", "Adult, MLP", "adult", "mlp", 1000, 1000),
    Setting(
        "adult-independent",
        "Adult, MLP, own draws for each factual",
        "adult",
        "mlp",
        1000,
        1000,
        independent=True,
    ),
    Setting("adult-forest", "Adult, random forest of 200 trees", "adult", "forest", 1000, 1000),
    Setting("adult-10k", "Adult, MLP, K = 10,000", "adult", "mlp", 1000, 10_000),
    Setting("adult-native", "Adult, categories not binarised", "adult", "mlp", 1000, 1000, binarised=False),
    Setting("gmc", "GMC, MLP", "gmc", "mlp", 1000, 1000),
    Setting("fico", "FICO, MLP", "fico", "mlp", 1000, 1000),
    Setting("german", "German, MLP", "german", "mlp", 200, 1000),
    Setting(
        "simulation",
        "paper's simulation, p = 30",
        "gaussian",
        "sum",
        50,
        10_000,
        n_train=10_000,
        n_features=30,
    ),
]
MANY = [
    Setting(f"many-{kind}-{n}", f"loans, {n:,} factuals", "new-loans", "boosting", n, 100, False, kind == "own", 3000)
    for kind in ("shared", "own")
    for n in (10_000, 100_000)
]


class Probability:
    """The score of a classifier: its probability of the wanted response."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(rows)[:, 1]


def row_sum(rows: pd.DataFrame) -> np.ndarray:
    """The paper's simulated model, f(x) = sum of x."""
    return rows.to_numpy().sum(axis=1)


def find_data(folder: str | None) -> Path | None:
    """Return the folder of the data: as given, else of MCCE_DATA, else ../shared/data, else None."""
    named = folder or os.environ.get("MCCE_DATA")
    beside = ROOT.parent / "shared" / "data"
    return Path(named).expanduser() if named else beside if beside.is_dir() else None


def make_problem(setting: Setting, folder: Path | None) -> Problem:
    """Load the data, train the model, choose the factuals."""
    if setting.data == "gaussian":
        return simulate(setting.n_train or 10_000, setting.n_features or 30, setting.n_factuals)
    if setting.data == "new-loans":
        return _new_loans(setting.n_train or 3000, setting.n_factuals)
    data, standin = load_data(setting.data, folder)
    if setting.n_train is not None and setting.n_train < len(data.X):
        some = np.random.default_rng(0).permutation(len(data.X))[: setting.n_train]
        data = replace(data, X=data.X.iloc[some].reset_index(drop=True), y=data.y.iloc[some].reset_index(drop=True))
    X = data.X.copy()
    categorical = [c for c in X.columns if isinstance(X[c].dtype, pd.CategoricalDtype)]
    if setting.binarised:
        for c in categorical:
            X[c] = (X[c] == X[c].mode()[0]).astype(np.int64)
    refit = partial(_train, setting, X, data.wanted.astype(int), categorical)
    score = refit(0)
    decision = Interval(0.9 if setting.data == "loans" else 0.5, 1.0)
    factuals = X[~decision.contains(score(X))].iloc[: setting.n_factuals]
    return Problem(X, factuals, score, decision, data.fixed, categorical, standin, refit)


def simulate(n_train: int, p: int, n_factuals: int, *, seed: int = 3) -> Problem:
    """Simulate as in the paper's section 3.4.1: f(x) sums p normal features, correlation 0.5; f(x) > 0."""
    rng = np.random.default_rng(seed)

    def draw(n: int) -> pd.DataFrame:
        values = np.sqrt(0.5) * (rng.standard_normal((n, 1)) + rng.standard_normal((n, p)))
        return pd.DataFrame(values, columns=[f"x{j}" for j in range(p)])

    X, others = draw(n_train), draw(3 * n_factuals + 100)
    factuals = others[row_sum(others) <= 0].iloc[:n_factuals]
    return Problem(X, factuals, row_sum, Interval(0, np.inf, closed="neither"), [], [], False)


def load_data(name: str, folder: Path | None) -> tuple[Dataset, bool]:
    """Return the data set as prepared in the paper, or a stand-in if its file is absent; and whether it is one."""
    if name == "loans":
        return load_loans(), False
    if folder is not None and any((folder / f"{name}{ending}").is_file() for ending in (".csv.gz", ".csv")):
        return LOADERS[name](folder), False
    return load_standin(name), True


@one_native_thread()
def _train(setting: Setting, X: pd.DataFrame, y: np.ndarray, categorical: list[str], seed: int) -> Probability:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 20 epochs, as in the paper
        return Probability(_make_model(setting, X, categorical, seed).fit(X, y))


def _make_model(setting: Setting, X: pd.DataFrame, categorical: list[str], seed: int) -> Any:
    levels = [c for c in categorical if isinstance(X[c].dtype, pd.CategoricalDtype)]
    if setting.model == "forest":
        trees = 200 if setting.n_train is None else 20
        forest = RandomForestClassifier(trees, random_state=seed, n_jobs=-1)
        return make_pipeline(_one_hot(levels, "passthrough"), forest) if levels else forest
    if setting.model == "boosting":
        rounds = 100 if len(X) > 500 else 10  # few rows: a trial run
        return HistGradientBoostingClassifier(max_iter=rounds, random_state=seed, categorical_features="from_dtype")
    scaler = _one_hot(levels, StandardScaler()) if levels else StandardScaler()
    if setting.model == "logistic":
        return make_pipeline(scaler, LogisticRegression(max_iter=1000))
    layers, batch_size, rate = NETWORKS[setting.data]
    network = MLPClassifier(layers, batch_size=batch_size, learning_rate_init=rate, max_iter=20, random_state=seed)
    return make_pipeline(scaler, network)


def _one_hot(levels: list[str], remainder: Any) -> Any:
    onehot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((onehot, levels), remainder=remainder)


@one_native_thread()
def _new_loans(n_train: int, n_factuals: int) -> Problem:
    """Return new loans: they are generated, so any number of distinct factuals is available."""
    loans = load_loans(n_train)
    model = HistGradientBoostingClassifier(max_iter=50, random_state=0, categorical_features="from_dtype")
    score, decision = Probability(model.fit(loans.X, loans.wanted.astype(int))), Interval(0.9, 1.0)
    others = load_loans(int(2.5 * n_factuals) + 500, random_state=1).X
    factuals = others[~decision.contains(score(others))].iloc[:n_factuals]
    categorical = [c for c in others.columns if isinstance(others[c].dtype, pd.CategoricalDtype)]
    return Problem(loans.X, factuals, score, decision, loans.fixed, categorical, False)
