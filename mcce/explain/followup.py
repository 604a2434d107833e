"""Follow-up questions about a result, computed on demand by the same pipeline with other draws or requirements.

A second, independent set of draws gives:

1. The Monte Carlo error of a mean (`redraw_errors`). Factuals of one pool share their draws, so pools, not factuals,
   vary independently. With S_p the sum over the factuals of pool p, of n in all, the variance of the mean is
   sum_p Var(S_p) / n^2, where Var(S_p) is estimated from the redraws.
2. The stability of the counterfactuals: the share of factuals whose best counterfactual changes the same features both
   times (`agreement`). It is an unbiased estimate of how often two sets of draws agree for these factuals, this fitted
   generator and this model. With a hundred factuals that share no pools, its error is 0.05 or less.

For factuals without a counterfactual:

3. `analyse_draws` reports for one factual how many rows were drawn within all its constraints, how many each constraint
   rejected, how many were plausible, for how many the model was queried, and the drawn row nearest to the decision.
4. `find_remedies` tries four times as many draws, and drops each requirement alone: each constraint, the bounds, the
   exclusion of copies, the share of refits. It names what leads to a counterfactual; if nothing does, all constraints
   are dropped.
5. `prove` shows for one factual that no valid row exists, or finds the nearest one (`mcce.explain.proof`).
   `with_proofs` adds the rows found as candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.progress import progress_bar, working
from mcce.base.threads import one_native_thread
from mcce.counterfactuals import Agreement, Counterfactuals, Questions
from mcce.distances.measures import changed_columns
from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import Candidates, draw_block, draw_own_block, draw_pools
from mcce.explain.group_rules import EncodedRule, apply_rules, find_rules
from mcce.explain.pipeline import (
    MOST_DRAWS,
    Cost,
    Explanation,
    explain_blocks,
    explain_factuals,
    explain_given,
    join_blocks,
    search_block,
)
from mcce.explain.principal import reasons_for
from mcce.explain.problem import Factuals, Problem, fixed_columns, pool_keys, read_factuals, searched
from mcce.explain.proof import prove
from mcce.explain.tabulate import tabulate
from mcce.explain.winners import Winners
from mcce.generators.base import Generator
from mcce.model.decisions import Answer
from mcce.model.queries import EncodedModel, SpotCheck
from mcce.model.robustness import ConfirmedModel
from mcce.plausibility.relations import KeptRelations
from mcce.plausibility.stop_reasons import Usual
from mcce.report.reasons import ALREADY
from mcce.report.rule_set import RuleSet, rule_table
from mcce.table import Data
from mcce.table.checks import find_labels

MOST_REDRAWN = 100  # factuals redrawn for the stability of the counterfactuals
MOST_EXPLAINED = 5  # factuals explained on the command line
MORE = 4  # factor of the number of draws
SHADED_DRAWS = 1000  # draws for a figure


def questions_of(
    explained: Explanation,
    settings: Mapping[str, object],
    fit_seconds: float,
    usual: Callable[[], Usual | None],
    progress: bool | None = None,
) -> Questions:
    """Return the follow-up questions of a result.

    Parameters
    ----------
    explained : the explanation.
    settings, fit_seconds : as in `tabulate`, for results of redraws.
    usual : returns the usual values of training rows, or None if these are not available.
    progress : whether to show a progress bar while redrawing.
    """
    generator, decision = explained.problem.generator, explained.problem.decision
    encoded_model = EncodedModel(decision, generator.schema_)
    questions = Questions(
        predict=partial(_predict_frame, encoded_model, explained.problem.relations),
        usual=usual,
        reasons=partial(_find_reasons, explained.problem, progress),
    )
    if generator.conditions_on_decision_:
        questions = replace(questions, alike=partial(_draw_alike, generator))
    if explained.drawn is None:
        return questions
    later = FollowUp(explained, settings, fit_seconds, usual, progress)
    return replace(
        questions,
        agreement=lambda: later.agreement,
        standard_errors=later.standard_errors,
        known_errors=lambda: later.standard_errors() if "again" in vars(later) else {},
        redrawn=later.redrawn,
        why=later.why,
        prove=later.prove,
        with_candidates=later.with_candidates,
        rules=later.rules,
    )


@dataclass(frozen=True, eq=False)
class FollowUp:
    """An explanation that can be repeated with other draws, or without one of its requirements."""

    explained: Explanation
    settings: Mapping[str, object]
    fit_seconds: float
    usual: Callable[[], Usual | None]
    progress: bool | None

    @cached_property
    def which(self) -> Ints:
        """Positions of the searched factuals."""
        return searched(self.explained.factuals, self.explained.contradictions)

    @cached_property
    def again(self) -> Winners:
        """The winners of a redraw for all factuals."""
        return self._draw_again(self.which)

    @cached_property
    def agreement(self) -> Agreement:
        """The stability of the counterfactuals, by redrawing at most a hundred factuals; all, if `again` is known."""
        known = "again" in vars(self)
        some = self.which if known else spread_over(self.which)
        again = self.again if known else self._draw_again(some)
        return agreement(self.explained.factuals, some, self.explained.winners, again)

    def standard_errors(self) -> dict[str, float]:
        """Return the Monte Carlo standard errors of the means, by redrawing all factuals."""
        return redraw_errors(self.explained, self.again)

    def redrawn(self, redraw: int) -> Counterfactuals:
        """Return the result of the redraw with a given number."""
        problem = _redrawn(self.explained.problem, redraw)
        explained = explain_factuals(problem, self.explained.factuals, self.progress, "drawing again")
        questions = questions_of(explained, self.settings, self.fit_seconds, self.usual, self.progress)
        return tabulate(explained, self.settings, self.fit_seconds, questions)

    def why(self, places: Ints) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return why factuals have no counterfactual (counts of candidates), and what would help.

        `places` are positions of searched factuals. The second table has the drawn row of each that is nearest to the
        decision, if there is one.
        """
        problem, factuals = self.explained.problem, self.explained.factuals
        with working("looking for reasons", self.progress):
            looked = [analyse_draws(problem, factuals, int(i)) for i in places]
            table = pd.DataFrame([words for words, _ in looked], index=factuals.index[places].rename("id"))
            table["would_help"] = find_remedies(problem, factuals, places)
        nearest = [(int(i), row) for i, (_, row) in zip(places, looked) if row is not None]
        schema = problem.generator.schema_
        rows = np.array([row for _, row in nearest]).reshape(-1, len(schema))
        return table, schema.decode(rows, factuals.index[[i for i, _ in nearest]].rename("id"))

    def prove(self, place: int, time_limit: float) -> tuple[str, pd.DataFrame]:
        """Return in words whether the factual at `place` has a valid row, and the row found, if any."""
        problem, factuals = self.explained.problem, self.explained.factuals
        with working("proving", self.progress):
            found = prove(problem, factuals, place, time_limit)
        rows = np.empty((0, len(problem.features))) if found.row is None else found.row[None, :]
        return found.says, problem.generator.schema_.decode(rows, factuals.index[[place] * len(rows)].rename("id"))

    def with_candidates(self, rows: pd.DataFrame) -> Counterfactuals:
        """Return the result with a further candidate for some factuals without a counterfactual, by id."""
        explained, factuals = self.explained, self.explained.factuals
        members = find_labels(factuals.index, rows.index)
        matrix = explained.problem.generator.schema_.encode(rows, "the candidates").matrix
        each = np.arange(len(rows))
        more = explain_given(explained.problem, factuals, members, Candidates(matrix, each, each + 1))
        winners = join_blocks([explained.winners, more.winners], factuals)
        explained = replace(explained, winners=winners, cost=Cost.total([explained.cost, more.cost]))
        questions = questions_of(explained, self.settings, self.fit_seconds, self.usual, self.progress)
        return tabulate(explained, self.settings, self.fit_seconds, questions)

    def rules(
        self,
        k: int,
        by: Sequence[Hashable] | None,
        max_changes: int,
        slack: float,
        confidence: float,
        random_state: int,
    ) -> RuleSet:
        """Return few rules for many factuals, see `Counterfactuals.rules`."""
        with working("finding rules", self.progress):
            rules = find_rules(self.explained, k, by, max_changes, slack)
        return self._rule_set(rules, confidence, random_state, self.explained.factuals)

    def _apply_rules(self, rules: Sequence[EncodedRule], confidence: float, random_state: int, X: Data) -> RuleSet:
        """Return the same rules, applied to other rows."""
        known = self.explained.factuals
        unchecked = SpotCheck(np.empty(0, np.intp), known.matrix[:0], Answer(known.scores[:0], known.wanted[:0]))
        problem = self.explained.problem
        factuals = read_factuals(X, problem.generator.schema_, problem.decision, unchecked)
        return self._rule_set(rules, confidence, random_state, factuals)

    def _rule_set(
        self, rules: Sequence[EncodedRule], confidence: float, random_state: int, factuals: Factuals
    ) -> RuleSet:
        applied = apply_rules(self.explained.problem, factuals, rules)
        moved = replace(self.explained, factuals=factuals, winners=applied.winners, drawn=None, contradictions={})
        settings = self.settings, self.fit_seconds
        again = partial(self._apply_rules, rules, confidence, random_state)
        questions = replace(questions_of(moved, *settings, self.usual), apply_rules=again)
        found = tabulate(moved, *settings, questions)
        without = found.unexplained["reason"] != ALREADY
        found.unexplained.loc[without, "reason"] = "no rule reaches the decision"
        return RuleSet(
            rules=tuple(applied.rules),
            table=rule_table(applied.rules, applied.values, moved.problem.names, confidence, random_state),
            found=found,
            rule_of=pd.Series(applied.best, index=factuals.index[applied.people], name="rule"),
            confidence=float(confidence),
        )

    def _draw_again(self, which: Ints) -> Winners:
        """Return the winners of some factuals in a redraw whose number no user can request."""
        problem = self.explained.problem
        problem = _redrawn(problem, -1 - problem.settings.redraw)
        with progress_bar(which.size, "drawing again", self.progress) as bar:
            return explain_blocks(problem, self.explained.factuals, which, bar.update)[0]


def _redrawn(problem: Problem, redraw: int) -> Problem:
    return replace(problem, settings=replace(problem.settings, redraw=redraw))


def redraw_errors(explained: Explanation, again: Winners) -> dict[str, float]:
    """Return the Monte Carlo standard errors of the mean L0 and Gower distance of the best counterfactuals.

    `again` has the winners of a redraw of all pools. The means are over the factuals that are explained both times.
    """
    problem, factuals = explained.problem, explained.factuals
    both = explained.winners, again
    most = max(int(np.bincount(found.owner).max(initial=1)) for found in both)
    best = np.stack([found.by_rank(len(factuals), most)[:, 0] for found in both])
    keys = problem.keys(factuals)
    return {
        "L0": pooled_error(best[:, :, 0], keys),
        "gower": pooled_error(best[:, :, 1] / len(problem.features), keys),
    }


def _draw_alike(generator: Generator, factual: pd.DataFrame) -> pd.DataFrame:
    """Return rows drawn given the fixed values of a factual and the wanted decision, for a figure."""
    matrix = generator.schema_.encode(factual, "the row").matrix
    keys = pool_keys(generator, matrix, fixed_columns(generator))
    return generator.schema_.decode(draw_pools(generator, matrix, keys, SHADED_DRAWS).rows)


@one_native_thread()
def _find_reasons(problem: Problem, progress: bool | None, factual: pd.DataFrame, n_draws: int) -> pd.DataFrame:
    """Return the result of `reasons_for` for a factual, given as a table with one row."""
    matrix = problem.generator.schema_.encode(factual, "the row").matrix
    with working("looking for reasons", progress):
        return reasons_for(problem, matrix[0], factual.index, n_draws)


def _predict_frame(
    encoded_model: EncodedModel, relations: KeptRelations | None, frame: pd.DataFrame, factual: pd.DataFrame
) -> tuple[npt.NDArray[Any], Bools]:
    """Query the model for rows between a factual and its counterfactual, with computed columns."""
    rows, own = (encoded_model.schema.encode(each, "the rows").matrix for each in (frame, factual))
    if relations is not None:
        rows = relations.complete(rows, np.repeat(own, len(rows), axis=0))
    return encoded_model.predict_encoded(rows)


def agreement(factuals: Factuals, which: Ints, winners: Winners, again: Winners) -> Agreement:
    """Return the agreement of two sets of draws; no counterfactual both times counts as agreement."""
    one, other = (_changed_sets(part, factuals)[which] for part in (winners, again))
    return Agreement(which.size, float((one == other).all(axis=1).mean()) if which.size else float("nan"))


def spread_over(which: Ints) -> Ints:
    """Return at most a hundred factuals, evenly spread over `which`."""
    return which[np.unique(np.linspace(0, max(which.size - 1, 0), MOST_REDRAWN).astype(np.intp))[: which.size]]


def _changed_sets(winners: Winners, factuals: Factuals) -> Bools:
    """Return which columns the best counterfactual of each factual changes; the last column marks none found."""
    owners, first = np.unique(winners.owner, return_index=True)
    new, old = winners.rows[first], factuals.matrix[owners]
    sets = np.zeros((len(factuals), factuals.matrix.shape[1] + 1), dtype=bool)
    sets[:, -1] = True
    sets[owners, :-1] = changed_columns(new, old)
    sets[owners, -1] = False
    return sets


def pooled_error(values: Floats, pools: UInts) -> float:
    """Return the standard error of a mean over factuals, from its redraws.

    Parameters
    ----------
    values : a row for each of at least two redraws, a column for each factual; columns with NaN are left out.
    pools : the key of the pool of each factual.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.explain.followup import pooled_error
    >>> values = np.array([[1.0, 1.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]])
    >>> pooled_error(values, np.array([7, 7, 8, 9], dtype=np.uint64))  # sqrt(2) / 4: the sums of pool 7 are 2 and 4
    0.3535533905932738
    """
    known = ~np.isnan(values).any(axis=0)
    if not known.any():
        return float("nan")
    pool, distinct = pd.factorize(pools[known])
    sums = np.zeros((values.shape[0], len(distinct)))
    for r, row in enumerate(values[:, known]):
        np.add.at(sums[r], pool, row)
    return float(np.sqrt(sums.var(axis=0, ddof=1).sum()) / known.sum())


def analyse_draws(problem: Problem, factuals: Factuals, i: int) -> tuple[dict[str, object], Floats | None]:
    """Return the counts of step 3 for one factual, and its drawn row that is nearest to the decision."""
    n_samples = MOST_DRAWS if problem.settings.n_samples == "auto" else problem.settings.n_samples
    block = problem.block(factuals, np.array([i]), range(n_samples))
    acceptance = Acceptance(problem, block.matrix, block.ids)
    search_block(acceptance, block)
    n_queried = acceptance.n_queried
    pools = draw_block(problem, block) if problem.constraints is None else draw_own_block(problem, block)
    rows = pools.candidates.rows[pools.candidates.begin[0] : pools.candidates.end[0]]
    owner = np.zeros(len(rows), dtype=np.int64)
    rows = acceptance.complete(rows, owner)
    rows = rows[acceptance.admits(rows, owner)]
    rejected = {str(name): int(tried - passed) for name, (tried, passed) in pools.acceptance.items() if passed < tried}
    plausible: object = None
    if problem.plausibility is not None and rows.shape[0]:
        plausible = int((acceptance.plausibility(rows, owner[: rows.shape[0]]) >= problem.least).sum())
    details: dict[str, object] = {
        "drawn": n_samples,
        "rejected": ", ".join(f"{count} by {name}" for name, count in rejected.items()) or "none",
        "plausible": plausible,
        "queried": n_queried,
        "nearest": np.nan,
    }
    if not rows.shape[0]:
        return details, None
    scores = acceptance.query(rows)[0]
    short = problem.decision.shortfall(scores)
    if short is None:
        return details, None
    best = int(np.argmin(short))
    return {**details, "nearest": scores[best]}, rows[best]


def find_remedies(problem: Problem, factuals: Factuals, which: Ints) -> list[str]:
    """Return for each factual what leads to a counterfactual (step 4)."""
    helps: dict[int, list[str]] = {int(i): [] for i in which}

    def attempt(words: str, relaxed: Problem, left: Ints) -> None:
        found = explain_blocks(relaxed, factuals, left, lambda _: None)[0]
        for i in np.unique(found.owner):
            helps[int(i)].append(words)

    for words, relaxed in _single_relaxations(problem):
        attempt(words, relaxed, which)
    left = np.array([i for i, words in helps.items() if not words], dtype=np.int64)
    if left.size and problem.constraints is not None and len(problem.constraints.texts) > 1:
        attempt("no constraints at all", replace(problem, constraints=problem.constraints.implicit or None), left)
    return ["; or ".join(words) if words else "nothing that was tried" for words in helps.values()]


def _single_relaxations(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem without one of its requirements, and the change in words; more draws come first."""
    settings = replace(problem.settings, n_counterfactuals=1, diverse=False)
    problem = replace(problem, settings=settings)
    if settings.n_samples != "auto":
        more = MORE * settings.n_samples
        yield f"{more} draws", replace(problem, settings=replace(settings, n_samples=more))
    if problem.constraints is not None:
        for text in problem.constraints.texts:
            left = problem.constraints.without(text)
            yield f"without the constraint {text!r}", replace(problem, constraints=left if left else None)
    if problem.anonymity is not None:
        yield "without k_anonymous", replace(problem, anonymity=None)
    if problem.relations is not None:
        derived = problem.relations.of_formulas()
        if derived is None or len(derived.demanded) < len(problem.relations.demanded):
            yield "without the relations between columns", replace(problem, relations=derived)
    if settings.max_changes is not None or settings.max_gower is not None:
        free = replace(settings, max_changes=None, max_gower=None)
        yield "without bounds on changes or distance", replace(problem, settings=free)
    if settings.exclude_training:
        yield "with copies of training rows", replace(problem, settings=replace(settings, exclude_training=False))
    if isinstance(problem.question, ConfirmedModel):
        yield "without the robustness requirement", replace(problem, question=problem.question.model)
