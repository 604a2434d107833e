"""Sizes and times of proofs by `why_unexplained(prove=True)`.

    python -m benchmarks.proofs [--only MODEL,...] [--features P,...] [--limit SECONDS] [--out FILE]

1. Draw 2000 rows of independent normal features with two decimals. The response depends on four features, and the model
   is trained on it. Wanted is a score above those of 98 per cent of the rows.
2. Explain a refused row with one draw, one fixed feature, `max_changes=2` and a linear rule of two features; take the
   first row without a counterfactual.
3. Prove that no valid row exists, or find the nearest one. Report the CPU seconds of one thread, and the outcome.

Proofs are compared with enumeration by `pytest -m nightly tests/explain/test_proof.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import mcce
from benchmarks import report
from benchmarks.page import Page, read_names
from benchmarks.speed import describe_machine
from mcce.base.threads import one_native_thread
from mcce.explain.proof import FOUND, NONE, UNKNOWN

MODELS: dict[str, Any] = {
    "logistic regression": LogisticRegression(),
    **{
        f"forest {n} x {depth}": RandomForestClassifier(n, max_depth=depth, random_state=1)
        for n, depth in ((10, 4), (30, 4), (100, 4), (10, 6), (30, 6), (100, 6), (10, 8), (30, 8))
    },
    **{f"boosting {n} x 3": GradientBoostingClassifier(n_estimators=n, max_depth=3, random_state=1) for n in (30, 100)},
}
TRAINING, TRIED = 2000, 50
NOTES = """\
`found.why_unexplained(id, prove=True)` for one refused row. model: number of trees x depth. outcome: what the proof
states. seconds: CPU time of one thread, without the search before the proof. The time limit counts wall-clock
seconds."""


def make_rows(n_features: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the training rows and the response."""
    rng = np.random.default_rng(n_features)
    X = pd.DataFrame(rng.normal(size=(TRAINING, n_features)).round(2), columns=[f"x{j}" for j in range(n_features)])
    score = X["x0"] + X["x1"] * X["x2"] + X["x3"] + rng.normal(size=TRAINING)
    return X, (score > 1).to_numpy().astype(int)


def prove(model: Any, n_features: int, limit: float) -> tuple[str, float]:
    """Return what the proof states, and its CPU seconds."""
    X, y = make_rows(n_features)
    scores = model.fit(X, y).predict_proba(X)[:, 1]
    wanted = float(np.quantile(scores, 0.98)), 1.0
    explainer = mcce.MCCE(model, decision=wanted, fixed=["x0"], random_state=1).fit(X)
    refused = X[scores < 0.5].head(TRIED)
    found = explainer.explain(refused, n_samples=1, max_changes=2, constraints=[mcce.rule("x1 + x2 <= 2")])
    place = found.unexplained.index[0]
    begun = time.process_time()
    found.why_unexplained(place)
    searched = time.process_time()
    why = found.why_unexplained(place, prove=True, time_limit=limit)
    seconds = time.process_time() - searched - (searched - begun)
    return next(outcome for outcome in (NONE, FOUND, UNKNOWN) if why["proof"].startswith(outcome)), seconds


def main(arguments: list[str] | None = None) -> int:
    """Prove for each number of features and model, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proofs", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(MODELS), help=f"models: {', '.join(MODELS)}")
    parser.add_argument("--features", default="10,30", help="numbers of features, comma-separated")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a proof")
    parser.add_argument("--out", type=Path, help="a Markdown file to write")
    chosen = parser.parse_args(arguments)
    page = Page("Proofs: sizes and times")
    page.write_line(report.about(describe_machine()))
    page.write_line(NOTES)
    rows = []
    with one_native_thread():
        for n_features in map(int, chosen.features.split(",")):
            for name in read_names(parser, "--only", chosen.only, list(MODELS)):
                outcome, seconds = prove(MODELS[name], n_features, chosen.limit)
                rows.append([name, str(n_features), outcome, f"{seconds:.1f}"])
                print(rows[-1], file=sys.stderr, flush=True)
    page.table(["model", "features", "outcome", "seconds"], rows)
    if chosen.out is not None:
        page.write(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
