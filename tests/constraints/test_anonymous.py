"""Counterfactuals shared by k training rows, counted again on the returned tables."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce.constraints import read
from mcce.exceptions import InputError
from tests.marks import examples

LEVELS = ["none", "school", "college", "degree"]


def table(n=150, seed=1):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "pay": rng.integers(20, 90, n) * 713,
            "school": pd.Categorical(rng.choice(LEVELS, n), categories=LEVELS, ordered=True),
            "town": rng.choice(["Oslo", "Bergen", "Hamar", "Moss"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "since": pd.Timestamp("2015-03-04") + pd.to_timedelta(11 * rng.integers(0, 90, n), unit="D"),
            "debt": rng.integers(0, 30, n) * 1000.0,
        }
    )
    frame["town"] = frame["town"].mask(rng.random(n) < 0.1)
    frame["debt"] = frame["debt"].mask(rng.random(n) < 0.1)
    return frame


def score(rows):
    schooled = rows["school"].map(dict(zip(LEVELS, range(4)))).astype(float)
    years = (pd.Timestamp("2018-01-01") - rows["since"]).dt.days / 365
    debt = rows["debt"].fillna(15_000.0)
    total = rows["pay"] / 60_000 + schooled / 6 + years / 12 - debt / 60_000 + (rows["town"] == "Oslo") * 0.2
    return (total / 2.5).clip(0, 1).to_numpy(float)


X = table()
WANTED = (0.5, 1.0)


def explainer(**settings):
    return mcce.MCCE(score, decision=WANTED, fixed=["age"], random_state=1, n_jobs=1, **settings).fit(X)


DENIED = X[score(X) < 0.5].head(6)


@pytest.fixture(scope="module")
def made():
    return explainer()


def people_like(row, training, keys):
    """Count the training rows that have the same values of the keys; missing equals missing."""
    same = [(training[name] == row[name]) | (training[name].isna() & pd.isna(row[name])) for name in keys]
    return int(np.logical_and.reduce(same).sum())


def check(found, training, k, keys):
    """Count the training rows behind every returned row."""
    people = [people_like(row, training, keys) for _, row in found.frame.iterrows()]
    assert people == found.measures["people"].tolist()
    assert all(each >= k for each in people)
    assert (score(found.frame) >= 0.5).all()


KEYS = ["town", "school"]


@pytest.mark.parametrize("sparse", [False, True])
def test_every_row_is_shared_by_k_training_rows(made, sparse):
    options = {"n_samples": 100, "sparse": sparse, "n_counterfactuals": 2}
    found = made.explain(DENIED, **options, constraints=[mcce.k_anonymous(12, keys=KEYS)])
    check(found, X, 12, KEYS)
    assert len(found)
    free = made.explain(DENIED, **options).frame
    assert any(people_like(row, X, KEYS) < 12 for _, row in free.iterrows())


@pytest.mark.slow
@examples(8)
@given(
    seed=st.integers(0, 1000), k=st.integers(2, 12), sparse=st.booleans(), which=st.sets(st.integers(0, 5), min_size=1)
)
def test_any_keys_of_any_table(seed, k, sparse, which):
    rows = table(90, seed)
    denied = rows[score(rows) < 0.5].head(5)
    keys = [rows.columns[j] for j in sorted(which)]
    made = mcce.MCCE(score, decision=WANTED, fixed=["age"], random_state=seed, n_jobs=1).fit(rows)
    options = {"n_samples": 100, "sparse": sparse, "n_counterfactuals": 3, "constraints": [mcce.k_anonymous(k, keys)]}
    found = made.explain(denied, **options)
    check(found, rows, k, keys)
    alone = [made.explain(denied.loc[[id]], **options).frame for id in denied.index]
    pd.testing.assert_frame_equal(pd.concat(alone), found.frame)


def test_nearest_shared_row_is_returned():
    rows = pd.DataFrame({"pay": [10, 10, 10, 21, 30, 30, 30, 40], "kind": list("abcdefgh")})
    made = mcce.MCCE(lambda r: r["pay"] > 15, decision=True, fixed=["kind"], random_state=1).fit(rows)
    found = made.explain(rows.iloc[[0]], n_samples=200)
    assert found.frame["pay"].tolist() == [21]  # the nearest row, of a single person
    found = made.explain(rows.iloc[[0]], n_samples=200, constraints=[mcce.k_anonymous(3, keys=["pay"])])
    assert found.frame["pay"].tolist() == [30]
    assert found.measures["people"].tolist() == [3]


def test_reason_is_given_without_a_shared_row():
    rows = pd.DataFrame({"pay": [10.0, 11.0, 12.0, 29.0, 30.0, 31.0]})
    made = mcce.MCCE(lambda r: r["pay"] > 20, decision=True, random_state=1).fit(rows)
    found = made.explain(rows.iloc[[0]], n_samples=100, constraints=[mcce.k_anonymous(3, keys=["pay"])])
    assert not len(found)
    assert "is shared by 3 training people on the keys" in found.sentence(0)
    assert found.why_unexplained(0)["would_help"] == "without k_anonymous"


def test_settings_are_recorded(made):
    found = made.explain(DENIED, n_samples=100, constraints=[mcce.k_anonymous(4, keys=["town", "age"])])
    assert found.run.settings["k_anonymous"] == 4
    assert found.run.settings["keys"] == ["age", "town"]


def test_from_lists_and_files(made, tmp_path):
    constraint = mcce.k_anonymous(4, keys=["town", "school"])
    assert str(constraint) == "shared by at least 4 training people on town, school"
    section = {"k_anonymous": {"k": 4, "keys": ["town", "school"]}}
    (tmp_path / "asked.json").write_text(json.dumps(section), encoding="utf-8")
    (tmp_path / "asked.toml").write_text('[k_anonymous]\nk = 4\nkeys = ["town", "school"]\n', encoding="utf-8")
    for given_as in ([constraint], tmp_path / "asked.json", tmp_path / "asked.toml"):
        assert read(given_as) == [constraint]
    found = made.explain(DENIED, n_samples=100, constraints=tmp_path / "asked.toml")
    pd.testing.assert_frame_equal(found.frame, made.explain(DENIED, n_samples=100, constraints=[constraint]).frame)
    twice = [mcce.k_anonymous(2, keys=["town"]), mcce.k_anonymous(4, keys=["school"])]
    pd.testing.assert_frame_equal(found.frame, made.explain(DENIED, n_samples=100, constraints=twice).frame)


@pytest.mark.slow
def test_saved_explainer_and_batches(tmp_path):
    constraint = mcce.k_anonymous(4, keys=KEYS)
    made = explainer(constraints=[constraint])
    made.save(tmp_path / "made.mcce")
    again = mcce.MCCE.load(tmp_path / "made.mcce", model=score, n_jobs=1)
    found = made.explain(DENIED, n_samples=100)
    check(found, X, 4, KEYS)
    pd.testing.assert_frame_equal(again.explain(DENIED, n_samples=100).frame, found.frame)
    pd.testing.assert_frame_equal(again.explain(DENIED, n_samples=100).measures, found.measures)
    again.save(tmp_path / "twice.mcce")
    assert (tmp_path / "twice.mcce").read_bytes() == (tmp_path / "made.mcce").read_bytes()
    with pytest.raises(InputError, match="k_anonymous: training rows are not stored with an explainer"):
        again.explain(DENIED, n_samples=100, constraints=[mcce.k_anonymous(3, keys=["since"])])
    done = made.explain_batches(DENIED, tmp_path / "out", batch_size=5, n_samples=100)
    parts = pd.concat([pd.read_parquet(path) for path in sorted((tmp_path / "out" / "counterfactuals").glob("*"))])
    assert done.totals["rows"] == len(DENIED)
    assert parts["people"].tolist() == found.measures["people"].tolist()
    assert parts["pay"].tolist() == found.frame["pay"].tolist()


def test_external_candidates(made):
    constraints = [mcce.k_anonymous(4, keys=KEYS)]
    drawn = made.generate(DENIED, n_samples=100)
    chosen, found = (
        made.select(drawn, DENIED, constraints=constraints),
        made.explain(DENIED, n_samples=100, constraints=constraints),
    )
    pd.testing.assert_frame_equal(chosen.frame, found.frame)
    pd.testing.assert_frame_equal(chosen.measures, found.measures)


@pytest.mark.parametrize(
    ("k", "keys", "message"),
    [
        (1, ["pay"], "k of k_anonymous is 1; it must be a whole number of at least 2"),
        (3, "pay", r"keys of k_anonymous are 'pay'; give a list of features, as in keys=\['age', 'town'\]"),
        (3, [], "keys of k_anonymous are empty"),
        (3, ["salry", "pya"], "the key of k_anonymous 'salry' is not a column of the training data"),
        (3, ["pya"], "did you mean 'pay'"),
        (151, ["pay"], "requires 151 training people for every row, and there are 150 training rows"),
    ],
)
def test_invalid_arguments_raise(made, k, keys, message):
    with pytest.raises(InputError, match=message):
        made.explain(DENIED, n_samples=20, constraints=[mcce.k_anonymous(k, keys=keys)])
