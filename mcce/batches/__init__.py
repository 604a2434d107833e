"""Explanations for tables of any size, written part by part to a folder; an interrupted run can be resumed.

A source is cut into parts by row number (`sources`). Workers explain the parts (`parts`, `workers`). The folder holds a
lock, a manifest of input and settings, and the finished parts (`folder`). A part is finished when its own manifest,
with checksums, is written; a second run with the same input keeps finished parts. The bytes do not depend on backend,
number of workers or interruptions.
"""

from mcce.batches.folder import BatchResult
from mcce.batches.letters import Letters
from mcce.batches.running import explain_batches

__all__ = ["BatchResult", "Letters", "explain_batches"]
