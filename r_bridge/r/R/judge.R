#' Counterfactuals that need a review
#'
#' Lists the counterfactuals that must be reviewed before they are sent, with the reasons: below the plausibility
#' threshold, a changed past event, a change opposite to the direction that helps, a shorter duration, and others.
#' A counterfactual that is not listed is not necessarily good advice.
#'
#' @param x The result of [explain()].
#' @param level `"stop"` for the counterfactuals of that severity, with one line for each unchangeable feature that
#'   changes; `"all"` for every counterfactual with any finding, including those of severity `"note"`: a large step, the
#'   edge of the training values.
#' @return A data frame with `id`, `rank`, `severity`, `reasons` and `words`.
#' @examplesIf mcce::has_mcce()
#' customers <- load_loans(500)[c("age", "salary", "savings")]
#' granted <- function(rows) rows$savings + rows$salary > 90000
#' explainer <- mcce(granted, customers, fixed = "age", decision = TRUE, random_state = 1)
#' found <- explain(explainer, customers[1:50, ], sparse = TRUE)
#' suspicious(found)
#' @export
suspicious <- function(x, level = c("stop", "all")) {
  if (!inherits(x, "mcce_counterfactuals")) refuse("suspicious() needs the result of explain(), not a ", class(x)[1], ".")
  receive_table(call_python("suspicious", revive(x), match.arg(level)))
}

#' Criticise the conditionals with new rows
#'
#' Compares the predictions of each conditional of the chain with rows that it was not fitted to: which conditionals are
#' wrong, how, and where.
#'
#' @param x The result of [mcce()], without a `generator`.
#' @param newdata Some hundreds of rows that the explainer was not fitted to.
#' @param ... Further arguments of the engine: `n_draws`, `level` (of the tests, for all features together) and
#'   `random_state`.
#' @return An object of class `mcce_criticism`: a list of `table`, a data frame with a row for each feature, and
#'   `rejected`, the features whose conditional is rejected, the worst first.
#' @examplesIf mcce::has_mcce()
#' loans <- load_loans(600)[c("age", "salary")]
#' rich <- function(rows) rows$salary > 50000
#' explainer <- mcce(rich, loans[1:400, ], fixed = "age", decision = TRUE, random_state = 1)
#' criticise(explainer, loans[401:600, ], n_draws = 50)
#' @export
criticise <- function(x, newdata, ...) {
  if (!inherits(x, "mcce_explainer")) refuse("criticise() needs the result of mcce(), not a ", class(x)[1], ".")
  engine()
  reply <- call_python("criticise", revive(x), send_table(newdata, "newdata", x$template), as_dict(list(...)))
  structure(
    list(table = receive_table(reply$table), rejected = as.character(unlist(reply$rejected)), words = reply$words),
    class = "mcce_criticism"
  )
}

#' @export
print.mcce_criticism <- function(x, ...) {
  cat(x$words, "\n", sep = "")
  invisible(x)
}

#' Features that look unchangeable
#'
#' Lists the columns that look like unchangeable facts or are unsuitable as advice: past dates, identifiers, personal
#' characteristics, past events, durations. It uses values and names in several languages and can miss columns.
#'
#' @param data Training rows.
#' @param fixed Names of features that are fixed already.
#' @param kinds As in [mcce()].
#' @return A data frame with `feature`, `reason` and `evidence`.
#' @examplesIf mcce::has_mcce()
#' suggest_fixed(load_loans(500), fixed = "age")
#' @export
suggest_fixed <- function(data, fixed = character(), kinds = NULL) {
  engine()
  reply <- call_python("suggest_fixed", send_table(data), as.list(as.character(fixed)), if (!is.null(kinds)) as.list(kinds))
  receive_table(reply)
}
