"""What the commands write: tables, and a page with sentences, a picture and a table."""

from __future__ import annotations

import argparse
import base64
import io
import re
import sys
from html import escape
from pathlib import Path

import pandas as pd

from mcce.cli.console import DONE, SOME_UNEXPLAINED, say
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import listing
from mcce.explainer import ALREADY

REASONS_SHOWN = 10
LEGEND = "In the table: L0 counts the changes; gower is the distance, from 0 (alike) to 1 (far apart)."
STYLE = """
:root{--jp-layout-color0:#fff;color:#1d2330;background:#fff;font:16px/1.5 system-ui,sans-serif}
body{max-width:82rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;line-height:1.2}
p,li{max-width:46rem}
li{margin:.4rem 0}
img{display:block;width:50rem;max-width:100%;height:auto;margin:1.5rem 0}
"""


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
        ids = found.frame.index.get_level_values("id").unique()[:3]
        sentences = [f"Row {i}: {found.sentence(i)}" for i in ids]
        intro = "What would have led to the wanted decision: the first rows in words, the first as a picture."
        picture = draw_picture(found) if len(found) else None
        arguments.html.write_text(make_page("Counterfactuals", intro, sentences, picture, found), "utf-8")
        say(f"wrote the page {arguments.html}")
    return SOME_UNEXPLAINED if (found.unexplained["reason"] != ALREADY).any() else DONE


def _write_table(table: pd.DataFrame, path: Path, sep: str) -> None:
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, sep=sep, index=False)


def draw_picture(found: Counterfactuals) -> bytes:
    """Draw the first counterfactual, without the global state of pyplot."""
    from matplotlib.figure import Figure

    height = 1.7 + 0.45 * max(found.measures["L0"].iloc[0], 1)
    figure = Figure(figsize=(7, height), layout="constrained")
    found.plot(ax=figure.subplots())
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=150)
    return stream.getvalue()


def make_page(title: str, intro: str, sentences: list[str], picture: bytes | None, found: Counterfactuals) -> str:
    """Return a complete page that needs nothing else: sentences, a picture of the first, a table."""
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    image = ""
    if picture is not None:
        data = base64.b64encode(picture).decode()
        image = f'<img alt="{escape(sentences[0])}" src="data:image/png;base64,{data}">'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><h1>{escape(title)}</h1>"
        f"<p>{escape(intro)}</p><ol>{said}</ol>\n{image}\n<p>{LEGEND}</p>\n{found._repr_html_()}</body></html>\n"
    )
