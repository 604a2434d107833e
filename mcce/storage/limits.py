"""What a file may be, so that reading it takes no more than its size: the rules that writer and reader share.

1. A file is a zip of `manifest.json`, `state.json` and `0.npy`, `1.npy`, ...; no other name, no folder, no name twice.
2. An entry is stored or deflated. Deflating makes a few bytes of a long run, and a crafted file uses that: an array
   larger than `SMALL` may not be packed more than `MOST_PACKED` times, and JSON, which becomes many objects, not at
   all; the writer stores such an entry as it is.
3. All entries together are no larger than `SMALL` and `MOST_PACKED` times the file, however small each of them is; no
   two of them share bytes of the file, and every array has one place in the state.
"""

from __future__ import annotations

import re

from mcce.exceptions import InputError

FORMAT, VERSION = "mcce", 1
KINDS = ("ChainModel", "JointGenerator", "MCCE", "Counterfactuals")
MANIFEST, STATE = "manifest.json", "state.json"
ARRAY = re.compile(r"(0|[1-9][0-9]{0,8})\.npy")
SMALL = 1 << 20
MOST_PACKED = 64
MOST_DEPTH = 64  # of lists and dicts inside each other


class RefusedFileError(InputError):
    """A file that is sound, but not for this call or this version; the message says what to do."""


def is_too_packed(name: str, size: int, packed: int) -> bool:
    """Return whether an entry is larger than its packed bytes may become."""
    return size > SMALL and size > packed * (MOST_PACKED if ARRAY.fullmatch(name) else 1)
