#' A conditional with parameters
#'
#' The model of a feature given earlier ones. `sampler` of [mcce()] is a name, `sampler()`, [r_sampler()], or a list
#' of them by feature, with `"*"` for all others.
#'
#' @param name "cart", "ctree", "pmm", "norm", "forest" or another sampler of the Python package.
#' @param ... Its parameters, such as `min_leaf = 10`.
#' @return A list for [mcce()].
#' @examples
#' list(salary = sampler("cart", min_leaf = 20), "*" = "cart")
#' @export
sampler <- function(name, ...) structure(list(sampler = name, parameters = list(...)), class = "mcce_sampler")

#' Your own conditional
#'
#' Draws a feature given earlier ones by R functions. Use it as `sampler` of [mcce()], alone or by feature.
#'
#' `learn(x, y)` gets the earlier features and the decision as a data frame, and the feature itself. Numbers and dates
#' are doubles; all other columns are factors. The returned object is passed to `draw`.
#'
#' `draw(object, newdata, u)` returns one value for each row, computed from the row and its uniform random number; then
#' one seed gives one answer, whatever the other rows are. A `draw(object, newdata)` without the third argument may use
#' R's random numbers ([rnorm()], [sample()]): it is called for each row separately, after [set.seed()] with a seed of
#' the row. This is slow, 0.1 to 50 ms per row. R's own stream is not changed.
#'
#' Draws within constraints are repeated until one is allowed. A method of mice is a conditional in a few lines, see the
#' example.
#'
#' @param learn `function(x, y)`: fits a model of the vector `y` given the data frame `x`.
#' @param draw `function(object, newdata, u)` or `function(object, newdata)`.
#' @return A list for [mcce()].
#' @examples
#' r_sampler(
#'   learn = function(x, y) lm(y ~ ., cbind(x, y = y)),
#'   draw = function(object, newdata, u) predict(object, newdata) + sigma(object) * qnorm(u)
#' )
#' pmm <- r_sampler(
#'   learn = function(x, y) list(x = data.matrix(x), y = y),
#'   draw = function(object, newdata) {
#'     x <- rbind(object$x, data.matrix(newdata))
#'     y <- c(object$y, NA)
#'     mice::mice.impute.pmm(y, !is.na(y), x)
#'   }
#' )
#' @export
r_sampler <- function(learn, draw) {
  for (name in c("learn", "draw")) {
    if (!is.function(get(name))) refuse(name, " of r_sampler() is a ", class(get(name))[1], "; give a function.")
  }
  structure(list(learn = learn, draw = draw), class = "mcce_r_sampler")
}

#' @export
print.mcce_r_sampler <- function(x, ...) {
  cat("R conditional", if (!takes_uniform(x$draw)) ", drawn row by row", "\n", sep = "")
  invisible(x)
}

# samplers in the form that Python reads
read_sampler <- function(sampler) {
  if (inherits(sampler, "mcce_sampler")) {
    if (!length(sampler$parameters)) return(sampler$sampler)
    return(unclass(sampler))
  }
  if (inherits(sampler, "mcce_r_sampler")) return(list(fit_in_r = fitting_function(sampler)))
  if (is.character(sampler) && length(sampler) == 1 && is.null(names(sampler))) return(sampler)
  if (is.null(names(sampler))) {
    refuse(
      "sampler is a ", class(sampler)[1],
      " without names; give a name, sampler(), r_sampler(), or a named list of these."
    )
  }
  lapply(as.list(sampler), read_sampler)
}

# the function of (x, y, seed) that Python calls; it returns the function of (rows, uniform numbers, seed) that draws
fitting_function <- function(sampler) {
  without_raising(function(x, y, seed) {
    x <- receive_table(x)
    y <- receive_column(y, nrow(x))
    object <- learn_conditional(sampler$learn, x, y, seed)
    list(draw = without_raising(function(rows, numbers, seed) {
      rows <- receive_table(rows)
      numbers <- readBin(numbers, "double", nrow(rows), endian = "little")
      drawn <- query_conditional(sampler$draw, object, rows, levels(y), numbers, seed)
      list(values = write_bytes(as.double(drawn)))
    }))
  })
}

# An R error must not propagate through Python, so its text is returned.
without_raising <- function(f) {
  force(f)
  function(...) tryCatch(do.call(f, lapply(list(...), to_r)), error = function(e) list(error = conditionMessage(e)))
}

to_r <- function(x) if (inherits(x, "python.builtin.object")) reticulate::py_to_r(x) else x
