"""Principal reasons: the features that mattered for a refusal, and whether a plausible change of them would repair it.

All probabilities are those of the chain given the person's fixed values, whatever the decision
(`mcce.generators.conditioning`). Players are the features that may change; columns that relations determine go with
the columns that they are computed from.

1. v(S) is the probability that the wanted decision is reached if the features in S have the person's values and the
   others are drawn given these: v(S) = P(f(X) in c | X_S = x_S). This is the value function of conditional Shapley
   values (Aas, Jullum and Løland 2021, "Explaining individual predictions when features are dependent", as in R's
   shapr), with the decision as the explained quantity.
2. The Shapley value of a feature, with the sign turned, is how much the person's value of it lowers that probability.
   All of them sum to v(nothing) - v(all): for a refused person, the probability with which people with the same fixed
   values get the decision. Up to 12 players all 2^p sets are evaluated. With more, `N_ORDERS` random orders of the
   players and their reverses are evaluated (Castro, Gómez and Tejada 2009).
3. The share of a feature is that of its plausible values, given all else of the person, with which the decision is
   reached, by p(x_j | rest): of all levels, or of drawn numbers, those that constraints and relations allow and that
   are at or above the floor, if there is one (`mcce.explain.acceptance`). Without demands it is v(all but j).
4. A feature is repairable alone if its share is at least `LEAST_SHARE`; together with another one if for as many
   of the values of the two, given all else, the row is plausible and reaches the decision, and no longer does so with
   the feature's own value.
5. Conditional Shapley values also credit features that the model does not read but that are related to others. A
   feature has no effect if the person's value of it changes the decision for none of the rows drawn given the fixed
   values alone.
6. Sets whose effective sample size is below `ENOUGH` are drawn again with four times as many draws, twice at most.

The standard error of a Shapley value is the Monte Carlo one, by the delta method for each set; of random orders, plus
that of the mean over orders. It leaves the bias of weighted means and errors of the fitted conditionals aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.explain.acceptance import Acceptance
from mcce.explain.problem import Problem, fixed_columns
from mcce.generators.conditioning import MIXED, RowConditionals
from mcce.model.queries import EncodedModel
from mcce.report.principal import ALONE, NO_EFFECT, NONE, TOGETHER
from mcce.rng import RowStreams, derive_key, hash_rows

MOST_EXACT = 12  # most players with exact values; with more, sets are sampled
N_ORDERS = 32  # random orders of more players, each evaluated with its reverse
ENOUGH = 50.0  # least effective number of draws of a set
LEAST_SHARE = 0.01  # least share of plausible values for a feature to be repairable
BLOCK_ROWS = 32_768  # rows drawn and queried at a time


@dataclass(frozen=True)
class WeightedShare:
    """A weighted mean: its value, its variance, and the effective number of draws."""

    value: float
    variance: float
    effective: float

    @classmethod
    def of(cls, reached: Bools, log_weight: Floats) -> WeightedShare:
        """Return the weighted share of rows that reach the decision; 0 if no row has any weight."""
        if not reached.size or not np.isfinite(log_weight.max()):
            return cls(0.0, 0.0, 0.0)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        value = float(weight @ reached)
        return cls(value, float(weight**2 @ (reached - value) ** 2), float(1.0 / (weight @ weight)))


def reasons_for(problem: Problem, row: Floats, ids: pd.Index[Any], n_draws: int) -> pd.DataFrame:
    """Return share, Shapley value and repair of each feature of a refused factual, the largest Shapley value first.

    `row` is encoded, and `ids` names it. Fixed features, and columns that relations determine, are left out.
    """
    values, acceptance = CoalitionValues(problem, row, n_draws), Acceptance(problem, row[None], ids)
    names = problem.generator.schema_.names
    shares = [_share(values, acceptance, k) for k in range(values.players.size)]
    shapley, errors = shapley_values(values)
    repairs = np.where(_have_effect(values), NONE, NO_EFFECT).astype(object)
    repairs[_repaired_with_another(values, acceptance)] = TOGETHER
    repairs[[share.value >= LEAST_SHARE for share in shares]] = ALONE
    table = pd.DataFrame(
        {
            "share": [each.value for each in shares],
            "effective_draws": [each.effective for each in shares],
            "shapley": shapley,
            "standard_error": errors,
            "repair": repairs,
        },
        index=pd.Index([names[j] for j in values.players], dtype=object, name="feature", tupleize_cols=False),
    )
    return table.sort_values("shapley", ascending=False, kind="stable")


@dataclass(frozen=True)
class Varied:
    """A factual with other values of one feature, and their log weights; `is_exact` if these are all its values."""

    rows: Floats
    log_weight: Floats
    is_exact: bool

    def take(self, which: Bools) -> Varied:
        """Return some of the values."""
        return Varied(self.rows[which], self.log_weight[which], self.is_exact)

    def estimate(self, reached: Bools) -> WeightedShare:
        """Return the share of the values that reach the decision."""
        found = WeightedShare.of(reached, self.log_weight)
        return replace(found, variance=0.0, effective=np.inf) if self.is_exact else found


class CoalitionValues:
    """v(S) of one factual (step 1), for sets of players given as rows of a boolean matrix."""

    def __init__(self, problem: Problem, row: Floats, n_draws: int) -> None:
        relations = problem.relations
        determined = [] if relations is None else relations.determined
        stays = {*fixed_columns(problem.generator), *([] if relations is None else relations.stays)}
        self.problem, self.row, self.n_draws = problem, row, n_draws
        self.players: Ints = np.setdiff1d(np.arange(row.size), [*stays, *determined])
        self._always = np.array(sorted(stays), dtype=np.int64)
        self._conditionals: RowConditionals = problem.generator.conditionals_around(row, determined)
        self._encoded_model = EncodedModel(problem.decision, problem.generator.schema_)
        self._varied: dict[int, Varied] = {}

    def kept(self, sets: Bools) -> Bools:
        """Return the columns that are kept: those of the players, and those that relations compute from kept ones."""
        kept = np.zeros((sets.shape[0], self.row.size), dtype=bool)
        kept[:, self.players] = sets
        kept[:, self._always] = True
        if self.problem.relations is not None:
            for column, relation in self.problem.relations.computed:
                kept[:, column] = kept[:, [j for j in relation.columns if j != column]].all(axis=1)
        return kept

    def draw(self, sets: Bools, n: int) -> tuple[Floats, Floats]:
        """Draw rows given the players of each set: by set and draw, with computed columns, and their log weights."""
        kept = self.kept(sets)
        key = np.uint64(derive_key("reasons", int(hash_rows(self.row[None])[0])))
        rows, log_weight = self._conditionals.draw(kept, hash_rows(kept.astype(np.float64)) ^ key, n)
        return self.complete(rows.reshape(-1, self.row.size)).reshape(rows.shape), log_weight

    def vary(self, player: int) -> Varied:
        """Return the factual with other values of one player, weighted by their density given all else."""
        if player not in self._varied:
            column = int(self.players[player])
            feature = self.problem.features[column]
            drawn = self.unconditional
            values = drawn[:, column] if feature.is_numeric else np.arange(float(feature.n_levels))
            values = values[~np.isnan(values)]
            rows = np.repeat(self.row[None], values.size, axis=0)
            rows[:, column] = values
            rows = self.complete(rows)
            log_weight = self._conditionals.log_density(rows)
            if feature.is_numeric:
                distinct, places = np.unique(values, return_inverse=True)
                log_weight -= self._conditionals.log_mixture(column, distinct, drawn[:MIXED])[places]
            self._varied[player] = Varied(rows, log_weight, is_exact=not feature.is_numeric)
        return self._varied[player]

    @cached_property
    def unconditional(self) -> Floats:
        """Rows drawn given the fixed values alone."""
        rows: Floats = self.draw(np.zeros((1, self.players.size), dtype=bool), self.n_draws)[0][0]
        return rows

    def reached(self, rows: Floats) -> Bools:
        """Return which rows have the wanted decision."""
        return self._encoded_model.predict_encoded(rows)[1]

    def complete(self, rows: Floats) -> Floats:
        """Return rows with the columns that relations determine computed."""
        relations = self.problem.relations
        return rows if relations is None else relations.complete(rows, np.broadcast_to(self.row, rows.shape))

    def estimate(self, sets: Bools) -> list[WeightedShare]:
        """Return v of each set, with more draws for sets of few or nearly all players and for uneven weights."""
        found: dict[int, WeightedShare] = {}
        size = sets.sum(axis=1)
        of_one = np.flatnonzero(size == self.players.size - 1)
        for i in of_one.tolist():
            varied = self.vary(int(np.flatnonzero(~sets[i])[0]))
            found[i] = varied.estimate(self.reached(varied.rows))
        is_edge = (size <= 1) | (size == self.players.size)  # these sets have the largest coefficients
        for which, n in ((is_edge, self.n_draws), (~is_edge, max(self.n_draws // 4, 1))):
            left = np.setdiff1d(np.flatnonzero(which), of_one)
            for more in (1, 4, 16):
                found |= self._estimate(sets, left, n * more)
                left = np.array([i for i in left if found[i].effective < ENOUGH], dtype=np.int64)
        return [found[i] for i in range(len(sets))]

    def _estimate(self, sets: Bools, which: Ints, n: int) -> dict[int, WeightedShare]:
        found: dict[int, WeightedShare] = {}
        together = max(BLOCK_ROWS // n, 1)
        for begin in range(0, which.size, together):
            some = which[begin : begin + together]
            rows, log_weight = self.draw(sets[some], n)
            reached = self.reached(rows.reshape(-1, self.row.size)).reshape(log_weight.shape)
            found |= {int(i): WeightedShare.of(*each) for i, *each in zip(some, reached, log_weight)}
        return found


def _plausible(acceptance: Acceptance, rows: Floats) -> Bools:
    """Return which rows may be returned for the factual, apart from the decision of the model."""
    owner = np.zeros(rows.shape[0], dtype=np.int64)
    allowed = acceptance.admits(rows, owner) & acceptance.within_bounds(rows, owner)
    if acceptance.problem.plausibility is not None and allowed.any():
        allowed[allowed] = acceptance.plausibility(rows[allowed], owner[allowed]) >= acceptance.least
    return allowed


def _reached(acceptance: Acceptance, rows: Floats) -> Bools:
    return acceptance.query(rows)[1] if len(rows) else np.zeros(0, dtype=bool)


def _share(values: CoalitionValues, acceptance: Acceptance, player: int) -> WeightedShare:
    """Return the share of the plausible values of one player, given all else, that reach the decision (step 3)."""
    varied = values.vary(player)
    allowed = _plausible(acceptance, varied.rows)
    return varied.take(allowed).estimate(_reached(acceptance, varied.rows[allowed]))


def _repaired_with_another(values: CoalitionValues, acceptance: Acceptance) -> Bools:
    """Return which players are repairable together with another one (step 4)."""
    n_players, n = values.players.size, max(values.n_draws // 4, 1)
    pairs = np.array(list(combinations(range(n_players), 2)), dtype=np.int64).reshape(-1, 2)
    others = np.ones((len(pairs), n_players), dtype=bool)
    np.put_along_axis(others, pairs, False, axis=1)
    repaired = np.zeros(n_players, dtype=bool)
    together = max(BLOCK_ROWS // n, 1)
    for begin in range(0, len(pairs), together):
        some = slice(begin, begin + together)
        drawn, log_weight = values.draw(others[some], n)
        rows = drawn.reshape(-1, values.row.size)
        reached = np.flatnonzero(_reached(acceptance, rows))
        reached = reached[_plausible(acceptance, rows[reached])]
        for side in (0, 1):
            columns = values.players[pairs[some, side]][reached // n]
            own = acceptance.with_own(rows[reached], np.zeros(reached.size, dtype=np.int64), columns)
            needed = np.zeros(len(rows), dtype=bool)
            needed[reached] = ~_reached(acceptance, own)
            shares = [WeightedShare.of(*each).value for each in zip(needed.reshape(log_weight.shape), log_weight)]
            np.logical_or.at(repaired, pairs[some, side], np.array(shares) >= LEAST_SHARE)
    return repaired


def _have_effect(values: CoalitionValues) -> Bools:
    """Return which players change the decision of a drawn row by the person's value (step 5)."""
    reached, found = values.reached(values.unconditional), np.zeros(values.players.size, dtype=bool)
    for k, column in enumerate(values.players):
        rows = values.unconditional.copy()
        rows[:, column] = values.row[column]
        found[k] = (values.reached(values.complete(rows)) != reached).any()
    return found


def shapley_values(values: CoalitionValues) -> tuple[Floats, Floats]:
    """Return by how much each player lowers the probability of the decision, and the standard errors (step 2)."""
    n_players = values.players.size
    if n_players <= MOST_EXACT:
        sets = (np.arange(2**n_players)[:, None] >> np.arange(n_players) & 1).astype(bool)
        coefficients, spread = exact_coefficients(sets), 0.0
        estimates = values.estimate(sets)
        v = np.array([each.value for each in estimates])
    else:
        orders = random_orders(n_players, derive_key(values.problem.generator.seed_, "orders"))
        sets, places = sets_before(orders)
        estimates = values.estimate(sets)
        v = np.array([each.value for each in estimates])
        steps = v[places[:, :-1]] - v[places[:, 1:]]
        by_player = np.empty(orders.shape)
        np.put_along_axis(by_player, orders, steps, axis=1)
        by_pair = by_player.reshape(-1, 2, n_players).mean(axis=1)
        spread = by_pair.var(axis=0, ddof=1) / len(by_pair)
        coefficients = np.zeros((n_players, len(sets)))
        for order, at in zip(orders, places):
            np.add.at(coefficients, (order, at[:-1]), 1.0 / len(orders))
            np.add.at(coefficients, (order, at[1:]), -1.0 / len(orders))
    variance = coefficients**2 @ np.array([each.variance for each in estimates])
    return coefficients @ v, np.sqrt(variance + spread)


def exact_coefficients(sets: Bools) -> Floats:
    """Return by player and set the coefficient of v(S) in the Shapley value with reversed sign.

    `sets` are all sets of players.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.explain.principal import exact_coefficients
    >>> exact_coefficients(np.array([[False, False], [True, False], [False, True], [True, True]]))[0].tolist()
    [0.5, -0.5, 0.5, -0.5]
    """
    n = sets.shape[1]
    size = sets.sum(axis=1)
    without = np.array([1.0 / (n * comb(n - 1, int(s))) if s < n else 0.0 for s in size])
    having = np.array([1.0 / (n * comb(n - 1, int(s) - 1)) if s else 0.0 for s in size])
    return np.where(sets.T, -having, without)


def random_orders(n_players: int, seed: int) -> Ints:
    """Return random orders of the players, each followed by its reverse."""
    uniform = RowStreams.from_seed(seed, N_ORDERS * n_players).uniform()
    orders = np.argsort(uniform.reshape(N_ORDERS, n_players), axis=1)
    return np.stack([orders, orders[:, ::-1]], axis=1).reshape(-1, n_players)


def sets_before(orders: Iterable[Ints]) -> tuple[Bools, Ints]:
    """Return the distinct sets of the first players of orders, and for each order the places of its sets."""
    first = np.array([[np.isin(np.arange(len(order)), order[:k]) for k in range(len(order) + 1)] for order in orders])
    sets, places = np.unique(first.reshape(-1, first.shape[2]), axis=0, return_inverse=True)
    return sets, places.reshape(first.shape[:2])
