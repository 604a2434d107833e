"""A result in words: the sentence of one counterfactual, the headline of all, the table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce.report.names import PREDICTION, Names
from mcce.report.words import fold, listed, value_text

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
