"""`mcce explain`: counterfactuals for the rows of a file.

1. Put the job together (`mcce.cli.options`) and check all of it that can be checked (`mcce.cli.checking`): options,
   where results go, both files and their columns, constraints. The kinds of the cells are found once, from the training
   rows (`mcce.cli.cells`).
2. Load the model and take its features, or train one for the response.
3. Find counterfactuals, write them, and say which rows have none, and why.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from mcce.cli.cells import Declared
from mcce.cli.checking import (
    check_constraints,
    check_features,
    check_named_columns,
    check_options,
    check_rows,
    demands,
    given_names,
    in_words,
    named_by_text,
    order_levels,
    read_constraints,
    read_wanted,
)
from mcce.cli.console import say
from mcce.cli.files import UNNAMED, TableFile, name_rows, read_source
from mcce.cli.models import OnnxClassifier, OnnxRegressor, load_model, train_model
from mcce.cli.options import NEEDED, OPTIONS, add_options, complete
from mcce.cli.outputs import Outputs, Spellings, write
from mcce.exceptions import InputError, listing
from mcce.explain.unexplained import MOST_TOLD
from mcce.explainer import MCCE
from mcce.generators.chain import ChainModel
from mcce.model.source import classes_of
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
    explain.add_argument(
        "--config",
        default=argparse.SUPPRESS,
        metavar="FILE",
        help="a TOML file with any of these options; what stands on the command line wins",
    )
    add_options(explain)
    explain.add_argument(
        "--force", action="store_true", default=argparse.SUPPRESS, help="overwrite files of results that exist"
    )
    explain.set_defaults(run=run_explain, refuse=explain.error)


def run_explain(given: argparse.Namespace) -> int:
    """Read the files, find counterfactuals, write them; return 3 if some row that needs one has none."""
    arguments = complete(given)
    absent = [option.flag for option in OPTIONS if option.name in NEEDED and getattr(arguments, option.name) is None]
    if absent:
        given.refuse(f"the following arguments are required: {', '.join(absent)}")
    options = check_options(arguments)
    declared = Declared.of(arguments)
    outputs = Outputs.of(arguments)
    constraints = read_constraints(arguments)
    as_asked = copy.copy(arguments)  # what is found out on the way is no part of the job
    train, rows = _read_both(arguments)
    if rows.is_text and arguments.id is not None:
        constraints = named_by_text(constraints)
    check_named_columns(train.table, arguments)
    model = None if arguments.model is None else load_model(arguments.model, arguments.trusted)
    names = _feature_names(train.table, model, arguments)
    check_features(names, train, rows, arguments)
    unused = [c for c in rows.table if c not in names and c not in (arguments.response, arguments.id)]
    if unused:
        say(f"columns of {arguments.explain} that are not used: {listing(unused)}")
    response = [arguments.response] if model is None else []
    readings = train.readings([*names, *response], declared)
    of_response = {name: readings.pop(name) for name in response}
    of_rows = rows.readings_like(readings, declared)
    read = train.read(readings, checked=True)
    X, kinds = _as_model_takes_them(read, model, declared, order_levels(read, declared, train, readings))
    factuals = rows.read(of_rows, checked=False, numbers=declared.numbers)
    schema = Schema.from_data(X, kinds=kinds, where=train.path)
    check_rows(train, rows, factuals, schema, arguments)
    if constraints:
        check_constraints(arguments, constraints, schema, factuals)
    counts = None
    if model is None:
        y = train.read(of_response, checked=True)[arguments.response]
        model, X = train_model(X, y, arguments, arguments.response in declared.levels)
    elif arguments.response is not None:
        counts = train.table[arguments.response].value_counts().to_dict()
    if isinstance(model, OnnxRegressor):
        model.check(X)
    if isinstance(model, OnnxClassifier):
        model.learn_classes(X)
    how: dict[str, Any] = {
        "sampler": arguments.sampler,
        "visit_sequence": arguments.visit_sequence,
        "kinds": kinds,
        "random_state": arguments.seed,
    }
    if arguments.generator is not None:
        how["generator"] = arguments.generator
    if arguments.min_donors is not None:
        chain = ChainModel(fixed=arguments.fixed, min_donors=arguments.min_donors, n_jobs=arguments.jobs, **how)
        how = {"generator": chain}
    explainer = MCCE(
        model,
        decision=in_words(read_wanted(arguments.wanted, arguments.of, classes_of(model), counts), arguments.in_words),
        fixed=arguments.fixed,
        n_jobs=arguments.jobs,
        names=given_names(arguments),
        **how,
    ).fit(X)
    demanded = [*constraints, *demands(arguments)]
    found = explainer.explain(factuals, constraints=demanded, **options)
    if demanded or any(options.get(name) is not None for name in ("max_changes", "max_gower", "robust")):
        found = found.with_why(MOST_TOLD)
    both = {name: (reading, of_rows[name]) for name, reading in readings.items()}
    return write(found, outputs, Spellings.of(train, rows, factuals, both), as_asked)


def _read_both(arguments: argparse.Namespace) -> tuple[TableFile, TableFile]:
    """Read the training rows and the rows to explain, which are named."""

    def read(role: str, path: str) -> TableFile:
        sheet = arguments.sheet.get(role)
        return read_source(
            f"--{role}", path, arguments.sep, arguments.missing, encoding=arguments.encoding, sheet=sheet
        )

    train = read("train", arguments.train)
    if not len(train.table):
        raise InputError(f"--train {arguments.train} has a header but no rows; give the rows to learn from.")
    rows = read("explain", arguments.explain)
    return train, replace(rows, table=name_rows(rows.table, arguments))


def _feature_names(train: pd.DataFrame, model: Any, arguments: argparse.Namespace) -> list[Any]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [c for c in train if c not in (arguments.response, arguments.id, UNNAMED)]
    return list(names)


def _as_model_takes_them(
    X: pd.DataFrame, model: Any, declared: Declared, ordered: Mapping[Any, tuple[Any, ...]]
) -> tuple[pd.DataFrame, dict[Any, Any]]:
    """Return the features, text as levels where we train, and the columns of codes that stay numbers."""
    text = [name for name in X if pd.api.types.infer_dtype(X[name], skipna=True) == "string"]
    codes = [c for c in X if c in declared.levels or c in ordered or (model is None and c in text)]
    as_levels = [c for c in codes if model is None or c in text]  # a given model saw numbers as numbers
    dtypes: dict[Any, Any] = {
        c: pd.CategoricalDtype(list(ordered[c]), ordered=True) if c in ordered else "category" for c in as_levels
    }
    stay = [c for c in codes if c not in as_levels]
    for name in stay:
        if name in ordered and list(ordered[name]) != sorted(ordered[name]):
            raise InputError(
                f"--ordered {name}={'<'.join(map(str, ordered[name]))}: the model takes {name!r} as numbers, which "
                "have their own order. Give it from the smallest to the largest."
            )
    return X.astype(dtypes), {c: "ordered" if c in ordered else "categorical" for c in stay}
