"""The model that `mcce explain` trains where none is given: gradient boosting, its quality cross-validated.

Dates are counted in days, inside the model: who asks it keeps dates.
"""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from mcce.cli.console import say
from mcce.cli.wanted import read_interval, read_wanted
from mcce.exceptions import InputError, listing, spell
from mcce.progress import working
from mcce.table.dtypes import is_dated, is_numeric
from mcce.workers import one_native_thread

POOR = {"AUC": 0.7, "R2": 0.3}
MOST_LEVELS = 255  # of scikit-learn's HistGradientBoosting


@one_native_thread()
def train_model(
    X: pd.DataFrame, y: pd.Series[Any], arguments: argparse.Namespace, of_codes: bool
) -> tuple[Any, pd.DataFrame]:
    """Train gradient boosting on the rows with a response, and say how good it is; `of_codes`: they are classes."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    known = y.notna()
    if not known.all():
        say(f"{int((~known).sum())} training rows without {y.name!r} are left out")
        X, y = X[known], y[known]
    counts = y.value_counts()
    is_class = not is_numeric(y.dtype) or len(counts) == 2 or of_codes
    _check_trainable(X, y, counts, is_class, arguments)
    settings = {"max_leaf_nodes": 8, "categorical_features": "from_dtype", "random_state": 0}
    if is_class:
        model = HistGradientBoostingClassifier(**settings)
        measure, scoring = "AUC", "roc_auc" if len(counts) == 2 else "roc_auc_ovr"
        folds: Any = StratifiedKFold(min(5, max(2, counts.min())), shuffle=True, random_state=0)
    else:
        model = HistGradientBoostingRegressor(**settings)
        measure, scoring, folds = "R2", "r2", KFold(min(5, len(y)), shuffle=True, random_state=0)
    name = type(model).__name__
    if any(is_dated(dtype) for dtype in X.dtypes):
        model = make_pipeline(FunctionTransformer(in_days), model)
    try:
        with working("training a model", None):
            quality = cross_val_score(model, X, y, cv=folds, scoring=scoring, error_score="raise").mean()
            model.fit(X, y)
    except (TypeError, ValueError) as error:
        problem = str(error).strip().splitlines()[0].rstrip(".")
        raise InputError(f"no model can be trained on {arguments.train}: {problem}. Give a --model.") from error
    kind = "class" if is_class else "number"
    say(f"trained a {name} for the {kind} {y.name!r}; cross-validated {measure} {quality:.2f}")
    if not quality >= POOR[measure]:
        say(f"warning: that is poor: the model says little about {y.name!r}, and so will its explanations")
    return model, X


def in_days(X: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its dates and durations as numbers of days."""
    return X.assign(**{str(name): _days(X[name]) for name in X if is_dated(X[name].dtype)})


def _days(dates: pd.Series[Any]) -> pd.Series[float]:
    if isinstance(dates.dtype, pd.DatetimeTZDtype):
        dates = dates.dt.tz_convert("UTC").dt.tz_localize(None)
    since: Any = dates - pd.Timestamp(0) if dates.dtype.kind == "M" else dates
    days: pd.Series[float] = since.dt.total_seconds() / 86_400
    return days


def _check_trainable(
    X: pd.DataFrame, y: pd.Series[Any], counts: pd.Series[int], is_class: bool, arguments: argparse.Namespace
) -> None:
    wanted = arguments.wanted
    if wanted is None:
        choice = f"one of {listing(counts.index)}" if is_class else "an interval such as 10,20"
        raise InputError(f"--response {y.name} needs --wanted: {choice}.")
    if not is_class and read_interval(wanted, None) is None:
        raise InputError(
            f"--wanted is {wanted!r}, but --response {y.name} is a number ({len(counts)} different values): "
            f"give an interval, as in 10,20; if its values are classes, add --categorical {y.name}."
        )
    if is_class:
        read_wanted(wanted, arguments.of, counts.index, counts.to_dict())
    if len(counts) < 2 or (is_class and counts.min() < 2):
        rare = "no value" if not len(counts) else f"{spell(counts.index[-1])} in {counts.iloc[-1]} rows only"
        raise InputError(f"--response {y.name} has {rare}; training needs two values or more, each at least twice.")
    for name in X.select_dtypes("category"):
        if X[name].nunique() > MOST_LEVELS:
            raise InputError(
                f"column {name!r} of {arguments.train} has {X[name].nunique()} different values, more than "
                f"the {MOST_LEVELS} that the model can take. Remove it if it is a name, or give a --model."
            )
