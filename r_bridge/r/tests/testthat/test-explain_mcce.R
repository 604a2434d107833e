test_that("arguments, their order and defaults are those of mcceR", {
  expected <- alist(
    model = , x_explain = , x_train = , predict_model = NULL, fixed_features = NULL, c_int = c(0.5, 1),
    featuremodel_object = NULL, fit.autoregressive_model = "ctree", fit.decision = TRUE, fit.seed = NULL,
    generate.K = 1000, generate.seed = NULL, process.measures = c("validation", "L0", "L1"),
    process.return_best_k = 1, process.remove_invalid = TRUE, process.sort_by_measures_order = TRUE,
    return_featuremodel_object = FALSE, return_sim_data = FALSE, timing = TRUE, ... =
  )
  expect_equal(as.list(formals(explain_mcce)), expected)
})

air <- stats::na.omit(datasets::airquality)
air_model <- stats::lm(Ozone ~ ., air)
explain_air <- function(...) {
  explain_mcce(air_model, utils::tail(air[-1], 3), utils::head(air[-1], -3), fixed_features = "Wind", c_int = c(-Inf, 15), ...)
}

test_that("airquality gives the printed result of mcceR", {
  skip_if_no_mcce()
  found <- explain_air(fit.seed = 1, generate.seed = 2)
  expected <- data.frame(
    id_explain = 1:3, counterfactual_rank = 1L, Solar.R = c(92L, 65L, 36L), Wind = c(14.3, 8, 11.5),
    Temp = c(64L, 61L, 69L), Month = 9L, Day = 28:30
  )
  expect_identical(found$cf, expected)
  expect_identical(found$fixed_features, c("Wind", "decision"))
  expect_identical(names(found$time), c("fit.time", "generate.time", "process.time"))
  expect_equal(found$cf_measures$pred, unname(stats::predict(air_model, found$cf)), tolerance = 1e-12)
})

# the same runs as in tests/rcompat/test_stages.py, by name
for (case in if (is.null(cases_folder())) character() else recorded_cases()) {
  test_that(paste("parity:", case), {
    skip_if_no_mcce()
    skip_if_not_installed("jsonlite")
    run <- read_case(case)
    meta <- run$meta
    sim <- run$table("sim", meta$sim_columns)
    rows <- names(meta$columns)
    queried <- list()
    recorded <- list(run$table("pred_train")$pred, sim$pred)
    predict_model <- function(model, newdata) {
      queried[[length(queried) + 1]] <<- newdata
      recorded[[length(queried)]]
    }
    run_case <- function(k, remove) {
      queried <<- list()
      arguments <- c(
        list(
          NULL, run$table("x_explain"), run$table("x_train"), predict_model,
          fixed_features = if (length(meta$fixed_features)) meta$fixed_features, c_int = as.double(meta$c_int),
          fit.autoregressive_model = meta$engine, fit.decision = meta$decision, fit.seed = meta$fit_seed,
          generate.K = meta$K, generate.seed = meta$generate_seed, process.measures = meta$sort_orders$default,
          process.return_best_k = k, process.remove_invalid = remove, return_sim_data = TRUE
        ),
        as.list(meta$engine_arguments)
      )
      do.call(explain_mcce, arguments)
    }
    for (answer in list(list("k1", 1, TRUE), list("k3", 3, TRUE), list("k3_keep_invalid", 3, FALSE))) {
      found <- run_case(answer[[2]], answer[[3]])
      cf <- run$table(paste0("cf_", answer[[1]]), meta$sim_columns)
      measures <- run$table(paste0("cf_measures_", answer[[1]]))
      expect_identical(found$cf[rows], cf[rows], label = answer[[1]])
      expect_identical(as.double(found$cf$id_explain), cf$id_explain)
      expect_identical(as.double(found$cf$counterfactual_rank), cf$counterfactual_rank)
      expect_identical(lapply(found$cf_measures, as.double)[names(measures)], as.list(measures))
    }
    expect_identical(queried[[1]], run$table("x_train")[rows])
    expect_identical(queried[[2]], sim[rows])
    expect_identical(found$sim_data[rows], sim[rows])
  })
}

test_that("without seeds the stream of the session advances, as in mcceR", {
  skip_if_no_mcce()
  set.seed(5)
  one <- explain_air(fit.autoregressive_model = "rpart", generate.K = 50, return_sim_data = TRUE)
  moved <- stats::runif(1)
  two <- explain_air(fit.autoregressive_model = "rpart", generate.K = 50, return_sim_data = TRUE, fit.seed = 5)
  expect_identical(one$sim_data, two$sim_data)
  set.seed(5)
  expect_false(stats::runif(1) == moved)
})

test_that("with seeds the stream of the session is unchanged", {
  skip_if_no_mcce()
  set.seed(5)
  before <- .Random.seed
  explain_air(fit.seed = 1, generate.seed = 2, generate.K = 20)
  expect_identical(.Random.seed, before)
})

test_that("a fitted model can be reused", {
  skip_if_no_mcce()
  first <- explain_air(fit.seed = 1, generate.seed = 2, generate.K = 50, return_featuremodel_object = TRUE)
  again <- explain_mcce(
    air_model, utils::tail(air[-1], 3), NULL,
    featuremodel_object = first$featuremodel_object, generate.seed = 2, generate.K = 50
  )
  expect_identical(again$cf, first$cf)
  dead <- unserialize(serialize(first$featuremodel_object, NULL))
  expect_output(print(dead), "not available after the R session")
  expect_error(
    explain_mcce(air_model, utils::tail(air[-1], 3), NULL, featuremodel_object = dead),
    "belongs to an R session that has ended",
    class = "mcce_error"
  )
})

test_that("arguments of the trees are those of R, also as control", {
  skip_if_no_mcce()
  skip_if_not_installed("rpart")
  few <- list(fit.autoregressive_model = "rpart", fit.seed = 1, generate.seed = 2, generate.K = 50, return_sim_data = TRUE)
  plain <- do.call(explain_air, c(few, minsplit = 8, cp = 0))
  control <- do.call(explain_air, c(few, list(control = rpart::rpart.control(minsplit = 8, cp = 0))))
  expect_identical(control$sim_data, plain$sim_data)
  skip_if_not_installed("party")
  few$fit.autoregressive_model <- "ctree"
  plain <- do.call(explain_air, c(few, mincriterion = 0.5, maxdepth = 2))
  control <- do.call(explain_air, c(few, list(controls = party::ctree_control(mincriterion = 0.5, maxdepth = 2))))
  expect_identical(control$sim_data, plain$sim_data)
  expect_error(do.call(explain_air, c(few, mincriterium = 0.5)), "mincriterium", class = "mcce_error")
})
