#' Fit an explainer
#'
#' Fits p(mutable features | fixed features, wanted decision) to `data` as a chain of conditional models, step 1 of the
#' method. [explain()] draws from it.
#'
#' The model stays in R, and is queried in large blocks, a few times per call. The object lives for one session.
#'
#' @param model A fitted model supported by [predict_score()], a function of a data frame that returns one number (or
#'   label) for each row, or a Python model held by reticulate.
#' @param data Training rows: a data frame with the features of the model, without the response.
#' @param fixed Names of features that must not change.
#' @param decision The wanted decision: two numbers, the ends of an interval for the score; a class label; or
#'   [interval()], [one_of()].
#' @param sampler The conditional models: "cart", or see [sampler()] and [r_sampler()].
#' @param constraints Constraints for every call of [explain()]; see [allow()].
#' @param derived A named list of formulas of columns that are computed from others, in the language of rules:
#'   `list(dti = "(rent + instalment) / income")`. They are recomputed for every candidate and do not count as changes.
#' @param relations Relations that sparse counterfactuals keep, such as `"total == a + b"`; `NULL` finds them, `list()`
#'   is none.
#' @param visit_sequence "data", "correlation", or the names of all mutable features in order.
#' @param predictors A named list: for a feature, the names of the features that its conditional depends on.
#' @param condition_on_decision Whether the chain conditions on the wanted decision, which makes most draws valid.
#' @param kinds A named list with the kind of some columns, "numeric", "categorical" or "ordered", if it does not follow
#'   from their class: `list(zip = "categorical")`.
#' @param sample_weight One weight for each row of `data`, or `NULL`.
#' @param random_state The seed, a whole number; `NULL` draws a new one, which the printed explainer shows. R's random
#'   number stream is neither read nor changed.
#' @param ... Not used: an unknown argument is an error that suggests the nearest name.
#' @return An object of class `mcce_explainer`.
#' @examplesIf has_mcce()
#' air <- na.omit(airquality)
#' model <- lm(Ozone ~ ., air)
#' explainer <- mcce(
#'   model, air[-1],
#'   fixed = c("Month", "Day"), decision = c(-Inf, 15), random_state = 1
#' )
#' explainer
#' explain(explainer, tail(air[-1], 3), sparse = TRUE)
#' @export
mcce <- function(model, data, fixed = character(), decision = c(0.5, 1), sampler = "cart", constraints = NULL,
                 derived = NULL, relations = NULL, visit_sequence = "data", predictors = NULL,
                 condition_on_decision = TRUE, kinds = NULL, sample_weight = NULL, random_state = NULL, ...) {
  refuse_unknown(..., known = names(formals(mcce)), of = "mcce()")
  data <- as_plain_frame(data, "data")
  check_response(model, names(data))
  decision <- read_decision(decision)
  template <- template_of(data)
  options <- list(
    decision = sent_decision(decision, model), fixed = as.list(as.character(fixed)), sampler = read_sampler(sampler),
    constraints = read_constraints(constraints), derived = if (!is.null(derived)) as.list(derived),
    relations = if (!is.null(relations)) as.list(relations),
    visit_sequence = if (length(visit_sequence) == 1) visit_sequence else as.list(visit_sequence),
    predictors = if (!is.null(predictors)) lapply(predictors, as.list), condition_on_decision = condition_on_decision,
    kinds = if (!is.null(kinds)) as.list(kinds),
    sample_weight = if (!is.null(sample_weight)) as.list(as.double(sample_weight)), random_state = random_state
  )
  sent <- send_table(data)
  reply <- call_python("fit", queried_model(model, decision, template), sent, without_null(options))
  structure(
    list(
      model = model, decision = decision, fixed = as.character(fixed), template = template, n_rows = nrow(data),
      seed = reply$seed, seconds = reply$seconds, python = reply$explainer
    ),
    class = "mcce_explainer"
  )
}

is_python <- function(model) inherits(model, "python.builtin.object")

# Raise if the response of a model's formula is among the columns; a name on both sides, as in log(y / x) ~ x, is not.
check_response <- function(model, columns) {
  if (is.function(model) || is_python(model) || isS4(model)) return(invisible())
  terms <- tryCatch(stats::terms(model), error = function(e) NULL)
  if (!inherits(terms, "terms") || attr(terms, "response") == 0) return(invisible())
  response <- all.vars(attr(terms, "variables")[[1 + attr(terms, "response")]])
  response <- intersect(columns, setdiff(response, all.vars(stats::delete.response(terms))))
  if (length(response)) {
    refuse(
      "column '", response[1], "' of data is the response of the ", class(model)[1], ", not a feature; leave it out: ",
      "data[names(data) != ", shown(response[1]), "]."
    )
  }
}

# the decision as Python reads it: models of R predict labels as text, and `predict_score` chooses the class
sent_decision <- function(decision, model) {
  if (length(decision$labels)) {
    return(list(labels = as.list(if (is_python(model)) decision$labels else label_text(decision$labels))))
  }
  without_null(unclass(if (is_python(model)) decision else replace(decision, "of", list(NULL))))
}

queried_model <- function(model, decision, template) {
  if (is_python(model)) return(model)
  if (!length(decision$labels)) {
    scores <- function(rows) send_answer(predict_score(model, rows, of = decision$of))
    return(list(ask = asked_model(scores, template), name = "score"))
  }
  labels <- function(rows) send_answer(label_text(predict_label(model, rows)))
  list(ask = asked_model(labels, template), name = "label")
}

# the function that Python calls with a table
asked_model <- function(answers, template) {
  without_raising(function(sent) answers(receive_table(sent, template)))
}

send_answer <- function(answer) {
  if (is.data.frame(answer) && ncol(answer) == 1) answer <- answer[[1]]
  if (length(dim(answer)) <= 2 && NCOL(answer) == 1) answer <- as.vector(answer)
  c(send_column(answer, "answer", kind_of(answer, "answer", "the model")), n_rows = length(answer))
}

#' @export
print.mcce_explainer <- function(x, ...) {
  kinds <- table(vapply(x$template, `[[`, "", "kind"))
  cat(
    "mcce explainer of a model of class ", class(x$model)[1], "\n",
    "wanted:  ", decision_text(x$decision), "\n",
    "fitted:  ", x$n_rows, " rows, ", length(x$template), " columns (", paste(kinds, names(kinds), collapse = ", "),
    ")\n",
    "fixed:   ", if (length(x$fixed)) paste(x$fixed, collapse = ", ") else "nothing", "\n",
    "seed:    ", x$seed, "\n",
    sep = ""
  )
  invisible(x)
}

#' @export
summary.mcce_explainer <- function(object, ...) {
  data.frame(
    column = names(object$template), kind = vapply(object$template, `[[`, "", "kind"),
    may_change = !names(object$template) %in% object$fixed, row.names = NULL
  )
}
