# R functions as conditionals: learn(x, y), and draw(object, newdata, u) or draw(object, newdata). The R package uses
# this file, and so does the bridge through which Python calls R (`r_bridge`).

learn_conditional <- function(learn, x, y, seed) with_own_seed(learn(x, y), seed)

# Return one number for each row of newdata: a value, or for levels a position from 0. `numbers` has the uniform random
# number of each row, of which `draw` is a function or, if it has no third argument, from which R's generator is seeded.
query_conditional <- function(draw, object, newdata, levels, numbers, seed) {
  if (!takes_uniform(draw)) return(draws_one_by_one(draw, object, newdata, levels, numbers))
  plain_draws(with_own_seed(draw(object, newdata, numbers), seed), nrow(newdata), levels)
}

takes_uniform <- function(draw) length(formals(args(draw))) >= 3

draws_one_by_one <- function(draw, object, newdata, levels, numbers) {
  seeds <- floor(numbers * .Machine$integer.max)
  one_row <- function(i) {
    set.seed(seeds[i])
    plain_draws(draw(object, newdata[i, , drop = FALSE]), 1L, levels)
  }
  with_own_seed(vapply(seq_along(seeds), one_row, 0), 1)
}

plain_draws <- function(answer, n, levels) {
  if (is.list(answer) || length(answer) != n) {
    stop(sprintf("draw returned %d values (%s) for %d rows", length(answer), class(answer)[1], n), call. = FALSE)
  }
  if (!length(levels)) {
    if (is.factor(answer) || !is.numeric(answer) || !all(is.finite(answer))) {
      stop("draw returned values that are not finite numbers", call. = FALSE)
    }
    return(as.double(answer))
  }
  place <- match(as.character(answer), as.character(levels))
  if (anyNA(place)) {
    stop(sprintf(
      "draw returned '%s', which is not a level (%s)", as.character(answer)[is.na(place)][1],
      paste(levels, collapse = ", ")
    ), call. = FALSE)
  }
  place - 1
}

# Evaluate code that may use R's generator, and restore the generator.
with_own_seed <- function(code, seed) {
  if (!exists(".Random.seed", globalenv(), inherits = FALSE)) stats::runif(1) # begins the stream
  before <- get(".Random.seed", globalenv(), inherits = FALSE)
  on.exit({
    assign(".Random.seed", before, envir = globalenv())
    RNGkind() # makes R read it now: compiled code that called us would write its own copy of the stream over it
  })
  set.seed(as.integer(seed), kind = "default", normal.kind = "default", sample.kind = "default")
  code
}
