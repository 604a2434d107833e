#' Find actions whose consequences reach the wanted decision
#'
#' A counterfactual of [explain()] is a row that would be accepted. Here a person acts on a few features, and features
#' that these cause follow, by the causal graph of the explainer: `mcce(..., graph = "education -> salary")`. **The graph
#' is an assumption of yours**, and so are the conditionals that consequences are drawn from.
#'
#' The search needs the training rows: it works in the session in which [mcce()] was called, and with files that
#' `mcce fit --graph` wrote ([load_mcce()]).
#'
#' @inheritParams explain
#' @param actions Names of the features that a person can act on; `NULL` for all features of the graph that may change.
#' @param assurance The least probability with which the decision is reached, over the consequences of the actions. A
#'   lower confidence bound decides.
#' @param keep How much of what is special about a person stays: 1 keeps the own ranks in the conditional distributions,
#'   0 draws consequences as for others like this one.
#' @param takes The time that actions take: `c(education = "2 years")` moves ages and durations that may change, as far as
#'   their names tell; `list(education = list(age = 2))` names the columns.
#' @param n_samples Rows drawn for each row of `newdata`, whose values are candidates for actions.
#' @param n_counterfactuals How many recommendations to return for each.
#' @param floor The least plausibility: the share of real rows that look as unusual or more so; `NULL` is 0.05.
#' @param max_actions The largest number of actions, 3 at most.
#' @param ... Not used: a misspelt argument is an error that names the nearest one.
#' @return An object of class `mcce_counterfactuals`, as [explain()] returns it, which can be saved by [saveRDS()]. `rows`
#'   has one of the rows that may follow, `changes` says in `role` which changes are an action and which a consequence,
#'   `consequences` has what usually follows, and `measures` the probability of the decision, `p_valid`.
#' @examplesIf has_mcce()
#' loans <- load_loans(400)[c("age", "education", "salary")]
#' explainer <- mcce(
#'   function(rows) rows$salary / 100000, loans,
#'   fixed = "age", graph = "age -> education -> salary; age -> salary",
#'   sampler = "parametric", random_state = 1
#' )
#' found <- recourse(explainer, loans[27, ], "education")
#' found$changes
#' found$consequences
#' @export
recourse <- function(x, newdata, actions = NULL, assurance = 0.9, keep = 1, takes = NULL, n_samples = 1000,
                     n_counterfactuals = 1, constraints = NULL, floor = NULL, max_actions = NULL, ...,
                     progress = interactive()) {
  refuse_unknown(list(...), names(formals(recourse)), "recourse()")
  if (!inherits(x, "mcce_explainer")) refuse("recourse() is of what mcce() returned, not of a ", class(x)[1], ".")
  if (missing(newdata)) refuse("recourse() needs the rows to explain: recourse(explainer, newdata).")
  engine()
  options <- list(
    actions = if (!is.null(actions)) as.list(as.character(actions)), assurance = assurance, keep = keep,
    takes = if (!is.null(takes)) as.list(takes), n_samples = n_samples, n_counterfactuals = n_counterfactuals,
    constraints = read_constraints(constraints), floor = floor, max_actions = max_actions
  )
  ask_for_rows("recourse", x, newdata, options, TRUE, progress)
}
