"""The search for counterfactuals: pools of draws, candidates, their order, searches and finishing steps."""
