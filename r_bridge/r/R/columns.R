# Convert data frames for Python and back without changing a value; the Python part is mcce/rcompat/columns.py.
#
# A column is sent as its kind, its values as bytes, one byte per row that marks missing values, and the texts of codes.
# Attributes that Python does not need (class, levels, zone, units, labels) are kept in a template and restored in the
# result.

SECONDS <- c(secs = 1, mins = 60, hours = 3600, days = 86400, weeks = 604800)
NO_INTEGER64 <- as.raw(c(0, 0, 0, 0, 0, 0, 0, 0x80))

kind_of <- function(x, name, where) {
  cannot <- function(what, remedy) refuse("column '", name, "' of ", where, " is ", what, "; ", remedy)
  if (inherits(x, "POSIXlt")) cannot("a POSIXlt, which is a list", "convert it by as.POSIXct().")
  if (is.data.frame(x)) cannot("a data frame itself", "give its columns one by one.")
  if (!is.null(dim(x))) cannot("a matrix or an array", "give its columns one by one.")
  if (is.list(x)) cannot("a list", "give a column with one value per row.")
  if (inherits(x, "integer64") && is.double(x)) return("integer64")
  if (is.factor(x)) return(if (is.ordered(x)) "ordered" else "factor")
  is_number <- is.double(x) || is.integer(x)
  for (kind in c("Date", "POSIXct", "difftime")) if (is_number && inherits(x, kind)) return(kind)
  switch(typeof(x),
    logical = , integer = , double = , character = typeof(x),
    cannot(paste("of the type", typeof(x)), "numbers, logicals, text, factors, dates and durations are supported.")
  )
}

# all attributes of a column, without its values
template_of <- function(data, where = "data") {
  Map(function(x, name) {
    kept <- attributes(x)
    kept$names <- NULL
    list(name = name, kind = kind_of(x, name, where), attributes = kept, type = typeof(x))
  }, unclass(data), names(data))
}

send_column <- function(x, template) {
  kind <- template$kind
  sent <- list(name = template$name, kind = kind, unit = template$unit)
  missing <- if (kind == "integer64") {
    bytes <- matrix(writeBin(as.double(unclass(x)), raw(), endian = "little"), 8)
    colSums(bytes != NO_INTEGER64) == 0
  } else {
    is.na(unclass(x))
  }
  values <- unclass(x)
  attributes(values) <- NULL
  states <- as.raw(missing)
  if (kind %in% c("factor", "ordered")) {
    labels <- enc2utf8(levels(x))
    sent$na_level <- match(NA, labels, 0L) - 1L
    labels[is.na(labels)] <- ""
    sent$texts <- writeBin(labels, raw())
    values <- values - 1L
  } else if (kind == "character") {
    labels <- unique(values[!missing])
    refuse_bytes(labels, template$name)
    sent$texts <- writeBin(enc2utf8(labels), raw())
    values <- match(values, labels) - 1L
  } else if (kind %in% c("double", "Date", "POSIXct", "difftime")) {
    values <- as.double(values)
    states[is.nan(values)] <- as.raw(2)
    sent$seconds <- switch(kind, Date = 86400, difftime = SECONDS[[attr(x, "units")]], 1)
    if (kind == "POSIXct") sent$zone <- zone_of(x)
  } else if (kind == "logical") {
    values <- as.integer(values)
  }
  if (kind != "integer64") values[missing] <- if (is.double(values)) 0 else 0L
  sent$values <- writeBin(values, raw(), endian = "little")
  sent$states <- if (any(missing)) states else raw()
  sent
}

refuse_bytes <- function(texts, name) {
  unreadable <- Encoding(texts) == "bytes" | !validUTF8(enc2utf8(texts))
  if (any(unreadable)) refuse("column '", name, "' contains text in an unknown encoding; convert it by iconv().")
}

zone_of <- function(x) {
  zone <- attr(x, "tzone")
  if (is.null(zone) || !nzchar(zone[1])) zone <- suppressWarnings(Sys.timezone())
  if (length(zone) && !is.na(zone[1])) zone[1] else "UTC"
}

receive_column <- function(values, states, texts, n, template) {
  kind <- template$kind
  if (kind == "integer64") {
    bytes <- matrix(values, 8)
    if (length(states)) bytes[, states != 0] <- NO_INTEGER64
    x <- readBin(as.vector(bytes), "double", n, endian = "little")
  } else if (kind %in% c("double", "Date", "POSIXct", "difftime")) {
    x <- readBin(values, "double", n, endian = "little")
    if (length(states)) {
      x[states == 1] <- NA_real_
      x[states == 2] <- NaN
    }
    if (template$type == "integer") x <- as.integer(x)
  } else {
    x <- readBin(values, "integer", n, endian = "little")
    if (kind %in% c("factor", "ordered", "character")) x <- x + 1L
    if (length(states)) x[states != 0] <- NA_integer_
    if (kind == "character") x <- split_texts(texts)[x]
    if (kind == "logical") x <- as.logical(x)
  }
  attributes(x) <- template$attributes
  x
}

# split texts that are terminated by zero bytes
split_texts <- function(bytes) {
  texts <- readBin(bytes, "character", sum(bytes == 0))
  Encoding(texts) <- "UTF-8"
  texts
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

# encode a table for Python; `template` sets the unit of dates and the expected columns and kinds
send_table <- function(data, where = "data", template = NULL) {
  data <- as_plain_frame(data, where)
  described <- template_of(data, where)
  for (name in intersect(names(template), names(described))) described[[name]]$unit <- template[[name]]$unit
  sent <- list(n_rows = nrow(data), columns = unname(Map(send_column, unclass(data), described)))
  names <- attr(data, "row.names")
  if (is.character(names)) {
    sent$labels <- writeBin(enc2utf8(names), raw())
  } else {
    sent$index <- writeBin(as.integer(names), raw(), endian = "little")
  }
  sent
}

# decode rows from Python as a data frame with the columns of a template
receive_parts <- function(parts, n, template) {
  columns <- lapply(seq_along(template), function(j) {
    receive_column(parts[[3 * j - 2]], parts[[3 * j - 1]], parts[[3 * j]], n, template[[j]])
  })
  as_frame(columns, vapply(template, `[[`, "", "name"), n)
}

receive_table <- function(sent, template = list()) {
  columns <- lapply(sent$columns, function(each) {
    known <- template[[each$name]]
    if (is.null(known)) known <- plain_template(each)
    receive_column(each$values, each$states, each$texts, sent$n_rows, known)
  })
  as_frame(columns, vapply(sent$columns, `[[`, "", "name"), sent$n_rows)
}

plain_template <- function(sent) {
  kept <- switch(sent$kind,
    factor = list(levels = split_texts(sent$texts), class = "factor"),
    ordered = list(levels = split_texts(sent$texts), class = c("ordered", "factor"))
  )
  list(name = sent$name, kind = sent$kind, attributes = kept, type = "double")
}

as_frame <- function(columns, names, n) {
  structure(columns, names = as.character(names), class = "data.frame", row.names = .set_row_names(n))
}

receive_ids <- function(sent) {
  if (is.null(sent$labels)) readBin(sent$index, "integer", length(sent$index) / 4, endian = "little") else split_texts(sent$labels)
}
