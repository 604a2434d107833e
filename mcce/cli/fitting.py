"""Explainers fitted to files or loaded, and rows to explain, read with the kinds of the training columns.

The model of a loaded explainer is that of `--model`, or the file beside it with which it was fitted, if opening that
runs no code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
import pandas as pd

from mcce.cli.checking import check_constraints, check_rows, given_names, in_words, named_by_text, read_decision
from mcce.cli.console import notify
from mcce.cli.models import OURS, OnnxClassifier, OnnxRegressor, load_joblib, load_model, train_model
from mcce.cli.options import OPTIONS, is_given
from mcce.cli.tables import UNNAMED, Reading, ReadOptions, TableFile, check_columns, kind_of, name_rows, read_table
from mcce.constraints import Constraint, allow
from mcce.exceptions import InputError, listing, spell
from mcce.explainer import MCCE
from mcce.generators.chain import ChainModel
from mcce.generators.graph import Graph
from mcce.model.source import classes_of
from mcce.plausibility.derived import fit_formulas
from mcce.storage import read_manifest
from mcce.table import Schema

MODEL_FILE, MODEL_CHECKSUM, MODEL_CLASSES = "model file", "model checksum", "model classes"  # in a saved explainer
WITHOUT_CODE = (".onnx", ".skops")
NAMING = ["fixed", "drop", "kinds", "derived", "ordered", "date_format"]  # options that name columns
NAMING += ["allow_missing", "feature_weights", "actions", "takes", "noise", "sampler", "labels", "units", "formats"]
OF_NO_COLUMN = ("", None, "*", "prediction")


@dataclass(frozen=True)
class Job:
    """An explainer with the rows to explain.

    Attributes
    ----------
    explainer : the fitted explainer
    source, readings : the file whose format the results have, and the readings of its features
    factuals : the rows to explain, or None
    constraints : constraints of the job, besides those of the explainer
    """

    explainer: MCCE
    source: TableFile
    readings: Mapping[Any, Reading]
    factuals: pd.DataFrame | None
    constraints: list[Constraint]


def fit_files(arguments: argparse.Namespace, constraints: list[Constraint]) -> Job:
    """Fit an explainer to the training file; rows to explain are checked before the fit."""
    options = ReadOptions.from_arguments(arguments)
    train, rows, factuals = read_table("--train", arguments.train, options, arguments.sheet.get("train")), None, None
    if not len(train.table):
        raise InputError(f"--train {arguments.train} has a header but no rows; give the rows to learn from.")
    _check_named_columns(train, arguments)
    model = None if arguments.model is None else load_model(arguments.model, arguments.trusted)
    names = _feature_names(train.table, model, arguments)
    check_columns(
        "the feature" if model is None else f"the feature of --model {arguments.model}", names, train.table, train.path
    )
    check_columns("--fixed", arguments.fixed, train.table[names], f"the features of {train.path}")
    response = [arguments.response] if model is None else []
    readings = train.find_readings([*names, *response])
    of_response = {name: readings.pop(name) for name in response}
    read = train.read(readings)
    X, kinds = _convert_for_model(read, model, options, _order_levels(read, train, readings))
    schema = Schema.from_data(X, kinds=kinds, where=train.path)
    if arguments.explain is not None:
        rows, of_rows = _read_rows(arguments, readings, dict(train.table.items()))
        factuals = rows.read(of_rows)
        check_rows(rows, factuals, schema)
        constraints = named_by_text(constraints) if rows.names_are_text and arguments.id else constraints
    if constraints:
        check_constraints(arguments, constraints, schema, factuals, fit_formulas(arguments.derived or {}, X, schema))
    if arguments.graph is not None:
        Graph.from_file(arguments.graph).of_columns(schema.names).visit(schema.names, arguments.fixed)
    if model is None:
        y = train.read(of_response)[arguments.response]
        model, X = train_model(X, y, arguments, arguments.response in options.levels)
    if isinstance(model, OnnxRegressor):
        model.check(X)
    if isinstance(model, OnnxClassifier):
        model.learn_classes(X)
    how: dict[str, Any] = {
        "sampler": arguments.sampler,
        "visit_sequence": arguments.visit_sequence,
        "graph": arguments.graph,
        "kinds": kinds,
        "random_state": arguments.random_state,
    }
    if arguments.generator is not None:
        how["generator"] = arguments.generator
    if arguments.min_donors is not None and arguments.generator is None:
        chain = ChainModel(fixed=arguments.fixed, min_donors=arguments.min_donors, n_jobs=arguments.n_jobs, **how)
        how = {"generator": chain}
    elif arguments.min_donors is not None:
        raise InputError(
            "--min-donors and --generator exclude each other: samplers have donors; leave one of them out."
        )
    decision = read_decision(arguments.decision, arguments.of, classes_of(model))
    explainer = MCCE(
        model,
        decision=in_words(decision, arguments.in_words),
        fixed=arguments.fixed,
        n_jobs=arguments.n_jobs,
        names=given_names(arguments),
        derived=arguments.derived or None,
        constraints=() if rows is not None else constraints,
        **how,
    ).fit(X)
    source, of_source = (train, readings) if rows is None or train.sep else (rows, of_rows)
    return Job(explainer, source, of_source, factuals, constraints)


def load_files(arguments: argparse.Namespace, constraints: list[Constraint]) -> Job:
    """Load an explainer, and read the rows for it."""
    of_fit = [option.flag for option in OPTIONS if option.group == "fit" and is_given(arguments, option.name)]
    if of_fit:
        raise InputError(
            f"{listing(of_fit)} are options of mcce fit, but --explainer is fitted; leave them out, or fit again."
        )
    explainer = load_explainer(arguments.explainer, arguments.model, arguments.trusted, arguments.n_jobs)
    schema = explainer.generator_.schema_
    for name in arguments.drop:
        if name in schema.names:
            raise InputError(
                f"--drop names {name!r}, which {arguments.explainer} was fitted with; leave it out, or fit."
            )
    rows, readings = _read_rows(arguments, readings_of(schema), known_levels(schema))
    factuals = rows.read(readings)
    check_rows(rows, factuals, schema)
    constraints = named_by_text(constraints) if rows.names_are_text and arguments.id else constraints
    if constraints:
        check_constraints(arguments, constraints, schema, factuals, explainer.derived_)
    return Job(explainer, rows, readings, factuals, [*constraints, *kept_fixed(explainer, arguments)])


def kept_fixed(explainer: MCCE, arguments: argparse.Namespace) -> list[Constraint]:
    """Return constraints for the features of `--fixed` that are not fixed in the explainer."""
    generator = explainer.generator_
    known = pd.DataFrame(columns=generator.schema_.names)
    check_columns("--fixed", arguments.fixed, known, f"those of {arguments.explainer}")
    return [allow(name, direction="none") for name in arguments.fixed if name not in generator.fixed_]


def read_like(
    role: str, path: str, schema: Schema, options: ReadOptions, sheet: str | None = None, id: str | None = None
) -> TableFile:
    """Read a file with the training columns; `role` is its option, for messages."""
    return _with_columns(read_table(role, path, options, sheet), readings_of(schema), known_levels(schema), id)


def _with_columns(
    file: TableFile, training: Mapping[Any, Reading], known: Mapping[Any, Iterable[Any]], id: str | None
) -> TableFile:
    """Return a file with the kinds of the training columns, without the apostrophes of spreadsheet-safe files."""
    file = file.unescaped(known, id)
    check_columns("the feature", training, file.table, file.path)
    return file.like(training)


def values_of(rows: TableFile, schema: Schema) -> pd.DataFrame:
    """Return the rows of a file as values of the training columns."""
    return rows.read(rows.find_readings(schema.names))


def read_values(role: str, path: str, schema: Schema, options: ReadOptions, sheet: str | None = None) -> pd.DataFrame:
    """Return the rows of a file as values of the training columns; raise if there are none."""
    rows = read_like(role, path, schema, options, sheet)
    if not len(rows.table):
        raise InputError(f"{role} {path} has a header but no rows; give some.")
    return values_of(rows, schema)


def readings_of(schema: Schema) -> dict[Any, Reading]:
    """Return the kinds of the training columns; date formats are detected in a file."""
    found = {}
    for feature in schema.features:
        values = pd.Series([], dtype=feature.dtype) if feature.levels is None else pd.Series(feature.levels)
        kind = kind_of(values.infer_objects())
        is_object = feature.is_numeric and kind == "categorical"
        found[feature.name] = Reading("numeric" if is_object else kind)
    return found


def _read_rows(
    arguments: argparse.Namespace, training: Mapping[Any, Reading], known: Mapping[Any, Iterable[Any]]
) -> tuple[TableFile, dict[Any, Reading]]:
    """Read the rows to explain with their names, and find the readings of the training columns."""
    options = ReadOptions.from_arguments(arguments)
    rows = read_table("--explain", arguments.explain, options, arguments.sheet.get("explain"))
    rows = name_rows(_with_columns(rows, training, known, arguments.id), arguments.id)
    aside = (getattr(arguments, "response", None), arguments.id, UNNAMED, *arguments.drop)
    unused = [name for name in rows.table if name not in training and name not in aside]
    if unused:
        notify(f"columns of {rows.path} that are not used: {listing(unused)}")
    return rows, rows.find_readings(training)


def load_explainer(
    path: str, model: str | None, trusted: Sequence[str] = (), jobs: int | None = None, role: str = "--explainer"
) -> MCCE:
    """Load a fitted explainer: a file of `MCCE.save` with its model, or a file of joblib, which runs code."""
    where = f"{role} {path}"
    if is_zipfile(path):
        return MCCE.load(path, _model_of(where, path, model, trusted), n_jobs=jobs)
    if model is not None:
        raise InputError(f"{where} was not written by MCCE.save and holds its model; leave --model out.")
    loaded = load_joblib(where, path)
    if not isinstance(loaded, MCCE):
        raise InputError(f"{where} holds a {type(loaded).__name__}; it must be a fitted mcce.MCCE.")
    return loaded


def _model_of(where: str, path: str, given: str | None, trusted: Sequence[str]) -> Any:
    """Return the model of a saved explainer: the given one, or one beside it that runs no code."""
    if given is None:
        beside = find_model(path, where)
        given, trusted = str(beside), [*trusted, *(OURS if beside.suffix.lower() == ".skops" else ())]
    model = load_model(given, trusted)
    about = read_manifest(path)["about"]
    if isinstance(model, OnnxClassifier) and MODEL_CLASSES in about:
        model.classes_ = np.array(json.loads(about[MODEL_CLASSES]))
    return model


def find_model(path: str, where: str) -> Path:
    """Return the model file beside a saved explainer, if it is unchanged and runs no code."""
    about = read_manifest(path)["about"]
    lacking = f"{where} was written by MCCE.save, without its model; give the model by --model"
    named = Path(str(about.get(MODEL_FILE, "")))
    if not named.name or named.is_absolute() or ".." in named.parts:
        raise InputError(f"{lacking}.")
    if named.suffix.lower() not in WITHOUT_CODE:
        raise InputError(f"{lacking}: it was fitted with {named}, and opening that file runs code.")
    beside = Path(path).parent / named
    if not beside.is_file():
        raise InputError(f"{lacking}: it was fitted with {named}, which is not beside it.")
    if hashlib.sha256(beside.read_bytes()).hexdigest() != about.get(MODEL_CHECKSUM):
        raise InputError(f"{where} was fitted with another {named} than {beside}; give the right one by --model.")
    return beside


def files_of(explainer: str | None, model: str | None) -> dict[str, str | Path]:
    """Return the files of a loaded explainer and its model, for records."""
    found: dict[str, str | Path] = {} if explainer is None else {"explainer": explainer}
    if model is None and explainer is not None and is_zipfile(explainer):
        found["model"] = find_model(explainer, f"--explainer {explainer}")
    elif model is not None:
        found["model"] = model
    return found


def about_model(path: Path, model: Any, beside: Path) -> dict[str, str]:
    """Return what a saved explainer states about the file of its model."""
    about = {MODEL_CHECKSUM: hashlib.sha256(path.read_bytes()).hexdigest()}
    try:
        about[MODEL_FILE] = path.resolve().relative_to(beside.resolve().parent).as_posix()
    except ValueError:  # elsewhere: --model must name it
        about[MODEL_FILE] = path.name
    if isinstance(model, OnnxClassifier):
        about[MODEL_CLASSES] = json.dumps(model.classes_.tolist())
    return about


def known_levels(schema: Schema) -> dict[Any, Iterable[Any]]:
    """Return the levels of each feature; empty for numbers."""
    return {feature.name: () if feature.levels is None else feature.levels for feature in schema.features}


def _check_named_columns(train: TableFile, arguments: argparse.Namespace) -> None:
    """Raise if options name columns that the training file does not have."""
    for option in OPTIONS:
        names = getattr(arguments, option.name) if option.name in NAMING else ()
        if isinstance(names, (list, dict)):  # others hold for all columns
            columns = [name for name in names if name not in OF_NO_COLUMN]
            check_columns(option.flag, columns, train.table, train.path)
    if arguments.response is not None:
        check_columns("--response", [arguments.response], train.table, train.path)


def _feature_names(train: pd.DataFrame, model: Any, arguments: argparse.Namespace) -> list[Any]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        aside = (arguments.response, arguments.id, UNNAMED, *arguments.drop)
        names = [c for c in train if c not in aside]
    if not len(names):
        raise InputError(f"{arguments.train} has no features besides --response and --id; give more columns.")
    return list(names)


def _convert_for_model(
    X: pd.DataFrame, model: Any, options: ReadOptions, ordered: Mapping[Any, tuple[Any, ...]]
) -> tuple[pd.DataFrame, dict[Any, Any]]:
    """Return the features, with text as levels if a model is trained, and the kinds of codes that stay numbers."""
    text = [name for name in X if pd.api.types.infer_dtype(X[name], skipna=True) == "string"]
    codes = [c for c in X if c in options.levels or c in ordered or (model is None and c in text)]
    as_levels = [c for c in codes if model is None or c in text]  # a given model was trained on numbers
    dtypes: dict[Any, Any] = {
        c: pd.CategoricalDtype(list(ordered[c]), ordered=True) if c in ordered else "category" for c in as_levels
    }
    stay = [c for c in codes if c not in as_levels]
    for name in stay:
        if name in ordered and list(ordered[name]) != sorted(ordered[name]):
            raise InputError(
                f"--ordered {name}={'<'.join(map(str, ordered[name]))}: the model takes {name!r} as numbers, which "
                "have their own order. List them from the smallest to the largest."
            )
    return X.astype(dtypes), {c: "ordered" if c in ordered else "categorical" for c in stay}


def _order_levels(X: pd.DataFrame, train: TableFile, readings: Mapping[Any, Reading]) -> dict[Any, tuple[Any, ...]]:
    """Return the levels of the columns of `--ordered`, as values."""
    found: dict[Any, tuple[Any, ...]] = {}
    for name, levels in train.options.ordered.items():
        if name not in X:
            continue
        reading = readings[name]
        are_numbers = reading.kind == "numeric" and all(map(reading.marks.plain, levels))
        found[name] = tuple(map(reading.marks.number, levels)) if are_numbers else tuple(levels)
        odd = np.flatnonzero(X[name].notna() & ~X[name].isin(found[name]))
        if odd.size:
            raise InputError(
                f"column {name!r} of {train.path} holds {spell(X[name].iloc[odd[0]])} on {train.place(odd[0])}, which "
                f"--ordered {name}={'<'.join(levels)} does not name. Add it there, or correct it."
            )
    return found
