Sys.setenv(TZ = "Europe/Oslo") # the time zone that R detects depends on the machine

# A data frame of every kind of column, with NA at random positions.
random_frame <- function(n) {
  with_na <- function(x) {
    if (n) x[sample(n, sample(0:n, 1))] <- NA
    x
  }
  words <- c("", "a", "NA", "\u00e9\u00df\u6c34", "two words", "\U1F600")
  long <- function(x) structure(x, class = "integer64")
  data <- list(
    double = with_na(ifelse(runif(n) < 0.2, NaN, rnorm(n) * 10^sample(-300:300, n, TRUE))),
    infinite = with_na(sample(c(Inf, -Inf, 0, 1), n, TRUE)),
    integer = with_na(sample(c(-.Machine$integer.max, 0L, .Machine$integer.max), n, TRUE)),
    logical = with_na(sample(c(TRUE, FALSE), n, TRUE)),
    character = with_na(sample(words, n, TRUE)),
    factor = with_na(factor(sample(words, n, TRUE), levels = sample(words))),
    ordered = with_na(factor(sample(letters, n, TRUE), levels = sample(letters), ordered = TRUE)),
    na_level = with_na(addNA(factor(sample(c(words, NA), n, TRUE), words))),
    date = with_na(as.Date("1970-01-01") + sample(-200000:200000, n, TRUE)),
    whole_date = with_na(structure(sample(-9999:9999, n, TRUE), class = "Date")),
    half_date = with_na(as.Date("2000-01-01") + runif(n) * 1000),
    time = with_na(as.POSIXct("2020-02-29 12:00:00", tz = "Europe/Oslo") + runif(n) * 1e7),
    whole_time = with_na(structure(sample(1e9, n, TRUE), class = c("POSIXct", "POSIXt"), tzone = "UTC")),
    local_time = with_na(structure(round(runif(n) * 1e9), class = c("POSIXct", "POSIXt"))),
    duration = with_na(as.difftime(runif(n), units = sample(c("secs", "mins", "hours", "days", "weeks"), 1))),
    whole_duration = with_na(as.difftime(as.double(sample(100, n, TRUE)), units = "hours")),
    labelled = with_na(structure(as.double(sample(9, n, TRUE)), label = "what it is")),
    integer64 = long(readBin(as.raw(sample(0:255, 8 * n, TRUE)), "double", n))
  )
  structure(data, class = "data.frame", row.names = .set_row_names(n))
}

crossed <- function(data) {
  reply <- mcce:::call_python("round_trip", mcce:::send_table(data))
  mcce:::receive_table(reply, mcce:::template_of(data))
}

bits <- function(x) writeBin(as.double(unclass(x)), raw())
