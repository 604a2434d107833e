test_that("names and levels that are R code are data", {
  skip_if_no_mcce()
  folder <- tempfile()
  dir.create(folder)
  before <- setwd(folder)
  on.exit(setwd(before))
  code <- c("pi` + system('touch marker') + `pi", "x\"); system(\"touch marker\"); (\"", "x\nsystem('touch marker')", "x\\")
  data <- data.frame(as.numeric(1:80), rep(c(1.5, 2, 7, 9, 4), 16), factor(rep(code, 20), code), (1:80 * 37) %% 83 / 4)
  names(data) <- code
  score <- function(rows) rows[[1]]
  drawn <- r_sampler(
    learn = function(x, y) lm(y ~ ., cbind(x, y = y)),
    draw = function(object, newdata, u) predict(object, newdata) + 9 * qnorm(u)
  )
  explainer <- mcce(
    score, data,
    fixed = code[2], decision = c(30, Inf), random_state = 1,
    sampler = stats::setNames(list(drawn, "cart"), c(code[1], "*"))
  )
  found <- explain(explainer, data[1:2, ], n_samples = 100)
  expect_identical(names(found$rows), code)
  expect_identical(levels(found$rows[[3]]), code)
  expect_true(nrow(found$rows) == 2 && all(found$rows[[1]] >= 30))
  by_mccer <- explain_mcce(
    score, data[1:2, ], data,
    predict_model = function(model, rows) model(rows), fixed_features = code[2],
    c_int = c(30, Inf), generate.K = 100, fit.seed = 1, generate.seed = 2, process.measures = c("validation", "L0")
  )
  expect_true(all(code %in% names(by_mccer$cf)))
  expect_false(file.exists("marker"))
})
