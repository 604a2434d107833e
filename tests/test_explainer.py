"""The three steps together: invariants, bad input, and the draws against a brute-force truth."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal, assert_series_equal
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import mcce.candidates.pools
import mcce.explainer
import mcce.generators.chain
from mcce import (
    MCCE,
    CartSampler,
    InputError,
    Interval,
    MCCEWarning,
    ModelError,
    NotFittedError,
    gower_distance,
)

LEVEL = 0.001  # of every statistical test below, all at fixed seeds
SIZES = ["small", "medium", "large"]


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of OpenMP that wait for a busy core make small models slow."""
    with threadpool_limits(1):
        yield


def mixed_table(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Every kind of column, with missing values and with few distinct values in the columns fixed below."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(3, 7, n) * 10,
            "sex": pd.Categorical(rng.choice(["female", "male"], n)),
            "income": np.round(30 + 10 * level + rng.normal(size=n), 1),
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 20, n) / 2),
            "job": rng.choice(["clerk", "pilot", "nurse"], n),
            "size": pd.Categorical(np.array(SIZES)[rng.integers(0, 3, n)], categories=SIZES, ordered=True),
            "owner": rng.random(n) < 0.4,
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
            "children": pd.array(rng.integers(0, 4, n), dtype="Int64"),
            "club": pd.Categorical(np.where(rng.random(n) < 0.1, None, rng.choice(["red", "blue"], n))),
        },
        index=[f"p{i}" for i in range(n)],
    )
    frame.loc[rng.random(n) < 0.1, "children"] = pd.NA
    return frame


TABLE = mixed_table()
FIXED = ["age", "sex"]


def score(frame: pd.DataFrame) -> np.ndarray:
    """A probability from most columns; answers for a row whatever stands beside it."""
    z = (
        0.15 * (frame["income"] - 34)
        - 0.3 * frame["debt"].fillna(4)
        + 0.8 * frame["owner"]
        + 0.5 * frame["size"].cat.codes
        + 0.5 * (frame["job"] == "pilot")
        - 0.2 * frame["children"].fillna(0).astype(float)
        + 0.002 * (frame["since"] - pd.Timestamp("2020-07-01")).dt.days
        + 0.02 * (frame["age"] - 40)
    )
    return (1 / (1 + np.exp(-z))).to_numpy(dtype=float)


def label(frame: pd.DataFrame) -> np.ndarray:
    return np.where(score(frame) > 0.6, "granted", "denied")


def has_score(frame: pd.DataFrame) -> np.ndarray:
    return score(frame) > 0.4


with threadpool_limits(1):
    BOOSTED = HistGradientBoostingClassifier(max_iter=15, random_state=0, categorical_features="from_dtype").fit(
        TABLE[["age", "income", "debt", "club", "sex"]], score(TABLE) > 0.5
    )


def boosted(frame: pd.DataFrame) -> np.ndarray:
    return BOOSTED.predict_proba(frame[["age", "income", "debt", "club", "sex"]])[:, 1]


MODELS = {
    "score": (score, (0.5, 1.0)),
    "rare": (score, Interval(0.85, 1, closed="neither")),
    "label": (label, "granted"),
    "predicate": (None, has_score),
    "boosted": (boosted, (0.5, 1.0)),
}
DENIED = TABLE[score(TABLE) < 0.4].iloc[:40]


def fitted(model=score, decision=(0.5, 1.0), X=TABLE, **settings) -> MCCE:
    return MCCE(model, decision=decision, **({"fixed": FIXED, "random_state": 1} | settings)).fit(X)


@pytest.fixture(scope="module")
def explainer() -> MCCE:
    return fitted()


@pytest.fixture(scope="module")
def found(explainer):
    return explainer.explain(DENIED, n_samples=200, n_counterfactuals=3)


def assert_same(one, two) -> None:
    """Same rows, measures and reasons, to the last bit."""
    assert_frame_equal(one.frame, two.frame, check_exact=True)
    assert_frame_equal(one.measures, two.measures, check_exact=True)
    assert_frame_equal(one.unexplained, two.unexplained, check_exact=True)
    assert_frame_equal(one.factuals, two.factuals, check_exact=True)
    assert_series_equal(one.factual_predictions, two.factual_predictions, check_exact=True)


def differs(one: pd.DataFrame, two: pd.DataFrame) -> np.ndarray:
    """Cell by cell, on values as the user sees them."""
    assert one.shape == two.shape
    changed = np.zeros(one.shape, dtype=bool)
    for j, (a, b) in enumerate(zip(one.astype(object).to_numpy().T, two.astype(object).to_numpy().T)):
        changed[:, j] = [pd.isna(x) != pd.isna(y) or (not pd.isna(x) and x != y) for x, y in zip(a, b)]
    return changed


# ---------------------------------------------------------------- what comes back


def test_result_has_the_training_columns_and_dtypes(found):
    assert found.frame.dtypes.equals(TABLE.dtypes)
    assert found.frame.columns.equals(TABLE.columns)
    assert found.frame["size"].cat.categories.tolist() == SIZES
    assert_frame_equal(found.factuals, DENIED)


def test_result_is_indexed_by_id_and_rank(found):
    assert found.frame.index.names == ["id", "rank"]
    assert found.measures.index.equals(found.frame.index)
    assert found.measures.columns.tolist() == ["prediction", "L0", "gower", "gower_sum"]
    ids = found.frame.index.get_level_values("id")
    assert ids.unique().tolist() == [i for i in DENIED.index if i in set(ids)]  # in the order of X
    for _, ranks in found.frame.index.to_frame().groupby(level="id", sort=False)["rank"]:
        assert ranks.tolist() == list(range(1, len(ranks) + 1))
    assert set(ids) | set(found.unexplained.index) == set(DENIED.index)
    assert not set(ids) & set(found.unexplained.index)


def test_every_row_is_valid_when_the_model_is_asked_again(found):
    again = score(found.frame)
    assert ((again >= 0.5) & (again <= 1)).all()
    assert (again == found.measures["prediction"]).all()
    assert (found.factual_predictions == score(DENIED)).all()


def test_counterfactuals_of_a_factual_are_distinct_and_sorted(found):
    for _, rows in found.frame.groupby(level="id"):
        assert not rows.duplicated().any()
    for _, rows in found.measures.groupby(level="id"):
        pairs = list(zip(rows["L0"], rows["gower_sum"]))
        assert pairs == sorted(pairs)


def test_measures_are_those_of_the_rows_returned(found):
    beside = DENIED.loc[found.frame.index.get_level_values("id")]
    assert (differs(found.frame, beside).sum(axis=1) == found.measures["L0"]).all()
    np.testing.assert_allclose(gower_distance(found.frame, beside, training=TABLE), found.measures["gower"])
    np.testing.assert_allclose(found.measures["gower_sum"], found.measures["gower"] * TABLE.shape[1])


def test_values_are_values_of_the_training_table(found):
    for name in TABLE:
        assert set(found.frame[name].dropna()) <= set(TABLE[name].dropna())


def test_settings_and_timings_are_told(found):
    assert set(found.timings) == {"fit", "generate", "select"}
    assert found.settings["n_samples"] == 200
    assert found.settings["random_state"] == 1
    assert found.settings["pools"] == len(DENIED[FIXED].drop_duplicates())
    assert found.decision == "score in [0.5, 1]"
    assert found.fixed == ("age", "sex")
    assert found.ranges["since"] == (TABLE["since"].min(), TABLE["since"].max())


def test_repr_says_what_was_asked_for(explainer):
    assert repr(explainer) == "MCCE(function, decision=(0.5, 1.0), fixed=['age', 'sex'], sampler='cart')"
    assert "score of class 1 in [0, 1)" in repr(MCCE(score, decision=Interval(0, 1, closed="left", of=1)))


def test_the_training_table_is_not_changed():
    before = TABLE.copy(deep=True)
    fitted().explain(DENIED, n_samples=20)
    assert_frame_equal(TABLE, before)


# ---------------------------------------------------------------- the fixed features


@settings(max_examples=25, deadline=None)
@given(fixed=st.sets(st.sampled_from(list(TABLE)), max_size=len(TABLE.columns) - 1), seed=st.integers(0, 2**31))
def test_fixed_features_never_change(fixed, seed):
    table = TABLE.iloc[:120]
    explainer = fitted(X=table, fixed=sorted(fixed), random_state=seed)
    denied = table[score(table) < 0.5].iloc[:15]
    candidates = explainer.generate(denied, n_samples=20)
    beside = denied.loc[candidates.index.get_level_values("id")]
    names = sorted(fixed)
    assert not differs(candidates[names], beside[names]).any()
    explained = explainer.explain(denied, n_samples=20, n_counterfactuals=2)
    beside = denied.loc[explained.frame.index.get_level_values("id")]
    assert not differs(explained.frame[names], beside[names]).any()
    assert (score(explained.frame) >= 0.5).all()


@pytest.mark.parametrize("condition_on_decision", [True, False])
def test_independent_factuals_that_look_like_their_own_fixed_values(condition_on_decision):
    # the fixed values and the decision, (a, c, 1), are the same numbers as the row (a, b, c) wherever b = c = 1
    table = pd.DataFrame(np.array([*itertools.product([False, True], repeat=3)] * 20), columns=["a", "b", "c"])
    settings = {"fixed": ["a", "c"], "condition_on_decision": condition_on_decision}
    explainer = fitted(lambda f: 1.0 - f["b"], X=table, **settings)
    factuals = table.iloc[:8]
    candidates = explainer.generate(factuals, n_samples=20, independent=True)
    beside = factuals.loc[candidates.index.get_level_values("id")]
    assert not differs(candidates[["a", "c"]], beside[["a", "c"]]).any()
    found = explainer.explain(factuals, n_samples=20, independent=True)
    assert (found.measures["L0"] == 1).all()
    assert found.settings["pools"] == 4


def test_without_fixed_features_there_is_one_pool(explainer):
    free = fitted(fixed=[])
    found = free.explain(DENIED, n_samples=100)
    assert found.settings["pools"] == 1
    assert len(found) == len(DENIED)
    assert found.fixed == ()
    candidates = free.generate(DENIED.iloc[:2], n_samples=50)
    assert_frame_equal(candidates.loc[DENIED.index[0]], candidates.loc[DENIED.index[1]])


def test_all_but_one_fixed():
    explainer = fitted(fixed=[c for c in TABLE if c != "income"])
    found = explainer.explain(DENIED, n_samples=100)
    assert len(found) > 0
    assert (found.measures["L0"] == 1).all()
    assert (found.changes()["feature"] == "income").all()


# ---------------------------------------------------------------- one seed, one answer


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("k", [1, 4])
def test_lazy_and_exhaustive_agree(name, k):
    model, decision = MODELS[name]
    explainer = fitted(model, decision)
    lazy = explainer.explain(TABLE, n_samples=150, n_counterfactuals=k)
    exhaustive = explainer.explain(TABLE, n_samples=150, n_counterfactuals=k, exhaustive=True)
    assert len(lazy) > 50
    assert_same(lazy, exhaustive)
    assert lazy.settings["rows_asked"] <= exhaustive.settings["rows_asked"]


@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_threads_do_not_matter(found, n_jobs, monkeypatch):
    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 64)
    other = fitted(n_jobs=n_jobs).explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert_same(found, other)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (mcce.candidates.pools, "POOL_BYTES", 1),
        (mcce.candidates.pools, "POOL_BYTES", 40_000),
        (mcce.candidates.pools, "BLOCK_FACTUALS", 1),
        (mcce.candidates.pools, "BLOCK_FACTUALS", 7),
        (mcce.explainer, "ASK_ROWS", 5),
        (mcce.generators.chain, "BLOCK_ROWS", 1),
        (mcce.generators.chain, "BLOCK_ROWS", 33),
    ],
)
def test_block_sizes_do_not_matter(found, module, name, value, monkeypatch):
    monkeypatch.setattr(module, name, value)
    other = fitted().explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert_same(found, other)


@pytest.mark.parametrize("independent", [False, True])
def test_order_and_batches_of_factuals_do_not_matter(explainer, independent):
    def explain(X):
        return explainer.explain(X, n_samples=100, n_counterfactuals=2, independent=independent)

    whole = explain(DENIED)
    backwards = explain(DENIED.iloc[::-1])
    assert backwards.frame.index.get_level_values(0)[0] == DENIED.index[-1]
    batches = [explain(DENIED.iloc[i : i + 7]) for i in range(0, len(DENIED), 7)]
    singles = [explain(DENIED.loc[[i]]) for i in DENIED.index]
    for parts in ([backwards], batches, singles):
        for name in ("frame", "measures", "unexplained"):
            expected = getattr(whole, name)
            table = pd.concat(
                [getattr(part, name) for part in parts if len(getattr(part, name))] or [expected.iloc[:0]]
            )
            assert_frame_equal(table.loc[expected.index], expected, check_exact=True, check_dtype=name == "frame")
            assert len(table) == len(expected)


def test_columns_of_the_factuals_in_any_order(found, explainer):
    other = explainer.explain(DENIED[DENIED.columns[::-1]], n_samples=200, n_counterfactuals=3)
    assert_same(found, other)


def test_another_seed_gives_other_rows(found):
    other = fitted(random_state=2).explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert not found.frame.equals(other.frame)


def test_without_a_seed_a_fresh_one_is_told():
    one, two = (fitted(random_state=None).explain(DENIED, n_samples=50) for _ in range(2))
    assert one.settings["random_state"] != two.settings["random_state"]
    again = fitted(random_state=one.settings["random_state"]).explain(DENIED, n_samples=50)
    assert_same(one, again)


def test_numpys_global_state_is_neither_read_nor_written(found):
    np.random.seed(123)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    other = fitted().explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert_same(found, other)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("exhaustive", [False, True])
def test_explain_is_generate_then_select(explainer, independent, exhaustive):
    both = explainer.explain(TABLE.iloc[:60], n_samples=80, n_counterfactuals=3, independent=independent)
    candidates = explainer.generate(TABLE.iloc[:60], n_samples=80, independent=independent)
    steps = explainer.select(candidates, TABLE.iloc[:60], n_counterfactuals=3, exhaustive=exhaustive)
    assert_frame_equal(both.frame, steps.frame, check_exact=True)
    assert_frame_equal(both.measures, steps.measures, check_exact=True)
    assert both.unexplained.index.equals(steps.unexplained.index)


# ---------------------------------------------------------------- generate and select


def test_generate_draws_for_every_factual(explainer):
    rows = explainer.generate(TABLE.iloc[:10], n_samples=7)
    assert rows.index.names == ["id", "draw"]
    assert rows.index.tolist() == list(itertools.product(TABLE.index[:10], range(7)))
    assert rows.dtypes.equals(TABLE.dtypes)


def test_factuals_that_share_fixed_values_share_a_pool(explainer):
    alike = TABLE[(TABLE["age"] == 40) & (TABLE["sex"] == "male")].index[:2]
    shared = explainer.generate(TABLE.loc[alike], n_samples=50)
    assert_frame_equal(shared.loc[alike[0]], shared.loc[alike[1]])
    own = explainer.generate(TABLE.loc[alike], n_samples=50, independent=True)
    assert not own.loc[alike[0]].equals(own.loc[alike[1]])
    assert not differs(own[FIXED], shared[FIXED]).any()


def test_more_samples_begin_with_the_fewer(explainer):
    few = explainer.generate(DENIED.iloc[:3], n_samples=20)
    many = explainer.generate(DENIED.iloc[:3], n_samples=60)
    assert_frame_equal(many.loc[few.index], few)


def test_independent_rows_do_not_depend_on_neighbours(explainer):
    together = explainer.generate(DENIED.iloc[:5], n_samples=30, independent=True)
    alone = explainer.generate(DENIED.iloc[[3]], n_samples=30, independent=True)
    assert_frame_equal(together.loc[[DENIED.index[3]]], alone, check_exact=True)


def test_select_takes_candidates_from_anywhere(explainer):
    """Rows of the training table as candidates: the plain answer is found by hand."""
    factual = DENIED.iloc[[0]]
    alike = TABLE[(TABLE[FIXED] == factual[FIXED].iloc[0]).all(axis=1)]
    candidates = alike.set_index(pd.Index([factual.index[0]] * len(alike)))
    found = explainer.select(candidates, factual, n_counterfactuals=2)
    beside = pd.concat([factual] * len(alike))
    order = pd.DataFrame(
        {"L0": differs(alike, beside).sum(axis=1), "gower": gower_distance(alike, factual, training=TABLE)}
    )
    best = order[score(alike) >= 0.5].sort_values(["L0", "gower"], kind="stable").index[:2]
    assert len(best) == 2
    assert_frame_equal(found.frame.reset_index(drop=True), alike.iloc[best].reset_index(drop=True))


def test_select_reports_factuals_without_candidates(explainer):
    candidates = explainer.generate(DENIED.iloc[:2], n_samples=100)
    found = explainer.select(candidates, DENIED.iloc[:3])
    assert found.unexplained.index[-1] == DENIED.index[2]
    assert found.unexplained["reason"].iloc[-1].startswith("no candidate has the wanted decision")
    nothing = explainer.select(candidates.iloc[:0], DENIED.iloc[:3])
    assert len(nothing) == 0
    assert len(nothing.unexplained) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c.rename(index={DENIED.index[0]: "who"}, level=0),
            "rows for 'who', which is not in the index of X",
        ),
        (lambda c: c.assign(age=99), "changes the fixed feature 'age' of 'p"),
        (
            lambda c: c.assign(sex=pd.Categorical([None] * len(c), TABLE["sex"].cat.categories)),
            "changes the fixed feature 'sex' of 'p",
        ),
        (lambda c: c.drop(columns="job"), r"candidates lacks the column\(s\) 'job'"),
        (lambda c: c.assign(job="thief"), "column 'job' of candidates holds the level 'thief'"),
        (lambda c: c.to_numpy(), "candidates is a ndarray; give a DataFrame"),
    ],
)
def test_select_refuses_strange_candidates(explainer, change, message):
    candidates = explainer.generate(DENIED.iloc[:2], n_samples=5)
    with pytest.raises(InputError, match=message):
        explainer.select(change(candidates), DENIED.iloc[:2])


def test_conditioning_on_the_decision_makes_more_draws_valid(explainer):
    without = fitted(condition_on_decision=False)
    shares = [(score(e.generate(DENIED, n_samples=100)) >= 0.5).mean() for e in (explainer, without)]
    assert shares[0] > 1.5 * shares[1] > 0
    found = without.explain(DENIED, n_samples=200)
    assert (score(found.frame) >= 0.5).all()
    assert found.settings["condition_on_decision"] is False


def test_fewer_rows_are_asked_than_drawn(explainer):
    lazy = explainer.explain(DENIED, n_samples=1000)
    exhaustive = explainer.explain(DENIED, n_samples=1000, exhaustive=True)
    assert exhaustive.settings["rows_asked"] == 1000 * exhaustive.settings["pools"]
    assert lazy.settings["rows_asked"] < 60 * len(DENIED)


# ---------------------------------------------------------------- who has none, and why


def test_a_factual_with_the_wanted_decision_is_told(explainer):
    content = TABLE[score(TABLE) > 0.5].iloc[:3]
    both = pd.concat([content, DENIED.iloc[:3]])
    found = explainer.explain(both, n_samples=300)
    assert found.unexplained.index.tolist() == content.index.tolist()
    assert set(found.unexplained["reason"]) == {"already has the wanted decision"}
    assert (found.unexplained["prediction"] == score(content)).all()
    assert found.frame.index.get_level_values("id").tolist() == DENIED.index[:3].tolist()
    nobody = explainer.explain(content)
    assert len(nobody) == 0
    assert nobody.frame.dtypes.equals(TABLE.dtypes)
    assert nobody.frame.index.names == ["id", "rank"]


SMALL = pd.DataFrame({"group": list("aaaabbbb") * 10, "x": np.arange(80.0), "y": np.arange(80.0) % 7})


def why(explainer, factual, **settings) -> str:
    found = explainer.explain(factual, **settings)
    assert len(found) == 0
    assert repr(found)
    return found.unexplained["reason"].iloc[0]


def only_a(frame):
    return ((frame["group"] == "a") & (frame["x"] > 3)).to_numpy(dtype=float)


def test_why_none_with_these_fixed_values_has_it():
    explainer = MCCE(only_a, fixed=["group"], random_state=1).fit(SMALL)
    reason = why(explainer, SMALL.iloc[[4]], n_samples=50)
    assert reason == (
        "none of the 50 candidates has the wanted decision, "
        "and no training row with its fixed values (group = b) has it"
    )
    chosen = explainer.select(explainer.generate(SMALL.iloc[[4]], n_samples=5), SMALL.iloc[[4]])
    assert chosen.unexplained["reason"].iloc[0] == (
        "no candidate has the wanted decision, and no training row with its fixed values (group = b) has it"
    )


def test_why_none_with_fixed_values_never_seen():
    explainer = MCCE(only_a, fixed=["group", "y"], random_state=1).fit(SMALL)
    reason = why(explainer, SMALL.iloc[[4]].assign(y=100.0), n_samples=10)
    assert reason.endswith(", and no training row has its fixed values (group = b, y = 100.0)")


def test_why_none_though_training_rows_do():
    rare = MCCE(
        lambda f: (f["x"] == 40).to_numpy(dtype=float), fixed=["group"], random_state=1, sampler="marginal"
    ).fit(SMALL)
    reason = why(rare, SMALL.iloc[[0]], n_samples=2)
    assert reason == (
        "none of the 2 candidates has the wanted decision, though training rows with its fixed values do; draw more"
    )


@pytest.mark.parametrize("fixed", [[], ["group"]])
def test_why_none_without_conditioning(fixed):
    rare = MCCE(
        lambda f: (f["x"] == 40).to_numpy(dtype=float),
        fixed=fixed,
        random_state=1,
        condition_on_decision=False,
    ).fit(SMALL)
    assert why(rare, SMALL.iloc[[0]], n_samples=2) == "none of the 2 candidates has the wanted decision; draw more"


def test_why_none_with_missing_fixed_values():
    table = SMALL.assign(group=SMALL["group"].where(SMALL["group"] == "a"))
    explainer = MCCE(only_a, fixed=["group"], random_state=1).fit(table)
    reason = why(explainer, table.iloc[[4]], n_samples=10)
    assert ", and no training row with its fixed values (group = " in reason


def test_nobody_wanted_in_training_is_an_error():
    low, high = score(TABLE).min(), score(TABLE).max()
    with pytest.raises(InputError, match=r"no training row has the wanted decision, score in \[2, 3\]") as error:
        fitted(decision=(2, 3))
    assert f"the scores go from {low:.4g} to {high:.4g}" in str(error.value)
    assert "condition_on_decision=False" in str(error.value)
    with pytest.raises(InputError, match="the answers are 'denied', 'granted'"):
        fitted(label, "refused")
    found = fitted(decision=(2, 3), condition_on_decision=False).explain(DENIED.iloc[:2], n_samples=10)
    assert len(found.unexplained) == 2


# ---------------------------------------------------------------- decisions


@pytest.mark.parametrize(
    ("decision", "is_wanted"),
    [
        ((0.5, 1), lambda s: s >= 0.5),
        (Interval(0.2, 0.4, closed="left"), lambda s: (s >= 0.2) & (s < 0.4)),
        (Interval(0.6, np.inf, closed="neither"), lambda s: s > 0.6),
        ((-np.inf, 0.2), lambda s: s <= 0.2),
    ],
)
def test_intervals(decision, is_wanted):
    unwanted = TABLE[~is_wanted(score(TABLE))].iloc[:30]
    found = fitted(decision=decision).explain(unwanted, n_samples=200)
    assert len(found) >= 25
    assert is_wanted(score(found.frame)).all()


def test_a_half_open_interval_leaves_its_end_out():
    def steps(frame):
        return frame["y"].to_numpy()

    closed = MCCE(steps, decision=(3, 5), random_state=1).fit(SMALL)
    half = MCCE(steps, decision=Interval(3, 5, closed="left"), random_state=1).fit(SMALL)
    factual = SMALL.iloc[[6]]  # y is 6: 5 is nearest, then 4
    assert closed.explain(factual, n_counterfactuals=9).frame["y"].isin([3, 4, 5]).all()
    assert closed.explain(factual).frame["y"].iloc[0] == 5
    assert half.explain(factual).frame["y"].iloc[0] == 4


def test_labels_and_predicates():
    labels = fitted(label, "granted").explain(DENIED, n_samples=200)
    assert (label(labels.frame) == "granted").all()
    assert set(labels.measures["prediction"]) == {"granted"}
    assert set(labels.factual_predictions) == {"denied"}
    yes = fitted(None, has_score).explain(TABLE[~has_score(TABLE)].iloc[:20], n_samples=200)
    assert has_score(yes.frame).all()
    assert yes.decision == "predicate has_score"
    for found in (labels, yes):
        assert found.sentence(found.frame.index[0][0]).startswith("With ")
        assert "wanted" in found._repr_html_()


# ---------------------------------------------------------------- models that misbehave


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda f: np.full(len(f), np.nan), r"returned missing values \(NaN or None\) for 300 of 300 rows"),
        (lambda f: np.ones(len(f) + 1), "returned 301 values, expected 300, one per row"),
        (lambda f: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda f: ["yes"] * len(f), "returned 'yes', which is no number"),
    ],
)
def test_useless_answers_are_errors(model, message):
    with pytest.raises(ModelError, match=message):
        fitted(model)


def test_a_model_that_fails_on_candidates_only():
    def brittle(frame):
        result = score(frame)
        if len(frame) < 300 and not set(frame["income"]) <= {*DENIED["income"], *spots["income"]}:
            raise RuntimeError("this row is new")
        return result

    spots = TABLE.iloc[np.linspace(0, 299, 16).astype(int)]
    with pytest.raises(ModelError, match=r"asked about \d+ rows \(candidates\), raised RuntimeError: this row is new"):
        fitted(brittle).explain(DENIED, n_samples=20)


AGAIN = r"differently when 16 of 16 training rows were asked again \(those at positions 0, 19, 39, 59, 79 and 11 more"


def test_rows_that_are_asked_again_are_named_by_their_place():
    def forgetful(frame):
        return np.where((frame["age"] == TABLE["age"].iloc[19]) & asked, np.nan, score(frame))

    asked = False
    explainer = fitted(forgetful)
    asked = True
    with pytest.raises(ModelError, match=r"index .*'training row 19'.*; the first has age = \d+, sex = "):
        explainer.explain(DENIED[DENIED["age"] != TABLE["age"].iloc[19]].iloc[:2], n_samples=10)


def test_a_random_model_is_told():
    rng = np.random.default_rng(1)
    explainer = fitted(lambda f: np.clip(score(f) + rng.normal(0, 0.01, len(f)), 0, 1))
    with pytest.warns(MCCEWarning, match=AGAIN) as caught:
        explainer.explain(DENIED.iloc[:2], n_samples=10)
    assert caught[0].filename == __file__  # it points at the user's line
    flipping = itertools.cycle([0.0, 1.0])
    explainer = fitted(lambda f: np.where(next(flipping), "granted", label(f)), "granted")
    with pytest.warns(MCCEWarning, match="not deterministic"):
        explainer.explain(DENIED.iloc[:2], n_samples=10)


def test_a_model_that_depends_on_the_other_rows_is_told():
    explainer = fitted(lambda f: np.clip(score(f) - score(f).mean() + 0.4, 0, 1))
    with pytest.warns(MCCEWarning, match="it depends on the other rows of the table"):
        explainer.explain(DENIED.iloc[:2], n_samples=10)


def test_last_bits_of_a_score_may_depend_on_the_batch():
    calls = itertools.count()
    fitted(lambda f: score(f) * (1 + 1e-13 * (next(calls) % 2))).explain(DENIED.iloc[:2], n_samples=10)


def careless(frame):
    answer = score(frame)
    frame["income"] = 0.0
    frame.loc[:, "owner"] = True
    frame.iloc[0, 0] = -1
    frame["new"] = 1
    del frame["job"]
    frame.index = frame.index[::-1]
    return answer


def test_a_model_may_change_the_frame_it_is_given(found):
    before = TABLE.copy(deep=True)
    other = fitted(careless).explain(DENIED, n_samples=200, n_counterfactuals=3)
    assert_same(found, other)
    assert_frame_equal(TABLE, before)


def test_a_model_may_change_the_array_it_is_given():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 3))
    before = X.copy()

    def pure(a):
        return a[:, 0] + a[:, 1]

    def in_place(a):
        a[:, 0] += a[:, 1]
        return a[:, 0].copy()

    factuals = X[pure(X) < 0][:10]
    one, two = (
        MCCE(m, decision=(0, np.inf), random_state=1).fit(X).explain(factuals, n_samples=50) for m in (pure, in_place)
    )
    np.testing.assert_array_equal(X, before)
    assert_same(one, two)


# ---------------------------------------------------------------- tables of all sorts


def test_arrays_are_asked_about_as_arrays():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    model = LogisticRegression().fit(X, (X[:, 0] + X[:, 1] > 0).astype(int))
    asked = []

    class Recorder:
        classes_ = model.classes_

        def predict_proba(self, rows):
            asked.append(rows)
            return model.predict_proba(rows)

    explainer = MCCE(Recorder(), fixed=["x3"], random_state=1).fit(X)
    denied = X[model.predict(X) == 0][:10]
    found = explainer.explain(denied, n_samples=100)
    assert len(found) == 10
    assert {(type(a), a.dtype) for a in asked} == {(np.ndarray, np.dtype(np.float32))}
    assert found.frame.columns.tolist() == ["x0", "x1", "x2", "x3"]
    assert (found.frame.dtypes == np.float32).all()
    assert found.frame.index.get_level_values(0).tolist() == list(range(10))
    assert (found.frame["x3"].to_numpy() == denied[:, 3]).all()
    assert (model.predict(found.frame.to_numpy()) == 1).all()


def test_frames_are_asked_about_as_frames():
    X = TABLE[["income", "age"]]
    model = LogisticRegression().fit(X, X["income"] > 30)
    unwanted = X[~model.predict(X)].iloc[:5]
    found = MCCE(model, fixed=["age"], random_state=1).fit(X).explain(unwanted)
    assert len(found) == 5
    assert model.predict(found.frame).all()


def test_dates_and_missing_values_come_back(explainer):
    candidates = explainer.generate(DENIED, n_samples=50)
    assert candidates["since"].dtype == TABLE["since"].dtype
    assert set(candidates["since"]) <= set(TABLE["since"])
    for name in ("debt", "children", "club"):
        assert 0 < candidates[name].isna().mean() < 0.5


def test_missing_values_reach_a_model_that_takes_them():
    model, decision = MODELS["boosted"]
    denied = TABLE[boosted(TABLE) < 0.5]
    denied = denied[denied["debt"].isna() | denied["club"].isna()].iloc[:10]
    found = fitted(model, decision).explain(denied, n_samples=300)
    assert len(found) == len(denied) > 3
    assert (boosted(found.frame) >= 0.5).all()


@pytest.mark.parametrize(
    "names",
    [["decision", "id", "rank", "prediction", "L0"], [3, 1, 4, 0, 5], ["<decision>", "*", 0, ("a", 1), ""]],
)
def test_any_column_names(names):
    rng = np.random.default_rng(4)
    X = pd.DataFrame({j: rng.integers(0, 6, 200) / 2 for j in range(5)})
    X.columns = pd.Index(names, tupleize_cols=False)
    first, second = names[0], names[3]

    def model(frame):
        return (frame[first] + frame[second]).to_numpy()

    denied = X[model(X) < 2].iloc[:5]
    found = (
        MCCE(model, decision=(3, np.inf), fixed=[names[1]], random_state=1).fit(X).explain(denied, n_counterfactuals=2)
    )
    assert found.frame.columns.tolist() == names
    assert len(found) == 10
    assert (found.frame[names[1]].to_numpy() == np.repeat(denied[names[1]].to_numpy(), 2)).all()
    assert set(found.changes()["feature"]) <= set(names) - {names[1]}
    assert len(found.to_frame().columns) == 2 + 5 + 4
    assert repr(found)
    assert found._repr_html_()
    assert found.sentence(denied.index[0])


def test_a_column_named_for_the_rest_of_the_samplers():
    X = SMALL.rename(columns={"x": "*"})
    found = (
        MCCE(lambda f: f["*"].to_numpy(), decision=(50, 99), fixed=["group"], random_state=1).fit(X).explain(X.iloc[:3])
    )
    assert len(found) == 3


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2024", periods=5),
        pd.CategoricalIndex(list("edcba")),
        pd.Index([9, -1, 3, 2, 5], name="customer"),
        pd.Index([0.5, 1.5, np.nan, 2.5, 3.5]),
        pd.Index([("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)], tupleize_cols=False),
    ],
    ids=["dates", "categories", "named", "missing", "tuples"],
)
def test_any_index_names_the_factuals(explainer, index):
    factuals = DENIED.iloc[:5].set_axis(index)
    found = explainer.explain(factuals, n_samples=100)
    assert found.frame.index.names == ["id", "rank"]
    plain = explainer.explain(DENIED.iloc[:5].reset_index(drop=True), n_samples=100)
    assert_frame_equal(found.frame.reset_index(drop=True), plain.frame.reset_index(drop=True))
    positions = index.get_indexer(found.frame.index.get_level_values("id"))
    assert positions.tolist() == plain.frame.index.get_level_values("id").tolist()


def test_an_index_that_does_not_name_is_refused(explainer):
    with pytest.raises(InputError, match="the index of X holds 7 more than once"):
        explainer.explain(DENIED.iloc[:2].set_axis([7, 7]))
    several = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    for call in (explainer.explain, explainer.generate):
        with pytest.raises(InputError, match="the index of X has several levels"):
            call(DENIED.iloc[:2].set_axis(several))


def test_no_factuals(explainer):
    nobody = DENIED.iloc[:0]
    candidates = explainer.generate(nobody, n_samples=5)
    assert candidates.shape == (0, TABLE.shape[1])
    for found in (explainer.explain(nobody), explainer.select(candidates, nobody)):
        assert len(found) == len(found.unexplained) == 0
        assert found.frame.dtypes.equals(TABLE.dtypes)
        assert found.measures.columns.tolist() == ["prediction", "L0", "gower", "gower_sum"]
        assert repr(found)
        assert len(found.summary())


def test_degenerate_tables():
    X = pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"], "c": [5, 5], "d": [np.nan, np.nan]})

    def model(frame):
        return (frame["a"] == 1).to_numpy(dtype=float)

    found = MCCE(model, random_state=1).fit(X).explain(X.iloc[[1]])
    assert len(found) == 1
    assert found.frame["a"].iloc[0] == 1
    single = MCCE(model, random_state=1).fit(X.iloc[[0]])
    assert single.explain(X.iloc[[0]]).unexplained["reason"].tolist() == ["already has the wanted decision"]
    found = single.explain(X.iloc[[0]].assign(a=7.0, c=6))
    assert_frame_equal(found.frame.reset_index(drop=True), X.iloc[[0]])
    assert found.measures["L0"].tolist() == [2]
    assert found.measures["gower_sum"].tolist() == [2.0]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("value", [0, -3, 1.5, "many", None, True])
@pytest.mark.parametrize("parameter", ["n_samples", "n_counterfactuals"])
def test_counts_must_be_whole_and_positive(explainer, parameter, value):
    message = re.escape(f"{parameter} is {value!r}; it must be a whole number of at least 1")
    with pytest.raises(InputError, match=message):
        explainer.explain(DENIED, **{parameter: value})


@pytest.mark.parametrize("call", ["explain", "generate"])
def test_not_fitted(call):
    with pytest.raises(NotFittedError, match=r"this MCCE is not fitted; call fit\(X\)"):
        getattr(MCCE(score), call)(DENIED)
    with pytest.raises(NotFittedError, match="not fitted"):
        MCCE(score).select(DENIED, DENIED)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fixed": ["sexx"]}, "fixed feature 'sexx' is not a column of X; did you mean 'sex'?"),
        ({"fixed": ["qqqqq"]}, "fixed feature 'qqqqq' is not a column of X; known: 'age', 'sex'"),
        ({"fixed": "age"}, "fixed is 'age'; give a list of column names"),
        ({"fixed": None}, "fixed is None; give a list of column names"),
        ({"fixed": ["age", "age"]}, "fixed names 'age' more than once"),
        ({"fixed": list(TABLE)}, "all 10 columns of X are fixed"),
        ({"random_state": 1.5}, "random_state is 1.5"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"condition_on_decision": "no"}, "condition_on_decision is 'no'; it must be True or False"),
        ({"kinds": ["age"]}, r"kinds is \['age'\]; give a dict"),
        ({"kinds": {"agee": "numeric"}}, "kinds names 'agee'.*did you mean 'age'"),
        ({"decision": (1, 0)}, "low > high; swap the ends"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        fitted(**settings)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (TABLE.iloc[:0], "X has 0 rows and 10 columns; it needs at least one of each"),
        (TABLE["age"], "X is a Series; give a pandas DataFrame"),
        (pd.concat([TABLE, TABLE], axis=1), "X has the column label.* more than once"),
    ],
)
def test_training_tables_are_checked(X, message):
    with pytest.raises(InputError, match=message):
        MCCE(lambda f: np.ones(len(f))).fit(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.assign(job="thief"), "column 'job' of X holds the level 'thief'"),
        (lambda X: X.drop(columns="job"), r"X lacks the column\(s\) 'job' of the training data"),
        (lambda X: X.assign(zip=1), r"X has the column\(s\) 'zip', unknown to the training data"),
        (lambda X: X.assign(income=np.inf), "column 'income' of X holds 2 infinite value"),
        (lambda X: X.assign(age=np.nan), "column 'age' of X has 2 missing .* row 'p0', which .* int64 cannot"),
        (lambda X: X.assign(age=40.5), "column 'age' of X holds 40.5 in row 'p"),
        (lambda X: X.assign(income=1e200), r"column 'income' of X holds numbers of size 1e\+200"),
        (lambda X: X.iloc[0], "X is a Series"),
        (lambda X: X.to_dict(), "X is a dict"),
    ],
)
def test_factuals_are_checked(explainer, change, message):
    with pytest.raises(InputError, match=message):
        explainer.explain(change(DENIED.iloc[:2]))


def test_kinds_are_known_from_the_start():
    """Integers beyond 2**53 are levels if the user says so."""
    X = SMALL.assign(account=2**60 + np.arange(80) % 3)
    found = (
        MCCE(lambda f: f["x"].to_numpy(), decision=(40, 99), kinds={"account": "categorical"}, random_state=1)
        .fit(X)
        .explain(X.iloc[:3])
    )
    assert found.frame["account"].isin(X["account"]).all()


# ---------------------------------------------------------------- the distribution of the draws


def discrete_table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    n = 900
    f = rng.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2])
    a = np.where(rng.random(n) < 0.6, (f == "x").astype(int), rng.integers(0, 3, n))
    b = np.where(rng.random(n) < 0.5, a % 2, rng.integers(0, 2, n))
    c = np.where(rng.random(n) < 0.5, (a + b) % 3, rng.integers(0, 3, n))
    levels = {
        "a": np.array(["a0", "a1", "a2"]),
        "b": np.array(["b0", "b1"]),
        "c": np.array(["c0", "c1", "c2"]),
    }
    return pd.DataFrame({"a": levels["a"][a], "f": f, "b": levels["b"][b], "c": levels["c"][c]})


DISCRETE = discrete_table()


def agree(frame: pd.DataFrame) -> np.ndarray:
    """Some level of c is wanted with every a, b and f, so that every conditional of the chain has donors."""
    a, b, c = (frame[name].str[1].astype(int) for name in ("a", "b", "c"))
    return ((a * b + c + (frame["f"] == "y")) % 3 != 0).to_numpy()


def chain_probabilities(rows: pd.DataFrame, everyone: pd.DataFrame, order, marginal=()) -> dict:
    """Equation 2 by counting: the product of relative frequencies, feature after feature."""
    combinations = {}
    for values in itertools.product(*(sorted(everyone[name].unique()) for name in order)):
        probability, alike = 1.0, rows
        for name, value in zip(order, values):
            donors = everyone if name in marginal else alike
            probability *= (donors[name] == value).mean() if len(donors) else 0.0
            alike = alike[alike[name] == value]
        combinations[values] = probability
    return combinations


@pytest.mark.parametrize("fixed_value", ["x", "y", "z"])
@pytest.mark.parametrize(
    ("order", "marginal", "conditional"),
    [
        (["a", "b", "c"], (), True),
        (["c", "a", "b"], (), True),
        (["a", "b", "c"], ("b",), True),
        (["a", "b", "c"], (), False),
    ],
)
def test_draws_follow_the_chain(fixed_value, order, marginal, conditional):
    explainer = MCCE(
        None,
        decision=agree,
        fixed=["f"],
        sampler={"*": CartSampler(min_leaf=1), **dict.fromkeys(marginal, "marginal")},
        visit_sequence=order,
        condition_on_decision=conditional,
        random_state=5,
    ).fit(DISCRETE)
    n = 20_000
    drawn = explainer.generate(DISCRETE[DISCRETE["f"] == fixed_value].iloc[[0]], n_samples=n)
    assert (drawn["f"] == fixed_value).all()
    rows = DISCRETE[(DISCRETE["f"] == fixed_value) & (agree(DISCRETE) | (not conditional))]
    truth = chain_probabilities(rows, DISCRETE, order, marginal)
    assert sum(truth.values()) == pytest.approx(1)
    counts = drawn.groupby(order).size()
    possible = {values: p for values, p in truth.items() if p > 0}
    assert set(counts.index) <= set(possible)
    observed = np.array([counts.get(values, 0) for values in possible])
    expected = n * np.array(list(possible.values()))
    assert stats.chisquare(observed, expected).pvalue > LEVEL


def test_independent_pools_follow_the_same_distribution():
    explainer = MCCE(None, decision=agree, fixed=["f"], sampler=CartSampler(min_leaf=1), random_state=5).fit(DISCRETE)
    factuals = DISCRETE[DISCRETE["f"] == "x"].drop_duplicates()
    assert len(factuals) > 10
    drawn = explainer.generate(factuals, n_samples=1500, independent=True)
    truth = chain_probabilities(DISCRETE[(DISCRETE["f"] == "x") & agree(DISCRETE)], DISCRETE, ["a", "b", "c"])
    possible = {values: p for values, p in truth.items() if p > 0}
    counts = drawn.groupby(["a", "b", "c"]).size()
    observed = np.array([counts.get(values, 0) for values in possible])
    assert stats.chisquare(observed, len(drawn) * np.array(list(possible.values()))).pvalue > LEVEL
    # and one pool says nothing of another: draw i of factual 1 against draw i of factual 2
    first, second = (drawn.loc[i, "a"].to_numpy() for i in factuals.index[:2])
    assert stats.chi2_contingency(pd.crosstab(first, second)).pvalue > LEVEL


def test_many_draws_find_the_best_of_all_possible_rows():
    explainer = MCCE(None, decision=agree, fixed=["f"], sampler=CartSampler(min_leaf=1), random_state=5).fit(DISCRETE)
    denied = DISCRETE[~agree(DISCRETE)].drop_duplicates()
    found = explainer.explain(denied, n_samples=5000, n_counterfactuals=30)
    assert len(denied) > 10
    for i, factual in denied.iterrows():
        alike = DISCRETE[(DISCRETE["f"] == factual["f"]) & agree(DISCRETE)].drop_duplicates()
        changes = sorted((alike != factual).sum(axis=1))
        assert found.measures.loc[i, "L0"].tolist() == changes
        assert set(found.frame.loc[i].itertuples(index=False, name=None)) == set(
            alike.itertuples(index=False, name=None)
        )
