"""Predictive scores of a fitted chain on held-out rows: log scores of whole rows, and skill from draws.

1. The log score of a row is the sum of its features' log densities, each with the uniform part that makes the densities
   of all samplers comparable (`mcce.judging.crossvalidation`).
2. The skill of a conditional is 1 - loss / loss of the marginal distribution, by CRPS or Brier score from draws; of
   a chain is the mean over its features.
3. Two samplers are compared by the differences of their log scores, row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import mcce
from mcce.judging.crossvalidation import mean_and_error
from mcce.judging.scores import score_conditional
from mcce.samplers.density import ColumnDensity, comparable
from mcce.table import Column, Table

Result = dict[str, Any]

N_DRAWS = 20
AUTO = "auto"
STACK = "stack"


def held_out_scores(chain: Any, training: pd.DataFrame, unseen: pd.DataFrame) -> Result:
    """Return mean log score with its standard error, the score of each row, and the skill (steps 1 and 2).

    A joint generator has no conditionals, so no skill; its densities are with respect to the columns' own measures.
    """
    if not isinstance(chain, mcce.ChainModel):
        return _joint_scores(chain, training, unseen)
    schema = chain.schema_
    known, new = (Table(schema.features, schema.encode(rows).matrix) for rows in (training, unseen))
    densities = chain.log_density(unseen, per_feature=True)
    in_order = [schema.position(name) for name in (*chain.fixed_, *chain.visit_sequence_)]
    rows, skills = np.zeros(len(unseen)), []
    for k, (name, sampler) in enumerate(chain.samplers_.items(), len(chain.fixed_)):
        j = in_order[k]
        target, observed = known.column(j), new.column(j)
        scored = comparable(densities[name].to_numpy(), sampler.base_measure(), target, observed)
        rows += np.nan if scored is None else scored
        given = new.select(in_order[:k])
        loss = score_conditional(sampler, given, observed, seed=1, n_draws=N_DRAWS).from_draws.mean()
        skills.append(1.0 - loss / _marginal_loss(target, observed))
    mean, error = mean_and_error(rows)
    return {"log_score": mean, "log_se": error, "log_rows": rows.round(4).tolist(), "skill": float(np.mean(skills))}


def _joint_scores(generator: Any, training: pd.DataFrame, unseen: pd.DataFrame) -> Result:
    schema = generator.schema_
    known, new = (Table(schema.features, schema.encode(rows).matrix) for rows in (training, unseen))
    rows = np.zeros(len(unseen))
    for name, densities in generator.log_density(unseen, per_feature=True).items():
        target, observed = (table.column(schema.position(name)) for table in (known, new))
        of_numbers = target.feature.is_numeric and not np.isnan(target.values).all()
        measure = ColumnDensity.of(target.values[~np.isnan(target.values)]).base_measure if of_numbers else "counting"
        scored = comparable(densities.to_numpy(), measure, target, observed)
        rows += np.nan if scored is None else scored
    mean, error = mean_and_error(rows)
    return {"log_score": mean, "log_se": error, "log_rows": rows.round(4).tolist()}


def _marginal_loss(target: Column, observed: Column) -> float:
    known, new = (Table((), np.empty((column.values.size, 0))) for column in (target, observed))
    sampler = mcce.MarginalSampler().fit(known, target)
    return float(score_conditional(sampler, new, observed, seed=1, n_draws=N_DRAWS).from_draws.mean()) or 1.0


def compare_rows(samplers: list[Result]) -> Result | None:
    """Return the gains of auto and stack over cart and over the best single sampler, and drop the rows (step 3)."""
    rows = {one["sampler"]: np.array(one.pop("log_rows")) for one in samplers if "log_rows" in one}
    names = [one["sampler"] for one in samplers if "skill" in one and one["sampler"] not in (AUTO, STACK)]
    singles = {name: rows[name] for name in names}
    if AUTO not in rows or not singles:
        return None
    best = max(singles, key=lambda name: singles[name].mean())
    new = {one["sampler"]: one["new"] for one in samplers if "new" in one}
    nearest = min((name for name in new if name in singles), key=lambda name: new[name]["accuracy"])
    return {
        "best": best,
        "ahead_of_best": mean_and_error(rows[AUTO] - rows[best]),
        "ahead_of_cart": mean_and_error(rows[AUTO] - rows["cart"]) if "cart" in rows else None,
        "stack": {name: mean_and_error(rows[STACK] - rows[name]) for name in (best, AUTO)} if STACK in rows else None,
        "nearest": nearest,
        "discriminator": {
            name: (new[name]["accuracy"], new[name]["sd"]) for name in sorted({nearest, AUTO, "cart"} & set(new))
        },
    }
