"""Settings for all tests."""

import os

# the small models of the tests gain nothing from OpenMP threads, and wait long for them on a busy machine
os.environ.setdefault("OMP_NUM_THREADS", "1")
