#' Your own conditional
#'
#' Draws a feature given earlier ones by R functions. Use it as `sampler` of [mcce()], alone or by feature.
#'
#' `learn(x, y)` gets the earlier features and the decision as a data frame, and the feature itself. Numbers and dates are
#' doubles; all other columns are factors. The returned object is passed to the other function. R's random number generator
#' is seeded for the call and restored afterwards.
#'
#' Give one of `probs`, `quantiles` and `draw`. Each must treat every row independently: `u` has a uniform random number for
#' each row, and using R's random numbers is an error, because a result must not depend on the other rows. A `draw` that
#' needs them is declared by `own_rng = TRUE`: it is called for each row separately, after [set.seed()] with a seed of the
#' row. This is slow, 0.1 to 50 ms per row.
#'
#' With `probs` and `quantiles`, draws inside constraints are exact; with `draw` they are repeated until one is allowed.
#' Numbers are drawn uniformly between quantiles. Beyond the outer quantiles the range is estimated from the training
#' values that lie beyond those of five fits without them, so `learn` is called six times.
#'
#' @param learn `function(x, y)`: fits a model of the vector `y` given the data frame `x`.
#' @param probs `function(object, newdata)`: a matrix with the probability of each level of a factor, one row per row of
#'   `newdata`; named columns are matched by name. For two levels, a vector for the second one is accepted.
#' @param quantiles `function(object, newdata, p)`: a matrix with the quantiles of a number, one row per row of `newdata`
#'   and one column per level in `p`.
#' @param draw `function(object, newdata, u)`: one value for each row, computed from its uniform random number; with
#'   `own_rng`, `function(object, newdata)` of one row.
#' @param own_rng Whether `draw` uses R's random number generator, such as [rnorm()] and [sample()].
#' @return A list for [mcce()].
#' @examples
#' r_sampler(
#'   learn = function(x, y) lm(y ~ ., cbind(x, y = y)),
#'   draw = function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)
#' )
#' r_sampler(
#'   learn = function(x, y) lm(y ~ ., cbind(x, y = y)),
#'   quantiles = function(object, newdata, p) {
#'     outer(predict(object, newdata), sigma(object) * qnorm(p), `+`)
#'   }
#' )
#' @export
r_sampler <- function(learn, probs = NULL, quantiles = NULL, draw = NULL, own_rng = FALSE) {
  given <- Filter(Negate(is.null), list(learn = learn, probs = probs, quantiles = quantiles, draw = draw))
  for (name in names(given)) {
    if (!is.function(given[[name]])) refuse(name, " of r_sampler() is a ", class(given[[name]])[1], "; give a function.")
  }
  if (length(given) != 2) refuse("r_sampler() needs exactly one of probs, quantiles and draw.")
  if (!isTRUE(own_rng) && !isFALSE(own_rng)) refuse("own_rng of r_sampler() is ", deparse(own_rng)[1], "; give TRUE or FALSE.")
  if (own_rng && is.null(draw)) {
    refuse("own_rng of r_sampler() is TRUE without draw; probabilities and quantiles use no random numbers.")
  }
  structure(given, own_rng = own_rng, class = "mcce_r_sampler")
}

#' @export
print.mcce_r_sampler <- function(x, ...) {
  by <- if (is.null(attr(x, "maker"))) paste(names(x), collapse = " and ") else attr(x, "maker")
  cat("R conditional, by ", by, if (attr(x, "own_rng")) ", row by row", "\n", sep = "")
  invisible(x)
}

hold_sampler <- function(sampler, held) {
  the$lent <- (if (is.null(the$lent)) 0L else the$lent) + 1L
  name <- sprintf("%s-%d-%d", format(Sys.time(), "%Y%m%d%H%M%OS6"), Sys.getpid(), the$lent)
  held[[name]] <- list(functions = sampler, learned = new.env(parent = emptyenv()))
  lend_sampler(name, held[[name]])
  what <- setdiff(names(sampler), c("learn", "prepare"))
  parameters <- list(
    name = name, returns = what, own_rng = attr(sampler, "own_rng"), maker = attr(sampler, "maker"),
    kinds = if (!is.null(attr(sampler, "kinds"))) as.list(attr(sampler, "kinds"))
  )
  list(sampler = "lent_by_r", parameters = Filter(Negate(is.null), parameters))
}

lend_sampler <- function(name, one) call_python("lend", name, conditional_caller(one$functions, one$learned))

# the function that Python calls: fitted objects stay here, under a key
conditional_caller <- function(functions, learned) {
  force(functions)
  force(learned)
  function(what, key, sent) {
    tryCatch(
      {
        what <- to_r(what)
        key <- to_r(key)
        sent <- to_r(sent)
        switch(what,
          learn = list(key = keep_learned(functions$learn, learned, sent)),
          forget = {
            rm(list = key, envir = learned)
            list(key = key)
          },
          {
            numbers <- readBin(sent$numbers, "double", length(sent$numbers) / 8, endian = "little")
            one <- learned[[key]]
            answer <- query_conditional(what, functions, one$model, receive_table(sent), one$levels, numbers, sent$seed)
            list(values = writeBin(as.double(answer), raw(), endian = "little"))
          }
        )
      },
      error = function(e) list(error = conditionMessage(e))
    )
  }
}

keep_learned <- function(learn, learned, sent) {
  x <- receive_table(sent)
  y <- receive_column(sent$y$values, sent$y$states, sent$y$texts, nrow(x), plain_template(sent$y))
  key <- sprintf("model %d", max(0L, as.integer(sub("model ", "", ls(learned)))) + 1L)
  learned[[key]] <- list(model = learn_conditional(learn, x, y, sent$seed), levels = levels(y))
  key
}

# evaluate code that may use R's generator, and restore the generator
with_own_seed <- function(code, seed) {
  random_seed() # begins the stream, if need be
  before <- globalenv()[[".Random.seed"]]
  on.exit({
    put_stream(before)
    RNGkind() # makes R read it now: compiled code that called us would write its own copy of the stream over it
  })
  set.seed(as.integer(seed), kind = "default", normal.kind = "default", sample.kind = "default")
  code
}
