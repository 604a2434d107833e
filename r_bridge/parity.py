"""The same call in R and in mcce, compared stage by stage to locate the first difference.

1. fit: R's number of the leaf of every training row, feature by feature; the random stream afterwards.
2. generate: every value of every generated row; the random stream afterwards.
3. measures and ranks, of R's rows on both sides, so that they are compared even if the rows differ.
4. final rows: the rows that each side returns, from its own generated rows.

Both sides use the same predictions, queried from Python. R's side is run by mcceR or, if it is not installed, by R code
of this package (`r_bridge.stages`) with R's rpart or party; without these, the comparison begins at stage 3.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.checks import check_count
from mcce.model.decisions import Interval
from mcce.rcompat import FeatureModel, Processed, Simulated, fit_autoregressive, generate, process
from mcce.rcompat.stages import check_fixed, check_measures
from mcce.rng.r import RGenerator
from mcce.table import Data, as_frame
from r_bridge.errors import RBridgeError
from r_bridge.mccer import generated_like, score_function, tree_controls
from r_bridge.parity_report import (
    COLUMNS,
    DIFFERS,
    EQUAL,
    LAST_DIGITS,
    NOT_COMPARED,
    PARTY_FUSED,
    RENUMBERED,
    ROUNDING,
    TO_THE_BIT,
    ParityReport,
    difference,
    same_partition,
)
from r_bridge.session import arithmetic, session, versions
from r_bridge.stages import ENGINES, RProcessed, RStages, check_names_for_mccer


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
    """Run mcceR's call in R and in mcce, and compare every stage.

    Parameters
    ----------
    model, x_explain, x_train, predict_model, fixed_features, c_int
        As for `mcce.rcompat.explain_mcce`.
    fit_seed : int
        R's seed before fitting.
    generate_seed : int or None
        R's seed before generating; None continues the stream of the fit.
    use_mccer : bool or None
        Whether mcceR runs R's side; None uses it if installed.
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
    rounding = arithmetic()
    by_mccer = r.has("mcceR") if use_mccer is None else use_mccer
    if by_mccer:
        r.need("mcceR", "check_parity(use_mccer=True)")
        check_names_for_mccer(train, factuals)
    run = _ComparisonRun(
        stages=RStages(train, factuals, generated_like(train, factuals, fixed), by_mccer),
        engine=fit_autoregressive_model,
        K=check_count(generate_K, "generate_K"),
        generate_seed=generate_seed,
        measures=measures,
        remove_invalid=process_remove_invalid,
        fused=rounding == "fused",
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
        notes=(
            *(() if by_mccer else ["mcceR was not run: R ran its documented method."]),
            *run.notes,
            TO_THE_BIT[rounding],
            *([PARTY_FUSED] if rounding != "separate" and fit_autoregressive_model == "ctree" else []),
        ),
        settings=settings,
        versions=packages,
    )


@dataclass(frozen=True)
class _ComparisonRun:
    """The state of one comparison: its settings, and the rows of its table and the notes so far."""

    stages: RStages
    engine: str
    K: int
    generate_seed: int | None
    measures: list[str]
    remove_invalid: bool
    fused: bool
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
        """Compare all stages."""
        train, factuals = self.stages.x_train, self.stages.x_explain
        pred_train = score(train)
        rng = RGenerator(fit_seed, fused=self.fused)
        fitted = fit_autoregressive(train, pred_train, fixed, c_int, self.engine, decision, rng, **controls)
        arguments = (pred_train, fixed, c_int, self.engine, decision, fit_seed, controls)
        r_fitted = self._in_r("fit", "leaf of each training row", lambda: self.stages.fit(*arguments))
        if r_fitted is not None:
            self._compare_fits(fitted, r_fitted, rng)
        if self.generate_seed is not None:
            rng = RGenerator(self.generate_seed, fused=self.fused)
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
        """Return R's result of a stage; None, with a note, if R lacks the package or fails."""
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
            # a last bit may swap the children of a split on mirrored columns; the partition of rows is the same
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
        needed = {"mutable_features": names, "c_int": list(fitted.c_int)}  # the parts of the fit that processing needs
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
