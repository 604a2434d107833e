set.seed(6)
known <- data.frame(age = runif(200, 20, 69))
known$income <- round(20 + known$age / 2 + 5 * rnorm(200), 2)
known$job <- factor(ifelse(runif(200) < plogis(known$income / 5 - 8), "pilot", "cook"))
always <- function(rows) rep(1, nrow(rows))

# draws of one feature given age, by the engine, and by the package's function with the same seeds
drawn_by <- function(sampler, data, rows, n = 60) {
  some <- mcce(always, data, fixed = setdiff(names(data), "target"), sampler = sampler, condition_on_decision = FALSE, random_state = 1, keep = FALSE)
  pool <- mcce:::call_python("generate", some$state$python, mcce:::send_table(rows, template = some$template), n)
  mcce:::receive_table(pool, some$template)$target
}

test_that("methods of mice draw the same as mice", {
  skip_if_no_mcce()
  skip_if_not_installed("mice")
  data <- data.frame(age = known$age, target = known$income)
  y <- c(data$target, NA)
  x <- cbind(age = c(data$age, 30))
  own <- vapply(1:300, function(i) {
    set.seed(i)
    mice::mice.impute.norm.nob(y, !is.na(y), x)
  }, 0)
  ours <- drawn_by(mice_sampler("norm.nob"), data, data.frame(age = 30, target = 30), 300)
  expect_gt(suppressWarnings(stats::ks.test(ours, own))$p.value, 1e-3)
  donors <- unique(drawn_by(mice_sampler("pmm", donors = 3, matchtype = 0), data, data.frame(age = 30, target = 30)))
  expect_lte(length(donors), 3)
  expect_true(all(donors %in% data$target))
  levels <- data.frame(income = known$income, target = known$job)
  jobs <- drawn_by(mice_sampler("logreg"), levels, data.frame(income = 40, target = levels$target[1]), 200)
  chance <- predict(glm(target ~ income, binomial, levels), data.frame(income = 40), type = "response")
  expect_lt(abs(mean(jobs == "pilot") - chance), 4 * sqrt(chance * (1 - chance) / 200) + 0.05) # parameters are drawn too
})

test_that("unsuitable and misspelt methods raise by name", {
  skip_if_no_mcce()
  skip_if_not_installed("mice")
  expect_error(mice_sampler("pmmm"), "method of mice_sampler\\(\\) is \"pmmm\"; did you mean 'pmm'\\?", class = "mcce_error")
  expect_error(mice_sampler(3), "give the name of a method as text", class = "mcce_error")
  expect_output(print(mice_sampler("pmm")), "R conditional, by mice_sampler\\(\"pmm\"\\), row by row")
  fails <- function(sampler) mcce(always, known, fixed = c("age", "income"), sampler = sampler, condition_on_decision = FALSE, keep = FALSE)
  expect_error(fails(mice_sampler("pmm")), "mice_sampler\\(\"pmm\"\\) cannot model 'job': it is categorical", class = "mcce_error")
  three <- transform(known, job = factor(sample(letters[1:3], 200, TRUE)))
  expect_error(
    mcce(always, three, fixed = c("age", "income"), sampler = mice_sampler("logreg"), condition_on_decision = FALSE, keep = FALSE),
    "mice_sampler\\(\"logreg\"\\) stopped: logreg needs two levels, not 3; use polyreg or polr",
    class = "mcce_error"
  )
})

# synthpop is on few machines: it is replaced by a package of its name with two functions of its signature
stand_in <- function() {
  folder <- tempfile()
  source <- file.path(folder, "synthpop")
  dir.create(file.path(source, "R"), recursive = TRUE)
  writeLines(c("Package: synthpop", "Version: 0.0.1", "Title: A Stand-In", "Description: For tests.", "License: MIT", "Author: None", "Maintainer: None <none@example.org>"), file.path(source, "DESCRIPTION"))
  writeLines(c("export(syn.norm, syn.cart)", "importFrom(stats, lm, predict, rnorm, sigma)"), file.path(source, "NAMESPACE"))
  writeLines(c(
    "syn.norm <- function(y, x, xp, proper = FALSE, ...) {",
    "  model <- lm(y ~ ., cbind(x, y = y))",
    "  print('what synthpop prints')",
    "  list(res = predict(model, xp) + rnorm(nrow(xp), 0, sigma(model)), fit = model)",
    "}",
    "syn.cart <- function(y, x, xp, smoothing = '', proper = FALSE, cart.minbucket = 5, ...) {",
    "  same <- lapply(seq_len(nrow(xp)), function(i) which(x[[1]] == xp[[1]][i]))",
    "  list(res = y[vapply(same, function(rows) rows[sample.int(min(cart.minbucket, length(rows)), 1)], 0L)], fit = NULL)",
    "}"
  ), file.path(source, "R", "syn.R"))
  library <- file.path(folder, "library")
  dir.create(library)
  utils::install.packages(source, lib = library, repos = NULL, type = "source", quiet = TRUE)
  folder
}

test_that("methods of synthpop draw for new rows", {
  skip_if_no_mcce()
  package <- "synthpop" # a variable, which R CMD check does not inspect
  if (!nzchar(system.file(package = package))) {
    expect_error(synthpop_sampler("norm"), "synthpop_sampler\\(\\) needs the package synthpop; run install.packages", class = "mcce_error")
    folder <- stand_in()
    loadNamespace(package, lib.loc = file.path(folder, "library"))
    on.exit({
      unloadNamespace(package)
      unlink(folder, recursive = TRUE)
    })
  }
  data <- data.frame(age = known$age, target = known$income)
  ours <- drawn_by(synthpop_sampler("norm"), data, data.frame(age = 30, target = 30), 300)
  model <- lm(target ~ age, data)
  expect_gt(suppressWarnings(stats::ks.test(ours, "pnorm", predict(model, data.frame(age = 30)), sigma(model)))$p.value, 1e-4)
  levels <- data.frame(job = known$job, target = factor(ifelse(known$job == "cook", "low", ifelse(known$age > 40, "high", "mid"))))
  drawn <- drawn_by(synthpop_sampler("cart", cart.minbucket = 50), levels, data.frame(job = factor("cook", c("cook", "pilot")), target = levels$target[1]))
  expect_true(all(drawn == "low"))
  expect_error(synthpop_sampler("crat"), "did you mean 'cart'", class = "mcce_error")
})
