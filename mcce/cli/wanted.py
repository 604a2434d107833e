"""The wanted decision as `mcce explain` is told it: an interval, or a class by its spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mcce.asking.decision import Interval
from mcce.asking.labels import OneOf
from mcce.asking.source import plain_values
from mcce.cli.console import say
from mcce.exceptions import InputError, did_you_mean, listing


def read_wanted(wanted: str | None, of: str | None, classes: Any, counts: Mapping[Any, int] | None = None) -> Any:
    """Return the wanted decision: an interval, or the model's class that is spelled like `wanted`.

    `counts` are the training rows of each class, for messages, if they are known.
    """
    interval = read_interval("0.5,1" if wanted is None else wanted, read_class("--of", of, classes, counts))
    if interval is not None:
        known = None if classes is None else plain_values(classes)
        if of is None and known is not None and set(known) not in ({0, 1}, {-1, 1}):
            raise InputError(
                f"--wanted {interval.bounds()} needs --of, the class whose score it is: one of {listing(known)}."
            )
        return interval
    if of is not None:
        raise InputError(f"--of {of} goes with an interval, but --wanted is {wanted!r}; leave --of out.")
    return read_class("--wanted", wanted, classes, counts)


def in_words(decision: Any, label: str | None) -> Any:
    """Return the decision with the words that people call it by."""
    if label is None:
        return decision
    return replace(decision, label=label) if isinstance(decision, Interval) else OneOf([decision], label=label)


def read_interval(text: str, of: Any) -> Interval | None:
    """Read an interval such as 0,1 or [0,1) or (0,inf); None if the text is none."""
    parts = re.fullmatch(r"\s*([\[(]?)([^,]+),([^,\])]+)([\])]?)\s*", text)
    if parts is None:
        return None
    try:
        low, high = float(parts[2]), float(parts[3])
    except ValueError:
        return None
    if bool(parts[1]) != bool(parts[4]):
        raise InputError(f"--wanted is {text!r}; write an interval as 0,1 or [0,1] or [0,1) or (0,inf).")
    closed = {"[]": "both", "[)": "left", "(]": "right", "()": "neither", "": "both"}[parts[1] + parts[4]]
    return Interval(low, high, closed=closed, of=of)


def read_class(role: str, text: str | None, classes: Any, counts: Mapping[Any, int] | None = None) -> Any:
    """Return the one of the classes that is spelled like the text, None without a text; `role` is its option.

    A class that is spelled exactly so comes first; one that differs in capitals or blanks is taken if there is
    no other.
    """
    if text is None:
        return None
    if classes is None:
        raise InputError(
            f"{role} is {text!r}, but the model declares no classes; give --wanted an interval, as in 10,20."
        )
    known = plain_values(classes)
    exact = [label for label in known if str(label) == text]
    alike = [label for label in known if _loosely(label) == _loosely(text) or _shortly(label) == text.strip()]
    if exact and len(alike) > 1:
        say(
            f"warning: {role} {text} is the class {_counted(exact[0], counts)}; others are spelled nearly alike: "
            f"{_all_counted([label for label in alike if label != exact[0]], counts)}. If they mean the same, "
            "correct them"
        )
    if exact:
        return exact[0]
    if len(alike) > 1:
        raise InputError(
            f"{role} is {text!r}, which could be {_all_counted(alike, counts)}. Write it exactly as one of them, or "
            "correct the file if they mean the same."
        )
    if alike:
        return alike[0]
    raise InputError(f"{role} is {text!r}, which is no class of the model; {did_you_mean(text, known)}")


def _loosely(label: Any) -> str:
    return " ".join(str(label).split()).casefold()


def _shortly(label: Any) -> str | None:
    return f"{label:g}" if isinstance(label, float) else None


def _counted(label: Any, counts: Mapping[Any, int] | None) -> str:
    return repr(label) if counts is None or label not in counts else f"{label!r} ({counts[label]} training rows)"


def _all_counted(labels: Iterable[Any], counts: Mapping[Any, int] | None) -> str:
    return ", ".join(_counted(label, counts) for label in labels)
