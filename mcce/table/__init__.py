"""Tables: the kinds of columns, and encoding as one float matrix."""

from mcce.base.arrays import Floats
from mcce.table.feature import KINDS, Feature, Kind
from mcce.table.frames import FrameKind, frame_kind
from mcce.table.schema import Column, Data, Schema, Table, as_frame
from mcce.table.stored import register_frames, register_table_types

register_table_types()
register_frames()

__all__ = [
    "KINDS",
    "Column",
    "Data",
    "Feature",
    "Floats",
    "FrameKind",
    "Kind",
    "Schema",
    "Table",
    "as_frame",
    "frame_kind",
]
