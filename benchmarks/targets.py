"""Conditionals on the targets that they can model: held-out log score, skill and seconds, relative to two baselines.

    python -m benchmarks.targets [--data DIR] [--only adult,...] [--samplers gamma,...] [--rows N] [--folds K]
                                 [--out FILE]

For each data set of the paper (categories not binarised, the paper's fixed features, a random `--rows` of its rows) and
the loans:

1. `mcce.compare_conditionals` fits every sampler to every mutable feature in `--folds` folds. A sampler that rejects a
   feature, or fails on it, does not model it.
2. For each sampler, over the features that it models with a comparable log score: the mean difference of the log scores
   from those of cart and of parametric on the same features.
3. Skill is 1 - loss / loss of the marginal, by CRPS or Brier score from draws: the median over the features that it
   models, because a single heavy tail of an exponentiated draw would dominate a mean.
4. "best" counts the features on which it has the best log score of all samplers.

A sampler is not judged on features that it cannot model.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import mcce
from benchmarks.page import Page, read_names
from benchmarks.settings import LOADERS, find_data, load_data

DATA = (*LOADERS, "loans")
YARDSTICKS = ("marginal", "cart", "parametric")
SAMPLERS = (*YARDSTICKS, "ctree", "norm", "pmm", "lognorm", "sqrtnorm", "cubertnorm", "norm.boot", "midastouch")
SAMPLERS += ("lasso.norm", "poisson", "negbin", "zip", "gamma", "beta", "quantile", "twopart", "lda", "lasso.logreg")
SAMPLERS += ("catall", "nested", "stack")
HEAD = ("", "targets", "log - cart", "log - parametric", "skill", "best", "s a target")


def compare(X: pd.DataFrame, fixed: list[str], samplers: Sequence[str], n_folds: int) -> pd.DataFrame:
    """Return the figures of each sampler over the features of one data set (steps 1 to 4)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mcce.exceptions.MCCEWarning)
        found = mcce.compare_conditionals(X, samplers, fixed=fixed, n_folds=n_folds, max_rows=len(X), n_draws=20)
    logs, losses = found.table("log_score"), found.table("loss")
    seconds = (found.table("fit_seconds") + found.table("draw_seconds")).where(losses.notna())
    skill = 1.0 - losses.div(losses["marginal"].replace(0.0, np.nan), axis=0)
    return pd.DataFrame(
        {
            "targets": losses.notna().sum(),
            "over_cart": logs.sub(logs["cart"], axis=0).mean(),
            "over_parametric": logs.sub(logs["parametric"], axis=0).mean(),
            "skill": skill.median(),
            "best": logs.eq(logs.max(axis=1), axis=0).sum(),
            "seconds": seconds.mean(),
        }
    )


def cells(name: str, row: pd.Series[float]) -> list[str]:
    """Return one line of the table; a sampler that models no feature has no figures."""
    if not row["targets"]:
        return [name, "0", *["-"] * 5]
    logs = ["-" if pd.isna(row[key]) else f"{row[key]:+.2f}" for key in ("over_cart", "over_parametric")]
    return [name, f"{row['targets']:.0f}", *logs, f"{row['skill']:.2f}", f"{row['best']:.0f}", f"{row['seconds']:.2f}"]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.targets", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", default=",".join(DATA), help="data sets, comma-separated")
    parser.add_argument("--samplers", default=",".join(SAMPLERS), help="in addition to marginal, cart and parametric")
    parser.add_argument("--rows", type=int, default=600, help="rows to take of each data set")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--out", help="write a Markdown page")
    chosen = parser.parse_args(arguments)
    named = read_names(parser, "--samplers", chosen.samplers, sorted(mcce.available_samplers()))
    samplers = list(dict.fromkeys([*YARDSTICKS, *named]))
    page = Page("Conditionals on the targets that they can model")
    page.write_line(
        f"`python -m benchmarks.targets --rows {chosen.rows} --folds {chosen.folds}`: every sampler on the mutable "
        "features that it can model, out of fold. Mean differences of log scores a feature; median skill; on how many "
        "features it is the best by the log score; seconds to fit and draw in all folds."
    )
    for name in read_names(parser, "--only", chosen.only, DATA):
        data, standin = load_data(name, find_data(chosen.data))
        rows = np.random.default_rng(1).permutation(len(data.X))[: chosen.rows]
        begun = time.process_time()
        found = compare(data.X.iloc[rows], list(data.fixed), samplers, chosen.folds)
        page.title(
            f"{name}{', a stand-in' if standin else ''} ({rows.size} rows, {found['targets'].max():.0f} targets)"
        )
        page.table(HEAD, [cells(label, row) for label, row in found.iterrows()])
        print(f"{time.process_time() - begun:.0f} s of CPU", flush=True)
        if chosen.out:
            page.write(Path(chosen.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
