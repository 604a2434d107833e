"""Criticism of conditionals that are known to be right or wrong."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce.exceptions import InputError, NotFittedError
from mcce.judging.criticism import residual_dependence
from tests.judging.worlds import Known, KnownLevels, normals

LEVEL = 0.05


def criticise(y=None, level=None, *, n=400, seed=0, **options):
    samplers = {"y": Known() if y is None else y, "level": KnownLevels() if level is None else level}
    chain = mcce.ChainModel(sampler=samplers, fixed=["x", "z"], random_state=1).fit(normals(100, 1000))
    return mcce.criticise(chain, normals(n, seed), level=LEVEL, **options)


def test_right_conditionals_pass_at_the_level():
    """All tests together reject in at most one criticism of twenty; each alone in one of twenty."""
    found = [criticise(seed=seed, random_state=seed) for seed in range(60)]
    rejected = np.mean([not each.table["passes"].all() for each in found])
    assert rejected <= LEVEL + 3 * np.sqrt(LEVEL / 60)
    for feature in ("y", "level"):
        p = np.array([each.table.loc[feature, "p_calibration"] for each in found])
        assert stats.kstest(p, "uniform").pvalue > 0.001
    p = np.concatenate([each.dependence["p"] for each in found])
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.03)


WRONG = {  # the sampler, the sign of bias and of spread, and the column on which the residuals depend
    "biased": (Known(bias=0.4), -1, None, None),
    "too narrow": (Known(sd=0.7), None, 1, None),
    "too wide": (Known(sd=1.5), None, -1, None),
    "ignores z": (Known(slope=0.0, sd=np.sqrt(2.0)), None, None, "z"),
    "spread grows": (Known(growth=0.4), None, None, "x"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_conditionals_fail(name):
    sampler, bias, spread, column = WRONG[name]
    found = [criticise(sampler, seed=seed).table for seed in range(10)]
    assert np.mean([not table.loc["y", "passes"] for table in found]) >= 0.9
    assert np.mean([table.loc["level", "passes"] for table in found]) >= 0.8
    mean = pd.DataFrame([table.loc["y"] for table in found])
    assert bias is None or np.sign(mean["bias"].astype(float).mean()) == bias
    assert spread is None or np.sign(mean["spread"].astype(float).mean()) == spread
    assert column is None or (mean["depends_on"] == column).mean() >= 0.9


def test_wrong_levels_fail():
    """A column that the conditional ignores shows in the dependence, and not in the calibration."""
    found = criticise(level=KnownLevels(slope=0.0), n=800).table.loc["level"]
    assert (found["passes"], found["depends_on"]) == (False, "x")
    assert criticise(level=KnownLevels(slope=4.0), n=800).table.loc["level", "p_adjusted"] < 0.01


def test_scores_and_pits_are_those_of_the_truth():
    frame = normals(400, 0)
    found = criticise()
    error = frame["y"] - frame["x"] - frame["z"]
    np.testing.assert_allclose(found.pit["y"], stats.norm.cdf(error), atol=1e-9)
    assert found.table.loc["y", "log_score"] == pytest.approx(stats.norm.logpdf(error).mean(), abs=0.01)
    p = 1 / (1 + np.exp(-1.5 * frame["x"]))
    expected = 2 * np.where(frame["level"] == "yes", 1 - p, p) ** 2
    assert found.table.loc["level", "crps"] == pytest.approx(expected.mean())
    assert found.table["n"].tolist() == [400, 400]


def test_table_text_and_dependence():
    found = criticise(WRONG["ignores z"][0])
    assert list(found.table.index) == ["y", "level"]
    assert [*zip(found.dependence["feature"], found.dependence["column"])] == [
        ("y", "x"), ("y", "z"), ("level", "x"), ("level", "z"), ("level", "y"),
    ]  # fmt: skip
    assert (found.table["p_adjusted"] >= found.table[["p_calibration", "p_dependence"]].min(axis=1)).all()
    strongest = found.dependence.set_index(["feature", "column"])["location"].idxmax()
    assert strongest == ("y", "z")
    assert repr(found).startswith("1 of 2 conditionals rejected at level 0.05\n")


@pytest.mark.parametrize("is_ordered", [True, False])
def test_dependence_keeps_its_level_and_has_power(is_ordered):
    rng = np.random.default_rng(0)
    p, power = [], []
    for _ in range(400):
        values = rng.normal(size=200) if is_ordered else rng.choice(4, 200, p=[0.6, 0.2, 0.19, 0.01]).astype(float)
        values[rng.random(200) < 0.1] = np.nan
        pits = rng.random(200)
        p.append(residual_dependence(pits, values, is_ordered=is_ordered)["p"])
        dependent = np.where(np.nan_to_num(values) > 0.5, pits**1.8, pits)
        power.append(residual_dependence(dependent, values, is_ordered=is_ordered)["p"])
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.mean(np.array(power) <= 0.05) > 0.6
    assert np.isnan(residual_dependence(pits, np.ones(200), is_ordered=is_ordered)["p"])


def test_decision_is_a_column_that_residuals_may_depend_on():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=600)})
    accepted = rng.random(600) < 0.5
    frame["y"] = frame["x"] + 2.0 * accepted + rng.normal(size=600)
    chain = mcce.ChainModel(sampler="norm", fixed=["x"], random_state=1).fit(frame[:300], accepted[:300])
    right = mcce.criticise(chain, frame[300:], decision=accepted[300:])
    assert right.table["passes"].all()
    assert "decision" in set(right.dependence["column"])
    wrong = mcce.criticise(chain, frame[300:], decision=~accepted[300:])
    assert wrong.table.loc["y", "depends_on"] == "decision"
    assert not wrong.table["passes"].all()
    frame = frame.rename(columns={"x": "decision"})
    chain = mcce.ChainModel(sampler="norm", fixed=["decision"], random_state=1).fit(frame[:300], accepted[:300])
    named = mcce.criticise(chain, frame[300:], decision=accepted[300:]).dependence["column"]
    assert named.tolist() == ["decision", "<decision>"]


def test_missing_values_and_few_rows():
    frame = normals(300, 0).assign(w=lambda X: X["x"].mask(np.arange(300) % 3 == 0))
    chain = mcce.ChainModel(sampler={"*": "cart", "w": "norm"}, fixed=["x"], random_state=1).fit(frame)
    found = mcce.criticise(chain, frame)
    assert found.table.loc["w", "n"] == 200
    assert found.pit["w"].isna().sum() == 100
    few = mcce.criticise(chain, frame.head(10))
    assert few.table["p_calibration"].isna().all()
    assert few.table["passes"].all()


def test_same_seed_gives_the_same_pits_in_any_order():
    one, other = (criticise(random_state=seed) for seed in (1, 1))
    pd.testing.assert_frame_equal(one.pit, other.pit)
    assert (criticise(random_state=2).pit["level"] != one.pit["level"]).any()


def test_picture_has_a_panel_for_each_feature():
    import matplotlib.pyplot as plt

    found = criticise(Known(sd=0.5))
    axes = found.plot()
    assert [ax.get_title(loc="left") for ax in axes.flat] == ["y", "level"]
    heights = [[bar.get_height() for bar in ax.patches[:10]] for ax in axes.flat]
    for each, name in zip(heights, ("y", "level")):
        np.testing.assert_allclose(each, np.histogram(found.pit[name], 10, (0, 1))[0] / 40)
    colours = [ax.patches[0].get_facecolor() for ax in axes.flat]
    assert colours[0] != colours[1]  # one is rejected
    plt.close("all")


def test_messages():
    with pytest.raises(NotFittedError, match="not fitted"):
        mcce.criticise(mcce.ChainModel(), normals(9, 0))
    chain = mcce.ChainModel(random_state=1).fit(normals(50, 0))
    with pytest.raises(InputError, match="X_new"):
        mcce.criticise(chain, normals(9, 0)[["x"]])
    for decision in ([True, False], "yes"):
        with pytest.raises(InputError, match="decision"):
            mcce.criticise(chain, normals(9, 0), decision=decision)
