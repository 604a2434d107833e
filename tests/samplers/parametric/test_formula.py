"""Formulas compared with formulaic's matrices and a known process, and malicious formulas."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import ChainModel, InputError, SamplerError
from mcce.rng import RowStreams
from mcce.samplers.parametric.formula import FormulaDesign, parse_formula
from mcce.samplers.registry import make_sampler
from mcce.storage.state import from_state, to_state
from mcce.table import Schema

N = 400


def make_frame(n=N, seed=1):
    """Return givens, and a target with an interaction and a curve: y = age (2 if m, -1 if f) + 3 log(savings) + e."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 70, n),
            "sex": pd.Categorical(rng.choice(["f", "m"], n)),
            "job": pd.Categorical(rng.choice(["clerk", "cook", "pilot"], n)),
            "grade": pd.Categorical(rng.choice(["lo", "hi"], n), ["lo", "hi"], ordered=True),
            "savings": rng.lognormal(5, 1, n),
            "monthly rent": rng.uniform(300, 900, n),
        }
    )
    slope = np.where(frame["sex"] == "m", 2.0, -1.0)
    frame["y"] = slope * frame["age"] + 3.0 * np.log(frame["savings"]) + rng.normal(size=n)
    return frame


FRAME = make_frame()
TABLE = Schema.from_data(FRAME).encode(FRAME)
GIVEN, TARGET = TABLE.first(6), TABLE.column(6)
READABLE = [
    "y ~ age * sex + log(savings + 1)",
    "age:sex + job",
    "0 + job + age",
    "job:sex",
    "0 + job:sex + age",
    "(age + sex + job)**2",
    "bs(age, 5) * sex",
    "poly(savings, 3) + center(age)",
    "scale(age):job + I(age**2 / 100)",
    "`monthly rent` + log(`monthly rent`)",
    "job / age",
]


@pytest.mark.parametrize("formula", READABLE)
def test_columns_match_formulaic(formula):
    """As formulaic computes them: learned on the training rows, applied to new ones inside their range."""
    from formulaic import model_matrix

    design = FormulaDesign.read(formula, GIVEN, TARGET.feature)
    right = formula.split("~")[-1]
    known = model_matrix(right, FRAME, ensure_full_rank=True)
    ranks = FRAME[["age", "savings"]].rank()
    inner = FRAME.index[((ranks > 20) & (ranks < 380)).all(axis=1)]
    for rows, frame in ((np.arange(N), FRAME), (inner.to_numpy(), FRAME.loc[inner])):
        theirs = known.model_spec.get_model_matrix(frame).drop(columns="Intercept", errors="ignore")
        ours = design.matrix(GIVEN.take(rows))
        if formula != "job:sex":  # R and mcce keep an aliased column there
            assert ours.shape[1] == theirs.shape[1]
        spanned = np.column_stack([np.ones(rows.size), theirs]), np.column_stack([np.ones(rows.size), ours])
        for one, other in (spanned, spanned[::-1]):  # the same column space: dummies may be coded differently
            left = other - one @ np.linalg.lstsq(one, other, rcond=None)[0]
            assert np.abs(left).max() < 1e-6 * np.abs(other).max()
    named = {name: theirs[name].to_numpy() for name in theirs if name in design.columns}
    assert named or formula == "job:sex"
    for name, column in named.items():
        np.testing.assert_allclose(ours[:, design.columns.index(name)], column, rtol=1e-12, atol=1e-12)


def test_rows_do_not_depend_on_each_other():
    for formula in READABLE:
        design = FormulaDesign.read(formula, GIVEN, TARGET.feature)
        whole = design.predict(GIVEN, np.ones(1), np.full((1, design.n_columns), 0.3))
        part = np.arange(3, N, 7)
        np.testing.assert_array_equal(
            design.predict(GIVEN.take(part), np.ones(1), np.full((1, design.n_columns), 0.3)), whole[part]
        )


def test_formula_recovers_the_known_process():
    sampler = mcce.NormSampler(formula="y ~ age * sex + log(savings)").fit(GIVEN, TARGET)
    named = dict(zip(["1", *sampler.design_.columns], sampler.coef_))
    assert named["age"] == pytest.approx(-1.0, abs=0.02)
    assert named["age:sex[T.m]"] == pytest.approx(3.0, abs=0.02)
    assert named["log(savings)"] == pytest.approx(3.0, abs=0.15)
    assert sampler.sigma_ == pytest.approx(1.0, abs=0.1)
    plain = mcce.NormSampler().fit(GIVEN, TARGET)
    assert sampler.log_density(GIVEN, TARGET.values).mean() > plain.log_density(GIVEN, TARGET.values).mean() + 1.0


@pytest.mark.parametrize("cls", [mcce.NormSampler, mcce.NormRankSampler, mcce.PmmSampler, mcce.ParametricSampler])
def test_every_sampler_of_numbers_accepts_a_formula(cls):
    fitted = cls(formula="~ age * sex + log(savings)").fit(GIVEN, TARGET)
    drawn = fitted.sample(GIVEN, RowStreams.from_seed(1, N))
    plain = cls().fit(GIVEN, TARGET).sample(GIVEN, RowStreams.from_seed(1, N))
    errors = [np.abs(each - TARGET.values).mean() for each in (drawn, plain)]
    assert errors[0] < 0.75 * errors[1]


@pytest.mark.parametrize("name", ["logreg", "polyreg", "polr", "parametric"])
def test_every_sampler_of_levels_accepts_a_formula(name):
    """The levels of a product depend on the product alone: main effects are uninformative."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    codes = np.digitize(2 * frame["a"] * frame["b"] + rng.logistic(size=600), [0] if name == "logreg" else [-1, 1])
    levels = pd.Categorical.from_codes(
        codes, ["x", "y", "z"][: codes.max() + 1], ordered=name in ("polr", "parametric")
    )
    frame["grade"] = levels
    table = Schema.from_data(frame).encode(frame)
    scores = []
    for formula in (None, "grade ~ a:b"):
        fitted = mcce.available_samplers()[name](formula=formula).fit(table.first(2), table.column(2))
        scores.append(fitted.log_density(table.first(2), table.matrix[:, 2]).mean())
    assert scores[1] > scores[0] + 0.1


ATTACKS = [
    "__import__('os')",
    "~ age + __import__('os').system('touch {path}')",
    "age.__class__",
    "I(age.__class__.__mro__)",
    "open('{path}', 'w')",
    "log(open('{path}', 'w'))",
    "I(eval('1'))",
    "exec('import os')",
    "I(lambda: 1)",
    "I((lambda x: x)(age))",
    "{{open('{path}', 'w')}}",
    "Q('age')",
    "age + `__import__('os')`",
    "log(`age`.__class__)",
    "log(getattr(age, 'tofile')('{path}'))",
    "I([x for x in age])",
    "[open('{path}', 'w')]",
    "I(age if age else age)",
    "I(age := 3)",
    "log(*age)",
    "log(age)(age)",
    "np.log(age)",
    "I(f'{{age}}')",
    "I('a' * 10 ** 9)",
    "bs(age, df=10 ** 9)",
    "bs(age, knots=open('{path}', 'w'))",
    "poly(age, 10 ** 6)",
    "C(age, contr.treatment)",
    "I(age ** age)",
    "I(9 ** 9 ** 9)",
    "(age + sex + job + savings) ** 30",
    "*".join(["age"] * 40),
    "+".join(["age"] * 400),
    "I(" * 300 + "age" + ")" * 300,
    "(" * 400 + "agee" + ")" * 400,
    "age | sex",
    "[age ~ sex]",
    "age + '",
    "age ~ sex ~ job",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_functions_off_the_list_raise_before_evaluation(attack, tmp_path):
    path = tmp_path / "written"
    with pytest.raises(InputError, match="formula"):
        FormulaDesign.read(attack.format(path=path), GIVEN, TARGET.feature)
    assert not path.exists()


@pytest.mark.parametrize("attack", ["__import__('os')", "I(lambda: 1)", "log(open('x'))", "(age + sex) ** 30"])
def test_stored_formula_is_checked_when_read(attack):
    state = to_state(FormulaDesign.read("~ age + sex", GIVEN, TARGET.feature))
    assert from_state(dict(state)).n_columns == 2
    with pytest.raises(InputError, match=r"parametric.FormulaDesign: formula"):
        from_state({**state, "formula": attack})


def test_stored_design_must_match_its_columns():
    design = FormulaDesign.read("~ bs(age, 5) + sex", GIVEN, TARGET.feature)
    design.check_columns(GIVEN.features)
    state = to_state(design)
    for field, value, message in (
        ("source", np.array([0, 2]), "other columns"),
        ("kept", np.arange(40, 46), "kept holds"),
        ("calls", {"type": "tuple", "items": ["bs(sex, 5)"]}, "states are not of the formula"),
    ):
        spoilt = from_state({**state, field: value})
        with pytest.raises(InputError, match=message):
            spoilt.check_columns(GIVEN.features)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("agee * sex", r"uses 'agee', which is not among its predictors, .*; did you mean 'age'\?"),
        ("y ~ y + sex", "uses 'y', which is not among its predictors"),
        ("salary ~ age", "is for 'salary', and is used for 'y'; write 'y' before the ~"),
        ("log(y) ~ age", "transforms the target"),
        ("log(age - 30)", r"'log\(age - 30\)' is not finite in \d+ of 400 training rows; use an expression"),
        ("log(sex)", "computes with 'sex', which has levels"),
        ("C(savings)", "has 400 distinct values; use it for at most 100"),
        ("lgo(age)", "the function 'lgo' is not available; there are log, "),
        ("age +", "cannot be read"),
        ("bs(age, 2)", r"bs\(age, 2\) cannot be computed"),
    ],
)
def test_invalid_formulas_raise(formula, message):
    with pytest.raises(InputError, match=message):
        mcce.NormSampler(formula=formula).fit(GIVEN, TARGET)


def test_other_samplers_keep_their_intercept():
    with pytest.raises(SamplerError, match="has no intercept, which NormSampler needs"):
        mcce.NormSampler(formula="0 + age").fit(GIVEN, TARGET)
    with pytest.raises(InputError, match="formula is 3; give text"):
        mcce.NormSampler(formula=3).fit(GIVEN, TARGET)


def test_dot_means_all_givens_in_any_order():
    design = FormulaDesign.read("log(savings) + .", GIVEN, TARGET.feature)
    assert design.columns[:2] == ("log(savings)", "age")
    assert design.n_columns == 8
    again = from_state(to_state(design))
    np.testing.assert_array_equal(again.matrix(GIVEN), design.matrix(GIVEN))


def test_decision_is_always_a_predictor():
    """As with `predictors`: the decision affects the target, and the formula need not name it."""
    frame = make_frame(800)
    accepted = np.random.default_rng(2).random(800) < 0.5
    frame["y"] = frame["age"] + 50.0 * accepted
    for formula, columns in (
        ("y ~ age", ("age", "decision[T.True]")),
        ("y ~ age * decision", ("age", "decision[T.True]", "age:decision[T.True]")),
    ):
        sampler = {"y": mcce.NormSampler(formula=formula), "*": "marginal"}
        chain = ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(frame[["age", "y"]], accepted)
        assert chain.samplers_["y"].design_.columns == columns
        yes, no = (chain.sample(given=frame[["age"]], decision=each)["y"].mean() for each in (True, False))
        assert yes - no == pytest.approx(50.0, abs=1.0)


def test_missing_values_are_the_mean_with_an_indicator():
    frame = make_frame()
    frame["age"] = frame["age"].mask(np.arange(N) % 5 == 0)
    frame["job"] = frame["job"].mask(np.arange(N) % 7 == 0)
    table = Schema.from_data(frame).encode(frame)
    design = FormulaDesign.read("~ age * job", table.first(6), TARGET.feature)
    assert design.columns[-1] == "is_missing(age)"
    assert "job[T.missing]" in design.columns
    matrix = design.matrix(table.first(6))
    np.testing.assert_allclose(matrix[::5, 0], frame["age"].mean())
    np.testing.assert_array_equal(matrix[:, -1], frame["age"].isna())


def test_chain_with_formulas_round_trips(tmp_path):
    frame = make_frame().drop(columns="monthly rent")
    samplers = {
        "savings": "norm(~ bs(age, 4):sex)",
        "grade": "polr(grade ~ poly(age, 2))",
        "y": mcce.NormSampler(formula="y ~ scale(age) * sex + log(maximum(savings, 1)) + C(grade)"),
        "*": "cart",
    }
    chain = ChainModel(sampler=samplers, fixed=["age", "sex"], random_state=1).fit(frame)
    chain.save(tmp_path / "chain.mcce")
    again = ChainModel.load(tmp_path / "chain.mcce")
    pd.testing.assert_frame_equal(again.sample(n=50), chain.sample(n=50))
    assert again.samplers_["y"].formula.startswith("y ~ scale(age)")


def test_sampler_name_with_a_formula():
    assert repr(make_sampler("norm(y ~ age * sex)")) == "NormSampler(formula='y ~ age * sex')"
    with pytest.raises(InputError, match=r"the sampler 'cart' takes no formula; those that do: .*norm"):
        make_sampler("cart(~ age)")
    with pytest.raises(SamplerError, match="nrm"):
        make_sampler("nrm(~ age)")


def test_main_effects_come_first():
    parsed = parse_formula("y ~ a:b + a - 1")
    assert [[factor.text for factor in term] for term in parsed.terms] == [["a"], ["a", "b"]]
    assert (parsed.target, parsed.intercept, parsed.names) == ("y", False, ["a", "b"])
