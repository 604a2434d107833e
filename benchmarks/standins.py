"""Simulated tables of the shape of the paper's four data sets, used if the data are not available.

Rows, order of columns, kinds, numbers of distinct values and shares of the most frequent value are those of
the real data (`SHAPES`); the values are not. A table is drawn as follows:

1. Every column has a latent z = sqrt(0.3) u + sqrt(0.7) e, with u shared by the row and u, e standard normal.
2. A column whose most frequent value has a share s has that value, 0 or level 0, where z is below the
   quantile s of the normal distribution. The rest of z is cut into equally likely pieces, one for each other
   distinct value: the numbers 1, 4, 9, ... or the levels 1, 2, 3, ...
3. The response is the wanted one where the sum of the row's z, plus noise, is above the quantile that gives
   the share of the real data.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import norm

from mcce.datasets import Dataset

# name: (rows, share of the wanted response, fixed columns, columns). A column is its kind ("n" numbers, "c"
# categories), its distinct values and the share of the most frequent one.
SHAPES: dict[str, tuple[int, float, list[int], str]] = {
    "adult": (
        48842,
        0.239,
        [0, 8],
        "n74:.03 c9:.69 n28523:0 n16:.32 c7:.46 c15:.13 c6:.40 c5:.86 c2:.67 n123:.92 n99:.95 n96:.47 c42:.90",
    ),
    "gmc": (
        115527,
        0.932,
        [1],
        "n98910:.07 n74:.03 n11:.83 n105323:.02 n13067:.02 n25:.09 n11:.94 n5:.37 n9:.95 n5:.55",
    ),
    "fico": (
        9871,
        0.480,
        [0],
        "n61:.04 n525:.02 n111:.12 n236:.02 n73:.04 n18:.69 n16:.77 n71:.47 n86:.47 c9:.43 c7:.46 "
        "n87:.04 n18:.26 n95:.05 n27:.46 n26:.40 n26:.41 n127:.06 n138:.35 n30:.17 n19:.29 n18:.44 n94:.13",
    ),
    "german": (
        1000,
        0.700,
        [3, 12, 8],
        "c4:.39 n33:.18 c5:.53 c10:.28 n921:0 c5:.60 c5:.34 n4:.48 c4:.55 c3:.91 n4:.41 c4:.33 n53:.05 "
        "c3:.81 c3:.71 n4:.63 c4:.63 n2:.84 c2:.60 c2:.96",
    ),
}


def load_standin(name: str, *, seed: int = 7) -> Dataset:
    """Return the stand-in of one of `SHAPES`."""
    n, share_wanted, fixed, columns = SHAPES[name]
    rng = np.random.default_rng(seed)
    row_effect = rng.standard_normal(n)
    table, total = {}, np.zeros(n)
    for j, column in enumerate(columns.split()):
        n_values, share = int(column[1:].split(":")[0]), float(column.split(":")[1])
        z = np.sqrt(0.3) * row_effect + np.sqrt(0.7) * rng.standard_normal(n)
        total += z
        beyond = np.clip((norm.cdf(z) - share) / (1 - share), 0, 1 - 1e-12)  # uniform above the most frequent value
        code = np.where(norm.cdf(z) < share, 0, 1 + np.floor(beyond * (n_values - 1))).astype(np.int64)
        levels = [f"level {k}" for k in range(n_values)]
        table[f"x{j}"] = code**2 if column[0] == "n" else pd.Categorical.from_codes(code, levels)
    noisy = total / total.std() + rng.standard_normal(n)
    y = pd.Series(noisy > np.quantile(noisy, 1 - share_wanted), name="y")
    description = f"A simulated stand-in of the shape of {name!r}."
    return Dataset(name, pd.DataFrame(table), y, [f"x{j}" for j in fixed], True, description)
