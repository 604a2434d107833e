"""Changes between factuals and counterfactuals: cells, directions, and the changes that the decision depends on.

1. A cell is changed unless it equals the factual's cell exactly, or both are missing (`differs`).
2. Every changed cell is a row of a table: id, rank, feature, from, to (`changed_cells`).
3. Over many factuals, the changes of a feature are counted by direction, with a typical change (`count_changes`).
4. The model is queried about each change of a counterfactual alone, and about all the others without it
   (`predict_changes`): whether a change is sufficient alone, and whether it is needed.

Tables have the names and values of the data; `in_words` and `contributions_in_words` replace them by labels and
formatted values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.typing import NDArray

from mcce.base.arrays import Bools
from mcce.report.names import PREDICTION, Names, value_text
from mcce.table.dtypes import is_dated, is_numeric

Predict = Callable[[pd.DataFrame, pd.DataFrame], tuple[npt.NDArray[Any], Bools]]


def differs(before: pd.Series[Any], after: pd.Series[Any]) -> NDArray[np.bool_]:
    """Mark the cells that differ: not equal, or missing on one side only."""
    old, new = (s.astype(object) if isinstance(s.dtype, pd.CategoricalDtype) else s for s in (before, after))
    old_missing, new_missing = old.isna().to_numpy(), new.isna().to_numpy()
    differs: NDArray[np.bool_] = old_missing != new_missing
    present = ~(old_missing | new_missing)
    differs[present] = (old[present] != new[present]).to_numpy(dtype=bool)
    return differs


def differing_cells(before: pd.DataFrame, after: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the cells that differ between two tables with the same rows and columns."""
    changed = [differs(before[name], after[name]) for name in after.columns]
    return np.column_stack(changed) if changed else np.zeros((len(after), 0), dtype=bool)


def changed_cells(before: pd.DataFrame, after: pd.DataFrame, changed: NDArray[np.bool_]) -> pd.DataFrame:
    """Return every changed cell of `after`, whose index is (id, rank): id, rank, feature, from, to."""
    rows, columns = np.nonzero(changed)
    old, new = (np.empty(len(rows), dtype=object) for _ in range(2))
    for j in range(after.shape[1]):
        cells = columns == j
        old[cells] = before.iloc[changed[:, j], j].astype(object).to_numpy()
        new[cells] = after.iloc[changed[:, j], j].astype(object).to_numpy()
    return pd.DataFrame(
        {
            "id": after.index.get_level_values("id")[rows],
            "rank": after.index.get_level_values("rank")[rows],
            "feature": after.columns[columns],
            "from": pd.Series(old, dtype=object),
            "to": pd.Series(new, dtype=object),
        }
    )


def side_by_side(frame: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Return features and measures side by side, with id and rank as columns; names of features are not used twice."""
    taken = {*frame.columns}
    parts = [frame.index.to_frame(index=False), frame.reset_index(drop=True), measures.reset_index(drop=True)]
    for k in (0, 2):
        free = [free_name(name, taken) for name in parts[k].columns]
        taken |= {*free}
        parts[k] = parts[k].set_axis(pd.Index(free, tupleize_cols=False), axis=1)
    return pd.concat(parts, axis=1)


def free_name(name: Any, taken: set[Any]) -> Any:
    """Return a name with underscores appended until it is not among those taken."""
    while name in taken:
        name = f"{name}_"
    return name


def directions(before: pd.Series[Any], after: pd.Series[Any], changed: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Return 1 where an ordered value rises, -1 where it falls, 0 where there is no order or a value is missing."""
    old, new = before.reset_index(drop=True), after.reset_index(drop=True)
    step = np.zeros(len(old), dtype=np.int8)
    if isinstance(old.dtype, pd.CategoricalDtype):
        if not old.dtype.ordered:
            return step
        codes = {level: code for code, level in enumerate(old.dtype.categories)}
        old, new = old.astype(object).map(codes), new.astype(object).map(codes)
    elif not has_order(old):
        return step
    known = changed & ~(old.isna() | new.isna()).to_numpy(dtype=bool)
    step[known] = np.where((new[known] > old[known]).to_numpy(dtype=bool), 1, -1)
    return step


def has_order(column: pd.Series[Any]) -> bool:
    """Return whether a column holds numbers, dates or durations."""
    return is_numeric(column.dtype) or is_dated(column.dtype)


def typical_change(before: pd.Series[Any], after: pd.Series[Any], names: Names | None = None) -> str:
    """Return the median step of numbers, or the most frequent new value of other columns, in words.

    The name of the column is that of the feature.
    """
    names = names or Names()
    if not len(after):
        return ""
    old, new = before.reset_index(drop=True), after.reset_index(drop=True)
    if is_numeric(new.dtype):
        step = (new.astype("Float64") - old.astype("Float64")).dropna()
        return f"median {names.step(after.name, float(step.median()))}" if len(step) else ""
    if has_order(new) and not isinstance(new.dtype, pd.PeriodDtype):
        steps = pd.to_timedelta((new - old).dropna())
        days = steps.dt.total_seconds().median() / 86_400
        return "" if pd.isna(days) else f"median {'+' if days > 0 else ''}{value_text(float(days), 3)} days"
    counts = pd.Series([names.text(after.name, value) for value in new.astype(object)]).value_counts()
    return f"mostly to {counts.index[0]}" if len(counts) > 1 else f"to {counts.index[0]}"


def count_changes(
    before: pd.DataFrame,
    after: pd.DataFrame,
    changed: NDArray[np.bool_],
    fixed: Sequence[Hashable],
    names: Names | None = None,
) -> pd.DataFrame:
    """Return how often each feature changes, most frequent first.

    The columns are times, share, fixed, up, down, other, missing and note.
    """
    n = max(len(after), 1)
    times = changed.sum(axis=0)
    table = pd.DataFrame({"times": times, "share": times / n}, index=after.columns)
    table["fixed"] = table.index.isin(list(fixed))
    steps = [directions(before.iloc[:, j], after.iloc[:, j], changed[:, j]) for j in range(changed.shape[1])]
    lacking = before.isna().to_numpy(dtype=bool) | after.isna().to_numpy(dtype=bool)  # on one side
    for part, sign in (("up", 1), ("down", -1), ("other", 0)):
        found = [(step == sign) & c & ~gap for step, c, gap in zip(steps, changed.T, lacking.T)]
        table[part] = [float(which.sum() / n) for which in found]
    table["missing"] = (lacking & changed).sum(axis=0) / n
    table["note"] = [typical_change(before.iloc[c, j], after.iloc[c, j], names) for j, c in enumerate(changed.T)]
    return table.rename_axis("feature").sort_values("times", ascending=False, kind="stable")


def predict_changes(before: pd.DataFrame, after: pd.DataFrame, changed: Bools, predict: Predict) -> pd.DataFrame:
    """Query the model about a factual with one change of its counterfactual, and with all but one.

    Parameters
    ----------
    before, after : DataFrame
        The factual and the counterfactual, a row each, with the columns and dtypes of the training table.
    changed : array
        Marks the columns that differ.
    predict : function
        Returns (scores, wanted) for rows and the factual; columns that are computed from others follow the changes.

    Returns
    -------
    DataFrame with a row for each change: `from`, `to`; `alone`, the prediction with this change only, and `enough`,
    whether it has the wanted decision; `without`, the prediction with all changes but this one, and `needed`, whether
    it lacks the wanted decision.
    """
    places = np.flatnonzero(changed)
    alone = np.zeros((places.size, changed.size), dtype=bool)
    alone[np.arange(places.size), places] = True
    taken = np.concatenate([alone, changed & ~alone])
    both = [pd.concat([before.iloc[:, j], after.iloc[:, j]], ignore_index=True) for j in range(changed.size)]
    variants = pd.DataFrame({j: column.take(taken[:, j].astype(np.intp)).array for j, column in enumerate(both)})
    variants.columns = before.columns
    scores, wanted = predict(variants, before)
    cells = {
        "from": [both[j].astype(object).iloc[0] for j in places],
        "to": [both[j].astype(object).iloc[1] for j in places],
    }
    return pd.DataFrame(
        {
            **{name: pd.Series(values, dtype=object) for name, values in cells.items()},
            "alone": scores[: places.size],
            "enough": wanted[: places.size],
            "without": scores[places.size :],
            "needed": ~wanted[places.size :],
        }
    ).set_axis(before.columns[places].rename("feature"), axis=0)


def in_words(table: pd.DataFrame, features: Iterable[Hashable], names: Names) -> pd.DataFrame:
    """Return a table of changes, a row for each of `features`, with texts in `from` and `to`, labels in `feature`."""
    named = list(features)
    pairs = [names.pair(name, *cells) for name, *cells in zip(named, table["from"], table["to"])]
    words = table.copy()
    for k, column in enumerate(("from", "to")):
        words[column] = pd.Series([pair[k] for pair in pairs], index=table.index, dtype=object)
    if "feature" in words:
        words["feature"] = pd.Series([names.label(name) for name in named], index=table.index, dtype=object)
    return words


def contributions_in_words(table: pd.DataFrame, names: Names) -> pd.DataFrame:
    """Return a table of `predict_changes` with labels, and with values and predictions as texts."""
    words = in_words(table, table.index, names)
    for column in ("alone", "without"):
        words[column] = pd.Series(
            [names.text(PREDICTION, value, 3) for value in table[column]], words.index, dtype=object
        )
    return words.set_axis(pd.Index([names.label(name) for name in table.index], name="feature"), axis=0)
