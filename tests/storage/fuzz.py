"""Corrupt valid files and use them: ``python -m tests.storage.fuzz FIRST LAST``; one line per kind of outcome.

A case that raises anything but an `MCCEError` is printed with its number, which reproduces it. Time and memory of each
case are limited; a case that exceeds a limit ends the process with its number in the log.
"""

from __future__ import annotations

import collections
import faulthandler
import random
import resource
import sys
import tempfile
import traceback
from pathlib import Path

from tests.storage.spoiling import good_files, spoil_bytes, spoil_entries, use

SECONDS, GIGABYTES = 60, 6


def spoilt(files, number: int):
    """Return the name, kind and bytes of a corrupted file; one in four is corrupted as bytes."""
    chance = random.Random(number)
    name = chance.choice(sorted(files))
    kind, data = files[name]
    return name, kind, (spoil_bytes if number % 4 == 0 else spoil_entries)(data, chance)


def run(first: int, last: int, report=print) -> collections.Counter:
    """Run the cases from `first` to before `last`; count the outcomes."""
    outcomes = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        files = good_files(Path(folder))
        path = Path(folder) / "spoilt.mcce"
        for number in range(first, last):
            name, kind, data = spoilt(files, number)
            path.write_bytes(data)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                outcome = use(kind, path, inspect=number % 3 == 0)
            except Exception as error:
                outcome = "FAILED"
                where = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(where.filename).name}:{where.lineno}"
                report(f"case {number} ({name}): {type(error).__name__}: {str(error)[:150]} at {place}")
            faulthandler.cancel_dump_traceback_later()
            outcomes[outcome, "bytes" if number % 4 == 0 else "entries"] += 1
    return outcomes


if __name__ == "__main__":
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))
    begin, end = map(int, sys.argv[1:3])
    for (what, how), count in sorted(run(begin, end).items()):
        print(f"{count:6d} {how} {what}")
