set.seed(3)
known <- data.frame(age = sample(20:69, 500, TRUE))
known$income <- round(20 + known$age / 2 + 5 * rnorm(500), 2)
known$job <- factor(ifelse(runif(500) < plogis(known$income / 5 - 8), "pilot", "cook"))
score <- function(rows) rows$income / 100
linear <- r_sampler(
  learn = function(x, y) lm(y ~ ., cbind(x, y = y)),
  draw = function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)
)
logistic <- r_sampler(
  learn = function(x, y) glm(y ~ ., binomial, cbind(x, y = y)),
  probs = function(object, newdata) predict(object, newdata, type = "response")
)
both <- list(income = linear, job = logistic, "*" = "cart")
refused <- known[known$income < 40, ][1:4, ]

test_that("functions of R draw with and without constraints", {
  skip_if_no_mcce()
  before <- { set.seed(4); .Random.seed }
  some <- mcce(score, known, fixed = "age", decision = c(0.5, 1), sampler = both, random_state = 1, keep = FALSE)
  found <- explain(some, refused, n_samples = 200)
  expect_identical(.Random.seed, before)
  expect_true(all(found$rows$income >= 50))
  expect_identical(levels(found$rows$job), c("cook", "pilot"))
  pilots <- explain(some, refused, n_samples = 200, constraints = list(allow("job", levels = "pilot"), "income <= 60"))
  expect_true(all(pilots$rows$job == "pilot"))
  expect_true(all(pilots$rows$income <= 60))
  expect_identical(explain(some, refused[2, ], n_samples = 200)$rows$income, found$rows$income[2])
})

test_that("models fitted by R are saved with the object", {
  skip_if_no_mcce()
  some <- mcce(score, known, fixed = "age", decision = c(0.5, 1), sampler = both, random_state = 1)
  found <- explain(some, refused, n_samples = 100)
  again <- unserialize(serialize(some, NULL))
  expect_output(print(again), "the next call restores it")
  expect_identical(explain(again, refused, n_samples = 100)$rows, found$rows)
})

test_that("the draws have the distribution of the functions", {
  skip_if_no_mcce()
  some <- mcce(
    function(rows) rep(1, nrow(rows)), known,
    fixed = "age", decision = c(0.5, 1), sampler = both, condition_on_decision = FALSE, random_state = 1, keep = FALSE
  )
  pool <- mcce:::call_python("generate", some$state$python, mcce:::send_table(known[1, ], template = some$template), 2000)
  drawn <- mcce:::receive_table(pool, some$template)
  model <- lm(income ~ age, known)
  tested <- suppressWarnings(stats::ks.test(drawn$income, "pnorm", predict(model, known[1, ]), sigma(model))) # about ties
  expect_gt(tested$p.value, 1e-4)
  chances <- predict(glm(job ~ age + income, binomial, known), drawn, type = "response")
  expect_lt(abs(sum(drawn$job == "pilot") - sum(chances)) / sqrt(sum(chances * (1 - chances))), 4)
})

test_that("levels are those of R", {
  skip_if_no_mcce()
  seen <- new.env()
  logical <- r_sampler(
    learn = function(x, y) {
      seen$x <- x
      seen$y <- y
      glm(y ~ ., binomial, cbind(x, y = y))
    },
    probs = function(object, newdata) {
      p <- predict(object, newdata, type = "response")
      cbind("TRUE" = p, "FALSE" = 1 - p)
    }
  )
  rows <- data.frame(age = known$age, grade = cut(known$age, 3, c("C", "B", "A"), ordered_result = TRUE))
  rows$rich <- known$income > 40
  some <- mcce(
    function(rows) rep(1, nrow(rows)), rows,
    fixed = c("age", "grade"), sampler = logical, condition_on_decision = FALSE, keep = FALSE
  )
  expect_identical(seen$y, factor(rows$rich))
  expect_identical(seen$x$grade, rows$grade)
  expect_identical(seen$x$age, as.double(rows$age))
})

test_that("quantiles, and functions that use R's generator, draw with and without constraints, and are saved", {
  skip_if_no_mcce()
  lm_of <- linear$learn
  model <- lm(income ~ age, known)
  samplers <- list(
    quantiles = r_sampler(lm_of, quantiles = function(object, newdata, p) outer(predict(object, newdata), sigma(object) * qnorm(p), `+`)),
    own = r_sampler(lm_of, draw = function(object, newdata) predict(object, newdata) + rnorm(1, 0, sigma(object)), own_rng = TRUE)
  )
  for (one in samplers) {
    before <- { set.seed(5); .Random.seed }
    some <- mcce(
      function(rows) rep(1, nrow(rows)), known[c("age", "income")],
      fixed = "age", sampler = one, condition_on_decision = FALSE, random_state = 1
    )
    draw <- function(rows) {
      pool <- mcce:::call_python("generate", some$state$python, mcce:::send_table(rows, template = some$template), 1000)
      mcce:::receive_table(pool, some$template)$income
    }
    drawn <- draw(known[1:2, c("age", "income")])
    expect_identical(.Random.seed, before)
    expect_identical(length(some$samplers[[1]]$learned), 1L) # fits without a fold are dropped
    for (row in 1:2) {
      tested <- suppressWarnings(stats::ks.test(drawn[(row - 1) * 1000 + 1:1000], "pnorm", predict(model, known[row, ]), sigma(model)))
      expect_gt(tested$p.value, 1e-4)
    }
    expect_identical(draw(known[2, c("age", "income")]), drawn[1001:2000])
    less <- mcce(score, known[c("age", "income")], fixed = "age", sampler = one, decision = c(0.5, 1), random_state = 1)
    found <- explain(less, refused[c("age", "income")], n_samples = 50, constraints = "income <= 52")
    expect_true(all(found$rows$income >= 50 & found$rows$income <= 52))
    again <- unserialize(serialize(less, NULL))
    expect_identical(explain(again, refused[c("age", "income")], n_samples = 50, constraints = "income <= 52")$rows, found$rows)
  }
})

test_that("invalid functions raise", {
  skip_if_no_mcce()
  expect_error(r_sampler(lm), "needs exactly one of probs, quantiles and draw", class = "mcce_error")
  expect_error(r_sampler(lm, draw = "x"), "draw of r_sampler\\(\\) is a character", class = "mcce_error")
  expect_error(r_sampler(lm, probs = lm, quantiles = lm), "exactly one of", class = "mcce_error")
  expect_error(r_sampler(lm, draw = lm, own_rng = NA), "own_rng of r_sampler\\(\\) is NA", class = "mcce_error")
  expect_error(r_sampler(lm, probs = lm, own_rng = TRUE), "TRUE without draw", class = "mcce_error")
  expect_output(print(r_sampler(lm, draw = lm, own_rng = TRUE)), "by learn and draw, row by row")
  expect_output(print(linear), "R conditional, by learn and draw")
  fails <- function(...) mcce(score, known, fixed = c("age", "job"), sampler = list(income = r_sampler(...)), keep = FALSE)
  expect_error(fails(function(x, y) stop("no idea"), draw = function(object, newdata, u) u), "learn of r_sampler\\(\\) stopped: no idea", class = "mcce_error")
  own <- function(object, newdata, u) rnorm(nrow(newdata))
  expect_error(fails(function(x, y) 1, draw = own), "another value for a row among other rows.*own_rng = TRUE", class = "mcce_error")
  wide <- function(object, newdata, p) matrix(0, 3, 2)
  expect_error(fails(function(x, y) 1, quantiles = wide), "quantiles returned 3 by 2; a matrix of", class = "mcce_error")
  probs <- function(object, newdata) 0.5
  expect_error(fails(function(x, y) 1, probs = probs), "it is numeric", class = "mcce_error")
})
