"""The mixture as a joint model has the distribution of a chain that shares its fit."""

import copy

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, Within
from mcce.generators import JointGenerator, MixtureGenerator
from mcce.generators.requests import DrawRequest
from mcce.storage.state import from_state, to_state
from tests.generators.joint.processes import atoms, clusters, clusters_log_density, skewed, skewed_log_density

X = clusters(800, 1).assign(gap=lambda rows: rows["x"].mask(np.arange(800) % 5 == 0).round(2))


@pytest.fixture(scope="module")
def mixture():
    return MixtureGenerator(fixed=["side"], max_components=4, random_state=3).fit(X)


@pytest.mark.slow
def test_densities_match_a_chain_of_the_same_fit(mixture):
    chain = mcce.ChainModel(sampler=mcce.MixtureSampler(max_components=4), fixed=["side"], random_state=3).fit(X)
    other = copy.copy(mixture)
    other.model_ = chain.samplers_["gap"].mixture_  # the last feature is given all others, in the same order
    pd.testing.assert_frame_equal(
        other.log_density(X.head(100), per_feature=True), chain.log_density(X.head(100), per_feature=True)
    )


@pytest.mark.slow
def test_correct_model_is_learned_nearly_exactly():
    made, new = (
        MixtureGenerator(fixed=["side"], max_components=4, random_state=1).fit(clusters(1500, 1)),
        clusters(1000, 2),
    )
    lost = clusters_log_density(new) - made.log_density(new)
    assert 0 <= lost[np.isfinite(lost)].mean() < 0.25


@pytest.mark.slow
def test_skewed_number_with_growing_spread():
    made, new = MixtureGenerator(fixed=["x"], random_state=1).fit(skewed(1500, 1)), skewed(1000, 2)
    lost = skewed_log_density(new) - made.log_density(new)
    assert np.isfinite(lost).mean() > 0.99
    assert 0 < lost[np.isfinite(lost)].mean() < 0.15
    rows = made.sample(4000)
    for low, high in ((0.0, 0.25), (0.75, 1.0)):  # one component, a Gaussian copula, is checked; its error is a fifth
        assert rows.loc[rows["x"].between(low, high), "y"].mean() == pytest.approx(0.5 + low + high, rel=0.25)


@pytest.mark.slow
def test_atoms_and_integers():
    real = atoms(1500, 1)
    rows = MixtureGenerator(random_state=1).fit(real).sample(4000)
    assert rows["k"].dtype == real["k"].dtype
    assert set(rows["k"]) <= set(real["k"])
    for k in (0, 1, 2, 3):
        drawn, known = rows.loc[rows["k"] == k, "amount"], real.loc[real["k"] == k, "amount"]
        assert (drawn == 0).mean() == pytest.approx(0.8 / (1 + k), abs=0.09)
        assert drawn[drawn > 0].mean() == pytest.approx(known[known > 0].mean(), rel=0.15)


@pytest.mark.slow
def test_weighted_restricted_draws_follow_the_joint_distribution(mixture):
    n, k = 20_000, 8000

    def request(size, **more):
        keys = np.full(size, 3, dtype=np.uint64)
        return DrawRequest(np.zeros((size, 1)), keys, np.arange(size, dtype=np.uint64), 7, **more)

    free = mixture.draw(request(n)).rows
    allowed = free[:, 2] >= 3.0
    drawn = mixture.draw(request(k, restrictions={"y": Within(low=np.full(k, 3.0))}, weighted=True))
    weight = np.exp(drawn.log_weight)
    assert abs(weight.mean() - allowed.mean()) < 4 * np.sqrt((weight.var() / k) + 0.25 / n)
    # x precedes y: truncation does not change x, the weights condition it
    inside = free[allowed, 1].mean()
    assert abs(np.average(drawn.rows[:, 1], weights=weight) - inside) < 0.25
    assert abs(drawn.rows[:, 1].mean() - inside) > 0.5
    rejected = mixture.draw(request(5, restrictions={"y": Within(low=np.full(5, 1e6))}))
    assert rejected.rejected.all()
    assert np.isfinite(rejected.rows[:, [1, 2]]).all()


def test_state_round_trips_and_modified_state_raises(mixture, tmp_path):
    mixture.save(tmp_path / "a.mcce")
    again = JointGenerator.load(tmp_path / "a.mcce")
    pd.testing.assert_frame_equal(again.sample(30), mixture.sample(30))
    state = to_state(mixture)
    with pytest.raises(InputError, match="the number of columns does not match"):
        from_state(state | {"model_": to_state(mixture.model_.take([0, 1]))})
    with pytest.raises(InputError, match="model_ is a int; expected a Mixture"):
        from_state(state | {"model_": 3})
    with pytest.raises(InputError, match="max_components of MixtureGenerator is 0"):
        MixtureGenerator(max_components=0).fit(X)


@pytest.mark.slow
def test_lowest_tied_number_is_scored_without_a_warning():
    """Its interval of scores has no lower end."""
    rows = mcce.datasets.load_loans(600).X[["age", "years_employed"]]
    assert np.isfinite(MixtureGenerator(max_components=2, random_state=1).fit(rows).log_density(rows)).all()
