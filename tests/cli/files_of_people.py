"""One table written in many file formats, and a rule that stores its training table."""

import gzip

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main

N = 40


CITIES = ["Köln", "Århus", "Besançon", "Málaga"]


NAMES = ["who", "amount", "rooms", "city", "born", "risk", "paid"]


def truth():
    rng = np.random.default_rng(5)
    amount = np.round(np.exp(rng.uniform(1, 9, N)) * 4) / 4 + 0.25  # some below 1000, some above; two decimals
    born = pd.Timestamp("1970-01-31") + pd.to_timedelta(rng.integers(0, 12000, N), "D")
    return pd.DataFrame(
        {
            "who": [f"{i:05d}" for i in range(N)],
            "amount": amount,
            "rooms": rng.integers(1, 9, N),
            "city": rng.choice(CITIES, N),
            "born": pd.Series(born).astype("datetime64[s]"),
            "risk": rng.choice(["low", "medium", "high"], N),
            "paid": np.where(amount >= 1000, "yes", "no"),
        }
    )


def as_cells(table, amount="{:.2f}", born="%Y-%m-%d", swap="", city=str):
    """The table as text; `swap` replaces marks of the amount, two characters for two."""
    numbers = [amount.format(x).translate(str.maketrans(".,", swap or ".,")) for x in table["amount"]]
    cells = {"amount": numbers, "born": list(table["born"].dt.strftime(born)), "city": list(map(city, table["city"]))}
    return table.assign(**cells).astype(str)


def as_text(cells, sep=",", end="\n", quoted=False):
    def spell(cell):
        return f'"{cell}"' if quoted or sep in cell or "\n" in cell else cell

    return end.join(sep.join(map(spell, row)) for row in [list(cells), *cells.to_numpy().tolist()]) + end


def csv(encoding="utf-8", before="", after="", sep=",", end="\n", quoted=False, **how):
    def write(path, table):
        cells = as_cells(table, **how)
        raw = (before + as_text(cells, sep, end, quoted) + after).encode(encoding)
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return cells

    return write


def workbook(path, table, edit=lambda sheet: None, cells=None, further=()):
    openpyxl = pytest.importorskip("openpyxl", reason="pip install openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Customers"
    rows = table if cells is None else cells
    sheet.append(list(rows))
    for row in rows.astype(object).to_numpy().tolist():
        sheet.append([x.to_pydatetime() if isinstance(x, pd.Timestamp) else x for x in row])
    for name in further:
        book.create_sheet(name).append(["a note"])
    edit(sheet)
    book.save(path)


def workbook_with_notes(path, table):
    workbook(path, table, further=["Notes", "More"])


def explain(ending, *more, new=None):
    arguments = ["--response", "paid", "--decision", "yes", "--id", "who", "--fixed", "city,born", "--n-samples", "60"]
    new = f"new.{ending}" if new is None else new
    return main(["explain", "--train", f"train.{ending}", "--explain", new, *arguments, *more])


def raw(edit):
    """The same file in another encoding."""

    def put(path, table):
        csv()(path, table)
        path.write_bytes(edit(path.read_bytes()))

    return put
