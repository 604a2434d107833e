"""a * b + c with one rounding (`llvm.fma`), for kernels that reproduce programs compiled with fused multiply-adds.

R on ARM (aarch64) fuses, R on x86 does not. Kernels that reproduce R to the bit have a `fused` variant; the default is
R on x86.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def multiply_add(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen
