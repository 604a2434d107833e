"""polars and pyarrow frames are returned as given; the model gets its own type; a Series is one row."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, ChainModel

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def people(n=300):
    rng = np.random.default_rng(5)
    grades = ["low", "mid", "high"]
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 900, n)]
    return pl.DataFrame(
        {
            "age": pl.Series(rng.integers(18, 80, n), dtype=pl.Int32),
            "income": pl.Series([None if u < 0.1 else round(u * 50, 1) for u in rng.random(n)]),
            "job": pl.Series(rng.choice(["clerk", "pilot"], n), dtype=pl.Categorical),
            "grade": pl.Series([grades[k] for k in rng.integers(0, 3, n)], dtype=pl.Enum(grades)),
            "since": pl.Series(days),
            "owner": pl.Series([None if u < 0.1 else bool(u < 0.5) for u in rng.random(n)]),
        }
    )


class Strict:
    """A model that accepts only frames of one library, with its types."""

    def __init__(self, kind, schema):
        self.kind, self.schema = kind, schema

    def __call__(self, rows):
        assert isinstance(rows, self.kind), type(rows)
        assert rows.schema == self.schema
        rows = pl.DataFrame(rows)
        wanted = (
            (pl.col("income").fill_null(0) > 25) & (pl.col("grade") != "low") & (pl.col("since") > dt.date(2020, 6, 1))
        )
        return rows.select(wanted)


@pytest.fixture(scope="module", params=["polars", "pyarrow"])
def fitted(request):
    X = people() if request.param == "polars" else people().to_arrow()
    model = Strict(type(X), X.schema)
    return X, MCCE(model, decision=True, fixed=["age"], random_state=1).fit(X)


@pytest.fixture(scope="module")
def found(fitted):
    X, explainer = fitted
    return explainer.explain(X[:20], n_samples=100, n_counterfactuals=2)


@pytest.mark.slow
def test_output_frames_have_the_input_type(fitted, found):
    X, _ = fitted
    assert len(found) > 10
    table = found.to_frame()
    assert type(table) is type(X)
    names = list(pl.DataFrame(X).columns)
    assert list(pl.DataFrame(table).columns[:8]) == ["id", "rank", *names]
    assert pl.DataFrame(table).select(names).schema == pl.DataFrame(X).schema
    for name in (
        "frame",
        "measures",
        "factuals",
        "unexplained",
        "changes",
        "summary",
        "sentences",
        "answers",
        "diversity",
        "draws",
    ):
        assert type(found.table(name)) is type(X), name
    assert pl.DataFrame(found.changes()).columns == ["id", "rank", "feature", "from", "to"]
    assert pl.DataFrame(found.table("summary")).columns == ["figure", "value"]
    assert pl.DataFrame(found.table("unexplained")).columns[:2] == ["id", "reason"]
    assert pl.DataFrame(found.table("measures")).columns[:3] == ["id", "rank", "prediction"]
    with pytest.raises(mcce.InputError, match="there is no table 'measure'; did you mean 'measures'"):
        found.table("measure")


def test_answer_equals_that_for_pandas(fitted, found):
    X, _ = fitted
    plain = pl.DataFrame(X).to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get, date_as_object=False)

    def model(rows):
        return (rows["income"].fillna(0) > 25) & (rows["grade"] != "low") & (rows["since"] > "2020-06-01")

    same = MCCE(model, decision=True, fixed=["age"], random_state=1).fit(plain)
    theirs = same.explain(plain.head(20), n_samples=100, n_counterfactuals=2)
    assert theirs.frame["income"].equals(found.frame["income"])
    assert theirs.frame["grade"].astype(str).equals(found.frame["grade"].astype(str))
    pd.testing.assert_frame_equal(theirs.measures, found.measures)
    assert isinstance(theirs.to_frame(), pd.DataFrame)


def test_candidates_round_trip_through_other_frames(fitted):
    X, explainer = fitted
    drawn = explainer.generate(X[:5], n_samples=50)
    assert type(drawn) is type(X)
    assert pl.DataFrame(drawn).columns[:2] == ["id", "draw"]
    chosen = explainer.select(drawn, X[:5])
    pd.testing.assert_frame_equal(chosen.frame, explainer.explain(X[:5], n_samples=50).frame)
    with pytest.raises(mcce.InputError, match="candidates has no column 'id', which names the factual of each row"):
        explainer.select(X[:5], X[:5])


def test_chain_draws_frames_of_its_input_type(fitted):
    X, _ = fitted
    chain = ChainModel(sampler="marginal", fixed=["age"], random_state=1).fit(X)
    assert chain.sample(10).schema == X.schema
    rows, weights = chain.sample(4, given=X.select(["age"])[:3], within={"grade": ["high"]}, importance=True)
    assert pl.DataFrame(rows)["grade"].unique().to_list() == ["high"]
    assert pl.DataFrame(weights).columns == ["id", "draw", "importance"]


@pytest.mark.slow
@pytest.mark.usefixtures("few_trees")
def test_other_functions_accept_other_frames(fitted):
    X, explainer = fitted
    denied = pl.DataFrame(X)[:30]
    denied = denied if isinstance(X, pl.DataFrame) else denied.to_arrow()
    limits = pl.DataFrame(
        {"id": [0, 0], "feature": ["job", "income"], "low": [None, 20.0], "levels": [["clerk"], None]}
    )
    held = explainer.explain(denied, n_samples=100, constraints=[mcce.per_factual(limits)])
    assert 0 not in held or held[0].frame["job"].tolist() == ["clerk"]
    assert explainer.diagnose(denied, n_samples=50).evaluation.n_explained > 0
    assert mcce.diagnostics.stability(explainer, denied, n_samples=50, n_seeds=2).summary["same_row"] <= 1
    assert explainer.feature_names_in_.tolist()[:2] == ["age", "income"]


def test_model_may_return_a_frame_with_class_names():
    X = people().select("age", "income").fill_null(0.0)

    class Model:
        classes_ = ("no", "yes")

        def predict_proba(self, rows):
            yes = (rows["income"] / 50).alias("yes")
            return pl.DataFrame([yes, (1 - yes).alias("no")])  # not in the order of classes_

    found = MCCE(Model(), decision=mcce.Interval(0.5, 1, of="yes"), random_state=1).fit(X).explain(X[:10], n_samples=50)
    assert (found.frame["income"] >= 25).all()


def test_series_is_one_row():
    X = mcce.datasets.load_loans(400).X
    explainer = MCCE(lambda rows: rows["salary"] > 40_000, decision=True, fixed=["age"], random_state=1).fit(X)
    denied = X[X["salary"] < 30_000].iloc[[3]]
    one = explainer.explain(denied.iloc[0], n_samples=100)
    pd.testing.assert_frame_equal(one.frame, explainer.explain(denied, n_samples=100).frame)
    assert list(one) == denied.index.tolist()
    with pytest.raises(mcce.InputError, match="X lacks the column"):
        explainer.explain(denied.iloc[0].drop("age"))
    unnamed = explainer.explain(denied.iloc[0].rename(None), n_samples=100)
    assert list(unnamed) == [0]
    with pytest.raises(mcce.InputError, match="X is a Series; give a pandas DataFrame"):
        explainer.fit(X["age"])


@pytest.mark.parametrize("closed", ["both", "left", "right", "neither"])
def test_pandas_interval_is_accepted(closed):
    X = pd.DataFrame({"a": np.arange(40.0)})
    wanted = MCCE(lambda rows: rows["a"], decision=pd.Interval(10, 20, closed=closed), random_state=1).fit(X)
    ours = MCCE(lambda rows: rows["a"], decision=mcce.Interval(10, 20, closed=closed), random_state=1).fit(X)
    assert wanted.explain(X).decision == ours.explain(X).decision
    edges = pd.DataFrame({"a": [10.0, 20.0]})
    assert (wanted.explain(edges).draws == 0).tolist() == [closed in ("both", "left"), closed in ("both", "right")]
    with pytest.raises(mcce.InputError, match="low of the interval is Timestamp"):
        MCCE(lambda rows: rows["a"], decision=pd.Interval(pd.Timestamp("2020"), pd.Timestamp("2021"))).fit(X)
