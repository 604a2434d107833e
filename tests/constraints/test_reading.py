from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcce
from mcce import InputError
from mcce.constraints import read
from mcce.constraints.reading import parse_file

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


def test_a_toml_file_says_what_python_says(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(TOML, encoding="utf-8")
    for source in (path, str(path)):
        found = read(source)
        assert [found[0], found[2], found[3]] == [SAID[0], SAID[2], SAID[3]]
        assert list(map(str, found)) == [str(each).replace("at most '30 days'", "at most 30 days") for each in SAID]


values = st.one_of(st.integers(-5, 5), st.floats(-5, 5), st.sampled_from([pd.Timestamp("2020-02-03 04:05"), "a"]))


@st.composite
def constraints(draw):
    kind = draw(st.integers(0, 3))
    if kind == 0:
        options = {
            "low": st.just(-9),
            "high": st.floats(0, 5),
            "levels": st.lists(values, min_size=1),
            "never": st.lists(values),
            "direction": st.sampled_from(["increase", "decrease", "none"]),
            "max_step": st.sampled_from([1, 2.5, pd.Timedelta(days=3)]),
            "max_share": st.floats(0, 1),
            "step": st.sampled_from([0.1, 500]),
            "missing": st.booleans(),
        }
        chosen = draw(st.lists(st.sampled_from(sorted(options)), min_size=1, unique=True))
        return mcce.allow(draw(st.sampled_from(["a", "b", 3])), **{name: draw(options[name]) for name in chosen})
    if kind == 1:
        return mcce.rule(
            draw(st.sampled_from(["a > 1", "if b == 'x y' then a < 2"])), name=draw(st.none() | st.just("n"))
        )
    if kind == 2:
        return mcce.only({draw(st.integers(0, 9)): draw(st.lists(st.sampled_from("abc"), unique=True))})
    return mcce.per_factual(
        pd.DataFrame({"feature": ["a", "b"], "low": [1, np.nan], "never": [None, [2]]}, index=[7, 7])
    )


@given(st.lists(constraints(), max_size=4))
@settings(max_examples=40)
def test_what_is_written_as_a_dict_is_read_again(said):
    written = [each.to_dict() for each in said]
    again = read(json.loads(json.dumps(written)))
    assert sorted(str(each) for each in again) == sorted(part for each in said for part in str_parts(each))
    assert [each.to_dict() for each in again if not hasattr(each, "by_id")] == [
        each.to_dict() for each in said if not hasattr(each, "by_id")
    ]


def str_parts(said):
    """Several factuals of one constraint come back one by one."""
    return str(said).split("; ") if hasattr(said, "by_id") else [str(said)]


def test_a_list_holds_anything_that_is_a_constraint():
    def positive(rows, was):
        return rows["a"] > 0

    table = pd.DataFrame({"feature": ["a"], "low": [1]}, index=[7])
    found = read(
        [mcce.allow("a", low=0), {"feature": "b", "missing": True}, "a > b", positive, table, {"rule": ["a < 9"]}]
    )
    assert list(map(str, found)) == [
        "a: at least 0",
        "b: may become missing",
        "a > b",
        "positive",
        "factual 7: a: at least 1",
        "a < 9",
    ]
    assert read("a > b") == [mcce.rule("a > b")]
    assert read(None) == read({}) == []
    with pytest.raises(InputError, match="the rule 'positive' is a function, which cannot be written down"):
        found[3].to_dict()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"feature": "a", "lwo": 3}, r"constraints: allow has no 'lwo'; did you mean 'low'\?"),
        ({"alow": []}, r"constraints: there is no 'alow'; did you mean 'allow'\?"),
        ({"allow": [{"low": 3}]}, "constraints, allow 1: allow lacks 'feature'; it has 'low'"),
        ({"only": [{"features": ["a"]}]}, "only 1: only lacks 'id'"),
        ({"allow": 3}, "constraints: allow is 3; give a list of dicts"),
        ({"allow": [3]}, "allow 1: 3 is not a dict; give the fields of allow by name"),
        ([{"feature": "a", "low": 3}, 7], "constraints, entry 1: 7 is not a constraint; give mcce.allow"),
        ([["a > 1"]], "entry 0: .* is a list; give one flat list"),
        ({"says": "a >"}, "constraints: rule 'a >', at its end: expected a number"),
        ({"feature": ["a"], "direction": "up"}, "direction of .* is 'up'"),
    ],
)
def test_what_is_no_constraint_is_refused(source, said):
    with pytest.raises(InputError, match=said):
        read(source)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", "[[allow]\n", "'a.toml' is no TOML file"),
        ("a.json", "{", "'a.json' is no JSON file"),
        (
            "a.json",
            '{"rule": [{"sais": "a > 1"}]}',
            r"constraints of a.json, rule 1: rule has no 'sais'; did you mean 'says'\?",
        ),
        ("a.toml", '[[rule]]\nsays = "a ="', "constraints of a.toml, rule 1: rule 'a =', at character 3"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, text, said):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path):
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
def test_a_constraint_reads_as_a_sentence(said, words):
    found = str(mcce.allow("x", **said))
    assert found.replace(" 00:00:00", "") == f"x: {words}"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({}, r"allow\('x'\) says nothing about it; give at least one of low"),
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
def test_what_says_nothing_or_too_much_is_refused(said, error):
    with pytest.raises(InputError, match=error):
        mcce.allow("x", **said)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"low": [1]}, "has no column 'feature'; it has 'low'"),
        ({"feature": ["a"], "hihg": [1]}, r"has a column 'hihg'; did you mean 'high'\?"),
        ({"feature": [None], "low": [1]}, "row 0 of the table of per_factual\\(\\) \\(factual 9\\) names no feature"),
        ({"feature": ["a"], "low": [None]}, "row 0 of the table .* \\(factual 9\\): mcce.allow\\('a'\\) says nothing"),
        ({"feature": ["a"], "step": [-1]}, "row 0 of the table .* step of 'a' is -1"),
    ],
)
def test_a_table_of_bounds_is_checked_row_by_row(table, error):
    with pytest.raises(InputError, match=error):
        mcce.per_factual(pd.DataFrame(table, index=[9]))


def test_only_takes_a_list_for_each_factual():
    assert mcce.only(pd.Series({3: ["a"]})) == mcce.only({3: ("a", "a")})
    assert str(mcce.only({3: []})) == "factual 3: nothing may change"
    with pytest.raises(InputError, match=r"only\(\) says 'a' of factual 3; give a list of features"):
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
def test_numbers_that_no_float_holds(name, sign, digits):
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
def test_files_that_are_nested_beyond_all_use(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    message = rf"^'{name}' has lists or tables more than 20 deep inside each other; correct it there\.$"
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


def test_a_number_of_a_file_that_no_float_holds(tmp_path):
    (tmp_path / "big.json").write_text(json.dumps({"allow": [{"feature": "salary", "low": 10**400}]}))
    with pytest.raises(
        InputError, match=r"^constraints of big.json, allow 1: low of 'salary' is a whole number of about"
    ):
        read(tmp_path / "big.json")


@pytest.mark.parametrize("name", ["a\0.toml", "a\0b.json"])
def test_a_name_with_a_nul_is_no_file(name):
    with pytest.raises(
        InputError, match=r"is no name of a file or folder: it holds a NUL character; give another name"
    ):
        read(name)


# ---------------------------------------------------------------- keys of many parts


@pytest.mark.parametrize("part", ["a", '"a b"', "'a.b'"])
@pytest.mark.parametrize(("begin", "dot", "end"), [("", ".", " = 1"), ("[", " . ", "]"), ("a = {", "\t.", " = 1}")])
def test_a_key_of_too_many_parts_is_refused_before_the_file_is_parsed(monkeypatch, part, begin, dot, end):
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
def test_dots_in_texts_comments_and_numbers_are_no_deep_key(text):
    assert parse_file(text, "TOML", "it") == tomllib.loads(text)


@pytest.mark.parametrize("text", ['"""' * 3 + '\\"""' * 50_000, "a" * 200_000, "'" * 99_999, '"\\' * 100_000])
def test_a_long_file_that_is_no_toml_is_refused(text):
    with pytest.raises(InputError, match="is no TOML file"):
        parse_file(text, "TOML", "it")
