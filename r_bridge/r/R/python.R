#' Install the engine
#'
#' The engine is the Python package mcce of the same version. `install_mcce()` installs it from the sources included in
#' this package, or from those at `path`, into a separate Python environment, which later sessions find. It is never
#' installed from a package index by its name. pip installs its dependencies (numpy, pandas and others) from its index.
#'
#' @param path A folder or file (.tar.gz, .whl) with the sources of the Python package; `NULL` for those included in
#'   this package.
#' @param envname,... Passed to [reticulate::py_install()].
#' @return `install_mcce()` returns the installed path, invisibly; `has_mcce()` whether the engine can be used.
#' @examples
#' has_mcce()
#' \dontrun{
#' install_mcce()
#' install_mcce("path/to/the/source")
#' }
#' @export
install_mcce <- function(path = NULL, envname = "r-mcce", ...) {
  source <- engine_source(path)
  message("mcce: installing the engine from ", source, " into the Python environment '", envname, "'")
  reticulate::py_install(source, envname = envname, pip = TRUE, ...)
  invisible(source)
}

# tools/add-engine copies the sources to inst/engine before the package is built
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
    refuse("the path ", shown(path), " does not exist; give the folder of the Python package, or its .tar.gz or .whl.")
  } else if (dir.exists(path) && !file.exists(file.path(path, "pyproject.toml"))) {
    refuse("the folder '", path, "' has no pyproject.toml; give the folder of the Python package mcce.")
  }
  normalizePath(path[1])
}

#' @rdname install_mcce
#' @export
has_mcce <- function() !inherits(tryCatch(engine(), error = identity), "error")

# Import the Python module once; every problem with Python or the engine raises the same error.
engine <- function() {
  if (is.null(the$calls)) {
    calls <- tryCatch(import_engine(), error = function(e) no_engine(conditionMessage(e)))
    reply <- reticulate::py_to_r(calls$attempt("connect", as.character(utils::packageVersion("mcce"))))
    if (!is.null(reply$error)) no_engine(reply$error)
    the$calls <- calls
  }
  the$calls
}

import_engine <- function() {
  is_chosen <- nzchar(Sys.getenv("RETICULATE_PYTHON")) || reticulate::py_available()
  if (!is_chosen && reticulate::virtualenv_exists("r-mcce")) reticulate::use_virtualenv("r-mcce", required = FALSE)
  reticulate::import("mcce.rcompat.from_r", convert = FALSE)
}

no_engine <- function(why) {
  refuse(
    "the engine, the Python package mcce, cannot be used: ", sub("[.\n ]+$", "", why), ".\n",
    "Run install_mcce() and start R again, or set RETICULATE_PYTHON to a Python (3.10 or later) that has the engine.",
    class = "mcce_no_engine"
  )
}

refuse <- function(..., class = NULL) {
  stop(structure(class = c(class, "mcce_error", "error", "condition"), list(message = paste0(...), call = NULL)))
}

# Return the value of a function of the engine; its warnings and errors are raised as R conditions.
call_python <- function(name, ...) {
  calls <- engine() # before reticulate is called, which raises other errors without Python
  reply <- reticulate::py_to_r(calls$attempt(name, ...))
  for (text in unlist(reply$warnings)) {
    warning(structure(class = c("mcce_warning", "warning", "condition"), list(message = text, call = NULL)))
  }
  if (!is.null(reply$error)) refuse(reply$error, class = paste0("mcce_", reply$kind))
  reply$value
}

# the Python part of an object, which lives for one session
python_of <- function(x, remedy) {
  if (is.null(the$calls) || reticulate::py_is_null_xptr(x$python)) {
    refuse("this ", class(x)[1], " belongs to an R session that has ended; ", remedy)
  }
  x$python
}

refuse_unknown <- function(..., known, of) {
  arguments <- list(...)
  if (!length(arguments)) return(invisible())
  name <- names(arguments)[1]
  if (is.null(name) || !nzchar(name)) refuse(of, " got an unexpected unnamed argument: ", shown(arguments[[1]]), ".")
  known <- setdiff(known, "...")
  steps <- utils::adist(name, known, ignore.case = TRUE)
  nearest <- paste0("did you mean '", known[which.min(steps)], "'?")
  if (min(steps) > max(2, nchar(name) / 3)) nearest <- paste0("known: '", paste(known, collapse = "', '"), "'.")
  refuse(of, " has no argument '", name, "'; ", nearest)
}

shown <- function(x) deparse(x)[1]

without_null <- function(x) Filter(Negate(is.null), x)
