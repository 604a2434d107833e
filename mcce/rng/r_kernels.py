# mypy: disable-error-code="no-untyped-def"
"""What `mcce.rng.r` does for every single draw. The steps have its numbers."""

from numba import njit, uint32, uint64

from mcce.compiling import cached
from mcce.rng.normal import normal_quantile

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
    """Return an index of so many bits (step 3)."""
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
