"""The parametric samplers compared with numbers of R (tests/fixtures/synthpop)."""

import numpy as np
from scipy.special import ndtri

from mcce.samplers.design import Design
from mcce.samplers.linear import normal_scores
from mcce.samplers.logistic import Multinomial, augmentation, augmented
from tests.samplers.parametric.fixtures import CASES, of


def close(ours, theirs, within=1e-6, relative=0.0):
    np.testing.assert_allclose(ours, np.asarray(theirs, dtype=float), rtol=relative, atol=within)


def test_all_cases_are_present():
    assert len(CASES) >= 17
    assert {name.split("_")[0] for name in CASES} >= {"norm", "normrank", "pmm", "logreg", "polyreg", "polr"}


@of("norm", "normrank", "pmm", "logreg", "polyreg", "polr")
def test_design(case):
    keep = case.meta["method"] in ("norm", "normrank", "pmm")
    design = Design.read(case.given, case.target.feature, keep_constants=keep)
    np.testing.assert_array_equal(design.matrix(case.given), case.numbers("design_train", "row"))


@of("norm", "normrank", "pmm")
def test_ridge_regression(case):
    fitted = case.fit()
    close(fitted.coef_, case.column("beta", "beta"))
    close(fitted.estimate_.covariance, case.numbers("V", "term"))
    close(fitted.sigma_, case.meta["sigma"])
    close(fitted.estimate_.rss, case.meta["rss"], relative=1e-10)
    predicted = case.column("yhat_new", "yhat") if case.meta["method"] == "pmm" else case.column("lp_new", "lp")
    close(fitted.predict(case.new), predicted)


@of("normrank")
def test_normrank_scores_and_map(case):
    """The scores of the training values, and the value that a drawn score becomes."""
    close(normal_scores(case.target.values), case.column("z_train", "z"), 1e-12)
    ranks = case.fit().ranks_
    for table in ("zmap", "draw_map"):
        np.testing.assert_array_equal(ranks.from_normal(case.column(table, "z")), case.column(table, "y"))


@of("normrank")
def test_normrank_probabilities_are_the_lengths_of_the_map(case):
    """A mapped fine grid of normal quantiles: the same shares computed independently."""
    fitted = case.fit()
    row = case.new.take(np.array([2]))
    grid = ndtri((np.arange(50_000) + 0.5) / 50_000)
    drawn = fitted.ranks_.from_normal(fitted.predict(row)[0] + fitted.sigma_ * grid)
    values = np.unique(case.target.values)
    distribution = fitted.distribution(row.take(np.zeros(values.size, dtype=int)))
    upto = (drawn[:, None] <= values).mean(axis=0)
    close(distribution.cdf(values), upto, 5e-5)
    below = (drawn[:, None] < values).mean(axis=0)
    close(distribution.cdf(values, below=True), below, 5e-5)


@of("pmm")
def test_pmm_donors(case):
    """The probability of each value among the three nearest donors; ties with the third share what is left."""
    distribution = case.fit().distribution(case.new)
    seen = np.unique(case.target.values)
    for i, donors in case["donors"].iterrows():
        sure, pool = ([float(y) for y in donors[c].split(";") if y] for c in ("sure_y", "pool_y"))
        expected = [(sure.count(y) + int(donors["n_from_pool"]) * pool.count(y) / len(pool)) / 3 for y in seen]
        row = distribution.take(np.full(seen.size, i))
        close(row.cdf(seen) - row.cdf(seen, below=True), expected, 1e-12)


@of("logreg", "polyreg", "polr")
def test_augmentation(case):
    fitted = case.fit()
    x = fitted.design_.matrix(case.given)
    if case.meta["method"] == "logreg":
        x = x - x.mean(axis=0)
    rows = augmentation(x, fitted.classes_.size)
    levels = np.asarray(case.target.feature.levels)[fitted.classes_]
    assert list(levels[rows.y]) == list(case["augment"]["y"])
    close(rows.weight, case.column("augment", "w"), 1e-12)
    close(rows.x, case.numbers("augment", "aug", "y", "w"), 1e-12)


@of("logreg")
def test_logreg(case):
    fitted = case.fit()
    close(fitted.shift_, case.column("beta", "x_mean")[1:], 1e-12)
    close(np.append(fitted.model_.intercept, fitted.model_.coef[0]), case.column("beta", "beta_tight"))
    close(fitted.probabilities(case.new)[:, 1], case.column("prob_new", "p_tight"))
    # R's default fit takes the information one step before convergence
    rows = augmented(fitted.design_.matrix(case.given) - fitted.shift_, case.target.values.astype(int), 2)
    covariance = Multinomial(fitted.model_.intercept, fitted.model_.coef).covariance(rows)
    close(covariance, case["cov_unscaled"].astype(float), 1e-3, 1e-3)


@of("polyreg")
def test_polyreg(case):
    fitted = case.fit()
    rescale = case["rescale"]
    rescaled = (rescale["rescaled"] == "1").to_numpy()
    close(fitted.shift_[rescaled], rescale["min"][rescaled], 1e-12)
    close((fitted.shift_ + fitted.scale_)[rescaled], rescale["max"][rescaled], 1e-12)
    assert (fitted.scale_[~rescaled] == 1).all()
    ours = np.column_stack([fitted.model_.intercept, fitted.model_.coef])
    # coefficients are up to 43; those of R are 1.2e-6 from the root of the gradient
    close(ours, case.numbers("coef_tight", "class"), 1e-6, 1e-7)
    close(fitted.probabilities(case.new), case["prob_new_tight"][case.meta["class_order"]])


@of("polr")
def test_polr(case):
    fitted = case.fit()
    assert fitted.fell_back_ is case.meta["fallback_to_multinom"]
    close(fitted.cumulative_.coef, case.column("beta", "beta_tight"))
    close(fitted.cumulative_.thresholds, case.column("thresholds", "zeta_tight"))
    close(fitted.probabilities(case.new), case["prob_new_tight"][case.meta["class_order"]])
