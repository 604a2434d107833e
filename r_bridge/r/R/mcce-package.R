#' mcce: counterfactual explanations for any model on tabular data
#'
#' Given a table, a model, a wanted decision and features that may not change, [mcce()] learns how rows look that get
#' the wanted decision, and [explain()] finds for each refused row one that would have got it and differs in little.
#' [explain_mcce()] has the call and, with the same seeds, the numbers of the R package mcceR.
#'
#' The engine is the Python package of the same name; [install_mcce()] installs it. Columns cross as bytes with a mask
#' of what is missing, never by the default conversion of data frames, so that every value comes back as it was. For
#' the same reason any reticulate from 1.28 on will do, also with NumPy 2, which its older versions cannot convert.
#'
#' @name mcce-package
#' @keywords internal
NULL

# what a session has one of: the module of Python that is called, and how far a call has come
the <- new.env(parent = emptyenv())
