"""Letters to one recipient: the changes in sentences, with the disclaimers."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError
from mcce.report.languages import read_texts, text_of
from mcce.report.letter_layout import Letter, _reasons_and_rights, letter_name
from mcce.report.principal import Reasons
from tests.plain_words import assert_plain

JARGON = ("factual", "gower", "l0", "mcce", "sample", "draw", "candidate", "plausib", "feature", "prediction", "row")


def utility(rows):
    return (rows["salary"] / 2 + rows["savings"]).to_numpy() / 100_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 400
    return pd.DataFrame(
        {
            "age": rng.choice([30, 40, 50], n),
            "salary": rng.integers(20, 120, n) * 500,
            "savings": rng.integers(0, 100, n) * 500,
            "defaulted_last_year": rng.random(n) < 0.2,
            "home": pd.Categorical(rng.choice(["own", "rent <b>", "with parents"], n)),
        }
    )


@pytest.fixture(scope="module")
def explainer(table):
    granted = mcce.Interval(0.5, np.inf, label="the loan is granted")
    named = {"labels": {"salary": "yearly salary"}, "units": {"salary": "EUR", "savings": "EUR"}}
    return mcce.MCCE(utility, decision=granted, fixed=["age"], random_state=1, names=named).fit(table)


def poor(table):
    return table[utility(table) < 0.4]


def words_of(text):
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def without_jargon(text):
    return [word for word in JARGON if any(found.startswith(word) for found in words_of(text))]


@pytest.mark.slow
def test_one_example(explainer, table):
    found = explainer.explain(poor(table).head(3), sparse=True)
    id = found.frame.index[0][0]
    letter = mcce.report.letter(found, id)
    assert without_jargon(letter) == []
    assert "The loan was not granted." in letter
    assert f"Case: {id}" in letter
    change = found.changes(words=True).iloc[0]
    assert f"With {change['feature']} {change['to']} instead of {change['from']}" in " ".join(letter.split())
    assert "an example, not a promise" in letter
    assert "Age was not changed." in letter
    assert "nor any fact other than age, yearly salary, savings, defaulted last year and home." in " ".join(
        letter.split()
    )
    assert max(map(len, letter.splitlines())) <= 76
    assert str(found.measures["prediction"].iloc[0])[:5] not in letter  # scores are stated only under a name


def test_unchanged_values_are_not_stated(explainer, table):
    person = poor(table).iloc[[0]]
    found = explainer.explain(person, sparse=True)
    letter = mcce.report.letter(found, person.index[0])
    for name in set(table.columns) - set(found.changes()["feature"]):
        value = person[name].iloc[0]
        if isinstance(value, str):
            assert value not in letter


@pytest.mark.slow
def test_several_examples_are_joined_by_or_without_repeated_changes(explainer, table):
    found = explainer.explain(poor(table).iloc[[0]], n_samples=300, n_counterfactuals=150)
    text = " ".join(mcce.report.letter(found, found.factuals.index[0]).split())
    sets = found.changes().groupby("rank")["feature"].agg(frozenset)
    n_sets = len(set(sets))
    assert 1 < n_sets < 150
    assert text.count("- Or: with ") == min(n_sets, 5) - 1
    if n_sets > 5:
        assert f"{n_sets - 5} more examples were found." in text
    first = found.changes(words=True)
    for cell in first.loc[first["rank"] == 1].itertuples():
        label = cell.feature.replace("_", " ")
        assert label in text


def test_prediction_is_stated_under_its_own_name(explainer, table):
    found = explainer.explain(poor(table).iloc[[0]], sparse=True)
    names = replace(found.names, labels={**found.names.labels, "prediction": "points"})
    id = found.factuals.index[0]
    old, new = names.pair("prediction", found.factual_predictions.iloc[0], found.measures["prediction"].iloc[0], 3)
    letter = " ".join(mcce.report.letter(replace(found, names=names), id).split())
    assert f"In this case: points {old}." in letter
    assert f"(points {new} instead of {old})" in letter


@pytest.mark.slow
def test_boolean_and_missing_values_have_words(table):
    def careful(rows):
        return np.where(rows["defaulted_last_year"] | rows["savings"].isna(), 0.0, 1.0)

    X = table.assign(savings=table["savings"].astype("Float64").mask(table.index % 5 == 0))
    found = mcce.MCCE(careful, random_state=1).fit(X).explain(X[careful(X) == 0].head(20), sparse=True)
    letters = " ".join(
        " ".join(mcce.report.letter(found, id).split()) for id in found.frame.index.get_level_values("id")
    )
    assert "defaulted last year no instead of yes" in letters
    assert "instead of not known" in letters
    assert "Nothing." in letters  # was kept unchanged


def test_accepted_factual_and_factual_without_example(explainer, table):
    rich = table[utility(table) >= 0.5].head(1)
    far = poor(table).sort_values("salary").head(1)
    rules = [mcce.allow("salary", direction="none"), mcce.rule("savings <= was(savings)", name="savings do not grow")]
    found = explainer.explain(pd.concat([rich, far]), n_samples=50, constraints=rules)
    already = mcce.report.letter(found, rich.index[0])
    assert "The decision is already the one requested: the loan is granted." in already
    assert "promise" not in already
    none = " ".join(mcce.report.letter(found, far.index[0]).split())
    assert without_jargon(none) == []
    assert "No example was found" in none
    assert "we found none" in none
    assert "50 possible cases with the same age were tried; none led to another decision within the rules" in none
    assert "This does not mean that there is no way." in none
    assert "- yearly salary: stays as it is - savings do not grow" in none


def test_contradicting_rules_and_unknown_fixed_values(explainer, table):
    person = poor(table).head(1)
    rules = [mcce.allow("salary", low=59_000), mcce.allow("salary", direction="none")]
    other = table[table["salary"] >= 59_000].head(1).assign(savings=0)  # factuals with feasible rows
    found = explainer.explain(pd.concat([person, other]), constraints=rules)
    assert "leave no room for one" in mcce.report.letter(found, person.index[0])
    stranger = person.assign(age=44)
    alone = mcce.MCCE(lambda rows: np.zeros(len(rows)), decision=(0.5, 1), fixed=["age"], condition_on_decision=False)
    letter = " ".join(mcce.report.letter(alone.fit(table).explain(stranger), person.index[0]).split())
    assert "1000 possible cases with the same age were tried" in letter


def test_rules_of_other_factuals_are_not_stated(explainer, table):
    people = poor(table).head(2)
    one, other = people.index
    found = explainer.explain(people, constraints=[mcce.only({one: ["savings"], other: ["savings", "salary"]})])
    assert "only savings may change" in mcce.report.letter(found, one)
    assert "yearly salary may change" not in mcce.report.letter(found, one)
    assert "only savings and yearly salary may change" in mcce.report.letter(found, other)


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_page_has_the_same_text_and_is_escaped(explainer, table):
    found = explainer.explain(poor(table).iloc[[0]], n_samples=200, n_counterfactuals=5)
    id = found.factuals.index[0]
    page = mcce.report.letter(found, id, html=True, intro="Dear <Ann>,", closing=["Yours,", "the bank"])
    read = Tags(page)
    said = "".join(read.text.split())
    text = mcce.report.letter(found, id, intro="Dear <Ann>,", closing=["Yours,", "the bank"])
    for line in text.splitlines():
        if line and not set(line) <= {"=", "-"}:
            assert "".join(line.removeprefix("- ").split()) in said
    assert "b" not in read.tags
    assert "script" not in read.tags
    assert "<h1>Your application</h1>" in mcce.report.letter(found, id, html=True, title="Your application")


def test_letter_for_an_unknown_id_raises(explainer, table):
    found = explainer.explain(poor(table).head(2), sparse=True)
    with pytest.raises(InputError, match="no factual has the id 'nobody'"):
        mcce.report.letter(found, "nobody")


@pytest.mark.parametrize(
    ("language", "headings"),
    [
        ("en", ("The main reason", "Your rights")),
        ("de", ("Der wichtigste Grund", "Ihre Rechte")),
        ("fr", ("La raison principale", "Vos droits")),
        ("nb", ("Den viktigste grunnen", "Dine rettigheter")),
    ],
)
def test_reasons_come_with_the_right_to_comment_and_to_a_review(table, language, headings):
    named = {"reasons": {"salary": {"code": "R1", "text": "Income is too low"}}}
    small = table[["age", "salary"]]
    model = mcce.MCCE(lambda rows: rows["salary"] / 60_000, fixed=["age"], random_state=1, names=named).fit(small)
    found = model.explain(small[small["salary"] < 20_000].head(1), n_samples=100)
    id = found.factuals.index[0]
    letter = mcce.report.letter(found, id, reasons=True, language=language)
    assert all(f"\n{heading}\n" in letter for heading in headings)
    assert re.search(r"^- Income is too low \([Cck]ode R1\)$", letter, re.MULTILINE)
    without = mcce.report.letter(found, id, language=language)
    assert not any(heading in without for heading in headings)
    assert "Income is too low" not in without
    if language == "en":
        assert without_jargon(letter) == []
        page = mcce.report.letters(found, reasons=True, html=True)[id]
        assert "<li>Income is too low (code R1)</li>" in page
        assert "ask for a review of this decision by a person" in page


def test_letter_without_repairable_reasons_states_so():
    reasons = Reasons((), ("savings", "home"))
    text = " ".join(Letter("t", "a", (), _reasons_and_rights(reasons, read_texts())[0], ()).as_text().split())
    assert "none was found whose change" in text
    assert "Savings and home counted against it too, but no realistic change to them was found" in text


@pytest.mark.parametrize("language", ["de", "en", "fr", "nb"])
def test_no_text_of_a_language_has_an_internal_word(language):
    assert_plain(text_of(language))


def test_file_names_of_long_ids_are_short_and_differ():
    """Norwegian letters have two bytes, Chinese ones three; file names are limited to 255 bytes."""
    ids = ["æ" * 300, "æ" * 299 + "ø", "漢" * 200, "a" * 101, "a" * 102, "a" * 101 + "\ud800"]
    names = [letter_name(id) for id in ids]
    assert len(set(names)) == len(ids)
    assert max(len(f"{name}.1000000.html".encode()) for name in names) <= 255
    assert letter_name("a" * 100) == "a" * 100
    assert letter_name("Kari Nordmann/3") == "Kari_Nordmann_3"
