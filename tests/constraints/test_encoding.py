"""Values in constraints: steps, dates, durations and levels as users write them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, Schema
from mcce.constraints import resolve
from tests.constraints.reader import people

SCHEMA = Schema.from_data(people())


def test_decimal_steps_reach_decimal_values():
    frame = pd.DataFrame({"a": [0.6, 0.7, 0.8, 1000.7, 1000.8]})
    schema = Schema.from_data(frame)
    values = schema.encode(frame).matrix
    near = resolve(mcce.allow("a", max_step=0.1), schema)
    pairs = [[near.hold(values[[i]], values[[j]])[0] for i in range(5)] for j in range(5)]
    assert np.array(pairs).astype(int).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 0, 1, 1],
        [0, 0, 0, 1, 1],
    ]


@pytest.mark.parametrize("text", ["now", "today", "Now", " TODAY ", "10:00", "9:30 pm", "10:00:00.123456"])
def test_date_that_depends_on_the_current_day_raises(text):
    message = "cannot be read as a date of 'hired' .it depends on the current day.*; write it as in '2024-05-31'"
    for said in (f"hired >= '{text}'", mcce.allow("hired", low=text), mcce.allow("hired", never=[text])):
        with pytest.raises(InputError, match=message):
            resolve([said], SCHEMA)
    period = Schema.from_data(pd.DataFrame({"hired": pd.period_range("2020-01", periods=5, freq="M")}))
    with pytest.raises(InputError, match=message):
        resolve([f"hired >= '{text}'"], period)


def test_duration_may_look_like_a_time():
    waited = Schema.from_data(pd.DataFrame({"waited": pd.to_timedelta([1, 20, 30], unit="h")}))
    assert resolve([mcce.allow("waited", low="10:00:00")], waited) is not None


class CountedText(str):
    """A text that counts its comparisons."""

    n_compared = 0

    def __eq__(self, other):
        CountedText.n_compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("name", ["levels", "never"])
def test_many_levels_are_looked_up_in_linear_time(name):
    frame = pd.DataFrame({"place": [f"p{i}" for i in range(2_000)]})
    CountedText.n_compared = 0
    found = resolve(
        [mcce.allow("place", **{name: [CountedText(f"p{i}") for i in range(500)]})], Schema.from_data(frame)
    )
    assert CountedText.n_compared <= 10 * 500
    assert sum(found.limits[0].levels) == (500 if name == "levels" else 1_500)


def test_level_is_matched_by_value_before_text_for_any_type():
    day, values = pd.Timestamp("2020-01-01"), [True, 1.5, "1.5", "a"]
    schema = Schema.from_data(
        pd.DataFrame(
            {"any": pd.Categorical(values), "day": pd.Categorical([day, day, day, day + pd.Timedelta(days=1)])}
        )
    )

    def allowed(name, level):
        limit = resolve([mcce.allow(name, levels=[level])], schema).limits[0]
        return [each for each, kept in zip(schema.features[schema.position(name)].levels, limit.levels) if kept]

    assert allowed("any", "1.5") == ["1.5"]
    assert allowed("any", np.float64(1.5)) == [1.5]
    assert allowed("any", "True") == [True]
    assert allowed("day", np.datetime64("2020-01-01")) == [day]
    for unknown in (1, ["a"], ([],)):
        with pytest.raises(InputError, match="is not a level of 'any'"):
            allowed("any", unknown)
