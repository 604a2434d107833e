"""The trees of R's rpart, split by split."""

MAX_DEPTH = 30  # numbers of deeper nodes do not fit into R's integers
