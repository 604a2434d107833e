"""Judging each conditional of a fitted chain by rows that it has not seen.

1. Each feature's sampler is scored on the rows' own values, given the rows' own values of the columns before it, not
   drawn ones (`mcce.judging`): so a conditional is not blamed for those before it.
2. The scores are tested, feature by feature (`mcce.judging`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mcce.base.threads import count_jobs, run_in_threads
from mcce.exceptions import InputError, listing
from mcce.generators.layout import ChainLayout
from mcce.judging.scores import Scores, score_conditional
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import samplers_that_handle_missing
from mcce.table import Table
from mcce.wording import Parameter, Value

if TYPE_CHECKING:
    from mcce.judging.feature import FeatureCriticism

LEAST_ROWS = 20


def score_features(
    samplers: Mapping[Any, ConditionalSampler],
    ordered: Table,
    layout: ChainLayout,
    *,
    n_draws: int,
    seed: int,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> dict[Any, Scores]:
    """Return the scores of each feature on the rows of a table in chain order (step 1)."""
    first = len(ordered.features) - len(samplers)

    def score(k: int) -> Scores:
        sampler = samplers[ordered.features[k].name]
        return score_conditional(sampler, layout.given(ordered, k), ordered.column(k), seed=seed, n_draws=n_draws)

    threads = count_jobs(n_jobs) if all(sampler.thread_safe for sampler in samplers.values()) else 1
    places = range(first, len(ordered.features))
    return dict(zip(samplers, run_in_threads(score, places, threads, "scoring", progress)))


def criticise_features(
    scores: Mapping[Any, Scores],
    samplers: Mapping[Any, str],
    ordered: Table,
    layout: ChainLayout,
    *,
    seed: int,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> list[FeatureCriticism]:
    """Return the criticism of each feature by its scores (step 2); `samplers` are as they are written."""
    from mcce.judging.feature import criticise_feature

    first = len(ordered.features) - len(scores)

    def criticise(k: int) -> FeatureCriticism:
        name, values = ordered.features[k].name, ordered.matrix[:, k]
        return criticise_feature(scores[name], layout.given(ordered, k), values, samplers[name], seed)

    places = range(first, len(ordered.features))
    return list(run_in_threads(criticise, places, count_jobs(n_jobs), "testing", progress))


def check_new_rows(samplers: Mapping[Any, ConditionalSampler], ordered: Table, layout: ChainLayout, where: str) -> None:
    """Refuse rows that cannot be scored: too few, or with missing values that a sampler does not handle."""
    if ordered.n_rows < LEAST_ROWS:
        raise InputError(
            Parameter(where),
            f" has {ordered.n_rows} rows; to judge a conditional takes at least {LEAST_ROWS}, better hundreds.",
        )
    first = len(ordered.features) - len(samplers)
    for k, (name, sampler) in enumerate(samplers.items(), first):
        missing = [f.name for f, column in zip(ordered.features, ordered.matrix.T) if np.isnan(column).any()]
        seen = [*layout.given(ordered, k).names, name]
        concerned = [each for each in missing if each in seen]
        if concerned and not sampler.handles_missing:
            raise InputError(
                Parameter(where),
                f" has missing values in {listing(concerned)}, which ",
                Value(sampler),
                f" for {name!r} does not handle; fill them, leave the rows out, or use a sampler that "
                f"does ({samplers_that_handle_missing()}).",
            )
