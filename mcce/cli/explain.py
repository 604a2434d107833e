"""`mcce explain`: counterfactuals for the rows of a file.

1. Check where results go; read the training rows, the rows to explain and the constraints. What the cells are is found
   once, from the training rows (`mcce.cli.cells`).
2. Load the model and take its features, or train one for the response.
3. Find counterfactuals, write them, and say which rows have none, and why.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.asking.source import classes_of
from mcce.checks import check_share
from mcce.cli.allowed import check_constraints, read_constraints
from mcce.cli.console import name_list, positive_integer, say, separator
from mcce.cli.inputs import UNNAMED, check_column, load_model, name_rows, read_source
from mcce.cli.outputs import Outputs
from mcce.cli.report import Spellings, write
from mcce.cli.training import train_model
from mcce.cli.wanted import read_wanted
from mcce.exceptions import InputError, listing
from mcce.generators.visit import ORDERS
from mcce.method import MCCE
from mcce.table import Schema


def add_explain(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    explain = commands.add_parser(
        "explain",
        help="explain the decisions for the rows of a file",
        description="For each row of a file find what would have to change for the wanted decision.",
        epilog="Exit codes: 0 done (rows that already have the wanted decision need nothing); 2 bad "
        "arguments, files or models; 3 done, but nothing was found for some rows; 130 interrupted.",
    )
    add = explain.add_argument
    add("--train", required=True, metavar="FILE", help="training rows: .csv, .csv.gz or .parquet")
    add("--explain", required=True, metavar="FILE", help="rows to explain, with the same features")
    add(
        "--model",
        metavar="FILE",
        help="a fitted model, saved by joblib; opening it runs code: only open your own",
    )
    add("--response", metavar="COLUMN", help="without --model: train one for this column; with: leave it out")
    add(
        "--wanted",
        metavar="WHAT",
        help='a class, or an interval: 0.5,1 or "[0,0.1)" or "[20,inf)" ([0.5,1]); '
        'a negative one is written --wanted=-5,3 or "[-5,3]"',
    )
    add("--of", metavar="CLASS", help="the class whose probability the interval is about")
    add("--fixed", type=name_list, default=[], metavar="A,B", help="features that must not change")
    add("--categorical", type=name_list, default=[], metavar="A,B", help="numbers that are codes; text always is")
    add(
        "--numeric",
        type=name_list,
        default=[],
        metavar="A,B",
        help="columns of a CSV that are numbers although they look like codes, as 007 does",
    )
    add(
        "--missing",
        type=name_list,
        default=[],
        metavar="NA,?",
        help="cells of a CSV that mean a missing value; an empty cell always does, nothing else by itself",
    )
    add("--id", metavar="COLUMN", help="column of --explain that names the rows, as text (row number, from 1)")
    add("--n-samples", type=positive_integer, default=1000, metavar="K", help="rows drawn for each row (%(default)s)")
    add(
        "--n-counterfactuals", type=positive_integer, default=1, metavar="N", help="how many for each row (%(default)s)"
    )
    add("--sparse", action="store_true", help="change as few features as it takes, instead of taking whole drawn rows")
    add(
        "--floor",
        type=float,
        metavar="SHARE",
        help="with --sparse: the least plausibility of what is returned, as a share of real rows (0.05)",
    )
    add(
        "--constraints",
        type=Path,
        metavar="FILE",
        help="what may change and how: .toml or .json with [[allow]], [[rule]] and [[only]]",
    )
    add("--sampler", default="cart", metavar="NAME", help="how features are drawn (%(default)s)")
    add(
        "--visit-sequence",
        default="data",
        metavar="ORDER",
        help="data, correlation, reversed, or A,B,... (%(default)s)",
    )
    add("--seed", type=int, default=1, metavar="N", help="seed of the random draws (%(default)s)")
    add("--jobs", type=int, metavar="N", help="threads; the result does not depend on it")
    add("--sep", type=separator, default=",", metavar="CHAR", help=r"separator of CSV files (,); \t is a tab")
    add(
        "--out",
        metavar="FILE",
        help="write all rows as .csv, .csv.gz or .parquet, and those without a counterfactual beside it as "
        ".unexplained.csv; - is CSV on standard output",
    )
    add("--html", type=Path, metavar="FILE", help="write a page for a browser")
    add("--force", action="store_true", help="overwrite files of --out and --html that exist")
    explain.set_defaults(run=run_explain)


def run_explain(arguments: argparse.Namespace) -> int:
    """Read the files, find counterfactuals, write them; return 3 if some row that needs one has none."""
    if arguments.model is None and arguments.response is None:
        raise InputError("there is no model: give --model FILE, or --response COLUMN to train one.")
    options = _options(arguments)
    outputs = Outputs.of(arguments)
    train = read_source("--train", arguments.train, arguments.sep, arguments.missing)
    if not len(train.table):
        raise InputError(f"--train {arguments.train} has a header but no rows; give the rows to learn from.")
    rows = read_source("--explain", arguments.explain, arguments.sep, arguments.missing)
    rows = replace(rows, table=name_rows(rows.table, arguments))
    constraints = read_constraints(arguments.constraints, named=rows.is_text and arguments.id is not None)
    _check_named_columns(train.table, arguments)
    model = None if arguments.model is None else load_model(arguments.model)
    names = _feature_names(train.table, model, arguments)
    for name in names:
        check_column("the feature", name, rows.table, arguments.explain)
    unused = [c for c in rows.table if c not in names and c not in (arguments.response, arguments.id)]
    if unused:
        say(f"columns of {arguments.explain} that are not used: {listing(unused)}")
    kinds = train.kinds(names, arguments.categorical, arguments.numeric)
    X, codes = _as_model_takes_them(train.read(kinds, checked=True), model, arguments)
    factuals = rows.read(kinds, checked=False, numeric=arguments.numeric)
    if arguments.constraints is not None:
        schema = Schema.from_data(X, kinds=codes)
        check_constraints(arguments.constraints, constraints, schema, factuals, arguments.fixed)
    if model is None:
        of_response = train.kinds([arguments.response], arguments.categorical, arguments.numeric)
        model, X = train_model(X, train.read(of_response, checked=True)[arguments.response], arguments)
    explainer = MCCE(
        model,
        decision=read_wanted(arguments.wanted, arguments.of, classes_of(model)),
        fixed=arguments.fixed,
        sampler=arguments.sampler,
        visit_sequence=_visit_sequence(arguments.visit_sequence),
        kinds=codes,
        random_state=arguments.seed,
        n_jobs=arguments.jobs,
    ).fit(X)
    found = explainer.explain(factuals, constraints=constraints, **options)
    return write(found, outputs, Spellings.of(train, rows, factuals, kinds), arguments)


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what `MCCE.explain` is asked for, besides constraints."""
    sizes = {"n_samples": arguments.n_samples, "n_counterfactuals": arguments.n_counterfactuals}
    if arguments.floor is None:
        return {**sizes, "sparse": arguments.sparse}
    if not arguments.sparse:
        raise InputError(f"--floor {arguments.floor:g} goes with --sparse; add it, or leave --floor out.")
    return {**sizes, "sparse": True, "floor": check_share(arguments.floor, "--floor")}


def _check_named_columns(train: pd.DataFrame, arguments: argparse.Namespace) -> None:
    for option in ("categorical", "numeric"):
        for name in getattr(arguments, option):
            check_column(f"--{option}", name, train, arguments.train)
    both = [name for name in arguments.categorical if name in arguments.numeric]
    if both:
        raise InputError(f"--categorical and --numeric both name {listing(both)}; a column is one of them.")
    if arguments.response is not None:
        check_column("--response", arguments.response, train, arguments.train)


def _feature_names(train: pd.DataFrame, model: Any, arguments: argparse.Namespace) -> list[Any]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [c for c in train if c not in (arguments.response, arguments.id, UNNAMED)]
    for name in names:
        check_column(f"the feature of --model {arguments.model}", name, train, arguments.train)
    return list(names)


def _as_model_takes_them(
    X: pd.DataFrame, model: Any, arguments: argparse.Namespace
) -> tuple[pd.DataFrame, dict[Any, Any]]:
    """Return the features, text as levels where we train, and the columns of codes that stay numbers."""
    text = [name for name in X if pd.api.types.infer_dtype(X[name], skipna=True) == "string"]
    codes = [c for c in X if c in arguments.categorical or (model is None and c in text)]
    as_levels = [c for c in codes if model is None or c in text]  # a given model saw numbers as numbers
    return X.astype(dict.fromkeys(as_levels, "category")), {c: "categorical" for c in codes if c not in as_levels}


def _visit_sequence(text: str) -> str | list[str]:
    return text if text in ORDERS else name_list(text)
