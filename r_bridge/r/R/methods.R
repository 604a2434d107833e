#' Conditionals of mice and synthpop
#'
#' Draws a feature by a univariate imputation method of the package mice, `mice.impute.<method>()`, or by a
#' synthesising method of the package synthpop, `syn.<method>()`. Use them as `sampler` of [mcce()], alone or by feature.
#'
#' Each draw is one call of the method with the training rows and the row to draw, after [set.seed()] with a seed of the
#' row. This is slow: 1 to 300 ms per draw. The engine's samplers "pmm", "norm", "cart" and others draw from the same kinds
#' of models much faster. Regressions get numbers and contrasts of factors; trees and forests of synthpop get the levels.
#' Missing values are an error.
#'
#' @param method For mice "norm", "norm.nob", "norm.boot", "pmm", "midastouch" (numbers), "logreg", "logreg.boot" (two
#'   levels), "polyreg", "polr", "lda" (levels), "cart", "rf" (both). For synthpop "norm", "normrank", "lognorm",
#'   "sqrtnorm", "cubertnorm" (numbers), "logreg" (two levels), "polyreg", "polr" (levels), "cart", "ctree", "rf", "bag",
#'   "ranger" (both).
#' @param ... Further arguments of the method, such as `donors = 10`.
#' @return A list for [mcce()].
#' @examplesIf requireNamespace("mice", quietly = TRUE)
#' list(salary = mice_sampler("pmm", donors = 3), "*" = "cart")
#' @export
mice_sampler <- function(method, ...) {
  need_method(method, MICE_METHODS, "mice", "mice_sampler()")
  made_sampler("mice", method, mice_functions(method, list(...)), MICE_METHODS[[method]])
}

#' @rdname mice_sampler
#' @export
synthpop_sampler <- function(method, ...) {
  need_method(method, SYNTHPOP_METHODS, "synthpop", "synthpop_sampler()")
  takes_contrasts <- !method %in% c("cart", "ctree", "rf", "bag", "ranger")
  made_sampler("synthpop", method, synthpop_functions(method, list(...), takes_contrasts), SYNTHPOP_METHODS[[method]])
}

NUMBERS <- "numeric"
LEVELS <- c("categorical", "ordered")

# kinds of features that each method supports
MICE_METHODS <- list(
  norm = NUMBERS, norm.nob = NUMBERS, norm.boot = NUMBERS, pmm = NUMBERS, midastouch = NUMBERS, logreg = LEVELS,
  logreg.boot = LEVELS, polyreg = LEVELS, polr = LEVELS, lda = LEVELS, cart = c(NUMBERS, LEVELS), rf = c(NUMBERS, LEVELS)
)
SYNTHPOP_METHODS <- list(
  norm = NUMBERS, normrank = NUMBERS, lognorm = NUMBERS, sqrtnorm = NUMBERS, cubertnorm = NUMBERS, logreg = LEVELS,
  polyreg = LEVELS, polr = LEVELS, cart = c(NUMBERS, LEVELS), ctree = c(NUMBERS, LEVELS), rf = c(NUMBERS, LEVELS),
  bag = c(NUMBERS, LEVELS), ranger = c(NUMBERS, LEVELS)
)

need_method <- function(method, methods, package, of) {
  if (!is.character(method) || length(method) != 1 || !method %in% names(methods)) {
    refuse(
      "method of ", of, " is ", deparse(method)[1], "; ",
      if (is.character(method) && length(method) == 1) did_you_mean(method, names(methods)) else "give the name of a method as text."
    )
  }
  if (!requireNamespace(package, quietly = TRUE)) {
    refuse(of, " needs the package ", package, "; run install.packages(\"", package, "\").")
  }
}

made_sampler <- function(package, method, functions, kinds) {
  two_levels <- startsWith(method, "logreg")
  learn <- functions$learn
  functions$learn <- function(x, y) {
    if (two_levels && nlevels(y) > 2) stop(sprintf("%s needs two levels, not %d; use polyreg or polr", method, nlevels(y)))
    learn(x, y)
  }
  structure(
    functions,
    own_rng = TRUE, kinds = kinds, maker = sprintf("%s_sampler(\"%s\")", package, method), class = "mcce_r_sampler"
  )
}
