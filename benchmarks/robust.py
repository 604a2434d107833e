"""Do counterfactuals of `Robust(share=0.9)` hold for refits that were not used to select them?

    python -m benchmarks.robust [--only DATA,...] [--models MODEL,...] [--factuals N] [--refits N,...] [--out FILE]

The paper's data sets (`--data`, MCCE_DATA), 500 training rows, binarised categories as in the paper; logistic
regression, gradient boosting and random forests. Each refused factual gets its sparse counterfactual without `Robust`
(0 refits), with all of 30 refits (share=1), and with as many refits as `Robust(share=0.9)` needs. A counterfactual
holds if at least nine in ten of 50 fresh models accept it:

1. `refits`: fitted to other bootstrap samples of the same training rows, with other seeds. `Robust` is designed for
   these: 95 per cent of the counterfactuals should hold.
2. `samples`: fitted to bootstrap samples of the same number of rows outside the training rows. `Robust` gives no
   guarantee for these: the model in use and its refits share the sampling error of the training rows.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mcce
from benchmarks.settings import LOADERS, find_data, load_data
from mcce.base.threads import one_native_thread
from mcce.model.robustness import refits_needed

MODELS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": GradientBoostingClassifier(n_estimators=30, random_state=1),
    "forest": RandomForestClassifier(15, min_samples_leaf=3, random_state=1),
}
TRAINING, FRESH, SHARE = 500, 50, 0.9


def measure(data: str, name: str, folder: Path | None, n_factuals: int, n_refits: list[int]) -> list[dict[str, Any]]:
    """Return a line for each number of refits, including 0."""
    whole, _ = load_data(data, folder)
    order = np.random.default_rng(0).permutation(len(whole.X))
    n_train = min(TRAINING, len(order) // 2)
    table = whole.X.copy()
    levels = [c for c in table.columns if isinstance(table[c].dtype, pd.CategoricalDtype)]
    for c in levels:
        table[c] = (table[c] == table[c].mode()[0]).astype(np.int64)
    parts = [
        (table.iloc[some].reset_index(drop=True), whole.wanted[some].astype(int))
        for some in (order[:n_train], order[n_train : 2 * n_train])
    ]
    (X, y), others = parts
    model = clone(MODELS[name]).fit(X, y)
    kinds = dict.fromkeys(levels, "categorical")
    explainer = mcce.MCCE(model, decision=(0.5, 1), fixed=list(whole.fixed), kinds=kinds, random_state=1).fit(X)
    refused = X[model.predict(X) == 0].head(n_factuals)
    fresh = {
        "refits": mcce.bootstrap_refits(model, X, y, FRESH, random_state=12345),
        "samples": mcce.bootstrap_refits(model, *others, FRESH, random_state=54321),
    }
    lines = []
    for n in (0, *n_refits):
        begun = time.perf_counter()
        refits = mcce.bootstrap_refits(model, X, y, n) if n else []
        fitted = time.perf_counter()
        robust = mcce.Robust(refits=refits, share=SHARE if n >= refits_needed(SHARE) else 1.0) if n else None
        found = explainer.explain(refused, sparse=True, n_samples=200, robust=robust)
        searched = time.perf_counter()
        line = {"data": data, "model": name, "refits": n, "explained": len(found), "of": len(refused)}
        for kind, models in fresh.items():
            share = np.mean([each.predict(found.frame) for each in models], axis=0) if len(found) else np.empty(0)
            line[f"{kind} hold"] = float((share >= SHARE).mean())
            line[f"{kind} mean"] = float(share.mean())
        line |= {"gower": found.measures["gower"].mean(), "fit s": fitted - begun, "search s": searched - fitted}
        lines.append(line)
        print(pd.DataFrame([line]).round(3).to_string(index=False, header=not n), flush=True)
    return lines


def main() -> None:
    """Measure and write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--only", default=",".join(LOADERS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--factuals", type=int, default=16)
    parser.add_argument("--refits", default=f"30,{refits_needed(SHARE)}")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    n_refits = [int(n) for n in given.refits.split(",")]
    with one_native_thread():
        lines = [
            line
            for data in given.only.split(",")
            for model in given.models.split(",")
            for line in measure(data, model, find_data(given.data), given.factuals, n_refits)
        ]
    if given.out is not None:
        table = pd.DataFrame(lines).round(3)
        head = [table.columns, ["---"] * table.shape[1], *table.astype(str).to_numpy()]
        given.out.write_text("\n".join(f"| {' | '.join(row)} |" for row in head) + "\n")


if __name__ == "__main__":
    main()
