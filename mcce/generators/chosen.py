"""What was chosen for each feature and why, as `ChainModel.choice_` has it: plain numbers and text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mcce.soundness import check_type, require
from mcce.state import stateful


@stateful("Verdict")
@dataclass(frozen=True)
class Verdict:
    """One candidate on one feature.

    Attributes
    ----------
    sampler : str
        The candidate, by its name or as it was written.
    score, error : float or None
        Mean over the held-out rows, high is good, and its standard error; None if it was left out.
    behind, behind_error : float or None
        How far it is behind the best, in the mean, and the standard error of this paired difference.
    note : str
        Why it was left out, or that it stopped after the first fold; else "".
    """

    sampler: str
    score: float | None = None
    error: float | None = None
    behind: float | None = None
    behind_error: float | None = None
    note: str = ""

    def check_state(self) -> None:
        """Refuse what is no verdict."""
        check_type(self.sampler, "sampler", str)
        check_type(self.note, "note", str)
        for name in ("score", "error", "behind", "behind_error"):
            check_type(getattr(self, name), name, float, type(None))

    @property
    def is_good(self) -> bool:
        """Whether it is within one standard error of the best."""
        return self.behind is not None and self.behind_error is not None and self.behind <= self.behind_error

    def distance(self) -> str:
        """Return how far behind it is, in words."""
        return f"{self.sampler} is {self.behind:.3g} behind (se {self.behind_error:.2g})"


@stateful("FeatureChoice")
@dataclass(frozen=True)
class FeatureChoice:
    """The choice for one feature.

    Attributes
    ----------
    feature : column label
    sampler : str
        The candidate that was chosen.
    judged_by : "log score", "CRPS" or "Brier score"
    n_rows, n_folds : int
        Rows that were held out once, and in how many folds.
    verdicts : tuple of Verdict
        All candidates, from the cheapest to the dearest.
    """

    feature: Any
    sampler: str
    judged_by: str
    n_rows: int
    n_folds: int
    verdicts: tuple[Verdict, ...]

    def check_state(self) -> None:
        """Refuse what names no candidate that was scored."""
        check_type(self.judged_by, "judged_by", str)
        check_type(self.n_rows, "n_rows", int)
        check_type(self.n_folds, "n_folds", int)
        check_type(self.verdicts, "verdicts", tuple)
        for verdict in self.verdicts:
            check_type(verdict, "verdicts", Verdict)
        scored = [verdict.sampler for verdict in self.verdicts if verdict.behind is not None and not verdict.note]
        require(self.sampler in scored, "sampler is none of the candidates that were scored")

    @property
    def chosen(self) -> Verdict:
        """The verdict on the candidate that was chosen."""
        return next(verdict for verdict in self.verdicts if verdict.sampler == self.sampler)

    @property
    def best(self) -> Verdict:
        """The verdict on the candidate with the best score."""
        scored = [verdict for verdict in self.verdicts if verdict.behind is not None and not verdict.note]
        return min(scored, key=lambda verdict: verdict.behind or 0.0)

    @property
    def why(self) -> str:
        """The reason, in words."""
        scored = [verdict for verdict in self.verdicts if verdict.score is not None]
        if len(scored) == 1:
            return "the only candidate that could be scored"
        if self.best.sampler != self.sampler:
            return f"within one standard error of {self.best.sampler}, and cheaper: {self.chosen.distance()}"
        cheaper = scored[: scored.index(self.best)]
        if not cheaper:
            return "the best, and the cheapest"
        nearest = min(cheaper, key=lambda verdict: verdict.behind or 0.0)
        return f"the best; of the cheaper ones {nearest.distance()}"


@stateful("Choice")
@dataclass(frozen=True, repr=False)
class Choice:
    """The samplers that were chosen by evidence, one entry for each feature whose sampler was left open.

    Attributes
    ----------
    features : tuple of FeatureChoice
        In visiting order.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "education", "salary", "housing"]]
    >>> auto = mcce.Auto(["marginal", "norm", "ctree"])
    >>> chain = mcce.ChainModel(sampler=auto, fixed=["age", "education"], random_state=1).fit(X)
    >>> chain.choice_.table["why"]["housing"]
    'the best; of the cheaper ones marginal is 0.154 behind (se 0.028)'
    >>> len(chain.choice_.scores), chain.choice_.left_out.index.tolist()
    (6, [('housing', 'norm')])
    """

    features: tuple[FeatureChoice, ...]

    def check_state(self) -> None:
        """Refuse what is no choices."""
        check_type(self.features, "features", tuple)
        for each in self.features:
            check_type(each, "features", FeatureChoice)

    @property
    def table(self) -> pd.DataFrame:
        """One row for each feature: `sampler`, `judged_by`, `score`, `behind` the best (`se`), `best`, and `why`."""
        rows = [
            {
                "sampler": each.sampler,
                "judged_by": each.judged_by,
                "score": each.chosen.score,
                "behind": each.chosen.behind,
                "se": each.chosen.behind_error,
                "best": each.best.sampler,
                "why": each.why,
            }
            for each in self.features
        ]
        return pd.DataFrame(rows, index=_index([each.feature for each in self.features]))

    @property
    def scores(self) -> pd.DataFrame:
        """One row for each feature and candidate: `score` (`se`), `behind` the best (`behind_se`), `within`, `note`."""
        rows = [
            {
                "feature": each.feature,
                "sampler": verdict.sampler,
                "judged_by": each.judged_by,
                "score": verdict.score,
                "se": verdict.error,
                "behind": verdict.behind,
                "behind_se": verdict.behind_error,
                "within": verdict.is_good,
                "chosen": verdict.sampler == each.sampler,
                "note": verdict.note,
            }
            for each in self.features
            for verdict in each.verdicts
        ]
        numbers = ["score", "se", "behind", "behind_se"]
        return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float)).set_index(["feature", "sampler"])

    @property
    def left_out(self) -> pd.DataFrame:
        """The candidates that were left out, and why."""
        scores = self.scores
        return scores.loc[scores["score"].isna(), ["note"]]

    def _headline(self) -> str:
        sizes = sorted({(each.n_rows, each.n_folds) for each in self.features})
        held_out = ", ".join(f"{n_rows:,} held-out rows in {n_folds} folds" for n_rows, n_folds in sizes)
        return f"The cheapest sampler within one standard error of the best, by {held_out}"

    def __repr__(self) -> str:
        table = self.table
        texts = {name: _left(table[name]) for name in ("sampler", "judged_by", "best", "why")}
        with pd.option_context("display.max_colwidth", None):
            shown = table.to_string(float_format=lambda value: f"{value:.3f}", formatters=texts, justify="left")
        return f"{self._headline()}\n\n{shown}"

    def _repr_html_(self) -> str:
        return f"<p><b>{self._headline()}</b></p>{self.table.round(3).to_html(border=0)}"


def _left(column: pd.Series[Any]) -> Callable[[str], str]:
    width = column.str.len().max()
    return lambda text: text.ljust(width)


def _index(names: list[Any]) -> pd.Index[Any]:
    return pd.Index(names, dtype=None if names else object, name="feature", tupleize_cols=False)
