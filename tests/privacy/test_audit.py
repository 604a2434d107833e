"""The audit flags three broken variants of the private sampler, and not the correct one."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mcce
import mcce.samplers.dp as dp
from mcce.privacy.account import PrivacyAccount
from mcce.privacy.noise import Mechanism
from mcce.samplers.dp import SENSITIVITY, DPSampler, PublicBins, split_scores
from mcce.table import Column, Schema, Table
from tests.privacy.audit import lower_bound

EPSILON = 1.0
ROWS = np.array([1.0, 1.0, 2.0, 6.0])
OUTLIER = 9.0
PUBLIC = {"y": (0.0, 5.0, 10.0)}
PUBLIC_BINS = PublicBins(np.array(PUBLIC["y"]), np.empty(0, dtype=np.int64), False)


FEATURE = Schema.from_data(pd.DataFrame({"y": ROWS})).features[0]


class HalfTheNoise(DPSampler):
    def _budget(self, n_trees):
        account, right = super()._budget(n_trees)
        return account, Half(right.epsilon)


class Half(Mechanism):
    def noise(self, source):
        return Mechanism(epsilon=2 * self.epsilon).noise(source)


class CountsTwice(DPSampler):
    """Two trees, each with the noise of the whole budget."""

    def _budget(self, n_trees):
        return PrivacyAccount(n_trees * Fraction(self.epsilon)), Mechanism(epsilon=Fraction(self.epsilon))


class BoundsOfTheData(DPSampler):
    def fit(self, given, target):
        low, high = float(target.values.min()), float(target.values.max())
        self.bounds = {target.feature.name: (low, (low + high) / 2, high)}
        return super().fit(given, target)


def statistic(sampler, values, seed, **options):
    """Return the released statistic that separates the tables best: the likelihood ratio of the new row's bin.

    For the discrete Laplace distribution it only shows whether a count exceeds its value without the row; differing
    bins are more informative.
    """
    target = Column(FEATURE, values)
    empty = Table((), np.empty((values.size, 0)))
    made = sampler(epsilon=EPSILON, bounds=PUBLIC, max_depth=0, testing_seed=seed, **options).fit(empty, target)
    place = int(made.bins_.place(np.array([OUTLIER]))[0])
    before = int((PUBLIC_BINS.place(ROWS) == PUBLIC_BINS.place(np.array([OUTLIER]))).sum())
    return (made.counts_[:, 0, place] > before).sum() + 1000.0 * (made.bins_.edges[-1] not in (6.0, 10.0))


def audit(sampler, n, **options):
    more = np.append(ROWS, OUTLIER)
    with_row = [statistic(sampler, more, 2 * i, **options) for i in range(n)]
    without = [statistic(sampler, ROWS, 2 * i + 1, **options) for i in range(n)]
    return lower_bound(with_row, without)


def test_audit_recovers_epsilon_of_the_laplace_distribution():
    rng = np.random.default_rng(1)
    q = np.exp(-EPSILON)
    draw = lambda n: rng.geometric(1 - q, n) - rng.geometric(1 - q, n)  # noqa: E731
    assert 0.8 < lower_bound(draw(20_000) + 1, draw(20_000)) <= EPSILON
    assert lower_bound(draw(20_000) + 2, draw(20_000)) > 1.5 * EPSILON


def test_data_dependent_bounds_are_detected():
    assert audit(BoundsOfTheData, 100) > 1.5 * EPSILON


@pytest.mark.nightly
def test_correct_sampler_is_not_rejected():
    assert 0.5 * EPSILON < audit(DPSampler, 1200) <= EPSILON
    assert 0.2 * EPSILON < audit(DPSampler, 1200, n_trees=2) <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "options"), [(HalfTheNoise, {}), (CountsTwice, {"n_trees": 2})])
def test_broken_samplers_are_rejected(broken, options):
    assert audit(broken, 1200, **options) > 1.2 * EPSILON


CROWD = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": [0, 1, 0, 1] * 5, "y": [0, 0, 1, 1] * 5}).astype(bool)
PERSON = pd.DataFrame({"a": [True], "b": [False], "y": [False]})


def chosen(rows, seed):
    """Return whether the split is on `b`, which is more probable with a row for which `a` is uninformative."""
    names = ["a", "b", "y"]
    table = Schema.from_data(CROWD).encode(rows[names])
    sampler = DPSampler(epsilon=AT, levels="schema", max_depth=1, choosing=0.999, testing_seed=seed)
    return int(sampler.fit(table.first(2), table.column(2)).trees_.column[0, 0])


AT = 3.0


def chances(scores, sensitivity):
    p = np.exp(AT * (scores - scores.max()) / (2 * sensitivity))
    return p / p.sum()


@pytest.mark.slow
def test_choices_on_all_small_tables_satisfy_their_epsilon():
    """Every table of up to five rows with two sides and a bin, and every added row: exact probabilities."""
    rows = np.array([[a, b, y] for a in (0, 1) for b in (0, 1) for y in (0, 1)])

    def scores(counts):
        n = np.repeat(rows, counts, axis=0)
        right = np.stack([np.bincount(n[n[:, j] == 1, 2], minlength=2) for j in (0, 1)])
        return split_scores(right, np.bincount(n[:, 2], minlength=2)).astype(float)

    worst = {SENSITIVITY: 0.0, 0.25: 0.0}
    for combination in itertools.combinations_with_replacement(range(8), 5):
        counts = np.bincount(combination, minlength=8)
        before = scores(counts)
        for k in range(8):
            after = scores(counts + (np.arange(8) == k))
            for sensitivity in worst:
                ratio = np.abs(np.log(chances(after, sensitivity) / chances(before, sensitivity))).max()
                worst[sensitivity] = max(worst[sensitivity], float(ratio))
    assert worst[SENSITIVITY] <= AT
    assert worst[0.25] > AT  # too small a sensitivity is detected


PEOPLE = np.array(list(itertools.product([False, True], repeat=4)))  # of each kind: a, b, c and the target
OF_PEOPLE = Schema.from_data(pd.DataFrame(PEOPLE, columns=["a", "b", "c", "y"]))
BUDGET = 1.0  # for the choices of a tree: half of epsilon


def rare(n=1700):
    """Return a table for which one row changes scores by nearly the maximum.

    One row in twenty has the rare value of the target. These rows, and no others, have `a`; one in twenty of the others
    has `b`; `c` is uninformative. A row with the rare value, `a` and `b` raises the score of `a` and lowers `b`'s.
    """
    counts = np.zeros(16, dtype=int)
    for kind, (a, b, _, y) in enumerate(PEOPLE):
        share = (0.05 if y else 0.95 * (0.05 if b else 0.95)) / 2
        counts[kind] = 0 if a != y or (b and y) else round(share * n)
    return counts


def lumpy(seed):
    rng = np.random.default_rng(seed)
    return rng.multinomial(rng.integers(0, 30), rng.dirichlet(np.full(16, 0.15)))


class EachLevelInFull(DPSampler):
    """The budget for choosing is spent again on each level."""

    def _shares_of_the_budget(self, mechanism, givens):
        counting, choosing, depth = super()._shares_of_the_budget(mechanism, givens)
        return counting, choosing * depth, depth


def tree_of(people, turns, monkeypatch, cls):
    """Return the exact log probability of a tree of these choices, and its counts without noise."""
    log_p, left = [], list(turns)

    def choose(scores, epsilon, sensitivity, source):
        weights, taken = float(epsilon) * np.array(scores) / (2 * sensitivity), left.pop(0)
        log_p.append(weights[taken] - np.logaddexp.reduce(weights))
        return taken

    monkeypatch.setattr(dp, "choose", choose)
    monkeypatch.setattr(Mechanism, "noise", lambda self, source: lambda: 0)
    table = OF_PEOPLE.encode(pd.DataFrame(np.repeat(PEOPLE, people, axis=0), columns=OF_PEOPLE.names))
    sampler = cls(epsilon=2 * BUDGET, levels="schema", max_depth=2, choosing=0.5, testing_seed=1)
    counts = sampler.fit(table.first(3), table.column(3)).counts_
    return sum(log_p), counts


def worst_ratio(before, monkeypatch, cls=DPSampler, added=range(16)):
    """Return the largest log ratio of the probabilities of a tree, over all trees and added rows.

    Given the tree, one count differs by 1, which costs exactly the other half of epsilon.
    """
    worst, trees = 0.0, list(itertools.product(range(3), range(2), range(2)))
    without = [tree_of(before, turns, monkeypatch, cls) for turns in trees]
    assert sum(np.exp(log_p) for log_p, _ in without) == pytest.approx(1.0)
    for kind in added:
        more = before + (np.arange(16) == kind)
        for turns, (log_p, counts) in zip(trees, without, strict=True):
            now, counts_now = tree_of(more, turns, monkeypatch, cls)
            assert np.abs(counts_now - counts).sum() == 1
            worst = max(worst, abs(now - log_p))
    return worst


@pytest.mark.nightly
def test_whole_trees_satisfy_their_epsilon(monkeypatch):
    """Exact probabilities of all trees of two levels: costs of levels add up, costs of nodes of a level do not."""
    assert 0.6 * BUDGET < worst_ratio(rare(), monkeypatch) <= BUDGET
    for seed in range(4):
        assert worst_ratio(lumpy(seed), monkeypatch) <= BUDGET
    person = [15]  # the rare value, a, b and c
    assert worst_ratio(rare(), monkeypatch, EachLevelInFull, person) > BUDGET
    monkeypatch.setattr(dp, "SENSITIVITY", 1)
    assert worst_ratio(rare(), monkeypatch, added=person) > BUDGET


@pytest.mark.nightly
def test_chosen_splits_are_not_rejected():
    n = 1000
    more = pd.concat([CROWD, PERSON], ignore_index=True)
    assert lower_bound([chosen(more, 2 * i) for i in range(n)], [chosen(CROWD, 2 * i + 1) for i in range(n)]) <= AT


@pytest.mark.slow
def test_chain_is_not_rejected():
    """Fixed value, decision and two features share one budget: the two features have half of it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(12) < 0.5, "b": rng.random(12), "c": rng.random(12)})
    more = pd.concat([X, pd.DataFrame({"a": [True], "b": [0.9], "c": [0.1]})], ignore_index=True)
    whole = 8.0

    def fitted(rows, epsilon, seed):
        stated = {"bounds": {"b": (0, 1), "c": (0, 1)}, "max_depth": 1, "n_bins": 2, "n_synthetic": 1}
        private = mcce.Privacy(epsilon=epsilon, **stated, testing_seed=seed)
        chain = mcce.ChainModel(sampler=private, fixed=["a"], random_state=1, n_jobs=1)
        return chain.fit(rows, rows["b"].to_numpy() > 0.5, progress=False)

    def of_the_row(chain):
        ordered = chain._layout.order(chain.schema_.encode(more.tail(1)).matrix, np.array([True]))
        for k, sampler in enumerate(chain.samplers_.values(), chain._layout.n_given):
            leaf = sampler.trees_.leaves(chain._layout.given(ordered, k))[0, 0]
            yield sampler.counts_[0, leaf, sampler.bins_.place(ordered.matrix[:, k])[0]]

    before = list(of_the_row(fitted(X, 10**6, 1)))
    assert list(of_the_row(fitted(more, 10**6, 1))) == [n + 1 for n in before]

    def statistic(rows, seed):
        return sum(now > n for now, n in zip(of_the_row(fitted(rows, whole, seed)), before, strict=True))

    n = 250
    found = lower_bound([statistic(more, 2 * i) for i in range(n)], [statistic(X, 2 * i + 1) for i in range(n)])
    assert 0.25 * whole / 2 < found <= whole / 2
