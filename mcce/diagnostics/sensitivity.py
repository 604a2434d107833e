"""The dependence of counterfactuals on the conditional models of the chain.

The same factuals are explained with several generators fitted to the same rows, several times with each. For factual i
and feature j, z[c, r] is 1 if the best counterfactual of generator c in redraw r changes j.

- Monte Carlo error and model choice are separated by a one-way analysis of variance: within = mean over c of the
  variance of z[c, .], between = variance over c of the mean of z[c, .], less within / R, summed over i and j.
- Agreement of two generators is Cohen's kappa of z over all factuals and features: 0 is agreement by chance, 1 perfect
  agreement. The kappa of two redraws of the same generator is the agreement that Monte Carlo error allows.
- The counterfactuals of one generator are plausible to another one if their log density given the fixed features is at
  least the 5 % quantile of its log densities of training rows with the wanted decision.

The generators are compared with each other, not with the truth: agreement does not prove that advice is right.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.base.checks import check_count
from mcce.base.progress import progress_bar
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError
from mcce.explain.protocol import Explainer
from mcce.generators.base import Generator
from mcce.report.names import Names, listed
from mcce.report.plots.changes import draw_changes
from mcce.table import Data

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMPLAUSIBLE = 0.05  # quantile of the log densities of real rows below which a row is implausible


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensitivity:
    """The figures of `MCCE.sensitivity`.

    Attributes
    ----------
    features : DataFrame
        Indexed by id and feature, for every feature that a counterfactual changes: `from`, `generators` (how many of
        them change it in at least half of their redraws), `share` (of all counterfactuals of the factual), `low` and
        `high` (of numbers and dates: the range of the new values), `to` (the most frequent new value), and `up` (of
        numbers and dates: share of the changes that are increases).
    factuals : DataFrame
        Indexed by id: `explained` (share of generators and redraws), `agreement` (mean Jaccard index of the changed
        features of two generators), `redraws` (the same of two redraws of one generator), and `plausible` (share of the
        other generators to which a counterfactual is plausible).
    kappa : DataFrame
        Cohen's kappa of two generators; on the diagonal that of two redraws of the same one.
    plausible : DataFrame
        Share of the counterfactuals of a generator (row) that are plausible to another one (column); missing if that
        one has no density.
    summary : Series
        `model_choice` and `monte_carlo` (shares of the variance of the changes), `kappa` (mean of different generators)
        and `kappa_redraws` (mean of redraws of the same one).
    names : Names
        Labels, units and formats.
    settings : mapping
        n_redraws, and further arguments of `explain`.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> depends = explainer.sensitivity(X.head(20), samplers=["cart", "parametric"], n_samples=50, sparse=True)
    >>> print(str(depends).splitlines()[0])
    Sensitivity of 19 factuals to 2 generators, 2 redraws each: 'cart', 'parametric'
    """

    features: pd.DataFrame
    factuals: pd.DataFrame
    kappa: pd.DataFrame
    plausible: pd.DataFrame
    summary: pd.Series[float]
    names: Names = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def generators(self) -> list[str]:
        """Names of the generators."""
        return [str(name) for name in self.kappa.index]

    def sentence(self, id: Hashable) -> str:
        """Return in words which changes the generators agree on for a factual.

        Parameters
        ----------
        id : hashable
            The id of the factual.
        """
        n = len(self.generators)
        table = self._features_of(id)
        if table.empty:
            return "No generator gives a counterfactual."
        parts = []
        rows: Any = table.itertuples()
        for row in rows:
            count = f"all {n}" if row.generators == n else f"{row.generators} of {n}"
            direction = "" if pd.isna(row.up) else {1.0: "higher, ", 0.0: "lower, "}.get(row.up, "higher or lower, ")
            values = self._values(row.Index, row)
            parts.append(f"{self.names.label(row.Index)}: {direction}{values}; changed under {count} generators.")
        return " ".join(parts)

    def _values(self, name: Hashable, row: Any) -> str:
        """Return the range of the new values, or the most frequent one."""
        if pd.isna(row.low) or row.low == row.high:
            return self.names.text(name, row.to)
        low, high = self.names.pair(name, row.low, row.high)
        return f"{low} to {high}"

    def plot(self, id: Hashable, ax: Axes | None = None) -> Axes:
        """Draw how many generators change each feature of a factual, and to which values.

        Parameters
        ----------
        id : hashable
            The id of the factual.
        ax : Axes, optional
            Where to draw. By default a new figure.
        """
        table = self._features_of(id)
        up = table["up"].astype(float)
        shares = pd.DataFrame(
            {
                "up": (table["share"] * up).fillna(0.0),
                "down": (table["share"] * (1 - up)).fillna(0.0),
                "other": table["share"].where(up.isna(), 0.0),
                "note": [self._values(name, row) for name, row in zip(table.index, table.itertuples())],
            }
        )
        n = len(self.generators) * self.settings["n_redraws"]
        counted = f"counterfactuals of one case: {len(self.generators)} generators, several draws each"
        return draw_changes(shares, n, names=self.names, counted=counted, ax=ax)

    def _features_of(self, id: Hashable) -> pd.DataFrame:
        if id not in self.factuals.index:
            known = listed([repr(each) for each in self.factuals.index[:5]])
            raise InputError(f"no factual {id!r} was explained; the first ones are {known}.")
        table = self.features[self.features.index.get_level_values("id") == id].droplevel("id")
        return table.sort_values(["generators", "share"], ascending=False, kind="stable")

    def __repr__(self) -> str:
        s = self.summary
        compared = ", ".join(repr(name) for name in self.generators)
        variance = (
            "every draw of every generator changes the same features"
            if np.isnan(s["model_choice"])
            else f"variance of the changes: {s['model_choice']:.0%} from the choice of the generator, "
            f"{s['monte_carlo']:.0%} Monte Carlo error"
        )
        return (
            f"Sensitivity of {len(self.factuals)} factuals to {len(self.generators)} generators, "
            f"{self.settings['n_redraws']} redraws each: {compared}\n"
            f"{variance}\n"
            f"agreement beyond chance (kappa): {s['kappa']:.2f} of different generators, "
            f"{s['kappa_redraws']:.2f} of redraws of the same one\n"
            f"plausible to the other generators: {self.factuals['plausible'].mean():.0%} of the counterfactuals"
        )


def compare_generators(
    explainers: Mapping[str, Explainer],
    X: Data,
    *,
    training: Data,
    wanted: Bools | None,
    n_redraws: int = 2,
    **settings: Any,
) -> Sensitivity:
    """Explain the same factuals with several explainers that differ in their generator alone.

    Parameters
    ----------
    explainers : mapping
        Fitted explainers by the name of their generator; at least two.
    X : DataFrame or array
        The factuals.
    training : DataFrame or array
        The rows that the generators were fitted to.
    wanted : bool array or None
        Marks the training rows with the wanted decision; None if the generators do not condition on it.
    n_redraws : int
        The number of draws with each generator, at least 2.
    **settings
        Further arguments of `explain`. The best counterfactual of each factual is compared.
    """
    n_redraws = check_count(n_redraws, "n_redraws", least=2)
    if len(explainers) < 2:
        raise InputError(f"one generator is given ({', '.join(explainers)}); give at least two to compare.")
    if "n_counterfactuals" in settings:
        raise InputError("sensitivity compares the best counterfactual of each factual; leave n_counterfactuals out.")
    settings = {"progress": False, **settings}
    found: list[list[Counterfactuals]] = []
    with progress_bar(len(explainers) * n_redraws, "explaining with other generators", None) as bar:
        for explainer in explainers.values():
            first = explainer.explain(X, **settings)
            found.append([first, *(first.redrawn(r) for r in range(1, n_redraws))])
            bar.update(n_redraws)
    names = list(explainers)
    first = found[0][0]
    assert first.draws is not None
    ids = pd.Index(first.factuals.index[first.draws.to_numpy() > 0], name="id")
    columns = list(first.frame.columns)
    changed = np.array([[_changed(one, ids, columns) for one in each] for each in found])  # c, r, i, j
    explained = np.array([[_explained(one, ids) for one in each] for each in found])
    plausible = _plausibilities(found, [each.generator_ for each in explainers.values()], ids, training, wanted)
    within = changed.var(axis=1, ddof=1).mean(axis=0)
    between = np.maximum(changed.mean(axis=1).var(axis=0, ddof=1) - within / n_redraws, 0.0)
    total = within.sum() + between.sum()
    kappa = pd.DataFrame(_kappas(changed), index=names, columns=names)
    different = ~np.eye(len(names), dtype=bool)
    shares = np.array([[float(np.nanmean(_or_nan(p))) for p in row] for row in plausible])
    return Sensitivity(
        features=_feature_table(found, changed, ids, columns),
        factuals=pd.DataFrame(
            {
                "explained": explained.mean(axis=(0, 1)),
                "agreement": _jaccard(changed, different),
                "redraws": _jaccard(changed, ~different),
                "plausible": _mean_of_others(plausible, different, len(ids)),
            },
            index=ids,
        ),
        kappa=kappa,
        plausible=pd.DataFrame(shares, index=names, columns=names),
        summary=pd.Series(
            {
                "model_choice": between.sum() / total if total else np.nan,
                "monte_carlo": within.sum() / total if total else np.nan,
                "kappa": float(np.nanmean(_or_nan(kappa.to_numpy()[different]))),
                "kappa_redraws": float(np.nanmean(_or_nan(np.diag(kappa)))),
            },
            name="value",
        ),
        names=explainers[names[0]].names_,
        settings={"n_redraws": n_redraws, **settings},
    )


def _or_nan(values: Floats) -> Floats:
    """Return the values, or one NaN if all are missing, to avoid a warning of `nanmean`."""
    return values if np.isfinite(values).any() else np.zeros(1) / np.nan


def _best(found: Counterfactuals) -> pd.DataFrame:
    frame = found.frame
    return frame[frame.index.get_level_values("rank") == 1].droplevel("rank")


def _explained(found: Counterfactuals, ids: pd.Index[Any]) -> Bools:
    return np.asarray(ids.isin(_best(found).index))


def _changed(found: Counterfactuals, ids: pd.Index[Any], columns: Sequence[Hashable]) -> Floats:
    """Return one row per factual and one column per feature: 1 where the best counterfactual changes it."""
    changes = found.changes()
    changes = changes[changes["rank"] == 1]
    out = np.zeros((len(ids), len(columns)))
    features = {name: place for place, name in enumerate(columns)}
    out[ids.get_indexer(pd.Index(changes["id"])), [features[name] for name in changes["feature"]]] = 1.0
    return out


def _feature_table(
    found: list[list[Counterfactuals]], changed: Floats, ids: pd.Index[Any], columns: Sequence[Hashable]
) -> pd.DataFrame:
    """Return `Sensitivity.features`."""
    changes = pd.concat([one.changes() for each in found for one in each], ignore_index=True)
    changes = changes[changes["rank"] == 1]
    generators = (changed.mean(axis=1) >= 0.5).sum(axis=0)
    share = changed.mean(axis=(0, 1))
    rows: dict[tuple[Hashable, Hashable], dict[str, Any]] = {}
    for (id, feature), some in changes.groupby(["id", "feature"], sort=False, observed=True):
        i, j = ids.get_loc(id), columns.index(feature)
        before, after = some["from"].iloc[0], some["to"]
        ordered = all(_is_ordered(value) for value in [before, *after])
        rows[id, feature] = {
            "from": before,
            "generators": int(generators[i, j]),
            "share": float(share[i, j]),
            "low": min(after) if ordered else np.nan,
            "high": max(after) if ordered else np.nan,
            "to": after.mode().iloc[0] if after.notna().any() else np.nan,
            "up": float(np.mean([value > before for value in after])) if ordered else np.nan,
        }
    index = (
        pd.MultiIndex.from_tuples(rows, names=["id", "feature"])
        if rows
        else pd.MultiIndex.from_product([[], []], names=["id", "feature"])
    )
    columns_of_table = ["from", "generators", "share", "low", "high", "to", "up"]
    return pd.DataFrame(list(rows.values()), index=index, columns=columns_of_table)


def _is_ordered(value: Any) -> bool:
    """Return whether a value is a known number or date."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
    return (number or isinstance(value, pd.Timestamp)) and not pd.isna(value)


def _pairs(changed: Floats, a: int, b: int) -> list[tuple[Floats, Floats]]:
    """Return pairs of redraws of two generators, or different redraws of the same one."""
    n = changed.shape[1]
    return [(changed[a, r], changed[b, s]) for r in range(n) for s in range(n) if a != b or r < s]


def _kappas(changed: Floats) -> Floats:
    """Return Cohen's kappa for all pairs of generators, mean over redraws."""
    n = len(changed)
    out = np.full((n, n), np.nan)
    for a in range(n):
        for b in range(n):
            kappas = [_kappa(x.ravel(), y.ravel()) for x, y in _pairs(changed, a, b)]
            out[a, b] = np.nanmean(_or_nan(np.array(kappas)))
    return out


def _kappa(x: Floats, y: Floats) -> float:
    by_chance = x.mean() * y.mean() + (1 - x.mean()) * (1 - y.mean())
    return float(((x == y).mean() - by_chance) / (1 - by_chance)) if by_chance < 1 else np.nan


def _jaccard(changed: Floats, which: Bools) -> Floats:
    """Return the mean Jaccard index of the changed features per factual, over the pairs of generators in `which`."""
    scores = []
    for a, b in zip(*np.nonzero(which)):
        for x, y in _pairs(changed, int(a), int(b)):
            either = np.maximum(x, y).sum(axis=1)
            scores.append(np.divide(np.minimum(x, y).sum(axis=1), either, out=np.ones(len(x)), where=either > 0))
    return np.asarray(np.mean(scores, axis=0))


def _plausibilities(
    found: list[list[Counterfactuals]],
    generators: list[Generator],
    ids: pd.Index[Any],
    training: Data,
    wanted: Bools | None,
) -> Floats:
    """Return by pair of generators and factual whether the answer of the first one is plausible to the second."""
    out = np.full((len(found), len(generators), len(ids)), np.nan)
    for b, judge in enumerate(generators):
        try:
            real = judge.log_density(training, decision=True if wanted is None else wanted)
        except InputError:  # this generator has no density
            continue
        of_wanted = np.asarray(real) if wanted is None else np.asarray(real)[wanted]
        threshold = np.quantile(of_wanted, IMPLAUSIBLE)
        for a, each in enumerate(found):
            rows = _best(each[0])
            if len(rows):
                density = np.asarray(judge.log_density(rows))
                out[a, b, ids.get_indexer(rows.index)] = density >= threshold
    return out


def _mean_of_others(plausible: Floats, different: Bools, n: int) -> Floats:
    """Return per factual the share of other generators to which the counterfactuals are plausible."""
    of_others = plausible[different]
    known = np.isfinite(of_others)
    out = np.full(n, np.nan)
    np.divide(np.where(known, of_others, 0.0).sum(axis=0), known.sum(axis=0), out=out, where=known.any(axis=0))
    return out
