# The R side of the bridge, in a separate environment.
#
# Functions are called through `run`, which returns errors, warnings and output as values.

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

# A Python function that raises returns NULL; its exception is stored on the Python side.
# Calling the function after Python has freed it would crash the process.
forward <- function(callback) {
  force(callback)
  alive <- TRUE
  list(
    function(...) {
      if (!alive) stop("the Python function is valid only during the call it was passed to")
      answer <- callback(...)
      if (is.null(answer)) stop("the Python function raised an exception")
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
    if (has_package(package)) as.character(utils::packageVersion(package)) else ""
  }
  c(paste(R.version$major, R.version$minor, sep = "."), vapply(packages, version_of, ""))
}

normal_quantiles <- function(p) stats::qnorm(p)

# ---- tables

row_count <- function(data) nrow(data)

time_zone <- function(x) {
  zone <- attr(x, "tzone")[1]
  if (!is.null(zone) && nzchar(zone)) return(zone)
  here <- suppressWarnings(Sys.timezone())
  if (is.na(here)) "UTC" else here # UTC if the machine names no zone
}

# the type of a column as in `RColumn`, then its levels
describe_column <- function(column) {
  known <- c("ordered", "factor", "Date", "POSIXct", "difftime", "logical", "character")
  type <- known[match(TRUE, inherits(column, known, which = TRUE) > 0)]
  if (is.na(type)) type <- if (is.numeric(column)) "numeric" else mode(column)
  c(type, levels(column))
}

describe_columns <- function(data, text_is_factor = FALSE) {
  lapply(data, function(column) {
    describe_column(if (text_is_factor && is.character(column)) factor(column) else column)
  })
}

# ---- models

evaluate <- function(code, data) {
  where <- new.env(parent = globalenv())
  if (!is.null(data)) assign("data", data, where)
  eval(parse(text = code), where)
}

read_rds <- function(path) readRDS(path)

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
    levels <- object$forest$covariate.levels
    levels <- levels[!vapply(levels, is.null, TRUE)]
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
  known <- c("numeric", "logical", "character", "factor", "ordered")
  classes <- classes[classes %in% known]
  stats::setNames(lapply(names(classes), function(name) c(classes[[name]], levels[[name]])), names(classes))
}

classes_of <- function(object) {
  if (inherits(object, "glm")) {
    if (!object$family$family %in% c("binomial", "quasibinomial")) return(NULL)
    response <- tryCatch(stats::model.response(stats::model.frame(object)), error = function(e) NULL)
    if (is.factor(response)) return(if (nlevels(response) == 2) levels(response))
    if (is.logical(response)) return(c(FALSE, TRUE))
    return(c(0, 1))
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

# the arguments of predict() that return scores, if not the defaults
score_options <- function(object) {
  type <- score_type(object)
  if (!inherits(object, "coxph")) return(if (is.null(type)) list() else list(type = type))
  if (length(attr(stats::terms(object), "specials")$strata)) {
    stop("the coxph has strata, each with its own baseline hazard, so risks of different strata are not comparable; ",
      "give RModel type= or predict=, such as a function that returns a probability of survival",
      call. = FALSE
    )
  }
  list(type = "risk", reference = "sample")
}

score_type <- function(object) {
  if (inherits(object, "glm")) return("response")
  if (is.null(classes_of(object))) return(NULL)
  if (inherits(object, c("multinom", "polr"))) return("probs")
  if (inherits(object, c("rpart", "BinaryTree", "constparty", "constparties", "randomForest"))) {
    return("prob")
  }
  NULL
}

query_model <- function(object, newdata, custom, options) {
  options <- as.list(options)
  if (!is.null(custom)) {
    answer <- do.call(custom, c(list(object, newdata), options), quote = TRUE)
  } else {
    if (is.null(options$type)) options <- c(options, score_options(object))
    rows <- list(newdata)
    names(rows) <- if (inherits(object, "ranger")) "data" else "newdata"
    answer <- do.call(stats::predict, c(list(object), rows, options), quote = TRUE)
  }
  plain_answer(answer, nrow(newdata))
}

# a vector or matrix with one row for each row of newdata, without a method's wrapper
plain_answer <- function(answer, n) {
  answer <- unwrapped(answer)
  if (is.list(answer)) answer <- do.call(rbind, answer)
  if (is.factor(answer)) answer <- as.character(answer)
  columns <- if (length(dim(answer)) == 2) ncol(answer) else 1L
  if (length(answer) != n * columns) {
    stop(sprintf("predict returned %d values for %d rows", length(answer), n))
  }
  list(as.vector(answer), columns)
}

# ---- trees

# Fitting may draw random numbers; the user's later draws must not depend on that.
with_own_seed <- function(expression, seed = 1) {
  before <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit(if (is.null(before)) rm(".Random.seed", envir = globalenv()) else assign(".Random.seed", before, globalenv()))
  set.seed(seed, kind = "default", normal.kind = "default", sample.kind = "default")
  expression
}

fit_rpart <- function(data, method, cp, minsplit, minbucket, maxdepth) {
  control <- rpart::rpart.control(
    minsplit = minsplit, minbucket = minbucket, cp = cp, maxdepth = maxdepth, maxcompete = 0, xval = 0
  )
  rpart::rpart(target ~ ., data = data, method = method, control = control)
}

# predict() returns the value of the node of a row; the values are replaced by the nodes' numbers
rpart_where <- function(fit, newdata) {
  fit$frame$yval <- seq_len(nrow(fit$frame))
  as.integer(stats::predict(fit, newdata, type = "vector"))
}

# rows whose givens are all missing are not used in the fit; they are routed like new rows
rpart_training <- function(fit, data) {
  where <- rpart_where(fit, data)
  where[setdiff(seq_along(where), fit$na.action)] <- fit$where
  where
}

rpart_nodes <- function(fit, data) {
  frame <- fit$frame
  number <- as.numeric(row.names(frame)) # 2^31 and beyond at depth 31
  is_leaf <- frame$var == "<leaf>"
  child <- function(k) ifelse(is_leaf, 0L, match(k, number))
  own <- ifelse(is_leaf, 0L, 1L + frame$ncompete + frame$nsurrogate)
  splits <- fit$splits
  list(
    left = child(2 * number), right = child(2 * number + 1), n = as.integer(frame$n),
    impurity = as.double(frame$dev),
    split_node = rep(seq_along(number), own),
    split_column = match(rownames(splits), setdiff(names(data), "target")),
    split_ncat = as.integer(splits[, "ncat"]),
    split_index = as.double(splits[, "index"]),
    sides = if (is.null(fit$csplit)) integer() else as.integer(t(fit$csplit)),
    n_sides = if (is.null(fit$csplit)) 0L else ncol(fit$csplit),
    id = seq_along(number)
  )
}

fit_party <- function(data, teststat, testtype, mincriterion, minsplit, minbucket, maxdepth) {
  control <- party::ctree_control(
    teststat = teststat, testtype = testtype, mincriterion = mincriterion, minsplit = minsplit,
    minbucket = minbucket, maxdepth = maxdepth
  )
  with_own_seed(party::ctree(target ~ ., data = data, controls = control))
}

party_where <- function(fit, newdata) as.integer(party::where(fit, newdata = newdata))

party_training <- function(fit, data) as.integer(party::where(fit))

# the same table of nodes and splits as `rpart_nodes`, nodes in party's order (which is depth first)
party_nodes <- function(fit, data) {
  nodes <- list()
  walk <- function(node) {
    place <- length(nodes) + 1L
    nodes[[place]] <<- list(split = if (!node$terminal) node$psplit, n = sum(node$weights), id = node$nodeID)
    if (!node$terminal) {
      nodes[[place]]$left <<- walk(node$left)
      nodes[[place]]$right <<- walk(node$right)
    }
    place
  }
  walk(fit@tree)
  child <- function(side) vapply(nodes, function(node) if (is.null(node[[side]])) 0L else node[[side]], 0L)
  inner <- which(child("left") > 0L)
  splits <- lapply(nodes[inner], function(node) node$split)
  nominal <- !vapply(splits, function(split) split$ordered, TRUE)
  # 1 left, 3 right, as in rpart; party also assigns a side to levels that are absent in a node
  sides <- lapply(splits[nominal], function(split) ifelse(split$splitpoint == 1, 1L, 3L))
  widest <- max(0L, lengths(sides))
  column <- vapply(splits, function(split) split$variableID, 0L)
  index <- vapply(splits, function(split) if (split$ordered) as.double(split$splitpoint) else 0, 0)
  index <- index - vapply(data[column], is.ordered, TRUE) # our codes begin at 0, R's at 1
  index[nominal] <- seq_len(sum(nominal))
  list(
    left = child("left"), right = child("right"), n = as.integer(vapply(nodes, function(node) node$n, 0)),
    impurity = rep(NA_real_, length(nodes)),
    split_node = inner,
    split_column = column,
    split_ncat = ifelse(nominal, lengths(lapply(splits, function(split) split$table)),
      ifelse(vapply(splits, function(split) split$toleft, 0L) == 1L, -1L, 1L)
    ),
    split_index = index,
    sides = as.integer(unlist(lapply(sides, function(side) c(side, rep(2L, widest - length(side)))))), n_sides = widest,
    id = vapply(nodes, function(node) node$id, 0L)
  )
}
