"""Letters in every language through all branches; custom texts; rules in words."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.report.languages import available_languages, read_texts, text_of
from mcce.report.letter_layout import Case, write_letter
from mcce.report.names import Names
from mcce.report.principal import Reasons
from mcce.report.reasons import ALREADY, NO_ROOM, NONE_ALIKE, NONE_ALIKE_WANTED
from mcce.report.rules import rules_in_words
from mcce.report.words import Change, consequences_in_words, follow_sentence

try:
    import tomllib
except ImportError:
    import tomli as tomllib

pytest.importorskip("babel", reason="needs pip install 'mcce[languages]'")

NAMES = Names(
    labels={"savings": "savings", "months": "months employed", "job": "job", "prediction": "risk"},
    units={"savings": "€"},
    formats={"prediction": "0.0%"},
)
COLUMNS = ("savings", "months", "job")
LABELS = {"en": "the loan is granted", "de": "der Kredit wird bewilligt", "nb": "lånet innvilges"}
LABELS["fr"] = "le prêt est accordé"
RULES = (
    "months >= was(months) + 1",
    "savings: at least 0, in steps of 500, may only rise",
    "savings: from 1000 to 20,000",
    "savings: at most 9.5, changes by at most 5000",
    "savings: changes by at most 12.5% of its range, may become missing",
    "savings: may only fall, may not become missing",
    "job: only 'nurse'",
    "job: one of 'nurse', 'clerk'",
    "job: never 'none', stays as it is",
    "months <= was(months) + 24",
    "months >= was(months) + 6",
    "months >= was(months) - 12",
    "months <= was(months) - 1",
    "months <= was(months)",
    "months >= was(months)",
    "months == was(months)",
    "savings > 100",
    "100 > savings",
    "savings <= was(months) * 5",
    "only 'job' may change",
    "only 'job', 'savings' may change",
    "nothing may change",
)


def in_language(code, **more):
    texts = read_texts(code)
    words = tuple(texts.fill(f"words.{word}") for word in ("yes", "no", "missing"))
    names = NAMES.for_lay_reader(pd.DataFrame(columns=list(COLUMNS)), words, texts.marks)
    given = {"ways": (), "reason": "", "n_tried": None, "fixed": ("job",), "decision": LABELS[code], **more}
    return Case(id=7, names=names, columns=COLUMNS, prediction=0.222, **given), texts


def written(code, **more):
    case, texts = in_language(code, **more)
    letter = write_letter(case, texts, None, ["intro"], ["closing"])
    page = letter.as_html()
    assert f'<html lang="{code}">' in page
    return " ".join(letter.as_text().split())


def way(case, texts=None, *, n=1, unusual=False, along=0):
    before, after = case.names.pair("savings", 12_000, 36_500)
    changes = [Change("savings", before, after)]
    changes += [Change(f"fact {k}", "a", "b", True) for k in range(along)]
    changes += [Change(f"{n}", "a", "b")] if n > 1 else []
    follows = [("dti", "falls", "0.45"), ("rate", "rises", "3"), ("grade", "becomes", "B")] if n == 1 else []
    return tuple(changes), 0.07, unusual, follow_sentence(follows, texts)


BRANCHES = {
    "already": {"reason": ALREADY},
    "no label that fits": {"decision": "42 points"},
    "nothing fixed": {"fixed": ()},
    "two fixed": {"fixed": ("job", "months")},
    "no room": {"reason": f"{NO_ROOM}: it", "rules": ("a",)},
    "none tried alike": {"reason": f"x {NONE_ALIKE}", "n_tried": 1},
    "none alike wanted": {"reason": f"x {NONE_ALIKE_WANTED}", "n_tried": 12_000},
    "tried": {"fixed": (), "n_tried": 1},
    "tried many": {"fixed": (), "n_tried": 1000},
    "tried with rules": {"fixed": (), "n_tried": 5, "rules": ("a",)},
    "tried one with rules": {"fixed": (), "n_tried": 1, "rules": ("a",)},
    "alike with rules": {"n_tried": 5, "rules": ("a",), "in_the_way": ("a", "b")},
    "alike one with rules": {"n_tried": 1, "rules": ("a",)},
}


def recourse():
    """The part of a result that `consequences_in_words` reads."""
    index = pd.MultiIndex.from_tuples([(7, 1)], names=["id", "rank"])
    return SimpleNamespace(
        names=NAMES,
        decision="granted",
        frame=pd.DataFrame({"savings": [1], "job": ["a"]}, index=index),
        factuals=pd.DataFrame(
            {"savings": [0], "job": ["b"], "age": [4], "home": ["own"]}, index=pd.Index([7], name="id")
        ),
        kinds={"savings": "numeric", "age": "numeric"},
        measures=pd.DataFrame({"p_valid": [0.97]}, index=index),
        consequences=pd.DataFrame(
            {
                "id": 7,
                "rank": 1,
                "feature": ["savings", "job", "age", "home"],
                "low": [1, "a", 6, "own"],
                "high": [2, "a", 6, "own"],
                "share": 1.0,
            }
        ),
    )


@pytest.mark.parametrize("code", available_languages())
def test_every_text_of_a_language_is_used_in_some_letter(code, monkeypatch):
    used = set()
    texts = read_texts(code)
    fill = type(texts).fill

    def note(self, key, number=0, /, **filled):
        text = self.texts[key]
        used.add(key if isinstance(text, str) else (key, "one" if number == 1 else "other"))
        return fill(self, key, number, **filled)

    monkeypatch.setattr(type(texts), "fill", note)
    for more in BRANCHES.values():
        letter = written(code, **more)
        assert "{" not in letter
    case, _ = in_language(code)
    plain = replace(case.names, labels={n: t for n, t in case.names.labels.items() if n != "prediction"})
    for names in (case.names, plain):
        for ways in (
            [way(case, texts)],
            [way(case, texts, unusual=True, along=1), way(case, texts, n=2, along=2)],
            [way(case, texts, n=k) for k in range(1, 7)],
            [way(case, texts, n=k) for k in range(1, 9)],
        ):
            case_with = replace(case, ways=tuple(ways), names=names)
            assert "42 points" in write_letter(replace(case_with, decision="42 points"), texts, None, [], []).as_text()
            assert "{" not in write_letter(case_with, texts, None, [], []).as_text()
    for n in (1, 2):
        acts = replace(case, ways=tuple(way(case, texts, n=k + 1) for k in range(n)), acts=True)
        assert "{" not in write_letter(acts, texts, None, [], []).as_text()
    assert "{" not in write_letter(replace(case, ways=(), acts=True), texts, None, [], []).as_text()
    assert "{" not in consequences_in_words(recourse(), 0, texts=texts)
    for points in ((), ("a",), ("a", "b")):
        with_reasons = replace(case, reasons=Reasons(points, points))
        assert "{" not in write_letter(with_reasons, texts, None, [], []).as_text()
    table = pd.DataFrame({"shapley": 0.2, "standard_error": 0.01, "repair": "alone", "value": 1, "code": "R"}, ["job"])
    assert Reasons.from_table(table, case.names, texts).stated[0].endswith(" R)")
    months = replace(case.names, units={"months": texts.fill("words.month_words").split(", ")[0]})
    rules = rules_in_words(RULES, months, COLUMNS, texts)
    assert all(points and "{" not in "".join(points) for points in rules.values())
    every = {key for key, text in texts.texts.items() if isinstance(text, str)}
    every |= {(key, form) for key, text in texts.texts.items() if not isinstance(text, str) for form in text}
    rest = every - used
    assert rest == set(), rest


def test_numbers_dates_and_units_follow_the_language():
    seen = {}
    for code in ("de", "nb", "fr", "en"):
        case, _ = in_language(code)
        seen[code] = [
            *case.names.pair("savings", 12_000, 365.5),
            case.names.text("prediction", 0.0725, 3),
            case.names.text("x", pd.Timestamp("2024-05-01")),
            case.names.text("x", -1234.5),
            case.names.text("x", "1,000 men"),
        ]
    assert seen["en"] == ["12,000 €", "365.5 €", "7.2%", "2024-05-01", "-1234", "1,000 men"]
    assert seen["de"][:4] == ["12.000\xa0€", "365,5\xa0€", "7,2\xa0%", "1. Mai 2024"]
    assert seen["nb"][:4] == ["12\xa0000\xa0€", "365,5\xa0€", "7,2\xa0%", "1. mai 2024"]
    assert seen["fr"][:4] == ["12\u202f000\xa0€", "365,5\xa0€", "7,2\xa0%", "1 mai 2024"]
    assert {each[5] for each in seen.values()} == {"1,000 men"}
    dollars = replace(NAMES, units={"savings": "$"})
    assert dollars.text("savings", 12_000) == "$12,000"
    assert replace(dollars, marks=read_texts("nb").marks).text("savings", 12_000) == "12\xa0000\xa0$"
    own = replace(NAMES, formats={"savings": "0.000,00"}, marks=read_texts("fr").marks)
    assert own.text("savings", 1234.5) == "1.234,50\xa0€"


def test_decision_is_stated_as_a_conditional():
    forms = {
        code: (read_texts(code).conditional_form(text), read_texts(code).negated_form(text))
        for code, text in LABELS.items()
    }
    assert forms == {
        "en": ("the loan would have been granted", "the loan was not granted"),
        "de": ("wäre der Kredit bewilligt worden", "der Kredit wurde nicht bewilligt"),
        "nb": ("ville lånet ha blitt innvilget", "lånet ble ikke innvilget"),
        "fr": ("le prêt aurait été accordé", "le prêt n’a pas été accordé"),
    }
    assert read_texts().conditional_form("probability of default below 10%") is None


def test_rules_are_stated_in_words_with_units():
    rules = rules_in_words(RULES, NAMES, COLUMNS, read_texts())
    assert rules["months <= was(months) + 24"] == ("months employed: at most 2 years more than now",)
    assert rules["months >= was(months) - 12"] == ("months employed: at most 1 year less than now",)
    assert rules["months >= was(months) + 6"] == ("months employed: at least 6 months more than now",)
    assert rules["savings: from 1000 to 20,000"] == ("savings: from 1,000 € to 20,000 €",)
    assert rules["savings: at least 0, in steps of 500, may only rise"] == (
        "savings: at least 0 €",
        "savings: in steps of 500 €",
        "savings: may only rise",
    )
    assert rules["100 > savings"] == ("savings: less than 100 €",)
    assert rules["savings <= was(months) * 5"] == ("savings ≤ months employed now * 5",)
    assert rules["job: one of 'nurse', 'clerk'"] == ("job: nurse or clerk",)
    german = rules_in_words(RULES, replace(NAMES, marks=read_texts("de").marks), COLUMNS, read_texts("de"))
    assert german["savings: changes by at most 12.5% of its range, may become missing"][0].startswith(
        "savings: ändert sich um höchstens 12,5\xa0% der"
    )


def test_custom_texts_are_checked(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(text_of("nb").replace("Hva som ville", "Kjære kunde: hva som ville"), encoding="utf-8")
    assert read_texts("en", own).fill("letter.title").startswith("Kjære kunde")
    assert read_texts("en", tomllib.loads(text_of("de"))).language == "de"
    lines = text_of("en").splitlines()
    wrong = "\n".join(line for line in lines if not line.startswith("sorry ="))
    wrong = wrong.replace('title = "What', 'titel = "What').replace("{decision}. Nothing", "{wish}. Nothing")
    own.write_text(wrong, encoding="utf-8")
    with pytest.raises(InputError, match=r"own.toml: 'letter.title' is missing; 'none.sorry' is missing; 'let"):
        read_texts("en", own)
    own.write_text(text_of("en").replace("{decision}. Nothing", "{wish}. Nothing"), encoding="utf-8")
    with pytest.raises(InputError, match=r"'letter.already' has \{wish\}, .*; 'letter.already' lacks \{decision\}"):
        read_texts("en", own)
    own.write_text(text_of("en").replace("other = ", "others = "), encoding="utf-8")
    with pytest.raises(InputError, match=r"'words.years' needs forms by number"):
        read_texts("en", own)
    own.write_text(text_of("en").replace('says = "{who} is {what}"', 'says = "{whom} is {what}"'), encoding="utf-8")
    with pytest.raises(InputError, match=r"a \[\[label\]\] has \{whom\}, .* write '\{what\}', '\{who\}'"):
        read_texts("en", own)
    with pytest.raises(InputError, match="does not say its language"):
        read_texts("en", {"letter": {}})
    with pytest.raises(InputError, match=r"texts .*none.toml: there is no such file"):
        read_texts("en", tmp_path / "none.toml")
    with pytest.raises(InputError, match=r"no letters in 'Klingon'; .*, or another language; known: .*'nb'$"):
        read_texts("Klingon")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("{id:zz}", r"has {id:zz}, which is not the name of a field alone; write '{id}'"),
        ("{id!z}", r"has {id!z}, which is not the name of a field alone; write '{id}'"),
        ("{id!r}", r"has {id!r}, which is not the name of a field alone; write '{id}'"),
        ("{id:}", r"has {id:}, which is not the name of a field alone; write '{id}'"),
        ("{id:>100000000}", r"has {id:>100000000}, which is not the name of a field alone; write '{id}'"),
        ("{id.__class__}", r"has {id.__class__}, which is not the name of a field alone; write '{id}'"),
        ("{id[0]}", r"has {id[0]}, which is not the name of a field alone; write '{id}'"),
        ("{}", r"has {}, which is not the name of a field alone; write '{id}'"),
        ("{0}", r"has {0}, which is not the name of a field alone; write '{id}'"),
        ("{ id }", r"has { id }, which is not the name of a field alone; write '{id}'"),
        ("{id:{id}}", "has a single brace; close it, or double it"),
        ("{id", "has a single brace; close it, or double it"),
        ("id}", "has a single brace; close it, or double it"),
        ("{id}}", "has a single brace; close it, or double it"),
    ],
)
def test_braces_hold_only_a_field_name(field, message):
    english = tomllib.loads(text_of("en"))
    own = {**english, "letter": {**english["letter"], "case": f"Case: {field}"}}
    with pytest.raises(InputError, match=rf"texts: 'letter.case' .*{re.escape(message)}"):
        read_texts("en", own)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"says": "{who is {what}"}, "has a single brace"),
        ({"says": "{who"}, "has a single brace"),
        ({"says": "{who!r} is {what}"}, "has {who!r}, which is not the name of a field alone"),
        ({"says": "{who} is {who}"}, "says {who} twice"),
        ({"says": "it is"}, "says nothing of {who} or {what}"),
        ({"would": "{who:>100000000}"}, "has {who:>100000000}, which is not the name of a field alone"),
        ({"was_not": "{who"}, "has a single brace"),
    ],
)
def test_braces_of_a_label_hold_only_a_field_name(label, message):
    good = {"says": "{who} is {what}", "would": "{who} would be {what}", "was_not": "{who} was not {what}"}
    own = {**tomllib.loads(text_of("en")), "label": [{**good, **label}]}
    with pytest.raises(InputError, match=rf"a \[\[label\]\] {re.escape(message)}|a \[\[label\]\] is .*{message}"):
        read_texts("en", own)


def test_doubled_braces_are_literal():
    english = tomllib.loads(text_of("en"))
    own = {**english, "letter": {**english["letter"], "case": "Case {{{id}}}, {{id}}"}}
    assert read_texts("en", own).fill("letter.case", id="{id:>9}") == "Case {{id:>9}}, {id}"


def test_without_babel_english_works_and_others_raise_with_a_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    read_texts.__globals__["_shipped"].cache_clear()
    assert read_texts("en").fill("words.years", 2, n="2") == "2 years"
    with pytest.raises(InputError, match=r"letters in 'nb' need babel, .*pip install 'mcce\[languages\]'"):
        read_texts("nb")


def test_certain_consequences_are_stated_as_rise_or_fall():
    said = consequences_in_words(recourse(), 0)
    assert said.startswith("What usually follows: savings 1 € to 2 €, job becomes a and age rises to 6. In 97 of 100")
    assert "home" not in said


@pytest.mark.parametrize("code", available_languages())
def test_letters_about_actions_do_not_call_them_examples(code):
    texts = read_texts(code)
    case, _ = in_language(code)
    example = {"en": "xample", "de": "eispiel", "fr": "xemple", "nb": "ksemp"}[code]
    for ways in ((), (way(case, texts),), (way(case, texts), way(case, texts, n=2))):
        letter = write_letter(replace(case, ways=ways, acts=True, rules=("a",)), texts, None, [], []).as_text()
        assert example not in letter, letter
