"""R's random numbers, bit for bit: Mersenne-Twister, sample() by rejection, normals by inversion.

1. Seed: scramble by 50 steps of x <- 69069 x + 1 (mod 2^32); the following 625 values are the generator's table. The
   first is the place of the position, which starts at the end; the other 624 are the key.
2. Words: MT19937 (Matsumoto and Nishimura 1998). A uniform number is a word over 2^32; 0 becomes half of the step.
3. Index below n ("Rejection", R 3.6 and later): the upper 16 bits of as many words as ceil(log2 n) bits take, a word
   more when they are a multiple of 16, cut to these bits; drawn again while not below n. Also n = 1 takes a word.
4. Without replacement: draw among those left, put the last one left into its place. From more than ten million, at
   most half of them: draw again on a repeat.
5. Normal ("Inversion"): the quantile (Wichura 1988, algorithm AS 241, PPND16) at (floor(2^27 u1) + u2) / 2^27. Its
   last bits are those of R on x86 or, `fused`, of an R that was compiled with fused multiply-adds, as on ARM.

Comments refer to these steps.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, uint32, uint64

from mcce.base.arrays import Floats, Ints
from mcce.base.checks import check_count, is_whole
from mcce.base.compiling import cached
from mcce.exceptions import InputError, spell
from mcce.rng.normal import fused_normal_quantile, normal_quantile
from mcce.wording import Value

# mypy: disable-error-code="no-untyped-def"


SIZE = 624  # words of the key; the state is the key and, last, the position in it
_MIDDLE = 397


@njit(inline="always")
def _twist(upper, lower, ahead):
    joined = (upper & uint32(0x80000000)) | (lower & uint32(0x7FFFFFFF))
    return ahead ^ (joined >> uint32(1)) ^ (uint32(0x9908B0DF) * (joined & uint32(1)))


@cached(nogil=True, error_model="numpy")
def _refill(state):
    """Replace the key by the next one (step 2)."""
    for i in range(SIZE - _MIDDLE):
        state[i] = _twist(state[i], state[i + 1], state[i + _MIDDLE])
    for i in range(SIZE - _MIDDLE, SIZE - 1):
        state[i] = _twist(state[i], state[i + 1], state[i + _MIDDLE - SIZE])
    state[SIZE - 1] = _twist(state[SIZE - 1], state[0], state[_MIDDLE - 1])
    state[SIZE] = 0


@njit(inline="always")
def _temper(word):
    word ^= word >> uint32(11)
    word ^= (word << uint32(7)) & uint32(0x9D2C5680)
    word ^= (word << uint32(15)) & uint32(0xEFC60000)
    word ^= word >> uint32(18)
    return uint32(word)


@cached(nogil=True, error_model="numpy")
def _next_word(state):
    if state[SIZE] >= SIZE:
        _refill(state)
    at = state[SIZE]
    state[SIZE] = at + uint32(1)
    return _temper(state[at])


@cached(nogil=True, error_model="numpy")
def fill_words(state, out):
    """Write the next words."""
    for i in range(out.size):
        out[i] = _next_word(state)


@cached(nogil=True, error_model="numpy")
def _attempt(state, bits):
    """Return an index of this many bits (step 3)."""
    value = uint64(0)
    for _ in range(bits // 16 + 1):
        value = (value << uint64(16)) | uint64(_next_word(state) >> uint32(16))
    return value & ((uint64(1) << uint64(bits)) - uint64(1))


@cached(nogil=True, error_model="numpy")
def fill_indices(state, n, bits, out):
    """Write indices below n (step 3). A rejected one is overwritten: there is no branch that could be mispredicted."""
    i = uint64(0)
    size = uint64(out.size)
    if bits >= 16:
        while i < size:
            value = _attempt(state, bits)
            out[i] = value
            i += uint64(value < n)
        return
    mask = (uint64(1) << uint64(bits)) - uint64(1)
    at = uint64(state[SIZE])
    while i < size:  # one word an attempt, the position kept at hand
        if at >= uint64(SIZE):
            _refill(state)
            at = uint64(0)
        while at < uint64(SIZE) and i < size:
            value = uint64(_temper(state[at]) >> uint32(16)) & mask
            out[i] = value
            i += uint64(value < n)
            at += uint64(1)
    state[SIZE] = at


@cached(nogil=True, error_model="numpy")
def fill_distinct(state, pool, out):
    """Draw without replacement from `pool`, which is used up (step 4)."""
    left = pool.size
    bits = 0
    while (1 << bits) < left:
        bits += 1
    for i in range(out.size):
        while bits > 0 and (1 << (bits - 1)) >= left:
            bits -= 1
        at = _attempt(state, bits)
        while at >= uint64(left):
            at = _attempt(state, bits)
        out[i] = pool[at]
        left -= 1
        pool[at] = pool[left]


@cached(nogil=True, error_model="numpy")
def fill_quantiles(p, out):
    """Write the standard normal quantiles of p (step 5)."""
    for i in range(p.size):
        out[i] = normal_quantile(p[i])


@cached(nogil=True, error_model="numpy")
def fill_fused_quantiles(p, out):
    """Write the standard normal quantiles of p, each step of a polynomial rounded once (step 5)."""
    for i in range(p.size):
        out[i] = fused_normal_quantile(p[i])


Words = npt.NDArray[np.uint32]

_LARGEST_SEED = 2**31 - 1  # -2^31 is R's NA
_LARGEST_N = 4_500_000_000_000_000  # R draws from no more
_HASHED_ABOVE = 10_000_000  # R's sample.int(useHash = )
_STEP = 2.0**-32
_ZERO_BECOMES = 0.5 * 2.328306437080797e-10
_COARSE = 2.0**27
_KIND = 10403  # first entry of .Random.seed: Rejection, Inversion, Mersenne-Twister


class RGenerator:
    """R's random stream after `set.seed(seed)`, with R's default kinds (R 3.6 and later).

    Parameters
    ----------
    seed : int, optional
        As for `set.seed`: -2147483647 to 2147483647. None takes a fresh one, as R does in a new session; R's NA is not
        a seed, neither there nor here.
    fused : bool
        Whether the R to be repeated was compiled with fused multiply-adds (see `r_bridge.arithmetic`). It affects
        last bits of normal numbers, and of rpart's trees in `mcce.rcompat`; all else is the same on every machine.

    Attributes
    ----------
    seed : int or None
        The seed used, also where it was a fresh one; None for a generator made from `.Random.seed`.

    Notes
    -----
    Every call continues where the previous one stopped, as in R. No global state is read or written.

    Examples
    --------
    >>> from mcce.rng.r import RGenerator
    >>> r = RGenerator(1)
    >>> r.sample(10, 3)  # R: set.seed(1); sample(10, 3)
    array([9, 4, 7])
    >>> r.normal(2)  # rnorm(2)
    array([1.32..., 1.27...])
    >>> r.uniform(1)  # runif(1)
    array([0.66...])
    >>> r = RGenerator(1)
    >>> r.permutation(5), r.sample_int(100, 2), r.indices(100, 2)
    (array([1, 4, 3, 5, 2]), array([87, 43]), array([13, 81]))
    >>> r.random_seed[:2]  # .Random.seed[1:2]
    array([10403,    10], dtype=int32)
    """

    seed: int | None

    def __init__(self, seed: int | np.integer[Any] | None = None, *, fused: bool = False) -> None:
        if seed is None:
            seed = secrets.randbelow(2 * _LARGEST_SEED + 1) - _LARGEST_SEED
        if not is_whole(seed) or abs(int(seed)) > _LARGEST_SEED:
            raise InputError(
                "the seed of R's generator is ",
                Value(seed),
                f"; it must be an integer from {-_LARGEST_SEED} to {_LARGEST_SEED}, as for set.seed, or ",
                Value(None),
                " for a fresh one.",
            )
        self.seed = int(seed)
        self.fused = fused
        self._state = _seeded(self.seed)

    @classmethod
    def from_random_seed(
        cls, random_seed: Sequence[int] | npt.NDArray[np.integer[Any]], *, fused: bool = False
    ) -> RGenerator:
        """Go on where an R session stands, given its `.Random.seed` (626 integers).

        Examples
        --------
        >>> from mcce.rng.r import RGenerator
        >>> r = RGenerator(1)
        >>> again = RGenerator.from_random_seed(r.random_seed)
        >>> bool((again.uniform(3) == r.uniform(3)).all())
        True
        """
        state = np.asarray(random_seed)
        if state.shape != (SIZE + 2,) or state.dtype.kind not in "iu" or state[0] != _KIND:
            raise InputError(
                f"random_seed has shape {state.shape}, dtype {state.dtype} and begins with "
                f"{spell(state.flat[0]) if state.size else 'nothing'}; R's .Random.seed has {SIZE + 2} integers and "
                f'begins with {_KIND} under RNGkind("Mersenne-Twister", "Inversion", "Rejection").'
            )
        generator = cls(0, fused=fused)
        generator.seed = None
        words = (state.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
        generator._state = np.append(words[2:], words[1])
        return generator

    @property
    def random_seed(self) -> npt.NDArray[np.int32]:
        """The state as R's `.Random.seed`."""
        words = np.concatenate([[_KIND, self._state[SIZE]], self._state[:SIZE]]).astype(np.uint32)
        return words.view(np.int32)

    def uniform(self, n: int) -> Floats:
        """Return `n` uniform numbers in (0, 1): `runif(n)`."""
        words = np.empty(check_count(n, "n", least=0), dtype=np.uint32)
        fill_words(self._state, words)
        return np.where(words == 0, _ZERO_BECOMES, words * _STEP)

    def normal(self, n: int) -> Floats:
        """Return `n` standard normal numbers: `rnorm(n)`."""
        pairs = self.uniform(2 * check_count(n, "n", least=0))
        drawn = np.empty(n)
        p = (np.floor(_COARSE * pairs[::2]) + pairs[1::2]) / _COARSE
        (fill_fused_quantiles if self.fused else fill_quantiles)(p, drawn)
        return drawn

    def indices(self, n: int, size: int) -> Ints:
        """Return `size` draws with replacement from 0, ..., n - 1: `sample.int(n, size, TRUE) - 1`."""
        drawn = np.empty(check_count(size, "size", least=0), dtype=np.int64)
        n = check_count(n, "n", most=_LARGEST_N)
        fill_indices(self._state, np.uint64(n), math.ceil(math.log2(n)), drawn)
        return drawn

    def sample_int(self, n: int, size: int | None = None, replace: bool = False) -> Ints:
        """Return `size` (default: n) draws from 1, ..., n: `sample.int(n, size, replace)`."""
        size = check_count(n, "n", most=_LARGEST_N) if size is None else check_count(size, "size", least=0)
        if replace or size < 2:
            return self.indices(n, size) + 1
        if size > n:
            raise InputError(f"cannot draw {size} of {n} without replacement; draw fewer, or say replace=True.")
        if n > _HASHED_ABOVE and size <= n / 2:
            return self._sample_distinct(n, size)
        drawn = np.empty(size, dtype=np.int64)
        fill_distinct(self._state, np.arange(1, n + 1), drawn)
        return drawn

    def sample(self, x: Any, size: int | None = None, replace: bool = False) -> npt.NDArray[Any]:
        """Return draws from the elements of `x`, for a single number x >= 1 from 1, ..., x: `sample(x, size, replace)`.

        That R takes a vector which happens to hold a single number for the upper end of a range is a trap; it is kept
        here, where R's numbers are wanted. `sample_int` has no such trap.
        """
        pool = np.asarray(x)
        if pool.size == 1 and pool.dtype.kind in "iuf" and np.isfinite(pool).all() and pool.item() >= 1:
            return self.sample_int(int(pool.item()), size, replace)
        if pool.ndim != 1 or pool.size == 0:
            raise InputError(
                f"x has shape {pool.shape}; give a number of at least 1, or some elements in one dimension."
            )
        drawn: npt.NDArray[Any] = pool[self.sample_int(pool.size, size, replace) - 1]
        return drawn

    def permutation(self, n: int) -> Ints:
        """Return 1, ..., n in random order: `sample.int(n)`."""
        return self.sample_int(n)

    def _sample_distinct(self, n: int, size: int) -> Ints:
        """Draw again on a repeat: the first `size` different values of the stream of indices, and no draw more."""
        seen: dict[int, None] = {}
        while len(seen) < size:
            seen.update(dict.fromkeys(self.indices(n, size - len(seen)).tolist()))
        return np.fromiter(seen, dtype=np.int64, count=size) + 1


def _seeded(seed: int) -> Words:
    """Return the key after set.seed and, last, the position in it (step 1)."""
    state = np.empty(SIZE + 1, dtype=np.uint32)
    word = seed & 0xFFFFFFFF
    for _ in range(50):
        word = (69069 * word + 1) & 0xFFFFFFFF
    for j in range(SIZE + 1):
        word = (69069 * word + 1) & 0xFFFFFFFF
        state[j - 1] = word  # the first goes where the position stands
    state[SIZE] = SIZE
    return state
