"""All diagnostics of a fitted explainer, gathered.

1. Realism. One row is generated for each real row, given its fixed values and its own decision, and the two tables are
   compared: discriminator, pMSE, marginals, tables of counts, correlations.
2. Candidates. For each factual, a real row without the wanted decision: how many of its K draws are distinct and valid.
3. Counterfactuals. The best of each factual: L0, L1, violation, success; distance to the nearest training row, and to
   the nearest one with the wanted decision, never counting the factual; copies of training rows.
4. Visit sequence. The same with the features in other orders.

Real rows with weights are first made into rows that count the same (`mcce.table.weights.rows_by_weight`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.checks import check_count
from mcce.diagnostics.candidates import candidate_table, draw_like
from mcce.diagnostics.correlations import compare_correlations
from mcce.diagnostics.discriminator import FEWEST_ROWS, discriminator
from mcce.diagnostics.evaluation import evaluate
from mcce.diagnostics.marginals import marginal_distances
from mcce.diagnostics.neighbours import find_equal
from mcce.diagnostics.pairs import read_pair, spread
from mcce.diagnostics.pmse import pmse
from mcce.diagnostics.propensity import count_columns
from mcce.diagnostics.result import Diagnostics
from mcce.diagnostics.tables import utility_tables
from mcce.diagnostics.visiting import Order, has_visit_sequence, visit_effect
from mcce.exceptions import InputError
from mcce.explainer import Explainer
from mcce.table import Data, as_frame
from mcce.table.checks import check_row_names
from mcce.table.weights import read_weights, rows_by_weight

MOST_SEEN = 0.5  # share of the rows of X that may be training rows before it is said
ROWS_FOR_A_COLUMN = 10  # the regression takes products of columns only if there are as many rows for each


def diagnose(
    explainer: Explainer,
    X: Data,
    *,
    training: Data | None,
    sample_weight: npt.ArrayLike | None = None,
    n_samples: int = 1000,
    max_factuals: int = 100,
    max_rows: int = 5000,
    visit_sequences: Sequence[Order] = ("data", "correlation", "reversed"),
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Diagnostics:
    """Gather all diagnostics of a fitted explainer; `MCCE.diagnose` is the call to use, and says what the parts are."""
    for name, value in (("n_samples", n_samples), ("max_factuals", max_factuals), ("max_rows", max_rows)):
        check_count(value, name)
    frame, _ = as_frame(X)
    if not len(frame):
        raise InputError("X has no rows; give real rows, those to explain among them.")
    check_row_names(frame.index, "X", "rows")
    schema = explainer.generator_.schema_
    matrix, index = schema.encode(X).matrix, frame.index
    if sample_weight is not None:
        matrix = matrix[rows_by_weight(read_weights(sample_weight, len(frame)))]
        index = pd.RangeIndex(len(matrix))
    wanted = explainer.decision_.ask(schema.decode_for_model(matrix), "the rows of X").wanted
    chosen = spread(len(matrix), max_rows)
    real = schema.decode(matrix[chosen], index[chosen])
    drawn = draw_like(explainer.generator_, matrix[chosen], wanted[chosen], explainer.generator_.seed_)
    generated = schema.decode(drawn, index[chosen])
    notes: list[str] = []
    if training is not None:
        seen = find_equal(matrix[chosen], schema.encode(training, "training").matrix) >= 0
        if seen.mean() > MOST_SEEN:
            notes.append(
                f"{seen.mean():.0%} of the rows of X are training rows, which generated rows resemble more than others "
                "(discriminator below 0.5, pMSE too small). Give rows that the explainer was not fitted on."
            )
    parts = _compare(real, generated, explainer, random_state, n_jobs, notes)
    denied = np.flatnonzero(~wanted)
    factuals = schema.decode(matrix, index).iloc[denied[spread(denied.size, max_factuals)]]
    if not len(factuals):
        notes.append("every row of X has the wanted decision: there is nothing to explain.")
    parts |= _explain(explainer, factuals, training, n_samples, n_jobs, notes)
    visit = None
    if len(visit_sequences) and not has_visit_sequence(explainer):
        notes.append(f"a {type(explainer.generator_).__name__} visits the features in no order; none are compared.")
    elif len(visit_sequences) and len(factuals) and training is not None:
        visit = visit_effect(
            explainer,
            factuals,
            training=training,
            visit_sequences=visit_sequences,
            n_samples=n_samples,
            max_rows=max_rows,
        )
    settings = {
        "n_real": len(real),
        "n_factuals": len(factuals),
        "n_samples": n_samples,
        "random_state": explainer.generator_.seed_,
    }
    return Diagnostics(
        **parts,
        visit=visit,
        real=real,
        generated=generated,
        notes=tuple(notes),
        settings=settings,
        names=explainer.names(),
    )


def _compare(
    real: pd.DataFrame,
    generated: pd.DataFrame,
    explainer: Explainer,
    random_state: int,
    n_jobs: int | None,
    notes: list[str],
) -> dict[str, Any]:
    """Compare generated with real rows (step 1)."""
    names = ("discriminator", "pmse", "marginals", "tables", "correlations")
    if len(real) < FEWEST_ROWS:
        notes.append(f"X has {len(real)} row(s); comparing generated with real rows needs at least {FEWEST_ROWS}.")
        return dict.fromkeys(names)
    kinds = explainer.generator_.schema_.kinds
    columns = count_columns(read_pair(real, generated, kinds), 1)
    max_order = int(columns * ROWS_FOR_A_COLUMN <= 2 * len(real))
    fixed = explainer.generator_.fixed_
    return {
        "discriminator": discriminator(
            real, generated, paired=bool(fixed), kinds=kinds, random_state=random_state, n_jobs=n_jobs
        ),
        "pmse": pmse(real, generated, fixed=fixed, max_order=max_order, kinds=kinds),
        "marginals": marginal_distances(real, generated, kinds=kinds),
        "tables": utility_tables(
            real, generated, tables="twoway" if real.shape[1] > 1 else "oneway", fixed=fixed, kinds=kinds
        ),
        "correlations": compare_correlations(real, generated, kinds=kinds),
    }


def _explain(
    explainer: Explainer,
    factuals: pd.DataFrame,
    training: Data | None,
    n_samples: int,
    n_jobs: int | None,
    notes: list[str],
) -> dict[str, Any]:
    """Look at the candidates and the counterfactuals of the factuals (steps 2 and 3)."""
    if not len(factuals):
        return {"candidates": None, "found": None, "evaluation": None}
    found = explainer.explain(factuals, n_samples=n_samples, progress=False)
    if training is None:
        notes.append(
            "the training rows are not at hand, so there are no distances to them, no copies and no other orders; give "
            "them as `training`."
        )
    evaluation = evaluate(
        found,
        factuals,
        explainer.model,
        training=explainer.generator_.schema_ if training is None else training,
        decision=explainer.decision,
        kinds=explainer.generator_.schema_.kinds,
        n_jobs=n_jobs,
    )
    return {
        "candidates": candidate_table(explainer, factuals, n_samples),
        "found": found,
        "evaluation": evaluation,
    }
