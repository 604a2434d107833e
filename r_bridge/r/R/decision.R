#' The wanted decision
#'
#' `decision` of [mcce()] is a pair of numbers, a closed interval for the score of the model; a class label; or one of
#' these functions. Labels are compared as text: `TRUE` is the class `TRUE` of a logical response, `4` the level "4" of a
#' factor. lubridate also exports a function `interval()`: write `mcce::interval()` if both packages are attached.
#'
#' @param low,high The ends; `-Inf` and `Inf` for no bound.
#' @param closed Which ends belong to the interval: "both", "left", "right" or "neither".
#' @param of The class whose probability is the score, for a classifier; see [predict_score()].
#' @param margin Minimum distance of the score from the ends of the interval.
#' @param label A text for the decision in sentences and letters.
#' @param ... Class labels, for `one_of()` and `none_of()`.
#' @return A list for [mcce()].
#' @examples
#' interval(0, 0.1, closed = "left", of = "default")
#' one_of("paid", "paid late")
#' @export
interval <- function(low, high, closed = "both", of = NULL, margin = 0, label = NULL, ...) {
  refuse_unknown(list(...), names(formals(interval)), "interval()")
  structure(
    list(kind = "interval", low = as.double(low), high = as.double(high), closed = closed, of = of, margin = margin, label = label),
    class = "mcce_decision"
  )
}

#' @rdname interval
#' @export
one_of <- function(..., label = NULL) wanted_labels("one_of", c(...), label)

#' @rdname interval
#' @export
none_of <- function(..., label = NULL) wanted_labels("none_of", c(...), label)

wanted_labels <- function(kind, labels, label) {
  if (is.factor(labels)) labels <- as.character(labels)
  structure(list(kind = kind, labels = as.list(labels), label = label), class = "mcce_decision")
}

#' @export
print.mcce_decision <- function(x, ...) {
  if (x$kind == "interval") {
    of <- if (!is.null(x$of)) paste0(" of class '", x$of, "'")
    cat("score", of, " from ", x$low, " to ", x$high, " (closed: ", x$closed, ")\n", sep = "")
  } else {
    cat(if (x$kind == "one_of") "one of: " else "none of: ", paste(x$labels, collapse = ", "), "\n", sep = "")
  }
  invisible(x)
}

# return class labels as text, as R models predict them: TRUE is "TRUE", 4 is "4", also as a double
label_text <- function(labels) {
  if (!is.double(labels)) return(as.character(labels))
  ifelse(is.na(labels), NA_character_, sprintf("%.15g", labels))
}

# return predictions in the type of the user's labels, if all of them can be converted
as_labels <- function(predictions, labels) {
  labels <- unlist(labels)
  if (!is.character(predictions) || is.character(labels) || is.null(labels)) return(predictions)
  typed <- suppressWarnings(if (is.logical(labels)) as.logical(predictions) else as.numeric(predictions))
  if (anyNA(typed[!is.na(predictions)])) predictions else typed
}

# evaluate a decision; if interval() of another package was called, the error says so
own_interval <- function(decision, caller) {
  tryCatch(decision, error = function(e) {
    called <- get0("interval", caller, mode = "function")
    if (is.null(called) || identical(called, interval)) stop(e)
    refuse("decision: ", conditionMessage(e), ". interval() of another package, such as lubridate, was called; write mcce::interval().")
  })
}

read_decision <- function(decision) {
  if (inherits(decision, "mcce_decision")) return(decision)
  if (inherits(decision, "Interval")) refuse("decision is a time interval of the package lubridate; write mcce::interval().")
  if (is.numeric(decision) && length(decision) == 2) return(interval(decision[1], decision[2]))
  if (length(decision) == 1 && (is.character(decision) || is.factor(decision) || is.logical(decision) || is.numeric(decision))) {
    return(one_of(if (is.factor(decision)) as.character(decision) else decision))
  }
  refuse("decision is a ", class(decision)[1], " of length ", length(decision), "; give two numbers, a class label, interval() or one_of().")
}
