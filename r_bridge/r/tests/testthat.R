library(testthat)
library(mcce)

test_check("mcce")
