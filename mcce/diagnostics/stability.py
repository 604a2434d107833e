"""The stability of counterfactuals under new draws of the candidates.

The same factuals are explained several times with independent draws from the same fitted generator. The result has for
each factual how often it is explained and the number of different rows and sets of changed features; over all, the
shares of stable factuals and the Monte Carlo error of the means (`mcce.explain.followup.pooled_error`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import UInts
from mcce.base.checks import check_count
from mcce.base.progress import progress_bar
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError
from mcce.explain.followup import pooled_error
from mcce.explain.problem import fixed_columns, pool_keys
from mcce.explain.protocol import Explainer
from mcce.rng import hash_rows
from mcce.table import Data
from mcce.table.frames import is_other_frame, read_frame


@dataclass(frozen=True, kw_only=True, eq=False)
class Stability:
    """The figures of `stability`.

    Attributes
    ----------
    factuals : DataFrame
        Indexed by id, without the accepted factuals: `explained` (share of the redraws),
        `rows` and `feature_sets` (number of different best rows, and of different sets of changed features; no
        counterfactual counts as one), and mean and standard deviation over the redraws of `L0` and `gower`.
    redraws : DataFrame
        Indexed by redraw: `explained` (share of the factuals), and the means of `L0` and `gower` over the factuals that
        every redraw explains.
    summary : Series
        `same_row`, `same_features` and `same_L0`: shares of the factuals with the same value in every redraw. `L0`,
        `gower`: means over all redraws; `se_L0`, `se_gower`: Monte Carlo standard errors of the mean of one redraw.
    settings : mapping
        n_seeds, and the arguments of `explain`.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> steady = mcce.diagnostics.stability(explainer, X.head(50), n_samples=50, n_seeds=2)
    >>> print(str(steady).splitlines()[0])
    Stability of 40 factuals over 2 redraws
    """

    factuals: pd.DataFrame
    redraws: pd.DataFrame
    summary: pd.Series[float]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        s = self.summary
        return (
            f"Stability of {len(self.factuals)} factuals over {self.settings['n_seeds']} redraws\n"
            f"the same row {s['same_row']:.1%}, the same changed features {s['same_features']:.1%}, "
            f"the same number of them {s['same_L0']:.1%}\n"
            f"mean L0 {s['L0']:.4g} (Monte Carlo standard error {s['se_L0']:.2g}), "
            f"mean gower {s['gower']:.4g} ({s['se_gower']:.2g})"
        )


def stability(explainer: Explainer, X: Data, *, n_seeds: int = 5, **settings: Any) -> Stability:
    """Explain the same factuals with several independent draws of their candidates.

    Parameters
    ----------
    explainer : fitted MCCE
        The explainer; it is not refitted.
    X : DataFrame or array
        The factuals.
    n_seeds : int
        The number of draws, at least 2. The first is that of `explain`.
    **settings
        Further arguments of `explain`: n_samples, sparse, floor, ... The best counterfactual of each factual is
        compared.

    Returns
    -------
    Stability

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X.select_dtypes("number")
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> few = mcce.diagnostics.stability(explainer, X.iloc[:100], n_samples=50)
    >>> many = mcce.diagnostics.stability(explainer, X.iloc[:100], n_samples=2000)
    >>> bool(few.summary["same_features"] < many.summary["same_features"])
    True
    >>> bool(many.summary["se_gower"] < few.summary["se_gower"])
    True
    """
    n_seeds = check_count(n_seeds, "n_seeds", least=2)
    if "n_counterfactuals" in settings:
        raise InputError("stability compares the best counterfactual of each factual; leave n_counterfactuals out.")
    settings = {"progress": False, **settings}
    X = read_frame(X) if is_other_frame(X) else X
    with progress_bar(n_seeds, "drawing again", None) as bar:
        found = [explainer.explain(X, **settings)]
        bar.update()
        for r in range(1, n_seeds):
            found.append(found[0].redrawn(r))
            bar.update()
    return compare_redraws(found, _pools(explainer, found[0], bool(settings.get("independent"))), settings)


def compare_redraws(found: list[Counterfactuals], pools: UInts, settings: Mapping[str, Any]) -> Stability:
    """Compare explanations of the same factuals; `pools` identifies the pool of each factual with draws."""
    draws = found[0].draws
    assert draws is not None
    ids = found[0].factuals.index[draws.to_numpy() > 0]
    best = {name: np.stack([_best(one.measures[name], ids) for one in found]) for name in ("L0", "gower")}
    without = np.isnan(best["L0"])
    table = pd.DataFrame({"explained": (~without).mean(axis=0)}, index=ids.rename("id"))
    marks = [_marks(one, ids) for one in found]
    for place, name in enumerate(("rows", "feature_sets")):
        table[name] = pd.DataFrame([mark[place] for mark in marks]).nunique(dropna=False).to_numpy()
    by_seed = pd.DataFrame(index=pd.RangeIndex(len(found), name="redraw"))
    by_seed["explained"] = (~without).mean(axis=1) if len(ids) else np.nan
    summary = {"same_row": (table["rows"] == 1).mean(), "same_features": (table["feature_sets"] == 1).mean()}
    numbers = pd.DataFrame(
        np.where(without, 0.0, best["L0"])
    ).nunique()  # a counterfactual changes at least one feature
    summary["same_L0"] = (numbers == 1).mean()
    for name, values in best.items():
        over_seeds = pd.DataFrame(values)  # ignores redraws without a counterfactual
        table[name], table[f"{name}_sd"] = over_seeds.mean().to_numpy(), over_seeds.std().to_numpy()
        always = values[:, ~np.isnan(values).any(axis=0)]
        by_seed[name] = always.mean(axis=1) if always.size else np.nan
        summary |= {name: by_seed[name].mean(), f"se_{name}": pooled_error(values, pools)}
    return Stability(
        factuals=table,
        redraws=by_seed,
        summary=pd.Series(summary, name="value", dtype=float),
        settings={"n_seeds": len(found), **settings},
    )


def _best(measure: pd.Series[Any], ids: pd.Index[Any]) -> Any:
    """Return a measure of the best counterfactual of each factual, NaN without one."""
    best = measure[measure.index.get_level_values("rank") == 1].droplevel("rank")
    return best.reindex(ids).to_numpy(dtype=np.float64)


def _marks(found: Counterfactuals, ids: pd.Index[Any]) -> tuple[list[Hashable], list[Hashable]]:
    """Return identifiers of the best row and of its changed features for each factual; None without a row."""
    best = found.changes()
    best = best[best["rank"] == 1]
    sets: dict[Hashable, list[Hashable]] = {id: [] for id in found.frame.index.get_level_values("id").unique()}
    values: dict[Hashable, list[Hashable]] = {id: [] for id in sets}
    for id, feature, new in zip(best["id"], best["feature"], best["to"]):
        sets[id].append(feature)
        values[id].append((feature, None if pd.isna(new) else new))

    def of_ids(marks: dict[Hashable, list[Hashable]]) -> list[Hashable]:
        return [tuple(marks[id]) if id in marks else None for id in ids]

    return of_ids(values), of_ids(sets)


def _pools(explainer: Explainer, found: Counterfactuals, independent: bool) -> UInts:
    """Return identifiers of the pools of the factuals with draws."""
    assert found.draws is not None
    generator = explainer.generator_
    matrix = generator.schema_.encode(found.factuals[found.draws.to_numpy() > 0]).matrix
    return hash_rows(matrix) if independent else pool_keys(generator, matrix, fixed_columns(generator))
