"""Checks of the arguments that name columns and rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Ints
from mcce.exceptions import InputError, did_you_mean, listing, spell


def check_fixed(fixed: Iterable[Hashable], names: Sequence[Hashable], what: str = "fixed") -> list[Any]:
    """Return the names of fixed features in the order given; unknown and repeated names are errors.

    Examples
    --------
    >>> from mcce.table.checks import check_fixed
    >>> check_fixed(["sex", "age"], ["age", "sex", "job"])
    ['sex', 'age']
    """
    if not isinstance(fixed, (list, tuple, set, frozenset, pd.Index, np.ndarray)):
        raise InputError(f"{what} is {spell(fixed)}; give a list of column names, for example {what}=['age', 'sex'].")
    fixed = list(fixed)
    for name in fixed:
        if name not in names:
            raise InputError(f"{what} names {spell(name)}, which is not a column of X; {did_you_mean(name, names)}")
    twice = [name for name in dict.fromkeys(fixed) if fixed.count(name) > 1]
    if twice:
        raise InputError(f"{what} names {listing(twice)} more than once; name each feature once.")
    return fixed


def check_row_names(index: pd.Index[Any], where: str) -> None:
    """Raise if an index does not name each row: labels that repeat, or several levels.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.table.checks import check_row_names
    >>> check_row_names(pd.Index([1, 1]), "X")
    Traceback (most recent call last):
    mcce.exceptions.InputError: the index of X holds 1 more than once; use X.reset_index(drop=True).
    """
    if isinstance(index, pd.MultiIndex):
        problem = f"has {index.nlevels} levels"
    elif not index.is_unique:
        problem = f"holds {listing(index[index.duplicated()].unique())} more than once"
    elif np.sum(index.isna()) > 1:  # None beside NaN
        problem = f"holds {listing(index[index.isna()])}, which are one missing label"
    else:
        return
    raise InputError(f"the index of {where} {problem}; use {where}.reset_index(drop=True).")


def find_labels(index: pd.Index[Any], labels: pd.Index[Any]) -> Ints:
    """Return the position of each label in a unique index, -1 for unknown labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.table.checks import find_labels
    >>> find_labels(pd.Index(["a", "b"]), pd.Index(["b", "z", "b"])).tolist()
    [1, -1, 1]
    """
    if isinstance(getattr(index, "categories", index), pd.IntervalIndex):  # pandas does not search overlapping ones
        index, labels = index.astype(object), labels.astype(object)
    places = np.array(index.get_indexer_for(labels), dtype=np.int64)
    missing = np.flatnonzero(index.isna())
    if missing.size:  # None and NaN are one label
        places[labels.isna()] = missing[0]
    return places
