"""A block of rows drawn within restrictions and rules: independent of other rows, rejections counted."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

import mcce.generators.chain
from mcce import ChainModel, InputError, NormRankSampler, Within
from mcce.generators.requests import DrawRequest
from tests.generators.rules import AtLeast, Never
from tests.marks import nightly, nightly_but

N = 3000
AGE, KIDS, GRADE, PAY, RENT = range(5)
SAMPLERS = {
    "cart": "cart",
    "norm": {"grade": "parametric", "*": "norm"},
    "copula": "copula",
    "rejection": {"grade": "parametric", "*": NormRankSampler(smoothing="density")},
}


@pytest.fixture(scope="module")
def families():
    rng = np.random.default_rng(5)
    age = rng.integers(18, 80, 1500)
    kids = np.rint(age / 12 + rng.normal(0, 1.5, 1500)).clip(0).astype(int)
    grade = pd.Categorical.from_codes(rng.integers(0, 3, 1500), ["low", "mid", "high"], ordered=True)
    pay = 10.0 * kids + rng.normal(0, 8, 1500)
    rent = 0.5 * pay + rng.normal(0, 8, 1500)
    return pd.DataFrame({"age": age, "kids": kids, "grade": grade, "pay": pay, "rent": rent})


@pytest.fixture(scope="module", params=nightly_but(SAMPLERS, "cart", "norm"))
def chain(request, families):
    return ChainModel(sampler=SAMPLERS[request.param], fixed=["age"], random_state=1).fit(families)


def request_of(n=N, **more):
    age = np.where(np.arange(n) % 3, 48.0, 30.0)[:, None]
    return DrawRequest(age, np.zeros(n, dtype=np.uint64), np.arange(n, dtype=np.uint64), 1, **more)


def constrained(n=N, **more):
    """Some rows are free of each restriction; one rule has bounds, another has none."""
    numbers = np.arange(n)
    few, none = numbers % 4 == 0, numbers % 44 == 0  # nothing between two whole numbers
    levels = np.ones((n, 3), dtype=bool)
    levels[numbers % 5 == 0] = [True, False, True]
    restrictions = {
        "kids": Within(low=np.where(few, 3.2, -np.inf), high=np.where(none, 3.7, np.where(few, 5.0, np.inf))),
        "grade": Within(levels=levels),
    }
    rules = (AtLeast(PAY, RENT, 1.0, bounds=False), AtLeast(PAY, AGE, -40.0), AtLeast(KIDS, AGE, -45.0))
    return request_of(n, restrictions=restrictions, rules=rules, **more)


def test_unrestricted_rows_are_identical_with_and_without_restrictions(chain):
    free = chain.draw(request_of()).rows
    drawn = chain.draw(replace(constrained(), rules=())).rows
    is_free = (np.arange(N) % 4 > 0) & (np.arange(N) % 5 > 0)
    np.testing.assert_array_equal(drawn[is_free], free[is_free])
    assert (drawn[~is_free] != free[~is_free]).any()
    # a restriction of no row has no effect
    nothing = {"kids": Within(low=np.full(N, -np.inf)), "grade": Within(levels=np.ones((N, 3), dtype=bool))}
    np.testing.assert_array_equal(chain.draw(request_of(restrictions=nothing)).rows, free)
    always = (AtLeast(RENT, PAY, -1e6, bounds=False), AtLeast(KIDS, AGE, -1e6, bounds=False))
    unbroken = chain.draw(request_of(rules=always, weighted=True))
    np.testing.assert_array_equal(unbroken.rows, free)
    np.testing.assert_array_equal(unbroken.log_weight, 0.0)


def test_bounds_beyond_all_donors_change_no_byte(families):
    chain = ChainModel(fixed=["age"], random_state=1).fit(families)
    low = np.full(N, families["pay"].min())
    wide = request_of(restrictions={"pay": Within(low=low)}, weighted=True)
    drawn = chain.draw(wide)
    np.testing.assert_array_equal(drawn.rows, chain.draw(request_of()).rows)
    assert drawn.acceptance().loc["pay"].tolist() == [0, 0]
    inside = request_of(restrictions={"pay": Within(low=np.nextafter(low, np.inf))})
    assert chain.draw(inside).tried == (N,)


def test_missing_value_is_restricted_only_where_it_can_be_drawn(families):
    gaps = families.assign(pay=families["pay"].mask(np.arange(1500) % 3 == 0))
    chain = ChainModel(fixed=["age"], random_state=1).fit(gaps)
    free = chain.draw(request_of()).rows
    may = np.arange(N) % 2 == 0
    drawn = chain.draw(request_of(restrictions={"pay": Within(missing=may)}, weighted=True))
    np.testing.assert_array_equal(drawn.rows[may], free[may])
    assert np.isnan(free[:, PAY]).any()
    assert not np.isnan(drawn.rows[~may, PAY]).any()
    assert np.exp(drawn.log_weight[~may]).mean() == pytest.approx(1.0 - np.isnan(free[:, PAY]).mean(), abs=0.03)


@pytest.mark.parametrize("weighted", [True, *nightly(False)])
def test_draws_are_identical_for_any_block_thread_or_rule_order(chain, weighted, monkeypatch):
    request = constrained(weighted=weighted)
    drawn = chain.draw(request)
    accepted = ~drawn.rejected
    assert 0.2 < accepted.mean() < 1.0
    rows = drawn.rows[accepted]
    assert (rows[:, PAY] >= rows[:, RENT] + 1.0).all()
    assert (rows[:, PAY] >= rows[:, AGE] - 40.0).all()
    assert (rows[:, KIDS] >= rows[:, AGE] - 45.0).all()
    for name, within in request.restrictions.items():
        assert within.take(accepted).allows(rows[:, list(chain.schema_.names).index(name)]).all()

    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 700)
    monkeypatch.setattr(chain, "n_jobs", 2)
    again = chain.draw(replace(request, rules=request.rules[::-1]))
    np.testing.assert_array_equal(again.rows, drawn.rows)
    by_name = [[d.constraints[code] if code >= 0 else None for code in d.rejected_by] for d in (drawn, again)]
    assert by_name[0] == by_name[1]
    pd.testing.assert_frame_equal(again.acceptance().loc[list(drawn.constraints)], drawn.acceptance())
    some = chain.draw(request.take(slice(1001, 1100)))
    np.testing.assert_array_equal(some.rows, drawn.rows[1001:1100])
    if weighted:
        np.testing.assert_array_equal(again.log_weight, drawn.log_weight)
        np.testing.assert_array_equal(np.isneginf(drawn.log_weight), drawn.rejected)
    else:
        assert drawn.log_weight is None


@pytest.mark.slow
def test_weights_do_not_change_rows(chain):
    plain, weighted = (chain.draw(constrained(weighted=w)) for w in (False, True))
    np.testing.assert_array_equal(plain.rows, weighted.rows)
    np.testing.assert_array_equal(plain.rejected_by, weighted.rejected_by)


@pytest.mark.slow
def test_rules_with_and_without_bounds_have_the_same_distribution(families):
    chain = ChainModel(sampler={"grade": "parametric", "*": "norm"}, fixed=["age"], random_state=1).fit(families)
    means = []
    for bounds in (True, False):
        drawn = chain.draw(request_of(20_000, rules=(AtLeast(RENT, PAY, -20.0, bounds=bounds),), weighted=True))
        weights = np.where(drawn.rejected, 0.0, np.exp(drawn.log_weight))
        means.append([weights.mean(), *np.average(drawn.rows[:, [KIDS, PAY, RENT]], axis=0, weights=weights)])
    np.testing.assert_allclose(*means, rtol=0.05)


def test_rules_may_read_the_factual_of_each_row(families):
    chain = ChainModel(fixed=["age"], random_state=1).fit(families)
    factuals = chain.schema_.encode(families).matrix[np.arange(N) % 1500]
    request = request_of(rules=(AtLeast(KIDS, KIDS, 1.0, of_factual=True),), factuals=factuals)
    drawn = chain.draw(request)
    accepted = ~drawn.rejected
    assert 0.2 < accepted.mean() < 1.0
    assert (drawn.rows[accepted, KIDS] >= factuals[accepted, KIDS] + 1.0).all()
    part = slice(500, 900)
    np.testing.assert_array_equal(chain.draw(request.take(part)).rows, drawn.rows[part])


def test_rejected_row_is_counted_at_its_cause(families):
    chain = ChainModel(fixed=["age"], random_state=1).fit(families)
    numbers = np.arange(N)
    restrictions = {
        "rent": Within(low=np.where(numbers % 5 == 4, 1e6, -np.inf)),
        "kids": Within(low=np.where(numbers % 5 == 1, 100.0, np.where(numbers % 5 == 2, 0.0, -np.inf))),
    }
    rules = (
        Selected(numbers % 5 == 0, Never((AGE,)), "given"),
        Selected(numbers % 5 == 2, AtLeast(KIDS, AGE, 1.0), "bounds"),
        Selected(numbers % 5 == 3, Never((GRADE, AGE)), "redrawn"),
        Selected(numbers % 5 == 4, Never((RENT,)), "too late"),
    )
    drawn = chain.draw(request_of(restrictions=restrictions, rules=rules, factuals=numbers[:, None] * 1.0))
    assert drawn.rejected.all()
    rejected_by = np.array(drawn.constraints, dtype=object)[drawn.rejected_by]
    expected = np.array(["given", "kids", "bounds", "redrawn", "rent"], dtype=object)[numbers % 5]
    np.testing.assert_array_equal(rejected_by, expected)
    counts = drawn.acceptance()
    assert counts.index.tolist() == ["rent", "kids", "given", "bounds", "redrawn", "too late"]
    fifth = N // 5
    assert counts["passed"].tolist() == [0, 0, 4 * fifth, 2 * fifth, fifth, 0]
    assert counts["tried"].tolist() == [fifth, fifth, N, 3 * fifth, 2 * fifth, 0]


@dataclass(frozen=True)
class Selected:
    """A rule for some rows, whose numbers replace the factuals."""

    rows: np.ndarray
    rule: object
    name: str

    @property
    def columns(self):
        return self.rule.columns

    def holds(self, rows, factuals):
        return self.rule.holds(rows, None) | ~self.rows[factuals[:, 0].astype(int)]

    def within_for(self, column, rows, factuals):
        within = self.rule.within_for(column, rows, None)
        if within is None:
            return None
        mine = self.rows[factuals[:, 0].astype(int)]
        return Within(low=np.where(mine, within.low, -np.inf), missing=~mine)

    def __str__(self):
        return self.name


def test_restricted_given_rejects_rows_outside(families):
    chain = ChainModel(fixed=["age"], random_state=1).fit(families)
    drawn = chain.draw(request_of(restrictions={"age": Within(low=np.full(N, 40.0))}))
    np.testing.assert_array_equal(drawn.rejected, np.arange(N) % 3 == 0)
    with pytest.raises(InputError, match="a restriction names 'pya', which is not a feature; did you mean 'pay'"):
        chain.draw(request_of(restrictions={"pya": Within(low=np.zeros(N))}))
