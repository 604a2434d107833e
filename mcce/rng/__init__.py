"""Random numbers: counter-based streams of rows (`rows`), and R's single stream (`r`)."""

from typing import TYPE_CHECKING

from mcce.base.arrays import UInts
from mcce.base.lazy import loaded_when_used
from mcce.rng.rows import RowStreams, derive_key, hash_rows, mix, multiply_high, philox, resolve_seed

if TYPE_CHECKING:  # what `__getattr__` does, for type checkers and editors
    from mcce.rng.r import RGenerator

__all__ = [
    "RGenerator",
    "RowStreams",
    "UInts",
    "derive_key",
    "hash_rows",
    "mix",
    "multiply_high",
    "philox",
    "resolve_seed",
]

if not TYPE_CHECKING:  # where it would say that every name exists
    __getattr__ = loaded_when_used(__name__, {"mcce.rng.r": ("RGenerator",)})
