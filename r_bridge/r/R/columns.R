# Data frames for Python and back, without changing a value. Columns travel as bytes with a mask of missing values, as
# mcce/rcompat/from_r.py describes; class, levels, zone and other attributes are kept in a template and restored.

KINDS <- c("double", "integer", "logical", "character", "factor", "ordered", "Date", "POSIXct")

kind_of <- function(x, name, where) {
  cannot <- function(what, remedy) refuse("column '", name, "' of ", where, " is ", what, "; ", remedy)
  if (is.data.frame(x) || !is.null(dim(x))) cannot("a table itself", "give its columns one by one.")
  if (inherits(x, "POSIXlt")) cannot("a POSIXlt, which is a list", "convert it by as.POSIXct().")
  if (is.list(x)) cannot("a list", "give a column with one value per row.")
  for (class in c("difftime", "integer64")) {
    if (inherits(x, class)) cannot(paste("of the class", class), "convert it by as.double().")
  }
  if (is.factor(x)) {
    if (anyNA(levels(x))) cannot("a factor with the level NA", "name that level, or drop it by factor().")
    return(if (is.ordered(x)) "ordered" else "factor")
  }
  if (is.numeric(unclass(x))) for (kind in c("Date", "POSIXct")) if (inherits(x, kind)) return(kind)
  if (typeof(x) %in% KINDS) return(typeof(x))
  cannot(paste("of the type", typeof(x)), "numbers, logicals, text, factors, dates and times are supported.")
}

# every column's name, kind, type and attributes
template_of <- function(data, where = "data") {
  Map(function(x, name) {
    kept <- attributes(x)
    kept$names <- NULL
    list(name = name, kind = kind_of(x, name, where), type = typeof(x), attributes = kept)
  }, unclass(data), names(data))
}

send_column <- function(x, name, kind) {
  sent <- list(name = name, kind = kind)
  missing <- is.na(unclass(x))
  values <- unclass(x)
  attributes(values) <- NULL
  if (kind %in% c("factor", "ordered")) {
    sent$texts <- join_texts(levels(x), name)
    values <- values - 1L
  } else if (kind == "character") {
    texts <- unique(values[!missing])
    sent$texts <- join_texts(texts, name)
    values <- match(values, texts) - 1L
  } else if (kind == "logical") {
    values <- as.integer(values)
  } else if (kind %in% c("Date", "POSIXct")) {
    values <- as.double(values)
    if (kind == "POSIXct") sent$zone <- zone_of(x)
  }
  values[missing] <- if (is.double(values)) 0 else 0L
  sent$values <- write_bytes(values)
  sent$missing <- if (any(missing)) as.raw(missing) else raw()
  sent
}

join_texts <- function(texts, name) {
  encoded <- enc2utf8(as.character(texts))
  if (any(Encoding(texts) == "bytes" | !validUTF8(encoded))) {
    refuse("column '", name, "' contains text in an unknown encoding; convert it by iconv().")
  }
  writeBin(encoded, raw())
}

write_bytes <- function(x) writeBin(x, raw(), endian = "little")

split_texts <- function(bytes) {
  texts <- readBin(bytes, "character", sum(bytes == 0))
  Encoding(texts) <- "UTF-8"
  texts
}

zone_of <- function(x) {
  zone <- attr(x, "tzone")
  if (is.null(zone) || !nzchar(zone[1])) zone <- suppressWarnings(Sys.timezone())
  if (length(zone) && !is.na(zone[1])) zone[1] else "UTC"
}

as_plain_frame <- function(data, where) {
  if (is.matrix(data)) data <- as.data.frame(data)
  if (!is.data.frame(data)) refuse(where, " is a ", class(data)[1], "; give a data frame.")
  repeated <- unique(names(data)[duplicated(names(data))])
  if (length(repeated)) {
    refuse("column name(s) '", paste(repeated, collapse = "', '"), "' of ", where, " are duplicated; rename them.")
  }
  data
}

send_table <- function(data, where = "data") {
  data <- as_plain_frame(data, where)
  send <- function(x, template) send_column(x, template$name, template$kind)
  sent <- list(n_rows = nrow(data), columns = unname(Map(send, unclass(data), template_of(data, where))))
  labels <- attr(data, "row.names")
  if (is.character(labels)) sent$labels <- join_texts(labels, "row.names") else sent$index <- write_bytes(labels)
  sent
}

# columns get the class and attributes of the template's column of their name
receive_table <- function(sent, template = list()) {
  columns <- lapply(sent$columns, function(one) receive_column(one, sent$n_rows, template[[one$name]]))
  names <- vapply(sent$columns, `[[`, "", "name")
  structure(columns, names = as.character(names), class = "data.frame", row.names = .set_row_names(sent$n_rows))
}

receive_column <- function(sent, n, template = NULL) {
  is_double <- sent$kind %in% c("double", "Date", "POSIXct")
  x <- readBin(sent$values, if (is_double) "double" else "integer", n, endian = "little")
  if (length(sent$missing)) x[sent$missing != 0] <- NA
  if (!is_double && length(sent$texts)) {
    texts <- split_texts(sent$texts)
    x <- x + 1L
    if (is.null(template) && sent$kind != "character") {
      return(factor(x, seq_along(texts), texts, ordered = sent$kind == "ordered"))
    }
    if (!length(template$attributes$levels)) {
      x <- texts[x]
    } else if (!identical(texts, template$attributes$levels)) {
      x <- match(texts, template$attributes$levels)[x]
    }
  }
  if (is.null(template)) return(switch(sent$kind, logical = as.logical(x), character = as.character(x), x))
  if (template$kind == "Date" && sent$kind == "POSIXct") x <- x / 86400
  if (identical(template$type, "integer")) x <- as.integer(x)
  if (identical(template$type, "double")) x <- as.double(x)
  if (template$kind %in% c("logical", "character")) x <- as.vector(x, template$kind)
  attributes(x) <- template$attributes
  x
}
