"""Good files, changed and signed again; and the refusal of them."""

import tracemalloc

import pytest

import mcce
from mcce import InputError


def refuse(path, data, match, load=mcce.ChainModel.load):
    """Load bytes, which must be refused, and return how many bytes of memory that took at most."""
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=rf"'{path.name}' cannot be loaded: .*{match}"):
            load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
