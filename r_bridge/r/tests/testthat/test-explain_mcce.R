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
  explain_mcce(
    air_model, utils::tail(air[-1], 3), utils::head(air[-1], -3),
    fixed_features = "Wind", c_int = c(-Inf, 15), ...
  )
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

test_that("without seeds the stream of the session advances; with seeds it is unchanged", {
  skip_if_no_mcce()
  few <- list(fit.autoregressive_model = "rpart", generate.K = 50, return_sim_data = TRUE)
  set.seed(5)
  before <- .Random.seed
  seeded <- do.call(explain_air, c(few, fit.seed = 5))
  expect_identical(.Random.seed, before)
  one <- do.call(explain_air, few)
  expect_identical(one$sim_data, seeded$sim_data)
  expect_false(identical(.Random.seed, before))
})

test_that("a model may use R's random numbers, as in mcceR: before the fit, and after the rows are generated", {
  skip_if_no_mcce()
  noisy <- function(model, rows) predict(model, rows) + runif(nrow(rows))
  set.seed(5)
  of_training <- noisy(air_model, utils::head(air[-1], -3))
  few <- list(fit.autoregressive_model = "rpart", generate.K = 20, return_sim_data = TRUE)
  asked <- list()
  replayed <- do.call(explain_air, c(few, predict_model = function(model, rows) {
    asked[[length(asked) + 1]] <<- .Random.seed
    if (length(asked) == 1) of_training else noisy(model, rows)
  }))
  last <- .Random.seed
  set.seed(5)
  found <- do.call(explain_air, c(few, predict_model = noisy))
  expect_identical(found[c("cf", "cf_measures", "sim_data")], replayed[c("cf", "cf_measures", "sim_data")])
  expect_identical(.Random.seed, last)
})

test_that("a fitted model can be reused, in this session", {
  skip_if_no_mcce()
  first <- explain_air(fit.seed = 1, generate.seed = 2, generate.K = 50, return_featuremodel_object = TRUE)
  fitted <- first$featuremodel_object
  again <- function(fitted) {
    explain_mcce(
      air_model, utils::tail(air[-1], 3), NULL,
      featuremodel_object = fitted, generate.seed = 2, generate.K = 50
    )
  }
  expect_identical(again(fitted)$cf, first$cf)
  fitted <- unserialize(serialize(fitted, NULL))
  expect_error(again(fitted), "belongs to an R session that has ended", class = "mcce_error")
})

test_that("arguments of the trees are those of R, also as control", {
  skip_if_no_mcce()
  skip_if_not_installed("rpart")
  few <- list(fit.seed = 1, generate.seed = 2, generate.K = 50, return_sim_data = TRUE)
  plain <- do.call(explain_air, c(few, fit.autoregressive_model = "rpart", minsplit = 8, cp = 0))
  control <- list(control = rpart::rpart.control(minsplit = 8, cp = 0))
  control <- do.call(explain_air, c(few, fit.autoregressive_model = "rpart", control))
  expect_identical(control$sim_data, plain$sim_data)
  expect_error(do.call(explain_air, c(few, mincriterium = 0.5)), "mincriterium", class = "mcce_error")
  skip_if_not_installed("party")
  plain <- do.call(explain_air, c(few, mincriterion = 0.5, maxdepth = 2))
  control <- do.call(explain_air, c(few, list(controls = party::ctree_control(mincriterion = 0.5, maxdepth = 2))))
  expect_identical(control$sim_data, plain$sim_data)
})

# runs of mcceR stored with the Python tests, one zip of tables for each
cases <- list.files(Sys.getenv("MCCE_PARITY_CASES"), "\\.zip$", full.names = TRUE)

read_entry <- function(case, entry) {
  connection <- unz(case, entry)
  on.exit(close(connection))
  readLines(connection, encoding = "UTF-8", warn = FALSE)
}

# Python reads a number as the nearest double; R's parser can be off by one bit
doubles <- function(texts) {
  struct <- reticulate::import("struct", convert = FALSE)
  float <- reticulate::import_builtins()$float
  bytes <- lapply(sub("^NA$", "nan", texts), function(text) struct$pack("<d", float(text)))
  builtins <- reticulate::import_builtins(convert = FALSE)
  bytes <- reticulate::py_to_r(builtins$bytearray(builtins$bytes()$join(bytes)))
  readBin(bytes, "double", length(texts), endian = "little")
}

read_case <- function(case, name, columns) {
  text <- read_entry(case, paste0(name, ".csv"))
  cells <- utils::read.csv(text = text, colClasses = "character", check.names = FALSE, na.strings = character())
  for (each in names(cells)) {
    column <- columns[[each]]
    type <- if (is.null(column)) "double" else column$type
    cells[[each]] <- switch(type,
      factor = factor(cells[[each]], column$levels),
      integer = as.integer(cells[[each]]),
      double = doubles(cells[[each]])
    )
  }
  cells
}

for (case in cases) {
  test_that(paste("mcceR's numbers:", basename(case)), {
    skip_if_no_mcce()
    skip_if_not_installed("jsonlite")
    meta <- jsonlite::fromJSON(paste(read_entry(case, "meta.json"), collapse = "\n"), simplifyVector = TRUE)
    sim <- read_case(case, "sim", meta$sim_columns)
    predictions <- list(read_case(case, "pred_train", NULL)$pred, sim$pred)
    features <- names(meta$columns)
    asked <- list()
    found <- do.call(explain_mcce, c(list(
      NULL, read_case(case, "x_explain", meta$columns), read_case(case, "x_train", meta$columns),
      predict_model = function(model, newdata) {
        asked[[length(asked) + 1]] <<- newdata
        predictions[[length(asked)]]
      },
      fixed_features = if (length(meta$fixed_features)) meta$fixed_features, c_int = as.double(meta$c_int),
      fit.autoregressive_model = meta$engine, fit.decision = meta$decision, fit.seed = meta$fit_seed,
      generate.K = meta$K, generate.seed = meta$generate_seed, process.measures = meta$sort_orders$default,
      process.return_best_k = 3, return_sim_data = TRUE
    ), as.list(meta$engine_arguments)))
    measures <- read_case(case, "cf_measures_k3", NULL)
    expect_identical(found$cf[features], read_case(case, "cf_k3", meta$sim_columns)[features])
    expect_identical(lapply(found$cf_measures, as.double)[names(measures)], as.list(measures))
    expect_identical(asked[[2]], sim[features])
    expect_identical(found$sim_data[features], sim[features])
  })
}
