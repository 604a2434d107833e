"""The random streams, against Random123's known answers, a big-integer Philox, and statistical tests.

Every statistical test runs at a fixed seed and rejects at level ALPHA; there are about fifty of them.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from numba import njit
from scipy import stats

from mcce.exceptions import InputError
from mcce.rng import RowStreams, derive_key, hash_rows, mix, multiply_high, philox, resolve_seed

ALPHA = 1e-4
N = 200_000
MASK = 2**64 - 1

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


def streams(n=N, seed=1):
    return RowStreams.from_seed(seed, n)


def p_uniform_grid(first, second, cells=32):
    """Chi-square p-value of uniformity on a grid over the unit square: uniform and independent."""
    counts, _, _ = np.histogram2d(first, second, bins=cells, range=[[0, 1], [0, 1]])
    return stats.chisquare(counts.ravel()).pvalue


def assert_independent_uniforms(first, second):
    assert stats.pearsonr(first, second).pvalue > ALPHA
    assert p_uniform_grid(first, second) > ALPHA


# ------------------------------------------------------------------ the generator itself


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_known_answers_of_random123(counter, key, answer):
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


def test_normal_is_the_quantile_of_the_cell_s_middle():
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


# ------------------------------------------------------------------ distributions


@pytest.mark.parametrize("seed", [1, 2, -5, 2**70])
def test_uniform_is_uniform(seed):
    drawn = streams(seed=seed).uniform()
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > ALPHA
    assert stats.chisquare(np.bincount((drawn * 1000).astype(int), minlength=1000)).pvalue > ALPHA


def test_normal_is_normal():
    drawn = streams(seed=3).normal()
    assert np.isfinite(drawn).all()
    assert stats.kstest(drawn, "norm").pvalue > ALPHA
    assert abs(drawn.mean()) < 4 / np.sqrt(N)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / N)


@pytest.mark.parametrize("high", [2, 3, 10, 97, 1000])
def test_integers_are_equally_frequent(high):
    drawn = streams(seed=4).integer(high)
    assert drawn.dtype == np.int64
    counts = np.bincount(drawn)
    assert counts.size == high
    assert stats.chisquare(counts).pvalue > ALPHA


def test_integers_respect_each_row_s_bound():
    highs = np.resize([1, 2, 5, 11], N)
    drawn = streams(seed=5).integer(highs)
    for high in (1, 2, 5, 11):
        counts = np.bincount(drawn[highs == high])
        assert counts.size == high
        if high > 1:
            assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("weights", [[1.0], [0.2, 0.8], [3.0, 1.0, 0.5, 5.5], [0.0, 0.3, 0.0, 0.7, 0.0]])
@pytest.mark.parametrize("per_row", [False, True])
def test_categories_have_their_probabilities(weights, per_row):
    weights = np.array(weights)
    given = np.tile(weights, (N, 1)) if per_row else weights
    counts = np.bincount(streams(seed=6).categorical(given), minlength=weights.size)
    possible = weights > 0
    assert counts[~possible].sum() == 0
    if possible.sum() > 1:
        expected = N * weights[possible] / weights.sum()
        assert stats.chisquare(counts[possible], expected).pvalue > ALPHA


def test_categories_are_the_same_whether_probabilities_are_shared_or_repeated():
    weights = np.random.default_rng(1).random(9)
    shared = streams(1000).categorical(weights)
    assert np.array_equal(shared, streams(1000).categorical(np.tile(weights, (1000, 1))))


def test_each_row_has_its_own_probabilities():
    certain = np.eye(6)[np.resize([3, 0, 5, 2], 400)]
    assert np.array_equal(streams(400).categorical(certain), np.resize([3, 0, 5, 2], 400))


def test_a_million_words_hold_no_duplicate_and_balanced_bits():
    n = 1_000_000
    words = streams(n, seed=7).words()
    assert np.unique(words).size == n  # a repeat has probability 3e-8
    for bit in range(64):
        ones = int((words >> np.uint64(bit) & np.uint64(1)).sum())
        assert stats.binomtest(ones, n).pvalue > ALPHA / 64


def test_low_bits_of_words_are_uniform_too():
    words = streams(seed=8).words()
    for shift in (0, 8, 24, 40, 56):
        low = (words >> np.uint64(shift) & np.uint64(0xFF)).astype(np.int64)
        assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > ALPHA


@pytest.mark.parametrize("word", [0, MASK])
def test_the_extreme_words_stay_inside_every_range(word):
    class Extreme(RowStreams):
        def words(self):
            return np.array([word], dtype=np.uint64)

    extreme = Extreme(1, np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.uint64))
    assert 0 <= extreme.uniform()[0] < 1
    assert 8 < abs(extreme.normal()[0]) < 9
    assert extreme.integer(7)[0] == (6 if word else 0)
    for weights in ([0.0, 0.1, 0.2, 0.7, 0.0], np.array([[0.0, 0.1, 0.2, 0.7, 0.0]])):
        assert extreme.categorical(np.array(weights))[0] == (3 if word else 1)


# ------------------------------------------------------------------ independence


def test_consecutive_draws_of_one_row_are_independent():
    drawn = streams(seed=9).uniform()
    for lag in (1, 2, 7):
        first, second = drawn[:-lag], drawn[lag:]
        assert stats.pearsonr(first, second).pvalue > ALPHA
        keep = slice(None, None, 2) if lag == 1 else slice(None)
        assert p_uniform_grid(first[keep], second[keep]) > ALPHA


def test_neighbouring_rows_are_independent():
    rows = np.arange(N, dtype=np.uint64)
    drawn = RowStreams(11, rows, np.zeros(N, dtype=np.uint64)).uniform()
    assert stats.kstest(drawn, "uniform").pvalue > ALPHA
    assert_independent_uniforms(drawn[::2], drawn[1::2])


def test_hashed_rows_give_independent_draws():
    identity = np.column_stack([np.repeat(np.arange(500.0), 400), np.tile(np.arange(400.0), 500)])
    drawn = RowStreams(12, hash_rows(identity), np.zeros(N, dtype=np.uint64)).uniform()
    assert stats.kstest(drawn, "uniform").pvalue > ALPHA
    assert_independent_uniforms(drawn[::2], drawn[1::2])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (streams(seed=1), streams(seed=2)),
        (RowStreams(0, *np.zeros((1, N), np.uint64), np.arange(N, dtype=np.uint64)), streams(seed=0)),
        (streams().child("age"), streams().child("agf")),
        (streams().child("a"), streams().child("a", "a")),
        (streams().child(1), streams().child(2)),
        (streams().child(1), streams().child("1")),
        (streams(), streams().child("a")),
        (streams(), streams().child()),
    ],
    ids=["seeds", "keys", "features", "depths", "numbers", "types", "parent", "unnamed child"],
)
def test_neighbouring_keys_are_independent(one, other):
    assert_independent_uniforms(one.uniform(), other.uniform())


def test_calls_on_the_same_streams_are_independent():
    source = streams(seed=10)
    calls = [source.uniform() for _ in range(4)]
    for first, second in itertools.combinations(calls, 2):
        assert_independent_uniforms(first, second)
    cells, _ = np.histogramdd(np.column_stack(calls), bins=6, range=[(0, 1)] * 4)
    assert stats.chisquare(cells.ravel()).pvalue > ALPHA


def test_one_row_over_many_calls_is_uniform_and_uncorrelated():
    """A row is drawn from once for each feature: the sequence over keys must be random as well."""
    source = streams(3, seed=11)
    drawn = np.array([source.uniform() for _ in range(20_000)])
    for j in range(3):
        assert stats.kstest(drawn[:, j], "uniform").pvalue > ALPHA
        assert stats.pearsonr(drawn[:-1, j], drawn[1:, j]).pvalue > ALPHA
    assert_independent_uniforms(drawn[:, 0], drawn[:, 1])


# ------------------------------------------------------------------ a row's numbers are its own


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


def test_a_row_gets_the_same_numbers_in_any_order_block_or_subset():
    whole = draw_all_ways(streams(1000))
    order = np.random.default_rng(1).permutation(1000)
    assert np.array_equal(draw_all_ways(streams(1000).take(order)), whole[order])
    subset = order[:137]
    assert np.array_equal(draw_all_ways(streams(1000).take(subset)), whole[subset])
    mask = np.random.default_rng(2).random(1000) < 0.3
    assert np.array_equal(draw_all_ways(streams(1000).take(mask)), whole[mask])
    blocks = [draw_all_ways(streams(1000).take(np.arange(1000)[i : i + 64])) for i in range(0, 1000, 64)]
    assert np.array_equal(np.concatenate(blocks), whole)


def test_equal_rows_share_their_numbers_and_draws_tell_them_apart():
    rows = hash_rows(np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]))
    drawn = RowStreams(1, rows, np.zeros(3, dtype=np.uint64)).words()
    assert drawn[0] == drawn[1] != drawn[2]
    drawn = RowStreams(1, rows, np.array([0, 1, 0], dtype=np.uint64)).words()
    assert np.unique(drawn).size == 3


def test_take_goes_on_from_the_same_call_and_leaves_the_parent_alone():
    source, twin = streams(100), streams(100)
    source.uniform()
    twin.uniform()
    part = source.take(np.arange(10))
    second = twin.uniform()
    assert np.array_equal(part.uniform(), second[:10])
    part.uniform()
    assert np.array_equal(source.uniform(), second)


def test_a_child_does_not_depend_on_the_calls_made_on_its_parent():
    source = streams(50)
    before = source.child("age", 3).uniform()
    source.uniform()
    assert np.array_equal(source.child("age", 3).uniform(), before)
    assert not np.array_equal(source.child("age", 4).uniform(), before)


def test_the_first_n_rows_are_the_same_for_any_n():
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


# ------------------------------------------------------------------ keys and hashes


def test_keys_are_stable_over_processes_and_versions():
    """blake2b of "int:1" and of "int:1<unit separator>str:age", 8 bytes little-endian (b2sum -l 64)."""
    assert derive_key(1) == int.from_bytes(bytes.fromhex(BLAKE_INT_1), "little")
    assert derive_key(1, "age") == int.from_bytes(bytes.fromhex(BLAKE_INT_1_AGE), "little")


BLAKE_INT_1 = "f99980eaeb4408dc"
BLAKE_INT_1_AGE = "4f0d78df50ad5ac7"


def test_keys_differ():
    labels = [
        (),
        (1,),
        ("1",),
        (1.0,),
        (1, 1),
        (11,),
        ("1", 1),
        (None,),
        ("None",),
        ("a", "b"),
        ("b", "a"),
        ("ab",),
    ]
    keys = [derive_key(*some) for some in labels] + [derive_key("seed", k) for k in range(10_000)]
    assert len(set(keys)) == len(keys)
    assert all(0 <= key < 2**64 for key in keys)


def test_equal_rows_have_equal_hashes():
    matrix = np.array(
        [[0.0, np.nan, 1.0], [-0.0, -np.nan, 1.0], [0.0, 0.0, 1.0], [np.nan, 0.0, 1.0], [0.0, 1.0, np.nan]]
    )
    matrix[1, 1] = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]  # another NaN
    hashed = hash_rows(matrix)
    assert hashed[0] == hashed[1]
    assert np.unique(hashed).size == 4
    assert np.array_equal(hash_rows(np.asfortranarray(matrix)), hashed)


def test_a_million_different_rows_have_different_hashes():
    first, second = np.meshgrid(np.arange(1000.0), np.arange(1000.0))
    matrix = np.column_stack([first.ravel(), second.ravel()])
    assert np.unique(hash_rows(matrix)).size == 1_000_000


def test_rows_of_no_columns_are_all_alike():
    assert np.unique(hash_rows(np.empty((5, 0)))).size == 1


# ------------------------------------------------------------------ seeds and errors


def test_seeds():
    assert resolve_seed(5) == 5
    assert resolve_seed(np.int64(5)) == 5
    assert type(resolve_seed(np.uint8(5))) is int
    assert resolve_seed(None) != resolve_seed(None)


@pytest.mark.parametrize("seed", [1.0, "1", True, np.random.default_rng(1)], ids=["float", "str", "bool", "generator"])
def test_a_seed_is_an_integer(seed):
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
