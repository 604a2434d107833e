"""The criticism of all conditionals of a chain: one table, and a sentence and a figure for each feature.

Figures show the observed values and the band in which they would lie if the conditional were right:

1. Numbers and ordered levels: the histogram of the PITs. Bars above the band at both ends: too narrow; at one end: too
   low or too high.
2. Unordered levels: the observed share of each level beside its share of the draws; and the observed frequency of
   levels by their probability (reliability diagram).
3. The same for the rows of the region with the largest misfit.

Bands hold simultaneously for all bars of a panel with a probability of at least 95 per cent (Bonferroni).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy

from mcce.base.arrays import Bools, Floats
from mcce.base.canvas import DARK, FONT, LIGHT, PANEL, SMALL, as_array, count_fitting_letters, lay_out, new_panels
from mcce.exceptions import InputError, did_you_mean
from mcce.judging.calibration import BAND, Calibration, histogram
from mcce.judging.feature import FeatureCriticism, adjust, cell_text, p_text, remedy, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.base.canvas import Panels

HEIGHT = 2.6
N_BINS = 8  # bins of probabilities


def draw_feature(found: FeatureCriticism, level: float) -> Panels:
    """Draw one feature: all rows, and the rows of the region with the largest misfit (steps 1 to 3)."""
    everywhere = np.full(found.n_rows, True)
    of_levels = found.pit is None and found.calibration is not None
    n_panels = 1 + int(of_levels) + int(found.failure is not None)
    figure, panels = new_panels(n_panels, min(n_panels, 2), PANEL, HEIGHT, 0.45)
    _draw(panels[0], found, everywhere, f"all {found.n_rows:,} rows")
    if of_levels and found.calibration is not None:
        _draw_reliability(panels[1], found.calibration)
    if found.failure is not None:
        inside, p = found.failure.inside, p_text(found.p_where).replace(" ", "\u00a0")
        _draw(panels[-1], found, inside, f"{inside.sum():,} rows where {found.failure} ({p})")
    lines = textwrap.wrap(sentence(found, level), int(8.5 * figure.get_figwidth()))
    figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=11, fontweight="bold", parse_math=False)
    return as_array(panels)


def draw_all(features: Sequence[FeatureCriticism], level: float) -> Panels:
    """Draw one panel for each feature: all rows."""
    _, panels = new_panels(len(features), min(len(features), 2), PANEL, HEIGHT)
    for ax, each in zip(panels, features):
        _draw(ax, each, np.full(each.n_rows, True), sentence(each, level))
    return as_array(panels)


def _draw(ax: Axes, found: FeatureCriticism, rows: Bools, title: str) -> None:
    if found.pit is not None:
        _draw_pit(ax, found.pit[rows])
    elif found.calibration is not None:
        _draw_levels(ax, found, found.calibration, rows)
    else:
        ax.set_axis_off()
    lay_out(ax)
    lines = textwrap.wrap(title, count_fitting_letters(ax, title, FONT, 1.0))
    ax.set_title("\n".join(lines), loc="left", fontsize=FONT, parse_math=False)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_pit(ax: Axes, pit: Floats) -> None:
    """Draw a histogram of PITs and its band (step 1)."""
    counts, (low, high) = histogram(pit)
    edges = np.linspace(0.0, 1.0, counts.size + 1)
    outside = (counts < low) | (counts > high)
    colours = np.where(outside, DARK, "0.72")
    ax.axhspan(low, high, color=LIGHT, alpha=0.45, lw=0, zorder=0)
    ax.bar(edges[:-1], counts, 1.0 / counts.size, align="edge", color=colours, ec="white", lw=0.5, alpha=0.9)
    for bound in (low, high):
        ax.axhline(bound, color=LIGHT, lw=1.2)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("PIT: share of the draws below the value", fontsize=SMALL)
    ax.set_ylabel("rows", fontsize=SMALL)


def _draw_levels(ax: Axes, found: FeatureCriticism, tested: Calibration, rows: Bools) -> None:
    """Draw the observed share of each level, and the band around its probability (step 2)."""
    q = tested.cells[rows]
    seen = np.bincount(tested.observed[rows], minlength=q.shape[1]) / len(q)
    low, high = _band(q, q.shape[1])
    for place, (share, below, above) in enumerate(zip(seen, low, high)):
        ax.bar(place, share, 0.62, color="0.72" if below <= share <= above else DARK)
        ax.bar(place, above - below, 0.84, bottom=below, color=LIGHT, alpha=0.75)
    names = [cell_text(found, cell).strip("'") for cell in range(q.shape[1])]
    ax.set_xticks(range(len(names)), [textwrap.shorten(name, 14, placeholder="…") for name in names], fontsize=SMALL)
    if sum(map(len, names)) > 34:
        ax.tick_params(axis="x", rotation=30)
    ax.set_ylabel("share of the rows", fontsize=SMALL)


def _draw_reliability(ax: Axes, tested: Calibration) -> None:
    """Draw the observed frequency of levels by their probability (step 2)."""
    q = tested.cells.ravel()
    is_seen = (tested.observed[:, None] == np.arange(tested.cells.shape[1])).ravel()
    edges = np.unique(np.quantile(q, np.linspace(0.0, 1.0, N_BINS + 1)))
    place = np.clip(np.searchsorted(edges, q, side="right") - 1, 0, max(edges.size - 2, 0))
    ax.plot([0, 1], [0, 1], color="0.6", lw=0.8)
    for bin_ in np.unique(place):
        inside = place == bin_
        low, high = _band(q[inside][:, None], int(place.max()) + 1)
        mean, share = float(q[inside].mean()), float(is_seen[inside].mean())
        ax.plot([mean, mean], [low[0], high[0]], color=LIGHT, lw=6, solid_capstyle="butt")
        is_inside = low[0] <= share <= high[0]
        ax.plot(mean, share, "o", ms=4.5, color="0.45" if is_inside else DARK)
    ax.set_xlabel("probability of a level", fontsize=SMALL)
    ax.set_ylabel("how often it is seen", fontsize=SMALL)
    ax.set_title("levels by their probability", loc="left", fontsize=FONT)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)


def _band(q: Floats, n_bands: int) -> tuple[Floats, Floats]:
    """Return the interval of the observed share, for each column of probabilities."""
    half = scipy.stats.norm.isf(0.5 * (1.0 - BAND) / n_bands) * np.sqrt((q * (1.0 - q)).sum(axis=0)) / len(q)
    middle = q.mean(axis=0)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Criticism:
    """The findings of `ChainModel.criticise`, feature by feature in visiting order.

    ``print(criticism)`` shows the sentences, `table` all figures, ``criticism["salary"]`` the details of one feature.

    Attributes
    ----------
    features : tuple of FeatureCriticism
    level : float
        Level of all tests together: if all conditionals are right, the probability that any is rejected is at most
        `level`.
    judged_by : str
        The kind of rows used, such as "new rows".

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans().X[["age", "education", "salary"]]
    >>> chain = mcce.ChainModel(sampler="norm", fixed=["age", "education"], random_state=1).fit(X[:1500])
    >>> criticism = chain.criticise(X[1500:])
    >>> criticism.rejected, len(criticism), criticism.table.index.tolist()
    (['salary'], 1, ['salary'])
    >>> axes = criticism.plot("salary")
    """

    features: tuple[FeatureCriticism, ...]
    level: float
    judged_by: str

    @classmethod
    def of(cls, found: Sequence[FeatureCriticism], level: float, judged_by: str) -> Criticism:
        """Combine the criticisms of all features, with p-values adjusted for their number (Holm)."""
        return cls(tuple(adjust(found)), level, judged_by)

    @property
    def table(self) -> pd.DataFrame:
        """One row for each feature.

        kind, sampler; log_score (mean over the rows with positive density), impossible (share of rows with density 0);
        score (CRPS, or Brier score of unordered levels), skill relative to the marginal, sharpness; p-values p_shape,
        p_levels, p_where, p of the feature and p_adjusted; passes; where (the region with the largest misfit); says
        (the sentence); seconds of drawing.
        """
        rows = []
        for each in self.features:
            row = {name: getattr(each, name) for name in ("sampler", "log_score", "impossible", "score", "skill")}
            row |= {name: getattr(each, name) for name in ("sharpness", "p_shape", "p_levels", "p_where", "p")}
            rows.append(
                {
                    "kind": each.feature.kind,
                    **row,
                    "p_adjusted": each.p_adjusted,
                    "passes": not each.p_adjusted <= self.level,
                    "where": "" if each.failure is None else str(each.failure),
                    "says": sentence(each, self.level),
                    "seconds": each.seconds,
                }
            )
        names = pd.Index([each.name for each in self.features], name="feature", tupleize_cols=False)
        return pd.DataFrame(rows, index=names)

    @property
    def sentences(self) -> list[str]:
        """One sentence for each feature."""
        return [sentence(each, self.level) for each in self.features]

    @property
    def remedies(self) -> dict[Any, str]:
        """A setting to try for each rejected conditional, by feature."""
        found = {each.name: remedy(each, self.level) for each in self.features}
        return {name: setting for name, setting in found.items() if setting}

    @property
    def rejected(self) -> list[Any]:
        """The features whose conditional is rejected, the smallest p-value first."""
        wrong = [each for each in self.features if each.p_adjusted <= self.level]
        return [each.name for each in sorted(wrong, key=lambda each: each.p)]

    def __getitem__(self, name: Any) -> FeatureCriticism:
        for each in self.features:
            if each.name == name:
                return each
        names = [each.name for each in self.features]
        raise InputError(f"{name!r} is not among the features criticised; {did_you_mean(name, names)}")

    def __iter__(self) -> Iterator[FeatureCriticism]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    def plot(self, feature: Any = None) -> Panels:
        """Draw one feature, or all.

        Parameters
        ----------
        feature : column name or None
            Draw the PITs or levels of this feature, for all rows and for the region with the largest misfit. With
            None, draw one panel for each feature.

        Returns
        -------
        array of Axes

        Notes
        -----
        If the conditional is right, the shaded bands hold simultaneously for all bars of a panel with a probability of
        at least 95 per cent.
        """
        if feature is None:
            return draw_all(self.features, self.level)
        return draw_feature(self[feature], self.level)

    def _figures(self) -> Iterator[tuple[float, float, float, str]]:
        for each, says in zip(self.features, self.sentences):
            yield each.skill, each.sharpness, each.p_adjusted, says

    def _headline(self) -> str:
        n_rows = self.features[0].n_rows
        judged = f"{len(self)} conditional{'s' if len(self) > 1 else ''} judged by {n_rows:,} {self.judged_by}"
        return f"{judged}: {len(self.rejected)} rejected at level {self.level:g}"

    def __repr__(self) -> str:
        lines = [self._headline()]
        lines.append("   skill  sharpness  p adj.")
        for skill, sharpness, p, says in self._figures():
            lines.append(f"  {skill:6.2f} {sharpness:10.2f} {_p_text(p):>7}  {says}")
        lines += [f"  to try: {setting}" for setting in self.remedies.values()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><td style="text-align:left">{escape(says)}</td><td>{skill:.2f}</td><td>{sharpness:.2f}</td>'
            f"<td>{escape(_p_text(p))}</td></tr>"
            for skill, sharpness, p, says in self._figures()
        )
        head = "<tr><th></th><th>skill</th><th>sharpness</th><th>p, adjusted</th></tr>"
        remedies = "".join(f"<p>to try: <code>{escape(setting)}</code></p>" for setting in self.remedies.values())
        headline = f"<p><b>{escape(self._headline())}</b></p>"
        return f'{headline}<table class="mcce-criticism">{head}{cells}</table>{remedies}'


def _p_text(p: float) -> str:
    return "" if pd.isna(p) else "<0.001" if p < 0.001 else f"{p:.3f}"
