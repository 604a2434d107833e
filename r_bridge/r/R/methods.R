#' Conditionals of mice and synthpop
#'
#' A feature is drawn by a univariate imputation method of the package mice, `mice.impute.<method>()`, or by a
#' synthesising method of the package synthpop, `syn.<method>()`: `sampler` of [mcce()], alone or by feature.
#'
#' Each draw is one call of the method on the training rows and the row to draw, after [set.seed()] by the row's own
#' stream: slow, 1 to 300 ms a draw. The engine's own "pmm", "norm", "cart" and others draw from the same kinds of models
#' at once. Regressions get numbers and contrasts of factors; trees and forests of synthpop get the levels. Missing
#' values are refused.
#'
#' @param method For mice "norm", "norm.nob", "norm.boot", "pmm", "midastouch" (numbers), "logreg", "logreg.boot" (two
#'   levels), "polyreg", "polr", "lda" (levels), "cart", "rf" (both). For synthpop "norm", "normrank", "lognorm",
#'   "sqrtnorm", "cubertnorm" (numbers), "logreg" (two levels), "polyreg", "polr" (levels), "cart", "ctree", "rf", "bag",
#'   "ranger" (both).
#' @param ... Further arguments of the method, as `donors = 10`.
#' @return A list that [mcce()] reads.
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

# kinds of features that each method draws
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
    if (two_levels && nlevels(y) > 2) stop(sprintf("%s takes two levels, not %d; use polyreg or polr", method, nlevels(y)))
    learn(x, y)
  }
  structure(
    functions,
    own_rng = TRUE, kinds = kinds, maker = sprintf("%s_sampler(\"%s\")", package, method), class = "mcce_r_sampler"
  )
}

# the givens as numbers and contrasts, as mice and synthpop's regressions take them
contrasts_of <- function(x) {
  has_contrasts <- vapply(x, function(column) is.null(levels(column)) || nlevels(column) > 1, TRUE)
  if (!any(has_contrasts)) return(matrix(0, nrow(x), 1, dimnames = list(NULL, "none")))
  design <- stats::model.matrix(~., x[has_contrasts])[, -1, drop = FALSE]
  rownames(design) <- NULL
  design
}

varying <- function(design) {
  varies <- apply(design, 2, function(column) any(column != column[1]))
  if (!any(varies)) varies[1] <- TRUE
  design[, varies, drop = FALSE]
}

# mice imputes what is missing among rows that are not: here the training rows, and the one to draw
mice_functions <- function(method, options) {
  impute <- getExportedValue("mice", paste0("mice.impute.", method))
  list(
    learn = function(x, y) {
      list(y = y[c(seq_along(y), NA)], ry = c(rep(TRUE, length(y)), FALSE), design = varying(contrasts_of(x)))
    },
    prepare = function(object, newdata) contrasts_of(newdata)[, colnames(object$design), drop = FALSE],
    draw = function(object, new) {
      do.call(impute, c(list(y = object$y, ry = object$ry, x = rbind(object$design, new)), options))
    }
  )
}

# synthpop draws for new rows: here the one to draw, twice, since some methods drop a dimension of a single row
synthpop_functions <- function(method, options, takes_contrasts) {
  draw <- getExportedValue("synthpop", paste0("syn.", method))
  list(
    learn = function(x, y) list(y = y, x = if (takes_contrasts) as.data.frame(varying(contrasts_of(x))) else x),
    prepare = function(object, newdata) {
      if (takes_contrasts) newdata <- as.data.frame(contrasts_of(newdata))
      newdata[, colnames(object$x), drop = FALSE]
    },
    draw = function(object, new) {
      arguments <- list(y = object$y, x = object$x, xp = new[c(1, 1), , drop = FALSE])
      utils::capture.output(drawn <- do.call(draw, c(arguments, options))$res[1]) # it prints what it doubts
      if (is.factor(object$y)) factor(as.character(drawn), levels(object$y)) else as.numeric(drawn)
    }
  )
}
