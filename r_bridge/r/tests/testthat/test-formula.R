cars <- transform(datasets::mtcars, am = factor(am, labels = c("auto", "manual")))
features <- c("wt", "hp")

refuses <- function(model, response, reads = features) {
  columns <- c(response, reads)
  expect_error(mcce:::check_columns(model, columns, character()), paste0("'", response, "' of data is the response of the"), class = "mcce_error")
  expect_silent(mcce:::check_columns(model, reads, character()))
  expect_warning(mcce:::check_columns(model, c(reads, "qsec", "vs"), "vs"), "does not use the column\\(s\\) 'qsec' of data", class = "mcce_warning")
}

test_that("the response of a formula is not a feature, and columns it does not use cause a warning", {
  refuses(lm(mpg ~ wt + hp, cars), "mpg")
  refuses(lm(log(mpg) ~ poly(wt, 2) + offset(hp), cars), "mpg")
  refuses(lm(cbind(mpg, disp) ~ wt + hp, cars), "disp")
  refuses(lm(mpg ~ ., cars[c("mpg", features)]), "mpg")
  refuses(glm(am == "manual" ~ wt + hp, binomial, cars), "am")
  refuses(stats::loess(mpg ~ wt + hp, cars), "mpg")
  both <- mcce:::formula_names(lm(log(mpg / wt) ~ wt, cars))
  expect_identical(both, list(response = "mpg", reads = "wt"))
})

test_that("the response is found in models of other packages", {
  skip_if_not_installed("rpart")
  refuses(rpart::rpart(sqrt(mpg) ~ wt + hp, cars), "mpg")
  if (requireNamespace("party", quietly = TRUE)) {
    refuses(party::ctree(mpg ~ wt + hp, cars), "mpg")
    refuses(party::cforest(am ~ wt + hp, cars, controls = party::cforest_unbiased(ntree = 3, mtry = 1)), "am")
  }
  if (requireNamespace("partykit", quietly = TRUE)) refuses(partykit::ctree(log(mpg) ~ wt + hp, cars), "mpg")
  if (requireNamespace("ranger", quietly = TRUE)) {
    refuses(ranger::ranger(mpg ~ wt + hp, cars, num.trees = 3, num.threads = 1), "mpg")
    refuses(ranger::ranger(data = cars[c("mpg", features)], dependent.variable.name = "mpg", num.trees = 3, num.threads = 1), "mpg")
    wanted <- mpg ~ wt + hp
    model <- ranger::ranger(wanted, cars, num.trees = 3, num.threads = 1) # its formula is unknown
    expect_warning(mcce:::check_columns(model, c("mpg", features), character()), "does not use the column\\(s\\) 'mpg'")
  }
  if (requireNamespace("nnet", quietly = TRUE)) {
    refuses(nnet::nnet(am ~ wt + hp, cars, size = 1, trace = FALSE), "am")
    refuses(nnet::multinom(am ~ wt + hp, cars, trace = FALSE), "am")
  }
  if (requireNamespace("MASS", quietly = TRUE)) refuses(MASS::lda(am ~ wt + hp, cars), "am")
  if (requireNamespace("mgcv", quietly = TRUE)) refuses(mgcv::gam(log(mpg) ~ s(wt, k = 4) + hp, data = cars), "mpg")
  if (requireNamespace("caret", quietly = TRUE)) {
    none <- caret::trainControl("none")
    refuses(caret::train(mpg ~ wt + hp, cars, "lm", trControl = none), "mpg")
    model <- caret::train(cars[features], cars$mpg, "lm", trControl = none)
    expect_warning(mcce:::check_columns(model, c("mpg", features), character()), "does not use the column\\(s\\) 'mpg'")
  }
})

test_that("models without a formula, and functions, are not checked", {
  expect_null(mcce:::formula_names(structure(list(), class = "unknown_model")))
  expect_silent(mcce:::check_columns(function(rows) rows$wt, names(cars), character()))
})

test_that("mcce() rejects the response among the columns", {
  skip_if_no_mcce()
  model <- lm(mpg ~ wt + hp, cars)
  expect_error(
    mcce(model, cars[c("mpg", "wt", "hp")], decision = c(22, Inf)),
    "'mpg' of data is the response of the lm, not a feature; leave it out: data\\[setdiff\\(names\\(data\\), \"mpg\"\\)\\]",
    class = "mcce_error"
  )
  expect_warning(
    some <- mcce(model, cars[c("wt", "hp", "qsec")], decision = c(22, Inf), random_state = 1, keep = FALSE),
    "leave them out of data, or name them in fixed",
    class = "mcce_warning"
  )
  file <- tempfile(fileext = ".mcce")
  on.exit(unlink(file))
  made <- mcce(function(rows) 30 - rows$wt, cars[c("mpg", "wt", "hp")], decision = c(27, Inf), random_state = 1)
  writeBin(made$file, file)
  expect_error(load_mcce(file, model, cars), "'mpg' of data is the response", class = "mcce_error")
})
