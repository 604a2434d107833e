test_that("counterfactuals have the wanted decision, the fixed values and exactly the columns of the data", {
  skip_if_no_mcce()
  explainer <- fit()
  expect_output(print(explainer), "400 rows, 7 columns")
  expect_identical(summary(explainer)$may_change, c(FALSE, rep(TRUE, 6)))
  for (sparse in c(FALSE, TRUE)) {
    rows <- explain(explainer, refused, sparse = sparse, n_samples = 200, n_counterfactuals = 2)
    rows <- rows$rows
    expect_true(all(rich(rows) >= 0.6))
    expect_identical(lapply(rows, attributes), lapply(people, attributes))
    expect_identical(lapply(rows, typeof), lapply(people, typeof))
    expect_true(all(rows$age %in% refused$age))
  }
})

test_that("one seed gives one answer, for other rows and orders of columns too, and R's stream is unchanged", {
  skip_if_no_mcce()
  set.seed(9)
  before <- .Random.seed
  explainer <- fit()
  expect_identical(.Random.seed, before)
  rows <- explain(explainer, refused, n_samples = 100)$rows
  expect_identical(explain(fit(), refused, n_samples = 100)$rows, rows)
  expect_identical(explain(explainer, refused[3, ], n_samples = 100)$rows, rows[3, ], ignore_attr = TRUE)
  expect_identical(explain(explainer, refused[rev(names(refused))], n_samples = 100)$rows, rows)
})

test_that("tables, texts and pictures of a result agree with each other", {
  skip_if_no_mcce()
  found <- explain(fit(), refused, sparse = TRUE, n_samples = 200)
  all <- as.data.frame(found)
  expect_identical(all[names(people)], found$rows)
  expect_identical(all$id, as.integer(rownames(refused)))
  expect_identical(as.integer(table(factor(found$changes$id, all$id))), all$L0)
  expect_equal(all$prediction, rich(found$rows))
  expect_output(print(found), "5 of 5 rows explained")
  expect_output(print(found, id = all$id[1]), "^With income .* instead of ")
  expect_error(print(found, id = 12345), "12345", class = "mcce_InputError")
  figures <- summary(found)
  expect_identical(figures$value[figures$of == "explained"], 5)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(found), found)
  expect_identical(plot(found, id = all$id[1]), found)
})

test_that("rows that have the decision are reported, by their names", {
  skip_if_no_mcce()
  named <- people[order(-people$income), ][1:2, ]
  rownames(named) <- c("Ada", "Bo")
  found <- explain(fit(), named, n_samples = 50)
  expect_identical(found$unexplained$id, c("Ada", "Bo"))
  expect_identical(found$unexplained$code, c("already", "already"))
  expect_identical(lapply(found$rows, attributes), lapply(people, attributes))
})

test_that("constraints and derived columns hold", {
  skip_if_no_mcce()
  two_years <- as.difftime(700, units = "days")
  limits <- list(allow("job", levels = "pilot"), allow("since", max_step = two_years), "income <= 80")
  rows <- explain(fit(), refused, n_samples = 500, constraints = limits)$rows
  expect_true(all(rows$job == "pilot" & rows$income <= 80))
  expect_true(all(abs(as.double(rows$since - refused$since)) <= 700))
  expect_output(print(limits[[1]]), "job: levels pilot")
  expect_error(fit(constraints = list(3)), "a constraint is a numeric", class = "mcce_error")
  doubled <- transform(people, double = 2 * income)
  found <- explain(fit(data = doubled, derived = list(double = "2 * income")), doubled[1:20, ], n_samples = 100)
  expect_equal(found$rows$double, 2 * found$rows$income)
})

test_that("missing values reach the model and the result", {
  skip_if_no_mcce()
  holes <- people
  for (name in c("town", "since", "owns", "job")) holes[[name]][seq(1, 400, 3)] <- NA
  seen <- list()
  score <- function(rows) {
    seen[[length(seen) + 1]] <<- rows
    rich(rows)
  }
  found <- explain(fit(score, holes), holes[holes$income < 50, ][1:20, ], n_samples = 100)
  expect_identical(seen[[1]], holes)
  expect_true(anyNA(found$rows$town))
  expect_identical(lapply(found$rows, attributes), lapply(people, attributes))
})

test_that("a wanted class is a decision, and may be a logical, a number or a level", {
  skip_if_no_mcce()
  answers <- list(
    yes = function(rows) ifelse(rows$income > 60, "yes", "no"), "TRUE" = function(rows) rows$income > 60,
    "4" = function(rows) factor(ifelse(rows$income > 60, 4, 10)), "1" = function(rows) as.double(rows$income > 60)
  )
  decisions <- list("yes", TRUE, one_of(4), 1L)
  for (j in seq_along(answers)) {
    found <- explain(fit(answers[[j]], decision = decisions[[j]]), refused, n_samples = 50)
    expect_true(all(found$rows$income > 60))
    expect_identical(as.character(found$measures$prediction), rep(names(answers)[j], 5))
  }
  model <- glm(income > 60 ~ age + job + since, binomial, people)
  used <- people[c("age", "job", "since")]
  found <- explain(fit(model, used, decision = TRUE), used[predict(model) < 0, ][1:5, ], n_samples = 100)
  expect_true(all(predict(model, found$rows) > 0))
  expect_output(print(interval(0, 0.1, closed = "left", of = "bad")), "score of class 'bad' from 0 to 0.1 .closed: left")
  expect_error(fit(decision = list()), "decision is a list of length 0", class = "mcce_error")
})

test_that("errors and warnings of the engine are conditions of R", {
  skip_if_no_mcce()
  expect_error(fit(fixed = "agee"), "'agee'.*did you mean 'age'", class = "mcce_InputError")
  expect_error(fit(function(rows) stop("out of order")), "out of order", class = "mcce_error")
  expect_error(fit(function(rows) 1:3), "expected 400", class = "mcce_error")
  expect_error(fit(sampler = "carrt"), "did you mean 'cart'", class = "mcce_error")
  expect_error(fit(sampler = sampler("cart", min_laef = 3)), "did you mean 'min_leaf'", class = "mcce_error")
  expect_error(fit(sampler = list("cart")), "without names", class = "mcce_error")
  expect_error(fit(fixd = "y"), "mcce\\(\\) has no argument 'fixd'; did you mean 'fixed'\\?", class = "mcce_error")
  expect_error(interval(0, 1, clsoed = "left"), "did you mean 'closed'", class = "mcce_error")
  expect_error(allow("x", lo_w = 3), "did you mean 'low'", class = "mcce_error")
  explainer <- fit()
  expect_error(explain(explainer, refused, sprase = TRUE), "did you mean 'sparse'", class = "mcce_error")
  expect_error(explain(explainer, newdta = refused), "did you mean 'newdata'", class = "mcce_error")
  expect_error(explain(explainer, refused[-1]), "age", class = "mcce_error")
  expect_error(explain(explainer, 3), "newdata is a numeric; give a data frame", class = "mcce_error")
  expect_error(explain(explainer, refused, floor = 0.1), "no effect without sparse", class = "mcce_error")
  expect_error(explain(3), "write dplyr::explain\\(\\)", class = "mcce_error")
  model <- lm(income ~ age + job, people)
  data <- people[c("age", "job", "income")]
  expect_error(fit(model, data), "'income' of data is the response of the lm", class = "mcce_error")
})

test_that("objects live for one session; tables remain", {
  skip_if_no_mcce()
  explainer <- fit()
  found <- explain(explainer, refused, n_samples = 50)
  again <- unserialize(serialize(list(explainer, found), NULL))
  expect_error(explain(again[[1]], refused), "an R session that has ended; fit it again", class = "mcce_error")
  expect_error(summary(again[[2]]), "its tables remain", class = "mcce_error")
  expect_output(print(again[[2]]), "5 of 5 rows explained")
  expect_identical(as.data.frame(again[[2]]), as.data.frame(found))
})

test_that("load_loans() returns columns of R", {
  skip_if_no_mcce()
  loans <- load_loans(5)
  expect_identical(vapply(loans, typeof, ""), c(
    age = "integer", sex = "integer", education = "integer", employment = "integer", years_employed = "integer",
    salary = "integer", defaulted_last_year = "logical", housing = "integer", savings = "integer",
    loan_amount = "integer", default = "logical"
  ))
  expect_s3_class(loans$education, "ordered")
  expect_error(load_loans(-1), "n is -1", class = "mcce_InputError")
})

test_that("names and levels that are R code are data", {
  skip_if_no_mcce()
  folder <- tempfile()
  dir.create(folder)
  before <- setwd(folder)
  on.exit(setwd(before))
  code <- c("pi` + system('touch marker') + `pi", "x\"); system(\"touch marker\"); (\"", "x\nsystem('touch marker')")
  data <- data.frame(as.numeric(1:90), rep(c(1.5, 2, 7, 9, 4), 18), factor(rep(code, 30), code))
  names(data) <- code
  linear <- r_sampler(
    learn = function(x, y) lm(y ~ ., cbind(x, y = y)),
    draw = function(object, newdata, u) predict(object, newdata) + 9 * qnorm(u)
  )
  samplers <- stats::setNames(list(linear, "cart"), c(code[1], "*"))
  explainer <- fit(function(rows) rows[[1]], data, fixed = code[2], decision = c(30, Inf), sampler = samplers)
  rows <- explain(explainer, data[1:2, ], n_samples = 100)$rows
  expect_identical(names(rows), code)
  expect_true(nrow(rows) == 2 && all(rows[[1]] >= 30))
  by_mccer <- explain_mcce(
    NULL, data[1:2, ], data, predict_model = function(model, rows) rows[[1]], fixed_features = code[2],
    c_int = c(30, Inf), generate.K = 100, fit.seed = 1, generate.seed = 2, process.measures = c("validation", "L0")
  )
  expect_true(all(code %in% names(by_mccer$cf)))
  expect_false(file.exists("marker"))
})
