test_that("random columns of every kind with NA round-trip identically", {
  skip_if_no_mcce()
  set.seed(28)
  for (n in c(0, 1, 2, 3, 7, 50, 1000, sample(20, 20, TRUE))) {
    data <- random_frame(n)
    again <- crossed(data)
    for (name in names(data)) expect_identical(again[[name]], data[[name]], label = paste(name, "of", n, "rows"))
    expect_identical(again, data)
    expect_identical(bits(again$integer64), bits(data$integer64))
  }
})

test_that("missing values that the default conversion loses are kept", {
  skip_if_no_mcce()
  data <- data.frame(
    whole = c(1L, NA), truth = c(NA, TRUE), number = c(NA, NaN), day = as.Date(c(NA, "2020-02-29")),
    level = addNA(factor(c(NA, "NA")))
  )
  again <- crossed(data)
  expect_identical(again, data)
  expect_identical(is.nan(again$number), c(FALSE, TRUE))
  expect_identical(as.integer(again$level), c(2L, 1L))
})

test_that("integer64 needs no package, and its NA is converted", {
  skip_if_no_mcce()
  bytes <- as.raw(c(1, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, rep(255, 8))) # 2^53 + 1, NA, -1
  data <- list(x = structure(readBin(bytes, "double", 3), class = "integer64"))
  data <- structure(data, class = "data.frame", row.names = 1:3)
  expect_identical(bits(crossed(data)$x), bytes)
})

test_that("time zones and units come from the template", {
  skip_if_no_mcce()
  when <- as.POSIXct(c("2021-03-28 01:30:00", NA), tz = "America/New_York")
  long <- as.difftime(c(1.5, NA), units = "weeks")
  again <- crossed(data.frame(when, long))
  expect_identical(attr(again$when, "tzone"), "America/New_York")
  expect_identical(units(again$long), "weeks")
})

test_that("text in other encodings is converted to the same text", {
  skip_if_no_mcce()
  latin <- "caf\xe9"
  Encoding(latin) <- "latin1"
  expect_identical(crossed(data.frame(x = latin))$x, latin)
})

test_that("columns that cannot be sent raise by name", {
  refused <- function(x, what) {
    data <- structure(list(x), names = "col", class = "data.frame", row.names = 1:2)
    expect_error(mcce:::send_table(data), paste0("column 'col' of data is ", what), class = "mcce_error")
  }
  refused(list(1, 2), "a list")
  refused(matrix(1:4, 2), "a matrix")
  refused(data.frame(a = 1:2), "a data frame")
  refused(as.POSIXlt(c("2020-01-01", "2020-01-02"), tz = "UTC"), "a POSIXlt")
  refused(c(1i, 2i), "of the type complex")
  refused(as.raw(1:2), "of the type raw")
  twice <- structure(list(1, 2), names = c("a", "a"), class = "data.frame", row.names = 1L)
  expect_error(mcce:::send_table(twice), "'a' of data are duplicated", class = "mcce_error")
  expect_error(mcce:::send_table(1:3), "data is a integer; give a data frame", class = "mcce_error")
  unknown <- "\xff\xfe"
  Encoding(unknown) <- "bytes"
  expect_error(mcce:::send_table(data.frame(t = unknown)), "column 't' contains text in an unknown encoding", class = "mcce_error")
})
