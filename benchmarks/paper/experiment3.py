"""Experiment 3: are the rows that the chain generates realistic? (the paper's section 3.3)

For each data set, binarised and with the rows of the authors' code, the chain of trees alone, without the response
and without the decision:

1. "new": the chain is fitted on one half of the rows and draws a row for each row of the other half, given its fixed
   values. Both are compared: marginals, correlations, discriminator. The honest comparison.
2. "seen": fitted on all rows and compared with these same rows. The paper mixes generated rows with "samples from the
   real training data set", so this may be closer to its procedure; a chain that copied rows would score well here.
3. "real": one half of the real rows against the other, the result of a perfect generator.

The discriminator is a random forest of 100 trees with scikit-learn's defaults, trained on 70 per cent of at most
10,000 real and as many generated rows and tested on the rest; mean over five seeds. The paper publishes neither sizes
nor settings of its forest.
"""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pandas as pd

import mcce
from benchmarks.paper.options import Options
from benchmarks.paper.output import Table, fixed_point, save_figure, write
from benchmarks.paper.problems import Preparation, Rows, prepare
from benchmarks.paper.published import TITLES, published
from mcce.diagnostics import compare_correlations, discriminator, marginal_distances
from mcce.report.plots import correlation_plot, marginal_plot

ROWS_OF_CODE = Preparation("rows of the code", rows=True)
MOST_ROWS = 10_000
FIGURES_OF = "fico"  # the paper's choice


def run(options: Options) -> None:
    """Run the experiment, write its tables and draw its figures."""
    found, marginals = [], []
    for name in options.names:
        options.write_line(f"{name}: marginals, correlations, discriminator")
        rows = prepare(name, options.folder, ROWS_OF_CODE, most=options.rows)
        for label, real, generated, paired in generate(rows):
            figures, by_feature = compare(rows, real, generated, paired, quick=options.quick)
            found.append({"data": name, "rows": label, **figures})
            marginals.append(by_feature.assign(data=name, rows=label))
            if name == FIGURES_OF and label == "seen":
                draw(rows, real, generated, options)
    tables = [realism_table(pd.DataFrame(found)), marginals_table(pd.concat(marginals, ignore_index=True))]
    write("experiment3", "Experiment 3: are the generated rows realistic?", tables, options, names=options.names)


def generate(rows: Rows) -> list[tuple[str, pd.DataFrame, pd.DataFrame, bool]]:
    """Return label, real rows, the rows to compare them with, and whether these are paired by their fixed values."""
    order = np.random.default_rng(1).permutation(len(rows.X))
    first, second = rows.X.iloc[order[: len(order) // 2]], rows.X.iloc[order[len(order) // 2 :]]

    def draw_from(train: pd.DataFrame, given: pd.DataFrame) -> pd.DataFrame:
        kinds: Any = dict.fromkeys(rows.categorical, "categorical")
        chain = mcce.ChainModel(fixed=rows.fixed, kinds=kinds, random_state=1).fit(train, progress=False)
        return chain.sample(given=given[rows.fixed])

    return [
        ("new", second, draw_from(first, second), True),
        ("seen", rows.X, draw_from(rows.X, rows.X), True),
        ("real", second, first, False),
    ]


def compare(
    rows: Rows, real: pd.DataFrame, generated: pd.DataFrame, paired: bool, *, quick: bool
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Return the figures of two tables, and the distances of their marginals by feature."""
    kinds: Any = dict.fromkeys(rows.categorical, "categorical")
    distances = marginal_distances(real, generated, kinds=kinds).reset_index()
    correlated = compare_correlations(real, generated, kinds=kinds)
    discriminated = discriminator(
        real,
        generated,
        paired=paired,
        kinds=kinds,
        max_rows=MOST_ROWS,
        n_seeds=2 if quick else 5,
        n_trees=10 if quick else 100,
    )
    figures = {
        "accuracy": discriminated.accuracy,
        "accuracy_sd": discriminated.sd,
        "n_rows": discriminated.settings["n_rows"],
        "n_test": discriminated.settings["n_test"],
        "n_trees": discriminated.settings["n_trees"],
        "marginal_mean": distances["distance"].mean(),
        "marginal_largest": distances["distance"].max(),
        "correlation_mean": correlated.mean_difference,
        "correlation_largest": correlated.largest_difference,
    }
    return figures, distances[["feature", "kind", "distance", "wasserstein"]]


def realism_table(numbers: pd.DataFrame) -> Table:
    """Return the accuracy of the discriminator, the paper's, and the distances of marginals and correlations."""
    theirs = published("sec:quality").set_index("data")["accuracy"]
    numbers["accuracy_paper"] = numbers["data"].map(theirs).where(numbers["rows"] != "real")
    shown = pd.DataFrame(
        {
            "": numbers["data"].map(TITLES) + ", " + numbers["rows"],
            "accuracy, %": (100 * numbers["accuracy"]).map("{:.1f}".format),
            "(sd)": (100 * numbers["accuracy_sd"]).map("({:.1f})".format),
            "paper, %": fixed_point(100 * numbers[["accuracy_paper"]], "accuracy_paper", 1),
            "of rows": numbers["n_rows"],
            "marginals": fixed_point(numbers, "marginal_mean", 3),
            "worst": fixed_point(numbers, "marginal_largest", 3),
            "correlations": fixed_point(numbers, "correlation_mean", 3),
            "largest": fixed_point(numbers, "correlation_largest", 3),
        }
    )
    notes = (
        "accuracy: of a random forest that distinguishes generated from real rows; 50 per cent is chance. of rows: "
        "of each kind, 70 per cent to train on. new: real rows not used for fitting. seen: the rows it was "
        "fitted on. real: two halves of the real rows. marginals: mean over the features of the largest "
        "difference in probability (Kolmogorov-Smirnov; total variation for categories). correlations: mean "
        "absolute difference over the pairs."
    )
    return Table("experiment3", "Discriminator, marginals, correlations", numbers, shown, notes)


def marginals_table(numbers: pd.DataFrame) -> Table:
    """Return the distance of each marginal, for rows not used for fitting."""
    numbers = numbers[["data", "rows", "feature", "kind", "distance", "wasserstein"]]
    new = numbers[numbers["rows"] == "new"].sort_values("distance", ascending=False, kind="stable")
    worst = new.groupby("data", sort=False).head(3).sort_values("data", kind="stable")
    shown = pd.DataFrame(
        {
            "": worst["data"].map(TITLES) + ": " + worst["feature"].astype(str),
            "kind": worst["kind"],
            "distance": fixed_point(worst, "distance", 3),
        }
    )
    notes = "The three worst marginals of each data set, rows that the chain has not seen; the CSV has all."
    return Table("experiment3_marginals", "Marginals", numbers, shown, notes)


def draw(rows: Rows, real: pd.DataFrame, generated: pd.DataFrame, options: Options) -> None:
    """Save the paper's figures: histograms, both correlation matrices and their difference."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    kinds: Any = dict.fromkeys(rows.categorical, "categorical")
    some = np.random.default_rng(1).permutation(len(generated))[:MOST_ROWS]
    generated = generated.iloc[some]
    distances = marginal_distances(real, generated, kinds=kinds)["distance"]
    notes = {feature: f"distance {distance:.3f}" for feature, distance in distances.items()}
    correlated = compare_correlations(real, generated, kinds=kinds)
    figures = {"marginals": marginal_plot(real, generated, kinds=kinds, notes=notes, n_columns=4).flat[0].figure}
    for name, matrix in (("real", correlated.real), ("generated", correlated.generated)):
        figures[f"correlations_{name}"] = correlation_plot(matrix, title=f"Correlations, {name} rows").figure
    title = "Difference of the correlations, generated minus real"
    figures["correlations_difference"] = correlation_plot(correlated.difference, title=title, scale=0.2).figure
    for name, figure in figures.items():
        save_figure(figure, f"experiment3_{name}", options)
        plt.close(figure)
    options.write_line(f"{len(figures)} figures drawn")
