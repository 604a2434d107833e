"""Command line messages name options as typed and constraints as in a file."""

from __future__ import annotations

import contextlib
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.cli import main
from mcce.cli.models import train_model
from mcce.cli.wording import COMMAND_LINE
from mcce.exceptions import MCCEWarning
from mcce.samplers import CartSampler
from mcce.wording import Either, Parameter, PythonOnly, Setting, Value, Values, call, entry
from tests.python_syntax import OF_FILES, find_python

OPTIONS: dict[str, str] = {  # calls of `mcce explain` that raise or warn
    "wanted nobody has": "--decision 900,1000",
    "wanted upside down": "--decision 9,1",
    "wanted empty": "--decision [1,1)",
    "wanted no class": "--decision maybe",
    "of": "--of yes",
    "fixed": "--fixed agee",
    "fixed twice": "--fixed age,age",
    "all fixed": "--fixed age,job,income,town,since",
    "sampler": "--sampler carrt",
    "sampler of another kind": "--sampler norm",
    "sampler of nothing": "--sampler agee=cart,*=cart",
    "sampler without the rest": "--sampler income=cart",
    "min_donors": "--min-donors 100000",
    "min_donors of a sampler without": "--min-donors 5 --sampler *=cart,income=norm",
    "generator": "--generator vinee",
    "generator and settings": "--generator vine --min-donors 5",
    "generator and order": "--generator vine --visit-sequence correlation",
    "visit_sequence": "--visit-sequence dta",
    "visit_sequence of one": "--visit-sequence income",
    "visit_sequence of a fixed one": "--fixed age --visit-sequence age,job,income,town,since",
    "n_samples": "--n-samples 1000000000000",
    "floor": "--sparse --floor 1.5",
    "caution": "--sparse --caution -1",
    "diverse and auto": "--diverse --n-counterfactuals 3 --n-samples auto",
    "measures": "--measures gowerr",
    "measures twice": "--measures L0,L0",
    "measures without sparse": "--measures plausibility",
    "floor without sparse": "--floor 0.2",
    "caution without sparse": "--caution 0.2",
    "diverse": "--diverse",
    "weights": "--feature-weights agee=2",
    "weights negative": "--feature-weights income=-2",
    "weights all 0": "--feature-weights age=0,job=0,income=0,town=0,since=0",
    "max_gower": "--max-gower -1",
    "robust too large": "--robust 3 --noise 0.02",
    "noise": "--noise 3",
    "noise of levels": "--noise job=0.1 --robust 0.9",
    "kinds": "--kinds age=numbr",
    "kinds of nothing": "--kinds agee=numeric",
    "labels": "--labels agee=Age",
    "labels alike": "--labels age=Age,income=Age",
    "units": "--units job=EUR",
    "formats": "--formats income=abc",
    "formats of dates": "--formats income=%d.%m.%Y",
    "language": "--letters out --language xx",
    "allow_missing": "--allow-missing agee",
    "random_state": "--random-state 1" + "0" * 1001,
    "n_jobs": "--n-jobs 0",
}
CONSTRAINTS = {  # invalid files of constraints
    "constraints: nothing": "",
    "constraints: unknown": "[[alow]]\nfeature = 'age'",
    "constraints: of nothing": "[[allow]]\nfeature = 'agee'\nlow = 3",
    "constraints: without anything": "[[allow]]\nfeature = 'income'",
    "constraints: a field": "[[allow]]\nfeature = 'income'\nlowest = 3",
    "constraints: low above high": "[[allow]]\nfeature = 'income'\nlow = 9\nhigh = 1",
    "constraints: levels of numbers": "[[allow]]\nfeature = 'income'\nlevels = ['a']",
    "constraints: levels unknown": "[[allow]]\nfeature = 'job'\nlevels = ['pilott']",
    "constraints: levels a text": "[[allow]]\nfeature = 'job'\nlevels = 'pilot'",
    "constraints: levels empty": "[[allow]]\nfeature = 'job'\nlevels = []",
    "constraints: missing": "[[allow]]\nfeature = 'job'\nmissing = 'yes'",
    "constraints: step of dates": "[[allow]]\nfeature = 'since'\nstep = 3",
    "constraints: max_step of dates": "[[allow]]\nfeature = 'since'\nmax_step = 3",
    "constraints: max_share": "[[allow]]\nfeature = 'income'\nmax_share = true",
    "constraints: star": "[[allow]]\nfeature = '*'\nlow = 3",
    "constraints: no table": "allow = [3]",
    "constraints: no list": "allow = 3",
    "constraints: rule": "[[rule]]\nsays = 'income >='",
    "constraints: rule of text": "[[rule]]\nsays = 'job >= 3'",
    "constraints: rule of a number": "[[rule]]\nsays = 3",
    "constraints: copies": "no_copies = 'yes'",
    "constraints: k_anonymous": "[[k_anonymous]]\nk = 100000\nkeys = ['age']",
    "constraints: k_anonymous of a text": "[[k_anonymous]]\nk = 5\nkeys = 'age'",
    "constraints: k_anonymous of a flag": "[[k_anonymous]]\nk = true\nkeys = ['age']",
    "constraints: contradiction": "[[rule]]\nsays = 'income >= 1000 + age'\n[[rule]]\nsays = 'income <= 1'",
}
FILES = {
    "an identifier": "--train names.csv --explain names.csv",
    "a level of one row": "--train rare.csv",
    "facts": "--train facts.csv --explain facts.csv",
    "a sum": "--sparse --train sum.csv --explain sum.csv",
    "far outside": "--explain far.csv",
    "an unknown level": "--explain unknown.csv",
    "a column lacks": "--explain lacks.csv",
    "text for numbers": "--explain text.csv",
}
PROVOKED = OPTIONS | dict.fromkeys(CONSTRAINTS, "--constraints limits.toml") | FILES


def table(n: int = 250) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"age": rng.integers(20, 70, n), "job": rng.choice(["pilot", "clerk"], n)})
    made["income"] = np.round(rng.normal(50, 20, n), 1)
    made["town"] = rng.choice(["Oslo", "Bergen"], n)
    made["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    made["loan"] = np.where(made["income"] > 50, "yes", "no")
    return made


def tables_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables of `FILES` by name."""
    return {
        "names": rows.assign(passport=[f"P{i:05}" for i in rows.index]),
        "rare": rows.assign(town=["Rome", *rows["town"][1:]]),
        "facts": rows.assign(previous_default=rows.index % 2, sex=np.where(rows.index % 3, "f", "m")),
        "sum": rows.assign(rent=rows["age"] % 17, total=rows["age"] % 17 + rows["income"]),
        "far": rows.assign(income=1e7, loan="no").head(3),
        "unknown": rows.assign(town="Rome").head(3),
        "lacks": rows.drop(columns="town").head(3),
        "text": rows.assign(income="much").head(3),
    }


@pytest.fixture(scope="module")
def say(tmp_path_factory):
    """Return a function that returns the command line output for a provoked message."""
    folder = tmp_path_factory.mktemp("wording")
    rows = table()
    rows.to_csv(folder / "train.csv", index=False)
    rows[rows["loan"] == "no"].drop(columns="loan").head(5).to_csv(folder / "new.csv", index=False)
    for name, made in tables_of(rows).items():
        made.to_csv(folder / f"{name}.csv", index=False)
    trained: dict[tuple[str, ...], Any] = {}
    shown: list[str] = []

    def train(X, *given):
        key = (*X.columns, *X.select_dtypes("category"))
        if key not in trained:
            trained[key] = train_model(X, *given)[0]
        return trained[key], X

    @cache
    def said(name):
        options = PROVOKED[name].split()
        if name in CONSTRAINTS:
            (folder / "limits.toml").write_text(CONSTRAINTS[name])
        given = {"--train": "train.csv", "--explain": "new.csv", "--decision": "yes"}
        options += [part for pair in given.items() if pair[0] not in options for part in pair]
        shown.clear()
        with contextlib.suppress(SystemExit), warnings.catch_warnings():
            warnings.simplefilter("always", MCCEWarning)
            main(["explain", "--response", "loan", "--n-samples", "20", *options])
        return [text for text in shown if text.startswith(("error", "warning"))]

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("mcce.cli.fitting.train_model", train)
        patch.setattr("mcce.cli.notify", lambda text: shown.append(" ".join(text.split())))
        yield said


@pytest.mark.nightly
def test_command_line_messages_contain_no_python(say):
    said = {name: say(name) for name in PROVOKED}
    messages = {text for texts in said.values() for text in texts}
    assert len(messages) >= 42
    assert [name for name, texts in said.items() if not texts] == []
    found = {text: python for text in messages if (python := find_python(text, OF_FILES))}
    assert found == {}


@pytest.mark.parametrize(
    ("provoked", "remedy"),
    [
        ("facts", "Name them in --fixed age,...; or, if they may change, limit their values, as in [[allow]] with"),
        ("facts", '[[allow]] with feature = "age" in the file of --constraints.'),
        ("a level of one row", 'as in [[allow]] with feature = "town" and never = ["Rome"].'),
        ("min_donors", "cart would draw 'since' from 250 training rows, and --min-donors is 100000"),
        ("visit_sequence", "--visit-sequence names 'dta', which is not a column of the table"),
        ("weights negative", "--feature-weights of 'income' is -2.0; give a number of at least 0."),
        ("n_jobs", "--n-jobs is 0; it must be a whole number other than 0 (-1 for all cores), or nothing for 1."),
        ("random_state", "--random-state is a whole number of about"),
        ("constraints: missing", "missing of 'job' is 'yes'; give true or false."),
        ("constraints: k_anonymous of a text", 'as in keys = ["age", "town"].'),
        ("constraints: levels a text", "give a list, for example ['pilot']."),
    ],
)
def test_fixes_are_options_or_lines_of_a_file(say, provoked, remedy):
    said = say(provoked)
    assert any(remedy in text for text in said), said
    assert [find_python(text, OF_FILES) for text in said if find_python(text, OF_FILES)] == []


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Parameter("X"), "the table"),
        (Parameter("n_samples"), "--n-samples"),
        (Parameter("random_state"), "--random-state"),
        (Parameter("min_leaf"), "min_leaf"),  # without a counterpart: the bare name
        (Setting("sparse", True), "--sparse"),
        (Setting("skip_bad", True), "--skip-bad"),
        (Setting("n_samples", 5000), "--n-samples 5000"),
        (Setting("fixed", ["age", "a b"]), "--fixed age,'a b'"),
        (Setting("feature_weights", {"age": 2}), "--feature-weights age=2"),
        (Either(Setting("condition_on_decision", False), "another decision"), "another decision"),
        (Either(Setting("sparse", False), "whole rows"), "whole rows"),
        (Value(None), "nothing"),
        (Value(True), "true"),
        (Values(["a", 1]), "'a', 1"),
        (Value(CartSampler(min_leaf=20)), "cart"),
        (Value(CartSampler), "cart"),
        (call("mcce.allow", "*", missing=True), '[[allow]] with feature = "*" and missing = true'),
        (call("mcce.rule", "a <= b"), '[[rule]] with says = "a <= b"'),
        (call("mcce.no_copies"), "[[no_copies]]"),
        (call("mcce.bootstrap_refits"), "bootstrap_refits"),
        (PythonOnly(" Use X.iloc."), ""),
        (entry("feature_weights", "age"), "--feature-weights of 'age'"),
    ],
)
def test_message_parts_on_the_command_line(part, words):
    assert InputError("give ", part).format_for(COMMAND_LINE) == f"give {words}"
