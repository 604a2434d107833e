"""`RGenerator` compared with the installed R, fused or not: 50 seeds, every kind of draw, in one stream."""

import numpy as np
import pytest

from mcce.rng.r import RGenerator
from tests.marks import slow_but

SEEDS = [*range(-5, 35), 42, 123, 2024, 12345, 99999, 10**6, 123456789, -(10**9), 2**31 - 1, -(2**31) + 1]
DRAWS = 5000


@pytest.fixture(scope="module")
def same(r, compared):
    """Compare the draws of R and ours bit for bit, and count them."""
    from rpy2 import robjects

    robjects.r('RNGkind("Mersenne-Twister", "Inversion", "Rejection")')

    def compare(code, ours=None):
        theirs = np.asarray(robjects.r(code))
        if ours is not None:
            assert np.array_equal(theirs, ours), code
            compared("draws of R's random stream", len(theirs))
        return theirs

    return compare


@pytest.mark.parametrize("seed", slow_but(SEEDS, *SEEDS[::5]))
def test_live_parity_of_a_stream(same, fused, seed):
    ours = RGenerator(seed, fused=fused)
    same(f"set.seed({seed})")
    same(".Random.seed", ours.random_seed)
    steps = [
        (f"runif({DRAWS})", lambda: ours.uniform(DRAWS)),
        (f"rnorm({DRAWS})", lambda: ours.normal(DRAWS)),
        (f"sample({abs(seed) % 997 + 1}, {DRAWS}, TRUE)", lambda: ours.sample(abs(seed) % 997 + 1, DRAWS, True)),
        (f"sample({DRAWS})", lambda: ours.permutation(DRAWS)),
        ("sample(65536, 500, TRUE)", lambda: ours.sample_int(65536, 500, True)),
        ("sample(65537, 500, TRUE)", lambda: ours.sample_int(65537, 500, True)),
        ("sample(65537, 500)", lambda: ours.sample_int(65537, 500)),
        ("sample(c(7), 100, TRUE)", lambda: ours.sample([7], 100, True)),
        ("sample(c(7, 9), 100, TRUE)", lambda: ours.sample([7, 9], 100, True)),
        ("sample(1, 100, TRUE)", lambda: ours.sample(1, 100, True)),
        ("sample.int(12345678, 5000)", lambda: ours.sample_int(12345678, 5000)),
        ("sample.int(2^31 + 5, 300, TRUE)", lambda: ours.sample_int(2**31 + 5, 300, True)),
        ("sample.int(4.5e15, 100, TRUE)", lambda: ours.sample_int(4_500_000_000_000_000, 100, True)),
        ("runif(3)", lambda: ours.uniform(3)),
    ]
    for code, draw in steps:
        same(code, draw())
    same(".Random.seed", ours.random_seed)


def test_live_parity_of_half_a_million_normals(same, fused):
    same("set.seed(1)")
    same("rnorm(500000)", RGenerator(1, fused=fused).normal(500_000))


def test_live_parity_of_a_stream_continued_from_r(same, fused):
    same("set.seed(8)")
    same("invisible(rnorm(77))")
    ours = RGenerator.from_random_seed(same(".Random.seed"), fused=fused)
    same("rnorm(1000)", ours.normal(1000))
