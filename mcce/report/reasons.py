"""The reasons why a factual has no counterfactual, in the words of tables; pages and letters compare them."""

from __future__ import annotations

from mcce.exceptions import shorten

ALREADY = "already has the wanted decision"
NONE_ALIKE = "no training row has its fixed values"
NONE_ALIKE_WANTED = "no training row with its fixed values"
NO_ROOM = "nothing can meet its constraints"
UNREADABLE = "it could not be read"

MOST_LETTERS = 80  # length of a reason in a table of counts


def short_reason(reason: str) -> str:
    """Return a reason without the details of a single factual, so that equal reasons can be counted.

    Examples
    --------
    >>> short_reason("no candidate has the wanted decision, and no training row has its fixed values (age = 3)")
    'no training row has its fixed values'
    >>> short_reason("nothing can meet its constraints: age is 7 and must stay, which violates: age > 9")
    'nothing can meet its constraints'
    """
    for kind in (ALREADY, UNREADABLE, NO_ROOM):
        if reason.startswith(kind):
            return kind
    if NONE_ALIKE in reason:
        return NONE_ALIKE
    if NONE_ALIKE_WANTED in reason:
        return f"{NONE_ALIKE_WANTED} has the wanted decision"
    tried, wanted, rest = reason.partition(" has the wanted decision")
    if wanted:
        return tried + wanted + (" and meets the other demands" if rest.startswith(" and ") else "")
    return shorten(reason, MOST_LETTERS)
