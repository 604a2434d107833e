"""Explainers from files: fitted to the rows of a file, or loaded; and the rows to explain, read as these need them.

1. Fitted: both files are read, the kinds of the cells found once, from the training rows (`mcce.cli.cells`); all that
   can be checked is checked before a model is opened or trained (`mcce.cli.checking`).
2. Loaded: the explainer knows what its columns are, so that only separators, marks and formats are found from the rows
   to explain. A model that runs no code when it is opened, and is the one that the explainer was fitted with, is found
   beside it; any other has to be named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import pandas as pd

from mcce.cli.cells import Declared, Reading
from mcce.cli.checking import (
    check_constraints,
    check_features,
    check_named_columns,
    check_rows,
    given_names,
    in_words,
    named_by_text,
    order_levels,
    read_decision,
)
from mcce.cli.console import say
from mcce.cli.files import UNNAMED, TableFile, check_columns, name_rows, read_source
from mcce.cli.models import OURS, OnnxClassifier, OnnxRegressor, load_joblib, load_model, train_model
from mcce.cli.options import OPTIONS
from mcce.constraints import Constraint, allow
from mcce.exceptions import InputError, listing
from mcce.explainer import MCCE
from mcce.generators.chain import ChainModel
from mcce.model.source import classes_of
from mcce.storage import read_manifest
from mcce.table import Feature, Schema
from mcce.table.dtypes import is_dated

MODEL_FILE, MODEL_CHECKSUM, MODEL_CLASSES = "model file", "model checksum", "model classes"  # in a saved explainer
WITHOUT_CODE = (".onnx", ".skops")


@dataclass(frozen=True)
class Job:
    """An explainer with the rows that it is to explain.

    Attributes
    ----------
    explainer : fitted
    source, rows : the file that cells are spelled like, and the file of the rows to explain; None for none
    factuals : the rows to explain
    readings : how each feature is read in either file
    constraints : of the job, besides the explainer's own
    """

    explainer: MCCE
    source: TableFile
    rows: TableFile | None
    factuals: pd.DataFrame | None
    readings: Mapping[Any, tuple[Reading, Reading]]
    constraints: list[Constraint]


def fit_files(arguments: argparse.Namespace, constraints: list[Constraint]) -> Job:
    """Fit an explainer to the training file; rows to explain, if there are any, are checked before (step 1)."""
    declared = Declared.of(arguments)
    train, rows = _read_train(arguments), None
    if arguments.explain is not None:
        rows = read_rows(arguments, dict(train.table.items()))
        if rows.is_text and arguments.id is not None:
            constraints = named_by_text(constraints)
    check_named_columns(train.table, arguments)
    model = None if arguments.model is None else load_model(arguments.model, arguments.trusted)
    names = _feature_names(train.table, model, arguments)
    check_features(names, train, rows, arguments)
    if rows is not None:
        _tell_unused(rows, names, arguments)
    response = [arguments.response] if model is None else []
    readings = train.readings([*names, *response], declared)
    of_response = {name: readings.pop(name) for name in response}
    of_rows = readings if rows is None else rows.readings_like(readings, declared)
    read = train.read(readings, checked=True)
    X, kinds = _as_model_takes_them(read, model, declared, order_levels(read, declared, train, readings))
    factuals = None if rows is None else rows.read(of_rows, checked=False, numbers=declared.numbers)
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
        "random_state": arguments.random_state,
    }
    if arguments.generator is not None:
        how["generator"] = arguments.generator
    if arguments.min_donors is not None:
        chain = ChainModel(fixed=arguments.fixed, min_donors=arguments.min_donors, n_jobs=arguments.n_jobs, **how)
        how = {"generator": chain}
    decision = read_decision(arguments.decision, arguments.of, classes_of(model), counts)
    explainer = MCCE(
        model,
        decision=in_words(decision, arguments.in_words),
        fixed=arguments.fixed,
        n_jobs=arguments.n_jobs,
        names=given_names(arguments),
        constraints=() if rows is not None else constraints,
        **how,
    ).fit(X)
    both = {name: (reading, of_rows[name]) for name, reading in readings.items()}
    return Job(explainer, train, rows, factuals, both, constraints)


def load_files(arguments: argparse.Namespace, constraints: list[Constraint]) -> Job:
    """Load an explainer, and read the rows as it needs them (step 2)."""
    of_fit = [option.flag for option in OPTIONS if option.group == "fit" and is_given(arguments, option.name)]
    if of_fit:
        raise InputError(
            f"{listing(of_fit)} go with mcce fit, but --explainer is fitted; leave them out, or fit again."
        )
    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted, arguments.n_jobs)
    schema = explainer.generator_.schema_
    for name in arguments.drop:
        if name in schema.names:
            raise InputError(
                f"--drop names {name!r}, which {arguments.explainer} was fitted with; leave it out, or fit."
            )
    check_columns("--fixed", arguments.fixed, pd.DataFrame(columns=schema.names), f"those of {arguments.explainer}")
    rows = read_rows(arguments, known_levels(schema))
    if rows.is_text and arguments.id is not None:
        constraints = named_by_text(constraints)
    check_columns("the feature", schema.names, rows.table, rows.path)
    _tell_unused(rows, schema.names, arguments)
    read, readings = rows_like(rows, schema, arguments)
    stay = [name for name in arguments.fixed if name not in explainer.generator_.fixed_]
    kept: list[Constraint] = [allow(name, direction="none") for name in stay]
    check_rows(None, rows, read, schema, arguments)
    if constraints:
        check_constraints(arguments, constraints, schema, read)
    both = {name: (reading, reading) for name, reading in readings.items()}
    return Job(explainer, rows, rows, read, both, [*constraints, *kept])


def rows_like(
    rows: TableFile, schema: Schema, arguments: argparse.Namespace
) -> tuple[pd.DataFrame, Mapping[Any, Reading]]:
    """Return rows of a file as values of a fitted table's columns, and how each column is read."""
    declared = Declared(dates=arguments.dates, decimals=arguments.decimal)
    readings = rows.readings_like({feature.name: reading_of(feature) for feature in schema.features}, declared)
    numbers = [str(feature.name) for feature in schema.features if feature.is_numeric]
    return rows.read(readings, checked=False, numbers=numbers), readings


def reading_of(feature: Feature) -> Reading:
    """Return what the cells of a column are, by what the training column was."""
    values = pd.Series(feature.levels) if feature.levels is not None else pd.Series([], dtype=feature.dtype)
    if is_dated(values.dtype):
        return Reading("date", native=True)  # its format is found from the file
    if pd.api.types.infer_dtype(values, skipna=True) == "boolean":
        return Reading("truth")
    is_number = pd.api.types.is_numeric_dtype(values.infer_objects().dtype)
    return Reading("number") if feature.is_numeric or is_number else Reading("text")


def is_given(arguments: argparse.Namespace, name: str) -> bool:
    """Say whether an option has another value than its default."""
    default = next(option.default for option in OPTIONS if option.name == name)
    return bool(getattr(arguments, name, default) != default)


def load_explainer(
    path: str, model: str | None, trusted: Sequence[str] = (), jobs: int | None = None, role: str = "--explainer"
) -> MCCE:
    """Load a fitted explainer: what `MCCE.save` wrote, with its model, or what joblib wrote, which runs code."""
    where = f"{role} {path}"
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    if is_zipfile(path):
        return MCCE.load(path, _model_of(where, path, model, trusted), n_jobs=jobs)
    if model is not None:
        raise InputError(f"{where} was not written by MCCE.save, so that --model has no place; leave it out.")
    loaded = load_joblib(where, path)
    if not isinstance(loaded, MCCE):
        raise InputError(f"{where} holds a {type(loaded).__name__}; it must be a fitted mcce.MCCE.")
    return loaded


def _model_of(where: str, path: str, given: str | None, trusted: Sequence[str]) -> Any:
    """Return the model of a saved explainer: the one that is named, or one beside it that runs no code."""
    about = read_manifest(path)["about"]
    if given is None:
        lacking = f"{where} was written by MCCE.save, without its model; give that by --model"
        named = Path(str(about.get(MODEL_FILE, "")))
        if not named.name or named.is_absolute() or ".." in named.parts:
            raise InputError(f"{lacking}.")
        if named.suffix.lower() not in WITHOUT_CODE:
            raise InputError(f"{lacking}: it was fitted with {named}, and opening that runs the code that it holds.")
        beside = Path(path).parent / named
        if not beside.is_file():
            raise InputError(f"{lacking}: it was fitted with {named}, which is not beside it.")
        if hashlib.sha256(beside.read_bytes()).hexdigest() != about.get(MODEL_CHECKSUM):
            raise InputError(f"{where} was fitted with another {named} than {beside}; give the right one by --model.")
        given, trusted = str(beside), [*trusted, *(OURS if beside.suffix.lower() == ".skops" else ())]
    model = load_model(given, trusted)
    if isinstance(model, OnnxClassifier) and MODEL_CLASSES in about:
        model.classes_ = np.array(json.loads(about[MODEL_CLASSES]))
    return model


def about_model(path: Path, model: Any, beside: Path) -> dict[str, str]:
    """Return what a saved explainer says of the file of its model."""
    about = {MODEL_CHECKSUM: hashlib.sha256(path.read_bytes()).hexdigest()}
    try:
        about[MODEL_FILE] = path.resolve().relative_to(beside.resolve().parent).as_posix()
    except ValueError:  # elsewhere: whoever uses it names it
        about[MODEL_FILE] = path.name
    if isinstance(model, OnnxClassifier):
        about[MODEL_CLASSES] = json.dumps(model.classes_.tolist())
    return about


def read_rows(arguments: argparse.Namespace, known: Mapping[Any, Iterable[Any]]) -> TableFile:
    """Read the rows to explain, which are named; `known` has the levels of each feature."""
    rows = _read("explain", arguments.explain, arguments).unescaped(known, arguments.id)
    return replace(rows, table=name_rows(rows.table, arguments))


def known_levels(schema: Schema) -> dict[Any, Iterable[Any]]:
    """Return the levels of each feature, none for numbers."""
    return {feature.name: () if feature.levels is None else feature.levels for feature in schema.features}


def _read_train(arguments: argparse.Namespace) -> TableFile:
    train = _read("train", arguments.train, arguments)
    if not len(train.table):
        raise InputError(f"--train {arguments.train} has a header but no rows; give the rows to learn from.")
    return train


def _read(role: str, path: str, arguments: argparse.Namespace) -> TableFile:
    sheet = arguments.sheet.get(role)
    return read_source(f"--{role}", path, arguments.sep, arguments.missing, encoding=arguments.encoding, sheet=sheet)


def _tell_unused(rows: TableFile, names: Sequence[Any], arguments: argparse.Namespace) -> None:
    aside = (getattr(arguments, "response", None), arguments.id, *arguments.drop)
    unused = [c for c in rows.table if c not in names and c not in aside]
    if unused:
        say(f"columns of {arguments.explain} that are not used: {listing(unused)}")


def _feature_names(train: pd.DataFrame, model: Any, arguments: argparse.Namespace) -> list[Any]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        aside = (arguments.response, arguments.id, UNNAMED, *arguments.drop)
        return [c for c in train if c not in aside]
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
