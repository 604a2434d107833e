#' mcce: counterfactual explanations for any model on tabular data
#'
#' Given a table, a model, a wanted decision and fixed features, [mcce()] fits a model of the rows with the wanted
#' decision, and [explain()] finds for each refused row a similar row that would have been accepted. [explain_mcce()]
#' has the call and, with the same seeds, the numbers of the R package mcceR.
#'
#' The engine is the Python package of the same name; [install_mcce()] installs it. Models stay in R. Objects live for
#' one session: save the call, not the object.
#'
#' @name mcce-package
#' @keywords internal
NULL

the <- new.env(parent = emptyenv()) # the imported Python module of this session
