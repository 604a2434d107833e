people <- local({
  set.seed(1)
  n <- 300
  age <- sample(20:65, n, TRUE)
  school <- sample(0:2, n, TRUE)
  data.frame(
    age = age, school = factor(c("none", "school", "degree")[school + 1], c("none", "school", "degree"), ordered = TRUE),
    salary = round(20 + 8 * school + age / 5 + rnorm(n, 0, 3))
  )
})
rich <- function(rows) rows$salary / 80
poor <- people[people$school == "none" & people$salary < 30, ][1:4, ]
explainer <- NULL
fitted <- function() {
  if (is.null(explainer)) {
    explainer <<- mcce(
      rich, people,
      fixed = "age", graph = "age -> school; age, school -> salary", sampler = "parametric", random_state = 1
    )
  }
  explainer
}

test_that("recourse() equals that of the engine", {
  skip_if_no_mcce()
  found <- recourse(fitted(), poor, actions = "school", assurance = 0.7, keep = 0.5, n_samples = 200)
  expect_gt(nrow(found$rows), 1)
  expect_true(all(found$measures$p_valid >= 0.65))
  expect_setequal(found$changes$role, c("action", "consequence"))
  expect_setequal(found$changes$feature[found$changes$role == "action"], "school")
  expect_identical(as.data.frame(found, what = "consequences"), found$consequences)
  expect_identical(unique(found$consequences$feature), "salary")
  expect_match(found$sentences[[as.character(found$index$id[1])]], "What usually follows: salary")
  file <- tempfile(fileext = ".csv")
  write.csv(people, file)
  python <- reticulate::py_run_string(paste0("
import pandas as pd
import mcce
levels = pd.CategoricalDtype(['none', 'school', 'degree'], ordered=True)
people = pd.read_csv('", file, "', index_col=0).astype({'school': levels, 'salary': float})
graph = 'age -> school; age, school -> salary'
made = mcce.MCCE(lambda rows: rows['salary'] / 80, fixed=['age'], graph=graph, sampler='parametric', random_state=1)
poor = people.loc[[", paste(rownames(poor), collapse = ", "), "]]
own = made.fit(people).recourse(poor, ['school'], assurance=0.7, keep=0.5, n_samples=200)
printed = own.measures['p_valid'].tolist(), own.frame['salary'].tolist(), own.consequences['high'].tolist()
"), local = TRUE)
  expect_equal(found$measures$p_valid, unlist(python$printed[[1]]))
  expect_equal(found$rows$salary, unlist(python$printed[[2]]))
  expect_equal(as.numeric(found$consequences$high), unlist(python$printed[[3]]))
})

test_that("invalid arguments of recourse() raise in R syntax", {
  skip_if_no_mcce()
  expect_error(recourse(fitted(), poor, sparse = TRUE), "recourse\\(\\) has no argument 'sparse'", class = "mcce_error")
  expect_error(recourse(fitted(), poor, actions = "age"), "actions names 'age', which is fixed", class = "mcce_error")
  expect_error(recourse(fitted(), poor, takes = c(school = "soon")), "takes of 'school' is 'soon'", class = "mcce_error")
  expect_error(recourse(rich, poor), "recourse\\(\\) needs the result of mcce\\(\\), not a function", class = "mcce_error")
  plain <- mcce(rich, people, fixed = "age", sampler = "parametric", random_state = 1)
  expect_error(recourse(plain, poor), "recourse needs a causal graph.*fit the explainer with graph", class = "mcce_error")
})

test_that("counterfactuals have no consequences, and results of recourse can be saved", {
  skip_if_no_mcce()
  expect_null(explain(fitted(), poor[1, ], n_samples = 50)$consequences)
  found <- recourse(fitted(), poor, actions = "school", assurance = 0.7, n_samples = 200)
  file <- tempfile(fileext = ".rds")
  saveRDS(found, file)
  again <- readRDS(file)
  expect_identical(again$rows, found$rows)
  expect_identical(again$consequences, found$consequences)
})
