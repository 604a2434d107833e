"""Draws of some features given earlier and later ones, compared with enumeration."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError
from mcce.generators.conditioning import share_of_wanted
from mcce.generators.joint.mixture_generator import MixtureGenerator


@pytest.fixture(scope="module")
def chain() -> mcce.ChainModel:
    """A chain of three categorical columns, each depending on the preceding one and on the decision."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 600)
    b = np.where(rng.uniform(size=600) < 0.7, a, rng.integers(0, 3, 600))
    c = np.where(rng.uniform(size=600) < 0.7, b, rng.integers(0, 3, 600))
    X = pd.DataFrame({name: pd.Categorical.from_codes(codes, list("xyz")) for name, codes in zip("abc", (a, b, c))})
    return mcce.ChainModel(sampler="polyreg", random_state=1).fit(X, (b + c > 2) | (rng.uniform(size=600) < 0.2))


def joint(chain: mcce.ChainModel, wanted: float) -> dict[tuple[int, ...], float]:
    """Return the probability of every row, marginal over the decision."""
    rows = np.array(list(product(range(3), repeat=3)), dtype=float)
    by_decision = [sum(chain.feature_log_densities(rows, y).values()) for y in (False, True)]
    total = np.exp(by_decision).T @ [1 - wanted, wanted]
    return dict(zip(map(tuple, rows.astype(int).tolist()), total))


@pytest.mark.parametrize("kept", [(2,), (1, 2), (0, 2)])
def test_weighted_draws_match_conditioning_on_later_features(chain, kept):
    own = np.array([0.0, 1.0, 2.0])
    around = chain.conditionals_around(own)
    assert around.wanted == pytest.approx(np.mean(chain.training_givens_[:, -1]), abs=0.01)
    is_kept = np.isin(range(3), kept)
    rows, log_weight = around.draw(is_kept[None], np.zeros(1, dtype=np.uint64), 8000)
    assert (rows[0][:, is_kept] == own[is_kept]).all()
    weight = np.exp(log_weight[0])
    of_rows = joint(chain, around.wanted)
    given = {row: p for row, p in of_rows.items() if all(row[j] == own[j] for j in kept)}
    for row, p in given.items():
        share = weight[(rows[0] == row).all(axis=1)].sum() / weight.sum()
        assert share == pytest.approx(p / sum(given.values()), abs=0.025)


def test_density_matches_the_mixture_over_decisions(chain):
    around = chain.conditionals_around(np.zeros(3))
    of_rows = joint(chain, around.wanted)
    found = np.exp(around.log_density(np.array(list(of_rows), dtype=float)))
    assert found == pytest.approx(list(of_rows.values()))
    assert found.sum() == pytest.approx(1.0)


def test_determined_column_has_no_density(chain):
    own = np.array([0.0, 1.0, 2.0])
    everything, keys = np.ones((1, 3), dtype=bool), np.zeros(1, dtype=np.uint64)
    of_all = chain.conditionals_around(own).draw(everything, keys, 2)[1]
    without = chain.conditionals_around(own, [2]).draw(everything, keys, 2)[1]
    assert (of_all < without).all()


def test_acceptance_rate_matches_rows_with_the_same_fixed_values():
    rng, fixed = np.random.default_rng(1), np.repeat([0.0, 1.0], 200)
    X = pd.DataFrame({"home": pd.Categorical.from_codes(fixed.astype(int), ["own", "rent"]), "z": rng.normal(size=400)})
    wanted = np.arange(400) % 4 < 1 + 2 * fixed  # a quarter of the owners, three quarters of the others
    chain = mcce.ChainModel(fixed=["home"], random_state=1).fit(X, wanted)
    shares = [share_of_wanted(chain._layout, chain.training_givens_, None, np.array([home])) for home in (0.0, 1.0)]
    assert shares == pytest.approx([0.25, 0.75], abs=0.01)


def test_chain_without_training_values_raises():
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(80, 2)), columns=["a", "b"])
    chain = mcce.ChainModel(sampler="norm", random_state=1).fit(X, X["a"] > 0)
    with pytest.raises(InputError, match="saved with donors='none', without the decisions of training rows"):
        chain.stored("none").conditionals_around(np.zeros(2))


def test_other_generators_raise():
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(80, 2)), columns=["a", "b"])
    with pytest.raises(
        InputError, match=r"drawn by the conditionals of a chain; a .* has no conditionals. Use a chain"
    ):
        MixtureGenerator().fit(X).conditionals_around(np.zeros(2))
