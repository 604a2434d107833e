#' What may change, and how
#'
#' Constraints of [mcce()] and [explain()]: a list of `allow()` and of rules as text, as in
#' `list(allow("salary", direction = "increase"), "savings >= 3 * rent")`. Rows are drawn inside of them, and none that
#' is returned breaks one. The rules have their own language, which the page on constraints of the Python package
#' describes.
#'
#' @param feature A column; `"*"`, with `missing` alone, for all.
#' @param low,high Smallest and largest value: a number, a date, or a level of an ordered factor.
#' @param levels,never Levels that are allowed; levels or values that are never to be used.
#' @param direction "increase" or "decrease": it may only rise or only fall; "none": it stays.
#' @param max_step Largest change, in the feature's own unit.
#' @param max_share Largest change as a share of the range of the training data.
#' @param step Numbers that it changes to are multiples of it.
#' @param missing Whether it may become missing.
#' @param ... Not used: a misspelt argument is an error that names the nearest one.
#' @return A list that [mcce()] and [explain()] read.
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
  said <- vapply(names(rest), function(name) paste(name, paste(unlist(rest[[name]]), collapse = ", ")), "")
  cat(x$feature, ": ", paste(said, collapse = "; "), "\n", sep = "")
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
#' How a feature is drawn given those before it: `sampler` of [mcce()] is a name, `sampler()`, [r_sampler()], or a list
#' of them by feature, `"*"` for all others.
#'
#' @param name "cart", "ctree", "pmm", "norm", "forest", ...: those of the Python package.
#' @param ... Its parameters, as `min_leaf = 10`.
#' @return A list that [mcce()] reads.
#' @examples
#' list(salary = sampler("cart", min_leaf = 20), "*" = "cart")
#' @export
sampler <- function(name, ...) structure(list(sampler = name, parameters = list(...)), class = "mcce_sampler")

# samplers as Python reads them; those of R are lent to it by a name, and kept in `held`
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
