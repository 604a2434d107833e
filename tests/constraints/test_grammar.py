import contextlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce import InputError
from mcce.constraints.grammar import (
    AllOf,
    AnyOf,
    Arithmetic,
    ComparisonOf,
    If,
    Member,
    Missing,
    NameOf,
    Negation,
    Number,
    Text,
    parse,
)
from mcce.constraints.rules import resolve_rule
from mcce.table import Schema
from tests.constraints.reader import people
from tests.marks import examples

SCHEMA = Schema.from_data(people())
PIECES = [
    *("age", "salary", "job", "edu", "owner", "hired", "`7`", "nobody", "'cook'", '"phd"', "'2020-01-05'"),
    *("1", "2.5", "1e400", ".5", "+", "-", "*", "/", "(", ")", "[", "]", ",", "==", "!=", "<", "<=", ">", ">=", "="),
    *(
        "if",
        "then",
        "else",
        "and",
        "or",
        "not",
        "in",
        "true",
        "False",
        "was(",
        "missing(",
        "abs(",
        "min(",
        "max(",
        "f(",
        "log(",
        "round(",
        "years(",
        "if(",
    ),
]


def try_to_resolve(text):
    """Resolve a rule; any exception except InputError is a defect."""
    with contextlib.suppress(InputError):
        resolve_rule(mcce.rule(text), SCHEMA)


@given(st.text(max_size=60))
@examples(75)
def test_any_text_is_a_rule_or_raises_input_error(text):
    try_to_resolve(text)


@given(st.lists(st.sampled_from(PIECES), max_size=14))
@examples(125)
def test_any_tokens_are_a_rule_or_raise_input_error(pieces):
    try_to_resolve(" ".join(pieces))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "not " * 5000 + "owner",
        "-" * 5000 + "1 > 0",
        "if owner then " * 5000 + "owner",
        " + ".join(["age"] * 5000) + " > 0",
        "abs(" * 40 + "age" + ")" * 40 + " > 0",
        "age > " + "9" * 5000,
    ],
    ids=lambda text: text[:12],
)
def test_overlong_text_raises(text):
    with pytest.raises(InputError, match=r"nested more than 30 deep|more than 400 words and signs|too large"):
        mcce.rule(text)


def test_text_just_below_the_limits_is_accepted():
    matrix = SCHEMA.encode(people()).matrix
    for text in (" + ".join(["age"] * 190) + " > 0", "(" * 25 + "owner or not owner" + ")" * 25):
        assert resolve_rule(mcce.rule(text), SCHEMA).holds(matrix, matrix).all()


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            "a + b * c < 1",
            ComparisonOf(
                (Arithmetic("+", NameOf("a"), Arithmetic("*", NameOf("b"), NameOf("c"))), Number(1.0)), ("<",)
            ),
        ),
        ("a - b - c", Arithmetic("-", Arithmetic("-", NameOf("a"), NameOf("b")), NameOf("c"))),
        ("a or b and not c", AnyOf((NameOf("a"), AllOf((NameOf("b"), Negation(NameOf("c"))))))),
        ("1 <= a < 2", ComparisonOf((Number(1.0), NameOf("a"), Number(2.0)), ("<=", "<"))),
        ("`my col` not in ['x', \"it's\"]", Member(NameOf("my col"), (Text("x"), Text("it's")), True)),
        ("if a then b else if c then d", If(NameOf("a"), NameOf("b"), If(NameOf("c"), NameOf("d"), None))),
        ("missing(was(a))", Missing(NameOf("a", was=True))),
        ("min > max", ComparisonOf((NameOf("min"), NameOf("max")), (">",))),
        ("not a.b in [1e3]", Negation(Member(NameOf("a.b"), (Number(1000.0),), False))),
    ],
)
def test_syntax_tree_of_a_text(text, tree):
    assert parse(text) == tree
    assert pickle.loads(pickle.dumps(parse(text))) == tree


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty; write for example 'savings >= 3"),
        ("a = 3", "rule 'a = 3', at character 3: '=' is not valid here; write == to compare"),
        ("a ! b", "write != or not"),
        ("a & b", "write and"),
        ("a == 'b", "at character 6: the text after ' is not closed; close it"),
        ("a ? b", "'\\?' is not valid here; put unusual column names in `backticks`"),
        ("(a > 2", "at its end: expected '\\)', got nothing more"),
        ("a > 2)", "at character 6: expected the end, or a sign such as .* got '\\)'"),
        ("a b", "expected the end, or a sign such as .* got 'b'"),
        ("a >", "expected a number, a level in quotes or a column, got nothing more"),
        ("if a > 2", "at its end: expected 'then', got nothing more"),
        ("a in b", "expected '\\[', got 'b'"),
        ("mini(a, 2) > 1", "there is no function 'mini'; did you mean 'min'\\?"),
        ("min(a) > 1", "min\\(\\) takes two values or more, got 1"),
        ("abs(a, b) > 1", "abs\\(\\) takes 1 value, got 2"),
        ("was(3) > 1", "was\\(\\) takes a column, as in was\\(age\\)"),
        ("2x > 1", "'2' is not valid here"),
    ],
)
def test_invalid_rule_reports_the_position(text, said):
    with pytest.raises(InputError, match=said):
        mcce.rule(text)


def test_rule_length_is_limited():
    assert parse("a > " + "1" * 300 + " " * 99_000)
    with pytest.raises(InputError, match=r"at character 100001: it has more than 100,000 characters; split it"):
        parse("a > 1" + " " * 100_000)


def test_numbers_end_where_a_word_begins():
    for text in ("1x", "1.5x", "1e5x", "1e", "1_000", ".5x", "1.e5_"):
        with pytest.raises(InputError, match=r"at character 1: '[1.]' is not valid here"):
            parse(text)
    for text, value in (("1", 1.0), ("1.", 1.0), (".5", 0.5), ("1.5e-3", 1.5e-3), ("1E+2", 100.0)):
        assert parse(text) == Number(value, at=0)
