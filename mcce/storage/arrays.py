"""One array as an npy entry, and back, without ever trusting what its header says.

1. An array is written as `numpy.save` does, version 1.0, native bytes first made little-endian.
2. A header is read by numpy's own reader, which evaluates nothing but literals. The dtype must be plain: booleans,
   integers, floats up to 64 bits, dates, durations, bytes or text. Objects and records are refused.
3. The shape must give exactly as many bytes as the entry holds after the header; only then room is made for it.
4. Booleans are 0 or 1, and text holds characters only: other bytes would be read as something else each time.
"""

from __future__ import annotations

import io
import math
import struct
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError

Array = npt.NDArray[Any]

_MAGIC = b"\x93NUMPY\x01\x00"
_MOST_HEADER = 4096
_ITEM_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "M": (8,), "m": (8,)}


def to_bytes(array: Array) -> bytes:
    """Return an array as npy (step 1)."""
    if array.dtype.hasobject or not _is_plain(array.dtype):
        raise InputError(f"an array of {array.dtype} cannot be stored; only numbers, booleans, dates and text can.")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array.astype(array.dtype.newbyteorder("<"), copy=False), version=(1, 0))
    return buffer.getvalue()


def from_stream(stream: IO[bytes], size: int) -> Array:
    """Return the array of an npy entry of so many bytes (steps 2 to 4)."""
    magic = stream.read(len(_MAGIC))
    if magic != _MAGIC:
        raise InputError("it is no array of numpy's format 1.0")
    (length,) = struct.unpack("<H", _exactly(stream, 2))
    if length > _MOST_HEADER:
        raise InputError(f"the header of an array has {length} bytes, more than any needs")
    header = io.BytesIO(struct.pack("<H", length) + _exactly(stream, length))
    try:
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(header, max_header_size=_MOST_HEADER)
    except Exception as error:  # numpy raises what its parser does
        raise InputError(f"the header of an array cannot be read: {error}") from None
    if not _is_plain(dtype):
        raise InputError(f"an array is of {dtype}, which is never stored")
    if any(type(n) is not int or n < 0 for n in shape):
        raise InputError(f"an array has the shape {shape}")
    n_bytes = size - len(_MAGIC) - 2 - length
    if len(shape) > 8 or math.prod(shape) * dtype.itemsize != n_bytes:
        raise InputError(f"an array of {dtype} has the shape {str(shape)[:60]}, and {n_bytes} bytes")
    flat = np.empty(math.prod(shape), dtype=dtype)
    _fill(stream, flat)
    _check_items(flat)
    native = flat.astype(dtype.newbyteorder("="), copy=False)
    return native.reshape(shape, order="F" if is_fortran else "C")


def _is_plain(dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "SU":
        return 0 < dtype.itemsize <= 2**16
    return dtype.itemsize in _ITEM_SIZES.get(dtype.kind, ()) and dtype.shape == ()


def _exactly(stream: IO[bytes], n: int) -> bytes:
    found = stream.read(n)
    if len(found) != n:
        raise InputError("an array ends before its header does")
    return found


def _fill(stream: IO[bytes], flat: Array) -> None:
    room = memoryview(flat.view(np.uint8).data) if flat.size else memoryview(b"")
    filled = 0
    while filled < len(room):
        found = stream.read(min(len(room) - filled, 1 << 20))
        if not found:
            raise InputError("an array ends before its last number")
        room[filled : filled + len(found)] = found
        filled += len(found)


def _check_items(flat: Array) -> None:
    """Step 4."""
    if flat.dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise InputError("an array of booleans holds something else")
    if flat.dtype.kind == "U" and flat.size:
        points = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        if ((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))).any():
            raise InputError("an array of text holds something that is no character")
