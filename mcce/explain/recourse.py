"""Recourse: actions whose consequences reach the wanted decision with a stated probability.

A counterfactual is a row that is accepted. A person cannot choose a row; a person acts on some features, and others
follow. Karimi, Schölkopf and Valera (2021, "Algorithmic recourse: from counterfactual explanations to interventions")
therefore search among interventions in a causal graph:

1. Candidate actions. Each draw of a factual's pool proposes values of the features that may be acted on. A candidate is
   the values of one, two or three of them from one draw, in which it differs from the factual.
2. Consequences. Features that the actions cause are drawn given their new causes (`mcce.generators.intervening`); all
   others keep the factual's values. With `keep=1` a factual keeps its own ranks in the conditional distributions
   (Karimi et al. 2020), with `keep=0` consequences are drawn independently of these ranks. The conditionals are fitted
   to five bootstraps of the training rows, without the decision; each has a fifth of the draws. A search for cheap
   actions finds the errors of conditionals, above all the jumps of trees: the default sampler is replaced by mixtures,
   which are smooth, and every action is evaluated with all five.
3. The probability of a candidate is the share of such rows that have the wanted decision and satisfy constraints and
   relations. Half of them at least are at or above the floor of plausibility.
4. Order. Fewer actions first, then the smaller sum of Gower's steps; consequences cost nothing. Candidates are taken in
   that order, those of all factuals together: a few consequences of each are queried, then more of the promising
   ones, in two steps. The first whose lower confidence bound (Clopper and Pearson, one-sided, 95 per cent) is at
   least `assurance` is taken. Candidates that act on all the features of one that was taken, and on more, are skipped.
5. The probability that is reported comes from draws that took no part in the choice.

The random numbers of consequences depend on the factual and not on the action: candidates are compared with common
random numbers. The probability is valid if the graph and the conditionals are; both are assumptions.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import pandas as pd
import scipy

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.checks import is_number
from mcce.base.progress import progress_bar, reported
from mcce.distances.measures import changed_columns, columnwise, gower_sum
from mcce.exceptions import InputError, did_you_mean, listing, spell, warn
from mcce.explain.acceptance import Acceptance
from mcce.explain.crossing import ChangedCells, NearestCrossings
from mcce.explain.draw import Candidates, draw_block
from mcce.explain.finish import add_measures
from mcce.explain.pipeline import Cost, Explanation, constraint_breaks, join_blocks
from mcce.explain.problem import Block, Factuals, Problem, searched
from mcce.explain.refine import ranges
from mcce.explain.winners import Winners
from mcce.rng import hash_rows
from mcce.table import Schema
from mcce.table.words import units_in_a_year
from mcce.wording import Parameter, Value, entry

LARGEST = 3  # most features acted on at once
NEAREST = 256  # candidates of a factual, for each number of features
FIRST, MOST = 8, 64  # candidates of a factual that are examined together, at first and at most
SCREENED, CHECKED, CONFIRMED = 16, 80, 400  # consequences drawn for a candidate in each stage
CONFIRMING = range(SCREENED + CHECKED, SCREENED + CHECKED + CONFIRMED)  # indices of the confirming draws
REPORTING = range(CONFIRMING.stop, CONFIRMING.stop + CONFIRMED)
TOGETHER = 4  # candidates of a factual that are checked together
JUDGED = 21  # consequences whose plausibility is computed
COMPARED = 40  # consequences among which the one to show is chosen
LEVEL = 0.05
_YEARS = {"year": 1.0, "month": 1 / 12, "week": 7 / 365.25, "day": 1 / 365.25}
ACTIONS, TAKES = Parameter("actions"), Parameter("takes")
USUAL = 0.1, 0.9  # quantiles that bound a usual consequence


class World(Protocol):
    """A model of the consequences of actions."""

    def follow(self, rows: Floats, acted: Bools, factuals: Floats, keys: UInts, draws: UInts) -> Floats:
        """Return rows with drawn consequences.

        `acted` marks the cells that are set; other cells of `rows` are those of `factuals`. The random numbers are
        those of `keys` and `draws`.
        """


@dataclass(frozen=True)
class Recourse:
    """The requirements of recourse.

    Attributes
    ----------
    worlds : models of the consequences, fitted to several bootstraps; each has its share of the draws.
    actions : columns that may be acted on.
    assurance : the least probability of the wanted decision.
    takes : for a column that is acted on, by how much it moves others, such as the age by the years of a degree.
    """

    worlds: Sequence[World]
    actions: Ints
    assurance: float
    takes: Mapping[int, Mapping[int, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Actions:
    """Candidate actions: the factual of each, which cells are set and to what, and the cost."""

    owner: Ints
    acted: Bools
    rows: Floats
    cost: Floats

    def __len__(self) -> int:
        return self.owner.size

    def take(self, which: Ints | Bools) -> Actions:
        """Return some of the candidates."""
        return Actions(self.owner[which], self.acted[which], self.rows[which], self.cost[which])


def explain_by_actions(
    problem: Problem, factuals: Factuals, recourse: Recourse, progress: bool | None
) -> tuple[Explanation, pd.DataFrame, dict[int, str]]:
    """Find recourse for all factuals that lack the wanted decision.

    Returns
    -------
    The explanation, the consequences of each winner (`consequence_table`), and why factuals have no recourse, by
    position.
    """
    contradictions = problem.contradictions(factuals)
    which = searched(factuals, contradictions)
    draws = range(int(problem.settings.n_samples))
    drawn = np.zeros(len(factuals), dtype=np.int64)
    parts, costs = [], []
    reasons: dict[int, str] = {}
    followed: list[tuple[int, Floats, Bools]] = []
    with progress_bar(which.size, "searching for actions", progress) as bar:
        for block in problem.split(problem.block(factuals, which, draws)):
            with reported(bar.update, block.members.size):
                search = RecourseSearch(problem, block, recourse)
                found, cost = search.run()
            drawn[block.members] = len(draws)
            parts.append(found.of_factuals(block.members))
            costs.append(cost)
            followed += [(int(block.members[i]), rows, acted) for i, rows, acted in search.followed]
            reasons |= {int(block.members[i]): why for i, why in search.reasons.items()}
    if not parts:
        parts.append(RecourseSearch(problem, problem.block(factuals, which, draws), recourse).run()[0])
    winners = join_blocks(parts, factuals)
    breaks = constraint_breaks(problem, factuals, which)
    explained = Explanation(problem, factuals, winners, Cost.total(costs), drawn, contradictions, breaks)
    return explained, consequence_table(followed, factuals, problem.generator.schema_), reasons


class RecourseSearch:
    """The search for the actions of a block of factuals.

    Attributes
    ----------
    followed : (factual, rows, acted cells) of every winner, in the order in which they were found; rows with
        consequences, from draws that took no part in the choice.
    reasons : why factuals have no recourse.
    """

    def __init__(self, problem: Problem, block: Block, recourse: Recourse) -> None:
        self.problem, self.block, self.recourse = problem, block, recourse
        self.acceptance = Acceptance(problem, block.matrix, block.ids)
        self.keys = hash_rows(block.matrix)
        self.n = block.members.size
        self.taken: list[list[Bools]] = [[] for _ in range(self.n)]  # cells that the winners of a factual act on
        self.best: dict[int, tuple[float, Actions]] = {}  # the most promising candidate of a factual
        self.found: list[Winners] = []
        self.followed: list[tuple[int, Floats, Bools]] = []
        self.reasons: dict[int, str] = {}

    def run(self) -> tuple[Winners, Cost]:
        """Search; return the winners and the cost."""
        begun, settings = time.perf_counter(), self.problem.settings
        pools = draw_block(self.problem, self.block)
        searching = time.perf_counter()
        largest = min(LARGEST, self.recourse.actions.size, settings.max_changes or LARGEST)
        for size in range(1, largest + 1):
            self._search(self._candidates(pools.candidates, size))
        self._record_reasons()
        found = Winners.join([*self.found, self._none()])
        measured = add_measures(self.acceptance, found)
        found = replace(measured, reported={**measured.reported, **found.reported})
        seconds = searching - begun, time.perf_counter() - searching
        return found, Cost(self.acceptance.n_queried, *seconds, np.unique(pools.keys), pools.acceptance)

    def _none(self) -> Winners:
        nothing = Winners.none(np.empty(0), self.block.matrix.shape[1])
        return replace(nothing, reported={"p_valid": np.empty(0), "p_valid_se": np.empty(0)})

    # ---- candidates

    def _waiting(self) -> Ints:
        k = self.problem.settings.n_counterfactuals
        return np.array([i for i in range(self.n) if len(self.taken[i]) < k], dtype=np.int64)

    def _candidates(self, pools: Candidates, size: int) -> Actions:
        """Return the candidates with this number of actions, for factuals that lack winners, by factual and cost."""
        near = NearestCrossings(columnwise(pools.rows), self.recourse.actions, self.problem.distance)
        own, made = self.acceptance.matrix, []
        for begin, end, members in pools.pools(self._waiting()):
            tuples = near.tuples(begin, end - begin, size)
            if tuples is not None:
                made += [near.find(int(f), own[f], begin, end - begin, tuples, NEAREST) for f in members]
        made = [each for each in made if each.chosen.size]
        if not made:
            none = np.empty((0, own.shape[1]))
            return Actions(np.empty(0, dtype=np.int64), none.astype(bool), none, np.empty(0))
        cells = ChangedCells.read(made, near)
        every = np.arange(cells.of.size)
        rows = np.ascontiguousarray(cells.rows(every, own))
        acted = np.zeros(rows.shape, dtype=bool)
        np.put_along_axis(acted, cells.column, True, axis=1)
        candidates = Actions(cells.of, acted, rows, cells.steps)
        return candidates.take(np.lexsort((every, cells.steps, cells.of)))

    # ---- the search

    def _search(self, candidates: Actions) -> None:
        """Examine candidates in order, some of each factual at a time, until it has its winners (step 4)."""
        begin = np.searchsorted(candidates.owner, np.arange(self.n))
        end = np.searchsorted(candidates.owner, np.arange(self.n), side="right")
        depth = FIRST
        while True:
            waiting = self._waiting()
            waiting = waiting[begin[waiting] < end[waiting]]
            if not waiting.size:
                return
            stop = np.minimum(begin[waiting] + depth, end[waiting])
            some = candidates.take(ranges(begin[waiting], stop))
            begin[waiting] = stop
            depth = min(2 * depth, MOST)
            self._choose(some)

    def _choose(self, candidates: Actions) -> None:
        """Screen some candidates, and check the promising ones of each factual, a few at a time."""
        valid = self._consequences(candidates, range(SCREENED))[1]
        share = valid.mean(axis=1)
        for i in np.argsort(-share, kind="stable"):
            factual = int(candidates.owner[i])
            if share[i] > self.best.get(factual, (0.0, None))[0]:
                self.best[factual] = float(share[i]), candidates.take(np.array([i]))
        for some in self._in_turns(candidates.take(self._are_promising(share, SCREENED, 2.0)), TOGETHER):
            self._check(some)

    def _in_turns(self, candidates: Actions, most: int) -> Iterator[Actions]:
        """Yield the candidates in order, at most some of each factual at a time, as far as they are still open."""
        while len(candidates := candidates.take(self._are_open(candidates))):
            now = np.arange(len(candidates)) - np.searchsorted(candidates.owner, candidates.owner) < most
            yield candidates.take(now)
            candidates = candidates.take(~now)

    def _are_promising(self, share: Floats, n: int, n_errors: float) -> Bools:
        """Return which shares of `n` consequences are not below the assurance by this many standard errors."""
        assurance = self.recourse.assurance
        return np.asarray(share >= assurance - n_errors * np.sqrt(assurance * (1.0 - assurance) / n))

    def _check(self, candidates: Actions) -> None:
        """Check a few candidates of each factual with more consequences, and confirm them one after the other."""
        valid = self._consequences(candidates, range(SCREENED, SCREENED + CHECKED))[1]
        for some in self._in_turns(candidates.take(self._are_promising(valid.mean(axis=1), CHECKED, 1.0)), 1):
            self._confirm(some)

    def _are_open(self, candidates: Actions) -> Bools:
        """Return which candidates remain: those that do not act on all features of a winner and on more."""
        most = self.problem.settings.n_counterfactuals
        return np.array(
            [
                len(self.taken[i]) < most and not any((acted >= known).all() for known in self.taken[i])
                for i, acted in zip(candidates.owner, candidates.acted)
            ],
            dtype=bool,
        )

    def _confirm(self, candidates: Actions) -> None:
        """Accept the candidates, one of each factual, with a large enough probability and plausible rows."""
        rows, valid = self._consequences(candidates, CONFIRMING)
        sure = lower_bound(valid.sum(axis=1), CONFIRMED) >= self.recourse.assurance
        if not sure.any():
            return
        candidates, rows = candidates.take(sure), rows[sure, :JUDGED]
        owner = np.repeat(candidates.owner, JUDGED)
        judged = self.acceptance.plausibility(rows.reshape(owner.size, -1), owner).reshape(-1, JUDGED)
        usual = (judged >= self.acceptance.least).mean(axis=1) >= 0.5
        if usual.any():
            self._take(candidates.take(usual))

    def _take(self, winners: Actions) -> None:
        """Keep winners, with the probability from new draws and a row in the middle of the consequences (step 5)."""
        rows, valid = self._consequences(winners, REPORTING)
        for i, factual in enumerate(winners.owner.tolist()):
            acted, share = winners.acted[i], float(valid[i].mean())
            shown, plausibility = self._shown(rows[i][valid[i]] if share else rows[i], factual)
            owner, own = np.array([factual]), self.acceptance.matrix[[factual]]
            winner = Winners.chosen(owner, shown, self.acceptance.query(shown)[0], plausibility)
            counted = np.where(acted, winners.rows[[i]], own)
            shares = {"p_valid": np.array([share]), "p_valid_se": np.sqrt([share * (1.0 - share) / CONFIRMED])}
            follows = changed_columns(shown, own) & ~acted
            winner = winner.measured(self.problem.features, self.acceptance.matrix, counted)
            self.found.append(replace(winner, incidental=follows, reported=shares))
            self.followed.append((factual, rows[i], acted))
            self.taken[factual].append(acted)

    def _shown(self, rows: Floats, factual: int) -> tuple[Floats, Floats]:
        """Return the row nearest to all others among some, at or above the floor if there is one, and its score."""
        some = rows[:COMPARED]
        scores = self.acceptance.plausibility(some, np.full(len(some), factual))
        if (scores >= self.acceptance.least).any():
            some, scores = some[scores >= self.acceptance.least], scores[scores >= self.acceptance.least]
        n = len(some)
        steps = gower_sum(self.problem.features).sums(np.tile(some, (n, 1)), np.repeat(some, n, axis=0))
        middle = [int(np.argmin(steps.reshape(n, n).sum(axis=1)))]
        return some[middle], scores[middle]

    def _record_reasons(self) -> None:
        """Record why factuals have no recourse, and with which assurance they would have one."""
        for factual in self._waiting().tolist():
            if self.taken[factual]:
                continue
            if factual not in self.best:
                self.reasons[factual] = "no draw proposes an action that reaches the decision; draw more"
                continue
            valid = self._consequences(self.best[factual][1], CONFIRMING)[1]
            share = int(100 * lower_bound(valid.sum(axis=1), CONFIRMED)[0]) / 100
            if share < self.recourse.assurance:
                self.reasons[factual] = (
                    f"no action reaches the decision with probability {self.recourse.assurance:g}; the best that was "
                    f"found does with {share:g}"
                )
            else:
                self.reasons[factual] = "the actions that reach the decision lead below the floor of plausibility"

    def _consequences(self, candidates: Actions, draws: range) -> tuple[Floats, Bools]:
        """Return rows with drawn consequences, (candidate, draw, column), and which of them are valid (steps 2, 3)."""
        n = len(draws)
        owner = np.repeat(candidates.owner, n)
        rows, acted = np.repeat(candidates.rows, n, axis=0), np.repeat(candidates.acted, n, axis=0)
        index = np.tile(np.arange(draws.start, draws.stop, dtype=np.uint64), len(candidates))
        factuals = self.acceptance.matrix[owner]
        rows, acted = self._with_time_passed(rows, acted)
        worlds = self.recourse.worlds
        for place, world in enumerate(worlds):
            some = np.flatnonzero(index % len(worlds) == place)
            keys = self.keys[owner[some]]
            rows[some] = world.follow(rows[some], acted[some], factuals[some], keys, index[some])
        rows = self.acceptance.complete(rows, owner)
        valid = self.acceptance.admits(rows, owner)
        valid[valid] = self.acceptance.query(rows[valid])[1] if valid.any() else False
        return rows.reshape(len(candidates), n, -1), valid.reshape(len(candidates), n)

    def _with_time_passed(self, rows: Floats, acted: Bools) -> tuple[Floats, Bools]:
        """Return rows in which time has passed: actions are taken in parallel, so the longest one counts."""
        moves = np.zeros(rows.shape)
        for action, steps in self.recourse.takes.items():
            for clock, step in steps.items():
                moves[:, clock] = np.maximum(moves[:, clock], np.where(acted[:, action], step, 0.0))
        moves[acted] = 0.0
        return rows + moves, acted | (moves != 0.0)


def read_actions(names: Sequence[Hashable] | None, problem: Problem) -> Ints:
    """Return the columns that may be acted on; raise if one of them cannot be."""
    schema, graph = problem.generator.schema_, problem.generator.graph_
    searched_columns = problem.mutable
    if problem.relations is not None:
        searched_columns = searched_columns[~np.isin(searched_columns, problem.relations.determined)]
    possible = [schema.names[j] for j in searched_columns]
    if names is None:
        named = possible if graph is None else graph.nodes if graph.outcome is None else graph.causes
        names = [name for name in possible if name in named]
    if isinstance(names, str) or not len(names):
        raise InputError(ACTIONS, " is ", Value(names), "; give a list of features that a person can act on.")
    for name in names:
        if name in problem.generator.fixed_:
            raise InputError(ACTIONS, f" names {name!r}, which is fixed; leave it out, or do not fix it.")
        if name not in schema.names:
            raise InputError(ACTIONS, f" names {spell(name)}, which is not a feature; {did_you_mean(name, possible)}")
        if name not in possible:
            raise InputError(ACTIONS, f" names {name!r}, which is computed from other features; name these.")
    pointless = [] if graph is None or graph.outcome is None else [name for name in names if name not in graph.causes]
    if graph is not None and pointless:
        warn(
            ACTIONS,
            f" names {listing(pointless)}, not among the causes of {graph.outcome!r} in the graph: acting on "
            "them changes the model's answer, not the outcome that it predicts. Leave them out, or add the edges.",
        )
    return np.array(sorted({schema.position(name) for name in names}), dtype=np.int64)


def read_durations(takes: Mapping[Hashable, Any], actions: Ints, problem: Problem) -> dict[int, dict[int, float]]:
    """Return by how much the actions move ages and durations, by column; see `MCCE.recourse`."""
    schema = problem.generator.schema_
    found: dict[int, dict[int, float]] = {}
    for name, time_taken in takes.items():
        if name not in schema.names or schema.position(name) not in actions:
            known = listing(schema.names[j] for j in actions)
            raise InputError(TAKES, f" names {spell(name)}, which is not among the actions; these are {known}.")
        steps = time_taken if isinstance(time_taken, Mapping) else _time_steps(name, time_taken, problem)
        moved: dict[int, float] = {}
        for clock, step in steps.items():
            is_clock = clock in schema.names and schema.features[schema.position(clock)].is_numeric
            if not is_clock or not is_number(step):
                takes_steps = "; give a text as '2 years', or steps of numeric columns as "
                raise InputError(entry("takes", name), " is ", Value(time_taken), takes_steps, Value({"age": 2}), ".")
            moved[schema.position(clock)] = float(step)
        found[schema.position(name)] = moved
    return found


def _time_steps(name: Hashable, text: Any, problem: Problem) -> dict[Hashable, float]:
    """Return the steps of ages and durations that may change, in their units, for a time as "2 years"."""
    words = str(text).split()
    if len(words) != 2 or words[1].rstrip("s") not in _YEARS or not words[0].replace(".", "", 1).isdigit():
        raise InputError(
            entry("takes", name), " is ", Value(text), "; give a time as '2 years', '18 months' or '30 days'."
        )
    years = float(words[0]) * _YEARS[words[1].rstrip("s")]
    steps: dict[Hashable, float] = {}
    for j in problem.mutable:
        feature = problem.features[j]
        if feature.is_numeric and feature.name != name:
            steps[feature.name] = years * units_in_a_year(feature.name)
    steps = {clock: step for clock, step in steps.items() if step}
    if not steps:
        raise InputError(
            entry("takes", name),
            " is ",
            Value(text),
            ", but no feature that may change has the name of an age or a duration; give steps by column, as in ",
            Value({"age": 2}),
            ", and do not fix it.",
        )
    return steps


def lower_bound(valid: Ints, n: int) -> Floats:
    """Return the lower confidence bounds of probabilities, from the numbers of valid rows among `n`."""
    return np.asarray(np.where(valid > 0, scipy.special.betaincinv(np.maximum(valid, 1), n - valid + 1, LEVEL), 0.0))


def consequence_table(
    followed: Sequence[tuple[int, Floats, Bools]], factuals: Factuals, schema: Schema
) -> pd.DataFrame:
    """Return the usual consequences of the actions of each winner, one row for each feature that follows.

    A number or date is usually between `low` and `high`, the 10 and 90 per cent quantiles, and `share` of the values
    differ from the factual's. Of levels, `low` and `high` are the most frequent one, and `share` is its share.
    """
    lines = []
    ranks: dict[int, int] = {}
    for factual, rows, acted in sorted(followed, key=itemgetter(0)):  # stable: the winners of a factual stay in order
        own, rank = factuals.matrix[factual], ranks.setdefault(factual, 0) + 1
        ranks[factual] = rank
        for j in np.flatnonzero(changed_columns(rows, np.broadcast_to(own, rows.shape)).any(axis=0) & ~acted):
            feature, values = schema.features[j], rows[:, j]
            known = values[~np.isnan(values)]
            if feature.is_numeric and known.size:
                share = float(np.mean(values != own[j]))
                ends = np.quantile(known, USUAL, method="inverted_cdf")
            else:
                codes, counts = np.unique(values, return_counts=True)
                share, ends = float(counts.max() / values.size), np.repeat(codes[counts.argmax()], 2)
            low, high = pd.Series(feature.decode(ends)).astype(object)
            lines.append((factuals.index[factual], rank, feature.name, low, high, share))
    columns = ["id", "rank", "feature", "low", "high", "share"]
    return pd.DataFrame(lines, columns=columns)
