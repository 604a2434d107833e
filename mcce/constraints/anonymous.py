"""k-anonymity of returned rows: `k_anonymous`.

An attacker who knows some values of a training person may recognise the person in a returned row (Goethals, Sorensen
and Martens 2023, "The privacy issue of counterfactual explanations: explanation linkage attacks", ACM TIST 14(5)).
Several constraints of this kind are merged: the largest k, on the keys of all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcce.base.checks import check_count
from mcce.constraints.base import Constraint, register_constraint
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

    def words(self) -> str:
        return f"shared by at least {self.k} training people on {', '.join(map(str, self.columns))}"

    def resolve(self, schema: Schema) -> Iterable[Constraint]:
        for name in self.columns:
            schema.position(name, "the key of k_anonymous", "the training data")
        return [self]

    @classmethod
    def keys(cls) -> dict[str, bool]:
        return {"k": True, "keys": True}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Constraint:
        return k_anonymous(**table)


def k_anonymous(k: int, keys: Iterable[Hashable]) -> KAnonymous:
    """Require that at least k training people share the returned values of features that an attacker may know.

    Candidates whose key values fewer than k training rows have are not returned. A factual without other candidates is
    unexplained, with that reason. `people` in `Counterfactuals.measures` is the number of training rows that share the
    keys of each answer.

    Parameters
    ----------
    k : int
        From 2 to the number of training rows.
    keys : list
        The features by which a person could be recognised, such as age, town and profession.

    Notes
    -----
    Unchanged keys count as well, since they are part of the returned row. Numbers with many distinct values are rarely
    shared; round them before fitting, or leave them out of the keys. Features that are not keys are not restricted. The
    constraint holds for each row alone: it does not bound what many answers reveal together, and it is not differential
    privacy.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "housing"]].round({"salary": -4})
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    >>> poor = X[X["salary"] < 30_000].head(3)
    >>> found = explainer.explain(poor, sparse=True, constraints=[mcce.k_anonymous(5, keys=["salary", "housing"])])
    >>> len(found), bool((found.measures["people"] >= 5).all())
    (3, True)
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
        raise InputError("keys of k_anonymous are empty; name the features by which a person could be recognised.")
    return KAnonymous(count, named)


def together(demands: Iterable[Constraint]) -> KAnonymous | None:
    """Return the k-anonymity constraints among some merged: the largest k, on the keys of all; None without any."""
    found = [each for each in demands if isinstance(each, KAnonymous)]
    if not found:
        return None
    return k_anonymous(max(each.k for each in found), [name for each in found for name in each.columns])
