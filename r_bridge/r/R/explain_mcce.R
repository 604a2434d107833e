#' The call of mcceR
#'
#' `explain_mcce()` of the R package mcceR with the same arguments and defaults and, for the same seeds, the same numbers
#' to the bit, but many times as fast. [mcce()] and [explain()] have more options.
#'
#' Unexpected behaviour of mcceR is reproduced if it affects the numbers; the Python documentation lists every case
#' (`mcce.rcompat`). Without seeds the session's random number stream is continued, as by mcceR. With seeds it is not
#' changed.
#'
#' @param model The model whose predictions are explained.
#' @param x_explain,x_train Matrix, data frame or data.table: rows to explain, and training rows.
#' @param predict_model A function of the model and a data frame that returns one number for each row. `NULL` supports
#'   the models of mcceR, with its scales (the link of a `glm` that is not binomial), and uses [predict_score()] for
#'   others.
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
  if (!is.null(predict_model) && !is.function(predict_model)) {
    refuse("predict_model is a ", class(predict_model)[1], "; give a function, or NULL.")
  }
  x_explain <- as_plain_frame(x_explain, "x_explain")
  fitted <- featuremodel_object
  if (is.null(fitted)) {
    x_train <- as_plain_frame(x_train, "x_train")
    fitted <- list(template = template_of(x_train, "x_train"), fixed = as.character(fixed_features))
  } else {
    fitted$python <- python_of(fitted, "fit again.")
  }
  if (is.null(predict_model)) predict_model <- mccer_scores
  scores <- function(rows) as.vector(predict_model(model, rows))
  before <- random_seed()
  uses_session <- is.null(if (is.null(fitted$python)) fit.seed else generate.seed)
  if (!uses_session) on.exit(put_stream(before))
  # mcceR predicts x_train before it takes the stream: a model may use random numbers too
  of_training <- if (is.null(fitted$python)) as.double(scores(x_train)) else double()
  explained <- template_of(x_explain, "x_explain")
  shared <- intersect(fitted$fixed, names(explained))
  rows_template <- replace(fitted$template, shared, explained[shared])
  ask <- without_raising(function(sent, stream) {
    put_stream(stream)
    send_answer(scores(receive_table(sent, rows_template)))
  })
  options <- list(
    fixed_features = if (!is.null(fixed_features)) as.list(as.character(fixed_features)),
    c_int = as.list(as.double(c_int)), featuremodel_object = fitted$python,
    fit_autoregressive_model = fit.autoregressive_model, fit_decision = fit.decision, fit_seed = fit.seed,
    generate_K = generate.K, generate_seed = generate.seed, process_measures = as.list(process.measures),
    process_return_best_k = process.return_best_k, process_remove_invalid = process.remove_invalid,
    process_sort_by_measures_order = process.sort_by_measures_order,
    return_featuremodel_object = return_featuremodel_object, return_sim_data = return_sim_data, timing = timing
  )
  reply <- call_python(
    "explain_mcce", ask, send_table(x_explain, "x_explain"),
    if (is.null(fitted$python)) send_table(x_train, "x_train"), write_bytes(of_training),
    c(without_null(options), tree_arguments(...)), random_seed()
  )
  result <- list(
    cf = receive_table(reply$cf, rows_template), cf_measures = receive_table(reply$cf_measures),
    fixed_features = as.character(unlist(reply$fixed_features)),
    mutable_features = as.character(unlist(reply$mutable_features))
  )
  if (timing) result$time <- stats::setNames(unlist(reply$time), c("fit.time", "generate.time", "process.time"))
  if (return_featuremodel_object) {
    fitted$python <- reply$featuremodel_object
    result$featuremodel_object <- structure(fitted, class = "mcce_featuremodel")
  }
  if (return_sim_data) result$sim_data <- receive_table(reply$sim_data, rows_template)
  structure(result, class = c("mcce_explained", "list"))
}

#' @export
print.mcce_explained <- function(x, digits = 4, ...) {
  print(x$cf, digits = digits, row.names = FALSE)
  invisible(x)
}

# mcceR's predict_model(): the link for a gam, and for a glm that is not binomial
mccer_scores <- function(model, rows) {
  if (inherits(model, c("gam", "glm")) && model$family[[1]] != "binomial") return(stats::predict(model, rows))
  if (inherits(model, "xgb.Booster")) return(stats::predict(model, as.matrix(rows)))
  predict_score(model, rows)
}

# R's stream, begun if the session has not used it yet
random_seed <- function() {
  if (!exists(".Random.seed", globalenv(), inherits = FALSE)) stats::runif(1)
  write_bytes(get(".Random.seed", globalenv(), inherits = FALSE))
}

put_stream <- function(bytes) {
  assign(".Random.seed", readBin(bytes, "integer", length(bytes) / 4, endian = "little"), envir = globalenv())
  RNGkind() # makes R read it now
}

# the arguments of the trees as names and values; `control` also lists what cannot be set here
tree_arguments <- function(...) {
  arguments <- list(...)
  if (is.list(arguments$control)) {
    for (default in list(list(usesurrogate = 2), list(surrogatestyle = 0))) {
      if (isTRUE(all.equal(arguments$control[names(default)], default))) arguments$control[names(default)] <- NULL
    }
  }
  if (isS4(arguments$controls)) {
    part <- function(...) Reduce(methods::slot, c(...), arguments$controls)
    arguments$controls <- list(
      teststat = as.character(part("varctrl", "teststat")), testtype = as.character(part("gtctrl", "testtype")),
      mincriterion = part("gtctrl", "mincriterion"), minsplit = part("splitctrl", "minsplit"),
      minbucket = part("splitctrl", "minbucket"), maxdepth = part("tgctrl", "maxdepth")
    )
  }
  arguments
}
