"""Records in a folder: names, chain, head, continuation and interruption."""

import json

import pytest

from mcce import InputError
from mcce.records import folder as writing
from mcce.records.folder import append_records, file_name
from tests.records.problem import found


def test_file_names_are_safe_for_any_ids(tmp_path):
    paths = found().write_records(tmp_path / "records")
    assert [path.parent for path in paths] == [tmp_path / "records"] * 8
    assert [path.name for path in paths[:3]] == ["000001-a.json", "000002-___b.json", "000003-c_d.json"]
    assert max(len(path.name.encode()) for path in paths) < 100
    assert {path.name for path in tmp_path.iterdir()} == {"records"}
    for who in ("../../etc/passwd", "..", "", "\0", "a\nb", "con.json", "x" * 10_000):
        assert {*file_name(1, who)} <= {*"abcdefghijklmnopqrstuvwxyz0123456789_-."}
        assert file_name(1, who).count(".") == 1


def test_second_run_continues_the_chain(tmp_path):
    first = found()["a"].write_records(tmp_path)
    second = found()["6"].write_records(tmp_path, reviewed_by="Kari", reviewed_at="2026-11-18")
    one, two = (json.loads(path.read_text(encoding="utf-8")) for path in (*first, *second))
    assert [path.name for path in second] == ["000002-6.json"]
    assert (one["previous"], two["previous"]) == (None, one["hash"])
    assert json.loads((tmp_path / "head.json").read_text()) == {"count": 2, "last": two["hash"]}
    assert two["review"] == {"by": "Kari", "at": "2026-11-18"}


def test_single_record_equals_the_written_one(tmp_path):
    paths = found().write_records(tmp_path)
    first, second = (json.loads(path.read_text(encoding="utf-8")) for path in paths[:2])
    assert found().record("../b", previous=first["hash"]) == second


def test_interrupted_run_is_continued_after_its_last_record(tmp_path):
    result = found()

    def interrupted(last):
        yield result.record("a", previous=last)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        append_records(tmp_path, interrupted)
    (tmp_path / ".mcce-half.json").write_text("{")
    assert not (tmp_path / "head.json").exists()
    (path,) = result["6"].write_records(tmp_path)
    assert json.loads(path.read_text())["previous"] == result.record("a")["hash"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000001-a.json", "000002-6.json", "head.json"]


def test_damaged_chain_is_not_continued(tmp_path):
    paths = found().write_records(tmp_path)
    paths[3].unlink()
    with pytest.raises(InputError, match=r"cannot be continued: records are missing or repeated. `mcce verify"):
        found().write_records(tmp_path)
    paths[3].write_bytes(b"{}")
    paths[-1].write_bytes(paths[-1].read_bytes().replace(b"income", b"incoma"))
    with pytest.raises(InputError, match=r"000008-8.json does not follow the record before it"):
        found().write_records(tmp_path)


def test_folder_of_other_files_raises(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"holds 'notes.txt', and no records; give a new or empty folder"):
        found().write_records(tmp_path)


def test_one_process_at_a_time(tmp_path):
    with writing.hold_lock(tmp_path), pytest.raises(InputError, match="is being written by process"):
        found().write_records(tmp_path)
