"""The options of `MCCE.explain` and `MCCE.select` as settings; an option without effect is an error.

1. `floor` and `caution` need `sparse=True`, `exhaustive=True` needs `sparse=False`, and `diverse=True` needs several
   counterfactuals.
2. `measures` or `feature_weights` define the order of candidates. Caution alters the default order only: with them it
   is 0, and an error if given.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal

from mcce.base.checks import check_count, check_flag, check_not_negative, check_share
from mcce.exceptions import InputError
from mcce.explain.problem import Settings
from mcce.wording import Parameter, Setting

FLOOR, CAUTION = 0.05, 1.0


def read_settings(
    *,
    n_samples: int | Literal["auto"] = 0,
    n_counterfactuals: int = 1,
    independent: bool = False,
    exhaustive: bool = False,
    sparse: bool = False,
    floor: float | None = None,
    caution: float | None = None,
    measures: object = None,
    feature_weights: Mapping[Any, float] | None = None,
    max_changes: int | None = None,
    max_gower: float | None = None,
    diverse: bool = False,
    exclude_training: bool = False,
) -> Settings:
    """Return checked settings; None stands for an option that is not given.

    `n_samples` is checked by the caller; 0 means that the user gives the candidates.
    """
    own_order = measures is not None or feature_weights is not None
    flags = {"independent": independent, "exhaustive": exhaustive, "sparse": sparse, "diverse": diverse}
    for name, flag in (flags | {"exclude_training": exclude_training}).items():
        check_flag(flag, name)
    settings = Settings(
        n_samples=n_samples,
        n_counterfactuals=check_count(n_counterfactuals, "n_counterfactuals"),
        independent=independent,
        exhaustive=exhaustive,
        sparse=sparse,
        floor=FLOOR if floor is None else check_share(floor, "floor"),
        caution=(0.0 if own_order else CAUTION) if caution is None else check_not_negative(caution, "caution"),
        max_changes=None if max_changes is None else check_count(max_changes, "max_changes"),
        max_gower=None if max_gower is None else check_not_negative(max_gower, "max_gower"),
        diverse=diverse,
        exclude_training=exclude_training,
    )
    if sparse and exhaustive:
        raise InputError(
            Setting("exhaustive", True),
            " has no effect with ",
            Setting("sparse", True),
            ", which queries crossed rows best-first; leave one of them out.",
        )
    if not sparse:
        for name, value in (("floor", floor), ("caution", caution)):
            if value is not None:
                raise InputError(
                    Setting(name, value),
                    " has no effect without ",
                    Setting("sparse", True),
                    "; add it, or leave ",
                    Parameter(name),
                    " out.",
                )
    if caution is not None and own_order:
        given = "measures" if measures is not None else "feature_weights"
        raise InputError(
            Setting("caution", caution),
            " alters the usual order of candidates, but ",
            Parameter(given),
            " defines another one; leave one of them out.",
        )
    if diverse and settings.n_counterfactuals == 1:
        raise InputError(
            Setting("diverse", True),
            " has no effect on a single counterfactual; set ",
            Parameter("n_counterfactuals"),
            " to 2 or more, or leave ",
            Parameter("diverse"),
            " out.",
        )
    if diverse and n_samples == "auto":
        raise InputError(
            Setting("diverse", True),
            " chooses among all draws at once, and ",
            Setting("n_samples", "auto"),
            " draws in rounds; set ",
            Parameter("n_samples"),
            " to a number.",
        )
    return settings


OPTIONS = tuple(inspect.signature(read_settings).parameters)
