"""What `mcce explain` writes: tables, a page, and which rows have no counterfactual."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import pandas as pd

from mcce.candidates.reasons import ALREADY
from mcce.cli.console import DONE, SOME_UNEXPLAINED, say
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import listing

REASONS_SHOWN = 10


def write(found: Counterfactuals, arguments: argparse.Namespace) -> int:
    """Write tables and page; say which rows have no counterfactual, and why."""
    if arguments.out is None:
        print(found)
    elif arguments.out == "-":
        found.to_frame().to_csv(sys.stdout, sep=arguments.sep, index=False)
    else:
        out = Path(arguments.out)
        _write_table(found.to_frame(), out, arguments.sep)
        say(f"wrote {len(found)} rows to {out}")
        if len(found.unexplained):
            rest = out.with_name(re.sub(r"(\.\w+)?(\.gz)?$", "", out.name) + ".unexplained.csv")
            _write_table(found.unexplained.reset_index(), rest, arguments.sep)
            say(f"wrote {len(found.unexplained)} rows without a counterfactual to {rest}")
    reasons = list(found.unexplained.groupby("reason", sort=False).groups.items())
    for reason, ids in reasons[:REASONS_SHOWN]:
        say(f"not explained, {reason}: {listing(ids)}")
    if len(reasons) > REASONS_SHOWN:
        say(f"and {len(reasons) - REASONS_SHOWN} more reasons")
    if arguments.html is not None:
        intro = "What would have led to the wanted decision: the first rows in words and pictures, then all of them."
        found.to_html(arguments.html, intro=intro)
        say(f"wrote the page {arguments.html}")
    return SOME_UNEXPLAINED if (found.unexplained["reason"] != ALREADY).any() else DONE


def _write_table(table: pd.DataFrame, path: Path, sep: str) -> None:
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, sep=sep, index=False)
