# mypy: disable-error-code="no-untyped-def"
"""R's random numbers, bit for bit: Mersenne-Twister, sample() by rejection, normals by inversion.

1. Seed: scramble by 50 steps of x <- 69069 x + 1 (mod 2^32); the following 625 values are the generator's table. The
   first is the place of the position, which starts at the end; the other 624 are the key.
2. Words: MT19937 (Matsumoto and Nishimura 1998). A uniform number is a word over 2^32; 0 becomes half of the step.
3. Index below n ("Rejection", R 3.6 and later): the upper 16 bits of as many words as ceil(log2 n) bits take, a word
   more when they are a multiple of 16, cut to these bits; drawn again while not below n. Also n = 1 takes a word.
4. Without replacement: draw among those left, put the last one left into its place. From more than ten million, at
   most half of them: draw again on a repeat.
5. Normal ("Inversion"): the quantile (Wichura 1988, algorithm AS 241, PPND16) at (floor(2^27 u1) + u2) / 2^27.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, uint32, uint64

from mcce.exceptions import InputError, spell

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]

_SIZE = 624
_MIDDLE = 397
_LARGEST_SEED = 2**31 - 1  # -2^31 is R's NA
_LARGEST_N = 4_500_000_000_000_000  # R draws from no more
_HASHED_ABOVE = 10_000_000  # R's sample.int(useHash = )
_STEP = 2.0**-32
_ZERO_BECOMES = 0.5 * 2.328306437080797e-10
_COARSE = 2.0**27
_KIND = 10403  # first entry of .Random.seed: Rejection, Inversion, Mersenne-Twister

# Wichura (1988), table of PPND16: numerators and denominators, constant term first
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
_MIDDLE_TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_FAR_TAIL = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _next_word(state):
    """Return the next 32 bits; `state` is the key and, last, the position in it (step 2)."""
    at = state[_SIZE]
    if at >= _SIZE:
        for i in range(_SIZE):
            following = state[i + 1] if i + 1 < _SIZE else state[0]
            ahead = state[i + _MIDDLE] if i + _MIDDLE < _SIZE else state[i + _MIDDLE - _SIZE]
            joined = (state[i] & uint32(0x80000000)) | (following & uint32(0x7FFFFFFF))
            state[i] = ahead ^ (joined >> uint32(1)) ^ (uint32(0x9908B0DF) * (joined & uint32(1)))
        at = uint32(0)
    word = state[at]
    state[_SIZE] = at + uint32(1)
    word ^= word >> uint32(11)
    word ^= (word << uint32(7)) & uint32(0x9D2C5680)
    word ^= (word << uint32(15)) & uint32(0xEFC60000)
    word ^= word >> uint32(18)
    return uint32(word)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_words(state, out):
    for i in range(out.size):
        out[i] = _next_word(state)


@njit(cache=True, nogil=True, error_model="numpy")
def _attempt(state, bits):
    """Return an index of so many bits (step 3)."""
    value = uint64(0)
    for _ in range(bits // 16 + 1):
        value = (value << uint64(16)) | uint64(_next_word(state) >> uint32(16))
    return value & ((uint64(1) << uint64(bits)) - uint64(1))


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_indices(state, n, bits, out):
    i = uint64(0)
    while i < out.size:  # a rejected index is overwritten: no branch that could be mispredicted
        value = _attempt(state, bits)
        out[i] = value
        i += uint64(value < n)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_distinct(state, pool, out):
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


@njit(inline="always")
def _ratio(factor, coefficients, r):
    above = coefficients[0][7]
    below = coefficients[1][7]
    for k in range(6, -1, -1):
        above = above * r + coefficients[0][k]
        below = below * r + coefficients[1][k]
    return factor * above / below


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_quantiles(p, out):
    """Write the standard normal quantiles of p (step 5)."""
    for i in range(p.size):
        q = p[i] - 0.5
        if abs(q) <= 0.425:
            r = 0.180625 - q * q
            out[i] = _ratio(q, _CENTRE, r)
        else:
            r = math.sqrt(-math.log(p[i] if q < 0 else 0.5 - p[i] + 0.5))
            tail = _ratio(1.0, _MIDDLE_TAIL, r - 1.6) if r <= 5.0 else _ratio(1.0, _FAR_TAIL, r - 5.0)
            out[i] = -tail if q < 0 else tail


class RGenerator:
    """R's random stream after `set.seed(seed)`, with R's default kinds (R 3.6 and later).

    Parameters
    ----------
    seed : int, optional
        As for `set.seed`: -2147483647 to 2147483647. None takes a fresh one, as R does in a new session; R's NA is not
        a seed, neither there nor here.

    Attributes
    ----------
    seed : int or None
        The seed used, also where it was a fresh one; None for a generator made from `.Random.seed`.

    Notes
    -----
    Every call goes on where the last one stopped, whatever it was, as in R. Nothing global is read or written.

    Examples
    --------
    >>> from mcce.rng import RGenerator
    >>> r = RGenerator(1)
    >>> r.sample(10, 3)  # R: set.seed(1); sample(10, 3)
    array([9, 4, 7])
    >>> r.normal(2)  # rnorm(2)
    array([1.32..., 1.27...])
    >>> r.uniform(1)  # runif(1)
    array([0.66...])
    """

    seed: int | None

    def __init__(self, seed: int | np.integer[Any] | None = None) -> None:
        if seed is None:
            seed = secrets.randbelow(2 * _LARGEST_SEED + 1) - _LARGEST_SEED
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or abs(int(seed)) > _LARGEST_SEED:
            raise InputError(
                f"the seed of R's generator is {spell(seed)}; it must be an integer from {-_LARGEST_SEED} to "
                f"{_LARGEST_SEED}, as for set.seed, or None for a fresh one."
            )
        self.seed = int(seed)
        self._state = _seeded(self.seed)

    @classmethod
    def from_random_seed(cls, random_seed: Sequence[int] | npt.NDArray[np.integer[Any]]) -> RGenerator:
        """Go on where an R session stands, given its `.Random.seed` (626 integers)."""
        state = np.asarray(random_seed)
        if state.shape != (_SIZE + 2,) or state.dtype.kind not in "iu" or state[0] != _KIND:
            raise InputError(
                f"random_seed has shape {state.shape}, dtype {state.dtype} and begins with "
                f"{spell(state.flat[0]) if state.size else 'nothing'}; R's .Random.seed has {_SIZE + 2} integers and "
                f'begins with {_KIND} under RNGkind("Mersenne-Twister", "Inversion", "Rejection").'
            )
        generator = cls(0)
        generator.seed = None
        words = (state.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
        generator._state = np.append(words[2:], words[1])
        return generator

    @property
    def random_seed(self) -> npt.NDArray[np.int32]:
        """The state as R's `.Random.seed`."""
        words = np.concatenate([[_KIND, self._state[_SIZE]], self._state[:_SIZE]]).astype(np.uint32)
        return words.view(np.int32)

    def uniform(self, n: int) -> Floats:
        """Return `n` uniform numbers in (0, 1): `runif(n)`."""
        words = np.empty(_count(n, "n"), dtype=np.uint32)
        _fill_words(self._state, words)
        return np.where(words == 0, _ZERO_BECOMES, words * _STEP)

    def normal(self, n: int) -> Floats:
        """Return `n` standard normal numbers: `rnorm(n)`."""
        pairs = self.uniform(2 * _count(n, "n"))
        drawn = np.empty(n)
        _fill_quantiles((np.floor(_COARSE * pairs[::2]) + pairs[1::2]) / _COARSE, drawn)
        return drawn

    def indices(self, n: int, size: int) -> Ints:
        """Return `size` draws with replacement from 0, ..., n - 1: `sample.int(n, size, TRUE) - 1`."""
        drawn = np.empty(_count(size, "size"), dtype=np.int64)
        _fill_indices(self._state, np.uint64(_upper(n)), math.ceil(math.log2(n)), drawn)
        return drawn

    def sample_int(self, n: int, size: int | None = None, replace: bool = False) -> Ints:
        """Return `size` (default: n) draws from 1, ..., n: `sample.int(n, size, replace)`."""
        size = _upper(n) if size is None else _count(size, "size")
        if replace or size < 2:
            return self.indices(n, size) + 1
        if size > n:
            raise InputError(f"cannot draw {size} of {n} without replacement; draw fewer, or say replace=True.")
        if n > _HASHED_ABOVE and size <= n / 2:
            return self._sample_distinct(n, size)
        drawn = np.empty(size, dtype=np.int64)
        _fill_distinct(self._state, np.arange(1, n + 1), drawn)
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
    state = np.empty(_SIZE + 1, dtype=np.uint32)
    word = seed & 0xFFFFFFFF
    for _ in range(50):
        word = (69069 * word + 1) & 0xFFFFFFFF
    for j in range(_SIZE + 1):
        word = (69069 * word + 1) & 0xFFFFFFFF
        state[j - 1] = word  # the first goes where the position stands
    state[_SIZE] = _SIZE
    return state


def _count(size: int, name: str) -> int:
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 0:
        raise InputError(f"{name} is {spell(size)}; it must be a whole number of draws, 0 or more.")
    return int(size)


def _upper(n: int) -> int:
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or not 1 <= n <= _LARGEST_N:
        raise InputError(f"n is {spell(n)}; it must be a whole number from 1 to {_LARGEST_N}.")
    return int(n)
