"""Known processes learned by an adversarial forest, compared with a chain of trees."""

import numpy as np
import pytest
from scipy import stats

from mcce import ChainModel
from mcce.generators import AdversarialForest
from tests.generators.joint.processes import (
    atoms,
    clusters,
    clusters_log_density,
    skewed,
    skewed_log_density,
)


def forest(rows, **settings):
    return AdversarialForest(random_state=1, **settings).fit(rows)


@pytest.mark.slow
def test_correct_model_is_learned_nearly_exactly():
    made, new = forest(clusters(1500, 1), fixed=["side"]), clusters(1500, 2)
    lost = (clusters_log_density(new) - made.log_density(new)).mean()
    chain = ChainModel(fixed=["side"], random_state=1).fit(clusters(1500, 1))
    assert 0 < lost < 0.2
    assert lost < (clusters_log_density(new) - chain.log_density(new)).mean()
    rows = made.sample(1500)
    for side in ("left", "right"):
        for name in ("x", "y"):
            drawn, real = (part.loc[part["side"] == side, name] for part in (rows, new))
            assert stats.ks_2samp(drawn, real).statistic < 0.08


@pytest.mark.slow
def test_skewed_number_with_growing_spread():
    made, new = forest(skewed(1500, 1), fixed=["x"]), skewed(1500, 2)
    lost = (skewed_log_density(new) - made.log_density(new)).mean()
    assert 0 < lost < 0.25
    rows = made.sample(4000)
    assert rows["y"].min() >= 0
    for low, high in ((0.0, 0.25), (0.75, 1.0)):
        mean = rows.loc[rows["x"].between(low, high), "y"].mean()
        assert mean == pytest.approx(0.5 + (low + high), rel=0.15)


@pytest.mark.slow
def test_atoms_and_integers():
    real = atoms(2000, 1)
    rows = forest(real).sample(4000)
    assert rows["k"].dtype == real["k"].dtype
    assert set(rows["k"]) <= set(real["k"])
    for k in (0, 1, 2, 3, 4):
        drawn, known = rows.loc[rows["k"] == k, "amount"], real.loc[real["k"] == k, "amount"]
        assert (drawn == 0).mean() == pytest.approx(0.8 / (1 + k), abs=0.09)
        assert drawn[drawn > 0].mean() == pytest.approx(known[known > 0].mean(), rel=0.15)
    assert np.isfinite(forest(real).log_density(atoms(500, 3))).mean() > 0.99
