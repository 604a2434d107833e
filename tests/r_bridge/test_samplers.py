"""R functions as conditionals: the contract, R's own numbers, and errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mcce
from mcce.exceptions import MCCEError
from mcce.rng import RowStreams
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from mcce.testing.requirements import run
from mcce.testing.tables import Bench, make_problem
from r_bridge import RSampler, to_r

LM = "function(x, y) lm(y ~ ., cbind(x, y = y))"
LM_DRAW = "function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)"
LM_OWN = "function(object, newdata) predict(object, newdata) + sigma(object) * rnorm(1)"
# lm() for numbers and multinom() for levels; a missing given is 0, or the first level
REGRESSION = RSampler(
    """function(x, y) {
      fill <- function(x) {
        x[] <- lapply(x, function(v) replace(v, is.na(v), if (is.factor(v)) levels(v)[1] else 0))
        x
      }
      rows <- cbind(fill(x), y = y)
      if (is.factor(y)) rows$y <- factor(y, ordered = FALSE)
      model <- if (is.factor(y)) nnet::multinom(y ~ ., rows, trace = FALSE) else lm(y ~ ., rows)
      list(model = model, fill = fill, levels = levels(y))
    }""",
    """function(object, newdata, u) {
      rows <- object$fill(newdata)
      if (is.null(object$levels)) return(predict(object$model, rows) + sigma(object$model) * qnorm(u))
      p <- predict(object$model, rows, type = "probs")
      if (length(object$levels) == 2) p <- cbind(1 - p, p)
      p <- matrix(p, nrow(rows))
      object$levels[pmin(rowSums(t(apply(p, 1, cumsum)) < u) + 1, length(object$levels))]
    }""",
)
PMM = RSampler(  # as in the docstring of RSampler
    "function(x, y) list(x = data.matrix(x), y = y)",
    """function(object, newdata) mice::mice.impute.pmm(
      c(object$y, NA), c(!is.na(object$y), FALSE), rbind(object$x, data.matrix(newdata)))""",
)


def drawn_from(fitted, given, seed=1):
    return fitted.sample(given, RowStreams.from_seed(seed, given.n_rows))


def frame_of(problem):
    """Givens and target of a problem as a frame, levels by name."""
    columns = {f.name: pd.Series(f.decode(problem.given.matrix[:, j])) for j, f in enumerate(problem.given.features)}
    return pd.DataFrame({**columns, "y": pd.Series(problem.target.feature.decode(problem.target.values))})


def fitted(sampler, kind="numeric", **options):
    problem = make_problem(kind, 3, by_sex=True, **options)
    return problem, clone(sampler).set_params(random_state=0).fit(problem.given, problem.target)


@pytest.mark.slow
def test_the_contract(r, need):
    need("nnet")
    bench = Bench(REGRESSION)
    for check in (*CHECKS, *GOODNESS_OF_FIT):
        # R has one thread; restricted draws are tested in an explainer below, since the check repeats them for seconds
        if check.__name__ not in ("check_threads", "check_within"):
            run(check, bench, "RSampler")


def test_draws_are_those_of_r_for_our_uniform_numbers(r):
    problem, sampler = fitted(RSampler(LM, LM_DRAW))
    u = RowStreams.from_seed(5, problem.given.n_rows).uniform()
    code = "function(data, u) { fit <- lm(y ~ ., data); unname(predict(fit, data) + sigma(fit) * qnorm(u)) }"
    expected = r.numbers(r.evaluate(code)(to_r(frame_of(problem)), r.vector(u)))
    np.testing.assert_allclose(drawn_from(sampler, problem.given, 5), expected, rtol=1e-12)


@pytest.mark.parametrize("own", ["lm", "mice"])
def test_functions_with_a_generator_of_their_own(r, need, own):
    """The same numbers as R alone after the same seed, whatever other rows are drawn."""
    if own == "mice":
        need("mice")
    problem, sampler = fitted(PMM if own == "mice" else RSampler(LM, LM_OWN), givens=("height", "sex"))
    rows = problem.given.take(np.arange(20))
    drawn = drawn_from(sampler, rows)
    seeds = np.floor(RowStreams.from_seed(1, 20).uniform() * (2**31 - 1))
    code = {
        "lm": "{ fit <- lm(y ~ ., data); predict(fit, data[i, ]) + sigma(fit) * rnorm(1) }",
        "mice": "mice::mice.impute.pmm(data$y[c(1:n, i)], seq_len(n + 1) <= n, data.matrix(data[c(1:n, i), 1:2]))",
    }[own]
    alone = f"function(data, seeds) {{ n <- nrow(data); sapply(1:20, function(i) {{ set.seed(seeds[i]); {code} }}) }}"
    expected = r.numbers(r.evaluate(alone)(to_r(frame_of(problem)), r.vector(seeds)))
    np.testing.assert_allclose(drawn, expected, rtol=1e-9)
    some = sampler.sample(rows.take([15, 7]), RowStreams.from_seed(1, 20).take(np.array([15, 7])))
    np.testing.assert_array_equal(some, drawn[[15, 7]])


def test_a_method_of_synthpop(r, need):
    need("synthpop")
    problem, sampler = fitted(
        RSampler(
            "function(x, y) list(x = x, y = y)",
            "function(object, newdata) synthpop::syn.normrank(object$y, object$x, newdata[c(1, 1), ])$res[1]",
        )
    )
    drawn = drawn_from(sampler, problem.given.take(np.arange(30)))
    assert np.isin(drawn, problem.target.values).all()


def test_random_state_of_r_is_unchanged(r):
    for draw in (LM_DRAW, LM_OWN):
        r.evaluate("set.seed(9)")
        expected = list(r.evaluate("runif(3)"))
        r.evaluate("set.seed(9)")
        problem, sampler = fitted(RSampler(f"function(x, y) {{ rnorm(1); ({LM})(x, y) }}", draw))
        drawn_from(sampler, problem.given.take(np.arange(5)))
        assert list(r.evaluate("runif(3)")) == expected


def test_in_an_explainer_with_bounds(r):
    air = mcce.datasets.load_airquality(dropna=True)
    explainer = mcce.MCCE(
        lambda X: X["Temp"].to_numpy(float) - X["Wind"],
        decision=(-np.inf, 60.0),
        fixed=["Month"],
        sampler={"Temp": RSampler(LM, LM_DRAW)},
        random_state=1,
    ).fit(air.X)
    result = explainer.explain(air.X.tail(4), n_samples=50, constraints=[mcce.allow("Temp", low=60)])
    assert len(result.frame) > 0
    assert (result.frame["Temp"] >= 60).all()
    assert (result.frame["Temp"] == result.frame["Temp"].round()).all()


@pytest.mark.parametrize(
    ("learn", "draw", "message"),
    [
        (LM, "function(object, newdata, u) runif(nrow(newdata))", "draw of RSampler returns another value for a row"),
        (LM, "function(object, newdata, u) 1", "'target': draw of RSampler stopped. .*returned 1 values"),
        (LM, "function(object, newdata, u) newdata$height / 0", "not finite"),
        ("function(x, y) stop('too hot')", LM_DRAW, "'target': (fit|learn) of RSampler stopped. .*too hot"),
        ("lm", "1 + 1", "draw of RSampler is '1 \\+ 1', which is not a function in R"),
        (None, LM_DRAW, "learn of RSampler is None; give a text"),
        ("function(x, y", LM_DRAW, "unexpected end of input"),
    ],
)
def test_functions_that_break_the_contract_raise(r, learn, draw, message):
    with pytest.raises(MCCEError, match=message):
        fitted(RSampler(learn, draw))


def test_unknown_levels_raise(r):
    with pytest.raises(MCCEError, match="draw returned 'z', which is not a level"):
        fitted(RSampler("function(x, y) 1", "function(object, newdata, u) rep('z', nrow(newdata))"), "categorical")
