#' Find counterfactuals
#'
#' For each row without the wanted decision, finds a row that has it and differs in few features and by little: steps 2
#' and 3 of the method.
#'
#' The packages dplyr, generics and lime also export a function `explain()`; each of them works for the result of
#' [mcce()], whichever package is attached last.
#'
#' @param x The result of [mcce()].
#' @param newdata Rows to explain. Row names identify them in the result.
#' @param sparse Whether to combine draws with the row itself, so that few features change, each of them needed.
#'   Otherwise whole drawn rows are returned, as published.
#' @param n_samples Number of rows drawn for each row of `newdata`.
#' @param n_counterfactuals Number of counterfactuals for each row.
#' @param constraints Constraints in addition to those of the explainer; see [allow()].
#' @param ... Further arguments of the engine: `floor` (with `sparse`, the share of real rows that are rejected as
#'   implausible, 0.05), `diverse`, `relations`, `measures`, `max_changes`, `max_gower`, `independent`.
#' @return An object of class `mcce_counterfactuals`, a list of
#'   \item{rows}{the counterfactuals, with exactly the columns of the training data}
#'   \item{index}{a data frame of their `id` and `rank`}
#'   \item{measures}{the prediction, `L0` (number of changes), `gower`, ...}
#'   \item{changes}{every changed cell}
#'   \item{unexplained}{rows without a counterfactual and the reason}
#'   \item{settings}{the seed, the options, rows queried and seconds}
#' @examplesIf has_mcce()
#' air <- na.omit(airquality)
#' model <- lm(Ozone ~ ., air)
#' explainer <- mcce(
#'   model, air[-1],
#'   fixed = c("Month", "Day"), decision = c(-Inf, 15), random_state = 1
#' )
#' found <- explain(explainer, tail(air[-1], 3), sparse = TRUE)
#' as.data.frame(found)
#' @export
explain <- function(x, ...) UseMethod("explain")

#' @export
explain.default <- function(x, ...) {
  refuse(
    "explain() of mcce needs the result of mcce(), not a ", class(x)[1],
    "; for another package, such as dplyr, write dplyr::explain()."
  )
}

#' @rdname explain
#' @export
#' @rawNamespace S3method(dplyr::explain, mcce_explainer)
#' @rawNamespace S3method(generics::explain, mcce_explainer)
#' @rawNamespace S3method(lime::explain, mcce_explainer)
explain.mcce_explainer <- function(x, newdata, sparse = FALSE, n_samples = 1000, n_counterfactuals = 1,
                                   constraints = NULL, ...) {
  if (missing(newdata)) {
    refuse_unknown(..., known = names(formals(explain.mcce_explainer)), of = "explain()")
    refuse("explain() needs the rows to explain: explain(explainer, newdata).")
  }
  options <- list(
    sparse = sparse, n_samples = n_samples, n_counterfactuals = n_counterfactuals,
    constraints = read_constraints(constraints), ...
  )
  if (is.character(options$relations)) options$relations <- as.list(options$relations)
  python <- python_of(x, "fit it again with mcce().")
  reply <- call_python("explain", python, send_table(newdata, "newdata"), without_null(options))
  index <- receive_table(reply$index)
  measures <- receive_table(reply$measures)
  unexplained <- receive_table(reply$unexplained)
  measures$prediction <- as_labels(measures$prediction, x$decision$labels)
  unexplained$prediction <- as_labels(unexplained$prediction, x$decision$labels)
  structure(
    list(
      rows = receive_table(reply$rows, x$template), index = index, measures = measures,
      changes = receive_table(reply$changes), unexplained = unexplained, settings = reply$settings, fixed = x$fixed,
      text = reply$text, python = reply$python
    ),
    class = "mcce_counterfactuals"
  )
}

#' Results of an explanation
#'
#' Methods for results of [explain()].
#'
#' @param x,object The result of [explain()].
#' @param row.names,optional Ignored.
#' @param what Which table: "all" for the counterfactuals with id, rank and measures, or one of the parts.
#' @param id A row name of `newdata`, as a number or as text: `print()` tells its counterfactual in a sentence, `plot()`
#'   draws what changes. Without it, `plot()` draws how often each feature changes in the best counterfactuals.
#' @param rank The rank of the counterfactual.
#' @param ... Not used.
#' @return `as.data.frame()` returns a data frame, and `summary()` a data frame of figures; the others return `x`.
#' @name results
#' @examplesIf has_mcce()
#' air <- na.omit(airquality)
#' model <- lm(Ozone ~ ., air)
#' explainer <- mcce(
#'   model, air[-1],
#'   fixed = c("Month", "Day"), decision = c(-Inf, 15), random_state = 1
#' )
#' found <- explain(explainer, tail(air[-1], 3), sparse = TRUE)
#' print(found, id = 151)
#' summary(found)
#' plot(found)
#' plot(found, id = 151)
NULL

#' @rdname results
#' @export
as.data.frame.mcce_counterfactuals <- function(x, row.names = NULL, optional = FALSE, ...,
                                               what = c("all", "rows", "measures", "changes", "unexplained")) {
  what <- match.arg(what)
  if (what == "all") cbind(x$index, x$rows, x$measures) else x[[what]]
}

#' @rdname results
#' @export
print.mcce_counterfactuals <- function(x, id = NULL, rank = 1, ...) {
  cat(if (is.null(id)) x$text else call_python("sentence", result_of(x), id, rank), "\n", sep = "")
  invisible(x)
}

#' @rdname results
#' @export
summary.mcce_counterfactuals <- function(object, ...) receive_table(call_python("summarise", result_of(object)))

#' @rdname results
#' @export
plot.mcce_counterfactuals <- function(x, id = NULL, rank = 1, ...) {
  file <- tempfile(fileext = ".png")
  on.exit(unlink(file))
  call_python("draw_picture", result_of(x), file, id, rank)
  picture <- png::readPNG(file)
  old <- graphics::par(mar = c(0, 0, 0, 0))
  on.exit(graphics::par(old), add = TRUE)
  graphics::plot.new()
  graphics::plot.window(c(0, ncol(picture)), c(0, nrow(picture)), asp = 1)
  graphics::rasterImage(picture, 0, 0, ncol(picture), nrow(picture))
  invisible(x)
}

result_of <- function(x) python_of(x, "its tables remain, such as $rows and $changes; for the rest explain again.")

#' Simulated customers of a bank
#'
#' The data of the vignettes.
#'
#' @param n Number of customers.
#' @return A data frame; the last column, `default`, is the response.
#' @examplesIf has_mcce()
#' head(load_loans())
#' @export
load_loans <- function(n = 3000) {
  engine()
  simulate <- reticulate::import("mcce.datasets", convert = FALSE)$load_loans
  receive_table(call_python("loans", simulate, n))
}
