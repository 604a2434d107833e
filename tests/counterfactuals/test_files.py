"""`to_frame` in files."""

import datetime
import io

import numpy as np
import pandas as pd
import pytest

import mcce
from tests.counterfactuals.results import by_hand, explained


def test_the_flat_table_holds_factuals_and_counterfactuals_in_turn():
    table = by_hand().to_frame()
    assert list(table)[:5] == ["id", "rank", "code", "salary", "home"]
    assert list(table["id"]) == ["ann", "ann", "ann", "bob", "bob", "cy"]
    assert list(table["rank"]) == [0, 1, 2, 0, 1, 0]
    assert list(table["code"]) == ["explained"] * 5 + ["already"]
    assert list(table["salary"]) == [68_000, 75_800, 72_000, 41_500, 41_500, 90_000]
    assert list(table["prediction"]) == [0.198, 0.0583, 0.0912, 0.12, 0.04, 0.01]
    assert list(table["L0"]) == [0, 1, 2, 0, 1, 0]
    assert table["plausibility"].isna().tolist() == [True, False, False, True, False, True]


def test_features_with_names_of_our_columns_keep_their_names():
    table = by_hand(names=("id", "L0")).to_frame()
    assert list(table)[:6] == ["id_", "rank", "code", "id", "L0", "prediction"]
    assert "L0_" in table
    assert list(by_hand(names=(3, "3")).to_frame())[3:5] == ["3", "3_"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_give_the_table_back(kind, tmp_path):
    _, _, result = explained()
    table = result.to_frame()
    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
        back = pd.read_csv(path, parse_dates=["since"])
        back = back.astype({"grade": table["grade"].dtype, "home": object, "code": object})
    else:
        table.to_parquet(path)
        back = pd.read_parquet(path)
    pd.testing.assert_frame_equal(back, table, check_dtype=False)


def test_any_dtype_and_index_can_be_written(tmp_path):
    """Periods, intervals, mixed types, extension dtypes, and labels of several types."""
    n = 60
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "period": pd.period_range("2020-01", periods=n, freq="M"),
            "bin": pd.cut(rng.random(n), 3),
            "mixed": pd.Series(rng.choice(["a", "b", 3], n).tolist()[:-1] + [3], dtype=object),
            "whole": pd.array([1, None, 3] * 20, dtype="Int64"),
            "text": pd.array(["p", "q"] * 30, dtype="string"),
            "delta": pd.to_timedelta(rng.integers(0, 9, n), unit="h"),
            "flag": pd.array([True, False, None] * 20, dtype="boolean"),
            "day": pd.Series([datetime.date(2020, 1, 1 + k % 9) for k in range(n)], dtype=object),
            ("a", 1): rng.integers(0, 3, n),
        },
        index=[*range(n - 1), "last"],
    )
    explainer = mcce.MCCE(lambda rows: (rows["x"] > 0) * 1.0, random_state=1).fit(X)
    table = explainer.explain(X[X["x"] < 0], n_samples=30).to_frame()
    table.to_parquet(tmp_path / "t.parquet")
    back = pd.read_parquet(tmp_path / "t.parquet")
    assert list(back) == list(table)
    assert len(back) == len(table)
    assert str(back["bin"].iloc[0]) == str(table["bin"].iloc[0])
    text = io.StringIO(table.to_csv(index=False))
    assert len(pd.read_csv(text)) == len(table)


def test_texts_that_a_spreadsheet_would_run_are_written_as_they_are(tmp_path):
    result = by_hand(names=("=1+1", '@x",\n'), ids=("=cmd|'/c calc'!A1", "+2", "-3"))
    result.to_frame().to_csv(tmp_path / "t.csv", index=False)
    back = pd.read_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(back, result.to_frame(), check_dtype=False)
