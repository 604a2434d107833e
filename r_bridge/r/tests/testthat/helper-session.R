# Runs code in a fresh R process that finds this package, and returns the lines that it printed; `status` is an attribute
# of lines from a process that failed. `env`: environment variables, as "NAME=value".
in_fresh_r <- function(code, env = character(), attach = TRUE) {
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  source <- nzchar(Sys.getenv("MCCE_R_SOURCE"))
  begin <- c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    if (source) "pkgload::load_all(Sys.getenv('MCCE_R_SOURCE'), quiet = TRUE)" else if (attach) "library(mcce)"
  )
  writeLines(c(begin, code), script)
  suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE, stderr = TRUE, env = env))
}
