"""The same call in R and here, stage by stage, to see where two programs part.

1. fit: R's number of the leaf of every training row, feature by feature; the random stream afterwards.
2. generate: every value of every generated row; the random stream afterwards.
3. measures and ranks, of R's rows on both sides: so that these are compared even where the rows differ.
4. final rows: what each side returns, from its own rows.

The predictions are the same on both sides: the model's, asked from Python. R's side is run by mcceR or, where it is not
installed, by code of our own in R (`r_bridge.stages`) with R's own rpart or party; without these, from stage 3 on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.decision import Interval
from mcce.rcompat import FeatureModel, Processed, Simulated, fit_autoregressive, generate, process
from mcce.rcompat.columns import check_count, check_fixed
from mcce.rcompat.process import check_measures
from mcce.rng import RGenerator
from mcce.schema import Data, as_frame
from r_bridge.errors import RBridgeError
from r_bridge.mccer import generated_like, score_function, tree_controls
from r_bridge.report import as_html, as_text
from r_bridge.session import session, versions
from r_bridge.stages import ENGINES, RProcessed, RStages

EQUAL, ROUNDING, RENUMBERED = "equal", "last digits", "other numbers"
DIFFERS, NOT_COMPARED = "differs", "not compared"
LAST_DIGITS = 1e-12  # relative to the largest value
COLUMNS = ["stage", "quantity", "compared", "different", "largest_difference", "verdict"]


@dataclass(frozen=True, repr=False, eq=False)
class ParityReport:
    """Where R and mcce agree, to the bit, and where they part.

    Attributes
    ----------
    table : DataFrame
        stage ("fit", "generate", "measures", "ranks", "final rows"), quantity, compared (values), different (how many
        of them), largest_difference (absolute; 1 for levels that differ), verdict ("equal": to the bit; "last digits";
        "other numbers": the same leaves, two of them exchanged; "differs"; "not compared").
    engine : str
        "rpart" or "ctree".
    by : str
        Who ran R's side.
    notes : tuple of str
        What could not be compared, and why.
    settings : mapping
        Seeds, K and the other arguments.
    versions : mapping
        Of R and its packages.
    """

    table: pd.DataFrame
    engine: str
    by: str
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def agrees(self) -> bool:
        """Whether all that was compared is equal, but for last digits and numbers of leaves."""
        return self.first_divergence is None

    @property
    def first_divergence(self) -> str | None:
        """The first stage and quantity that differ, as text; None if none does."""
        different = self.table[self.table["verdict"] == DIFFERS]
        return None if different.empty else f"{different['stage'].iloc[0]}: {different['quantity'].iloc[0]}"

    @property
    def n_compared(self) -> int:
        """Number of values compared."""
        return int(self.table["compared"].sum())

    def _headline(self) -> list[str]:
        seeds = f"fit_seed {self.settings['fit_seed']}, generate_seed {self.settings['generate_seed']}"
        what = f"{self.engine}, {self.settings['n_explain']} factuals, K = {self.settings['generate_K']:,}, {seeds}"
        if self.first_divergence is None:
            found = f"{self.n_compared:,} values compared, all agree."
        else:
            found = f"R and mcce part at {self.first_divergence} ({self.n_compared:,} values compared)."
        return [f"Parity with {self.by} ({what}).", found]

    def _notes(self) -> list[str]:
        return [*self.notes, ", ".join(f"{name} {number}" for name, number in self.versions.items())]

    def __repr__(self) -> str:
        return as_text(self._headline(), self.table, self._notes())

    def _repr_html_(self) -> str:
        return as_html(self._headline(), self.table, self._notes(), list(self.table["verdict"] == DIFFERS))


def check_parity(
    model: Any,
    x_explain: Data,
    x_train: Data,
    predict_model: Any = None,
    fixed_features: str | Iterable[Hashable] | None = None,
    c_int: Sequence[float] | Interval = (0.5, 1),
    fit_autoregressive_model: str = "ctree",
    fit_decision: bool = True,
    fit_seed: int | None = 1,
    generate_K: int = 1000,
    generate_seed: int | None = 2,
    process_measures: Sequence[str] = ("validation", "L0", "L1"),
    process_return_best_k: int = 1,
    process_remove_invalid: bool = True,
    use_mccer: bool | None = None,
    **tree_arguments: Any,
) -> ParityReport:
    """Run mcceR's call in R and here, and compare every stage.

    Parameters
    ----------
    model, x_explain, x_train, predict_model, fixed_features, c_int
        As for `mcce.rcompat.explain_mcce`.
    fit_seed : int
        R's seed before fitting.
    generate_seed : int or None
        R's seed before generating; None goes on after the fit.
    use_mccer : bool or None
        Whether mcceR runs R's side; None: if it is installed.
    **tree_arguments
        R's arguments of the trees. These and all other parameters are those of `mcce.rcompat.explain_mcce`.

    Returns
    -------
    ParityReport

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> report = r_bridge.check_parity(
    ...     lambda X: 2.0 * X["Temp"] - 3 * X["Wind"], air.X.tail(3), air.X.iloc[:-3], fixed_features="Wind",
    ...     c_int=(-float("inf"), 90), generate_K=200)
    >>> report.agrees
    True
    """
    factuals, train = as_frame(x_explain, "x_explain")[0], as_frame(x_train, "x_train")[0]
    measures = check_measures(process_measures)
    fixed = check_fixed(fixed_features, list(train.columns))
    controls = tree_controls(fit_autoregressive_model, tree_arguments)
    ends = (c_int.low, c_int.high) if isinstance(c_int, Interval) else (float(c_int[0]), float(c_int[1]))
    score = score_function(model, predict_model, c_int)
    if fit_seed is None:
        raise RBridgeError("fit_seed is None; two programs can only be compared from a common seed: give an integer.")
    r = session()
    by_mccer = r.has("mcceR") if use_mccer is None else use_mccer
    if by_mccer:
        r.need("mcceR", "check_parity(use_mccer=True)")
    run = _Run(
        stages=RStages(train, factuals, generated_like(train, factuals, fixed), by_mccer),
        engine=fit_autoregressive_model,
        K=check_count(generate_K, "generate_K"),
        generate_seed=generate_seed,
        measures=measures,
        remove_invalid=process_remove_invalid,
        best_k=check_count(process_return_best_k, "process_return_best_k"),
        rows=[],
        notes=[],
    )
    before = r.call("begin_stream")
    try:
        run.compare(score, fixed, ends, fit_decision, fit_seed, controls)
    finally:
        r.call("end_stream", before)
    packages = versions()
    package = ENGINES[fit_autoregressive_model]
    settings = {
        "fit_seed": fit_seed,
        "generate_seed": generate_seed,
        "generate_K": generate_K,
        "n_explain": len(factuals),
        "n_train": len(train),
        "measures": tuple(measures),
        "fixed_features": tuple(fixed),
        **controls,
    }
    own = f"R's {package} and sample(), by R code of r_bridge" if package in packages else "R code of r_bridge"
    return ParityReport(
        table=pd.DataFrame(run.rows, columns=COLUMNS),
        engine=fit_autoregressive_model,
        by=f"mcceR {packages['mcceR']}" if by_mccer else own,
        notes=tuple(run.notes if by_mccer else ["mcceR did not run: what R did is its documented method.", *run.notes]),
        settings=settings,
        versions=packages,
    )


@dataclass(frozen=True)
class _Run:
    """One comparison under way: its settings, and the rows of its table and the notes so far."""

    stages: RStages
    engine: str
    K: int
    generate_seed: int | None
    measures: list[str]
    remove_invalid: bool
    best_k: int
    rows: list[list[Any]]
    notes: list[str]

    def compare(
        self,
        score: Any,
        fixed: list[Hashable],
        c_int: tuple[float, float],
        decision: bool,
        fit_seed: int,
        controls: Mapping[str, Any],
    ) -> None:
        """Go through the stages."""
        train, factuals = self.stages.x_train, self.stages.x_explain
        pred_train = score(train)
        rng = RGenerator(fit_seed)
        fitted = fit_autoregressive(train, pred_train, fixed, c_int, self.engine, decision, rng, **controls)
        arguments = (pred_train, fixed, c_int, self.engine, decision, fit_seed, controls)
        r_fitted = self._in_r("fit", "leaf of each training row", lambda: self.stages.fit(*arguments))
        if r_fitted is not None:
            self._compare_fits(fitted, r_fitted, rng)
        if self.generate_seed is not None:
            rng = RGenerator(self.generate_seed)
        simulated = generate(factuals, fitted, self.K, rng)
        sim = None
        if r_fitted is not None:
            generated = (r_fitted, self.K, self.generate_seed)
            sim = self._in_r("generate", "generated rows", lambda: self.stages.generate(*generated))
        if sim is not None:
            self._compare_rows("generate", simulated.frame, sim, "generated rows")
            self._compare_stream("generate", rng)
        self._compare_processing(fitted, simulated, simulated.frame if sim is None else sim, score)

    def _in_r(self, stage: str, quantity: str, work: Callable[[], Any]) -> Any:
        """Return what R makes of a stage; None, with a note, if it lacks the package or fails."""
        package = ENGINES[self.engine]
        try:
            if stage in ("fit", "generate"):
                self.stages.r.need(package, f"the stage {stage!r}")
            return work()
        except RBridgeError as error:
            self.rows.append([stage, quantity, 0, 0, np.nan, NOT_COMPARED])
            self.notes.append(f"{stage}: not compared, and nothing of R's that follows from it. {error}")
            return None

    def _compare_fits(self, fitted: FeatureModel, r_fitted: Any, rng: RGenerator) -> None:
        theirs = self.stages.leaves(r_fitted)
        for name in fitted.where_train:
            ours = fitted.where_train[name]
            self._add("fit", f"leaf of each training row, {name}", ours, theirs[str(name)])
            # the children of a split on mirrored columns change places by a last bit: the rows are parted alike
            if self.rows[-1][-1] == DIFFERS and same_partition(ours.to_numpy(), theirs[str(name)].to_numpy()):
                self.rows[-1][-1] = RENUMBERED
        self._compare_stream("fit", rng)

    def _compare_stream(self, stage: str, rng: RGenerator) -> None:
        self._add(stage, "random stream afterwards", rng.random_seed, self.stages.random_seed())

    def _compare_rows(self, stage: str, ours: pd.DataFrame, theirs: pd.DataFrame, what: str) -> None:
        for name in ours:
            self._add(stage, f"{what}, {name}", ours[name], theirs[name])

    def _compare_processing(self, fitted: FeatureModel, simulated: Simulated, sim: pd.DataFrame, score: Any) -> None:
        ids = np.repeat(np.arange(1, len(self.stages.x_explain) + 1), self.K)
        same_rows = Simulated.from_frame(sim.assign(id_explain=ids), self.stages.x_explain, fitted)
        scores = score(sim)
        options = (self.measures, self.remove_invalid, self.best_k)
        ours = process(same_rows, scores, *options)
        names = [str(name) for name in fitted.mutable_features]
        needed = {"mutable_features": names, "c_int": list(fitted.c_int)}  # all that processing needs of the fit
        theirs = self._in_r("measures", "all", lambda: self.stages.process(sim, scores, needed, *options))
        if theirs is None:
            return
        for name in self.measures:
            self._add("measures", name, ours.measures[f"measure_{name}"], theirs.measures[name])
        self._add("ranks", "rank of each row", ours.measures["counterfactual_rank"], theirs.rank)
        own = process(simulated, score(simulated.frame), *options)
        self._compare_final(own, theirs, sim, ids, scores)

    def _compare_final(
        self, own: Processed, theirs: RProcessed, sim: pd.DataFrame, ids: npt.NDArray[np.int64], scores: Any
    ) -> None:
        best = theirs.best
        self._add("final rows", "id_explain", own.cf["id_explain"], ids[best])
        if len(own.cf) == best.size:
            self._add("final rows", "counterfactual_rank", own.cf["counterfactual_rank"], theirs.rank[best])
            self._compare_rows("final rows", own.cf[list(sim.columns)], sim.iloc[best], "counterfactuals")
            self._add("final rows", "pred", own.cf_measures["pred"], scores[best])

    def _add(self, stage: str, quantity: str, ours: Any, theirs: Any) -> None:
        n, different, largest, scale = difference(pd.Series(np.asarray(ours)), pd.Series(np.asarray(theirs)))
        verdict = EQUAL if not different else ROUNDING if largest <= LAST_DIGITS * scale else DIFFERS
        self.rows.append([stage, quantity, n, different, largest, verdict])


def same_partition(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> bool:
    """Say whether two numberings part the rows alike.

    Examples
    --------
    >>> import numpy as np
    >>> from r_bridge.parity import same_partition
    >>> same_partition(np.array([2, 2, 5]), np.array([7, 7, 3]))
    True
    """
    pairs = len(set(zip(ours.tolist(), theirs.tolist())))
    return pairs == np.unique(ours).size == np.unique(theirs).size


def difference(ours: pd.Series[Any], theirs: pd.Series[Any]) -> tuple[int, int, float, float]:
    """Compare two columns: values, different ones, largest difference (levels: 1), largest value.

    Examples
    --------
    >>> import pandas as pd
    >>> from r_bridge.parity import difference
    >>> difference(pd.Series([1.0, 2.0]), pd.Series([1.0, 2.5]))
    (2, 1, 0.5, 2.5)
    """
    n = max(len(ours), len(theirs))
    if len(ours) != len(theirs):
        return n, abs(len(ours) - len(theirs)), np.inf, 0.0
    if not all(pd.api.types.is_numeric_dtype(column.dtype) for column in (ours, theirs)):
        different = int((ours.astype(object).map(str).to_numpy() != theirs.astype(object).map(str).to_numpy()).sum())
        return n, different, float(different > 0), 0.0
    a, b = ours.to_numpy(dtype=np.float64), theirs.to_numpy(dtype=np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
    largest = float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))
    values = np.abs(np.concatenate([a, b]))
    scale = float(values[np.isfinite(values)].max(initial=0.0))
    return n, int((~same).sum()), largest, scale
