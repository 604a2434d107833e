"""Settings of plans, read from a message, and the Python and R calls that repeat them.

A message identifies features by position and levels by code. For a feature it may state `may` (change), `low`, `high`,
`levels`, `direction` and `hard` (its weight); for all, `floor`, `plans`, `diverse` and `draws`. With `recourse`, plans
are actions with their consequences (`MCCE.recourse`); a feature that may not change is then not acted on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.checks import check_count, check_not_negative, check_share, is_number, is_whole
from mcce.constraints import Allow, allow
from mcce.constraints.base import plain
from mcce.constraints.encoding import encode_value
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.table import Feature, Schema
from mcce.table.dtypes import is_dated

MOST_PLANS, MOST_DRAWS = 10, 20_000
KNOWN = ("features", "floor", "plans", "diverse", "draws", "recourse")
LIMITS = ("may", "low", "high", "levels", "direction", "hard")


@dataclass(frozen=True)
class PlanSettings:
    """The settings of plans.

    Attributes
    ----------
    limits : pairs of the position of a feature and its constraint.
    feature_weights : pairs of a feature and its weight; 1 for other features.
    floor, n_plans, diverse, n_samples : arguments of `explain`.
    recourse : whether plans are actions with consequences.
    actions : for recourse, the features to act on; None for all possible ones.
    """

    limits: tuple[tuple[int, Allow], ...] = ()
    feature_weights: tuple[tuple[Any, float], ...] = ()
    floor: float = 0.05
    n_plans: int = 3
    diverse: bool = True
    n_samples: int = 1000
    recourse: bool = False
    actions: tuple[Any, ...] | None = None

    @classmethod
    def read(cls, given: Any, schema: Schema, fixed: list[Any]) -> PlanSettings:
        """Read the settings of a message; others have their defaults."""
        given = read_settings(given)
        limits, feature_weights = [], []
        for key, each in _table(given.get("features"), "settings.features").items():
            j = read_place(key, len(schema), "settings.features")
            feature = schema.features[j]
            of_feature = _table(each, f"settings of {feature.name!r}", LIMITS)
            made = _limit(feature, of_feature)
            if made is not None:
                if feature.name in fixed:
                    raise InputError(f"{feature.name!r} is fixed; give limits to other features.")
                limits.append((j, made))
            hard = check_not_negative(of_feature.get("hard", 1.0), f"hard of {feature.name!r}")
            if hard != 1.0:
                feature_weights.append((feature.name, hard))
        diverse, recourse = (given.get(name, getattr(cls, name)) for name in ("diverse", "recourse"))
        for name, value in (("diverse", diverse), ("recourse", recourse)):
            if not isinstance(value, bool):
                raise InputError(f"{name} is {spell(value)}; it must be true or false.")
        if recourse and feature_weights:
            raise InputError(
                f"hard of {feature_weights[0][0]!r} does not go with actions and consequences: actions are ordered by "
                "their number, then by the sum of their steps; leave it at 1."
            )
        return cls(
            tuple(limits),
            tuple(feature_weights),
            check_share(given.get("floor", cls.floor), "floor"),
            check_count(given.get("plans", cls.n_plans), "plans", most=MOST_PLANS),
            diverse,
            check_count(given.get("draws", cls.n_samples), "draws", most=MOST_DRAWS),
            recourse,
        )

    @property
    def method(self) -> str:
        """The method of the explainer that finds plans."""
        return "recourse" if self.recourse else "explain"

    @property
    def held(self) -> list[Any]:
        """The features that may not change."""
        return [limit.feature for _, limit in self.limits if limit.direction == "none"]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of that method."""
        plain: dict[str, Any] = {"n_samples": self.n_samples, "n_counterfactuals": self.n_plans, "floor": self.floor}
        if not self.recourse:
            plain |= {"sparse": True, "diverse": self.diverse and self.n_plans > 1}
        if self.actions is not None:
            plain["actions"] = list(self.actions)
        if self.feature_weights:
            plain["feature_weights"] = dict(self.feature_weights)
        limits = [limit for _, limit in self.limits if not (self.recourse and limit.feature in self.held)]
        return {**plain, "constraints": limits} if limits else plain


def read_settings(given: Any) -> Mapping[str, Any]:
    """Return the settings of a message; raise if they are not an object or an entry is unknown."""
    return _table(given, "settings", KNOWN)


def read_place(key: Any, n: int, where: str) -> int:
    """Return the position of a feature or a person; a message may give it as text, as in keys of JSON."""
    place = int(key) if isinstance(key, str) and key.isdecimal() and len(key) < 10 else key
    if not is_whole(place) or not 0 <= place < n:
        raise InputError(f"{where}: {spell(key)} is not a position from 0 to {n - 1}.")
    return int(place)


def read_cell(feature: Feature, value: Any) -> float:
    """Return the encoded value of a cell of a message: a number, a date as text, a level's code, null if missing."""
    if value is None:
        return float(feature.encode(pd.Series([None], name=feature.name, dtype=object), "the edited row")[0])
    if not feature.is_numeric:
        return float(read_place(value, feature.n_levels, f"levels of {feature.name!r}"))
    if is_dated(feature.dtype):
        if not isinstance(value, str):
            raise InputError(f"{spell(value)} is not a date of {feature.name!r}; write it as in '2024-05-31'.")
        return encode_value(feature, value)
    if not is_number(value) or not np.isfinite(float(value)):
        raise InputError(f"{spell(value)} is not a number, but {feature.name!r} holds numbers; give a number.")
    return float(feature.encode(pd.Series([value], name=feature.name), "the edited row")[0])


def _table(given: Any, where: str, known: tuple[str, ...] = ()) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"{where} is {spell(given)}; it must be a JSON object.")
    for key in given:
        if known and key not in known:
            raise InputError(f"{where}: there is no {spell(key)}; {did_you_mean(key, known)}")
    return given


def _limit(feature: Feature, limits: Mapping[str, Any]) -> Allow | None:
    """Return the constraint of a message on a feature; None without any."""
    if limits.get("may") is False:
        return allow(feature.name, direction="none")
    bounds: dict[str, Any] = {}
    for end in ("low", "high"):
        if limits.get(end) is not None:
            bounds[end] = limits[end] if feature.is_numeric else _level(feature, limits[end])
    if limits.get("levels") is not None:
        if feature.is_numeric or not isinstance(limits["levels"], (list, tuple)):
            raise InputError(
                f"levels of {feature.name!r} is {spell(limits['levels'])}; give a list of codes of levels."
            )
        bounds["levels"] = [_level(feature, code) for code in limits["levels"]]
    if limits.get("direction") is not None:
        bounds["direction"] = limits["direction"]
    return allow(feature.name, **bounds) if bounds else None


def _level(feature: Feature, code: Any) -> Any:
    assert feature.levels is not None
    level = feature.levels[read_place(code, feature.n_levels, f"levels of {feature.name!r}")]
    return level.item() if isinstance(level, np.generic) else level


# ---------------------------------------------------------------- the calls


def python_call(settings: PlanSettings, place: int, rank: int) -> str:
    """Return the Python code that finds a plan again: `row` is its row, given `explainer` and the frame `people`."""
    given = settings.arguments
    lines = [f"    {name}={value!r}," for name, value in given.items() if name != "constraints"]
    if "constraints" in given:
        lines += ["    constraints=["]
        lines += [f"        mcce.allow({_python_limit(limit)})," for limit in given["constraints"]] + ["    ],"]
    return "\n".join(
        [
            "import mcce",
            "",
            "# `explainer` and `people` are those of the explorer",
            f"found = explainer.{settings.method}(",
            f"    people.iloc[[{place}]],",
            *lines,
            ")",
            f'row = found.frame.xs({rank}, level="rank")',
            "",
        ]
    )


def _python_limit(limit: Allow) -> str:
    arguments = _arguments(limit)
    if limit.levels is not None:  # values, where a file has texts
        arguments["levels"] = list(limit.levels)
    return ", ".join([repr(limit.feature), *(f"{name}={value!r}" for name, value in arguments.items())])


def r_call(settings: PlanSettings, place: int, rank: int) -> str:
    """Return the R code that finds a plan again by the R package, given `explainer` and the data frame `people`."""
    given = settings.arguments
    lines = [f"  {name} = {_r(value)}" for name, value in given.items() if name != "constraints"]
    if "constraints" in given:
        each = ",\n".join(f"    allow({_r_limit(limit)})" for limit in given["constraints"])
        lines.append(f"  constraints = list(\n{each}\n  )")
    arguments = ",\n".join([f"  explainer, people[{place + 1}, , drop = FALSE]", *lines])
    return "\n".join(
        [
            "library(mcce)",
            "",
            "# `people` holds the same people; `explainer` is load_mcce(file, model, people) for a file of MCCE.save,",
            "# or the result of mcce() with the same model, rows and seed",
            f"found <- {settings.method}(\n{arguments}\n)",
            f"row <- found$rows[found$index$rank == {rank}, , drop = FALSE]",
            "",
        ]
    )


def _r_limit(limit: Allow) -> str:
    return ", ".join([_r(str(limit.feature)), *(f"{name} = {_r(value)}" for name, value in _arguments(limit).items())])


def _arguments(limit: Allow) -> dict[str, Any]:
    """Return the keyword arguments of `mcce.allow` as plain values."""
    given = limit.to_stored().items()
    return {name: plain(value) for name, value in given if value is not None and name != "feature"}


def _r(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, Mapping):
        return f"list({', '.join(f'{_r(str(name))} = {_r(each)}' for name, each in value.items())})"
    if isinstance(value, (list, tuple)):
        return f"c({', '.join(map(_r, value))})"
    return repr(value) if is_number(value) else json.dumps(str(value), ensure_ascii=False)
