"""`mcce parity`: R and mcce side by side, on the embedded airquality data or on a file.

1. The data: R's airquality, or a CSV file with a response; rows with missing values are dropped.
2. The model: fitted in R, `lm` for a number, logistic `glm` for two classes.
3. A `ParityReport` for each engine, on standard output and, on request, as a page.

Exit codes: 0 all compared values agree; 1 R and mcce differ; 2 bad arguments or files, or no R.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.files import atomic_write
from mcce.cli import readers as read
from mcce.cli.checking import read_interval
from mcce.cli.console import DONE, notify
from mcce.cli.outputs import check_outputs
from mcce.cli.tables import Reading, ReadOptions, check_columns, read_table
from mcce.datasets import load_airquality
from mcce.exceptions import InputError, listing
from mcce.model.decisions import Interval
from r_bridge.models import RModel
from r_bridge.parity import check_parity
from r_bridge.parity_report import ParityReport

PARTED = 1
EXPLAINED = 3  # rows of airquality to explain, as in mcceR's tests
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Parity with R</title>
<meta name="viewport" content="width=device-width"></head><body style="font-family:sans-serif;margin:1em">
<h1>Parity with R</h1>{}</body></html>"""


@dataclass(frozen=True)
class Example:
    """A case to compare: a model in R, its rows, and the wanted scores."""

    model: RModel
    x_explain: pd.DataFrame
    x_train: pd.DataFrame
    fixed: list[str]
    c_int: tuple[float, float]


def add_parity(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    parity = commands.add_parser(
        "parity",
        help="compare with R, number by number",
        description="Run mcceR's method in R and in mcce, from the same seeds, and compare every stage: leaves of the "
        "training rows, random stream, generated rows, measures, ranks, counterfactuals. Without --train, use R's "
        "airquality data. If mcceR is not installed, run its documented method with R's rpart, party and sample().",
        epilog="Exit codes: 0 all compared values agree; 1 R and mcce differ; 2 bad arguments or files, or no R "
        "(pip install 'mcce[r]').",
    )
    add = parity.add_argument
    add("--train", metavar="FILE", help="your own rows: .csv, .csv.gz or .parquet")
    add("--response", metavar="COLUMN", help="with --train: the response of the model; a number or two classes")
    add("--decision", metavar="A,B", help="the wanted predictions, both ends included, as in 0.5,1 or -inf,15")
    add("--fixed", type=read.names, metavar="A,B", help="features that must not change")
    add(
        "--kinds",
        type=read.pairs,
        default={},
        metavar="A=KIND,..",
        help="numeric or categorical, by column",
    )
    add("--missing", type=read.names, default=[], metavar="NA,?", help="cells of a CSV file that mean missing")
    add("--explain", type=read.count, default=EXPLAINED, metavar="N", help="explain the last N rows (%(default)s)")
    add("--engine", choices=["rpart", "ctree", "both"], default="both", help="which trees (%(default)s)")
    add("--n-samples", type=read.count, default=1000, metavar="K", help="generated rows for each factual (%(default)s)")
    add(
        "--n-counterfactuals",
        type=read.count,
        default=1,
        metavar="N",
        help="per factual (%(default)s)",
    )
    add(
        "--random-state",
        type=int,
        default=1,
        metavar="N",
        help="R's seed; generating uses N + 1 (%(default)s)",
    )
    add("--without-mccer", action="store_true", help="do not use mcceR even if it is installed")
    add("--sep", type=read.sep, metavar="CHAR", help=r"separator of CSV files; \t is a tab; by default detected")
    add("--html", type=Path, metavar="FILE", help="write the reports as a page")
    add("--force", action="store_true", help="overwrite an existing page")
    parity.set_defaults(run=run_parity)


def run_parity(arguments: argparse.Namespace) -> int:
    """Compare, print the reports, and return the exit code."""
    if arguments.html:
        inputs = {"--train": Path(arguments.train)} if arguments.train else {}
        check_outputs({"--html": arguments.html}, inputs, force=arguments.force)
    example = _airquality(arguments) if arguments.train is None else _from_file(arguments)
    engines = ["rpart", "ctree"] if arguments.engine == "both" else [arguments.engine]
    reports = [_compare(example, engine, arguments) for engine in engines]
    print("\n\n".join(map(repr, reports)))
    if arguments.html:
        with atomic_write(arguments.html, overwrite=arguments.force) as beside:
            beside.write_text(PAGE.format("<hr>".join(r._repr_html_() for r in reports)), "utf-8")
        notify(f"wrote {arguments.html}")
    for report in reports:
        if report.first_divergence is not None:
            notify(f"{report.engine}: R and mcce differ at {report.first_divergence}")
    return DONE if all(report.agrees for report in reports) else PARTED


def _compare(example: Example, engine: str, arguments: argparse.Namespace) -> ParityReport:
    mutable = [name for name in example.x_train.columns if name not in example.fixed]
    levels = any(isinstance(example.x_train[name].dtype, pd.CategoricalDtype) for name in mutable)
    return check_parity(
        example.model,
        example.x_explain,
        example.x_train,
        predict_model=lambda model, rows: model.score(rows),
        fixed_features=example.fixed,
        c_int=example.c_int,
        fit_autoregressive_model=engine,
        fit_seed=arguments.random_state,
        generate_seed=arguments.random_state + 1,
        generate_K=arguments.n_samples,
        process_return_best_k=arguments.n_counterfactuals,
        # mcceR's L1 does not support levels
        process_measures=("validation", "L0", "gower") if levels else ("validation", "L0", "L1", "L2", "gower"),
        use_mccer=False if arguments.without_mccer else None,
    )


def _airquality(arguments: argparse.Namespace) -> Example:
    for option in ("response", "kinds"):
        if getattr(arguments, option):
            raise InputError(f"--{option} needs --train; without it R's airquality data are used.")
    air = load_airquality(dropna=True)
    model = RModel.from_code("lm(Ozone ~ ., data = data)", air.X.assign(Ozone=air.y))
    fixed = air.fixed if arguments.fixed is None else arguments.fixed
    return _example(model, air.X, fixed, _ends(arguments.decision, (-np.inf, 15.0)), arguments)


def _from_file(arguments: argparse.Namespace) -> Example:
    options = ReadOptions.from_arguments(arguments)
    source = read_table("--train", arguments.train, options)
    names = source.table.columns
    if arguments.response is None:
        raise InputError(f"--train {arguments.train} needs --response: one of {listing(names)}.")
    check_columns("--response", [arguments.response], source.table, arguments.train)
    table = source.read(source.find_readings(names) | dict.fromkeys(options.levels, Reading("categorical")))
    complete = table.dropna()
    if len(complete) < len(table):
        notify(f"{len(table) - len(complete)} of {len(table)} rows have missing values and are dropped")
    text = [name for name, dtype in complete.dtypes.items() if pd.api.types.is_string_dtype(dtype)]
    complete = complete.astype(dict.fromkeys(text, "category")).reset_index(drop=True)
    y, X = complete[arguments.response], complete.drop(columns=arguments.response)
    data = X.assign(response=y)
    is_class = y.nunique() == 2 or arguments.response in text
    if is_class and y.nunique() != 2:
        raise InputError(f"--response {arguments.response} has {y.nunique()} classes; give a number or two classes.")
    if is_class:
        data["response"] = pd.Categorical(y.astype(str))
    code = "glm(response ~ ., family = binomial, data = data)" if is_class else "lm(response ~ ., data = data)"
    wanted = _ends(arguments.decision, (0.5, 1.0) if is_class else None)
    return _example(RModel.from_code(code, data), X, arguments.fixed or [], wanted, arguments)


def _example(
    model: RModel, X: pd.DataFrame, fixed: list[str], wanted: tuple[float, float], arguments: argparse.Namespace
) -> Example:
    check_columns("--fixed", fixed, X, arguments.train or "airquality")
    n = arguments.explain
    if n >= len(X):
        raise InputError(f"--explain {n} leaves no row to train on: there are {len(X)} complete ones.")
    return Example(model, X.tail(n), X.iloc[: len(X) - n], fixed, wanted)


def _ends(text: str | None, default: tuple[float, float] | None) -> tuple[float, float]:
    """Read the wanted interval; mcceR's includes both ends."""
    if text is None:
        if default is None:
            raise InputError(
                "--response is a number, so --decision must say which predictions are: as in --decision=10,20."
            )
        return default
    interval: Interval | None = read_interval(text, None)
    if interval is None or interval.closed != "both":
        raise InputError(f"--decision is {text!r}; give two numbers, both included, as in 0.5,1 or -inf,15.")
    return interval.low, interval.high
