"""The columns that a model reads, as far as it declares them, and the name of its response.

scikit-learn: `feature_names_in_`, of a pipeline's first step, of a search's best estimator, without the columns that a
`ColumnTransformer` drops. statsmodels: the names in the formula or of the tables. The model is not queried.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.exceptions import AdviceWarning, InputError, spell, spell_all, warn
from mcce.wording import Parameter, PythonOnly, Setting


@dataclass(frozen=True)
class ModelColumns:
    """The columns of a table that a model reads, None if unknown, and those that are its response."""

    read: frozenset[Hashable] | None = None
    response: tuple[Hashable, ...] = ()

    def check_response(self) -> None:
        if self.response:
            raise InputError(
                Parameter("X"),
                f" has the column {spell(self.response[0])}, which is the response of the model and not a feature; "
                "leave it out",
                PythonOnly(f": X.drop(columns=[{spell_all(self.response)}])"),
                ".",
            )

    def warn_of_unread(self, columns: Iterable[Hashable], fixed: Iterable[Hashable]) -> None:
        """Warn of mutable columns that the model does not use."""
        if self.read is None:
            return
        unused = [name for name in columns if name not in self.read and name not in set(fixed)]
        if unused:
            warn(
                f"the model does not read {spell_all(unused)}, so that no change there matters. Leave them out of ",
                Parameter("X"),
                ", or name them in ",
                Setting("fixed", [unused[0], ...]),
                ".",
                PythonOnly(" A filter of mcce.exceptions.AdviceWarning silences this."),
                category=AdviceWarning,
            )


def columns_of(model: Any, columns: Sequence[Hashable]) -> ModelColumns:
    """Return which columns of a table a model reads, and which are its response."""
    model = getattr(model, "__self__", model)  # of a bound method
    try:
        if type(model).__module__.partition(".")[0] == "statsmodels":
            return _of_statsmodels(model, columns)
        read = _read_by_estimator(model)
    except Exception:  # the attributes of a model are its own code
        return ModelColumns()
    known = None if read is None or not read <= set(columns) else frozenset(read)
    return ModelColumns(known)


def _read_by_estimator(model: Any) -> set[Hashable] | None:
    model = getattr(model, "best_estimator_", model)
    steps = getattr(model, "steps", None)
    if steps is not None:
        model = next((step for _, step in steps if step not in (None, "passthrough")), None)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    transformers = getattr(model, "transformers_", None)
    if transformers is None:
        return set(names)
    labels = pd.Index(names)
    return {name for _, how, chosen in transformers if not _drops(how) for name in _labels(labels, chosen)}


def _drops(how: Any) -> bool:
    return isinstance(how, str) and how == "drop"


def _labels(names: pd.Index[Any], chosen: Any) -> list[Hashable]:
    """Return the names that a `ColumnTransformer` chooses: by names, positions, a mask or a slice."""
    if isinstance(chosen, slice):
        if isinstance(chosen.start, str) or isinstance(chosen.stop, str):
            chosen = names.slice_indexer(chosen.start, chosen.stop, chosen.step)
        return list(names[chosen])
    several = np.atleast_1d(np.asarray(chosen))
    if several.dtype.kind in "biu":
        return list(names[several])
    return list(several.tolist())


def _of_statsmodels(model: Any, columns: Sequence[Hashable]) -> ModelColumns:
    made = getattr(model, "model", model)
    formula = getattr(made, "formula", None)
    if isinstance(formula, str) and "~" in formula:
        left, right = formula.split("~", 1)
        names = [name for name in columns if isinstance(name, str)]
        everything = re.search(r"(?<![\w.])\.(?![\w.])", right) is not None
        read = {name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", right)}
        # a name before a dot or a bracket is a module or a function
        response = [n for n in names if n not in read and re.search(rf"(?<![\w.]){re.escape(n)}(?![\w.(])", left)]
        return ModelColumns(frozenset(read) if read and not everything else None, tuple(response))
    tables = made.data.orig_endog, made.data.orig_exog
    if not isinstance(tables[0], (pd.Series, pd.DataFrame)) or not isinstance(tables[1], pd.DataFrame):
        return ModelColumns()  # names such as "y" and "x1" are not the user's
    exog = set(tables[1].columns)
    endog = [tables[0].name] if isinstance(tables[0], pd.Series) else list(tables[0].columns)
    read_all = exog <= set(columns)
    return ModelColumns(
        frozenset(exog) if read_all else None, tuple(n for n in endog if n in columns and n not in exog)
    )
