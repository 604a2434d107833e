"""Names in R and in mcce: functions of the R package, arguments of mcceR's call, and arguments of the trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce.base.checks import check, check_count, is_number
from mcce.exceptions import InputError, did_you_mean, spell_all
from mcce.wording import Either, Parameter, PythonOnly, Value


@dataclass(frozen=True)
class Name:
    """One parameter: its name in R and in mcce (None: no counterpart)."""

    r: str
    mcce: str | None

    @property
    def here(self) -> str:
        """Spelling in `explain_mcce`: R's, dots as underscores."""
        return self.r.replace(".", "_")


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

CALL = (
    Name("model", "model"),
    Name("x_explain", "X"),
    Name("x_train", "X"),
    Name("predict_model", None),  # mcce.MCCE accepts a function as the model
    Name("fixed_features", "fixed"),
    Name("c_int", "decision"),
    Name("featuremodel_object", None),  # a fitted mcce.MCCE can be reused
    Name("fit.autoregressive_model", "sampler"),
    Name("fit.decision", "condition_on_decision"),
    Name("fit.seed", "random_state"),
    Name("generate.K", "n_samples"),
    Name("generate.seed", "random_state"),
    Name("process.measures", None),  # mcce.MCCE ranks by L0, then Gower, then the draw
    Name("process.return_best_k", "n_counterfactuals"),
    Name("process.remove_invalid", None),
    Name("process.sort_by_measures_order", None),
    Name("return_featuremodel_object", None),
    Name("return_sim_data", None),
    Name("timing", None),
)

RPART = (
    Name("minsplit", "min_split"),
    Name("minbucket", "min_leaf"),
    Name("cp", "cp"),
    Name("maxdepth", "max_depth"),
    Name("maxcompete", "max_compete"),
    Name("maxsurrogate", "max_surrogate"),
    Name("xval", None),  # the tree does not depend on it, the random stream does
)

CTREE = (
    Name("teststat", "statistic"),
    Name("testtype", "p_values"),
    Name("mincriterion", "mincriterion"),
    Name("minsplit", "min_split"),
    Name("minbucket", "min_leaf"),
    Name("maxdepth", "max_depth"),
)

TREES = {"ctree": CTREE, "rpart": RPART}
CONTROLS = {"ctree": "controls", "rpart": "control"}  # the argument that takes them as one list in R
VALUES = {
    "teststat": {"quad": "quadratic", "max": "maximum"},
    "testtype": {"Bonferroni": "bonferroni", "Univariate": "univariate", "Teststatistic": "none"},
}


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
    names = {name.r: name for name in TREES[engine]}
    for r in arguments:
        if r not in names:
            raise InputError(
                f"{r!r} is not an argument of explain_mcce, nor one of the trees of {engine} that are "
                f"supported here ({', '.join(names)}); ",
                Either(
                    PythonOnly(did_you_mean(r, [*names, *(name.here for name in CALL)])),
                    did_you_mean(r, [*names, *(name.r for name in CALL)]),
                ),
            )
    if engine == "rpart":
        return _rpart_arguments(arguments)
    return _ctree_arguments(arguments)


def _rpart_arguments(given: dict[str, Any]) -> TreeArguments:
    grow = {
        "min_split": _whole(given, "minsplit", 20, 0) if "minsplit" in given else None,  # one alone sets both
        "min_leaf": _whole(given, "minbucket", 7, 1) if "minbucket" in given else None,
        "cp": _number(given, "cp", 0.01),
        "max_depth": _whole(given, "maxdepth", 30, 1, 30),
        "max_compete": _whole(given, "maxcompete", 4, 0),
        "max_surrogate": _whole(given, "maxsurrogate", 5, 0),
    }
    return TreeArguments("rpart", grow, permutes=_whole(given, "xval", 10, 0) > 0)


def _ctree_arguments(given: dict[str, Any]) -> TreeArguments:
    grow = {
        "statistic": _choice(given, "teststat", "quad"),
        "p_values": _choice(given, "testtype", "Bonferroni"),
        "mincriterion": _number(given, "mincriterion", 0.95),
        "min_split": _whole(given, "minsplit", 20, 0),
        "min_leaf": _whole(given, "minbucket", 7, 1),
        "max_depth": _whole(given, "maxdepth", 0, 0) or None,  # 0 means no limit in R
    }
    return TreeArguments("ctree", grow, permutes=False)


def _whole(given: dict[str, Any], name: str, default: int, low: int, high: int | None = None) -> int:
    value = given.get(name, default)
    if isinstance(value, (float, np.floating)) and value.is_integer():
        value = int(value)  # most numbers in R are doubles
    return check_count(value, name, least=low, most=high)


def _number(given: dict[str, Any], name: str, default: float) -> float:
    value = given.get(name, default)
    if not is_number(value) or value != value:
        raise InputError(Parameter(name), " is ", Value(value), "; it must be a number.")
    return float(value)


def _choice(given: dict[str, Any], name: str, default: str) -> str:
    value = given.get(name, default)
    if value not in VALUES[name]:
        raise InputError(Parameter(name), " is ", Value(value), f"; supported here: {spell_all(VALUES[name])}.")
    return VALUES[name][value]
