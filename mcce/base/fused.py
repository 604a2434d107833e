"""a * b + c with one rounding, for kernels that follow programs which were compiled so.

Two machines can give R different last bits: a compiler may turn a product and a sum into one instruction that rounds
once (a fused multiply-add). Debian's R has it on ARM (aarch64), where it is part of every processor, and not on x86. So
kernels that repeat R to the bit have a `fused` variant, and the default is R on x86 on every machine: numba does not
fuse by itself.

The instruction is LLVM's `llvm.fma`: the processor's own where it has one, else the C library's, exact both ways.
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
