#' Install the engine
#'
#' The engine is the Python package mcce of the same version. `install_mcce()` installs it from the sources included in
#' this package, or from those at `path`, into a separate Python environment, which later sessions find. It is never
#' installed from a package index by its name. pip installs its dependencies (numpy, pandas and others) from its index.
#'
#' @param path A folder or file (.tar.gz, .whl) with the sources of the Python package; `NULL` for those included in
#'   this package.
#' @param envname,method,... Passed to [reticulate::py_install()].
#' @return `install_mcce()` returns the installed path, invisibly; `has_mcce()` whether the engine can be used.
#' @examples
#' has_mcce()
#' \dontrun{
#' install_mcce()
#' install_mcce("path/to/the/source")
#' }
#' @export
install_mcce <- function(path = NULL, envname = "r-mcce", method = "auto", ...) {
  source <- engine_source(path)
  message("mcce: installing the engine from ", source, " into the Python environment '", envname, "'")
  pip_install(source, envname = envname, method = method, pip = TRUE, ...)
  invisible(source)
}

pip_install <- function(...) reticulate::py_install(...)

# return the sources to install; tools/add-engine copies them to inst/engine before the package is built
engine_source <- function(path = NULL, shipped = system.file("engine", package = "mcce")) {
  if (is.null(path)) {
    path <- if (nzchar(shipped)) list.files(shipped, "^mcce-.*[.]tar[.]gz$", full.names = TRUE)
    if (!length(path)) {
      refuse(
        "this copy of the R package mcce was built without the sources of its engine; give the folder of the Python ",
        "package: install_mcce(\"path/to/the/source\")."
      )
    }
  } else if (!is.character(path) || length(path) != 1 || !file.exists(path)) {
    refuse("the path ", deparse(path)[1], " does not exist; give the folder of the Python package, or its .tar.gz or .whl file.")
  } else if (dir.exists(path) && !file.exists(file.path(path, "pyproject.toml"))) {
    refuse("the folder '", path, "' has no pyproject.toml; give the folder of the Python package mcce.")
  }
  normalizePath(path[1])
}

#' Skip a test if the engine is not available
#'
#' For tests of packages that use this one. If the environment variable `MCCE_REQUIRE_R` is set, a missing engine is
#' an error instead.
#'
#' @return Nothing, or a condition that testthat treats as a skipped test.
#' @examplesIf requireNamespace("testthat", quietly = TRUE)
#' testthat::test_that("the engine is available", {
#'   skip_if_no_mcce()
#'   testthat::expect_true(has_mcce())
#' })
#' @export
skip_if_no_mcce <- function() {
  if (nzchar(Sys.getenv("MCCE_REQUIRE_R")) || has_mcce()) {
    return(invisible())
  }
  testthat::skip("the Python package mcce is not installed")
}

#' @rdname install_mcce
#' @export
has_mcce <- function() !inherits(tryCatch(engine(), error = identity), "error")

# Import the Python module once; every problem with Python or the engine raises the same error.
engine <- function() {
  if (is.null(the$calls)) {
    calls <- tryCatch(import_engine(), error = function(e) stop(no_engine(conditionMessage(e))))
    version <- as.character(utils::packageVersion("mcce"))
    reply <- reticulate::py_to_r(calls$attempt("connect", version))
    if (identical(reply$kind, "PythonError")) stop(no_engine(paste("its version differs from that of the R package,", version)))
    if (!is.null(reply$error)) stop(no_engine(reply$error))
    the$calls <- calls
  }
  the$calls
}

import_engine <- function() {
  chosen <- nzchar(Sys.getenv("RETICULATE_PYTHON")) || reticulate::py_available()
  if (!chosen && reticulate::virtualenv_exists("r-mcce")) reticulate::use_virtualenv("r-mcce", required = FALSE)
  reticulate::import("mcce.rcompat.calls", convert = FALSE)
}

no_engine <- function(why) {
  mcce_condition(
    paste0(
      "the engine, the Python package mcce, cannot be used: ", sub("[.\n ]+$", "", why), ".\n",
      "Run install_mcce() and start R again, or set RETICULATE_PYTHON to a Python (3.10 or later) that has the engine."
    ),
    c("mcce_no_engine", "mcce_error", "error")
  )
}

mcce_condition <- function(message, class, call = NULL) {
  structure(class = c(class, "condition"), list(message = message, call = call))
}

refuse <- function(..., call = NULL) stop(mcce_condition(paste0(...), c("mcce_error", "error"), call))

# return the value of a Python function; its warnings and errors are raised as R conditions
call_python <- function(name, ...) {
  calls <- engine()
  begin_progress()
  on.exit(end_progress())
  reply <- reticulate::py_to_r(calls$attempt(name, ...))
  for (text in unlist(reply$warnings)) {
    warning(mcce_condition(text, c("mcce_warning", "warning")))
  }
  if (!is.null(reply$error)) {
    stop(mcce_condition(reply$error, c(paste0("mcce_", reply$kind), "mcce_error", "error")))
  }
  reply$value
}

# raise if `...` holds an unknown argument
refuse_unknown <- function(given, known, of) {
  if (!length(given)) return(invisible())
  name <- names(given)[1]
  if (is.null(name) || !nzchar(name)) refuse(of, " got an unexpected unnamed argument: ", deparse(given[[1]])[1], ".")
  refuse(of, " has no argument '", name, "'; ", did_you_mean(name, setdiff(known, "...")))
}

did_you_mean <- function(name, known) {
  steps <- utils::adist(name, known, ignore.case = TRUE)
  if (min(steps) <= max(2, nchar(name) / 3)) return(paste0("did you mean '", known[which.min(steps)], "'?"))
  paste0("known: '", paste(known, collapse = "', '"), "'.")
}

as_dict <- function(x) if (length(x)) x else reticulate::py_dict(character(), list())

# Show the progress of a model that takes longer than a second, in one line that is cleared at the end.
begin_progress <- function() {
  the$rows_queried <- 0
  the$begun <- proc.time()[["elapsed"]]
  the$shown <- FALSE
}

tell_progress <- function(n) {
  the$rows_queried <- the$rows_queried + n
  if (isTRUE(the$progress) && proc.time()[["elapsed"]] - the$begun >= getOption("mcce.seconds", 1)) {
    cat(sprintf("\rmcce: the model has predicted %d rows", as.integer(the$rows_queried)), file = stderr())
    the$shown <- TRUE
  }
}

end_progress <- function() if (the$shown) cat("\r", strrep(" ", 60), "\r", sep = "", file = stderr())

with_progress <- function(progress, code) {
  the$progress <- progress
  on.exit(the$progress <- FALSE)
  code
}
