#' The score of a model
#'
#' Returns one number for each row, to which the decision of [mcce()] and [explain_mcce()] refers. For a regression it is
#' the prediction, for a classifier the probability of one class: the second of two, or `of`. Unlike with `predict()`,
#' the score of a `glm` is on the scale of the response. mlr3 puts the positive class first, regardless of the order of
#' the levels, so `of` must be given.
#'
#' Supported are models of `lm`, `glm`, rpart, party, partykit, ranger, nnet (`nnet()`, `multinom()`), mgcv, MASS
#' (`polr()`, `lda()`), caret, mlr3, parsnip and workflows; for every other model `predict()` is called. If its result is
#' not suitable, write a method, or pass a function of the rows to [mcce()].
#'
#' @param model A fitted model, or a function of a data frame.
#' @param newdata A data frame with the columns that the model was fitted to.
#' @param of The class whose probability is the score; by default the second of two.
#' @param ... For methods.
#' @return A numeric vector. `class_probabilities()` returns a matrix with a column for each class, or `NULL` for a
#'   model that is not a classifier; `predict_label()` the predicted class of each row, as text.
#' @examples
#' model <- glm(am ~ wt, binomial, mtcars)
#' predict_score(model, head(mtcars))
#' predict_label(model, head(mtcars))
#' @export
predict_score <- function(model, newdata, of = NULL, ...) UseMethod("predict_score")

#' @export
predict_score.default <- function(model, newdata, of = NULL, ...) {
  chances <- class_probabilities(model, newdata)
  if (is.null(chances)) return(as_numbers(stats::predict(model, newdata), model))
  score_of(chances, model, if (is.null(of) && ncol(chances) == 2) colnames(chances)[2] else of)
}

#' @export
predict_score.function <- function(model, newdata, of = NULL, ...) model(newdata)

score_of <- function(chances, model, of) {
  quoted <- paste0("'", colnames(chances), "'", collapse = ", ")
  if (is.null(of)) {
    refuse(
      "the ", class(model)[1], " has the classes ", quoted, "; state the class of the score: ",
      "decision = interval(low, high, of = \"", colnames(chances)[1], "\")."
    )
  }
  of <- as.character(of)
  if (!of %in% colnames(chances)) {
    refuse("the ", class(model)[1], " has no class '", of, "'; its classes are ", quoted, ".")
  }
  unname(chances[, of])
}

#' @rdname predict_score
#' @export
predict_label <- function(model, newdata, ...) UseMethod("predict_label")

#' @export
predict_label.default <- function(model, newdata, ...) {
  chances <- class_probabilities(model, newdata)
  if (is.null(chances)) return(as_text(stats::predict(model, newdata)))
  colnames(chances)[max.col(chances, "first")]
}

#' @export
predict_label.function <- function(model, newdata, ...) as_text(model(newdata))

as_text <- function(answer) if (is.factor(answer)) as.character(answer) else answer

#' @rdname predict_score
#' @export
class_probabilities <- function(model, newdata) UseMethod("class_probabilities")

#' @export
class_probabilities.default <- function(model, newdata) NULL

as_numbers <- function(answer, model) {
  if (is.list(answer) && !is.data.frame(answer) && !is.null(answer$predictions)) answer <- answer$predictions
  if (is.data.frame(answer) && ncol(answer) == 1) answer <- answer[[1]]
  if (is.factor(answer) || is.character(answer)) {
    refuse(
      "predict() of the ", class(model)[1], " returns classes, not numbers; give a function of the rows ",
      "that returns the probability, or give the wanted class as the decision."
    )
  }
  if (NCOL(answer) > 1) {
    refuse(
      "predict() of the ", class(model)[1], " returns ", ncol(answer),
      " columns; give a function that returns one number per row."
    )
  }
  as.vector(unname(answer), "double")
}

# the columns of two classes from the probability of the second one
of_two <- function(chance, classes) {
  chance <- as.vector(unname(chance), "double")
  matrix(c(1 - chance, chance), ncol = 2, dimnames = list(NULL, classes))
}

by_class <- function(chances, classes = colnames(chances)) {
  chances <- as.matrix(chances)
  dimnames(chances) <- list(NULL, classes)
  chances
}

#' @export
class_probabilities.glm <- function(model, newdata) {
  if (!model$family$family %in% c("binomial", "quasibinomial")) return(NULL)
  response <- tryCatch(stats::model.response(stats::model.frame(model)), error = function(e) NULL)
  classes <- if (is.factor(response)) levels(response) else if (is.logical(response)) c("FALSE", "TRUE") else c("0", "1")
  of_two(stats::predict(model, newdata, type = "response"), classes)
}

#' @export
predict_score.glm <- function(model, newdata, of = NULL, ...) {
  if (!is.null(of)) return(NextMethod())
  as_numbers(stats::predict(model, newdata, type = "response"), model)
}

#' @export
class_probabilities.rpart <- function(model, newdata) {
  if (model$method != "class") return(NULL)
  by_class(stats::predict(model, newdata, type = "prob"), attr(model, "ylevels"))
}

#' @export
class_probabilities.party <- function(model, newdata) {
  response <- model$fitted[["(response)"]]
  if (!is.factor(response)) return(NULL)
  by_class(stats::predict(model, newdata, type = "prob"), levels(response))
}

#' @export
class_probabilities.BinaryTree <- function(model, newdata) {
  response <- methods::slot(methods::slot(model, "responses"), "variables")[[1]]
  if (!is.factor(response)) return(NULL)
  by_class(do.call(rbind, party::treeresponse(model, newdata = newdata)), levels(response))
}

#' @export
class_probabilities.RandomForest <- class_probabilities.BinaryTree

#' @export
class_probabilities.ranger <- function(model, newdata) {
  if (model$treetype == "Classification") {
    refuse(
      "the ranger model predicts classes, not probabilities; fit it with probability = TRUE, or give the wanted class ",
      "as the decision."
    )
  }
  if (model$treetype != "Probability estimation") return(NULL)
  by_class(stats::predict(model, newdata, num.threads = 1)$predictions)
}

#' @export
predict_label.ranger <- function(model, newdata, ...) {
  if (model$treetype != "Classification") return(NextMethod())
  as.character(stats::predict(model, newdata, num.threads = 1)$predictions)
}

#' @export
class_probabilities.nnet <- function(model, newdata) {
  if (is.null(model$lev)) return(NULL)
  chances <- stats::predict(model, newdata, type = "raw")
  if (length(model$lev) == 2) of_two(chances, model$lev) else by_class(rbind(chances), model$lev)
}

#' @export
class_probabilities.multinom <- function(model, newdata) {
  chances <- stats::predict(model, newdata, type = "probs")
  if (length(model$lev) == 2) return(of_two(chances, model$lev))
  by_class(matrix(chances, nrow(newdata)), model$lev)
}

#' @export
class_probabilities.polr <- class_probabilities.multinom

#' @export
class_probabilities.lda <- function(model, newdata) by_class(stats::predict(model, newdata)$posterior)

#' @export
class_probabilities.qda <- class_probabilities.lda

# models of caret, which drop rows with missing values by default
#' @export
class_probabilities.train <- function(model, newdata) {
  if (model$modelType != "Classification") return(NULL)
  by_class(stats::predict(model, newdata, type = "prob", na.action = stats::na.pass))
}

#' @export
predict_label.train <- function(model, newdata, ...) {
  as_text(stats::predict(model, newdata, na.action = stats::na.pass))
}

# learners of mlr3, including tuned ones and graphs
#' @export
class_probabilities.Learner <- function(model, newdata) {
  if (model$task_type != "classif") return(NULL)
  chances <- model$predict_newdata(newdata)$prob
  if (!is.null(chances)) return(by_class(chances))
  refuse(
    "the ", class(model)[1], " predicts classes only; set its predict_type to \"prob\" and train it, or give the ",
    "wanted class as the decision."
  )
}

#' @export
predict_score.Learner <- function(model, newdata, of = NULL, ...) {
  if (model$task_type != "classif") return(as_numbers(model$predict_newdata(newdata)$response, model))
  score_of(class_probabilities(model, newdata), model, of)
}

#' @export
predict_label.Learner <- function(model, newdata, ...) as_text(model$predict_newdata(newdata)$response)

# models of parsnip, alone and in a workflow
#' @export
class_probabilities.model_fit <- function(model, newdata) {
  spec <- if (inherits(model, "workflow")) model$fit$fit$spec else model$spec
  if (is.null(spec)) refuse("the ", class(model)[1], " was not fitted; call fit() first.")
  if (spec$mode != "classification") return(NULL)
  chances <- stats::predict(model, newdata, type = "prob")
  by_class(chances, sub("^\\.pred_", "", names(chances)))
}

#' @export
class_probabilities.workflow <- class_probabilities.model_fit
