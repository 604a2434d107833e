"""Choosing among candidates: by default fewest changes, then the smallest Gower distance, then the earlier draw.

The paper (section 2.3) removes the invalid rows first and ranks the rest. Validity is a filter and the order is total,
so the same rows win if the candidates are ranked first (`mcce.selection.ranking`) and the model is asked best-first:

1. Find the few best distinct candidates of every factual that still lacks counterfactuals.
2. Ask the model about those not asked before, for all factuals at once. Factuals that share a pool share its answers.
3. A factual is done when k of its candidates, in order, are valid; go back to 1 with more candidates for the others.
4. What is not done after 256 candidates is ranked in full, and asked in growing batches to the end.

`exhaustive` is the paper's plain way, kept to check the other: all candidates are asked, then ranked. It is also the
only way where the order itself depends on the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.arrays import Bools, Floats, Ints
from mcce.selection.candidates import Candidates
from mcce.selection.ordering import DEFAULT, Ordering, resolve_measures
from mcce.selection.ranking import Ranking
from mcce.table import Feature

Ask = Callable[[Floats], tuple[npt.NDArray[np.generic], Bools]]
Admit = Callable[[Ints], Bools]
Allow = Callable[[Ints, Ints], Bools]

ROUNDS = (8, 32, 256)  # candidates known of a factual after each round


@dataclass(frozen=True)
class Chosen:
    """Winners: for factual i in order of rank, its rows `row` of the pools, and the model's score of each."""

    factual: Ints
    row: Ints
    scores: npt.NDArray[np.generic]
    n_asked: int


class Selector:
    """Chooses the best `k` valid candidates of each factual.

    Parameters
    ----------
    features : the columns of factuals and pools.
    mutable : positions of the columns that candidates may change.
    ask : function that returns (scores, wanted) for encoded rows.
    """

    def __init__(self, features: tuple[Feature, ...], mutable: Ints, ask: Ask) -> None:
        self.features = features
        self.mutable = mutable
        self.ask = ask
        self.ordering = resolve_measures(DEFAULT, features)

    def select(
        self,
        pools: Candidates,
        factuals: Floats,
        k: int,
        *,
        exhaustive: bool = False,
        ordering: Ordering | None = None,
        max_changes: npt.ArrayLike | None = None,
        max_gower: npt.ArrayLike | None = None,
        admit: Admit | None = None,
        allow: Allow | None = None,
    ) -> Chosen:
        """Return the best `k` valid distinct candidates of each factual (fewer where there are fewer).

        Parameters
        ----------
        pools, factuals : candidates, and the encoded rows that they are candidates of.
        k : how many to choose.
        exhaustive : whether the model is asked about every candidate; the answer is the same.
        ordering : what candidates are compared by; None for (L0, Gower).
        max_changes, max_gower : bounds on L0 and on the Gower distance, one number or one for each factual. What is
            beyond is not asked about.
        admit : function that says which of some rows of the candidates may be chosen, before the model is asked.
        allow : the same, of rows each for a factual, whose position is its second argument.
        """
        ordering = ordering or self.ordering
        k = min(k, int((pools.end - pools.begin).max(initial=1)))  # memory is laid out for k rows
        ranking = Ranking(ordering, self.features, self.mutable, pools, factuals, max_changes, max_gower)
        answers = _Answers(pools.rows, self.ask, admit, allow)
        if exhaustive or ordering.cost == "model":
            answers.of(np.arange(pools.rows.shape[0]))
            taken = [_walk(ranking.full(f), f, answers, k) for f in range(factuals.shape[0])]
        else:
            taken = _best_first(ranking, factuals.shape[0], k, answers)
        factual = np.repeat(np.arange(len(taken)), [len(rows) for rows in taken])
        row = np.concatenate([*taken, np.empty(0, dtype=np.int64)]).astype(np.int64)
        return Chosen(factual, row, answers.scores_of(row), answers.n_asked)


def _best_first(ranking: Ranking, n_factuals: int, k: int, answers: _Answers) -> list[Ints]:
    taken: list[Ints] = [np.empty(0, dtype=np.int64)] * n_factuals
    waiting = np.arange(n_factuals)
    for most in ROUNDS:
        found, n_found = ranking.first(waiting, most + k - 1)
        known = np.arange(found.shape[1]) < n_found[:, None]
        known[known] = answers.allows(found[known], np.repeat(waiting, n_found))
        wanted = np.zeros(found.shape, dtype=bool)
        wanted[known] = answers.of(found[known])
        complete = n_found < found.shape[1]
        done = complete | (wanted.sum(axis=1) >= k)
        for w in np.flatnonzero(done):
            taken[waiting[w]] = found[w][wanted[w]][:k]
        waiting = waiting[~done]
        if waiting.size == 0:
            return taken
    return _to_the_end(ranking, k, answers, taken, waiting)


def _to_the_end(ranking: Ranking, k: int, answers: _Answers, taken: list[Ints], waiting: Ints) -> list[Ints]:
    """Step 4: rank everything for the factuals that are left, and ask in batches that grow by half."""
    orders = {int(f): answers.allowed(ranking.full(int(f)), int(f)) for f in waiting}
    depth = ROUNDS[-1] + k + ROUNDS[-1] // 4
    while orders:
        answers.of(np.concatenate([order[:depth] for order in orders.values()]))
        for f, order in list(orders.items()):
            rows = order[:depth][answers.known(order[:depth])][:k]
            if len(rows) == k or depth >= len(order):
                taken[f] = rows
                del orders[f]
        depth += depth // 2
    return taken


def _walk(order: Ints, f: int, answers: _Answers, k: int) -> Ints:
    order = answers.allowed(order, f)
    return order[answers.of(order)][:k]


class _Answers:
    """The model's answers about the rows of a pool, each asked once."""

    def __init__(self, rows: Floats, ask: Ask, admit: Admit | None, allow: Allow | None) -> None:
        self.rows = rows
        self.ask = ask
        self.admit = admit
        self.allow = allow
        self.state = np.full(rows.shape[0], -1, dtype=np.int8)  # -1 not asked, 0 not wanted, 1 wanted
        self.scores: dict[int, np.generic] = {}
        self.n_asked = 0

    def of(self, which: Ints) -> Bools:
        """Return whether each of these rows has the wanted decision."""
        new = np.unique(which[self.state[which] < 0])
        if new.size and self.admit is not None:
            self.state[new] = 0
            new = new[self.admit(new)]
        if new.size:
            scores, wanted = self.ask(self.rows[new])
            self.n_asked += new.size
            self.state[new] = wanted
            self.scores.update(zip(new[wanted].tolist(), scores[wanted]))
        return self.known(which)

    def allows(self, which: Ints, factuals: Ints) -> Bools:
        """Return whether each of these rows may be chosen for the factual at the same place."""
        return np.ones(which.size, dtype=bool) if self.allow is None else self.allow(which, factuals)

    def allowed(self, which: Ints, f: int) -> Ints:
        """Return those of some rows that may be chosen for one factual."""
        return which[self.allows(which, np.full(which.size, f))]

    def known(self, which: Ints) -> Bools:
        """Return whether each of these rows, asked about before, has the wanted decision."""
        return np.asarray(self.state[which] == 1)

    def scores_of(self, which: Ints) -> npt.NDArray[np.generic]:
        """Return the scores of rows that have the wanted decision."""
        scores = [self.scores[row] for row in which.tolist()]
        return np.array(scores, dtype=type(scores[0]) if scores and isinstance(scores[0], np.generic) else object)
