import io

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.table.frames import without_formulas


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "=", "-"])
@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_what_a_spreadsheet_would_run_is_text(text, dtype):
    table = pd.DataFrame({text: pd.Series([text, "plain", None], dtype=dtype)})
    safe = without_formulas(table)
    assert safe.columns.tolist() == ["'" + text]
    assert safe.iloc[:2, 0].tolist() == ["'" + text, "plain"]
    assert safe.iloc[2, 0] is None or pd.isna(safe.iloc[2, 0])
    assert table.iloc[0, 0] == text


def test_numbers_stay_numbers():
    spelled = ["-5", "+1,5", "-1.000,50", "-1e-3", "-12%"]
    table = pd.DataFrame({"spelled": spelled, "number": np.arange(-2.0, 3.0), "mixed": [-1, -2.5, "a", None, True]})
    pd.testing.assert_frame_equal(without_formulas(table), table)


def test_a_result_is_written_safely_if_asked():
    X = pd.DataFrame({"=cost": [-1.0, -2.0, 3.0, 4.0] * 10, "who": ["=HYPERLINK(1)", "@b", "c", "d"] * 10})
    found = mcce.MCCE(lambda rows: rows["=cost"] > 0, decision=True, fixed=["who"], random_state=1).fit(X)
    found = found.explain(X.head(2).set_axis(["=A1", "b"]), n_samples=50)
    assert len(found) == 0  # no other row has their level; the levels are those of the factuals
    found = mcce.MCCE(lambda rows: rows["who"] == "=HYPERLINK(1)", decision=True, random_state=1).fit(X)
    found = found.explain(X.iloc[1:3].set_axis(["=A1", "b"]), n_samples=50)
    plain = found.to_csv()
    safe = pd.read_csv(io.StringIO(found.to_csv(spreadsheet_safe=True)))
    assert ",=HYPERLINK(1)," in plain
    assert safe["who"].tolist() == ["'=HYPERLINK(1)"] * 2
    assert safe["id"].tolist() == ["'=A1", "b"]
    assert safe["'=cost"].dtype == float
