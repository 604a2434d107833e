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
    expect_error(predict_score(model, rows), "say of which one the score is", class = "mcce_error")
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
  expect_error(predict_score(model, rows), "grow it with probability = TRUE", class = "mcce_error")
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

test_that("caret", {
  skip_if_not_installed("caret")
  skip_if_not_installed("rpart")
  none <- caret::trainControl("none")
  model <- suppressWarnings(caret::train(debt ~ age + income, loans, "lm", trControl = none))
  has_numbers(model, predict(model, rows))
  model <- caret::train(paid ~ age + income, loans, "rpart", trControl = none, tuneGrid = data.frame(cp = 0.01))
  has_chances(model, c("no", "yes"))
})

# packages that few machines have are not declared, and found by name
of <- function(package, name) getExportedValue(package, name)

test_that("mlr3", {
  skip_if_not_installed("mlr3")
  learner <- of("mlr3", "lrn")("classif.rpart", predict_type = "prob")
  learner$train(of("mlr3", "as_task_classif")(loans[c("age", "income", "paid")], target = "paid"))
  expect_setequal(colnames(class_probabilities(learner, rows[c("age", "income")])), c("no", "yes"))
})

test_that("parsnip", {
  skip_if_not_installed("parsnip")
  spec <- of("parsnip", "set_engine")(of("parsnip", "logistic_reg")(), "glm")
  has_chances(of("parsnip", "fit.model_spec")(spec, paid ~ age + income, loans), c("no", "yes"))
})

test_that("functions, and models of which only predict() is known", {
  expect_identical(predict_score(function(rows) rows$age, rows), rows$age)
  model <- stats::loess(debt ~ income, loans)
  has_numbers(model, predict(model, rows))
  odd <- structure(list(), class = "odd_model_of_a_test")
  registerS3method("predict", "odd_model_of_a_test", function(object, newdata, ...) factor(rep("a", nrow(newdata))), envir = asNamespace("stats"))
  expect_error(predict_score(odd, rows), "answers with classes, not with numbers", class = "mcce_error")
  expect_identical(predict_label(odd, rows), rep("a", 7))
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
