"""Restricted draws: against rejection, and against truncated distributions."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.exceptions import InputError
from mcce.generators import ChainModel
from mcce.samplers import Within
from tests.generators.problem import Constant, Rule, Uniform, request_for, table, with_gaps

X = table()
N = 4000


def names_of(chain):
    return {name: j for j, name in enumerate(chain.schema_.names)}


@pytest.fixture(scope="module", params=["cart", "norm", "uniform"])
def chain(request):
    sampler = {"salary": Uniform() if request.param == "uniform" else request.param, "home": "logreg"}
    return ChainModel(fixed=["age"], sampler=sampler, random_state=1).fit(X)


def test_bounds_truncate_the_last_column(chain):
    """Given the columns before it, a restricted draw is distributed as the free draws that are allowed."""
    last = names_of(chain)["salary"]
    free = chain.draw(request_for(chain, 20_000, seed=1)).rows[:, last]
    low, high = np.quantile(free, [0.3, 0.7]).round(1)
    bounds = Within(low=np.full(N, low), high=np.full(N, high))
    drawn = chain.draw(request_for(chain, N, within={last: bounds}))
    values = drawn.rows[~drawn.rejected, last]
    assert ((values >= low) & (values <= high)).all()
    assert drawn.rejected.mean() < 0.35  # an own conditional may have no mass there
    np.testing.assert_allclose(values * 10, np.round(values * 10), atol=1e-9)  # the grid
    others = [j for j in range(len(chain.schema_)) if j < last]
    np.testing.assert_array_equal(drawn.rows[:, others], chain.draw(request_for(chain, N)).rows[:, others])


def test_truncated_normal_of_a_chain():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": [0.0, 1.0] * 4000, "y": rng.normal(size=8000)})
    chain = ChainModel(fixed=["x"], sampler="norm", random_state=1).fit(frame)
    drawn = chain.draw(request_for(chain, N, [0.0], within={1: Within(low=np.full(N, 1.0), high=np.full(N, 2.0))}))
    assert not drawn.rejected.any()
    assert stats.kstest(drawn.rows[:, 1], stats.truncnorm(1, 2).cdf).pvalue > 1e-4


def test_rows_have_their_own_restrictions(chain):
    place = names_of(chain)
    levels = np.zeros((N, 2), dtype=bool)
    levels[np.arange(N), np.arange(N) % 2] = True
    within = {place["home"]: Within(levels=levels), place["school"]: Within(low=np.full(N, 1.0))}
    drawn = chain.draw(request_for(chain, N, within=within))
    kept = ~drawn.rejected
    assert kept.mean() > 0.7
    assert (drawn.rows[kept, place["home"]] == np.arange(N)[kept] % 2).all()
    assert (drawn.rows[kept, place["school"]] >= 1).all()


def test_finite_sets_of_numbers(chain):
    place = names_of(chain)["salary"]
    allowed = np.array([40.0, 41.5, 44.0, 48.0])
    drawn = chain.draw(request_for(chain, 500, within={place: Within(values=allowed)}))
    assert np.isin(drawn.rows[~drawn.rejected, place], allowed).all()


@pytest.mark.parametrize("sampler", ["cart", "norm"])
def test_values_that_may_not_be_missing(sampler):
    gaps = with_gaps(X)
    chain = ChainModel(fixed=["age"], sampler={"salary": sampler, "home": "cart"}, random_state=1).fit(gaps)
    place = names_of(chain)["salary"]
    may_miss = np.arange(N) % 2 == 0
    drawn = chain.draw(request_for(chain, N, within={place: Within(missing=may_miss)}))
    is_missing = np.isnan(drawn.rows[:, place])
    assert not is_missing[~may_miss & ~drawn.rejected].any()
    assert is_missing[may_miss].mean() == pytest.approx(0.2, abs=0.2)  # of one age


def test_nothing_allowed_is_rejected_and_the_row_goes_on(chain):
    place = names_of(chain)["salary"]
    impossible = np.where(np.arange(100) < 30, 1e6, -np.inf)
    drawn = chain.draw(request_for(chain, 100, within={place: Within(low=impossible)}))
    assert drawn.rejected.tolist() == [True] * 30 + [False] * 70
    assert np.isfinite(drawn.rows).all()
    if not isinstance(chain.conditional("salary"), Uniform):  # restricted by rejection, which takes other streams
        free = chain.draw(request_for(chain, 100)).rows
        np.testing.assert_array_equal(drawn.rows[30:, place], free[30:, place])


# ---------------------------------------------------------------- rules


def test_rule_is_rejection_of_its_last_column():
    """x uniform, y | x uniform, rule y > x: x keeps its distribution, and y is uniform on (x, 1)."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.random(500) * 0.8, "y": rng.random(500)})
    chain = ChainModel(sampler=Uniform(), random_state=1).fit(frame)
    drawn = chain.draw(request_for(chain, N, rules=(Rule((0, 1), lambda rows: rows[:, 1] > rows[:, 0]),)))
    x, y = drawn.rows[~drawn.rejected].T
    assert drawn.rejected.sum() == 0
    top = frame["y"].max()
    assert stats.kstest(x / frame["x"].max(), "uniform").pvalue > 1e-4
    assert stats.kstest((y - x) / (top - x), "uniform").pvalue > 1e-4
    free = chain.draw(request_for(chain, N)).rows
    kept = free[:, 1] > free[:, 0]
    np.testing.assert_array_equal(drawn.rows[kept], free[kept])  # rows that satisfy it are not drawn again


def test_rules_and_bounds_hold_together(chain):
    place = names_of(chain)
    salary, school = place["salary"], place["school"]
    within = {salary: Within(low=np.full(N, 38.0))}
    rules = (
        Rule((salary, school), lambda rows: (rows[:, salary] < 50) | (rows[:, school] == 2)),
        Rule((salary,), lambda rows: np.round(rows[:, salary]) % 2 == 0),
    )
    drawn = chain.draw(request_for(chain, N, within=within, rules=rules))
    assert drawn.rejected.mean() < 0.35
    assert not chain.breaks(request_for(chain, N, within=within, rules=rules), drawn.rows)[~drawn.rejected].any()
    swapped = chain.draw(request_for(chain, N, within=within, rules=rules[::-1]))
    np.testing.assert_array_equal(swapped.rows, drawn.rows)


def test_rule_that_no_row_satisfies(chain):
    drawn = chain.draw(request_for(chain, 50, rules=(Rule((1,), lambda rows: np.zeros(len(rows), dtype=bool)),)))
    assert drawn.rejected.all()
    assert np.isfinite(drawn.rows).all()


def test_rule_of_fixed_columns_rejects_at_once(chain):
    request = request_for(chain, 4)
    request.given[:2, 0] = 99
    drawn = chain.draw(
        type(request)(request.given, request.rows, request.draws, 1, rules=(Rule((0,), lambda rows: rows[:, 0] < 90),))
    )
    assert drawn.rejected.tolist() == [True, True, False, False]


def test_rule_reads_the_factual_of_each_row(chain):
    salary = names_of(chain)["salary"]
    factuals = np.full((N, len(chain.schema_)), np.nan)
    factuals[:, salary] = np.where(np.arange(N) % 2, 52.0, 58.0)
    rule = Rule((salary,), lambda rows, own: np.abs(rows[:, salary] - own[:, salary]) < 5)
    request = request_for(chain, N, rules=(rule,), factuals=factuals)
    drawn = chain.draw(request)
    kept = ~drawn.rejected
    assert kept.mean() > 0.5
    assert (np.abs(drawn.rows[kept, salary] - factuals[kept, salary]) < 5).all()
    part = chain.draw(request.take(np.arange(1000, 1100)))
    np.testing.assert_array_equal(part.rows, drawn.rows[1000:1100])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("salary", np.inf, "drew inf for 'salary'"),
        ("age", np.nan, r"drew nan for 'age' \(5 of 5 draws\); each draw must be finite\."),
        ("home", 2.0, "drew 2 for 'home'"),
        ("home", 0.5, "drew 0.5 for 'home'"),
    ],
)
def test_draws_are_checked(column, value, message):
    chain = ChainModel(sampler={column: Constant(value)}, random_state=1).fit(X)
    with pytest.raises(InputError, match=message):
        chain.sample(5)


def test_numbers_are_rounded_to_the_grid():
    chain = ChainModel(sampler={"age": Constant(30.4), "salary": Constant(41.26)}, random_state=1).fit(X)
    drawn = chain.sample(3)
    assert drawn["age"].tolist() == [30] * 3
    assert drawn["salary"].tolist() == [41.3] * 3
    normal = ChainModel(sampler={"salary": "norm", "age": "norm", "since": "norm"}, random_state=1).fit(X).sample(200)
    assert (normal["salary"] == normal["salary"].round(1)).all()
    assert (normal["since"] == normal["since"].dt.normalize()).all()
