"""The parts of a saved explainer: its decision without models and functions, and checks of stored fields.

A decision that is a function, and the models of `Several`, are not stored: functions are code, and code is never read
from a file. `MCCE.save` and `MCCE.load` use this module.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from mcce.constraints import Constraint
from mcce.constraints.excluded import TrainingKeys, TrainingRows
from mcce.distances.measures import Distance
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.explain.order import Margins
from mcce.generators.base import Generator
from mcce.generators.chain import ChainModel
from mcce.generators.graph import Graph
from mcce.generators.registry import check_givens
from mcce.model.decisions import Several
from mcce.plausibility.derived import Formula
from mcce.plausibility.relations import Relations, keep_relations
from mcce.plausibility.score import Plausibility
from mcce.plausibility.stop_reasons import Usual
from mcce.storage.fields import (
    BOOL,
    FLOAT,
    check_array,
    check_codes,
    check_number,
    check_rising,
    check_type,
    require,
)
from mcce.storage.state import Fields
from mcce.table import Schema
from mcce.table.checks import check_fixed
from mcce.wording import Parameter, PythonOnly, Value


def write_decision(decision: Any) -> Fields:
    """Return a decision without models and functions."""
    if isinstance(decision, Several):
        functions = [name for name, _, each in decision.models if callable(each)]
        if functions:
            raise InputError(
                f"the decision of {listing(functions)} in {decision!r} is a function, which cannot be written down; "
                "give an interval or labels."
            )
        pairs = [[name, each] for name, _, each in decision.models]
        return {"several": pairs, "agree": decision.agree, "label": decision.label}
    return {"function": True} if callable(decision) else {"wanted": decision}


def read_decision(written: Fields, model: Any, decision: Any) -> Any:
    """Return the decision of a file, with the functions and models given again."""
    if "function" in written:
        if not callable(decision):
            raise InputError(
                Parameter("decision"),
                " is ",
                Value(decision),
                ", but the wanted decision of this explainer was a function, which a file does not hold; give it again",
                PythonOnly(", as in MCCE.load(path, decision=...)"),
                ".",
            )
        return decision
    if decision is not None:
        raise InputError("decision is given, but the file contains it; leave it out.")
    if "several" not in written:
        return written["wanted"]
    names = [name for name, _ in written["several"]]
    if not isinstance(model, Mapping):
        raise InputError(f"this explainer uses several models; give them by name: {listing(names)}.")
    for name in names:
        if name not in model:
            raise InputError(f"model has no {name!r}, which this explainer uses; {did_you_mean(name, model)}")
    pairs = {name: (model[name], each) for name, each in written["several"]}
    return Several(pairs, agree=written["agree"], label=written["label"])


def check_fields(fields: Fields, known: Container[str]) -> Fields:
    """Raise if fields are inconsistent; `known` are the existing settings."""
    generator, settings = fields["generator"], fields["settings"]
    check_type(generator, "generator", Generator)
    check_type(settings, "settings", dict)
    require(all(name in known for name in settings), "settings has an unknown name")
    check_type(fields["chosen"], "chosen", bool, str)
    check_type(generator.schema_, "schema_", Schema)
    check_type(settings["condition_on_decision"], "condition_on_decision", bool)
    check_type(settings.get("graph"), "graph", Graph, type(None))
    check_givens(generator, check_fixed(settings["fixed"], generator.schema_.names), settings["condition_on_decision"])
    check_type(fields["constraints"], "constraints", list)
    for each in fields["constraints"]:
        check_type(each, "constraints", Constraint)
    _check_decision(fields["decision"])
    _check_spots(fields, generator.schema_)
    check_type(fields["plausibility"], "plausibility", Plausibility, type(None))
    if fields["plausibility"] is not None:
        fields["plausibility"].check_columns(len(generator.schema_))
    check_type(fields["margins"], "margins", Margins, type(None))
    check_type(fields["steps"], "steps", Distance, type(None))
    require((fields["steps"] is None) == (fields["plausibility"] is None), "steps or plausibility is missing")
    if fields["steps"] is not None:
        require(fields["steps"].scale.size == len(generator.schema_), "steps has another number of columns")
    check_type(fields["distances"], "distances", dict)
    for name, distance in fields["distances"].items():
        check_type(name, "distances", str)
        check_type(distance, "distances", Distance)
        require(distance.scale.size == len(generator.schema_), "distances has another number of columns")
    check_type(fields["usual"], "usual", Usual, type(None))
    check_type(fields["training_keys"], "training_keys", list)
    for keys in fields["training_keys"]:
        check_type(keys, "training_keys", TrainingKeys)
        require(max(keys.columns) < len(generator.schema_), "training_keys has an unknown column")
        for j, values in zip(keys.columns, keys.values.T):
            if not generator.schema_.features[j].is_numeric:
                check_codes(values, "training_keys", generator.schema_.features[j].n_levels)
    check_type(fields["training_rows"], "training_rows", TrainingRows, type(None))
    check_type(fields["worlds"], "worlds", list)
    for world in fields["worlds"]:
        check_type(world, "worlds", ChainModel)
        require(not world.conditions_on_decision_, "worlds depends on the decision")
        require(world.schema_.names == generator.schema_.names, "worlds has other columns than the table")
    check_type(fields["relations"], "relations", Relations, type(None))
    if fields["relations"] is not None:  # names and levels that the columns do not have are errors
        keep_relations(fields["relations"], generator.schema_, ())
    check_type(fields["derived"], "derived", list)
    for each in fields["derived"]:
        check_type(each, "derived", Formula)
    if fields["derived"]:
        names = {*generator.schema_.names}
        known_names = all(names.issuperset((each.target, *each.inputs)) for each in fields["derived"])
        require(known_names, "derived has unknown columns")
        keep_relations(Relations().with_formulas(fields["derived"]), generator.schema_, ())
    check_number(fields["fit_seconds"], "fit_seconds", 0.0)
    return fields


def _check_decision(written: Any) -> None:
    check_type(written, "decision", dict)
    require({*written} in ({"function"}, {"wanted"}, {"several", "agree", "label"}), "decision is invalid")
    for pair in written.get("several", []):
        check_type(pair, "several", list)
        require(len(pair) == 2 and isinstance(pair[0], str), "several does not hold pairs")


def _check_spots(fields: Fields, schema: Schema) -> None:
    rows, positions = fields["rows"], fields["positions"]
    check_array(rows, "rows", FLOAT, None, len(schema))
    check_array(positions, "positions", np.dtype(np.int64), len(rows))
    check_rising(positions, "positions")
    check_array(fields["wanted"], "wanted", BOOL, len(rows))
    check_type(fields["scores"], "scores", np.ndarray)
    require(fields["scores"].shape == (len(rows),), "scores does not have one value for each row")
    again = schema.encode(schema.decode(rows), "the file").matrix
    require(np.array_equal(again, rows, equal_nan=True), "rows does not fit the columns")
