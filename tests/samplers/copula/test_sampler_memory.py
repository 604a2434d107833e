from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import ChainModel, GaussianCopulaSampler
from mcce.rng import RowStreams
from mcce.samplers.copula.kernels import start_rows
from mcce.table import Schema, Table

LEVEL = 1e-4
N = 20_000
# of latents of variance 1; the third to fifth are utilities, which are uncorrelated among themselves
LOADINGS = np.array([[0.8, -0.5, 0.7, 0.0, 0.0, 0.3], [0.0, 0.6, 0.0, 0.0, 0.0, 0.7]])


def simulate(n, seed):
    """Return a number with many zeros, two levels, three unordered and four ordered ones, driven by two factors."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2)) @ LOADINGS + rng.normal(size=(n, 6)) * np.sqrt(1.0 - (LOADINGS**2).sum(axis=0))
    return pd.DataFrame(
        {
            "gain": np.maximum(z[:, 0], 0.5),
            "smoker": np.where(z[:, 1] > 0.7, "yes", "no"),
            "drink": np.array(["tea", "beer", "milk"])[z[:, 2:5].argmax(axis=1)],
            "grade": pd.Categorical(np.digitize(z[:, 5], [-1.0, 0.0, 1.5]), ordered=True),
        }
    )


@pytest.fixture(scope="module")
def training():
    frame = simulate(5000, 1)
    return Schema.from_data(frame).encode(frame)


@pytest.fixture(scope="module")
def samplers(training):
    return [GaussianCopulaSampler().fit(training.first(k), training.column(k)) for k in range(1, 4)]


def draw_chain(samplers, start, features, seed, *, hand_on, rows=None, between=None):
    """Draw the columns after the first one as a chain does: one table per step over one matrix."""
    rows = np.arange(start.size) if rows is None else rows
    matrix = np.empty((rows.size, len(features)), order="F")
    matrix[:, 0] = start[rows]
    carried = None
    for k, sampler in enumerate(samplers, 1):
        streams = RowStreams.from_seed(1000 * seed + k, start.size).take(rows)
        matrix[:, k], left = sampler.sample_carrying(Table(features, matrix).first(k), streams, carried)
        carried = left if hand_on else None
        if between is not None:
            between(matrix, k, rows)
    return matrix


def same_tables(a, b):
    """Return the smallest p-value of chi-square tests for all pairs of columns, times their number.

    Numbers are cut at their quartiles.
    """
    cells = []
    for k in range(a.shape[1]):
        values = np.unique(a[:, k])
        edges = np.unique(np.quantile(a[:, k], [0.25, 0.5, 0.75])) if values.size > 10 else values[1:]
        cells.append([np.searchsorted(edges, part[:, k], side="right") for part in (a, b)])
    found = []
    for i in range(len(cells)):
        for j in range(i):
            joint = [cells[i][part] * 100 + cells[j][part] for part in range(2)]
            seen = np.union1d(*joint)
            counts = np.array([[(part == cell).sum() for cell in seen] for part in joint])
            found.append(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 10]).pvalue)
    return min(found) * len(found)


@pytest.mark.slow
def test_reused_and_redrawn_latents_have_the_same_distribution(training, samplers):
    start = training.matrix[np.arange(N) % training.n_rows, 0]
    taken, anew = (draw_chain(samplers, start, training.features, 1 + h, hand_on=bool(h)) for h in (1, 0))
    assert same_tables(taken, anew) > LEVEL


@pytest.mark.slow
def test_chain_from_one_row_follows_similar_training_rows(training, samplers):
    """Given the zeros of the first column, the rest is as in a large sample of the process."""
    frame = simulate(400_000, 2)
    like = Schema.from_data(frame).encode(frame).matrix
    zero = like[:, 0].min()
    like = like[like[:, 0] == zero][:, 1:]
    drawn = draw_chain(samplers, np.full(N, zero), training.features, 3, hand_on=True)[:, 1:]
    for k in range(3):
        shares = [np.bincount(part[:, k].astype(int), minlength=4) / len(part) for part in (drawn, like)]
        np.testing.assert_allclose(*shares, atol=0.03)  # the fit, on 5000 rows, has an error too


def test_latents_are_drawn_once_per_block(training, samplers, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "mcce.samplers.copula.conditional.start_rows", lambda *args: calls.append(1) or start_rows(*args)
    )
    start = training.matrix[:50, 0]
    draw_chain(samplers, start, training.features, 1, hand_on=True)
    assert len(calls) == 1
    draw_chain(samplers, start, training.features, 1, hand_on=False)
    assert len(calls) == 4


def test_row_depends_only_on_its_own_streams(training, samplers):
    start = training.matrix[:600, 0]
    whole = draw_chain(samplers, start, training.features, 1, hand_on=True)
    rows = np.arange(600)[::-7]
    some = draw_chain(samplers, start, training.features, 1, hand_on=True, rows=rows)
    np.testing.assert_array_equal(some, whole[rows])


@pytest.mark.slow
def test_rows_with_replaced_values_are_redrawn(training, samplers):
    """Every third row gets another smoker value than was drawn: later columns use it, and other rows do not change."""
    start = np.full(N, training.matrix[:, 0].min())
    third = np.arange(N) % 3 == 0

    def replace(matrix, k, rows):
        if k == 1:
            matrix[third[rows], 1] = 1.0

    features = training.features
    taken, anew = (draw_chain(samplers, start, features, 4, hand_on=h, between=replace) for h in (True, False))
    assert same_tables(taken[third][:, 2:], anew[third][:, 2:]) > LEVEL
    untouched = draw_chain(samplers, start, features, 4, hand_on=True)
    np.testing.assert_array_equal(taken[~third], untouched[~third])
    some = np.flatnonzero(third)[:100]
    alone = draw_chain(samplers, start, features, 4, hand_on=True, rows=some, between=replace)
    np.testing.assert_array_equal(alone, taken[some])


def test_other_givens_do_not_reuse_latents(training, samplers):
    """A conditional on fewer columns must not depend on the others through their latents."""
    fewer = training.select([0, 2])
    sampler = GaussianCopulaSampler().fit(fewer, training.column(3))
    matrix = training.matrix[:500].copy(order="F")
    table = Table(training.features, matrix)
    matrix[:, 1], carried = samplers[0].sample_carrying(table.first(1), RowStreams.from_seed(1, 500), None)
    matrix[:, 2], carried = samplers[1].sample_carrying(table.first(2), RowStreams.from_seed(2, 500), carried)
    drawn, _ = sampler.sample_carrying(table.select([0, 2]), RowStreams.from_seed(3, 500), carried)
    alone = sampler.sample(Table(training.features, matrix).select([0, 2]), RowStreams.from_seed(3, 500))
    np.testing.assert_array_equal(drawn, alone)


def test_latents_of_another_class_are_not_reused(training, samplers):
    table = Table(training.features, training.matrix[:200].copy(order="F"))
    drawn, _ = samplers[1].sample_carrying(table.first(2), RowStreams.from_seed(5, 200), {"latents": np.zeros(200)})
    np.testing.assert_array_equal(drawn, samplers[1].sample(table.first(2), RowStreams.from_seed(5, 200)))


def test_every_call_of_sample_redraws_latents(training, samplers):
    table = Table(training.features, training.matrix[:200].copy(order="F"))
    first, again = (samplers[1].sample(table.first(2), RowStreams.from_seed(5, 200)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_chain_reuses_latents_for_any_blocks_and_threads(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "mcce.samplers.copula.conditional.start_rows", lambda *args: calls.append(1) or start_rows(*args)
    )
    frame = simulate(300, 5)
    chain = ChainModel(sampler="copula", fixed=["smoker"], random_state=1, n_jobs=1).fit(frame)
    drawn = chain.sample(given=frame[["smoker"]], n=2)
    assert len(calls) == 1  # one block: the first feature has one discrete given, the others reuse its latents
    monkeypatch.setattr("mcce.generators.chain.BLOCK_ROWS", 37)
    chain.n_jobs = 2
    pd.testing.assert_frame_equal(chain.sample(given=frame[["smoker"]], n=2), drawn)
    assert len(calls) == 1 + -(-600 // 37)
