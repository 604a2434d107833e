"""Distribution parity: calibrated where samplers are the same, powerful where they are not."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import MCCEError
from r_bridge import PartyCtreeSampler, RpartSampler, compare_samplers
from r_bridge.compare import chi_square, holm, permuted_ks


@pytest.fixture(scope="module")
def X():
    return mcce.datasets.load_loans(300).X[["age", "salary", "housing", "education", "defaulted_last_year"]]


def test_holm_is_that_of_r(r):
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.5, 0.04])
    expected = r.numbers(r.call("evaluate", "p.adjust(data, 'holm')", r.vector(p)))
    np.testing.assert_allclose(holm(p), expected, rtol=1e-14)


def test_chi_square_is_that_of_r(r):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, 300).astype(float), rng.integers(0, 4, 200).astype(float)
    counts = np.array([[np.sum(part == k) for k in range(4)] for part in (a, b)])
    code = "test <- chisq.test(matrix(data, 2)); c(test$statistic, test$p.value)"
    expected = r.numbers(r.call("evaluate", code, r.vector(counts.ravel(order="F"))))
    np.testing.assert_allclose(chi_square(a, b), expected, rtol=1e-12)


def test_rare_and_missing_levels():
    a = np.array([0.0] * 60 + [1.0] * 38 + [2.0, np.nan])
    assert chi_square(a, a) == (0.0, 1.0)
    assert chi_square(np.zeros(30), np.zeros(30)) == (0.0, 1.0)
    missing = np.where(np.arange(100) < 40, np.nan, 0.0)
    assert chi_square(np.zeros(100), missing)[1] < 1e-6


def test_distance_is_that_of_scipy():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=150), rng.normal(0.3, 1.2, size=90)
    statistic, p = permuted_ks(a, b, 4999, rng)
    expected = stats.ks_2samp(a, b)
    assert statistic == pytest.approx(expected.statistic)
    assert p == pytest.approx(expected.pvalue, abs=0.02)


@pytest.mark.parametrize("draw", [lambda g, n: g.normal(size=n), lambda g, n: g.integers(0, 5, n).astype(float)])
def test_permutation_is_exact_with_ties(draw):
    """400 pairs of the same distribution: p-values below 0.05 in 2.7 to 7.8 per cent (central 98 per cent), at most."""
    rng = np.random.default_rng(2)
    rejected = np.mean([permuted_ks(draw(rng, 60), draw(rng, 60), 199, rng)[1] <= 0.05 for _ in range(400)])
    assert rejected < 0.078


def test_missing_values_count_in_the_distance():
    rng = np.random.default_rng(3)
    a = rng.normal(size=200)
    statistic, p = permuted_ks(a, np.where(rng.random(200) < 0.3, np.nan, a), 499, rng)
    assert statistic > 0.15
    assert p < 0.01


def test_samplers_that_are_the_same_pass_at_the_level(X):
    """40 comparisons at level 0.05: more than six rejections have probability 0.3 per cent."""
    rejected = 0
    for seed in range(40):
        compared = compare_samplers(
            "cart",
            mcce.CartSampler(),
            X,
            fixed=["age"],
            n_samples=150,
            n_permutations=99,
            n_trees=10,
            random_state=seed,
        )
        rejected += not compared.same
    assert rejected <= 6


def test_different_margins_and_different_dependence_are_found(X):
    young = X.assign(salary=X["salary"] * 1.3)
    rows = mcce.ChainModel(random_state=3).fit(young).sample(600)
    compared = compare_samplers("cart", rows, X, n_samples=600, random_state=1)
    assert "salary" in compared.different
    assert not compared.same
    independent = compare_samplers("cart", "marginal", X, n_samples=600, random_state=1)
    assert independent.different == ["all features"]
    by_test = independent.table.set_index("test")["verdict"]
    assert by_test["correlations"] == by_test["classifier"] == "different"


@pytest.mark.parametrize("engine", ["rpart", "party"])
def test_r_trees_and_ours_draw_alike(r, need, X, engine):
    need(engine)
    pairs = {
        "rpart": lambda: (mcce.CartSampler(dialect="rpart"), RpartSampler()),
        "party": lambda: (mcce.CtreeSampler(), PartyCtreeSampler()),
    }
    compared = compare_samplers(*pairs[engine](), X, fixed=["age"], n_samples=1000, random_state=4)
    assert compared.same, compared


def test_result_shows_itself(X):
    compared = compare_samplers("cart", {"*": "marginal"}, X, fixed=["age"], n_samples=200, random_state=1)
    table = compared.table
    assert list(table) == ["feature", "kind", "test", "statistic", "p_value", "p_adjusted", "verdict"]
    assert "age" not in set(table["feature"])
    assert len(table) == 4 + 2
    assert (table["p_adjusted"] >= table["p_value"]).all()
    text = repr(compared)
    assert text.startswith("cart beside {*: marginal}: different in 'all features'")
    assert "Kolmogorov-Smirnov" in text
    assert "accuracy" in text
    assert compared._repr_html_().count('class="look"') == (table["verdict"] == "different").sum()
    assert len(compared.rows[0]) == 200
    assert compared.correlations.largest_difference > 0.1
    assert set(compared.marginals.index) == set(X.columns)
    with pytest.raises(AttributeError):
        compared.level = 0.1


def test_same_seed_same_answer(X):
    tables = [compare_samplers("cart", "marginal", X, n_samples=100, random_state=7, n_jobs=k).table for k in (1, 2)]
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 5}, "n_samples is 5"),
        ({"level": 2.0}, "level is 2.0"),
        ({"n_permutations": 0}, "n_permutations is 0"),
        ({"fixed": ["agee"]}, "did you mean 'age'"),
        ({"sampler_b": pd.DataFrame({"age": [1]})}, "sampler_b has 1 rows, fewer than n_samples=50"),
    ],
)
def test_bad_input(X, options, message):
    arguments = {"sampler_a": "cart", "sampler_b": "marginal", "X": X, "n_samples": 50, **options}
    with pytest.raises(MCCEError, match=message):
        compare_samplers(**arguments)
