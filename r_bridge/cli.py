"""`mcce parity`: mcceR and mcce side by side, on R's airquality data or on a CSV file.

The model is fitted in R: `lm` for a number, logistic `glm` for two classes. Rows with missing values are dropped.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.cli import DONE
from mcce.datasets import load_airquality
from mcce.exceptions import InputError, did_you_mean, listing
from r_bridge.models import RModel
from r_bridge.parity import check_parity

PARTED = 1


@dataclass(frozen=True)
class Example:
    """A case to compare: a model in R, its table, and the wanted scores."""

    model: RModel
    X: pd.DataFrame
    fixed: list[str]
    c_int: tuple[float, float]


def add_parity(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    parity = commands.add_parser(
        "parity",
        help="compare with mcceR, number by number",
        description="Run mcceR's explain_mcce in R and in mcce, from the same seeds, and compare leaves of training "
        "rows, generated rows, random stream, measures and counterfactuals. Without --train, use R's airquality data.",
        epilog="Exit codes: 0 all values agree; 1 R and mcce part; 2 bad arguments or files, or no R with mcceR.",
    )
    add = parity.add_argument
    add("--train", metavar="FILE", help="a table of your own, for pandas.read_csv")
    add("--response", metavar="COLUMN", help="with --train: the response of the model; a number or two classes")
    add("--decision", metavar="A,B", help="the wanted predictions, both ends included, as in 0.5,1 or -inf,15")
    add("--fixed", metavar="A,B", help="features that must not change")
    add("--explain", type=int, default=3, metavar="N", help="explain the last N rows (%(default)s)")
    add("--engine", choices=["rpart", "ctree", "both"], default="both", help="which trees (%(default)s)")
    add("--n-samples", type=int, default=1000, metavar="K", help="generated rows for each factual (%(default)s)")
    add("--n-counterfactuals", type=int, default=1, metavar="N", help="for each factual (%(default)s)")
    add("--random-state", type=int, default=1, metavar="N", help="R's seed; generating uses N + 1 (%(default)s)")
    parity.set_defaults(run=run_parity)


def run_parity(arguments: argparse.Namespace) -> int:
    """Compare, print the reports, and return the exit code."""
    example = _airquality(arguments) if arguments.train is None else _from_file(arguments)
    n_train = len(example.X) - arguments.explain
    if not 0 < n_train < len(example.X):
        raise InputError(f"--explain is {arguments.explain}; give a number from 1 to {len(example.X) - 1}.")
    has_levels = any(isinstance(example.X[name].dtype, pd.CategoricalDtype) for name in example.X)
    agree = True
    for engine in ["rpart", "ctree"] if arguments.engine == "both" else [arguments.engine]:
        report = check_parity(
            example.model.score,
            example.X.iloc[n_train:],
            example.X.iloc[:n_train],
            fixed_features=example.fixed,
            c_int=example.c_int,
            fit_autoregressive_model=engine,
            fit_seed=arguments.random_state,
            generate_seed=arguments.random_state + 1,
            generate_K=arguments.n_samples,
            process_return_best_k=arguments.n_counterfactuals,
            # mcceR's L1 does not support levels
            process_measures=("validation", "L0", "gower") if has_levels else ("validation", "L0", "L1", "L2", "gower"),
        )
        print(report, end="\n\n")
        agree &= report.agrees
    return DONE if agree else PARTED


def _airquality(arguments: argparse.Namespace) -> Example:
    if arguments.response is not None:
        raise InputError("--response needs --train; without it R's airquality data are used.")
    air = load_airquality(dropna=True)
    model = RModel.from_code("lm(Ozone ~ ., data = data)", air.X.assign(Ozone=air.y))
    fixed = air.fixed if arguments.fixed is None else _fixed(arguments.fixed, air.X)
    return Example(model, air.X, fixed, _ends(arguments.decision, (-np.inf, 15.0)))


def _from_file(arguments: argparse.Namespace) -> Example:
    try:
        table = pd.read_csv(arguments.train)
    except ValueError as error:  # pandas' errors of parsing are subclasses
        raise InputError(f"pandas.read_csv cannot read {arguments.train}: {error}.") from error
    response = arguments.response
    if response not in table:
        raise InputError(
            f"--response is {response!r}, not a column of {arguments.train}; {did_you_mean(response, table)}"
        )
    complete = table.dropna().reset_index(drop=True)
    if len(complete) < len(table):
        n_dropped = len(table) - len(complete)
        print(f"{n_dropped} of {len(table)} rows have missing values and are dropped", file=sys.stderr)
    text = [name for name, dtype in complete.dtypes.items() if not pd.api.types.is_numeric_dtype(dtype)]
    y, X = complete[response], complete.astype(dict.fromkeys(text, "category")).drop(columns=response)
    is_class = y.nunique() == 2 or response in text
    if is_class and y.nunique() != 2:
        raise InputError(f"--response {response} has {y.nunique()} classes; give a number or two classes.")
    code = "glm(response ~ ., family = binomial, data = data)" if is_class else "lm(response ~ ., data = data)"
    model = RModel.from_code(code, X.assign(response=pd.Categorical(y.astype(str)) if is_class else y))
    c_int = _ends(arguments.decision, (0.5, 1.0) if is_class else None)
    return Example(model, X, _fixed(arguments.fixed or "", X), c_int)


def _fixed(text: str, X: pd.DataFrame) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in X:
            raise InputError(f"--fixed has {name!r}, which is not a feature ({listing(X)}); {did_you_mean(name, X)}")
    return names


def _ends(text: str | None, default: tuple[float, float] | None) -> tuple[float, float]:
    """Return the wanted interval; mcceR's includes both ends."""
    if text is None:
        if default is None:
            raise InputError("--response is a number, so --decision must say what is wanted, as in --decision=10,20.")
        return default
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError as error:
        raise InputError(f"--decision is {text!r}; give two numbers, as in 0.5,1 or -inf,15.") from error
    return low, high
