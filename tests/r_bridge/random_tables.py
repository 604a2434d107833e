"""Random tables with logicals, few rows and many ties, for comparisons with party."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def logical_table(rng: np.random.Generator) -> pd.DataFrame:
    """Few rows, logicals beside equivalent or opposite numbers and factors; the response `y` last."""
    n = int(rng.integers(8, 60))
    score = rng.normal(size=n)
    columns: dict[str, Any] = {}
    earlier: list[np.ndarray] = []
    for j in range(int(rng.integers(2, 7))):
        latent = score * rng.choice([0, 0.5, 1, 3]) + rng.normal(size=n)
        yes = latent > np.quantile(latent, rng.choice([0.5, 0.5, 0.3, 0.1]))
        if earlier and rng.random() < 0.4:
            yes = earlier[rng.integers(0, len(earlier))] ^ (rng.random() < 0.5)
        earlier.append(yes)
        columns[f"x{j + 1}"] = _written(rng, yes)
    latent = score + rng.normal(size=n)
    columns["y"] = np.round(latent, 1) if rng.random() < 0.4 else _written(rng, latent > np.quantile(latent, 0.4))
    return pd.DataFrame(columns)


def _written(rng: np.random.Generator, yes: np.ndarray) -> Any:
    """No and yes as logicals, numbers, or levels."""
    kind = str(rng.choice(["logical", "number", "factor", "ordered"], p=[0.5, 0.2, 0.15, 0.15]))
    if kind == "logical":
        return yes
    codes = yes.astype(int)
    return codes if kind == "number" else pd.Categorical.from_codes(codes, ["no", "yes"], ordered=kind == "ordered")
