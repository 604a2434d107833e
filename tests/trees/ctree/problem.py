"""Tables for trees of party."""

from __future__ import annotations

from mcce.table import Schema


def encode(frame, target="y"):
    """Encode `frame`; return (given, target column)."""
    table = Schema.from_data(frame).encode(frame)
    at = table.names.index(target)
    return table.select([j for j in range(len(table.names)) if j != at]), table.column(at)
