"""Rules for groups: at most k rules "if <group> then change <features>" that reach the decision for most people.

1. Candidate changes. The sparse counterfactuals are grouped by the changes that the decision needs: which features, to
   which level, up or down. For each of these signatures and some quantiles of its steps there are two changes: numbers
   change *by* a step, or *to at least* or *at most* a value. Steps and values are rounded outwards to readable numbers.
2. Each change is applied to each person. A person is reached if the changed row may be returned (`Acceptance`): columns
   that relations determine are computed, numbers stay in the training range, constraints and bounds hold, the row has
   the wanted decision, and its plausibility is at or above the floor. The model is queried in batches.
3. Three further generations recombine the changes that reach most people: a change gets the terms of another one on the
   features that it does not change. No change has more than `max_changes` features. Changes that reach half of their
   people or more by rows with a reason not to be sent (`mcce.plausibility.stop_reasons`) are dropped, if not all do.
4. Candidate groups are conjunctions of at most two conditions on the factuals' values of the grouping columns: a level,
   or a number below or at least a cut point, a rounded quantile. Groups of less than 5 per cent are left out.
5. Greedy maximum coverage: take the rule (group, change) that reaches most people not reached yet, of equals that with
   the least penalty, until there are k, or until neither coverage rises nor the penalty falls. Coverage is monotone and
   submodular, so that the greedy set reaches at least 1 - 1/e of what the best k candidate rules reach (Nemhauser,
   Wolsey and Fisher 1978).
6. Simplify: exchange one rule after the other for the candidate with the least penalty, as long as the set still
   reaches 1 - `slack` of what the greedy set reaches, in at most five rounds.

The penalty of a set is the mean cost of the people reached, each by the cheapest rule (sum of Gower steps); plus the
mean over rules of the share of the group that the rule does not reach, or reaches by a row with a reason not to be
sent; plus the mean over rules of 0.02 for each condition and change.

The work is bounded: at most 1000 people, evenly spread, choose the rules, with at most 150,000 changed rows in each
generation. The selected rules are then applied to everyone (`apply_rules`). Nothing is random. Better rules than the
candidates may exist. The rules are selected for these people; `RuleSet.apply` measures their coverage of others.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import changed_columns, gower_sum
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.explain.acceptance import Acceptance
from mcce.explain.finish import add_measures
from mcce.explain.pipeline import Explanation
from mcce.explain.problem import Factuals, Problem, fixed_columns
from mcce.explain.refine import mark_incidental
from mcce.explain.winners import Winners
from mcce.report.rule_set import GroupRule, Term
from mcce.table import Feature
from mcce.table.dtypes import is_dated

CHOOSING = 1000  # most people used to choose the rules
MOST_CHANGES = 300  # most candidate changes of a generation
MOST_ROWS = 150_000  # most changed rows of a generation
MOST_PARENTS = 20  # most changes that are recombined
GENERATIONS = 3
MOST_GROUPS = 400
LEAST_SHARE, LEAST_SIZE = 0.05, 5  # least share and number of people in a group
QUANTILES = (0.2, 0.4, 0.6, 0.8, 0.9, 1.0)  # quantiles of steps
CUTS = (0.2, 0.4, 0.6, 0.8)  # quantiles of grouping columns
PER_TERM = 0.02  # penalty of each condition and change
ROUNDS = 5

Answers = npt.NDArray[Any]
Terms = tuple[Term, ...]  # with encoded values: `Term.feature` is a column
EncodedRule = tuple[Terms, Terms]  # group, change


@dataclass(frozen=True)
class Reach:
    """Changes applied to people: (change, person).

    Attributes
    ----------
    changes : the changes.
    cost : the sum of Gower steps; inf where the changed row may not be returned, or lacks the decision.
    fit : whether the person is reached by a row without a reason not to be sent.
    """

    changes: Sequence[Terms]
    cost: Floats
    fit: Bools

    @property
    def reached(self) -> Bools:
        """Whether the changed row may be returned and has the decision."""
        return np.isfinite(self.cost)

    def __add__(self, other: Reach) -> Reach:
        """Return the changes of both that reach at least one person."""
        cost, fit = np.concatenate([self.cost, other.cost]), np.concatenate([self.fit, other.fit])
        return Reach([*self.changes, *other.changes], cost, fit).take(np.isfinite(cost).any(axis=1))

    def take(self, which: Bools) -> Reach:
        """Return some of the changes."""
        some = np.flatnonzero(which)
        return Reach([self.changes[c] for c in some.tolist()], self.cost[some], self.fit[some])

    def drop_unfit(self) -> Reach:
        """Return the changes that reach most of their people by rows that can be sent; all if there are none."""
        fit = self.fit.sum(axis=1) > self.reached.sum(axis=1) / 2
        return self.take(fit) if fit.any() else self


@dataclass(frozen=True)
class AppliedRules:
    """Rules, applied to all people who lack the decision.

    Attributes
    ----------
    rules : the rules, in the user's values.
    people : positions of the factuals that lack the decision.
    values : for each rule, one row for each member of its group: whether the rule reaches the person, then the Gower
        distance, L0 and plausibility, NaN if not; the last entry is for all people, each with the cheapest rule.
    winners : the changed rows of the people reached, by the cheapest rule.
    best : the number of the cheapest rule of each person, from 1; 0 if no rule reaches the person.
    """

    rules: Sequence[GroupRule]
    people: Ints
    values: Sequence[Floats]
    winners: Winners
    best: Ints


def find_rules(
    explained: Explanation, k: int, by: Sequence[Hashable] | None, max_changes: int, slack: float
) -> list[EncodedRule]:
    """Return at most k rules for the people of an explanation, whose groups are conditions on the columns `by`."""
    problem, features = explained.problem, explained.problem.features
    columns = read_columns(by, problem)
    people = np.flatnonzero(~explained.factuals.wanted)
    if not people.size:
        raise InputError("no factual lacked the wanted decision, so there is nothing to find rules for.")
    matrix, ids = explained.factuals.matrix[people], explained.factuals.index[people]
    all_people = Acceptance(problem, matrix, ids)
    some = np.unique(np.linspace(0, people.size - 1, CHOOSING).astype(np.intp))[: people.size]
    choosing = all_people.take(some)
    found = explained.winners
    own = np.searchsorted(people, found.owner)
    most = min(MOST_CHANGES, MOST_ROWS // some.size)
    reach = apply_changes(choosing, candidate_changes(all_people, replace(found, owner=own), max_changes)[:most])
    for _ in range(GENERATIONS if reach.reached.any() else 0):
        reach += apply_changes(choosing, recombined(reach, k, max_changes)[:most])
    reach = reach.drop_unfit()
    groups = candidate_groups(matrix[some], columns, features)
    member = np.array([holds(group, matrix[some]) for group in groups])
    chosen = choose(reach, member, np.array([len(group) for group in groups]), k, slack)
    return [(groups[g], reach.changes[c]) for c, g in chosen]


def read_columns(by: Sequence[Hashable] | None, problem: Problem) -> Sequence[int]:
    """Return the grouping columns; None stands for the fixed ones."""
    if by is None:
        return fixed_columns(problem.generator)
    schema = problem.generator.schema_
    if isinstance(by, str) or not isinstance(by, Sequence):
        raise InputError(f"by is {spell(by)}; give a list of column names, [] for rules without groups.")
    for name in by:
        if name not in schema.names:
            raise InputError(f"by names {spell(name)}, which is not a feature; {did_you_mean(name, schema.names)}")
    return [schema.position(name) for name in dict.fromkeys(by)]


# ---------------------------------------------------------------- candidate changes


def candidate_changes(acceptance: Acceptance, found: Winners, max_changes: int) -> list[Terms]:
    """Return changes suggested by counterfactuals, those of frequent signatures first."""
    features, rows, own = acceptance.problem.features, found.rows, acceptance.matrix[found.owner]
    changed = acceptance.free_changes(rows, found.owner) & ~found.incidental
    changed[:, list(acceptance.problem.uncounted)] = False
    usable = (changed.sum(axis=1) <= max_changes) & ~(changed & (np.isnan(rows) | np.isnan(own))).any(axis=1)
    is_level = np.array([feature.kind == "categorical" for feature in features])
    what = np.where(changed, np.where(is_level, rows, np.sign(rows - own)), np.inf)  # inf, as NaN does not equal NaN
    rows, own = rows[usable], own[usable]
    signatures, place, counts = np.unique(what[usable], axis=0, return_inverse=True, return_counts=True)
    made: dict[Terms, None] = {}
    for s in np.argsort(-counts, kind="stable"):
        members = np.flatnonzero(place.ravel() == s)
        for quantile in QUANTILES:
            for relative in (False, True):
                made.setdefault(_change(signatures[s], rows[members], own[members], quantile, relative, features))
    made.pop((), None)
    return list(made)


def _change(
    signature: Floats, rows: Floats, own: Floats, quantile: float, relative: bool, features: Sequence[Feature]
) -> Terms:
    """Return the change of a signature at a quantile of the steps, or of the new values."""
    terms = []
    for j in np.flatnonzero(np.isfinite(signature)).tolist():
        feature, sign = features[j], float(signature[j])
        if feature.kind == "categorical":
            terms.append(Term(j, "to", sign))
            continue
        steps = np.abs(rows[:, j] - own[:, j])
        step = float(np.quantile(steps, quantile, method="inverted_cdf"))
        if relative and feature.kind == "numeric" and not is_dated(feature.dtype):
            terms.append(Term(j, "by", sign * _outwards(step, step, feature)))
            continue
        value = float(np.quantile(sign * rows[:, j], quantile, method="inverted_cdf")) * sign
        if feature.kind == "numeric" and not is_dated(feature.dtype):
            value = float(np.clip(sign * _outwards(sign * value, step, feature), feature.low, feature.high))
        terms.append(Term(j, "at least" if sign > 0 else "at most", value + 0.0))  # avoids -0.0
    return tuple(terms)


def _outwards(value: float, step: float, feature: Feature) -> float:
    """Round a number up to a multiple of half or all of the power of ten below a step, on the grid of the column."""
    power = 10.0 ** np.floor(np.log10(step))
    unit = power if step >= 5 * power else power / 2
    if feature.grid.decimals is not None:
        unit = max(unit, 10.0**-feature.grid.decimals)
    return float(feature.grid.put(np.array([np.ceil(value / unit - 1e-9) * unit]))[0])


def recombined(reach: Reach, k: int, max_changes: int) -> list[Terms]:
    """Return new changes: one change, with the terms of another one on the features that it does not change.

    Both are among the changes with the largest coverage: of all people, and of those that the k best do not cover.
    """
    left, parents = np.ones(reach.reached.shape[1], dtype=bool), []
    for _ in range(k):
        gain = (reach.reached & left).sum(axis=1)
        parents.append(int(gain.argmax()))
        left &= ~reach.reached[parents[-1]]
    for people in (left, ~left):
        parents += np.argsort(-(reach.reached & people).sum(axis=1), kind="stable")[:MOST_PARENTS].tolist()
    parents = list(dict.fromkeys(parents))
    known, made = set(reach.changes), dict[Terms, None]()
    for a, b in sorted(itertools.permutations(range(len(parents)), 2), key=max):
        kept = reach.changes[parents[a]]
        features = {term.feature for term in kept}
        added = [term for term in reach.changes[parents[b]] if term.feature not in features]
        child = tuple(sorted([*kept, *added]))
        if child not in known and len(child) <= max_changes:
            made.setdefault(child)
    return list(made)


def apply_changes(acceptance: Acceptance, changes: Sequence[Terms]) -> Reach:
    """Apply each change to each person; query the model in batches."""
    n, step = len(acceptance), max(MOST_ROWS // len(acceptance), 1)
    parts = [_apply(acceptance, changes[i : i + step]) for i in range(0, len(changes), step)]
    cost = np.concatenate([np.empty(0), *(part.cost for part in parts)]).reshape(-1, n)
    fit = np.concatenate([np.empty(0, dtype=bool), *(part.fit for part in parts)]).reshape(-1, n)
    return Reach(changes, cost, fit)


class ChangedRows(NamedTuple):
    """Changed rows, with cost and fitness as in `Reach`, scores and plausibility."""

    rows: Floats
    cost: Floats
    scores: Answers
    plausibility: Floats
    fit: Bools


def _apply(acceptance: Acceptance, changes: Sequence[Terms]) -> ChangedRows:
    """Return the changed rows of all people, one change after the other."""
    features, n = acceptance.problem.features, len(acceptance)
    owner = np.tile(np.arange(n), len(changes))
    own = acceptance.matrix[owner]
    rows, may = own.copy(), np.ones(owner.size, dtype=bool)
    for c, terms in enumerate(changes):
        at = slice(c * n, (c + 1) * n)
        for j, how, value in terms:
            rows[at, j] = _moved(own[at, j], how, value, features[j])
            if features[j].is_numeric:
                moved = rows[at, j] != own[at, j]
                may[at] &= ~moved | ((rows[at, j] >= features[j].low) & (rows[at, j] <= features[j].high))
    rows = acceptance.complete(rows, owner)
    may &= changed_columns(rows, own).any(axis=1)
    for allowed in (acceptance.admits, acceptance.within_bounds):
        may[may] = allowed(rows[may], owner[may])
    scores = np.full(owner.size, np.nan, dtype=object)
    left = np.flatnonzero(may)
    if left.size:
        scores[left], may[left] = acceptance.query(rows[left])
    plausibility = np.full(owner.size, np.nan)
    plausibility[may] = acceptance.plausibility(rows[may], owner[may], acceptance.least)
    may &= plausibility >= acceptance.least
    cost = np.full(owner.size, np.inf)
    cost[may] = gower_sum(features).sums(acceptance.counted(rows[may], owner[may]), own[may])
    fit = may.copy()
    fit[may] = ~acceptance.stopped(rows[may], owner[may]).any(axis=1)
    return ChangedRows(rows, cost, scores, plausibility, fit)


def _moved(values: Floats, how: str, value: float, feature: Feature) -> Floats:
    """Return values after a change; a missing value can be replaced, but a step leaves it missing."""
    if how == "by":
        return feature.grid.put(values + value)
    if how == "to":
        return np.full(values.size, value)
    return np.fmax(values, value) if how == "at least" else np.fmin(values, value)


# ---------------------------------------------------------------- candidate groups


def candidate_groups(matrix: Floats, columns: Sequence[int], features: Sequence[Feature]) -> list[Terms]:
    """Return distinct groups with enough people: everyone, then one condition, then two."""
    single = [(term,) for j in columns for term in _conditions(matrix[:, j], j, features[j])]
    pairs = [
        (a, b)
        for (a,), (b,) in itertools.combinations(single, 2)
        if a.feature != b.feature or {a.how, b.how} == {"at least", "below"}
    ]
    least = max(LEAST_SIZE, LEAST_SHARE * len(matrix))
    kept: dict[bytes, Terms] = {}
    for group in [(), *single, *pairs]:
        member = holds(group, matrix)
        if member.sum() >= least or not group:
            kept.setdefault(np.packbits(member).tobytes(), group)
        if len(kept) == MOST_GROUPS:
            break
    return list(kept.values())


def _conditions(values: Floats, column: int, feature: Feature) -> list[Term]:
    known = values[~np.isnan(values)]
    if not known.size:
        return []
    if feature.kind == "categorical":
        return [Term(column, "is", level) for level in np.unique(known).tolist()]
    cuts = np.quantile(known, CUTS, method="inverted_cdf")
    if feature.is_numeric and not is_dated(feature.dtype) and cuts[-1] > cuts[0]:
        cuts = np.array([_outwards(cut, (cuts[-1] - cuts[0]) / 2, feature) for cut in cuts])
    inside = np.unique(cuts[(cuts > known.min()) & (cuts <= known.max())]).tolist()
    return [Term(column, how, cut) for cut in inside for how in ("below", "at least")]


def holds(group: Terms, matrix: Floats) -> Bools:
    """Return which rows satisfy all conditions of a group; a missing value satisfies none."""
    member = np.ones(len(matrix), dtype=bool)
    for j, how, value in group:
        column = matrix[:, j]
        member &= column == value if how == "is" else column < value if how == "below" else column >= value
    return member


# ---------------------------------------------------------------- the choice


def choose(reach: Reach, member: Bools, depth: Ints, k: int, slack: float) -> list[tuple[int, int]]:
    """Return at most k pairs (change, group): greedy maximum coverage, then exchanges that lower the penalty."""
    reached, of_group = reach.reached.astype(np.float32), member.T.astype(np.float32)
    size = member.sum(axis=1)
    cost = np.where(reach.reached, reach.cost, 0.0).astype(np.float32)
    unfit_share = 1.0 - reach.fit.astype(np.float32) @ of_group / np.maximum(size, 1)
    of_rule = unfit_share + PER_TERM * (depth + np.array([len(change) for change in reach.changes])[:, None])

    def best_of(others: Sequence[tuple[int, int]], least: float) -> tuple[float, float, tuple[int, int]]:
        """Return coverage, penalty and rule of the cheapest rule that covers enough people together with others."""
        cheapest = _cheapest(reach, member, others)
        covered = np.isfinite(cheapest)
        known = np.where(covered, cheapest, 0.0)
        coverage = covered.sum() + (reached * ~covered) @ of_group
        added = reached * np.where(covered, np.minimum(cost - known, 0.0), cost)
        terms = (sum(of_rule[rule] for rule in others) + of_rule) / (len(others) + 1)
        penalty = (known.sum() + added @ of_group) / np.maximum(coverage, 1) + terms
        for rule in others:  # a repeated rule would lower the mean penalty
            penalty[rule] = np.inf
        allowed = coverage >= min(least, coverage.max()) - 0.5
        c, g = np.unravel_index(np.argmin(np.where(allowed, penalty, np.inf)), penalty.shape)
        return float(coverage[c, g]), float(penalty[c, g]), (int(c), int(g))

    chosen: list[tuple[int, int]] = []
    total, least_penalty = 0.0, np.inf
    while len(chosen) < k and len(reach.changes):
        coverage, penalty, rule = best_of(chosen, np.inf)
        if coverage <= total and penalty >= least_penalty:
            break
        chosen, total, least_penalty = [*chosen, rule], coverage, penalty
    for _ in range(ROUNDS):
        before = list(chosen)
        for place in range(len(chosen)):
            others = chosen[:place] + chosen[place + 1 :]
            chosen[place] = best_of(others, np.ceil((1.0 - slack) * total))[2]
        if chosen == before:
            break
    return chosen


def _cheapest(reach: Reach, member: Bools, rules: Sequence[tuple[int, int]]) -> Floats:
    """Return the least cost by which any rule reaches each person; inf if no rule does."""
    costs = [np.where(member[g], reach.cost[c], np.inf) for c, g in rules]
    return np.asarray(np.min([np.full(reach.cost.shape[1], np.inf), *costs], axis=0))


def apply_rules(problem: Problem, factuals: Factuals, rules: Sequence[EncodedRule]) -> AppliedRules:
    """Apply rules to all factuals that lack the decision."""
    people, scores = np.flatnonzero(~factuals.wanted), factuals.scores
    if not people.size:
        raise InputError("every row already has the wanted decision, so no rule applies; give rows that lack it.")
    acceptance, n = Acceptance(problem, factuals.matrix[people], factuals.index[people]), people.size
    assert problem.plausibility is not None
    least, best = np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    whole, parts = np.full((n, 4), [0.0, np.nan, np.nan, np.nan]), []
    winners = Winners.none(scores, acceptance.matrix.shape[1])
    for r, (group, change) in enumerate(rules, 1):
        member = holds(group, acceptance.matrix)
        rows, cost, answers, score, _ = _apply(acceptance, [change])
        at = np.flatnonzero(np.isfinite(cost) & member)
        made = Winners.chosen(at, rows[at], answers[at].astype(scores.dtype), score[at])
        made = made.measured(problem.features, acceptance.matrix, acceptance.counted(made.rows, at))
        values = np.full((n, 4), [0.0, np.nan, np.nan, np.nan])
        n_changes, steps = made.measures.T
        plausibility = problem.plausibility.quantile(made.plausibility)
        values[at] = np.column_stack([np.ones(at.size), steps / len(problem.features), n_changes, plausibility])
        parts.append(values[member])
        better = at[cost[at] < least[at]]
        least[better], best[better], whole[better] = cost[better], r, values[better]
        winners = Winners.join([winners.take(~np.isin(winners.owner, better)), made.take(np.isin(at, better))])
    winners = add_measures(acceptance, mark_incidental(acceptance, winners.by_factual())).of_factuals(people)
    decoded = [GroupRule(_decoded(group, problem), _decoded(change, problem)) for group, change in rules]
    return AppliedRules(decoded, people, [*parts, whole], winners, best)


def _decoded(terms: Terms, problem: Problem) -> Terms:
    """Return terms with the user's names and values; steps remain numbers."""
    made = []
    for j, how, value in terms:
        feature = problem.features[j]
        decoded = value if how == "by" else pd.Series(feature.decode(np.array([value]))).astype(object).iloc[0]
        made.append(Term(feature.name, how, decoded))
    return tuple(made)
