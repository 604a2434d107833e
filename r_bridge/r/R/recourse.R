#' Find actions whose consequences reach the wanted decision
#'
#' A counterfactual of [explain()] is a row that would be accepted. Here a person acts on a few features, and other
#' features change as a consequence, by the causal graph of the explainer: `mcce(..., graph = "education -> salary")`.
#' **The graph is an assumption of the user**, and so are the conditionals from which consequences are drawn.
#'
#' The search needs the training rows. It works in the session in which [mcce()] was called, and with files written by
#' `mcce fit --graph` ([load_mcce()]).
#'
#' @inheritParams explain
#' @param actions Names of the features that a person can act on; `NULL` for all mutable features of the graph.
#' @param assurance The minimum probability that the decision is reached, over the consequences of the actions. It
#'   applies to a lower confidence bound.
#' @param keep How much of a person's deviation from similar people remains: 1 keeps the ranks in the conditional
#'   distributions, 0 draws consequences as for other people.
#' @param takes The duration of actions: `c(education = "2 years")` increases mutable ages and durations, recognised by
#'   their names; `list(education = list(age = 2))` names the columns.
#' @param n_samples Number of rows drawn for each row of `newdata`; their values are candidates for actions.
#' @param n_counterfactuals Number of recommendations for each row.
#' @param floor The plausibility threshold: the share of real rows that are at least as unusual; `NULL` is 0.05.
#' @param max_actions The largest number of actions, at most 3.
#' @param ... Not used: an unknown argument is an error that suggests the nearest name.
#' @return An object of class `mcce_counterfactuals`, as returned by [explain()], which can be saved by [saveRDS()].
#'   `rows` has one possible outcome, `role` in `changes` distinguishes actions from consequences, `consequences`
#'   describes the usual consequences, and `p_valid` in `measures` is the probability of the decision.
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
  if (!inherits(x, "mcce_explainer")) refuse("recourse() needs the result of mcce(), not a ", class(x)[1], ".")
  if (missing(newdata)) refuse("recourse() needs the rows to explain: recourse(explainer, newdata).")
  engine()
  options <- list(
    actions = if (!is.null(actions)) as.list(as.character(actions)), assurance = assurance, keep = keep,
    takes = if (!is.null(takes)) as.list(takes), n_samples = n_samples, n_counterfactuals = n_counterfactuals,
    constraints = read_constraints(constraints), floor = floor, max_actions = max_actions
  )
  ask_for_rows("recourse", x, newdata, options, TRUE, progress)
}
