# The stages of mcceR, for a comparison: by mcceR (`mccer_*`) or, if it is not installed, by the code below (`own_*`),
# which implements mcceR's documentation with R's trees and R's sample().
#
# 1. fit: a tree for each mutable feature, on the fixed features, the decision and the preceding mutable features.
# 2. generate: K rows for each factual. Feature by feature, one sample() per leaf, in the order of the leaves' first rows.
# 3. process: measures of all rows, ranks, and the best rows.

# ---- the random stream

begin_stream <- function() {
  before <- get0(".Random.seed", globalenv(), inherits = FALSE)
  RNGkind("Mersenne-Twister", "Inversion", "Rejection")
  before
}

end_stream <- function(before) {
  if (is.null(before)) rm(".Random.seed", envir = globalenv()) else assign(".Random.seed", before, globalenv())
  NULL
}

random_seed <- function() get(".Random.seed", globalenv())

set_random_seed <- function(state) {
  assign(".Random.seed", state, globalenv())
  NULL
}

# ---- 1. fit

tree_arguments <- function(engine, arguments) {
  arguments <- as.list(arguments)
  if (engine == "rpart") {
    return(list(control = do.call(rpart::rpart.control, arguments)))
  }
  list(controls = do.call(party::ctree_control, arguments))
}

# The trees use columns x1, x2, ..., since column names may be R code and are used as symbols in formulas.
numbered <- function(names, all) sprintf("x%d", match(names, all))

formula_of <- function(response, given) {
  terms <- Reduce(function(left, right) call("+", left, right), lapply(given, as.name))
  eval(call("~", as.name(response), terms))
}

own_fit <- function(x_train, pred_train, fixed, c_int, engine, decision, seed, arguments) {
  if (!is.null(seed)) set.seed(seed)
  data <- stats::setNames(x_train, numbered(names(x_train), names(x_train)))
  mutable <- setdiff(names(x_train), fixed)
  given <- numbered(fixed, names(x_train))
  if (decision) {
    data$decision <- (pred_train >= c_int[1] & pred_train <= c_int[2]) * 1
    given <- c(given, "decision")
  } else if (length(given) == 0) {
    data$dummy <- 1
    given <- "dummy"
  }
  grow <- if (engine == "rpart") rpart::rpart else party::ctree
  settings <- tree_arguments(engine, arguments)
  trees <- list()
  for (name in numbered(mutable, names(x_train))) {
    trees[[name]] <- do.call(grow, c(list(formula_of(name, given), quote(data)), settings))
    given <- c(given, name)
  }
  list(
    featuremodel_list = trees, fixed_features = fixed, mutable_features = mutable, decision = decision,
    x_train = x_train, c_int = c_int
  )
}

mccer_fit <- function(x_train, pred_train, fixed, c_int, engine, decision, seed, arguments) {
  settings <- if (length(arguments)) tree_arguments(engine, arguments)
  do.call(mcceR::fit, c(
    list(
      x_train = x_train, pred_train = pred_train, fixed_features = fixed, c_int = c_int,
      autoregressive_model = engine, seed = seed, decision = decision
    ),
    settings
  ), quote = TRUE)
}

training_leaves <- function(fitted) {
  leaves <- lapply(fitted$featuremodel_list, function(tree) {
    if (inherits(tree, "rpart")) unname(tree$where) else as.integer(party::where(tree))
  })
  stats::setNames(leaves, fitted$mutable_features)
}

# ---- 2. generate

own_generate <- function(x_explain, fitted, K, seed) {
  rows <- rep(seq_len(nrow(x_explain)), each = K)
  all <- names(fitted$x_train)
  fixed <- lapply(x_explain[fitted$fixed_features], function(column) column[rows])
  sim <- stats::setNames(fixed, numbered(fitted$fixed_features, all))
  sim$decision <- if (fitted$decision) rep(1, length(rows))
  sim$dummy <- if (!length(sim)) rep(1, length(rows))
  if (!is.null(seed)) set.seed(seed)
  for (i in seq_along(fitted$mutable_features)) {
    name <- numbered(fitted$mutable_features[i], all)
    tree <- fitted$featuremodel_list[[i]]
    frame <- structure(sim, class = "data.frame", row.names = seq_along(rows))
    leaf <- if (inherits(tree, "rpart")) rpart_where(tree, frame) else party_where(tree, frame)
    leaf_train <- training_leaves(fitted)[[i]]
    values <- fitted$x_train[[match(fitted$mutable_features[i], all)]]
    drawn <- values[rep(1L, length(rows))]
    for (node in unique(leaf)) {
      these <- which(leaf == node)
      drawn[these] <- values[sample(which(leaf_train == node), length(these), replace = TRUE)]
    }
    sim[[name]] <- drawn
  }
  structure(stats::setNames(sim[numbered(all, all)], all), class = "data.frame", row.names = seq_along(rows))
}

mccer_generate <- function(x_explain, fitted, K, seed) {
  sim <- mcceR::generate(x_explain = x_explain, fit_object = fitted, K = K, seed = seed)$simData
  as.data.frame(sim)[names(x_explain)[names(x_explain) %in% names(sim)]]
}

# ---- 3. process

# even and odd coordinates are summed separately, then added, as in Rfast's dista
sum_steps <- function(steps) {
  halves <- list(0, 0)
  for (j in seq_along(steps)) halves[[2 - j %% 2]] <- halves[[2 - j %% 2]] + steps[[j]]
  halves[[1]] + halves[[2]]
}

own_measure <- function(measure, sim, factual, pred, c_int) {
  steps <- function(columns, power) {
    lapply(columns, function(name) {
      value <- sim[[name]]
      other <- factual[[name]]
      if (is.ordered(value)) other <- match(as.character(other), levels(value))
      if (is.ordered(value) || is.numeric(value) || is.logical(value)) {
        return(abs(as.numeric(value) - as.numeric(other))^power)
      }
      as.numeric(as.character(value) != as.character(other))
    })
  }
  same <- function(columns) {
    Reduce(`+`, lapply(columns, function(name) as.character(sim[[name]]) == as.character(factual[[name]])), 0)
  }
  switch(measure,
    validation = (pred >= c_int[1] & pred <= c_int[2]) * 1,
    L0 = length(sim) - Reduce(`+`, Map(`==`, lapply(sim, plain), lapply(factual, plain)), 0),
    L1 = sum_steps(steps(names(sim), 1)),
    L2 = sqrt(sum_steps(steps(names(sim), 2))),
    gower = {
      numbers <- names(sim)[vapply(factual, is.numeric, TRUE)]
      total <- 0
      for (name in numbers) total <- total + abs(factual[[name]] - sim[[name]]) / diff(range(sim[[name]]))
      same(names(sim)[vapply(factual, is.factor, TRUE)]) + total
    }
  )
}

plain <- function(column) if (is.factor(column)) as.character(column) else column

# measures and ranks of all rows, and the row numbers of the best
own_process <- function(x_sim, pred, x_explain, fitted, measures, remove_invalid, best_k) {
  ids <- rep(seq_len(nrow(x_explain)), each = nrow(x_sim) / nrow(x_explain))
  sim <- as.list(x_sim)[fitted$mutable_features]
  factual <- lapply(as.list(x_explain)[fitted$mutable_features], function(column) column[ids])
  measured <- lapply(measures, own_measure, sim = sim, factual = factual, pred = pred, c_int = fitted$c_int)
  names(measured) <- measures
  keys <- Map(function(name, value) if (name == "validation") -value else value, measures, measured)
  sorted <- do.call(order, unname(c(list(ids), keys)))
  rank <- integer(length(ids))
  rank[sorted] <- stats::ave(seq_along(ids), ids[sorted], FUN = seq_along)
  valid <- own_measure("validation", sim, factual, pred, fitted$c_int) == 1
  kept <- sorted[!remove_invalid | valid[sorted]]
  best <- kept[stats::ave(seq_along(kept), ids[kept], FUN = seq_along) <= best_k]
  list(measures = measured, rank = rank, best = as.integer(best))
}

mccer_process <- function(x_sim, pred, x_explain, fitted, measures, remove_invalid, best_k) {
  ids <- rep(seq_len(nrow(x_explain)), each = nrow(x_sim) / nrow(x_explain))
  marked <- data.table::as.data.table(cbind(id_explain = ids, x_sim, mcce_row = seq_along(ids)))
  run <- function(remove_invalid, best_k) {
    mcceR::process(
      x_sim = data.table::copy(marked), pred_sim = pred, x_explain = data.table::as.data.table(x_explain),
      fit_object = fitted, measures = measures, remove_invalid = remove_invalid, return_best_k = best_k
    )
  }
  all <- run(FALSE, nrow(x_sim))
  place <- order(all$cf$mcce_row)
  list(
    measures = stats::setNames(
      lapply(measures, function(name) all$cf_measures[[paste0("measure_", name)]][place]), measures
    ),
    rank = all$cf$counterfactual_rank[place],
    best = as.integer(run(remove_invalid, best_k)$cf$mcce_row)
  )
}

# ---- mcceR's own call

# mcceR pastes names into formulas: find those that are not plain names
unsafe_names <- function(names) names[make.names(names) != names | grepl("^[.]+[0-9]*$", names)]

mccer_explain <- function(model, x_explain, x_train, predict_model, arguments, engine, tree_arguments) {
  settings <- if (length(tree_arguments)) tree_arguments(engine, tree_arguments)
  if (is.character(predict_model)) predict_model <- eval(parse(text = predict_model), globalenv())
  found <- do.call(mcceR::explain_mcce, c(
    list(model = model, x_explain = x_explain, x_train = x_train, predict_model = predict_model), arguments, settings
  ), quote = TRUE)
  found$cf <- as.data.frame(found$cf)
  found$cf_measures <- as.data.frame(found$cf_measures)
  if (!is.null(found$sim_data)) found$sim_data <- as.data.frame(found$sim_data)
  if (!is.null(found$time)) found$time <- as.numeric(found$time, units = "secs")
  found
}
