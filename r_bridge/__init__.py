"""The bridge to R: all code that needs rpy2.

1. Conditionals fitted by R, for `mcce.ChainModel` and `mcce.MCCE`: `RpartSampler`, `PartyCtreeSampler`, any function
   of R by `RSampler`, the imputation methods of mice by `MiceSampler`, synthpop's by `SynthpopSampler`.
2. `RModel`: explain a model that was fitted in R.
3. `explain_mcce`: mcceR's own call, in R. `check_parity`: the same call in R and in mcce, compared stage by stage, also
   as the command ``mcce parity``. `compare_samplers`: a test of equal distributions of two samplers without a common
   seed.
4. `to_r`, `from_r`: conversion of tables without loss.

This package imports `mcce`; `mcce` never imports it. Importing it needs neither R nor rpy2 (``pip install 'mcce[r]'``
installs rpy2); the first call that needs them raises an error if one is missing.
"""

from r_bridge.columns import RColumn
from r_bridge.compare import SamplerComparison, compare_samplers
from r_bridge.errors import RBridgeError, RWarning
from r_bridge.frames import from_r, to_r
from r_bridge.functions import MiceSampler, RSampler, SynthpopSampler
from r_bridge.mccer import explain_mcce
from r_bridge.models import RModel
from r_bridge.parity import check_parity
from r_bridge.parity_report import ParityReport
from r_bridge.samplers import PartyCtreeSampler, RpartSampler
from r_bridge.session import arithmetic, r_is_available, versions

__all__ = [
    "MiceSampler",
    "ParityReport",
    "PartyCtreeSampler",
    "RBridgeError",
    "RColumn",
    "RModel",
    "RSampler",
    "RWarning",
    "RpartSampler",
    "SamplerComparison",
    "SynthpopSampler",
    "arithmetic",
    "check_parity",
    "compare_samplers",
    "explain_mcce",
    "from_r",
    "r_is_available",
    "to_r",
    "versions",
]
