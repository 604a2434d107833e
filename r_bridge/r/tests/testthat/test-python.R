# calls of every function that needs the engine; `kept` are an explainer and a result of another session
ENTRIES <- c(
  mcce = "mcce(function(rows) rows$x, data.frame(x = 1:9), decision = c(5, 9))",
  explain = "explain(kept[[1]], kept[[3]])",
  criticise = "criticise(kept[[1]], kept[[3]])",
  summary = "summary(kept[[2]])",
  sentences = "kept[[2]]$sentences",
  letter = "letter(kept[[2]], 1)",
  suspicious = "suspicious(kept[[2]])",
  load_mcce = "load_mcce(rds, function(rows) rows$x, data.frame(x = 1:9))",
  explain_mcce = "explain_mcce(lm(mpg ~ wt, mtcars), mtcars[1, 'wt', drop = FALSE], mtcars['wt'])",
  load_loans = "load_loans(10)",
  suggest_fixed = "suggest_fixed(mtcars)"
)

# the classes and texts of the errors of all these calls, in a session prepared by some code
errors_of_entries <- function(prepare = character(), env = character()) {
  data <- data.frame(x = as.double(1:60), y = 1:60 %% 7)
  made <- mcce(function(rows) rows$x, data, decision = c(30, 60), random_state = 1)
  found <- explain(made, data[1:3, ], n_samples = 50, keep = TRUE)
  rds <- tempfile(fileext = ".rds")
  on.exit(unlink(rds))
  saveRDS(list(made, found, data[1:3, ]), rds)
  calls <- sprintf("tryCatch({%s; cat('NONE\\n')}, error = function(e) cat(class(e)[1], '|', gsub('\\n', ' ', conditionMessage(e)), '\\n'))", ENTRIES)
  printed <- in_fresh_r(c(prepare, sprintf("rds <- '%s'", rds), "kept <- readRDS(rds)", calls, "cat('HAS', has_mcce(), '\\n')"), env)
  expect_identical(trimws(grep("^HAS", printed, value = TRUE)), "HAS FALSE")
  grep("^(NONE|mcce_|simpleError|error|python)", printed, value = TRUE)
}

expect_one_message <- function(printed, why) {
  expect_length(printed, length(ENTRIES))
  expect_match(printed, "^mcce_no_engine \\| the engine, the Python package mcce, cannot be used: ")
  expect_match(printed, why)
  expect_match(printed, "Run install_mcce\\(\\) and start R again, or set RETICULATE_PYTHON to a Python")
  expect_length(unique(printed), 1)
}

test_that("without Python every function raises the same message", {
  skip_if_no_mcce()
  expect_one_message(errors_of_entries(env = "RETICULATE_PYTHON=/no/such/python"), "/no/such/python")
})

test_that("without the engine, or with another package of its name, every function raises the same message", {
  skip_if_no_mcce()
  folder <- tempfile()
  dir.create(file.path(folder, "mcce"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  writeLines("", file.path(folder, "mcce", "__init__.py"))
  printed <- errors_of_entries(env = paste0("PYTHONPATH=", folder))
  expect_one_message(printed, "No module named 'mcce.rcompat'")
})

test_that("an engine of another version raises", {
  skip_if_no_mcce()
  printed <- errors_of_entries("reticulate::py_run_string('import mcce; mcce.__version__ = \"99.1.0\"')")
  version <- utils::packageVersion("mcce")
  expect_one_message(printed, paste0("R package mcce has version ", version, ", and its engine, the Python package mcce, has version 99.1.0"))
  older <- "reticulate::py_run_string('import mcce.rcompat.calls as calls; del calls.FUNCTIONS[\"connect\"]')"
  expect_one_message(errors_of_entries(older), paste("its version differs from that of the R package,", version))
})

test_that("loading the package does not call Python or a package index", {
  code <- c("loadNamespace('mcce')", "cat(reticulate::py_available(), '\\n')")
  expect_identical(trimws(tail(in_fresh_r(code, attach = FALSE), 1)), "FALSE")
  skip_if_not(nzchar(system.file("R", package = "mcce")))
  written <- unlist(lapply(as.list(asNamespace("mcce"), all.names = TRUE), function(each) if (is.function(each)) deparse(each)))
  expect_length(grep("py_require", written, fixed = TRUE), 0)
})

test_that("install_mcce() installs the sources that come with the package, or those given, and reports which", {
  folder <- tempfile()
  dir.create(file.path(folder, "engine"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  archive <- file.path(folder, "engine", "mcce-0.1.0.tar.gz")
  expect_error(mcce:::engine_source(shipped = ""), "built without the sources of its engine; give the folder", class = "mcce_error")
  expect_error(mcce:::engine_source(shipped = dirname(archive)), "built without the sources", class = "mcce_error")
  file.create(archive)
  expect_identical(mcce:::engine_source(shipped = dirname(archive)), normalizePath(archive))
  expect_error(install_mcce("no/such/place"), "the path \"no/such/place\" does not exist", class = "mcce_error")
  expect_error(install_mcce(folder), "has no pyproject.toml", class = "mcce_error")
  writeLines("", file.path(folder, "pyproject.toml"))
  called <- NULL
  space <- asNamespace("mcce")
  before <- space$pip_install
  replace <- function(by) {
    unlockBinding("pip_install", space)
    assign("pip_install", by, space)
    lockBinding("pip_install", space)
  }
  replace(function(...) called <<- list(...))
  on.exit(replace(before), add = TRUE)
  expect_message(install_mcce(folder, envname = "mine"), "installing the engine from .* into the Python environment 'mine'")
  expect_identical(called[[1]], normalizePath(folder)) # a path, never a name that an index would be searched for
  expect_identical(called$envname, "mine")
})

test_that("misspelt arguments get the nearest name", {
  skip_if_no_mcce()
  data <- data.frame(x = as.double(1:60), y = 1:60 %% 7)
  score <- function(rows) rows$x
  expect_error(mcce(score, data, fixd = "y"), "mcce\\(\\) has no argument 'fixd'; did you mean 'fixed'\\?", class = "mcce_error")
  expect_error(mcce(score, data, decision = interval(30, 60, lable = "high")), "interval\\(\\) has no argument 'lable'; did you mean 'label'\\?", class = "mcce_error")
  expect_error(allow("x", lo_w = 3), "allow\\(\\) has no argument 'lo_w'; did you mean 'low'\\?", class = "mcce_error")
  made <- mcce(score, data, decision = c(30, 60), random_state = 1, keep = FALSE)
  expect_error(explain(made, data[1, ], sprase = TRUE), "explain\\(\\) has no argument 'sprase'; did you mean 'sparse'\\?", class = "mcce_error")
  expect_error(explain(made, newdta = data[1, ]), "explain\\(\\) has no argument 'newdta'; did you mean 'newdata'\\?", class = "mcce_error")
  expect_error(mcce(score, data, sampler = sampler("cart", min_laef = 3)), "did you mean 'min_leaf'\\?", class = "mcce_error")
})
