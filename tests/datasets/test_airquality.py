"""Common properties of the data sets, and airquality compared with R."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pandas as pd
import pytest

from mcce import datasets
from mcce.datasets import load_airquality, load_loans
from mcce.exceptions import InputError


def test_modules_have_examples():
    """`tests/test_docs.py` runs them with all others."""
    modules = pkgutil.iter_modules(datasets.__path__, "mcce.datasets.")
    tests = [test for m in modules for test in doctest.DocTestFinder().find(importlib.import_module(m.name))]
    assert sum(len(test.examples) for test in tests) > 10


def test_airquality_matches_r():
    air = load_airquality()
    assert list(air.X) == ["Solar.R", "Wind", "Temp", "Month", "Day"]
    assert (len(air.X), air.y.name, air.fixed, air.desired) == (153, "Ozone", ["Wind"], None)
    assert (air.y.isna().sum(), air.X["Solar.R"].isna().sum(), air.X.isna().sum().sum()) == (37, 7, 7)
    # R: colMeans(airquality, na.rm = TRUE)
    assert air.y.mean() == pytest.approx(42.12931034)
    assert air.X.mean().tolist() == pytest.approx([185.93150685, 9.95751634, 77.88235294, 6.99346405, 15.80392157])
    assert air.X.iloc[0].tolist() == [190, 7.4, 67, 5, 1]


def test_airquality_without_missing_values():
    air = load_airquality(dropna=True)
    assert len(air.X) == len(air.y) == 111
    assert air.X.index.equals(pd.RangeIndex(111))
    assert [str(d) for d in air.X.dtypes] == ["int64", "float64", "int64", "int64", "int64"]
    assert str(air.y.dtype) == "int64"
    assert air.y.mean() == pytest.approx(42.0990991)  # R: mean(na.omit(airquality)$Ozone)


def test_airquality_has_no_desired_value():
    with pytest.raises(InputError, match=r"'airquality' has no desired value: its response 'Ozone' is numeric"):
        load_airquality().wanted  # noqa: B018


def test_repr():
    assert repr(load_airquality()).startswith("Dataset 'airquality': 153 rows, 5 features (5 numeric, 0 categorical)")
    text = repr(load_loans(100))
    assert "100 rows, 10 features (5 numeric, 5 categorical)" in text
    assert "response 'default', wanted False (" in text
    assert "fixed 'age', 'sex'" in text
