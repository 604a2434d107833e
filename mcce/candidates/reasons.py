"""Why a factual has no counterfactual, as far as the training data tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Floats, Ints
from mcce.asking.factuals import Factuals
from mcce.candidates.pools import fixed_columns, pool_keys
from mcce.generators.base import Generator

ALREADY = "already has the wanted decision"
NOBODY_ALIKE = "no training row has its fixed values"
NONE_ALIKE_WANTED = "no training row with its fixed values"
NO_ROOM = "nothing can meet its constraints"


def unexplained_table(
    generator: Generator, factuals: Factuals, owner: Ints, n_samples: int | None, *, also: Sequence[str] = ()
) -> pd.DataFrame:
    """List the factuals that own no counterfactual, each with its reason; `also` is what else was asked of rows."""
    without = np.setdiff1d(np.arange(len(factuals)), owner)
    keys = pool_keys(generator, factuals.matrix, fixed_columns(generator))
    reasons: dict[Any, str] = {}  # depends on the fixed values alone
    for i in without[~factuals.wanted[without]]:
        if keys[i] not in reasons:
            reasons[keys[i]] = why_none(generator, factuals.matrix[[i]], n_samples, also=also)
    words = [ALREADY if factuals.wanted[i] else reasons[keys[i]] for i in without]
    frame = pd.DataFrame({"reason": pd.Series(words, dtype=object), "prediction": factuals.scores[without]})
    frame.index = factuals.index[without].rename("id")
    return frame


def why_none(generator: Generator, matrix: Floats, n_samples: int | None, *, also: Sequence[str] = ()) -> str:
    """Say why a factual (an encoded row) has no counterfactual among `n_samples` draws, or among the candidates."""
    which = f"none of the {n_samples} candidates" if n_samples else "no candidate"
    tried = " and ".join([f"{which} has the wanted decision", *also])
    more = "draw more" if n_samples else "bring more of them"
    if not (generator.conditions_on_decision_ and generator.fixed_):
        return f"{tried}; {more}"
    fixed = generator.givens_of(matrix)[:, :-1]
    training = generator.training_givens_
    alike = ((training[:, :-1] == fixed) | (np.isnan(training[:, :-1]) & np.isnan(fixed))).all(axis=1)
    values = generator.schema_.decode(matrix)[generator.fixed_].iloc[0]
    words = ", ".join(f"{name} = {value}" for name, value in values.items())
    if not alike.any():
        return f"{tried}, and {NOBODY_ALIKE} ({words})"
    if not training[alike, -1].any():
        return f"{tried}, and {NONE_ALIKE_WANTED} ({words}) has it"
    return f"{tried}, though training rows with its fixed values do; {more}"
