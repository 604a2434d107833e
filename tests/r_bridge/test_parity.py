"""mcceR's call in R and ours give the same numbers, and a report says where two runs part."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import rcompat
from mcce.exceptions import InputError, MCCEError
from mcce.rcompat import RGenerator
from r_bridge import ParityReport, RError, RModel, check_parity, explain_mcce
from r_bridge.parity import compare, difference, processor_notes, run_mcce

ENGINES = ("rpart", "ctree")


@pytest.fixture(scope="module")
def air():
    return mcce.datasets.load_airquality(dropna=True)


@pytest.fixture(scope="module")
def call(air):
    return {
        "x_explain": air.X.tail(3),
        "x_train": air.X.iloc[:-3],
        "fixed_features": "Wind",
        "c_int": (-np.inf, 15),
        "fit_seed": 1,
        "generate_seed": 2,
        "generate_K": 200,
    }


@pytest.fixture(scope="module")
def ozone(r, air):
    return RModel.from_code("lm(Ozone ~ ., data = data)", air.X.assign(Ozone=air.y))


def temperature(X):
    return 2.0 * X["Temp"] - 3 * X["Wind"]


def random_call(seed):
    """Rows of mixed types with ties, a score, and a call."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(80, 250))
    base = rng.normal(size=n)
    columns = {}
    for j in range(int(rng.integers(2, 6))):
        n_levels = int(rng.integers(2, 6))
        kinds = {
            "double": base * rng.normal() + rng.normal(size=n),
            "integer": np.round(3 * base + rng.normal(size=n)).astype(int),
            "few": rng.integers(0, 4, n),
            "factor": pd.Categorical.from_codes(rng.integers(0, n_levels, n), list("cabed")[:n_levels]),
            "logical": base + rng.normal(size=n) > 0,
        }
        columns[f"x{j}"] = kinds[str(rng.choice(list(kinds)))]
    X = pd.DataFrame(columns)
    weights = rng.normal(size=X.shape[1])
    levels = [name for name, column in X.items() if isinstance(column.dtype, pd.CategoricalDtype)]

    def score(frame):
        coded = [frame[name].cat.codes if name in levels else frame[name] for name in frame]
        return np.column_stack(coded).astype(float) @ weights

    fixed = [name for name in X.columns[:-1] if rng.random() < 0.4]
    has_levels = any(name in levels for name in X.columns if name not in fixed)
    measures = ["validation", "L0", "gower"] if has_levels else ["validation", "L0", "L1", "L2", "gower"]
    return {
        "model": score,
        "x_explain": X.iloc[:3],
        "x_train": X.iloc[3:],
        "fixed_features": fixed,
        "c_int": (float(np.quantile(score(X), 0.6)), np.inf),
        "fit_decision": bool(rng.random() < 0.7),
        "fit_seed": int(rng.integers(0, 10_000)),
        "generate_seed": None if rng.random() < 0.3 else int(rng.integers(0, 10_000)),
        "generate_K": 60,
        "process_measures": measures,
        "process_return_best_k": int(rng.integers(1, 4)),
        "process_remove_invalid": bool(rng.random() < 0.7),
    }


# ---------------------------------------------------------------- with mcceR


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(6))
def test_live_parity(r, need, engine, seed):
    need("mcceR")
    settings = [{}, {"minbucket": 3}, {"minsplit": 10, "maxdepth": 4}][seed % 3]
    report = check_parity(**random_call(seed), fit_autoregressive_model=engine, **settings)
    if not report.agrees and processor_notes():
        pytest.xfail(f"{report.parts_at}; {processor_notes()[0]}")
    assert report.agrees, report
    assert set(report.table["stage"]) == {"fit", "generate", "process", "result"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seeds", [(None, None), (None, 3), (3, None)])
def test_a_model_that_draws_from_the_stream_of_r(r, need, air, call, engine, seeds):
    """Without seeds, both predict the training rows first, and take the stream from there."""
    for package in ("mcceR", "ranger"):
        need(package)
    data = air.X.assign(low=pd.Categorical(np.where(air.y < 30, "yes", "no")))
    forest = RModel.from_code("ranger::ranger(low ~ ., data, num.trees = 10, seed = 1, num.threads = 1)", data)
    arguments = {**call, "c_int": (1, 1), "fit_seed": seeds[0], "generate_seed": seeds[1]}
    votes = lambda X: (forest.predict(X) == "yes") * 1.0  # noqa: E731
    report = check_parity(votes, **arguments, fit_autoregressive_model=engine)
    assert report.agrees, report


def test_stream_of_the_session_is_unchanged(r, need, air, call):
    need("mcceR")
    r.evaluate("set.seed(3)")
    expected = list(r.evaluate("runif(2)"))
    r.evaluate("set.seed(3)")
    assert check_parity(temperature, **call).agrees
    assert list(r.evaluate("runif(2)")) == expected


def assert_same(one, two):
    pd.testing.assert_frame_equal(one.cf, two.cf)
    pd.testing.assert_frame_equal(one.cf_measures, two.cf_measures, check_exact=not processor_notes())
    assert one.fixed_features == two.fixed_features
    assert one.mutable_features == two.mutable_features


def test_every_kind_of_model_gives_the_same_result(r, need, ozone, call):
    need("mcceR")
    expected = rcompat.explain_mcce(ozone, **call)
    result = explain_mcce(ozone, **call)
    assert_same(result, expected)
    assert list(result.time.index) == ["fit.time", "generate.time", "process.time"]
    own = "function(model, newdata) predict(model, as.data.frame(newdata))"
    assert_same(explain_mcce(ozone.r_object, **call), expected)
    assert_same(explain_mcce(ozone.r_object, **call, predict_model=own), expected)
    assert_same(explain_mcce("anything", **call, predict_model=lambda _, X: ozone.predict(X)), expected)
    first = explain_mcce(ozone, **call, return_featuremodel_object=True, return_sim_data=True)
    assert list(first.sim_data.dtypes[1:]) == list(call["x_train"].dtypes)
    again = {**call, "x_train": None, "featuremodel_object": first.featuremodel_object}
    assert_same(explain_mcce(ozone, **again), expected)
    streams = [RGenerator(11), RGenerator(11)]
    assert_same(
        explain_mcce(ozone, **{**call, "fit_seed": streams[0], "generate_seed": None}),
        rcompat.explain_mcce(ozone, **{**call, "fit_seed": streams[1], "generate_seed": None}),
    )


def test_errors_of_the_model_and_of_mccer(r, need, air, call):
    need("mcceR")

    def fail(X):
        raise ZeroDivisionError("inside the model")

    with pytest.raises(MCCEError, match="raised ZeroDivisionError: inside the model"):
        explain_mcce(fail, **call)
    text = air.X.assign(Month=air.X["Month"].map(str))
    with pytest.raises(RError, match=r"R stopped in .*character"):
        explain_mcce(temperature, **{**call, "x_train": text.iloc[:-3], "x_explain": text.tail(3)})
    renamed = call["x_train"].rename(columns={"Temp": "Temp + 1"})
    with pytest.raises(InputError, match=r"the column name 'Temp \+ 1' is not a plain R name"):
        explain_mcce(temperature, **{**call, "x_train": renamed})


# ---------------------------------------------------------------- without mcceR


@pytest.mark.parametrize("function", [explain_mcce, check_parity])
def test_missing_mccer_is_reported_with_its_source(r, monkeypatch, call, function):
    monkeypatch.setattr(type(r), "has", lambda self, package: False)
    with pytest.raises(RError, match=r"needs R's package mcceR.*NorskRegnesentral/mcceR"):
        function(temperature, **call)


@pytest.fixture(scope="module")
def two_runs(r, call):
    """Two equal runs, and what `compare` needs besides."""
    seeds = {name: call[name] for name in ("fixed_features", "c_int", "fit_seed", "generate_seed", "generate_K")}
    arguments = (temperature, call["x_explain"], call["x_train"], {**seeds, "c_int": (-np.inf, 90)})
    return run_mcce(*arguments), run_mcce(*arguments), call["x_explain"], {"process_return_best_k": 1}


def test_equal_runs_agree(two_runs):
    table = compare(*two_runs)
    assert set(table["verdict"]) == {"equal"}
    assert list(dict.fromkeys(table["stage"])) == ["fit", "generate", "process", "result"]


def changed(run, table, column, change):
    frame = getattr(run.result, table).copy()
    frame[column] = change(frame[column])
    return replace(run, result=replace(run.result, **{table: frame}))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda run: replace(run, leaves=run.leaves.assign(Temp=1)), "fit: leaf of each training row, Temp"),
        (lambda run: changed(run, "sim_data", "Temp", lambda v: v + 1), "generate: generated rows, Temp"),
        (lambda run: replace(run, stream=run.stream[::-1]), "generate: random stream afterwards"),
        (lambda run: replace(run, predictions=run.predictions * 1e6), "process: counterfactuals"),
        (lambda run: changed(run, "cf", "Temp", lambda v: v + 1), "process: counterfactuals, Temp"),
        (lambda run: changed(run, "cf_measures", "measure_L1", lambda v: v + 0.5), "process: measures, measure_L1"),
        (lambda run: changed(run, "cf_measures", "measure_L1", lambda v: v * (1 + 1e-15)), None),
        (lambda run: replace(run, leaves=-run.leaves), None),  # the same leaves under other numbers
    ],
)
def test_the_report_says_where_two_runs_part(two_runs, change, where):
    ours, theirs, *rest = two_runs
    parts_at = ParityReport(compare(ours, change(theirs), *rest), {}, {}).parts_at
    assert parts_at == where or (where is not None and parts_at.startswith(where))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (["a", "b"], ["a", "c"], (2, 1, 1.0, "differs")),
        ([1.0, np.nan], [1.0, np.nan], (2, 0, 0.0, "equal")),
        ([1.0], [1.0, 2.0], (2, 1, np.inf, "differs")),
        ([1e6, 0.0], [1e6, 1e-9], (2, 1, 1e-9, "last digits")),
    ],
)
def test_differences(r, ours, theirs, expected):
    assert difference(ours, theirs) == expected


def test_another_processor_is_named(r, monkeypatch):
    monkeypatch.setattr("r_bridge.parity.architecture", lambda: "aarch64")
    assert "R on aarch64 differs from R on x86_64 in the last bits" in processor_notes()[0]
    assert difference([1.0], [1.0 + 1e-10])[-1] == "last digits"
