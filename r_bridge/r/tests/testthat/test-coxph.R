test_that("the score of a coxph is the hazard relative to that at the means", {
  skip_if_not_installed("survival")
  lung <- stats::na.omit(survival::lung[c("time", "status", "age", "ph.ecog", "wt.loss")])
  model <- survival::coxph(survival::Surv(time, status) ~ age + ph.ecog, lung)
  rows <- lung[1:5, c("age", "ph.ecog", "wt.loss")]
  centred <- as.matrix(rows[c("age", "ph.ecog")]) - rep(colMeans(lung[c("age", "ph.ecog")]), each = 5)
  expect_equal(predict_score(model, rows), as.vector(exp(centred %*% coef(model))))
})

test_that("a coxph with strata raises", {
  skip_if_not_installed("survival")
  strata <- survival::strata
  model <- survival::coxph(survival::Surv(time, status) ~ age + strata(sex), survival::lung)
  expect_error(predict_score(model, survival::lung), "the coxph has strata", class = "mcce_error")
})
