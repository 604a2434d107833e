"""Random numbers: counter-based streams of rows (`rows`), and R's single stream (`r`)."""

from mcce.base.arrays import UInts
from mcce.rng.rows import RowStreams, derive_key, hash_rows, mix, multiply_high, philox, resolve_seed

__all__ = ["RowStreams", "UInts", "derive_key", "hash_rows", "mix", "multiply_high", "philox", "resolve_seed"]
