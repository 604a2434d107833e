"""Malicious archives raise with the cause and allocate no memory."""

import io
import json
import struct
import zipfile

import numpy as np
import pytest

import mcce
from mcce.storage.archive import SMALL
from tests.storage.spoiling import read_entries, signed
from tests.storage.tampering import memory_to_refuse, refuse


def zipped(entries, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return file.getvalue()


def with_manifest(data, **changes):
    entries = read_entries(data)
    manifest = json.loads(entries["manifest.json"]) | changes
    return zipped([*(entries | {"manifest.json": json.dumps(manifest).encode()}).items()])


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_truncated_file(files, share, tmp_path):
    data = files["cart"]
    refuse(tmp_path / "a.mcce", data[: int(share * len(data))], r"it is not a file of mcce, or incomplete")


def test_flipped_bit_of_an_entry(files, tmp_path):
    entries = [*read_entries(files["cart"]).items()]
    data = bytearray(zipped(entries, zipfile.ZIP_STORED))
    data[data.index(b'"state.json"')] ^= 1  # in the manifest
    refuse(tmp_path / "a.mcce", bytes(data), r"it is not a file of mcce, or incomplete \(Bad CRC")
    changed = dict(entries) | {"3.npy": dict(entries)["3.npy"][:-1] + b"\x01"}
    refuse(tmp_path / "a.mcce", zipped([*changed.items()]), "the entry '3.npy' does not have its checksum")


def test_other_files(files, tmp_path):
    refuse(tmp_path / "a.mcce", b"", "it is not a file of mcce")
    refuse(tmp_path / "a.mcce", b"\x80\x04\x95", "it is not a file of mcce")  # a pickle
    refuse(tmp_path / "a.mcce", zipped([("word/document.xml", b"")]), "it has an entry 'word/document.xml', which no")
    refuse(tmp_path / "a.mcce", zipped([("state.json", b"{}")]), "it has no manifest.json")
    refuse(
        tmp_path / "a.mcce", zipped([("manifest.json", b"{}"), ("state.json", b"{}")]), "manifest.json does not say so"
    )
    with pytest.raises(FileNotFoundError):
        mcce.ChainModel.load(tmp_path / "nothing.mcce")


def test_newer_format_raises_with_a_fix(files, tmp_path):
    data = with_manifest(files["cart"], version=2, versions={"mcce": "7.0"})
    refuse(
        tmp_path / "a.mcce", data, r"version 2 of the format, written by mcce 7\.0, .* up to version 1\. Update mcce\.$"
    )
    refuse(tmp_path / "a.mcce", with_manifest(files["cart"], version=0), "gives no version of the format")
    refuse(tmp_path / "a.mcce", with_manifest(files["cart"], version="1"), "gives no version of the format")


def test_object_of_another_kind_names_its_load_function(files, tmp_path):
    refuse(tmp_path / "a.mcce", files["explainer"], r"it holds a MCCE, not a Generator; use MCCE\.load\.$")
    refuse(tmp_path / "a.mcce", with_manifest(files["cart"], kind="os.system"), "does not state its contents")


@pytest.mark.parametrize("name", ["../../evil.npy", "/etc/passwd", "C:\\evil", "a/0.npy", "00.npy", "0.npy/", "x.npy"])
def test_path_traversal_in_entry_names(files, name, tmp_path):
    data = zipped([*read_entries(files["cart"]).items(), (name, b"x")])
    refuse(tmp_path / "a.mcce", data, "it has an entry .*which no file of mcce has")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mcce"]


def test_duplicate_entry(files, tmp_path):
    entries = read_entries(files["cart"])
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped([*entries.items(), ("0.npy", entries["1.npy"])])
    refuse(tmp_path / "a.mcce", data, "it has an entry twice")


def test_entries_missing_from_the_manifest(files, tmp_path):
    entries = read_entries(files["marginal"])
    refuse(tmp_path / "a.mcce", zipped([*entries.items(), ("9999.npy", b"x")]), "lists other entries than there are")
    less = {name: part for name, part in entries.items() if name != "0.npy"}
    refuse(tmp_path / "a.mcce", zipped([*less.items()]), "lists other entries than there are")
    refuse(tmp_path / "a.mcce", signed(less), "an entry is missing")
    one_more = f"{len(entries) - 2}.npy"
    refuse(tmp_path / "a.mcce", signed(entries | {one_more: entries["0.npy"]}), "state.json has no place for 1 of the")


def test_zip_bombs_allocate_no_memory(files, tmp_path):
    entries = read_entries(files["marginal"])
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(5 * SMALL // 8))
    for name in ("0.npy", "state.json"):
        bomb = zipped([*(entries | {name: zeros.getvalue()}).items()])
        assert len(bomb) < SMALL
        assert (
            memory_to_refuse(tmp_path / "a.mcce", bomb, rf"the entry '{name}' says that its \d+ bytes become")
            < 2 * SMALL
        )
    many = {f"{i}.npy": b"\x00" * SMALL for i in range(40)}
    assert (
        memory_to_refuse(tmp_path / "a.mcce", zipped([*(entries | many).items()]), "entries are compressed too much")
        < 2 * SMALL
    )
    spaces = zipped([*(entries | {"manifest.json": b" " * 3 * SMALL}).items()])
    assert memory_to_refuse(tmp_path / "a.mcce", spaces, "the entry 'manifest.json' says that") < 2 * SMALL


def test_false_sizes(files, tmp_path):
    """The zip directory may state a smaller or larger size than the entry has."""
    entries = read_entries(files["marginal"])
    for factor in (0.5, 2, 10_000):
        file = bytearray(zipped([*entries.items()]))
        at = file.rindex(b"0.npy") - 46  # its position in the directory
        assert file[at : at + 4] == b"PK\x01\x02"
        (size,) = struct.unpack_from("<I", file, at + 24)
        struct.pack_into("<I", file, at + 24, int(size * factor))
        assert memory_to_refuse(tmp_path / "a.mcce", bytes(file), "") < 3 * SMALL


def test_overlapping_entries(files, tmp_path):
    """Many entries of the directory may refer to the same compressed bytes."""
    data = files["marginal"]
    end = data.rindex(b"PK\x05\x06")
    (count, size, offset) = struct.unpack_from("<H2x2I", data, end + 8)
    directory = data[offset : offset + size]
    at = directory.rindex(b"0.npy")
    entry = directory[directory.rindex(b"PK\x01\x02", 0, at) : at + 5]
    extra = b"".join(entry.replace(b"0.npy", f"{i}.npy".encode()) for i in range(2, 10))
    extra = extra * (2 * len(data) // len(extra) + 1)
    tail = bytearray(data[end:])
    struct.pack_into(
        "<HHI", tail, 8, count + extra.count(b"PK\x01\x02"), count + extra.count(b"PK\x01\x02"), size + len(extra)
    )
    refuse(
        tmp_path / "a.mcce",
        data[:offset] + directory + extra + bytes(tail),
        "it has an entry twice|share bytes|no zip|incomplete",
    )
