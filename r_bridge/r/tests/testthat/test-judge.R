set.seed(2)
people <- data.frame(age = sample(20:69, 600, TRUE))
people$salary <- round(exp(10 + people$age / 100 + 0.5 * rnorm(600)), -2)
people$defaulted_last_year <- runif(600) < 0.2
rich <- function(rows) rows$salary > 40000
fitted <- function(..., model = rich, data = people[1:400, ]) {
  suppressWarnings(mcce(model, data, fixed = "age", decision = TRUE, random_state = 1, keep = FALSE, ...))
}

test_that("suspicious() lists counterfactuals by id, rank and reason", {
  skip_if_no_mcce()
  solvent <- function(rows) rows$salary - 20000 * rows$defaulted_last_year > 20000
  same <- allow("salary", direction = "none")
  found <- explain(fitted(model = solvent), people[1:100, ], sparse = TRUE, n_samples = 300, constraints = same)
  listed <- suspicious(found, level = "all")
  expect_identical(names(listed), c("id", "rank", "severity", "reasons", "words"))
  expect_true(nrow(listed) > 0 && all(listed$id %in% found$index$id))
  expect_identical(nrow(suspicious(found)), 1L) # one line for the feature
  past <- found$changes$id[found$changes$feature == "defaulted_last_year"]
  expect_true(length(past) > 0 && all(past %in% listed$id[grepl("past event", listed$reasons)]))
  expect_error(suspicious(people), "needs the result of explain\\(\\), not a data.frame", class = "mcce_error")
})

test_that("criticise() detects the wrong conditional", {
  skip_if_no_mcce()
  few <- people[c("age", "salary")]
  wrong <- criticise(fitted(data = few[1:400, ], sampler = "norm"), few[401:600, ], random_state = 1)
  expect_identical(wrong$rejected, "salary") # log-normal, and truncated at 40000 by the decision
  expect_identical(wrong$table$feature, "salary")
  expect_false(wrong$table$passes)
  expect_output(print(wrong), "1 rejected at level")
  expect_error(criticise(fitted(), people[401:600, ], n_draw = 9), "did you mean 'n_draws'", class = "mcce_error")
  expect_error(criticise(people), "needs the result of mcce\\(\\)", class = "mcce_error")
})

test_that("suggest_fixed() lists unchangeable facts", {
  skip_if_no_mcce()
  expect_identical(suggest_fixed(people)$feature, c("age", "defaulted_last_year"))
  listed <- suggest_fixed(people, fixed = "age")
  expect_identical(listed$feature, "defaulted_last_year")
  expect_match(listed$reason, "past event")
})

test_that("mcce() computes derived columns", {
  skip_if_no_mcce()
  numbers <- data.frame(rent = 300 + 7 * (1:400 %% 101), income = 1500 + 13 * (1:400 %% 97), savings = 10 * (1:400 %% 89))
  numbers$share <- round(numbers$rent / numbers$income, 2)
  solvent <- function(rows) rows$savings / 1000 - rows$share
  explainer <- suppressWarnings(mcce(
    solvent, numbers,
    decision = c(0.2, Inf), derived = list(share = "rent / income"), random_state = 1, keep = FALSE
  ))
  refused <- numbers[solvent(numbers) < 0.2, ][1:10, ]
  for (sparse in c(TRUE, FALSE)) {
    found <- explain(explainer, refused, sparse = sparse, n_samples = 200, constraints = "share <= 0.4")
    expect_gt(nrow(found$rows), 0)
    expect_equal(found$rows$share, round(found$rows$rent / found$rows$income, 2))
    expect_true(all(found$rows$share <= 0.4))
    expect_false("share" %in% found$changes$feature)
  }
  expect_error(suppressWarnings(mcce(solvent, numbers, fixed = "share", decision = c(0.2, Inf), derived = c(share = "rent / income"))), "fixed and derived", class = "mcce_error")
})

test_that("mcce() accepts a generator and kinds", {
  skip_if_no_mcce()
  joint <- fitted(generator = "forest")
  expect_identical(joint$generator, "AdversarialForest")
  expect_true(all(explain(joint, people[people$salary < 30000, ][1:3, ], n_samples = 100)$rows$salary > 40000))
  expect_error(criticise(joint, people), "a AdversarialForest has no conditionals. Use a chain", class = "mcce_error")
  expect_error(fitted(generator = "forrest"), "did you mean 'forest'", class = "mcce_error")
  rounded <- transform(people, salary = round(salary, -4))
  by_level <- fitted(data = rounded, kinds = c(salary = "categorical"))
  found <- suppressWarnings(explain(by_level, rounded[rounded$salary < 30000, ][1:20, ], sparse = TRUE, n_samples = 200))
  expect_true(all(found$rows$salary %in% rounded$salary))
  expect_error(fitted(kinds = list(salary = "number")), "salary", class = "mcce_error")
})
