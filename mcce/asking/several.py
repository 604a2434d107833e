"""Several models at once, each with its own decision: all of them have to say yes, a majority, or a share.

1. Each pair of a model and a decision is resolved like any other; what is wrong with one is told with its name.
2. All are asked about every row. The score is the share of models that say yes.
3. Wanted are the rows to which enough of them say yes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.asking.answer import Answer, Decision, check_label
from mcce.asking.source import Rows, name_of
from mcce.checks import is_number
from mcce.exceptions import InputError, MCCEError

ROUNDING = 1e-9  # 0.7 of 10 models are 7, though 0.7 * 10 > 7 in some floats


@dataclass(frozen=True, repr=False)
class Several:
    """Several models, each with its own wanted decision. It names the models, so ``MCCE(None, decision=Several(...))``.

    Parameters
    ----------
    models : list of pairs, or dict of name to pair
        Each pair is a model and a decision, as `MCCE` takes them. Names stand in the words; without them the models are
        called by their classes.
    agree : "all", "majority" or float
        Who has to say yes: all of them, more than half of them, or at least this share of them.
    label : str, optional
        The decision in your own words, for sentences, tables, pages and plots.

    Examples
    --------
    >>> def profit(rows):
    ...     return rows["income"] - rows["cost"]
    >>> def rating(rows):
    ...     return rows["points"].map(lambda points: "A" if points > 9 else "B")
    >>> Several([(profit, (0, float("inf"))), (rating, "A")])
    Several(profit, rating, agree='all')
    """

    models: Any
    agree: Any = "all"
    label: str | None = None

    def __post_init__(self) -> None:
        given = self.models
        is_named = isinstance(given, Mapping)
        if not is_named and not isinstance(given, (list, tuple)):
            raise InputError(
                f"Several holds a {type(given).__name__}; give a list of pairs (model, decision), or a dict of such "
                "pairs by name."
            )
        pairs = list(given.values()) if is_named else list(given)
        if not pairs:
            raise InputError("Several holds no model; give at least one pair (model, decision).")
        for place, pair in enumerate(pairs):
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                where = f"under {list(given)[place]!r}" if is_named else f"at place {place}"
                raise InputError(f"Several holds {pair!r} {where}; give a pair (model, decision).")
        names = [str(name) for name in given] if is_named else [_name_of_pair(*pair) for pair in pairs]
        object.__setattr__(self, "models", tuple((name, *pair) for name, pair in zip(names, pairs, strict=True)))
        share = is_number(self.agree) and 0 < self.agree <= 1
        if not share and not (isinstance(self.agree, str) and self.agree in ("all", "majority")):
            raise InputError(
                f"agree is {self.agree!r}; it must be 'all', 'majority', or a share of the models, above 0 and at most "
                "1, as in 2/3."
            )
        check_label(self.label)

    @property
    def needed(self) -> int:
        """How many of the models have to say yes."""
        n = len(self.models)
        if self.agree == "all":
            return n
        return n // 2 + 1 if self.agree == "majority" else math.ceil(float(self.agree) * n - ROUNDING)

    def __repr__(self) -> str:
        label = "" if self.label is None else f", label={self.label!r}"
        return f"Several({', '.join(name for name, _, _ in self.models)}, agree={self.agree!r}{label})"


@dataclass(frozen=True)
class SeveralDecision(Decision):
    """Enough of some decisions hold."""

    several: Several
    decisions: tuple[Decision, ...]

    def describe(self) -> str:
        if self.several.label is not None:
            return self.several.label
        n, needed = len(self.decisions), self.several.needed
        who = f"at least {needed} of {n} models" if needed < n else f"all {n} models" if n > 1 else "one model"
        names = [name for name, _, _ in self.several.models]
        each = [f"{name}: {decision.describe()}" for name, decision in zip(names, self.decisions, strict=True)]
        return f"yes from {who} [{'; '.join(each)}]"

    def shortfall(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
        return np.asarray(1.0 - scores, dtype=np.float64)

    def _ask(self, frame: Rows, what: str) -> Answer:
        yes = sum(decision.ask(frame, what).wanted.astype(np.int64) for decision in self.decisions)
        count = np.asarray(yes)
        return Answer(count / len(self.decisions), count >= self.several.needed)


def resolve_several(several: Several, model: Any, resolve: Callable[[Any, Any], Decision]) -> SeveralDecision:
    """Tie each decision to its own model; `resolve` ties a single one."""
    if model is not None:
        raise InputError(
            f"the decision {several!r} names its own models, but the model is a {type(model).__name__}; give "
            "model=None, and this model as one of the pairs."
        )
    decisions = []
    for name, each, decision in several.models:
        try:
            decisions.append(resolve(decision, each))
        except MCCEError as err:
            raise type(err)(f"{name}, one of {len(several.models)} models in Several: {err}") from err
    return SeveralDecision(several, tuple(decisions))


def _name_of_pair(model: Any, decision: Any) -> str:
    """Return what to call a model; a predicate needs none, and is called by its own name."""
    return name_of(decision if model is None else model)
