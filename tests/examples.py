"""How many random cases a test of a property tries: all of them with `MCCE_THOROUGH=1`, else a quarter."""

import os

from hypothesis import settings

THOROUGH = os.environ.get("MCCE_THOROUGH") == "1"


def examples(number, **more):
    """Return the settings of a property that is tried on so many cases, or on a quarter of them."""
    return settings(max_examples=number if THOROUGH else max(number // 4, 5), **more)
