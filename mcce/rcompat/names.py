"""Names in R and in mcce: functions of the R package, arguments of mcceR's call, and arguments of the trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.base.checks import check, check_count, is_number
from mcce.exceptions import InputError, did_you_mean, spell_all
from mcce.wording import Either, Parameter, PythonOnly, Value

FUNCTIONS = {  # of the R package, by the name of their counterpart in Python
    "mcce.allow": "allow",
    "mcce.Interval": "interval",
    "mcce.Not": "none_of",
    "mcce.OneOf": "one_of",
    "explain": "explain",
    "letter": "letter",
}
TABLES = {"fit": "data"} | dict.fromkeys(("explain", "recourse", "generate"), "newdata")  # the name of X in R
ABSENT = frozenset({"predictors", "relations", "sample_weight", "training"})  # parameters without a counterpart in R

CALL = {  # R's arguments, and their counterparts in mcce; None: without a counterpart
    "model": "model",
    "x_explain": "X",
    "x_train": "X",
    "predict_model": None,  # mcce.MCCE accepts a function as the model
    "fixed_features": "fixed",
    "c_int": "decision",
    "featuremodel_object": None,  # a fitted mcce.MCCE can be reused
    "fit.autoregressive_model": "sampler",
    "fit.decision": "condition_on_decision",
    "fit.seed": "random_state",
    "generate.K": "n_samples",
    "generate.seed": "random_state",
    "process.measures": None,  # mcce.MCCE ranks by L0, then Gower, then the draw
    "process.return_best_k": "n_counterfactuals",
    "process.remove_invalid": None,
    "process.sort_by_measures_order": None,
    "return_featuremodel_object": None,
    "return_sim_data": None,
    "timing": None,
}
CONTROLS = {"ctree": "controls", "rpart": "control"}  # the argument that takes those of the trees as one list in R


def here(name: str) -> str:
    """Return the spelling of R's argument in `explain_mcce`."""
    return name.replace(".", "_")


@dataclass(frozen=True)
class TreeArguments:
    """The parameters of the trees, and whether each fit draws a permutation from the stream."""

    engine: str
    grow: dict[str, Any]
    permutes: bool


def translate(engine: str, given: Mapping[str, Any]) -> TreeArguments:
    """Translate R's arguments of the trees; raise if one is unknown."""
    must_be = f"mcceR supports {spell_all(TREES)}: {did_you_mean(engine, TREES)}"
    check(engine in TREES, engine, "fit_autoregressive_model", must_be)
    arguments = dict(given)
    control = arguments.pop(CONTROLS[engine], None) or {}
    if not isinstance(control, Mapping):
        raise InputError(
            Parameter(CONTROLS[engine]),
            f" is a {type(control).__name__}; give ",
            Either(PythonOnly("a dict"), "a list"),
            " of R's names and values.",
        )
    arguments = {**control, **arguments}
    names = TREES[engine]
    for r in arguments:
        if r not in names:
            raise InputError(
                f"{r!r} is not an argument of explain_mcce, nor one of the trees of {engine} that are "
                f"supported here ({', '.join(names)}); ",
                Either(
                    PythonOnly(did_you_mean(r, [*names, *map(here, CALL)])),
                    did_you_mean(r, [*names, *CALL]),
                ),
            )
    read = {r: each.read(arguments[r], r) if r in arguments else each.default for r, each in names.items()}
    grow = {each.name: read[r] for r, each in names.items() if each.name is not None}
    return TreeArguments(engine, grow, permutes=read.get("xval", 0) > 0)


def _whole(least: int, most: int | None = None) -> Callable[[Any, str], int]:
    """Return a reader of whole numbers; most numbers in R are doubles."""

    def read(value: Any, name: str) -> int:
        is_double = isinstance(value, (float, np.floating)) and value.is_integer()
        return check_count(int(value) if is_double else value, name, least=least, most=most)

    return read


def _number(value: Any, name: str) -> float:
    if not is_number(value) or value != value:
        raise InputError(Parameter(name), " is ", Value(value), "; it must be a number.")
    return float(value)


def _choice(**known: str) -> Callable[[Any, str], str]:
    def read(value: Any, name: str) -> str:
        if value not in known:
            raise InputError(Parameter(name), " is ", Value(value), f"; supported here: {spell_all(known)}.")
        return known[value]

    return read


@dataclass(frozen=True)
class TreeArgument:
    """One of R's arguments of the trees: its name in mcce (None: no counterpart), its default, and how it is read."""

    name: str | None
    default: Any
    read: Callable[[Any, str], Any]


TREES = {
    "ctree": {
        "teststat": TreeArgument("statistic", "quadratic", _choice(quad="quadratic", max="maximum")),
        "testtype": TreeArgument(
            "p_values", "bonferroni", _choice(Bonferroni="bonferroni", Univariate="univariate", Teststatistic="none")
        ),
        "mincriterion": TreeArgument("mincriterion", 0.95, _number),
        "minsplit": TreeArgument("min_split", 20, _whole(0)),
        "minbucket": TreeArgument("min_leaf", 7, _whole(1)),
        "maxdepth": TreeArgument("max_depth", None, lambda value, name: _whole(0)(value, name) or None),  # 0: no limit
    },
    "rpart": {
        "minsplit": TreeArgument("min_split", None, _whole(0)),  # one alone sets both
        "minbucket": TreeArgument("min_leaf", None, _whole(1)),
        "cp": TreeArgument("cp", 0.01, _number),
        "maxdepth": TreeArgument("max_depth", 30, _whole(1, 30)),
        "maxcompete": TreeArgument("max_compete", 4, _whole(0)),
        "maxsurrogate": TreeArgument("max_surrogate", 5, _whole(0)),
        "xval": TreeArgument(None, 10, _whole(0)),  # the tree does not depend on it, the random stream does
    },
}
