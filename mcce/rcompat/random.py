"""R's random numbers, bit for bit: Mersenne-Twister, sample() by rejection, normals by inversion.

1. Seed: scramble by 50 steps of x <- 69069 x + 1 (mod 2^32); the following 625 values are the generator's table. The
   first is the place of the position, which starts at the end; the other 624 are the key of numpy's MT19937.
2. A uniform number is a word over 2^32; 0 becomes half of the step.
3. Index below n ("Rejection", R 3.6 and later): the upper 16 bits of as many words as ceil(log2 n) bits take, a word
   more when they are a multiple of 16, cut to these bits; drawn again while not below n. Also n = 1 takes a word.
4. Without replacement: draw among those left, put the last one left into its place. If at most half of more than
   ten million are drawn: draw again on a repeat.
5. Normal ("Inversion"): the quantile (Wichura 1988, algorithm AS 241, PPND16) at (floor(2^27 u1) + u2) / 2^27.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce._utils import Floats, Ints, UInts, check_count, is_whole, jit
from mcce.exceptions import InputError, spell

# mypy: disable-error-code="no-untyped-def"


SIZE = 624  # words of the key
_LARGEST_SEED = 2**31 - 1  # -2^31 is R's NA
_LARGEST_N = 4_500_000_000_000_000  # R draws from no more
_HASHED_ABOVE = 10_000_000  # R's sample.int(useHash = )
_ZERO_BECOMES = 0.5 * 2.328306437080797e-10
_COARSE = 2.0**27
_KIND = 10403  # first entry of .Random.seed: Rejection, Inversion, Mersenne-Twister
_standard_normal = NormalDist()  # its quantile is AS 241, too


@jit
def draw_distinct(words, pool, out):
    """Draw without replacement from `pool`, which is used up; return the number of words taken, -1 if too few."""
    left, at, bits = pool.size, 0, 0
    while (1 << bits) < left:
        bits += 1
    for i in range(out.size):
        while bits > 0 and (1 << (bits - 1)) >= left:
            bits -= 1
        index = left
        while index >= left:
            if at + bits // 16 + 1 > words.size:
                return -1
            index = 0
            for _ in range(bits // 16 + 1):
                index = (index << 16) | np.int64(words[at] >> np.uint64(16))
                at += 1
            index &= (1 << bits) - 1
        out[i] = pool[index]
        left -= 1
        pool[index] = pool[left]
    return at


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
    Every call continues where the previous one stopped, as in R. No global state is read or written.

    Examples
    --------
    >>> from mcce.rcompat import RGenerator
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

    def __init__(self, seed: int | np.integer[Any] | None = None) -> None:
        if seed is None:
            seed = secrets.randbelow(2 * _LARGEST_SEED + 1) - _LARGEST_SEED
        if not is_whole(seed) or abs(int(seed)) > _LARGEST_SEED:
            raise InputError(
                f"the seed of R's generator is {spell(seed)}; it must be an integer from {-_LARGEST_SEED} to "
                f"{_LARGEST_SEED}, as for set.seed, or None for a fresh one."
            )
        self.seed = int(seed)
        self._bits = _mersenne_twister(_key(self.seed), SIZE)

    @classmethod
    def from_random_seed(cls, random_seed: Sequence[int] | npt.NDArray[np.integer[Any]]) -> RGenerator:
        """Go on where an R session stands, given its `.Random.seed` (626 integers).

        Examples
        --------
        >>> from mcce.rcompat import RGenerator
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
        generator = cls(0)
        generator.seed = None
        words = (state.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
        generator._bits = _mersenne_twister(words[2:], int(words[1]))
        return generator

    @property
    def random_seed(self) -> npt.NDArray[np.int32]:
        """The state as R's `.Random.seed`."""
        state: Any = self._bits.state["state"]
        return np.concatenate([[_KIND, state["pos"]], state["key"]]).astype(np.uint32).view(np.int32)

    def uniform(self, n: int) -> Floats:
        """Return `n` uniform numbers in (0, 1): `runif(n)`."""
        words = self._bits.random_raw(check_count(n, "n", least=0))
        return np.where(words == 0, _ZERO_BECOMES, words * 2.0**-32)

    def normal(self, n: int) -> Floats:
        """Return `n` standard normal numbers: `rnorm(n)`."""
        pairs = self.uniform(2 * check_count(n, "n", least=0))
        probabilities = (np.floor(_COARSE * pairs[::2]) + pairs[1::2]) / _COARSE
        return np.array([_standard_normal.inv_cdf(p) for p in probabilities.tolist()], dtype=np.float64)

    def indices(self, n: int, size: int) -> Ints:
        """Return `size` draws with replacement from 0, ..., n - 1: `sample.int(n, size, TRUE) - 1`."""
        size = check_count(size, "size", least=0)
        n = check_count(n, "n", most=_LARGEST_N)
        bits = (n - 1).bit_length()
        width = bits // 16 + 1  # words of an attempt
        n_attempts = int(size * ((1 << bits) / n) * 1.02) + 16
        while True:
            attempts = np.zeros(n_attempts, dtype=np.uint64)
            for words in self._ahead(n_attempts * width).reshape(n_attempts, width).T:
                attempts = (attempts << np.uint64(16)) | (words >> np.uint64(16))
            attempts &= np.uint64((1 << bits) - 1)
            kept = np.flatnonzero(attempts < n)[:size]
            if kept.size == size:
                self._bits.random_raw(int(kept[-1] + 1) * width if size else 0, output=False)
                return attempts[kept].astype(np.int64)
            n_attempts *= 2

    def sample_int(self, n: int, size: int | None = None, replace: bool = False) -> Ints:
        """Return `size` (default: n) draws from 1, ..., n: `sample.int(n, size, replace)`."""
        size = check_count(n, "n", most=_LARGEST_N) if size is None else check_count(size, "size", least=0)
        if replace or size < 2:
            return self.indices(n, size) + 1
        if size > n:
            raise InputError(f"cannot draw {size} of {n} without replacement; draw fewer, or say replace=True.")
        if n > _HASHED_ABOVE and size <= n / 2:
            return self._sample_distinct(n, size)
        drawn, n_words = np.empty(size, dtype=np.int64), 2 * size * (n.bit_length() // 16 + 1) + 64
        while (taken := draw_distinct(self._ahead(n_words), np.arange(1, n + 1), drawn)) < 0:
            n_words *= 2
        self._bits.random_raw(taken, output=False)
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

    def _ahead(self, n: int) -> UInts:
        """Return the next words without taking them from the stream."""
        state = self._bits.state
        words = self._bits.random_raw(n)
        self._bits.state = state
        return words

    def _sample_distinct(self, n: int, size: int) -> Ints:
        """Draw again on a repeat: the first `size` different values of the stream of indices, and no draw more."""
        seen: dict[int, None] = {}
        while len(seen) < size:
            seen.update(dict.fromkeys(self.indices(n, size - len(seen)).tolist()))
        return np.fromiter(seen, dtype=np.int64, count=size) + 1


def _key(seed: int) -> npt.NDArray[np.uint32]:
    """Return the key of the generator after set.seed (step 1)."""
    word = seed & 0xFFFFFFFF
    words = []
    for _ in range(50 + 1 + SIZE):
        word = (69069 * word + 1) & 0xFFFFFFFF
        words.append(word)
    return np.array(words[51:], dtype=np.uint32)


def _mersenne_twister(key: npt.NDArray[np.uint32], position: int) -> np.random.MT19937:
    bits = np.random.MT19937(0)
    bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
    return bits
