"""Relations between columns: satisfied by every answer, given by the user, stored."""

import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.plausibility.relations import Relation, Relations, keep_relations
from tests.datasets.paper_data import PAPER, paper_folder
from tests.marks import nightly, nightly_rows
from tests.plausibility.related_tables import (
    DIRECTIONS,
    beside,
    chained,
    of,
    orders_of,
    people,
    rng,
    said,
    some,
    sums_of,
    table,
)


def test_relations_can_be_printed_and_selected():
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
    with pytest.raises(mcce.InputError, match=r"without\('c'\): no relation has that text or that column"):
        found.without("c")


def score(rows):
    """Both copies have an effect, and each column that a search might change alone."""
    good = rows["pay"] + rows["salary"] + rows["income"] + 2 * rows["bonus"] + 5 * (rows["works"] == "yes")
    return (good - rows["debt_eur"] - 6 * rows["asked_in_all"] + 3 * rows["asked"]).to_numpy(dtype=float)


def keeps(rows):
    """Return whether every relation holds, row by row."""
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


def test_table_satisfies_its_relations():
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
    "options", [{}, {"caution": 0.0}, *nightly({"floor": 0.0}, {"n_counterfactuals": 3, "diverse": True})]
)
def test_every_sparse_answer_satisfies_the_relations(options):
    found = fitted().explain(denied(), sparse=True, n_samples=300, **options)
    assert len(found.unexplained) == 0
    assert keeps(found.frame).all()
    assert (score(found.frame) >= 180).all()
    assert (found.frame["born"] == denied()["born"].reindex(found.frame.index.get_level_values(0)).to_numpy()).all()


@pytest.mark.slow
def test_answers_violate_relations_without_the_option():
    found = fitted(()).explain(denied(15), sparse=True, n_samples=100)
    assert not keeps(found.frame).all()


def test_copies_and_sums_are_neither_stated_nor_counted():
    found = fitted().explain(denied(), sparse=True, n_samples=300, floor=0.0)
    assert {"income", "debt_eur"} < set(found.computed)
    assert len({"salary", "pay"} & set(found.computed)) == 1
    table = found.changes()
    assert set(table["feature"]).isdisjoint(found.computed)
    assert found.measures["L0"].tolist() == table.groupby(["id", "rank"]).size().tolist()
    own = denied().loc[found.frame.index.get_level_values("id")].reset_index(drop=True)
    changed = own != found.frame.reset_index(drop=True)
    assert (changed["salary"] == changed["pay"]).all()
    assert (changed["debt"] == changed["debt_eur"]).all()
    assert changed[["salary", "debt"]].any(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize("fixed", ["salary", *nightly("pay")])
def test_feature_tied_to_a_fixed_feature_is_fixed(fixed):
    found = fitted(fixed=(fixed,)).explain(denied(15), sparse=True, n_samples=100)
    assert len(found)
    assert keeps(found.frame).all()
    assert not set(found.changes()["feature"]) & {"salary", "pay"}


@pytest.mark.slow
def test_constraint_on_one_of_two_tied_features_holds_for_both():
    for name in ("salary", "pay"):
        found = fitted().explain(denied(15), sparse=True, n_samples=100, constraints=[mcce.allow(name, high=60)])
        assert len(found)
        assert keeps(found.frame).all()
        changed = found.changes()
        assert (changed.loc[changed["feature"].isin(["salary", "pay"]), "to"] <= 60).all()


def test_factual_that_violates_a_relation_is_explained():
    X = denied(5).assign(asked=9, asked_in_all=2, pay=11)
    found = fitted().explain(X, sparse=True, n_samples=300)
    assert len(found.unexplained) == 0
    rest = found.frame.droplevel(1).assign(asked=0, pay=lambda rows: rows["salary"])
    assert keeps(rest).all()


@pytest.mark.slow
def test_plain_method_is_unchanged_unless_relations_are_given():
    plain = fitted().explain(denied(), n_samples=300)
    pd.testing.assert_frame_equal(plain.frame, fitted(()).explain(denied(), n_samples=300).frame)
    assert not keeps(plain.frame).all()
    given = fitted(tuple(mcce.find_relations(people()))).explain(denied(), n_samples=300)
    assert len(given) == len(plain)
    assert keeps(given.frame).all()


@pytest.mark.slow
def test_order_and_threads_do_not_matter():
    X = denied(40)
    found = fitted().explain(X, sparse=True, n_samples=200).frame
    turned = fitted(n_jobs=1).explain(X[::-1], sparse=True, n_samples=200).frame
    pd.testing.assert_frame_equal(found.sort_index(), turned.sort_index())


@pytest.mark.slow
def test_missing_value_of_a_tied_feature_is_accepted():
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


@pytest.mark.slow
def test_one_warning_names_relations_and_passing_them_confirms():
    X = people()
    explainer = mcce.MCCE(score, decision=(180.0, np.inf), fixed=["age"], random_state=1)
    with pytest.warns(mcce.MCCEWarning, match="6 relations between columns found") as caught:
        explainer.fit(X)
    messages = [str(each.message) for each in caught if "relations" in str(each.message)]
    assert len(messages) == 1
    assert "and 1 more (see relations_)" in messages[0]
    assert "\n" not in messages[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*unchangeable facts", mcce.exceptions.AdviceWarning)  # year of birth
        confirmed = mcce.MCCE(score, decision=(180.0, np.inf), fixed=["age"], random_state=1)
        confirmed.fit(X, relations=explainer.relations_)
        confirmed.explain(denied(3), sparse=True, n_samples=50)
    assert [str(each) for each in confirmed.relations_] == [str(each) for each in explainer.relations_]


def test_relations_of_only_fixed_features_are_not_reported():
    X = people()[["age", "born", "debt"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer = mcce.MCCE(lambda rows: rows["debt"], decision=(20, np.inf), fixed=["age", "born"]).fit(X)
    assert len(explainer.relations_) == 0


@pytest.mark.slow
def test_given_relations_hold():
    given = ("asked <= asked_in_all", mcce.tied("salary", "pay"), "income == salary + bonus", "asked <= 3 * age")
    explainer = fitted(given)
    assert explainer.relations_.frame["relation"].tolist() == [given[0], "pay == salary", *given[2:]]
    assert explainer.relations_.frame["rows"].tolist() == [1500] * 4
    found = explainer.explain(denied(), sparse=True, n_samples=300).frame
    assert (found["salary"] == found["pay"]).all()
    assert (found["income"] == found["salary"] + found["bonus"]).all()
    assert (found["asked"] <= found["asked_in_all"]).all()


@pytest.mark.parametrize(
    ("given", "message"),
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
def test_invalid_relations_raise(given, message):
    explainer = mcce.MCCE(score, decision=(180.0, np.inf), random_state=1)
    with pytest.raises(mcce.InputError, match=message):
        explainer.fit(people(), relations=given)
    with pytest.raises(mcce.NotFittedError):
        explainer.explain(denied(1))


def test_tied_requires_two_columns():
    with pytest.raises(mcce.InputError, match=r"tied\('salary'\) needs two columns or more"):
        mcce.tied("salary")


@pytest.mark.slow
def test_rows_with_zero_weight_are_ignored():
    X = people()
    X.loc[:20, "pay"] += 1
    weights = np.where(X.index <= 20, 0.0, 1.5)
    with pytest.warns(mcce.MCCEWarning, match="salary == pay"):
        mcce.MCCE(score, decision=(180.0, np.inf), random_state=1).fit(X, sample_weight=weights)


@pytest.mark.slow
def test_loaded_explainer_keeps_relations(tmp_path):
    explainer = fitted()
    explainer.save(tmp_path / "people.mcce")
    again = mcce.MCCE.load(tmp_path / "people.mcce", model=score)
    assert again.relations_.frame.equals(explainer.relations_.frame)
    pd.testing.assert_frame_equal(
        again.explain(denied(20), sparse=True, n_samples=200).frame,
        explainer.explain(denied(20), sparse=True, n_samples=200).frame,
    )


def test_file_without_donors_reports_no_relations(tmp_path):
    X = people()[["age", "salary", "pay"]]
    explainer = mcce.MCCE(lambda rows: rows["pay"], decision=(50, np.inf), fixed=["age"], sampler="norm").fit(X)
    assert len(explainer.relations_) == 1
    explainer.save(tmp_path / "without.mcce", donors="none")
    assert len(mcce.MCCE.load(tmp_path / "without.mcce", model=explainer.model).relations_) == 0


def test_kept_relations_can_be_pickled():
    X = people()
    schema = mcce.Schema.from_data(X)
    kept = keep_relations(mcce.find_relations(X), schema, (0,))
    again = pickle.loads(pickle.dumps(kept))
    matrix = schema.encode(X).matrix
    rows = np.roll(matrix, 1, axis=0)
    np.testing.assert_array_equal(again.complete(rows, matrix), kept.complete(rows, matrix))
    assert (again.stays, again.determined) == (kept.stays, kept.determined)


def test_chain_of_relations_is_computed_from_its_start():
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


@pytest.mark.nightly
def test_fico_answers_satisfy_its_definitions():
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


def test_level_that_implies_a_level_of_another_column():
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


def wrong_answers(words, decimals, order, sampler):
    """Return the number of sparse answers, and of those in which the determined column is inconsistent."""
    X = table(words, decimals)[order]
    weights = rng(9).choice([-1.0, 1.0], X.shape[1]) / X.std().to_numpy()
    least = np.quantile(X.to_numpy(float) @ weights, 0.7)
    settings = {"decision": (least, np.inf), "sampler": sampler, "random_state": 1}
    explainer = mcce.MCCE(lambda rows: rows.to_numpy(float) @ weights, **settings).fit(X)
    rows = explainer.explain(X[X.to_numpy(float) @ weights < least].head(20), sparse=True, n_samples=150).frame
    target, expression = words.split(" == ")
    return len(rows), int(((rows.eval(expression).round(decimals) - rows[target]).abs() > 1e-6).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sampler"),
    [
        *((words, "cart") for words in DIRECTIONS[::3]),
        *nightly_rows(*((words, ("norm", "forest")[i % 2]) for i, words in enumerate(DIRECTIONS))),
    ],
)
def test_no_answer_violates_a_rounded_relation(words, sampler):
    X = table(words, 1)
    for order in orders_of(X)[:: len(orders_of(X)) - 1]:
        assert wrong_answers(words, 1, order, sampler) == (20, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [2, 5])
def test_twenty_sums_leave_all_factuals_explained(seed):
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


def test_implied_relations_leave_the_parts_free():
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


def test_coarse_column_is_not_computed_from_a_finer_one():
    r = rng(4)
    years, worked = r.integers(1, 30, 400), r.integers(0, 300, 400)
    X = pd.DataFrame({"years": years, "days": 365 * years, "worked": worked, "off": 365 * years - worked})
    assert set(said(X)) == {"days == 365 * years", "days == off + worked"}
    schema = mcce.Schema.from_data(X)
    kept = keep_relations(mcce.find_relations(X), schema, ())
    assert [schema.names[j] for j in kept.determined] in (["days", "off"], ["days", "worked"])
    assert keep_relations(mcce.find_relations(X), schema, (1,)).stays == (0,)


@pytest.mark.slow
def test_hundreds_of_chained_relations_are_resolved():
    names = [f"x{i:03}" for i in range(400)]
    schema = mcce.Schema.from_data(pd.DataFrame(rng().integers(0, 9, (20, 400)), columns=names))
    given = [Relation("sum", f"{c} == {a} + {b}", (a, b, c), 20) for a, b, c in zip(names, names[1:], names[2:])]
    for relations in (given, given[::-1]):
        kept = keep_relations(Relations(tuple(relations)), schema, ())
        assert [column for column, _ in kept.computed] == list(range(2, 400))
    assert keep_relations(Relations(tuple(given)), schema, (0, 1)).stays == tuple(range(2, 400))


@pytest.mark.slow
def test_explainer_with_many_chained_relations_loads(tmp_path):
    X = chained(60, n=40)
    explainer = mcce.MCCE(lambda rows: rows["x000"], decision=(50, np.inf), sampler="marginal", random_state=1)
    explainer.fit(X, relations=sums_of(X)).save(tmp_path / "chained.mcce")
    again = mcce.MCCE.load(tmp_path / "chained.mcce", model=explainer.model)
    assert [each.says for each in again.relations_] == sums_of(X)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *nightly(5, 7)])
def test_sums_of_sums_leave_all_factuals_explained(seed):
    r = rng(seed)
    X = pd.DataFrame({f"a{i}": r.integers(0, 1000, 300) for i in range(4)})
    for i in range(20):
        one, other = r.choice(X.columns[-4:], 2, replace=False)
        X[f"s{i}"] = X[one] + X[other]
    r = rng(seed + 1000)
    X = X[r.permutation(X.columns)]
    weights = r.normal(size=X.shape[1]) / X.std().to_numpy()
    scores = X.to_numpy(float) @ weights
    least = np.quantile(scores, 0.8)
    explainer = mcce.MCCE(lambda rows: rows.to_numpy(float) @ weights, decision=(least, np.inf), random_state=seed)
    found = explainer.fit(X).explain(X[scores < least].head(3), sparse=True, n_samples=100)
    assert len(found.unexplained) == 0


def test_change_that_determines_another_is_not_incidental():
    """The decision depends on a total, which changes only with its parts."""
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 100, (300, 2)).astype(float), columns=["a", "b"])
    X["total"] = X["a"] + X["b"]

    def score(rows):
        return rows["total"].to_numpy(float) / 200

    explainer = mcce.MCCE(score, decision=(0.6, 1.0), random_state=1).fit(X, relations=["total == a + b"])
    found = explainer.explain(X[X["total"] < 110].head(20), sparse=True, n_samples=200)
    assert len(found) == 20
    assert (found.changes()["role"] == "needed").all()
