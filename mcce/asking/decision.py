"""The desired decision: which answers of a model are wanted (the paper's c, with y' = 1{f(x) in c}).

1. Resolve the decision once: a pair of numbers or an `Interval` (`mcce.asking.interval`); a class label, `OneOf` or
   `Not` (`mcce.asking.labels`); `Several` models (`mcce.asking.several`); or a predicate on the rows.
2. Choose whom to ask. For an interval: `predict_proba`, else `decision_function`, else `predict`, else the
   model as a function. For class labels: `predict`, else the function. For a predicate: the predicate.
3. Ask about the rows and read the reply by position. Exceptions, wrong lengths, missing values are errors.
4. Compare with the interval or the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from mcce.asking.answer import Answer, Decision, SourceDecision, compare_answers
from mcce.asking.interval import Interval, resolve_interval
from mcce.asking.labels import Not, OneOf, is_label, resolve_labels
from mcce.asking.several import Several, resolve_several
from mcce.asking.source import Reply, Source, name_of
from mcce.checks import is_number
from mcce.exceptions import InputError, spell

__all__ = ["Answer", "Decision", "Interval", "Not", "OneOf", "Several", "compare_answers", "resolve_decision"]


def resolve_decision(decision: Any, model: Any) -> Decision:
    """Tie a desired decision to the model that decides.

    Parameters
    ----------
    decision : pair of numbers, Interval, pandas Interval, class label, OneOf, Not, Several or callable
        A pair is a closed interval of scores. A callable takes the rows and returns one boolean for each.
        Anything else is a class label: wanted are the rows for which the model predicts that class.
    model : object
        Has `predict_proba`, `decision_function` or `predict`, or is a function of the rows; may be None if
        the decision is a callable, and is None if it is a `Several`.

    Returns
    -------
    Decision

    Raises
    ------
    InputError
        If the decision is none of these, names a class unknown to the model, or leaves the class open.
    ModelError
        If the model cannot be asked.
    """
    if isinstance(model, Several):
        raise InputError(f"the model is {model!r}, which is a decision; give model=None and decision=Several(...).")
    if isinstance(decision, Several):
        return resolve_several(decision, model, resolve_decision)
    if isinstance(decision, (OneOf, Not)):
        return resolve_labels(decision, model)
    if callable(decision):
        return PredicateDecision(Source(decision, None, f"the predicate {name_of(decision)}"))
    if isinstance(decision, (tuple, list)):
        if len(decision) != 2 or not all(map(is_number, decision)):
            raise InputError(
                f"decision {decision!r} is not a pair of numbers. Give (low, high), inf for no bound; one "
                "class label; for several classes, OneOf([...]) or Not([...]); or a callable that returns one boolean "
                "per row."
            )
        decision = Interval(*decision)
    if isinstance(decision, pd.Interval):
        decision = Interval(decision.left, decision.right, closed=decision.closed)
    if isinstance(decision, Interval):
        return resolve_interval(decision, model)
    if not is_label(decision):
        raise InputError(
            f"decision is {decision!r} (a {type(decision).__name__}); give (low, high), an Interval, a class "
            "label, OneOf, Not, Several, or a callable that returns one boolean per row."
        )
    return resolve_labels(OneOf([decision]), model)


@dataclass(frozen=True)
class PredicateDecision(SourceDecision):
    """A function of the rows says yes."""

    score_type: ClassVar[type] = bool

    def describe(self) -> str:
        return self.source.name.removeprefix("the ")

    def _read(self, reply: Reply) -> Answer:
        values = reply.column("one boolean")
        if values.dtype != bool and not all(isinstance(v, (bool, np.bool_)) for v in values):
            reply.refuse(f"returned {spell(values[0])}, not booleans. Compare within it, as in `scores >= 0.5`.")
        wanted = values.astype(bool)
        return Answer(wanted, wanted)
