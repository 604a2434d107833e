import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce.table.spreadsheet import escape_formula, escape_formulas, unescape_formula

DTYPES = [object, "string", "category"]
try:
    import pyarrow as pa

    ARROW = pd.ArrowDtype(pa.string())
    DTYPES += ["string[pyarrow]", ARROW, pd.CategoricalDtype(pd.Index(["plain"], dtype=ARROW))]
except ImportError:
    pass
FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "=", "-", "'=1+1", "''@a"]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_formulas_are_escaped(text, dtype):
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = pd.CategoricalDtype(pd.Index([text, "plain"], dtype=dtype.categories.dtype))
    table = pd.DataFrame({text: pd.Series([text, "plain", None], dtype=dtype)})
    safe = escape_formulas(table)
    assert safe.columns.tolist() == ["'" + text]
    assert safe.iloc[:2, 0].tolist() == ["'" + text, "plain"]
    assert safe.iloc[2, 0] is None or pd.isna(safe.iloc[2, 0])
    assert table.iloc[0, 0] == text
    assert unescape_formula("'" + text) == text


def test_default_text_of_pandas_is_escaped():
    table = pd.DataFrame({"text": ["=1+1", "plain"]})  # object, or Arrow's strings from pandas 3 on
    assert escape_formulas(table)["text"].tolist() == ["'=1+1", "plain"]


def test_numbers_stay_numbers():
    spelled = ["-5", "+1,5", "-1.000,50", "-1e-3", "-12%"]
    table = pd.DataFrame({"spelled": spelled, "number": np.arange(-2.0, 3.0), "mixed": [-1, -2.5, "a", None, True]})
    table["grouped"] = ["-1 234,5", "-1\u00a0234", "-1'234", "+49 12 34", "-1,234.5"]
    table["level"] = pd.Categorical(np.arange(-2.0, 3.0))
    pd.testing.assert_frame_equal(escape_formulas(table), table)


def test_negative_duration_is_escaped():
    table = pd.DataFrame({"wait": pd.to_timedelta(["-1 days", "2 days"])})
    assert escape_formulas(table)["wait"].tolist() == [f"'{pd.Timedelta('-1 days')}", pd.Timedelta("2 days")]


@given(st.text(alphabet="'=+-@\ta1,. ", max_size=6))
def test_every_text_is_restored_and_never_executed(text):
    escaped = escape_formula(text)
    assert unescape_formula(escaped) == text
    is_number = "1" in escaped and set(escaped[1:]) <= set("1.,' ")
    assert is_number or not escaped.startswith(tuple("=+-@\t"))


def test_result_is_escaped_by_default():
    X = pd.DataFrame({"=cost": [-1.0, -2.0, 3.0, 4.0] * 10, "who": ["=HYPERLINK(1)", "@b", "c", "d"] * 10})
    found = mcce.MCCE(lambda rows: rows["=cost"] > 0, decision=True, fixed=["who"], random_state=1).fit(X)
    found = found.explain(X.head(2).set_axis(["=A1", "b"]), n_samples=50)
    assert len(found) == 0  # no other row has their level; the levels are those of the factuals
    found = mcce.MCCE(lambda rows: rows["who"] == "=HYPERLINK(1)", decision=True, random_state=1).fit(X)
    found = found.explain(X.iloc[1:3].set_axis(["=A1", "b"]), n_samples=50)
    plain = found.to_csv(spreadsheet_safe=False)
    safe = pd.read_csv(io.StringIO(found.to_csv()))
    assert ",=HYPERLINK(1)," in plain
    assert safe["who"].tolist() == ["'=HYPERLINK(1)"] * 2
    assert safe["id"].tolist() == ["'=A1", "b"]
    assert safe["'=cost"].dtype == float
