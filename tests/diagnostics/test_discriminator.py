"""The discriminator on samples of known distributions."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import mcce
from mcce.diagnostics import Discriminator, discriminator
from tests.marks import nightly

LEVELS = ["clerk", "manager", "pilot"]


def normal(n, seed, shift=0.0, correlation=0.0):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    return pd.DataFrame({"a": a + shift, "b": correlation * a + math.sqrt(1 - correlation**2) * b})


def mixed(n, seed):
    """All kinds of column, with missing values."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    job = np.array(LEVELS)[np.clip(age // 10 - 2 - rng.integers(0, 2, n), 0, 2)]
    frame = pd.DataFrame(
        {
            "age": age,
            "salary": np.where(rng.random(n) < 0.2, np.nan, 1000.0 * age + 5000 * rng.standard_normal(n)),
            "job": pd.Categorical(job, LEVELS),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "city": rng.choice(["Oslo", "Bergen"], n),
            "member": rng.random(n) < 0.4,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "visits": pd.array(rng.poisson(2, n), dtype="Int64"),
        }
    )
    frame.loc[rng.random(n) < 0.1, "visits"] = pd.NA
    frame.loc[rng.random(n) < 0.1, "city"] = None
    return frame


def within_chance(d: Discriminator, level=1e-3):
    """The mean of seeds that share the data varies at most as one seed's accuracy: binomial with 2 n_test rows."""
    n = 2 * d.settings["n_test"]
    low, high = binom.ppf([level / 2, 1 - level / 2], n, 0.5) / n
    return low <= d.accuracy <= high


# ---------------------------------------------------------------- statistics


@pytest.mark.slow
@pytest.mark.parametrize("sample", [mixed, *nightly(normal)])
def test_samples_of_one_distribution_are_indistinguishable(sample):
    d = discriminator(sample(1000, 1), sample(1000, 2), n_trees=25)
    assert within_chance(d), d


@pytest.mark.slow
def test_different_samples_are_distinguished():
    assert discriminator(normal(300, 1), normal(300, 2, shift=20), n_trees=25).accuracy == 1.0


def test_large_leaves_reach_the_optimal_accuracy():
    """Two normals that differ by 1 are classified with accuracy Phi(1/2) at best; with leaves of one row, 0.6."""
    d = discriminator(normal(2000, 1)[["a"]], normal(2000, 2, 1.0)[["a"]], n_trees=10, min_leaf=50, n_seeds=2)
    assert d.accuracy == pytest.approx(norm.cdf(0.5), abs=3.29 * 0.46 / math.sqrt(1200))


@pytest.mark.nightly
def test_accuracy_grows_with_the_shift_up_to_the_optimum():
    """Two normals that differ by `shift` are classified with accuracy Phi(shift / 2) at best."""
    real = normal(2000, 1)[["a"]]
    shifts = [0.0, 0.5, 1.0, 2.0, 4.0]
    found = [
        discriminator(real, normal(2000, 2, shift)[["a"]], n_trees=50, min_leaf=50, n_seeds=3).accuracy
        for shift in shifts
    ]
    assert found == sorted(found)
    best = norm.cdf(np.array(shifts) / 2)
    assert found == pytest.approx(best, abs=3.29 * 0.5 / math.sqrt(1200))


@pytest.mark.slow
def test_lost_correlation_is_detected_with_correct_margins():
    d = discriminator(normal(1000, 1, correlation=0.9), normal(1000, 2), n_trees=25)
    assert 0.65 < d.accuracy < 0.758 + 3.29 * 0.43 / math.sqrt(600)  # 0.758, the optimum from the two densities


@pytest.mark.slow
def test_copies_of_the_real_rows_score_below_one_half():
    real = normal(1000, 1)
    d = discriminator(real, real.sample(1000, replace=True, random_state=1), n_trees=25)
    assert d.accuracy < 0.45
    assert not within_chance(d)


@pytest.mark.slow
def test_pairs_stay_on_one_side_of_the_split():
    """Both tables share a column of distinct values and otherwise have the same distribution."""
    given = np.arange(800.0)
    real, generated = (normal(800, seed).assign(given=given) for seed in (1, 2))
    together = discriminator(real, generated, paired=True, n_trees=50)
    apart = discriminator(real, generated, n_trees=50)
    assert within_chance(together), together
    assert apart.accuracy < together.accuracy


# ---------------------------------------------------------------- columns


@pytest.mark.slow
def test_every_kind_of_column_is_used():
    real, other = mixed(400, 1), mixed(400, 2)
    changed = {
        "age": other["age"] + 100,
        "salary": other["salary"].mask(other["salary"].notna()),
        "job": pd.Categorical(np.where(np.arange(400) % 50 > 0, "pilot", other["job"]), LEVELS),
        "size": pd.Categorical(["L"] * 400, ["S", "M", "L"], ordered=True),
        "city": other["city"].fillna("Oslo").replace("Bergen", "Oslo"),
        "member": ~other["member"],
        "since": other["since"] + pd.Timedelta(days=365),
        "visits": other["visits"].fillna(1) + 3,
    }
    for column, values in changed.items():
        d = discriminator(real, other.assign(**{column: values}), n_trees=25, n_seeds=2)
        assert d.accuracy > 0.55, column


@pytest.mark.slow
def test_values_only_in_the_generated_table_are_detected():
    real = pd.DataFrame({"n": np.arange(100) % 7, "level": ["a", "b"] * 50})
    for generated in (real.assign(n=real["n"] + 0.5), real.assign(level=["c", "d"] * 50)):
        assert discriminator(real, generated, n_trees=25).accuracy == 1.0


@pytest.mark.slow
def test_names_of_levels_and_order_of_columns_do_not_matter():
    real, other = mixed(300, 1), mixed(300, 2)
    expected = discriminator(real, other, n_trees=10)
    renamed = [
        f.assign(job=f["job"].map({"clerk": "z", "manager": "y", "pilot": "x"}).astype(str)) for f in (real, other)
    ]
    assert real["job"].value_counts().is_unique
    assert discriminator(*renamed, n_trees=10).accuracies == expected.accuracies
    assert discriminator(real, other[other.columns[::-1]], n_trees=10).accuracies == expected.accuracies


@pytest.mark.slow
def test_numbers_of_any_size_are_ranked():
    real, other = normal(200, 1), normal(200, 2)
    expected = discriminator(real, other, n_trees=10).accuracies
    assert discriminator(real * 1e200, other * 1e200, n_trees=10).accuracies == expected
    assert discriminator(real.to_numpy(), other.to_numpy(), n_trees=10).accuracies == expected


# ---------------------------------------------------------------- the result


@pytest.mark.slow
def test_same_seed_gives_same_answer_for_any_number_of_threads():
    real, other = mixed(300, 1), mixed(300, 2)
    one = discriminator(real, other, n_trees=10, random_state=3, n_jobs=1)
    assert discriminator(real, other, n_trees=10, random_state=3, n_jobs=3) == one
    assert discriminator(real, other, n_trees=10, random_state=4).accuracies != one.accuracies
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    discriminator(real, other, n_trees=2, random_state=None, n_seeds=1)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_result():
    d = discriminator(normal(200, 1), normal(150, 2), n_trees=5, n_seeds=3, max_rows=100, test_size=0.25)
    assert float(d) == d.accuracy == pytest.approx(np.mean(d.accuracies))
    assert d.sd == pytest.approx(np.std(d.accuracies, ddof=1))
    assert len(d.accuracies) == 3
    assert (d.settings["n_rows"], d.settings["n_test"], d.settings["n_trees"]) == (100, 25, 5)
    assert f"accuracy {d.accuracy:.3f}, sd {d.sd:.3f} over 3 seeds; 100 real and 100 generated rows" in repr(d)
    assert mcce.diagnostics.discriminator is discriminator
    one = discriminator(normal(200, 1), normal(150, 2), n_trees=5, n_seeds=1)
    assert one.settings["n_rows"] == 150
    assert math.isnan(one.sd)
    assert "one seed" in repr(one)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("real", "generated", "settings", "message"),
    [
        (normal(50, 1), normal(50, 2)[["a"]], {}, r"generated lacks the column\(s\) 'b' of real"),
        (normal(50, 1)[["a"]], normal(50, 2), {}, r"real lacks the column\(s\) 'b' of generated"),
        (normal(50, 1), normal(9, 2), {}, r"generated has 9 row\(s\); the comparison needs at least 10"),
        (normal(3, 1), normal(50, 2), {}, r"real has 3 row\(s\)"),
        (pd.DataFrame(index=range(20)), pd.DataFrame(index=range(20)), {}, "have no columns"),
        ([[1.0, 2.0]] * 20, normal(50, 2), {}, "real is a list"),
        (normal(50, 1), normal(50, 2).assign(a="x"), {}, "column 'a' of generated is numeric in the training data"),
        (normal(50, 1), normal(50, 2).assign(a=np.inf), {}, "column 'a' of generated holds 50 infinite"),
        (normal(50, 1), normal(40, 2), {"paired": True}, "real has 50 rows and generated 40"),
        (normal(50, 1), normal(50, 2), {"test_size": 1.0}, "test_size is 1.0"),
        (normal(50, 1), normal(50, 2), {"test_size": 10}, "test_size is 10"),
        (normal(50, 1), normal(50, 2), {"max_rows": 5}, "max_rows is 5"),
        (normal(50, 1), normal(50, 2), {"n_seeds": 0}, "n_seeds is 0"),
        (normal(50, 1), normal(50, 2), {"n_trees": 2.5}, "n_trees is 2.5"),
        (normal(50, 1), normal(50, 2), {"min_leaf": True}, "min_leaf is True"),
        (normal(50, 1), normal(50, 2), {"random_state": "one"}, "random_state is 'one'"),
        (normal(50, 1), normal(50, 2), {"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_invalid_input_raises(real, generated, settings, message):
    with pytest.raises(mcce.InputError, match=message):
        discriminator(real, generated, **settings)
