"""Calls of the R package, simulated in Python: plain values and bytes, errors and warnings as text."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

import mcce
from mcce import MCCE, ConditionalSampler, Counterfactuals, InputError, SamplerError, Within, rcompat
from mcce.rcompat import calls
from mcce.rcompat.columns import SentColumn, columns_of, read_table, write_table
from mcce.rcompat.r_session import NAME, LentSampler, RError, lend
from mcce.rng import RowStreams
from mcce.rng.r import RGenerator
from mcce.samplers.base import SAMPLERS
from mcce.testing import check_sampler
from mcce.testing.tables import make_problem
from tests.marks import nightly_rows
from tests.rcompat.problem import people


def sent(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as R sends it: row names from 1."""
    columns = columns_of(frame)
    parts = zip(columns, write_table(frame, columns))
    return {
        "n_rows": len(frame),
        "index": np.arange(1, len(frame) + 1).astype("<i4").tobytes(),
        "columns": [
            {"name": c.name, "kind": c.kind, "values": v, "states": s, "texts": t, "na_level": -1}
            for c, (v, s, t) in parts
        ],
    }


def received(table: dict[str, Any]) -> pd.DataFrame:
    return read_table(table["columns"], table["n_rows"])[0]


class PlayedR:
    """The R side of a query: the rows, by the template of R, and one number for each."""

    def __init__(self, like: pd.DataFrame) -> None:
        self.columns = columns_of(like)
        self.queried: list[tuple[str, int]] = []

    def __call__(self, table: str, n_rows: int, parts: list[bytearray]) -> dict[str, Any]:
        self.queried.append((table, n_rows))
        described = [
            {
                "name": c.name,
                "kind": c.kind,
                "values": parts[3 * j],
                "states": parts[3 * j + 1],
                "texts": parts[3 * j + 2],
            }
            for j, c in enumerate(self.columns)
        ]
        rows = read_table(described, n_rows)[0]
        answer = rows["income"].to_numpy(dtype="<f8") / 100
        return {"kind": "double", "values": answer.tobytes(), "states": b"", "n_rows": n_rows, "error": None}


def attempted(name: str, *arguments: Any) -> Any:
    answer = calls.attempt(name, *arguments)
    assert answer["error"] is None, answer["error"]
    return answer["value"]


OPTIONS = {
    "decision": {"kind": "interval", "low": 0.6, "high": 1.0, "closed": "both", "of": None, "label": None},
    "fixed": ["age"],
    "random_state": 1.0,
    "n_jobs": 1.0,
}


@pytest.mark.slow
def test_explainer_fitted_by_r_equals_one_fitted_in_python():
    data = people()
    query = PlayedR(data)
    made = attempted("fit", {"ask": query}, sent(data), OPTIONS)
    found = attempted("explain", made["fitted"], sent(data.head(20)), {"n_samples": 100.0, "sparse": True})
    own = MCCE(lambda rows: rows["income"] / 100, decision=(0.6, 1), fixed=["age"], random_state=1).fit(data)
    expected = own.explain(data.head(20), n_samples=100, sparse=True)
    rows = received(found["frame"]).astype(expected.frame.dtypes)
    assert rows.equals(expected.frame.reset_index(drop=True))
    ids = np.frombuffer(found["index"]["index"], "<i4")
    assert ids.tolist() == [id + 1 for id in expected.frame.index.get_level_values("id")]
    assert len(query.queried) < 25  # in blocks, not row by row


@pytest.mark.slow
def test_recourse_equals_that_of_a_python_explainer():
    data = people()[["age", "job", "income"]]
    causal = {"graph": "age -> job -> income", "sampler": "parametric"}
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, **causal})
    options = {"assurance": 0.5, "keep": 0.0, "actions": ["job", "income"]}
    found = attempted("recourse", made["fitted"], sent(data.head(6)), {**options, "n_samples": 100.0})
    own = MCCE(lambda rows: rows["income"] / 100, decision=(0.6, 1), fixed=["age"], random_state=1, **causal).fit(data)
    expected = own.recourse(data.head(6), n_samples=100, **options)
    assert len(expected)
    assert received(found["measures"])["p_valid"].tolist() == expected.measures["p_valid"].tolist()
    sent_table = received(attempted("consequences", found["found"]))
    assert sent_table["feature"].tolist() == expected.consequences["feature"].tolist()
    plain = attempted("explain", made["fitted"], sent(data.head(2)), {"n_samples": 20.0})
    assert attempted("consequences", plain["found"]) is None
    refused = calls.attempt("recourse", made["fitted"], sent(data.head(2)), {"takes": {"job": "soon"}})
    assert refused["error"].startswith("takes of 'job' is 'soon'; give a time as '2 years'")


@pytest.mark.slow
def test_serialised_explainer_and_result_round_trip():
    data = people()
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), OPTIONS)
    file = attempted("dump", made["fitted"])
    again = attempted("restore_explainer", {"ask": PlayedR(data)}, sent(data.iloc[:0]), bytes(file), 1.0)
    options = {"n_samples": 50.0}
    one, two = (attempted("explain", each, sent(data.head(9)), options) for each in (made["fitted"], again))
    assert one["frame"] == two["frame"]
    kept = attempted("restore_result", bytes(attempted("dump", one["found"])))
    assert kept.frame.equals(one["found"].frame)


def test_mccer_call_matches_rcompat_and_advances_the_stream_of_r():
    data = people().drop(columns=["grade", "owns", "town"])
    query, session = PlayedR(data), RGenerator(7)
    before = bytes(session.random_seed.astype("<i4").tobytes())
    options = {
        "fixed_features": ["age"],
        "c_int": [0.6, 1.0],
        "fit_autoregressive_model": "rpart",
        "generate_K": 30.0,
        "process_measures": ["validation", "L0"],
        "return_sim_data": True,
    }
    found = attempted("explain_mcce", query, sent(data.head(3)), sent(data.iloc[3:]), options, before)
    expected = rcompat.explain_mcce(
        None,
        data.head(3),
        data.iloc[3:],
        lambda model, rows: rows["income"] / 100,
        fixed_features="age",
        c_int=(0.6, 1),
        fit_autoregressive_model="rpart",
        fit_seed=session,
        generate_K=30,
        process_measures=["validation", "L0"],
        return_sim_data=True,
    )
    assert received(found["cf"]).astype(expected.cf.dtypes).equals(expected.cf)
    assert received(found["sim_data"]).astype(expected.sim_data.dtypes).equals(expected.sim_data)
    assert found["random_seed"] == bytearray(session.random_seed.astype("<i4").tobytes())
    assert [table for table, _ in query.queried] == ["train", "sim"]


def test_errors_and_warnings_are_returned_as_text():
    data = people()
    wrong = calls.attempt("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "fixed": ["agee"]})
    assert wrong["kind"] == "InputError"
    assert "did you mean 'age'?" in wrong["error"]
    unknown = calls.attempt("fit", None, {}, {})
    assert unknown["kind"] == "PythonError"
    assert unknown["error"].startswith("KeyError")
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), OPTIONS)
    far = data.head(1).assign(income=1e7)
    answer = calls.attempt("explain", made["fitted"], sent(far), {"n_samples": 10.0})
    assert any("income" in text for text in answer["warnings"])


def test_model_error_keeps_its_message():
    stops = {"ask": lambda *question: {"error": "out of order"}}
    answer = calls.attempt("fit", stops, sent(people()), OPTIONS)
    assert answer["kind"] == "ModelError"
    assert "raised RError: out of order" in answer["error"]


def test_r_is_not_called_from_a_second_thread():
    data = people()
    scores = calls.RScores(PlayedR(data), [("data", columns_of(data))])
    caught: list[Exception] = []

    def query() -> None:
        try:
            scores(data)
        except RError as error:
            caught.append(error)

    thread = threading.Thread(target=query)
    thread.start()
    thread.join()
    assert "R has one thread" in str(caught[0])
    assert scores(data).shape == (300,)


@pytest.mark.parametrize(
    ("decision", "shown"),
    [
        ({"kind": "one_of", "labels": ["yes"], "label": None}, "'yes'"),
        ({"kind": "one_of", "labels": ["yes", "maybe"], "label": None}, "OneOf(['yes', 'maybe'])"),
        ({"kind": "none_of", "labels": ["no"], "label": None}, "Not('no')"),
    ],
)
def test_decisions_are_parsed(decision, shown):
    assert repr(calls._decision(decision)) == shown


def test_samplers_are_parsed():
    read = calls._sampler({"income": {"sampler": "cart", "parameters": {"min_leaf": 20.0}}, "*": "cart"})
    assert read["income"].min_leaf == 20
    assert read["*"] == "cart"


GOLDEN = 0.6180339887498949


class PlayedConditional:
    """Simulated R functions: donors of the leaves of a tree, their shares or quantiles, or the one at a position."""

    def __init__(self) -> None:
        self.learned: dict[str, Any] = {}

    def __call__(self, what: str, key: str, table: Any) -> dict[str, Any]:
        if what == "forget":
            del self.learned[key]
            return {}
        rows = self.matrix(table["columns"], table["n_rows"])
        if what == "learn":
            values = self.matrix([table["y"]], table["n_rows"])[:, 0]
            tree = DecisionTreeRegressor(min_samples_leaf=20, random_state=0).fit(rows, values)
            leaf_of_row = tree.apply(rows)
            donors = {leaf: np.sort(values[leaf_of_row == leaf]) for leaf in np.unique(leaf_of_row)}
            name = str(max([-1, *map(int, self.learned)]) + 1)
            self.learned[name] = tree, donors, int(values.max()) + 1
            return {"key": name}
        tree, donors, n_levels = self.learned[key]
        numbers = np.frombuffer(bytes(table["numbers"]), "<f8")
        leaves, place = np.unique(tree.apply(rows), return_inverse=True)
        pools = [donors[leaf] for leaf in leaves]
        if what in ("draw", "own_draw"):
            u = numbers if what == "draw" else numbers * GOLDEN % 1.0  # the first number of a seed
            found = np.empty(place.size)
            for leaf, pool in enumerate(pools):
                found[place == leaf] = pool[(u[place == leaf] * pool.size).astype(int)]
        elif what == "quantiles":
            found = np.array([np.quantile(pool, numbers) for pool in pools])[place]
        else:
            found = np.array([np.bincount(pool.astype(int), minlength=n_levels) / pool.size for pool in pools])[place]
        return {"values": found.astype("<f8").tobytes(order="F")}

    @staticmethod
    def matrix(columns: Any, n_rows: int) -> Any:
        frame, known = read_table([{"na_level": -1, **each} for each in columns], n_rows)
        codes = [frame[c.name] if c.kind == "double" else frame[c.name].cat.codes for c in known]
        return np.column_stack([np.asarray(each, dtype=np.float64) for each in codes])


@pytest.fixture
def lent():
    lend("played", PlayedConditional())
    yield "played"
    SAMPLERS.known.pop(NAME)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("returns", "own_rng"), [("probs", False), *nightly_rows(("quantiles", False), ("draw", False), ("draw", True))]
)
def test_r_functions_conform_as_samplers(lent, returns, own_rng):
    check_sampler(LentSampler(name=lent, returns=returns, own_rng=own_rng), goodness_of_fit=True)


@pytest.mark.slow
@pytest.mark.parametrize(("own_rng", "weighted"), [(True, True), *nightly_rows((False, False))])
def test_rejected_draws_are_redrawn_in_few_calls(lent, own_rng, weighted, monkeypatch):
    problem = make_problem("numeric", 0)
    sampler = LentSampler(name=lent, returns="draw", own_rng=own_rng).fit(problem.given, problem.target)
    calls = []
    query = sampler.query_r
    monkeypatch.setattr(sampler, "query_r", lambda *arguments: calls.append(1) or query(*arguments))
    streams = RowStreams.from_seed(3, problem.given.n_rows)
    within = Within(low=np.full(problem.given.n_rows, np.nanquantile(problem.target.values, 0.95)), weighted=weighted)
    found = sampler.sample_within(problem.given, streams, within)
    assert len(calls) < 40
    one_by_one = ConditionalSampler.sample_within(sampler, problem.given, streams, within)
    assert 0 < found.rejected.mean() < 1
    np.testing.assert_array_equal(found.values, one_by_one.values)
    assert (found.log_mass is None) != weighted
    if weighted:
        np.testing.assert_array_equal(found.log_mass, one_by_one.log_mass)


@pytest.mark.parametrize("returns", ["draw", "probs", "quantiles"])
def test_only_the_fit_to_all_rows_is_kept(returns):
    played = PlayedConditional()
    lend("played", played)
    try:
        problem = make_problem("categorical" if returns == "probs" else "numeric", 0)
        fitted = LentSampler(name="played", returns=returns).fit(problem.given, problem.target)
    finally:
        SAMPLERS.known.pop(NAME)
    assert list(played.learned) == [fitted.learned_]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"returns": "prob"}, "returns of LentSampler is 'prob'; did you mean 'probs'"),
        ({"returns": "probs", "own_rng": True}, r"own_rng of r_sampler\(\) is True with probs; it is True or False"),
    ],
)
def test_invalid_requests_raise(lent, parameters, message):
    problem = make_problem("categorical", 0)
    with pytest.raises(InputError, match=message):
        LentSampler(name=lent, **parameters).fit(problem.given, problem.target)


def test_state_of_another_target_raises(lent):
    problem = make_problem("categorical", 0)
    fitted = LentSampler(name=lent, returns="probs").fit(problem.given, problem.target)
    fitted.check_state(problem.given.features, problem.target.feature, problem.given.n_rows)
    fitted.codes_ = np.array([0.0, 9.0])
    with pytest.raises(InputError, match="codes_ are not levels of the target"):
        fitted.check_state(problem.given.features, problem.target.feature, problem.given.n_rows)


def test_unregistered_functions_raise(lent):
    data = people().drop(columns=["grade", "owns", "town"])
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "sampler": _by(lent)})
    found = attempted("explain", made["fitted"], sent(data.head(5)), {"n_samples": 50.0})
    assert len(found["rank"]) == (data.head(5)["income"] < 60).sum() > 0
    answer = calls.attempt("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "sampler": _by("another")})
    assert "no R session has registered 'another'" in answer["error"]


def _by(name: str) -> dict[str, Any]:
    return {"income": {"sampler": NAME, "parameters": {"name": name, "returns": "draw"}}, "*": "cart"}


def test_draws_that_depend_on_other_rows_raise():
    rng = np.random.default_rng(0)

    def careless(what: str, key: str, table: Any) -> dict[str, Any]:
        return {"key": "one"} if what == "learn" else {"values": rng.random(table["n_rows"]).astype("<f8").tobytes()}

    lend("careless", careless)
    try:
        data = people()[["age", "income"]]
        answer = calls.attempt("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "sampler": _by("careless")})
    finally:
        SAMPLERS.known.pop(NAME)
    assert "returns another value for a row among other rows" in answer["error"]


def test_round_trip_is_a_table_with_its_units():
    day = {"name": "day", "kind": "Date", "values": np.array([1.5], "<f8").tobytes(), "states": b"", "seconds": 86400.0}
    back = attempted("round_trip", {"n_rows": 1, "columns": [day], "labels": b"Ada\0"})
    assert back["units"] == ["s"]
    assert bytes(back["columns"][0]["values"]) == day["values"]


def test_python_frames_are_sent_as_the_nearest_r_types():
    table = attempted("send_frame", pd.DataFrame({"x": [1, 2], "y": ["a", None]}))
    assert [each["kind"] for each in table["columns"]] == ["integer", "character"]
    assert SentColumn("x", "integer") in columns_of(pd.DataFrame({"x": [1, 2]}))


@pytest.mark.parametrize("version", [mcce.__version__, f"{mcce.__version__}.9000"])
def test_same_version_connects(version):
    assert attempted("connect", version) == mcce.__version__


def test_other_version_raises():
    answer = calls.attempt("connect", "99.0.0")
    assert answer["kind"] == "InputError"
    assert f"99.0.0, and its engine, the Python package mcce, has version {mcce.__version__}" in answer["error"]
    assert "install_mcce()" in answer["error"]


def test_seeds_are_passed_exactly_and_may_be_text():
    data, seed = people(), 2**62 + 1
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "random_state": str(seed)})
    assert made["seed"] == str(seed)
    answer = calls.attempt("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "random_state": "first"})
    assert "random_state is 'first'; give a whole number" in answer["error"]


def test_request_builds_no_sentences_changes_or_files(monkeypatch):
    data = people()
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), OPTIONS)
    made_later = [(Counterfactuals, name) for name in ("changes", "save", "__repr__")]
    made_later += [(mcce.report, "sentences"), (mcce.report.words, "compare_rows")]
    count: list[str] = []
    for owner, name in made_later:
        whole = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, n=name, f=whole, **k: count.append(n) or f(*a, **k))
    found = attempted("explain", made["fitted"], sent(data.head(20)), {"n_samples": 50.0})
    assert count == []
    ids = np.frombuffer(attempted("sentences", found["found"])["ids"]["index"], "<i4")
    assert ids.tolist() == list(range(1, 21))
    table = received(attempted("changes", found["found"]))
    assert len(table) == received(found["measures"])["L0"].sum()
    assert attempted("words", found["found"]).count("explained") > 0


@pytest.mark.parametrize("id", [3, 3.0, "3"])
def test_ids_are_numbers_or_text(id):
    data = people()
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), OPTIONS)
    rows = data[data["income"] < 60].head(5)
    whole = attempted("explain", made["fitted"], sent(rows), {"n_samples": 50.0})["found"]
    assert attempted("letter", whole, id) == mcce.report.letter(whole, 3)
    named = {**sent(rows), "labels": b"1\0002\0003\0004\0005\0"}
    texts = attempted("explain", made["fitted"], named, {"n_samples": 50.0})["found"]
    assert attempted("letter", texts, id) == mcce.report.letter(texts, "3")


def test_unknown_id_is_named():
    data = people()
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), OPTIONS)
    found = attempted("explain", made["fitted"], sent(data[data["income"] < 60].head(2)), {"n_samples": 50.0})["found"]
    assert "'Ada'" in calls.attempt("letter", found, "Ada")["error"]


def test_misspelt_arguments_raise_with_a_suggestion():
    data = people()
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), OPTIONS)
    answer = calls.attempt("explain", made["fitted"], sent(data.head(2)), {"sprase": True})
    assert answer["error"] == "explain() has no argument 'sprase'; did you mean 'sparse'?"
    sampler = {"sampler": "cart", "parameters": {"min_laef": 5.0}}
    answer = calls.attempt("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "sampler": sampler})
    assert answer["error"] == "sampler(\"cart\") has no argument 'min_laef'; did you mean 'min_leaf'?"


class StrictR(PlayedR):
    """An R model that answers NA where a column is missing, or stops, as `lm` and `ranger` do."""

    def __init__(self, like: pd.DataFrame, column: str, *, stops: bool) -> None:
        super().__init__(like)
        self.column, self.stops = column, stops

    def __call__(self, table: str, n_rows: int, parts: list[bytearray]) -> dict[str, Any]:
        reply = super().__call__(table, n_rows, parts)
        states = bytes(parts[3 * [c.name for c in self.columns].index(self.column) + 1]) or bytes(n_rows)
        if self.stops and any(states):
            return {"error": f"Missing data in columns: {self.column}."}
        return {**reply, "states": states}


@pytest.mark.slow
@pytest.mark.parametrize("stops", [False, True])
def test_rows_with_unsupported_missing_cells_leave_others_explained(stops):
    data = people()
    query = StrictR(data, "age", stops=stops)
    made = attempted("fit", {"ask": query}, sent(data), {**OPTIONS, "fixed": ["town"]})
    rows = data[data["income"] < 60].head(12).reset_index(drop=True)
    rows.loc[[2, 7, 8], "age"] = np.nan
    rows.loc[[5], "town"] = None  # readable by the model
    answer = calls.attempt("explain", made["fitted"], sent(rows), {"n_samples": 50.0})
    assert answer["error"] is None
    found = answer["value"]
    listed = received(found["unexplained"]).set_index("id")["reason"]
    assert listed.index.tolist() == [3, 8, 9]
    assert set(listed) == {"it could not be read: the model cannot predict rows in which 'age' is missing"}
    alone = attempted("explain", made["fitted"], sent(rows), {"n_samples": 50.0})
    assert sorted(set(np.frombuffer(found["index"]["index"], "<i4"))) == [1, 2, 4, 5, 6, 7, 10, 11, 12]
    assert alone["frame"] == found["frame"]
    assert any("3 of 12 rows are not explained: 3 (the model cannot predict" in text for text in answer["warnings"])
    every = calls.attempt("explain", made["fitted"], sent(rows.iloc[[2, 7]]), {"n_samples": 50.0})
    assert every["kind"] == "ModelError"


def test_rejected_rows_are_found_by_few_queries():
    data = people()
    query = StrictR(data, "age", stops=True)
    made = attempted("fit", {"ask": query}, sent(data), {**OPTIONS, "fixed": ["town"]})
    rows = pd.concat([data[data["income"] < 60]] * 5, ignore_index=True)
    rows.loc[50:, "age"] = np.nan
    query.queried.clear()
    attempted("explain", made["fitted"], sent(rows), {"n_samples": 20.0})
    assert len(query.queried) < 20


@pytest.mark.slow
def test_results_are_judged_and_immutable_features_suggested():
    data = people()
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data.iloc[:200]), OPTIONS)
    explainer = made["fitted"].explainer
    found = attempted("explain", made["fitted"], sent(data.head(40)), {"n_samples": 100.0, "sparse": True})
    listed = received(attempted("suspicious", found["found"], "stop"))
    assert list(listed.columns) == ["id", "rank", "severity", "reasons", "words"]
    assert len(listed) == len(found["found"].suspicious())
    new = data.iloc[200:]
    judged = attempted("criticise", made["fitted"], sent(new), {"n_draws": 50.0, "random_state": 3.0})
    wanted = new["income"].to_numpy() >= 60
    own = explainer.generator_.criticise(new, decision=wanted, n_draws=50, random_state=3)
    assert judged["rejected"] == own.rejected
    np.testing.assert_array_equal(received(judged["table"])["p"], own.table["p"])
    answer = calls.attempt("criticise", made["fitted"], sent(new), {"n_draw": 5.0})
    assert "did you mean 'n_draws'?" in answer["error"]
    facts = received(attempted("suggest_fixed", sent(data), [], None))
    assert facts["feature"].tolist() == mcce.suggest_fixed(data).index.tolist() != []


def test_generators_and_kinds_are_accepted():
    data = people().drop(columns=["town"])
    options = {**OPTIONS, "generator": "forest", "kinds": {"age": "categorical"}}
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), options)
    assert made["generator"] == "AdversarialForest"
    assert made["fitted"].explainer.generator_.schema_.kinds["age"] == "categorical"
    answer = calls.attempt("criticise", made["fitted"], sent(data.head(50)), {})
    assert "a AdversarialForest has no conditionals. Use a chain" in answer["error"]


def test_formulas_of_derived_columns_are_accepted():
    data = people().drop(columns=["town"]).assign(months=lambda rows: 12 * rows["age"])
    made = attempted("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "derived": {"months": "12 * age"}})
    assert [each.text for each in made["fitted"].explainer.derived_] == ["12 * age"]
    answer = calls.attempt("fit", {"ask": PlayedR(data)}, sent(data), {**OPTIONS, "derived": {"month": "12 * age"}})
    assert "did you mean 'months'" in answer["error"]


def test_r_functions_may_support_some_kinds(lent):
    problem = make_problem("categorical", 0)
    sampler = LentSampler(name=lent, returns="draw", kinds=["numeric"], maker='mice_sampler("pmm")')
    with pytest.raises(SamplerError, match=r'mice_sampler\("pmm"\) cannot model .* handles \'numeric\''):
        sampler.fit(problem.given, problem.target)
