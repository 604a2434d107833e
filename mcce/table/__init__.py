"""Tables: the kinds of columns, and encoding as one float matrix."""

from mcce.table.feature import KINDS, Feature, Kind
from mcce.table.frames import Data, FrameKind, as_frame
from mcce.table.grid import Grid
from mcce.table.schema import Column, Schema, Table

__all__ = ["KINDS", "Column", "Data", "Feature", "FrameKind", "Grid", "Kind", "Schema", "Table", "as_frame"]
