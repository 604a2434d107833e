"""Sentences, letters, pages and pictures of a `mcce.Counterfactuals`."""

from mcce.report import plots
from mcce.report.principal import reasons_sentence
from mcce.report.result_letters import letter, letters, unlettered
from mcce.report.words import answers, sentences

__all__ = ["answers", "letter", "letters", "plots", "reasons_sentence", "sentences", "unlettered"]
