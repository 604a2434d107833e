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
#' @param sparse Whether to combine draws with the row itself, so that few features change. Otherwise whole drawn rows are
#'   returned, as published.
#' @param floor With `sparse`, the plausibility threshold: the share of real rows that are at least as unusual; `NULL`
#'   is 0.05. An error without `sparse`.
#' @param n_samples Number of rows drawn for each row of `newdata`.
#' @param n_counterfactuals Number of counterfactuals for each row.
#' @param constraints Constraints in addition to those of the explainer; see [allow()].
#' @param ... Further arguments of the engine: `caution`, `measures`, `feature_weights`, `max_changes`, `max_gower`, `diverse`,
#'   `independent`.
#' @param keep Whether the result can be used in another session after [saveRDS()]. Without it, a saved result keeps its
#'   tables, but no sentences, letters and plots. It takes about 0.05 s.
#' @param progress Whether to show the progress of a slow model.
#' @return An object of class `mcce_counterfactuals`, with
#'   \item{rows}{the counterfactuals, with exactly the columns of the training data}
#'   \item{index}{a data frame of their `id` and `rank`}
#'   \item{measures}{the prediction, `L0` (number of changes), `gower`, ...}
#'   \item{changes}{every changed cell}
#'   \item{unexplained}{rows without a counterfactual and the reason, including rows with missing values for which the
#'   model has no prediction}
#'   \item{sentences}{one sentence per row, by id}
#'   `changes` and `sentences` are computed at first access.
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
  refuse("explain() of mcce needs the result of mcce(), not a ", class(x)[1], "; for another package, such as dplyr, write dplyr::explain().")
}

#' @rdname explain
#' @export
#' @rawNamespace S3method(dplyr::explain, mcce_explainer)
#' @rawNamespace S3method(generics::explain, mcce_explainer)
#' @rawNamespace S3method(lime::explain, mcce_explainer)
explain.mcce_explainer <- function(x, newdata, sparse = FALSE, floor = NULL, n_samples = 1000, n_counterfactuals = 1,
                                   constraints = NULL, ..., keep = FALSE, progress = interactive()) {
  if (missing(newdata)) {
    refuse_unknown(list(...), names(formals(explain.mcce_explainer)), "explain()")
    refuse("explain() needs the rows to explain: explain(explainer, newdata).")
  }
  engine()
  options <- list(
    sparse = sparse, floor = floor, n_samples = n_samples, n_counterfactuals = n_counterfactuals,
    constraints = read_constraints(constraints), ...
  )
  for (name in intersect(names(options), c("feature_weights", "measures"))) options[[name]] <- as.list(options[[name]])
  ask_for_rows("explain", x, newdata, options, keep, progress)
}

# return the result of explain() or recourse()
ask_for_rows <- function(name, x, newdata, options, keep, progress) {
  newdata <- as_plain_frame(newdata, "newdata")
  sent <- send_table(newdata, "newdata", x$template)
  reply <- with_progress(progress, call_python(name, revive(x), sent, Filter(Negate(is.null), options)))
  state <- new.env(parent = emptyenv())
  state$python <- reply$found
  measures <- receive_table(reply$measures)
  unexplained <- receive_table(reply$unexplained)
  measures$prediction <- as_labels(measures$prediction, x$decision$labels)
  unexplained$prediction <- as_labels(unexplained$prediction, x$decision$labels)
  structure(
    list(
      rows = receive_table(reply$frame, x$template),
      index = data.frame(id = receive_ids(reply$index), rank = as.integer(unlist(reply$rank))),
      measures = measures, unexplained = unexplained, settings = reply$settings, n_explained = nrow(newdata),
      fixed = x$fixed, file = if (keep) bytes_of(reply$found), state = state
    ),
    class = "mcce_counterfactuals"
  )
}

# parts of a result that are computed at first access and cached in its state
LATER <- list(
  changes = function(python) receive_table(call_python("changes", python)),
  consequences = function(python) {
    reply <- call_python("consequences", python)
    if (is.null(reply)) NULL else receive_table(reply)
  },
  sentences = function(python) {
    reply <- call_python("sentences", python)
    stats::setNames(split_texts(reply$texts), receive_ids(reply$ids))
  },
  words = function(python) call_python("words", python)
)

#' @export
`$.mcce_counterfactuals` <- function(x, name) x[[name]]

#' @export
`[[.mcce_counterfactuals` <- function(x, i, ...) {
  if (!is.character(i) || !i %in% names(LATER)) return(.subset2(x, i))
  state <- .subset2(x, "state")
  if (is.null(state[[i]])) state[[i]] <- LATER[[i]](revive(x))
  state[[i]]
}

#' Results of an explanation
#'
#' Methods for results of [explain()] and [recourse()].
#'
#' @param x,object The result of [explain()] or [recourse()].
#' @param row.names,optional Ignored.
#' @param what Which table: "all" for the counterfactuals with id, rank and measures, or one of the parts.
#'   "consequences" exist for [recourse()] only.
#' @param id A row name of `newdata`, as a number or as text: plots the changes of its counterfactual (needs the package
#'   png). Without it, a bar for each feature shows how often the best counterfactuals change it.
#' @param rank The rank of the counterfactual.
#' @param reasons Whether to add the principal reasons of the refusal, in the words of `names$reasons` of [mcce()], and
#'   the right to give one's own view and to ask for a review by a person. It takes seconds, and needs a result that was
#'   not read from a file.
#' @param ... Passed to [graphics::barplot()].
#' @return `as.data.frame()` returns a data frame, `summary()` a named vector of summary figures, and `letter()` the text
#'   of a letter to the person concerned.
#' @name results
#' @examplesIf has_mcce()
#' air <- na.omit(airquality)
#' model <- lm(Ozone ~ ., air)
#' explainer <- mcce(
#'   model, air[-1],
#'   fixed = c("Month", "Day"), decision = c(-Inf, 15), random_state = 1
#' )
#' found <- explain(explainer, tail(air[-1], 3), sparse = TRUE)
#' summary(found)
#' plot(found)
#' first <- found$index$id[1]
#' if (requireNamespace("png", quietly = TRUE)) plot(found, id = first)
#' cat(letter(found, id = first))
NULL

#' @rdname results
#' @export
as.data.frame.mcce_counterfactuals <- function(x, row.names = NULL, optional = FALSE, ...,
                                               what = c("all", "rows", "measures", "changes", "consequences", "unexplained")) {
  what <- match.arg(what)
  if (what == "all") cbind(x$index, x$rows, x$measures) else x[[what]]
}

#' @export
print.mcce_counterfactuals <- function(x, ...) {
  if (is.null(x$state$words) && is_dead(x$state$python)) {
    cat(length(unique(x$index$id)), "of", x$n_explained, "factuals explained\n")
  } else {
    cat(x$words, "\n", sep = "")
  }
  say_if_dead(x)
  invisible(x)
}

#' @rdname results
#' @export
summary.mcce_counterfactuals <- function(object, ...) {
  table <- receive_table(call_python("summary", revive(object)))
  structure(stats::setNames(table$value, table$figure), class = "summary.mcce_counterfactuals")
}

#' @export
print.summary.mcce_counterfactuals <- function(x, digits = 4, ...) {
  cat(paste0(format(names(x)), "  ", format(signif(unclass(x), digits), drop0trailing = TRUE)), sep = "\n")
  invisible(x)
}

#' @rdname results
#' @export
plot.mcce_counterfactuals <- function(x, id = NULL, rank = 1, ...) {
  if (!is.null(id)) {
    if (!requireNamespace("png", quietly = TRUE)) refuse("the plot of one row needs the package png; install it.")
    file <- tempfile(fileext = ".png")
    on.exit(unlink(file))
    size <- grDevices::dev.size("in")
    call_python("picture", revive(x), file, id, rank, c(size, 200))
    picture <- png::readPNG(file)
    old <- graphics::par(mar = c(0, 0, 0, 0))
    on.exit(graphics::par(old), add = TRUE)
    graphics::plot.new()
    graphics::plot.window(c(0, ncol(picture)), c(0, nrow(picture)), asp = 1)
    graphics::rasterImage(picture, 0, 0, ncol(picture), nrow(picture))
    return(invisible(x))
  }
  best <- x$changes[x$changes$rank == 1, ]
  times <- sort(table(factor(best$feature, setdiff(names(x$rows), x$fixed))))
  old <- graphics::par(mar = c(4, 2 + max(nchar(names(times))) * 0.6, 2, 1))
  on.exit(graphics::par(old))
  graphics::barplot(times, horiz = TRUE, las = 1, xlab = "times changed, of the best counterfactuals", ...)
  invisible(x)
}

#' @rdname results
#' @export
letter <- function(x, id, reasons = FALSE) {
  if (!inherits(x, "mcce_counterfactuals")) refuse("letter() needs the result of explain(), not a ", class(x)[1], ".")
  call_python("letter", revive(x), id, reasons)
}

#' Simulated customers of a bank
#'
#' The data of the vignettes. The first row is the customer of the paper's introduction.
#'
#' @param n Number of customers.
#' @return A data frame; the last column, `default`, is the response.
#' @examplesIf has_mcce()
#' head(load_loans())
#' @export
load_loans <- function(n = 3000) {
  engine()
  made <- reticulate::import("mcce.datasets", convert = FALSE)$load_loans(as.integer(n))
  receive_table(call_python("send_frame", made$X$assign(default = made$y)))
}
