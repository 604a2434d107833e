"""All diagnostics of a fitted explainer in one object (`Diagnostics`).

1. Realism: one generated row for each real row, given its fixed values and decision, compared by discriminator, pMSE,
   marginals, tables of counts and correlations.
2. Candidates: the number of distinct and of valid rows among the K draws of a factual.
3. Counterfactuals: L0, L1, violation, success; distance to the nearest training rows; copies of training rows.

Weighted rows are first resampled by weight (`mcce.table.weights.rows_by_weight`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.checks import check_count
from mcce.counterfactuals import Counterfactuals
from mcce.diagnostics.correlations import Correlations, compare_correlations
from mcce.diagnostics.discriminator import FEWEST_ROWS, Discriminator, discriminator
from mcce.diagnostics.evaluation import WORDS, Evaluation, evaluate
from mcce.diagnostics.marginals import marginal_distances
from mcce.diagnostics.neighbours import find_equal
from mcce.diagnostics.pairs import candidate_table, draw_like, read_pair, spread
from mcce.diagnostics.propensity import PMSE, count_columns, pmse
from mcce.diagnostics.tables import utility_tables
from mcce.exceptions import InputError
from mcce.explain.protocol import Explainer
from mcce.report.names import Names
from mcce.report.plots import changes_plot, marginal_plot, overview_plot
from mcce.table import Data, as_frame
from mcce.table.checks import check_row_names
from mcce.table.left_out import without_unknown_levels
from mcce.table.weights import read_weights, rows_by_weight

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mcce.base.canvas import Panels

PICTURES = ("overview", "marginals", "correlations", "difference", "changes")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Diagnostics:
    """The diagnostics of `MCCE.diagnose`. Parts that could not be computed are None; `notes` states why.

    Attributes
    ----------
    discriminator : Discriminator
        The accuracy of a random forest in distinguishing generated from real rows.
    pmse : PMSE
        The propensity score mean squared error of a logistic regression.
    marginals : DataFrame
        Distances feature by feature, see `marginal_distances`.
    tables : DataFrame
        Tables of counts for each pair of features (or each feature, if there is one), see `utility_tables`.
    correlations : Correlations
        Matrices of real and generated rows, and their difference.
    candidates : DataFrame
        For each factual the number of candidates, and of distinct and valid ones.
    found : Counterfactuals
        The evaluated counterfactuals.
    evaluation : Evaluation
        L0, L1, violation, success, distances to the training rows, copies.
    real, generated : DataFrame
        The compared rows; the generated row of each real row has the same position.
    notes : tuple of str
        The parts that could not be computed, and why.
    settings : mapping
        n_real, n_factuals, n_samples, random_state, sparse.
    names : Names
        Labels, units and formats of `MCCE`; texts and pictures use them, the tables do not.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> report = explainer.diagnose(X, n_samples=50, max_factuals=10, max_rows=200)
    >>> report.summary().columns.tolist()
    ['value', 'how to read it']
    >>> axes = report.plot("marginals")
    """

    discriminator: Discriminator | None
    pmse: PMSE | None
    marginals: pd.DataFrame | None
    tables: pd.DataFrame | None
    correlations: Correlations | None
    candidates: pd.DataFrame | None
    found: Counterfactuals | None
    evaluation: Evaluation | None
    real: pd.DataFrame
    generated: pd.DataFrame
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    names: Names = field(default_factory=Names)

    def summary(self) -> pd.DataFrame:
        """Return all figures in one table: value, and how to read it."""
        lines = self._realism() + self._candidates() + self._counterfactuals()
        return pd.DataFrame(lines, columns=["figure", "value", "how to read it"]).set_index("figure")

    def plot(self, which: str = "overview", ax: Axes | None = None) -> Axes | Panels:
        """Draw the diagnostics.

        Parameters
        ----------
        which : "overview", "marginals", "correlations", "difference" or "changes"
            An overview in four panels; the distributions of generated and real rows by feature; the correlations of
            the generated rows; their difference to those of the real rows; the changes of the counterfactuals.
        ax : Axes, optional
            Where to draw, for a picture with one panel.
        """
        if which not in PICTURES:
            raise InputError(f"which is {which!r}; allowed: {', '.join(map(repr, PICTURES))}.")
        if which == "changes":
            if self.found is None:
                raise InputError("there are no counterfactuals to draw; `notes` states why.")
            return changes_plot(self.found, ax)
        if self.correlations is None or self.marginals is None:
            raise InputError("generated and real rows were not compared; `notes` states why.")
        if which == "marginals":
            distances = self.marginals["distance"].items()
            notes = {self.names.heading(name): f"distance {distance:.2f}" for name, distance in distances}
            real, generated = (self.names.table(rows) for rows in (self.real, self.generated))
            return marginal_plot(real, generated, notes=notes, ax=ax)
        if which in ("correlations", "difference"):
            return self._labelled().plot("generated" if which == "correlations" else which, ax=ax)
        return self.plot_overview()

    def plot_overview(self, n_columns: int = 2, figure: Figure | None = None) -> Panels:
        """Draw the overview of `plot` with `n_columns` panels in a row, optionally on a given figure."""
        if self.correlations is None or self.marginals is None:
            raise InputError("generated and real rows were not compared; `notes` states why.")
        return overview_plot(
            self.marginals["distance"].rename(index=self.names.label),
            self.correlations.pairs,
            None if self.evaluation is None else self.evaluation.rows,
            None if self.candidates is None else self.candidates["validity"],
            n_columns=n_columns,
            figure=figure,
        )

    def _labelled(self) -> Correlations:
        """Return the correlations under the labels of the features."""
        assert self.correlations is not None
        c, label = self.correlations, self.names.label
        real, generated, difference = (
            part.rename(index=label, columns=label) for part in (c.real, c.generated, c.difference)
        )
        return Correlations(real, generated, difference, c.method)

    def _realism(self) -> list[tuple[str, str, str]]:
        lines = []
        if self.discriminator is not None:
            d = self.discriminator
            read = "of a random forest; 0.5: cannot distinguish generated rows"
            lines.append(("discriminator accuracy", f"{d.accuracy:.3f}", read))
        if self.pmse is not None:
            p = self.pmse
            read = f"logistic regression, {p.drawn} coefficients; 1 (fitted on these rows) to 2 (on others) at best"
            lines.append(("S_pMSE", f"{p.S_pMSE:.2f}", read))
        if self.marginals is not None:
            distance = self.marginals["distance"]
            read = f"{self.names.label(distance.idxmax())}; 0: the same distribution, 1: nothing in common"
            lines.append(("largest marginal distance", f"{distance.max():.3f}", read))
        if self.correlations is not None and len(self.correlations.pairs):
            c = self._labelled()
            first = c.pairs.iloc[0]
            read = f"largest {c.largest_difference:.2f}, of {first['feature']} with {first['other']}"
            lines.append(("mean difference of correlations", f"{c.mean_difference:.3f}", read))
        return lines

    def _candidates(self) -> list[tuple[str, str, str]]:
        if self.candidates is None:
            return []
        k, valid, distinct = (self.candidates[name] for name in ("candidates", "validity", "distinct"))
        worst = "for the worst case"
        return [
            ("valid candidates", f"{valid.mean():.1%}", f"of {k.iloc[0]} draws; {valid.min():.1%} {worst}"),
            ("distinct candidates", f"{distinct.mean():.0f}", f"of {k.iloc[0]} draws; {distinct.min()} {worst}"),
        ]

    def _counterfactuals(self) -> list[tuple[str, str, str]]:
        if self.evaluation is None:
            return []
        e = self.evaluation
        lines = [("explained", f"{e.n_explained} of {e.n_factuals}", "cases with a counterfactual (N_CE)")]
        for name, mean, sd in e.summary.itertuples():
            value = f"{mean:.1%}" if name in ("success", "copy") else f"{mean:.3g} (sd {sd:.2g})"
            lines.append((name, value, WORDS[name]))
        return lines

    def _headline(self) -> str:
        s = self.settings
        return (
            f"Diagnostics: {s['n_real']:,} real rows, as many generated; {s['n_factuals']} cases with "
            f"{s['n_samples']:,} draws each{', crossed with the cases' if s['sparse'] else ''}"
        )

    def __repr__(self) -> str:
        parts = [("generated and real rows", self._realism()), ("candidates", self._candidates())]
        parts.append(("counterfactuals", self._counterfactuals()))
        lines = [self._headline()]
        width = max([len(line[0]) for _, part in parts for line in part] or [0])
        wide = max([len(line[1]) for _, part in parts for line in part] or [0])
        for title, part in parts:
            if part:
                lines += ["", title, *(f"  {a.ljust(width)}  {b.rjust(wide)}  {c}" for a, b, c in part)]
        return "\n".join(lines + ([""] if self.notes else []) + [f"note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(a)}</th><td style="text-align:right">{escape(b)}</td>'
            f'<td style="text-align:left">{escape(c)}</td></tr>'
            for a, b, c in self._realism() + self._candidates() + self._counterfactuals()
        )
        notes = "".join(f"<p>Note: {escape(note)}</p>" for note in self.notes)
        figures = f'<table class="mcce-diagnostics"><tbody>{rows}</tbody></table>'
        return f"<p><b>{escape(self._headline())}</b></p>{figures}{notes}"


MOST_SEEN = 0.5  # share of training rows in X above which a note is added
ROWS_FOR_A_COLUMN = 10  # least number of rows per column of the regression with products


def diagnose(
    explainer: Explainer,
    X: Data,
    *,
    training: Data | None,
    sample_weight: npt.ArrayLike | None = None,
    n_samples: int = 1000,
    max_factuals: int = 100,
    max_rows: int = 5000,
    random_state: int = 0,
    n_jobs: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Diagnostics:
    """Compute all diagnostics of a fitted explainer; see `MCCE.diagnose`, the public method."""
    for name, value in (("n_samples", n_samples), ("max_factuals", max_factuals), ("max_rows", max_rows)):
        check_count(value, name)
    schema = explainer.generator_.schema_
    X, left_out = without_unknown_levels(X, schema)
    frame, _ = as_frame(X)
    if not len(frame):
        raise InputError("X has no rows; give real rows, those to explain among them.")
    check_row_names(frame.index, "X", "rows")
    sample_weight = sample_weight if left_out is None else left_out.cut(sample_weight)
    matrix, index = schema.encode(X).matrix, frame.index
    if sample_weight is not None:
        matrix = matrix[rows_by_weight(read_weights(sample_weight, len(frame)), random_state)]
        index = pd.RangeIndex(len(matrix))
    wanted = explainer.decision_.evaluate(schema.decode_for_model(matrix), "the rows of X").wanted
    chosen = spread(len(matrix), max_rows)
    real = schema.decode(matrix[chosen], index[chosen])
    drawn = draw_like(explainer.generator_, matrix[chosen], wanted[chosen], explainer.generator_.seed_)
    generated = schema.decode(drawn, index[chosen])
    notes = [] if left_out is None else [f"X {left_out.words()} They are left out."]
    if training is not None:
        seen = find_equal(matrix[chosen], schema.encode(training, "training").matrix) >= 0
        if seen.mean() > MOST_SEEN:
            notes.append(
                f"{seen.mean():.0%} of the rows of X are training rows, which generated rows resemble more than others "
                "(discriminator below 0.5, pMSE too small). Give rows that the explainer was not fitted on."
            )
    parts = _compare(real, generated, explainer, random_state, n_jobs, notes)
    denied = np.flatnonzero(~wanted)
    factuals = schema.decode(matrix, index).iloc[denied[spread(denied.size, max_factuals)]]
    if not len(factuals):
        notes.append("every row of X has the wanted decision, so no row was explained.")
    options = {"n_samples": n_samples, "progress": False, **(options or {})}
    parts |= _explain(explainer, factuals, training, options, n_jobs, notes)
    settings = {
        "n_real": len(real),
        "n_factuals": len(factuals),
        "n_samples": n_samples,
        "random_state": explainer.generator_.seed_,
        "sparse": bool(options.get("sparse")),
    }
    return Diagnostics(
        **parts,
        real=real,
        generated=generated,
        notes=tuple(notes),
        settings=settings,
        names=explainer.names_,
    )


def _compare(
    real: pd.DataFrame,
    generated: pd.DataFrame,
    explainer: Explainer,
    random_state: int,
    n_jobs: int | None,
    notes: list[str],
) -> dict[str, Any]:
    names = ("discriminator", "pmse", "marginals", "tables", "correlations")
    if len(real) < FEWEST_ROWS:
        notes.append(f"X has {len(real)} row(s); comparing generated with real rows needs at least {FEWEST_ROWS}.")
        return dict.fromkeys(names)
    kinds = explainer.generator_.schema_.kinds
    columns = count_columns(read_pair(real, generated, kinds), 1)
    max_order = int(columns * ROWS_FOR_A_COLUMN <= 2 * len(real))
    fixed = explainer.generator_.fixed_
    return {
        "discriminator": discriminator(
            real, generated, paired=bool(fixed), kinds=kinds, random_state=random_state, n_jobs=n_jobs
        ),
        "pmse": pmse(real, generated, fixed=fixed, max_order=max_order, kinds=kinds),
        "marginals": marginal_distances(real, generated, kinds=kinds),
        "tables": utility_tables(
            real, generated, tables="twoway" if real.shape[1] > 1 else "oneway", fixed=fixed, kinds=kinds
        ),
        "correlations": compare_correlations(real, generated, kinds=kinds),
    }


def _explain(
    explainer: Explainer,
    factuals: pd.DataFrame,
    training: Data | None,
    options: Mapping[str, Any],
    n_jobs: int | None,
    notes: list[str],
) -> dict[str, Any]:
    """Compute the diagnostics of the candidates and counterfactuals."""
    if not len(factuals):
        return {"candidates": None, "found": None, "evaluation": None}
    found = explainer.explain(factuals, **options)
    if training is None:
        notes.append(
            "the training rows are not stored, so distances to them and copies were not computed; give them as "
            "`training`."
        )
    evaluation = evaluate(
        found,
        factuals,
        explainer.model,
        training=explainer.generator_.schema_ if training is None else training,
        decision=explainer.decision,
        kinds=explainer.generator_.schema_.kinds,
        n_jobs=n_jobs,
    )
    return {
        "candidates": candidate_table(explainer, factuals, options["n_samples"]),
        "found": found,
        "evaluation": evaluation,
    }
