"""The training rows after `fit`: the table as the user gave it, and what the model said of it.

1. The table is kept by reference, not copied; before it is used again it is compared with the rows of the spot check,
   and refused if it was changed since.
2. A saved copy is without the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcce.arrays import Bools, Floats, UInts
from mcce.asking.asker import SpotCheck, ask_table
from mcce.asking.decision import Decision
from mcce.exceptions import InputError
from mcce.table import Data, Schema

AGAIN = "Fit it again."


@dataclass
class TrainingTable:
    """What was given to `fit`.

    Attributes
    ----------
    table : the user's table, None in a copy that was saved.
    schema : its columns.
    decision : the wanted decision, bound to the model.
    spots : some of its rows, and what the model said of them.
    answered : which rows have the wanted decision, None if that was not asked yet.
    hashes : of the encoded rows, None if the generator does not tell; a saved copy is without them.
    reach : by column the lowest and highest value that is not far outside, None if nobody looked.
    weights : of the rows, None if they have none; rows of weight 0 are not in the table.
    """

    table: Data | None
    schema: Schema
    decision: Decision
    spots: SpotCheck
    answered: Bools | None = None
    hashes: UInts | None = None
    reach: Floats | None = None
    weights: Floats | None = None

    def known_table(self) -> Data | None:
        """Return the table given to `fit`, unless it is gone; a table that was changed since is an error."""
        if self.table is not None and not self.spots.is_of(self.table, self.schema):
            raise InputError(
                "the table given to fit has been changed since. Fit again, with a copy if the table must change; "
                "diagnose and trade_off also take the training rows as `training`."
            )
        return self.table

    def matrix(self, otherwise: str = AGAIN) -> Floats:
        """Return the encoded rows; `otherwise` says what to do where they are gone."""
        return self.schema.encode(self._needed(otherwise), "the training rows").matrix

    def wanted(self) -> Bools:
        """Return which rows have the wanted decision."""
        if self.answered is None:
            self.answered = ask_table(self.decision, self._needed(AGAIN)).wanted
        return self.answered

    def _needed(self, otherwise: str) -> Data:
        table = self.known_table()
        if table is None:
            raise InputError(f"an explainer that was saved does not have its training rows, needed here. {otherwise}")
        return table

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the training table as the user gave it.

        What is saved with an explainer still holds training rows: the fixed values and decisions of all of them, the
        values that donors give, and a few whole rows. Whoever gets the file can read them.
        """
        return {**vars(self), "table": None, "hashes": None}
