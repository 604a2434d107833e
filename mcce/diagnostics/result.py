"""The diagnostics of an explainer in one object: tables, words, pictures. `mcce.diagnostics.diagnose` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from mcce.counterfactuals import Counterfactuals
from mcce.diagnostics.correlations import Correlations
from mcce.diagnostics.discriminator import Discriminator
from mcce.diagnostics.evaluation import WORDS, Evaluation
from mcce.diagnostics.pmse import PMSE
from mcce.exceptions import InputError
from mcce.report.names import Names
from mcce.report.plots import marginal_plot, overview_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mcce.canvas import Panels

PICTURES = ("overview", "marginals", "correlations", "difference", "changes")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Diagnostics:
    """What `MCCE.diagnose` found. Parts that could not be had are None; `notes` says why.

    Attributes
    ----------
    discriminator : Discriminator
        How well a random forest tells generated rows from real ones.
    pmse : PMSE
        How well a logistic regression does.
    marginals : DataFrame
        Distances feature by feature, see `marginal_distances`.
    tables : DataFrame
        Tables of counts for each pair of features (or each feature, if there is one), see `utility_tables`.
    correlations : Correlations
        Matrices of real and generated rows, and their difference.
    candidates : DataFrame
        For each factual the number of candidates, distinct and valid ones.
    found : Counterfactuals
        The counterfactuals that were evaluated.
    evaluation : Evaluation
        L0, L1, violation, success, distances to the training rows, copies.
    visit : DataFrame
        The effect of the visit sequence, see `visit_effect`.
    real, generated : DataFrame
        The rows compared, the generated one of each real row at the same place.
    notes : tuple of str
        What could not be done, and why.
    settings : mapping
        n_real, n_factuals, n_samples, random_state.
    names : Names
        Labels, units and formats that `MCCE` was given; words and pictures use them, the tables do not.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> report = explainer.diagnose(X, n_samples=50, max_factuals=10, max_rows=200, visit_sequences=())
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
    visit: pd.DataFrame | None
    real: pd.DataFrame
    generated: pd.DataFrame
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    names: Names = field(default_factory=Names)

    def summary(self) -> pd.DataFrame:
        """Return every figure in one table: value, and how to read it."""
        lines = self._realism() + self._candidates() + self._counterfactuals()
        return pd.DataFrame(lines, columns=["figure", "value", "how to read it"]).set_index("figure")

    def plot(self, what: str = "overview", ax: Axes | None = None) -> Axes | Panels:
        """Draw the diagnostics.

        Parameters
        ----------
        what : "overview", "marginals", "correlations", "difference" or "changes"
            All in four panels; generated over real rows, feature by feature; the correlations of the generated rows;
            their difference to those of the real rows; what the counterfactuals change.
        ax : Axes, optional
            Where to draw, for a picture that has one.
        """
        if what not in PICTURES:
            raise InputError(f"what is {what!r}; allowed: {', '.join(map(repr, PICTURES))}.")
        if what == "changes":
            if self.found is None:
                raise InputError("there are no counterfactuals to draw; `notes` says why.")
            return self.found.plot_changes(ax)
        if self.correlations is None or self.marginals is None:
            raise InputError("generated and real rows were not compared; `notes` says why.")
        if what == "marginals":
            distances = self.marginals["distance"].items()
            notes = {self.names.heading(name): f"distance {distance:.2f}" for name, distance in distances}
            real, generated = (self.names.table(rows) for rows in (self.real, self.generated))
            return marginal_plot(real, generated, notes=notes, ax=ax)
        if what in ("correlations", "difference"):
            return self._labelled().plot("generated" if what == "correlations" else what, ax=ax)
        return self.plot_overview()

    def plot_overview(self, n_columns: int = 2, figure: Figure | None = None) -> Panels:
        """Draw the overview of `plot` with so many panels in a row, on a given figure."""
        if self.correlations is None or self.marginals is None:
            raise InputError("generated and real rows were not compared; `notes` says why.")
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
            lines.append(("discriminator accuracy", f"{d.accuracy:.3f}", "a forest's; 0.5: cannot tell generated rows"))
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
        worst = "for the worst factual"
        return [
            ("valid candidates", f"{valid.mean():.1%}", f"of {k.iloc[0]} draws; {valid.min():.1%} {worst}"),
            ("distinct candidates", f"{distinct.mean():.0f}", f"of {k.iloc[0]} draws; {distinct.min()} {worst}"),
        ]

    def _counterfactuals(self) -> list[tuple[str, str, str]]:
        if self.evaluation is None:
            return []
        e = self.evaluation
        lines = [("explained", f"{e.n_explained} of {e.n_factuals}", "factuals with a counterfactual (N_CE)")]
        for name, mean, sd in e.summary.itertuples():
            value = f"{mean:.1%}" if name in ("success", "copy") else f"{mean:.3g} (sd {sd:.2g})"
            lines.append((name, value, WORDS[name]))
        return lines

    def _headline(self) -> str:
        s = self.settings
        return (
            f"Diagnostics: {s['n_real']:,} real rows, as many generated; {s['n_factuals']} factuals with "
            f"{s['n_samples']:,} draws each"
        )

    def _visit_table(self) -> pd.DataFrame | None:
        if self.visit is None:
            return None
        shown = ["N_CE", "L0", "L1", "distance", "pMSE", "correlation_difference", "same"]
        return self.visit[shown].rename(columns={"correlation_difference": "correlations"}).round(4)

    def __repr__(self) -> str:
        parts = [("generated rows beside real ones", self._realism()), ("candidates", self._candidates())]
        parts.append(("counterfactuals", self._counterfactuals()))
        lines = [self._headline()]
        width = max([len(line[0]) for _, part in parts for line in part] or [0])
        wide = max([len(line[1]) for _, part in parts for line in part] or [0])
        for title, part in parts:
            if part:
                lines += ["", title, *(f"  {a.ljust(width)}  {b.rjust(wide)}  {c}" for a, b, c in part)]
        table = self._visit_table()
        if table is not None:
            lines += ["", "effect of the visit sequence", *(f"  {line}" for line in str(table.to_string()).split("\n"))]
        return "\n".join(lines + ([""] if self.notes else []) + [f"note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(a)}</th><td style="text-align:right">{escape(b)}</td>'
            f'<td style="text-align:left">{escape(c)}</td></tr>'
            for a, b, c in self._realism() + self._candidates() + self._counterfactuals()
        )
        table = self._visit_table()
        visit = "" if table is None else f"<p>Effect of the visit sequence</p>{table.to_html(border=0)}"
        notes = "".join(f"<p>Note: {escape(note)}</p>" for note in self.notes)
        figures = f'<table class="mcce-diagnostics"><tbody>{rows}</tbody></table>'
        return f"<p><b>{escape(self._headline())}</b></p>{figures}{visit}{notes}"
