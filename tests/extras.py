"""Reasons to skip tests of optional packages."""

from importlib.util import find_spec

import pytest

NO_VINE = "pyvinecopulib is not installed: pip install 'mcce[vine]', which has no wheel for Linux on ARM"
HAS_VINE = find_spec("pyvinecopulib") is not None

needs_vine = pytest.mark.skipif(not HAS_VINE, reason=NO_VINE)
