"""Checks of `mcce explain`, before a model is opened or trained: options, columns, rows, decision, constraints.

1. Options by themselves: which go together, names of samplers and measures, shares.
2. Names of columns, in both files, all that are missing at once.
3. The rows to explain beside the training rows: levels that no training row has, missing values where there were none.
4. The wanted decision: an interval, or a class by its spelling.
5. Constraints, from a TOML or JSON file or that of `--config`. The file is read before anything is trained; its grammar
   and keys are checked. Names of rows are text where a column names them (`--id`): a number that names a factual is
   taken for its digits. Names and levels are checked against both tables.

Every error begins with the option and the file.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.checks import MOST_DRAWS, check_count, check_not_negative, check_share
from mcce.cli.cells import Declared, Reading, plain
from mcce.cli.console import say
from mcce.cli.files import TableFile, check_column, check_columns, lacking
from mcce.constraints import Constraint, OfFactuals, allow, available_constraints, no_copies, read, resolve
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.explain.order import find_measure, resolve_weights
from mcce.generators.auto import AUTO
from mcce.generators.base import GENERATORS
from mcce.generators.layout import REST
from mcce.generators.visit import make_visit_sequence
from mcce.model.decisions import Interval, OneOf
from mcce.model.robustness import Robust
from mcce.model.source import plain_values
from mcce.report.names import Names
from mcce.samplers import make_sampler
from mcce.samplers.base import samplers_with_min_donors
from mcce.table import Feature, Schema, Table
from mcce.table.checks import check_magnitudes, check_missing
from mcce.table.dtypes import holds_missing
from mcce.table.left_out import without_unknown_levels
from mcce.wording import Value


def read_decision(text: str | None, of: str | None, classes: Any, counts: Mapping[Any, int] | None = None) -> Any:
    """Return the wanted decision: an interval, or the model's class that is spelled like `text`.

    `counts` are the training rows of each class, for messages, if they are known.
    """
    interval = read_interval("0.5,1" if text is None else text, read_class("--of", of, classes, counts))
    if interval is not None:
        known = None if classes is None else plain_values(classes)
        if of is None and known is not None and set(known) not in ({0, 1}, {-1, 1}):
            raise InputError(
                f"--decision {interval.bounds()} needs --of, the class whose score it is: one of {listing(known)}."
            )
        return interval
    if of is not None:
        raise InputError(f"--of {of} goes with an interval, but --decision is {spell(text)}; leave --of out.")
    return read_class("--decision", text, classes, counts)


def in_words(decision: Any, label: str | None) -> Any:
    """Return the decision with the words that people call it by."""
    if label is None:
        return decision
    return replace(decision, label=label) if isinstance(decision, Interval) else OneOf([decision], label=label)


def read_interval(text: str, of: Any) -> Interval | None:
    """Read an interval such as 0,1 or [0,1) or (0,inf); None if the text is none."""
    parts = re.fullmatch(r"([\[(]?)([^,]+),([^,\])]+)([\])]?)", text.strip())
    if parts is None:
        return None
    try:
        low, high = float(parts[2]), float(parts[3])
    except ValueError:
        return None
    if bool(parts[1]) != bool(parts[4]):
        raise InputError(f"--decision is {spell(text)}; write an interval as 0,1 or [0,1] or [0,1) or (0,inf).")
    closed = {"[]": "both", "[)": "left", "(]": "right", "()": "neither", "": "both"}[parts[1] + parts[4]]
    return Interval(low, high, closed=closed, of=of)


def read_class(role: str, text: str | None, classes: Any, counts: Mapping[Any, int] | None = None) -> Any:
    """Return the one of the classes that is spelled like the text, None without a text; `role` is its option.

    A class that is spelled exactly so comes first; one that differs in capitals or blanks is taken if there is
    no other.
    """
    if text is None:
        return None
    if classes is None:
        raise InputError(
            f"{role} is {spell(text)}, but the model declares no classes; give --decision an interval, as in 10,20."
        )
    known = plain_values(classes)
    exact = [label for label in known if str(label) == text]
    alike = [label for label in known if _loosely(label) == _loosely(text) or _shortly(label) == text.strip()]
    if exact and len(alike) > 1:
        say(
            f"warning: {role} {text} is the class {_counted(exact[0], counts)}; others are spelled nearly alike: "
            f"{_all_counted([label for label in alike if label != exact[0]], counts)}. If they mean the same, "
            "correct them"
        )
    if exact:
        return exact[0]
    if len(alike) > 1:
        raise InputError(
            f"{role} is {spell(text)}, which could be {_all_counted(alike, counts)}. Write it exactly as one of them, "
            "or correct the file if they mean the same."
        )
    if alike:
        return alike[0]
    raise InputError(f"{role} is {spell(text)}, which is no class of the model; {did_you_mean(text, known)}")


def _loosely(label: Any) -> str:
    return " ".join(str(label).split()).casefold()


def _shortly(label: Any) -> str | None:
    return f"{label:g}" if isinstance(label, float) else None


def _counted(label: Any, counts: Mapping[Any, int] | None) -> str:
    return repr(label) if counts is None or label not in counts else f"{label!r} ({counts[label]} training rows)"


def _all_counted(labels: Iterable[Any], counts: Mapping[Any, int] | None) -> str:
    return ", ".join(_counted(label, counts) for label in labels)


def read_constraints(arguments: argparse.Namespace) -> list[Constraint]:
    """Return the constraints of a file, or those that stand in that of `--config` (step 5)."""
    source = arguments.constraints
    if source is None:
        return []
    if isinstance(source, str) and not Path(source).is_file():
        raise InputError(f"--constraints {source}: there is no such file; check its name and folder.")
    with _naming_the_file(arguments):
        constraints = read(Path(source) if isinstance(source, str) else source)
    if not constraints:
        sections = ", ".join(f"[[{name}]]" for name in available_constraints())
        raise InputError(f"--constraints {source} says nothing; give {sections}, or leave it out.")
    return constraints


def named_by_text(constraints: Sequence[Constraint]) -> list[Constraint]:
    """Return constraints for rows whose names are text (step 5)."""
    return [_by_text(each) for each in constraints]


def check_constraints(
    arguments: argparse.Namespace, constraints: Sequence[Constraint], schema: Schema, factuals: pd.DataFrame | None
) -> None:
    """Refuse constraints that name what the tables do not have, or that leave nothing for any row (step 5)."""
    with _naming_the_file(arguments):
        resolved = resolve(constraints, schema, [name for name in arguments.fixed if name in schema.names])
        if factuals is not None:
            known, _ = without_unknown_levels(factuals, schema)
            resolved.check_factuals(schema.encode(known).matrix, known.index)


@contextmanager
def _naming_the_file(arguments: argparse.Namespace) -> Iterator[None]:
    """Let an error begin with the file, named once."""
    source = arguments.constraints
    where, own = f"--config {arguments.config}", "constraints"
    if isinstance(source, str):
        where, own = f"--constraints {source}", f"constraints of {Path(source).name}"
    try:
        yield
    except InputError as error:
        first = error.args[0]
        if isinstance(first, str):
            first = first.removeprefix(own).removeprefix(", ").removeprefix(": ")
        raise InputError(f"{where}: ", first, *error.args[1:]) from error


def _by_text(constraint: Constraint) -> Constraint:
    return constraint.with_names(_name) if isinstance(constraint, OfFactuals) else constraint


def _name(who: Hashable) -> Hashable:
    return str(who) if isinstance(who, int) and not isinstance(who, bool) else who


def check_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what `MCCE.explain` is asked for, besides constraints (step 1)."""
    if arguments.model is None and arguments.response is None and arguments.explainer is None:
        raise InputError("there is no model: give --model FILE, or --response COLUMN to train one.")
    if arguments.floor is not None and not arguments.sparse:
        raise InputError(f"--floor {arguments.floor:g} goes with --sparse; add it, or leave --floor out.")
    if arguments.caution is not None and not arguments.sparse:
        raise InputError(f"--caution {arguments.caution:g} goes with --sparse; add it, or leave --caution out.")
    if arguments.diverse and arguments.n_counterfactuals == 1:
        raise InputError("--diverse goes with --n-counterfactuals of 2 or more; add it, or leave --diverse out.")
    if arguments.diverse and arguments.n_samples == "auto":
        raise InputError(
            "--diverse chooses among all draws at once, and --n-samples auto draws in rounds; give a number."
        )
    if arguments.robust is not None and arguments.noise is None:
        raise InputError(f"--robust {arguments.robust:g} goes with --noise; add it, as in --noise 0.02.")
    if arguments.robust is not None and not 0 < arguments.robust <= 1:
        raise InputError(f"--robust is {arguments.robust:g}; it is a share, above 0 and at most 1.")
    for name in arguments.measures:
        if find_measure(name, "--measures").needs_score and not arguments.sparse:
            raise InputError(f"--measures {name} goes with --sparse; add it, or name another one.")
    if arguments.generator is not None:
        GENERATORS.find(arguments.generator)
        if arguments.min_donors is not None:
            raise InputError(
                f"--min-donors goes with samplers, but --generator {arguments.generator} draws; leave one of them out."
            )
    samplers = arguments.sampler.values() if isinstance(arguments.sampler, dict) else [arguments.sampler]
    for sampler in samplers:
        if sampler != AUTO:
            make_sampler(sampler)
    if arguments.n_samples != "auto":
        check_count(arguments.n_samples, "--n-samples", most=MOST_DRAWS, or_else=", or auto")
    if arguments.max_changes is not None:
        check_count(arguments.max_changes, "--max-changes")
    asked = {
        "n_samples": arguments.n_samples,
        "n_counterfactuals": arguments.n_counterfactuals,
        "sparse": arguments.sparse,
        "diverse": arguments.diverse,
        "max_changes": arguments.max_changes,
        "max_gower": None if arguments.max_gower is None else check_not_negative(arguments.max_gower, "--max-gower"),
        "weights": arguments.weights or None,
    }
    if arguments.floor is not None:
        asked["floor"] = check_share(arguments.floor, "--floor")
    if arguments.caution is not None:
        asked["caution"] = check_not_negative(arguments.caution, "--caution")
    if arguments.measures:
        asked["measures"] = arguments.measures
    if arguments.noise is not None:
        for share in arguments.noise.values() if isinstance(arguments.noise, dict) else [arguments.noise]:
            check_share(share, "--noise")
        asked["robust"] = Robust(noise=arguments.noise, share=arguments.robust)
    return asked


def given_names(arguments: argparse.Namespace) -> Names:
    """Return what features, values and predictions are called."""
    return Names(labels=arguments.labels, units=arguments.units, formats=arguments.formats)


def demands(arguments: argparse.Namespace) -> list[Constraint]:
    """Return the options that are constraints: what may become missing, and no copies of training rows."""
    may_be_missing: list[Constraint] = [allow(name, missing=True) for name in arguments.allow_missing]
    return [*may_be_missing, no_copies()] if arguments.exclude_training else may_be_missing


def check_named_columns(train: pd.DataFrame, arguments: argparse.Namespace) -> None:
    """Refuse names of columns that the training file does not have (step 2)."""
    named: dict[str, Iterable[str]] = {
        "--categorical": arguments.categorical,
        "--numeric": arguments.numeric,
        "--kinds": arguments.kinds,
        "--dates": arguments.dates,
        "--ordered": [name for name in arguments.ordered if name],
        "--decimal": [name for name, _ in arguments.decimal.by_column],
        "--drop": arguments.drop,
    }
    for option, names in named.items():
        check_columns(option, names, train, arguments.train)
    if arguments.response is not None:
        check_column("--response", arguments.response, train, arguments.train)


def check_features(names: list[Any], train: TableFile, rows: TableFile | None, arguments: argparse.Namespace) -> None:
    """Refuse features that a file lacks, and options that name others (step 2)."""
    of_model = f"the feature of --model {arguments.model}" if arguments.model is not None else "the feature"
    problems = [lacking(of_model, names, train.table, train.path)]
    problems += [] if rows is None else [lacking("the feature", names, rows.table, rows.path)]
    if any(problems):
        raise InputError("; and ".join(problem for problem in problems if problem))
    features = pd.DataFrame(columns=names)
    samplers = arguments.sampler if isinstance(arguments.sampler, dict) else {}
    noise = arguments.noise if isinstance(arguments.noise, dict) else {}
    mutable = [name for name in names if name not in arguments.fixed]
    of_columns = {
        "--fixed": arguments.fixed,
        "--weights": arguments.weights,
        "--allow-missing": arguments.allow_missing,
    }
    for option, named in of_columns.items():
        _check_among(option, named, features, arguments)
    for option, chosen in (("--sampler", [name for name in samplers if name != REST]), ("--noise", noise)):
        _check_among(option, chosen, features, arguments)
        if kept := [name for name in chosen if name not in mutable]:
            raise InputError(f"{option} names {listing(kept)}, which --fixed keeps; leave it out.")
    Names.read(given_names(arguments), names)
    if not names:
        raise InputError(f"{arguments.train} has no features besides --response and --id; give more columns.")
    if not mutable:
        raise InputError(f"--fixed names every feature ({listing(names)}); leave out those that may change.")


def _check_among(option: str, named: Iterable[str], features: pd.DataFrame, arguments: argparse.Namespace) -> None:
    for name in named:
        if name in (arguments.response, arguments.id) and name not in features:
            what = "--response" if name == arguments.response else "--id"
            raise InputError(f"{option} names {name!r}, which is the column of {what} and no feature; leave it out.")
    check_columns(option, named, features, f"the features of {arguments.train}")


def check_rows(
    train: TableFile | None,
    rows: TableFile | None,
    factuals: pd.DataFrame | None,
    schema: Schema,
    arguments: argparse.Namespace,
) -> None:
    """Refuse rows to explain that do not fit the training rows, and orders and weights that do not (step 3).

    A level that no training row has stops nobody else, unless every row has one. Without a training file the explainer
    is fitted already; without rows there are none to explain yet.
    """
    table = Table(schema.features, np.empty((0, len(schema))))
    if rows is not None and factuals is not None:
        known = "the training rows" if train is None else train.path
        _check_cells(known, rows, factuals, schema)
        known_rows, _ = without_unknown_levels(factuals, schema)
        table = schema.encode(known_rows, rows.path)
        check_magnitudes(table, rows.path)
        check_missing(table, known_rows.index, rows.path)
    resolve_weights(arguments.weights or None, schema.features)
    if train is None:
        return
    _check_samplers(schema, arguments)
    if arguments.visit_sequence != "correlation":
        make_visit_sequence(arguments.visit_sequence, table, arguments.fixed)


def _check_cells(known: str, rows: TableFile, factuals: pd.DataFrame, schema: Schema) -> None:
    """Refuse cells that no training row could have; levels that are unknown only where no row is left."""
    n_unknown = np.zeros(len(factuals), dtype=np.int64)
    first: list[str] = []
    for feature in schema.features:
        values = factuals[feature.name]
        if values.isna().any() and not holds_missing(feature.dtype):
            at = int(values.isna().to_numpy().argmax())
            raise InputError(
                f"column {feature.name!r} of {rows.path} has no value on {rows.place(at)}, but every row of "
                f"{known} has one there. Fill it in, or leave that row out."
            )
        if feature.levels is None:
            _check_whole(feature, values, known, rows)
            continue
        unknown = feature.is_unknown(values)
        n_unknown += unknown
        if unknown.any():
            at = int(unknown.argmax())
            first.append(
                f"column {feature.name!r} of {rows.path} holds the level {spell(values.iloc[at])} on {rows.place(at)}, "
                f"which {known} never has (it has {listing(feature.levels)}). Correct it, or leave that row out."
            )
    if first and n_unknown.all():
        raise InputError(first[0])


def _check_samplers(schema: Schema, arguments: argparse.Namespace) -> None:
    """Refuse samplers that cannot model their features."""
    chosen = arguments.sampler if isinstance(arguments.sampler, dict) else {REST: arguments.sampler}
    mutable = [feature for feature in schema.features if feature.name not in arguments.fixed]
    without = [feature.name for feature in mutable if feature.name not in chosen and REST not in chosen]
    if without:
        raise InputError(f"--sampler says nothing of {listing(without)}; add *=cart for the rest.")
    for feature in mutable:
        sampler = chosen[feature.name if feature.name in chosen else REST]
        if sampler == AUTO:
            continue
        made = make_sampler(sampler)
        made.check_target(feature)
        if feature.has_missing and not made.handles_missing:
            raise InputError(
                "--sampler: ",
                Value(made),
                f" for {feature.name!r} takes no missing values, and there are some; fill them, or name "
                "another sampler.",
            )
        if arguments.min_donors is not None and "min_donors" not in made.get_params():
            raise InputError(
                f"--min-donors {arguments.min_donors}: ",
                Value(made),
                f" for {feature.name!r} does not draw from pools of training rows; use one of "
                f"{samplers_with_min_donors()}, or leave --min-donors out.",
            )


def _check_whole(feature: Feature, values: pd.Series[Any], known: str, rows: TableFile) -> None:
    if not pd.api.types.is_integer_dtype(feature.dtype) or not pd.api.types.is_float_dtype(values.dtype):
        return
    broken = values.notna() & (values % 1 != 0)
    if broken.any():
        at = int(broken.to_numpy().argmax())
        raise InputError(
            f"column {feature.name!r} of {rows.path} holds {spell(values.iloc[at])} on {rows.place(at)}, but all "
            f"numbers of {known} there are whole. Round it, or give training rows that are not."
        )


def order_levels(
    X: pd.DataFrame, declared: Declared, train: TableFile, readings: Mapping[Any, Reading]
) -> dict[Any, tuple[Any, ...]]:
    """Return the ordered levels of the columns that `--ordered` is about, as values."""
    found: dict[Any, tuple[Any, ...]] = {}
    for name, levels in declared.ordered.items():
        if name:
            if name in X:
                found[name] = _levels_as_values(X[name], levels, train, readings[name])
            continue
        fitting = [column for column in X if _has_only(X[column], levels)]
        if not fitting:
            raise InputError(
                f"--ordered {'<'.join(levels)} fits no column of {train.path}: none has these levels and no others. "
                "Name the column, as in --ordered 'size=" + "<".join(levels) + "'."
            )
        found.update(dict.fromkeys(fitting, levels))
    return found


def _has_only(values: pd.Series[Any], levels: tuple[str, ...]) -> bool:
    seen = set(values.dropna().unique())
    return len(seen) > 1 and seen <= set(levels)


def _levels_as_values(
    values: pd.Series[Any], levels: tuple[str, ...], train: TableFile, reading: Reading
) -> tuple[Any, ...]:
    known: tuple[Any, ...] = levels
    if reading.kind == "number" and all(plain(level, reading.mark) for level in levels):
        known = tuple(reading.value_of(level) for level in levels)
    at = next((i for i, value in enumerate(values) if not pd.isna(value) and value not in known), -1)
    if at >= 0:
        raise InputError(
            f"column {values.name!r} of {train.path} holds {spell(values.iloc[at])} on {train.place(at)}, which "
            f"--ordered {values.name}={'<'.join(levels)} does not name. Add it there, or correct it."
        )
    return known
