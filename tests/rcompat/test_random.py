"""R's random stream compared with numbers drawn by R (tests/fixtures/parity/rng.zip)."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.exceptions import InputError
from mcce.rcompat.random import RGenerator
from tests.rcompat.parity_cases import read_table


def by_seed(name: str):
    table = read_table("rng", name, text=["step"])
    return [pytest.param(seed, rows, id=f"seed {seed}") for seed, rows in table.groupby("seed")]


# ------------------------------------------------------------------ parity with R, bit for bit


@pytest.mark.parametrize(("seed", "rows"), by_seed("state_after_seed"))
def test_parity_of_the_state_after_set_seed(seed, rows):
    state = RGenerator(seed).random_seed
    assert state.size == 626
    assert state[[0, 1, 2, 3, 4, 625]].tolist() == rows.iloc[0].tolist()[1:]


@pytest.mark.parametrize(("seed", "rows"), by_seed("unif"))
def test_parity_of_uniforms(seed, rows):
    assert np.array_equal(RGenerator(seed).uniform(len(rows)), rows["value"])


@pytest.mark.parametrize(("seed", "rows"), by_seed("unif_far"))
def test_parity_of_uniforms_far_down_the_stream(seed, rows):
    assert np.array_equal(RGenerator(seed).uniform(rows["i"].max())[rows["i"] - 1], rows["value"])


@pytest.mark.parametrize(("seed", "rows"), by_seed("norm"))
def test_parity_of_normals(seed, rows):
    assert np.array_equal(RGenerator(seed).normal(len(rows)), rows["value"])


@pytest.mark.parametrize(("seed", "rows"), by_seed("sample_replace"))
def test_parity_of_sample_with_replacement(seed, rows):
    for n, drawn in zip(rows["n"], rows.filter(regex="^d").to_numpy()):
        assert np.array_equal(RGenerator(seed).sample_int(n, drawn.size, replace=True), drawn)
        assert np.array_equal(RGenerator(seed).indices(n, drawn.size) + 1, drawn)


@pytest.mark.parametrize(("seed", "rows"), by_seed("permutation25"))
def test_parity_of_permutations(seed, rows):
    expected = rows.filter(regex="^d").to_numpy()[0]
    assert np.array_equal(RGenerator(seed).permutation(25), expected)
    assert np.array_equal(RGenerator(seed).sample(np.arange(25)) + 1, expected)
    assert np.array_equal(RGenerator(seed).sample(25, 7), expected[:7])


@pytest.mark.parametrize(("seed", "rows"), by_seed("mixed_stream"))
def test_parity_of_a_mixed_stream(seed, rows):
    r = RGenerator(seed)
    steps = {
        "sample13": lambda size: r.sample(13, size, replace=True),
        "sample70001": lambda size: r.sample(70001, size, replace=True),
        "runif": r.uniform,
        "rnorm": r.normal,
        "sample1": lambda size: r.sample(1, size, replace=True),
        "sample13_again": lambda size: r.sample(13, size, replace=True),
    }
    for name, group in rows.groupby("step", sort=False):
        assert np.array_equal(steps[name](len(group)), group["value"]), name


# ------------------------------------------------------------------ other behaviour


def test_normals_are_the_quantiles_of_a_normal_distribution():
    r, twin = RGenerator(3), RGenerator(3)
    pairs = twin.uniform(400_000).reshape(-1, 2)
    p = (np.floor(2**27 * pairs[:, 0]) + pairs[:, 1]) / 2**27
    np.testing.assert_allclose(r.normal(200_000), stats.norm.ppf(p), rtol=1e-13, atol=1e-15)


def test_call_in_parts_equals_one_call():
    whole, parts = RGenerator(7), RGenerator(7)
    assert np.array_equal(whole.uniform(2000), np.concatenate([parts.uniform(n) for n in (0, 1, 623, 1, 700, 675)]))
    assert np.array_equal(whole.indices(70001, 500), np.concatenate([parts.indices(70001, n) for n in (0, 499, 1)]))
    assert np.array_equal(whole.normal(5), np.concatenate([parts.normal(2), parts.normal(3)]))


def test_stream_continues_from_a_recorded_state():
    r = RGenerator(5)
    r.uniform(1000)
    twin = RGenerator.from_random_seed(r.random_seed)
    assert twin.seed is None
    assert np.array_equal(twin.random_seed, r.random_seed)
    assert np.array_equal(r.normal(700), twin.normal(700))


def test_draw_without_replacement_from_a_large_range_has_no_repeats():
    n = 20_000_000
    drawn = RGenerator(1).sample_int(n, 10_000)  # about 2.5 repeats expected
    stream = RGenerator(1).indices(n, 10_100) + 1
    assert np.array_equal(drawn, pd.unique(stream)[:10_000])


def test_single_number_is_a_range_as_in_r_but_a_string_is_not():
    assert RGenerator(1).sample([5], 3, replace=True).tolist() == RGenerator(1).sample_int(5, 3, True).tolist()
    assert RGenerator(1).sample(["a"], 3, replace=True).tolist() == ["a", "a", "a"]
    assert RGenerator(1).sample([0.5], 2, replace=True).tolist() == [0.5, 0.5]
    assert RGenerator(1).sample(2.9).tolist() == RGenerator(1).sample(2).tolist()


def test_none_is_a_fresh_reusable_seed():
    one, two = RGenerator(None), RGenerator()
    assert one.seed != two.seed
    assert np.array_equal(RGenerator(one.seed).uniform(5), one.uniform(5))


@pytest.mark.parametrize("seed", [2**31, -(2**31), 1.0, True, float("nan"), "1"])
def test_seed_is_a_32_bit_integer(seed):
    with pytest.raises(InputError, match=r"seed of R's generator is .*integer from -2147483647 to 2147483647"):
        RGenerator(seed)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.uniform(-1), "n is -1; it must be a whole number of at least 0"),
        (lambda r: r.normal(1.5), "n is 1.5"),
        (lambda r: r.indices(0, 5), r"n is 0; it must be a whole number of at least 1 and at most 4500000000000000"),
        (lambda r: r.indices(2**52, 5), "n is 4503599627370496"),
        (lambda r: r.sample_int(5, 6), "cannot draw 6 of 5 without replacement"),
        (lambda r: r.sample([], 1), r"x has shape \(0,\)"),
        (lambda r: r.sample([[1, 2]], 1), r"x has shape \(1, 2\)"),
        (lambda r: RGenerator.from_random_seed([403, 1, 2]), r"random_seed has shape \(3,\).* begins with 403"),
        (lambda r: RGenerator.from_random_seed([]), "begins with nothing"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call(RGenerator(1))
