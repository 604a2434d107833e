from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.constraints import read
from mcce.constraints.reading import parse_file, read_sections

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOML = """
[[allow]]
feature = "salary"
low = 0
step = 500
direction = "increase"

[[allow]]
id = 3
feature = "hired"
low = 2020-01-01
max_step = "30 days"

[[rule]]
says = "savings >= 3 * rent"
name = "three rents saved"

[[only]]
id = 3
features = ["salary", "hours"]
"""
SAID = [
    mcce.allow("salary", low=0, step=500, direction="increase"),
    "factual 3: hired: at least 2020-01-01, changes by at most '30 days'",
    mcce.rule("savings >= 3 * rent", name="three rents saved"),
    mcce.only({3: ["salary", "hours"]}),
]


def test_toml_file_equals_python(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(TOML, encoding="utf-8")
    for source in (path, str(path)):
        found = read(source)
        assert [found[0], found[2], found[3]] == [SAID[0], SAID[2], SAID[3]]
        assert list(map(str, found)) == [str(each).replace("at most '30 days'", "at most 30 days") for each in SAID]


def test_list_holds_constraints_and_texts():
    limit, table = mcce.allow("a", low=0), pd.DataFrame({"feature": ["a"], "low": [1]}, index=[7])
    found = read([limit, "a > b", mcce.per_factual(table)])
    assert list(map(str, found)) == ["a: at least 0", "a > b", "factual 7: a: at least 1"]
    assert read("a > b") == [mcce.rule("a > b")]
    assert read(limit) == [limit]
    assert read(None) == read([]) == []


@pytest.mark.parametrize(
    "source",
    [
        {"feature": "a", "low": 3},
        {"allow": [{"feature": "a", "low": 3}]},
        pd.DataFrame({"feature": ["a"], "low": [1]}, index=[7]),
        lambda rows, was: rows["a"] > 0,
    ],
    ids=["a limit", "sections", "a frame", "a function"],
)
def test_constraint_is_an_object_a_text_or_a_file(source):
    with pytest.raises(InputError, match=r"(?s)constraints: .* is not a constraint; give mcce.allow\(...\), mcce.rule"):
        read(source)
    with pytest.raises(InputError, match=r"(?s)constraints, entry 0: .* is not a constraint; give mcce.allow"):
        read([source])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (["a > 1", 7], "constraints, entry 1: 7 is not a constraint; give mcce.allow"),
        ([["a > 1"]], "entry 0: .* is a list; give one flat list"),
        ("a >", "rule 'a >', at its end: expected a number"),
    ],
)
def test_invalid_constraints_raise(source, said):
    with pytest.raises(InputError, match=said):
        read(source)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"allow": {"feature": "a", "lwo": 3}}, r"job, allow 1: allow has no 'lwo'; did you mean 'low'\?"),
        ({"alow": []}, r"job: there is no 'alow'; did you mean 'allow'\?"),
        ({"allow": [{"low": 3}]}, "job, allow 1: allow lacks 'feature'; it has 'low'"),
        ({"only": [{"features": ["a"]}]}, "only 1: only lacks 'id'"),
        ({"allow": 3}, "job: allow is 3; give a list of tables"),
        ({"allow": [3]}, "allow 1: 3 is not a table; give the fields of allow by name"),
        ({"rule": "a >"}, "job, rule 1: rule 'a >', at its end: expected a number"),
        ({"allow": [{"feature": ["a"], "direction": "up"}]}, "direction of .* is 'up'"),
        ([3], r"job: \[3\] has no sections; give them, for example \[\[allow\]\]"),
    ],
)
def test_invalid_sections_of_a_file_raise(content, said):
    with pytest.raises(InputError, match=said):
        read_sections(content, "job")


def test_rule_of_a_section_may_be_a_text():
    assert read_sections({"rule": ["a < 9"]}, "job") == [mcce.rule("a < 9")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", "[[allow]\n", "'a.toml' is not a TOML file"),
        ("a.json", "{", "'a.json' is not a JSON file"),
        (
            "a.json",
            '{"rule": [{"sais": "a > 1"}]}',
            r"constraints of a.json, rule 1: rule has no 'sais'; did you mean 'says'\?",
        ),
        ("a.toml", '[[rule]]\nsays = "a ="', "constraints of a.toml, rule 1: rule 'a =', at character 3"),
    ],
)
def test_unreadable_file_is_named(tmp_path, name, text, said):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read(tmp_path / name)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"the constraints in 'no.toml' cannot be read"):
        read(tmp_path / "no.toml")
    with pytest.raises(InputError, match=r"read from \.toml and \.json files; got 'a.yaml'"):
        read(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"low": 0, "step": 500, "direction": "increase"}, "at least 0, in steps of 500, may only rise"),
        ({"low": 1, "high": 2.5}, "from 1 to 2.5"),
        (
            {"high": pd.Timestamp("2024-05-31"), "max_step": pd.Timedelta("30 days")},
            "at most 2024-05-31, changes by at most 30 days",
        ),
        ({"levels": ["a"], "direction": "none"}, "only 'a', stays as it is"),
        ({"levels": ["a", "b"], "never": {"c"}}, "one of 'a', 'b', never 'c'"),
        ({"max_step": np.int64(2), "direction": "decrease"}, "may only fall, changes by at most 2"),
        ({"max_share": 0.125, "missing": False}, "changes by at most 12.5% of its range, may not become missing"),
    ],
)
def test_repr_of_a_constraint_is_a_sentence(said, words):
    found = str(mcce.allow("x", **said))
    assert found.replace(" 00:00:00", "") == f"x: {words}"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({}, r"allow\('x'\) sets no limit; give at least one of low"),
        ({"direction": "increas"}, r"direction of 'x' is 'increas'; did you mean 'increase'\?"),
        ({"low": 3, "high": 2}, "low of 'x' is 3, above its high, 2"),
        ({"low": np.nan}, "low of 'x' is nan; give a number"),
        ({"high": True}, "high of 'x' is True; give a number"),
        ({"step": 0}, "step of 'x' is 0; it must be a positive number"),
        ({"step": np.inf}, "step of 'x' is inf; it must be a positive number"),
        ({"max_share": 1.5}, "max_share of 'x' is 1.5; it must be a number from 0 to 1"),
        ({"max_step": -1}, "max_step of 'x' is -1; it must be at least 0"),
        ({"missing": "no"}, "missing of 'x' is 'no'; give True or False"),
        ({"levels": "a"}, r"levels of 'x' is 'a'; give a list, for example \['a'\]"),
        ({"levels": []}, "levels of 'x' is empty"),
        ({"never": 3}, r"never of 'x' is 3; give a list, for example \[3\]"),
    ],
)
def test_empty_or_contradictory_arguments_raise(said, error):
    with pytest.raises(InputError, match=error):
        mcce.allow("x", **said)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"low": [1]}, "has no column 'feature'; it has 'low'"),
        ({"feature": ["a"], "hihg": [1]}, r"has a column 'hihg'; did you mean 'high'\?"),
        ({"feature": [None], "low": [1]}, "row 0 of the table of per_factual\\(\\) \\(factual 9\\) names no feature"),
        ({"feature": ["a"], "low": [None]}, "row 0 of the table .* \\(factual 9\\): mcce.allow\\('a'\\) sets no limit"),
        ({"feature": ["a"], "step": [-1]}, "row 0 of the table .* step of 'a' is -1"),
    ],
)
def test_table_of_bounds_is_checked_row_by_row(table, error):
    with pytest.raises(InputError, match=error):
        mcce.per_factual(pd.DataFrame(table, index=[9]))


def test_only_accepts_a_list_per_factual():
    assert mcce.only(pd.Series({3: ["a"]})) == mcce.only({3: ("a", "a")})
    assert str(mcce.only({3: []})) == "factual 3: nothing may change"
    with pytest.raises(InputError, match=r"only\(\) has 'a' for factual 3; give a list of features"):
        mcce.only({3: "a"})
    with pytest.raises(InputError, match=r"only\(\) takes a dict"):
        mcce.only(["a"])
    with pytest.raises(InputError, match="names a factual more than once"):
        mcce.only(pd.Series([["a"], ["b"]], index=[3, 3]))
    with pytest.raises(InputError, match=r"per_factual\(\) takes a DataFrame; got a dict"):
        mcce.per_factual({})


@pytest.mark.parametrize("digits", [401, 5001])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["low", "high", "max_step", "max_share", "step", "levels", "never"])
def test_numbers_outside_float_range_raise(name, sign, digits):
    size = sign * 10 ** (digits - 1)
    said = [size] if name in ("levels", "never") else size
    message = f"{name} of 'salary' is a whole number of about {digits} digits, more than a float holds; give a smaller"
    with pytest.raises(InputError, match=message):
        mcce.allow("salary", **{name: said})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.json", "[" * 5000 + "]" * 5000),
        ("deep.json", '{"a":' * 5000 + "1" + "}" * 5000),
        ("deep.json", '{"allow": ' + "[" * 500 + "]" * 500 + "}"),
        ("deep.toml", "a = " + "[" * 5000 + "]" * 5000),
        ("deep.toml", "a = " + "{a = " * 5000 + "1" + "}" * 5000),
        ("deep.toml", f"[[allow]]\nfeature.{'.'.join('a' * 5000)} = 1"),
        ("deep.toml", f"[[allow]]\nfeature = 'salary'\nlow.{'.'.join('a' * 5000)} = 1"),
    ],
    ids=lambda text: text[:12],
)
def test_excessively_nested_files_raise(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    message = rf"^'{name}' has lists or tables nested more than 20 deep; correct it there\.$"
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


def test_file_number_outside_float_range_raises(tmp_path):
    (tmp_path / "big.json").write_text(json.dumps({"allow": [{"feature": "salary", "low": 10**400}]}))
    with pytest.raises(
        InputError, match=r"^constraints of big.json, allow 1: low of 'salary' is a whole number of about"
    ):
        read(tmp_path / "big.json")


@pytest.mark.parametrize("name", ["a\0.toml", "a\0b.json"])
def test_file_name_with_a_nul_raises(name):
    with pytest.raises(InputError, match=r"is not a valid file name: it holds a NUL character; give another name"):
        read(name)


# ---------------------------------------------------------------- keys of many parts


@pytest.mark.parametrize("part", ["a", '"a b"', "'a.b'"])
@pytest.mark.parametrize(("begin", "dot", "end"), [("", ".", " = 1"), ("[", " . ", "]"), ("a = {", "\t.", " = 1}")])
def test_key_of_too_many_parts_raises_before_parsing(monkeypatch, part, begin, dot, end):
    """The time of parsing is quadratic in the number of parts."""
    parsed = []
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(text) or {})
    with pytest.raises(InputError, match="more than 20 deep"):
        parse_file(f'b = """\n."""\n{begin}{dot.join([part] * 21)}{end}', "TOML", "it")
    assert not parsed
    parse_file(f"{begin}{dot.join([part] * 20)}{end}", "TOML", "it")
    assert parsed


DOTTED = ".".join("a" * 100)


@pytest.mark.parametrize(
    "text",
    [
        f"says = '{DOTTED}'",
        f'says = "\\"{DOTTED}"',
        f'says = """\n\\"""{DOTTED}"""  # {DOTTED}',
        f"says = '''\n'{DOTTED}'''",
        f"'{DOTTED}' = [{', '.join(['1.5'] * 100)}]",
        "".join(f"a{i}.b.c = {i}.5\n" for i in range(100)),
    ],
)
def test_dots_in_texts_comments_and_numbers_are_not_nested_keys(text):
    assert parse_file(text, "TOML", "it") == tomllib.loads(text)


@pytest.mark.parametrize("text", ['"""' * 3 + '\\"""' * 50_000, "a" * 200_000, "'" * 99_999, '"\\' * 100_000])
def test_long_invalid_toml_raises(text):
    with pytest.raises(InputError, match="is not a TOML file"):
        parse_file(text, "TOML", "it")
