#' Your own conditional
#'
#' How one feature is drawn given those before it, by functions of R: `sampler` of [mcce()], alone or by feature.
#'
#' `learn(x, y)` gets the features drawn before and the decision as a data frame, and the feature itself. Numbers are
#' doubles, dates among them; all else is a factor. What it returns is handed on. R's generator is seeded for the call,
#' and put back as it was.
#'
#' Give `probs` or `draw`. Both must be functions of each row alone: `u` has a uniform number for each row, and R's own
#' random numbers are refused, because an answer must not depend on the rows beside it. With `probs`, draws inside
#' constraints are exact; with `draw` they are repeated until one is allowed.
#'
#' @param learn `function(x, y)`: a model of the vector `y` on the data frame `x`.
#' @param probs `function(object, newdata)`: a matrix with the probability of each level of a factor, a row for each row;
#'   columns with names are matched by them. For two levels, a vector of the second one's will do.
#' @param draw `function(object, newdata, u)`: one value for each row, made from its uniform number.
#' @return A list that [mcce()] reads.
#' @examples
#' r_sampler(
#'   learn = function(x, y) lm(y ~ ., cbind(x, y = y)),
#'   draw = function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)
#' )
#' @export
r_sampler <- function(learn, probs = NULL, draw = NULL) {
  given <- Filter(Negate(is.null), list(learn = learn, probs = probs, draw = draw))
  for (name in names(given)) {
    if (!is.function(given[[name]])) refuse(name, " of r_sampler() is a ", class(given[[name]])[1], "; give a function.")
  }
  if (is.null(probs) == is.null(draw)) refuse("r_sampler() needs one of probs and draw, and not both.")
  structure(given, class = "mcce_r_sampler")
}

#' @export
print.mcce_r_sampler <- function(x, ...) {
  cat("conditional of R, by ", paste(names(x), collapse = " and "), "\n", sep = "")
  invisible(x)
}

hold_sampler <- function(sampler, held) {
  the$lent <- (if (is.null(the$lent)) 0L else the$lent) + 1L
  name <- sprintf("%s-%d-%d", format(Sys.time(), "%Y%m%d%H%M%OS6"), Sys.getpid(), the$lent)
  held[[name]] <- list(functions = sampler, learned = new.env(parent = emptyenv()))
  lend_sampler(name, held[[name]])
  list(sampler = "lent_by_r", parameters = list(name = name, asks = if (is.null(sampler$probs)) "draw" else "probs"))
}

lend_sampler <- function(name, one) call_python("lend", name, conditional_asker(one$functions, one$learned))

# what Python calls: what was learned stays here, under a key
conditional_asker <- function(functions, learned) {
  force(functions)
  force(learned)
  function(what, key, sent) {
    tryCatch(
      {
        sent <- to_r(sent)
        rows <- receive_table(sent)
        switch(to_r(what),
          learn = list(key = learn_conditional(functions, learned, rows, sent)),
          probs = {
            one <- learned[[to_r(key)]]
            chances <- with_seed(1, functions$probs(one$model, rows))
            list(values = writeBin(as.double(as_chances(chances, one$levels, nrow(rows))), raw(), endian = "little"))
          },
          draw = {
            one <- learned[[to_r(key)]]
            u <- readBin(sent$u, "double", nrow(rows), endian = "little")
            drawn <- with_seed(sum(u) %% 1 * 2e9, functions$draw(one$model, rows, u))
            list(values = writeBin(as_draws(drawn, one$levels), raw(), endian = "little"))
          }
        )
      },
      error = function(e) list(error = conditionMessage(e))
    )
  }
}

learn_conditional <- function(functions, learned, rows, sent) {
  y <- receive_column(sent$y$values, sent$y$states, sent$y$texts, nrow(rows), plain_template(sent$y))
  key <- sprintf("model %d", length(learned) + 1L)
  learned[[key]] <- list(model = with_seed(sent$seed, functions$learn(rows, y)), levels = levels(y))
  key
}

as_chances <- function(chances, levels, n) {
  if (is.data.frame(chances)) chances <- as.matrix(chances)
  if (is.null(dim(chances))) {
    chances <- if (length(levels) == 2 && length(chances) == n) cbind(1 - chances, chances, deparse.level = 0) else matrix(chances, nrow = n, byrow = TRUE)
  }
  if (!identical(dim(chances), c(as.integer(n), length(levels)))) {
    refuse("it returned ", paste(dim(chances), collapse = " x "), " probabilities for ", n, " rows and ", length(levels), " levels")
  }
  if (!is.null(colnames(chances)) && all(levels %in% colnames(chances))) chances[, levels, drop = FALSE] else chances
}

# numbers, or places among the levels from 0
as_draws <- function(drawn, levels) {
  if (is.null(levels)) return(as.double(drawn))
  places <- match(as.character(drawn), levels)
  if (anyNA(places)) refuse("it drew '", drawn[is.na(places)][1], "', which is none of the levels '", paste(levels, collapse = "', '"), "'")
  places - 1
}

# the value of code that may use R's generator, which is put back as it was
with_seed <- function(seed, code) {
  random_seed() # begins the stream, if need be
  before <- globalenv()[[".Random.seed"]]
  on.exit({
    put_stream(before)
    RNGkind() # makes R read it now: compiled code that called us would write its own copy of the stream over it
  })
  set.seed(as.integer(seed))
  code
}
