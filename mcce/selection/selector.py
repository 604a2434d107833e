"""Choosing among candidates: fewest changes, then the smallest Gower distance, then the earlier draw.

The paper (section 2.3) removes the invalid rows first and ranks the rest. Validity is a filter and the order is total,
so the same rows win if the candidates are ranked first and the model is asked best-first:

1. Find the few best distinct candidates of every factual that still lacks counterfactuals.
2. Ask the model about those not asked before, for all factuals at once. Factuals that share a pool share its answers.
3. A factual is done when k of its candidates, in order, are valid; go back to 1 with more candidates for the others.
4. What is not done after 256 candidates is ranked in full, and asked in growing batches to the end.

`exhaustive` is the paper's plain way, kept to check the other: all candidates are asked, then ranked.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from mcce.candidates.pools import Pools
from mcce.selection.measures import scales
from mcce.table import Feature, Floats

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ask = Callable[[Floats], tuple[npt.NDArray[np.generic], Bools]]

ROUNDS = (8, 32, 256)  # candidates known of a factual after each round
_CHUNK = 512


@dataclass(frozen=True)
class Chosen:
    """Winners: for factual i in order of rank, its rows `row` of the pools, and the model's score of each."""

    factual: Ints
    row: Ints
    scores: npt.NDArray[np.generic]
    n_asked: int


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _distances(rows, first, n, factuals, f, columns, scale, plain, changed, distance):
    """L0 and summed Gower distance of n rows; a `plain` column holds numbers with a range, none of them missing."""
    for i in range(n):
        changed[i] = 0.0
        distance[i] = 0.0
    for j in columns:
        x = factuals[f, j]
        if plain[j]:
            for i in range(n):
                d = abs(rows[first + i, j] - x)
                changed[i] += 1.0 if d != 0.0 else 0.0
                distance[i] += d * scale[j]
        else:
            for i in range(n):
                value = rows[first + i, j]
                if value == x or (value != value and x != x):
                    continue
                step = abs(value - x) * scale[j]
                changed[i] += 1.0
                distance[i] += 1.0 if scale[j] == 0.0 or step != step else step


@njit(cache=True, nogil=True, error_model="numpy")
def _best_candidates(
    rows, begin, end, which, factuals, columns, scale, plain, changed, distance, top_changed, top_distance, found,
    n_found,
):  # fmt: skip
    """Step 1: the best distinct candidates of each factual in `which`, in order, as many as `found` has columns."""
    most = found.shape[1]
    for w in range(which.size):
        f = which[w]
        held = 0
        for first in range(begin[f], end[f], changed.size):
            n = min(changed.size, end[f] - first)
            _distances(rows, first, n, factuals, f, columns, scale, plain, changed, distance)
            for i in range(n):
                c, d = changed[i], distance[i]
                place = held
                while place and (
                    c < top_changed[place - 1] or (c == top_changed[place - 1] and d < top_distance[place - 1])
                ):
                    place -= 1
                if place == most:
                    continue
                # a row like this one has the same distances, and stands just before
                twin = place
                same = False
                while twin and not same and c == top_changed[twin - 1] and d == top_distance[twin - 1]:
                    twin -= 1
                    same = True
                    for j in columns:
                        a, b = rows[found[w, twin], j], rows[first + i, j]
                        same &= a == b or (a != a and b != b)
                if same:
                    continue
                held = min(held + 1, most)
                for move in range(held - 1, place, -1):
                    found[w, move] = found[w, move - 1]
                    top_changed[move] = top_changed[move - 1]
                    top_distance[move] = top_distance[move - 1]
                found[w, place] = first + i
                top_changed[place] = c
                top_distance[place] = d
        n_found[w] = held


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
        self.scale = scales(features)

    def select(self, pools: Pools, factuals: Floats, k: int, *, exhaustive: bool = False) -> Chosen:
        """Return the best `k` valid distinct candidates of each factual (fewer where there are fewer)."""
        answers = _Answers(pools.rows, self.ask)
        if exhaustive:
            answers.of(np.arange(pools.rows.shape[0]))
            taken = [self._walk(self._full_order(pools, factuals, f), answers, k) for f in range(factuals.shape[0])]
        else:
            taken = self._best_first(pools, factuals, k, answers)
        factual = np.repeat(np.arange(len(taken)), [len(rows) for rows in taken])
        row = np.concatenate([*taken, np.empty(0, dtype=np.int64)]).astype(np.int64)
        return Chosen(factual, row, answers.scores_of(row), answers.n_asked)

    def _best_first(self, pools: Pools, factuals: Floats, k: int, answers: _Answers) -> list[Ints]:
        taken: list[Ints] = [np.empty(0, dtype=np.int64)] * factuals.shape[0]
        waiting = np.arange(factuals.shape[0])
        plain = self._plain(pools.rows, factuals)
        row_major = np.ascontiguousarray(factuals)
        for most in ROUNDS:
            most += k - 1
            found = np.zeros((waiting.size, most), dtype=np.int64)
            n_found = np.zeros(waiting.size, dtype=np.int64)
            _best_candidates(
                pools.rows, pools.begin, pools.end, waiting, row_major, self.mutable, self.scale, plain,
                np.empty(_CHUNK), np.empty(_CHUNK), np.empty(most), np.empty(most), found, n_found,
            )  # fmt: skip
            known = np.arange(most) < n_found[:, None]
            wanted = np.zeros(found.shape, dtype=bool)
            wanted[known] = answers.of(found[known])
            complete = n_found < most
            done = complete | (wanted.sum(axis=1) >= k)
            for w in np.flatnonzero(done):
                taken[waiting[w]] = found[w][wanted[w]][:k]
            waiting = waiting[~done]
            if waiting.size == 0:
                return taken
        return self._to_the_end(pools, factuals, k, answers, taken, waiting)

    def _to_the_end(
        self, pools: Pools, factuals: Floats, k: int, answers: _Answers, taken: list[Ints], waiting: Ints
    ) -> list[Ints]:
        """Step 4: rank everything for the factuals that are left, and ask in batches that double."""
        orders = {int(f): self._full_order(pools, factuals, int(f)) for f in waiting}
        depth = 2 * (ROUNDS[-1] + k)
        while orders:
            answers.of(np.concatenate([order[:depth] for order in orders.values()]))
            for f, order in list(orders.items()):
                rows = self._walk(order[:depth], answers, k)
                if len(rows) == k or depth >= len(order):
                    taken[f] = rows
                    del orders[f]
            depth *= 2
        return taken

    @staticmethod
    def _walk(order: Ints, answers: _Answers, k: int) -> Ints:
        return order[answers.of(order)][:k]

    def _full_order(self, pools: Pools, factuals: Floats, f: int) -> Ints:
        """All distinct candidates of one factual in order: (L0, Gower, draw)."""
        rows = pools.rows[pools.begin[f] : pools.end[f]]
        changed = np.zeros(rows.shape[0])
        distance = np.zeros(rows.shape[0])
        for j in self.mutable:
            value, x, scale = rows[:, j], factuals[f, j], self.scale[j]
            differs = (value != x) & ~(np.isnan(value) & np.isnan(x))
            step = np.abs(value - x) * scale
            changed += differs
            distance += np.where(differs, np.where((scale == 0) | np.isnan(step), 1.0, step), 0.0)
        order = np.lexsort((distance, changed))
        repeated = pd.DataFrame(rows[order][:, self.mutable]).duplicated().to_numpy()
        return np.asarray(order[~repeated] + pools.begin[f])

    def _plain(self, rows: Floats, factuals: Floats) -> Bools:
        """Say which columns hold numbers with a range, none of them missing."""
        plain = self.scale > 0
        for j in self.mutable:
            plain[j] &= not (np.isnan(rows[:, j].sum()) or np.isnan(factuals[:, j].sum()))
        return plain


class _Answers:
    """The model's answers about the rows of a pool, each asked once."""

    def __init__(self, rows: Floats, ask: Ask) -> None:
        self.rows = rows
        self.ask = ask
        self.state = np.full(rows.shape[0], -1, dtype=np.int8)  # -1 not asked, 0 not wanted, 1 wanted
        self.scores: dict[int, np.generic] = {}
        self.n_asked = 0

    def of(self, which: Ints) -> Bools:
        """Return whether each of these rows has the wanted decision."""
        new = np.unique(which[self.state[which] < 0])
        if new.size:
            scores, wanted = self.ask(self.rows[new])
            self.n_asked += new.size
            self.state[new] = wanted
            self.scores.update(zip(new[wanted].tolist(), scores[wanted]))
        return np.asarray(self.state[which] == 1)

    def scores_of(self, which: Ints) -> npt.NDArray[np.generic]:
        """Return the scores of rows that have the wanted decision."""
        scores = [self.scores[row] for row in which.tolist()]
        return np.array(scores, dtype=type(scores[0]) if scores and isinstance(scores[0], np.generic) else object)
