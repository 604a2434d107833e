"""Out-of-fold evaluation of conditionals: rows are judged by fits without them."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics import conditionals
from mcce.exceptions import InputError


class Memory(mcce.ConditionalSampler):
    """A sampler that memorises the training rows: it draws the value of the row with the nearest given."""

    handles = frozenset({"numeric"})

    def fit(self, given, target):
        self.z_, self.x_ = given.matrix[:, 0].copy(), target.values.copy()
        return self

    def sample(self, given, rng, within=None):
        return self.x_[np.abs(given.matrix[:, :1] - self.z_).argmin(axis=1)] + 0.01 * rng.normal()


def line(n, seed=1):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return pd.DataFrame({"z": z, "x": 1 + z + rng.normal(size=n)})


def test_overfitted_sampler_is_rejected():
    found = conditionals(line(200), sampler=Memory(), fixed=["z"], n_draws=20)
    assert found.rejected == ["x"]
    assert found["x"].skill < 0
    assert found.sentences[0].startswith("x: too narrow")
    assert found.judged_by == "rows out of fold"


@pytest.mark.slow
def test_correct_family_passes_out_of_fold():
    p = [conditionals(line(200, s), sampler="norm", fixed=["z"], n_draws=20).features[0].p for s in range(12)]
    assert np.mean(np.array(p) <= 0.05) <= 0.17  # 2 of 12


def test_scores_are_in_row_order():
    X = line(200)
    X.loc[:19, "x"] += 100  # predictions of these rows are off by 100
    found = conditionals(X, sampler="norm", fixed=["z"], n_draws=20)
    assert (found["x"].pit[:20] > 0.9).all()
    assert np.mean(found["x"].pit[20:]) < 0.6


def test_new_rows_are_judged_by_one_fit_on_all_rows():
    X, new = line(300), line(100, 2)
    found = conditionals(X, X_new=new, sampler="norm", fixed=["z"], random_state=3, n_draws=20)
    chain = mcce.ChainModel(sampler="norm", fixed=["z"], random_state=3).fit(X)
    wanted = chain.criticise(new, n_draws=20)
    pd.testing.assert_frame_equal(
        found.table.drop(columns="seconds"), wanted.table.drop(columns="seconds"), check_exact=True
    )


def test_levels_in_only_one_fold_are_judged():
    X = line(100)
    X["job"] = ["clerk", "cook"] * 50
    X.loc[7, "job"] = "pilot"
    found = conditionals(X, sampler="cart", fixed=["z"], visit_sequence="correlation", n_draws=20)
    assert sorted(each.name for each in found) == ["job", "x"]
    assert found["job"].impossible <= 0.01


def test_decision_and_settings_of_the_chain_are_passed_on():
    X = line(300)
    wanted = (X["x"] > 1).to_numpy()
    found = conditionals(X, sampler="ctree", fixed=["z"], decision=wanted, n_draws=20)
    without = conditionals(X, sampler="ctree", fixed=["z"], n_draws=20)
    assert found["x"].skill > without["x"].skill + 0.1
    assert found["x"].sampler == "CtreeSampler()"


def test_graph_of_the_chain_is_used():
    X = line(150)
    alone = conditionals(X, sampler="norm", fixed=["z"], graph=mcce.Graph.from_text("z; x"), n_draws=20)
    beside = conditionals(X, sampler="norm", fixed=["z"], graph="z -> x", n_draws=20)
    assert beside["x"].skill > alone["x"].skill + 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_folds": 1}, "n_folds is 1; it must be a whole number of at least 2"),
        ({"level": -1}, "level is -1; it must be a number from 0 to below 1"),
        ({"fixed": ["y"]}, "fixed feature 'y' is not a column of X"),
        ({"decision": np.ones(3, dtype=bool)}, "decision must be True or False, for all rows or for each row"),
    ],
)
def test_invalid_settings_raise(settings, message):
    with pytest.raises(InputError, match=message):
        conditionals(line(100), **{"sampler": "norm", "fixed": ["z"], **settings})


def test_too_few_rows_raise():
    with pytest.raises(InputError, match="X has 15 rows; the criticism out of fold needs at least 20"):
        conditionals(line(15), sampler="norm", fixed=["z"])
