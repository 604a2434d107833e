"""How well several samplers predict rows that they have not seen, feature by feature: the contest behind a choice.

1. Of more than `max_rows` rows so many are taken at random; they are dealt to folds. Both by the seed alone, so every
   feature and every candidate has the same rows, and the seed decides the answer, not the number of threads.
2. A candidate that cannot model a feature is left out, with its reason. So is one that fails in any fold.
3. In each fold the others are fitted on the rows outside it, on the columns that the chain would give them, and score
   the rows inside (`mcce.judging.scores`): by their log density, by CRPS or Brier score from draws, or both.
4. A log score needs a density with respect to the measure of the column (`mcce.samplers.density`), found from
   the fold's training values alone; a density of something else is none. A thousandth of every density is spread evenly
   over the column: over its levels, its numbers with point mass and its range. So a value that a candidate calls
   impossible costs it much, but not everything, and the same for all. Shares of a few donors (pmm) are no
   probabilities of counted numbers: they have no log score.
5. In a race a candidate that is more than `BEHIND` standard errors of the paired difference behind the best of its
   feature after the first fold runs no further; its score is that of the first fold.

Rows with weights are fitted on by these, and means of scores are by weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Literal

import numpy as np

from mcce.base.arrays import Floats, Ints
from mcce.exceptions import MCCEError, SamplerError
from mcce.judging.scores import log_scores, score_conditional
from mcce.rng import derive_key
from mcce.samplers import ConditionalSampler
from mcce.samplers.density import comparable
from mcce.samplers.estimator import deal_folds
from mcce.table import Column, Table
from mcce.table.weights import mean_of

Wanted = Literal["log", "draws", "both"]

BEHIND = 5.0


@dataclass(frozen=True)
class Candidate:
    """A sampler that may model a feature; without one, `left_out` says why."""

    label: str
    sampler: ConditionalSampler | None
    left_out: str = ""


@dataclass(frozen=True)
class Contest:
    """A feature, by its column in the chain, the columns that it is modelled on, and who may model it."""

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
    left_out : why it did not take part; "" if it did.
    folds : its scores, fold after fold.
    is_slow : whether it left the race after the first fold.
    """

    label: str
    sampler: ConditionalSampler | None
    left_out: str = ""
    folds: tuple[FoldScores, ...] = ()
    is_slow: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it takes part in the next fold."""
        return not self.left_out and not self.is_slow

    @property
    def log_scores(self) -> Floats | None:
        """Log scores of all rows; None without a density that can be compared."""
        return _join([fold.log_scores for fold in self.folds])

    @property
    def losses(self) -> Floats | None:
        """CRPS or Brier scores of all rows; None if there are none."""
        return _join([fold.losses for fold in self.folds])


def _join(parts: Sequence[Floats | None]) -> Floats | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known and len(known) == len(parts) else None


@dataclass(frozen=True)
class Folds:
    """The rows of a contest: for each fold a table to learn from and one to predict (steps 1 and 3).

    Attributes
    ----------
    seed : of the folds, of what is random in fits, and of the draws.
    rows : positions of the rows that are used.
    parts : training table and held-out table of each fold, columns in chain order.
    """

    seed: int
    rows: Ints
    parts: tuple[tuple[Table, Table], ...] = field(repr=False)

    @classmethod
    def deal(cls, table: Table, n_folds: int, max_rows: int, seed: int) -> Folds:
        """Take some rows and deal them to folds (step 1)."""
        rows = np.arange(table.n_rows)
        if rows.size > max_rows:
            shuffled = np.random.default_rng(derive_key(seed, "rows")).permutation(rows.size)
            rows = np.sort(shuffled[:max_rows])
        fold = deal_folds(rows.size, seed, n_folds)
        parts = [(table.take(rows[fold != k]), table.take(rows[fold == k])) for k in range(int(fold.max()) + 1)]
        return cls(seed, rows, tuple(parts))

    @property
    def weights(self) -> Floats | None:
        """The weights of the held-out rows, fold after fold as their scores are; None if they have none."""
        known = [unseen.weights for _, unseen in self.parts if unseen.weights is not None]
        return np.concatenate(known) if known else None

    def run(self, contest: Contest, wanted: Wanted, n_draws: int, *, race: bool) -> list[Record]:
        """Let the candidates of a feature predict every fold (steps 2 to 5)."""
        records = [Record(c.label, c.sampler, c.left_out) for c in contest.candidates]
        for k, (training, unseen) in enumerate(self.parts):
            given, new = (_select(part, contest.given) for part in (training, unseen))
            target, observed = (part.column(contest.column) for part in (training, unseen))
            for i, record in enumerate(records):
                if record.is_running:
                    key = derive_key(self.seed, "fold", k)
                    records[i] = _score_fold(record, given, target, new, observed, key, wanted, n_draws)
            if race and k == 0:
                records = _slow_ones_leave(records, wanted, unseen.weights)
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
    """Return the record with the scores of one more fold, or with the reason why there are none."""
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
    except Exception as error:  # a plug-in may fail in any way: it is left out, and named
        why = str(error) if isinstance(error, MCCEError) else f"{type(error).__name__}: {error}"
        return Record(record.label, record.sampler, why)
    if measure == "counting" and target.feature.is_numeric and sampler.has_coarse_probabilities:
        scored = None
    if scored is not None:
        scored = comparable(scored, measure, target, observed)
    losses, draw_seconds = (None, 0.0) if drawn is None else (drawn.from_draws, drawn.seconds)
    return replace(record, folds=(*record.folds, FoldScores(scored, losses, fitted - begun, draw_seconds)))


def _check(scored: Floats | None, observed: Column, sampler: ConditionalSampler) -> None:
    """Refuse log densities that are no numbers, or too large to be any."""
    if scored is None:
        return
    wrong = scored[np.isnan(scored) | (scored == np.inf)] if scored.shape == observed.values.shape else scored[:0]
    if wrong.size or scored.shape != observed.values.shape:
        got = f"{wrong[0]} ({wrong.size} such)" if wrong.size else f"an array of shape {scored.shape}"
        raise SamplerError(
            f"{sampler!r} gave {got} as log density of {observed.values.size} values of {observed.feature.name!r}; "
            "log_density() returns one number a row, -inf for what is impossible."
        )


def standing(record: Record, wanted: Wanted) -> Floats | None:
    """Return the scores of the rows by which a candidate is judged, high is good."""
    if wanted == "log":
        return record.log_scores
    return None if record.losses is None else -record.losses


def mean_and_error(scores: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """Return the mean of the scores of rows, and its standard error; rows of one fold share a fit, which it ignores.

    With weights, of which there may be more than scores, the mean is by weight. Rows are independent, not their copies:
    its variance is sum w^2 (s - mean)^2 / (sum w)^2, times n / (n - 1).
    """
    if weights is not None:
        w, n = weights[: scores.size], scores.size
        mean = float(mean_of(scores, w))
        spread = float(np.sqrt((w**2 * (scores - mean) ** 2).sum())) / float(w.sum())
        return mean, spread * float(np.sqrt(n / (n - 1))) if n > 1 else np.inf
    error = float(scores.std(ddof=1)) / np.sqrt(scores.size) if scores.size > 1 else np.inf
    return float(scores.mean()), float(error)


def _slow_ones_leave(records: list[Record], wanted: Wanted, weights: Floats | None) -> list[Record]:
    """Mark those that are far behind the best (step 5)."""
    scores = {i: standing(r, wanted) for i, r in enumerate(records) if r.is_running}
    running = {i: rows for i, rows in scores.items() if rows is not None}
    if not running:
        return records
    best = max(running.values(), key=lambda rows: float(mean_of(rows, weights)))
    left = list(records)
    for i, rows in running.items():
        behind, error = mean_and_error(best - rows, weights)
        left[i] = replace(records[i], is_slow=behind > BEHIND * error)
    return left
