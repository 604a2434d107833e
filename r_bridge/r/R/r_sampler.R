#' Your own conditional
#'
#' How one feature is drawn given those before it, by functions of R: `sampler` of [mcce()], alone or by feature.
#'
#' `learn(x, y)` gets the features drawn before and the decision as a data frame, and the feature itself. Numbers are
#' doubles, dates among them; all else is a factor. What it returns is handed on. R's generator is seeded for the call,
#' and put back as it was.
#'
#' Give one of `probs`, `quantiles` and `draw`. Each must be a function of each row alone: `u` has a uniform number for
#' each row, and R's own random numbers are refused, because an answer must not depend on the rows beside it. A `draw`
#' that needs them says `own_rng = TRUE`: it is called for each row alone, after [set.seed()] by the row's own stream.
#' That is slow, 0.1 to 50 ms a row.
#'
#' With `probs` and `quantiles`, draws inside constraints are exact; with `draw` they are repeated until one is allowed.
#' Between quantiles numbers are drawn evenly; beyond the outer ones, as far as training values lie beyond those of five
#' fits without them, so that `learn` is called six times.
#'
#' @param learn `function(x, y)`: a model of the vector `y` on the data frame `x`.
#' @param probs `function(object, newdata)`: a matrix with the probability of each level of a factor, a row for each row;
#'   columns with names are matched by them. For two levels, a vector of the second one's will do.
#' @param quantiles `function(object, newdata, p)`: a matrix with the quantiles of a number, a row for each row and a
#'   column for each level in `p`.
#' @param draw `function(object, newdata, u)`: one value for each row, made from its uniform number; with `own_rng`,
#'   `function(object, newdata)` of one row.
#' @param own_rng Whether `draw` takes R's generator, as [rnorm()] and [sample()] do.
#' @return A list that [mcce()] reads.
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
  if (length(given) != 2) refuse("r_sampler() needs one of probs, quantiles and draw, and no more than one.")
  if (!isTRUE(own_rng) && !isFALSE(own_rng)) refuse("own_rng of r_sampler() is ", deparse(own_rng)[1], "; give TRUE or FALSE.")
  if (own_rng && is.null(draw)) {
    refuse("own_rng of r_sampler() is TRUE without draw; probabilities and quantiles take no random numbers.")
  }
  structure(given, own_rng = own_rng, class = "mcce_r_sampler")
}

#' @export
print.mcce_r_sampler <- function(x, ...) {
  by <- if (is.null(attr(x, "maker"))) paste(names(x), collapse = " and ") else attr(x, "maker")
  cat("conditional of R, by ", by, if (attr(x, "own_rng")) ", row by row", "\n", sep = "")
  invisible(x)
}

hold_sampler <- function(sampler, held) {
  the$lent <- (if (is.null(the$lent)) 0L else the$lent) + 1L
  name <- sprintf("%s-%d-%d", format(Sys.time(), "%Y%m%d%H%M%OS6"), Sys.getpid(), the$lent)
  held[[name]] <- list(functions = sampler, learned = new.env(parent = emptyenv()))
  lend_sampler(name, held[[name]])
  asks <- setdiff(names(sampler), c("learn", "prepare"))
  parameters <- list(
    name = name, asks = asks, own_rng = attr(sampler, "own_rng"), maker = attr(sampler, "maker"),
    kinds = if (!is.null(attr(sampler, "kinds"))) as.list(attr(sampler, "kinds"))
  )
  list(sampler = "lent_by_r", parameters = Filter(Negate(is.null), parameters))
}

lend_sampler <- function(name, one) call_python("lend", name, conditional_asker(one$functions, one$learned))

# what Python calls: what was learned stays here, under a key
conditional_asker <- function(functions, learned) {
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
            answer <- ask_conditional(what, functions, one$model, receive_table(sent), one$levels, numbers, sent$seed)
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

# the value of code that may use R's generator, which is put back as it was
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
