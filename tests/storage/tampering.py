"""Valid files that are modified and signed again, and their rejection."""

import tracemalloc

import pytest

import mcce
from mcce import InputError


def refuse(path, data, match, load=mcce.ChainModel.load):
    """Load bytes, which must raise."""
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"'{path.name}' cannot be loaded: .*{match}"):
        load(path)


def memory_to_refuse(path, data, match):
    """Load bytes, which must raise, and return the peak memory in bytes."""
    tracemalloc.start()
    try:
        refuse(path, data, match)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
