#' Fit an explainer
#'
#' Fits p(mutable features | fixed features, wanted decision) to `data` as a chain of conditional models, step 1 of the
#' method. [explain()] draws from it.
#'
#' R has one thread, and a model in R must be queried from it. Therefore `n_jobs` must be 1 for a model in R. The model is
#' queried in large blocks, a few times per call.
#'
#' The object can be saved by [saveRDS()] and used in another session. It contains the bytes of the engine's file,
#' **including values of the training data**. With `keep = FALSE` it is created faster but cannot be used after the session.
#'
#' @param model A fitted model supported by [predict_score()], a function of a data frame that returns one number (or
#'   label) for each row, or a Python model held by reticulate.
#' @param data Training rows: a data frame with the features of the model, without the response. If the model has a
#'   formula, including the response is an error, and columns that the model does not use cause a warning.
#' @param fixed Names of features that must not change.
#' @param decision The wanted decision: two numbers, the ends of an interval for the score; a class label; or
#'   [interval()], [one_of()], [none_of()].
#' @param sampler The conditional models: "cart", or see [sampler()] and [r_sampler()].
#' @param constraints Constraints for every call of [explain()]; see [allow()].
#' @param visit_sequence "data", "correlation", or the names of all mutable features in order.
#' @param graph An assumed causal graph of features: texts such as "age, sex -> education -> salary", the name of a
#'   .dot or .json file, or shapr's `list(causal_ordering = list(c("age", "sex"), "education"), confounding = FALSE)`.
#'   Features of the graph are drawn causes before effects, each given its parents; all other features follow. The
#'   features of a confounded group are drawn jointly, those of another group independently given earlier groups.
#' @param condition_on_decision Whether the chain conditions on the wanted decision, which makes most draws valid.
#' @param random_state The seed; `NULL` draws a new one, which the printed explainer shows. An integer; beyond 2^53
#'   as text. R's random number stream is neither read nor changed.
#' @param n_jobs Number of threads; 1 for a model in R.
#' @param generator A generator used instead of a chain of conditionals: the name of one of the engine's generators, such
#'   as "forest", "mixture" or "vine", or an unfitted one held by reticulate.
#' @param kinds A named list or vector with the kind of some columns, "numeric", "categorical" or "ordered", if it does
#'   not follow from their class: `c(zip = "categorical")`.
#' @param derived A named list or vector of formulas of columns that are computed from others, in the language of rules:
#'   `list(dti = "(rent + instalment) / income")`. Such a column is computed for every candidate and rounded as in
#'   `data`. It does not count as a change, and rules can use it.
#' @param names A list of `labels`, `units`, `formats` and `reasons`, each a named list by feature, for sentences and
#'   letters. An entry of `reasons` states the feature as a reason for a refusal (see [letter()]): a text, or
#'   `list(code = "12", text = "Income is too low")`.
#' @param keep Whether the object can be saved.
#' @param ... Not used: an unknown argument is an error that suggests the nearest name.
#' @param progress Whether to show the progress of a slow model, after a second (or `getOption("mcce.seconds")`).
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
                 visit_sequence = "data", condition_on_decision = TRUE, random_state = NULL, n_jobs = 1, names = NULL,
                 generator = NULL, kinds = NULL, derived = NULL, graph = NULL, keep = TRUE, ...,
                 progress = interactive()) {
  refuse_unknown(list(...), base::names(formals(mcce)), "mcce()")
  engine()
  data <- as_plain_frame(data, "data")
  check_columns(model, base::names(data), as.character(fixed))
  decision <- read_decision(own_interval(decision, parent.frame()))
  template <- template_of(data)
  of_python <- inherits(model, "python.builtin.object")
  held <- new.env(parent = emptyenv())
  sampler <- read_sampler(sampler, held)
  if (!(of_python && length(held) == 0) && !identical(as.double(n_jobs), 1)) {
    refuse("n_jobs is ", deparse(n_jobs), ", but a model or conditional in R is called from one thread; use n_jobs = 1.")
  }
  for_python <- model_for_python(model, decision, template)
  if (!of_python) decision["of"] <- list(NULL) # `predict_score` has chosen the class
  options <- list(
    decision = unclass(if (of_python) decision else with_text_labels(decision)), fixed = as.list(as.character(fixed)), sampler = sampler,
    constraints = read_constraints(constraints),
    visit_sequence = if (length(visit_sequence) == 1) visit_sequence else as.list(visit_sequence),
    condition_on_decision = condition_on_decision, random_state = random_state, n_jobs = n_jobs,
    names = if (!is.null(names)) lapply(names, as.list), generator = generator,
    kinds = if (!is.null(kinds)) as.list(kinds),
    derived = if (!is.null(derived)) as.list(derived), graph = read_graph(graph)
  )
  options <- Filter(Negate(is.null), options)
  reply <- with_progress(progress, call_python("fit", for_python, send_table(data), options))
  for (j in seq_along(template)) template[[j]]$unit <- reply$units[[j]]
  state <- new.env(parent = emptyenv())
  state$python <- reply$fitted
  structure(
    list(
      model = model, decision = decision, fixed = as.character(fixed), template = template, n_rows = nrow(data),
      seed = seed_of(reply), wanted = reply$decision, generator = reply$generator, seconds = reply$seconds, n_jobs = n_jobs,
      file = if (keep) with_progress(progress, bytes_of(reply$fitted)), samplers = as.list(held), state = state
    ),
    class = "mcce_explainer"
  )
}

# Return a graph in the form that the engine reads: texts and groups as lists.
read_graph <- function(graph) {
  if (!is.list(graph)) {
    return(if (length(graph) > 1) as.list(graph) else graph)
  }
  split <- function(part) if (length(part) > 1) as.list(part) else part
  lapply(graph, function(part) if (is.list(part)) lapply(part, split) else split(part))
}

#' Load an explainer fitted in Python
#'
#' Reads a file written by `MCCE.save()` of the Python package or by `mcce fit` on the command line. With the same model
#' [explain()] returns the same rows as in Python, including those of the R call exported by the explorer.
#'
#' @param file The file, for example "bank.mcce".
#' @param model The model: a function of a data frame that returns the numbers (or labels) to which the decision in the
#'   file refers, an R model supported by [predict_score()], or a Python model held by reticulate.
#' @param data Rows with the columns as they are in R, for example those to be explained. Counterfactuals have the same
#'   columns and classes; factors also get levels that occur in the file but not in these rows.
#' @param of The class whose probability is the score, for a classifier in R.
#' @param n_jobs Number of threads; 1 for a model in R.
#' @return An object of class `mcce_explainer`.
#' @examplesIf has_mcce()
#' # in Python: fit and save an explainer of a model that both languages can compute
#' code <- c(
#'   "import mcce",
#'   "loans = mcce.datasets.load_loans(500).X",
#'   "fixed = ['age', 'sex', 'defaulted_last_year']",
#'   "score = lambda X: X['salary'] / 1000",
#'   "explainer = mcce.MCCE(score, decision=(80, 1e6), fixed=fixed, random_state=1)"
#' )
#' python <- reticulate::py_run_string(paste(code, collapse = "\n"), convert = FALSE)
#' file <- tempfile(fileext = ".mcce")
#' invisible(python$explainer$fit(python$loans)$save(file))
#'
#' # in R: load it with the same model and rows
#' people <- load_loans(500)
#' people$default <- NULL
#' explainer <- load_mcce(file, function(rows) rows$salary / 1000, people)
#' explain(explainer, people[1:3, ], sparse = TRUE)
#' @export
load_mcce <- function(file, model, data, of = NULL, n_jobs = 1) {
  if (!is.character(file) || length(file) != 1 || !file.exists(file)) {
    refuse("file not found: ", if (is.character(file)) paste0("'", file[1], "'") else deparse(file)[1], "; give the path of a file written by MCCE.save().")
  }
  engine()
  data <- as_plain_frame(data, "data")
  of_python <- inherits(model, "python.builtin.object")
  if (!of_python && !identical(as.double(n_jobs), 1)) {
    refuse("n_jobs is ", deparse(n_jobs), ", but a model in R is called from one thread; use n_jobs = 1.")
  }
  bytes <- readBin(file, "raw", file.size(file))
  template <- template_of(data)
  reply <- call_python("columns_of_file", send_table(data[0, , drop = FALSE]), bytes)
  template <- template[unlist(reply$names)]
  check_columns(model, names(template), as.character(unlist(reply$fixed)))
  for (j in seq_along(template)) {
    if (template[[j]]$kind %in% c("factor", "ordered")) template[[j]]$attributes$levels <- split_texts(reply$levels[[j]])
    template[[j]]$unit <- reply$units[[j]]
  }
  made <- structure(
    list(
      model = model, decision = if (reply$by_label) one_of(NULL) else interval(-Inf, Inf, of = of),
      fixed = as.character(unlist(reply$fixed)), template = template, n_rows = NA, n_jobs = n_jobs, file = bytes,
      samplers = list(), state = new.env(parent = emptyenv())
    ),
    class = "mcce_explainer"
  )
  about <- call_python("describe", revive(made))
  made[c("wanted", "generator", "seconds")] <- about[c("decision", "generator", "seconds")]
  made$seed <- seed_of(about)
  made
}

# a seed as a number, or as text where a double cannot hold it
seed_of <- function(reply) {
  number <- as.double(reply$seed)
  if (abs(number) <= 2^53) number else reply$seed
}

# the file of an object; if it cannot be written, warn: the object is valid in this session only
bytes_of <- function(python) {
  tryCatch(call_python("dump", python), mcce_error = function(e) {
    warning(mcce_condition(paste("the object cannot be used after this session:", conditionMessage(e)), c("mcce_warning", "warning")))
    NULL
  })
}

model_for_python <- function(model, decision, template) {
  if (inherits(model, "python.builtin.object")) return(model)
  by_label <- decision$kind != "interval" && !is.function(model)
  scores <- if (by_label) {
    function(rows) predict_label(model, rows)
  } else {
    function(rows) predict_score(model, rows, of = decision$of)
  }
  list(ask = encoded_model(scores, list(data = template), as_text = length(decision$labels) > 0))
}

with_text_labels <- function(decision) {
  if (length(decision$labels)) decision$labels <- as.list(label_text(unlist(decision$labels)))
  decision
}

# Return the function that Python calls for scores, or with `as_text` for labels. An R error must not propagate through
# Python, so its text is returned.
encoded_model <- function(scores, templates, as_text = FALSE) {
  force(scores)
  force(templates)
  force(as_text)
  function(table, n, parts) {
    tryCatch(
      {
        n <- to_r(n)
        rows <- receive_parts(to_r(parts), n, templates[[to_r(table)]])
        tell_progress(n)
        send_answer(scores(rows), as_text)
      },
      error = function(e) list(error = conditionMessage(e))
    )
  }
}

to_r <- function(x) if (inherits(x, "python.builtin.object")) reticulate::py_to_r(x) else x

send_answer <- function(answer, as_text) {
  if (is.data.frame(answer) && ncol(answer) == 1) answer <- answer[[1]]
  if (length(dim(answer)) == 2 && ncol(answer) == 1) answer <- answer[, 1]
  if (is.factor(answer)) answer <- as.character(answer)
  names(answer) <- NULL
  if (is.array(answer) && length(dim(answer)) == 1) answer <- as.vector(answer)
  if (as_text && is.atomic(answer)) answer <- label_text(answer)
  template <- list(name = "answer", kind = kind_of(answer, "answer", "the model"), type = typeof(answer))
  c(send_column(answer, template), n_rows = length(answer))
}

# whether a Python object belongs to an earlier session; a session that has not used the engine has no valid ones
is_dead <- function(python) is.null(python) || is.null(the$calls) || reticulate::py_is_null_xptr(python)

# return the Python part of an object, restored from its bytes if it belongs to an earlier session
revive <- function(x) {
  engine()
  if (!is_dead(x$state$python)) return(x$state$python)
  if (is.null(x$file)) {
    refuse(
      "the Python part of this ", class(x)[1], " is not available after the R session that created it, and it was not kept; ",
      if (inherits(x, "mcce_explainer")) "fit it again, with keep = TRUE." else "explain again, with keep = TRUE."
    )
  }
  if (inherits(x, "mcce_explainer")) {
    if (inherits(x$model, "python.builtin.object") && is_dead(x$model)) {
      refuse("the model of this explainer was a Python object, which is not available after its R session; fit it again.")
    }
    for (name in names(x$samplers)) lend_sampler(name, x$samplers[[name]])
    for_python <- model_for_python(x$model, x$decision, x$template)
    x$state$python <- call_python("restore_explainer", for_python, without_rows(x$template), x$file, x$n_jobs)
  } else {
    x$state$python <- call_python("restore_result", x$file)
  }
  x$state$python
}

empty_column <- function(template) receive_column(raw(), raw(), raw(), 0L, template)

say_if_dead <- function(x) {
  if (!is_dead(x$state$python)) return(invisible())
  cat(
    "Its Python part is not available after the R session that created it",
    if (is.null(x$file)) ", and it was not kept: create it again.\n" else "; the next call restores it.\n",
    sep = ""
  )
}

#' @export
print.mcce_explainer <- function(x, ...) {
  kinds <- table(vapply(x$template, `[[`, "", "kind"))
  cat(
    "mcce explainer of a model of class ", class(x$model)[1], "\n",
    "wanted:  ", x$wanted, "\n",
    "fitted:  ", if (is.na(x$n_rows)) "in Python, " else paste0(x$n_rows, " rows, "), length(x$template), " columns (", paste(kinds, names(kinds), collapse = ", "), ")\n",
    "fixed:   ", if (length(x$fixed)) paste(x$fixed, collapse = ", ") else "nothing", "\n",
    "seed:    ", if (is.numeric(x$seed)) sprintf("%.0f", x$seed) else x$seed, "\n",
    sep = ""
  )
  say_if_dead(x)
  invisible(x)
}

#' @export
summary.mcce_explainer <- function(object, ...) {
  data.frame(
    column = names(object$template), kind = vapply(object$template, `[[`, "", "kind"),
    may_change = !names(object$template) %in% object$fixed, row.names = NULL
  )
}
