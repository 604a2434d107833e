# The columns and the response of a model's formula.

# Return a list of the names in `response` and of those that the model `reads`; NULL if unknown. A name on
# both sides, as `x` in log(y / x) ~ x, is a feature.
formula_names <- function(model) {
  if (isS4(model)) {
    known <- tryCatch(methods::slot(methods::slot(model, "data"), "formula"), error = function(e) NULL) # party's
    return(if (is.list(known)) both_sides(all.vars(known$response), all.vars(known$input)))
  }
  if (inherits(model, "ranger")) return(ranger_names(model))
  terms <- tryCatch(stats::terms(model), error = function(e) NULL)
  if (inherits(terms, "terms")) {
    response <- if (attr(terms, "response") > 0) all.vars(attr(terms, "variables")[[1 + attr(terms, "response")]])
    return(both_sides(response, all.vars(stats::delete.response(terms))))
  }
  if (inherits(model, "train") && is.data.frame(model$trainingData)) {
    return(both_sides(NULL, setdiff(names(model$trainingData), c(".outcome", ".weights"))))
  }
  NULL
}

both_sides <- function(response, reads) list(response = setdiff(response, reads), reads = reads)

# ranger stores its call, not its formula; a formula given by the name of an object is unknown
ranger_names <- function(model) {
  reads <- model$forest$independent.variable.names
  if (is.null(reads)) return(NULL)
  call <- as.list(model$call)[-1]
  is_formula <- vapply(call, function(each) is.call(each) && identical(each[[1]], as.name("~")) && length(each) == 3, TRUE)
  by_name <- call$dependent.variable.name
  response <- c(if (any(is_formula)) all.vars(call[is_formula][[1]][[2]]), if (is.character(by_name)) by_name)
  both_sides(response, unique(unlist(strsplit(reads, ":", fixed = TRUE))))
}

# raise if the response is among the columns; warn about mutable columns that the model does not use
check_columns <- function(model, columns, fixed) {
  known <- if (!is.function(model) && !inherits(model, "python.builtin.object")) formula_names(model)
  if (is.null(known)) return(invisible())
  quoted <- function(names) paste0("'", names, "'", collapse = ", ")
  response <- intersect(columns, known$response)
  if (length(response)) {
    refuse(
      "column ", quoted(response), " of data is the response of the ", class(model)[1], ", not a feature; leave it out: ",
      "data[setdiff(names(data), ", deparse(response), ")]."
    )
  }
  unread <- setdiff(columns, c(known$reads, fixed))
  if (length(unread)) {
    warning(mcce_condition(
      paste0(
        "the ", class(model)[1], " does not use the column(s) ", quoted(unread), " of data, and changing them has no ",
        "effect on its answer; leave them out of data, or name them in fixed."
      ),
      c("mcce_warning", "warning")
    ))
  }
}
