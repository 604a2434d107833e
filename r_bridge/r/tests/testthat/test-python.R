ENTRIES <- c(
  "mcce(function(rows) rows$x, data.frame(x = 1:9), decision = c(5, 9))", "load_loans(10)",
  "explain_mcce(lm(mpg ~ wt, mtcars), mtcars[1, 'wt', drop = FALSE], mtcars['wt'])"
)

# the class and the text of the one error that all these calls raise
error_of_entries <- function(prepare = character(), env = character()) {
  code <- sprintf(
    "tryCatch({%s; cat('NONE\\n')}, error = function(e) cat('>', class(e)[1], gsub('\\n', ' ', e$message), '\\n'))",
    ENTRIES
  )
  unique(grep("^(>|NONE)", in_fresh_r(c(prepare, code), env), value = TRUE))
}

test_that("without Python or the engine, or with one of another version, every function raises the same message", {
  skip_if_no_mcce()
  folder <- tempfile()
  dir.create(file.path(folder, "mcce"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  writeLines("", file.path(folder, "mcce", "__init__.py"))
  other <- "reticulate::py_run_string('from mcce.rcompat import from_r; from_r.metadata.version = lambda name: \"99.1.0\"')"
  errors <- list(
    "/no/such/python" = error_of_entries(env = "RETICULATE_PYTHON=/no/such/python"),
    "No module named 'mcce.rcompat'" = error_of_entries(env = paste0("PYTHONPATH=", folder)),
    "the Python package mcce, has 99.1.0" = error_of_entries(other)
  )
  for (why in names(errors)) {
    expect_match(errors[[why]], "^> mcce_no_engine the engine, the Python package mcce, cannot be used: ")
    expect_match(errors[[why]], why, fixed = TRUE)
    expect_match(errors[[why]], "Run install_mcce\\(\\) and start R again, or set RETICULATE_PYTHON")
    expect_length(errors[[why]], 1)
  }
})

test_that("install_mcce() finds the sources that come with the package, or those given", {
  folder <- tempfile()
  dir.create(file.path(folder, "engine"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  archive <- file.path(folder, "engine", "mcce-0.1.0.tar.gz")
  source <- mcce:::engine_source
  expect_error(source(shipped = ""), "built without the sources of its engine; give the folder", class = "mcce_error")
  expect_error(source(shipped = dirname(archive)), "built without the sources", class = "mcce_error")
  file.create(archive)
  expect_identical(source(shipped = dirname(archive)), normalizePath(archive))
  expect_error(install_mcce("no/such/place"), "the path \"no/such/place\" does not exist", class = "mcce_error")
  expect_error(install_mcce(folder), "has no pyproject.toml", class = "mcce_error")
  writeLines("", file.path(folder, "pyproject.toml"))
  expect_identical(source(folder), normalizePath(folder))
})

# packages that export explain() or interval(), attached before and after this one
for (package in c("dplyr", "generics", "lime")) {
  test_that(paste("explain() works beside", package), {
    skip_if_no_mcce()
    skip_if_not(nzchar(system.file(package = package)))
    printed <- in_fresh_r(c(
      sprintf("suppressPackageStartupMessages(library(%s))", package),
      "explainer <- mcce(function(rows) rows$x, data.frame(x = as.double(1:60)), decision = c(30, 60))",
      "cat('CLASS', class(explain(explainer, data.frame(x = 1), n_samples = 50)), '\\n')"
    ))
    expect_identical(trimws(utils::tail(printed, 1)), "CLASS mcce_counterfactuals")
  })
}
