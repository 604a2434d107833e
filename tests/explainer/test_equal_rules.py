"""Equivalent constraints, by `allow` or by any form of rule, explain the same factuals."""

import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcce
from mcce.exceptions import InputError
from tests.marks import nightly, slow

LOANS = mcce.datasets.load_loans(1000).X.select_dtypes("number")


def affordable(rows):
    return rows["savings"] + rows["salary"] >= 90_000


POOR = LOANS[~affordable(LOANS)].iloc[:10]


@pytest.fixture(scope="module")
def bank():
    return mcce.MCCE(None, decision=affordable, fixed=["age"], random_state=1).fit(LOANS)


def no_raise(rows, was):
    return rows["salary"] <= was["salary"]


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    "said",
    [
        mcce.allow("salary", direction="decrease"),
        mcce.allow("salary", max_step=50),
        *slow("salary <= was(salary)", "if salary > was(salary) then salary < 0"),
        *slow("salary == was(salary) or loan_amount < 0"),
        *nightly(
            "salary - was(salary) <= 0",
            mcce.rule(no_raise, features=["salary"]),
            "abs(salary - was(salary)) <= 50",
            "salary == was(salary) or salary > 10 * was(salary)",
        ),
        "salary + loan_amount <= was(salary) + was(loan_amount)",
    ],
    ids=str,
)
def test_savings_alone_suffice(bank, said, sparse):
    """The salary need not change: more savings suffice for any allowed salary."""
    found = bank.explain(POOR, constraints=[said], sparse=sparse)
    assert found.frame.index.get_level_values("id").nunique() == len(POOR)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [True, False])
def test_violated_rule_does_not_cancel_a_satisfied_one(bank, sparse):
    constraints = ["abs(salary - was(salary)) <= 50", "savings - was(savings) >= 1000"]
    found = bank.explain(POOR, constraints=constraints, sparse=sparse)
    assert found.frame.index.get_level_values("id").nunique() == len(POOR)


@pytest.mark.slow
def test_bounds_as_rule_and_as_allow_draw_the_same_rows(bank):
    """A rule that bounds one feature is a limit on it: the same pools and the same bytes."""
    for sparse in (True, False):
        by_rule, by_limit = (
            bank.explain(POOR, constraints=[said], sparse=sparse, n_samples=200)
            for said in ("salary <= was(salary)", mcce.allow("salary", direction="decrease"))
        )
        pd.testing.assert_frame_equal(by_rule.frame, by_limit.frame)
        assert by_rule.run.settings["pools"] == by_limit.run.settings["pools"]
        np.testing.assert_array_equal(by_rule.constraints.to_numpy(), by_limit.constraints.to_numpy())


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("said", ["loan_amount <= 30000", mcce.allow("loan_amount", high=30_000)], ids=str)
def test_upper_bound_below_all_accepted_rows_keeps_lower_values(said, sparse):
    """All accepted rows have loans larger by at least 50,000; factuals below 30,000 keep their loan below it."""
    table = LOANS.assign(loan_amount=LOANS["loan_amount"] + 50_000 * affordable(LOANS))
    bank = mcce.MCCE(None, decision=affordable, fixed=["age"], random_state=1).fit(table)
    small = table[~affordable(table) & (table["loan_amount"] < 30_000)].iloc[:6]
    found = bank.explain(small, constraints=[said], sparse=sparse, n_samples=200)
    assert found.frame.index.get_level_values("id").nunique() == len(small)


@pytest.mark.nightly
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    "more",
    [
        "abs(savings - was(savings)) <= 10 and savings != was(savings)",
        "savings <= was(savings)",
        "savings + loan_amount <= was(savings) + was(loan_amount)",
    ],
)
def test_rejections_do_not_exceed_draws_and_suggested_relaxation_helps(bank, more, sparse):
    constraints = ["salary <= was(salary)", "abs(loan_amount - was(loan_amount)) <= 50", more]
    options = {"sparse": sparse, "n_samples": 100}
    found = bank.explain(POOR, constraints=constraints, **options).with_why_unexplained()
    drawn = found.unexplained[found.unexplained["drawn"].notna()]
    assert len(drawn) > 0
    for _, row in drawn.iterrows():
        rejected = [int(part.split(" by ")[0]) for part in row["rejected"].split(", ") if part != "none"]
        assert sum(rejected) <= row["drawn"]
    for id, row in drawn.head(10).iterrows():  # each is explained again without each constraint
        for text in constraints:
            left = [each for each in constraints if each != text]
            alone = bank.explain(POOR.loc[[id]], constraints=left, **options)
            assert (len(alone) > 0) == (f"without the constraint {text!r}" in row["would_help"])


# ---- random constraints on a table that can be enumerated

GRADES = ["low", "middle", "high"]
SMALL = pd.DataFrame(
    [(age, x, y, g) for age in (30, 60) for x in range(5) for y in range(5) for g in GRADES],
    columns=["age", "x", "y", "grade"],
).assign(grade=lambda t: pd.Categorical(t["grade"], categories=GRADES, ordered=True))
ROWS = list(SMALL.drop_duplicates(["x", "y", "grade"])[["x", "y", "grade"]].itertuples(index=False))
LEAST = 7


def rich(rows):
    return rows["x"] + rows["y"] + rows["grade"].cat.codes >= LEAST


def is_rich(row):
    return row.x + row.y + GRADES.index(row.grade) >= LEAST


SOME = SMALL[~rich(SMALL)].iloc[::9]
DRAWS = 1500  # 75 distinct rows: the probability that one is never drawn is 1e-8


@functools.cache
def everybody():
    """A generator that draws every row with the same probability."""
    return mcce.MCCE(
        None, decision=rich, fixed=["age"], sampler="marginal", condition_on_decision=False, random_state=2
    ).fit(SMALL)


@st.composite
def demands(draw):
    """Return the spellings of a constraint, and a check of it in plain Python."""
    f = draw(st.sampled_from(["x", "y"]))
    c, k = draw(st.integers(1, 3)), draw(st.integers(0, 2))

    def of(row):
        return getattr(row, f)

    return draw(
        st.sampled_from(
            [
                (
                    (
                        mcce.allow(f, direction="decrease"),
                        f"{f} <= was({f})",
                        f"max({f}, was({f})) == was({f})",
                        f"not was({f}) < {f}",
                        mcce.rule(lambda rows, was: rows[f] <= was[f], features=[f], name=f"no more {f}"),
                    ),
                    lambda r, o: of(r) <= of(o),
                ),
                (
                    (
                        mcce.allow(f, max_step=k),
                        f"abs({f} - was({f})) <= {k}",
                        f"was({f}) - {k} <= {f} <= was({f}) + {k}",
                        f"({f} - was({f})) * ({f} - was({f})) <= {k * k}",
                    ),
                    lambda r, o: abs(of(r) - of(o)) <= k,
                ),
                (
                    (mcce.allow(f, direction="none"), f"{f} == was({f})", f"{f} - was({f}) == 0"),
                    lambda r, o: of(r) == of(o),
                ),
                (
                    (mcce.allow(f, low=c), f"{f} >= {c}", f"2 * {f} >= {2 * c}", f"{f} == {c} or {f} > {c}"),
                    lambda r, o: of(r) >= c,
                ),
                (
                    (mcce.allow(f, never=[c]), f"{f} != {c}", f"{f} < {c} or {f} > {c}", f"{f} not in [{c}]"),
                    lambda r, o: of(r) != c,
                ),
                (
                    (mcce.allow(f, step=2), f"{f} == was({f}) or {f} in [0, 2, 4]"),
                    lambda r, o: of(r) == of(o) or of(r) % 2 == 0,
                ),
                (
                    (mcce.allow("grade", direction="increase"), "grade >= was(grade)", "not grade < was(grade)"),
                    lambda r, o: GRADES.index(r.grade) >= GRADES.index(o.grade),
                ),
                (
                    (mcce.allow("grade", levels=["low", "high"]), "grade in ['low', 'high']", "grade != 'middle'"),
                    lambda r, o: r.grade != "middle",
                ),
                (
                    ("x + y <= was(x) + was(y) + 1", "not x > was(x) + was(y) + 1 - y"),
                    lambda r, o: r.x + r.y <= o.x + o.y + 1,
                ),
                (
                    ("y == was(y) or grade == was(grade)", "if y != was(y) then grade == was(grade)"),
                    lambda r, o: r.y == o.y or r.grade == o.grade,
                ),
                (
                    (f"{f} == was({f}) or {f} > 3 * was({f})", f"not ({f} != was({f}) and {f} <= 3 * was({f}))"),
                    lambda r, o: of(r) == of(o) or of(r) > 3 * of(o),
                ),
            ]
        )
    )


def explained(said, sparse):
    """Return which factuals have a counterfactual; none if explain raises."""
    options = {"sparse": True, "floor": 0.0} if sparse else {}
    try:
        found = everybody().explain(SOME, constraints=said, n_samples=DRAWS, **options)
    except InputError as error:
        if "leave no value for any of" in str(error):
            return set()
        raise
    return set(found.frame.index.get_level_values("id"))


@pytest.mark.slow
@pytest.mark.parametrize("n_examples", [3, *nightly(10)])
def test_equivalent_constraints_explain_the_same_factuals(n_examples):
    generated = given(st.lists(demands(), min_size=1, max_size=3), st.booleans(), st.randoms(use_true_random=False))
    settings(max_examples=n_examples)(generated(explain_the_same_people))()


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("said", [mcce.allow("y", step=2), "y == was(y) or y in [0, 2, 4]"], ids=str)
def test_value_between_grid_steps_may_be_kept_with_rules(said, sparse):
    """The only answer keeps y = 3 and increases x and grade by one; draws of y are on the steps."""
    one = SMALL[(SMALL["age"] == 60) & (SMALL["x"] == 1) & (SMALL["y"] == 3) & (SMALL["grade"] == "middle")]
    constraints = ["x + y <= was(x) + was(y) + 1", "y == was(y) or grade == was(grade)", said]
    found = everybody().explain(one, constraints=constraints, sparse=sparse, n_samples=DRAWS)
    assert found.frame[["x", "y", "grade"]].to_numpy().tolist() == [[2, 3, "high"]]


def explain_the_same_people(constraints, sparse, random):
    could_be = {
        id
        for id, own in zip(SOME.index, SOME.itertuples(index=False))
        if any(is_rich(row) and all(reading(row, own) for _, reading in constraints) for row in ROWS)
    }
    for _ in range(2):
        said = [random.choice(spellings) for spellings, _ in constraints]
        said = [each for i, each in enumerate(said) if str(each) not in map(str, said[:i])]
        assert explained(said, sparse) == could_be, list(map(str, said))
