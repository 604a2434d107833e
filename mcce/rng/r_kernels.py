# mypy: disable-error-code="no-untyped-def"
"""What `mcce.rng.r` does for every single draw. The steps have its numbers."""

import math

from numba import njit, uint32, uint64

SIZE = 624  # words of the key; the state is the key and, last, the position in it
_MIDDLE = 397

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


@njit(inline="always")
def _twist(upper, lower, ahead):
    joined = (upper & uint32(0x80000000)) | (lower & uint32(0x7FFFFFFF))
    return ahead ^ (joined >> uint32(1)) ^ (uint32(0x9908B0DF) * (joined & uint32(1)))


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def _next_word(state):
    if state[SIZE] >= SIZE:
        _refill(state)
    at = state[SIZE]
    state[SIZE] = at + uint32(1)
    return _temper(state[at])


@njit(cache=True, nogil=True, error_model="numpy")
def fill_words(state, out):
    """Write the next words."""
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


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(inline="always")
def _ratio(factor, coefficients, r):
    above = coefficients[0][7]
    below = coefficients[1][7]
    for k in range(6, -1, -1):
        above = above * r + coefficients[0][k]
        below = below * r + coefficients[1][k]
    return factor * above / below


@njit(cache=True, nogil=True, error_model="numpy")
def fill_quantiles(p, out):
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
