"""`mcce inspect FILE`: the kind of a saved file, and the training data that it discloses.

The file is read as `load` reads it, with every check; nothing in it is executed. Control characters are printed as
escapes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import pandas as pd

from mcce.cli.console import DONE, align_columns, escape_controls
from mcce.counterfactuals import Counterfactuals
from mcce.explain.stored import check_fields
from mcce.generators.base import Generator
from mcce.privacy.account import NOT_COVERED
from mcce.storage import load_fields, read_manifest
from mcce.storage.learned import disclosed
from mcce.table import Feature

MOST_SHOWN = 12  # levels of a column; --json has them all
_DONORS = {
    "all": "training values are in the file",
    "none": "saved without training values (donors='none')",
    "private": "fitted with differential privacy: noisy counts are in the file, and no training value",
}


def run_inspect(arguments: argparse.Namespace) -> int:
    description = describe(arguments.file)
    print(json.dumps(description, indent=2) if arguments.json else text(description))
    return DONE


def describe(path: str) -> dict[str, Any]:
    """Return the kind of a file and what it discloses, as JSON values."""
    manifest = read_manifest(path)
    description = {name: manifest[name] for name in ("kind", "version", "versions", "about")}
    description["bytes"] = sum(size for size, _ in manifest["entries"].values())
    if manifest["kind"] == "Counterfactuals":
        return description | _describe_result(Counterfactuals.load(path))
    if manifest["kind"] == "Generator":
        generator = Generator.load(path)
        return description | {"kind": _kind(generator)} | _describe_generator(generator, [])
    fields = load_fields(path, "MCCE", lambda read: check_fields(read, read["settings"]))
    description["constraints"] = [str(each) for each in fields["constraints"]]
    description["relations"] = [str(each) for each in fields["relations"] or ()]
    return description | _describe_generator(fields["generator"], _explainer_holds(fields))


def _describe_generator(generator: Generator, also: list[str]) -> dict[str, Any]:
    settings = {name: repr(value) for name, value in generator.settings().items()}
    description = {"settings": settings, "seed": generator.seed_}
    description["columns"] = [_describe_column(feature, generator) for feature in generator.schema_.features]
    if generator.account_ is not None:
        account = generator.account_
        privacy: dict[str, Any] = {"account": repr(account).splitlines(), "not_covered": list(NOT_COVERED)}
        privacy["spent"] = account.table.to_dict("records")
        drawn = f"{len(generator.training_givens_):,} rows drawn from the noisy counts, in place of the training rows"
        disclosed = [drawn, "the bounds and levels above, as they were stated"]
        return description | {"privacy": privacy, "discloses": disclosed}
    whole = [] if generator.samplers_ else [f"training values of all columns, which a {_kind(generator)} stores"]
    return description | {"discloses": [*whole, *_count_givens(generator), *also]}


def _kind(generator: Generator) -> str:
    return type(generator).__name__


def _count_givens(generator: Generator) -> list[str]:
    n_rows, fixed = generator.training_givens_.shape[0], generator.fixed_
    held = []
    if fixed and n_rows:
        held.append(f"the fixed values ({', '.join(map(str, fixed))}) of all {n_rows:,} training rows")
    if generator.conditions_on_decision_ and n_rows:
        held.append(f"the decision on each of the {n_rows:,} training rows")
    return held


def _describe_column(feature: Feature, generator: Generator) -> dict[str, Any]:
    description: dict[str, Any] = {"name": str(feature.name), "kind": feature.kind, "dtype": str(feature.dtype)}
    if feature.levels is not None:
        description["levels"] = [str(level) for level in feature.levels]
    elif feature.low == feature.low:
        ends = pd.Series(feature.decode(np.array([feature.low, feature.high])))
        description["range"] = [str(end) for end in ends]
    sampler = generator.samplers_.get(feature.name)
    if feature.name in generator.fixed_:
        description["sampler"] = "fixed"
    elif sampler is None:
        description["sampler"] = _kind(generator)
    else:  # a private sampler repeats the statements on all columns
        description["sampler"] = repr(sampler) if generator.privacy is None else type(sampler).__name__
        description["holds"] = disclosed(sampler)
    return description


def _explainer_holds(fields: dict[str, Any]) -> list[str]:
    held = []
    if len(fields["rows"]):
        held.append(f"{len(fields['rows'])} whole training rows, and the model's predictions for them")
    if fields["training_rows"] is not None:
        hashes = fields["training_rows"].hashes.size
        held.append(f"hashes of {hashes:,} training rows, which reveal whether a known row was among them")
    if fields["plausibility"] is not None:
        rows = fields["plausibility"].n_neighbours
        held.append(f"up to {rows:,} whole training rows, as nearest neighbours for plausibility")
    tables = [each for each in fields["relations"] or () if each.table is not None]
    if tables:
        held.append(f"the combinations of values in the training rows of {len(tables)} pairs of columns")
    if fields["margins"] is not None:
        held.append("the margins of the accepted training rows, in no order")
    return held


def _describe_result(found: Counterfactuals) -> dict[str, Any]:
    held = [f"all {len(found.factuals):,} rows that were explained", f"{len(found):,} counterfactual rows"]
    if found.ranges:
        held.append(f"the ranges of {len(found.ranges)} features in the training data")
    settings = {name: repr(value) for name, value in found.run.settings.items()}
    columns = [
        {"name": str(name), "kind": str(found.kinds.get(name, "")), "dtype": str(found.frame[name].dtype)}
        for name in found.frame.columns
    ]
    return {"settings": settings, "columns": columns, "discloses": held}


def text(facts: dict[str, Any]) -> str:
    """Return the result of `describe` as text."""
    lines = [f"{facts['kind']}, format {facts['version']}, {facts['bytes']:,} bytes unpacked"]
    lines.append("written by " + ", ".join(f"{name} {version}" for name, version in facts["versions"].items()))
    about = dict(facts["about"])
    donors = about.pop("donors", None)
    lines += [f"{name}: {value}" for name, value in about.items()]
    lines += [_DONORS[donors]] if donors in _DONORS else []
    settings = dict(facts.get("settings", {})) | ({"seed": str(facts["seed"])} if "seed" in facts else {})
    lines += (
        ["", "settings", align_columns([[name, value] for name, value in settings.items()], (0, 1))] if settings else []
    )
    if facts.get("constraints"):
        lines += ["", "constraints", *(f"  {each}" for each in facts["constraints"])]
    if facts.get("relations"):
        lines += ["", "relations", *(f"  {each}" for each in facts["relations"])]
    columns = [_cells(column) for column in facts["columns"]]
    lines += ["", "columns", align_columns(columns, (0, 1, 2, 3))] if columns else []
    lines += ["", "privacy", *(f"  {line}" for line in facts["privacy"]["account"])] if "privacy" in facts else []
    holding = [[column["name"], column["holds"]] for column in facts["columns"] if "holds" in column]
    lines += ["", "what the samplers hold", align_columns(holding, (0, 1))] if holding else []
    lines += ["", "what else it discloses", *(f"  {each}" for each in facts["discloses"])] if facts["discloses"] else []
    return "\n".join(map(escape_controls, lines))


def _cells(column: dict[str, Any]) -> list[str]:
    shown = ""
    if "levels" in column:
        levels = column["levels"]
        rest = f" and {len(levels) - MOST_SHOWN} more" if len(levels) > MOST_SHOWN else ""
        shown = f"{len(levels)} levels: {', '.join(map(repr, levels[:MOST_SHOWN]))}{rest}"
    elif "range" in column:
        shown = f"from {column['range'][0]} to {column['range'][1]}"
    return [
        escape_controls(column["name"]),
        column["kind"],
        escape_controls(column.get("sampler", "")),
        escape_controls(shown),
    ]
