"""What the R package calls: tables as bytes, calls, conditionals. Functions of R are stood in for by Python's."""

from __future__ import annotations

import datetime
import threading

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

import mcce
from mcce.rcompat import RGenerator, from_r
from mcce.rcompat.from_r import LentSampler, OneThread, RError, attempt, read_column, read_table, write_table

PEOPLE = pd.DataFrame(
    {
        "age": np.random.default_rng(0).integers(20, 70, 300),
        "income": np.round(np.random.default_rng(1).normal(50, 10, 300), 1),
        "job": pd.Categorical(np.random.default_rng(2).choice(["clerk", "cook", "pilot"], 300)),
    }
)
GRANTED = {"low": 0.6, "high": 1.0, "closed": "both"}


def same_value(before, after):
    return (pd.isna(before) and pd.isna(after)) or before == after


# ------------------------------------------------------------------------------------------------------------- tables

ROUGH = pd.to_datetime(["2020-01-01 12:00:01.25", None, "1950-01-01", "2030-01-01"], format="ISO8601")
ZONED = pd.to_datetime(["2020-03-29 00:30", None, "2020-03-29 01:30", "2020-10-25 00:30"], utc=True)
DAYS = np.array([datetime.date(1600, 2, 29), None, datetime.date(2000, 1, 1), datetime.date(9999, 1, 1)])
COLUMNS = {  # name: values, their kind in R, and their dtype when they come back
    "double": ([1.5, np.nan, -np.inf, 1e300], "double", "float64"),
    "integer": (pd.array([1, None, 2**31 - 1, -5], "Int64"), "integer", "Int64"),
    "numpy_integer": ([1, 2, 3, -(2**31) + 1], "integer", "Int64"),
    "long": ([1, 2, 3, 2**40], "double", "float64"),
    "logical": (pd.array([True, None, False, True], "boolean"), "logical", "boolean"),
    "object_logical": (np.array([True, None, False, True], object), "logical", "boolean"),
    "character": (["", None, "NA", "\u6c34 \U0001f600"], "character", "string"),
    "factor": (pd.Categorical(["b", None, "a", "b"], ["b", "unused", "a"]), "factor", "category"),
    "ordered": (pd.Categorical(["b", None, "a", "b"], ["b", "a"], ordered=True), "ordered", "category"),
    "date": (DAYS, "Date", "datetime64[s]"),
    "time": (ROUGH, "POSIXct", "datetime64[us, UTC]"),
    "zoned": (ZONED.tz_convert("Europe/Oslo"), "POSIXct", "datetime64[s, Europe/Oslo]"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_keep_every_value(name):
    values, kind, dtype = COLUMNS[name]
    before = pd.Series(values, name=name)
    (sent,) = write_table(before.to_frame())["columns"]
    assert sent["kind"] == kind
    after = pd.Series(read_column(sent, 4))
    assert str(after.dtype) == dtype
    if kind in ("factor", "ordered"):
        assert list(after.cat.categories) == list(before.cat.categories)
        assert after.cat.ordered == before.cat.ordered
    if name == "date":
        after = after.dt.date
    if name == "time":
        after = after.dt.tz_localize(None)
    assert all(map(same_value, before, after))


def test_rows_have_their_numbers_or_names():
    column = {"name": "x", "kind": "integer", "values": np.array([1, 2], "<i4").tobytes()}
    table = {"n_rows": 2, "columns": [column]}
    assert list(read_table(table).index) == [0, 1]
    assert list(read_table({**table, "index": np.array([7, 9], "<i4").tobytes()}).index) == [7, 9]
    assert list(read_table({**table, "labels": "Åse\0Bo\0".encode()}).index) == ["Åse", "Bo"]


def test_levels_are_in_the_spelling_of_r_and_zones_may_be_unknown():
    frame = pd.DataFrame({"x": pd.Categorical([True, False]), "y": pd.Categorical([5.0, 0.1])})
    texts = [from_r.split_texts(column["texts"]) for column in write_table(frame)["columns"]]
    assert texts == [["FALSE", "TRUE"], ["0.1", "5"]]
    assert from_r.text_of(pd.Timestamp("2020-05-01")) == "2020-05-01"
    seconds = np.array([0.0, 1.0]).tobytes()
    time = read_column({"name": "t", "kind": "POSIXct", "values": seconds, "zone": "No/Where"}, 2)
    assert str(time.dtype) == "datetime64[s, UTC]"


def frame(**columns):
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: read_column({"name": "x", "kind": "complex", "values": b""}, 0),
            "'x' has the kind 'complex'; known are",
        ),
        (lambda: read_column({"name": "x", "kind": "double", "values": b""}, 1), "has 0 values and 1 marks for 1 rows"),
        (
            lambda: read_column({"name": "x", "kind": "Date", "values": np.array([np.inf]).tobytes()}, 1),
            "a time that is infinite or too far away",
        ),
        (
            lambda: read_table({"n_rows": 0, "columns": [{"name": "x", "kind": "double", "values": b""}] * 2}),
            r"column name\(s\) 'x' more than once",
        ),
        (lambda: write_table(frame(x=["a\0b"])), "a character that R cannot hold"),
        (lambda: write_table(frame(x=[2**60])), "integers beyond 2\\*\\*53"),
        (lambda: write_table(frame(x=[1j])), "has dtype complex128, for which R has no type"),
        (lambda: write_table(frame(x=pd.to_timedelta([1], unit="s"))), "has dtype timedelta64.*total_seconds"),
        (lambda: write_table(frame(x=pd.Categorical([1, "1"]))), "are not distinct as text"),
    ],
)
def test_what_the_other_side_cannot_hold_is_an_error(call, message):
    with pytest.raises(mcce.exceptions.InputError, match=message):
        call()


# -------------------------------------------------------------------------------------------------------------- calls


def income(sent):
    """Stand in for a model of R."""
    return {**from_r.write_column(read_table(sent)["income"] / 100), "n_rows": sent["n_rows"]}


def fitted(**options):
    outcome = attempt(
        "fit",
        {"ask": income, "name": "score"},
        write_table(PEOPLE),
        {"decision": GRANTED, "random_state": 1.0, **options},
    )
    assert outcome["error"] is None, outcome["error"]
    return outcome["value"]["explainer"]


def test_an_answer_is_that_of_python():
    options = {"fixed": ["age"], "sampler": {"job": {"sampler": "cart", "parameters": {"min_leaf": 9.0}}, "*": "cart"}}
    explainer = fitted(**options, constraints=[{"feature": "income", "max_step": 30.0}, "income <= 80"])
    rows = write_table(PEOPLE.head(6))
    answer = attempt("explain", explainer, rows, {"n_samples": 50.0, "n_counterfactuals": 2.0})["value"]
    same = mcce.MCCE(
        lambda X: X["income"] / 100,
        decision=(0.6, 1),
        fixed=["age"],
        sampler={"job": mcce.samplers.CartSampler(min_leaf=9), "*": "cart"},
        constraints=[mcce.allow("income", max_step=30), "income <= 80"],
        random_state=1,
    )
    expected = same.fit(PEOPLE).explain(PEOPLE.head(6), n_samples=50, n_counterfactuals=2)
    assert (read_table(answer["rows"]).to_numpy() == expected.frame.to_numpy()).all()
    index, changes = read_table(answer["index"]), read_table(answer["changes"])
    assert list(zip(index["id"], index["rank"])) == list(expected.frame.index)
    assert list(changes["to"]) == [from_r.text_of(value) for value in expected.changes()["to"]]
    assert list(read_table(answer["unexplained"])["code"]) == list(expected.unexplained["code"])
    assert answer["settings"]["seed"] == "1"
    assert answer["text"] == repr(expected)
    assert attempt("sentence", answer["python"], float(index["id"][0]), 1.0)["value"] == expected.sentence(
        index["id"][0]
    )
    assert read_table(attempt("summarise", answer["python"])["value"])["value"][0] == 6


def test_labels_dates_and_pictures(tmp_path):
    def label(sent):
        return {
            **from_r.write_column(read_table(sent)["income"].gt(60).map({True: "yes", False: "no"})),
            "n_rows": sent["n_rows"],
        }

    dated = PEOPLE.assign(since=pd.Timestamp("2020-01-01") + pd.to_timedelta(PEOPLE["age"], unit="D"))
    options = {"decision": {"labels": ["yes"]}, "random_state": 1.0}
    explainer = attempt("fit", {"ask": label, "name": "label"}, write_table(dated), options)["value"]["explainer"]
    near = [{"feature": "since", "max_step": {"seconds": 864000.0}}]
    answer = attempt("explain", explainer, write_table(dated.head(3)), {"n_samples": 200.0, "constraints": near})[
        "value"
    ]
    rows = read_table(answer["rows"])
    assert (rows["income"] > 60).all()
    assert list(read_table(answer["measures"])["prediction"]) == ["yes"] * len(rows)
    steps = (
        rows["since"].dt.tz_localize(None).to_numpy()
        - dated["since"].iloc[read_table(answer["index"])["id"]].to_numpy()
    )
    assert (abs(steps) <= np.timedelta64(10, "D")).all()
    for id in (None, read_table(answer["index"])["id"][0]):
        assert attempt("draw_picture", answer["python"], str(tmp_path / "plot.png"), id, 1.0)["error"] is None
        assert (tmp_path / "plot.png").read_bytes()[1:4] == b"PNG"


def fails_to_fit(ask=income, **options):
    return attempt("fit", {"ask": ask, "name": "score"}, write_table(PEOPLE), {"decision": GRANTED, **options})


SHORT = {"sampler": "cart", "parameters": {"min_laef": 3.0}}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fails_to_fit(fixd=["age"]), "mcce() has no argument 'fixd'; did you mean 'fixed'?"),
        (lambda: fails_to_fit(ask=lambda sent: {"error": "out of order"}), "out of order"),
        (lambda: fails_to_fit(sampler=SHORT), "sampler('cart') has no argument 'min_laef'; did you mean 'min_leaf'?"),
        (
            lambda: attempt("explain", fitted(), write_table(PEOPLE.head(1)), {"sprase": True}),
            "explain() has no argument 'sprase'; did you mean 'sparse'?",
        ),
        (lambda: attempt("connect", "99.1.0"), "run install_mcce()"),
    ],
)
def test_errors_come_back_as_text(call, message):
    outcome = call()
    assert outcome["kind"] == "InputError"
    assert message in outcome["error"]
    assert attempt("no_function")["kind"] == "PythonError"


def test_warnings_come_back_and_the_version_is_compared():
    assert attempt("connect", mcce.__version__.partition(".dev")[0])["value"] == mcce.__version__
    from_r.FUNCTIONS["warn"] = lambda: mcce.exceptions.warn("take care")
    try:
        assert attempt("warn")["warnings"] == ["take care"]
    finally:
        del from_r.FUNCTIONS["warn"]


def test_mccer_goes_on_with_the_stream_of_the_session():
    def call(options, session, x_train=PEOPLE):
        streams = []

        def ask(sent, stream):
            streams.append(RGenerator.from_random_seed(np.frombuffer(bytes(stream), "<i4")))
            return income(sent)

        options = {
            "c_int": [0.6, 1.0],
            "fit_autoregressive_model": "rpart",
            "generate_K": 20.0,
            "process_measures": ["validation", "L0"],
            **options,
        }
        predictions = (PEOPLE["income"] / 100).to_numpy().tobytes()
        seed = RGenerator(session).random_seed.astype("<i4").tobytes()
        sent_train = None if x_train is None else write_table(x_train)
        outcome = attempt("explain_mcce", ask, write_table(PEOPLE.head(3)), sent_train, predictions, options, seed)
        assert outcome["error"] is None, outcome["error"]
        return outcome["value"], streams

    in_session, (stream,) = call({"return_sim_data": True, "return_featuremodel_object": True}, session=5)
    seeded, (same_stream,) = call({"return_sim_data": True, "fit_seed": 5.0}, session=9)
    assert in_session["sim_data"] == seeded["sim_data"]
    assert stream.uniform(3).tolist() == same_stream.uniform(3).tolist()
    assert stream.random_seed.tolist() != RGenerator(5).random_seed.tolist()
    model = {"featuremodel_object": in_session["featuremodel_object"], "return_sim_data": True}
    once, _ = call(model, session=7, x_train=None)
    again, _ = call({**model, "generate_seed": 7.0}, session=8, x_train=None)
    assert once["sim_data"] == again["sim_data"]


# ------------------------------------------------------------------------------------------------------- conditionals


def lent(draw, seen=None):
    """Return a conditional whose R is a function of (x, y, rows, u)."""

    def learn(x, y, seed):
        values, x = pd.Series(read_column(y, x["n_rows"])), read_table(x)
        if seen is not None:
            seen.append((x, values))

        def drawing(rows, numbers, seed):
            drawn = draw(x, values, read_table(rows), np.frombuffer(bytes(numbers), "<f8"))
            return {"values": np.asarray(drawn, dtype="<f8").tobytes()}

        return {"draw": drawing}

    return LentSampler(OneThread(learn))


def exponential(x, y, rows, u):
    return -np.log1p(-u) * (1 + rows["age"].to_numpy() / 100)


def test_draws_have_the_distribution_of_the_function():
    chain = mcce.ChainModel(fixed=["age"], sampler={"income": lent(exponential), "*": "cart"}, random_state=1)
    given = pd.DataFrame({"age": [20, 60]})
    drawn = chain.fit(PEOPLE[["age", "income"]].assign(income=PEOPLE["income"] + np.pi / 1e9)).sample(2000, given=given)
    for age, part in drawn.groupby("age"):
        assert kstest(part["income"] / (1 + age / 100), "expon").pvalue > 1e-3


def test_a_conditional_gets_numbers_and_factors_and_missing_targets_are_not_its_concern():
    seen = []
    data = PEOPLE.assign(job=PEOPLE["job"].where(PEOPLE["age"] > 30))
    positions = lent(lambda x, y, rows, u: (u * 3).astype(int), seen)
    chain = mcce.ChainModel(fixed=["age", "income"], sampler={"job": positions}, random_state=1).fit(data)
    ((x, y),) = seen
    assert [str(dtype) for dtype in x.dtypes] == ["float64", "float64"]
    assert list(y.cat.categories) == ["clerk", "cook", "pilot"]
    assert not y.isna().any()
    drawn = chain.sample(1, given=data[["age", "income"]])["job"]
    assert drawn.isna().any()
    assert set(drawn.dropna()) == {"clerk", "cook", "pilot"}


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda x, y, rows, u: np.arange(len(rows)), mcce.exceptions.InputError, "another value for a row among other"),
        (lambda x, y, rows, u: {}["no"], KeyError, "no"),
    ],
)
def test_a_draw_that_depends_on_other_rows_is_an_error(draw, error, message):
    with pytest.raises(error, match=message):
        mcce.ChainModel(fixed=["age"], sampler={"income": lent(draw)}).fit(PEOPLE[["age", "income"]])


def test_r_has_one_thread_and_its_errors_name_the_column():
    sampler = LentSampler(OneThread(lambda x, y, seed: {"error": "no idea"}))
    with pytest.raises(RError, match=r"'income': learn of r_sampler\(\) stopped. no idea"):
        mcce.ChainModel(fixed=["age"], sampler={"income": sampler}).fit(PEOPLE[["age", "income"]])
    errors = []

    def call():
        try:
            one(1)
        except RError as error:
            errors.append(str(error))

    one = OneThread(lambda number: {"value": number})
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert errors == ["R has one thread, and was called from a second one; leave n_jobs at 1."]
