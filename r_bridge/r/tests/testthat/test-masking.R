# explain() and interval() with packages that have functions of these names, attached before and after this one
for (package in c("dplyr", "generics", "lime", "DALEX", "lubridate")) {
  for (order in c("before", "after")) {
    test_that(paste("explain() works with", package, "attached", order), {
      skip_if_no_mcce()
      skip_if_not(nzchar(system.file(package = package)))
      attach <- c("library(mcce)", sprintf("suppressPackageStartupMessages(library(%s))", package))
      printed <- in_fresh_r(attach = FALSE, c(
        if (order == "before") rev(attach) else attach,
        "data <- data.frame(x = as.double(1:60), y = 1:60 %% 7)",
        "made <- mcce(function(rows) rows$x, data, decision = c(30, 60), random_state = 1)",
        "found <- explain(made, data[1:3, ], n_samples = 50)",
        "cat('CLASS', class(found), nrow(found$rows), '\\n')"
      ))
      expect_identical(trimws(tail(printed, 1)), "CLASS mcce_counterfactuals 3")
    })
  }
}

test_that("explain() of other objects, and an interval of lubridate, raise with a remedy", {
  expect_error(mcce::explain(1:3), "not a integer; for another package, such as dplyr, write dplyr::explain\\(\\)", class = "mcce_error")
  skip_if_not(nzchar(system.file(package = "lubridate")))
  interval <- getExportedValue("lubridate", "interval")
  times <- interval(as.POSIXct("2020-01-01"), as.POSIXct("2020-01-02"))
  expect_error(mcce:::read_decision(times), "of the package lubridate; write mcce::interval\\(\\)", class = "mcce_error")
  skip_if_no_mcce()
  wrong <- "interval\\(\\) of another package, such as lubridate, was called; write mcce::interval\\(\\)"
  expect_error(mcce(function(rows) rows$x, data.frame(x = 1:9), decision = interval(0, 0.5, of = "yes")), wrong, class = "mcce_error")
})
