"""Dates as people write them.

1. `find_format` finds the one way of writing dates that all cells of a column have: ISO, day.month.year, day/month/year
   or month/day/year, with the month's English name, each with or without a time.
2. 03/04/2024 is 3 April or March 4: unless some cell has a day beyond 12, or both readings agree, it is refused.
3. `--dates` names a column and, if it has to, the way: dmy, mdy, ymd, or a format of strftime.
4. `date_of` reads a cell; an offset from UTC is taken into account, and the date is then UTC.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone

DAYS = {
    "ymd": ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m"),
    "dmy": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%d. %B %Y"),
    "mdy": ("%m/%d/%Y", "%m-%d-%Y", "%b %d, %Y", "%B %d, %Y"),
}
SHORT = {  # a year of two digits is read if the user names the order
    "ymd": ("%y-%m-%d", "%y/%m/%d", "%Y%m%d", "%y%m%d"),
    "dmy": ("%d.%m.%y", "%d/%m/%y", "%d-%m-%y", "%d%m%Y", "%d %b %y", "%d-%b-%y"),
    "mdy": ("%m/%d/%y", "%m-%d-%y", "%m%d%Y"),
}
TIMES = (
    "",
    " %H:%M",
    " %H:%M:%S",
    " %H:%M:%S.%f",
    "T%H:%M",
    "T%H:%M:%S",
    "T%H:%M:%S.%f",
    "T%H:%M:%S%z",
    "T%H:%M:%S.%f%z",
)
ORDERS = tuple(DAYS)
LIKELY = re.compile(r"\d.*\D.*\d")  # a date has two numbers and something between them


def date_of(text: str, form: str) -> datetime | None:
    """Return the date that a text is in this format, None if it is none."""
    try:
        date = datetime.strptime(text.strip(), form)
    except ValueError:
        return None
    return date if date.tzinfo is None else date.astimezone(timezone.utc).replace(tzinfo=None)


def formats_of(order: str | None) -> list[str]:
    """Return the formats to try: all with years of four digits, or all of one order of day, month and year."""
    days = [*DAYS[order], *SHORT[order]] if order else [form for each in DAYS.values() for form in each]
    return [day + time for day in days for time in TIMES]


def find_format(texts: Sequence[str], order: str | None = None) -> tuple[list[str], str | None]:
    """Return the formats that all texts have and that read them differently (steps 1 and 2), and the most common one.

    The second is the format that most of the texts have, for messages about the others.
    """
    some = [text for text in texts[:50] if order or LIKELY.search(text)]
    near = [form for form in formats_of(order) if any(date_of(text, form) for text in some)]
    counts = {form: sum(date_of(text, form) is not None for text in texts) for form in near}
    common = max(counts, key=lambda form: counts[form], default=None)
    fitting: dict[tuple[datetime | None, ...], str] = {}
    for form in near:
        if counts[form] == len(texts):
            fitting.setdefault(tuple(date_of(text, form) for text in texts), form)
    return list(fitting.values()), common
