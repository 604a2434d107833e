"""Random mixed tables for comparisons with R's trees: kinds, ties, rare levels, constants, copies, tiny sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

NUMBERS = ("normal", "rounded", "whole", "binary", "skewed", "constant")
RESPONSES = ("number", "whole", "binary", "two", "classes", "ordered")


def random_table(rng: np.random.Generator, missing: bool = False) -> pd.DataFrame:
    """A table with the response `y` last. With `missing`, all columns but the first and `y` may miss values."""
    n = int(rng.choice([rng.integers(3, 30), rng.integers(20, 120), rng.integers(100, 400)], p=[0.1, 0.4, 0.5]))
    p = int(rng.integers(1, 8))
    columns: dict[str, Any] = {f"x{j + 1}": random_column(rng, n) for j in range(p)}
    if p > 1 and rng.random() < 0.2:
        columns[f"x{p}"] = columns["x1"].copy()
    table = pd.DataFrame(columns)
    score = rng.normal(size=n)
    for name in table.columns[rng.random(p) < 0.5]:
        column = table[name]
        effect = column.to_numpy(dtype=float) if column.dtype == float else _effects(rng, column)
        score += rng.choice([0.3, 1, 5]) * (effect - effect.mean()) / (effect.std() or 1.0)
    table["y"] = random_response(rng, score)
    if missing:
        for name in table.columns[1:-1]:
            if rng.random() < 0.6:
                table.loc[rng.random(n) < 0.4 * rng.random(), name] = np.nan
    return table


def random_column(rng: np.random.Generator, n: int) -> pd.Series[Any]:
    kind = rng.choice([*NUMBERS, "factor", "ordered"], p=[0.2, 0.15, 0.15, 0.08, 0.06, 0.04, 0.22, 0.1])
    if kind in NUMBERS:
        normal = rng.normal(size=n)
        values = {
            "normal": normal * 10.0 ** rng.integers(-2, 3),
            "rounded": np.round(normal * 3 + rng.choice([0, 20]), int(rng.integers(0, 2))),
            "whole": rng.integers(0, int(rng.integers(2, 30)), n).astype(float),
            "binary": (rng.random(n) < rng.choice([0.5, 0.2, 0.03])).astype(float),
            "skewed": np.round(np.exp(normal), 2),
            "constant": np.full(n, rng.choice([0.0, 1.0, 0.1, -3.7])),
        }
        return pd.Series(values[str(kind)])
    n_levels = int(rng.choice([2, 2, 3, 4, 6, 9, 12]))
    shares = rng.dirichlet(np.full(n_levels, rng.choice([0.3, 1, 5])))
    levels = [f"l{k}" for k in range(n_levels)]
    return pd.Series(pd.Categorical.from_codes(rng.choice(n_levels, n, p=shares), levels, ordered=kind == "ordered"))


def random_response(rng: np.random.Generator, score: np.ndarray) -> Any:
    kind = str(rng.choice(RESPONSES))
    if kind == "number":
        return score * 10.0 ** rng.integers(-1, 3)
    if kind == "whole":
        return np.round(score)
    n_levels = int(rng.integers(2, 7)) if kind in ("classes", "ordered") else 2
    cuts = np.quantile(score, np.sort(rng.uniform(0.05, 0.95, n_levels - 1)))
    codes = np.searchsorted(cuts, score)
    if kind == "binary":
        return codes.astype(float)
    if kind == "classes":
        codes = rng.permutation(n_levels)[codes]
    return pd.Categorical.from_codes(codes, [f"k{k}" for k in range(n_levels)], ordered=kind == "ordered")


def _effects(rng: np.random.Generator, column: pd.Series[Any]) -> np.ndarray:
    return rng.normal(size=len(column.cat.categories))[column.cat.codes]


def new_rows(rng: np.random.Generator, table: pd.DataFrame, n: int = 60) -> pd.DataFrame:
    """Rows of the same columns, drawn independently; factors take any of their levels."""
    rows = {}
    for name, column in table.drop(columns="y").items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = rng.integers(0, len(column.cat.categories), n)
            rows[name] = pd.Categorical.from_codes(codes, dtype=column.dtype)
        else:
            known = column.dropna().to_numpy() if column.notna().any() else np.zeros(1)
            rows[name] = rng.choice(known, n) + rng.choice([0.0, 1e-3], n)
    return pd.DataFrame(rows)


def logical_table(rng: np.random.Generator) -> pd.DataFrame:
    """Few rows, logicals beside equivalent or opposite numbers and factors; the response `y` last."""
    n = int(rng.integers(8, 60))
    score = rng.normal(size=n)
    columns: dict[str, Any] = {}
    known: list[np.ndarray] = []
    for j in range(int(rng.integers(2, 7))):
        latent = score * rng.choice([0, 0.5, 1, 3]) + rng.normal(size=n)
        yes = latent > np.quantile(latent, rng.choice([0.5, 0.5, 0.3, 0.1]))
        if known and rng.random() < 0.4:
            yes = known[rng.integers(0, len(known))] ^ (rng.random() < 0.5)
        known.append(yes)
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
