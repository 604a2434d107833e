"""Cross-validated comparison of samplers, feature by feature, by their scores on held-out rows.

1. At most `max_rows` rows are taken at random and assigned to folds. Both depend on the seed only, so every feature and
   every candidate has the same rows, and the result does not depend on the number of threads.
2. A candidate that cannot model a feature is left out, with the reason. So is a candidate that fails in any fold.
3. In each fold the candidates are fitted to the rows outside it, with the givens that the chain would use, and scored
   on the rows inside (`mcce.judging.scores`): by their log density, by CRPS or Brier score from draws, or both.
4. A log score needs a density with respect to the base measure of the column (`mcce.samplers.density`), determined
   from the training values of the fold; densities with respect to another measure are not used. A thousandth of every
   density is spread evenly over the column: over its levels, its numbers with point mass and its range. A value to
   which a candidate gives density 0 therefore has a large but finite cost, the same for all candidates. Shares of a few
   donors (pmm) are not probabilities of counted numbers, and have no log score.
5. In a race, a candidate that is more than `BEHIND` standard errors of the paired difference behind the best of its
   feature after the first fold is stopped; its score is that of the first fold.

Samplers are fitted with the weights of the rows, and mean scores are weighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Literal

import numpy as np

from mcce.base.arrays import Floats, Ints
from mcce.exceptions import MCCEError, SamplerError
from mcce.judging.scores import concatenated, log_scores, score_conditional
from mcce.rng import derive_key
from mcce.samplers import ConditionalSampler
from mcce.samplers.density import comparable
from mcce.samplers.estimator import deal_rows
from mcce.table import Column, Table
from mcce.table.weights import mean_of

Wanted = Literal["log", "draws", "both"]

BEHIND = 5.0


@dataclass(frozen=True)
class Candidate:
    """A sampler that may model a feature; if None, `left_out` has the reason."""

    label: str
    sampler: ConditionalSampler | None
    left_out: str = ""


@dataclass(frozen=True)
class Contest:
    """A feature, by its column in the chain, the columns that it is modelled on, and its candidates."""

    column: int
    given: tuple[int, ...]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class FoldScores:
    """The scores of the rows of one fold: log scores (high is good), CRPS or Brier scores (low is good), seconds."""

    log_scores: Floats | None
    losses: Floats | None
    fit_seconds: float
    draw_seconds: float


@dataclass(frozen=True)
class Record:
    """The scores of one candidate on one feature.

    Attributes
    ----------
    left_out : why the candidate was left out; "" if it was not.
    folds : its scores, one fold after the other.
    is_slow : whether it was stopped after the first fold.
    """

    label: str
    sampler: ConditionalSampler | None
    left_out: str = ""
    folds: tuple[FoldScores, ...] = ()
    is_slow: bool = False

    @property
    def is_running(self) -> bool:
        """Whether the candidate takes part in the next fold."""
        return not self.left_out and not self.is_slow

    @property
    def log_scores(self) -> Floats | None:
        """Log scores of all rows; None without a comparable density."""
        return concatenated([fold.log_scores for fold in self.folds])

    @property
    def losses(self) -> Floats | None:
        """CRPS or Brier scores of all rows; None if there are none."""
        return concatenated([fold.losses for fold in self.folds])


@dataclass(frozen=True)
class Folds:
    """The rows of a contest: for each fold a training table and a held-out table (steps 1 and 3).

    Attributes
    ----------
    seed : seed of the folds, the fits and the draws.
    rows : positions of the rows that are used.
    parts : training table and held-out table of each fold, columns in chain order.
    """

    seed: int
    rows: Ints
    parts: tuple[tuple[Table, Table], ...] = field(repr=False)

    @classmethod
    def deal(cls, table: Table, n_folds: int, max_rows: int, seed: int) -> Folds:
        """Sample rows and assign them to folds (step 1)."""
        rows, folds = deal_rows(table.n_rows, seed, n_folds, max_rows)
        return cls(seed, rows, tuple((table.take(outside), table.take(inside)) for outside, inside in folds))

    @property
    def weights(self) -> Floats | None:
        """The weights of the held-out rows, in the order of their scores; None without weights."""
        known = [unseen.weights for _, unseen in self.parts if unseen.weights is not None]
        return np.concatenate(known) if known else None

    def run(self, contest: Contest, wanted: Wanted, n_draws: int, *, race: bool) -> list[Record]:
        """Score the candidates of a feature in every fold (steps 2 to 5)."""
        records = [Record(c.label, c.sampler, c.left_out) for c in contest.candidates]
        for k, (training, unseen) in enumerate(self.parts):
            given, new = (_select(part, contest.given) for part in (training, unseen))
            target, observed = (part.column(contest.column) for part in (training, unseen))
            for i, record in enumerate(records):
                if record.is_running:
                    key = derive_key(self.seed, "fold", k)
                    records[i] = _score_fold(record, given, target, new, observed, key, wanted, n_draws)
            if race and k == 0:
                records = _mark_slow(records, wanted, unseen.weights)
        return records


def _select(table: Table, columns: Sequence[int]) -> Table:
    """Return the first columns without copying, or some of them."""
    in_order = tuple(columns) == tuple(range(len(columns)))
    return table.first(len(columns)) if in_order else table.select(columns)


def _score_fold(
    record: Record,
    given: Table,
    target: Column,
    new: Table,
    observed: Column,
    key: int,
    wanted: Wanted,
    n_draws: int,
) -> Record:
    """Return the record with the scores of one more fold, or with the reason why the candidate failed."""
    assert record.sampler is not None
    try:
        begun = perf_counter()
        sampler = record.sampler.clone()
        sampler.seed_fit(derive_key(key, "fit", target.feature.name))
        sampler.fit(given, target)
        fitted = perf_counter()
        if wanted == "log":
            drawn, (scored, measure) = None, log_scores(sampler, new, observed.values)
        else:
            drawn = score_conditional(sampler, new, observed, seed=key, n_draws=n_draws)
            scored, measure = drawn.log_score, drawn.base_measure
        _check(scored, observed, sampler)
    except Exception as error:  # a plug-in may raise anything: it is left out, with the reason
        why = str(error) if isinstance(error, MCCEError) else f"{type(error).__name__}: {error}"
        return Record(record.label, record.sampler, why)
    if measure == "counting" and target.feature.is_numeric and sampler.has_coarse_probabilities:
        scored = None
    if scored is not None:
        scored = comparable(scored, measure, target, observed)
    losses, draw_seconds = (None, 0.0) if drawn is None else (drawn.from_draws, drawn.seconds)
    return replace(record, folds=(*record.folds, FoldScores(scored, losses, fitted - begun, draw_seconds)))


def _check(scored: Floats | None, observed: Column, sampler: ConditionalSampler) -> None:
    """Raise if log densities are NaN, +inf or of another shape."""
    if scored is None:
        return
    wrong = scored[np.isnan(scored) | (scored == np.inf)] if scored.shape == observed.values.shape else scored[:0]
    if wrong.size or scored.shape != observed.values.shape:
        got = f"{wrong[0]} ({wrong.size} such)" if wrong.size else f"an array of shape {scored.shape}"
        raise SamplerError(
            f"{sampler!r} gave {got} as log density of {observed.values.size} values of {observed.feature.name!r}; "
            "log_density() returns one number per row, -inf for impossible values."
        )


def comparable_scores(record: Record, wanted: Wanted) -> Floats | None:
    """Return the scores by which candidates are compared; high is good."""
    if wanted == "log":
        return record.log_scores
    return None if record.losses is None else -record.losses


def mean_and_error(scores: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """Return the mean score of rows and its standard error, which ignores that rows of one fold share a fit.

    With weights, of which there may be more than scores, the mean is weighted. Rows are independent, not their copies:
    its variance is sum w^2 (s - mean)^2 / (sum w)^2, times n / (n - 1).
    """
    if weights is not None:
        w, n = weights[: scores.size], scores.size
        mean = float(mean_of(scores, w))
        spread = float(np.sqrt((w**2 * (scores - mean) ** 2).sum())) / float(w.sum())
        return mean, spread * float(np.sqrt(n / (n - 1))) if n > 1 else np.inf
    error = float(scores.std(ddof=1)) / np.sqrt(scores.size) if scores.size > 1 else np.inf
    return float(scores.mean()), float(error)


def _mark_slow(records: list[Record], wanted: Wanted, weights: Floats | None) -> list[Record]:
    """Mark the candidates that are far behind the best (step 5)."""
    scores = {i: comparable_scores(r, wanted) for i, r in enumerate(records) if r.is_running}
    running = {i: rows for i, rows in scores.items() if rows is not None}
    if not running:
        return records
    best = max(running.values(), key=lambda rows: float(mean_of(rows, weights)))
    left = list(records)
    for i, rows in running.items():
        behind, error = mean_and_error(best - rows, weights)
        left[i] = replace(records[i], is_slow=behind > BEHIND * error)
    return left
