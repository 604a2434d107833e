"""Whether what a chain generates is realistic, and how good counterfactuals are."""

from mcce.diagnostics.discriminator import Discriminator, discriminator
from mcce.diagnostics.evaluation import Evaluation, evaluate

__all__ = ["Discriminator", "Evaluation", "discriminator", "evaluate"]
