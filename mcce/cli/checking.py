"""The decision, the constraints and the arguments of `explain`, from options and files.

Constraints and rows to explain are checked before a model is trained. All other arguments are checked by `MCCE.fit` and
`MCCE.explain`; `mcce.cli.wording` words their messages with the names of options. With `--id`, names of rows are text,
also in constraints.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.cli.options import is_given
from mcce.cli.tables import TableFile
from mcce.constraints import Constraint, OfFactuals, allow, available_constraints, no_copies, read, resolve
from mcce.constraints.reading import read_sections
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.model.decisions import Interval, OneOf
from mcce.model.robustness import Robust
from mcce.model.source import plain_values
from mcce.plausibility.derived import DerivedColumns, Formula
from mcce.report.names import Names
from mcce.table import Schema
from mcce.table.checks import check_magnitudes, check_missing
from mcce.table.left_out import without_unknown_levels

OF_EXPLAIN = (  # options that are arguments of `MCCE.explain` by the same name
    "n_samples",
    "n_counterfactuals",
    "sparse",
    "floor",
    "caution",
    "diverse",
    "measures",
    "feature_weights",
    "max_changes",
    "max_gower",
    "robust",
)
OF_RECOURSE = ("actions", "assurance", "keep", "takes", "max_actions")  # the same of `MCCE.recourse`
NOT_OF_RECOURSE = {  # options of `MCCE.explain` that `MCCE.recourse` does not take, with the reason
    "sparse": "it always searches for few actions",
    "caution": "actions are ordered by their number, then by the sum of their steps",
    "measures": "actions are ordered by their number, then by the sum of their steps",
    "feature_weights": "actions are ordered by their number, then by the sum of their steps",
    "diverse": "several answers always act on different features",
    "max_changes": "the number of consequences is not limited; --max-actions limits that of actions",
    "max_gower": "consequences may be far away; limit features by --constraints",
    "noise": "--assurance is the probability of the decision over the consequences",
    "robust": "--assurance is the probability of the decision over the consequences",
}


def read_decision(text: str | None, of: str | None, classes: Any) -> Any:
    """Return the wanted decision: an interval, or the model's class that is spelled like `text`."""
    interval = read_interval("0.5,1" if text is None else text, read_class("--of", of, classes))
    if interval is not None:
        known = None if classes is None else plain_values(classes)
        if of is None and known is not None and set(known) not in ({0, 1}, {-1, 1}):
            raise InputError(
                f"--decision {interval.bounds()} needs --of, the class whose score it is: one of {listing(known)}."
            )
        return interval
    if of is not None:
        raise InputError(f"--of {of} goes with an interval, but --decision is {spell(text)}; leave --of out.")
    return read_class("--decision", text, classes)


def in_words(decision: Any, label: str | None) -> Any:
    if label is None:
        return decision
    return replace(decision, label=label) if isinstance(decision, Interval) else OneOf([decision], label=label)


def read_interval(text: str, of: Any) -> Interval | None:
    """Read an interval such as 0,1 or [0,1) or (0,inf); None for other texts."""
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


def read_class(role: str, text: str | None, classes: Any) -> Any:
    """Return the class equal to the text, else the only one equal up to case; None without a text.

    `role` is the option, for messages.
    """
    if text is None:
        return None
    if classes is None:
        raise InputError(
            f"{role} is {spell(text)}, but the model declares no classes; give --decision an interval, as in 10,20."
        )
    known = plain_values(classes)
    exact = [label for label in known if text in (str(label), f"{label:g}" if isinstance(label, float) else None)]
    alike = exact or [label for label in known if str(label).casefold() == text.casefold()]
    if len(alike) > 1:
        raise InputError(f"{role} is {spell(text)}, which could be {listing(alike)}. Write it exactly as one of them.")
    if alike:
        return alike[0]
    raise InputError(f"{role} is {spell(text)}, which is not a class of the model; {did_you_mean(text, known)}")


def read_constraints(arguments: argparse.Namespace) -> list[Constraint]:
    """Return the constraints of a file, or those in the file of `--config`."""
    source = arguments.constraints
    if source is None:
        return []
    with _naming_file(arguments):
        constraints = read(Path(source)) if isinstance(source, str) else read_sections(source, "constraints")
    if not constraints:
        sections = ", ".join(f"[[{name}]]" for name in available_constraints())
        raise InputError(f"--constraints {source} has no constraints; give {sections}, or leave it out.")
    return constraints


def named_by_text(constraints: Sequence[Constraint]) -> list[Constraint]:
    return [_by_text(each) for each in constraints]


def check_constraints(
    arguments: argparse.Namespace,
    constraints: Sequence[Constraint],
    schema: Schema,
    factuals: pd.DataFrame | None,
    formulas: Sequence[Formula],
) -> None:
    """Raise if constraints name unknown columns or levels, or leave no value for any row."""
    derived = DerivedColumns(tuple(formulas), schema) if formulas else None
    with _naming_file(arguments):
        fixed = [name for name in arguments.fixed if name in schema.names]
        resolved = resolve(constraints, schema, fixed, derived=derived)
        if factuals is not None:
            known, _ = without_unknown_levels(factuals, schema)
            resolved.check_factuals(schema.encode(known).matrix, known.index)


@contextmanager
def _naming_file(arguments: argparse.Namespace) -> Iterator[None]:
    """Prefix errors with the file of the constraints."""
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


def explain_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the given arguments of `MCCE.explain` or `MCCE.recourse`, except constraints."""
    if arguments.model is None and arguments.response is None and arguments.explainer is None:
        raise InputError("there is no model: give --model FILE, or --response COLUMN to train one.")
    names = (*OF_EXPLAIN, *OF_RECOURSE)
    options = {name: getattr(arguments, name) for name in names if is_given(arguments, name)}
    for name in filter(lambda each: is_given(arguments, each), NOT_OF_RECOURSE if arguments.recourse else OF_RECOURSE):
        flag = f"--{name.replace('_', '-')}"
        if arguments.recourse:
            raise InputError(f"{flag} does not go with --recourse: {NOT_OF_RECOURSE[name]}; leave {flag} out.")
        raise InputError(f"{flag} goes with --recourse; add it, or leave {flag} out.")
    if arguments.noise is not None:
        options["robust"] = Robust(noise=arguments.noise, share=arguments.robust)
    return options


def given_names(arguments: argparse.Namespace) -> Names:
    """Return the names of features, values and predictions."""
    reasons = arguments.reasons if isinstance(arguments.reasons, dict) else {}
    return Names(labels=arguments.labels, units=arguments.units, formats=arguments.formats, reasons=reasons)


def demands(arguments: argparse.Namespace) -> list[Constraint]:
    """Return the constraints of `--allow-missing` and `--exclude-training`."""
    may_be_missing: list[Constraint] = [allow(name, missing=True) for name in arguments.allow_missing]
    return [*may_be_missing, no_copies()] if arguments.exclude_training else may_be_missing


def check_rows(rows: TableFile, factuals: pd.DataFrame, schema: Schema) -> None:
    """Raise before fitting if `explain` would raise on the rows."""
    known, _ = without_unknown_levels(factuals, schema)
    table = schema.encode(known, rows.path)
    check_magnitudes(table, rows.path)
    check_missing(table, known.index, rows.path)
