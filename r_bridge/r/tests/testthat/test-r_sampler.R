linear <- r_sampler(
  learn = function(x, y) lm(y ~ ., cbind(x, y = y)),
  draw = function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)
)
row_by_row <- r_sampler(linear$learn, function(object, newdata) predict(object, newdata) + rnorm(1, 0, sigma(object)))
columns <- c("age", "grade", "income")

test_that("functions of R draw within constraints, with and without R's generator", {
  skip_if_no_mcce()
  expect_output(print(linear), "^R conditional$")
  expect_output(print(row_by_row), "drawn row by row")
  for (one in list(linear, row_by_row)) {
    set.seed(4)
    before <- .Random.seed
    explainer <- fit(data = people[columns], sampler = list(income = one, "*" = sampler("cart", min_leaf = 20)))
    rows <- explain(explainer, refused[columns], n_samples = 100, constraints = "income <= 70")$rows
    expect_identical(.Random.seed, before)
    expect_true(all(rows$income >= 60 & rows$income <= 70))
    alone <- explain(explainer, refused[2, columns], n_samples = 100, constraints = "income <= 70")$rows
    expect_identical(alone, rows[2, ], ignore_attr = TRUE)
  }
})

test_that("a conditional sees numbers and factors, and draws levels", {
  skip_if_no_mcce()
  seen <- list()
  levels <- r_sampler(
    learn = function(x, y) {
      seen <<- list(x = x, y = y)
      table(y)
    },
    draw = function(object, newdata, u) names(object)[findInterval(u, cumsum(prop.table(object))) + 1]
  )
  data <- people[c("age", "grade", "owns")]
  always <- function(rows) rep(1, nrow(rows))
  explainer <- fit(always, data, c("age", "grade"), c(0, 1), sampler = levels, condition_on_decision = FALSE)
  expect_identical(seen$x, transform(data[1:2], age = as.double(age)))
  expect_identical(seen$y, factor(data$owns))
})

test_that("unsuitable functions raise", {
  skip_if_no_mcce()
  expect_error(r_sampler(lm, "x"), "draw of r_sampler\\(\\) is a character", class = "mcce_error")
  fails <- function(learn, draw, name = "income") {
    fit(data = people[columns], sampler = stats::setNames(list(r_sampler(learn, draw), "cart"), c(name, "*")))
  }
  one <- function(x, y) 1
  no_idea <- function(x, y) stop("no idea")
  expect_error(fails(no_idea, linear$draw), "'income': learn of r_sampler.. stopped. no idea", class = "mcce_error")
  expect_error(fails(one, function(object, newdata, u) rnorm(nrow(newdata))), "without u", class = "mcce_error")
  expect_error(fails(one, function(object, newdata, u) 1:3), "draw returned 3 values", class = "mcce_error")
  expect_error(fails(one, function(object, newdata, u) NA * u), "not finite numbers", class = "mcce_error")
  top <- function(object, newdata, u) rep("top", nrow(newdata))
  expect_error(fails(one, top, "grade"), "draw returned 'top', which is not a level .low, mid, high", class = "mcce_error")
})
