"""The text search compared with a loop over the table, with its work counted, and concurrent requests."""

import sys
from threading import Event, Thread

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.explore import ExplorerSession
from tests.explore.bank import send

WORDS = {"rent": "rents a flat", "own": "owns a house", "with parents": "lives with parents"}


@pytest.fixture(scope="module")
def fitted():
    X = mcce.datasets.load_loans(300).X[["age", "salary", "housing", "defaulted_last_year"]]
    X["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(300) * 37 % 1500, unit="D")
    X.loc[X.index[::7], "housing"] = None
    X.loc[X.index[::11], "salary"] = np.nan
    names = {"formats": {"housing": WORDS, "since": "%d.%m.%Y"}, "units": {"salary": "$"}}
    explainer = mcce.MCCE(
        lambda rows: rows["age"] > 40, decision=True, fixed=["defaulted_last_year"], names=names, random_state=1
    )
    return explainer.fit(X), X


def brute_force(table, words):
    """Return the positions of rows in which every word is part of a text."""

    def texts(id, row):
        housing = "not known" if pd.isna(row["housing"]) else WORDS[row["housing"]]
        defaulted = "yes" if row["defaulted_last_year"] else "no"
        salary = "not known" if pd.isna(row["salary"]) else str(row["salary"])
        return [f"case {id}", str(row["age"]), salary, housing, defaulted, str(row["since"].date())]

    return [
        place
        for place, (id, row) in enumerate(table.iterrows())
        if all(any(word.lower() in text for text in texts(id, row)) for word in words)
    ]


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("RENTS", ["rents"]),
        ("parents  yes", ["parents", "yes"]),
        ("known", ["known"]),
        ("2020-05 no", ["2020-05", "no"]),
        ("1000", ["1000"]),
        ("case", ["case"]),
        ("nobody-is-called-so 1", ["nobody-is-called-so"]),
        ("", []),
    ],
)
def test_search_matches_a_loop(fitted, search, words):
    explainer, X = fitted
    table = X.rename(index=lambda i: i + 999_900)
    session = ExplorerSession(explainer, table)
    pages = [send(session, "people", search=search, page=page) for page in range(6)]
    found = [one["person"] for page in pages for one in page["people"]]
    assert sorted(found) == brute_force(table, words)
    assert pages[0]["total"] == len(found)


def test_number_is_found_in_its_displayed_format(fitted):
    explainer, X = fitted
    session = ExplorerSession(explainer, X)
    place = int(X["salary"].gt(10_000).to_numpy().argmax())
    shown = send(session, "person", person=place)["cells"][1]["text"]
    assert shown == f"${X['salary'].iloc[place]:,.0f}"
    assert place in [one["person"] for one in send(session, "people", search=shown)["people"]]


def test_work_per_row_is_small(fitted):
    explainer, X = fitted

    def calls(n):
        session = ExplorerSession(explainer, X.dropna().sample(n, replace=True, random_state=1, ignore_index=True))
        made = 0

        def count(frame, event, argument):
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            assert session.answer({"ask": "people", "search": "case 1"})["total"] > 0
        finally:
            sys.setprofile(None)
        return made

    assert calls(6000) - calls(3000) < 3000 * 10  # number of function calls; 196 with one per table row


class Name:
    """A name that counts its conversions to text, and waits before each."""

    def __init__(self) -> None:
        self.written, self.begun, self.free = 0, Event(), Event()
        self.free.set()

    def __str__(self) -> str:
        self.written += 1
        self.begun.set()
        assert self.free.wait(120)
        return "Ada"


def test_texts_are_built_once_without_blocking_other_requests(fitted):
    explainer, X = fitted
    name = Name()
    session = ExplorerSession(explainer, X.dropna().head(3).set_axis(["a", "b", name], axis=0))
    name.written = 0
    name.begun.clear()
    name.free.clear()
    found = []
    searching = Thread(target=lambda: found.append(session.answer({"ask": "people", "search": "b"})["total"]))
    searching.start()
    assert name.begun.wait(120)
    answered = []
    thread = Thread(target=lambda: answered.append(session.answer({"ask": "person", "person": 0})["name"]), daemon=True)
    thread.start()
    thread.join(20)
    waited = not answered
    name.free.set()
    searching.join()
    thread.join()
    assert not waited
    assert found == [1]
    for _ in range(3):
        assert send(session, "people", search="b")["total"] == 1
    assert name.written == 1
