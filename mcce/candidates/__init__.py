"""Candidates: the rows from which counterfactuals are chosen, and why a factual has none."""
