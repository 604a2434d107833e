"""Comparison of conditionals on known processes, and against a plain loop over the folds."""

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce.exceptions import InputError
from tests.judging.worlds import Known, KnownLevels, normals

X = normals(400, 0)
COLUMNS = [
    "log_score",
    "log_score_se",
    "log_score_best",
    "crps",
    "crps_se",
    "crps_best",
    "p_calibration",
    "seconds",
    "note",
]
SAMPLERS = {"right": Known(), "biased": Known(bias=0.5), "narrow": Known(sd=0.6)}


def compare(samplers, X=X[["x", "z", "y"]], **options):
    return mcce.compare_conditionals(X, samplers, **{"fixed": ["x", "z"], **options})


def test_truth_is_best():
    found = compare(SAMPLERS).loc["y"]
    assert found.columns.tolist() == COLUMNS
    assert found.index[found["log_score_best"]].tolist() == ["right"]
    assert found.index[found["crps_best"]].tolist() == ["right"]
    error = (X["y"] - X["x"] - X["z"]).to_numpy()
    assert found.loc["right", "log_score"] == pytest.approx((-(error**2) / 2).mean() - np.log(2 * np.pi) / 2, abs=0.01)
    squares = -(error**2) / 2
    assert found.loc["right", "log_score_se"] == pytest.approx(squares.std(ddof=1) / 20, rel=0.02)
    assert found.loc["right", "p_calibration"] > 0.01
    assert (found.loc[["biased", "narrow"], "p_calibration"] < 0.001).all()
    assert (found["note"] == "").all()


@pytest.mark.parametrize("seed", range(6))
def test_best_are_those_within_one_standard_error(seed):
    """The standard error of the differences in the rows, by scipy: these samplers are fitted to nothing."""
    biases = [0.0, 0.03, 0.1, 0.3]
    frame = normals(200, seed)[["x", "z", "y"]]
    found = compare({str(bias): Known(bias=bias) for bias in biases}, frame).loc["y"]
    error = (frame["y"] - frame["x"] - frame["z"]).to_numpy()
    density = np.array([stats.norm.pdf(error, bias) for bias in biases])
    scores = np.log(0.999 * density + 0.001 / np.ptp(frame["y"]))
    behind = scores[scores.mean(axis=1).argmax()] - scores
    expected = behind.mean(axis=1) <= behind.std(axis=1, ddof=1) / np.sqrt(200)
    assert found["log_score_best"].tolist() == expected.tolist()
    assert expected.any()
    assert not expected[3]


def test_fitted_samplers_do_not_see_the_rows_that_they_are_scored_on():
    """In a chain of leaves of one row, the log score of seen rows would be far above that of new ones."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["x", "y"])
    found = compare(["marginal", "cart", "norm"], frame, fixed=["x"]).loc["y"]
    assert found["log_score"].idxmax() in ("marginal", "norm")
    assert found.loc["cart", "crps"] > found.loc["norm", "crps"]
    assert found.loc["norm", "log_score"] == pytest.approx(-0.5 - np.log(2 * np.pi) / 2, abs=0.1)


def test_features_are_modelled_given_those_before():
    found = compare(["norm", "marginal"], fixed=())
    assert found.index.get_level_values("feature").unique().tolist() == ["x", "z", "y"]
    scores = found["log_score"].unstack()
    assert scores.loc["x", "norm"] == pytest.approx(scores.loc["x", "marginal"], abs=0.05)
    assert scores.loc["y", "norm"] > scores.loc["y", "marginal"] + 0.3
    turned = compare(["norm"], X[["y", "z", "x"]], fixed=["y"])
    assert turned.index.get_level_values("feature").tolist() == ["z", "x"]


def test_levels_and_missing_values():
    frame = X.assign(w=X["y"].mask(np.arange(400) % 4 == 0))[["x", "z", "level", "w"]]
    found = compare({"known": KnownLevels(), "polyreg": "polyreg", "norm": "norm", "marginal": "marginal"}, frame)
    levels, numbers = found.loc["level"], found.loc["w"]
    assert levels.index[levels["crps_best"]].tolist()[0] == "known"
    assert levels.loc["known", "log_score"] > levels.loc["marginal", "log_score"] + 0.1
    assert "does not model categorical targets" in levels.loc["norm", "note"]
    assert levels.loc["norm", ["log_score", "crps", "seconds"]].isna().all()
    assert not levels.loc["norm", "crps_best"]
    assert numbers.loc["norm", "crps"] < numbers.loc["marginal", "crps"]  # of the known values
    assert "does not model numeric targets" in numbers.loc["polyreg", "note"]


def test_answer_depends_on_the_seed_and_not_on_threads():
    figures = [name for name in COLUMNS if name not in ("seconds", "note")]
    one, other = (compare(["cart", "forest"], random_state=3, n_jobs=n)[figures] for n in (1, 2))
    pd.testing.assert_frame_equal(one, other)
    assert not one.equals(compare(["cart", "forest"], random_state=4)[figures])


def test_samplers_in_a_list_are_named_by_their_texts():
    found = compare(["marginal", mcce.samplers.CartSampler(min_leaf=20)])
    assert found.index.get_level_values("sampler").tolist() == ["marginal", "CartSampler(min_leaf=20)"]
    assert (found["seconds"] > 0).all()


def test_signature_and_warning_of_the_documentation():
    for function in (mcce.compare_conditionals, mcce.criticise):
        assert len(inspect.signature(function).parameters) <= 7
    assert "A better log score does not give better answers" in inspect.getdoc(mcce.compare_conditionals)
    assert "does not give better answers" in inspect.getdoc(mcce.criticise)


@pytest.mark.parametrize(
    ("samplers", "options", "said"),
    [
        ([], {}, "samplers is []; give a list"),
        (["cart", "cart"], {}, "samplers has two with the same text; give a dict by label"),
        (["cart"], {"fixed": ["x", "w"]}, "fixed feature 'w' is not a column of X"),
    ],
)
def test_messages(samplers, options, said):
    with pytest.raises(InputError) as caught:
        compare(samplers, **options)
    assert said in str(caught.value)
