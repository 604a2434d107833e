"""Every dtype accepted by the schema can be saved and loaded."""

import datetime
from functools import cache

import numpy as np
import pandas as pd
import pytest
from pandas.core.dtypes.base import _registry

import mcce
from mcce import InputError
from mcce.storage.state import from_state, to_state
from mcce.table import KINDS, Schema
from tests.marks import nightly, nightly_rows

pa = pytest.importorskip("pyarrow")

N = 24
CODES = np.arange(N) % 6
UNITS = ("s", "ms", "us", "ns")
NUMBERS = [*np.typecodes["AllInteger"], *np.typecodes["AllFloat"], "?"]
DATES = [f"{kind}8[{unit}]" for kind in "mM" for unit in UNITS]
TEXTS = np.array([*"abcdef"], dtype=object)[CODES]
ZONES = ("UTC", "Europe/Oslo", datetime.timezone(datetime.timedelta(hours=2)))
ARROW = [
    *(pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    *(pa.date32(), pa.decimal128(18, 2), pa.decimal256(40, 3), pa.time32("s"), pa.time64("us"), pa.binary(1)),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "Europe/Oslo")),
    *(pa.duration(unit) for unit in UNITS),
    pa.dictionary(pa.int8(), pa.string()),
]


def of_arrow(kind):
    """Return a column of an Arrow type."""
    if pa.types.is_dictionary(kind):
        return pd.Series(pa.array(list(TEXTS)).dictionary_encode().cast(kind), dtype=pd.ArrowDtype(kind))
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or "binary" in str(kind)
    plain = pa.array([str(code) for code in CODES]) if is_text else pa.array(CODES.astype(np.int32))
    if kind == pa.binary(1):
        plain = pa.array([b"%d" % code for code in CODES])
    wide = plain.cast(pa.int64()) if pa.types.is_temporal(kind) and kind.bit_width == 64 else plain
    return pd.Series(pd.array(wide.cast(kind), dtype=pd.ArrowDtype(kind)))


def candidates():
    """Return columns of all dtypes of numpy, pandas and Arrow, accepted or not."""
    columns = [pd.Series(CODES.astype(code)) for code in [*NUMBERS, *DATES, *np.typecodes["Complex"]]]
    columns += [pd.Series(pd.arrays.SparseArray(CODES.astype(code))) for code in NUMBERS]
    columns += [pd.Series(CODES.astype(code)).astype(pd.SparseDtype(code, 1)) for code in "lbd"]
    columns += [pd.Series(CODES.astype(code)).astype("category") for code in ("l", "d", "D", "?", "M8[us]", "m8[s]")]
    nullable = [dtype for dtype in _registry.dtypes if hasattr(dtype, "numpy_dtype") and dtype is not pd.ArrowDtype]
    columns += [pd.Series(CODES % 2 if dtype is pd.BooleanDtype else CODES).astype(dtype()) for dtype in nullable]
    columns += [pd.Series(TEXTS).astype(dtype) for dtype in ("object", "str", "string[python]", "string[pyarrow]")]
    columns += [pd.Series(TEXTS).astype("category"), pd.cut(pd.Series(CODES), 3)]
    columns += [pd.Series(pd.Categorical(TEXTS, [*"fedcba"], ordered=True)), pd.Series(pd.interval_range(0, N))]
    columns += [
        pd.Series(pd.interval_range(0.5, periods=N)),
        pd.Series(pd.interval_range(pd.Timestamp("2020"), periods=N)),
    ]
    columns += [pd.Series(CODES.astype(f"M8[{unit}]")).dt.tz_localize(zone) for unit in UNITS for zone in ZONES]
    columns += [pd.Series(pd.PeriodIndex.from_ordinals(CODES + 99, freq=f)) for f in ("Y-MAR", "Q", "M", "W", "D", "s")]
    return {f"{i} {column.dtype}": column for i, column in enumerate([*columns, *map(of_arrow, ARROW)])}


CANDIDATES = candidates()


@cache
def accepted(*kinds_tried):
    """Return the columns that the schema accepts with some of these kinds, without and with missing values."""
    found = {}
    for name, column in CANDIDATES.items():
        some = column.reindex([-1, *range(N - 2), -2]).reset_index(drop=True)  # the dtype may change
        for what, values in {"": column, " missing": some}.items():
            for kind in kinds_tried if values.dtype == column.dtype else ():
                kinds = None if kind is None else {"c": kind}
                try:
                    Schema.from_data(pd.DataFrame({"c": values}), kinds)
                except InputError:
                    continue
                found[f"{name}{what} {kind or ''}"] = (values, kinds)
    return found


WHOLE = accepted(None)  # with the kind found by the schema; trying all kinds takes seconds
QUICK = [next(name for name in WHOLE if of in name) for of in ("Sparse[int64", "Sparse[bool", " string[pyarrow]")]


@pytest.mark.slow
def test_list_has_every_dtype_of_pandas():
    columns = WHOLE | accepted("categorical")  # intervals need an explicit kind
    classes = {type(values.dtype) for values, _ in columns.values()}
    assert {dtype.__name__ for dtype in _registry.dtypes} <= {dtype.__name__ for dtype in classes}
    assert len(WHOLE) > 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds_tried", "least"), [((None,), 100), *nightly_rows(((None, *KINDS), 300))], ids=["as read", "all"]
)
def test_every_column_round_trips(kinds_tried, least):
    columns = accepted(*kinds_tried)
    assert len(columns) > least
    for values, kinds in columns.values():
        X = pd.DataFrame({"c": values})
        schema = Schema.from_data(X, kinds)
        again = from_state(to_state(schema))
        pd.testing.assert_frame_equal(again.decode(schema.encode(X).matrix), X)
        pd.testing.assert_frame_equal(from_state(to_state(X)), X)


@pytest.mark.parametrize(
    "names", [QUICK, *nightly(*([*WHOLE][first : first + 20] for first in range(0, len(WHOLE), 20)))]
)
def test_explainer_and_its_result_round_trip(names, tmp_path):
    X = pd.DataFrame({name: WHOLE[name][0] for name in names} | {"n": np.arange(N) % 5})

    def many(rows):
        return rows["n"] > 2

    explainer = mcce.MCCE(many, decision=True, random_state=1, n_jobs=1).fit(X)
    found = explainer.explain(X.head(5), n_samples=20)
    explainer.save(tmp_path / "explainer.mcce")
    found.save(tmp_path / "found.mcce")
    again = mcce.MCCE.load(tmp_path / "explainer.mcce", model=many)
    pd.testing.assert_frame_equal(again.explain(X.head(5), n_samples=20).frame, found.frame)
    back = mcce.Counterfactuals.load(tmp_path / "found.mcce")
    pd.testing.assert_frame_equal(back.frame, found.frame)
    pd.testing.assert_frame_equal(back.factuals, found.factuals)
    pd.testing.assert_series_equal(back.frame.dtypes, X.dtypes)


@pytest.mark.nightly
def test_every_chain_round_trips(tmp_path):
    """Ten kinds of columns in one chain and one file, independent of each other."""
    every = list(accepted(None, *KINDS).values())
    for some in (every[i : i + 10] for i in range(0, len(every), 10)):
        X = pd.DataFrame({f"c{j}": values for j, (values, _) in enumerate(some)} | {"n": np.arange(N) % 5})
        kinds = {f"c{j}": kinds["c"] for j, (_, kinds) in enumerate(some) if kinds}
        alone = {f"c{j}": ["n"] for j in range(len(some))}
        chain = mcce.ChainModel(fixed=["n"], kinds=kinds, predictors=alone, random_state=1, n_jobs=1).fit(X)
        chain.save(tmp_path / "chain.mcce")
        again = mcce.ChainModel.load(tmp_path / "chain.mcce")
        pd.testing.assert_frame_equal(again.sample(20), chain.sample(20))


@pytest.mark.parametrize("code", ["g", "D"])
def test_unstorable_numbers_are_rejected_as_levels(code):
    column = pd.Series(CODES.astype(code))
    with pytest.raises(InputError, match=r"has dtype .*, which is not supported; convert it to numbers"):
        Schema.from_data(pd.DataFrame({"c": column}), {"c": "categorical"})


@pytest.mark.parametrize("column", [pd.Series(CODES.astype(">i2")), pd.arrays.SparseArray(CODES.astype(">i2"))])
def test_foreign_byte_order_raises(column):
    with pytest.raises(InputError, match=r"byte order is not native; convert it, as in .astype\('int16'\)"):
        Schema.from_data(pd.DataFrame({"c": column}))


def test_values_that_cannot_be_levels_raise():
    lists = pd.Series([[1], [2]] * 12, dtype=pd.ArrowDtype(pa.list_(pa.int8())))
    with pytest.raises(InputError, match="column 'c' of X holds values that cannot be levels"):
        Schema.from_data(pd.DataFrame({"c": lists}), {"c": "categorical"})
    nanoseconds = pd.Series(pd.array(pa.array(CODES).cast(pa.time64("ns")), dtype=pd.ArrowDtype(pa.time64("ns"))))
    with pytest.raises(InputError, match=r"different in time64\[ns\]\[pyarrow\] and equal in Python"):
        Schema.from_data(pd.DataFrame({"c": nanoseconds}), {"c": "categorical"})


class Forgetful(mcce.ConditionalSampler):
    """A sampler that wrongly rejects its own state."""

    handles = frozenset({"numeric"})

    def fit(self, given, target):
        self.ends_ = [0, 1]
        return self

    def sample(self, given, rng, within=None):
        return np.zeros(given.n_rows)

    def check_state(self, given, target, n_rows):
        raise TypeError("this was never tried")


mcce.register_sampler("tests.forgetful", Forgetful)


def test_unloadable_values_are_not_written(tmp_path):
    path = tmp_path / "chain.mcce"
    path.write_text("as it was")
    X = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})
    chain = mcce.ChainModel(sampler={"b": Forgetful(), "*": "cart"}, random_state=1).fit(X)
    with pytest.raises(
        InputError, match=r"this Generator cannot be saved, since its file would not load: .*never tried"
    ):
        chain.save(path)
    assert path.read_text() == "as it was"
    assert [each.name for each in tmp_path.iterdir()] == ["chain.mcce"]
