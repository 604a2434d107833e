"""Saved and loaded objects draw the same in this process and in another."""

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import mcce
from mcce import InputError, MCCEWarning, NotFittedError
from mcce.distances.measures import hvdm
from mcce.storage.state import add_check, checks_by_name, from_state, to_state
from tests.marks import slow, slow_but
from tests.storage import good


def digest(frame):
    return hashlib.sha256(frame.to_csv().encode()).hexdigest()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*could not be drawn within")
@pytest.mark.parametrize(
    ("name", "decision"), [*((name, False) for name in good.CHAINS), ("cart", True), ("copula", True)]
)
def test_chain_draws_the_same_after_a_round_trip(name, decision, tmp_path):
    chain = good.chain(name, decision=decision)
    chain.save(tmp_path / "chain.mcce")
    again = mcce.ChainModel.load(tmp_path / "chain.mcce", n_jobs=1)
    given = good.table(missing=False)[["sex"]].head(4)
    within = {"n": (2, 9)}

    def both(call):
        return call(chain), call(again)

    pd.testing.assert_frame_equal(*both(lambda c: c.sample(50)))
    pd.testing.assert_frame_equal(*both(lambda c: c.sample(5, given=given, within=within, random_state=8)))
    if name != "pmm":  # smoothed, it has no density
        rows = chain.sample(30, random_state=2)
        pd.testing.assert_series_equal(*both(lambda c: c.log_density(rows)))
    assert repr(again) == repr(chain)
    chain.save(tmp_path / "twice.mcce")
    assert (tmp_path / "twice.mcce").read_bytes() == (tmp_path / "chain.mcce").read_bytes()


@pytest.mark.parametrize(
    "name", ["marginal", "parametric", "pmm", "empirical", *slow("cart", "rpart", "ctree", "forest", "boosting")]
)
def test_constant_columns_round_trip(name, tmp_path):
    X = good.rows_of(name).assign(
        never=np.nan, nobody=np.array([None] * 60, dtype=object), none=pd.Categorical([None] * 60, []), always=3
    )
    chain = mcce.ChainModel(sampler=good.CHAINS[name][0], fixed=["sex"], random_state=1, n_jobs=1)
    if name == "rpart":  # no trees for columns without levels
        X = X.drop(columns=["nobody", "none"])
    chain.fit(X).save(tmp_path / "chain.mcce")
    pd.testing.assert_frame_equal(mcce.ChainModel.load(tmp_path / "chain.mcce").sample(20), chain.sample(20))


@pytest.mark.nightly
def test_another_process_draws_the_same(tmp_path):
    drawn = {}
    for name in good.CHAINS:
        chain = good.chain(name)
        chain.save(tmp_path / f"{name}.mcce")
        drawn[name] = digest(chain.sample(40))
    code = (
        "import sys, json, hashlib, mcce, pathlib\n"
        "files = sorted(pathlib.Path(sys.argv[1]).glob('*.mcce'))\n"
        "draws = {f.stem: mcce.ChainModel.load(f).sample(40).to_csv().encode() for f in files}\n"
        "print(json.dumps({name: hashlib.sha256(text).hexdigest() for name, text in draws.items()}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert json.loads(done.stdout) == drawn, done.stderr


def test_non_default_settings_round_trip(tmp_path):
    X = good.table(missing=False)
    fixed = pd.Index(["sex"])
    chain = mcce.ChainModel(
        sampler={"n": mcce.CartSampler(min_leaf=3), "*": mcce.MarginalSampler},
        fixed=fixed,
        visit_sequence="correlation",
        predictors={"n": ("sex",)},
        kinds={"n": "ordered"},
        min_donors=2,
    ).fit(X)
    chain.save(tmp_path / "chain.mcce")
    again = mcce.ChainModel.load(tmp_path / "chain.mcce")
    assert (again.seed_, again.visit_sequence_) == (chain.seed_, chain.visit_sequence_)
    assert repr(again.sampler["n"]) == "CartSampler(min_leaf=3)"
    pd.testing.assert_frame_equal(again.associations_, chain.associations_)
    pd.testing.assert_frame_equal(again.sample(40), chain.sample(40))
    assert str(again.samplers_["n"].tree) == str(chain.samplers_["n"].tree)
    assert again.fit(X).sample(3).shape == (3, 7)


def wide_table():
    """Return a table with all dtypes, and levels of all kinds, some missing."""
    pytest.importorskip("pyarrow")
    n = 40
    rng = np.random.default_rng(2)
    code = rng.integers(0, 3, n)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 30, n), unit="D")
    some = rng.random(n) < 0.2
    return pd.DataFrame(
        {
            "float32": rng.normal(size=n).round(1).astype(np.float32),
            "uint8": rng.integers(0, 9, n).astype(np.uint8),
            "Int64": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "Float32": pd.array(rng.normal(size=n).round(2), dtype="Float32"),
            "boolean": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "string": pd.array(np.array(["", "NA", "None"])[code], dtype="string"),
            "double[pyarrow]": pd.array(rng.normal(size=n).round(2), dtype="double[pyarrow]"),
            "string[pyarrow]": pd.array(np.array(["a", "é", "<b>"])[code], dtype="string[pyarrow]"),
            "timestamp[pyarrow]": pd.Series(days).astype("timestamp[us][pyarrow]"),
            "date": days,
            "zoned": days.tz_localize("Europe/Oslo"),
            "duration": days - days[0],
            "period": pd.Series(days).dt.to_period("M"),
            "intervals": pd.cut(pd.Series(rng.normal(size=n)), [-9, 0, 1, 9]),
            "dates as levels": pd.Categorical(days.to_period("M").to_timestamp()),
            "ints as levels": pd.Categorical(code * 10, categories=[20, 10, 0, 5]),
            "bools as levels": pd.Categorical(code > 0),
            "mixed": np.array([True, "cook", ("a", 2)], dtype=object)[code],
            ("a", 1): rng.integers(0, 4, n),
            3: rng.random(n) < 0.5,
        }
    ).assign(**{"gaps": lambda f: f["float32"].where(~some).astype(float), "Gaps": lambda f: f["Int64"].mask(some)})


@pytest.mark.slow
def test_every_dtype_round_trips(tmp_path):
    X = wide_table()
    chain = mcce.ChainModel(fixed=["uint8", "string"], random_state=1).fit(X)
    chain.save(tmp_path / "chain.mcce")
    again = mcce.ChainModel.load(tmp_path / "chain.mcce")
    pd.testing.assert_frame_equal(again.sample(60), chain.sample(60))
    assert (again.sample(5).dtypes == X.dtypes).all()


@pytest.mark.slow
def test_result_with_every_dtype_round_trips(tmp_path):
    X = wide_table()
    X.index = pd.CategoricalIndex([f"row {i}" for i in range(len(X))], name="who")
    explainer = mcce.MCCE(lambda rows: rows["uint8"] > 4, decision=True, fixed=["string"], random_state=1).fit(X)
    found = explainer.explain(X, n_samples=30, constraints=[mcce.allow("uint8", high=7)])
    found.save(tmp_path / "found.mcce")
    again = mcce.Counterfactuals.load(tmp_path / "found.mcce")
    for name in ("frame", "measures", "factuals", "unexplained", "constraints", "allowed"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(found, name))
    pd.testing.assert_frame_equal(again.diversity(), found.diversity())
    pd.testing.assert_series_equal(again.factual_predictions, found.factual_predictions)
    assert (repr(again), again.ranges, again.run.settings) == (repr(found), found.ranges, dict(found.run.settings))
    with pytest.raises(InputError, match="this result was loaded from a file"):
        again.contributions(found.frame.index[0][0])


@pytest.mark.slow
def test_empty_result_round_trips(tmp_path):
    made = good.explainer()
    X = good.table(12, seed=4)
    accepted = X[good.accepted(X) >= 0.5]
    chosen = made.select(made.generate(X, n_samples=20), X)
    for found in (made.explain(accepted, sparse=True), made.explain(X.head(0)), chosen):
        found.save(tmp_path / "found.mcce")
        again = mcce.Counterfactuals.load(tmp_path / "found.mcce")
        pd.testing.assert_frame_equal(again.frame, found.frame)
        pd.testing.assert_frame_equal(again.measures, found.measures)
        pd.testing.assert_frame_equal(again.summary(), found.summary())
        assert repr(again) == repr(found)


DECISIONS = {
    "pair": (0.4, float("inf")),
    "interval": mcce.Interval(0.4, 1.0, closed="left", margin=0.05, label="in time"),
    "label": "yes",
    "one of": mcce.OneOf(["yes", "perhaps"], label="a chance"),
    "not": mcce.Not("no"),
}


def answers(rows):
    return np.array(["no", "perhaps", "yes"], dtype=object)[np.minimum(rows["n"].to_numpy(int) // 5, 2)]


@pytest.mark.parametrize("name", slow_but(DECISIONS, "label"))
def test_explainer_explains_the_same_after_a_round_trip(name, tmp_path):
    model = good.accepted if name in ("pair", "interval") else answers
    made = mcce.MCCE(model, decision=DECISIONS[name], fixed=["sex"], random_state=5, n_jobs=1).fit(good.table())
    made.save(tmp_path / "explainer.mcce")
    again = mcce.MCCE.load(tmp_path / "explainer.mcce", model=model)
    found = [e.explain(good.table(15, seed=4), n_samples=40) for e in (made, again)]
    pd.testing.assert_frame_equal(found[0].frame, found[1].frame)
    pd.testing.assert_frame_equal(found[0].measures, found[1].measures)
    assert (found[0].decision, found[0].copies) == (found[1].decision, found[1].copies)
    assert repr(again) == repr(made)


@pytest.mark.slow
def test_constraints_and_plausibility_are_saved_with_the_explainer(tmp_path):
    constraints = [
        mcce.allow("n", low=1, step=2, direction="increase"),
        mcce.allow("day", low=pd.Timestamp("2020-01-08")),
        mcce.rule("if sex == 'f' then n >= 2", name="women"),
        mcce.only({3: ["n", "job"]}),
        mcce.per_factual(pd.DataFrame({"feature": ["n"], "high": [9]}, index=[4])),
    ]
    made = good.explainer(constraints=constraints)
    made.save(tmp_path / "explainer.mcce")
    again = mcce.MCCE.load(tmp_path / "explainer.mcce", model=good.accepted)
    settings = {"n_samples": 60, "sparse": True, "constraints": [mcce.no_copies()]}
    found = [e.explain(good.table(12, seed=4), **settings) for e in (made, again)]
    pd.testing.assert_frame_equal(found[0].frame, found[1].frame)
    pd.testing.assert_frame_equal(found[0].measures, found[1].measures)
    pd.testing.assert_frame_equal(found[0].unexplained, found[1].unexplained)
    again.save(tmp_path / "twice.mcce")
    assert (tmp_path / "twice.mcce").read_bytes() == (tmp_path / "explainer.mcce").read_bytes()


@pytest.mark.slow
def test_models_and_functions_are_passed_when_loading(tmp_path):
    path = tmp_path / "explainer.mcce"
    several = mcce.Several({"score": (good.accepted, (0.3, 1)), "answer": (answers, mcce.Not("no"))}, agree="all")
    made = mcce.MCCE(None, decision=several, fixed=["sex"], random_state=5).fit(good.table())
    made.save(path)
    again = mcce.MCCE.load(path, model={"score": good.accepted, "answer": answers})
    X = good.table(10, seed=4)
    pd.testing.assert_frame_equal(made.explain(X).frame, again.explain(X).frame)
    with pytest.raises(InputError, match="uses several models; give them by name: 'score', 'answer'"):
        mcce.MCCE.load(path, model=good.accepted)
    with pytest.raises(InputError, match="model has no 'answer'"):
        mcce.MCCE.load(path, model={"score": good.accepted})
    with pytest.raises(InputError, match="decision is given, but the file contains it"):
        mcce.MCCE.load(path, model={}, decision=5)

    def many(rows):
        return rows["n"] > 6

    made = mcce.MCCE(None, decision=many, fixed=["sex"], random_state=5).fit(good.table())
    made.save(path)
    again = mcce.MCCE.load(path, decision=many)
    pd.testing.assert_frame_equal(made.explain(X).frame, again.explain(X).frame)
    with pytest.raises(InputError, match="was a function, which a file does not hold; give it again"):
        mcce.MCCE.load(path)
    several = mcce.Several([(good.accepted, (0.3, 1)), (None, many)])
    made = mcce.MCCE(None, decision=several, fixed=["sex"], random_state=5).fit(good.table())
    with pytest.raises(InputError, match=r"the decision of 'many' .* is a function, which cannot be written down"):
        made.save(path)


def test_different_model_is_reported(tmp_path):
    good.explainer().save(tmp_path / "explainer.mcce")
    with pytest.warns(MCCEWarning, match=r"the model answers \d+ of 16 training rows differently"):
        mcce.MCCE.load(tmp_path / "explainer.mcce", model=lambda rows: good.accepted(rows) / 2)


class Rounded(mcce.ConditionalSampler):
    """A sampler with a custom state that has an entry like a built-in one."""

    handles = frozenset({"numeric"})

    def fit(self, given, target):
        self.ends_ = np.array([np.nanmin(target.values), np.nanmax(target.values)])
        self.about_ = {"type": "uniform", "deep": [1, {"type": "x"}]}
        return self

    def sample(self, given, rng, within=None):
        if within is not None:
            return self.sample_within(given, rng, within).values
        assert self.about_ == {"type": "uniform", "deep": [1, {"type": "x"}]}
        return np.round(self.ends_[0] + (self.ends_[1] - self.ends_[0]) * rng.uniform())


mcce.register_sampler("tests.rounded", Rounded)


def test_plug_in_is_stored_by_its_fitted_attributes(tmp_path):
    X = good.table(missing=False)
    chain = mcce.ChainModel(sampler={"n": Rounded(), "*": "cart"}, fixed=["sex"], random_state=1).fit(X)
    chain.save(tmp_path / "chain.mcce")
    pd.testing.assert_frame_equal(mcce.ChainModel.load(tmp_path / "chain.mcce").sample(30), chain.sample(30))


def test_unstorable_objects_raise_with_a_reason(tmp_path):
    path = tmp_path / "x.mcce"
    path.write_text("as it was")
    X = good.table(missing=False)
    with pytest.raises(NotFittedError, match=r"is not fitted; call fit\(X\)"):
        mcce.ChainModel().save(path)
    with pytest.raises(NotFittedError, match="not fitted"):
        mcce.MCCE(good.accepted).save(path)
    estimator = mcce.EstimatorSampler(LinearRegression())
    chain = mcce.ChainModel(sampler={"n": estimator, "*": "cart"}, random_state=1).fit(X)
    with pytest.raises(
        InputError, match=r"EstimatorSampler.*holds a scikit-learn estimator, .* cannot be written as arrays and JSON"
    ):
        chain.save(path)
    made = good.explainer(constraints=[mcce.rule(lambda rows, was: rows["n"] >= was["n"])])
    with pytest.raises(InputError, match="a rule that is a Python function, which cannot be stored; write it as"):
        made.save(path)
    with pytest.raises(InputError, match="donors is 'some'; it must be 'all' or 'none'"):
        good.chain("cart").save(path, donors="some")
    assert path.read_text() == "as it was"
    assert [each.name for each in tmp_path.iterdir()] == ["x.mcce"]


def test_everything_read_is_checked():
    # plain values, dtypes and scalars are built by constructors that raise for invalid values
    by_constructor = {
        *("Allow", "Rule", "Interval", "OneOf", "Not", "Decimal", "Fraction", "bytes"),
        *("date", "datetime", "time", "timedelta"),
        *(
            "sampler",
            "sampler.Recipe",
            "ChainModel",
            "AdversarialForest",
            "Made",
            "MixtureGenerator",
            "VineGenerator",
            "donors.DonorForest",
        ),
    }
    unchecked = {name for name, checked in checks_by_name().items() if not checked and not name.startswith("tests.")}
    assert {name for name in unchecked if not name.startswith(("numpy.", "pandas."))} <= by_constructor
    with pytest.raises(StopIteration):
        add_check(int, lambda made: None)


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["ivdm", *slow("mad", "hvdm")])
def test_distances_learned_from_the_training_rows_are_loaded(measure, tmp_path):
    explainer = good.explainer()
    explainer.save(tmp_path / "a.mcce")
    loaded = mcce.MCCE.load(tmp_path / "a.mcce", model=good.accepted)
    few, how = good.table(8, seed=4), {"measures": (measure, "L0"), "n_samples": 30, "feature_weights": {"x": 3}}
    before, after = explainer.explain(few, **how), loaded.explain(few, **how)
    pd.testing.assert_frame_equal(after.frame, before.frame)
    pd.testing.assert_frame_equal(after.measures, before.measures)
    loaded.save(tmp_path / "again.mcce")  # and is kept
    again = mcce.MCCE.load(tmp_path / "again.mcce", model=good.accepted).explain(few, **how)
    pd.testing.assert_frame_equal(again.measures, before.measures)


def test_unstorable_measure_is_named(tmp_path):
    explainer = good.explainer()
    explainer.save(tmp_path / "a.mcce")
    loaded = mcce.MCCE.load(tmp_path / "a.mcce", model=good.accepted)
    loaded.learned_.distances = {}
    with pytest.raises(mcce.InputError, match="measure 'hvdm': training rows are not stored"):
        loaded.explain(good.table(4), measures=("L0", "hvdm"))


def test_distance_table_index_out_of_range():
    features = mcce.Schema.from_data(good.table()).features
    matrix = mcce.Schema.from_data(good.table()).encode(good.table()).matrix
    made = hvdm(features, matrix, matrix[:, 5] > 8)
    assert from_state(to_state(made)).name == "hvdm"
    for change in ({"size": made.size + 1}, {"table": made.table[:-1]}):
        with pytest.raises(mcce.InputError, match="Distance: begin and size lead beyond the table"):
            from_state(to_state(dataclasses.replace(made, **change)))
