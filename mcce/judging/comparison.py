"""Comparison of conditionals by cross-validation.

Every sampler is fitted to every feature, given the columns before it, on all folds but one, and scored on that one
(`mcce.judging.scores`). Standard errors are those of means over rows; a sampler is marked as the best, or within one
standard error of it, by the paired differences to the best.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Floats, check_count, map_threads
from mcce.exceptions import InputError
from mcce.generators.missing import WithMissing
from mcce.judging.scores import score_rows, smooth_test
from mcce.rng import RowStreams, derive_key, resolve_seed
from mcce.samplers import ConditionalSampler, Margin, distribution_of, make_sampler
from mcce.samplers.base import check_problem
from mcce.table import Column, Data, Kind, Schema, Table

SAMPLERS = ("marginal", "cart", "ctree", "parametric", "mixture")


def compare_conditionals(
    X: Data,
    samplers: Sequence[Any] | Mapping[str, Any] = SAMPLERS,
    *,
    fixed: Sequence[Hashable] = (),
    kinds: Mapping[Any, Kind] | None = None,
    n_folds: int = 5,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Compare samplers on every feature of a chain, on held-out rows.

    Parameters
    ----------
    X : DataFrame or array
        Training rows. A feature is modelled given `fixed` and the features before it: give ``X[order]`` for another
        order, and ``X.sample(1000)`` for a quick answer.
    samplers : list, or dict by label
        Samplers or their names.
    fixed : list of column names
        Features that are given and not modelled.
    kinds : dict, optional
        Kinds of columns, as for `ChainModel`.
    n_folds : int
    random_state : int or None
        Seed of folds, fits and PITs.
    n_jobs : int, optional
        Threads; the result does not depend on them (but for `seconds`).

    Returns
    -------
    DataFrame
        Indexed by feature and sampler: `log_score` (higher is better) and `crps` (lower; the Brier score of unordered
        levels), each with its standard error `_se` and `_best`, whether it is the best or within one standard error of
        it; `p_calibration` of the PITs; `seconds` of all fits and of one draw for each row; `note`, why a sampler was
        left out.

    Notes
    -----
    A better log score does not give better answers. CART with leaves of five is among the worst conditionals by CRPS,
    and gave the likeliest plain counterfactuals in three of five simulated processes (.91, .92, .86 of them above the
    true 5 per cent level, against .87, .60, .63 for ctree; else .96 against .98 and .53 against .74): selection takes
    the tails of smooth conditionals, and small leaves have none. Sparse counterfactuals depend less on the sampler.
    Measure it on processes of your own, with several seeds.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "education", "salary"]]
    >>> found = mcce.compare_conditionals(X, ["marginal", "norm", "ctree"], fixed=["age", "education"])
    >>> found.loc["salary"].query("crps_best").index.to_list()
    ['norm', 'ctree']
    """
    labelled = _label(samplers)
    check_count(n_folds, "n_folds", least=2)
    seed = resolve_seed(random_state)
    schema = Schema.from_data(X, kinds)
    for name in fixed:
        schema.position(name, "fixed feature")
    schema = schema.arrange([*fixed, *(name for name in schema.names if name not in fixed)])
    table = schema.encode(X)
    if table.n_rows < 2 * n_folds:
        raise InputError(f"X has {table.n_rows} rows for n_folds={n_folds}; give at least {2 * n_folds} rows.")
    fold = np.random.default_rng(derive_key(seed, "folds")).permutation(table.n_rows) % n_folds
    parts = [(table.take(np.flatnonzero(fold != k)), table.take(np.flatnonzero(fold == k))) for k in range(n_folds)]
    cases = [(place, label) for place in range(len(fixed), len(schema)) for label in labelled]
    if not cases:
        raise InputError("fixed names all columns of X; leave one to be modelled.")

    def run(case: tuple[int, str]) -> tuple[pd.DataFrame | None, float, str]:
        place, label = case
        try:
            scored = [_score_fold(labelled[label], *part, place, seed) for part in parts]
        except InputError as error:
            return None, np.nan, str(error)
        return pd.concat([scores for scores, _ in scored]), sum(seconds for _, seconds in scored), ""

    outcomes = map_threads(run, cases, n_jobs, "comparing samplers")
    pieces = []
    for place in range(len(fixed), len(schema)):
        of_feature = [outcome for case, outcome in zip(cases, outcomes) if case[0] == place]
        index = pd.MultiIndex.from_product([[schema.names[place]], labelled], names=["feature", "sampler"])
        pieces.append(pd.DataFrame(_summarise(of_feature), index=index))
    return pd.concat(pieces)


def _label(samplers: Sequence[Any] | Mapping[str, Any]) -> dict[str, ConditionalSampler]:
    """Return unfitted samplers by label: that of the dict, the name, or the text of the object."""
    if isinstance(samplers, str) or not len(samplers):
        raise InputError(f"samplers is {samplers!r}; give a list of samplers or names, or a dict by label.")
    named = samplers if isinstance(samplers, Mapping) else {str(sampler): sampler for sampler in samplers}
    if len(named) < len(samplers):
        raise InputError("samplers has two with the same text; give a dict by label.")
    return {label: make_sampler(sampler) for label, sampler in named.items()}


def _score_fold(
    sampler: ConditionalSampler, training: Table, new: Table, place: int, seed: int
) -> tuple[pd.DataFrame, float]:
    """Fit to one part of the rows and score another; return the scores and the seconds of fit and one draw."""
    given, target = training.first(place), training.column(place)
    streams = RowStreams.from_seed(derive_key(seed, "score", place), new.n_rows)
    begun = perf_counter()
    fitted = _fit(sampler, given, target, derive_key(seed, "fit", place) % 2**32)
    distribution = distribution_of(fitted, new.first(place), target.feature)
    distribution.sample(streams.child("draw"))
    seconds = perf_counter() - begun
    margin = Margin.fit(target.values, target.feature)
    return score_rows(distribution, new.column(place).values, target.feature, margin, streams), seconds


def _fit(sampler: ConditionalSampler, given: Table, target: Column, seed: int) -> ConditionalSampler:
    """Fit a copy of a sampler, as a chain does."""
    family = make_sampler(sampler)
    is_missing = np.isnan(target.values)
    if family.get_params(deep=False).get("random_state", 0) is None:
        family.set_params(random_state=seed)
    if family.accepts_missing_target or not is_missing.any():
        check_problem(family, given, target)
        return family.fit(given, target)
    check_problem(family, given, target.take(~is_missing))
    return WithMissing(family).fit(given, target)


def _summarise(outcomes: Sequence[tuple[pd.DataFrame | None, float, str]]) -> list[dict[str, Any]]:
    """Return the figures of all samplers on one feature."""
    rows: list[dict[str, Any]] = [{} for _ in outcomes]
    for name, sign in (("log_score", 1.0), ("crps", -1.0)):
        scores = [np.empty(0) if frame is None else frame[name].dropna().to_numpy() for frame, _, _ in outcomes]
        means = [sign * of_sampler.mean() if of_sampler.size else -np.inf for of_sampler in scores]
        best = scores[int(np.argmax(means))]
        for row, of_sampler in zip(rows, scores):
            row[name], row[f"{name}_se"] = _mean_and_error(of_sampler)
            behind, error = _mean_and_error(sign * (best - of_sampler)) if of_sampler.size else (np.inf, 0.0)
            row[f"{name}_best"] = bool(behind <= error)
    for row, (frame, seconds, note) in zip(rows, outcomes):
        row["p_calibration"] = np.nan if frame is None else smooth_test(frame["pit"].dropna().to_numpy())
        row["seconds"], row["note"] = seconds, note
    return rows


def _mean_and_error(scores: Floats) -> tuple[float, float]:
    """Return the mean and its standard error, which ignores that the rows of a fold share a fit."""
    if not scores.size:
        return np.nan, np.nan
    return float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(scores.size)) if scores.size > 1 else np.inf
