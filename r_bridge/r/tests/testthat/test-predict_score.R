set.seed(1)
loans <- data.frame(age = sample(20:69, 300, TRUE), income = round(rnorm(300, 50, 10), 1), job = factor(sample(letters[1:3], 300, TRUE)))
loans$paid <- factor(ifelse(loans$income + 5 * rnorm(300) > 50, "yes", "no"))
loans$grade <- factor(cut(loans$income + 5 * rnorm(300), c(-Inf, 45, 55, Inf), c("low", "mid", "high")), ordered = TRUE)
loans$debt <- loans$income / 2 + rnorm(300)
rows <- loans[1:7, ]

has_chances <- function(model, classes) {
  chances <- class_probabilities(model, rows)
  expect_identical(dim(chances), c(7L, length(classes)))
  expect_identical(colnames(chances), classes)
  expect_equal(rowSums(chances), rep(1, 7))
  single <- class_probabilities(model, rows[1, ])
  expect_equal(single, chances[1, , drop = FALSE], tolerance = 1e-6)
  expect_identical(predict_label(model, rows), classes[max.col(chances, "first")])
  expect_equal(predict_score(model, rows, of = classes[1]), unname(chances[, 1]))
  if (length(classes) == 2) {
    expect_equal(predict_score(model, rows), unname(chances[, 2]))
  } else {
    expect_error(predict_score(model, rows), "state the class of the score", class = "mcce_error")
  }
  expect_error(predict_score(model, rows, of = "none"), "has no class 'none'", class = "mcce_error")
}

has_numbers <- function(model, expected) {
  expect_null(class_probabilities(model, rows))
  expect_equal(predict_score(model, rows), as.vector(unname(expected)))
  expect_null(dim(predict_score(model, rows)))
}

test_that("lm and glm", {
  model <- lm(debt ~ age + income + job, loans)
  has_numbers(model, predict(model, rows))
  model <- glm(round(income) ~ age, poisson, loans)
  has_numbers(model, predict(model, rows, type = "response"))
  model <- glm(paid ~ age + income, binomial, loans)
  has_chances(model, c("no", "yes"))
  expect_equal(predict_score(model, rows), unname(predict(model, rows, type = "response")))
  model <- glm(paid == "yes" ~ income, binomial, loans)
  has_chances(model, c("FALSE", "TRUE"))
})

test_that("rpart", {
  skip_if_not_installed("rpart")
  model <- rpart::rpart(debt ~ age + income + job, loans)
  has_numbers(model, predict(model, rows))
  has_chances(rpart::rpart(paid ~ age + income + job, loans), c("no", "yes"))
  has_chances(rpart::rpart(grade ~ age + income + job, loans), c("low", "mid", "high"))
})

test_that("party and partykit", {
  skip_if_not_installed("party")
  model <- party::ctree(debt ~ age + income + job, loans)
  has_numbers(model, unlist(party::treeresponse(model, newdata = rows)))
  has_chances(party::ctree(paid ~ age + income + job, loans), c("no", "yes"))
  skip_if_not_installed("partykit")
  model <- partykit::ctree(debt ~ age + income + job, loans)
  has_numbers(model, predict(model, rows))
  has_chances(partykit::ctree(grade ~ age + income + job, loans), c("low", "mid", "high"))
})

test_that("ranger", {
  skip_if_not_installed("ranger")
  model <- ranger::ranger(debt ~ age + income + job, loans, num.trees = 20, num.threads = 1)
  has_numbers(model, predict(model, rows)$predictions)
  has_chances(ranger::ranger(paid ~ age + income, loans, num.trees = 20, probability = TRUE, num.threads = 1), c("no", "yes"))
  model <- ranger::ranger(paid ~ age + income, loans, num.trees = 20, num.threads = 1)
  expect_error(predict_score(model, rows), "fit it with probability = TRUE", class = "mcce_error")
  expect_identical(predict_label(model, rows), as.character(predict(model, rows)$predictions))
})

test_that("nnet and MASS", {
  skip_if_not_installed("nnet")
  skip_if_not_installed("MASS")
  has_chances(nnet::multinom(paid ~ age + income, loans, trace = FALSE), c("no", "yes"))
  has_chances(nnet::multinom(grade ~ age + income, loans, trace = FALSE), c("low", "mid", "high"))
  has_chances(nnet::nnet(paid ~ age + income, loans, size = 2, trace = FALSE), c("no", "yes"))
  has_chances(nnet::nnet(grade ~ age + income, loans, size = 2, trace = FALSE), c("low", "mid", "high"))
  model <- nnet::nnet(debt ~ age + income, loans, size = 2, linout = TRUE, trace = FALSE)
  has_numbers(model, predict(model, rows))
  has_chances(MASS::polr(grade ~ age + income, loans), c("low", "mid", "high"))
  has_chances(MASS::lda(paid ~ age + income, loans), c("no", "yes"))
})

test_that("mgcv", {
  skip_if_not_installed("mgcv")
  model <- mgcv::gam(debt ~ s(income) + age, data = loans)
  has_numbers(model, predict(model, rows))
  has_chances(mgcv::gam(paid ~ s(income), binomial, loans), c("no", "yes"))
})

features <- c("age", "income", "job")
unname_rows <- function(chances) matrix(chances, nrow(chances), dimnames = list(NULL, colnames(chances)))

test_that("caret", {
  skip_if_not_installed("caret")
  skip_if_not_installed("rpart")
  none <- caret::trainControl("none", classProbs = TRUE)
  leaf <- data.frame(cp = 0.01)
  model <- caret::train(debt ~ age + income + job, loans, "lm", trControl = caret::trainControl("none"))
  has_numbers(model, predict(lm(debt ~ age + income + job, loans), rows))
  model <- caret::train(debt ~ age + income + job, loans, "rpart", trControl = caret::trainControl("none"), tuneGrid = leaf)
  has_numbers(model, predict(model, rows))
  model <- caret::train(paid ~ age + income + job, loans, "glm", trControl = none)
  has_chances(model, c("no", "yes"))
  expect_equal(predict_score(model, rows), unname(predict(glm(paid ~ age + income + job, binomial, loans), rows, type = "response")))
  has_chances(caret::train(paid ~ age + income + job, loans, "rpart", trControl = none, tuneGrid = leaf), c("no", "yes"))
  # by columns, not by formula, to keep the factor
  model <- caret::train(loans[features], loans$grade, "rpart", trControl = none, tuneGrid = leaf)
  has_chances(model, c("low", "mid", "high"))
  tree <- rpart::rpart(grade ~ age + income + job, loans, cp = 0.01)
  expect_equal(class_probabilities(model, rows), unname_rows(predict(tree, rows)))
  gaps <- rows
  gaps$income[3] <- NA
  expect_identical(nrow(class_probabilities(model, gaps)), 7L)
  expect_identical(predict_label(model, gaps), as.character(predict(tree, gaps, type = "class")))
})

test_that("caret's models without probabilities have labels", {
  skip_if_not_installed("caret")
  skip_if_not_installed("kernlab")
  model <- caret::train(paid ~ age + income, loans, "svmLinear", trControl = caret::trainControl("none"), tuneGrid = data.frame(C = 1))
  expect_error(predict_score(model, rows), "train it with trainControl\\(classProbs = TRUE\\)", class = "mcce_error")
  expect_identical(predict_label(model, rows), as.character(predict(model, rows)))
})

# packages that few machines have are not declared, and are found by name
of <- function(package, name) getExportedValue(package, name)

test_that("mlr3", {
  skip_if_not_installed("mlr3")
  skip_if_not_installed("rpart")
  trained <- function(name, target, ..., positive = NULL) {
    task <- of("mlr3", if (startsWith(name, "regr")) "as_task_regr" else "as_task_classif")
    learner <- of("mlr3", "lrn")(name, ...)
    expect_error(predict_score(learner, rows[features]), "was not trained", class = "mcce_error")
    given <- list(loans[c(features, target)], target = target, id = "loans")
    if (!is.null(positive)) given$positive <- positive
    learner$train(do.call(task, given))
    learner
  }
  learner <- trained("regr.rpart", "debt", xval = 0)
  has_numbers(learner, predict(rpart::rpart(debt ~ age + income + job, loans, xval = 0), rows))
  expected <- predict(rpart::rpart(paid ~ age + income + job, loans, xval = 0), rows)[, "yes"]
  for (positive in c("no", "yes")) { # listed first by mlr3
    learner <- trained("classif.rpart", "paid", predict_type = "prob", positive = positive)
    expect_equal(predict_score(learner, rows, of = "yes"), unname(expected))
    expect_error(predict_score(learner, rows), "state the class of the score", class = "mcce_error")
    expect_identical(predict_label(learner, rows), ifelse(expected > 0.5, "yes", "no") |> unname())
  }
  has_chances(trained("classif.rpart", "grade", predict_type = "prob"), c("low", "mid", "high"))
  learner <- trained("classif.rpart", "grade")
  expect_error(predict_score(learner, rows, of = "high"), "set its predict_type to \"prob\"", class = "mcce_error")
  expect_identical(predict_label(learner, rows), as.character(learner$predict_newdata(rows[features])$response))
})

test_that("parsnip and workflows", {
  skip_if_not_installed("parsnip")
  skip_if_not_installed("rpart")
  skip_if_not_installed("nnet")
  fit <- of("generics", "fit")
  spec <- function(name, engine, ...) of("parsnip", "set_engine")(of("parsnip", name)(...), engine)
  numbers <- spec("linear_reg", "lm")
  expected <- predict(lm(debt ~ age + income + job, loans), rows)
  expect_silent(has_numbers(fit(numbers, debt ~ age + income + job, loans), expected))
  model <- fit(spec("logistic_reg", "glm"), paid ~ age + income + job, loans)
  has_chances(model, c("no", "yes"))
  expect_equal(predict_score(model, rows), unname(predict(glm(paid ~ age + income + job, binomial, loans), rows, type = "response")))
  tree <- spec("decision_tree", "rpart", mode = "classification")
  has_chances(fit(tree, grade ~ age + income + job, loans), c("low", "mid", "high"))
  has_chances(fit(spec("multinom_reg", "nnet"), grade ~ age + income + job, loans), c("low", "mid", "high"))
  odd <- loans
  levels(odd$paid) <- c("no way", "oui, s\u00fbr")
  expect_identical(colnames(class_probabilities(fit(tree, paid ~ age + income, odd), rows)), levels(odd$paid))
  skip_if_not_installed("workflows")
  workflow <- of("workflows", "workflow")
  expect_silent(has_numbers(fit(workflow(debt ~ age + income + job, numbers), loans), expected))
  has_chances(fit(workflow(grade ~ age + income + job, tree), loans), c("low", "mid", "high"))
  expect_error(predict_score(workflow(debt ~ age, numbers), rows), "was not fitted; call fit\\(\\)", class = "mcce_error")
})

test_that("functions, and models with only predict()", {
  expect_identical(predict_score(function(rows) rows$age, rows), rows$age)
  model <- stats::loess(debt ~ income, loans)
  has_numbers(model, predict(model, rows))
  odd <- structure(list(), class = "odd_model_of_a_test")
  registerS3method("predict", "odd_model_of_a_test", function(object, newdata, ...) factor(rep("a", nrow(newdata))), envir = asNamespace("stats"))
  expect_error(predict_score(odd, rows), "returns classes, not numbers", class = "mcce_error")
  expect_identical(predict_label(odd, rows), rep("a", 7))
})

test_that("models of caret, mlr3 and parsnip are explained", {
  skip_if_no_mcce()
  skip_if_not_installed("rpart")
  poor <- loans[loans$income < 40, features][1:3, ]
  explained <- function(model, decision) {
    some <- mcce(model, loans[features], fixed = "age", decision = decision, random_state = 1, keep = FALSE)
    explain(some, poor, n_samples = 100)$rows
  }
  high <- interval(0.6, 1, of = "high")
  tree <- rpart::rpart(grade ~ age + income + job, loans, cp = 0.01)
  expected <- explained(tree, high)
  expect_true(all(predict(tree, expected)[, "high"] >= 0.6))
  if (requireNamespace("caret", quietly = TRUE)) {
    model <- caret::train(
      loans[features], loans$grade, "rpart",
      trControl = caret::trainControl("none", classProbs = TRUE), tuneGrid = data.frame(cp = 0.01)
    )
    expect_identical(explained(model, high), expected)
  }
  if (nzchar(system.file(package = "mlr3"))) {
    model <- of("mlr3", "lrn")("classif.rpart", predict_type = "prob")
    model$train(of("mlr3", "as_task_classif")(loans[c(features, "grade")], target = "grade"))
    expect_identical(explained(model, high), expected)
  }
  if (nzchar(system.file(package = "parsnip"))) {
    spec <- of("parsnip", "set_engine")(of("parsnip", "decision_tree")(mode = "classification"), "rpart")
    model <- of("generics", "fit")(spec, grade ~ age + income + job, loans)
    expect_identical(explained(model, high), expected)
    expect_identical(explained(model, "high"), explained(tree, "high"))
  }
})

test_that("models of R are explained", {
  skip_if_no_mcce()
  skip_if_not_installed("rpart")
  poor <- loans[loans$income < 40, c("age", "income", "job")][1:3, ]
  model <- glm(paid ~ age + income + job, binomial, loans)
  some <- mcce(model, loans[c("age", "income", "job")], fixed = "age", decision = c(0.7, 1), random_state = 1, keep = FALSE)
  found <- explain(some, poor, n_samples = 100)
  expect_true(all(predict(model, found$rows, type = "response") >= 0.7))
  tree <- rpart::rpart(grade ~ age + income + job, loans)
  some <- mcce(tree, loans[c("age", "income", "job")], fixed = "age", decision = "high", random_state = 1, keep = FALSE)
  expect_true(all(predict_label(tree, explain(some, poor, n_samples = 100)$rows) == "high"))
  of <- interval(0.6, 1, of = "high", label = "a high grade")
  some <- mcce(tree, loans[c("age", "income", "job")], fixed = "age", decision = of, random_state = 1, keep = FALSE)
  expect_output(print(some), "a high grade")
  expect_true(all(predict(tree, explain(some, poor, n_samples = 100)$rows)[, "high"] >= 0.6))
})
