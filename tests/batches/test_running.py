"""Batches equal one `explain` for any backend and after any number of restarts."""

import functools
import json
import os

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mcce
from mcce import MCCE, InputError, MCCEError, MCCEWarning, NotFittedError, allow, only, per_factual
from mcce.records import folder as recording
from tests.batches.problem import ROWS, SETTINGS, explainer, tables, written
from tests.explainer.problem import FIXED, TABLE, fitted, label, mixed_table, score
from tests.marks import nightly


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "rows.parquet"
    ROWS.to_parquet(path, row_group_size=50)
    return path


@pytest.fixture(scope="module")
def done(source, tmp_path_factory):
    """The folder of an undisturbed run, which no test modifies."""
    out = tmp_path_factory.mktemp("done") / "out"
    explainer().explain_batches(source, out, **SETTINGS)
    return out


def assert_as_at_once(folder, found):
    """The contents of a folder equal the result of `explain`, row by row and bit by bit."""
    rows, others = tables(folder)
    pd.testing.assert_frame_equal(rows, found.to_frame(), check_exact=True, check_dtype=False, check_categorical=False)
    expected = found.unexplained.reset_index()
    pd.testing.assert_frame_equal(others, expected, check_exact=True, check_dtype=False)


def test_batches_equal_one_explain(done):
    assert_as_at_once(done, explainer().explain(ROWS.set_index("who"), n_samples=40))


def test_manifest_records_the_run(done, source):
    manifest = json.loads((done / "manifest.json").read_text())
    assert manifest["finished"] is True
    assert manifest["settings"]["n_samples"] == 40
    assert manifest["settings"]["batch_size"] == 16
    assert manifest["explainer"]["random_state"] == 1
    assert manifest["versions"]["pandas"] == pd.__version__
    (file,) = manifest["input"]["files"]
    assert file["name"] == "rows.parquet"
    assert file["bytes"] == source.stat().st_size
    assert [part["rows"] for part in manifest["parts"]] == [16] * 7 + [8]
    totals = manifest["totals"]
    n_already = int((score(ROWS) >= 0.5).sum())
    assert (totals["rows"], totals["already"], totals["bad"]) == (120, n_already, 0)
    assert totals["explained"] + totals["already"] + totals["unexplained"] == 120


def test_repeated_run_writes_nothing(source, done, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in done.rglob("part-*")}
    result = explainer().explain_batches(source, done, **SETTINGS)
    assert {path: path.stat().st_mtime_ns for path in done.rglob("part-*")} == before
    assert result.totals["rows"] == 120
    assert "8 parts; 120 rows" in repr(result)


@pytest.mark.slow
def test_threads_and_processes_write_the_same_bytes(source, done, tmp_path):
    with joblib.parallel_config("threading", n_jobs=2):
        explainer().explain_batches(source, tmp_path / "threads", **SETTINGS)
    assert written(tmp_path / "threads") == written(done)
    explainer().explain_batches(source, tmp_path / "processes", n_jobs=2, **SETTINGS)
    assert written(tmp_path / "processes") == written(done)
    # learned from the training rows, which other processes do not have
    options = {"sparse": True, "measures": ["L0", "mad"], "constraints": [mcce.no_copies()], "n_samples": 40}
    explainer().explain_batches(source, tmp_path / "sparse", id="who", batch_size=60, n_jobs=2, **options)
    assert_as_at_once(tmp_path / "sparse", explainer().explain(ROWS.set_index("who"), **options))
    # their warnings are issued in this process
    other = MCCE(_OtherElsewhere(), decision=(0.5, 1.0), fixed=FIXED, random_state=1).fit(TABLE)
    with pytest.warns(MCCEWarning, match="the model answered differently"):
        other.explain_batches(source, tmp_path / "other", id="who", batch_size=60, n_samples=20, n_jobs=2)


@pytest.mark.slow
def test_backend_that_submits_all_at_once_writes_the_same_bytes(source, done, tmp_path):
    """As Ray does; joblib's processes are used instead."""
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        assert not joblib.parallel.get_active_backend()[0].supports_return_generator
        explainer().explain_batches(source, tmp_path / "out", **SETTINGS)
    assert written(tmp_path / "out") == written(done)


@pytest.mark.slow
def test_csv_and_frames_give_the_same_answers(done, tmp_path):
    ROWS.assign(owner=ROWS["owner"].map({True: "TRUE", False: "false"}), more=1).to_csv(tmp_path / "r.csv", index=False)
    explainer().explain_batches(tmp_path / "r.csv", tmp_path / "text", **SETTINGS)
    frames = (ROWS.iloc[i : i + 48] for i in range(0, 120, 48))
    explainer().explain_batches(frames, tmp_path / "frames", **SETTINGS)
    for one in (tmp_path / "text", tmp_path / "frames"):
        for now, before in zip(tables(one), tables(done)):
            pd.testing.assert_frame_equal(now, before, check_exact=True)


@pytest.mark.slow
def test_folder_of_files_is_read_by_name_and_numbered_consecutively(tmp_path):
    (tmp_path / "in" / "2026").mkdir(parents=True)
    ROWS.iloc[70:].to_csv(tmp_path / "in" / "b.csv.gz", index=False)
    ROWS.iloc[:70].to_parquet(tmp_path / "in" / "2026" / "a.parquet")
    (tmp_path / "in" / "notes.txt").write_text("no rows")
    result = explainer().explain_batches(tmp_path / "in", tmp_path / "out", batch_size=32, n_samples=40)
    assert [(p["source"], p["begin"], p["end"], p["first"]) for p in result.manifest["parts"]] == [
        ("2026/a.parquet", 0, 32, 0),
        ("2026/a.parquet", 32, 64, 32),
        ("2026/a.parquet", 64, 70, 64),
        ("b.csv.gz", 0, 32, 70),
        ("b.csv.gz", 32, 50, 102),
    ]
    assert_as_at_once(tmp_path / "out", explainer().explain(ROWS.drop(columns="who"), n_samples=40))


@pytest.mark.slow
def test_parts_without_rows_have_the_columns_and_types_of_the_others(tmp_path):
    already = ROWS[label(ROWS) == "granted"].head(3)
    denied = ROWS[label(ROWS) == "denied"].head(3)
    explainer = fitted(label, "granted", fixed=[*FIXED, "club"], n_jobs=1)
    explainer.explain_batches([already, denied], tmp_path / "out", id="who", n_samples=40)
    for table in ("counterfactuals", "unexplained"):
        first, second = (pq.read_schema(p) for p in sorted((tmp_path / "out" / table).iterdir()))
        assert first.remove_metadata().equals(second.remove_metadata())
    rows, others = tables(tmp_path / "out")
    assert set(rows["prediction"]) == {"granted"}
    assert list(others["id"]) == list(already["who"])


@pytest.mark.slow
def test_constraints_per_factual_hold_in_every_batch(tmp_path):
    who = ROWS.loc[score(ROWS) < 0.4, "who"].iloc[[0, 9]].tolist()
    said = [per_factual(pd.DataFrame({"feature": "income", "direction": "increase"}, index=who))]
    explainer().explain_batches([ROWS], tmp_path / "out", constraints=said, **SETTINGS)
    found = explainer().explain(ROWS.set_index("who"), n_samples=40, constraints=said)
    rows, _ = tables(tmp_path / "out")
    pd.testing.assert_frame_equal(rows, found.to_frame(), check_exact=True, check_dtype=False, check_categorical=False)


def test_constraints_on_factuals_outside_of_the_source_are_reported(tmp_path):
    rows = ROWS.drop(columns="who").head(8).set_axis(range(90, 98))
    said = [only({1: ["income"], 91: ["income"]})]
    with pytest.warns(MCCEWarning, match=r"factual\(s\) 91, which are not in the source, .* are numbered from 0"):
        explainer().explain_batches(rows, tmp_path / "out", batch_size=3, n_samples=20, constraints=said)


@pytest.mark.slow
def test_integer_ids_stay_integers_if_some_rows_have_none(tmp_path):
    large = [2**60 + i for i in range(20)]
    table = pa.Table.from_pandas(ROWS.head(20).drop(columns="who"), preserve_index=False)
    table = table.append_column("number", pa.array([*large[:-1], None], pa.int64()))
    pq.write_table(table, tmp_path / "rows.parquet")
    explainer().explain_batches(
        tmp_path / "rows.parquet", tmp_path / "out", id="number", batch_size=7, n_samples=40, skip_bad=True
    )
    found = np.sort(np.concatenate([frame["id"].unique() for frame in tables(tmp_path / "out")]))
    assert found.tolist() == large[:-1]
    assert "it has no id" in (tmp_path / "out" / "bad-rows.csv").read_text()


@pytest.mark.slow
def test_duplicate_id_raises_before_any_work(tmp_path):
    twice = ROWS.copy()
    twice.loc[90, "who"] = "p7"
    twice.iloc[:60].to_parquet(tmp_path / "a.parquet")
    twice.iloc[60:].to_csv(tmp_path / "b.csv", index=False)
    out = tmp_path.with_name(f"{tmp_path.name}-out")
    with pytest.raises(
        InputError, match=r"the id 'p7' of column 'who' names row 7 of .*a.parquet and line 32 of .*b.csv"
    ):
        explainer().explain_batches(tmp_path, out, **SETTINGS)
    assert not list(out.glob("*/part-*"))
    with pytest.raises(InputError, match="the id 'p7' of column 'who' names frame 0 and row 10 of frame 1"):
        explainer().explain_batches([twice.iloc[:80], twice.iloc[80:]], tmp_path / "frames", **SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, *nightly(2)])
def test_unusual_rows_are_reported_once_and_counted(n_jobs, tmp_path):
    """Regression: each part had a separate warning."""
    odd = ROWS.copy()
    odd.loc[[3, 50, 51, 119], "income"] = 1e4
    fitted = explainer()  # their own warnings are not tested here
    with pytest.warns(MCCEWarning) as caught:
        result = fitted.explain_batches([odd], tmp_path / "out", n_jobs=n_jobs, **SETTINGS)
    (said,) = [str(warning.message) for warning in caught]
    if n_jobs == 1:  # otherwise the part that is finished first is named
        assert "frame 0 has a row far outside the training data: 'p3' (income 10000.0, in training" in said
    assert "far outside the training data: 'p" in said
    assert said.endswith("the manifest counts them as 'unusual'.")
    assert result.totals["unusual"] == 4
    assert [part["unusual"] for part in result.manifest["parts"]] == [1, 0, 0, 2, 0, 0, 0, 1]
    with pytest.warns(MCCEWarning, match="X has 4 rows far outside the training data"):  # unchanged without batches
        explainer().explain(odd.set_index("who"), n_samples=5)


@pytest.mark.slow
def test_damaged_part_is_reported_and_redone(source, done, tmp_path):
    out = tmp_path / "out"
    explainer().explain_batches(source, out, **SETTINGS)
    (out / "counterfactuals" / "part-000003.parquet").write_bytes(b"half")
    (out / "parts" / "part-000005.json").write_text("{")
    with pytest.warns(MCCEWarning, match="the files of this part were changed") as caught:
        explainer().explain_batches(source, out, **SETTINGS)
    assert [str(warning.message).partition(".json")[0][-11:] for warning in caught] == ["part-000003", "part-000005"]
    assert written(out) == written(done)


@pytest.mark.slow
def test_frames_that_changed_raise(tmp_path):
    frames = [ROWS.iloc[:40], ROWS.iloc[40:80]]
    explainer().explain_batches(frames, tmp_path / "out", **SETTINGS)
    other = ROWS.iloc[40:80].assign(income=30.0)
    with pytest.raises(InputError, match="part 3 was made from 16 rows of frame 1, from row 0 on"):
        explainer().explain_batches([ROWS.iloc[:40], other], tmp_path / "out", **SETTINGS)
    with pytest.raises(InputError, match="holds part 3, and the source ends before it, after 3 parts"):
        explainer().explain_batches(frames[:1], tmp_path / "out", **SETTINGS)
    result = explainer().explain_batches([*frames, ROWS.iloc[80:]], tmp_path / "out", **SETTINGS)
    assert result.totals["rows"] == 120


@pytest.mark.slow
def test_differences_from_the_settings_of_a_folder_are_reported(source, done, tmp_path):
    def refused(match, of=None, rows=source, **changed):
        with pytest.raises(InputError, match=match):
            (of or explainer()).explain_batches(rows, done, **(SETTINGS | changed))

    refused("was begun with other settings: settings.n_samples was 40, is 50", n_samples=50)
    refused("settings.batch_size was 16, is 17", batch_size=17)
    refused(r"settings.constraints was \[\], is \[.*income", constraints=[allow("income", direction="increase")])
    refused("explainer.random_state was 1, is 2", of=fitted(n_jobs=1, random_state=2))
    refused("explainer.answers was", of=fitted(_another_score, n_jobs=1))
    refused("explainer.draws was", of=fitted(n_jobs=1, X=mixed_table(seed=9)))
    ROWS.iloc[1:].to_parquet(tmp_path / "rows.parquet")
    refused(r"input.files\[0\].bytes was \d+, is \d+", rows=tmp_path / "rows.parquet")
    again = fitted(n_jobs=2)  # refitted with the same seed: the same explainer
    assert again.explain_batches(source, done, **SETTINGS).totals["rows"] == 120


def _another_score(frame):
    return score(frame) ** 1.01


@pytest.mark.slow
def test_unpicklable_model_raises_before_any_work(source, tmp_path):
    model = _Unpicklable()
    explainer = MCCE(model, decision=(0.5, 1.0), fixed=FIXED, random_state=1).fit(TABLE)
    with pytest.raises(InputError, match=r"cannot be sent to other processes \(TypeError: cannot pickle.*threading"):
        explainer.explain_batches(source, tmp_path / "out", n_jobs=2, **SETTINGS)
    with joblib.parallel_config("threading", n_jobs=2):
        assert explainer.explain_batches(source, tmp_path / "out", **SETTINGS).totals["rows"] == 120


class _Unpicklable:
    def __init__(self):
        self.open = functools.partial(print, file=(line for line in ()))

    def predict(self, frame):
        return score(frame)


class _OtherElsewhere:
    """A model that answers differently in another process."""

    def __init__(self):
        self.process = os.getpid()

    def predict(self, frame):
        return score(frame) * (1 if os.getpid() == self.process else 0.9)


def test_invalid_calls_raise(source, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(NotFittedError, match="not fitted"):
        MCCE(score).explain_batches(source, out)
    for match, changed in [
        ("does not take 'n_sample'; did you mean 'n_samples'", {"n_sample": 3}),
        ("batch_size is 0; it must be", {"batch_size": 0}),
        ("missing is 'NA'; give a list", {"missing": "NA"}),
        ("has no column 'wh', which is needed; did you mean 'who'", {"id": "wh"}),
        ("id is 'age', which is a feature", {"id": "age"}),
        ("there is no such file or folder", {"source": tmp_path / "none.csv"}),
        ("neither Parquet nor CSV", {"source": __file__}),
        ("source is 3 .* give a Parquet or CSV file", {"source": 3}),
        ("frame 1 of the source is a int; give DataFrames", {"source": [ROWS.iloc[:5], 2]}),
        ("inside the source", {"source": source.parent, "out": source.parent / "out"}),
    ]:
        call = {"source": source, "out": out} | SETTINGS | changed
        with pytest.raises(MCCEError, match=match):
            explainer().explain_batches(call.pop("source"), call.pop("out"), **call)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'diary.txt', and no manifest.json; give a new or empty folder"):
        explainer().explain_batches(source, tmp_path / "full", **SETTINGS)


@pytest.mark.slow
def test_files_of_an_interrupted_run_are_removed_and_others_kept(source, done, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InputError, match="no column 'wh'"):  # started, but no part is finished
        explainer().explain_batches(source, out, **(SETTINGS | {"id": "wh"}))
    (out / "counterfactuals" / "part-000030.parquet").write_bytes(b"of smaller batches, not finished")
    (out / "parts" / ".mcce-0badcafe.json").write_bytes(b"{")
    explainer().explain_batches(source, out, **SETTINGS)
    assert written(out) == written(done)
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text('{"name": "of another program"}')
    with pytest.raises(InputError, match="has the format None, not 'mcce batches 1'"):
        explainer().explain_batches(source, other, **SETTINGS)
    assert (other / "manifest.json").read_text() == '{"name": "of another program"}'


def test_missing_pyarrow_raises_with_install_command(source, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'mcce\[batches\]'"):
        explainer().explain_batches(source, tmp_path / "out", **SETTINGS)


@pytest.mark.parametrize("name", ["taken.txt", "taken.txt/inside/it"])
def test_output_folder_that_is_a_file_raises(source, tmp_path, name):
    (tmp_path / "taken.txt").write_text("mine")
    with pytest.raises(InputError, match=r"^out is .*taken.txt.*, but .*taken.txt is a file; give a new folder"):
        explainer().explain_batches(source, tmp_path / name, **SETTINGS)
    assert (tmp_path / "taken.txt").read_text() == "mine"


@pytest.mark.parametrize(("name", "why"), [("", "it is empty"), ("a\0b.csv", "it holds a NUL character")])
def test_invalid_file_names(source, tmp_path, name, why):
    for at, out in ((name, tmp_path / "out"), (source, name)):
        with pytest.raises(InputError, match=f"is not a valid file name: {why}; give another name"):
            explainer().explain_batches(at, out, **SETTINGS)


def test_excessively_nested_manifest(source, tmp_path):
    (tmp_path / "manifest.json").write_text("[" * 5000 + "]" * 5000)
    with pytest.raises(InputError, match=r"manifest.json is not JSON .*; it was changed since. Give a new folder"):
        explainer().explain_batches(source, tmp_path, **SETTINGS)


@pytest.mark.parametrize("n_samples", [10**12, 10**400])
def test_draws_exceeding_memory_raise(source, tmp_path, n_samples):
    with pytest.raises(
        InputError, match=r"n_samples is .*; it must be a whole number of at least 1 and at most 10000000"
    ):
        explainer().explain_batches(source, tmp_path / "out", **SETTINGS | {"n_samples": n_samples})


# ---- recourse


@pytest.fixture(scope="module")
def causal():
    """An explainer of few columns with a graph."""
    table = TABLE[["age", "income", "size", "owner"]]
    graph = "age -> size -> income"
    return MCCE(simple_score, fixed=["age"], graph=graph, sampler="parametric", random_state=1).fit(table), table


def simple_score(frame):
    return 1 / (1 + np.exp(-0.2 * (frame["income"] - 30) - 0.5 * frame["size"].cat.codes - frame["owner"]))


ACTS = {"actions": ["size", "income"], "assurance": 0.7, "n_samples": 60}


@pytest.mark.slow
@pytest.mark.parametrize(("batch_size", "n_jobs"), [(7, 1), (1, 1), (6, 2)])
def test_batches_equal_one_recourse(causal, tmp_path, batch_size, n_jobs):
    made, table = causal
    people = table[simple_score(table) < 0.52].head(12)
    found = made.recourse(people, **ACTS)
    fresh = MCCE(**made.get_params()).fit(table)  # it has not learned the parts for recourse
    sizes = {"batch_size": batch_size, "n_jobs": n_jobs}
    fresh.explain_batches(people.reset_index(names="who"), tmp_path / "out", recourse=True, id="who", **sizes, **ACTS)
    rows, others = tables(tmp_path / "out")
    assert {"action", "consequence", "sentence", "p_valid"} <= {*rows}
    assert len(found) > 3
    exactly = {"check_exact": True, "check_dtype": False, "check_categorical": False}
    pd.testing.assert_frame_equal(rows, mcce.report.answers(found), **exactly)
    pd.testing.assert_frame_equal(others, found.unexplained.reset_index(), **exactly)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["settings"]["assurance"] == 0.7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sparse": True}, "explain_batches does not take 'sparse' with recourse=True"),
        ({"actions": ["age"]}, "^actions names 'age', which is fixed"),
        ({"assurance": 2}, "^assurance is 2; it must be"),
    ],
)
def test_settings_of_recourse_are_checked_before_the_folder_is_created(causal, tmp_path, settings, message):
    made, table = causal
    with pytest.raises(InputError, match=message):
        made.explain_batches(table.head(3), tmp_path / "out", recourse=True, **settings)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_interrupted_chain_of_records_is_continued(tmp_path, monkeypatch):
    some, records = ROWS.head(20), tmp_path / "records"
    found = explainer().explain(some.set_index("who"), n_samples=SETTINGS["n_samples"])
    found.write_records(tmp_path / "expected")
    whole, left = recording.atomic_write, 7

    def until_killed(path, **how):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return whole(path, **how)

    monkeypatch.setattr(recording, "atomic_write", until_killed)
    with pytest.raises(KeyboardInterrupt):
        explainer().explain_batches(some, tmp_path / "out", **SETTINGS, records=records)
    assert len(list(records.glob("0*.json"))) == 7
    monkeypatch.undo()
    for _ in range(2):  # a repeated run adds nothing
        explainer().explain_batches(some, tmp_path / "out", **SETTINGS, records=records)
        assert written(records) == written(tmp_path / "expected")
    assert mcce.records.verify(records, explainer()).n_reproduced == 20
    with pytest.raises(InputError, match="has records already; give a new or empty folder"):
        explainer().explain_batches(some, tmp_path / "new", **SETTINGS, records=records)
    with pytest.raises(InputError, match=r"settings\.records was true, is null"):
        explainer().explain_batches(some, tmp_path / "out", **SETTINGS)
    with pytest.raises(InputError, match="inside out"):
        explainer().explain_batches(some, tmp_path / "new", **SETTINGS, records=tmp_path / "new" / "records")
