#' The call of mcceR
#'
#' `explain_mcce()` of the R package mcceR with the same arguments and defaults and, for the same seeds, the same numbers
#' to the bit, but many times as fast. [mcce()] and [explain()] have more options.
#'
#' Unexpected behaviour of mcceR is reproduced if it affects the numbers; the Python documentation lists every
#' case (`mcce.rcompat`). If mcceR continues the session's random number stream (`fit.seed = NULL`), so does this
#' function. If seeds are given, the stream is not changed.
#'
#' @param model The model whose predictions are explained.
#' @param x_explain,x_train Matrix, data frame or data.table: rows to explain, and training rows.
#' @param predict_model A function of the model and a data frame that returns one number for each row. `NULL` supports
#'   the models of mcceR, with its scales (the link of a `glm` that is not binomial), and uses [predict_score()] for others.
#' @param fixed_features Names of features that must not change.
#' @param c_int Two numbers: the wanted predictions, both ends included.
#' @param featuremodel_object From an earlier call in this session, with `return_featuremodel_object = TRUE`.
#' @param fit.autoregressive_model "ctree" or "rpart".
#' @param fit.decision Whether the trees condition on the decision.
#' @param fit.seed,generate.seed Seeds, or `NULL` to continue the stream.
#' @param generate.K Number of rows generated for each row to explain.
#' @param process.measures Any of "validation", "L0", "L1", "L2" and "gower", in the order of sorting.
#' @param process.return_best_k Largest number of counterfactuals for each row.
#' @param process.remove_invalid Whether rows without the wanted prediction are dropped.
#' @param process.sort_by_measures_order Without effect, as in mcceR.
#' @param return_featuremodel_object,return_sim_data,timing Whether the result has these parts.
#' @param ... Arguments of the trees: those of `rpart.control()` (or `control`), or `controls`, from
#'   `party::ctree_control()`.
#' @return A list of class `mcce_explained` with `cf`, `cf_measures`, `fixed_features`, `mutable_features`, `time`, and
#'   the requested parts; tables are data frames.
#' @examplesIf has_mcce()
#' air <- na.omit(airquality)
#' explain_mcce(
#'   lm(Ozone ~ ., air), tail(air[-1], 3), head(air[-1], -3),
#'   fixed_features = "Wind", c_int = c(-Inf, 15), fit.seed = 1, generate.seed = 2
#' )
#' @export
explain_mcce <- function(model, x_explain, x_train, predict_model = NULL,
                         fixed_features = NULL, c_int = c(0.5, 1),
                         featuremodel_object = NULL,
                         fit.autoregressive_model = "ctree", fit.decision = TRUE, fit.seed = NULL,
                         generate.K = 1000, generate.seed = NULL,
                         process.measures = c("validation", "L0", "L1"),
                         process.return_best_k = 1,
                         process.remove_invalid = TRUE,
                         process.sort_by_measures_order = TRUE,
                         return_featuremodel_object = FALSE,
                         return_sim_data = FALSE,
                         timing = TRUE,
                         ...) {
  engine()
  if (!is.null(predict_model) && !is.function(predict_model)) refuse("predict_model is a ", class(predict_model)[1], "; give a function, or NULL.")
  x_explain <- as_plain_frame(x_explain, "x_explain")
  explained <- template_of(x_explain, "x_explain")
  if (is.null(featuremodel_object)) {
    x_train <- as_plain_frame(x_train, "x_train")
    trained <- template_of(x_train, "x_train")
    fitted <- NULL
    fixed <- fixed_features
  } else {
    if (is_dead(featuremodel_object$python)) refuse("featuremodel_object belongs to an R session that has ended; fit again.")
    x_train <- NULL
    trained <- featuremodel_object$template
    fitted <- featuremodel_object$python
    fixed <- featuremodel_object$fixed
  }
  generated <- trained
  for (name in intersect(fixed, names(explained))) generated[[name]] <- explained[[name]]
  scores <- if (is.null(predict_model)) mccer_scores else predict_model
  query <- encoded_model(function(rows) as.vector(scores(model, rows)), list(train = trained, sim = generated))
  options <- list(
    fixed_features = if (!is.null(fixed_features)) as.list(as.character(fixed_features)), c_int = as.list(as.double(c_int)),
    featuremodel_object = fitted, fit_autoregressive_model = fit.autoregressive_model, fit_decision = fit.decision,
    fit_seed = fit.seed, generate_K = generate.K, generate_seed = generate.seed,
    process_measures = as.list(process.measures), process_return_best_k = process.return_best_k,
    process_remove_invalid = process.remove_invalid, process_sort_by_measures_order = process.sort_by_measures_order,
    return_featuremodel_object = return_featuremodel_object, return_sim_data = return_sim_data, timing = timing
  )
  sent_train <- if (!is.null(x_train)) send_table(x_train, "x_train") else without_rows(trained)
  reply <- call_python(
    "explain_mcce", query, send_table(x_explain, "x_explain"), sent_train,
    c(Filter(Negate(is.null), options), tree_arguments(...)), random_seed()
  )
  if (is.null(if (is.null(fitted)) fit.seed else generate.seed)) go_on_with(reply$random_seed)
  integers <- lapply(c(id_explain = "id_explain", counterfactual_rank = "counterfactual_rank"), function(name) {
    list(name = name, kind = "integer", type = "integer")
  })
  generated <- c(generated, integers)
  found <- list(
    cf = receive_table(reply$cf, generated), cf_measures = receive_table(reply$cf_measures, integers),
    fixed_features = as.character(unlist(reply$fixed_features)), mutable_features = as.character(unlist(reply$mutable_features))
  )
  if (timing) found$time <- stats::setNames(as.double(unlist(reply$time)), c("fit.time", "generate.time", "process.time"))
  if (return_featuremodel_object) {
    found$featuremodel_object <- structure(
      list(python = reply$featuremodel_object, template = trained, fixed = fixed), class = "mcce_featuremodel"
    )
  }
  if (return_sim_data) found$sim_data <- receive_table(reply$sim_data, generated)
  structure(found, class = c("mcce_explained", "list"))
}

#' @export
print.mcce_explained <- function(x, digits = 4, ...) {
  print(x$cf, digits = digits, row.names = FALSE)
  invisible(x)
}

#' @export
print.mcce_featuremodel <- function(x, ...) {
  cat("trees of explain_mcce() for", length(x$template), "features\n")
  if (is_dead(x$python)) cat("They are not available after the R session in which they were fitted: fit again.\n")
  invisible(x)
}

without_rows <- function(template) {
  send_table(as_frame(lapply(template, empty_column), names(template), 0L), template = template)
}

# mcceR's predict_model(): the link for a gam, and for a glm that is not binomial
mccer_scores <- function(model, rows) {
  if (inherits(model, c("gam", "glm")) && model$family[[1]] != "binomial") return(as.vector(stats::predict(model, rows)))
  if (inherits(model, "xgb.Booster")) return(stats::predict(model, as.matrix(rows)))
  predict_score(model, rows)
}

# return R's stream, initialised if the session has not used it yet
random_seed <- function() {
  if (!exists(".Random.seed", globalenv(), inherits = FALSE)) stats::runif(1)
  writeBin(get(".Random.seed", globalenv(), inherits = FALSE), raw(), endian = "little")
}

go_on_with <- function(bytes) put_stream(readBin(bytes, "integer", length(bytes) / 4, endian = "little"))

# only the seed is written into the user's environment: mcceR changes the session's stream too
put_stream <- function(seed) assign(".Random.seed", seed, envir = globalenv())

# return the arguments of the trees as names and values; `control` also lists arguments that cannot be set here
tree_arguments <- function(...) {
  given <- list(...)
  if (is.list(given$control)) {
    fixed <- list(usesurrogate = 2, surrogatestyle = 0)
    for (name in names(fixed)) {
      if (!is.null(given$control[[name]]) && given$control[[name]] == fixed[[name]]) given$control[[name]] <- NULL
    }
  }
  if (isS4(given$controls)) {
    part <- function(...) Reduce(methods::slot, c(...), given$controls)
    given$controls <- list(
      teststat = as.character(part("varctrl", "teststat")), testtype = as.character(part("gtctrl", "testtype")),
      mincriterion = part("gtctrl", "mincriterion"), minsplit = part("splitctrl", "minsplit"),
      minbucket = part("splitctrl", "minbucket"), maxdepth = part("tgctrl", "maxdepth")
    )
  }
  given
}
