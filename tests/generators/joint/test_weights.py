"""Joint generators of weighted rows: counts are repeated rows, zeros absent, others relative; errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.generators import (
    AdversarialForest,
    Made,
    MixtureGenerator,
    SampleGenerator,
    SynthesizerGenerator,
    VineGenerator,
)
from tests.extras import NO_VINE
from tests.marks import slow
from tests.weighted_loans import FIXED, N, some_counts, some_loans

MAKERS = {
    "forest": lambda **more: AdversarialForest(n_trees=5, min_leaf=5, random_state=1, **more),
    "mixture": lambda **more: MixtureGenerator(max_components=2, random_state=1, **more),
    "vine": lambda **more: VineGenerator(n_trees=3, random_state=1, **more),
    "made": lambda **more: Made(widths=(8,), max_epochs=15, learning_rate=0.01, random_state=1, **more),
}


@pytest.fixture(params=MAKERS)
def make(request):
    if request.param == "made":
        pytest.importorskip("torch", reason="torch is not installed: pip install 'mcce[deep]'")
    if request.param == "vine":
        pytest.importorskip("pyvinecopulib", reason=NO_VINE)
    return MAKERS[request.param]


@pytest.fixture(scope="module")
def X():
    return some_loans()


@pytest.fixture(scope="module")
def counts():
    return some_counts()


@pytest.fixture(scope="module")
def decision(X):
    return (X["savings"] > 10_000).to_numpy()


@pytest.mark.slow
def test_counts_draw_and_score_the_same_as_repeated_rows(make, X, counts, decision):
    rows = np.repeat(np.arange(N), counts)
    weighted = make(fixed=FIXED).fit(X, decision, sample_weight=counts)
    repeated = make(fixed=FIXED).fit(X.iloc[rows].reset_index(drop=True), decision[rows])
    given = X[FIXED].iloc[:20]
    pd.testing.assert_frame_equal(weighted.sample(5, given), repeated.sample(5, given))
    pd.testing.assert_frame_equal(weighted.sample(200), repeated.sample(200))  # fixed features are drawn by weight
    within = {"savings": (0, 30_000)}
    pd.testing.assert_frame_equal(weighted.sample(5, given, within=within), repeated.sample(5, given, within=within))
    pd.testing.assert_series_equal(weighted.log_density(X), repeated.log_density(X))


@pytest.mark.slow
def test_weights_are_relative_and_zeros_are_absent(make, X):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N)
    weights[:40] = 0.0
    X = X.assign(savings=np.where(np.arange(N) < 40, 10**9, X["savings"]))  # absent rows do not extend the range
    plain = make(fixed=FIXED).fit(X.iloc[40:], sample_weight=weights[40:]).sample(100)
    for scale in (1.0, 4096.7):
        found = make(fixed=FIXED).fit(X, sample_weight=scale * weights)
        pd.testing.assert_frame_equal(found.sample(100), plain)
    assert found.schema_.features[3].high < 10**9


@pytest.mark.slow
def test_weighted_generators_round_trip(make, X, counts, tmp_path):
    fitted = make(fixed=FIXED).fit(X, sample_weight=1.5 * counts)
    fitted.save(tmp_path / "generator")
    again = type(fitted).load(tmp_path / "generator")
    np.testing.assert_array_equal(again.training_weights_, fitted.training_weights_)
    pd.testing.assert_frame_equal(again.sample(80), fitted.sample(80))
    pd.testing.assert_series_equal(again.log_density(X), fitted.log_density(X))
    plain = make(fixed=FIXED).fit(X)
    assert plain.training_weights_ is None


@pytest.mark.parametrize("share", [0.15, *slow(0.85)])
def test_rows_follow_the_weights_of_a_known_process(make, share):
    """Two groups, level a with y near 3 x and level b with y near 30 - x: the weights decide which dominates."""
    rng = np.random.default_rng(0)
    n = 600
    group, x = np.arange(n) % 2, rng.normal(size=n)
    y = np.where(group == 1, 30.0 - x, 3.0 * x) + rng.normal(size=n)
    level = np.where(rng.random(n) < 0.9, np.array(["a", "b"])[group], "c")
    X = pd.DataFrame({"x": x, "level": level, "y": y})
    weights = np.where(group == 1, share, 1.0 - share) * 3.7
    fitted = make(fixed=["x"]).fit(X, sample_weight=weights)
    drawn = fitted.sample(2000)
    assert abs((drawn["y"] > 15.0).mean() - share) < 0.06
    assert (drawn["level"] == "b").mean() == pytest.approx(0.9 * share, abs=0.06)
    rows = pd.DataFrame({"x": np.zeros(3), "level": ["a", "b", "c"], "y": np.zeros(3)})
    masses = np.exp(fitted.log_density(rows, per_feature=True)["level"])
    assert masses.sum() == pytest.approx(1.0)
    assert masses[1] == pytest.approx(0.9 * share, abs=0.08)


def test_leaves_hold_the_minimum_weight(X):
    weights = np.random.default_rng(1).uniform(0.2, 2.0, N)
    model = AdversarialForest(n_trees=5, min_leaf=8, random_state=1).fit(X, sample_weight=weights).model_
    held = np.add.reduceat(model.weights[model.rows], model.start[:-1])
    assert held.min() >= 8.0
    trees = np.exp(model.log_weight[:-1]).sum()
    assert trees == pytest.approx(0.999)
    np.testing.assert_allclose(np.exp(model.log_weight[:-1]), 0.999 * held[:-1] / weights.sum() / 5 * weights.mean())


class Rows:
    """Draws training rows by weight."""

    def fit(self, X, sample_weight=None):
        self.X, self.weights = X, sample_weight

    def sample(self, n, given=None, random_state=None):
        seed = np.random.randint(2**31) if random_state is None else random_state  # noqa: NPY002
        return self.X.sample(n, replace=True, weights=self.weights, random_state=seed)


class Unweighted(Rows):
    def fit(self, X):
        super().fit(X)


@pytest.mark.parametrize("adapter", [SampleGenerator, SynthesizerGenerator])
def test_weights_are_passed_to_models_that_accept_them(adapter, X):
    X = X.dropna()[["housing", "savings"]]
    weights = np.where(X["housing"] == "own", 5.3, 1.0)
    drawn = adapter(Rows(), random_state=1).fit(X, sample_weight=weights).sample(1000)
    wanted = weights[X["housing"] == "own"].sum() / weights.sum()
    assert (drawn["housing"] == "own").mean() == pytest.approx(wanted, abs=0.05)
    with pytest.raises(
        mcce.SamplerError, match=rf"^{adapter.__name__}\(.*does not take sample_weight, because the fit of its Unweight"
    ):
        adapter(Unweighted(), random_state=1).fit(X, sample_weight=weights)


class Whole(mcce.generators.JointGenerator):
    """A generator without support for weights."""

    def __init__(self, *, fixed=(), kinds=None, random_state=None, n_jobs=None):
        self.fixed, self.kinds, self.random_state, self.n_jobs = fixed, kinds, random_state, n_jobs

    def _fit(self, table, n_given):
        self.rows_ = table.matrix[:, n_given:]

    def _draw(self, givens, streams):
        return self.rows_[streams.integer(len(self.rows_))]


def test_generators_that_ignore_weights_raise(X, counts):
    with pytest.raises(mcce.SamplerError, match=r"^Whole\(random_state=1\) does not take sample_weight; use"):
        Whole(random_state=1).fit(X, sample_weight=counts)
    explainer = mcce.MCCE(lambda rows: rows["savings"] > 10_000, decision=True, generator=Whole(random_state=1))
    with pytest.raises(mcce.SamplerError, match="use a generator that does"):
        explainer.fit(X, sample_weight=counts)


@pytest.mark.slow
def test_explainers_pass_weights_to_joint_generators(X, counts):
    def rich(rows):
        return rows["savings"] > 10_000

    rows = np.repeat(np.arange(N), counts)
    poor = X[~rich(X)].iloc[:5]
    found = []
    for frame, weights in ((X, counts), (X.iloc[rows].reset_index(drop=True), None)):
        generator = MAKERS["mixture"](fixed=FIXED)
        explainer = mcce.MCCE(rich, decision=True, fixed=FIXED, generator=generator)
        found.append(explainer.fit(frame, sample_weight=weights).explain(poor, n_samples=50).frame)
    pd.testing.assert_frame_equal(*found)
