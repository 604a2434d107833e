"""The standard normal quantile by Wichura's algorithm AS 241 (1988), PPND16, as a kernel for other kernels.

1. In the centre, |p - 1/2| <= 0.425: q = p - 1/2 times a ratio of two polynomials in 0.425^2 - q^2.
2. In the tails: a ratio in r = sqrt(-log min(p, 1 - p)), of one pair of polynomials up to r = 5 and of another beyond.

The relative accuracy is about 1e-16. R's `qnorm` does the same, in the same order. Where R was compiled with fused
multiply-adds (`mcce.base.fused`), each step of the polynomials and 0.425^2 - q^2 are rounded once: the variant `fused`.
"""

import math

from numba import njit

from mcce.base.fused import multiply_add

# mypy: disable-error-code="no-untyped-def"


# Wichura (1988), the tables of PPND16: numerators and denominators, constant term first
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
def _ratio(factor, coefficients, r):
    above = coefficients[0][7]
    below = coefficients[1][7]
    for k in range(6, -1, -1):
        above = above * r + coefficients[0][k]
        below = below * r + coefficients[1][k]
    return factor * above / below


@njit(inline="always")
def _fused_ratio(factor, coefficients, r):
    above = coefficients[0][7]
    below = coefficients[1][7]
    for k in range(6, -1, -1):
        above = multiply_add(above, r, coefficients[0][k])
        below = multiply_add(below, r, coefficients[1][k])
    return factor * above / below


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def normal_quantile(p):
    """Return the number below which a standard normal variable falls with probability p."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return _ratio(q, _CENTRE, 0.180625 - q * q)
    r = math.sqrt(-math.log(p if q < 0 else 0.5 - p + 0.5))
    tail = _ratio(1.0, _MIDDLE_TAIL, r - 1.6) if r <= 5.0 else _ratio(1.0, _FAR_TAIL, r - 5.0)
    return -tail if q < 0 else tail


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def fused_normal_quantile(p):
    """Return the same as `normal_quantile`, rounded as by an R with fused multiply-adds."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return _fused_ratio(q, _CENTRE, multiply_add(-q, q, 0.180625))
    r = math.sqrt(-math.log(p if q < 0 else 0.5 - p + 0.5))
    tail = _fused_ratio(1.0, _MIDDLE_TAIL, r - 1.6) if r <= 5.0 else _fused_ratio(1.0, _FAR_TAIL, r - 5.0)
    return -tail if q < 0 else tail
