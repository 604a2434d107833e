"""Canonical JSON, over which records are hashed, and conversion of values to JSON.

1. Canonical JSON is UTF-8 without a byte-order mark: keys sorted by code point, no spaces, floats as Python's `repr`
   writes them (the shortest text that reads back the same), no NaN and no infinity. A missing value is null.
2. The hash of a record is the SHA-256 of the canonical JSON of all its keys but "hash", in hexadecimal digits.
3. Dates and durations are written in ISO 8601, values without a JSON type as text.
4. Scores and measures have 9 significant digits: further digits depend on processor, threads and the other rows of a
   query. Values of features are exact.
5. Arguments of a call are written as in a saved file (`mcce.storage.state`), arrays as lists.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError
from mcce.model.robustness import Robust
from mcce.storage.state import TYPE, add_check, from_state, put_back_arrays, stateful, take_out_arrays, to_state

stateful("Robust")(Robust)  # an argument of a call; its refits are models, which are not stored
add_check(Robust)
DIGITS = 9
HASH = "hash"
NUMBERS = ("<f8", "<i8", "|b1")  # dtypes of arrays in arguments


def canonical(value: Any) -> bytes:
    """Return JSON values as canonical JSON.

    Examples
    --------
    >>> canonical({"b": [1.0, None], "a": "é"}).decode()
    '{"a":"é","b":[1.0,null]}'
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")
    except (UnicodeEncodeError, ValueError) as error:
        raise InputError(f"a record cannot be written as JSON ({error}); correct the text or number.") from None


def hash_of(record: dict[str, Any]) -> str:
    """Return the hash of a record without its key "hash".

    Examples
    --------
    >>> hash_of({"id": 1, "hash": "anything"})[:16]
    '037c9214eef74cc3'
    """
    return sha256(canonical({name: value for name, value in record.items() if name != HASH}))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def cell(value: Any) -> Any:
    """Return the value of a feature as a JSON value.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> [cell(v) for v in (np.int64(3), np.nan, pd.Timestamp("2026-01-31"), np.True_, "rent")]
    [3, None, '2026-01-31T00:00:00', True, 'rent']
    """
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if isinstance(value, (str, bool, int)):
        return value
    if not isinstance(value, (list, tuple)) and pd.isna(value):
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def figure(value: Any) -> Any:
    """Return a score or a measure as a JSON value; class labels are unchanged.

    Examples
    --------
    >>> figure(1 / 3), figure(2), figure("granted")
    (0.333333333, 2, 'granted')
    """
    plain = cell(value)
    return float(f"{plain:.{DIGITS}g}") if isinstance(plain, float) else plain


def to_json(value: object, where: str) -> Any:
    """Return an argument of a call as JSON values; an argument that cannot be stored is only described."""
    try:
        return _finite(take_out_arrays(to_state(value.item() if isinstance(value, np.generic) else value), _listed))
    except InputError:
        return {TYPE: "unstorable", "argument": where, "text": f"a {type(value).__name__}"}


def from_json(value: Any) -> Any:
    """Return the argument that `to_json` wrote; raise if it was only described."""
    return from_state(put_back_arrays(_infinite(value), _array))


def _listed(array: Any) -> dict[str, Any]:
    if array.dtype.str not in NUMBERS:
        raise InputError(f"an array of {array.dtype} cannot be stored in a record")
    return {"items": array.tolist(), "dtype": array.dtype.str}


def _array(written: dict[str, Any]) -> Any:
    if written["dtype"] not in NUMBERS:
        raise InputError(f"an array has the dtype {written['dtype']!r:.30}, and must hold numbers")
    return np.array(written["items"], dtype=written["dtype"])


def _finite(value: Any) -> Any:
    """Return JSON values with infinities and NaN as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return {TYPE: "float", "text": str(value)}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return {key: _finite(item) for key, item in value.items()} if isinstance(value, dict) else value


def _infinite(value: Any) -> Any:
    if isinstance(value, list):
        return [_infinite(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(TYPE) == "float":
        return float(value["text"])
    if value.get(TYPE) == "unstorable":
        raise InputError(f"the argument {value['argument']} was {value['text']}, which a record cannot hold")
    return {key: _infinite(item) for key, item in value.items()}
