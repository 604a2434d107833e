"""A result in words: the sentence of one counterfactual, the headline of all, the table for a terminal.

What changes between two columns: which cells, in which direction, and what is typical of it.

Which changes of a counterfactual carry the decision: each taken alone, and each left out.

What each constraint does, in the words of a reader: for a page and a terminal alike.

Finding one counterfactual of a result, by the label of its factual and its rank.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.typing import NDArray

from mcce.base.arrays import Bools, Indices
from mcce.exceptions import InputError, spell, spell_all
from mcce.report.names import PREDICTION, Names, case_name, fold, listed, value_text
from mcce.table.checks import find_labels
from mcce.table.dtypes import is_dated


def differs(before: pd.Series[Any], after: pd.Series[Any]) -> NDArray[np.bool_]:
    """Return which cells differ: not equal, or missing on one side only."""
    old, new = (s.astype(object) if isinstance(s.dtype, pd.CategoricalDtype) else s for s in (before, after))
    old_missing, new_missing = old.isna().to_numpy(), new.isna().to_numpy()
    differs: NDArray[np.bool_] = old_missing != new_missing
    present = ~(old_missing | new_missing)
    differs[present] = (old[present] != new[present]).to_numpy(dtype=bool)
    return differs


def differing_cells(before: pd.DataFrame, after: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which cells of two tables with the same rows and columns differ."""
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


def in_words(table: pd.DataFrame, features: Iterable[Hashable], names: Names) -> pd.DataFrame:
    """Return a table of changes, a row for each of `features`, with texts as `from` and `to`, labels as `feature`."""
    named = list(features)
    pairs = [names.pair(name, *cells) for name, *cells in zip(named, table["from"], table["to"])]
    told = table.copy()
    for k, column in enumerate(("from", "to")):
        told[column] = pd.Series([pair[k] for pair in pairs], index=table.index, dtype=object)
    if "feature" in told:
        told["feature"] = pd.Series([names.label(name) for name in named], index=table.index, dtype=object)
    return told


def side_by_side(frame: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Return features and measures side by side, id and rank as columns, where their names are not a feature's."""
    taken = {*frame.columns}
    parts = [frame.index.to_frame(index=False), frame.reset_index(drop=True), measures.reset_index(drop=True)]
    for k in (0, 2):
        free = [_free_name(name, taken) for name in parts[k].columns]
        taken |= {*free}
        parts[k] = parts[k].set_axis(pd.Index(free, tupleize_cols=False), axis=1)
    return pd.concat(parts, axis=1)


def _free_name(name: Any, taken: set[Any]) -> Any:
    """Return a name with as many underscores behind it as it takes to be nobody else's."""
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
    elif not _has_order(old):
        return step
    known = changed & ~(old.isna() | new.isna()).to_numpy(dtype=bool)
    step[known] = np.where((new[known] > old[known]).to_numpy(dtype=bool), 1, -1)
    return step


def _has_order(column: pd.Series[Any]) -> bool:
    types = pd.api.types
    is_number = types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype)
    return is_number or is_dated(column.dtype)


def typical_change(before: pd.Series[Any], after: pd.Series[Any], names: Names | None = None) -> str:
    """Return the median step of numbers, the most frequent new value of anything else, in words.

    The features are called by the columns' name.
    """
    names = names or Names()
    if not len(after):
        return ""
    old, new = before.reset_index(drop=True), after.reset_index(drop=True)
    types = pd.api.types
    if types.is_numeric_dtype(new.dtype) and not types.is_bool_dtype(new.dtype):
        step = (new.astype("Float64") - old.astype("Float64")).dropna()
        return f"median {names.step(after.name, float(step.median()))}" if len(step) else ""
    if _has_order(new) and not isinstance(new.dtype, pd.PeriodDtype):
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
    """Return how often each feature changes, the most changed first.

    The columns are times, share, fixed, up, down, other, missing and note.
    """
    n = max(len(after), 1)
    times = changed.sum(axis=0)
    table = pd.DataFrame({"times": times, "share": times / n}, index=after.columns)
    table["fixed"] = table.index.isin(list(fixed))
    steps = [directions(before.iloc[:, j], after.iloc[:, j], changed[:, j]) for j in range(changed.shape[1])]
    lacking = before.isna().to_numpy(dtype=bool) | after.isna().to_numpy(dtype=bool)  # on one side, where it changed
    for part, sign in (("up", 1), ("down", -1), ("other", 0)):
        found = [(step == sign) & c & ~gap for step, c, gap in zip(steps, changed.T, lacking.T)]
        table[part] = [float(which.sum() / n) for which in found]
    table["missing"] = (lacking & changed).sum(axis=0) / n
    table["note"] = [typical_change(before.iloc[c, j], after.iloc[c, j], names) for j, c in enumerate(changed.T)]
    return table.rename_axis("feature").sort_values("times", ascending=False, kind="stable")


Ask = Callable[[pd.DataFrame], tuple[npt.NDArray[Any], Bools]]


def carrying_table(before: pd.DataFrame, after: pd.DataFrame, changed: Bools, ask: Ask) -> pd.DataFrame:
    """Ask the model about a factual with one change of its counterfactual, and with all but one.

    Parameters
    ----------
    before, after : DataFrame
        The factual and the counterfactual, a row each, with the columns and dtypes of the training table.
    changed : array
        Which columns differ.
    ask : function
        Returns (scores, wanted) for rows.

    Returns
    -------
    DataFrame, a row for each change: `from`, `to`; `alone`, the prediction with this change only, and `enough`, whether
    that has the wanted decision; `without`, the prediction with all changes but this one, and `needed`, whether the
    decision is lost then.
    """
    places = np.flatnonzero(changed)
    alone = np.zeros((places.size, changed.size), dtype=bool)
    alone[np.arange(places.size), places] = True
    taken = np.concatenate([alone, changed & ~alone])
    both = [pd.concat([before.iloc[:, j], after.iloc[:, j]], ignore_index=True) for j in range(changed.size)]
    variants = pd.DataFrame({j: column.take(taken[:, j].astype(np.intp)).array for j, column in enumerate(both)})
    variants.columns = before.columns
    scores, wanted = ask(variants)
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


def reasons_in_words(table: pd.DataFrame, names: Names) -> pd.DataFrame:
    """Return a table of `carrying_table` with labels, and its values and predictions as texts."""
    told = in_words(table, table.index, names)
    for column in ("alone", "without"):
        told[column] = pd.Series(
            [names.text(PREDICTION, value, 3) for value in table[column]], told.index, dtype=object
        )
    return told.set_axis(pd.Index([names.label(name) for name in table.index], name="feature"), axis=0)


NEARLY_ALL = 0.995  # more would be rounded to all of the draws


class Bound(NamedTuple):
    """One constraint: what was asked, how much it asks of draws that do not know it, and what passed it."""

    asked: str
    breaks: str
    passed: str


def binding_words(constraints: pd.DataFrame | None) -> list[Bound]:
    """Return the rows of `Counterfactuals.constraints` in words; none if there are no constraints.

    Parameters
    ----------
    constraints : DataFrame or None
        `breaks`, `tried` and `passed`, by constraint.
    """
    if constraints is None:
        return []
    rows = zip(constraints.index, constraints["breaks"], constraints["tried"], constraints["passed"])
    return [
        Bound(str(asked), _share_text(breaks), _passed_text(tried, passed)) for asked, breaks, tried, passed in rows
    ]


def binding_lines(constraints: pd.DataFrame | None) -> list[str]:
    """Return one line for each constraint."""
    return [
        f"{each.asked}: broken by {each.breaks} of the free draws; rows that could go on: {each.passed}"
        for each in binding_words(constraints)
    ]


def _share_text(share: float) -> str:
    if pd.isna(share):
        return "an unknown share"
    if share in (0.0, 1.0):
        return "all" if share else "none"
    return "over 99%" if share >= NEARLY_ALL else "under 1%" if share < 1 - NEARLY_ALL else f"{100 * share:.0f}%"


def _passed_text(tried: float, passed: float) -> str:
    if pd.isna(tried) or not tried:
        return "none came to it"
    tried, passed = int(tried), int(passed)
    if passed == tried:
        return f"all of {value_text(tried)}"
    return f"{value_text(passed)} of {value_text(tried)}"


def check_indexes(
    frame: pd.DataFrame, measures: pd.DataFrame, factuals: pd.DataFrame, predictions: pd.Series[Any]
) -> None:
    """Refuse the tables of a result whose rows do not belong together."""
    if not measures.index.equals(frame.index):
        raise InputError("measures and frame must have the same (id, rank) index; build both in one order.")
    if not predictions.index.equals(factuals.index):
        raise InputError("factual_predictions and factuals must have the same index; build both in one order.")
    ids = frame.index.get_level_values("id")
    if not factuals.index.is_unique or (find_labels(factuals.index, ids) < 0).any():
        raise InputError("every id of frame must occur exactly once in the index of factuals.")


def find_row(
    ids: pd.Index[Any], factual_of_row: Indices, ranks: pd.Index[Any], id: Hashable, rank: int
) -> tuple[int, int | None]:
    """Return the places of a factual among `ids` and of its counterfactual; None if it has none at all."""
    try:
        factual = int(find_labels(ids, pd.Index([id], tupleize_cols=False))[0])
    except (TypeError, ValueError):
        factual = -1
    if factual < 0:
        raise InputError(
            f"no factual has the id {spell(id)}; the ids are the index of the explained table: {spell_all(ids)}."
        )
    rows = np.flatnonzero(factual_of_row == factual)
    known = ranks[rows]
    if len(rows) and rank not in known:
        raise InputError(
            f"factual {spell(id)} has no counterfactual of rank {rank!r}, only {spell_all(known)}; "
            "ask for one of these, or explain with a larger n_counterfactuals."
        )
    return factual, int(rows[known == rank][0]) if len(rows) else None


def why_unexplained(unexplained: pd.DataFrame, id: Hashable) -> str:
    """Return why a factual has no counterfactual, as a sentence."""
    reason = "no reason was recorded"
    place = find_labels(unexplained.index, pd.Index([id], tupleize_cols=False))[0]
    if place >= 0:
        reason = str(unexplained["reason"].iloc[place]).rstrip(".")
    who = spell(id) if isinstance(id, str) else case_name(id)
    return f"No counterfactual was found for {who}: {reason}."


def reasons_in_lines(unexplained: pd.DataFrame) -> list[str]:
    """Return one line for each reason why factuals stayed unexplained."""
    groups = unexplained.groupby("reason", sort=False).groups.items()
    return [f"not explained, {reason}: {spell_all(ids)}" for reason, ids in groups]


ROUNDING = 1e-9  # a plausibility that is below the floor by no more than this is at it
CHANGES_PRINTED = 3


def floor_of(settings: Mapping[str, Any]) -> float | None:
    """Return the floor of plausibility that was asked for; None if there was none to keep."""
    return float(settings["floor"]) if settings.get("sparse") and "floor" in settings else None


def is_below(measures: pd.DataFrame, floor: float | None) -> pd.Series[Any]:
    """Return which counterfactuals are less plausible than was asked for."""
    if floor is None or "plausibility" not in measures:
        return pd.Series(False, index=measures.index, name="below_floor")
    return (measures["plausibility"] < floor - ROUNDING).rename("below_floor")


def change_sentence(changes: Sequence[tuple[str, str, str]], decision: str, old: str, new: str) -> str:
    """Return what changes (feature, before, after), and what becomes of the prediction, as a sentence."""
    parts = [f"{name} {after} instead of {before}" for name, before, after in changes]
    if not parts:
        return f"Nothing has to change: the decision is the wanted one ({decision}: {new})."
    return f"With {listed(parts)}, the decision would have been the wanted one ({decision}: {new} instead of {old})."


def care_sentence(plausibility: float, floor: float) -> str:
    """Return what to say of a counterfactual below the floor."""
    share = "hardly any" if plausibility < 0.001 else f"{value_text(100 * plausibility, 3)}%"
    return (
        f"Take it with care: it is below the floor of plausibility, since {share} of the real rows look as unusual as "
        f"this one or more so, and {value_text(100 * floor, 3)}% were asked for."
    )


def headline(
    n_explained: int, n_factuals: int, decision: str, measures: pd.DataFrame, is_best: Any, floor: float | None
) -> str:
    """Return how many were explained, what was wanted, how far the best ones are, and how many are below the floor."""
    lines = [
        f"Counterfactuals: {n_explained} of {n_factuals} factuals explained, {len(measures)} rows",
        f"wanted: {decision}",
    ]
    best = measures[is_best]
    if len(best):
        figures = [f"{m} {value_text(best[m].mean(), 3)}" for m in ("L0", "gower")]
        lines.append(f"mean over the best of each: {', '.join(figures)}")
    if floor is not None:
        n_below = int(is_below(measures, floor).sum())
        lines.append(f"rows below the floor of plausibility ({value_text(floor)}): {n_below}")
    return "\n".join(lines)


def printed_rows(measures: pd.DataFrame, changes: Sequence[Sequence[tuple[str, str, str]]], names: Names) -> list[str]:
    """Return a line for each counterfactual, below a line of names: id, rank, figures and the first changes."""
    if not len(measures):
        return []
    figures = [m for m in ("prediction", "L0", "gower", "plausibility") if m in measures]
    table = [["id", "rank", *figures, "changes"]]
    for row, (id, rank) in enumerate(measures.index):
        texts = [f"{name}: {fold(f'{old} -> {new}', 48, 1)}" for name, old, new in changes[row]]
        more = [f"and {len(texts) - CHANGES_PRINTED} more"] if len(texts) > CHANGES_PRINTED else []
        values = [
            names.text(m, measures[m].iloc[row], 3) if m == PREDICTION else value_text(measures[m].iloc[row], 3)
            for m in figures
        ]
        table.append([str(id), str(rank), *values, "; ".join(texts[:CHANGES_PRINTED] + more) or "nothing"])
    widths = [max(len(line[k]) for line in table) for k in range(len(table[0]) - 1)]
    return ["  ".join([*map(str.rjust, line, widths), line[-1]]) for line in table]


def count_figures(n_factuals: int, n_explained: int, unexplained: pd.DataFrame) -> dict[str, object]:
    """Return how many factuals there are, how many are explained, and how many are not for each reason."""
    figures = {"factuals": n_factuals, "explained": n_explained, "unexplained": len(unexplained)}
    counts = unexplained["reason"].value_counts().items()
    return {**figures, **{f"unexplained: {reason}": int(count) for reason, count in counts}}


def measure_figures(best: pd.DataFrame, standard_errors: Mapping[str, float]) -> dict[str, object]:
    """Return mean and spread of the measures of the best rows, and Monte Carlo errors where there are any."""
    figures: dict[str, object] = {}
    numbers = best.drop(columns="prediction").select_dtypes("number")
    for name in numbers.columns:
        infinite = np.isinf(numbers[name]).any()  # the log density of a row that the chain cannot draw
        figures[f"mean {name}"] = numbers[name].mean()
        figures[f"sd {name}"] = np.nan if infinite else numbers[name].std()
        if name in standard_errors:
            figures[f"se {name}"] = standard_errors[name]
    return figures


def spread_figures(pairwise: pd.DataFrame | None) -> dict[str, object]:
    """Return how different the counterfactuals of a factual are, on average over those that have several."""
    if pairwise is None or not (several := pairwise[pairwise["rows"] > 1]).size:
        return {}
    return {
        "mean pairwise gower": several["gower"].mean(),
        "mean pairwise share of features": several["features"].mean(),
    }
