"""Ties and relations: found where they are true and chance does not explain them, and kept in every answer."""

import functools
import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.explain.relations import Relation, Relations, _Finder, keep_relations
from tests.datasets.paper_data import PAPER, paper_folder
from tests.marks import slow


def said(X):
    return [each.says for each in mcce.find_relations(X)]


def rng(seed=1):
    return np.random.default_rng(seed)


def some(n=400, seed=1):
    """Columns that have nothing to do with each other."""
    r = rng(seed)
    return {
        "usd": r.lognormal(9, 1, n).round(2),
        "age": r.integers(18, 80, n),
        "a": r.integers(0, 900, n),
        "b": r.integers(0, 900, n),
        "job": r.choice(["clerk", "pilot", "nurse"], n),
    }


def beside(**columns):
    return pd.DataFrame({**some(), **columns})


of = {name: np.asarray(values) for name, values in some().items()}
start = pd.Timestamp("2020-01-01") + pd.to_timedelta(of["a"], unit="D")
TABLES = {
    "usd == copy": {"copy": of["usd"]},
    "eur == 0.92 * usd": {"eur": (0.92 * of["usd"]).round()},
    "cents == 100 * usd": {"cents": (100 * of["usd"]).round().astype(int)},
    "born == 2024 - age": {"born": 2024 - of["age"]},
    "f == 1.8 * age + 32": {"f": (1.8 * of["age"] + 32).round(1)},
    "log and usd go together": {"log": np.log(of["usd"])},
    "age determines band": {"band": pd.cut(of["age"], [0, 30, 50, 99]).astype(str)},
    "age determines decade": {"decade": of["age"] // 10},
    "code and job go together": {"code": pd.Series(of["job"]).map({"clerk": 7, "pilot": 3, "nurse": 5})},
    "job determines sector": {"sector": np.where(of["job"] == "nurse", "health", "other")},
    "total == a + b": {"total": of["a"] + of["b"]},
    "b == a + left": {"left": of["b"] - of["a"]},
    "rate == a / b": {"rate": (of["a"] / np.maximum(of["b"], 1)).round(4)},
    "a <= most": {"most": of["a"] + rng(2).poisson(8, 400)},
    "start <= end": {"start": start, "end": start + pd.to_timedelta(rng(3).poisson(40, 400) // 2, unit="D")},
    "if job == 'nurse' then salary == 0 else salary != 0": {
        "salary": np.where(of["job"] == "nurse", 0, rng(4).integers(10, 90, 400))
    },
    "if job in ['clerk', 'nurse'] then missing(left) else not missing(left)": {
        "left": np.where(of["job"] == "pilot", rng(4).normal(size=400), np.nan)
    },
    "if missing(x) then missing(y) else not missing(y)": {
        name: np.where(of["age"] < 30, np.nan, rng(k).normal(size=400)) for k, name in enumerate("xy", 7)
    },
}


@pytest.mark.parametrize("words", TABLES)
def test_what_is_true_is_found(words):
    X = beside(**TABLES[words])
    found = set(said(X))
    if words.startswith(("a <= most", "start")):
        found = {each for each in found if "days" not in each}
    assert words in found
    assert len(found) <= (2 if "start" in X else 1)  # `start` is a date of its own, a number of days after `a`


def test_what_is_not_related_is_not_found():
    assert said(pd.DataFrame(some())) == []


def noise(n, seed):
    """Twenty columns of all sorts that have nothing to do with each other."""
    r = rng(seed)
    columns = {
        **{f"real{i}": r.normal(size=n) for i in range(4)},
        **{f"tenths{i}": r.normal(size=n).round(1) for i in range(3)},
        **{f"count{i}": r.poisson(2, n) for i in range(3)},
        **{f"sum{i}": np.where(r.random(n) < 0.6, 0, r.integers(1, 50, n)) for i in range(3)},
        **{f"flag{i}": r.random(n) < 0.3 for i in range(3)},
        **{f"level{i}": r.choice(list("abcde"), n) for i in range(2)},
        "name": [f"n{k}" for k in r.integers(0, max(n // 2, 2), n)],
        "rare": (r.random(n) < 0.01).astype(int),
    }
    X = pd.DataFrame(columns)
    for name in ("real0", "count1", "sum0"):
        X[name] = X[name].where(r.random(n) > 0.2)
    return X


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60, 300])
def test_few_tables_of_noise_have_a_relation(n):
    # at a rate of 1 in 100 three or more of 40 would be a chance of 0.8 in 100
    assert sum(len(mcce.find_relations(noise(n, seed))) > 0 for seed in range(40)) < 3


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 30, 50, 100])
def test_tables_of_noise_have_a_relation_no_more_often_than_said(n):
    assert sum(len(mcce.find_relations(noise(n, seed))) > 0 for seed in range(100, 500)) <= 4 + 2 * 2


def test_rows_that_are_there_many_times_are_no_evidence():
    few = pd.DataFrame({"a": [1, 2, 3, 4], "b": [10, 20, 30, 40], "c": list("wxyz")})
    assert said(pd.concat([few] * 100, ignore_index=True)) == []


def test_ranges_that_do_not_overlap_are_no_order():
    r = rng()
    X = pd.DataFrame({"low": r.integers(0, 50, 500), "high": r.integers(50, 100, 500)})
    assert said(X) == []


def test_an_order_with_nobody_near_it_is_not_told():
    low = rng().normal(size=2000)
    assert said(pd.DataFrame({"low": low, "high": low + 3 + rng(2).normal(0, 0.1, 2000)})) == []


def test_orders_that_others_give_are_not_told():
    r = rng()
    a = r.poisson(3, 600)
    b = a + r.poisson(1, 600)
    assert said(pd.DataFrame({"a": a, "b": b, "c": b + r.poisson(1, 600)})) == ["a <= b", "b <= c"]


@pytest.mark.parametrize("seed", range(12))
def test_orders_are_those_that_looking_at_all_pairs_finds(seed):
    r = rng(seed)
    columns = {"c0": r.poisson(3, 500)}
    for k in range(1, 6):
        parent = f"c{r.integers(0, k)}"
        columns[f"c{k}"] = r.poisson(3, 500) if r.random() < 0.4 else columns[parent] + r.poisson(1, 500)
    X = pd.DataFrame(columns)
    kept = {(a, b) for a, b in itertools.permutations(X, 2) if (X[a] <= X[b]).all()}
    direct = {(a, b) for a, b in kept if not any((a, c) in kept and (c, b) in kept for c in X)}
    assert set(said(X)) == {f"{a} <= {b}" for a, b in direct}


def test_missing_values_hide_nothing():
    X = beside(total=of["a"] + of["b"], copy=of["usd"])
    for k, name in enumerate(X.columns):
        X[name] = X[name].where(rng(k).random(len(X)) > 0.2)
    assert said(X) == ["usd == copy", "total == a + b"]


def test_codes_neither_hide_an_order_nor_make_one():
    r = rng()
    part = r.poisson(3, 900).astype(float)
    whole = part + r.poisson(1, 900)
    whole[:100] = -9
    other = np.where(np.arange(900) < 450, -8, r.integers(0, 30, 900))
    one = np.where(np.arange(900) < 450, -8, r.integers(0, 30, 900))
    assert said(pd.DataFrame({"part": part, "whole": whole})) == ["if whole >= 0 then part <= whole"]
    assert said(pd.DataFrame({"one": one, "other": other, "noise": r.normal(size=900)})) == [
        "if one == -8 then other == -8 else other != -8"
    ]


def test_a_relation_that_one_row_breaks_is_none():
    n = 30_000  # more than are looked at as evidence
    a = rng().poisson(3, n)
    X = pd.DataFrame({"a": a, "b": a + rng(2).poisson(1, n)})
    assert said(X) == ["a <= b"]
    X.loc[17, "a"] = X["b"][17] + 1
    assert said(X) == []


@pytest.mark.parametrize("seed", range(6))
def test_the_chance_of_an_order_is_that_of_all_permutations(seed):
    r = rng(seed)
    a = np.sort(r.choice(50, 7, replace=False)).astype(float)
    b = a + r.integers(0, 9, 7)
    kept = np.mean([(np.array(each) <= b).all() for each in itertools.permutations(a)])
    X = pd.DataFrame({"a": a, "b": b})
    schema = mcce.Schema.from_data(X)
    finder = _Finder(schema.encode(X).matrix, schema)
    finder.orders()
    near = ((b - a) <= 0.05 * b.std()).sum()
    told = finder._chance_of_order(0, 1)
    assert math.isclose(math.exp(told), kept) if 3 <= near < 7 else told == np.inf


@pytest.mark.parametrize("seed", [0, *slow(1, 2, 3)])
def test_the_chance_of_a_function_is_at_least_that_of_all_permutations(seed):
    r = rng(seed)
    a = r.integers(0, 3, 8)
    b = r.permutation(3)[a] // 2
    X = pd.DataFrame({"a": list("xyz"[k] for k in a), "b": list("uvw"[k] for k in b)})
    schema = mcce.Schema.from_data(X)
    functions = []
    for each in itertools.permutations(b):
        functions.append(all(len(set(np.array(each)[a == k])) <= 1 for k in range(3)))
    told = _Finder(schema.encode(X).matrix, schema)._chance_of_function(0, 1)
    assert math.exp(told) >= np.mean(functions) - 1e-12


def test_relations_print_and_are_selected():
    found = mcce.find_relations(beside(copy=of["usd"], total=of["a"] + of["b"]))
    assert str(found) == "usd == copy (tied, 400 rows)\ntotal == a + b (sum, 400 rows)"
    assert repr(found) == "Relations(['usd == copy', 'total == a + b'])"
    assert found.frame[["kind", "relation", "rows"]].to_numpy().tolist() == [
        ["tied", "usd == copy", 400],
        ["sum", "total == a + b", 400],
    ]
    assert (found.frame["chance"] < 0.01).all()
    assert [str(each) for each in found.without("total == a + b")] == ["usd == copy"]
    assert [str(each) for each in found.without("usd")] == ["total == a + b"]
    assert str(mcce.find_relations(pd.DataFrame(some())).without()) == "no relations"
    with pytest.raises(mcce.InputError, match=r"without\('c'\): no relation says that or has that column"):
        found.without("c")


# ---- kept


def people():
    """Applicants with a salary, a copy of it, debts in two currencies, a sum, an order and an employment."""
    r = rng()
    n = 1500
    salary = r.integers(10, 90, n)
    debt = r.lognormal(3, 1, n).round(1)
    works = r.random(n) < 0.8
    bonus = np.where(works, r.integers(1, 30, n), 0)
    asked = r.poisson(3, n)
    return pd.DataFrame(
        {
            "age": r.integers(18, 80, n),
            "salary": salary,
            "pay": salary,
            "debt": debt,
            "debt_eur": (debt * 0.92).round(1),
            "bonus": bonus,
            "works": np.where(works, "yes", "no"),
            "income": salary + bonus,
            "asked": asked,
            "asked_in_all": asked + r.poisson(1, n),
        }
    ).assign(born=lambda X: 2024 - X["age"])


def score(rows):
    """Both copies count, and each column that a search may be tempted to change alone."""
    good = rows["pay"] + rows["salary"] + rows["income"] + 2 * rows["bonus"] + 5 * (rows["works"] == "yes")
    return (good - rows["debt_eur"] - 6 * rows["asked_in_all"] + 3 * rows["asked"]).to_numpy(dtype=float)


def keeps(rows):
    """Whether every relation holds, row by row."""
    return (
        (rows["salary"] == rows["pay"])
        & ((rows["debt"] * 0.92 - rows["debt_eur"]).abs() <= 0.051)
        & (rows["income"] == rows["salary"] + rows["bonus"])
        & ((rows["works"] == "no") == (rows["bonus"] == 0))
        & (rows["asked"] <= rows["asked_in_all"])
        & (rows["born"] == 2024 - rows["age"])
    )


@functools.cache
@functools.cache
def fitted(relations=None, fixed=("age",), **settings):
    settings = {"decision": (180.0, np.inf), "fixed": list(fixed), "random_state": 1, **settings}
    return mcce.MCCE(score, **settings).fit(people(), relations=relations)


def denied(n=60):
    X = people()
    return X[score(X) < 180].head(n)


def test_the_table_keeps_what_is_said_of_it():
    X = people()
    assert keeps(X).all()
    assert sorted(said(X)) == [
        "asked <= asked_in_all",
        "born == 2024 - age",
        "debt_eur == 0.92 * debt",
        "if works == 'no' then bonus == 0 else bonus != 0",
        "income == bonus + pay",
        "salary == pay",
    ]


@pytest.mark.parametrize(
    "asked", [{}, {"caution": 0.0}, *slow({"floor": 0.0}, {"n_counterfactuals": 3, "diverse": True})]
)
def test_every_sparse_answer_keeps_the_relations(asked):
    found = fitted().explain(denied(), sparse=True, n_samples=300, **asked)
    assert len(found.unexplained) == 0
    assert keeps(found.frame).all()
    assert (score(found.frame) >= 180).all()
    assert (found.frame["born"] == denied()["born"].reindex(found.frame.index.get_level_values(0)).to_numpy()).all()


def test_without_relations_answers_break_them():
    found = fitted(()).explain(denied(), sparse=True, n_samples=300)
    assert not keeps(found.frame).all()


def test_every_change_is_needed_or_determined_by_one_that_is():
    table = fitted().explain(denied(), sparse=True, n_samples=300, floor=0.0).changes()
    for _, mine in table.groupby("id"):
        names = set(mine["feature"])
        assert ("salary" in names) == ("pay" in names)
        assert ("debt" in names) >= ("debt_eur" in names)


@pytest.mark.parametrize("fixed", ["salary", *slow("pay")])
def test_what_is_tied_to_a_fixed_feature_stays(fixed):
    found = fitted(fixed=(fixed,)).explain(denied(30), sparse=True, n_samples=200)
    assert len(found)
    assert keeps(found.frame).all()
    assert not set(found.changes()["feature"]) & {"salary", "pay"}


def test_a_constraint_on_either_of_two_tied_features_holds_for_both():
    for name in ("salary", "pay"):
        found = fitted().explain(denied(30), sparse=True, n_samples=200, constraints=[mcce.allow(name, high=60)])
        assert len(found)
        assert keeps(found.frame).all()
        changed = found.changes()
        assert (changed.loc[changed["feature"].isin(["salary", "pay"]), "to"] <= 60).all()


def test_a_factual_that_breaks_a_relation_is_explained_all_the_same():
    X = denied(5).assign(asked=9, asked_in_all=2, pay=11)
    found = fitted().explain(X, sparse=True, n_samples=300)
    assert len(found.unexplained) == 0
    rest = found.frame.droplevel(1).assign(asked=0, pay=lambda rows: rows["salary"])
    assert keeps(rest).all()


def test_the_published_method_stays_as_it_is_unless_relations_are_given():
    plain = fitted().explain(denied(), n_samples=300)
    pd.testing.assert_frame_equal(plain.frame, fitted(()).explain(denied(), n_samples=300).frame)
    assert not keeps(plain.frame).all()
    given = fitted(tuple(mcce.find_relations(people()))).explain(denied(), n_samples=300)
    assert len(given) == len(plain)
    assert keeps(given.frame).all()


@pytest.mark.slow
def test_neither_order_nor_threads_change_what_is_found():
    X = denied(40)
    found = fitted().explain(X, sparse=True, n_samples=200).frame
    turned = fitted(n_jobs=1).explain(X[::-1], sparse=True, n_samples=200).frame
    pd.testing.assert_frame_equal(found.sort_index(), turned.sort_index())


def test_a_missing_value_of_a_tied_feature_is_no_obstacle():
    X = people().astype({"salary": float, "pay": float})
    X.loc[X.index % 7 == 0, ["salary", "pay"]] = np.nan
    X["income"] = X["income"].where(X["salary"].notna())

    def filled(rows):
        return score(rows.fillna({"salary": 20, "pay": 20, "income": 30}))

    explainer = mcce.MCCE(filled, decision=(180.0, np.inf), fixed=["age"], random_state=1).fit(X)
    who = X[(filled(X) < 180) & X["salary"].isna()].head(20)
    found = explainer.explain(who, sparse=True, n_samples=300).frame
    assert len(found) == 20
    assert ((found["salary"] == found["pay"]) | (found["salary"].isna() & found["pay"].isna())).all()
    known = found["salary"].notna()
    assert (found["income"] == found["salary"] + found["bonus"])[known & found["income"].notna()].all()


# ---- given


def test_one_warning_names_what_was_found_and_giving_it_confirms_it():
    X = people()
    explainer = mcce.MCCE(score, decision=(180.0, np.inf), fixed=["age"], random_state=1)
    with pytest.warns(mcce.MCCEWarning, match="6 relations between columns found") as told:
        explainer.fit(X)
    messages = [str(each.message) for each in told if "relations" in str(each.message)]
    assert len(messages) == 1
    assert "and 1 more (see relations_)" in messages[0]
    assert "\n" not in messages[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*nobody can change", mcce.exceptions.AdviceWarning)  # when one was born
        confirmed = mcce.MCCE(score, decision=(180.0, np.inf), fixed=["age"], random_state=1)
        confirmed.fit(X, relations=explainer.relations_)
        confirmed.explain(denied(3), sparse=True, n_samples=50)
    assert [str(each) for each in confirmed.relations_] == [str(each) for each in explainer.relations_]


def test_relations_of_fixed_features_alone_are_not_told():
    X = people()[["age", "born", "debt"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer = mcce.MCCE(lambda rows: rows["debt"], decision=(20, np.inf), fixed=["age", "born"]).fit(X)
    assert len(explainer.relations_) == 0


def test_given_relations_are_kept():
    given = ("asked <= asked_in_all", mcce.tied("salary", "pay"), "income == salary + bonus", "asked <= 3 * age")
    explainer = fitted(given)
    assert explainer.relations_.frame["relation"].tolist() == [given[0], "pay == salary", *given[2:]]
    assert explainer.relations_.frame["rows"].tolist() == [1500] * 4
    found = explainer.explain(denied(), sparse=True, n_samples=300).frame
    assert (found["salary"] == found["pay"]).all()
    assert (found["income"] == found["salary"] + found["bonus"]).all()
    assert (found["asked"] <= found["asked_in_all"]).all()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["asked <= askd"], "'askd' is not a column; did you mean 'asked'"),
        ([mcce.tied("salary", "pya")], "a column of tied\\(\\), 'pya' is not a column of X; did you mean 'pay'"),
        ([mcce.tied("works", "bonus")], "tied\\('works', 'bonus'\\): rows with works = 'yes' have bonus = "),
        (True, "relations is True; give a list of texts"),
        ([3], "relations has 3; give texts such as 'a <= b'"),
        (["asked <= was(asked)"], "reads the factual \\(was\\); give it as a constraint"),
        ([mcce.rule(lambda rows, was: rows["age"] > 0, name="old")], "rule 'old', which is a function"),
    ],
)
def test_what_is_no_relation_is_refused(given, told):
    explainer = mcce.MCCE(score, decision=(180.0, np.inf), random_state=1)
    with pytest.raises(mcce.InputError, match=told):
        explainer.fit(people(), relations=given)
    with pytest.raises(mcce.NotFittedError):
        explainer.explain(denied(1))


def test_tied_needs_two_columns():
    with pytest.raises(mcce.InputError, match=r"tied\('salary'\) needs two columns or more"):
        mcce.tied("salary")


def test_rows_without_weight_count_for_nothing():
    X = people()
    X.loc[:20, "pay"] += 1
    weights = np.where(X.index <= 20, 0.0, 1.5)
    with pytest.warns(mcce.MCCEWarning, match="salary == pay"):
        mcce.MCCE(score, decision=(180.0, np.inf), random_state=1).fit(X, sample_weight=weights)


def test_a_loaded_explainer_keeps_relations(tmp_path):
    explainer = fitted()
    explainer.save(tmp_path / "people.mcce")
    again = mcce.MCCE.load(tmp_path / "people.mcce", model=score)
    assert again.relations_.frame.equals(explainer.relations_.frame)
    pd.testing.assert_frame_equal(
        again.explain(denied(20), sparse=True, n_samples=200).frame,
        explainer.explain(denied(20), sparse=True, n_samples=200).frame,
    )


def test_a_file_without_donors_tells_no_relations(tmp_path):
    X = people()[["age", "salary", "pay"]]
    explainer = mcce.MCCE(lambda rows: rows["pay"], decision=(50, np.inf), fixed=["age"], sampler="norm").fit(X)
    assert len(explainer.relations_) == 1
    explainer.save(tmp_path / "without.mcce", donors="none")
    assert len(mcce.MCCE.load(tmp_path / "without.mcce", model=explainer.model).relations_) == 0


def test_kept_relations_can_be_sent_to_another_process():
    X = people()
    schema = mcce.Schema.from_data(X)
    kept = keep_relations(mcce.find_relations(X), schema, (0,))
    again = pickle.loads(pickle.dumps(kept))
    matrix = schema.encode(X).matrix
    rows = np.roll(matrix, 1, axis=0)
    np.testing.assert_array_equal(again.complete(rows, matrix), kept.complete(rows, matrix))
    assert (again.stays, again.determined) == (kept.stays, kept.determined)


def test_a_chain_of_relations_is_computed_from_its_beginning():
    X = beside(total=of["a"] + of["b"]).assign(cents=lambda X: 100 * X["total"])[["cents", "total", "b", "a"]]
    schema = mcce.Schema.from_data(X)
    kept = keep_relations(mcce.find_relations(X), schema, ())
    matrix = schema.encode(X).matrix
    rows = matrix.copy()
    rows[:, 3] = np.roll(rows[:, 3], 1)
    full = kept.complete(rows, matrix)
    within = full[:, 1] != matrix[:, 1]
    assert within.mean() > 0.9
    assert kept.of_factuals(matrix).hold(full, np.arange(len(full)))[within].all()


@pytest.mark.slow
def test_fico_keeps_its_definitions():
    fico = PAPER["fico"](folder=paper_folder("fico"))
    X = fico.X
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(X.astype(float), fico.y)
    explainer = mcce.MCCE(
        lambda rows: model.predict_proba(rows.astype(float))[:, 1], decision=(0.5, 1.0), random_state=1
    ).fit(X)
    relations = explainer.relations_.frame["relation"].tolist()
    assert "NumInqLast6Mexcl7days <= NumInqLast6M" in relations
    who = X[model.predict_proba(X.astype(float))[:, 1] < 0.5].head(200)
    rows = explainer.explain(who, sparse=True).frame
    assert len(rows) == 200
    assert (rows["NumInqLast6Mexcl7days"] <= rows["NumInqLast6M"]).all()
    assert (rows["NumTrades90Ever2DerogPubRec"] <= rows["NumTrades60Ever2DerogPubRec"]).all()


def test_a_level_that_comes_with_a_level_of_another_column():
    rng = np.random.default_rng(3)
    none = rng.random(600) < 0.2
    X = pd.DataFrame(
        {
            "job": pd.Categorical(np.where(none, "none", rng.choice(["full", "part"], 600))),
            "employer": pd.Categorical(
                np.where(none, "nobody", np.array([f"firm {k}" for k in range(70)])[rng.integers(0, 70, 600)])
            ),
            "savings": rng.gamma(2, 5000, 600).round(),
        }
    )
    found = mcce.find_relations(X)
    assert [str(each) for each in found] == ["if employer == 'nobody' then job == 'none' else job != 'none'"]
    apart = X.assign(employer=X["employer"].to_numpy()[rng.permutation(600)])
    assert not len(mcce.find_relations(apart))
    score = lambda rows: rows["savings"] / 10_000 + (rows["job"] == "full")  # noqa: E731
    explainer = mcce.MCCE(score, decision=(1.2, np.inf), random_state=1).fit(X)
    rows = explainer.explain(X[score(X) < 1.2].head(80), sparse=True, n_samples=200).frame
    assert ((rows["job"] == "none") == (rows["employer"] == "nobody")).all()


# ---- direction


def table(words, decimals, n=600):
    """Amounts with a column that others determine, rounded to some decimals, and savings beside."""
    r = rng(8)
    one, other = r.uniform(100, 9000, n).round(2), r.uniform(100, 9000, n).round(2)
    months = r.choice([12, 24, 36, 48, 60, 72], n)
    amount = 100 * r.integers(10, 500, n)
    columns = {
        "monthly == amount / months": {"amount": amount, "months": months, "monthly": amount / months},
        "cost == price * quantity": {"price": one, "quantity": months // 4, "cost": one * (months // 4)},
        "left == income - spent": {"income": one, "spent": other, "left": one - other},
        "total == fee + income": {"income": one, "fee": other, "total": one + other},
        "days == 365 * years": {"years": months - 12, "days": 365 * (months - 12)},
        "tax == 0.19 * income": {"income": one, "tax": 0.19 * one},
    }[words]
    X = pd.DataFrame(columns)
    X[words.split()[0]] = X[words.split()[0]].round(decimals)
    return X.assign(savings=r.gamma(2, 3000, n).round())


def orders_of(X):
    return [[*some, "savings"] for some in itertools.permutations(X.columns.drop("savings"))]


DIRECTIONS = [
    "monthly == amount / months",
    "cost == price * quantity",
    "left == income - spent",
    "total == fee + income",
]
DIRECTIONS += ["days == 365 * years", "tax == 0.19 * income"]


@pytest.mark.parametrize("decimals", [0, 1, 2])
@pytest.mark.parametrize("words", DIRECTIONS)
def test_the_finest_column_is_determined_in_every_order_of_the_columns(words, decimals):
    X = table(words, decimals)
    if words.startswith("left") and decimals == 2:
        words = "income == left + spent"  # as fine as the others: a sum says the same
    assert {tuple(said(X[order])) for order in orders_of(X)} == {(words,)}


def wrong_answers(words, decimals, order, sampler):
    """Return how many sparse answers there are, and in how many the determined column is not what it has to be."""
    X = table(words, decimals)[order]
    weights = rng(9).choice([-1.0, 1.0], X.shape[1]) / X.std().to_numpy()
    least = np.quantile(X.to_numpy(float) @ weights, 0.7)
    settings = {"decision": (least, np.inf), "sampler": sampler, "random_state": 1}
    explainer = mcce.MCCE(lambda rows: rows.to_numpy(float) @ weights, **settings).fit(X)
    rows = explainer.explain(X[X.to_numpy(float) @ weights < least].head(20), sparse=True, n_samples=150).frame
    target, expression = words.split(" == ")
    return len(rows), int(((rows.eval(expression).round(decimals) - rows[target]).abs() > 1e-6).sum())


@pytest.mark.parametrize("sampler", ["cart", "norm", *slow("forest")])
@pytest.mark.parametrize("words", DIRECTIONS)
def test_no_answer_breaks_what_was_rounded(words, sampler):
    X = table(words, 1)
    for order in orders_of(X)[:: len(orders_of(X)) - 1]:
        assert wrong_answers(words, 1, order, sampler) == (20, 0)


# ---- exact relations and those that only seem to be there


def test_a_sum_is_found_when_the_total_rises_with_its_largest_part():
    r = rng(5)
    X = pd.DataFrame({"price": r.integers(0, 10_000, 300) * 100, "fee": r.integers(0, 50, 300)})
    X = X.assign(total=X["price"] + X["fee"], savings=r.gamma(2, 3000, 300).round())
    assert {tuple(said(X[order])) for order in orders_of(X)} == {("total == fee + price",)}
    score = lambda rows: rows["total"] / 1e6 - rows["fee"] / 50  # noqa: E731
    explainer = mcce.MCCE(score, decision=(0.3, np.inf), random_state=1).fit(X)
    rows = explainer.explain(X[score(X) < 0.3].head(20), sparse=True, n_samples=150).frame
    assert len(rows) == 20
    assert (rows["total"] == rows["price"] + rows["fee"]).all()


def test_functions_of_the_parts_of_a_sum_are_found_beside_it():
    r = rng(6)
    price = r.uniform(100, 9000, 400).round(2)
    fee = np.where(price < 1000, 10, np.where(price < 4000, 25, 60))
    assert said(pd.DataFrame({"price": price, "fee": fee, "total": (price + fee).round(2)})) == [
        "price determines fee",
        "total == fee + price",
    ]
    gross = r.integers(10_000, 9_000_000, 400)
    tax = (0.3 * gross + 0.5).astype(int)
    found = said(pd.DataFrame({"gross": gross, "tax": tax, "net": gross - tax}))
    assert {"gross == net + tax", "tax == 0.3 * gross"} <= set(found)
    usd = r.uniform(100, 90_000, 400).round(2)
    found = said(pd.DataFrame({"chf": (0.97 * usd).round(), "eur": (0.92 * usd).round(), "usd": usd}))
    assert found == ["chf == 0.97 * usd", "eur == 0.92 * usd"]


def chained(k, n=300, seed=2):
    """Two columns, and more that are each the sum of the two before."""
    r = rng(seed)
    X = pd.DataFrame({"x000": r.integers(0, 100, n), "x001": r.integers(0, 100, n)})
    for i in range(2, k + 2):
        X[f"x{i:03}"] = X[f"x{i - 1:03}"] + X[f"x{i - 2:03}"]
    return X


def sums_of(X):
    return [f"{c} == {a} + {b}" for a, b, c in zip(X.columns, X.columns[1:], X.columns[2:])]


@pytest.mark.parametrize("seed", [2, 5])
def test_twenty_sums_leave_everybody_explained(seed):
    X = chained(20, seed=seed)
    assert {each.says for each in mcce.find_relations(X) if each.kind != "order"} == set(sums_of(X))
    weights = rng(seed + 1000).normal(size=X.shape[1]) / X.std().to_numpy()
    scores = X.to_numpy(float) @ weights
    least = np.quantile(scores, 0.8)
    explainer = mcce.MCCE(lambda rows: rows.to_numpy(float) @ weights, decision=(least, np.inf), random_state=seed)
    found = explainer.fit(X).explain(X[scores < least].head(3), sparse=True, n_samples=100)
    assert len(found.unexplained) == 0
    assert all(
        (found.frame[c] == found.frame[a] + found.frame[b]).all() for a, b, c in zip(X, X.columns[1:], X.columns[2:])
    )


def test_relations_that_others_imply_leave_the_parts_free():
    r = rng(3)
    X = pd.DataFrame(r.integers(0, 900, (300, 4)), columns=list("abcd"))
    X = X.assign(ab=X["a"] + X["b"], cd=X["c"] + X["d"], ac=X["a"] + X["c"], bd=X["b"] + X["d"])
    X = X.assign(all=X["ab"] + X["cd"])
    X = X[["all", "cd", "ab", "bd", "ac", *"dcba"]]
    relations = mcce.find_relations(X)
    assert {"all == ab + cd", "all == ac + bd"} <= {each.says for each in relations}
    schema = mcce.Schema.from_data(X)
    kept = keep_relations(relations, schema, ())
    assert {schema.names[j] for j in kept.determined} == {"all", "ab", "cd", "ac", "bd"}
    matrix = schema.encode(X).matrix
    rows = kept.complete(np.roll(matrix, 7, axis=0), matrix)
    assert kept.of_factuals(matrix).hold(rows, np.arange(len(rows))).all()


def test_a_coarse_column_is_not_computed_from_a_finer_one():
    r = rng(4)
    years, worked = r.integers(1, 30, 400), r.integers(0, 300, 400)
    X = pd.DataFrame({"years": years, "days": 365 * years, "worked": worked, "off": 365 * years - worked})
    assert set(said(X)) == {"days == 365 * years", "days == off + worked"}
    schema = mcce.Schema.from_data(X)
    kept = keep_relations(mcce.find_relations(X), schema, ())
    assert [schema.names[j] for j in kept.determined] in (["days", "off"], ["days", "worked"])
    assert keep_relations(mcce.find_relations(X), schema, (1,)).stays == (0,)


# ---- size


def test_hundreds_of_chained_relations_are_resolved():
    names = [f"x{i:03}" for i in range(400)]
    schema = mcce.Schema.from_data(pd.DataFrame(rng().integers(0, 9, (20, 400)), columns=names))
    given = [Relation("sum", f"{c} == {a} + {b}", (a, b, c), 20) for a, b, c in zip(names, names[1:], names[2:])]
    for relations in (given, given[::-1]):
        kept = keep_relations(Relations(tuple(relations)), schema, ())
        assert [column for column, _ in kept.computed] == list(range(2, 400))
    assert keep_relations(Relations(tuple(given)), schema, (0, 1)).stays == tuple(range(2, 400))


def test_an_explainer_with_many_chained_relations_is_loaded(tmp_path):
    X = chained(60, n=40)
    explainer = mcce.MCCE(lambda rows: rows["x000"], decision=(50, np.inf), sampler="marginal", random_state=1)
    explainer.fit(X, relations=sums_of(X)).save(tmp_path / "chained.mcce")
    again = mcce.MCCE.load(tmp_path / "chained.mcce", model=explainer.model)
    assert [each.says for each in again.relations_] == sums_of(X)


@pytest.mark.parametrize("of", [np.arange(200) % 91, np.array(list("abcde") * 40)])
def test_copies_are_not_compared_with_each_other(of, monkeypatch):
    compared = []
    monkeypatch.setattr(_Finder, "_chance_of_function", lambda self, x, y: compared.append((x, y)) or np.inf)
    X = pd.DataFrame({f"c{i:03}": of for i in range(300)})
    found = said(X)
    assert found == ([f"c{i:03} == c000" for i in range(1, 300)] if of.dtype.kind == "i" else [])
    assert not compared


# ---- numbers of any size


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-200, 1e12, 1e200, 1e300])
def test_numbers_of_any_size_are_compared_without_a_warning(scale):
    a, b = rng().random((2, 300)) * scale
    count = np.floor(9 * rng(2).random(300))
    unrelated = {"c": rng(4).random(300) * scale, "d": np.zeros(300)}
    assert said(pd.DataFrame({"a": a, "b": b, **unrelated})) == []
    assert said(pd.DataFrame({"a": a, "b": b, "total": a + b, **unrelated})) == ["total == a + b"]
    more = count + rng(3).poisson(0.5, 300)
    assert said(pd.DataFrame({"count": count * scale, "more": more * scale})) == ["count <= more"]
    if scale > 1e-310:  # below, few values are left
        assert said(pd.DataFrame({"a": a, "twice": 2 * a, **unrelated})) == ["twice == 2 * a"]


def test_a_range_beyond_the_largest_number_is_no_relation():
    a, b = (2 * rng().random((2, 300)) - 1) * 1.7e308
    assert said(pd.DataFrame({"a": a, "b": b, "c": rng(2).normal(size=300)})) == []
    assert said(pd.DataFrame({"a": a, "up": np.sinh(a / 1e308)})) == ["a and up go together"]


def test_the_order_of_the_columns_does_not_matter():
    X = people().assign(usd=of["usd"][0] + np.arange(1500) % 700, job=np.resize(of["job"], 1500))
    X = X.assign(code=X["job"].map({"clerk": 7, "pilot": 3, "nurse": 5}), copy=X["job"], band=X["age"] // 10)
    expected = mcce.find_relations(X).frame
    for seed in range(4):
        pd.testing.assert_frame_equal(mcce.find_relations(X[rng(seed).permutation(X.columns)]).frame, expected)
