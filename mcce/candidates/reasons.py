"""Why a factual has no counterfactual, as far as the training data tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats, Ints
from mcce.asking.factuals import Factuals
from mcce.candidates.pools import fixed_columns, pool_keys
from mcce.generators.base import Generator
from mcce.rng import hash_rows

ALREADY = "already has the wanted decision"
NOBODY_ALIKE = "no training row has its fixed values"
NONE_ALIKE_WANTED = "no training row with its fixed values"
NO_ROOM = "nothing can meet its constraints"


def unexplained_table(
    generator: Generator, factuals: Factuals, owner: Ints, n_samples: int | None, *, also: Sequence[str] = ()
) -> pd.DataFrame:
    """List the factuals that own no counterfactual, each with its reason; `also` is what else was asked of rows."""
    without = np.setdiff1d(np.arange(len(factuals)), owner)
    denied = without[~factuals.wanted[without]]
    keys = pool_keys(generator, factuals.matrix[denied], fixed_columns(generator))
    pool, first = np.unique(keys, return_index=True)  # reasons depend on the fixed values alone
    reasons = why_none(generator, factuals.matrix[denied[first]], n_samples, also=also)
    words = np.full(without.size, ALREADY, dtype=object)
    words[~factuals.wanted[without]] = reasons[np.searchsorted(pool, keys)]
    frame = pd.DataFrame({"reason": pd.Series(words, dtype=object), "prediction": factuals.scores[without]})
    frame.index = factuals.index[without].rename("id")
    return frame


def why_none(
    generator: Generator, matrix: Floats, n_samples: int | None, *, also: Sequence[str] = ()
) -> npt.NDArray[np.object_]:
    """Say why each of some encoded rows has no counterfactual among `n_samples` draws, or among the candidates."""
    which = f"none of the {n_samples} candidates" if n_samples else "no candidate"
    tried = " and ".join([f"{which} has the wanted decision", *also])
    more = "draw more" if n_samples else "bring more of them"
    words = np.full(matrix.shape[0], f"{tried}; {more}", dtype=object)
    if not (generator.conditions_on_decision_ and generator.fixed_):
        return words
    n_alike, n_wanted = _count_alike(generator, matrix)
    words[:] = f"{tried}, though training rows with its fixed values do; {more}"
    for i in np.flatnonzero(n_wanted == 0).tolist():
        values = generator.schema_.decode(matrix[[i]])[generator.fixed_].iloc[0]
        said = ", ".join(f"{name} = {value}" for name, value in values.items())
        words[i] = (
            f"{tried}, and {NONE_ALIKE_WANTED} ({said}) has it"
            if n_alike[i]
            else f"{tried}, and {NOBODY_ALIKE} ({said})"
        )
    return words


def _count_alike(generator: Generator, matrix: Floats) -> tuple[Ints, Ints]:
    """Return how many training rows have the fixed values of each row, and how many of these the wanted decision."""
    training = generator.training_givens_
    known = hash_rows(training[:, :-1])
    asked = hash_rows(generator.givens_of(matrix)[:, :-1])
    counts = []
    for hashes in (known, known[training[:, -1] != 0]):
        hashes = np.sort(hashes)
        counts.append(np.searchsorted(hashes, asked, side="right") - np.searchsorted(hashes, asked))
    return counts[0], counts[1]
