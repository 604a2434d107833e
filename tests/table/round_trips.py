"""A frame through a schema and back."""

from __future__ import annotations

from pandas.testing import assert_frame_equal

from mcce.table import Schema


def round_trip(frame, kinds=None):
    schema = Schema.from_data(frame, kinds)
    return schema.decode(schema.encode(frame).matrix, frame.index)


def assert_same(back, frame):
    assert_frame_equal(back, frame, check_exact=True, check_column_type=True)
    assert list(back.dtypes) == list(frame.dtypes)
