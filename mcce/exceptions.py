"""The errors and warnings of the package.

Every message says what is wrong, where, what was found, and how to fix it.

`NotFittedError` is a subclass of scikit-learn's class of the same name. Importing scikit-learn takes longer than
importing the rest of the package, so the class is created on first access; modules of the package write
`exceptions.NotFittedError`.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any

from mcce.wording import MOST_QUOTED, Message, Part, shorten, spell, spell_all

__all__ = [
    "InputError",
    "MCCEError",
    "MCCEWarning",
    "ModelError",
    "NotFittedError",
    "SamplerError",
    "did_you_mean",
    "listing",
    "shorten",
    "spell",
    "spell_all",
    "warn",
]

_making = Lock()
_NOT_FITTED = """A method that needs `fit` was called before `fit`.

Examples
--------
>>> import mcce
>>> try:
...     mcce.ChainModel().sample(3)
... except mcce.NotFittedError as error:
...     print(error)
this ChainModel is not fitted; call fit(X) first.
"""


class MCCEError(Message, ValueError):
    """Base class of all errors of the package; its arguments are the parts of the message (`mcce.wording`).

    Examples
    --------
    >>> import mcce
    >>> try:
    ...     mcce.ChainModel(sampler="carrt").fit(mcce.datasets.load_loans(50).X)
    ... except mcce.MCCEError as error:
    ...     print(type(error).__name__, "|", error)
    SamplerError | there is no sampler 'carrt'; did you mean 'cart'?
    """


class InputError(MCCEError):
    """A table, a parameter or a file is invalid.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans(50)
    >>> try:
    ...     mcce.ChainModel(fixed=["agee"]).fit(loans.X)
    ... except mcce.InputError as error:
    ...     print(error)
    fixed feature 'agee' is not a column of X; did you mean 'age'?
    """


class ModelError(MCCEError):
    """The explained model cannot be queried, or its predictions cannot be used.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans(50)
    >>> try:
    ...     mcce.MCCE(lambda rows: "yes", random_state=1).fit(loans.X)
    ... except mcce.ModelError as error:
    ...     print(error)
    the model <lambda>, queried with 50 rows (the training rows), returned a single str, expected 50 values, one per
    row.
    """


class SamplerError(MCCEError):
    """A conditional sampler does not support the request.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans(50)
    >>> try:
    ...     mcce.ChainModel(sampler="norm").fit(loans.X[["housing"]])
    ... except mcce.SamplerError as error:
    ...     print(error)
    NormSampler() cannot model 'housing': it is categorical, and the sampler handles 'numeric'. Choose another
    sampler for it.
    """


if TYPE_CHECKING:

    class NotFittedError(MCCEError, AttributeError):
        """A method that needs `fit` was called before `fit`."""


class MCCEWarning(Message, UserWarning):
    """Base class of all warnings of the package.

    Examples
    --------
    >>> import mcce, warnings
    >>> X = mcce.datasets.load_loans(200).X[["age", "housing"]]
    >>> X["housing"] = X["housing"].astype(object).where(X.index != 0, "castle")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     chain = mcce.ChainModel(fixed=["age"]).fit(X)
    >>> issubclass(caught[0].category, mcce.MCCEWarning), "castle" in str(caught[0].message)
    (True, True)
    """


class AdviceWarning(MCCEWarning):
    """A caution for counterfactuals used as advice: facts that may change, relations that are enforced.

    ``warnings.simplefilter("ignore", mcce.exceptions.AdviceWarning)`` silences these and no others.

    Examples
    --------
    >>> import mcce, warnings
    >>> X = mcce.datasets.load_loans(200).X[["age", "salary", "defaulted_last_year"]]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, fixed=["age"]).fit(X)
    >>> caught[0].category.__name__, "'defaulted_last_year' (a past event)" in str(caught[0].message)
    ('AdviceWarning', True)
    """


def __getattr__(name: str) -> Any:
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _making:
        if name not in globals():
            from sklearn.exceptions import NotFittedError as OfScikitLearn

            described = {"__doc__": _NOT_FITTED, "__module__": __name__}
            globals()[name] = type(name, (MCCEError, OfScikitLearn), described)
    return globals()[name]


def warn(*parts: Part, category: type[MCCEWarning] = MCCEWarning) -> None:
    """Issue a warning for the calling line outside of the package; `parts` are the parts of the message.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("a level with a single row")
    >>> str(caught[0].message)
    'a level with a single row'
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("mcce", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(category(*parts), stacklevel=level)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return the end of a sentence that suggests the nearest known name, or lists the known names.

    Examples
    --------
    >>> did_you_mean("agee", ["age", "sex"])
    "did you mean 'age'?"
    """
    names = [str(k) for k in known]
    near = [each for each in names if len(each) <= MOST_QUOTED]  # the comparison takes the product of the lengths
    text = name if isinstance(name, str) else spell(name)  # str of a deeply nested list would raise
    close = difflib.get_close_matches(text, near, n=1) if len(text) <= MOST_QUOTED else []
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {listing(names)}"


def listing(names: Iterable[object], most: int = 10) -> str:
    """Return the names quoted and comma-separated; a long list is cut and counted.

    Examples
    --------
    >>> listing(["age", "sex", "job"], most=2)
    "'age', 'sex' and 1 more"
    """
    return spell_all(map(str, names), most)
