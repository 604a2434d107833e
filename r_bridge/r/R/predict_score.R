#' The score of a model
#'
#' Returns one number for each row, to which the decision of [mcce()] and [explain_mcce()] refers. For a regression it is
#' the prediction, for a classifier the probability of one class: the second of two, or `of`. Unlike with `predict()`, the
#' score of a `glm` is on the scale of the response. The score of a `coxph` is the hazard relative to that at the means of
#' the covariates; strata are an error, because hazards of different strata are not comparable. mlr3 puts the positive
#' class first, regardless of the order of the levels, so `of` must be given.
#'
#' Supported are models of `lm`, `glm`, rpart, party, partykit, ranger, nnet (`nnet()`, `multinom()`), mgcv, MASS (`polr()`,
#' `lda()`), survival (`coxph()`), caret, mlr3, parsnip and workflows; for every other model `predict()` is called. If its
#' result is not suitable, write a method, or pass a function of the rows to [mcce()].
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
  classes <- colnames(chances)
  if (is.null(of)) {
    if (ncol(chances) != 2) refuse_unnamed_class(model, classes)
    of <- classes[2]
  }
  if (!as.character(of) %in% classes) {
    refuse("the ", class(model)[1], " has no class '", of, "'; its classes are '", paste(classes, collapse = "', '"), "'.")
  }
  unname(chances[, as.character(of)])
}

refuse_unnamed_class <- function(model, classes) {
  refuse(
    "the ", class(model)[1], " has the classes '", paste(classes, collapse = "', '"),
    "'; state the class of the score: decision = interval(low, high, of = \"", classes[1], "\")."
  )
}

#' @export
predict_score.function <- function(model, newdata, of = NULL, ...) model(newdata)

#' @rdname predict_score
#' @export
predict_label <- function(model, newdata, ...) UseMethod("predict_label")

#' @export
predict_label.default <- function(model, newdata, ...) {
  chances <- class_probabilities(model, newdata)
  if (is.null(chances)) {
    answer <- stats::predict(model, newdata)
    return(if (is.factor(answer)) as.character(answer) else answer)
  }
  colnames(chances)[max.col(chances, "first")]
}

#' @export
predict_label.function <- function(model, newdata, ...) model(newdata)

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
  if (length(dim(answer)) == 2 && ncol(answer) > 1) {
    refuse("predict() of the ", class(model)[1], " returns ", ncol(answer), " columns; give a function that returns one number per row.")
  }
  as.vector(unname(answer), "double")
}

# return the columns of two classes from the probability of the second one
of_two <- function(chance, classes) {
  chance <- as.vector(unname(chance), "double")
  matrix(c(1 - chance, chance), ncol = 2, dimnames = list(NULL, classes))
}

by_class <- function(chances, classes = colnames(chances)) {
  chances <- as.matrix(chances)
  dimnames(chances) <- list(NULL, classes)
  chances
}

response_classes <- function(model) {
  response <- tryCatch(stats::model.response(stats::model.frame(model)), error = function(e) NULL)
  if (is.factor(response)) levels(response) else if (is.logical(response)) c("FALSE", "TRUE") else c("0", "1")
}

#' @export
class_probabilities.glm <- function(model, newdata) {
  if (!model$family$family %in% c("binomial", "quasibinomial")) return(NULL)
  of_two(stats::predict(model, newdata, type = "response"), response_classes(model))
}

#' @export
predict_score.glm <- function(model, newdata, of = NULL, ...) {
  if (!is.null(of)) return(NextMethod())
  as_numbers(stats::predict(model, newdata, type = "response"), model)
}

#' @export
predict_score.coxph <- function(model, newdata, of = NULL, ...) {
  if (length(attr(stats::terms(model), "specials")$strata)) {
    refuse(
      "the coxph has strata, each with its own baseline hazard, so hazards of different strata are not comparable; ",
      "give a function of the rows that returns one number, such as a probability of survival."
    )
  }
  as_numbers(stats::predict(model, newdata, type = "risk", reference = "sample"), model)
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
  chances <- party::treeresponse(model, newdata = newdata)
  by_class(do.call(rbind, chances), levels(response))
}

#' @export
class_probabilities.RandomForest <- class_probabilities.BinaryTree

#' @export
predict_score.BinaryTree <- function(model, newdata, of = NULL, ...) {
  if (!is.null(class_probabilities(model, newdata[1, , drop = FALSE]))) return(predict_score.default(model, newdata, of))
  as_numbers(unlist(party::treeresponse(model, newdata = newdata)), model)
}

#' @export
predict_score.RandomForest <- predict_score.BinaryTree

#' @export
class_probabilities.ranger <- function(model, newdata) {
  if (model$treetype == "Classification") {
    refuse("the ranger model predicts classes, not probabilities; fit it with probability = TRUE, or give the wanted class as the decision.")
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
  classes <- model$lev
  if (is.null(classes)) return(NULL)
  chances <- stats::predict(model, newdata, type = "raw")
  if (length(classes) == 2) of_two(chances, classes) else by_class(rbind(chances), classes)
}

#' @export
class_probabilities.multinom <- function(model, newdata) {
  chances <- stats::predict(model, newdata, type = "probs")
  if (length(model$lev) == 2) return(of_two(chances, model$lev))
  if (is.null(dim(chances))) chances <- matrix(chances, nrow = nrow(newdata), byrow = TRUE)
  by_class(chances, model$lev)
}

#' @export
class_probabilities.polr <- class_probabilities.multinom

#' @export
class_probabilities.lda <- function(model, newdata) {
  chances <- stats::predict(model, newdata)$posterior
  by_class(chances)
}

#' @export
class_probabilities.qda <- class_probabilities.lda

# caret drops rows with missing values by default
#' @export
class_probabilities.train <- function(model, newdata) {
  if (model$modelType != "Classification") return(NULL)
  if (is.null(model$modelInfo$prob)) refuse("caret's method \"", model$method, "\" predicts classes only; ", CLASSES_ONLY)
  chances <- suppressWarnings(stats::predict(model, newdata, type = "prob", na.action = stats::na.pass))
  if (nrow(chances) && all(is.na(chances))) {
    refuse("the train object has no probabilities; train it with trainControl(classProbs = TRUE), or give the wanted class as the decision.")
  }
  by_class(chances)
}

#' @export
predict_score.train <- function(model, newdata, of = NULL, ...) {
  if (model$modelType == "Classification") return(NextMethod())
  as_numbers(stats::predict(model, newdata, na.action = stats::na.pass), model)
}

#' @export
predict_label.train <- function(model, newdata, ...) {
  if (model$modelType != "Classification") return(NextMethod())
  as.character(stats::predict(model, newdata, type = "raw", na.action = stats::na.pass))
}

CLASSES_ONLY <- "give the wanted class as the decision, or use a model with probabilities."

# Learners of mlr3, including tuned ones and graphs, have the class Learner and a task type.
learner_answers <- function(model, newdata) {
  if (is.null(model$model)) refuse("the ", class(model)[1], " was not trained; call its $train(task) first.")
  model$predict_newdata(newdata)
}

#' @export
class_probabilities.Learner <- function(model, newdata) {
  if (model$task_type != "classif") return(NULL)
  chances <- learner_answers(model, newdata)$prob
  if (is.null(chances)) {
    refuse("the ", class(model)[1], " predicts classes only; set its predict_type to \"prob\" and train it, or give the wanted class as the decision.")
  }
  by_class(chances)
}

#' @export
predict_score.Learner <- function(model, newdata, of = NULL, ...) {
  if (model$task_type != "classif") return(as_numbers(learner_answers(model, newdata)$response, model))
  if (is.null(of)) refuse_unnamed_class(model, colnames(class_probabilities(model, newdata[seq_len(min(1, nrow(newdata))), , drop = FALSE])))
  NextMethod()
}

#' @export
predict_label.Learner <- function(model, newdata, ...) {
  answer <- learner_answers(model, newdata)$response
  if (is.factor(answer)) as.character(answer) else answer
}

# Models of parsnip, alone and in a workflow
is_classifier <- function(model) {
  mode <- if (inherits(model, "workflow")) model$fit$fit$spec$mode else model$spec$mode
  if (is.null(mode)) refuse("the ", class(model)[1], " was not fitted; call fit() first.")
  mode == "classification"
}

#' @export
class_probabilities.model_fit <- function(model, newdata) {
  if (!is_classifier(model)) return(NULL)
  chances <- stats::predict(model, newdata, type = "prob")
  by_class(chances, sub("^\\.pred_", "", names(chances)))
}

#' @export
class_probabilities.workflow <- class_probabilities.model_fit

#' @export
predict_label.model_fit <- function(model, newdata, ...) {
  if (!is_classifier(model)) return(NextMethod())
  as.character(stats::predict(model, newdata, type = "class")[[1]])
}

#' @export
predict_label.workflow <- predict_label.model_fit
