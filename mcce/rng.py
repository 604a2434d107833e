"""Counter-based random numbers: one draw per row, a pure function of the row's values.

1. A stream has a 64-bit key, a hash of the seed and of the names it was derived under (a feature, a purpose).
2. A row has a 128-bit counter: the index of the draw, and a hash of what identifies the row (its fixed values).
3. A draw is Philox2x64-10 of key and counter (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers:
   as easy as 1, 2, 3"). Each further call on the same streams uses a new key.

So a row gets the same numbers in any table, order, block, thread or process, and no state,
global or local, is shared between rows.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types, uint64
from numba.extending import intrinsic
from scipy.special import ndtri

from mcce._utils import Floats, Ints, UInts, is_whole, jit, jit_inline
from mcce.exceptions import InputError, spell

_MULTIPLIER = np.uint64(0xD2B74407B1CE6E93)
_WEYL = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = 10
_MOST_SEED = 10**1000  # keys are made of its digits, and Python writes a few thousand
_TO_UNIT = 2.0**-53
_INFINITY = np.uint64(0x7FF0000000000000)  # the bits above, the sign left aside, are those of NaN
_BITS_OF_NAN = np.array(np.nan).view(np.uint64)[()]


@intrinsic  # type: ignore[untyped-decorator]
def multiply_high(typing_context: Any, a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the 128-bit product of two uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@jit_inline
def philox(key: np.uint64, draw: np.uint64, row: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the two 64-bit words of Philox2x64-10 at counter (draw, row)."""
    k = uint64(key)
    c0 = uint64(draw)
    c1 = uint64(row)
    for _ in range(_ROUNDS):
        high = multiply_high(uint64(_MULTIPLIER), c0)
        low = uint64(_MULTIPLIER) * c0
        c0 = high ^ k ^ c1
        c1 = low
        k = k + uint64(_WEYL)
    return c0, c1


@jit
def _words(key: np.uint64, draws: UInts, rows: UInts, out: UInts) -> None:
    for i in range(out.size):
        out[i] = philox(key, draws[i], rows[i])[0]


@jit
def _integers(words: UInts, highs: UInts, out: Ints) -> None:
    """Scale each word to 0..high-1: the upper half of word times high (bias below high / 2**64)."""
    for i in range(out.size):
        out[i] = multiply_high(words[i], highs[i % highs.size])


def derive_key(*labels: object) -> int:
    """Hash a seed and names to a 64-bit key."""
    plain = [int(label) if is_whole(label) else label for label in labels]  # type: ignore[call-overload]
    text = "\x1f".join(f"{type(label).__name__}:{label}" for label in plain)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def resolve_seed(random_state: int | np.integer[Any] | None) -> int:
    """Return the seed to use: the given integer, or for None a fresh one below 2**53, which a double holds exactly."""
    if random_state is None:
        return secrets.randbits(53)
    if is_whole(random_state) and abs(int(random_state)) < _MOST_SEED:
        return int(random_state)
    raise InputError(
        f"random_state is {spell(random_state)}; give an integer of at most a thousand digits (one seed, one answer), "
        "or None for a fresh one."
    )


@jit_inline
def _mix_word(word):  # type: ignore[no-untyped-def]
    """Scramble a 64-bit word one to one (the finaliser of SplitMix64)."""
    z = word + uint64(_WEYL)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@jit
def _hash_cells(cells, hashed):  # type: ignore[no-untyped-def]
    """Mix the bits of one column after the other into the rows' hashes; cells[j] is a column."""
    for j in range(cells.shape[0]):
        for i in range(hashed.size):
            bits = cells[j, i]
            if bits << uint64(1) == uint64(0):  # 0 or -0
                bits = uint64(0)
            elif bits << uint64(1) > _INFINITY << uint64(1):
                bits = _BITS_OF_NAN
            hashed[i] = _mix_word(hashed[i] ^ _mix_word(bits))


def hash_rows(matrix: Floats) -> UInts:
    """Hash each row of a float matrix; equal rows (0 and -0, NaN and NaN count as equal) have equal hashes."""
    n, p = matrix.shape
    hashed = np.full(n, p, dtype=np.uint64)
    cells = np.require(matrix.T, np.float64, ["C", "W"]).view(np.uint64)
    _hash_cells(cells, hashed)
    return hashed


class RowStreams:
    """Independent random numbers for each row of a table.

    Parameters
    ----------
    key : int
        64-bit key of the stream, see `derive_key`.
    rows, draws : array of uint64
        Identity of each row and index of the draw for it. Two entries that agree in both get the same numbers.

    Notes
    -----
    Every call gives one number per row, independent of all earlier calls. `child` derives streams that are
    independent of this one and do not depend on the calls made on it; `take` restricts to some rows without
    changing what these rows get.

    Examples
    --------
    >>> from mcce.rng import RowStreams
    >>> streams = RowStreams.from_seed(1, 5)
    >>> bool((streams.uniform() == RowStreams.from_seed(1, 5).uniform()).all())
    True
    >>> streams.integer(10).shape
    (5,)
    """

    def __init__(self, key: int, rows: UInts, draws: UInts, *, calls: int = 0) -> None:
        self.key = key
        self.rows = rows
        self.draws = draws
        self._calls = calls

    @classmethod
    def from_seed(cls, seed: int, n: int) -> RowStreams:
        """Return streams for rows 0..n-1 of an anonymous table."""
        return cls(derive_key(seed), np.zeros(n, dtype=np.uint64), np.arange(n, dtype=np.uint64))

    def __len__(self) -> int:
        return self.rows.size

    def child(self, *labels: object) -> RowStreams:
        """Return independent streams for the same rows, named by `labels`."""
        return RowStreams(derive_key(self.key, *labels), self.rows, self.draws)

    def take(self, which: npt.NDArray[Any]) -> RowStreams:
        """Return the streams of some rows (an index array or a boolean mask), at the same call."""
        return RowStreams(self.key, self.rows[which], self.draws[which], calls=self._calls)

    def next_key(self) -> np.uint64:
        """Return the Philox key of the next call, for kernels that draw inside their loop, and count the call."""
        self._calls += 1
        return np.uint64(derive_key(self.key, self._calls))

    def words(self) -> UInts:
        """Return 64 random bits per row."""
        out = np.empty(len(self), dtype=np.uint64)
        _words(self.next_key(), self.draws, self.rows, out)
        return out

    def uniform(self) -> Floats:
        """Return uniform numbers in [0, 1), multiples of 2**-53."""
        return (self.words() >> np.uint64(11)).astype(np.float64) * _TO_UNIT

    def normal(self) -> Floats:
        """Return standard normal numbers, by inversion."""
        # the middle of one of 2**52 cells: with 2**53 the last one would round to 1, whose quantile is infinite
        scaled = ((self.words() >> np.uint64(12)).astype(np.float64) + 0.5) * (2 * _TO_UNIT)
        return np.asarray(ndtri(scaled), dtype=np.float64)

    def integer(self, high: int | npt.NDArray[Any]) -> Ints:
        """Return integers in 0..high-1; `high` is one number or one per row."""
        highs = np.atleast_1d(np.asarray(high)).astype(np.int64)
        if highs.size not in (1, len(self)):
            raise InputError(f"integer() got {highs.size} upper bounds for {len(self)} rows; give one, or one per row.")
        if (highs < 1).any():
            raise InputError(f"integer() needs upper bounds of at least 1, got {highs.min()}.")
        out = np.empty(len(self), dtype=np.int64)
        _integers(self.words(), highs.astype(np.uint64), out)
        return out

    def categorical(self, probabilities: Floats) -> Ints:
        """Return a category 0..k-1 per row; `probabilities` has k entries, or one row of k for each row."""
        weights = np.atleast_2d(np.asarray(probabilities, dtype=np.float64))
        if weights.shape[0] not in (1, len(self)):
            raise InputError(
                f"categorical() got {weights.shape[0]} rows of probabilities for {len(self)} rows; "
                "give one row, or one for each."
            )
        totals = weights.sum(axis=1)
        if not np.isfinite(weights).all() or (weights < 0).any() or (totals <= 0).any():
            raise InputError("categorical() needs finite, non-negative probabilities with a positive sum in each row.")
        cumulative = np.cumsum(weights, axis=1)
        target = self.uniform() * totals
        last_possible = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)
        if weights.shape[0] == 1:
            drawn = np.searchsorted(cumulative[0], target, side="right")
        else:
            drawn = (cumulative <= target[:, None]).sum(axis=1)
        return np.asarray(np.minimum(drawn, last_possible), dtype=np.int64)
