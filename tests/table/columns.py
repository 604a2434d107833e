"""Tables of one column, `c`, encoded by the schema of another."""

from __future__ import annotations

import datetime

import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.table import Schema

DAYS = [datetime.date(2020, 2, 29), datetime.date(1960, 1, 1)]


def one(values, dtype=None):
    return pd.DataFrame({"c": pd.Series(values, dtype=dtype)})


def encoded(train, new, kinds=None):
    schema = Schema.from_data(one(train), kinds)
    return schema.encode(one(new)).matrix[:, 0]


def refused(train, new, match, kinds=None):
    schema = Schema.from_data(one(train), kinds)
    with pytest.raises(InputError, match=match):
        schema.encode(one(new), "the factuals")
