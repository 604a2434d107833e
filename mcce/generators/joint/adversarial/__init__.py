"""Adversarial random forests: leaves inside which the features are independent, as a joint model."""
