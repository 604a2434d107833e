"""Distribution parity: calibrated for equal samplers, powerful for different ones."""

import pandas as pd
import pytest

import mcce
from mcce import MCCEError
from r_bridge import PartyCtreeSampler, RpartSampler, compare_samplers
from tests.marks import nightly


@pytest.fixture(scope="module")
def X():
    return mcce.datasets.load_loans(300).X[["age", "salary", "housing", "education", "defaulted_last_year"]]


@pytest.mark.nightly
def test_equal_samplers_pass_at_the_level(X):
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


@pytest.mark.slow
def test_different_margins_and_dependence_are_detected(X):
    young = X.assign(salary=X["salary"] * 1.3)
    rows = mcce.ChainModel(random_state=3).fit(young).sample(600)
    compared = compare_samplers("cart", rows, X, n_samples=600, random_state=1)
    assert "salary" in compared.different
    assert not compared.same
    independent = compare_samplers("cart", "marginal", X, n_samples=600, random_state=1)
    assert independent.different == ["all features"]
    by_test = independent.table.set_index("test")["verdict"]
    assert by_test["correlations"] == by_test["classifier"] == "different"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["rpart", *nightly("party")])
def test_r_trees_and_ours_have_the_same_distribution(r, need, X, engine):
    need(engine)
    pairs = {
        "rpart": lambda: (mcce.CartSampler(dialect="rpart"), RpartSampler()),
        "party": lambda: (mcce.CtreeSampler(), PartyCtreeSampler()),
    }
    compared = compare_samplers(*pairs[engine](), X, fixed=["age"], n_samples=1000, random_state=4)
    assert compared.same, compared


@pytest.mark.slow
def test_repr_of_the_result(X):
    compared = compare_samplers("cart", {"*": "marginal"}, X, fixed=["age"], n_samples=200, random_state=1)
    table = compared.table
    assert list(table) == ["feature", "kind", "test", "statistic", "p_value", "p_adjusted", "verdict"]
    assert "age" not in set(table["feature"])
    assert len(table) == 4 + 2
    assert (table["p_adjusted"] >= table["p_value"]).all()
    text = repr(compared)
    assert text.startswith("cart and {*: marginal}: different in 'all features'")
    assert "Kolmogorov-Smirnov" in text
    assert "accuracy" in text
    assert compared._repr_html_().count('class="look"') == (table["verdict"] == "different").sum()
    assert len(compared.rows[0]) == 200
    assert compared.correlations.largest_difference > 0.1
    assert set(compared.marginals.index) == set(X.columns)
    with pytest.raises(AttributeError):
        compared.level = 0.1


@pytest.mark.slow
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
