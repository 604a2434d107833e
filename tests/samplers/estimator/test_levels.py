"""Levels drawn with the predicted probabilities of a classifier."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from mcce.samplers import Within
from mcce.samplers.estimator import best_weight
from mcce.table import Schema
from tests.samplers.estimator.problem import LEVEL, draw, fit


@pytest.mark.parametrize("ordered", [False, True])
def test_levels_are_drawn_with_the_predicted_probabilities(grades, ordered):
    frame = grades.assign(y=grades["y"].cat.as_ordered()) if ordered else grades
    estimator = LogisticRegression(max_iter=3000)
    sampler, given = fit(frame, estimator)
    # the same design by pandas: 0/1 columns for the jobs, codes for the ordered sizes
    dummies = pd.get_dummies(grades["job"]).to_numpy(float)
    design = np.column_stack([grades["x"], dummies, grades["size"].cat.codes])
    truth = LogisticRegression(max_iter=3000).fit(design, grades["y"].cat.codes).predict_proba(design)
    n = 4000
    for row in (0, 1, 2):
        counts = np.bincount(draw(sampler, given, row, n, seed=row).astype(int), minlength=3)
        assert stats.chisquare(counts, n * truth[row]).pvalue > LEVEL
    density = np.array([sampler.log_density(given, np.full(900, float(level))) for level in range(3)])
    shares = np.bincount(frame["y"].cat.codes) / 900
    np.testing.assert_allclose(np.exp(density).T, (900 * truth + 5 * shares) / 905, rtol=1e-9)  # five pseudo-donors


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(), RandomForestClassifier(15)], ids=["tree", "forest"])
def test_levels_of_new_rows_are_not_impossible(estimator):
    """A fully grown tree predicts one level with certainty: wrong for half of the new rows, which had -inf."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=600), "y": pd.Categorical(rng.choice(["a", "b", "c"], 600))})
    sampler, given = fit(frame.iloc[:300], estimator)
    density = np.array([sampler.log_density(given, np.full(300, float(level))) for level in range(3)])
    np.testing.assert_allclose(np.exp(density).sum(axis=0), 1.0, rtol=1e-12)
    fresh = Schema.from_data(frame).encode(frame.iloc[300:])
    assert np.isfinite(sampler.log_density(fresh.first(1), fresh.matrix[:, 1])).all()


def logistic_rows(n, seed):
    """Return rows of a known process: log odds of 1.5 x, beside a column of noise."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, n))
    return pd.DataFrame({"x": x, "noise": noise, "y": pd.Categorical(rng.random(n) < 1 / (1 + np.exp(-1.5 * x)))})


def of_new_rows(sampler, frame):
    table = Schema.from_data(frame).encode(frame)
    return sampler.log_density(table.first(2), table.matrix[:, 2])


def test_overconfident_tree_is_smoothed_by_held_out_rows():
    new = logistic_rows(1000, 2)
    sampler, _ = fit(logistic_rows(2000, 1), DecisionTreeClassifier(random_state=0))
    found = of_new_rows(sampler, new)
    assert found.min() > -3.0  # fitted to all rows, it was log(5 / 2005 / 2) = -6.7 for a third of the rows
    assert found.mean() > np.log(0.5)  # the value of the margin alone


def test_calibrated_probabilities_hardly_change():
    rows, new = logistic_rows(2000, 1), logistic_rows(1000, 2)
    for estimator in (LogisticRegression(), DecisionTreeClassifier(min_samples_leaf=100, random_state=0)):
        sampler, _ = fit(rows, estimator)
        plain = estimator.fit(rows[["x", "noise"]].to_numpy(), rows["y"].cat.codes)
        own = plain.predict_proba(new[["x", "noise"]].to_numpy())[np.arange(1000), new["y"].cat.codes]
        assert of_new_rows(sampler, new).mean() == pytest.approx(np.log(own).mean(), abs=0.01)
        assert 5 / 2005 <= sampler.share_of_margin_ < 0.1


@pytest.mark.parametrize("truth", [0.0, 0.3, 1.0])
def test_weight_of_the_margin_maximises_the_likelihood(truth):
    rng = np.random.default_rng(3)
    predicted, margin, counts = rng.random(400) ** 3, rng.uniform(0.1, 0.9, 400), rng.integers(1, 4, 400).astype(float)
    if truth != 0.3:  # one of the two is never better
        predicted = margin + (0.05 if truth == 0.0 else -0.05)
    grid = np.linspace(0.01, 1.0, 991)
    likelihood = counts @ np.log(predicted[:, None] + (margin - predicted)[:, None] * grid)
    assert best_weight(predicted, margin, counts, 0.01) == pytest.approx(grid[likelihood.argmax()], abs=0.001)


def test_classifier_that_needs_all_rows_is_fitted():
    """A fold leaves fewer rows of the rare level than the inner folds of the calibration need."""
    frame = pd.DataFrame({"x": np.arange(50.0), "y": pd.Categorical(["a"] * 45 + ["b"] * 5)})
    sampler, given = fit(frame, CalibratedClassifierCV(GaussianNB(), cv=5))
    density = np.array([sampler.log_density(given, np.full(50, float(level))) for level in range(2)])
    np.testing.assert_allclose(np.exp(density).sum(axis=0), 1.0, rtol=1e-12)


def test_relabelled_givens_have_no_effect(grades):
    """Unordered levels enter as 0/1 columns, so their codes do not matter."""
    renamed = grades.assign(job=grades["job"].map({"clerk": "z", "cook": "y", "pilot": "x"}))
    one, given = fit(grades, LogisticRegression(max_iter=3000))
    other, renamed_given = fit(renamed, LogisticRegression(max_iter=3000))
    values = np.zeros(900)
    np.testing.assert_allclose(
        one.log_density(given, values), other.log_density(renamed_given, values), rtol=1e-3, atol=1e-4
    )


def test_unseen_level_has_zero_probability(grades):
    y = grades["y"].cat.rename_categories({"b": "q"}).cat.set_categories(["a", "never", "q", "c", "nor this"])
    sampler, given = fit(grades.assign(y=y), LogisticRegression(max_iter=3000))
    drawn = np.concatenate([draw(sampler, given, row, 300) for row in range(3)])
    assert set(drawn) == {0.0, 2.0, 3.0}
    rows = given.take(np.zeros(6, dtype=int))
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0, np.nan])
    assert sampler.supports(rows, values).tolist() == [True, False, True, True, False, False]
    density = sampler.log_density(rows, values)
    assert np.isneginf(density).tolist() == [False, True, False, False, True, True]
    assert np.exp(density).sum() == pytest.approx(1.0, abs=1e-12)


def test_single_level_needs_no_classifier():
    """LogisticRegression raises for one class."""
    y = pd.Categorical(["b"] * 20, ["a", "b"])
    sampler, given = fit(pd.DataFrame({"x": np.arange(20.0), "y": y}), LogisticRegression())
    assert (draw(sampler, given, 0, 10) == 1.0).all()
    assert sampler.log_density(given.take(np.arange(2)), np.array([0.0, 1.0])).tolist() == [-np.inf, 0.0]
    allowed = Within(levels=np.array([[True, True], [True, False]]))
    np.testing.assert_array_equal(draw(sampler, given, 0, 2, allowed), [1.0, np.nan])


def test_restricted_levels_follow_their_probabilities(grades):
    frame = grades.assign(y=grades["y"].cat.as_ordered())
    sampler, given = fit(frame, GaussianNB())
    design = np.column_stack([grades["x"], pd.get_dummies(grades["job"]).to_numpy(float), grades["size"].cat.codes])
    p = GaussianNB().fit(design, grades["y"].cat.codes).predict_proba(design)[4]
    n = 4000
    for within, allowed in (
        (Within(levels=np.tile([True, False, True], (n, 1))), [0, 2]),
        (Within(low=np.full(n, 1.0)), [1, 2]),
        (Within(high=np.full(n, 1.0), levels=np.tile([True, True, False], (n, 1))), [0, 1]),
    ):
        values, counts = np.unique(draw(sampler, given, 4, n, within), return_counts=True)
        assert values.tolist() == allowed
        assert stats.chisquare(counts, n * p[allowed] / p[allowed].sum()).pvalue > LEVEL
    assert np.isnan(draw(sampler, given, 4, 2, Within(low=np.full(2, 2.5)))).all()
