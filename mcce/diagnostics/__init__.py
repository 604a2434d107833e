"""Diagnostics of generated rows and of counterfactuals."""

from mcce.diagnostics.conditionals import Comparison, conditionals
from mcce.diagnostics.correlations import Correlations, compare_correlations, correlations
from mcce.diagnostics.diagnose import Diagnostics
from mcce.diagnostics.disclosure_risk.disclosure import Disclosure, disclosure
from mcce.diagnostics.discriminator import Discriminator, discriminator
from mcce.diagnostics.evaluation import Evaluation, evaluate
from mcce.diagnostics.marginals import marginal_distances
from mcce.diagnostics.propensity import PMSE, pmse
from mcce.diagnostics.sensitivity import Sensitivity
from mcce.diagnostics.stability import Stability, stability
from mcce.diagnostics.tables import utility_tables
from mcce.diagnostics.trade_off import TradeOff
from mcce.judging.criticism import Criticism
from mcce.judging.feature import FeatureCriticism

__all__ = [
    "PMSE",
    "Comparison",
    "Correlations",
    "Criticism",
    "Diagnostics",
    "Disclosure",
    "Discriminator",
    "Evaluation",
    "FeatureCriticism",
    "Sensitivity",
    "Stability",
    "TradeOff",
    "compare_correlations",
    "conditionals",
    "correlations",
    "disclosure",
    "discriminator",
    "evaluate",
    "marginal_distances",
    "pmse",
    "stability",
    "utility_tables",
]
