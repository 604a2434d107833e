"""Canonical JSON and hashes, recomputed by the documented definition."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.records.canonical import canonical, cell, figure, from_json, to_json
from tests.records.problem import found


def test_hash_is_sha256_of_the_documented_form():
    record = found().record("a")
    rest = {name: record[name] for name in sorted(record) if name != "hash"}
    written = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert record["hash"] == hashlib.sha256(written.encode("utf-8")).hexdigest()


def test_values_become_json_values_with_nine_digits():
    values = [np.float32(0.1), pd.NaT, pd.NA, pd.Timedelta("1D"), pd.Period("2026-01"), np.str_("x"), (1, 2)]
    assert [cell(v) for v in values] == [float(np.float32(0.1)), None, None, "P1DT0H0M0S", "2026-01", "x", "(1, 2)"]
    assert figure(2 / 3) == 0.666666667
    assert figure(np.nan) is None


def test_non_json_values_raise():
    for value in (float("nan"), "\ud800"):
        with pytest.raises(InputError, match="cannot be written as JSON"):
            canonical({"a": value})


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        None,
        ["gower", "L0"],
        {"age": 2.0},
        (1.0, np.inf),
        [mcce.allow("debt", low=0, direction="increase"), mcce.rule("income <= 2 * was(income)")],
        mcce.Robust(noise=0.02, share=0.9),
        np.arange(3.0),
    ],
    ids=str,
)
def test_arguments_round_trip(value):
    written = json.loads(canonical(to_json(value, "it")))
    assert repr(from_json(written)) == repr(value)


def test_unstorable_argument_is_described_and_raises():
    written = to_json(lambda rows, own: 0, "measures")
    with pytest.raises(InputError, match="the argument measures was a function"):
        from_json(written)
