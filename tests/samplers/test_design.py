"""The design matrix: dummies, missing values, formulas, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from sklearn.base import clone

from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.samplers.base import make_sampler
from mcce.samplers.design import Design, FormulaDesign, distinct_rows
from mcce.table import Schema
from tests.samplers.parametric.fixtures import encode, with_gaps

FRAME = pd.DataFrame(
    {
        "age": [30.0, 40.0, 55.0, 62.0, 41.0, 33.0],
        "job": pd.Categorical(list("abcabc"), categories=list("zabc")),
        "gap": [1.0, np.nan, 3.0, 4.0, np.nan, 0.5],
        "hole": pd.Categorical(["p", None, "q", "q", "p", "p"]),
        "same": 7.0,
        "y": [1.0, 2.0, 3.0, 2.5, 0.5, 4.0],
    }
)


def design_of(frame=FRAME, formula=None, **options):
    given, target = encode(frame)
    design = Design.read(given, target.feature, **options) if formula is None else None
    return design or FormulaDesign(formula, given, target.feature), given


def test_columns_in_synthpops_order():
    """Numbers first, then factors; the first observed level is the base, and a missing one a level."""
    design, given = design_of()
    assert design.names == ("age", "gap", "job[T.b]", "job[T.c]", "is_missing(gap)", "hole[T.q]", "hole[T.missing]")
    dummies = pd.get_dummies(FRAME["job"])[["b", "c"]].to_numpy(float)
    expected = np.column_stack(
        [
            FRAME["age"],
            FRAME["gap"].fillna(0.0),
            dummies,
            FRAME["gap"].isna(),
            FRAME["hole"] == "q",
            FRAME["hole"].isna(),
        ]
    )
    np.testing.assert_array_equal(design.matrix(given), expected)
    assert "same" in design_of(keep_constants=True)[0].names


def test_later_rows():
    """Gaps in columns without training gaps, levels without training rows, and a constant that changes."""
    frame = FRAME.drop(columns=["gap", "hole"])
    schema = Schema.from_data(frame.drop(columns="y"))
    given, target = schema.encode(frame.drop(columns="y")), encode(frame)[1]
    design = Design.read(given, target.feature, keep_constants=True)
    new = schema.encode(pd.DataFrame({"age": [np.nan], "job": pd.Categorical(["z"], list("zabc")), "same": [9.0]}))
    np.testing.assert_allclose(design.matrix(new), [[frame["age"].mean(), 7.0, 0.0, 0.0]])


@for_all(st.integers(0, 1000))
def test_predictors_equal_the_matrix_product_and_depend_on_their_row_only(seed):
    rng = np.random.default_rng(seed)
    for formula in (None, "age * job + gap"):
        design, given = design_of(formula=formula)
        intercept, coef = rng.normal(size=2), rng.normal(size=(2, len(design.names)))
        found = design.predict(given, intercept, coef)
        np.testing.assert_allclose(found, intercept + design.matrix(given) @ coef.T, atol=1e-12)
        np.testing.assert_array_equal(design.predict(given.take(np.array([4])), intercept, coef), found[[4]])


def test_distinct_rows():
    matrix = encode(with_gaps("numeric", n=60))[0].matrix
    first, rows = distinct_rows(np.repeat(matrix, 2, axis=0))
    assert first.size == len(matrix) - pd.DataFrame(matrix).duplicated().sum()
    np.testing.assert_array_equal(np.repeat(matrix, 2, axis=0)[first][rows], np.repeat(matrix, 2, axis=0))


# ---- formulas


def test_formula_by_hand():
    design, given = design_of(formula="y ~ age * job + np.log(gap) + {age ** 2} + poly(age, 2)")
    names = ("age", "job[T.b]", "job[T.c]", "np.log(gap)", "age ** 2", "poly(age, 2)[1]", "poly(age, 2)[2]")
    assert set(names) < set(design.names)
    assert {"age:job[T.b]", "is_missing(gap)"} <= set(design.names)
    matrix = dict(zip(design.names, design.matrix(given).T))
    np.testing.assert_allclose(matrix["age ** 2"], FRAME["age"] ** 2)
    filled = FRAME["gap"].fillna(FRAME["gap"].mean())
    np.testing.assert_allclose(matrix["np.log(gap)"], np.log(filled))
    np.testing.assert_allclose(matrix["age:job[T.c]"], FRAME["age"] * (FRAME["job"] == "c"))
    assert design.has_intercept
    assert not design_of(formula="age + job - 1")[0].has_intercept
    assert len(design_of(formula="0 + age + job")[0].names) == 4  # all three levels


def test_learned_transforms_are_kept_and_survive_pickle():
    """A spline keeps its knots, and is constant outside of the training range."""
    design, given = design_of(formula="bs(age, df=4) + scale(gap)")
    again = pickle.loads(pickle.dumps(design))
    some = given.take(np.array([1, 3]))
    np.testing.assert_array_equal(again.matrix(some), design.matrix(given)[[1, 3]])
    far = given.take(np.array([3, 3]))
    far.matrix[0, given.names.index("age")] = 1e6
    np.testing.assert_allclose(*design.matrix(far))


def test_dot_quotes_and_the_decision():
    """A dot is all givens; the decision of a chain is added to any formula, or used as the formula says."""
    frame = FRAME.assign(**{"net income": FRAME["age"] ** 2, "<decision>": [True, False] * 3})
    decision = "<decision>[T.True]"
    assert {"age", "net income", "hole[T.q]", decision} <= set(design_of(frame, ".")[0].names)
    assert design_of(frame, "`net income`")[0].names == ("net income", decision)
    names = design_of(frame, "age * `<decision>`")[0].names
    assert sum("decision" in name for name in names) == 2


@pytest.mark.parametrize("sampler", ["norm", "normrank", "pmm", "logreg", "polyreg", "polr", "statsmodels", "quantile"])
def test_every_family_takes_a_formula_and_gaps(sampler):
    kind = {"logreg": "categorical", "polyreg": "categorical", "polr": "ordered"}.get(sampler, "numeric")
    given, target = encode(with_gaps(kind, n=300))
    fitted = make_sampler(sampler).set_params(formula="x + f + {x ** 2}").fit(given, target)
    assert {"x", "x ** 2", "f[T.v]", "f[T.missing]", "is_missing(x)"} == set(fitted.design_.names)
    plain = clone(fitted).set_params(formula=None).fit(given, target)
    for each in (fitted, plain):
        values, rejected = each.distribution(given).sample(RowStreams.from_seed(0, 300))
        assert np.isfinite(values).all()
        assert not rejected.any()


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("agee", r"formula 'agee' of 'y' uses 'agee', which is not among .* did you mean 'age'\?"),
        ("age + (", "cannot be read"),
        ("age | job", "cannot be read"),
        ("(age + job)**20", "multiplies out to more than 20,000 terms; use a lower power, or name them"),
        ("10**10**10", "multiplies out to more than"),
        (" + ".join(["age"] * 3000), "cannot be read: maximum recursion"),
        ("z ~ age", "is for z; write y before the ~, or leave it out"),
        ("log(age) ~ age", r"is for log\(age\)"),
        ("np.log(age - 40)", "gives numbers that are not finite: .* in 3 of 6 rows"),
        ("undefined(age)", "cannot be evaluated"),
    ],
)
def test_formulas_that_are_refused(formula, message):
    with pytest.raises(InputError, match=message):
        design_of(formula=formula)


def test_formula_without_intercept_needs_another_sampler():
    with pytest.raises(InputError, match="has no intercept, which NormSampler needs; drop the 0 or -1"):
        make_sampler("norm").set_params(formula="age - 1").fit(*encode(FRAME))
    with pytest.raises(InputError, match="formula is 3; it must be a text"):
        make_sampler("norm").set_params(formula=3).fit(*encode(FRAME))


def many_levels(n, levels):
    return pd.DataFrame(
        {"zip": np.arange(n) % levels, "other": np.arange(n) * 7 % 40, "y": np.arange(n, dtype=float)}
    ).astype({"zip": "category", "other": "category"})


@pytest.mark.parametrize("formula", [None, "zip", "zip:other", "C(y2) + other", "*".join("abcdefghijkl")])
def test_columns_are_counted_before_a_design_is_built(formula):
    frame = many_levels(2000, 1500).assign(y2=np.arange(2000.0), **dict.fromkeys("abcdefghijkl", 1.0))
    with pytest.raises(
        InputError, match=r"the design for 'y' would have \d\d?,?\d{3} columns for 2,000 .* at most 1,000"
    ):
        design_of(frame, formula)
    assert len(design_of(many_levels(2000, 900))[0].names) == 899 + 39
