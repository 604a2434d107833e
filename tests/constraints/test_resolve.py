from __future__ import annotations

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce import InputError, Schema
from mcce.constraints import resolve
from tests.constraints.reader import EDUCATION, JOBS, obeys, people, spreads
from tests.marks import examples

X = people()
SCHEMA = Schema.from_data(X)
MATRIX = SCHEMA.encode(X).matrix
SPREAD = spreads(X)
DAYS = [pd.Timestamp("2020-01-01") + pd.Timedelta(days=d) for d in (0, 9, 30)]


def points(name):
    """Return the possible values of a feature."""
    column = X[name].dropna()
    missing = [None] if X[name].isna().any() else []
    if name in ("age", 7):
        return list(range(column.min(), column.max() + 1))
    if name == "salary":
        return [round(v / 10, 1) for v in range(int(10 * column.min()), int(10 * column.max()) + 1)] + missing
    if name == "hired":
        return list(pd.date_range(column.min(), column.max(), freq="3D"))
    if name == "left":
        return list(column)
    return {"job": JOBS, "edu": EDUCATION, "owner": [False, True]}[name] + missing


FEW = 8  # factuals for which every value is tried
POINTS = {name: points(name) for name in X.columns}


def some(draw, **options):
    """Draw a few of the options."""
    chosen = draw(st.lists(st.sampled_from(sorted(options)), min_size=1, max_size=3, unique=True))
    return {name: draw(options[name]) for name in chosen}


@st.composite
def allowances(draw):
    """A constraint on one feature: its name and a dict; the bounds always leave some value."""
    feature = draw(st.sampled_from(["age", "salary", "job", "edu", "hired", "owner", 7]))
    missing = st.sampled_from([True, False])
    direction = st.sampled_from(["increase", "decrease", "none"])
    if feature == "job":
        levels = st.lists(st.sampled_from(JOBS), min_size=1, unique=True)
        never = st.lists(st.sampled_from(JOBS[:1]), max_size=1)
        said = some(draw, levels=levels, never=never, direction=st.just("none"), missing=missing)
        return feature, said if said.get("levels") != JOBS[:1] else {"levels": JOBS}
    if feature == "owner":
        return feature, some(draw, levels=st.just([True]), direction=st.just("none"))
    if feature == "edu":
        low, high = st.sampled_from(EDUCATION[:2]), st.sampled_from(EDUCATION[2:])
        steps = {"max_step": st.integers(0, 3), "max_share": st.sampled_from([0, 0.4, 1])}
        never = st.lists(st.sampled_from(EDUCATION[:1]))
        return feature, some(draw, low=low, high=high, never=never, direction=direction, missing=missing, **steps)
    if feature == "hired":
        low, high, step = st.sampled_from(DAYS[:2]), st.sampled_from(DAYS[2:]), st.sampled_from([0, 6, 20])
        steps = {"max_step": step.map(lambda days: pd.Timedelta(days=days)), "max_share": st.sampled_from([0, 0.5])}
        return feature, some(draw, low=low, high=high, direction=direction, never=st.just(DAYS[:1]), **steps)
    if feature == 7:
        return feature, some(draw, low=st.just(100), never=st.just([200]), step=st.sampled_from([200, 0.5]))
    numbers = {"age": (18, 22, 27, 3), "salary": (0, 12.5, 44, 7.3)}[feature]
    return feature, some(
        draw,
        low=st.sampled_from(numbers[:2]),
        high=st.just(numbers[2]),
        direction=direction,
        max_step=st.sampled_from([0, numbers[3], 100]),
        max_share=st.sampled_from([0, 0.25, 0.5]),
        step=st.sampled_from([0.1, 0.5, 1, 2]),
        never=st.lists(st.sampled_from([20, 25, 26.0]), max_size=2),
        missing=missing,
    )


def said_by(constraints, feature, value, own, spread=SPREAD):
    """Return whether a value satisfies all constraints on its feature, by the independent reader."""
    said = [each for name, each in constraints if name == feature]
    anyone = any(each.get("missing") for each in said)
    return all(
        obeys(each, value, own, spread.get(feature), may_be_missing=each.get("missing", anyone)) for each in said
    )


@given(st.lists(allowances(), min_size=1, max_size=4), st.integers(0, 1000))
@examples(25)
def test_accepted_rows_match_the_independent_reader(constraints, seed):
    factual = np.random.default_rng(seed).permutation(len(X))
    made = [mcce.allow(feature, **said) for feature, said in constraints]
    resolved = resolve(made, SCHEMA)
    expected = {
        name: [said_by(constraints, name, X[name].iloc[i], X[name].iloc[f]) for i, f in enumerate(factual)]
        for name in X.columns
    }
    held = resolved.hold(MATRIX, MATRIX[factual])
    assert held.tolist() == np.all(list(expected.values()), axis=0).tolist()
    assert resolved.of_factuals(MATRIX).hold(MATRIX, factual).tolist() == held.tolist()
    within = resolved.within(MATRIX[factual])
    for j, name in enumerate(X.columns):
        if name in within:
            on_grid = within[name].allows(MATRIX[:, j])
            assert on_grid.tolist() == expected[name]
        else:
            assert all(expected[name])  # no possible draw is excluded
    shuffled = [made[i] for i in np.random.default_rng(seed).permutation(len(made))]
    again = resolve([*shuffled, made[0]], SCHEMA)
    assert again == resolved
    assert hash(again) == hash(resolved)
    assert again.texts == resolved.texts


@given(st.lists(allowances(), min_size=1, max_size=4), st.integers(0, 1000), st.integers(0, 255))
@examples(25)
def test_factuals_with_equal_draw_settings_may_share_draws(constraints, seed, fixed):
    fixed_names = [name for j, name in enumerate(X.columns) if fixed >> j & 1]
    resolved = resolve([mcce.allow(feature, **said) for feature, said in constraints], SCHEMA, fixed_names)
    within = resolved.within(MATRIX)
    assert not set(within) & set(fixed_names)
    numbers = resolved.draws_depend_on(MATRIX)
    alike = pd.Series(list(map(str, numbers.tolist())))
    for _, rows in alike.groupby(alike):
        for name, each in within.items():
            part = each.take(rows.index.to_numpy())
            column = MATRIX[:, SCHEMA.names.index(name)]
            for value in np.unique(column[~np.isin(column, column[rows.index])]):
                assert len(set(part.allows(np.full(len(rows), value)).tolist())) == 1
    for name, each in within.items():
        j = SCHEMA.names.index(name)
        for i in np.flatnonzero(~each.excludes(SCHEMA.features[j], len(X), observed=True)):
            assert within[name].take(np.full(len(X), i)).allows(MATRIX[:, j]).all()


@given(st.lists(allowances(), min_size=1, max_size=4), st.integers(0, 255), st.booleans())
@examples(10)
def test_contradiction_is_found_if_no_value_is_feasible(constraints, fixed, with_rule):
    """Every possible value of a feature is tried: its own, all levels, all points of the training range."""
    fixed_names = [name for j, name in enumerate(X.columns) if fixed >> j & 1]
    rules = ["if owner then `7` <= 300"] if with_rule else []
    resolved = resolve([*(mcce.allow(f, **said) for f, said in constraints), *rules], SCHEMA, fixed_names)
    factuals, few = MATRIX[:FEW], X.iloc[:FEW]
    kept = resolved.kept(factuals)
    expected = set()
    for i in range(FEW):
        left = {}
        for name in X.columns:
            own = few[name].iloc[i]
            tries = [own] if name in fixed_names else [own, *POINTS[name]]
            left[name] = [value for value in tries if said_by(constraints, name, value, own)]
            if not left[name]:
                expected.add(i)
        stays = [name in fixed_names or kept[i, SCHEMA.names.index(name)] for name in ("owner", 7)]
        pairs = itertools.product(left["owner"], left[7])
        if with_rule and any(stays) and not any(not owner or seven <= 300 for owner, seven in pairs):
            expected.add(i)
    if len(expected) == FEW:
        with pytest.raises(InputError, match="the constraints leave no value for any of the 8 factuals: factual 0"):
            resolved.check_factuals(factuals, few.index)
    else:
        assert set(resolved.check_factuals(factuals, few.index).index) == expected


def test_constraints_per_factual():
    table = pd.DataFrame(
        {"feature": ["age", "age", "job"], "low": [20, None, None], "never": [None, [25], "cook"]}, index=[3, 3, 5]
    )
    resolved = resolve([mcce.per_factual(table), mcce.only({5: ["job", "age"], 6: []})], SCHEMA, fixed=["owner"])
    index = pd.Index([3, 4, 5, 6])
    factuals = MATRIX[[3, 4, 5, 6]]
    within = resolved.within(factuals, index)
    assert within["age"].low.tolist() == [20.0, -np.inf, -np.inf, factuals[3, 0]]
    assert within["age"].never[0].tolist() == [25.0]
    assert within["job"].levels[:3].tolist() == [[True] * 3, [True] * 3, [True, False, True]]
    kept = pd.DataFrame(resolved.kept(factuals, index), index=index, columns=X.columns)
    assert kept.loc[[3, 4]].to_numpy().sum() == 0
    assert kept.columns[kept.loc[5]].tolist() == ["salary", "edu", "hired", "left", 7]
    assert kept.columns[kept.loc[6]].tolist() == ["age", "salary", "job", "edu", "hired", "left", 7]
    rows = factuals.copy()
    rows[:, 1] = 1.0
    broken = resolved.broken(rows, factuals, index)
    assert broken["only 'job', 'age' may change"].tolist() == [False, False, True, False]
    assert broken["nothing may change"].tolist() == [False, False, False, True]
    assert resolved.hold(rows[1:2], factuals[1:2], index[1:2]).all()
    every, owner = np.repeat(rows, 2, axis=0), np.repeat(np.arange(4), 2)
    held = resolved.of_factuals(factuals, index).hold(every, owner)
    assert held.tolist() == resolved.hold(every, factuals[owner], index[owner]).tolist()
    with pytest.raises(InputError, match="name single factuals, but the 4 rows have no ids"):
        resolved.within(factuals)
    with pytest.raises(InputError, match="constraints name the factual\\(s\\) 5, which are not in the index"):
        resolved.check_factuals(factuals[[0, 3]], index[[0, 3]])


def test_contradiction_names_factual_constraints_and_value():
    constraints = [
        mcce.allow("edu", direction="increase"),
        mcce.allow("edu", never=["phd"]),
        "age <= 25",
    ]
    found = resolve(constraints, SCHEMA, fixed=["age"]).check_factuals(MATRIX, X.index)
    phd = found[found["constraint"] == "edu: may only rise; edu: never 'phd'"]
    assert phd.index.tolist() == X.index[X["edu"] == "phd"].tolist()
    assert phd["reason"].iloc[0].startswith("edu is 'phd', but no value is allowed by: edu: may only rise")
    old = found[found["constraint"] == "age <= 25"]
    assert old.index.tolist() == X.index[X["age"] > 25].tolist()
    assert old["reason"].iloc[0].endswith("and may not change, which violates: age <= 25")


def test_rule_that_excludes_all_values_of_its_last_feature_is_a_contradiction():
    found = resolve("`7` >= 20 * age", SCHEMA, fixed=["age"]).check_factuals(MATRIX, X.index)
    assert found.index.tolist() == X.index[X["age"] * 20 > 400].tolist()
    assert found["reason"].str.contains("and no value of 7 is allowed by: `7` >= 20 \\* age").all()


def test_constraint_that_excludes_nothing_restricts_no_row():
    said = [
        mcce.allow("age", low=18, high=40, step=1),
        mcce.allow("edu", low="none", missing=True),
        mcce.allow("owner", levels=[True, False]),
    ]
    resolved = resolve(said, SCHEMA)
    within = resolved.within(MATRIX)
    assert list(within) == ["age"]  # a normal distribution could be drawn outside
    age = SCHEMA.features[SCHEMA.names.index("age")]
    assert not within["age"].excludes(age, len(X), observed=True).any()
    assert within["age"].excludes(age, len(X), observed=False).all()
    assert len(np.unique(resolved.draws_depend_on(MATRIX), axis=0)) == 1


def test_constraints_can_be_pickled():
    resolved = resolve([mcce.allow("age", step=2), "age > was(age)", mcce.only({3: ["age"]})], SCHEMA)
    sent = pickle.loads(pickle.dumps(resolved))
    assert sent == resolved
    assert hash(sent) == hash(resolved)
    assert sent.hold(MATRIX, MATRIX, X.index).tolist() == resolved.hold(MATRIX, MATRIX, X.index).tolist()
    assert bool(sent)
    assert not resolve([], SCHEMA)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (mcce.allow("agee", low=3), r"constrained feature 'agee' is not a column of .* did you mean 'age'\?"),
        (
            mcce.allow("job", levels=["cok"]),
            r"constraint on 'job', levels: 'cok' is not a level .* did you mean 'cook'\?",
        ),
        (mcce.allow("age", levels=[20]), "constraint on 'age': levels is 20, but it holds numbers; use low"),
        (mcce.allow("job", direction="increase"), "'job': direction is 'increase', but its levels have no order"),
        (mcce.allow("job", low="cook"), "constraint on 'job': low is 'cook', but its levels have no order"),
        (mcce.allow("edu", step=2), "constraint on 'edu': step is 2, but it holds levels"),
        (mcce.allow("hired", step=2), "constraint on 'hired': step is 2, but dates have no multiples"),
        (mcce.allow("edu", low="phd", high="none"), "low is 'phd', above high, 'none'; swap them"),
        (mcce.allow("edu", max_step=0.5), "constraint on 'edu', max_step: 0.5 is not a whole number of levels"),
        (
            mcce.allow("hired", max_step=3),
            "max_step: 3 is not a duration; give text as in '30 days', or a pandas.Timedelta",
        ),
        (mcce.allow("hired", low="soon"), "constraint on 'hired', low: 'soon' cannot be read as a date"),
        (mcce.allow("age", low="young"), "constraint on 'age', low: 'young' is not a number"),
        (
            mcce.allow("age", low=90),
            r"'age' \(age: at least 90\) allows nothing of the training data, 18 to 29; widen",
        ),
        (mcce.allow("age", step=50), "no multiple of 50 is both allowed and inside the training data, 18 to 29"),
        (mcce.allow("job", never=JOBS), "allows none of its levels"),
    ],
)
def test_constraints_inconsistent_with_the_table_raise(said, error):
    with pytest.raises(InputError, match=error):
        resolve(said, SCHEMA)
    if said == mcce.allow("age", low=90):
        assert resolve(said, SCHEMA, fixed=["age"])  # whether a factual violates it depends on the factual


def test_duplicate_rule_names_raise():
    with pytest.raises(InputError, match=r"two different rules are called '<lambda>'; give one of them another name"):
        resolve([mcce.rule(lambda rows, was, bound=bound: rows["age"] > bound) for bound in (1, 2)], SCHEMA)
    with pytest.raises(InputError, match="factual 3: constrained feature 'x' is not a column"):
        resolve(mcce.per_factual(pd.DataFrame({"feature": ["x"], "low": [1]}, index=[3])), SCHEMA)
    with pytest.raises(InputError, match=r"only\(\) names for factual 3, 'jbo' is not .* did you mean 'job'\?"):
        resolve(mcce.only({3: ["jbo"]}), SCHEMA)
