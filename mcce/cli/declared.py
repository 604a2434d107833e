"""What a user says about columns: which are numbers, levels or dates, and in which order levels come."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field

from mcce.cli.numerals import Decimals
from mcce.exceptions import InputError, did_you_mean, listing

KINDS = ("number", "level", "date")


@dataclass(frozen=True)
class Declared:
    """What is said, by column.

    Attributes
    ----------
    numbers, levels : names of columns
    dates : how the dates of a column are written: an order (dmy), a format of strftime, or nothing
    decimals : decimal marks
    ordered : levels from the lowest to the highest
    """

    numbers: frozenset[str] = frozenset()
    levels: frozenset[str] = frozenset()
    dates: Mapping[str, str] = field(default_factory=dict)
    decimals: Decimals = field(default_factory=Decimals)
    ordered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Declared:
        """Put together what the options say; contradictions are refused."""
        for name, kind in arguments.kinds.items():
            if kind not in KINDS:
                raise InputError(f"--kinds says {name}={kind}; {did_you_mean(kind, KINDS)}")
        by_kind = {kind: [name for name, said in arguments.kinds.items() if said == kind] for kind in KINDS}
        named = [name for name in arguments.ordered if name]
        said = {
            "--categorical": arguments.categorical,
            "--numeric": arguments.numeric,
            "--dates": list(arguments.dates),
            "--kinds ...=level": by_kind["level"],
            "--kinds ...=number": by_kind["number"],
            "--kinds ...=date": by_kind["date"],
            "--ordered": named,
        }
        alike = [
            ("--categorical", "--kinds ...=level"),
            ("--categorical", "--ordered"),
            ("--kinds ...=level", "--ordered"),
        ]
        alike += [("--numeric", "--kinds ...=number"), ("--dates", "--kinds ...=date")]
        options = list(said)
        for i, one in enumerate(options):
            for other in options[i + 1 :]:
                both = [name for name in said[one] if name in said[other]]
                if both and (one, other) not in alike:
                    raise InputError(f"{one} and {other} both name {listing(both)}; a column is one of them.")
        return cls(
            frozenset([*arguments.numeric, *by_kind["number"]]),
            frozenset([*arguments.categorical, *by_kind["level"], *named]),
            {**dict.fromkeys(by_kind["date"], ""), **arguments.dates},
            arguments.decimal,
            {name: tuple(levels) for name, levels in arguments.ordered.items()},
        )
