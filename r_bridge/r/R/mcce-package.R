#' mcce: counterfactual explanations for any model on tabular data
#'
#' Given a table, a model, a wanted decision and fixed features, [mcce()] fits a model of the rows with the wanted
#' decision, and [explain()] finds for each refused row a similar row that would have been accepted. [explain_mcce()]
#' has the call and, with the same seeds, the results of the R package mcceR.
#'
#' The engine is the Python package of the same name; [install_mcce()] installs it. Columns are transferred as bytes with
#' a mask of missing values, not by reticulate's conversion of data frames, so every value is returned unchanged. For
#' the same reason any reticulate from 1.28 can be used, also with NumPy 2, which older versions cannot convert.
#'
#' @name mcce-package
#' @keywords internal
NULL

# state of a session: the imported Python module, and the progress of a call
the <- new.env(parent = emptyenv())
