"""The mixture against exact formulas, brute force, and known processes."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from mcce.exceptions import InputError
from mcce.generators import ChainModel
from mcce.rng import RowStreams
from mcce.samplers import MixtureSampler
from mcce.samplers.mixture import Mixture, MixtureColumn, SeenRows, _iterate, _maximise, patterns
from mcce.table import Schema

from .processes import PROCESSES, counts, curved, excess_log_score, levels, linear, zeros


@dataclass(frozen=True)
class Standard:
    """The margin of a standard normal column: values are their scores."""

    grid = None

    def scored(self, values):
        return values, np.zeros(len(values))

    def density(self, values):
        return norm.pdf(values)

    def log_density(self, values):
        return norm.logpdf(values)

    def has_mass(self, values):
        return np.zeros(len(values), dtype=bool)

    def score(self, values, below=False):
        return values

    def from_normal(self, z):
        return z


NUMBER = MixtureColumn(Standard(), None)


def two_components():
    """Three numbers and two columns of levels: columns 0, 2, 4 and 1, 3."""
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(2, 3, 3))
    level_columns = [MixtureColumn(None, np.full(size, 1 / size)) for size in (2, 3)]
    return Mixture(
        (NUMBER, level_columns[0], NUMBER, level_columns[1], NUMBER),
        np.array([0.3, 0.7]),
        (np.array([[0.2, 0.8], [0.9, 0.1]]), np.array([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])),
        rng.normal(size=(2, 3)),
        roots @ roots.transpose(0, 2, 1) + np.eye(3),
    )


def exact(mixture, rows, unknown=()):
    """The log density of rows, by scipy; the columns `unknown` are summed or integrated out."""
    numbers = [j for j in (0, 2, 4) if j not in unknown]
    at = [(0, 2, 4).index(j) for j in numbers]
    parts = []
    for k in range(2):
        found = np.full(len(rows), np.log(mixture.weights[k]))
        if numbers:
            normal = multivariate_normal(mixture.means[k, at], mixture.covariances[k][np.ix_(at, at)])
            found += normal.logpdf(rows[:, numbers])
        for i, j in enumerate((1, 3)):
            if j not in unknown:
                found += np.log(mixture.probabilities[i][k, rows[:, j].astype(int)])
        parts.append(found)
    return logsumexp(parts, axis=0)


def some_rows(n=20, seed=2):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=n), rng.integers(0, 2, n), rng.normal(size=n), rng.integers(0, 3, n),
                            rng.normal(size=n)])  # fmt: skip


@pytest.mark.parametrize("unknown", [(), (0,), (1,), (0, 3), (0, 2, 4), (1, 3), (0, 1, 2, 3, 4)])
def test_density_of_complete_and_incomplete_rows(unknown):
    mixture, rows = two_components(), some_rows()
    holed = rows.copy()
    holed[:, list(unknown)] = np.nan
    expected = exact(mixture, rows, unknown)
    np.testing.assert_allclose(mixture.log_density(holed), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("target", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("missing", [(), (2,), (1, 4)])
def test_conditional_is_the_joint_over_the_marginal_density(target, missing):
    mixture, rows = two_components(), some_rows()
    others = [j for j in range(5) if j != target]
    missing = [j for j in missing if j != target]
    holed = rows.copy()
    holed[:, missing] = np.nan
    found = mixture.take([*others, target]).conditional(holed[:, others])
    expected = exact(mixture, rows, missing) - exact(mixture, rows, [*missing, target])
    np.testing.assert_allclose(found.log_density(rows[:, target]), expected, rtol=1e-10)
    if target in (1, 3):
        np.testing.assert_allclose(found.cdf(np.full(20, 1.0 + (target == 3))), 1.0)
    else:  # the distribution function, by numerical integration of the density
        grid = np.linspace(-25.0, rows[0, target], 4001)
        row = np.repeat(rows[:1], grid.size, axis=0)
        row[:, target] = grid
        density = np.exp(exact(mixture, row, missing) - exact(mixture, row, [*missing, target]))
        assert found.cdf(rows[:, target])[0] == pytest.approx(np.trapezoid(density, grid), abs=1e-5)


def test_missing_level_is_the_sum_over_levels():
    mixture, rows = two_components(), some_rows()
    each = []
    for level in range(3):
        rows[:, 3] = level
        each.append(mixture.log_density(rows))
    rows[:, 3] = np.nan
    np.testing.assert_allclose(mixture.log_density(rows), logsumexp(each, axis=0))


def test_bits_of_a_row_do_not_depend_on_other_rows():
    mixture, rows = two_components(), some_rows(1000)
    rows[np.random.default_rng(0).random(rows.shape) < 0.1] = np.nan
    order = np.random.default_rng(1).permutation(1000)
    whole = mixture.log_density(rows)
    assert (mixture.log_density(rows[order]) == whole[order]).all()
    assert (mixture.log_density(rows[7:8]) == whole[7:8]).all()
    draws = mixture.conditional(rows[:, :4]).sample(RowStreams.from_seed(1, 1000))[0]
    some = mixture.conditional(rows[order[:5], :4]).sample(RowStreams.from_seed(1, 1000).take(order[:5]))[0]
    assert (some == draws[order[:5]]).all()


def test_patterns_cover_all_rows():
    known = np.random.default_rng(0).random((50, 3)) < 0.5
    found = patterns(known)
    assert sorted(np.concatenate([rows for rows, _ in found])) == list(range(50))
    assert len(found) == len(np.unique(known, axis=0))
    for rows, columns in found:
        assert (known[rows] == np.isin(np.arange(3), columns)).all()


# ------------------------------------------------------------------------------------------------------------- the fit


def clusters(n, seed=0):
    """Two clusters: normals at (0, 0) and (6, 6) with correlations .8 and -.8, and a level that follows them."""
    rng = np.random.default_rng(seed)
    second = rng.random(n) < 0.4
    z = rng.normal(size=(2, n))
    b = np.where(second, -0.8, 0.8) * z[0] + 0.6 * z[1]
    level = np.where(rng.random(n) < 0.9, np.where(second, "v", "u"), "w")
    return pd.DataFrame({"a": z[0] + 6 * second, "b": b + 6 * second, "level": level}), second


def encode(frame):
    return Schema.from_data(frame).encode(frame)


def test_clusters_are_found_also_with_missing_values():
    frame, second = clusters(3000)
    holes = np.random.default_rng(1).random((3000, 3)) < 0.2
    for table in (encode(frame), encode(frame.mask(holes))):
        mixture = Mixture.fit(table, max_components=2)
        assert mixture.weights.size == 2
        first = int(mixture.means[:, 0].argmin())
        assert mixture.weights[first] == pytest.approx(1 - second.mean(), abs=0.02)
        np.testing.assert_allclose(mixture.probabilities[0][first], [0.9, 0.0, 0.1], atol=0.03)
        scales = np.sqrt(np.diagonal(mixture.covariances, axis1=1, axis2=2))
        correlation = mixture.covariances[:, 0, 1] / scales.prod(axis=1)
        assert correlation[first] > 0.65
        assert correlation[1 - first] < -0.65


def test_steps_of_em_increase_the_density():
    frame, _ = clusters(400)
    table = encode(frame.mask(np.random.default_rng(1).random((400, 3)) < 0.2))
    columns = tuple(MixtureColumn.fit(table.column(j)) for j in range(3))
    seen = SeenRows.of(columns, table.matrix)
    mixture = Mixture.fit(table, max_components=1)
    parts = np.random.default_rng(0).dirichlet(np.ones(3), 400)
    mixture = Mixture(columns, np.full(3, 1 / 3), tuple(np.tile(p, (3, 1)) for p in mixture.probabilities),
                      np.tile(mixture.means, (3, 1)), np.tile(mixture.covariances, (3, 1, 1)))  # fmt: skip
    found = []
    for _ in range(15):
        mixture = _maximise(mixture, seen, parts)
        joint = mixture.log_joint(seen)
        total = logsumexp(joint, axis=1, keepdims=True)
        parts = np.exp(joint - total)
        found.append(total.mean())
    assert (np.diff(found) > -1e-3).all()  # pseudo-rows are not in the density
    assert found[-1] > found[0] + 0.05
    after = logsumexp(_iterate(mixture, seen, 1e-3).log_joint(seen), axis=1).mean()
    assert after > found[-1] - 1e-3


def test_normal_columns_need_one_component():
    rng = np.random.default_rng(3)
    correlation = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, -0.4], [0.0, -0.4, 1.0]])
    x = rng.multivariate_normal(np.zeros(3), correlation, 3000)
    mixture = Mixture.fit(encode(pd.DataFrame(x, columns=list("abc"))))
    assert mixture.weights.size == 1
    np.testing.assert_allclose(mixture.covariances[0], correlation, atol=0.05)
    new = rng.multivariate_normal(np.zeros(3), correlation, 500)
    truth = multivariate_normal(np.zeros(3), correlation).logpdf(new)
    assert np.mean(mixture.log_density(new) - truth) == pytest.approx(0.0, abs=0.03)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1.0], "b": ["x"]}),
        pd.DataFrame({"a": [1.0, 1.0, 1.0], "b": ["x", "x", "x"]}),
        pd.DataFrame({"a": [1.0, np.nan, np.nan], "b": [np.nan, np.nan, np.nan], "c": [None, "u", "v"]}),
        pd.DataFrame({"a": np.arange(50.0), "b": 2 * np.arange(50.0), "c": np.arange(50) % 2}),
        pd.DataFrame({"a": list("xy") * 30, "b": list("uvw") * 20}),
    ],
)
def test_degenerate_tables(frame):
    table = encode(frame)
    mixture = pickle.loads(pickle.dumps(Mixture.fit(table)))
    assert np.isfinite(mixture.log_density(table.matrix)).all()
    known = table.take(~np.isnan(table.matrix[:, 1]))
    sampler = MixtureSampler().fit(*(known.first(1), known.column(1)) if known.n_rows else (table, table.column(0)))
    assert len(sampler.distribution(table.first(1)).sample(RowStreams.from_seed(0, len(frame)))[0]) == len(frame)


def test_chain_has_one_mixture():
    frame, _ = clusters(300)
    chain = ChainModel(sampler="mixture", fixed=["level"], random_state=1).fit(frame)
    a, b = (chain.conditional(name).mixture_ for name in ("a", "b"))
    assert a.weights is b.weights
    whole = chain.conditional("b").mixture_
    arranged = encode(frame[["level", "a", "b"]]).matrix
    joint = chain.log_density(frame)
    np.testing.assert_allclose(
        joint.sum(axis=1), whole.log_density(arranged) - whole.take([0]).log_density(arranged[:, :1]), atol=1e-6
    )


def test_invalid_parameters_raise():
    table = encode(clusters(30)[0])
    with pytest.raises(InputError, match="max_components is 0; it must be a whole number of at least 1"):
        MixtureSampler(max_components=0).fit(table.first(1), table.column(1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "worst"),
    [(linear, 0.04), (curved, 0.55), (zeros, 0.08), (counts, 0.08), (levels, 0.05)],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_known_processes(process, worst):
    """Nats below the truth; the marginal distribution loses .43, 1.03, .5, .3, .3."""
    assert process in PROCESSES
    assert -worst < excess_log_score("mixture", process) < 0.02
