"""The random streams compared with the known answers of Random123 and a big-integer Philox."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from numba import njit
from scipy import stats

import mcce
from mcce.exceptions import InputError
from mcce.rng import RowStreams, hash_rows, mix, multiply_high, philox, resolve_seed
from mcce.rng.r import RGenerator
from tests.rng.problem import MASK, streams

# Random123-1.14, tests/kat_vectors, "philox2x64 10": counter (2 words), key, result (2 words)
KNOWN_ANSWERS = [
    ((0, 0), 0, (0xCA00A0459843D731, 0x66C24222C9A845B5)),
    ((MASK, MASK), MASK, (0x65B021D60CD8310F, 0x4D02F3222F86DF20)),
    ((0x243F6A8885A308D3, 0x13198A2E03707344), 0xA4093822299F31D0, (0x0A5E742C2997341C, 0xB0F883D38000DE5D)),
]


def philox_by_big_integers(key, c0, c1):
    """Salmon et al. 2011, section 3.3, in Python's unbounded integers."""
    for round_ in range(10):
        product = 0xD2B74407B1CE6E93 * c0
        round_key = (key + round_ * 0x9E3779B97F4A7C15) & MASK
        c0, c1 = (product >> 64) ^ round_key ^ c1, product & MASK
    return c0, c1


# ------------------------------------------------------------------ the generator


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_matches_the_known_answers_of_random123(counter, key, answer):
    drawn = philox(np.uint64(key), np.uint64(counter[0]), np.uint64(counter[1]))
    assert tuple(map(int, drawn)) == answer
    assert philox_by_big_integers(key, *counter) == answer


def test_philox_equals_the_big_integer_version_on_random_inputs():
    source = random.Random(7)
    for _ in range(500):
        key, c0, c1 = (source.getrandbits(64) for _ in range(3))
        drawn = philox(np.uint64(key), np.uint64(c0), np.uint64(c1))
        assert tuple(map(int, drawn)) == philox_by_big_integers(key, c0, c1)


def test_multiply_high_is_the_upper_half_of_the_product():
    @njit
    def upper(a, b):
        return multiply_high(a, b)

    source = random.Random(8)
    pairs = [(0, MASK), (MASK, MASK), (1, MASK), (2**63, 2)]
    pairs += [(source.getrandbits(64), source.getrandbits(64)) for _ in range(200)]
    for a, b in pairs:
        assert int(upper(np.uint64(a), np.uint64(b))) == a * b >> 64


def test_words_are_philox_at_draw_and_row():
    source = np.random.default_rng(9)
    rows, draws = source.integers(0, MASK, size=(2, 50), dtype=np.uint64, endpoint=True)
    words = RowStreams(5, rows, draws).words()
    key = int(RowStreams(5, rows, draws).next_key())
    expected = [philox_by_big_integers(key, int(d), int(r))[0] for d, r in zip(draws, rows)]
    assert words.tolist() == expected


def test_integer_and_uniform_are_scaled_words():
    n = 300
    words = [int(w) for w in streams(n).words()]
    assert streams(n).uniform().tolist() == [(w >> 11) / 2**53 for w in words]
    for high in (1, 2, 7, 10**6, 2**62 + 1):
        assert streams(n).integer(high).tolist() == [w * high >> 64 for w in words]
    highs = np.arange(1, n + 1)
    assert streams(n).integer(highs).tolist() == [w * int(h) >> 64 for w, h in zip(words, highs)]


def test_normal_is_the_quantile_of_the_cell_midpoint():
    n = 500
    cells = streams(n).words() >> np.uint64(12)
    np.testing.assert_allclose(streams(n).normal(), stats.norm.ppf((cells + 0.5) / 2**52), rtol=1e-12)


def test_mix_is_splitmix64():
    """First outputs of Vigna's splitmix64.c for seed 1234567 (as listed on Rosetta Code)."""
    state = np.array([(1234567 + k * 0x9E3779B97F4A7C15) & MASK for k in range(5)], dtype=np.uint64)
    assert mix(state).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


# ------------------------------------------------------------------ numbers of a row do not depend on other rows


def draw_all_ways(source):
    weights = np.array([0.1, 0.6, 0.3])
    return np.column_stack(
        [
            source.uniform(),
            source.normal(),
            source.integer(1000),
            source.categorical(weights),
            source.uniform(),
        ]
    )


def test_numbers_of_a_row_are_equal_in_any_order_block_or_subset():
    whole = draw_all_ways(streams(1000))
    order = np.random.default_rng(1).permutation(1000)
    assert np.array_equal(draw_all_ways(streams(1000).take(order)), whole[order])
    subset = order[:137]
    assert np.array_equal(draw_all_ways(streams(1000).take(subset)), whole[subset])
    mask = np.random.default_rng(2).random(1000) < 0.3
    assert np.array_equal(draw_all_ways(streams(1000).take(mask)), whole[mask])
    blocks = [draw_all_ways(streams(1000).take(np.arange(1000)[i : i + 64])) for i in range(0, 1000, 64)]
    assert np.array_equal(np.concatenate(blocks), whole)


def test_equal_rows_share_numbers_and_draws_distinguish_them():
    rows = hash_rows(np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]))
    drawn = RowStreams(1, rows, np.zeros(3, dtype=np.uint64)).words()
    assert drawn[0] == drawn[1] != drawn[2]
    drawn = RowStreams(1, rows, np.array([0, 1, 0], dtype=np.uint64)).words()
    assert np.unique(drawn).size == 3


def test_take_continues_the_call_and_keeps_the_parent():
    source, twin = streams(100), streams(100)
    source.uniform()
    twin.uniform()
    part = source.take(np.arange(10))
    second = twin.uniform()
    assert np.array_equal(part.uniform(), second[:10])
    part.uniform()
    assert np.array_equal(source.uniform(), second)


def test_child_does_not_depend_on_calls_on_its_parent():
    source = streams(50)
    before = source.child("age", 3).uniform()
    source.uniform()
    assert np.array_equal(source.child("age", 3).uniform(), before)
    assert not np.array_equal(source.child("age", 4).uniform(), before)


def test_first_n_rows_are_the_same_for_any_n():
    assert np.array_equal(streams(10).uniform(), streams(1000).uniform()[:10])


def test_next_key_counts_as_a_call():
    source, twin = streams(5), streams(5)
    source.next_key()
    twin.uniform()
    assert np.array_equal(source.uniform(), twin.uniform())


def test_no_global_state_is_read_or_written():
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    numpy_before, python_before = np.random.get_state(), random.getstate()  # noqa: NPY002
    first = draw_all_ways(streams(100))
    numpy_after = np.random.get_state()  # noqa: NPY002
    assert numpy_before[2:] == numpy_after[2:]
    assert np.array_equal(numpy_before[1], numpy_after[1])
    assert python_before == random.getstate()
    np.random.seed(2)  # noqa: NPY002
    random.seed(2)
    assert np.array_equal(draw_all_ways(streams(100)), first)


# ------------------------------------------------------------------ seeds and errors


def test_seeds():
    assert resolve_seed(5) == 5
    assert resolve_seed(np.int64(5)) == 5
    assert type(resolve_seed(np.uint8(5))) is int
    assert resolve_seed(None) != resolve_seed(None)


def test_double_holds_a_fresh_seed_exactly():
    assert all(0 <= resolve_seed(None) < 2**53 for _ in range(100))
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 1.0, 2.0]})
    for generator in (mcce.ChainModel(), mcce.generators.AdversarialForest()):
        assert 0 <= generator.fit(X).seed_ < 2**53
    assert abs(RGenerator().seed) < 2**31


@pytest.mark.parametrize("seed", [1.0, "1", True, np.random.default_rng(1)], ids=["float", "str", "bool", "generator"])
def test_seed_is_an_integer(seed):
    with pytest.raises(InputError, match=r"random_state is .*a seed is an integer"):
        resolve_seed(seed)


def test_bad_bounds():
    with pytest.raises(InputError, match="3 upper bounds for 5 rows"):
        streams(5).integer(np.array([1, 2, 3]))
    with pytest.raises(InputError, match="at least 1, got 0"):
        streams(5).integer(np.array([1, 2, 3, 0, 5]))
    with pytest.raises(InputError, match="at least 1, got -4"):
        streams(5).integer(-4)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [0.5, -0.5, 1.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_bad_probabilities(weights):
    with pytest.raises(InputError, match="finite, non-negative probabilities with a positive sum"):
        streams(5).categorical(np.array(weights))


def test_bad_number_of_probabilities():
    with pytest.raises(InputError, match="4 rows of probabilities for 5 rows"):
        streams(5).categorical(np.ones((4, 2)))


def test_no_rows():
    empty = streams(0)
    assert len(empty) == 0
    assert empty.uniform().size == empty.normal().size == empty.integer(3).size == 0
    assert empty.categorical(np.array([0.5, 0.5])).size == 0
