#' The wanted decision
#'
#' `decision` of [mcce()] is a pair of numbers, a closed interval for the score of the model; a class label; or one of
#' these functions. Labels are compared as text: `TRUE` is the class `TRUE` of a logical response, `4` the level "4" of a
#' factor. lubridate also exports a function `interval()`: write `mcce::interval()` if both packages are attached.
#'
#' @param low,high The ends; `-Inf` and `Inf` for no bound.
#' @param closed Which ends belong to the interval: "both", "left", "right" or "neither".
#' @param of The class whose probability is the score, for a classifier; see [predict_score()].
#' @param ... Class labels, for `one_of()`.
#' @return A list for [mcce()].
#' @examples
#' interval(0, 0.1, closed = "left", of = "default")
#' one_of("paid", "paid late")
#' @export
interval <- function(low, high, closed = "both", of = NULL, ...) {
  refuse_unknown(..., known = names(formals(interval)), of = "interval()")
  decision <- list(low = as.double(low), high = as.double(high), closed = closed, of = of)
  structure(decision, class = "mcce_decision")
}

#' @rdname interval
#' @export
one_of <- function(...) {
  labels <- lapply(list(...), function(label) if (is.factor(label)) as.character(label) else label)
  structure(list(labels = unlist(labels)), class = "mcce_decision")
}

#' @export
print.mcce_decision <- function(x, ...) {
  cat(decision_text(x), "\n", sep = "")
  invisible(x)
}

decision_text <- function(x) {
  if (length(x$labels)) return(paste("one of:", paste(x$labels, collapse = ", ")))
  of <- if (!is.null(x$of)) paste0(" of class '", x$of, "'")
  paste0("score", of, " from ", x$low, " to ", x$high, " (closed: ", x$closed, ")")
}

read_decision <- function(decision) {
  if (inherits(decision, "mcce_decision")) return(decision)
  if (inherits(decision, "Interval")) {
    refuse("decision is a time interval of the package lubridate; write mcce::interval().")
  }
  if (is.numeric(decision) && length(decision) == 2) return(interval(decision[1], decision[2]))
  if (length(decision) == 1 && (is.factor(decision) || is.atomic(decision))) return(one_of(decision))
  refuse(
    "decision is a ", class(decision)[1], " of length ", length(decision),
    "; give two numbers, a class label, interval() or one_of()."
  )
}

# class labels as text, as R models predict them: TRUE is "TRUE", 4 is "4", also as a double
label_text <- function(labels) {
  if (!is.double(labels)) return(as.character(labels))
  ifelse(is.na(labels), NA_character_, sprintf("%.15g", labels))
}

# predictions in the type of the user's labels, if all of them can be converted
as_labels <- function(predictions, labels) {
  if (!is.character(predictions) || is.null(labels) || is.character(labels)) return(predictions)
  typed <- suppressWarnings(if (is.logical(labels)) as.logical(predictions) else as.numeric(predictions))
  if (anyNA(typed[!is.na(predictions)])) predictions else typed
}
