"""What is wrong with a conditional, by its scores on rows that it has not seen: tests, where it fails, words."""

from mcce.criticism.feature import FeatureCriticism, criticise_feature
from mcce.criticism.result import Criticism

__all__ = ["Criticism", "FeatureCriticism", "criticise_feature"]
