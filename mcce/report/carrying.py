"""Which changes of a counterfactual carry the decision: each taken alone, and each left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Bools
from mcce.report.changes import in_words
from mcce.report.names import PREDICTION, Names

Ask = Callable[[pd.DataFrame], tuple[npt.NDArray[Any], Bools]]


def carrying_table(before: pd.DataFrame, after: pd.DataFrame, changed: Bools, ask: Ask) -> pd.DataFrame:
    """Ask the model about a factual with one change of its counterfactual, and with all but one.

    Parameters
    ----------
    before, after : DataFrame
        The factual and the counterfactual, a row each, with the columns and dtypes of the training table.
    changed : array
        Which columns differ.
    ask : function
        Returns (scores, wanted) for rows.

    Returns
    -------
    DataFrame, a row for each change: `from`, `to`; `alone`, the prediction with this change only, and `enough`, whether
    that has the wanted decision; `without`, the prediction with all changes but this one, and `needed`, whether the
    decision is lost then.
    """
    places = np.flatnonzero(changed)
    alone = np.zeros((places.size, changed.size), dtype=bool)
    alone[np.arange(places.size), places] = True
    taken = np.concatenate([alone, changed & ~alone])
    both = [pd.concat([before.iloc[:, j], after.iloc[:, j]], ignore_index=True) for j in range(changed.size)]
    variants = pd.DataFrame({j: column.take(taken[:, j].astype(np.intp)).array for j, column in enumerate(both)})
    variants.columns = before.columns
    scores, wanted = ask(variants)
    cells = {
        "from": [both[j].astype(object).iloc[0] for j in places],
        "to": [both[j].astype(object).iloc[1] for j in places],
    }
    return pd.DataFrame(
        {
            **{name: pd.Series(values, dtype=object) for name, values in cells.items()},
            "alone": scores[: places.size],
            "enough": wanted[: places.size],
            "without": scores[places.size :],
            "needed": ~wanted[places.size :],
        }
    ).set_axis(before.columns[places].rename("feature"), axis=0)


def reasons_in_words(table: pd.DataFrame, names: Names) -> pd.DataFrame:
    """Return a table of `carrying_table` with labels, and its values and predictions as texts."""
    told = in_words(table, table.index, names)
    for column in ("alone", "without"):
        told[column] = pd.Series(
            [names.text(PREDICTION, value, 3) for value in table[column]], told.index, dtype=object
        )
    return told.set_axis(pd.Index([names.label(name) for name in table.index], name="feature"), axis=0)
