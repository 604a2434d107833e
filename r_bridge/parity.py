"""mcceR's `explain_mcce` and ours, run from the same seeds and compared where they may differ.

1. fit: R's number of the leaf of every training row, feature by feature.
2. generate: every generated row; R's random stream afterwards.
3. process: our counterfactuals and measures of R's generated rows and predictions, against R's.
4. result: the counterfactuals and measures of both.

Both sides query the same model, from Python. As mcceR predicts the training rows before it takes the random stream, so
does our side: a model of R may draw from the stream of the session (`ranger` breaks ties at random).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce import rcompat
from mcce._utils import Floats
from mcce.rcompat import MCCEResult, RGenerator, Simulated
from mcce.table import Data, as_frame
from r_bridge.mccer import explain_mcce, score_function
from r_bridge.session import session, versions

EQUAL, LAST_DIGITS, RENUMBERED, DIFFERS = "equal", "last digits", "other numbers", "differs"
COLUMNS = ["stage", "quantity", "compared", "different", "largest_difference", "verdict"]
EXACT_ON = "x86_64"  # elsewhere compilers fuse a product and a sum, and R differs from R on x86 in the last bits
TOLERANCE = {True: 1e-12, False: 1e-9}  # relative to the largest value, on `EXACT_ON` and elsewhere


@dataclass(frozen=True, repr=False, eq=False)
class ParityReport:
    """The quantities that are equal in R and in mcce, and those that differ.

    Attributes
    ----------
    table : DataFrame
        stage ("fit", "generate", "process", "result"), quantity, compared (values), different (how many of them),
        largest_difference (absolute; 1 for levels), verdict ("equal": to the bit; "last digits"; "other numbers": the
        same leaves under exchanged numbers; "differs").
    settings : mapping
        The arguments of the call.
    versions : mapping
        Of R and its packages.
    notes : tuple of str
        What the processor means for the comparison.
    """

    table: pd.DataFrame
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def parts_at(self) -> str | None:
        """The first stage and quantity that differ; None if none does."""
        different = self.table[self.table["verdict"] == DIFFERS]
        return None if different.empty else f"{different['stage'].iloc[0]}: {different['quantity'].iloc[0]}"

    @property
    def agrees(self) -> bool:
        """Whether all quantities are equal, apart from last digits and numbers of leaves."""
        return self.parts_at is None

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        verdict = "all agree" if self.agrees else f"R and mcce part at {self.parts_at}"
        by_stage = self.table.groupby("stage", sort=False)[["compared", "different"]].sum()
        unequal = self.table[self.table["verdict"] != EQUAL]
        lines = [
            f"Parity of mcce with mcceR ({settings}).",
            f"{self.table['compared'].sum():,} values compared, {verdict}.",
            by_stage.to_string(),
            *([] if unequal.empty else [unequal.to_string(index=False, float_format="{:.3g}".format)]),
            *self.notes,
            ", ".join(f"{name} {number}" for name, number in self.versions.items()),
        ]
        return "\n\n".join(lines)


def check_parity(
    model: Any,
    x_explain: Data,
    x_train: Data,
    predict_model: Any = None,
    *,
    fit_seed: int | None = 1,
    generate_seed: int | None = 2,
    **arguments: Any,
) -> ParityReport:
    """Run `explain_mcce` in R, by mcceR, and in mcce, and compare both runs.

    Parameters
    ----------
    model, x_explain, x_train, predict_model
        As for `mcce.rcompat.explain_mcce`.
    fit_seed, generate_seed : int or None
        R's seeds; None continues the stream of the R session, or of the fit.
    **arguments
        The other arguments of `mcce.rcompat.explain_mcce`.

    Returns
    -------
    ParityReport

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> report = r_bridge.check_parity(
    ...     lambda X: 2.0 * X["Temp"] - 3 * X["Wind"], air.X.tail(3), air.X.iloc[:-3], fixed_features="Wind",
    ...     c_int=(-float("inf"), 90), generate_K=200)  # doctest: +SKIP
    >>> report.agrees  # doctest: +SKIP
    True
    """
    r = session()
    r.need("mcceR", "check_parity")
    factuals, train = as_frame(x_explain, "x_explain"), as_frame(x_train, "x_train")
    score = score_function(model, predict_model, arguments.get("c_int", (0.5, 1)))
    call = {**arguments, "fit_seed": fit_seed, "generate_seed": generate_seed}
    before = r.call("begin_stream")
    try:
        start = r.call("random_seed")
        theirs = run_mccer(score, factuals, train, call)
        r.call("set_random_seed", start)
        ours = run_mcce(score, factuals, train, call)
    finally:
        r.call("set_random_seed", before)
    settings = {"n_explain": len(factuals), "n_train": len(train), **call}
    return ParityReport(compare(ours, theirs, factuals, call), settings, versions(), processor_notes())


@dataclass(frozen=True)
class Run:
    """One side: its result, leaves of the training rows, predictions of the generated rows, and stream afterwards."""

    result: MCCEResult
    leaves: pd.DataFrame
    predictions: Floats
    stream: npt.NDArray[Any]


def run_mccer(
    score: Callable[[pd.DataFrame], Floats], factuals: pd.DataFrame, train: pd.DataFrame, call: Mapping[str, Any]
) -> Run:
    """Run mcceR."""
    r, predictions = session(), []

    def recorded(rows: pd.DataFrame) -> Floats:
        predictions.append(score(rows))
        return predictions[-1]

    result = explain_mcce(recorded, factuals, train, return_featuremodel_object=True, return_sim_data=True, **call)
    leaves = r.parts(r.call("training_leaves", result.featuremodel_object))
    by_feature = {name: r.numbers(part) for name, part in leaves.items()}
    return Run(result, pd.DataFrame(by_feature), predictions[-1], r.numbers(r.call("random_seed")))


def run_mcce(
    score: Callable[[pd.DataFrame], Floats], factuals: pd.DataFrame, train: pd.DataFrame, call: Mapping[str, Any]
) -> Run:
    """Run mcce, on the stream of the R session where mcceR would take it."""
    r = session()
    waiting, predictions = [score(train)], []  # before the stream is read
    seed = call["fit_seed"]
    fit_stream = RGenerator.from_random_seed(r.numbers(r.call("random_seed"))) if seed is None else RGenerator(seed)
    stream = fit_stream if call["generate_seed"] is None else RGenerator(call["generate_seed"])

    def predict(_: Any, rows: pd.DataFrame) -> Floats:
        if waiting:  # the first call is for the training rows
            return waiting.pop()
        r.call("set_random_seed", stream.random_seed)
        predictions.append(score(rows))
        return predictions[-1]

    seeds = {"fit_seed": fit_stream, "generate_seed": stream}
    options = {"return_featuremodel_object": True, "return_sim_data": True}
    result = rcompat.explain_mcce(None, factuals, train, predict, **{**call, **seeds, **options})
    assert result.featuremodel_object is not None
    leaves = result.featuremodel_object.where_train
    return Run(result, leaves, predictions[-1], r.numbers(r.call("random_seed")))


def compare(ours: Run, theirs: Run, factuals: pd.DataFrame, call: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of a `ParityReport`."""
    rows: list[list[Any]] = []
    fitted, rows_of_r = ours.result.featuremodel_object, theirs.result.sim_data
    assert fitted is not None
    assert rows_of_r is not None
    assert ours.result.sim_data is not None
    for name in ours.leaves:
        row = ["fit", f"leaf of each training row, {name}", *difference(ours.leaves[name], theirs.leaves[str(name)])]
        # a last bit may swap the children of a split on mirrored columns; the partition of rows is the same
        if row[-1] == DIFFERS and same_partition(ours.leaves[name].to_numpy(), theirs.leaves[str(name)].to_numpy()):
            row[-1] = RENUMBERED
        rows.append(row)
    rows += _compare_tables("generate", "generated rows", ours.result.sim_data, rows_of_r)
    rows.append(["generate", "random stream afterwards", *difference(ours.stream, theirs.stream)])
    options = {
        name: call[f"process_{name}"]
        for name in ("measures", "remove_invalid", "return_best_k")
        if f"process_{name}" in call
    }
    again = rcompat.process(Simulated.from_frame(rows_of_r, factuals, fitted), theirs.predictions, **options)
    for stage, answer in (("process", again), ("result", ours.result)):
        rows += _compare_tables(stage, "counterfactuals", answer.cf, theirs.result.cf)
        rows += _compare_tables(stage, "measures", answer.cf_measures, theirs.result.cf_measures)
    return pd.DataFrame(rows, columns=COLUMNS)


def _compare_tables(stage: str, what: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> list[list[Any]]:
    if list(ours.columns) != list(theirs.columns):
        return [[stage, f"{what}, names of columns", 1, 1, 1.0, DIFFERS]]
    return [[stage, f"{what}, {name}", *difference(ours[name], theirs[name])] for name in ours]


def difference(ours: Any, theirs: Any) -> tuple[int, int, float, str]:
    """Return the number of values, of different ones, the largest difference (levels: 1) and the verdict.

    Examples
    --------
    >>> from r_bridge.parity import difference
    >>> difference([1.0, 2.0], [1.0, 2.5])
    (2, 1, 0.5, 'differs')
    """
    a, b = pd.Series(ours), pd.Series(theirs)
    n = max(len(a), len(b))
    if len(a) != len(b):
        return n, abs(len(a) - len(b)), np.inf, DIFFERS
    if not all(pd.api.types.is_numeric_dtype(column.dtype) for column in (a, b)):
        different = int((a.astype(object).map(str).to_numpy() != b.astype(object).map(str).to_numpy()).sum())
        return n, different, float(different > 0), DIFFERS if different else EQUAL
    x, y = a.to_numpy(dtype=np.float64), b.to_numpy(dtype=np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(x - y))
    largest = float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))
    values = np.abs(np.concatenate([x, y]))
    scale = float(values[np.isfinite(values)].max(initial=0.0))
    if same.all():
        return n, 0, 0.0, EQUAL
    return (
        n,
        int((~same).sum()),
        largest,
        LAST_DIGITS if largest <= TOLERANCE[architecture() == EXACT_ON] * scale else DIFFERS,
    )


def same_partition(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> bool:
    """Return whether two numberings define the same partition of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from r_bridge.parity import same_partition
    >>> same_partition(np.array([2, 2, 5]), np.array([7, 7, 3]))
    True
    """
    pairs = len(set(zip(ours.tolist(), theirs.tolist())))
    return pairs == np.unique(ours).size == np.unique(theirs).size


def architecture() -> str:
    """Return the processor that R was compiled for."""
    r = session()
    return r.strings(r.call("architecture"))[0]


def processor_notes() -> tuple[str, ...]:
    """Return what the processor means for a comparison with this R."""
    if architecture() == EXACT_ON:
        return ()
    return (
        f"R on {architecture()} differs from R on {EXACT_ON} in the last bits: numbers are compared within "
        f"{TOLERANCE[False]:g} of the largest, and ties between columns may be broken differently.",
    )
