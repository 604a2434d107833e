"""Quality of counterfactuals of any method: the columns of the paper's tables (paper, section 3.1).

L0 is the number of changed features, L1 the summed Gower distance (`gower_sum` of `mcce.distances.measures`), violation
the number of changed fixed features, success whether the model gives the wanted decision. Distances to the nearest
training row, and to the nearest one with the wanted decision, are mean Gower distances without the factual itself.
Means and standard deviations are over all counterfactuals; N_CE counts factuals with one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.progress import working
from mcce.base.threads import one_native_thread
from mcce.counterfactuals import Counterfactuals
from mcce.diagnostics.neighbours import find_equal, find_nearest
from mcce.diagnostics.pairs import encode_widely
from mcce.distances.measures import changed_columns, gower_sum
from mcce.exceptions import InputError, listing
from mcce.model.decisions import Decision, resolve_decision
from mcce.table import Data, FrameKind, Kind, Schema, as_frame, frame_kind
from mcce.table.checks import check_fixed, check_row_names, find_labels
from mcce.table.weights import deviation_of, mean_of, read_weights

WORDS = {
    "L0": "features changed",
    "L1": "Gower distance to the case, summed over the features",
    "violation": "fixed features changed",
    "success": "have the wanted decision",
    "distance": "Gower distance to the nearest training row, except that of the case itself",
    "distance_wanted": "the same, among training rows with the wanted decision",
    "copy": "are copies of a training row",
}
QUERY_ROWS = 200_000


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Evaluation:
    """The figures of `evaluate`.

    Attributes
    ----------
    rows : DataFrame
        One row for each counterfactual, indexed by (id, rank): L0, L1, violation, success, and with training rows
        distance, distance_wanted and copy.
    summary : DataFrame
        Mean and standard deviation (n - 1 in the denominator) of each column of `rows`.
    n_factuals, n_explained : int
        The number of rows to explain, and of those with a counterfactual: the paper's n_test and N_CE.
    timings : mapping
        Seconds of each step, and `total`.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> found = explainer.explain(X.head(50), n_samples=50)
    >>> evaluation = mcce.diagnostics.evaluate(found, X.head(50), model, training=X)
    >>> float(evaluation.summary.loc["violation", "mean"])
    0.0
    """

    rows: pd.DataFrame
    summary: pd.DataFrame
    n_factuals: int
    n_explained: int
    timings: Mapping[str, float] = field(default_factory=dict)

    def to_frame(self, name: Hashable = "MCCE") -> pd.DataFrame:
        """Return one row with all figures; join the rows of several methods by `pandas.concat`.

        The columns are L0, L0_sd, L1, L1_sd, violation, violation_sd, success, N_CE, n_test, then distance,
        distance_sd, distance_wanted, distance_wanted_sd and copy where there were training rows, then seconds_fit,
        seconds_generate, seconds_select (or the steps given) and seconds_total.
        """
        figures: dict[str, float] = {}
        for measure, mean, sd in self.summary.itertuples():
            figures[measure] = mean
            if measure not in ("success", "copy"):
                figures[f"{measure}_sd"] = sd
            if measure == "success":
                figures |= {"N_CE": self.n_explained, "n_test": self.n_factuals}
        figures |= {f"seconds_{step}": seconds for step, seconds in self.timings.items()}
        return pd.DataFrame(figures, index=pd.Index([name], name="method"))

    def _lines(self) -> list[list[str]]:
        lines = [["", "mean", "sd", ""]]
        for measure, mean, sd in self.summary.itertuples():
            lines.append([measure, f"{mean:.4g}", f"{sd:.3g}", WORDS[measure]])
        lines.append(["N_CE", str(self.n_explained), "", f"of {self.n_factuals} cases have a counterfactual"])
        lines += [[f"seconds {step}", f"{seconds:.3g}", "", ""] for step, seconds in self.timings.items()]
        return lines

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[k]) for line in lines) for k in range(3)]
        body = [
            f"{a.ljust(widths[0])}  {b.rjust(widths[1])}  {c.rjust(widths[2])}  {d}".rstrip() for a, b, c, d in lines
        ]
        return "\n".join([f"Evaluation of {len(self.rows)} counterfactuals", *body])

    def _repr_html_(self) -> str:
        head, *body = self._lines()
        table = pd.DataFrame(body, columns=head)
        html: str = table.to_html(index=False, border=0)
        return f"<p>Evaluation of {len(self.rows)} counterfactuals</p>{html}"


@one_native_thread()
@working("evaluating", None)
def evaluate(
    found: Counterfactuals | pd.DataFrame,
    X: Data,
    model: Any,
    *,
    training: Data | Schema | None = None,
    decision: Any = (0.5, 1.0),
    fixed: Sequence[Hashable] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    kinds: Mapping[Any, Kind] | None = None,
    timings: Mapping[str, float] | float | None = None,
    rank: int | None = 1,
    n_jobs: int | None = None,
) -> Evaluation:
    """Measure counterfactuals of any method as the paper's tables do.

    Parameters
    ----------
    found : Counterfactuals or DataFrame
        The counterfactuals. The index of a DataFrame, from any package, holds the label of the factual in `X`; several
        rows with one label are its first, second, ... counterfactual (or the index is (label, rank)). A factual
        without a row, or with all cells missing, has no counterfactual.
    X : DataFrame or array
        All factuals that were to be explained.
    model, decision : as for `MCCE`
        Queried again about every counterfactual.
    training : DataFrame, array or Schema
        The training data, for kinds and ranges, and for `distance`, `distance_wanted` and `copy`. A Schema provides
        only kinds and ranges. May be None for a Counterfactuals, whose own L0 and L1 are then used without distances
        to the training rows.
    fixed : list of column names
        The features that must not change; by default those of a Counterfactuals.
    sample_weight : array or None
        Weights of the factuals, for the means and standard deviations of `summary`; whole numbers are frequencies.
    kinds : dict or None
        Overrides of column kinds, as for `MCCE`.
    timings : mapping or number
        Seconds of each step, or of all; by default those of a Counterfactuals.
    rank : int or None
        The rank of the counterfactuals to measure, 1 for the best; None measures all.
    n_jobs : int or None
        Threads for the search of nearest rows; the result does not depend on it.

    Returns
    -------
    Evaluation
        `rows`, `summary` (mean, sd), `n_factuals`, `n_explained`, `timings`, and `to_frame(name)`, one row for a table
        of methods.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> loans = mcce.datasets.load_loans()
    >>> model = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype").fit(loans.X, loans.y)
    >>> granted = mcce.Interval(0, 0.1, closed="left", of=True)
    >>> explainer = mcce.MCCE(model, decision=granted, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> denied = loans.X[model.predict_proba(loans.X)[:, 1] >= 0.1].head(50)
    >>> found = explainer.explain(denied)
    >>> of_mcce = mcce.diagnostics.evaluate(found, denied, model, decision=granted, training=loans.X)
    >>> of_mcce.summary.loc[["violation", "success"], "mean"].to_dict()
    {'violation': 0.0, 'success': 1.0}

    A method that returns the nearest training row with the wanted decision changes more, and also fixed features:

    >>> peer = loans.X[model.predict_proba(loans.X)[:, 1] < 0.1].iloc[[0] * 50].set_axis(denied.index)
    >>> of_peer = mcce.diagnostics.evaluate(
    ...     peer, denied, model, decision=granted, training=loans.X, fixed=["age", "sex"], timings=0.1)
    >>> bool(of_peer.summary.at["violation", "mean"] > 1)
    True
    """
    frame, rank_of = _read_found(found)
    factuals, array_dtype = as_frame(X, "X")
    owner = _owners(frame, factuals)
    if rank is not None:
        of_rank = rank_of == rank
        frame, owner, rank_of = frame[of_rank], owner[of_rank], rank_of[of_rank]
    schema = _read_schema(found, training, kinds, array_dtype, frame_kind(X))
    schema, before = encode_widely(schema, factuals, "X")
    schema, rows = encode_widely(schema, frame, "found")
    before = before[owner]
    changed = changed_columns(rows, before)
    measures = pd.DataFrame({"L0": changed.sum(axis=1)})
    if training is None:
        assert isinstance(found, Counterfactuals)
        measures["L1"] = found.measures.loc[frame.index, "gower_sum"].to_numpy()
    else:
        measures["L1"] = gower_sum(schema.features).sums(rows, before)
    if fixed is None:
        fixed = found.fixed if isinstance(found, Counterfactuals) else ()
    places = [schema.position(name) for name in check_fixed(fixed, schema.names)]
    measures["violation"] = changed[:, places].sum(axis=1)
    resolved = resolve_decision(decision, model)
    measures["success"] = resolved.evaluate(schema.decode_for_model(rows), "the counterfactuals").wanted
    if training is not None and not isinstance(training, Schema):
        measures = pd.concat([measures, _manifold(rows, before, schema, training, resolved, n_jobs)], axis=1)
    measures.index = pd.MultiIndex.from_arrays([factuals.index[owner], rank_of], names=["id", "rank"])
    weights = None if sample_weight is None else read_weights(sample_weight, len(factuals))[owner]
    return Evaluation(
        rows=measures,
        summary=_summary(measures.astype(float), weights),
        n_factuals=len(factuals),
        n_explained=int(np.unique(owner).size),
        timings=_read_timings(found, timings),
    )


def _summary(numbers: pd.DataFrame, weights: Floats | None) -> pd.DataFrame:
    """Return means and standard deviations without missing values, with weights as frequencies."""
    if weights is None:
        return pd.DataFrame({"mean": numbers.mean(), "sd": numbers.std()})
    found = {}
    for name, column in numbers.items():
        known = column.notna().to_numpy() & (weights > 0.0)
        values, weight = column.to_numpy()[known], weights[known]
        mean = float(mean_of(values, weight)) if values.size else np.nan
        found[name] = {"mean": mean, "sd": float(deviation_of(values, weight, ddof=1)) if weight.sum() > 1 else np.nan}
    return pd.DataFrame.from_dict(found, orient="index")


def _manifold(
    rows: Floats, before: Floats, schema: Schema, training: Data, decision: Decision, n_jobs: int | None
) -> pd.DataFrame:
    """Return distances to the training rows, except that of the factual itself, and copies of them."""
    seen = schema.encode(training, "training").matrix
    parts = range(0, len(training), QUERY_ROWS)
    wanted = np.concatenate(
        [decision.evaluate(training[i : i + QUERY_ROWS], "the training rows").wanted for i in parts]
    )
    own = find_equal(before, seen)
    nearest, nearest_wanted = (
        find_nearest(rows, seen, schema.features, own=own, among=among, n_jobs=n_jobs).distance[:, 0]
        for among in (None, wanted)
    )
    return pd.DataFrame(
        {
            "distance": nearest,
            "distance_wanted": nearest_wanted,
            "copy": find_equal(rows, seen) >= 0,
        }
    )


def _read_found(found: Counterfactuals | pd.DataFrame) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    """Return the rows, and their ranks."""
    if isinstance(found, Counterfactuals):
        return found.frame, found.frame.index.get_level_values("rank").to_numpy(dtype=np.int64)
    if not isinstance(found, pd.DataFrame):
        raise InputError(
            f"found is a {type(found).__name__}; give a Counterfactuals, or a DataFrame whose index holds the label "
            "of each factual in X."
        )
    frame = found[found.notna().any(axis=1)]
    if frame.index.nlevels > 2:
        raise InputError(f"the index of found has {frame.index.nlevels} levels; give (label of the factual, rank).")
    if frame.index.nlevels == 2:
        ranks = frame.index.get_level_values(1)
        if not pd.api.types.is_integer_dtype(ranks.dtype):
            raise InputError(f"the second level of the index of found is {ranks.dtype}; give the rank: 1, 2, ...")
        return frame, ranks.to_numpy(dtype=np.int64)
    before = frame.groupby(frame.index, sort=False).cumcount()
    return frame, np.asarray(before + 1, dtype=np.int64)


def _owners(frame: pd.DataFrame, factuals: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the position in X of the factual of each counterfactual."""
    check_row_names(factuals.index, "X", "factuals")
    ids = frame.index.get_level_values(0)
    owner = find_labels(factuals.index, ids)
    if (owner < 0).any():
        raise InputError(
            f"found has rows for {listing(ids[owner < 0].unique())}, not in the index of X; give found the labels of X."
        )
    return owner


def _read_schema(
    found: Counterfactuals | pd.DataFrame,
    training: Data | Schema | None,
    kinds: Mapping[Any, Kind] | None,
    array_dtype: Any,
    frames: FrameKind | None,
) -> Schema:
    if isinstance(training, Schema):
        return training
    if training is not None:
        return Schema.from_data(training, kinds, "training")
    if not isinstance(found, Counterfactuals):
        raise InputError("training is None; give the training data: a DataFrame of counterfactuals needs its ranges.")
    known: Any = dict(found.kinds)
    both = pd.concat([found.factuals[found.frame.columns], found.frame], ignore_index=True)
    return Schema(Schema.from_data(both, kinds or known).features, array_dtype, frames)


def _read_timings(
    found: Counterfactuals | pd.DataFrame, timings: Mapping[str, float] | float | None
) -> dict[str, float]:
    if timings is None:
        timings = found.run.timings if isinstance(found, Counterfactuals) else {}
    if not isinstance(timings, Mapping):
        return {"total": float(timings)}
    if not timings or "total" in timings:
        return dict(timings)
    return {**timings, "total": sum(timings.values())}
