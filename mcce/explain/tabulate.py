"""Write the winners of an explanation as the tables of a result; their predictions are in the cache of the query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Floats
from mcce.counterfactuals import Counterfactuals
from mcce.distances import changed
from mcce.explain.run import Explanation
from mcce.table import Schema

N_QUANTILES = 201  # of the training rows, for pictures
REASONS = {
    "already": "it has the wanted decision",
    "unknown_level": "it cannot be encoded: {why}",
    "none_allowed": "no draw was found that constraints and relations allow",
    "none_valid": "none of its {allowed} distinct allowed draws (of {drawn}) has the wanted decision",
    "not_confirmed": "the model accepted rows at first, and not when it was asked again",
}


def tabulate(explained: Explanation, training: Floats, settings: Mapping[str, Any]) -> Counterfactuals:
    """Return the result of an explanation; `training` are the encoded training rows, for shares of rows."""
    problem, factuals, winners = explained.problem, explained.factuals, explained.winners
    schema = problem.generator.schema_
    rank = np.arange(winners.owner.size) - np.searchsorted(winners.owner, winners.owner) + 1
    index = pd.MultiIndex.from_arrays([factuals.index[winners.owner], rank], names=["id", "rank"])
    encoded = np.setdiff1d(np.arange(len(factuals)), list(factuals.unknown))
    shares = _shares(schema, training, factuals.matrix[winners.owner], winners.rows)
    return Counterfactuals(
        frame=schema.decode(winners.rows, index),
        measures=_measures(explained, index),
        factuals=schema.decode(factuals.matrix[encoded], factuals.index[encoded]),
        predictions=pd.Series(factuals.prediction, factuals.index, name="prediction"),
        unexplained=_unexplained(explained),
        settings=dict(settings),
        fixed=tuple(problem.generator.fixed_),
        derived=tuple(schema.names[j] for j in problem.derived.columns),
        kinds=dict(schema.kinds),
        shares=shares,
        distributions=_distributions(schema, training, dict.fromkeys(shares["feature"])),
    )


def _measures(explained: Explanation, index: pd.MultiIndex) -> pd.DataFrame:
    problem, winners = explained.problem, explained.winners
    before = explained.factuals.matrix[winners.owner]
    counted = problem.derived.reset(winners.rows, before)
    columns: dict[str, Any] = {
        "prediction": problem.query(winners.rows).prediction,
        "L0": changed(counted, before).sum(axis=1),
        "gower": problem.gower.between(counted, before),
        "gower_sum": problem.gower.sums(counted, before),
    }
    for measure in problem.measures or ():
        columns.setdefault(measure.name, measure.function(counted, before))
    if problem.sparse and problem.score is not None:
        columns["plausibility"] = problem.score.level(winners.rows, problem.score.judge(before), np.arange(len(before)))
        columns["below_floor"] = winners.below_floor
    return pd.DataFrame(columns, index)


def _unexplained(explained: Explanation) -> pd.DataFrame:
    """Return one row for each factual without a counterfactual: its code, the counts of its draws, and a sentence."""
    factuals, counts = explained.factuals, explained.counts
    is_explained = np.zeros(len(factuals), dtype=bool)
    is_explained[explained.winners.owner] = True
    rows = []
    for f in np.flatnonzero(~is_explained).tolist():
        if f in factuals.unknown:
            code = "unknown_level"
        elif factuals.wanted[f]:
            code = "already"
        elif explained.not_confirmed[f]:
            code = "not_confirmed"
        else:
            code = "none_valid" if counts.allowed[f] else "none_allowed"
        numbers = {name: int(count[f]) for name, count in vars(counts).items()}
        reason = REASONS[code].format(why=factuals.unknown.get(f, ""), **numbers)
        rows.append({"code": code, "prediction": factuals.prediction[f], **numbers, "reason": reason})
    columns = ["code", "prediction", *vars(counts), "reason"]
    index = factuals.index[~is_explained].rename("id")
    return pd.DataFrame(rows, index, columns)


def _shares(schema: Schema, training: Floats, before: Floats, after: Floats) -> pd.DataFrame:
    """Return for each changed cell its `row` among the counterfactuals, its feature, direction, step and shares.

    `share_from` and `share_to` are the shares of training rows with at most the old and the new value; of a level
    without order, the shares that have it. `step` is the share of training rows between the two values, ties half.
    """
    row, column = np.nonzero(changed(after, before))
    old, new = before[row, column], after[row, column]
    share_from, share_to, step = (np.full(row.size, np.nan) for _ in range(3))
    direction = np.where(np.isnan(old) | np.isnan(new), "missing", np.where(new > old, "up", "down")).astype(object)
    for j in np.unique(column).tolist():
        cells = np.flatnonzero(column == j)
        ordered = np.sort(training[~np.isnan(training[:, j]), j])
        below, upto = (
            [np.searchsorted(ordered, values[cells], side=side) / max(ordered.size, 1) for values in (old, new)]
            for side in ("left", "right")
        )
        is_known = direction[cells] != "missing"
        if schema.features[j].kind == "categorical":
            direction[cells[is_known]] = "other"
            upto = [high - low for low, high in zip(below, upto)]
        else:
            between = (below[1] + upto[1] - below[0] - upto[0]) / 2
            step[cells] = np.where(is_known, between, np.nan)
        share_from[cells] = np.where(np.isnan(old[cells]), np.nan, upto[0])
        share_to[cells] = np.where(np.isnan(new[cells]), np.nan, upto[1])
    names = schema.names
    features = pd.Series([names[j] for j in column.tolist()], dtype=object)
    columns = {"row": row, "feature": features, "direction": direction, "step": step}
    return pd.DataFrame({**columns, "share_from": share_from, "share_to": share_to})


def _distributions(schema: Schema, training: Floats, features: Any) -> dict[Any, pd.DataFrame]:
    """Return the distribution of each feature in the training rows, in its own dtype, for pictures.

    Of a number or date `value` has quantiles, and `share` the share of rows with at most this value; of a level `share`
    is the share of rows that have it.
    """
    distributions = {}
    for name in features:
        feature = schema.features[schema.position(name)]
        values = training[:, schema.position(name)]
        ordered = np.sort(values[~np.isnan(values)])
        if not ordered.size:
            continue
        if feature.is_numeric:
            share = np.linspace(0.0, 1.0, N_QUANTILES)
            encoded = ordered[np.maximum(np.ceil(share * ordered.size).astype(np.int64) - 1, 0)]
        else:
            encoded, counts = np.unique(values, return_counts=True)  # a missing value is one more level
            share = counts / values.size
        distributions[name] = pd.DataFrame({"value": feature.decode(encoded), "share": share})
    return distributions
