"""The bridge to R: all code that needs rpy2.

1. `RSampler`: a conditional that functions of R fit and draw from, for `mcce.ChainModel` and `mcce.MCCE`.
2. `RModel`: a model fitted in R, explained like any other.
3. `explain_mcce`: mcceR's own call, run in R. `check_parity`: the same call in R and in mcce, compared; also as the
   command ``mcce parity``.
4. `to_r`, `from_r`: tables.

This package imports `mcce`; `mcce` never imports it. Importing it needs neither R nor rpy2 (``pip install 'mcce[r]'``
installs rpy2); the first call that needs them raises an error if one is missing.
"""

from mcce.rcompat.from_r import RError
from r_bridge.frames import RColumn, from_r, to_r
from r_bridge.mccer import explain_mcce
from r_bridge.models import RModel
from r_bridge.parity import ParityReport, check_parity
from r_bridge.samplers import RSampler
from r_bridge.session import RWarning, r_is_available, versions

__all__ = [
    "ParityReport",
    "RColumn",
    "RError",
    "RModel",
    "RSampler",
    "RWarning",
    "check_parity",
    "explain_mcce",
    "from_r",
    "r_is_available",
    "to_r",
    "versions",
]
