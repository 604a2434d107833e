"""Choose a sampler for each feature by cross-validation: the cheapest within one standard error of the best.

1. The candidates of a feature predict held-out rows (`mcce.judging.crossvalidation`): at most `max_rows` rows, in
   `n_folds` folds, given the columns that the chain gives the feature. Candidates that cannot model the feature, or
   fail, are left out.
2. Candidates are compared by the mean log score.
3. For each candidate, the row-wise difference to the best has a mean and a standard error. The difference is paired,
   because hard rows are hard for all candidates. Rows of a fold share a fit; the standard error ignores that.
4. Candidates are listed from the cheapest to the most expensive. The first one whose mean difference is at most its
   standard error is chosen. Run times are not measured, so the same seed gives the same choice.
5. A candidate without a comparable density (such as pmm of counts) competes with the chosen one by CRPS or Brier score
   from draws, and replaces it only if it is better by more than one standard error. Its presence does not change the
   scores of the others.
6. The chosen sampler is then fitted on all rows, like a sampler named by the user.

A `Choice` has, for each feature, the chosen sampler and the reason, as numbers and text (`ChainModel.choice_`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from mcce.base.checks import check_count
from mcce.base.threads import count_jobs, run_in_threads
from mcce.exceptions import InputError, MCCEError, SamplerError
from mcce.rng import derive_key
from mcce.samplers import ConditionalSampler
from mcce.samplers.registry import Candidates, read_candidates
from mcce.storage.fields import require, stored
from mcce.storage.state import stateful
from mcce.table import Feature, Table
from mcce.wording import Parameter, Value

if TYPE_CHECKING:
    from mcce.judging.crossvalidation import Contest, Folds, Record, Wanted


@stateful("Verdict")
@dataclass(frozen=True)
class Verdict:
    """The result of one candidate on one feature.

    Attributes
    ----------
    sampler : str
        The candidate: its name, or its text as given.
    score, error : float or None
        Mean score over the held-out rows (higher is better) and its standard error; None if it was left out.
    behind, behind_error : float or None
        Mean paired difference to the best candidate, and its standard error.
    note : str
        Why the candidate was left out, or that it was stopped after the first fold; else "".
    """

    sampler: str = stored(str)
    score: float | None = stored((float,), optional=True, default=None)
    error: float | None = stored((float,), optional=True, default=None)
    behind: float | None = stored((float,), optional=True, default=None)
    behind_error: float | None = stored((float,), optional=True, default=None)
    note: str = stored(str, default="")

    @property
    def is_good(self) -> bool:
        """Whether the candidate is within one standard error of the best."""
        return self.behind is not None and self.behind_error is not None and self.behind <= self.behind_error


@stateful("FeatureChoice")
@dataclass(frozen=True)
class FeatureChoice:
    """The choice for one feature.

    Attributes
    ----------
    feature : column label
    sampler : str
        The chosen candidate.
    judged_by : "log score", "CRPS" or "Brier score"
    n_rows, n_folds : int
        Numbers of held-out rows and of folds.
    verdicts : tuple of Verdict
        All candidates, from the cheapest to the most expensive.
    """

    feature: Any
    sampler: str
    judged_by: str = stored(str)
    n_rows: int = stored(int, least=0)
    n_folds: int = stored(int, least=0)
    verdicts: tuple[Verdict, ...] = stored(tuple, of=Verdict)

    def check_state(self) -> None:
        """Raise if the chosen sampler is not a scored candidate."""
        scored = [verdict.sampler for verdict in self.verdicts if verdict.behind is not None and not verdict.note]
        require(self.sampler in scored, "sampler is not among the scored candidates")

    @property
    def chosen(self) -> Verdict:
        """The verdict on the chosen candidate."""
        return next(verdict for verdict in self.verdicts if verdict.sampler == self.sampler)

    @property
    def best(self) -> Verdict:
        """The verdict on the candidate with the best score."""
        scored = [verdict for verdict in self.verdicts if verdict.behind is not None and not verdict.note]
        return min(scored, key=lambda verdict: verdict.behind or 0.0)

    @property
    def why(self) -> str:
        """The reason, in words."""
        others = [v for v in self.verdicts if v.behind is not None and v.sampler != self.sampler]
        if not others:
            return "no other candidate could be scored"
        score, ahead = f"held-out {self.judged_by}", "above" if self.judged_by == "log score" else "below"
        if self.best.sampler == self.sampler:
            near = min(others, key=lambda verdict: verdict.behind or 0.0)
            return f"its {score} is {near.behind:.2g} {ahead} that of {near.sampler} (se {near.behind_error:.2g})"
        behind, error = self.chosen.behind, self.chosen.behind_error
        return (
            f"it is the cheapest within one standard error of {self.best.sampler}, whose {score} is {behind:.2g} "
            f"{ahead} (se {error:.2g})"
        )

    @property
    def sentence(self) -> str:
        """The chosen sampler and the reason, in words."""
        return f"{self.feature}: {self.sampler}, because {self.why}"


@stateful("Choice")
@dataclass(frozen=True, repr=False)
class Choice:
    """The samplers chosen by cross-validation, one entry for each feature with `Auto`.

    Attributes
    ----------
    features : tuple of FeatureChoice
        In visiting order.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "education", "salary", "housing"]]
    >>> auto = mcce.Auto(["marginal", "norm", "ctree"])
    >>> chain = mcce.ChainModel(sampler=auto, fixed=["age", "education"], random_state=1).fit(X)
    >>> chain.choice_.sentences[1]
    'housing: ctree, because its held-out log score is 0.15 above that of marginal (se 0.028)'
    >>> len(chain.choice_.table), len(chain.choice_.scores), chain.choice_.left_out.index.tolist()
    (2, 6, [('housing', 'norm')])
    """

    features: tuple[FeatureChoice, ...] = stored(tuple, of=FeatureChoice)

    @property
    def sentences(self) -> list[str]:
        """The chosen sampler of each feature and the reason, in words."""
        return [each.sentence for each in self.features]

    @property
    def table(self) -> pd.DataFrame:
        """One row for each feature: `sampler`, `judged_by`, `score`, `behind` the best (`se`), `best`, and `why`."""
        rows = [
            {
                "sampler": each.sampler,
                "judged_by": each.judged_by,
                "score": each.chosen.score,
                "behind": each.chosen.behind,
                "se": each.chosen.behind_error,
                "best": each.best.sampler,
                "why": each.why,
            }
            for each in self.features
        ]
        return pd.DataFrame(rows, index=_index([each.feature for each in self.features]))

    @property
    def scores(self) -> pd.DataFrame:
        """One row for each feature and candidate: `score` (`se`), `behind` the best (`behind_se`), `within`, `note`."""
        rows = [
            {
                "feature": each.feature,
                "sampler": verdict.sampler,
                "judged_by": each.judged_by,
                "score": verdict.score,
                "se": verdict.error,
                "behind": verdict.behind,
                "behind_se": verdict.behind_error,
                "within": verdict.is_good,
                "chosen": verdict.sampler == each.sampler,
                "note": verdict.note,
            }
            for each in self.features
            for verdict in each.verdicts
        ]
        numbers = ["score", "se", "behind", "behind_se"]
        return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float)).set_index(["feature", "sampler"])

    @property
    def left_out(self) -> pd.DataFrame:
        """The candidates that were left out, with the reasons."""
        scores = self.scores
        return scores.loc[scores["score"].isna(), ["note"]]

    def _headline(self) -> str:
        sizes = sorted({(each.n_rows, each.n_folds) for each in self.features})
        held_out = ", ".join(f"{n_rows:,} held-out rows in {n_folds} folds" for n_rows, n_folds in sizes)
        return f"The cheapest sampler within one standard error of the best, by {held_out}"

    def __repr__(self) -> str:
        return "\n".join([self._headline(), *(f"  {sentence}" for sentence in self.sentences)])

    def _repr_html_(self) -> str:
        return f"<p><b>{self._headline()}</b></p>{self.table.round(3).to_html(border=0)}"


def _index(names: list[Any]) -> pd.Index[Any]:
    return pd.Index(names, dtype=None if names else object, name="feature", tupleize_cols=False)


AUTO = "auto"
CANDIDATES = ("marginal", "norm", "cart", "ctree", "parametric", "forest", "copula")
SCORES: tuple[Wanted, ...] = ("log", "draws")
NO_DENSITY = "it has no density that can be compared"


@stateful("Auto")
@dataclass(frozen=True)
class Auto:
    """A sampler to be chosen by cross-validation for each feature; ``sampler="auto"`` is ``Auto()``.

    Parameters
    ----------
    candidates : list, or dict by name
        Samplers or their names, from the cheapest to the most expensive. The first one within one standard error of
        the best is chosen. Custom samplers are allowed.
    score : "log" or "draws"
        Judge by the log score of held-out rows, or by CRPS (numbers, ordered levels) and Brier score (other levels) of
        draws. With "log", a candidate without a density is compared by draws with the one that the log score chooses.
    n_folds : int
        Number of folds. Each fold is predicted by candidates fitted on the others.
    max_rows : int
        Largest number of training rows used, sampled at random with the chain's seed.
    n_draws : int
        Draws for each held-out row, for scores from draws.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "sex", "salary", "housing"]]
    >>> sampler = {"salary": "norm", "*": mcce.Auto(["marginal", "cart", "parametric"])}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(X)
    >>> chain.choice_.table["sampler"].to_dict()
    {'housing': 'parametric'}
    """

    candidates: Candidates = CANDIDATES
    score: str = "log"
    n_folds: int = 5
    max_rows: int = 1000
    n_draws: int = 50

    def check_state(self) -> None:
        """Raise if a setting is out of range, or a candidate is unknown or named twice."""
        if self.score not in SCORES:
            raise InputError("score of ", Value(Auto), " is ", Value(self.score), "; it must be 'log' or 'draws'.")
        check_count(self.n_folds, "n_folds", self, least=2)
        check_count(self.max_rows, "max_rows", self, least=2 * self.n_folds)
        check_count(self.n_draws, "n_draws", self, least=2)
        read_candidates(self.candidates, "candidates of Auto")

    def check(self, n_rows: int) -> None:
        """Raise if a setting is invalid or there are too few rows."""
        self.check_state()
        if n_rows < 2 * self.n_folds:
            raise InputError(
                Parameter("X"),
                f" has {n_rows} rows; choosing samplers by cross-validation in {self.n_folds} folds needs at least "
                f"{2 * self.n_folds}. Give more rows, or name a sampler.",
            )


def choose_samplers(
    open_columns: Mapping[int, Auto],
    table: Table,
    given_of: Callable[[int], Sequence[int]],
    suited_to: Callable[[ConditionalSampler, int], ConditionalSampler],
    *,
    seed: int,
    n_jobs: int | None,
    progress: bool | None,
) -> tuple[dict[int, ConditionalSampler], Choice]:
    """Choose a sampler for each column of the chain with `Auto`; also return the reasons.

    Parameters
    ----------
    open_columns : the columns, each with its candidates.
    table : the training rows, columns in chain order.
    given_of : the columns that a column is modelled on.
    suited_to : returns the sampler as it would model a column, or raises if it cannot.
    """
    from mcce.judging.crossvalidation import Folds

    contests = {k: make_contest(auto.candidates, k, given_of(k), suited_to) for k, auto in open_columns.items()}
    sizes = {(auto.n_folds, auto.max_rows) for auto in open_columns.values()}
    folds = {size: Folds.deal(table, *size, derive_key(seed, "choose")) for size in sizes}

    def choose(k: int) -> tuple[ConditionalSampler, FeatureChoice]:
        auto = open_columns[k]
        return decide(contests[k], auto, folds[auto.n_folds, auto.max_rows], table.features[k])

    latest_first = sorted(open_columns, reverse=True)  # they have more givens, and take longer
    threads = threads_of(running_samplers(contests.values()), n_jobs)
    decided = list(run_in_threads(choose, latest_first, threads, "choosing samplers", progress))[::-1]
    chosen = dict(zip(latest_first[::-1], (sampler for sampler, _ in decided)))
    return chosen, Choice(tuple(choice for _, choice in decided))


def running_samplers(contests: Iterable[Contest]) -> list[ConditionalSampler]:
    """Return the samplers of all candidates that are not left out."""
    return [c.sampler for contest in contests for c in contest.candidates if c.sampler is not None]


def make_contest(
    candidates: Candidates,
    column: int,
    given: Sequence[int],
    suited_to: Callable[[ConditionalSampler, int], ConditionalSampler],
) -> Contest:
    """Return the candidates for a column of the chain, with the reasons why some are left out (step 1)."""
    from mcce.judging.crossvalidation import Candidate, Contest

    found = []
    for label, sampler in read_candidates(candidates, "candidates of Auto").items():
        try:
            found.append(Candidate(label, suited_to(sampler, column)))
        except MCCEError as error:
            found.append(Candidate(label, None, str(error)))
    return Contest(column, tuple(given), tuple(found))


def threads_of(samplers: Iterable[ConditionalSampler], n_jobs: int | None) -> int:
    """Return how many threads may use the samplers: 1 unless all are thread-safe."""
    return count_jobs(n_jobs) if all(s.thread_safe for s in samplers) else 1


def decide(contest: Contest, auto: Auto, folds: Folds, feature: Feature) -> tuple[ConditionalSampler, FeatureChoice]:
    """Score the candidates and choose one (steps 2 to 5)."""

    def draw(labels: Sequence[str]) -> list[Record]:
        named = {candidate.label: candidate for candidate in contest.candidates}
        some = replace(contest, candidates=tuple(named[label] for label in labels))
        return folds.run(some, "draws", auto.n_draws, race=True)

    if auto.score == "log":
        records = folds.run(contest, "log", auto.n_draws, race=True)
        choice = judge_by_log_score(records, draw, feature, folds)
    else:
        records = draw([candidate.label for candidate in contest.candidates])
        choice = judge(records, "draws", feature, folds)
    chosen = next(r.sampler for r in records if r.label == choice.sampler)
    assert chosen is not None
    return chosen, choice


def judge_by_log_score(
    records: Sequence[Record], draw: Callable[[Sequence[str]], list[Record]], feature: Feature, folds: Folds
) -> FeatureChoice:
    """Choose by the log score, then compare candidates without one with the chosen one by their draws (step 5).

    `draw` returns the records of the labelled candidates with scores from draws.
    """
    if all(r.left_out or r.log_scores is None for r in records):
        return judge(draw([r.label for r in records]), "draws", feature, folds)
    choice = judge(records, "log", feature, folds)
    unscored = [r.label for r in records if not r.left_out and r.log_scores is None]
    if not unscored:
        return choice
    by_draws = judge(draw([choice.sampler, *unscored]), "draws", feature, folds)
    if by_draws.sampler == choice.sampler:
        note = f"{NO_DENSITY}, and its {by_draws.judged_by} is not better than that of {choice.sampler}"
        verdicts = [replace(v, note=note) if v.sampler in unscored else v for v in choice.verdicts]
        return replace(choice, verdicts=tuple(verdicts))
    found = {v.sampler: v for v in by_draws.verdicts}
    note = f"{choice.sampler} was chosen by the log score, and {by_draws.sampler} has a better {by_draws.judged_by}"
    verdicts = [found.get(v.sampler) or Verdict(v.sampler, note=v.note or note) for v in choice.verdicts]
    return replace(by_draws, verdicts=tuple(verdicts))


def judge(records: Sequence[Record], wanted: Wanted, feature: Feature, folds: Folds) -> FeatureChoice:
    """Choose the first candidate within one standard error of the best (steps 3 and 4)."""
    from mcce.judging.crossvalidation import comparable_scores, mean_and_error

    rows = {r.label: comparable_scores(r, wanted) for r in records if r.is_running}
    running = {label: scores for label, scores in rows.items() if scores is not None}
    if not running:
        reasons = "; ".join(f"{r.label}: {r.left_out}" for r in records if r.left_out)
        raise SamplerError(
            f"no candidate can model {feature.name!r} ({reasons}). Name a sampler for it, or give Auto others."
        )
    weights = folds.weights
    best = max(running.values(), key=lambda scores: mean_and_error(scores, weights)[0])
    verdicts = []
    for record in records:
        scores = None if record.left_out else comparable_scores(record, wanted)
        if scores is None:
            verdicts.append(Verdict(record.label, note=record.left_out or NO_DENSITY))
            continue
        behind, behind_error = mean_and_error(best[: scores.size] - scores, weights)
        note = "far behind after the first fold" if record.is_slow else ""
        verdicts.append(Verdict(record.label, *mean_and_error(scores, weights), behind, behind_error, note))
    chosen = next(v for v in verdicts if v.is_good and v.sampler in running)
    name = "log score" if wanted == "log" else "Brier score" if feature.kind == "categorical" else "CRPS"
    return FeatureChoice(feature.name, chosen.sampler, name, folds.rows.size, len(folds.parts), tuple(verdicts))
