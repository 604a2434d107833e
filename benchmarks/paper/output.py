"""Tables of the experiments: as text for the terminal, as CSV and as Markdown."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.options import Options
from benchmarks.report import QUICK
from benchmarks.speed import describe_machine

PREFIX = "paper_"
DPI = 75
WIDTH = 118


@dataclass(frozen=True)
class Table:
    """One table of an experiment: numbers for the CSV, text for display, and notes."""

    name: str  # name of the CSV, after the prefix
    title: str
    numbers: pd.DataFrame
    shown: pd.DataFrame
    notes: str = ""


def about(options: Options) -> list[str]:
    """Return the origin of the results: command, date, machine, versions."""
    machine = describe_machine()
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return [options.command, f"{machine['date']}, {machine['machine']}, {machine['cores']} cores", versions]


def write(experiment: str, title: str, tables: Sequence[Table], options: Options, *, names: Sequence[str] = ()) -> None:
    """Write a CSV for each table and one page of Markdown; print the tables. `names`: data sets that were used."""
    options.out.mkdir(parents=True, exist_ok=True)
    made_by = about(options)
    warnings = [QUICK] if options.quick else []
    absent = options.absent(names)
    warnings += [f"SIMULATED STAND-INS of the same shape: no file of {', '.join(absent)}."] if absent else []
    parts = [f"# {title}", f"`{made_by[0]}`  \n{made_by[1]}  \n{made_by[2]}", *warnings]
    print("\n".join([title, *made_by, *warnings]))
    for table in tables:
        print(f"\n{table.title}\n\n{as_text(table.shown)}\n\n{textwrap.fill(table.notes, WIDTH)}".rstrip(), flush=True)
        head = "".join(f"# {line}\n" for line in made_by)
        path = options.out / f"{PREFIX}{table.name}.csv"
        path.write_text(head + table.numbers.to_csv(index=False, float_format="%.6g"), encoding="utf-8")
        parts += [f"## {table.title}", as_markdown(table.shown), *([table.notes] if table.notes else [])]
    page = options.out / f"{PREFIX}{experiment}.md"
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    options.write_line(f"written to {page}")


def save_figure(figure: Any, name: str, options: Options) -> None:
    """Save a figure as a small PNG with 16 colours, enough for bars and circles."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI)
    options.out.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(16).save(options.out / f"{PREFIX}{name}.png", optimize=True)


def read(name: str, folder: Path) -> pd.DataFrame:
    """Read the numbers of a table back."""
    return pd.read_csv(folder / f"{PREFIX}{name}.csv", comment="#")


def as_text(shown: pd.DataFrame) -> str:
    """Return a table for the terminal: the first column left-aligned, the others right-aligned."""
    cells = [list(map(str, shown.columns)), *shown.astype(str).to_numpy().tolist()]
    widths = [max(len(line[k]) for line in cells) for k in range(shown.shape[1])]
    return "\n".join(
        "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in cells
    )


def as_markdown(shown: pd.DataFrame) -> str:
    """Return a table as Markdown."""
    lines = ["| " + " | ".join(map(str, shown.columns)) + " |", "|---|" + "---:|" * (shown.shape[1] - 1)]
    lines += ["| " + " | ".join(line) + " |" for line in shown.astype(str).to_numpy().tolist()]
    return "\n".join(lines)


def mean_sd(numbers: pd.DataFrame, name: str) -> pd.Series:
    """Return "2.70 (0.73)" from the columns L0 and L0_sd; "" if missing."""
    spread = numbers.get(f"{name}_sd", pd.Series(np.nan, numbers.index))
    text = [
        "" if pd.isna(mean) else f"{mean:.2f}" + ("" if pd.isna(sd) else f" ({sd:.2f})")
        for mean, sd in zip(numbers[name], spread)
    ]
    return pd.Series(text, numbers.index)


def fixed_point(numbers: pd.DataFrame, name: str, digits: int = 2) -> pd.Series:
    """Return numbers with that many digits; "" if missing."""
    return numbers[name].map(lambda value: "" if pd.isna(value) else f"{value:.{digits}f}")


def whole(numbers: pd.DataFrame, name: str) -> pd.Series:
    """Return whole numbers with thousands separators; "" if missing."""
    return numbers[name].map(lambda value: "" if pd.isna(value) else f"{int(value):,}")


def per_cent(value: float) -> str:
    """Return a relative difference as "+3 %"."""
    return "" if pd.isna(value) else f"{100 * value:+.0f} %"
