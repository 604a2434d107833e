#' Constraints
#'
#' Constraints of [mcce()] and [explain()]: a list of `allow()` and of rules as text, such as
#' `list(allow("salary", direction = "increase"), "savings >= 3 * rent")`. Rows are drawn inside the constraints, and no
#' returned row violates one. The language of rules is described on the page on constraints of the Python package.
#'
#' @param feature A column.
#' @param low,high Smallest and largest value: a number, a date, or a level of an ordered factor.
#' @param levels Allowed levels.
#' @param direction "increase" or "decrease" allows changes in one direction only; "none" allows no change.
#' @param max_step Largest change, in the unit of the feature; for dates and times a [difftime()].
#' @param missing Whether a known value may become missing.
#' @param ... Not used: an unknown argument is an error that suggests the nearest name.
#' @return A list for [mcce()] and [explain()].
#' @examples
#' allow("salary", low = 0, direction = "increase")
#' @export
allow <- function(feature, low = NULL, high = NULL, levels = NULL, direction = NULL, max_step = NULL, missing = NULL,
                  ...) {
  refuse_unknown(..., known = names(formals(allow)), of = "allow()")
  if (inherits(max_step, "difftime")) max_step <- list(seconds = as.double(max_step, units = "secs"))
  limits <- list(
    feature = feature, low = date_text(low), high = date_text(high),
    levels = if (!is.null(levels)) as.list(as.vector(levels)), direction = direction, max_step = max_step,
    missing = missing
  )
  structure(without_null(limits), class = "mcce_constraint")
}

date_text <- function(x) if (is.factor(x) || inherits(x, c("Date", "POSIXct"))) as.character(x) else x

#' @export
print.mcce_constraint <- function(x, ...) {
  limits <- x[names(x) != "feature"]
  printed <- vapply(names(limits), function(name) paste(name, paste(unlist(limits[[name]]), collapse = ", ")), "")
  cat(x$feature, ": ", paste(printed, collapse = "; "), "\n", sep = "")
  invisible(x)
}

read_constraints <- function(constraints) {
  if (inherits(constraints, "mcce_constraint")) constraints <- list(constraints)
  lapply(as.list(constraints), function(one) {
    if (inherits(one, "mcce_constraint") || (is.character(one) && length(one) == 1)) return(unclass(one))
    refuse("a constraint is a ", class(one)[1], "; give allow() or the text of a rule.")
  })
}
