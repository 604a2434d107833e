"""What the chain gives to choose from: rows like real ones, and the candidates of each factual.

1. `draw_like`: one generated row for each real row, given its fixed values and its own decision. Compared with the real
   rows these tell whether the chain is realistic, whatever the mix of decisions.
2. `candidate_table`: for each factual, how many of its K candidates are distinct, how many have the wanted decision.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats
from mcce.explainer import Explainer
from mcce.generators.base import DrawRequest, Generator
from mcce.generators.givens import occurrences
from mcce.rng import derive_key, hash_rows

BLOCK_CELLS = 4_000_000  # of candidates held at a time


def draw_like(generator: Generator, matrix: Floats, wanted: npt.NDArray[np.bool_], seed: int) -> Floats:
    """Draw a row for each encoded row, given its fixed values and its decision (step 1)."""
    givens = generator.givens_of(matrix, wanted)
    keys = hash_rows(givens)
    request = DrawRequest(givens, keys, occurrences(keys), derive_key(seed, "diagnose"))
    return generator.draw(request, progress=False).rows


def candidate_table(explainer: Explainer, factuals: pd.DataFrame, n_samples: int) -> pd.DataFrame:
    """Return the candidates of each factual in numbers (step 2).

    Parameters
    ----------
    explainer : fitted MCCE
    factuals : DataFrame
        Rows with the training columns and a unique index.
    n_samples : int
        K, rows drawn for each factual.

    Returns
    -------
    DataFrame
        Indexed as `factuals`: `candidates` (K; fewer inside constraints), `distinct`, `valid` and
        `distinct_valid`, counts; and `validity`, the share of the candidates with the wanted decision.
    """
    schema = explainer.generator_.schema_
    at_once = max(1, BLOCK_CELLS // (n_samples * len(schema)))
    counts = []
    for begin in range(0, len(factuals), at_once):
        some = factuals.iloc[begin : begin + at_once]
        drawn = explainer.generate(some, n_samples=n_samples, allow_missing=True, progress=False)
        matrix = schema.encode(drawn, "candidates").matrix
        _, first, place = np.unique(hash_rows(matrix), return_index=True, return_inverse=True)
        wanted = explainer.decision_.ask(schema.decode_for_model(matrix[first]), "the candidates").wanted
        sizes = drawn.index.get_level_values(0).value_counts(sort=False).reindex(some.index, fill_value=0)
        for rows in np.split(place, np.cumsum(sizes.to_numpy())[:-1]):  # constraints may leave fewer than K
            distinct = np.unique(rows)
            counts.append((rows.size, distinct.size, int(wanted[rows].sum()), int(wanted[distinct].sum())))
    names = ["candidates", "distinct", "valid", "distinct_valid"]
    table = pd.DataFrame(counts, index=factuals.index, columns=names)
    return table.assign(validity=table["valid"] / table["candidates"].clip(lower=1))
