"""Strategies of tables: every dtype, unusual names, unusual levels, extreme numbers, missing values.

Hypothesis draws the size, the names and the kinds of the columns, which shrink; cells come from a drawn seed.
"""

import datetime

import numpy as np
import pandas as pd
from hypothesis import strategies as st

NAMES = ["*", "", "a b", "it's", 'quo"te', "two\nlines", "æ😀", "<b>x</b>", "{x}", "$m$", "a,b", " pad"]
NAMES += ["if", "was", "nan", "id", "rank", "draw", "index", "level_0", "decision", "prediction"]
NAMES += ["L0", "gower", "missing", "below_floor", "y"]
NAMES += [0, 1, -7, 1.5, ("a", 1), ("a", "b"), datetime.date(2020, 1, 1)]
TEXTS = ["a", "b,c", 'say "hi"', "two\nlines", "😀", "", "<script>x</script>"]
TEXTS += ["=1+1", " a", "NA", "nan", "*", "None", "1"]
SCHOOLS = ["low", "mid", "high", "never seen"]
LABELS = {
    "places": pd.RangeIndex,
    "texts": lambda n: pd.Index([f"{TEXTS[i % len(TEXTS)]}{i // len(TEXTS) or ''}" for i in range(n)]),
    "numbers": lambda n: pd.Index(np.arange(n) / 2 - 3, name="rank"),
    "days": lambda n: pd.date_range("2020-02-28", periods=n, name="id"),
    "mixed": lambda n: pd.Index([(i, f"x{i}", i + 0.5, b"b%d" % i)[i % 4] for i in range(n)], dtype=object),
    "spans": lambda n: pd.interval_range(0, n, n),
    "tuples": lambda n: pd.Index([("a", i) for i in range(n)], tupleize_cols=False),
}


def whole(dtype, low, high):
    return lambda n, rng: pd.Series(rng.integers(low, high, n)).astype(dtype)


def chosen(values):
    return lambda n, rng: pd.Series(rng.choice(np.array(values, dtype=float), n))


def texts(n, rng):
    return pd.Series(rng.choice(rng.permutation(TEXTS)[: rng.integers(1, 7)], n), dtype=object)


def days(n, rng):
    return pd.Series(pd.Timestamp("2019-12-30") + pd.to_timedelta(rng.integers(0, 40, n), unit="D"))


def levels(names, ordered=False):
    def make(n, rng):
        codes = rng.integers(0, max(1, len(names) - 1), n) if len(names) else np.full(n, -1)
        return pd.Series(pd.Categorical.from_codes(codes, categories=names, ordered=ordered))

    return make


# by name: the cells of a column
COLUMNS = {
    "normal": lambda n, rng: pd.Series(rng.normal(size=n)),
    "skewed": lambda n, rng: pd.Series(np.round(rng.lognormal(3, 2, n), 2)),
    "float32": lambda n, rng: pd.Series(rng.normal(size=n).astype(np.float32)),
    "zeros": chosen([-0.0, 0.0]),
    "zeros and ones": chosen([-0.0, 0.0, 1.0, 1.0]),
    "huge": chosen([-1e149, 3.0, 1e149, 2e148]),
    "tiny": chosen([0.0, 1e-140, 3e-140]),
    "constant": chosen([7.25]),
    "close together": lambda n, rng: pd.Series(1e15 + rng.integers(0, 60, n) / 8),
    "far apart": chosen([0.0, 1e-9, 1.0, 1e9]),
    "int8": whole("int8", -128, 128),
    "int64": whole("int64", -3, 4),
    "big int": whole("int64", 2**52, 2**52 + 9),
    "uint64": whole("uint64", 0, 1000),
    "Int64": whole("Int64", -5, 50),
    "Float32": lambda n, rng: pd.Series(rng.normal(size=n).astype(np.float32)).astype("Float32"),
    "arrow int": whole("int64[pyarrow]", 0, 9),
    "arrow day": lambda n, rng: days(n, rng).astype("date32[day][pyarrow]"),
    "arrow text": lambda n, rng: texts(n, rng).astype("string[pyarrow]"),
    "bool": lambda n, rng: pd.Series(rng.random(n) < 0.3),
    "boolean": lambda n, rng: pd.Series(rng.random(n) < 0.3).astype("boolean"),
    "texts": texts,
    "str": lambda n, rng: texts(n, rng).astype("str"),
    "one text": lambda n, rng: pd.Series(["only"] * n, dtype=object),
    "mixed": lambda n, rng: pd.Series([("a", 1, 2.5, b"x")[i] for i in rng.integers(0, 4, n)], dtype=object),
    "category": levels(["z", "b,", "", "<b>", "never"]),
    "whole levels": levels([3, 1, 2]),
    "truths": levels([True, False]),
    "intervals": levels(pd.interval_range(0, 4)),
    "day levels": levels(pd.date_range("2020-01-01", periods=3)),
    "no levels": levels([]),
    "ordered": levels(SCHOOLS, ordered=True),
    "ordered numbers": levels([10, 5, 1], ordered=True),
    "days": days,
    "instants": lambda n, rng: days(n, rng) + pd.to_timedelta(rng.integers(0, 10**15, n), unit="ns"),
    "zoned": lambda n, rng: days(n, rng).dt.tz_localize("Europe/Oslo"),
    "before 1677": lambda n, rng: pd.Series(rng.integers(-500_000, -150_000, n).astype("M8[D]").astype("M8[s]")),
    "durations": lambda n, rng: pd.Series(pd.to_timedelta(rng.integers(-9, 9, n), unit="h")),
    "months": lambda n, rng: days(n, rng).dt.to_period("M"),
    "Python's dates": lambda n, rng: pd.Series([datetime.date(1500 + int(i), 2, 3) for i in rng.integers(0, 9, n)]),
    "nothing": lambda n, rng: pd.Series(np.full(n, np.nan)),
    "no objects": lambda n, rng: pd.Series([None] * n, dtype=object),
}


@st.composite
def tables(draw):
    """Draw a table of two to six columns and mostly 15 to 50 rows, some values missing where the dtype holds them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.one_of(st.integers(15, 50), st.integers(15, 50), st.integers(15, 50), st.integers(2, 9)))
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=2, max_size=6))
    names = draw(st.permutations(NAMES))[: len(kinds)]
    columns = []
    for kind in kinds:
        column = COLUMNS[kind](n, rng).reset_index(drop=True)
        share = draw(st.sampled_from([0.0, 0.0, 0.1, 0.6]))
        holds_missing = column.dtype.kind not in "iub" or not isinstance(column.dtype, np.dtype)
        columns.append(column.mask(rng.random(n) < share) if share and holds_missing else column)
    table = pd.concat(columns, axis=1)
    table.columns = pd.Index(names, tupleize_cols=False)
    table.index = LABELS[draw(st.sampled_from(list(LABELS)))](n)
    return table


@st.composite
def planted(draw, table):
    """Add whole numbers and their total, which a few rows may break; return the table and the equation."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first, second = rng.integers(0, 9, len(table)), rng.integers(0, 9, len(table))
    total = first + second + (rng.random(len(table)) < 0.005) * 100
    return table.assign(**{"part 1": first, "part 'two'": second, "total": total}), "total == `part 1` + `part 'two'`"
