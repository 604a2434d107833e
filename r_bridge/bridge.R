# The R side of the bridge, in an environment of its own. Functions are called through `run`, which returns errors,
# warnings and output as values.

run <- function(fun, arguments) {
  warned <- character()
  error <- character()
  value <- NULL
  printed <- utils::capture.output(
    value <- tryCatch(
      withCallingHandlers(
        do.call(fun, arguments, quote = TRUE),
        warning = function(w) {
          warned <<- c(warned, conditionMessage(w))
          invokeRestart("muffleWarning")
        },
        message = function(m) {
          cat(conditionMessage(m))
          invokeRestart("muffleMessage")
        }
      ),
      error = function(e) {
        # the call may hold whole tables: report only its function
        where <- conditionCall(e)
        where <- if (is.call(where) && is.name(where[[1]])) as.character(where[[1]]) else ""
        error <<- c(conditionMessage(e), where)
        NULL
      }
    )
  )
  list(value, error, unique(warned), printed)
}

# The exception of a Python function is stored on the Python side, which raises it after R has stopped. Calling the
# function after Python has freed it would crash the process.
forward <- function(callback) {
  force(callback)
  alive <- TRUE
  list(
    function(...) {
      if (!alive) stop("the Python function is valid only during the call it was passed to")
      answer <- callback(...)
      if (inherits(answer, "raised_in_python")) stop(answer)
      answer
    },
    function() alive <<- FALSE
  )
}

has_package <- function(package) requireNamespace(package, quietly = TRUE)

loaded_packages <- function() loadedNamespaces()

load_packages <- function(packages) {
  for (package in setdiff(packages, loadedNamespaces())) has_package(package)
}

versions <- function(packages) {
  version_of <- function(package) {
    if (nzchar(system.file(package = package))) as.character(utils::packageVersion(package)) else ""
  }
  c(paste(R.version$major, R.version$minor, sep = "."), vapply(as.character(packages), version_of, ""))
}

architecture <- function() R.version$arch

evaluate <- function(code, data) {
  where <- new.env(parent = globalenv())
  if (!is.null(data)) assign("data", data, where)
  eval(parse(text = code), where)
}

row_count <- function(data) nrow(data)

# ---- the random stream

random_seed <- function() {
  if (!exists(".Random.seed", globalenv(), inherits = FALSE)) stats::runif(1)
  get(".Random.seed", globalenv())
}

set_random_seed <- function(state) {
  assign(".Random.seed", state, globalenv())
  RNGkind() # makes R read it now
  NULL
}

# a stream of R's default kinds, begun by that of the session, which is returned
begin_stream <- function() {
  before <- random_seed()
  RNGkind("Mersenne-Twister", "Inversion", "Rejection")
  before
}

# ---- models

# the type of each column as in `RColumn`, then its levels
describe_columns <- function(data, text_is_factor = FALSE) {
  describe <- function(column) {
    if (text_is_factor && is.character(column)) column <- factor(column)
    kinds <- c("ordered", "factor", "Date", "POSIXct", "logical", "character")
    type <- kinds[match(TRUE, inherits(column, kinds, which = TRUE) > 0)]
    if (is.na(type)) type <- if (is.numeric(column)) "numeric" else mode(column)
    c(type, levels(column))
  }
  lapply(data, describe)
}

describe_model <- function(object) {
  classes <- classes_of(object)
  list(
    class = class(object)[1],
    columns = fitted_columns(object),
    classes = as.character(classes),
    class_type = if (is.logical(classes)) "logical" else if (is.numeric(classes)) "numeric" else "text"
  )
}

# the types of the training columns, as far as the model stores them
fitted_columns <- function(object) {
  if (inherits(object, "BinaryTree")) {
    return(describe_columns(object@data@get("input")))
  }
  if (inherits(object, "constparty")) {
    frame <- object$data
    return(describe_columns(frame[intersect(names(frame), all.vars(stats::delete.response(stats::terms(object))))]))
  }
  if (inherits(object, "ranger")) {
    levels <- Filter(Negate(is.null), object$forest$covariate.levels)
    return(lapply(levels, function(known) c("factor", known)))
  }
  terms <- tryCatch(stats::terms(object), error = function(e) NULL)
  classes <- attr(terms, "dataClasses")
  response <- attr(terms, "response")
  if (length(classes) && response > 0) classes <- classes[-response]
  # a model frame also has transformed columns and weights, which are not columns of the data
  classes <- classes[names(classes) %in% all.vars(terms)]
  levels <- attr(object, "xlevels")
  if (is.null(levels) && is.list(object)) levels <- object$xlevels
  classes <- classes[classes %in% c("numeric", "logical", "character", "factor", "ordered")]
  stats::setNames(lapply(names(classes), function(name) c(classes[[name]], levels[[name]])), names(classes))
}

classes_of <- function(object) {
  if (inherits(object, "glm")) {
    if (!object$family$family %in% c("binomial", "quasibinomial")) return(NULL)
    response <- tryCatch(stats::model.response(stats::model.frame(object)), error = function(e) NULL)
    if (is.factor(response)) return(if (nlevels(response) == 2) levels(response))
    return(if (is.logical(response)) c(FALSE, TRUE) else c(0, 1))
  }
  if (inherits(object, "rpart")) return(attr(object, "ylevels"))
  if (inherits(object, "ranger")) {
    return(if (object$treetype == "Probability estimation") object$forest$levels[object$forest$class.values])
  }
  if (inherits(object, "BinaryTree")) return(levels(object@responses@variables[[1]]))
  if (inherits(object, c("constparty", "constparties"))) return(levels(object$fitted[["(response)"]])) # partykit's
  if (inherits(object, c("multinom", "polr", "lda", "qda"))) return(object$lev)
  if (inherits(object, "randomForest")) return(object$classes)
  NULL
}

# the `type` of predict() that returns scores, if it is not the default
score_type <- function(object) {
  if (inherits(object, "glm")) return("response")
  if (is.null(classes_of(object))) return(NULL)
  if (inherits(object, c("multinom", "polr"))) return("probs")
  if (inherits(object, c("rpart", "BinaryTree", "constparty", "constparties", "randomForest"))) return("prob")
  NULL
}

query_model <- function(object, newdata, custom, options) {
  options <- as.list(options)
  if (!is.null(custom)) {
    answer <- do.call(custom, c(list(object, newdata), options), quote = TRUE)
  } else {
    if (is.null(options$type)) options$type <- score_type(object)
    rows <- list(newdata)
    names(rows) <- if (inherits(object, "ranger")) "data" else "newdata"
    answer <- do.call(stats::predict, c(list(object), rows, options), quote = TRUE)
  }
  plain_answer(answer, nrow(newdata))
}

# a vector or matrix with one row for each row of newdata, without a method's wrapper
plain_answer <- function(answer, n) {
  if (is.list(answer) && !is.data.frame(answer)) {
    inside <- intersect(c("predictions", "posterior", "fit"), names(answer))
    if (length(inside)) answer <- answer[[inside[1]]]
  }
  if (is.data.frame(answer)) answer <- as.matrix(answer)
  if (is.list(answer)) answer <- do.call(rbind, answer)
  if (is.factor(answer)) answer <- as.character(answer)
  columns <- if (length(dim(answer)) == 2) ncol(answer) else 1L
  if (length(answer) != n * columns) {
    stop(sprintf("predict returned %d values for %d rows", length(answer), n))
  }
  list(as.vector(answer), columns)
}

# ---- mcceR

# mcceR pastes names into formulas: find those that are not plain names
unsafe_names <- function(names) names[make.names(names) != names | grepl("^[.]+[0-9]*$", names)]

mccer_explain <- function(model, x_explain, x_train, predict_model, arguments, engine, controls) {
  settings <- list()
  if (length(controls)) {
    settings <- if (engine == "rpart") {
      list(control = do.call(rpart::rpart.control, controls))
    } else {
      list(controls = do.call(party::ctree_control, controls))
    }
  }
  if (is.character(predict_model)) predict_model <- eval(parse(text = predict_model), globalenv())
  tables <- list(model = model, x_explain = x_explain, x_train = x_train, predict_model = predict_model)
  answer <- do.call(mcceR::explain_mcce, c(tables, arguments, settings), quote = TRUE)
  answer$cf <- as.data.frame(answer$cf)
  answer$cf_measures <- as.data.frame(answer$cf_measures)
  if (!is.null(answer$sim_data)) answer$sim_data <- as.data.frame(answer$sim_data)
  if (!is.null(answer$time)) answer$time <- as.numeric(answer$time, units = "secs")
  answer
}

# the number of each training row's leaf, by feature
training_leaves <- function(fitted) {
  leaves <- lapply(fitted$featuremodel_list, function(tree) {
    if (inherits(tree, "rpart")) unname(tree$where) else as.integer(party::where(tree))
  })
  stats::setNames(leaves, fitted$mutable_features)
}
