"""R's arguments of mcceR's call and of its trees, in Python's spelling: `fit.seed` is `fit_seed`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce._utils import check_count
from mcce.exceptions import InputError, did_you_mean, listing, spell

CALL = (  # R's arguments of `explain_mcce`, in its order
    "model",
    "x_explain",
    "x_train",
    "predict_model",
    "fixed_features",
    "c_int",
    "featuremodel_object",
    "fit.autoregressive_model",
    "fit.decision",
    "fit.seed",
    "generate.K",
    "generate.seed",
    "process.measures",
    "process.return_best_k",
    "process.remove_invalid",
    "process.sort_by_measures_order",
    "return_featuremodel_object",
    "return_sim_data",
    "timing",
)
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


def translate(engine: str, tree_arguments: Mapping[str, Any]) -> TreeArguments:
    """Return the parameters of `grow_ctree` or `grow_rpart` for R's arguments; raise if one is unknown."""
    if engine not in TREES:
        raise InputError(
            f"fit_autoregressive_model is {spell(engine)}; mcceR supports {listing(TREES)}: "
            f"{did_you_mean(engine, TREES)}"
        )
    arguments = dict(tree_arguments)
    control = arguments.pop(CONTROLS[engine], None) or {}
    if not isinstance(control, Mapping):
        raise InputError(f"{CONTROLS[engine]} is a {type(control).__name__}; give a dict of R's names and values.")
    arguments = {**control, **arguments}
    readers = TREES[engine]
    for name in arguments:
        if name not in readers:
            raise InputError(
                f"{spell(name)} is not an argument of explain_mcce, nor one of the trees of {engine} that are "
                f"supported here ({', '.join(readers)}); {did_you_mean(name, [*readers, *map(here, CALL)])}"
            )
    grow = {name: read(arguments[name], name) for name, read in readers.items() if name in arguments}
    permutes = engine == "rpart" and grow.pop("xval", 10) > 0
    for name in ("teststat", "maxcompete"):  # without effect on the trees that are supported
        grow.pop(name, None)
    return TreeArguments(engine, grow, permutes)


def _whole(least: int, most: int | None = None) -> Callable[[Any, str], int]:
    """Return a reader of whole numbers; most numbers in R are doubles."""

    def read(value: Any, name: str) -> int:
        is_double = isinstance(value, (float, np.floating)) and value.is_integer()
        return check_count(int(value) if is_double else value, name, least=least, most=most)

    return read


def _number(value: Any, name: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)) or value != value:
        raise InputError(f"{name} is {spell(value)}; it must be a number.")
    return float(value)


def _choice(*allowed: str) -> Callable[[Any, str], str]:
    def read(value: Any, name: str) -> str:
        if value not in allowed:
            raise InputError(f"{name} is {spell(value)}; supported here: {listing(allowed)}.")
        return str(value)

    return read


TREES: dict[str, dict[str, Callable[[Any, str], Any]]] = {  # R's arguments of the trees, and how they are read
    "ctree": {
        "teststat": _choice("quad"),
        "testtype": _choice("Bonferroni", "Univariate", "Teststatistic"),
        "mincriterion": _number,
        "minsplit": _whole(0),
        "minbucket": _whole(1),
        "maxdepth": lambda value, name: _whole(0)(value, name) or None,  # 0: no limit
    },
    "rpart": {
        "minsplit": _whole(0),  # one of minsplit and minbucket alone sets the other
        "minbucket": _whole(1),
        "cp": _number,
        "maxdepth": _whole(1, 30),
        "maxcompete": _whole(0),  # does not affect the tree
        "maxsurrogate": _whole(0),
        "xval": _whole(0),  # the tree does not depend on it, the random stream does
    },
}
