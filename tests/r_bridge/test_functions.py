"""R functions as conditionals: conformance, predictions of R, and errors."""

import threading

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import MCCEError, SamplerError, Within
from mcce.rcompat.conditional import LARGEST_SEED
from mcce.rng import RowStreams
from mcce.storage.learned import get_state
from mcce.table import Column, Schema
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from mcce.testing.tables import FitProblem, make_problem
from r_bridge import MiceSampler, RBridgeError, RSampler, RWarning, SynthpopSampler, to_r
from tests.marks import nightly_but

LM = "function(x, y) lm(y ~ ., cbind(x, y = y))"
LM_DRAW = "function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)"
GAM = """function(x, y) {
  smooth <- names(x)[vapply(x, function(v) is.numeric(v) && length(unique(v)) > 9, TRUE)]
  terms <- c(sprintf("s(%s)", smooth), setdiff(names(x), smooth))
  mgcv::gam(reformulate(terms, "y"), data = cbind(x, y = y))
}"""
# lm() with contrasts by hand: predict() of one row takes twenty times as long, and each row is drawn alone
LM_BY_HAND = """function(x, y) {
  numbers <- function(v) if (is.factor(v)) seq_along(levels(v))[-1] == as.integer(v) else v
  design <- function(row) c(1, unlist(lapply(row, numbers)))
  rows <- t(vapply(seq_len(nrow(x)), function(i) design(x[i, , drop = FALSE]), design(x[1, , drop = FALSE])))
  fit <- lm.fit(rows, y)
  slopes <- ifelse(is.na(fit$coefficients), 0, fit$coefficients)
  list(design = design, slopes = slopes, sigma = sqrt(sum(fit$residuals^2) / fit$df.residual))
}"""
RANGER = "function(x, y) ranger::ranger(x = x, y = y, %s, num.trees = 40, min.node.size = 50, num.threads = 1)"
PROBS = "function(object, newdata) predict(object, newdata, type = 'probs')"
# package, sampler
SAMPLERS = {
    "lm, quantiles": (
        "stats",
        RSampler(
            LM,
            quantiles="function(object, newdata, p) outer(predict(object, newdata), sigma(object) * qnorm(p), `+`)",
        ),
    ),
    "lm, draw": ("stats", RSampler(LM, draw=LM_DRAW, kinds=["numeric"])),
    "gam": (
        "mgcv",
        RSampler(
            GAM,
            quantiles="function(object, newdata, p) "
            "outer(as.vector(predict(object, newdata)), sqrt(object$sig2) * qnorm(p), `+`)",
        ),
    ),
    "ranger, quantiles": (
        "ranger",
        RSampler(
            RANGER % "quantreg = TRUE",
            quantiles="function(object, newdata, p) "
            "predict(object, newdata, type = 'quantiles', quantiles = p, num.threads = 1)",
        ),
    ),
    "ranger, probabilities": (
        "ranger",
        RSampler(
            RANGER % "probability = TRUE", probs="function(object, newdata) predict(object, newdata, num.threads = 1)"
        ),
    ),
    "multinom": (
        "nnet",
        RSampler("function(x, y) nnet::multinom(y ~ ., cbind(x, y = y), trace = FALSE)", probs=PROBS),
    ),
    "polr": ("MASS", RSampler("function(x, y) MASS::polr(y ~ ., cbind(x, y = y))", probs=PROBS)),
}
OF_ONE_ROW = {
    "own generator": RSampler(
        LM_BY_HAND,
        draw="function(object, newdata) sum(object$slopes * object$design(newdata)) + object$sigma * rnorm(1)",
        own_rng=True,
        kinds=["numeric"],
    ),
    "mice's norm.nob": MiceSampler("norm.nob"),
    "mice's pmm": MiceSampler("pmm"),
}
MANY_DRAWS = ("check_within", "check_sample_within", "check_log_mass")  # hundreds for each row; below, for some rows


@pytest.mark.slow
@pytest.mark.parametrize("check", [*CHECKS, *GOODNESS_OF_FIT], ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", nightly_but(list(SAMPLERS), "lm, draw"))
def test_conformance(r, need, name, check):
    package, sampler = SAMPLERS[name]
    need(package)
    check(sampler, 0)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "check", [c for c in [*CHECKS, *GOODNESS_OF_FIT] if c.__name__ not in MANY_DRAWS], ids=lambda check: check.__name__
)
@pytest.mark.parametrize("name", OF_ONE_ROW)
def test_conformance_row_by_row(r, need, name, check):
    sampler = OF_ONE_ROW[name]
    if name.startswith("mice"):
        need("mice")
    check(sampler, 0)


def drawn_from(fitted, given, seed=1):
    return fitted.sample(given, RowStreams.from_seed(seed, given.n_rows))


def data_of(problem):
    """The givens and the target of a problem as a frame, levels by name."""
    columns = {f.name: pd.Series(f.decode(problem.given.matrix[:, j])) for j, f in enumerate(problem.given.features)}
    return pd.DataFrame({**columns, "y": pd.Series(problem.target.feature.decode(problem.target.values))})


def test_draws_match_r_for_our_uniform_numbers(r, compared):
    problem = make_problem("numeric", 3, by_sex=True)
    fitted = SAMPLERS["lm, draw"][1].clone().fit(problem.given, problem.target)
    u = RowStreams.from_seed(5, problem.given.n_rows).uniform()
    code = "function(data, u) { fit <- lm(y ~ ., data); unname(predict(fit, data) + sigma(fit) * qnorm(u)) }"
    expected = r.numbers(r.call("evaluate", code, None)(to_r(data_of(problem)), r.vector(u)))
    np.testing.assert_allclose(drawn_from(fitted, problem.given, 5), expected, rtol=1e-12)
    compared("draws by functions of R", u.size)


@pytest.mark.parametrize("n_levels", [2, 4])
def test_probabilities_match_multinom_for_one_row_and_for_many(r, need, n_levels, compared):
    """predict() drops a dimension for one row, and a column for two levels."""
    need("nnet")
    problem = make_problem("categorical", 2, by_sex=True)
    target = Column(problem.target.feature, np.minimum(problem.target.values, n_levels - 1.0))
    fitted = SAMPLERS["multinom"][1].clone().fit(problem.given, target)
    code = "fit <- nnet::multinom(y ~ ., data, trace = FALSE); as.vector(predict(fit, data, type = 'probs'))"
    data = data_of(FitProblem(problem.given, target))
    data["y"] = data["y"].cat.remove_unused_categories()
    answer = r.numbers(r.call("evaluate", code, to_r(data)))
    second = answer if n_levels == 2 else answer.reshape(-1, 4, order="F")[:, 1]
    found = np.exp(fitted.log_density(problem.given, np.ones(answer.size // (1 if n_levels == 2 else 4))))
    share = np.mean(target.values == 1.0)
    donors = fitted.share_of_margin_
    np.testing.assert_allclose(found, second + donors * (share - second), rtol=1e-10)
    for row in (0, 17):
        one = problem.given.take([row])
        np.testing.assert_allclose(np.exp(fitted.log_density(one, np.ones(1))), found[[row]], rtol=1e-12)
        assert drawn_from(fitted, one).shape == (1,)
    compared("draws by functions of R", found.size)


@pytest.mark.slow
def test_rows_drawn_singly_match_the_same_model_by_lm(r, compared):
    problem = make_problem("numeric", 3, by_sex=True)
    draw = "function(object, newdata) predict(object, newdata) + sigma(object) * rnorm(1)"
    by_lm = RSampler(LM, draw=draw, own_rng=True, kinds=["numeric"])
    rows = problem.given.take(np.arange(60))
    found, expected = (
        drawn_from(each.clone().fit(problem.given, problem.target), rows)
        for each in (OF_ONE_ROW["own generator"], by_lm)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    compared("draws by functions of R", rows.n_rows)


def test_tail_quantiles_use_held_out_rows(r):
    """A model that memorises the training rows does not show the noise; held-out rows do."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400)})
    frame["y"] = frame["x"] + rng.normal(size=400)
    table = Schema.from_data(frame).encode(frame)
    by_heart = RSampler(
        "function(x, y) list(x = x$x, y = y)",
        quantiles="""function(object, newdata, p) {
          nearest <- vapply(newdata$x, function(v) object$y[which.min(abs(object$x - v))], 0)
          matrix(nearest, length(nearest), length(p))
        }""",
    ).fit(table.first(1), table.column(1))
    drawn = drawn_from(by_heart, table.first(1))
    assert 0.05 < np.mean(drawn != frame["y"]) < 0.2  # two tails of 5 % each
    beyond = (drawn - frame["y"])[drawn != frame["y"]]
    assert np.std(beyond) > 0.5


def test_restricted_draws_are_exact_and_weighted(r):
    problem = make_problem("numeric", 1, givens=("sex",), by_sex=True)
    fitted = SAMPLERS["lm, quantiles"][1].clone().fit(problem.given, problem.target)
    given = problem.given.take(np.zeros(3000, dtype=np.intp))
    free = drawn_from(fitted, given)
    low = np.full(3000, np.quantile(free, 0.8))
    drawn = fitted.sample_within(given, RowStreams.from_seed(9, 3000), Within(low=low, weighted=True))
    assert not drawn.rejected.any()
    assert stats.ks_2samp(drawn.values, free[free >= low[0]]).pvalue > 0.001
    np.testing.assert_allclose(np.exp(drawn.log_mass), 0.2, atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own generator", "mice's norm.nob"])
def test_restricted_draws_of_functions_that_draw_themselves(r, need, name):
    if name != "own generator":
        need("mice")
    problem = make_problem("numeric", 1, givens=("sex",), by_sex=True)
    fitted = OF_ONE_ROW[name].clone().fit(problem.given, problem.target)
    given = problem.given.take(np.zeros(40, dtype=np.intp))
    low = np.full(40, np.median(drawn_from(fitted, given)))
    low[:3] = 1e6
    drawn = fitted.sample_within(given, RowStreams.from_seed(2, 40), Within(low=low))
    assert drawn.rejected.tolist() == [True] * 3 + [False] * 37
    assert (drawn.values[3:] >= low[3:]).all()


OWN_CALLS = {
    MiceSampler: """
        y <- data$y[c(seq_along(data$y), NA)]
        mice::mice.impute.%s(y, !is.na(y), contrasts[c(seq_len(nrow(data)), i), ])""",
    SynthpopSampler: """
        x <- if (takes_contrasts) as.data.frame(contrasts) else data[c("height", "sex")]
        synthpop::syn.%s(data$y, x, x[c(i, i), ])$res[1]""",
}


@pytest.mark.parametrize(
    ("of", "method"),
    [
        pytest.param(of, name, marks=[pytest.mark.nightly] * (name in ("midastouch", "polr", "rf", "polyreg")))
        for of in OWN_CALLS
        for name in of.methods
    ],
    ids=lambda part: getattr(part, "package", part),
)
def test_methods_draw_like_their_package(r, need, of, method, compared):
    """With the same seed, equal to the package's function on the same rows; correct distribution by sex."""
    known = of.methods[method]
    for package in (of.package, known.package or "stats"):
        need(package)
    kind = "numeric" if "numeric" in known.handles else "categorical"
    problem = make_problem(kind, 0, givens=("height", "sex"), by_sex=True)
    if known.two_levels:
        values = np.minimum(problem.target.values, 1.0)
        problem = FitProblem(problem.given, Column(problem.target.feature, values))
    if method in ("lognorm", "sqrtnorm"):  # these need positive values
        values = problem.target.values - problem.target.values.min() + 1.0
        problem = FitProblem(problem.given, Column(problem.target.feature, values))
    fitted = of(method).fit(problem.given, problem.target)
    rows = problem.given.take(np.arange(60))
    drawn = drawn_from(fitted, rows)
    seeds = (RowStreams.from_seed(1, 60).uniform() * LARGEST_SEED).astype(np.int64)
    code = """function(data, seeds, takes_contrasts) {
      before <- .Random.seed
      contrasts <- cbind(height = data$height, sexm = as.numeric(data$sex == "m"))
      own <- function(i) {
        set.seed(seeds[i])
        drawn <- {%s}
        if (is.numeric(data$y)) drawn else match(as.character(drawn), levels(data$y)) - 1
      }
      utils::capture.output(value <- vapply(seq_along(seeds), own, 0))
      assign(".Random.seed", before, globalenv())
      value
    }"""
    data = data_of(problem)
    if kind != "numeric":
        data["y"] = data["y"].cat.remove_unused_categories()
    r.call("evaluate", "set.seed(1)", None)
    own = r.call("evaluate", code % (OWN_CALLS[of] % method), None)
    expected = r.numbers(own(to_r(data), r.vector(seeds), r.vector(np.array([known.takes_contrasts]))))
    np.testing.assert_allclose(drawn, expected, rtol=1e-9)
    compared(f"draws by methods of {of.package}", 60)
    again = fitted.sample(rows.take([50, 7]), RowStreams.from_seed(1, 60).take(np.array([50, 7])))
    np.testing.assert_array_equal(again, drawn[[50, 7]])
    sex = problem.given.matrix[:, 1]
    means = [problem.target.values[sex == level].mean() for level in (0.0, 1.0)]
    spread = problem.target.values[sex == 0].std() / np.sqrt(25)
    for level, mean in zip((0.0, 1.0), means):
        assert abs(drawn[rows.matrix[:, 1] == level].mean() - mean) < 4 * spread


def test_options_are_passed_to_a_mice_method(r, need):
    need("mice")
    problem = make_problem("numeric", 0, givens=("height", "sex"), by_sex=True)
    one = problem.given.take(np.zeros(60, dtype=np.intp))
    for donors in (1, 7):
        sampler = MiceSampler("pmm", options={"donors": donors, "matchtype": 0}).fit(problem.given, problem.target)
        assert np.unique(drawn_from(sampler, one)).size == donors


@pytest.mark.slow
def test_random_state_of_r_is_unchanged(r, need):
    need("ranger")
    problem = make_problem("numeric", 0, givens=("sex", "height"))
    r.call("evaluate", "set.seed(9)", None)
    expected = list(r.call("evaluate", "runif(3)", None))
    for sampler in (SAMPLERS["ranger, quantiles"][1], OF_ONE_ROW["own generator"]):
        r.call("evaluate", "set.seed(9)", None)
        drawn_from(sampler.clone().fit(problem.given, problem.target), problem.given.take(np.arange(5)))
        assert list(r.call("evaluate", "runif(3)", None)) == expected


def test_equal_probabilities_keep_the_random_state_of_r(r):
    """max.col() of a matrix with ties uses random numbers."""
    problem = make_problem("categorical", 0)
    code = "{ set.seed(9); sum(.Random.seed) }"
    before = list(r.call("evaluate", code, None))
    drawn_from(
        RSampler(FIRST, probs="function(object, newdata) matrix(0.25, nrow(newdata), 4)").fit(
            problem.given, problem.target
        ),
        problem.given,
    )
    assert list(r.call("evaluate", "sum(.Random.seed)", None)) == before


@pytest.mark.slow
def test_in_a_chain_and_an_explainer(r, need):
    need("nnet")
    loans = mcce.datasets.load_loans(300)
    samplers = {"salary": RSampler(LM, draw=LM_DRAW), "housing": SAMPLERS["multinom"][1], "*": "cart"}
    drawn = [
        mcce.ChainModel(sampler=samplers, fixed=["age", "sex"], random_state=5, n_jobs=jobs)
        .fit(loans.X)
        .sample(given=loans.X[["age", "sex"]].head(6), n=20)
        for jobs in (1, 4)
    ]
    pd.testing.assert_frame_equal(*drawn)
    explainer = mcce.MCCE(
        lambda X: X["salary"].to_numpy(float),
        decision=(60_000, np.inf),
        fixed=["age"],
        sampler=samplers,
        random_state=1,
    ).fit(loans.X)
    poor = loans.X[loans.X["salary"] < 60_000].head(4)
    found = explainer.explain(poor, n_samples=100, constraints=[mcce.allow("housing", levels=["own", "rent"])])
    assert (found.frame["salary"] >= 60_000).all()


def test_unobserved_levels_are_never_drawn(r, need):
    need("nnet")
    problem = make_problem("categorical", 0, unobserved=True)
    fitted = SAMPLERS["multinom"][1].clone().fit(problem.given, problem.target)
    assert set(drawn_from(fitted, problem.given)) <= set(problem.target.values)


def test_other_threads_raise(r):
    problem = make_problem("numeric", 0)
    fitted = SAMPLERS["lm, draw"][1].clone().fit(problem.given, problem.target)
    caught = []

    def work():
        try:
            drawn_from(fitted, problem.given)
        except RBridgeError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    assert "from the thread 'worker', and R has a single thread" in caught[0]


FIRST = "function(x, y) y"
ZERO = "function(object, newdata, u) rep(0, nrow(newdata))"
REFUSED = {
    "none": (RSampler(FIRST), "none of probs, quantiles and draw; give exactly one"),
    "two": (RSampler(FIRST, probs=ZERO, draw=ZERO), "'probs', 'draw'; give exactly one"),
    "generator": (RSampler(FIRST, quantiles=ZERO, own_rng=True), "own_rng of RSampler is True with quantiles; "),
    "no function": (RSampler("1 + 1", draw=ZERO), "learn of RSampler is '1 \\+ 1'; give a function of R"),
    "kinds": (RSampler(FIRST, quantiles=ZERO, kinds=["ordered"]), "kinds of RSampler is \\['ordered'\\]; give some of"),
    "error of R": (RSampler("function(x, y) stop('no such model')", draw=ZERO), "no such model"),
    "neighbours": (
        RSampler(FIRST, draw="function(object, newdata, u) u + nrow(newdata)"),
        "draw of RSampler returns another value for a row among other rows.*own_rng=True",
    ),
    "R's generator": (
        RSampler(FIRST, draw="function(object, newdata, u) rnorm(nrow(newdata))"),
        "at another state of R's generator",
    ),
    "too few": (RSampler(FIRST, draw="function(object, newdata, u) 1"), "draw returned 1 values for 6 rows"),
    "not finite": (RSampler(FIRST, draw="function(object, newdata, u) u / 0"), "numbers that are not finite"),
    "quantiles": (
        RSampler(FIRST, quantiles="function(object, newdata, p) matrix(0, length(p), nrow(newdata))"),
        "quantiles returned 2 by 120; a matrix of 120 rows by 2 levels of p is needed",
    ),
    "method": (MiceSampler("2l.norm"), "method of MiceSampler is '2l.norm'; allowed: 'norm'"),
    "options": (MiceSampler("norm", options=3), "options of MiceSampler is 3"),
    "synthpop's method": (SynthpopSampler("ipf"), "method of SynthpopSampler is 'ipf'; allowed: 'norm'"),
    "levels": (RSampler(FIRST, probs=ZERO), "cannot model 'target': it is numeric"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_targets_that_cannot_be_drawn_raise(r, name):
    sampler, message = REFUSED[name]
    problem = make_problem("numeric", 0)
    with pytest.raises(MCCEError, match=message):
        sampler.fit(problem.given, problem.target)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        ("function(object, newdata) matrix(1, nrow(newdata), 4)", "those of row 1 sum to 4"),
        ("function(object, newdata) matrix(0.5, nrow(newdata), 2)", "a matrix of 6 by 2 for 6 rows and the levels"),
        ("function(object, newdata) 1:3", "probs returned 3 values for 6 rows and 4 levels"),
    ],
)
def test_invalid_probabilities_raise(r, probs, message):
    problem = make_problem("categorical", 0)
    with pytest.raises(RBridgeError, match=message):
        RSampler(FIRST, probs=probs).fit(problem.given, problem.target)


def test_mice_method_for_two_levels_rejects_more(r, need):
    need("mice")
    problem = make_problem("ordered", 0)
    with pytest.raises(SamplerError, match=r"it has 4 levels, and the method needs two\. Use polyreg or polr"):
        MiceSampler("logreg").fit(problem.given, problem.target)


def test_fit_of_r_is_not_stored(r):
    problem = make_problem("numeric", 0)
    fitted = SAMPLERS["lm, draw"][1].clone().fit(problem.given, problem.target)
    with pytest.raises(SamplerError, match="holds an object of R, which cannot be written"):
        get_state(fitted)


def test_warnings_of_r_are_issued(r):
    problem = make_problem("numeric", 0)
    with pytest.warns(RWarning, match="R warns: beware"):
        RSampler("function(x, y) { warning('beware'); y }", draw=ZERO).fit(problem.given, problem.target)


FAILING = {
    "learn": (RSampler("function(x, y) stop('no idea')", draw=ZERO), "learn"),
    "draw": (RSampler(FIRST, draw="function(object, newdata, u) stop('no idea')"), "draw"),
    "quantiles": (RSampler(FIRST, quantiles="function(object, newdata, p) stop('no idea')"), "quantiles"),
    "draw with own_rng": (RSampler(FIRST, draw="function(object, newdata) stop('no idea')", own_rng=True), "draw"),
}


@pytest.mark.parametrize("name", FAILING)
def test_errors_of_r_name_the_feature_and_the_function(r, name):
    sampler, function = FAILING[name]
    air = mcce.datasets.load_airquality(dropna=True).X
    chain = mcce.ChainModel(sampler={"Temp": sampler, "*": "cart"}, fixed=["Month"], random_state=1)
    with pytest.raises(
        RBridgeError, match=rf"feature 'Temp': {function} of RSampler failed\. R refused, in .*: no idea"
    ):
        chain.fit(air).sample(given=air[["Month"]].head(2))


def test_answers_that_depend_on_other_rows_name_the_feature(r):
    problem = make_problem("numeric", 0)
    with pytest.raises(SamplerError, match="feature 'target': draw of RSampler returns another value for a row"):
        RSampler(FIRST, draw="function(object, newdata, u) u + nrow(newdata)").fit(problem.given, problem.target)


def test_unparsable_r_code_names_the_function(r):
    problem = make_problem("numeric", 0)
    with pytest.raises(RBridgeError, match=r"draw of RSampler is not the code of an R function\. R refused, in parse"):
        RSampler(FIRST, draw="function(object, newdata, u) {").fit(problem.given, problem.target)


def with_gaps(kind, n=400):
    """A target whose level and missingness depend on x; where x is missing, the target is high."""
    rng = np.random.default_rng(5)
    x, group = rng.normal(size=n), rng.integers(0, 2, n)
    signal = np.where(rng.random(n) < 0.3, np.nan, x)
    noisy = np.where(np.isnan(signal), 6.0, 2.0 * x) + rng.normal(size=n)
    target = (
        pd.Series(noisy)
        if kind == "numeric"
        else pd.Series(pd.Categorical.from_codes((noisy > 5.0).astype(int), ["no", "yes"]))
    )
    return pd.DataFrame(
        {
            "x": signal,
            "group": pd.Series(pd.Categorical.from_codes(group, ["a", "b"])).mask(rng.random(n) < 0.2),
            "target": target.mask(rng.random(n) < np.where(group == 1, 0.6, 0.1)),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(("method", "kind"), [("norm", "numeric"), ("pmm", "numeric"), ("logreg", "categorical")])
def test_mice_draws_with_missing_givens_and_targets(r, need, method, kind):
    need("mice")
    frame = with_gaps(kind)
    table = Schema.from_data(frame).encode(frame)
    given, target = table.first(2), table.column(2)
    rows = given.take(np.arange(200))
    drawn = drawn_from(MiceSampler(method).fit(given, target), rows)
    is_b, gone = rows.matrix[:, 1] == 1.0, np.isnan(rows.matrix[:, 0])
    # the shares are 0.6 and 0.1, among some 80 rows each: four standard errors and more
    assert 0.3 < np.isnan(drawn[is_b]).mean() < 0.85
    assert np.isnan(drawn[rows.matrix[:, 1] == 0.0]).mean() < 0.3
    at_missing, at_known = (np.nanmean(drawn[which]) for which in (gone, ~gone))
    expected = [np.nanmean(target.values[:200][which]) for which in (gone, ~gone)]
    np.testing.assert_allclose([at_missing, at_known], expected, atol=0.8 if kind == "numeric" else 0.15)


@pytest.mark.slow
def test_polyreg_of_mice_draws_two_levels(r, need):
    """By the shares of a logistic regression; mice itself fails for a single row to draw."""
    need("mice")
    need("nnet")
    problem = make_problem("categorical", 0, givens=("sex",), by_sex=True)
    target = Column(problem.target.feature, np.minimum(problem.target.values, 1.0))
    fitted = MiceSampler("polyreg").fit(problem.given, target)
    rows = problem.given.take(np.arange(100))
    drawn = drawn_from(fitted, rows)
    for sex in (0.0, 1.0):
        chosen = rows.matrix[:, 0] == sex
        expected = target.values[problem.given.matrix[:, 0] == sex].mean()
        assert stats.binomtest(int(drawn[chosen].sum()), int(chosen.sum()), expected).pvalue > 1e-3


def test_mice_gets_missing_givens_as_zero_with_an_indicator(r, need, compared):
    """With the same seed, equal to mice's function on the rows written by hand."""
    need("mice")
    frame = with_gaps("numeric").dropna(subset="target")
    table = Schema.from_data(frame).encode(frame)
    fitted = MiceSampler("norm").fit(table.first(2), table.column(2))
    drawn = drawn_from(fitted, table.first(2).take(np.arange(40)))
    code = """function(data, seeds) {
      x <- cbind(
        x = ifelse(is.na(data$x), 0, data$x), b = as.numeric(!is.na(data$group) & data$group == "b"),
        no_x = as.numeric(is.na(data$x)), no_group = as.numeric(is.na(data$group))
      )
      y <- data$target[c(seq_along(data$target), NA)]
      vapply(seq_along(seeds), function(i) {
        set.seed(seeds[i])
        as.numeric(mice::mice.impute.norm(y, !is.na(y), x[c(seq_len(nrow(x)), i), ]))
      }, 0)
    }"""
    seeds = (RowStreams.from_seed(1, 40).uniform() * LARGEST_SEED).astype(np.int64)
    expected = r.numbers(r.call("evaluate", code, None)(to_r(frame), r.vector(seeds)))
    np.testing.assert_allclose(drawn, expected, rtol=1e-9)
    compared("draws by methods of mice", 40)


@pytest.mark.slow
def test_mice_in_a_chain_with_missing_values(r, need):
    need("mice")
    air = mcce.datasets.load_airquality().X
    assert air["Solar.R"].isna().any()
    chain = mcce.ChainModel(sampler={"Solar.R": MiceSampler("pmm"), "*": "cart"}, fixed=["Month"], random_state=1)
    drawn = chain.fit(air).sample(given=air[["Month"]].iloc[::10], n=20)
    share = air["Solar.R"].isna().mean()
    assert abs(drawn["Solar.R"].isna().mean() - share) < 4 * np.sqrt(share * (1 - share) / len(drawn)) + 0.03


@pytest.mark.parametrize("values", [[np.nan, 3.0, 3.0, np.nan], [np.nan] * 4], ids=["one value", "none"])
def test_mice_draws_a_training_value_without_information(r, need, values):
    need("mice")
    frame = pd.DataFrame({"x": np.arange(40.0), "target": values * 10})
    table = Schema.from_data(frame, kinds={"target": "numeric"}).encode(frame)
    drawn = drawn_from(MiceSampler("norm").fit(table.first(1), table.column(1)), table.first(1))
    assert np.isnan(drawn).any()
    assert set(drawn[~np.isnan(drawn)]) <= {3.0}
