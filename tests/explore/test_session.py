"""The session: every answer compared with the explainer, the model or the table."""

import json
import re
import shutil
import subprocess
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mcce
from mcce.explore import ExplorerSession
from tests.explore.bank import GRANTED, NASTY, Moody, explainer, people, risk, send

FEW = {"draws": 100}


def at(table, name):
    return str(table.columns.get_loc(name))


def found_by(fitted, table, person, **settings):
    options = {"n_samples": 100, "n_counterfactuals": 3, "sparse": True, "diverse": True, "progress": False, **settings}
    return fitted.explain(table.iloc[[person]], **options)


def test_start_message_has_features_and_the_decision(session, table):
    start = send(session, "start")
    assert start["decision"] == "the loan is granted"
    assert (start["people"], start["refused"]) == (300, int((risk(table) >= 0.3).sum()))
    assert [each["fixed"] for each in start["features"]] == [name in ("age", "sex") for name in table]
    kinds = {each["label"]: each["kind"] for each in start["features"]}
    assert (kinds["loan amount"], kinds["education"], kinds["customer since"]) == ("numeric", "ordered", "date")
    salary = start["features"][int(at(table, "salary"))]
    assert salary["stops"][0] == table["salary"].min()
    assert salary["stops"][-1] == table["salary"].max()


def test_rows_are_filtered_searched_and_paged(session, table):
    scores = risk(table).to_numpy()
    pages = [send(session, "people", filter="refused", page=page) for page in range(10)]
    listed = [one["person"] for page in pages for one in page["people"]]
    assert listed == np.flatnonzero(scores >= 0.3).tolist()
    assert pages[0]["total"] == len(listed)
    assert pages[0]["people"][0]["name"] == table.index[listed[0]]
    women = send(session, "people", filter="granted", group={"feature": at(table, "sex"), "level": 0}, page=0)
    assert women["total"] == int(((scores < 0.3) & (table["sex"] == "female")).sum())
    assert send(session, "people", search="RETIRED female")["total"] == int(
        ((table["employment"] == "retired") & (table["sex"] == "female")).sum()
    )
    assert [one["person"] for one in send(session, "people", search="</script> 17")["people"]][:1] == [17]


@pytest.mark.slow
def test_suspicious_rows_match_the_result(session, fitted, table):
    found = fitted.explain(table[risk(table) >= 0.3], sparse=True, progress=False)
    wanted = table.index.get_indexer(found.suspicious().index.get_level_values("id"))
    listed = send(session, "people", filter="suspicious")
    assert listed["total"] == len(set(wanted))
    assert {one["person"] for one in listed["people"]} <= set(wanted)
    assert send(session, "people", filter="without")["total"] == len(found.unexplained)


def test_plans_match_explain(session, fitted, table, refused):
    found = found_by(fitted, table, refused)
    plans = send(session, "plans", person=refused, settings=FEW)["plans"]
    assert [plan["rank"] for plan in plans] == found.frame.index.get_level_values("rank").tolist()
    changes = found.changes()
    for plan in plans:
        of_plan = changes[changes["rank"] == plan["rank"]]
        assert [table.columns[each["feature"]] for each in plan["changes"]] == of_plan["feature"].tolist()
        assert [each["role"] for each in plan["changes"]] == of_plan["role"].tolist()
        assert plan["plausibility"] == found.measures["plausibility"].xs(plan["rank"], level="rank").iloc[0]
        for each in plan["changes"]:
            bars = each["distribution"]["bars"]
            assert sum(bar["share"] for bar in bars) == pytest.approx(1.0)


def test_limits_are_respected(session, table, refused):
    salary, loan = at(table, "salary"), at(table, "loan_amount")
    employment, savings = at(table, "employment"), at(table, "savings")
    own = table.iloc[refused]
    high = float(own["savings"] + 30_000)
    limits = {
        salary: {"direction": "increase", "low": 1000},
        loan: {"direction": "decrease", "hard": 3},
        savings: {"high": high},
        employment: {"levels": [0, 1]},
    }
    plans = send(session, "plans", person=refused, settings={"features": limits, "plans": 5, "floor": 0.02, **FEW})[
        "plans"
    ]
    assert plans
    for plan in plans:
        values = [cell["value"] for cell in plan["cells"]]
        assert values[int(salary)] >= own["salary"]
        assert values[int(loan)] <= own["loan_amount"]
        assert values[int(savings)] <= high
        assert values[int(employment)] in (0, 1)


@pytest.mark.slow
def test_manual_plan_is_judged_like_a_computed_plan(session, table, refused):
    plan = send(session, "plans", person=refused, settings=FEW)["plans"][0]
    values = {str(each["feature"]): plan["cells"][each["feature"]]["value"] for each in plan["changes"]}
    edited = send(session, "edit", person=refused, values=values)
    assert edited["granted"]
    assert edited["plausibility"] == plan["plausibility"]
    assert edited["prediction"] == plan["prediction"]
    assert [each["to"] for each in edited["changes"]] == [each["to"] for each in plan["changes"]]
    nothing = send(session, "edit", person=refused, values={})
    assert not nothing["granted"]
    assert nothing["changes"] == []
    poor = send(session, "edit", person=refused, values={at(table, "salary"): 10**9})
    assert poor["granted"]
    assert poor["plausibility"] < 0.01


@pytest.mark.slow
def test_manual_dates_have_the_dtype_of_the_column():
    days = pd.to_timedelta(np.arange(200) % 50, "D")
    table = pd.DataFrame(
        {
            "zoned": pd.Timestamp("2020-01-01", tz="Europe/Oslo") + days,
            "far": pd.Series(pd.Timestamp("3612-09-12").as_unit("s") + days).dt.as_unit("s"),
            "near": pd.Series(pd.Timestamp("2020-01-01") + days).dt.as_unit("ns"),
            "waited": days,
            "x": np.arange(200.0) % 20,
        }
    )
    fitted = mcce.MCCE(lambda rows: rows["x"] >= 10, decision=True, random_state=1).fit(table, relations=[])
    session = ExplorerSession(fitted, table)

    def put(place, text):
        return session.answer({"ask": "edit", "person": 0, "values": {place: text}, "settings": FEW})

    for place, text in (("0", "2020-01-10"), ("1", "3612-09-15"), ("2", "2020-01-03 10:00"), ("3", "5 days")):
        (change,) = put(place, text)["changes"]
        assert change["to"].startswith(text)
    for text in ("now", "today", "NaT", "10:00"):
        assert "cannot be read as a date of 'zoned'" in put("0", text)["error"]
    nobody = {"ask": "why", "person": 0, "settings": {"features": {"4": {"may": False}}, **FEW}}
    (relaxed,) = session.answer(nobody)["relax"]
    assert relaxed["feature"] == 4


@pytest.mark.slow
def test_limiting_constraint_is_named(session, table, refused):
    held = {at(table, name): {"may": False} for name in table.columns[2:]}
    answer = send(session, "plans", person=refused, settings={"features": held, **FEW})
    assert answer["plans"] == []
    assert not answer["already"]
    why = send(session, "why", person=refused, settings={"features": held, **FEW})
    helping = {table.columns[each["feature"]] for each in why["relax"] if each["feature"] is not None}
    assert helping
    assert helping <= {"salary", "savings", "loan_amount"}
    lifted = {key: limit for key, limit in held.items() if key != at(table, min(helping))}
    assert send(session, "plans", person=refused, settings={"features": lifted, **FEW})["plans"]


def test_accepted_row_needs_no_plan(session, table):
    granted = int((risk(table) < 0.2).to_numpy().argmax())
    assert send(session, "plans", person=granted) == {
        "plans": [],
        "reason": "already has the wanted decision",
        "already": True,
    }
    assert "has the wanted decision" in send(session, "why", person=granted)["reason"]


@pytest.mark.slow
def test_python_call_gives_the_same_row(session, fitted, table, refused):
    rank = 2
    since = table["customer since"].iloc[refused]
    features = {
        at(table, "salary"): {"high": 250_000, "direction": "increase", "hard": 2},
        at(table, "customer since"): {"low": str(since - pd.Timedelta("90 days")), "high": "2030-01-01"},
        at(table, "education"): {"low": 0},
        at(table, NASTY): {"levels": [0, 1, 2]},
        at(table, "employment"): {"may": False},
    }
    options = {"person": refused, "settings": {"features": features, "floor": 0.02, **FEW}}
    plan = send(session, "plans", **options)["plans"][rank - 1]
    text = send(session, "export", what="python", rank=rank, **options)["text"]
    space = {"explainer": fitted, "people": table}
    exec(text, space)
    cells = ExplorerSession(fitted, space["row"])
    assert send(cells, "person", person=0)["cells"] == plan["cells"]
    exported = pd.read_csv(StringIO(send(session, "export", what="row", rank=rank, **options)["text"]))
    assert exported["salary"].iloc[0] == space["row"]["salary"].iloc[0]
    assert len(exported) == 1


R_STUBS = """
library <- function(...) invisible()
allow <- function(feature, ...) list(feature = feature, ...)
explain <- function(x, newdata, ...) {
  given <- list(...)
  for (name in setdiff(names(given), c("constraints", "feature_weights"))) cat(name, "=", format(given[[name]]), "\\n")
  for (name in names(given$feature_weights)) cat("weight", name, given$feature_weights[[name]], "\\n")
  for (each in given$constraints) cat(names(each), "|", unlist(each), "\\n")
  cat("rows", nrow(newdata), newdata$n, "\\n")
  list(rows = data.frame(a = 1:3), index = data.frame(id = 1, rank = 1:3))
}
explainer <- NULL
people <- data.frame(n = 101:500, m = 1)
"""


@pytest.mark.slow
def test_r_call_is_valid_r(session, table, refused, tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("no R on this machine; install the system's package r-base")
    features = {
        at(table, "salary"): {"high": 250_000.5, "direction": "increase", "hard": 2},
        at(table, NASTY): {"levels": [0, 1]},
    }
    options = {"person": refused, "settings": {"features": features, **FEW}}
    text = send(session, "export", what="r", rank=2, **options)["text"]
    (tmp_path / "call.R").write_text(R_STUBS + text + "cat('row', row$a, '\\n')\n", encoding="utf-8")
    done = subprocess.run(["Rscript", "--vanilla", tmp_path / "call.R"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert "sparse = TRUE " in said
    assert "n_counterfactuals = 3 " in said
    assert "diverse = TRUE " in said
    assert "weight salary 2 " in said
    assert "row 2 " in said
    assert "feature high direction | salary 250000.5 increase " in said
    assert f"feature levels | {NASTY} {' '.join(sorted(set(table[NASTY]))[:2])} " in said
    assert f"rows 1 {101 + refused} " in said


@pytest.mark.slow
def test_letters_match_the_result(session, fitted, table, refused):
    found = found_by(fitted, table, refused)
    assert send(session, "export", what="letter", person=refused, settings=FEW)["text"] == mcce.report.letter(
        found, table.index[refused]
    )
    page = send(session, "export", what="page", person=refused, settings=FEW)["text"]
    assert page == mcce.report.letter(found, table.index[refused], html=True)
    assert NASTY not in page


@pytest.mark.parametrize("dtype", [object, pd.ArrowDtype(pa.string())], ids=str)
def test_spreadsheet_does_not_execute_a_row(fitted, table, refused, dtype):
    odd = table.iloc[[refused]].set_axis(pd.Index(["=cmd()"], dtype=dtype))
    text = send(ExplorerSession(fitted, odd), "export", what="row", person=0, settings=FEW)["text"]
    assert "'=cmd()" in text


def test_figures_of_all_are_counts_and_shares(fitted, table):
    few = table[risk(table) >= 0.3].head(5)
    figures = dict(send(ExplorerSession(fitted, few), "whole")["tables"][0]["rows"])
    assert figures["refused people"] == figures["with a plan"] == "5"
    assert figures["plausibility of a plan, on average"].endswith("%")


@pytest.mark.nightly
def test_overview_summarises_all_rejected_rows(session, fitted, table):
    found = fitted.explain(table[risk(table) >= 0.3], sparse=True, progress=False)
    figures, changed, *_ = send(session, "whole")["tables"]
    assert ["with a plan", str(len(set(found.frame.index.get_level_values("id"))))] in figures["rows"]
    assert len(changed["rows"]) == int((found.changed_features()["times"] > 0).sum())
    (by,) = send(session, "by", feature=at(table, "sex"))["tables"]
    assert [row[0] for row in by["rows"]] == ["female", "male", "all"]
    counts = table["sex"][risk(table) >= 0.3].value_counts()
    assert [int(row[1]) for row in by["rows"]] == [counts["female"], counts["male"], counts.sum()]
    assert len(send(session, "by", feature=at(table, "salary"))["tables"][0]["rows"]) == 5


@pytest.mark.nightly
def test_floors_and_conditionals_are_evaluated(fitted, table):
    new = people(450).iloc[300:]
    session = ExplorerSession(fitted, new)
    (costs,) = send(session, "trade_off")["tables"]
    assert [row[0] for row in costs["rows"]][:3] == ["nearest row that was drawn", "at least 0%", "at least 1%"]
    (compared,) = send(session, "criticise")["tables"]
    judged = fitted.generator_.criticise(new, decision=(risk(new) < 0.3).to_numpy(), progress=False)
    assert [row[1] for row in compared["rows"]] == ["yes" if ok else "no" for ok in judged.table["passes"]]


def texts_in(value):
    """Return all texts of a reply that the page shows, which excludes the sentence of a plan."""
    if isinstance(value, dict):
        return [text for key, each in value.items() if key != "sentence" for text in texts_in(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts_in(each)]
    return [value] if isinstance(value, str) else []


NAMES = {
    "labels": {"loan_amount": "sum lent", "years_employed": "time in the job", "savings": "money put aside"},
    "formats": {"housing": {"rent": "rents a flat"}, "employment": {"unemployed": "without a job"}},
}
ELSEWHERE = "loan_amount|savings|years_employed|defaulted_last_year|'?rent'?|'?unemployed'?|True|False|missing"
INTERNAL = (
    "factual|gower|L0|sd |log_density|rows_queried|accus|conditional|floor|candidate|marginal|X_new|above_|[a-z]_[a-z]"
)


@pytest.mark.nightly
def test_features_and_levels_have_one_spelling_and_no_internal_words():
    X = mcce.datasets.load_loans(400).X
    fixed = ["age", "sex", "defaulted_last_year"]
    limited = [mcce.rule("loan_amount <= 3 * salary")]
    made = mcce.MCCE(risk, decision=GRANTED, fixed=fixed, names=NAMES, constraints=limited, random_state=1).fit(X)
    session = ExplorerSession(made, X.head(150))
    person = int((risk(X) > 0.5).to_numpy().argmax())
    held = {at(X, name): {"may": False} for name in X if name not in fixed}
    group = {"feature": at(X, "defaulted_last_year"), "level": 0}
    shown = [send(session, name) for name in ("start", "people", "whole", "trade_off", "criticise")]
    shown += [send(session, "by", feature=at(X, name)) for name in ("housing", "defaulted_last_year", "salary")]
    shown += [send(session, "plans", person=each, settings={**FEW, "plans": 5}) for each in range(12)]
    shown += [send(session, name, person=person, settings={"features": held, **FEW}) for name in ("plans", "why")]
    shown += [send(session, "people", filter="without", group=group)]
    shown += [send(session, "export", what="letter", person=person, settings=FEW)]
    for message in (
        {"ask": "edit", "values": {at(X, "loan_amount"): 1.5}},
        {"ask": "edit", "values": {at(X, "defaulted_last_year"): 1}},
        {"ask": "plans", "settings": {"features": {at(X, "years_employed"): {"low": 9, "high": 1}}}},
        {"ask": "plans", "settings": {"features": {at(X, "housing"): {"low": 0}}}},
        {"ask": "people", "group": {"feature": at(X, "loan_amount"), "level": 0}},
    ):
        shown.append(session.answer({**message, "person": person}))
        assert "error" in shown[-1]
    words = {text for each in shown for text in texts_in(each)}
    assert [text for text in words if re.search(rf"(?<!\w)(?:{ELSEWHERE})(?!\w)", text)] == []
    assert [text for text in words if re.search(INTERNAL, text)] == []
    assert "rents a flat" in words
    assert any("money put aside" in text for text in words)
    assert any(text.startswith("no limit on ") for text in words)


@pytest.mark.slow
def test_model_error_is_reported_and_session_continues(table, refused):
    model, few = Moody(), table[["age", "sex", "salary", "savings", "loan_amount"]]
    session = ExplorerSession(explainer(model, few), few)
    assert send(session, "plans", person=refused, settings=FEW)["plans"]
    model.raises = True
    for message in ({"ask": "edit", "values": {}}, {"ask": "plans", "settings": {"floor": 0.1, **FEW}}):
        error = session.answer({**message, "person": refused})["error"]
        assert "the scoring service is down" in error
        assert "Traceback" not in error
    model.raises = False
    assert send(session, "plans", person=refused, settings={"floor": 0.1, **FEW})["plans"]


def test_warnings_are_shown_as_notes(fitted, table, refused):
    far = table.iloc[[refused]].assign(savings=[10**9])
    notes = ExplorerSession(fitted, far).answer({"ask": "edit", "person": 0, "values": {}})
    assert "error" not in notes
    assert "far outside the training data" in " ".join(
        ExplorerSession(fitted, far).answer({"ask": "plans", "person": 0, "settings": FEW})["notes"]
    )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (None, 'the key "ask"; got None'),
        ({"ask": ["plans"]}, "no message"),
        ({"ask": "plan"}, "did you mean 'plans'"),
        ({"ask": "person", "person": 300}, "not a position from 0 to 299"),
        ({"ask": "person", "person": True}, "not a position"),
        ({"ask": "people", "filter": "refusd"}, "did you mean 'refused'"),
        ({"ask": "people", "search": 3}, "must be a text"),
        ({"ask": "people", "page": -1}, "at least 0"),
        ({"ask": "people", "group": {"feature": 0, "level": 0}}, "holds numbers"),
        ({"ask": "plans", "person": 0, "settings": {"flor": 1}}, "did you mean 'floor'"),
        ({"ask": "plans", "person": 0, "settings": {"floor": 1.5}}, "from 0 to below 1"),
        ({"ask": "plans", "person": 0, "settings": {"plans": 1000}}, "at most 10"),
        ({"ask": "plans", "person": 0, "settings": {"diverse": 1}}, "true or false"),
        ({"ask": "plans", "person": 0, "settings": {"draws": 10**9}}, "at most 20000"),
        ({"ask": "plans", "person": 0, "settings": {"features": {"0": {"may": False}}}}, "'age' is fixed"),
        ({"ask": "plans", "person": 0, "settings": {"features": {"99": {}}}}, "not a position"),
        ({"ask": "plans", "person": 0, "settings": {"features": {"3": {"levels": [9]}}}}, "not a position from 0 to 4"),
        ({"ask": "plans", "person": 0, "settings": {"features": {"5": {"low": 9, "high": 1}}}}, "swap them"),
        ({"ask": "edit", "person": 0, "values": {"0": 99}}, "'age' is fixed"),
        ({"ask": "edit", "person": 0, "values": {"5": 1.5}}, "cannot hold exactly"),
        ({"ask": "edit", "person": 0, "values": {"5": "many"}}, "not a number"),
        ({"ask": "edit", "person": 0, "values": {"8": "someday"}}, "cannot be read as a date"),
        ({"ask": "edit", "person": 0, "values": [1]}, "must be an object"),
        ({"ask": "export", "person": 0, "what": "pdf"}, "no export"),
        ({"ask": "export", "person": 0, "what": "python", "values": {}}, "exported as a row"),
        ({"ask": "export", "person": 0, "what": []}, "no export []; known: 'letter', 'page', 'row', 'python', 'r'"),
        ({"ask": "export", "person": 0, "what": "row", "values": [1]}, "must be an object"),
        ({"ask": "whole", "settings": 3}, "settings is 3; it must be a JSON object"),
    ],
)
def test_invalid_messages_raise(session, message, words):
    assert words in session.answer(message)["error"]


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


ODD = [None, True, -1, 3, 1.5, 1e308, 10**400, float("nan"), "", "x", "0", "-1", "\u00b2", "9" * 5000, "now", "\ud800"]
ODD += [[], [[]], ["0"], [None], {}, {"0": 1}, {"x": {}}, {"0": {}}, nested(5000)]


def malformed(table):
    """Return messages with one invalid value, for every position of a value in every kind of message."""
    person = {"person": 0, "settings": FEW}
    given = {
        "people": {"search": "", "filter": "all", "page": 0, "settings": {}, "group": {}},
        "person": {"person": 0},
        "plans": person,
        "edit": {**person, "values": {}},
        "why": person,
        "export": {**person, "what": "row", "rank": 1, "values": {}},
    }
    yield from ODD
    for odd in ODD:
        yield {"ask": odd}
        yield from ({"ask": name, "settings": odd} for name in ("whole", "by") if odd)
        yield {"ask": "by", "feature": {"odd": odd}}
        yield from ({"ask": name, **parts, part: odd} for name, parts in given.items() for part in parts)
        yield from ({"ask": "people", "group": {"feature": 1, "level": 0, part: odd}} for part in ("feature", "level"))
        yield from ({"ask": "export", **person, "what": what, "rank": odd} for what in ("row", "python", "r"))
        for part in ("features", "floor", "plans", "diverse", "draws", "x"):
            yield {"ask": "plans", "person": 0, "settings": {**FEW, part: odd}}
        for j in range(len(table.columns)):
            yield {"ask": "edit", "person": 0, "values": {str(j): odd}}
            for part in ("may", "low", "high", "levels", "direction", "hard"):
                yield {"ask": "plans", "person": 0, "settings": {**FEW, "features": {str(j): {part: odd}}}}


@pytest.mark.nightly
def test_messages_raise_only_package_errors(fitted, table):
    session = ExplorerSession(fitted, table.head(40))
    for message in malformed(table):
        reply = session.answer(message)
        json.dumps(reply, ensure_ascii=False, allow_nan=False).encode()
        assert re.match(r"\w*(Error|Exception)\b", reply.get("error", "")) is None, reply


def test_invalid_factuals_raise(fitted, table):
    with pytest.raises(mcce.InputError, match="no rows"):
        ExplorerSession(fitted, table.head(0))
    with pytest.raises(mcce.InputError, match="lacks the column"):
        ExplorerSession(fitted, table.drop(columns="salary"))


def test_row_with_an_unknown_level_is_reported_beside_the_list(fitted, table):
    column = table.select_dtypes("category").columns[0]
    some = table.head(5).astype({column: object})
    some.loc[some.index[1], column] = "never seen"
    with pytest.warns(mcce.MCCEWarning, match="level that is not known"):
        session = ExplorerSession(fitted, some)
    assert len(session) == 4
    reply = session.answer({"ask": "people"})
    assert reply["total"] == 4
    assert f"{some.index[1]!r} (column {column!r} holds 'never seen')" in reply["notes"][0]


def test_explore_requires_a_fit(table):
    with pytest.raises(mcce.NotFittedError, match="call fit"):
        mcce.MCCE(risk, decision=GRANTED).explore(table)


@pytest.mark.slow
def test_derived_columns_are_computed_and_not_shown():
    X = people().assign(ratio=lambda rows: (100 * rows["loan_amount"] / rows["salary"]).round(1))
    fixed = ["age", "sex"]
    made = mcce.MCCE(
        risk, decision=GRANTED, fixed=fixed, random_state=1, derived={"ratio": "100 * loan_amount / salary"}
    )
    session = ExplorerSession(made.fit(X), X)
    ratio, amount = at(X, "ratio"), at(X, "loan_amount")
    features = send(session, "start")["features"]
    assert [each["computed"] for each in features] == [name == "ratio" for name in X]
    person = int(np.flatnonzero(risk(X) >= 0.3)[0])
    plans = send(session, "plans", person=person, settings=FEW)["plans"]
    assert plans
    for plan in plans:
        cells = [each["value"] for each in plan["cells"]]
        salary = cells[int(at(X, "salary"))]
        assert cells[int(ratio)] == pytest.approx(round(100 * cells[int(amount)] / salary, 1))
        assert int(ratio) not in [change["feature"] for change in plan["changes"]]
    edited = send(session, "edit", person=person, values={amount: 1000})
    cells = [each["value"] for each in edited["cells"]]
    assert cells[int(ratio)] == pytest.approx(round(100_000 / X["salary"].iloc[person], 1))
    assert [change["feature"] for change in edited["changes"]] == [int(amount)]
    for message in (
        {"ask": "edit", "values": {ratio: 1}},
        {"ask": "plans", "settings": {"features": {ratio: {"high": 1}}}},
    ):
        assert "computed from other" in session.answer({"person": person, **message})["error"]


# ---- actions and consequences


@pytest.fixture(scope="module")
def causal():
    """An explainer with a graph, its rows, and the position of a rejected one."""
    X = people(250)[["age", "education", "salary", "savings", "loan_amount"]]
    graph = "age -> education; age, education -> salary; age, salary -> savings"
    made = mcce.MCCE(risk, decision=GRANTED, fixed=["age"], graph=graph, sampler="parametric", random_state=1).fit(X)
    return made, X, int((risk(X) > 0.4).to_numpy().argmax())


@pytest.mark.slow
def test_plans_match_recourse(causal):
    made, X, person = causal
    session = ExplorerSession(made, X)
    assert send(session, "start")["has_graph"]
    savings = {at(X, "savings"): {"may": False}, at(X, "salary"): {"may": False}}
    settings = {"draws": 200, "plans": 1, "recourse": True, "features": savings}
    options = {"person": person, "settings": settings}
    (plan,) = send(session, "plans", **options)["plans"]
    found = made.recourse(X.iloc[[person]], ["education"], n_samples=200, n_counterfactuals=1)
    changes = found.changes()
    roles = {X.columns[each["feature"]]: each["role"] for each in plan["changes"]}
    assert roles == dict(zip(changes["feature"], changes["role"]))
    assert roles["education"] == "action"
    assert roles["salary"] == "consequence"  # not an action but a consequence
    usual = {X.columns[each["feature"]]: each["usual"] for each in plan["changes"]}
    consequence = found.consequences.set_index("feature").loc["salary"]
    assert usual["salary"] == f"{consequence['low']:,} to {consequence['high']:,}"
    assert usual["education"] == ""
    assert plan["cases"] == min(int(100 * found.measures["p_valid"].iloc[0] + 1e-9), 99)
    space = {"explainer": made, "people": X}
    exec(send(session, "export", what="python", rank=1, **options)["text"], space)
    assert space["row"].equals(found.frame.xs(1, level="rank"))
    assert "found <- recourse(\n  explainer, people[" in send(session, "export", what="r", rank=1, **options)["text"]
    letter = " ".join(send(session, "export", what="letter", **options)["text"].split())
    assert "What usually follows: salary" in letter


@pytest.mark.slow
def test_row_without_recourse_states_the_reason(causal):
    made, X, person = causal
    held = {at(X, name): {"may": False} for name in ("savings", "salary")}
    settings = {"draws": 20, "recourse": True, "features": {**held, at(X, "education"): {"levels": [0]}}}
    answer = send(ExplorerSession(made, X), "plans", person=person, settings=settings)
    assert answer["plans"] == []
    assert answer["reason"]


def test_recourse_requires_a_graph_and_no_weights(session, table, refused):
    assert not send(session, "start")["has_graph"]
    message = {"ask": "plans", "person": refused, "settings": {"recourse": True}}
    assert session.answer(message)["error"].startswith("recourse() needs a causal graph")
    message["settings"]["features"] = {at(table, "salary"): {"hard": 2}}
    assert "hard of 'salary' does not go with actions and consequences" in session.answer(message)["error"]
