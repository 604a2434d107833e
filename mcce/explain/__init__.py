"""From the rows to explain to the rows that explain them: pools of draws, candidates, their order, and the search."""
