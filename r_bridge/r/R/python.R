#' Install the Python package
#'
#' For those who manage Python themselves, or whose reticulate has no `py_require()`. Elsewhere the package is found, or
#' installed, when it is first needed.
#'
#' @param envname,method,... Passed on to [reticulate::py_install()].
#' @param package What pip installs: the name of the package, a version of it, or the folder of its source.
#' @return `install_mcce()` nothing; `has_mcce()` whether the Python package is there.
#' @examples
#' \dontrun{
#' install_mcce()
#' install_mcce(package = "path/to/the/source")
#' }
#' @export
install_mcce <- function(envname = "r-mcce", method = "auto", package = "mcce", ...) {
  reticulate::py_install(package, envname = envname, method = method, pip = TRUE, ...)
  invisible()
}

#' Skip a test where the Python package is not there
#'
#' For tests of packages that use this one. Where the environment variable `MCCE_REQUIRE_R` is set, a missing engine is
#' an error instead.
#'
#' @return Nothing, or a condition that testthat takes for a skipped test.
#' @examplesIf requireNamespace("testthat", quietly = TRUE)
#' testthat::test_that("the engine is there", {
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
has_mcce <- function() {
  found <- tryCatch(reticulate::py_module_available("mcce.rcompat.calls"), error = function(e) FALSE)
  isTRUE(found)
}

no_python <- function(e) {
  mcce_condition(
    paste0(
      "the Python package mcce cannot be loaded: ", conditionMessage(e), "\n",
      "Run install_mcce(), or set RETICULATE_PYTHON to a Python (3.10 or later) that has it, and start R again."
    ),
    c("mcce_no_python", "mcce_error", "error")
  )
}

mcce_condition <- function(message, class, call = NULL) {
  structure(class = c(class, "condition"), list(message = message, call = call))
}

refuse <- function(..., call = NULL) stop(mcce_condition(paste0(...), c("mcce_error", "error"), call))

# the value of a function of Python; its warnings and errors are raised as ours
call_python <- function(name, ...) {
  begin_progress()
  on.exit(end_progress())
  told <- reticulate::py_to_r(the$calls$attempt(name, ...))
  for (text in unlist(told$warnings)) {
    warning(mcce_condition(text, c("mcce_warning", "warning")))
  }
  if (!is.null(told$error)) {
    stop(mcce_condition(told$error, c(paste0("mcce_", told$kind), "mcce_error", "error")))
  }
  told$value
}

as_dict <- function(x) if (length(x)) x else reticulate::py_dict(character(), list())

# A model that takes longer than a second shows how far it is, in one line that is wiped away in the end.
begin_progress <- function() {
  the$rows_asked <- 0
  the$begun <- proc.time()[["elapsed"]]
  the$shown <- FALSE
}

tell_progress <- function(n) {
  the$rows_asked <- the$rows_asked + n
  if (isTRUE(the$progress) && proc.time()[["elapsed"]] - the$begun >= getOption("mcce.seconds", 1)) {
    cat(sprintf("\rmcce: the model was asked about %d rows", as.integer(the$rows_asked)), file = stderr())
    the$shown <- TRUE
  }
}

end_progress <- function() if (the$shown) cat("\r", strrep(" ", 60), "\r", sep = "", file = stderr())

with_progress <- function(progress, code) {
  the$progress <- progress
  on.exit(the$progress <- FALSE)
  code
}
