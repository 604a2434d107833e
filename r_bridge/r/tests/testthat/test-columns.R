test_that("columns that cannot be sent raise by name", {
  refused <- function(x, what) {
    data <- structure(list(x), names = "col", class = "data.frame", row.names = 1:2)
    expect_error(mcce:::send_table(data), paste0("column 'col' of data is ", what), class = "mcce_error")
  }
  refused(list(1, 2), "a list")
  refused(matrix(1:4, 2), "a table itself")
  refused(data.frame(a = 1:2), "a table itself")
  refused(as.POSIXlt(c("2020-01-01", "2020-01-02"), tz = "UTC"), "a POSIXlt")
  refused(as.difftime(1:2, units = "mins"), "of the class difftime")
  refused(structure(c(1, 2), class = "integer64"), "of the class integer64")
  refused(addNA(factor(c("a", NA))), "a factor with the level NA")
  refused(c(1i, 2i), "of the type complex")
  twice <- structure(list(1, 2), names = c("a", "a"), class = "data.frame", row.names = 1L)
  expect_error(mcce:::send_table(twice), "'a' of data are duplicated", class = "mcce_error")
  unknown <- "\xff\xfe"
  Encoding(unknown) <- "bytes"
  expect_error(mcce:::send_table(data.frame(t = unknown)), "'t' contains text in an unknown encoding", class = "mcce_error")
})

test_that("the model gets every column as it is in the data, and so does the result", {
  skip_if_no_mcce()
  latin <- "caf\xe9"
  Encoding(latin) <- "latin1"
  set.seed(28)
  n <- 60
  some <- function(x) replace(x, sample(n, 9), NA)
  data <- data.frame(
    id = as.double(1:n),
    infinite = some(rep(c(1e300, -1e-300, 0), 20)), whole = some(sample(c(-.Machine$integer.max, 0L, 7L), n, TRUE)),
    truth = some(runif(n) < 0.5), text = some(sample(c("", "NA", latin, "two words", "\U1F600"), n, TRUE)),
    level = some(factor(sample(c("", "NA", "b"), n, TRUE), c("b", "unused", "NA", ""))),
    rank = some(factor(sample(letters, n, TRUE), rev(letters), ordered = TRUE)),
    day = some(as.Date("1950-01-01") + sample(20000, n, TRUE)),
    whole_day = some(structure(sample(9999L, n, TRUE), class = "Date")),
    time = some(as.POSIXct("2020-02-29 12:00:00", tz = "Europe/Oslo") + round(runif(n) * 1e7)),
    labelled = some(structure(as.double(sample(9, n, TRUE)), label = "what it is"))
  )
  seen <- list()
  score <- function(rows) {
    seen[[length(seen) + 1]] <<- rows
    rows$id / n
  }
  explainer <- fit(score, data, setdiff(names(data), "id"), c(0.5, 1))
  expect_identical(seen[[1]], data)
  rows <- data[1:5, ]
  found <- explain(explainer, rows, n_samples = 30)
  expect_identical(lapply(found$rows, attributes), lapply(data, attributes))
  expect_identical(found$rows[-1], rows[-1], ignore_attr = "label")
})
