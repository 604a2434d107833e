people <- local({
  set.seed(1)
  n <- 400
  age <- sample(20:69, n, TRUE)
  data.frame(
    age = age, job = factor(sample(c("clerk", "cook", "pilot"), n, TRUE)),
    grade = factor(sample(c("low", "mid", "high"), n, TRUE), c("low", "mid", "high"), ordered = TRUE),
    owns = runif(n) < 0.5, town = sample(c("Oslo", "Bergen"), n, TRUE), income = round(rnorm(n, 30 + age / 2, 8), 1),
    since = as.Date("2000-01-01") + sample(7000, n, TRUE)
  )
})
rich <- function(rows) rows$income / 100
refused <- people[people$income < 50, ][1:5, ]
explainer <- NULL
fitted <- function() {
  if (is.null(explainer)) explainer <<- mcce(rich, people, fixed = "age", decision = c(0.6, 1), random_state = 1)
  explainer
}

test_that("counterfactuals have the wanted decision, the fixed values and exactly the columns of the data", {
  skip_if_no_mcce()
  for (sparse in c(FALSE, TRUE)) {
    found <- explain(fitted(), refused, sparse = sparse, n_samples = 200, n_counterfactuals = 2)
    rows <- found$rows
    expect_true(all(rich(rows) >= 0.6))
    expect_identical(lapply(rows, attributes), lapply(people, attributes))
    expect_identical(lapply(rows, typeof), lapply(people, typeof))
    expect_identical(rows$age, refused[as.character(found$index$id), "age"])
    expect_true(all(found$index$id %in% as.integer(rownames(refused))))
    expect_equal(found$measures$prediction, rich(rows))
  }
})

test_that("one seed gives one answer, and R's stream is unchanged", {
  skip_if_no_mcce()
  set.seed(9)
  before <- .Random.seed
  again <- mcce(rich, people, fixed = "age", decision = c(0.6, 1), random_state = 1)
  expect_identical(.Random.seed, before)
  one <- explain(again, refused, n_samples = 100)
  expect_identical(one$rows, explain(fitted(), refused, n_samples = 100)$rows)
  expect_identical(explain(again, refused[3, ], n_samples = 100)$rows, explain(again, refused, n_samples = 100)$rows[3, ], ignore_attr = TRUE)
})

test_that("the tables agree with each other", {
  skip_if_no_mcce()
  found <- explain(fitted(), refused, sparse = TRUE, n_samples = 200)
  all <- as.data.frame(found)
  expect_identical(all[names(people)], found$rows)
  changes <- as.data.frame(found, what = "changes")
  expect_identical(as.integer(table(factor(changes$id, all$id))), as.integer(all$L0))
  expect_identical(names(found$sentences), rownames(refused))
  expect_match(found$sentences[[1]], "the result would have been as wanted: .* instead of ")
  expect_output(print(found), "factuals explained")
  figures <- summary(found)
  expect_identical(figures[["explained"]], 5)
  expect_output(print(figures), "mean L0")
  expect_match(letter(found, all$id[1]), "An example that would have led to another decision")
})

test_that("letters state the principal reasons in the given words, and the rights, only on request", {
  skip_if_no_mcce()
  reasons <- list(income = list(code = "12", text = "Income is too low"))
  columns <- c("age", "job", "income")
  some <- mcce(rich, people[columns],
    fixed = "age", decision = c(0.6, 1), names = list(reasons = reasons), random_state = 1
  )
  found <- explain(some, refused[1, columns], n_samples = 50)
  id <- found$index$id[1]
  expect_no_match(letter(found, id), "Income is too low|Your rights")
  with_reasons <- letter(found, id, reasons = TRUE)
  expect_match(with_reasons, "Income is too low")
  expect_match(with_reasons, "12")
  expect_match(with_reasons, "Your rights")
})

test_that("rows that already have the decision, or have text names, are reported by name", {
  skip_if_no_mcce()
  named <- people[order(-people$income), ][1:2, ]
  rownames(named) <- c("Ada", "Bo")
  found <- explain(fitted(), named, n_samples = 50)
  expect_identical(found$unexplained$id, c("Ada", "Bo"))
  expect_match(found$unexplained$reason, "already has the wanted decision")
  expect_identical(nrow(found$rows), 0L)
  expect_identical(lapply(found$rows, attributes), lapply(people, attributes))
})

test_that("constraints hold", {
  skip_if_no_mcce()
  only <- list(allow("job", levels = "pilot"), allow("since", direction = "none"), "income <= 80")
  found <- explain(fitted(), refused, n_samples = 200, constraints = only)
  expect_true(all(found$rows$job == "pilot"))
  expect_identical(found$rows$since, refused[as.character(found$index$id), "since"])
  expect_true(all(found$rows$income <= 80))
  expect_output(print(allow("job", levels = c("cook", "pilot"))), "job: levels cook, pilot")
  expect_error(explain(fitted(), refused, constraints = list(allow("jbo", levels = "x"))), "did you mean 'job'", class = "mcce_error")
})

test_that("missing values are passed to the model and back", {
  skip_if_no_mcce()
  holes <- people
  holes$town[c(TRUE, FALSE, FALSE)] <- NA
  holes$since[c(FALSE, TRUE, FALSE, FALSE)] <- NA
  holes$owns[c(FALSE, FALSE, TRUE, FALSE, FALSE)] <- NA
  seen <- new.env()
  score <- function(rows) {
    seen$na <- c(seen$na, anyNA(rows$town) && anyNA(rows$since) && anyNA(rows$owns))
    rich(rows)
  }
  some <- mcce(score, holes, fixed = "age", decision = c(0.6, 1), random_state = 1)
  found <- explain(some, holes[holes$income < 50, ][1:20, ], n_samples = 100)
  expect_true(seen$na[1])
  expect_true(anyNA(found$rows$town))
  expect_identical(lapply(found$rows, attributes), lapply(people, attributes))
})

test_that("a wanted class is a decision", {
  skip_if_no_mcce()
  by_label <- mcce(function(rows) ifelse(rows$income > 60, "yes", "no"), people, decision = "yes", random_state = 1)
  expect_true(all(explain(by_label, refused, n_samples = 50)$rows$income > 60))
  truth <- mcce(function(rows) rows$income > 60, people, decision = TRUE, random_state = 1)
  expect_true(all(explain(truth, refused, n_samples = 50)$rows$income > 60))
  level <- mcce(function(rows) cut(rows$income, c(-Inf, 50, 60, Inf), c("low", "mid", "high")), people, decision = none_of("low"), random_state = 1)
  expect_true(all(explain(level, refused, n_samples = 50)$rows$income > 50))
})

test_that("samplers can be chosen by feature", {
  skip_if_no_mcce()
  chosen <- list(income = sampler("cart", min_leaf = 20), "*" = "cart")
  some <- mcce(rich, people, fixed = "age", decision = c(0.6, 1), sampler = chosen, random_state = 1, keep = FALSE)
  expect_identical(nrow(explain(some, refused, n_samples = 100)$rows), 5L)
  expect_error(mcce(rich, people, sampler = "carrt"), "did you mean 'cart'", class = "mcce_error")
  expect_error(mcce(rich, people, sampler = list("cart")), "without names", class = "mcce_error")
})

test_that("errors and warnings of the engine are conditions of R, in R syntax", {
  skip_if_no_mcce()
  expect_error(mcce(rich, people, fixed = "agee"), "'agee' is not a column of data; did you mean 'age'", class = "mcce_InputError")
  expect_error(mcce(function(rows) stop("out of order"), people), "out of order", class = "mcce_ModelError")
  expect_error(mcce(function(rows) 1:3, people), "expected 400", class = "mcce_error")
  expect_error(mcce(rich, people, decision = list()), "decision is a list", class = "mcce_error")
  expect_error(explain(fitted(), refused[-1]), "age", class = "mcce_error")
  stranger <- refused
  stranger$job <- factor("baker")
  expect_error(explain(fitted(), stranger), "'baker'", class = "mcce_error")
  far <- refused
  far$income <- 1e6 * far$income
  expect_warning(explain(fitted(), far[1, ], n_samples = 20), class = "mcce_warning")
})

test_that("R has one thread", {
  skip_if_no_mcce()
  expect_error(mcce(rich, people, n_jobs = 2), "a model or conditional in R is called from one thread", class = "mcce_error")
})

test_that("progress is one line that is erased, and not shown for a quick model", {
  skip_if_no_mcce()
  shown <- function(progress) {
    capture.output(found <- explain(fitted(), refused, n_samples = 50, progress = progress), type = "message")
  }
  expect_length(shown(TRUE), 0)
  old <- options(mcce.seconds = 0)
  on.exit(options(old))
  expect_match(shown(TRUE), "the model has predicted [0-9]+ rows", all = FALSE)
  expect_length(shown(FALSE), 0)
})

test_that("saved objects work in another session, and report that their Python part is missing", {
  skip_if_no_mcce()
  found <- explain(fitted(), refused, sparse = TRUE, n_samples = 200, keep = TRUE)
  file <- tempfile(fileext = ".rds")
  answer <- tempfile(fileext = ".rds")
  on.exit(unlink(c(file, answer)))
  saveRDS(list(fitted(), found, refused), file)
  code <- c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    if (nzchar(Sys.getenv("MCCE_R_SOURCE"))) "pkgload::load_all(Sys.getenv('MCCE_R_SOURCE'), quiet = TRUE)" else "library(mcce)",
    sprintf("kept <- readRDS('%s')", file),
    "printed <- capture.output(print(kept[[1]]), print(kept[[2]]))",
    "again <- explain(kept[[1]], kept[[3]], sparse = TRUE, n_samples = 200)",
    "figures <- summary(kept[[2]])",
    sprintf("saveRDS(list(printed, again$rows, again$measures, figures[['mean L0']], capture.output(print(kept[[1]]))), '%s')", answer)
  )
  script <- tempfile(fileext = ".R")
  writeLines(code, script)
  status <- system2(file.path(R.home("bin"), "Rscript"), script, stdout = FALSE, stderr = FALSE)
  expect_identical(status, 0L)
  restored <- readRDS(answer)
  expect_length(grep("Its Python part is not available after the R session that created it", restored[[1]]), 2)
  expect_identical(restored[[2]], found$rows)
  expect_identical(restored[[3]], found$measures)
  expect_identical(restored[[4]], mean(found$measures$L0))
  expect_length(grep("Python part is not available", restored[[5]]), 0)
})

test_that("an object that was not kept reports it", {
  skip_if_no_mcce()
  some <- mcce(rich, people, fixed = "age", decision = c(0.6, 1), random_state = 1, keep = FALSE)
  dead <- unserialize(serialize(some, NULL))
  expect_output(print(dead), "it was not kept: create it again")
  expect_error(explain(dead, refused), "fit it again, with keep = TRUE", class = "mcce_error")
  found <- explain(some, refused, n_samples = 50)
  changes <- found$changes
  dead <- unserialize(serialize(found, NULL))
  expect_output(print(dead), "5 of 5 factuals explained.*it was not kept: create it again")
  expect_identical(dead$rows, found$rows)
  expect_identical(dead$changes, changes) # requested before
  expect_error(dead$sentences, "explain again, with keep = TRUE", class = "mcce_error")
  expect_error(letter(dead, 1), "explain again, with keep = TRUE", class = "mcce_error")
})

test_that("sentences, changes and files are made once, on request", {
  skip_if_no_mcce()
  queried <- character()
  count <- function(name, ...) queried <<- c(queried, name)
  suppressMessages(trace("call_python", bquote(.(count)(name)), print = FALSE, where = asNamespace("mcce")))
  on.exit(suppressMessages(untrace("call_python", where = asNamespace("mcce"))))
  found <- explain(fitted(), refused, n_samples = 50)
  expect_identical(queried, "explain")
  expect_identical(found$sentences, found[["sentences"]])
  expect_identical(nrow(found$changes), as.integer(sum(found$measures$L0)))
  as.data.frame(found, what = "changes")
  expect_identical(queried, c("explain", "sentences", "changes"))
})

test_that("the printed seed reproduces a run, also if Python chose it", {
  skip_if_no_mcce()
  for (seed in list(NULL, 2^53 - 1, "4611686018427387905")) {
    first <- suppressWarnings(mcce(rich, people, fixed = "age", decision = c(0.6, 1), random_state = seed, keep = FALSE))
    shown <- sub("seed: *", "", grep("^seed:", capture.output(print(first)), value = TRUE))
    expect_match(shown, "^[0-9]+$")
    if (is.null(seed)) expect_lt(as.double(shown), 2^53) else expect_identical(shown, if (is.numeric(seed)) sprintf("%.0f", seed) else seed)
    typed <- if (is.character(seed)) shown else as.double(shown)
    again <- suppressWarnings(mcce(rich, people, fixed = "age", decision = c(0.6, 1), random_state = typed, keep = FALSE))
    expect_identical(again$seed, first$seed)
    expect_identical(explain(again, refused, n_samples = 50)$rows, explain(first, refused, n_samples = 50)$rows)
  }
})

test_that("ids are row names, as numbers or as text", {
  skip_if_no_mcce()
  found <- explain(fitted(), refused, sparse = TRUE, n_samples = 50)
  id <- found$index$id[2]
  expect_type(id, "integer")
  expect_identical(letter(found, as.character(id)), letter(found, id))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  if (requireNamespace("png", quietly = TRUE)) expect_identical(plot(found, id = as.character(id)), found)
  expect_error(letter(found, "Ada"), "'Ada'", class = "mcce_error")
  numbered <- refused
  rownames(numbered) <- paste0("0", 1:5)
  expect_error(letter(explain(fitted(), numbered, n_samples = 50), 1), class = "mcce_error")
  attr(numbered, "row.names") <- as.character(11:15)
  found <- explain(fitted(), numbered, n_samples = 50)
  expect_identical(letter(found, 12), letter(found, "12"))
})

test_that("class labels may be logical, numbers or levels", {
  skip_if_no_mcce()
  air <- stats::na.omit(datasets::airquality)
  air$hot <- air$Temp > 80
  air$one <- as.integer(air$hot)
  air$level <- factor(ifelse(air$hot, 4, 10))
  rows <- air[c("Wind", "Solar.R", "Month")]
  explained <- function(model, decision) {
    some <- mcce(model, rows, fixed = "Month", decision = decision, random_state = 1, keep = TRUE)
    cold <- rows[!predict_label(model, rows) %in% c("TRUE", "1", "4"), ][1:4, ]
    found <- explain(some, cold, n_samples = 100)
    again <- explain(unserialize(serialize(some, NULL)), cold, n_samples = 100)
    expect_identical(again$rows, found$rows)
    found
  }
  truth <- glm(hot ~ Wind + Solar.R + Month, binomial, air)
  found <- explained(truth, TRUE)
  expect_true(all(predict(truth, found$rows, type = "response") > 0.5))
  expect_identical(found$measures$prediction, rep(TRUE, 4))
  number <- glm(one ~ Wind + Solar.R + Month, binomial, air)
  expect_identical(explained(number, 1)$rows, found$rows)
  expect_identical(explained(number, 1L)$measures$prediction, rep(1, 4))
  skip_if_not_installed("rpart")
  level <- rpart::rpart(level ~ Wind + Solar.R + Month, air)
  for (decision in list(4, 4L, "4", factor(4, c(10, 4)), one_of(4), none_of(10))) {
    expect_true(all(predict(level, explained(level, decision)$rows, type = "class") == "4"))
  }
  large <- function(rows) ifelse(rows$Wind > 9, 1e5, 5)
  some <- mcce(large, rows, fixed = "Month", decision = 100000, random_state = 1, keep = FALSE)
  expect_identical(explain(some, rows[rows$Wind < 8, ][1:2, ], n_samples = 50)$measures$prediction, c(1e5, 1e5))
})

test_that("a row with NA that the model cannot read leaves the others explained", {
  skip_if_no_mcce()
  air <- stats::na.omit(datasets::airquality)
  data <- air[c("Solar.R", "Wind", "Temp")]
  models <- list(stats::lm(Ozone ~ Solar.R + Wind + Temp, air))
  if (requireNamespace("ranger", quietly = TRUE)) { # it stops
    models$ranger <- ranger::ranger(Ozone ~ Solar.R + Wind + Temp, air, num.trees = 20, num.threads = 1, seed = 1)
  }
  for (model in models) {
    some <- mcce(model, data, fixed = "Solar.R", decision = c(-Inf, 30), random_state = 1, keep = FALSE)
    rows <- data[predict_score(model, data) > 40, ][1:5, ]
    whole <- explain(some, rows[-2, ], n_samples = 100)
    rows$Temp[2] <- NA
    expect_warning(found <- explain(some, rows, n_samples = 100), "1 of 5 rows are not explained.*'Temp' is missing", class = "mcce_warning")
    expect_identical(found$rows, whole$rows)
    expect_identical(found$unexplained$id, as.integer(rownames(rows))[2])
    expect_match(found$unexplained$reason, "it could not be read: the model cannot predict rows in which 'Temp' is missing")
    expect_error(explain(some, rows[2, ], n_samples = 100), class = "mcce_ModelError")
  }
  if (!requireNamespace("rpart", quietly = TRUE)) skip("rpart is not installed")
  tree <- rpart::rpart(Ozone ~ Solar.R + Wind + Temp, air) # it reads NA
  some <- mcce(tree, data, fixed = "Solar.R", decision = c(-Inf, 30), random_state = 1, keep = FALSE)
  rows <- data[predict(tree, data) > 40, ][1:3, ]
  rows$Temp[2] <- NA
  expect_length(grep("could not be read", explain(some, rows, n_samples = 100)$unexplained$reason), 0)
})

test_that("pictures are drawn", {
  skip_if_no_mcce()
  found <- explain(fitted(), refused, sparse = TRUE, n_samples = 100)
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  on.exit({
    grDevices::dev.off()
    unlink(file)
  })
  expect_identical(plot(found), found)
  skip_if_not_installed("png")
  expect_identical(plot(found, id = found$index$id[1]), found)
  expect_error(plot(found, id = 999999), "999999", class = "mcce_error")
})

test_that("a level that is NA is an ordinary value for any levels of new rows", {
  skip_if_no_mcce()
  data <- data.frame(x = addNA(factor(rep(c("NA", "b", NA), 100), c("b", "NA"))), y = rnorm(300))
  queried <- character()
  score <- function(rows) {
    queried <<- union(queried, levels(rows$x)[rows$x])
    as.double(rows$y > 0)
  }
  some <- mcce(score, data, fixed = "x", random_state = 1, keep = FALSE)
  new <- data.frame(x = addNA(factor(c("b", NA))), y = -1)
  found <- explain(some, new, n_samples = 50)
  expect_identical(as.integer(found$rows$x), c(1L, 3L))
  expect_identical(levels(found$rows$x), c("b", "NA", NA))
  expect_setequal(queried, c("b", "NA", NA))
})

test_that("columns may come in another order, and as a data.table; unknown ones raise", {
  skip_if_no_mcce()
  turned <- refused[rev(names(refused))]
  expect_identical(explain(fitted(), turned, n_samples = 50)$rows, explain(fitted(), refused, n_samples = 50)$rows)
  expect_error(explain(fitted(), cbind(note = "x", refused)), "'note', unknown to the training data", class = "mcce_error")
  skip_if_not_installed("data.table")
  table <- getExportedValue("data.table", "as.data.table")(people)
  some <- mcce(rich, table, fixed = "age", decision = c(0.6, 1), random_state = 1, keep = FALSE)
  expect_identical(explain(some, refused, n_samples = 50)$rows, explain(fitted(), refused, n_samples = 50)$rows)
})

test_that("the summary of an explainer lists its columns", {
  skip_if_no_mcce()
  listed <- summary(fitted())
  expect_identical(listed$column, names(people))
  expect_identical(listed$kind, c("integer", "factor", "ordered", "logical", "character", "double", "Date"))
  expect_identical(listed$may_change, c(FALSE, rep(TRUE, 6)))
})

test_that("an explainer is read from a file, and finds the same rows", {
  skip_if_no_mcce()
  air <- stats::na.omit(datasets::airquality)
  air$sky <- factor(ifelse(air$Solar.R > 200, "clear", "grey"))
  air$day <- as.Date("1973-05-01") + seq_len(nrow(air))
  data <- air[c("Wind", "Temp", "sky", "day")]
  model <- stats::lm(Ozone ~ Wind + Temp + sky, air)
  made <- mcce(model, data, fixed = c("Wind", "day"), decision = c(-Inf, 20), random_state = 1)
  file <- tempfile(fileext = ".mcce")
  on.exit(unlink(file))
  writeBin(made$file, file)
  few <- droplevels(cbind(extra = 1, data[data$sky == "grey", 4:1])) # other columns, another order, fewer levels
  read <- load_mcce(file, model, few)
  expect_output(print(read), "in Python, 4 columns")
  expected <- explain(made, data[60:63, ], sparse = TRUE, n_samples = 100)$rows
  found <- explain(read, data[60:63, ], sparse = TRUE, n_samples = 100)$rows
  expect_identical(levels(found$sky), c("grey", "clear"))
  found$sky <- factor(found$sky, levels(data$sky))
  expect_identical(found, expected)
  again <- tempfile(fileext = ".rds")
  saveRDS(read, again)
  expect_identical(explain(readRDS(again), data[60:63, ], sparse = TRUE, n_samples = 100)$rows$Temp, expected$Temp)
  expect_error(load_mcce(file, model, few["sky"]), "data lacks the column\\(s\\) 'Wind', 'Temp'", class = "mcce_error")
  expect_error(load_mcce("no.mcce", model, few), "file not found: 'no.mcce'", class = "mcce_error")
  expect_error(load_mcce(file, model, few, n_jobs = 2), "called from one thread", class = "mcce_error")
  writeLines("a,b", file)
  expect_error(load_mcce(file, model, few), class = "mcce_error")
})

test_that("options without effect are errors", {
  skip_if_no_mcce()
  expect_error(explain(fitted(), refused, floor = 0.1), "floor = 0.1 has no effect without sparse = TRUE", class = "mcce_error")
  expect_error(explain(fitted(), refused, diverse = TRUE), "has no effect on a single counterfactual", class = "mcce_error")
  wrong <- list(sparse = TRUE, caution = 1, feature_weights = c(income = 2))
  expect_error(
    do.call(explain, c(list(fitted(), refused), wrong)), "but feature_weights defines another one",
    class = "mcce_error"
  )
})
