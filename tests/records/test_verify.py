"""Verification: every change of a folder is detected and named; answers are reproduced or differences reported."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.records import verify
from mcce.records.canonical import cell
from mcce.records.verify import rows_of_records
from tests.records.problem import explainer, found, make_explainer, other_score, table


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    found().write_records(folder)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "records"))


def names(folder):
    return sorted(path.name for path in folder.glob("0*"))


def test_valid_records_have_no_fault(written):
    checked = verify(written)
    assert checked
    assert (checked.n_records, checked.n_reproduced, checked.faults, checked.notes) == (8, None, (), ())
    assert checked.last == json.loads((written / "head.json").read_text())["last"]
    assert repr(checked) == "8 records: every hash is right, and the chain is complete."


@pytest.mark.parametrize("n_flips", [25, pytest.param(300, marks=pytest.mark.slow)])
def test_every_flipped_byte_is_detected_and_its_file_named(n_flips, tmp_path):
    (path,) = found()["a"].write_records(tmp_path)
    data = path.read_bytes()
    rng = np.random.default_rng(1)
    for place in {0, len(data) - 1, len(data) - 2, *rng.integers(0, len(data), n_flips).tolist()}:
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(0, 8))
        path.write_bytes(changed)
        faults = verify(tmp_path).faults
        assert faults, (place, data[place - 20 : place + 20])
        assert faults[0].startswith("000001-a.json ")


def test_changed_record_in_the_middle_is_the_only_one_named(folder):
    for old, new in ((b'"seed":1', b'"seed":2'), (b'"seed":1', b'"seed":1 ')):
        name = names(folder)[2]
        data = (folder / name).read_bytes()
        assert old in data
        (folder / name).write_bytes(data.replace(old, new))
        (fault,) = verify(folder).faults
        assert fault.startswith(f"{name} was changed: its ")
        (folder / name).write_bytes(data)


def test_changed_record_with_a_new_hash_breaks_the_chain(folder):
    name, following = names(folder)[2:4]
    record = json.loads((folder / name).read_text(encoding="utf-8"))
    record["decision"]["score"] = 0.99
    record["hash"] = mcce.records.hash_of(record)
    (folder / name).write_bytes(mcce.records.canonical(record) + b"\n")
    assert verify(folder).faults == (f"{following}: the record before it was removed or replaced",)


@pytest.mark.parametrize("place", [0, 3, 7])
def test_removed_record_is_named_by_its_number(folder, place):
    (folder / names(folder)[place]).unlink()
    missing, *others = verify(folder).faults
    if place < 7:
        assert missing == f"record {place + 1} is missing"
        assert others == ["head.json counts 8 records, and there are 7"]
    else:  # the last record, known only from the head
        assert missing == "head.json counts 8 records, and there are 7"


def test_removed_record_is_detected_after_renaming_and_new_head(folder):
    removed, following, *others = names(folder)[2:]
    (folder / removed).unlink()
    for name in (following, *others):
        (folder / name).rename(folder / f"{int(name[:6]) - 1:06d}{name[6:]}")
    head = json.loads((folder / "head.json").read_text())
    (folder / "head.json").write_text(json.dumps({**head, "count": 7}))
    (fault,) = verify(folder).faults
    assert fault == f"000003{following[6:]}: the record before it was removed or replaced"


def test_repeated_record_is_named(folder):
    first = names(folder)[0]
    shutil.copy(folder / first, folder / "000009-a.json")
    faults = verify(folder).faults
    assert "000009-a.json repeats 000001-a.json" in faults
    shutil.copy(folder / first, folder / "000001-b.json")
    faults = verify(folder).faults
    assert "000001-b.json has the number of another record" in faults
    assert "000001-b.json was renamed: its name is not made of its number and id" in faults


def test_reordered_records_are_named(folder):
    second, third = names(folder)[1:3]
    swapped = f"{third[:6]}{second[6:]}", f"{second[:6]}{third[6:]}"
    (folder / second).rename(folder / "kept")
    (folder / third).rename(folder / swapped[1])
    (folder / "kept").rename(folder / swapped[0])
    faults = verify(folder).faults
    assert f"{swapped[1]} was moved: it was written after {swapped[0]}" in faults
    assert f"{swapped[0]} was moved: it was written after 000001-a.json" in faults


def test_foreign_files_are_named(folder):
    (folder / "notes.txt").touch()
    (folder / "inside").mkdir()
    (folder / "000009-z.json").write_text('{"format": "another"}')
    (folder / "000010-y.json").write_text("[" * 100_000)
    (folder / "000011-x.json").symlink_to(folder / "000001-a.json")
    faults = "\n".join(verify(folder).faults)
    for part in ("notes.txt is not a record", "inside is not", "000009-z.json is not", "000010-y.json was changed"):
        assert part in faults
    assert "000011-x.json is not a record" in faults


def test_head_is_checked(folder):
    head = folder / "head.json"
    text = head.read_text()
    for wrong, fault in (
        (text.replace('"count":8', '"count":6'), "head.json counts 6 records, and there are 8: some were added"),
        (text.replace('"count":8', '"count":9'), "head.json counts 9 records, and there are 8"),
        (json.dumps({"count": 8, "last": "0" * 64}), "head.json names another last record than 000008-8.json"),
        ("NaN", "head.json was changed: "),
    ):
        head.write_text(wrong)
        (found,) = verify(folder).faults
        assert found.startswith(fault)
    head.unlink()
    assert verify(folder).faults == ("head.json is missing: records after the last cannot be detected",)


def test_folder_without_records_raises(tmp_path):
    with pytest.raises(InputError, match="holds no records"):
        verify(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        verify(tmp_path / "none")
    for count, faults in ((0, ()), (2, ("head.json counts 2 records, and there are 0",))):
        (tmp_path / "head.json").write_text(json.dumps({"count": count, "last": "0" * 64}))
        assert verify(tmp_path).faults == faults


def test_answers_are_reproduced(written):
    checked = verify(written, explainer())
    assert checked.faults == ()
    assert checked.n_reproduced == 8


@pytest.mark.slow
def test_answers_are_reproduced_singly_and_together(folder):
    """The records were made together; each result of a single row continues the chain and agrees."""
    for who in ("a", "6"):
        rows = found().factuals.loc[[who]]
        explainer().explain(rows, n_samples=50, sparse=True).write_records(folder)
    checked = verify(folder, explainer())
    assert checked.faults == ()
    assert checked.n_reproduced == 10
    assert repr(checked).endswith("Reproduced byte for byte: 10 of 10.")


FRESH = """
import sys, mcce
from tests.records.problem import score
explainer = mcce.MCCE.load(sys.argv[2], model=score)
print(mcce.records.verify(sys.argv[1], explainer))
"""


@pytest.mark.slow
def test_saved_explainer_reproduces_in_a_new_process(folder, tmp_path):
    explainer().save(tmp_path / "explainer.mcce")
    command = [sys.executable, "-c", FRESH, str(folder), str(tmp_path / "explainer.mcce")]
    root = Path(__file__).resolve().parents[2]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout
    assert printed == "8 records: every hash is right, and the chain is complete. Reproduced byte for byte: 8 of 8.\n"


def test_different_model_and_different_explainer_are_named(written):
    faults = verify(written, make_explainer(other_score)).faults
    assert faults[0] == "000001-a.json was made with another model and another explainer"
    assert len(faults) == 8
    assert verify(written, make_explainer(random_state=2)).faults[0].endswith("another explainer and another seed")


def test_forged_answer_with_valid_hashes_is_not_reproduced(tmp_path):
    record = found().record("a")
    record["answers"][0]["values"]["income"] = 1.0
    record["hash"] = mcce.records.hash_of(record)
    (tmp_path / "000001-a.json").write_bytes(mcce.records.canonical(record) + b"\n")
    (tmp_path / "head.json").write_text(json.dumps({"count": 1, "last": record["hash"]}))
    assert verify(tmp_path)
    (fault,) = verify(tmp_path, explainer()).faults
    assert fault.startswith("000001-a.json is not reproduced: answers.0.values.income is 1.0, and ")


@pytest.mark.parametrize(
    "forged",
    [
        {"call": {}},
        {"call": {"method": "fit", "arguments": {}}},
        {"call": {"method": "explain", "arguments": {"X": 1}}},
        {"call": {"method": "explain", "arguments": {"measures": {"type": "os.system"}}}},
        {
            "call": {
                "method": "explain",
                "arguments": {"measures": {"type": "array", "items": [], "dtype": "<U999999999"}},
            }
        },
        {"call": {"method": "explain", "arguments": {"n_samples": 10**30}}},
        {"factual": {}},
        {"factual": {"age": {}, "income": [], "job": {}, "since": "never", "owns": "x", "debt": True}},
        {"id": {"a": []}},
        {"versions": {"numpy": []}},
        {"decision": {}},
        {"answers": [[[]]]},
    ],
    ids=str,
)
def test_forged_record_is_a_fault_and_executes_nothing(forged, tmp_path):
    record = {**found().record("a"), **forged}
    record["hash"] = mcce.records.hash_of(record)
    (tmp_path / "000001-a.json").write_bytes(mcce.records.canonical(record) + b"\n")
    (tmp_path / "head.json").write_text(json.dumps({"count": 1, "last": record["hash"]}))
    checked = verify(tmp_path, explainer())
    assert checked.faults or checked.notes
    if "versions" not in forged:
        assert checked.faults[0].startswith("000001-a.json ")


def test_other_versions_are_listed(tmp_path):
    record = found().record("a")
    record["versions"]["numpy"] = "1.0"
    record["hash"] = mcce.records.hash_of(record)
    (tmp_path / "000001-a.json").write_bytes(mcce.records.canonical(record) + b"\n")
    (tmp_path / "head.json").write_text(json.dumps({"count": 1, "last": record["hash"]}))
    checked = verify(tmp_path, explainer())
    assert checked
    assert checked.notes == (f"numpy 1.0 then, {np.__version__} now (1 record)",)


def test_calls_that_a_record_cannot_hold_are_named(tmp_path):
    rows = table().head(1)

    def measure(candidates, factual):
        return candidates["income"].to_numpy()

    explainer().explain(rows, n_samples=20, measures=measure).write_records(tmp_path)
    candidates = explainer().generate(rows, n_samples=20)
    explainer().select(candidates, rows).write_records(tmp_path)
    one, two = verify(tmp_path, explainer()).faults
    assert one == (
        "000001-0.json cannot be reproduced: the argument measures was a function, which a record cannot hold"
    )
    assert "select used given candidates, which a record does not hold" in two


def test_constraints_per_factual_and_robust_answers_are_reproduced(tmp_path):
    rows = table().head(3).set_axis(["a", "b", "c"])
    own = mcce.only({"b": ["income", "owns"], "c": ["income"]})
    how = {"n_samples": 40, "robust": mcce.Robust(noise=0.01, share=0.5), "feature_weights": {"debt": 2.0}}
    explainer().explain(rows, constraints=[own, mcce.no_copies()], **how).write_records(tmp_path)
    checked = verify(tmp_path, explainer())
    assert checked.faults == ()
    assert checked.n_reproduced == 3


def test_different_file_of_the_same_model_is_a_note(tmp_path):
    (tmp_path / "model").write_bytes(b"one")
    found()["a"].write_records(tmp_path / "records", files={"model": tmp_path / "model"})
    checked = verify(tmp_path / "records", explainer(), files={"model": "0" * 64, "explainer": None})
    assert checked
    assert checked.notes == ("the file of the model is another one, which answers the same (1 record)",)


def test_values_of_every_dtype_round_trip():
    n = 6
    times = pd.date_range("2020-02-29 23:59:59.123456789", periods=n, freq="37h")
    X = pd.DataFrame(
        {
            "small": np.arange(n, dtype=np.float32) / 3,
            "unsigned": np.arange(n, dtype=np.uint8),
            "nullable": pd.array([1, None, 3, 4, 5, 6], dtype="Int64"),
            "arrow": pd.array([1.5, None, 2, 3, 4, 5], dtype="double[pyarrow]"),
            "zoned": times.tz_localize("Europe/Oslo"),
            "seconds": times.astype("datetime64[s]"),
            "duration": pd.to_timedelta(np.arange(n) * 1_000_000_007, unit="ns"),
            "period": pd.period_range("2020-01", periods=n, freq="M"),
            "truth": pd.array([True, False, None] * 2, dtype="boolean"),
            "text": pd.array(["a", None, "b", "a", "b", "ü"], dtype="string"),
            "codes": pd.Categorical([3, 1, 2, 3, 1, np.nan], categories=[3, 1, 2], ordered=True),
            "bins": pd.cut(np.arange(n), 3),
            "mixed": pd.Series(["1", 1.0, None, "1", 1.0, "1"], dtype=object),
            ("a", "tuple"): np.arange(n) * 0.1,
        }
    )
    X.columns = pd.Index([*X.columns], tupleize_cols=False)
    schema = mcce.Schema.from_data(X, kinds={"unsigned": "categorical", "mixed": "categorical"})
    names = [str(name) for name in X.columns]
    cells = X.astype(object).to_numpy()
    written = [{"id": i, "factual": dict(zip(names, map(cell, row)))} for i, row in enumerate(cells)]
    again = rows_of_records(json.loads(json.dumps(written)), schema)
    assert list(again.columns) == list(X.columns)
    np.testing.assert_array_equal(schema.encode(again).matrix, schema.encode(X).matrix)
    missing = json.loads(json.dumps([{**written[0], "factual": {**written[0]["factual"], "seconds": None}}]))
    assert np.isnan(schema.encode(rows_of_records(missing, schema)).matrix[0, 5])


@pytest.mark.slow
def test_recourse_is_reproduced(tmp_path):
    X = mcce.datasets.load_loans(400).X[["age", "education", "salary"]]
    acting = mcce.MCCE(
        lambda rows: rows["salary"] / 100_000,
        fixed=["age"],
        graph="age -> education -> salary; age -> salary",
        sampler="parametric",
        random_state=1,
    ).fit(X)
    acting.recourse(X.loc[[26, 27]], ["education"]).write_records(tmp_path)
    record = json.loads(next(tmp_path.glob("000001*")).read_text())
    assert [each["role"] for each in record["answers"][0]["changes"]] == ["action", "consequence"]
    assert record["answers"][0]["consequences"][0]["feature"] == "salary"
    jsonschema.validate(record, mcce.records.schema())
    checked = verify(tmp_path, acting)
    assert (checked.faults, checked.n_reproduced) == ((), 2)
