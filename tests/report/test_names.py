"""Labels, units and formats: invalid ones, the written texts, and where they are used."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError
from mcce.report.names import Names
from mcce.storage.state import from_state, to_state

COLUMNS = ["salary", "loan_amount", "rate", "home", "since", "year"]


def names(labels=None, units=None, formats=None, reasons=None) -> Names:
    return Names.read(Names(labels, units, formats, reasons=reasons), COLUMNS)


def test_values_are_unchanged_without_settings():
    plain = names()
    assert plain.label("loan_amount") == "loan_amount"
    assert plain.text("salary", 72_000) == "72,000"
    assert plain.text("year", 1990) == "1990"
    assert plain.pair("year", 1990, 2001) == ("1990", "2001")
    assert plain.pair("salary", 5000, 10_000) == ("5,000", "10,000")  # beside ten thousand it is not a year
    assert plain.text("home", None) == "missing"
    assert plain.pair("rate", 0.123456, 0.123457) == ("0.123456", "0.123457")


def test_units_and_formats():
    said = names(
        units={"salary": "EUR", "loan_amount": "$"},
        formats={"rate": "0 %", "since": "%d.%m.%Y", "home": {"own": "owned", np.nan: "not told"}},
    )
    assert said.text("salary", 3700) == "3,700 EUR"  # a number with a unit is not a year
    assert said.text("salary", 3700, unit=False) == "3,700"
    assert said.text("loan_amount", -20) == "-$20"
    assert said.text("salary", np.nan) == "missing"
    assert said.text("since", pd.Timestamp("2024-05-01")) == "01.05.2024"
    assert said.text("since", pd.NaT) == "missing"
    assert [said.text("home", value) for value in ("own", "rent", None)] == ["owned", "rent", "not told"]
    assert said.step("rate", 0.0004) == "+0.04 %"
    assert said.step("salary", -500.0) == "-500 EUR"


def test_change_is_visible_in_any_format():
    said = names(formats={"rate": "0 %", "salary": "0,000", "since": "%Y"})
    assert said.pair("rate", 0.101, 0.104) == ("10.1 %", "10.4 %")
    assert said.pair("rate", 0.101, 0.2) == ("10 %", "20 %")
    assert said.pair("salary", 1000.25, 1000.5) == ("1,000.2", "1,000.5")
    assert said.pair("since", pd.Timestamp("2024-05-01"), pd.Timestamp("2024-06-01")) == ("2024-05-01", "2024-06-01")
    assert said.pair("rate", np.nan, 0.1) == ("missing", "10 %")


def test_prediction_is_not_rounded_to_the_bound_it_exceeds():
    for said, texts in (
        (names(), ("0.09996", "0.121")),
        (names(formats={"prediction": "0 %"}), ("9.996 %", "12 %")),
    ):
        named = replace(said, ends=(0.0, 0.1))
        assert named.pair("prediction", 0.09996, 0.12123, 3) == texts
        assert named.text("prediction", 0.09996, 3) == texts[0]
    assert replace(names(), ends=(0.1,)).text("prediction", 0.1) == "0.1"  # the bound


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"labels": {"salery": "pay"}}, "labels names 'salery', which is not a column of X; did you mean 'salary'"),
        ({"units": {"predicton": "EUR"}}, "did you mean 'prediction'"),
        ({"formats": {"Rate": "0 %"}}, "formats names 'Rate'"),
        ({"labels": ["salary"]}, "labels is a list; give values by feature, as in labels={'salary': "),
        ({"labels": {"salary": 3}}, r"labels\['salary'\] is 3; give a text"),
        ({"units": {"salary": " "}}, r"units\['salary'\] is ' '"),
        (
            {"reasons": {"salery": "too low"}},
            "reasons names 'salery', which is not a column of X; did you mean 'salary'",
        ),
        ({"reasons": {"salary": {"code": "1"}}}, r"reasons\['salary'\] is .*; give a text, or \{\"code\""),
        ({"reasons": {"salary": {"text": "low", "kode": "1"}}}, r"has 'kode'; did you mean 'code'"),
        ({"reasons": {"salary": {"text": "low", "code": 1}}}, "has the code 1; give a text"),
        ({"labels": {"salary": "loan_amount"}}, "which is the label of another feature"),
        ({"labels": {"salary": "sum", "loan_amount": "sum"}}, "which is the label of another feature"),
    ],
)
def test_invalid_settings_raise(said, message):
    with pytest.raises(InputError, match=message):
        names(**said)


def test_names_are_read_from_an_object_a_dict_or_none():
    parts = {"labels": {"salary": "pay"}, "units": {"salary": "EUR"}, "formats": {"rate": "0 %"}}
    made = mcce.Names(**parts)
    assert Names.read(made, COLUMNS) is made
    assert Names.read(parts, COLUMNS) == made
    assert Names.read(None, COLUMNS) == Names()
    assert (made.label("salary"), made.text("salary", 9), made.text("rate", 0.5)) == ("pay", "9 EUR", "50 %")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.labels = {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["salary"], r"names is a list; give mcce.Names\(labels="),
        ({"label": {}}, "names has the entry 'label'; .*; did you mean 'labels'"),
        ({"salary": "pay"}, r"features are named inside its entries, as in names=\{'labels'.*; known: "),
        ({"units": {"salery": "EUR"}}, "units names 'salery', which is not a column of X; did you mean 'salary'"),
    ],
)
def test_unreadable_names_raise(given, message):
    with pytest.raises(InputError, match=message):
        Names.read(given, COLUMNS)


def test_reasons_have_a_text_and_an_optional_code():
    made = names(reasons={"salary": {"code": "R1", "text": "Income is too low"}, "rate": "The rate is too high"})
    assert made.reason("salary") == ("R1", "Income is too low")
    assert made.reason("rate") == ("", "The rate is too high")
    assert made.reason("loan_amount") == ("", "")
    other = made.replaced_by(Names(reasons={"rate": "Rate"}))
    assert (other.reason("salary")[0], other.reason("rate")[1]) == ("R1", "Rate")
    assert from_state(to_state(other)) == other


def test_feature_may_be_called_prediction():
    named = Names.read(Names({"prediction": "forecast"}), ["prediction", "x"])
    assert named.label("prediction") == "forecast"


X = pd.DataFrame(
    {
        "salary": [500, 700, 300, 900] * 20,
        "home": pd.Categorical(["own", "rent", "own", "rent"] * 20),
        "since": pd.to_datetime(["2020-01-01"] * 40 + ["2021-01-01"] * 40),
    }
)


def rich(rows):
    return rows["salary"].to_numpy() / 1000


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"units": {"home": "EUR"}}, "units names 'home', which holds levels; units go with numbers"),
        ({"units": {"since": "days"}}, "which holds dates"),
        ({"formats": {"home": "0 %"}}, "is of numbers, but the column holds levels"),
        ({"formats": {"salary": "%Y"}}, "is of dates, but the column holds numbers"),
        ({"formats": {"home": {"won": "owned"}}}, r"has words for 'won'; did you mean 'own'"),
        ({"formats": {"home": {"own": "rent"}}}, "has the word 'rent' for 'own', which is another level"),
        ({"labels": {"hom": "home"}}, "did you mean 'home'"),
    ],
)
def test_fit_rejects_names_inconsistent_with_the_columns(said, message):
    with pytest.raises(InputError, match=message):
        mcce.MCCE(rich, decision=(0.8, 1), random_state=1, names=said).fit(X)


@pytest.fixture(scope="module")
def found():
    said = mcce.MCCE(
        rich,
        decision=mcce.Interval(0.8, 1, label="rich enough"),
        fixed=["since"],
        random_state=1,
        names=mcce.Names(
            labels={"salary": "pay", "since": "customer since", "prediction": "wealth"},
            units={"salary": "EUR"},
            formats={"salary": "0.0", "home": {"own": "owned", "rent": "rented"}, "since": "%Y", "prediction": "0 %"},
        ),
    )
    return said.fit(X).explain(X.iloc[[0, 1]])


@pytest.mark.usefixtures("no_pictures")
def test_labels_are_used_everywhere_and_tables_keep_raw_values(found):
    sentence = found.sentence(0)
    assert "pay 900.0 EUR instead of 500.0 EUR" in sentence
    assert sentence.endswith("the result would have been as wanted: rich enough (90 % instead of 50 %).")
    assert "pay: 500.0 EUR -> 900.0 EUR" in repr(found)
    page = str(found.to_html())
    for text in ("pay", "customer since", "wealth", "rich enough", "<small>EUR</small>", "900.0", "rented", "90 %"):
        assert text in page, text
    assert "salary" not in page
    axes = found.plot(0)
    assert axes.get_yticklabels()[0].get_text() == "pay"
    assert "500.0 EUR" in {text.get_text() for text in axes.texts}
    assert "customer\u00a0since" in axes.get_xlabel()
    overall = mcce.plots.changes_plot(found)
    assert "pay" in {text.get_text() for text in overall.get_yticklabels()}
    plt.close(axes.figure)
    plt.close(overall.figure)
    assert set(found.changes()["feature"]) == {"salary", "home"}
    assert found.changes()["to"].tolist()[0] == 900
    changes = found.changes(words=True)
    assert changes[["feature", "from", "to"]].iloc[0].tolist() == ["pay", "500.0 EUR", "900.0 EUR"]
    assert found.contributions(0).index[0] == "salary"
    reasons = found.contributions(0, words=True)
    assert reasons.loc["pay", ["from", "to", "alone"]].tolist() == ["500.0 EUR", "900.0 EUR", "90 %"]
    assert found.changed_features().loc["salary", "note"] == "median +300.0 EUR"


@pytest.mark.slow
def test_groups_use_labels_in_texts_and_raw_values_in_tables(found):
    by = found.by("home")
    assert by.table.index.get_level_values("group").unique().tolist() == ["own", "rent"]
    assert "owned" in repr(by)
    in_bins = found.by("salary", bins=2)
    assert "Recourse by pay" in repr(in_bins)
    assert "700.0 EUR" in repr(in_bins)
    other = pd.Series(["own", "rent"], index=found.factuals.index, name="home")  # not the feature
    assert "owned" not in repr(found.by(other))


def test_select_uses_names(found):
    explainer = mcce.MCCE(rich, decision=(0.8, 1), random_state=1, names={"labels": {"salary": "pay"}}).fit(X)
    chosen = explainer.select(explainer.generate(X.iloc[[0]], n_samples=50), X.iloc[[0]])
    assert "pay 900 instead of 500" in chosen.sentence(0)


@pytest.mark.slow
@pytest.mark.usefixtures("few_trees")
def test_diagnostics_use_names():
    said = mcce.MCCE(
        rich,
        decision=(0.8, 1),
        random_state=1,
        names=mcce.Names({"salary": "pay"}, {"salary": "EUR"}, {"home": {"own": "owned"}}),
    )
    d = said.fit(X).diagnose(X.iloc[::2], n_samples=20)
    assert set(d.marginals.index) == {"salary", "home", "since"}
    drawn = d.plot("marginals")
    titles = " ".join(ax.get_title(loc="left") + ax.get_title() for ax in drawn)
    assert "pay (EUR)" in titles
    assert "salary" not in titles
    levels = [text.get_text() for ax in drawn for text in ax.get_yticklabels()]
    assert "owned" in levels
    bars, matrix = d.plot()[0], d.plot("correlations")
    for labels in (bars.get_yticklabels(), matrix.get_yticklabels()):
        assert "pay" in {text.get_text() for text in labels}
    assert "salary" not in repr(d)
    plt.close("all")
