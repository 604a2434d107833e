"""Explaining a table of any size, batch by batch, into a folder that survives being killed.

1. A source is cut into parts: the rows of a file, a batch of them at a time (`mcce.batches.sources`). Where a part
   begins depends on the source and the size of a batch alone.
2. The folder is locked, so that one run at a time writes to it (`mcce.batches.folder`), and holds a manifest of what
   it was begun with: another input, other settings or another explainer are refused (`mcce.batches.folder`).
3. A part is explained by one worker (`mcce.batches.parts`), here or elsewhere, through joblib; the fitted explainer is
   sent once a worker (`mcce.batches.workers`).
4. What was found is written beside and renamed, the part's own manifest with its checksums last: a part is finished
   when that stands. Whoever runs the same again keeps finished parts and does the others.
5. On demand a letter is written for each person, before the part that she is in is finished (`mcce.batches.letters`).

The answer for a factual does not depend on its batch, so the bytes are the same for every backend, number of workers
and history of interruptions.
"""

from mcce.batches.folder import BatchResult
from mcce.batches.letters import Letters
from mcce.batches.running import explain_batches

__all__ = ["BatchResult", "Letters", "explain_batches"]
