# Runs of mcceR stored with the Python tests (tests/fixtures/parity): one zip of tables per run.

cases_folder <- function() {
  places <- c(Sys.getenv("MCCE_PARITY_CASES"), "../../../../tests/fixtures/parity/cases")
  found <- places[nzchar(places) & dir.exists(places)]
  if (length(found)) normalizePath(found[1])
}

recorded_cases <- function() sub("\\.zip$", "", list.files(cases_folder(), "\\.zip$"))

read_entry <- function(case, entry) {
  connection <- unz(file.path(cases_folder(), paste0(case, ".zip")), entry)
  on.exit(close(connection))
  readLines(connection, encoding = "UTF-8", warn = FALSE)
}

# Python always reads a number as the nearest double; R's parser can be off by one bit.
doubles <- function(texts) {
  reader <- reticulate::py_run_string(paste(
    "def doubles(texts):",
    "    import struct",
    "    return bytearray(struct.pack('<%dd' % len(texts), *map(float, texts)))",
    sep = "\n"
  ), local = TRUE, convert = FALSE)
  bytes <- reticulate::py_to_r(reader["doubles"](as.list(sub("^NA$", "nan", texts))))
  readBin(bytes, "double", length(texts), endian = "little")
}

read_case <- function(case) {
  meta <- jsonlite::fromJSON(paste(read_entry(case, "meta.json"), collapse = "\n"), simplifyVector = TRUE)
  table <- function(name, columns = meta$columns) {
    cells <- utils::read.csv(text = read_entry(case, paste0(name, ".csv")), colClasses = "character", check.names = FALSE, na.strings = character())
    for (each in names(cells)) {
      known <- columns[[each]]
      cells[[each]] <- if (is.null(known)) {
        doubles(cells[[each]])
      } else {
        switch(known$type,
          factor = factor(cells[[each]], known$levels),
          integer = as.integer(cells[[each]]),
          double = doubles(cells[[each]])
        )
      }
    }
    cells
  }
  list(meta = meta, table = table)
}
