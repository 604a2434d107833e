# Validate the results of user functions and return them as plain numbers. This file is used by the R package and by the
# bridge through which Python calls R (`r_bridge.session`); mcce/rcompat/conditional.py draws from the results. Both
# define `with_own_seed(code, seed)`, which restores R's generator.

learn_conditional <- function(learn, x, y, seed) with_own_seed(learn(x, y), seed)

# `numbers`: levels of quantiles, a uniform number for each row of a draw, or a seed for each of an own_draw
query_conditional <- function(what, functions, model, newdata, levels, numbers, seed) {
  switch(what,
    probs = conditional_probs(functions$probs, model, newdata, levels, seed),
    quantiles = conditional_quantiles(functions$quantiles, model, newdata, numbers, seed),
    draw = plain_draws(with_own_seed(functions$draw(model, newdata, numbers), seed), nrow(newdata), levels),
    own_draw = draws_one_by_one(functions$draw, model, newdata, numbers, levels, functions$prepare),
    stop(sprintf("unknown request '%s'", what))
  )
}

# return probabilities as a matrix of rows by levels: predict() drops dimensions, renames and omits levels
conditional_probs <- function(probs, object, newdata, levels, seed) {
  answer <- unwrapped(with_own_seed(probs(object, newdata), seed))
  n <- nrow(newdata)
  if (length(dim(answer)) == 2 && ncol(answer) == 1 && length(levels) == 2) answer <- as.vector(answer)
  if (length(dim(answer)) != 2) {
    if (length(levels) == 2 && length(answer) == n) {
      answer <- matrix(c(1 - answer, answer), n) # for two levels many return the second one only
    } else if (n == 1 && length(answer) == length(levels)) {
      answer <- matrix(answer, 1, dimnames = list(NULL, names(answer)))
    } else {
      stop(sprintf("probs returned %d values for %d rows and %d levels", length(answer), n, length(levels)))
    }
  }
  full <- matrix(0, n, length(levels))
  columns <- match(colnames(answer), levels)
  if (!length(columns) || anyNA(columns)) columns <- seq_len(ncol(answer))
  if (nrow(answer) != n || max(columns) > length(levels) || (is.null(colnames(answer)) && ncol(answer) != ncol(full))) {
    stop(sprintf(
      "probs returned a matrix of %d by %d for %d rows and the levels %s", nrow(answer), ncol(answer), n,
      paste(levels, collapse = ", ")
    ))
  }
  full[, columns] <- answer
  total <- rowSums(full)
  wrong <- which(is.na(total) | rowSums(full < 0) > 0 | abs(total - 1) > 1e-6)
  if (length(wrong)) {
    stop(sprintf("probs returned invalid probabilities: those of row %d sum to %g", wrong[1], total[wrong[1]]))
  }
  as.vector(full / total)
}

conditional_quantiles <- function(quantiles, object, newdata, p, seed) {
  answer <- unwrapped(with_own_seed(quantiles(object, newdata, p), seed))
  n <- nrow(newdata)
  if (length(dim(answer)) != 2 && min(n, length(p)) == 1) answer <- matrix(answer, n)
  if (!identical(as.integer(dim(answer)), c(n, length(p)))) {
    stop(sprintf(
      "quantiles returned %s; a matrix of %d rows by %d levels of p is needed",
      if (is.null(dim(answer))) paste(length(answer), "values") else paste(dim(answer), collapse = " by "), n, length(p)
    ))
  }
  if (!all(is.finite(answer))) stop("quantiles returned numbers that are not finite")
  as.double(answer)
}

# functions that use R's generator: one call per row, with a seed of the row
draws_one_by_one <- function(draw, object, newdata, seeds, levels, prepare = NULL) {
  if (!is.null(prepare)) newdata <- prepare(object, newdata)
  one_row <- function(i) {
    set.seed(seeds[i])
    plain_draws(draw(object, newdata[i, , drop = FALSE]), 1L, levels)
  }
  with_own_seed(vapply(seq_along(seeds), one_row, 0), 1)
}

plain_draws <- function(answer, n, levels) {
  if (length(answer) != n) stop(sprintf("draw returned %d values for %d rows", length(answer), n))
  if (!length(levels)) {
    drawn <- as.double(answer)
    if (!all(is.finite(drawn))) stop("draw returned numbers that are not finite")
    return(drawn)
  }
  place <- match(as.character(answer), levels)
  if (anyNA(place)) {
    stop(sprintf("draw returned %s, which is not a level", as.character(answer)[is.na(place)][1]))
  }
  place - 1
}

unwrapped <- function(answer) {
  if (is.list(answer) && !is.data.frame(answer)) {
    inside <- intersect(c("predictions", "posterior", "fit"), names(answer))
    if (length(inside)) answer <- answer[[inside[1]]]
  }
  if (is.data.frame(answer)) as.matrix(answer) else answer
}

# ---- methods of mice and synthpop as conditionals

# The methods see columns x1, x2, ...: names of the data may be R code, and packages paste names into formulas.
# Missing predictors are encoded as in synthpop: 0 for a number, the first level for a factor, and an indicator.
# A number that is complete in training has no indicator and is replaced by its mean.
code_givens <- function(x) {
  lapply(unname(x), function(column) {
    has_missing <- anyNA(column)
    fill <- if (is.factor(column)) levels(column)[1] else if (has_missing) 0 else mean(column)
    list(has_missing = has_missing, fill = fill)
  })
}

complete_givens <- function(x, coding) {
  x <- unname(as.list(x))
  filled <- Map(function(column, code) replace(column, is.na(column), code$fill), x, coding)
  flagged <- vapply(coding, function(code) code$has_missing, TRUE)
  columns <- c(filled, lapply(x[flagged], function(column) as.numeric(is.na(column))))
  structure(columns, names = paste0("x", seq_along(columns)), class = "data.frame", row.names = seq_along(x[[1]]))
}

# return the predictors as numbers and contrasts, as required by the regressions of mice and synthpop
contrasts_of <- function(x) {
  has_contrasts <- vapply(x, function(column) is.null(levels(column)) || nlevels(column) > 1, TRUE)
  if (!any(has_contrasts)) return(matrix(0, nrow(x), 1, dimnames = list(NULL, "x1")))
  design <- stats::model.matrix(~., x[has_contrasts])[, -1, drop = FALSE]
  dimnames(design) <- list(NULL, paste0("x", seq_len(ncol(design)))) # levels are part of R's names
  design
}

varying <- function(design) {
  varies <- apply(design, 2, function(column) any(column != column[1]))
  if (!any(varies)) varies[1] <- TRUE
  design[, varies, drop = FALSE]
}

# mice imputes missing rows among observed ones: here the row to draw among the training rows. polyreg fails on a
# single row if there are two levels, so the row is passed twice
mice_functions <- function(method, options) {
  impute <- getExportedValue("mice", paste0("mice.impute.", method))
  list(
    learn = function(x, y) {
      coding <- code_givens(x)
      times <- if (method == "polyreg" && length(unique(y)) == 2) 2 else 1
      list(
        y = y[c(seq_along(y), rep(NA, times))], ry = rep(c(TRUE, FALSE), c(length(y), times)), coding = coding,
        design = varying(contrasts_of(complete_givens(x, coding))), to_draw = rep(1, times)
      )
    },
    prepare = function(object, newdata) {
      contrasts_of(complete_givens(newdata, object$coding))[, colnames(object$design), drop = FALSE]
    },
    draw = function(object, new) {
      x <- rbind(object$design, new[object$to_draw, , drop = FALSE])
      do.call(impute, c(list(y = object$y, ry = object$ry, x = x), as.list(options)))[1]
    }
  )
}

# synthpop draws for new rows: the row is passed twice, because some methods drop a dimension of a single row
synthpop_functions <- function(method, options, takes_contrasts) {
  draw <- getExportedValue("synthpop", paste0("syn.", method))
  list(
    learn = function(x, y) {
      coding <- code_givens(x)
      x <- complete_givens(x, coding)
      list(y = y, coding = coding, x = if (takes_contrasts) as.data.frame(varying(contrasts_of(x))) else x)
    },
    prepare = function(object, newdata) {
      newdata <- complete_givens(newdata, object$coding)
      if (takes_contrasts) newdata <- as.data.frame(contrasts_of(newdata))
      newdata[, colnames(object$x), drop = FALSE]
    },
    draw = function(object, new) {
      arguments <- list(y = object$y, x = object$x, xp = new[c(1, 1), , drop = FALSE])
      utils::capture.output(drawn <- do.call(draw, c(arguments, as.list(options)))$res[1]) # suppress printed doubts
      if (is.factor(object$y)) factor(as.character(drawn), levels(object$y)) else as.numeric(drawn)
    }
  )
}
