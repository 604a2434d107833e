"""From encoded winners to a `Counterfactuals`: frames with the user's names and dtypes, measures, reasons, settings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.counterfactuals import Counterfactuals, Questions, Run
from mcce.exceptions import SamplerError
from mcce.explain.copies import TrainingRows
from mcce.explain.distances import measure_table
from mcce.explain.diversity import diversity_table
from mcce.explain.factuals import Factuals
from mcce.explain.order import Measure
from mcce.explain.search import Outcome
from mcce.explain.unexplained import NO_ROOM, TOLD, Why, unexplained_table
from mcce.generators.base import Generator
from mcce.model.ask import Asker
from mcce.model.decisions import Decision
from mcce.model.robustness import Lasting
from mcce.report.names import Names
from mcce.table import FrameKind, Schema


def assemble(
    factuals: Factuals,
    outcome: Outcome,
    generator: Generator,
    decision: Decision,
    *,
    further: Sequence[Measure] = (),
    training: TrainingRows | None = None,
    lasting: Lasting | None = None,
    constraints: pd.DataFrame | None = None,
    allowed: pd.DataFrame | None = None,
    why: Why | None = None,
    n_samples: int | None,
    draws: Ints | None = None,
    standard_errors: Mapping[str, float] | None = None,
    questions: Questions | None = None,
    fit_seconds: float,
    frames: FrameKind | None = None,
    settings: Mapping[str, object],
    names: Names | None = None,
    rules: Mapping[Hashable, tuple[str, ...]] | None = None,
) -> Counterfactuals:
    """Write the outcome of all blocks as tables.

    `further` are measures to report beside the usual ones; `training` are the training rows, to count copies of
    them, None if they are gone; `lasting` is what the rows have to stand; `constraints` says what each constraint
    does, `allowed` between what numbers had to stay, `why` what is known of those without a counterfactual;
    `n_samples` (the most that were drawn for one of these) and `draws` are None where the user brought the
    candidates. `names` are labels, units and formats; `rules` what each factual's counterfactuals keep, in words;
    `questions` draw again and look into the unexplained later, when they are asked. `frames` is the kind of frame that
    the tables are handed back in, None for pandas.
    """
    schema, why = generator.schema_, why or Why()
    owner, rows = outcome.owner, outcome.rows
    rank = np.arange(owner.size) - np.searchsorted(owner, owner) + 1
    index = pd.MultiIndex.from_arrays([factuals.index[owner], rank], names=["id", "rank"])
    measures = measure_table(rows, factuals.matrix[owner], schema.features, ["L0", "gower", "gower_sum"])
    measures.insert(0, "prediction", outcome.scores)
    for measure in further:
        measures[measure.name] = measure.of_pairs(rows, factuals.matrix[owner])
    if settings.get("sparse"):
        measures["log_density"] = _log_density(generator, rows)
        measures["plausibility"] = outcome.plausibility
    for name, share in ({} if lasting is None else lasting.shares(rows)).items():
        measures[name] = share
    measures.index = index
    lasts = _lasting_settings(lasting)
    demands = _demands({**settings, **lasts}, constraints)
    pairwise = diversity_table(owner, rows, schema.features)
    return Counterfactuals(
        frame=schema.decode(rows, index),
        measures=measures,
        factuals=schema.decode(factuals.matrix, factuals.index),
        unexplained=_unexplained(generator, factuals, owner, n_samples, demands, why),
        nearest=schema.decode(why.nearest.reshape(-1, len(schema)), factuals.index[why.places].rename("id")),
        constraints=constraints,
        allowed=allowed,
        factual_predictions=pd.Series(factuals.scores, index=factuals.index, name="prediction"),
        decision=decision.describe(),
        fixed=tuple(generator.fixed_),
        kinds=dict(schema.kinds),
        ranges=_ranges(schema),
        draws=None if draws is None else pd.Series(draws, index=factuals.index, name="draws"),
        run=Run(
            settings={**settings, **lasts, "rows_asked": outcome.n_asked},
            timings={"fit": fit_seconds, "generate": outcome.seconds_generate, "select": outcome.seconds_select},
        ),
        copies=None if training is None else training.count_in(rows),
        names=replace(names or Names(), ends=decision.ends()),
        _standard_errors=dict(standard_errors or {}),
        _questions=replace(questions or Questions(), ask=partial(_ask_frame, Asker(decision, schema))),
        _rules=dict(rules or {}),
        _frame_kind=frames,
        _pairwise=pairwise.set_axis(factuals.index[pairwise.index].rename("id"), axis=0),
    )


def _ask_frame(asker: Asker, frame: pd.DataFrame) -> tuple[npt.NDArray[Any], Bools]:
    return asker.ask_encoded(asker.schema.encode(frame, "the rows").matrix)


def _lasting_settings(lasting: Lasting | None) -> dict[str, object]:
    if lasting is None:
        return {}
    return {"refits": len(lasting.refits), "noise": float(lasting.noise.max()), "robust": lasting.robust}


def _unexplained(
    generator: Generator,
    factuals: Factuals,
    owner: Ints,
    n_samples: int | None,
    also: Sequence[str],
    why: Why,
) -> pd.DataFrame:
    """Return the factuals without a counterfactual, with what is known of them."""
    table = unexplained_table(generator, factuals, owner, n_samples, also=also)
    places = np.setdiff1d(np.arange(len(factuals)), owner)
    for i, reason in why.contradictions.items():
        table.iloc[int(np.searchsorted(places, i)), 0] = f"{NO_ROOM}: {reason}"
    table.iloc[np.searchsorted(places, why.without_candidates), 0] = "no candidate was given for it; bring some"
    if why.told is not None:
        told = why.told.reindex(places).set_axis(table.index, axis=0)
        for place, helps in zip(np.searchsorted(places, why.told.index), why.told["would_help"]):
            before = str(table.iloc[place, 0]).removesuffix("; draw more")
            table.iloc[place, 0] = f"{before}; what would help: {helps}"
        table[list(TOLD)] = told[list(TOLD)]
    return table


def _demands(settings: Mapping[str, object], constraints: pd.DataFrame | None) -> list[str]:
    """Return what was asked of rows beside the wanted decision, in words."""
    demands = [] if constraints is None else ["obeys the constraints"]
    demands += ["is no copy of a training row"] if settings.get("exclude_training") else []
    if settings.get("max_changes") is not None or settings.get("max_gower") is not None:
        demands.append("lies within the bounds")
    if settings.get("robust") is not None:
        demands.append("keeps it under refits and noise")
    return demands


def _log_density(generator: Generator, rows: Floats) -> Floats:
    """Return log p(mutable | fixed, wanted decision) of encoded rows; NaN if a conditional has no density."""
    try:
        by_feature = generator.feature_log_densities(rows)
    except SamplerError:
        return np.full(rows.shape[0], np.nan)
    return np.asarray(sum(by_feature.values()), dtype=np.float64)


def _ranges(schema: Schema) -> dict[Any, tuple[Any, Any]]:
    """Return the lowest and highest training value of each number, as the user writes them."""
    numeric = [f for f in schema.features if f.is_numeric and not np.isnan(f.low)]
    ends = {f.name: pd.Series(f.decode(np.array([f.low, f.high]))) for f in numeric}
    return {name: (pair.iloc[0], pair.iloc[1]) for name, pair in ends.items()}
