"""What each feature is modelled on: `predictors`, mice's predictor matrix in the form of a dict.

A feature that is not named is modelled on all columns before it in the chain; the decision always comes on top.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from mcce.exceptions import InputError, did_you_mean
from mcce.table.checks import refuse_iterator

Predictors = Mapping[Any, Sequence[Hashable]]


def choose_predictors(
    predictors: Predictors | None, names: list[Any], n_given: int, *, with_decision: bool
) -> dict[int, list[int]]:
    """Return, for the features with predictors of their own, the chain columns that they are modelled on.

    `names` are the columns in chain order; the first `n_given` are not drawn, the last of them is the decision if
    there is one.
    """
    if predictors is not None and not isinstance(predictors, Mapping):
        raise InputError(f"predictors is {predictors!r}; give a dict of lists, for example {{'salary': ['age']}}.")
    visited = names[n_given:]
    fixed = names[: n_given - with_decision]
    chosen: dict[int, list[int]] = {}
    for target, columns in (predictors or {}).items():
        if isinstance(columns, str):
            raise InputError(f"predictors[{target!r}] is {columns!r}; give a list of columns: [{columns!r}].")
        if target not in visited:
            what = "is fixed" if target in fixed else "is not a column of X"
            raise InputError(f"predictors names {target!r}, which {what}; {did_you_mean(target, visited)}")
        if not isinstance(columns, Iterable):
            raise InputError(f"predictors[{target!r}] is {columns!r}; give a list of columns.")
        refuse_iterator(columns, f"predictors[{target!r}]")
        place = names.index(target)
        for name in columns:
            if name not in names:
                raise InputError(
                    f"predictors[{target!r}] names {name!r}, which is not a column of X; {did_you_mean(name, names)}"
                )
            if names.index(name) >= place:
                raise InputError(
                    f"predictors[{target!r}] names {name!r}, which is not drawn before it; change visit_sequence, "
                    "or leave it out."
                )
        decision = [n_given - 1] if with_decision else []
        chosen[place] = sorted({*(names.index(name) for name in columns), *decision})
    return chosen
