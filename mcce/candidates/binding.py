"""What constraints do: how many draws without them would break each, and how many rows they let pass.

1. A constraint binds as far as draws without any constraints break it; that share is found from some factuals' draws.
2. While rows are drawn inside the constraints, those of which nothing allowed can be drawn die. For each constraint it
   is counted how many rows came to it alive and how many passed. What several constraints say of one feature is drawn
   together, and counted together.
3. What numbers may be for each factual is told as a lowest and a highest value; rules and grids are left aside.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Floats, Ints, UInts
from mcce.candidates.pools import draw_pools
from mcce.constraints import Constraints
from mcce.generators.base import Generator

MOST_FACTUALS, MOST_DRAWS = 100, 100


def binding_table(
    generator: Generator,
    constraints: Constraints,
    matrix: Floats,
    ids: pd.Index[Any],
    keys: UInts,
    acceptance: Mapping[Hashable, Ints],
) -> pd.DataFrame:
    """Return `breaks`, `tried` and `passed` by constraint, for some factuals (encoded rows, names, keys)."""
    some = np.unique(np.linspace(0, max(len(ids) - 1, 0), MOST_FACTUALS).astype(np.intp))[: len(ids)]
    breaks = dict.fromkeys(constraints.texts, np.nan)
    if some.size:
        pools = draw_pools(generator, matrix[some], keys[some], MOST_DRAWS)
        rows = np.concatenate([pools.rows[a:b] for a, b in zip(pools.begin, pools.end)])
        owner = np.repeat(some, pools.end - pools.begin)
        broken = constraints.broken(rows, matrix[owner], ids[owner])
        breaks |= {text: float(which.mean()) for text, which in broken.items()}
    counts = [acceptance.get(constraints.counted_as(text), (0, 0)) for text in constraints.texts]
    table = pd.DataFrame(np.array(counts, dtype=np.int64).reshape(-1, 2), columns=["tried", "passed"])
    table.insert(0, "breaks", list(breaks.values()))
    return table.set_axis(pd.Index(list(breaks), dtype=object, name="constraint"), axis=0)


def allowed_table(constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> pd.DataFrame:
    """Return the lowest and highest value that each factual is allowed, for numbers that a constraint limits (step 3).

    The columns are (feature, "low") and (feature, "high"), inside the training range; missing where no number is
    allowed.
    """
    columns: dict[tuple[Hashable, str], Any] = {}
    for name, within in constraints.within(matrix, ids).items():
        feature = constraints.schema.features[constraints.schema.position(name)]
        if not feature.is_numeric or np.isnan(feature.low):
            continue
        low, high = within.bounds(len(ids))
        some = low <= high
        for end, bound in (("low", low), ("high", high)):
            inside = np.clip(np.where(some, bound, feature.low), feature.low, feature.high)
            ends = pd.Series(feature.decode(inside)).set_axis(ids)
            columns[name, end] = ends if some.all() else ends.where(some)
    limited = list(dict.fromkeys(name for name, _ in columns))
    # a feature may be named by a tuple, which pandas would take apart
    levels: list[Any] = [pd.Index(limited, dtype=object, tupleize_cols=False), ["low", "high"]]
    codes = [np.repeat(np.arange(len(limited)), 2).tolist(), [0, 1] * len(limited)]
    names = pd.MultiIndex(levels=levels, codes=codes, names=["feature", "end"])
    table = pd.DataFrame(dict(enumerate(columns.values())), index=ids)
    return table.set_axis(names if columns else pd.Index([]), axis=1)
