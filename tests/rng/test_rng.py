"""The random streams: known answers of Random123, a Philox in big integers, recorded bits, and statistical tests."""

import numpy as np
import pytest
from scipy import stats

from mcce.exceptions import InputError
from mcce.rng import RowStreams, derive_key, hash_rows, philox, resolve_seed

ALPHA = 1e-4  # level of each statistical test, all at fixed seeds
MASK = 2**64 - 1
N = 20_000

# Random123-1.14, tests/kat_vectors, "philox2x64 10": counter (2 words), key, result (2 words)
KNOWN_ANSWERS = [
    ((0, 0), 0, (0xCA00A0459843D731, 0x66C24222C9A845B5)),
    ((MASK, MASK), MASK, (0x65B021D60CD8310F, 0x4D02F3222F86DF20)),
    ((0x243F6A8885A308D3, 0x13198A2E03707344), 0xA4093822299F31D0, (0x0A5E742C2997341C, 0xB0F883D38000DE5D)),
]
ROWS = np.array([[1.5, 0.0, np.nan], [1.5, -0.0, np.nan], [2.0, 3.0, 4.0]])


def streams(n=N, seed=1):
    return RowStreams.from_seed(seed, n)


def philox_by_big_integers(key, c0, c1):
    """Salmon et al. 2011, section 3.3, in Python's unbounded integers."""
    for turn in range(10):
        product = 0xD2B74407B1CE6E93 * c0
        c0, c1 = (product >> 64) ^ ((key + turn * 0x9E3779B97F4A7C15) & MASK) ^ c1, product & MASK
    return c0, c1


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_matches_random123(counter, key, answer):
    assert tuple(map(int, philox(np.uint64(key), np.uint64(counter[0]), np.uint64(counter[1])))) == answer
    assert philox_by_big_integers(key, *counter) == answer


def test_words_are_philox_of_draw_and_row():
    source = np.random.default_rng(9)
    rows, draws = source.integers(0, MASK, size=(2, 50), dtype=np.uint64, endpoint=True)
    key = int(RowStreams(5, rows, draws).next_key())
    expected = [philox_by_big_integers(key, int(d), int(r))[0] for d, r in zip(draws, rows)]
    assert RowStreams(5, rows, draws).words().tolist() == expected


def test_the_bits_are_those_of_all_versions():
    """Recorded with version 33b8eed: the answers of one seed never change."""
    assert [derive_key(1), derive_key(1, "draw", 3)] == [15854998268200131065, 16714604380369049338]
    assert derive_key(7, "fit", "age") == 1373242957825959657
    hashes = hash_rows(ROWS)
    assert hashes.tolist() == [8716384423835469443, 8716384423835469443, 7542843688903746236]
    rng = RowStreams(derive_key(7, "draw"), hashes, np.arange(3, dtype=np.uint64))
    assert rng.words().tolist() == [7276660948815748381, 5999633882257277895, 5629647140087929950]
    assert rng.uniform().tolist() == [0.7423513183627354, 0.031047063304511235, 0.7704727280149634]
    assert rng.normal().tolist() == pytest.approx([-0.8629751271139302, -2.2842445381465897, -1.421282164835376])
    assert rng.integer(10).tolist() == [2, 2, 5]
    assert rng.integer(np.array([5, 100, 10**12])).tolist() == [1, 24, 918426815929]
    assert rng.categorical(np.array([0.2, 0.5, 0.3])).tolist() == [1, 1, 2]
    assert rng.child("a", 2).uniform().tolist() == [0.0322738349146533, 0.965505917063058, 0.37387706850663605]
    assert rng.take(np.array([2])).uniform().tolist() == [0.2952997126902497]
    assert rng.take(np.array([False, True, True])).words().tolist() == [2066505111385744096, 5447318225036998519]


def test_scaling_of_words():
    words = [int(word) for word in streams(300).words()]
    assert streams(300).uniform().tolist() == [(word >> 11) / 2**53 for word in words]
    for high in (1, 2, 7, 10**6, 2**62 + 1):
        assert streams(300).integer(high).tolist() == [word * high >> 64 for word in words]


@pytest.mark.parametrize("seed", [1, 2, -5, 2**70])
def test_uniform_and_normal(seed):
    rng = streams(seed=seed)
    u, v, z = rng.uniform(), rng.uniform(), rng.normal()
    assert stats.kstest(u, "uniform").pvalue > ALPHA
    assert stats.kstest(z, "norm").pvalue > ALPHA
    for first, second in [(u, v), (u[1:], u[:-1]), (u, stats.norm.cdf(z)), (u, rng.child("x").uniform())]:
        counts = np.histogram2d(first, second, bins=16, range=[[0, 1], [0, 1]])[0]
        assert stats.chisquare(counts.ravel()).pvalue > ALPHA


def test_categorical_follows_its_probabilities():
    p = np.array([0.5, 0.0, 0.2, 0.3])
    expected = p[p > 0] * N
    for probabilities in (p, 7 * np.tile(p, (N, 1))):
        counts = np.bincount(streams(seed=4).categorical(probabilities), minlength=4)
        assert counts[1] == 0
        assert stats.chisquare(counts[p > 0], expected).pvalue > ALPHA
    assert stats.chisquare(np.bincount(streams(seed=5).integer(97))).pvalue > ALPHA


def test_a_row_gets_the_same_numbers_in_any_company():
    rng, order = streams(100), np.random.default_rng(1).permutation(100)[:37]
    rng.uniform()
    cut = rng.take(order)
    assert (cut.uniform() == rng.uniform()[order]).all()
    assert (cut.child("b").normal() == rng.child("b").normal()[order]).all()


def test_keys_tell_labels_apart_but_not_the_classes_of_integers():
    keys = [derive_key(*labels) for labels in [(1,), (1, 2), (2, 1), ("1",), (12,), (1, "2")]]
    assert len(set(keys)) == len(keys)
    assert derive_key(1, np.int64(3)) == derive_key(1, 3)


def test_hash_rows_tells_rows_apart():
    rows = np.random.default_rng(2).integers(0, 30, (5000, 3)).astype(float)
    assert np.unique(hash_rows(rows)).size == np.unique(rows, axis=0).shape[0]
    assert (hash_rows(np.asfortranarray(rows)) == hash_rows(rows)).all()
    assert hash_rows(np.zeros((2, 0))).tolist()[0] == hash_rows(np.zeros((1, 0)))[0]


def test_bad_arguments():
    assert resolve_seed(None) != resolve_seed(None)
    assert resolve_seed(np.int32(5)) == 5
    for seed in (1.5, "1", True, 10**1000):
        with pytest.raises(InputError, match=r"random_state is .*; give an integer"):
            resolve_seed(seed)
    with pytest.raises(InputError, match="2 upper bounds for 3 rows"):
        streams(3).integer(np.array([1, 2]))
    with pytest.raises(InputError, match="at least 1, got 0"):
        streams(3).integer(0)
    with pytest.raises(InputError, match="2 rows of probabilities for 3 rows"):
        streams(3).categorical(np.ones((2, 2)))
    with pytest.raises(InputError, match="positive sum"):
        streams(3).categorical(np.array([0.0, 0.0]))
