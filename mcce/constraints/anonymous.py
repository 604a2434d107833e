"""Explanations that point to nobody: `k_anonymous`, a demand on the rows that are returned.

A counterfactual can be read as the data of somebody else. Whoever knows the age, town and salary of a training person
finds these in a returned row, and learns the rest of the row of that person (Goethals, Sorensen and Martens, 2023, The
privacy issue of counterfactual explanations: explanation linkage attacks, ACM TIST 14(5)). With k people behind every
combination of such values there is nobody to point to. `mcce.explain.anonymous` sees to it.

Several demands are one: with the largest k, on the keys of all. Who is matched by k people on more keys is matched by
at least as many on fewer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mcce.base.checks import check_count
from mcce.constraints.base import Constraint, plain, register_constraint
from mcce.exceptions import InputError
from mcce.storage.fields import stored
from mcce.table import Schema
from mcce.wording import Setting, Value


@register_constraint("k_anonymous")
@dataclass(frozen=True)
class KAnonymous(Constraint):
    """Every counterfactual is shared by k training people on some keys; made by `k_anonymous`."""

    k: int = stored(int, least=2)
    columns: tuple[Hashable, ...] = stored(tuple, None, of=Hashable, filled=True)

    told_by: ClassVar[str] = "keys"

    def words(self) -> str:
        """Return the constraint in words."""
        return f"shared by at least {self.k} training people on {', '.join(map(str, self.columns))}"

    def resolve(self, schema: Schema) -> Iterable[Constraint]:
        """Return the constraint itself, as it is one of the simplest, after a look that its keys are columns."""
        for name in self.columns:
            schema.position(name, "the key of k_anonymous", "the training data")
        return [self]

    @classmethod
    def keys(cls) -> dict[str, bool]:
        """Return the keys of a table in a file."""
        return {"k": True, "keys": True}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Constraint:
        """Return the constraint of a table in a file."""
        return k_anonymous(**table)

    def to_dict(self) -> dict[str, Any]:
        """Return the constraint as plain values, of which `mcce.constraints.read` makes the same again."""
        return {"k_anonymous": {"k": self.k, "keys": plain(self.columns)}}


def k_anonymous(k: int, keys: Iterable[Hashable]) -> KAnonymous:
    """Demand that at least k training people share what is returned, on the features that others may know of them.

    A row whose keys are those of fewer than k training people is passed over if another row with as few changes is
    shared by k. Else its keys are told as ranges of numbers or dates and as several levels, as narrow as k people
    allow: "salary between 52,000 and 60,000". `Counterfactuals.generalised` lists them, and sentences, letters and
    pages tell them. `Counterfactuals.frame` has a value inside each range, the nearest one to the factual that has the
    wanted decision, which depends on the range alone and not on the row that was found. `measures` has

    * `people`, how many training people are within the ranges;
    * `people_alike`, how many of these have the person's own values in the keys that did not change;
    * `information_loss`, the mean width of the keys, from 0 for single values to 1 for the whole of each column;
    * `stays_valid`, the share of the values tried within the ranges that have the wanted decision and obey the
      constraints;
    * `gower_cost`, how much farther away the row is than the one that would be returned without this demand;
    * `ranges`, the ranges as text.

    Parameters
    ----------
    k : int
        At least 2; not more than there are training rows.
    keys : list
        The features by which somebody could be recognised, such as age, town and profession.

    Notes
    -----
    All keys of a returned row count, unchanged ones too: to whoever reads the row they are as much part of it as the
    changed ones. As the person knows its own values, ranges of what changes are tried first; only if these are not
    enough, or cannot keep the decision, unchanged keys are widened as well. Then `people_alike` is what is left for a
    reader who knows which values did not change. Features that are no keys are returned as they are. The demand holds
    of each row on its own: it is no bound on what many answers tell together, and no differential privacy.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    >>> poor = X[X["salary"] < 30_000].head(1)
    >>> found = explainer.explain(poor, sparse=True, constraints=[mcce.k_anonymous(5, keys=["salary"])])
    >>> bool((found.measures["people"] >= 5).all())
    True
    """
    count = check_count(k, "k of k_anonymous", least=2)
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise InputError(
            "keys of k_anonymous are ",
            Value(keys),
            "; give a list of features, as in ",
            Setting("keys", ["age", "town"]),
            ".",
        )
    named = tuple(dict.fromkeys(keys))
    if not named:
        raise InputError("keys of k_anonymous are empty; name the features by which somebody could be recognised.")
    return KAnonymous(count, named)


def together(demands: Iterable[Constraint]) -> KAnonymous | None:
    """Return all demands among some constraints as one: the largest k, on the keys of all; None if there is none."""
    found = [each for each in demands if isinstance(each, KAnonymous)]
    if not found:
        return None
    return k_anonymous(max(each.k for each in found), [name for each in found for name in each.columns])
