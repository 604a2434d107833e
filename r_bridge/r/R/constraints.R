#' Constraints
#'
#' Constraints of [mcce()] and [explain()]: a list of `allow()` and of rules as text, such as
#' `list(allow("salary", direction = "increase"), "savings >= 3 * rent")`. Rows are drawn inside the constraints, and no
#' returned row violates one. The language of rules is described on the page on constraints of the Python package.
#'
#' @param feature A column; `"*"`, with `missing` only, for all columns.
#' @param low,high Smallest and largest value: a number, a date, or a level of an ordered factor.
#' @param levels,never Allowed levels; levels or values that are never used.
#' @param direction "increase" or "decrease" allows changes in one direction only; "none" allows no change.
#' @param max_step Largest change, in the unit of the feature.
#' @param max_share Largest change as a share of the range of the training data.
#' @param step Changed numbers are multiples of it.
#' @param missing Whether the feature may become missing.
#' @param ... Not used: an unknown argument is an error that suggests the nearest name.
#' @return A list for [mcce()] and [explain()].
#' @examples
#' allow("salary", low = 0, step = 500, direction = "increase")
#' @export
allow <- function(feature, low = NULL, high = NULL, levels = NULL, never = NULL, direction = NULL, max_step = NULL,
                  max_share = NULL, step = NULL, missing = NULL, ...) {
  refuse_unknown(list(...), names(formals(allow)), "allow()")
  given <- list(
    feature = feature, low = as_text_of_date(low), high = as_text_of_date(high),
    levels = if (!is.null(levels)) as.list(as.vector(levels)), never = if (!is.null(never)) as.list(as.vector(never)),
    direction = direction, max_step = max_step, max_share = max_share, step = step, missing = missing
  )
  structure(Filter(Negate(is.null), given), class = "mcce_constraint")
}

#' @export
print.mcce_constraint <- function(x, ...) {
  rest <- x[names(x) != "feature"]
  printed <- vapply(names(rest), function(name) paste(name, paste(unlist(rest[[name]]), collapse = ", ")), "")
  cat(x$feature, ": ", paste(printed, collapse = "; "), "\n", sep = "")
  invisible(x)
}

as_text_of_date <- function(x) {
  if (is.factor(x)) as.character(x) else if (inherits(x, c("Date", "POSIXct"))) format(x) else x
}

read_constraints <- function(constraints) {
  if (is.null(constraints)) return(NULL)
  if (inherits(constraints, "mcce_constraint")) constraints <- list(constraints)
  lapply(as.list(constraints), function(each) {
    if (is.character(each) && length(each) == 1) return(each)
    if (inherits(each, "mcce_constraint") || is.list(each)) return(unclass(each))
    refuse("a constraint is a ", class(each)[1], "; give allow() or the text of a rule.")
  })
}

#' A conditional with parameters
#'
#' The model of a feature given earlier ones. `sampler` of [mcce()] is a name, `sampler()`, [r_sampler()], or a list
#' of them by feature, with `"*"` for all others.
#'
#' @param name "cart", "ctree", "pmm", "norm", "forest" or another sampler of the Python package.
#' @param ... Its parameters, such as `min_leaf = 10`.
#' @return A list for [mcce()].
#' @examples
#' list(salary = sampler("cart", min_leaf = 20), "*" = "cart")
#' @export
sampler <- function(name, ...) structure(list(sampler = name, parameters = list(...)), class = "mcce_sampler")

# return samplers in the form that Python reads; R samplers are passed by name and kept in `held`
read_sampler <- function(sampler, held) {
  if (inherits(sampler, "mcce_sampler")) {
    sampler$parameters <- as_dict(sampler$parameters)
    return(unclass(sampler))
  }
  if (inherits(sampler, "mcce_r_sampler")) return(hold_sampler(sampler, held))
  if (is.character(sampler) && length(sampler) == 1 && is.null(names(sampler))) return(sampler)
  if (is.null(names(sampler))) {
    refuse("sampler is a ", class(sampler)[1], " without names; give a name, sampler(), r_sampler(), or a named list of these.")
  }
  lapply(as.list(sampler), read_sampler, held)
}
