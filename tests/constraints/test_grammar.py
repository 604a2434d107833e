import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.constraints import read_formula
from mcce.constraints.grammar import column_text, parse
from mcce.exceptions import InputError
from mcce.table import Schema
from tests.constraints.oracle import people

SCHEMA = Schema.from_data(people())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abs(x=age) > 1", "at character 6: '=' is not an operator"),
        ("salary = 3", "at character 8: '=' is not an operator; write '=='"),
        ("salary <> 3", "write '!='"),
        ("age > 3 & owner", "at character 9: '&' is not an operator; write 'and'"),
        ("age > 3 || owner", "write 'or'"),
        ("!owner", "at character 1: '!' is not an operator; write 'not'"),
        ("age ≥ 3", "at character 5: '≥' is not an operator; write '>='"),
        ("age ^ 2 > 3", "write '**'"),
        ("age // 2 > 3", "write floor(a / b)"),
        ("age is 3", "'is' is not an operator; write '=='"),
        ("age > 20 and\n salry > 3", "at character 15: 'salry' is not a column; did you mean 'salary'?"),
        ("größe > 3", "at character 1: 'größe' is not a column"),
        ("job == cook", "at character 8: 'cook' is not a column but a level of 'job'; put levels in quotes"),
        ("edu >= job", "the levels of 'edu' have no order here"),
        ("age == 'x'", "'age' (numbers) cannot be compared with 'x' (text)"),
        ("age + job > 3", "at character 7: 'job' (levels) cannot be used as a number"),
        ("hired > 3", "cannot be compared with the dates of 'hired'; write a date in quotes"),
        ("hired > 'soon'", "'soon' cannot be read as a date of 'hired'"),
        ("hired > 'today'", "depends on the current day"),
        ("hired + hired > 3", "'hired' (dates) cannot be used as a number"),
        ("'a' == 'b'", "compare like with like"),
        ("1 if age > 3 else 'a'", "choose one kind"),
        ("job", "'job' (levels) is neither true nor false"),
        ("max(age) > 1", "max() takes 2 or more values, got 1"),
        ("round(age, salary) > 1", "the decimals of round() are a whole number from -12 to 12"),
        ("abs(age, *[3]) > 1", "abs() takes plain values only"),
        ("logg(age) > 1", "there is no function 'logg'; did you mean 'log'?"),
        ("was(was(age)) > 1", "was() takes a column"),
        ("missing(3)", "missing() takes a column"),
        ("__import__('os').system('ls')", "at character 1: there is no function"),
        ("age.__class__ > 3", "'age.__class__' is not a column"),
        ("(lambda: 1)() > 3", "there is no function 'lambda: 1'"),
        ("age[0] > 3", "'age[0]' is not part of the language of rules"),
        ("f'{age}' == 3", "is not part of the language"),
        ("b'x' == job", "is not a value; write a number or a text in quotes"),
        ("age == None", "write missing(column)"),
        ("job in 'clerk'", "'in' takes one list"),
        ("job in []", "'in' takes one list"),
        ("age > ~3", "has an operator that is not supported"),
        ("age > (x := 3)", "is not part of the language"),
        ("9**9**9 > age", "at character 4: an exponent is a number from -10 to 10"),
        ("age ** -11 > 3", "an exponent is a number from -10 to 10"),
        ("1e999 > age", "the number is too large"),
        ("age > 3; age", "at character 8: invalid syntax"),
        ("age > 3 and", "at its end: invalid syntax"),
        ("(age > 3", "'(' was never closed"),
        ("age > 3) or (age < 2", "unmatched ')'"),
        ("age == `hours per week", "at character 8: the text after ` is not closed"),
        ("job == 'cook", "at character 8: the text after ' is not closed"),
        ("", "rule is ''; give a text such as 'savings >= 3 * rent'"),
        (3, "rule is 3; give a text"),
        ("age > " + "9" * 20_000, "it has more than 10,000 characters"),
        ("not " * 2_000 + "owner", "nested 100 deep"),
        ("(" * 900 + "age" + ")" * 900 + " > 3", "too many nested parentheses"),
        ("-" * 9_000 + "age > 3", "rule '---"),
        (" + ".join(["age"] * 400) + " > 3", "nested 100 deep"),
        (f"age in [{', '.join(['1'] * 3_000)}]", "more than 2000 parts"),
        ("age > \0", "rule 'age"),
    ],
)
def test_messages(text, said):
    begin = time.perf_counter()
    with pytest.raises(InputError) as caught:
        read_formula(text, SCHEMA).holds(SCHEMA.encode(people()).matrix)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400
    assert time.perf_counter() - begin < 2.0


def test_text_of_a_long_rule_is_shown_around_the_error():
    with pytest.raises(InputError, match=r"rule '\.\.\.[^']*agee > 3 and[^']*\.\.\.', at character 2001"):
        read_formula("age > 3 and " * 166 + " " * 8 + "agee > 3 and " + "age > 3 and " * 20 + "owner", SCHEMA)


PIECES = [*"age job'\"`()[]=<>!&|+-*/.,:3 \n\\é", "not ", " in ", "was(", " if ", " else "]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_parsed_or_refused(text):
    with contextlib.suppress(InputError):
        assert parse(text).text == text


@pytest.mark.parametrize(
    "name", ["age", "loan.amount", "hours per week", "in", "then", "a-b", "größe", "µg", "1st", "a'b", 7]
)
def test_name_of_a_column_is_read_as_it_is_written(name):
    schema = Schema.from_data(people()[["age"]].set_axis([name], axis=1))
    assert read_formula(f"{column_text(name)} > 20 and was({column_text(name)}) > 20", schema).columns == (0,)


def test_name_with_a_backtick_cannot_be_written():
    assert column_text("a`b") is None
