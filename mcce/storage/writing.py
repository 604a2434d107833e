"""One object as one file: a zip of JSON and arrays, with a manifest.

1. The object becomes plain state (`mcce.state`). Arrays are taken out of it and become entries of their own.
2. The manifest says what it is: format and its version, kind of object, versions of mcce, numpy and pandas, what a
   reader may want to know beforehand, and size and SHA-256 of every entry.
3. The file is written beside its place and renamed (`mcce.files`). The same object gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError
from mcce.files import written_whole
from mcce.state import TYPE, to_state
from mcce.storage.arrays import to_bytes
from mcce.storage.limits import FORMAT, MANIFEST, MOST_DEPTH, SMALL, STATE, VERSION, is_too_packed
from mcce.storage.reading import depth_of

_SAME_TIME = (1980, 1, 1, 0, 0, 0)


def save_fields(path: str | os.PathLike[str], kind: str, fields: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Write what an object is made of as one file, over what is there.

    Parameters
    ----------
    path : str or path
    kind : str
        What the object is, as `load_fields` is asked for it.
    fields : dict
        What the object is made of again.
    about : dict
        JSON values for the manifest: what a reader may want to know before the rest is read.
    """
    arrays: list[bytes] = []
    state = _without_arrays(to_state(dict(fields), kind), arrays)
    if depth_of(state) > MOST_DEPTH:
        raise InputError(f"{kind} holds lists or dicts more than {MOST_DEPTH} deep inside each other; flatten them.")
    entries = {STATE: _as_json(state)} | {f"{i}.npy": data for i, data in enumerate(arrays)}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "versions": {"mcce": _version(), "numpy": np.__version__, "pandas": pd.__version__},
        "about": dict(about),
        "entries": {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in entries.items()},
    }
    with written_whole(path) as beside:
        write_entries(beside, {MANIFEST: _as_json(manifest)} | entries)


def write_entries(path: str | os.PathLike[str], entries: Mapping[str, bytes]) -> None:
    """Write a zip of these entries, each packed as far as a reader allows."""
    with zipfile.ZipFile(path, "w") as file:
        for name, data in entries.items():
            stored = len(data) > SMALL and is_too_packed(name, len(data), len(zlib.compress(data)))
            method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name, _SAME_TIME), data, method)


def _without_arrays(state: Any, arrays: list[bytes]) -> Any:
    """Return plain values with a number in the place of each array; `arrays` gets their bytes."""
    if isinstance(state, np.ndarray):
        arrays.append(to_bytes(state))
        return {TYPE: "array", "entry": len(arrays) - 1}
    if isinstance(state, list):
        return [_without_arrays(item, arrays) for item in state]
    if isinstance(state, dict):
        return {key: _without_arrays(value, arrays) for key, value in state.items()}
    return state


def _as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _version() -> str:
    return str(sys.modules["mcce"].__version__)  # the package is made of this module, so it cannot be imported here
