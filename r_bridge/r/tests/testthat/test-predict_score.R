set.seed(1)
loans <- data.frame(age = sample(20:69, 300, TRUE), income = rnorm(300, 50, 10))
loans$job <- factor(sample(letters[1:3], 300, TRUE))
loans$paid <- factor(ifelse(loans$income + 5 * rnorm(300) > 50, "yes", "no"))
loans$grade <- cut(loans$income + 5 * rnorm(300), c(-Inf, 45, 55, Inf), c("low", "mid", "high"), ordered_result = TRUE)
loans$debt <- loans$income / 2 + rnorm(300)
rows <- loans[1:7, ]

has_chances <- function(model, classes) {
  chances <- class_probabilities(model, rows)
  expect_identical(dim(chances), c(7L, length(classes)))
  expect_identical(colnames(chances), classes)
  expect_equal(rowSums(chances), rep(1, 7))
  expect_equal(class_probabilities(model, rows[1, ]), chances[1, , drop = FALSE], tolerance = 1e-6)
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
  expect_identical(predict_score(model, rows), as.vector(unname(expected)))
}

test_that("lm and glm", {
  model <- lm(debt ~ age + income + job, loans)
  has_numbers(model, predict(model, rows))
  model <- glm(round(income) ~ age, poisson, loans)
  has_numbers(model, predict(model, rows, type = "response"))
  has_chances(glm(paid ~ age + income, binomial, loans), c("no", "yes"))
  has_chances(glm(paid == "yes" ~ income, binomial, loans), c("FALSE", "TRUE"))
})

test_that("trees and forests", {
  skip_if_not_installed("rpart")
  model <- rpart::rpart(debt ~ age + income + job, loans)
  has_numbers(model, predict(model, rows))
  has_chances(rpart::rpart(grade ~ age + income + job, loans), c("low", "mid", "high"))
  skip_if_not_installed("party")
  model <- party::ctree(debt ~ age + income + job, loans)
  has_numbers(model, unlist(party::treeresponse(model, newdata = rows)))
  has_chances(party::ctree(paid ~ age + income + job, loans), c("no", "yes"))
  skip_if_not_installed("partykit")
  model <- partykit::ctree(debt ~ age + income + job, loans)
  has_numbers(model, predict(model, rows))
  has_chances(partykit::ctree(grade ~ age + income + job, loans), c("low", "mid", "high"))
  skip_if_not_installed("ranger")
  forest <- function(formula, ...) ranger::ranger(formula, loans, num.trees = 20, num.threads = 1, ...)
  model <- forest(debt ~ age + income + job)
  has_numbers(model, predict(model, rows)$predictions)
  has_chances(forest(paid ~ age + income, probability = TRUE), c("no", "yes"))
  expect_error(predict_score(forest(paid ~ age), rows), "fit it with probability = TRUE", class = "mcce_error")
  expect_true(all(predict_label(forest(paid ~ age + income), rows) %in% c("no", "yes")))
})

test_that("nnet, MASS and mgcv", {
  skip_if_not_installed("nnet")
  has_chances(nnet::multinom(paid ~ age + income, loans, trace = FALSE), c("no", "yes"))
  has_chances(nnet::multinom(grade ~ age + income, loans, trace = FALSE), c("low", "mid", "high"))
  has_chances(nnet::nnet(paid ~ age + income, loans, size = 2, trace = FALSE), c("no", "yes"))
  has_chances(nnet::nnet(grade ~ age + income, loans, size = 2, trace = FALSE), c("low", "mid", "high"))
  skip_if_not_installed("MASS")
  has_chances(MASS::polr(grade ~ age + income, loans), c("low", "mid", "high"))
  has_chances(MASS::lda(grade ~ age + income, loans), c("low", "mid", "high"))
  skip_if_not_installed("mgcv")
  model <- mgcv::gam(debt ~ s(age) + income, data = loans)
  has_numbers(model, predict(model, rows))
  has_chances(mgcv::gam(paid ~ s(age) + income, binomial, loans), c("no", "yes"))
})

# stand-ins with the classes and methods of packages that are seldom installed
test_that("caret, mlr3 and tidymodels", {
  chances <- data.frame(no = c(0.2, 0.6), yes = c(0.8, 0.4))
  predict_stand_in <- function(object, newdata, type = "class", ...) {
    if (type != "prob") return(factor(c("yes", "no")))
    if (inherits(object, "train")) chances else stats::setNames(chances, c(".pred_no", ".pred_yes"))
  }
  for (class in c("train", "model_fit", "workflow")) {
    registerS3method("predict", class, predict_stand_in, asNamespace("stats"))
  }
  spec <- list(spec = list(mode = "classification"))
  models <- list(
    structure(list(modelType = "Classification"), class = "train"), structure(spec, class = "model_fit"),
    structure(list(fit = list(fit = spec)), class = "workflow")
  )
  for (model in models) {
    expect_identical(predict_score(model, rows[1:2, ]), c(0.8, 0.4))
    expect_identical(predict_label(model, rows[1:2, ]), c("yes", "no"))
  }
  answers <- function(newdata) list(prob = as.matrix(chances), response = factor(c("yes", "no")))
  learner <- structure(list(task_type = "classif", predict_newdata = answers), class = "Learner")
  expect_identical(predict_score(learner, rows[1:2, ], of = "no"), c(0.2, 0.6))
  expect_error(predict_score(learner, rows[1:2, ]), "state the class of the score", class = "mcce_error")
  expect_identical(predict_label(learner, rows[1:2, ]), c("yes", "no"))
})

test_that("other models are asked by predict(), which must return one number per row", {
  model <- stats::loess(debt ~ income, loans)
  has_numbers(model, predict(model, rows))
  registerS3method("predict", "odd", function(object, newdata) object$answer, asNamespace("stats"))
  odd <- function(answer) structure(list(answer = answer), class = "odd")
  expect_error(predict_score(odd(factor("a")), rows), "returns classes, not numbers", class = "mcce_error")
  expect_error(predict_score(odd(matrix(0, 7, 2)), rows), "returns 2 columns", class = "mcce_error")
  expect_identical(predict_label(odd(factor("a")), rows), "a")
  expect_identical(predict_score(odd(list(predictions = 1:7)), rows), as.double(1:7))
})
