"""The cost of a plausibility floor: changes, distances and shares against the floor.

Factuals without the wanted decision are explained sparsely at each floor, from the same draws, and once by the plain
method. Means over the explained factuals: L0, Gower distance, plausibility, and the summed Gower distance to the
`NEIGHBOURS` nearest training rows (`mcce.diagnostics.neighbours`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.checks import check_count
from mcce.base.progress import progress_bar
from mcce.counterfactuals import Counterfactuals
from mcce.diagnostics.neighbours import find_equal, find_nearest
from mcce.diagnostics.pairs import spread
from mcce.exceptions import InputError
from mcce.explain.order import MeasureLike
from mcce.explain.protocol import Explainer
from mcce.report.plots import trade_off_plot
from mcce.table import Data, as_frame
from mcce.table.checks import find_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.base.canvas import Panels

NEIGHBOURS = 5
WORDS = {
    "L0": "features changed, mean",
    "gower": "Gower distance to the factual, mean over the features",
    "gower_sum": "the same, summed over the features (the paper's L1)",
    "distance": f"summed Gower distance to the {NEIGHBOURS} nearest training rows",
    "plausibility": "share of real rows that are at least as unusual",
    "explained": "share of the factuals with a counterfactual",
    "above_floor": "share of these at or above the floor",
    "rows_queried": "rows that the model was queried about, per factual",
}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TradeOff:
    """The curves of `MCCE.trade_off`.

    Attributes
    ----------
    table : DataFrame
        A row for the plain method, "plain", and one for each floor, "floor 0.05". The columns are `floor` (missing for
        the plain method) and means over the best counterfactual of each explained factual: `L0`, `gower`, `gower_sum`,
        `distance` (to the five nearest training rows), `plausibility`; then `explained`, a share of the factuals,
        `above_floor`, a share of the explained ones, and `rows_queried`, the rows queried per factual.
    factual_distance : float
        `distance` of the factuals themselves.
    n_factuals, n_training : int
        The number of factuals, and of training rows searched.
    settings : mapping
        n_samples, random_state and the other arguments.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> costs = explainer.trade_off(X, floors=(0, 0.25), n_samples=50, max_factuals=20)
    >>> costs.table.index.tolist()
    ['plain', 'floor 0', 'floor 0.25']
    >>> axes = costs.plot()
    """

    table: pd.DataFrame
    factual_distance: float
    n_factuals: int
    n_training: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def plot(self, axes: Sequence[Axes] | None = None) -> Panels:
        """Draw changes, distances and shares against the floor.

        Parameters
        ----------
        axes : sequence of Axes, optional
            Where to draw: four. By default a new figure.
        """
        return trade_off_plot(self.table, self.factual_distance, axes=axes)

    def _headline(self) -> str:
        draws = f"{self.settings['n_samples']:,} draws each"
        return f"Trade-off of plausibility: {self.n_factuals} factuals, {draws}, {self.n_training:,} training rows"

    def _reading(self) -> list[str]:
        return [
            *(f"{name}: {words}" for name, words in WORDS.items()),
            f"distance of the factuals themselves: {self.factual_distance:.3g}",
        ]

    def __repr__(self) -> str:
        shown = str(self.table.drop(columns="floor").round(3).to_string())
        return "\n".join([self._headline(), "", shown, "", *self._reading()])

    def _repr_html_(self) -> str:
        table = self.table.drop(columns="floor").round(3).to_html(border=0)
        return f"<p><b>{self._headline()}</b></p>{table}" + "".join(f"<p>{line}</p>" for line in self._reading()[-1:])


def trade_off(
    explainer: Explainer,
    X: Data,
    floors: float | Sequence[float],
    *,
    training: Data,
    n_samples: int = 1000,
    measures: MeasureLike | Sequence[MeasureLike] | None = None,
    feature_weights: Mapping[Any, float] | None = None,
    max_changes: int | None = None,
    max_gower: float | None = None,
    max_factuals: int = 200,
    max_rows: int = 10_000,
) -> TradeOff:
    """Measure the cost of each floor; see `MCCE.trade_off`, the public method."""
    for name, value in (("n_samples", n_samples), ("max_factuals", max_factuals), ("max_rows", max_rows)):
        check_count(value, name)
    chosen = [floors] if isinstance(floors, (int, float)) else list(floors)
    if not chosen:
        raise InputError("floors is empty; give at least one floor, from 0 to below 1.")
    factuals = _read_refused(explainer, X, max_factuals)
    seen = explainer.generator_.schema_.encode(training, "training").matrix
    seen = seen[spread(len(seen), max_rows)]
    before = explainer.generator_.schema_.encode(factuals).matrix
    rows = {}
    with progress_bar(len(chosen) + 1, "comparing floors", None) as bar:
        for floor in dict.fromkeys(chosen):
            found = explainer.explain(
                factuals,
                n_samples=n_samples,
                sparse=True,
                floor=floor,
                measures=measures,
                feature_weights=feature_weights,
                max_changes=max_changes,
                max_gower=max_gower,
                progress=False,
            )
            rows[f"floor {floor:g}"] = _figures(explainer, found, float(floor), before, seen)
            bar.update()
        plain = explainer.explain(factuals, n_samples=n_samples, progress=False)
    table = pd.DataFrame({"plain": _figures(explainer, plain, np.nan, before, seen), **rows}).T
    return TradeOff(
        table=table.rename_axis("method"),
        factual_distance=float(_distances(explainer, before, before, seen).mean()),
        n_factuals=len(factuals),
        n_training=len(seen),
        settings={
            "n_samples": n_samples,
            "feature_weights": feature_weights,
            "max_changes": max_changes,
            "max_gower": max_gower,
            "random_state": explainer.generator_.seed_,
        },
    )


def _read_refused(explainer: Explainer, X: Data, most: int) -> pd.DataFrame:
    """Return some of the rows of X that lack the wanted decision."""
    frame, _ = as_frame(X)
    if not frame.index.is_unique:
        raise InputError("the index of X has duplicate labels; use X.reset_index(drop=True).")
    schema = explainer.generator_.schema_
    matrix = schema.encode(X).matrix
    wanted = explainer.decision_.evaluate(schema.decode_for_model(matrix), "the rows of X").wanted
    refused = np.flatnonzero(~wanted)
    if not refused.size:
        raise InputError(f"none of the {len(frame)} rows of X lacks the wanted decision; give rows to explain.")
    return schema.decode(matrix, frame.index).iloc[refused[spread(refused.size, most)]]


def _figures(
    explainer: Explainer, found: Counterfactuals, floor: float, before: Floats, seen: Floats
) -> dict[str, float]:
    """Return the columns of one row of the table; the floor is missing for the plain method."""
    rows = explainer.generator_.schema_.encode(found.frame).matrix
    own = before[find_labels(found.factuals.index, found.frame.index.get_level_values("id"))]
    scorer = explainer.plausibility_
    origins = scorer.origins(own, own=scorer.own(own))  # as in the search
    plausibility = scorer.quantile(scorer.score(rows, scorer.fold_of(own), origins))
    means = {name: float(found.measures[name].mean()) for name in ("L0", "gower", "gower_sum")}
    return {
        "floor": floor,
        **means,
        "distance": _mean(_distances(explainer, rows, own, seen)),
        "plausibility": _mean(plausibility),
        "explained": len(found) / len(before),
        "above_floor": np.nan if np.isnan(floor) else _mean(~found.below_floor()),
        "rows_queried": float(found.run.settings["rows_queried"]) / len(before),
    }


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _distances(explainer: Explainer, rows: Floats, own: Floats, seen: Floats) -> Floats:
    """Return the mean summed Gower distance of each row to its nearest training rows, except that of the factual."""
    features = explainer.generator_.schema_.features
    nearest = find_nearest(
        rows, seen, features, NEIGHBOURS, own=find_equal(own, seen), n_jobs=explainer.n_jobs
    ).distance
    n_near = (~np.isnan(nearest)).sum(axis=1)
    sums = np.nansum(nearest, axis=1) * len(features)
    return np.where(n_near > 0, sums / np.maximum(n_near, 1), np.nan)
