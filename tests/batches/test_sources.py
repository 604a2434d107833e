"""Bad rows, unreadable files and full disks are named or listed; finished parts are kept."""

import gzip
import resource
import warnings

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from mcce import MCCE, InputError, MCCEError, MCCEWarning, ModelError
from tests.batches.problem import ROWS, SETTINGS, explainer, tables, written
from tests.explainer.problem import FIXED, TABLE, score
from tests.marks import nightly

BAD = {
    "line 36": ("children", "two"),
    "line 37": ("income", "lots"),
    "line 90": ("since", "soon"),
    "line 95": ("income", "007"),
}


def csv_lines():
    return ROWS.to_csv(index=False).splitlines()


def ids_of(folder):
    return {name for frame in tables(folder) for name in frame["id"]}


@pytest.mark.slow
def test_bad_row_is_named_and_earlier_parts_are_kept(tmp_path):
    rows = ROWS.copy()
    rows.loc[100, "income"] = np.inf
    rows.to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"rows.parquet, row 100: column 'income' .*inf.*skip_bad=True to list"):
        explainer().explain_batches(tmp_path / "rows.parquet", out, **SETTINGS)
    before = written(out)
    assert [name for name in before if name.startswith("parts/")] == [f"parts/part-{i:06d}.json" for i in range(6)]
    explainer().explain_batches(tmp_path / "rows.parquet", out, skip_bad=True, **SETTINGS)
    after = written(out)
    assert {name: after[name] for name in before if "part-" in name} == {
        name: data for name, data in before.items() if "part-" in name
    }
    assert ids_of(out) == {*ROWS["who"]} - {"p100"}
    with pytest.raises(InputError, match=r"part 6 leaves out bad rows, the first is row 100 of rows.parquet"):
        explainer().explain_batches(tmp_path / "rows.parquet", out, **SETTINGS)


@pytest.mark.slow
def test_every_kind_of_bad_csv_line_is_listed_and_other_rows_are_explained(tmp_path):
    lines = csv_lines()
    header = lines[0].split(",")
    bad = set()
    for place, (column, text) in BAD.items():
        i = int(place.removeprefix("line ")) - 1
        cells = lines[i].split(",")
        bad.add(cells[0])
        cells[header.index(column)] = text
        lines[i] = ",".join(cells)
    bad |= {lines[i].split(",")[0] for i in (50, 60, 70)}
    lines[50] += ",one more"
    lines[60] = ",".join(["", *lines[60].split(",")[1:]])
    data = "\n".join(lines).encode().splitlines()
    data[70] = data[70].replace(b"nurse", b"n\xfcrse").replace(b"clerk", b"cl\xe9rk").replace(b"pilot", b"pil\xf6t")
    (tmp_path / "rows.csv").write_bytes(b"\n".join(data))
    with pytest.raises(InputError, match=r"rows.csv, line 36: column 'children' holds 'two', which is not a number"):
        explainer().explain_batches(tmp_path / "rows.csv", tmp_path / "out", **SETTINGS)
    result = explainer().explain_batches(tmp_path / "rows.csv", tmp_path / "out", skip_bad=True, **SETTINGS)
    listed = pd.read_csv(tmp_path / "out" / "bad-rows.csv").set_index("place")
    assert list(listed.index) == ["line 36", "line 37", "line 51", "line 61", "line 71", "line 90", "line 95"]
    assert listed["begin"].tolist() == [34, 35, 49, 59, 69, 88, 93]
    problems = listed["problem"]
    for place, said in {
        "line 37": "column 'income' holds 'lots', which is not a number",
        "line 51": "it has 12 cells, and the header names 11 columns",
        "line 61": "it has no id",
        "line 71": "it is not UTF-8",
        "line 90": "column 'since' holds 'soon', which is not a date or duration",
        "line 95": "column 'income' is numeric in the training data and holds '007', with a leading zero",
    }.items():
        assert said in problems[place]
    assert (result.totals["bad"], result.totals["factuals"]) == (7, 113)
    assert ids_of(tmp_path / "out") == {*ROWS["who"]} - bad
    good = ROWS[~ROWS["who"].isin(bad)].set_index("who")
    found = explainer().explain(good, n_samples=40).to_frame()
    rows, _ = tables(tmp_path / "out")
    pd.testing.assert_frame_equal(rows, found, check_exact=True, check_dtype=False, check_categorical=False)


@pytest.mark.parametrize("batch_size", [16, *nightly(1)])
def test_unknown_level_is_unexplained_as_in_explain(tmp_path, batch_size):
    """Also if all rows of a part have one; the reason and the tables equal those of `explain` for all rows."""
    some = ROWS.head(24).copy()
    some.loc[[3, 20], "job"] = ["astronaut", "poet"]
    some["size"] = some["size"].astype(str)
    some.loc[9, "size"] = "vast"
    with pytest.warns(MCCEWarning, match="a level that is not known.*Such rows are not explained"):
        found = explainer().explain(some.set_index("who"), n_samples=40)
    some.to_csv(tmp_path / "rows.csv", index=False)
    some.to_parquet(tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.parquet"):
        call = {**SETTINGS, "batch_size": batch_size}
        with pytest.warns(MCCEWarning, match=r"'p3' \(column 'job' holds 'astronaut'\).*manifest counts them"):
            result = explainer().explain_batches(tmp_path / name, tmp_path / name.replace(".", "_"), **call)
        rows, others = tables(tmp_path / name.replace(".", "_"))
        pd.testing.assert_frame_equal(rows, found.to_frame(), check_dtype=False, check_categorical=False)
        expected = found.unexplained.rename_axis("id").reset_index()
        pd.testing.assert_frame_equal(others, expected, check_dtype=False)
        reasons = others.set_index("id")["reason"]
        assert reasons["p3"].startswith(
            "it could not be read: column 'job' holds 'astronaut', which is not a known level"
        )
        assert reasons["p9"].startswith("it could not be read: column 'size' holds 'vast'")
        assert (result.totals["bad"], result.totals["factuals"], result.totals["rows"]) == (0, 24, 24)
        assert result.totals["unusual"] >= 3


@pytest.mark.slow
def test_unreadable_row_group_is_named_or_listed(tmp_path):
    path = tmp_path / "rows.parquet"
    ROWS.to_parquet(path, row_group_size=30, compression="gzip")
    column = pq.ParquetFile(path).metadata.row_group(2).column(3)
    data = bytearray(path.read_bytes())
    begin = column.dictionary_page_offset or column.data_page_offset
    data[begin : begin + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    with pytest.raises(
        InputError, match=r"rows.parquet, row 60: row group 2, rows 60 to 89, cannot be read: .*29 more"
    ):
        explainer().explain_batches(path, tmp_path / "out", batch_size=200, n_samples=40)
    result = explainer().explain_batches(path, tmp_path / "out", batch_size=25, skip_bad=True, n_samples=40)
    assert [part["bad"] for part in result.manifest["parts"]] == [0, 0, 15, 15, 0]
    assert ids_of(tmp_path / "out") == {*range(120)} - {*range(60, 90)}


@pytest.mark.slow
def test_damaged_files_are_listed_and_the_others_explained(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.parquet").write_bytes(b"PAR1 but no more")
    packed = gzip.compress("\n".join(csv_lines()).encode())
    (source / "b.csv.gz").write_bytes(packed[: len(packed) // 2])
    ROWS.head(20).drop(columns="who").to_csv(source / "c.csv", index=False)
    with pytest.raises(InputError, match=r"a.parquet, the file: it is not a readable Parquet file"):
        explainer().explain_batches(source, tmp_path / "out", n_samples=40)
    result = explainer().explain_batches(source, tmp_path / "out", skip_bad=True, n_samples=40)
    listed = (tmp_path / "out" / "bad-rows.csv").read_text()
    assert "b.csv.gz" in listed
    assert "the file cannot be read from here on" in listed
    assert [part["source"] for part in result.manifest["parts"]] == ["a.parquet", "b.csv.gz", "c.csv"]
    assert result.manifest["parts"][2]["factuals"] == 20
    (source / "d.csv").write_text("")
    with pytest.raises(InputError, match=r"d.csv is empty; its first line must name the columns"):
        explainer().explain_batches(source, tmp_path / "other", skip_bad=True, n_samples=40)


@pytest.mark.slow
def test_rows_rejected_by_the_model_are_bad_but_a_failing_model_raises(tmp_path):
    def picky(frame):
        if (frame["income"] == 12345.0).any():
            raise RuntimeError("too rich")
        return score(frame)

    explainer = MCCE(picky, decision=(0.5, 1.0), fixed=FIXED, random_state=1).fit(TABLE)
    rows = ROWS.assign(income=np.where(ROWS.index.isin([3, 40]), 12345.0, ROWS["income"]))
    with pytest.raises(MCCEError, match=r"frame 0, row 3: .*too rich"):
        explainer.explain_batches([rows], tmp_path / "out", **SETTINGS)
    result = explainer.explain_batches([rows], tmp_path / "out", skip_bad=True, **SETTINGS)
    assert result.totals["bad"] == 2
    explainer.decision_.source.model.__code__ = _broken.__code__
    with pytest.raises(ModelError, match="out of order"):
        explainer.explain_batches([ROWS], tmp_path / "other", skip_bad=True, **SETTINGS)
    assert not list((tmp_path / "other").glob("parts/*"))


def _broken(frame):
    raise RuntimeError("out of order")


@pytest.mark.slow
def test_full_disk_names_the_file_and_finished_parts_are_kept(tmp_path):
    frames = [ROWS.head(5), pd.concat([ROWS] * 6).assign(who=[f"q{i}" for i in range(720)])]
    out, call = tmp_path / "out", {"id": "who", "batch_size": 1000, "n_samples": 40}
    explainer().explain_batches(frames, tmp_path / "free", **call)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, hard))
    try:
        with pytest.raises(OSError, match=r"File too large.*part-000001.parquet") as caught:
            explainer().explain_batches(frames, out, **call)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "rows 0 to 719 of frame 1" in str(caught.value)
    assert sorted(name for name in written(out) if "part-" in name) == [
        f"{folder}/part-000000.{end}"
        for folder, end in (("counterfactuals", "parquet"), ("parts", "json"), ("unexplained", "parquet"))
    ]
    explainer().explain_batches(frames, out, **call)
    assert written(out) == written(tmp_path / "free")


def test_file_modified_while_reading_is_reported(tmp_path):
    path = tmp_path / "rows.csv"
    ROWS.drop(columns="who").head(30).to_csv(path, index=False)
    writes = []

    def writing(frame):
        if writes:
            path.write_text(path.read_text() + writes.pop())
        return score(frame)

    explainer = MCCE(writing, decision=(0.5, 1.0), fixed=FIXED, random_state=1).fit(TABLE)
    writes.append(path.read_text().splitlines()[3] + "\n")
    with pytest.raises(InputError, match=r"rows.csv was changed while it was read \(31 rows\)"):
        explainer.explain_batches(path, tmp_path / "out", n_samples=20)
    assert not (tmp_path / "out" / "bad-rows.csv").exists()


def test_non_text_levels_are_read_from_csv(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "code": pd.Categorical(rng.choice([7, 70, 700], 80)),
            "half": pd.Categorical(rng.choice([1.0, 2.5], 80)),
            "yes": rng.random(80) < 0.5,
            "wait": pd.to_timedelta(rng.integers(0, 9, 80), unit="h"),
            "at": pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(rng.integers(0, 90, 80), unit="D"),
            "x": rng.normal(size=80).round(2),
        }
    )
    explainer = MCCE(lambda rows: rows["x"] > 0.3, decision=True, fixed=["code"], random_state=1).fit(X)
    text = X.assign(half=X["half"].map({1.0: "1", 2.5: "2.5"}))
    text.loc[4, "x"] = np.nan
    text.to_csv(tmp_path / "rows.csv", index=False, na_rep="?")
    explainer.explain_batches(tmp_path / "rows.csv", tmp_path / "out", n_samples=40, missing=["?"])
    X.loc[4, "x"] = np.nan
    rows, _ = tables(tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = explainer.explain(X, n_samples=40).to_frame()
    pd.testing.assert_frame_equal(rows, found, check_dtype=False, check_categorical=False)
