"""Long user texts: every pattern takes linear time, and messages quote only a short part.

Each pattern gets a text that it nearly matches in as many ways as possible. Relative times are tested: eight times the
text may take about eight times as long, not sixty-four.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.batches import folder as describing
from mcce.cli import checking as wanted
from mcce.cli import notebook, outputs, tables
from mcce.cli import options as job
from mcce.cli.tables import NumberMarks, ReadOptions, TableFile, TextColumn
from mcce.constraints import encoding, grammar, reading
from mcce.exceptions import did_you_mean, shorten, spell
from mcce.explore import words as explorer_words
from mcce.generators import graph_plot
from mcce.generators import graph_reading as graphs
from mcce.judging import feature as judged
from mcce.model import columns
from mcce.plausibility import derived
from mcce.report import languages, letter_layout, rules
from mcce.report import names as patterns
from mcce.report import names as words
from mcce.samplers.parametric import formula as formulas
from mcce.samplers.statsmodels import models as families
from mcce.storage import archive as limits
from mcce.storage import learned
from mcce.table import Feature, Schema, spreadsheet
from mcce.table import stored as table_state
from mcce.table import words as name_lists

SHORT, TIMES, MOST = 1000, 8, 24  # number of letters, the factor of their increase, and the allowed factor of time
QUICK = 1e-4  # seconds below which a time is not measurable


class Case(NamedTuple):
    """A text of about n letters, its reader, and the module of the pattern."""

    module: ModuleType
    read: Callable[[str], object]
    text: Callable[[int], str]


ALLOW = sys.modules["mcce.constraints.allow"]  # `mcce.constraints.allow` is the function


def toml(text: str) -> object:
    return reading.parse_file(text, "TOML", "it")


def formula(text: str) -> object:
    made = SimpleNamespace(formula=text)
    fitted = type("Results", (), {"model": made, "__module__": "statsmodels.regression"})()
    return columns.columns_of(fitted, ["y", "x"])


def dot(text: str) -> object:
    return graphs.parse_dot(text, "it")


def plain_rule(text: str) -> str:
    return rules.plain_rule(text, SimpleNamespace(label=str), ["a", "a b", "was"])


def days() -> Feature:
    return Schema.from_data(pd.DataFrame({"since": pd.date_range("2020-01-01", periods=5)})).features[0]


def date_in_a_rule(text: str) -> float:
    return encoding.encode_value(days(), text)


def number(text: str) -> str | None:
    return NumberMarks().plain(text)


def dates(text: str) -> object:
    return tables._find_dates(column(text), tables.ISO)


def interval(text: str) -> object:
    return wanted.read_interval(text, None)


def beside(text: str) -> Path:
    return outputs._beside(Path(text), ".x")


CASES = {
    "digits before a letter in a rule": Case(grammar, grammar.parse, lambda n: "1" * n + "x"),
    "decimals before a letter in a rule": Case(grammar, grammar.parse, lambda n: "1." + "1" * n + "x"),
    "digits of an exponent in a rule": Case(grammar, grammar.parse, lambda n: "1e" + "1" * n + "x"),
    "a quote that is not closed in a rule": Case(grammar, grammar.parse, lambda n: "'" + "a" * n),
    "a backtick that is not closed in a rule": Case(grammar, grammar.parse, lambda n: "`" + "a" * n),
    "blanks in a rule": Case(grammar, grammar.parse, lambda n: "a <" + " " * n + "?"),
    "a long name in a rule": Case(grammar, grammar.parse, lambda n: "a." * (n // 2) + " ?"),
    "dots of a key in a file of constraints": Case(reading, toml, lambda n: "a." * 20 * (n // 40) + "="),
    "a long key in a file of constraints": Case(reading, toml, lambda n: "a" * n),
    "blanks after keys in a file of constraints": Case(reading, toml, lambda n: ("a" + " " * 50) * (n // 51)),
    "quotes in a file of constraints": Case(reading, toml, lambda n: '"""' * 3 + '\\"""' * (n // 4)),
    "backslashes in a file of constraints": Case(reading, toml, lambda n: '"\\' * (n // 2)),
    "dots of the formula of a model": Case(columns, formula, lambda n: "y ~ " + "." * n),
    "names in the formula of a model": Case(columns, formula, lambda n: "y(" * (n // 2) + " ~ x"),
    "quotes in the formula of a sampler": Case(formulas, formulas.parse_formula, lambda n: "`a" * (n // 2)),
    "brackets in the formula of a sampler": Case(formulas, formulas.parse_formula, lambda n: "(" * n + "a"),
    "digits in a family of a sampler": Case(families, families.read_family, lambda n: "Gamma(Log, " + "1" * n),
    "quotes in the text of a graph": Case(graphs, graphs.parse_text, lambda n: '\\"' * (n // 2)),
    "a comment that is not closed in a graph": Case(graphs, dot, lambda n: "digraph {" + "/* " * (n // 3)),
    "quotes in a graph": Case(graphs, dot, lambda n: "digraph {" + '\\"' * (n // 2)),
    "arrows in the name of a feature": Case(graphs, graphs.quoted, lambda n: "- " * (n // 2)),
    "signs in the picture of a graph": Case(graph_plot, lambda t: graph_plot._folded(t, 9), lambda n: "_a" * (n // 2)),
    "a formula in the words of a sampler": Case(judged, judged._FORMULA.search, lambda n: "formula='" * (n // 9)),
    "digits as a date of a rule": Case(encoding, date_in_a_rule, lambda n: "1:" * (n // 2)),
    "digits as a value of a constraint": Case(ALLOW, ALLOW.as_text, lambda n: "1" * n + "-x"),
    "digits before a letter": Case(tables, number, lambda n: "1" * n + "x"),
    "decimals before a letter": Case(tables, NumberMarks(",", ".").plain, lambda n: "1," + "1" * n + "x"),
    "thousands before a letter": Case(tables, number, lambda n: "1" + ",111" * (n // 4) + "x"),
    "digits of an exponent": Case(tables, number, lambda n: "1e" + "1" * n + "x"),
    "one number and no other": Case(tables, dates, lambda n: "1" + "x" * n),
    "blanks between digits": Case(tables, dates, lambda n: "1 " * (n // 2) + "x"),
    "blanks in a date": Case(tables, lambda t: tables.parse_dates([t], "%d %b %Y"), lambda n: "1 May" + " " * n + "x"),
    "digits of a whole number": Case(tables, tables.WHOLE.fullmatch, lambda n: "1" * n + "x"),
    "zeros of a code": Case(tables, tables.LEADING_ZERO.match, lambda n: "0" * n + "x"),
    "blanks and no comma in an interval": Case(wanted, interval, lambda n: " " * n + "x"),
    "blanks before two brackets": Case(wanted, interval, lambda n: "1," + " " * n + "]]"),
    "links of a page": Case(notebook, lambda t: notebook._cell("markdown", t), lambda n: "[a](" * (n // 4)),
    "endings of a file's name": Case(outputs, beside, lambda n: ".a" * (n // 2) + "!"),
    "letters of a file's ending": Case(outputs, beside, lambda n: "." + "a" * n + "!"),
    "a key of TOML": Case(job, job._key, lambda n: "a" * n + "!"),
    "signs in the name of a letter": Case(letter_layout, letter_layout.letter_name, lambda n: "a!" * (n // 2)),
    "zeros of a format": Case(patterns, lambda t: patterns._NUMBER.fullmatch(t), lambda n: "0." + "0" * n + "x"),
    "signs of percent": Case(patterns, lambda t: patterns.read_pattern(t, "a"), lambda n: "%" * n),
    "a long name in a picture": Case(words, lambda t: words.fold(t, 20), lambda n: "x" * n),
    "blanks in a picture": Case(words, lambda t: words.fold(t, 20), lambda n: " " * n),
    "capitals in a picture": Case(words, lambda t: words.fold(t, 20), lambda n: "aB" * (n // 2)),
    "digits before percent": Case(words, words.kept_together, lambda n: "1 " * (n // 2)),
    "brackets in a rule of a letter": Case(rules, plain_rule, lambda n: "was(" * (n // 4)),
    "a label of a decision": Case(
        languages, lambda t: languages.read_texts().conditional_form(t), lambda n: "a is " * (n // 5)
    ),
    "the time of a workbook": Case(
        outputs, lambda t: outputs._with_same_time(t.encode()), lambda n: "<dcterms:modified" + "x" * n
    ),
    "names in a rule of a letter": Case(rules, plain_rule, lambda n: "a " * (n // 2)),
    "digits in a cell": Case(spreadsheet, spreadsheet.escape_formula, lambda n: "+" + "1" * n + "x"),
    "exponents in a cell": Case(spreadsheet, spreadsheet.escape_formula, lambda n: "+1e" + "1" * n + "x"),
    "apostrophes in a cell": Case(spreadsheet, spreadsheet.escape_formula, lambda n: "'" * n + "x"),
    "braces in a text of a letter": Case(languages, lambda t: languages._of_fields(t, {"a"}, {"a"}), lambda n: "{" * n),
    "a long name in a relation": Case(derived, derived.column_text, lambda n: "a." * (n // 2) + " "),
    "names in what a sampler discloses": Case(
        learned, lambda t: learned.disclosed(SimpleNamespace(discloses=t)), lambda n: "{" + "a." * (n // 2)
    ),
    "digits in a reason of the explorer": Case(
        explorer_words, lambda t: explorer_words.reason_text(t, ""), lambda n: "none of the " + "1" * n
    ),
    "digits in the name of a feature": Case(name_lists, name_lists.name_words, lambda n: "1" * n + "x"),
    "capitals in the name of a feature": Case(name_lists, name_lists.name_words, lambda n: "A" * n + "b"),
    "blanks before a time zone": Case(
        table_state, lambda t: table_state._read_named({"name": t}), lambda n: "datetime64[s," + " " * n
    ),
    "time zones in a time zone": Case(
        table_state, lambda t: table_state._read_named({"name": t}), lambda n: "datetime64[s," * (n // 13)
    ),
    "slashes of a time zone": Case(table_state, table_state._check_zone, lambda n: "a/" * (n // 2)),
    "places in memory": Case(describing, lambda t: describing._plain({t}), lambda n: " at 0x" + "0" * n),
    "digits of an entry's name": Case(limits, limits.ARRAY.fullmatch, lambda n: "1" * n),
}


def seconds(case: Case, n: int) -> float:
    """Return the minimum time of a few runs, since the others include waiting."""
    text, found = case.text(n), []
    for _ in range(5):
        begun = time.process_time()
        with contextlib.suppress(ValueError, TypeError):
            case.read(text)
        found.append(time.process_time() - begun)
        if found[-1] > 1000 * QUICK and len(found) > 1:
            break
    return max(min(found), QUICK)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_time_is_linear_in_the_length_of_a_text(case):
    seconds(case, SHORT)  # compile and import once
    assert seconds(case, TIMES * SHORT) / seconds(case, SHORT) < MOST


def test_every_module_with_a_pattern_has_a_case():
    imports = re.compile(r"^ *(?:import|from) re\b", re.MULTILINE)
    files = Path(mcce.__file__).parent.rglob("*.py")
    found = {path for path in files if imports.search(path.read_text(encoding="utf-8"))}
    assert found == {Path(case.module.__file__) for case in CASES.values()}


# ---- quotes in messages

LONG = 5000


def column(text: str) -> TextColumn:
    return TableFile("the file", pd.DataFrame({"a": [text, "3", "4"]}), ReadOptions(), ",").column("a")


def resolved(rule: str) -> object:
    schema = Schema.from_data(pd.DataFrame({"a": [1.0, 2.0], "job": pd.Categorical(["cook", "nurse"])}))
    return mcce.constraints.resolve(mcce.constraints.read([rule]), schema)


REFUSED = {
    "digits in a rule": lambda: mcce.rule("a > " + "1" * LONG + "x"),
    "the middle of a rule": lambda: mcce.rule("a + " * 100 + "?" + "1" * LONG),
    "a rule that is too long": lambda: mcce.rule("1" * 100_001),
    "a function in a rule": lambda: mcce.rule("x" * LONG + "(1)"),
    "an expected sign in a rule": lambda: mcce.rule("a " + "x" * LONG),
    "a column in a rule": lambda: resolved("x" * LONG + " > 1"),
    "a level in a rule": lambda: resolved("job == '" + "x" * LONG + "'"),
    "a text in a rule": lambda: resolved("a > '" + "x" * LONG + "'"),
    "a rule with features": lambda: mcce.rule("x" * LONG, features=["a"]),
    "a date in a rule": lambda: date_in_a_rule("1" * LONG),
    "a direction": lambda: mcce.allow("a", direction="x" * LONG),
    "a format": lambda: patterns.read_pattern("x" * LONG, "a"),
    "decimals of a format": lambda: patterns.read_pattern("0." + "0" * 500, "a"),
    "an interval": lambda: wanted.read_interval("[1," + "1" * LONG, None),
    "a class": lambda: wanted.read_class("--decision", "x" * LONG, ["yes", "no"]),
    "a cell among numbers": lambda: tables.find_reading(column("x" * LONG), NumberMarks(), ReadOptions()),
    "too many digits": lambda: tables.find_reading(column("1" * LONG), NumberMarks(), ReadOptions()),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_message_quotes_at_most_200_characters(refused):
    with pytest.raises(InputError) as caught:
        refused()
    runs = re.findall(r"(([x10])\2*)", str(caught.value))
    assert max(len(run) for run, _ in runs) <= 200
    assert len(str(caught.value)) < 1000


def test_error_of_a_long_rule_shows_the_position():
    with pytest.raises(
        InputError, match=r"^rule '\.\.\. \+ a \+ .* \? b \+ .*\.\.\.', at character 401: '\?' is not valid"
    ):
        mcce.rule("a + " * 100 + "? " + "b + " * 200)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a" * 198, repr("a" * 198)),
        ("a" * 199, "'" + "a" * 131 + "..." + "a" * 64 + "'"),
        (10**308, "1" + "0" * 131 + "..." + "0" * 65),
        (-(10**400), "a whole number of about 401 digits, more than a float holds"),
        ([10**5000], "a list too deep or too long to be written"),
    ],
)
def test_long_values_are_shortened(value, written):
    assert spell(value) == written
    assert len(spell(value)) <= 200


def test_deeply_nested_value_is_named_by_its_class():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert spell(deep) == "a list too deep or too long to be written"
    while deep:  # freed iteratively: freeing a nested list recurses
        deep = deep[0]


def test_short_texts_are_not_shortened():
    assert shorten("a" * 200) == "a" * 200
    assert shorten("abcdefghij", 9) == "abcd...ij"


def test_very_long_name_has_no_suggestion():
    assert did_you_mean("a" * 201, ["a" * 200, "b"]).startswith("known: ")
    assert did_you_mean("a" * 200, ["a" * 199 + "b"]).startswith("did you mean 'aaa")
