"""Adversarial random forests as joint models: mixtures over leaves in which the features are independent."""
