"""The criticism of all conditionals of a chain: one table, one sentence and one picture for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from mcce.criticism.feature import FeatureCriticism, adjust
from mcce.criticism.words import sentence
from mcce.exceptions import InputError, did_you_mean

if TYPE_CHECKING:
    from mcce.canvas import Panels

LEVEL = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Criticism:
    """What `ChainModel.criticise` found, feature by feature in visiting order.

    ``print(criticism)`` shows the sentences, `table` all figures, ``criticism["salary"]`` what they were made from.

    Attributes
    ----------
    features : tuple of FeatureCriticism
    level : float
        Level of the tests: if all conditionals are right, the probability that any is accused is at most this.
    judged_by : str
        Which rows they were judged by.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans().X[["age", "education", "salary"]]
    >>> chain = mcce.ChainModel(sampler="norm", fixed=["age", "education"], random_state=1).fit(X[:1500])
    >>> criticism = chain.criticise(X[1500:])
    >>> criticism.accused, len(criticism), criticism.table.index.tolist()
    (['salary'], 1, ['salary'])
    >>> axes = criticism.plot("salary")
    """

    features: tuple[FeatureCriticism, ...]
    level: float
    judged_by: str

    @classmethod
    def of(cls, found: Sequence[FeatureCriticism], level: float, judged_by: str) -> Criticism:
        """Put the criticisms of all features together, adjusted for their number (Holm)."""
        return cls(tuple(adjust(found)), level, judged_by)

    @property
    def table(self) -> pd.DataFrame:
        """One row for each feature.

        kind, sampler; log_score (mean over the rows that are not called impossible) and the share of those that are;
        score (CRPS, or Brier score of unordered levels), skill against the marginal, sharpness; p-values p_shape,
        p_levels, p_where, p of the feature and p_adjusted; passes; where (the region that explains most); says (the
        sentence); seconds of drawing.
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
    def accused(self) -> list[Any]:
        """The features that do not pass, the worst first."""
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
            One feature: its PITs or levels, for all rows and where it fails most. None draws one panel for each.

        Returns
        -------
        array of Axes

        Notes
        -----
        The shaded bands hold all bars of a panel together with a probability of at least 95 per cent if the
        conditional is right.
        """
        from mcce.criticism.picture import draw_all, draw_feature

        if feature is None:
            return draw_all(self.features, self.level)
        return draw_feature(self[feature], self.level)

    def _figures(self) -> Iterator[tuple[float, float, float, str]]:
        for each, says in zip(self.features, self.sentences):
            yield each.skill, each.sharpness, each.p_adjusted, says

    def _headline(self) -> str:
        n_rows = self.features[0].n_rows
        judged = f"{len(self)} conditional{'s' if len(self) > 1 else ''} judged by {n_rows:,} {self.judged_by}"
        return f"{judged}: {len(self.accused)} accused at level {self.level:g}"

    def __repr__(self) -> str:
        lines = [self._headline()]
        lines.append("   skill  sharpness  p adj.")
        for skill, sharpness, p, says in self._figures():
            lines.append(f"  {skill:6.2f} {sharpness:10.2f} {_p_text(p):>7}  {says}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<tr><td style="text-align:left">{escape(says)}</td><td>{skill:.2f}</td><td>{sharpness:.2f}</td>'
            f"<td>{escape(_p_text(p))}</td></tr>"
            for skill, sharpness, p, says in self._figures()
        )
        head = "<tr><th></th><th>skill</th><th>sharpness</th><th>p, adjusted</th></tr>"
        return f'<p><b>{escape(self._headline())}</b></p><table class="mcce-criticism">{head}{cells}</table>'


def _p_text(p: float) -> str:
    return "" if pd.isna(p) else "<0.001" if p < 0.001 else f"{p:.3f}"
