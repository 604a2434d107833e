# explain_mcce() of the R package mcce compared with mcceR's, both from R, with R's predict(): the whole call, and without
# the predictions, which take the same time in both.
#
#     Rscript benchmarks/from_r.R
#
# Needs both packages in R's library, and a Python with mcce (RETICULATE_PYTHON). mcce is timed in the second of two
# calls, without compilation. CPU seconds are reported: both programs have one thread, and other load has little effect.

make <- function(n, p, seed) {
  set.seed(seed)
  values <- (matrix(rnorm(n * p), n) + rnorm(n)) / sqrt(2)
  as.data.frame(matrix(round(values, 4), n, dimnames = list(NULL, paste0("x", seq_len(p)))))
}

processor <- function() sum(proc.time()[c("user.self", "sys.self")])

measure <- function(explain, arguments) {
  predicting <- 0
  arguments[[4]] <- function(model, newdata) {
    begun <- processor()
    on.exit(predicting <<- predicting + processor() - begun)
    answer <- predict(model, newdata)
    if (is.list(answer)) answer$predictions else unname(answer)
  }
  begun <- processor()
  found <- do.call(explain, arguments)
  whole <- processor() - begun
  list(found = found, whole = whole, rest = whole - predicting)
}

x_train <- make(2000, 8, 1)
y <- rowSums(x_train) + rnorm(2000)
models <- list(lm = lm(y ~ ., cbind(x_train, y)))
if (requireNamespace("ranger", quietly = TRUE)) {
  models$ranger <- ranger::ranger(y ~ ., cbind(x_train, y), num.trees = 50, num.threads = 1, seed = 1)
}

cat("| model | trees | rows | mcceR, s | mcce, s | times as fast | without predictions: mcceR, s | mcce, s | times | rows equal |\n")
cat("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
for (model in names(models)) {
  for (engine in c("rpart", "ctree")) {
    for (n in if (model == "lm") c(20, 200, 1000) else 20) {
      arguments <- list(
        models[[model]], make(n, 8, 2), x_train, NULL,
        fixed_features = c("x1", "x2"), c_int = c(1, Inf), fit.autoregressive_model = engine, fit.seed = 1,
        generate.seed = 2
      )
      theirs <- measure(mcceR::explain_mcce, arguments)
      measure(mcce::explain_mcce, arguments)
      ours <- measure(mcce::explain_mcce, arguments)
      equal <- all.equal(as.data.frame(theirs$found$cf), ours$found$cf, tolerance = 0, check.attributes = FALSE)
      cat(sprintf(
        "| %s | %s | %d | %.2f | %.2f | %.1f | %.2f | %.2f | %.1f | %s |\n", model, engine, n, theirs$whole, ours$whole,
        theirs$whole / ours$whole, theirs$rest, ours$rest, theirs$rest / ours$rest, if (isTRUE(equal)) "yes" else "no"
      ))
    }
  }
}
