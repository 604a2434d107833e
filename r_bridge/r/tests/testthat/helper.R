# MCCE_REQUIRE_R makes a missing engine an error
skip_if_no_mcce <- function() {
  if (!nzchar(Sys.getenv("MCCE_REQUIRE_R"))) testthat::skip_if_not(has_mcce(), "the engine: install_mcce()")
}

people <- local({
  set.seed(1)
  n <- 400
  age <- sample(20:69, n, TRUE)
  data.frame(
    age = age, job = factor(sample(c("clerk", "cook", "pilot"), n, TRUE)),
    grade = factor(sample(c("low", "mid", "high"), n, TRUE), c("low", "mid", "high"), ordered = TRUE),
    owns = runif(n) < 0.5, town = sample(c("Oslo", "Bergen"), n, TRUE), income = round(rnorm(n, 30 + age / 2, 8), 1),
    since = as.Date("2000-01-01") + sample(7000, n, TRUE)
  )
})
rich <- function(rows) rows$income / 100
refused <- people[people$income < 50, ][1:5, ]
fit <- function(model = rich, data = people, fixed = "age", decision = c(0.6, 1), ...) {
  mcce(model, data, fixed = fixed, decision = decision, random_state = 1, ...)
}

# the lines that a fresh R process prints
in_fresh_r <- function(code, env = character()) {
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  paths <- sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = ""))
  writeLines(c(paths, "library(mcce)", code), script)
  suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE, stderr = TRUE, env = env))
}
