"""Malicious arrays, JSON and numbers raise with the cause."""

import gc
import io
import json
import struct

import numpy as np
import pytest

import mcce
from mcce.storage.archive import SMALL
from tests.marks import nightly_but
from tests.storage import good
from tests.storage.spoiling import read_entries, signed, use
from tests.storage.tampering import memory_to_refuse, refuse


def with_state(data, change):
    """Return a file whose JSON was changed, signed again."""
    entries = read_entries(data)
    state = json.loads(entries["state.json"])
    change(state)
    return signed(entries | {"state.json": json.dumps(state).encode()})


def find_all(state, kind):
    """Return the objects of a type in a state, shallow ones first."""
    found, waiting = [], [state]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, dict) and part.get("type") == kind:
            found.append(part)
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    return found


def find(state, kind):
    """Return the first object of a type in a state."""
    return find_all(state, kind)[0]


def with_array(data, kind, field, change):
    """Return a file in which the first non-empty array of an object of some type was changed."""
    entries = read_entries(data)
    names = [f"{each[field]['entry']}.npy" for each in find_all(json.loads(entries["state.json"]), kind)]
    name = next(each for each in names if np.load(io.BytesIO(entries[each])).size)
    out = io.BytesIO()
    np.save(out, change(np.load(io.BytesIO(entries[name]))))
    return signed(entries | {name: out.getvalue()})


def put(at, value):
    def change(array):
        array.flat[at] = value
        return array

    return change


def npy(shape, descr, data=b"", fortran=False):
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        (npy("(1,)", "|O", b"cos\nsystem\n"), "an array is of object, which is never stored"),
        (npy("(1,)", [("a", "<f8")], b"\0" * 8), "an array is of .*which is never stored"),
        (npy("(1,)", "<c16", b"\0" * 16), "an array is of complex128"),
        (npy("(1,)", "<f16", b"\0" * 16), "an array is of float128|header of an array cannot be read"),
        (npy("(1,)", "|V8", b"\0" * 8), "which is never stored"),
        (npy("(-1,)", "<f8"), r"an array has the shape \(-1,\)"),
        (npy("(-2, -4)", "<f8", b"\0" * 64), r"an array has the shape \(-2, -4\)"),
        (npy("(99999999999,)", "<f8", b"\0" * 8), r"has the shape \(99999999999,\), and 8 bytes"),
        (npy("(4294967296, 4294967296, 2)", "<f8"), "an array of float64 has the shape"),
        (npy("(0, 99999999999999999999)", "<f8"), "a part of it is invalid|has the shape|wrong"),
        (npy("(True,)", "<f8", b"\0" * 8), "shape|header"),
        (npy("(2,)", "|b1", b"\x01\x02"), "an array of booleans holds something else"),
        (npy("(1,)", "<U1", struct.pack("<I", 0x110000)), "holds a code that is not a character"),
        (npy("(__import__('os').system('true'),)", "<f8"), "the header of an array cannot be read"),
        (b"\x93NUMPY\x02\x00" + b"\0" * 100, "it is not an array in numpy's format 1.0"),
        (b"\x93NUMPY\x01\x00\xff\xff" + b"{" * 300, "has 65535 bytes, more than an array needs"),
        (b"\x93NUMPY\x01\x00\x80\x00" + b"{" * 20, "ends before its header does"),
        (b"", "it is not an array"),
    ],
)
def test_invalid_arrays(files, entry, match, tmp_path):
    data = signed(read_entries(files["marginal"]) | {"0.npy": entry})
    assert memory_to_refuse(tmp_path / "a.mcce", data, match) < 3 * SMALL


@pytest.fixture
def no_collection():
    """Prevent finalizers of other tests' garbage from running at the recursion limit, where they would fail."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_invalid_json(files, tmp_path):
    entries = read_entries(files["marginal"])
    for text, match in [
        (b"[" * 100_000, "more than 64 deep|is not JSON"),
        (b"[" * 900 + b"]" * 900, "more than 64 deep"),
        (b'{"a": 1, "a": 2}', "a dict has a key twice"),
        (b"\xff", "state.json is not JSON"),
        (b"[1]", "no place for"),
        (b"1" * 5000, "state.json is not JSON"),
    ]:
        refuse(tmp_path / "a.mcce", signed(entries | {"state.json": text}), match)


@pytest.mark.parametrize(
    ("kind", "changes", "match"),
    [
        ("sampler", {"name": "os.system"}, "there is no sampler 'os.system'"),
        (
            "sampler",
            {"type": "posix.system"},
            "an object of the type 'posix.system', which is not registered",
        ),
        ("sampler", {"params": {"min_donors": -1}}, "min_donors of MarginalSampler is -1"),
        ("sampler", {"params": {"__class__": "x"}}, "a part of it is invalid"),
        ("sampler", {"fitted": {"__class__": 1}}, "is not a fitted attribute of MarginalSampler"),
        ("sampler", {"fitted": {"sample": 1}}, "is not a fitted attribute of MarginalSampler"),
        ("Feature", {"kind": "evil"}, "Feature: kind is unknown"),
        ("Feature", {"decimals": 400}, "decimals is 400; expected a whole number from 0 to 12"),
        ("Feature", {"unit": 0}, "unit is 0"),
        ("Feature", {"dtype": {"type": "numpy.dtype", "code": "S2000000000"}}, "dtype is not one of a column"),
        ("Feature", {"dtype": {"type": "pandas.dtype", "name": "datetime64[ns, dateutil//etc/passwd]"}}, "time zone"),
        ("Feature", {"dtype": {"type": "pandas.dtype", "name": "datetime64[ns, ../../x]"}}, "the time zone is"),
        ("Schema", {"frames": {"build": "x"}}, "Schema: frames is a dict; expected a FrameKind or a NoneType"),
        ("ChainModel", {"seed_": "x"}, "random_state is 'x'"),
        ("ChainModel", {"visit_sequence_": []}, "visit_sequence_ is not that of the features"),
    ],
)
def test_json_with_unknown_names(files, kind, changes, match, tmp_path):
    def change(state):
        found = find(state, kind)
        kept = json.dumps(found)
        found.update(changes)
        if '"array"' in kept and '"array"' not in json.dumps(found):  # a reference to each array is required
            found["spare"] = json.loads(kept)

    refuse(tmp_path / "a.mcce", with_state(files["marginal"], change), match)


def test_huge_ranges_and_repeats(files, tmp_path):
    def levels(state):
        find(state, "pandas.CategoricalDtype")["categories"] = {
            "type": "pandas.RangeIndex", "start": 0, "stop": 10**15, "step": 1, "name": None,
        }  # fmt: skip

    long = with_state(files["marginal"], levels)
    assert memory_to_refuse(tmp_path / "a.mcce", long, "labels is too long") < 3 * SMALL
    for name in ("sweeps", "particles", "density_points"):

        def repeats(state, name=name):
            find(state["generator"]["samplers_"], "sampler")["params"][name] = 10**9

        match = f"{name} of GaussianCopulaSampler is 1000000000; .* at most 100000"
        refuse(tmp_path / "a.mcce", with_state(files["copula"], repeats), match)

    def n_rows(state):
        find(state, "copula.Margin")["n_rows"] = 2**31 - 1

    many = with_state(files["copula"], n_rows)
    assert memory_to_refuse(tmp_path / "a.mcce", many, "n_rows is 2147483647, and there are 60") < 9 * SMALL


CASES = [
    ("cart", "Tree", "left", put(0, 0), "Tree: left has a child that does not come after its parent"),  # a circle
    ("cart", "Tree", "left", put(0, -7), "Tree: left holds -7"),
    ("cart", "Tree", "left", put(0, 2**30), "Tree: left holds 1073741824"),
    (
        "cart",
        "Tree",
        "left",
        lambda a: a.astype(float) * np.nan,
        "an array of float64; expected an array of int32",
    ),
    ("cart", "Tree", "feature", put(0, 10**6), "feature holds 1000000, which is not from -1 to 0"),
    ("cart", "Tree", "feature", put(0, -2), "Tree: feature holds -2"),
    ("cart", "Tree", "start", put(-1, 54), "Tree: start and size exceed the donors"),
    ("cart", "Tree", "start", put(-1, -1), "Tree: start holds -1"),
    ("cart", "Tree", "size", put(-1, 2**31 - 1), "Tree: size holds 2147483647"),
    ("cart", "Tree", "size", put(-1, 0), "size has a leaf without donors"),
    ("cart", "Tree", "mask_at", put(0, 0), "mask_at"),
    ("cart", "Tree", "donors", put(3, 60), "donors holds 60, which is not from 0 to 59"),
    ("cart", "Tree", "donors", put(3, -1), "donors holds -1"),
    ("cart", "Tree", "donors", lambda a: np.append(a, a), "donors|values"),
    ("cart", "Tree", "threshold", put(0, np.nan), "Tree: threshold holds nan"),
    ("cart", "donors.MarginalDensity", "atoms", put(0, np.inf), "MarginalDensity: atoms holds inf"),
    ("rpart", "RpartTree", "first_split", put(0, 10**6), "RpartTree: first_split holds 1000000"),
    ("rpart", "RpartTree", "n_surrogate", put(0, 10**6), "RpartTree: n_surrogate holds 1000000"),
    ("rpart", "RpartTree", "split_feature", put(0, 99), "split_feature holds 99, which is not from 0 to 0"),
    ("rpart", "RpartTree", "split_sides_at", put(0, 10**9), "RpartTree: split_sides_at holds 1000000000"),
    ("rpart", "RpartTree", "column_levels", put(0, 3), "column_levels do not match the columns"),
    ("rpart", "RpartTree", "number", put(0, -5), "RpartTree: number holds -5"),
    ("copula", "copula.Margin", "shares", put(1, np.nan), "Margin: shares holds nan"),
    ("copula", "copula.Margin", "values", put(0, np.nan), "Margin: values holds nan"),
    ("empirical", "empirical.Scaling", "whole", lambda a: a[:0], "Scaling: whole has the shape"),
    ("empirical", "empirical.Scaling", "factor", put(0, np.nan), "Scaling: factor holds nan"),
    ("boosting", "boosting.BoostedTrees", "left", put(0, 0), "left holds a child that does not follow its parent"),
    ("boosting", "boosting.BoostedTrees", "right", put(0, 2**40), "right holds a child .* in the same tree"),
    ("boosting", "boosting.BoostedTrees", "feature", put(0, 99), "feature holds 99, which is not from -1 to"),
    ("boosting", "boosting.BoostedTrees", "root", put(-1, 10**9), "BoostedTrees: root holds 1000000000"),
    ("boosting", "boosting.BoostedTrees", "classes", put(-1, 77), "classes holds 77|classes are set for a number"),
    ("boosting", "boosting.Cells", "edges", put(0, 0.0), "Cells: edges does not start and end at infinity"),
    ("boosting", "quantiles.Tails", "below", lambda a: a[:0], "Tails: below has no exceedance"),
    ("mixture", "mixture.Mixture", "shares", lambda a: a[:, :-1], "Mixture: shares has the shape"),
    ("mixture", "mixture.Mixture", "shares", put(0, -0.5), "Mixture: shares are not probabilities"),
    ("mixture", "mixture.Mixture", "weights", put(0, 0.0), "Mixture: weights are empty or not positive"),
    ("mixture", "mixture.Mixture", "covariances", put(0, -1.0), "covariances is not positive definite"),
    ("coefficients", "parametric.Design", "source", put(0, 40), "source holds 40"),
    ("coefficients", "parametric.Design", "source", put(0, -1), "source holds -1"),
    ("coefficients", "parametric.Multinomial", "coef", put(0, np.nan), "Multinomial: coef holds nan"),
    ("coefficients", "parametric.Cumulative", "thresholds", lambda a: a[::-1], "thresholds is not in ascending order"),
]


@pytest.mark.parametrize(("name", "kind", "field", "change", "match"), CASES)
def test_out_of_range_indices_for_kernels(files, name, kind, field, change, match, tmp_path):
    refuse(tmp_path / "a.mcce", with_array(files[name], kind, field, change), match)


def test_bandwidth_with_overflowing_square(files, tmp_path):
    def change(state):
        for sampler in find_all(state, "sampler"):
            sampler["fitted"]["bandwidth_"] = 1e308

    refuse(
        tmp_path / "a.mcce", with_state(files["empirical"], change), r"bandwidth_ is 1e\+308; expected a number from"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(list(good.CHAINS), "cart"))
def test_scalars_at_the_limits_of_floats(name, tmp_path):
    good.chain(name).save(tmp_path / "good.mcce")
    data = (tmp_path / "good.mcce").read_bytes()
    n_numbers = len(places_of_floats(json.loads(read_entries(data)["state.json"])))
    assert n_numbers
    for place in range(n_numbers):
        for value in (1.7e308, -1.7e308, 5e-324):

            def change(state, place=place, value=value):
                part, key = places_of_floats(state)[place]
                part[key] = value

            (tmp_path / "a.mcce").write_bytes(with_state(data, change))
            assert use("chain", tmp_path / "a.mcce", inspect=False) in ("refused", "refused later", "used")


def places_of_floats(part):
    """Return the positions of single floats in JSON."""
    items = list(part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ())
    here = [(part, key) for key, value in items if isinstance(value, float)]
    return here + [place for _, value in items for place in places_of_floats(value)]


@pytest.mark.parametrize(
    ("kind", "field", "change", "match"),
    [
        ("plausibility.Conditionals", "column", put(0, 7), "column holds 7, which is not from -1 to 6"),
        ("plausibility.Conditionals", "left", put(0, 10**6), "left (has an invalid child|holds 1000000)"),
        ("plausibility.Conditionals", "share", lambda a: a[:, :8], "share has the shape"),
        ("plausibility.Scale", "values", put(0, np.nan), "values holds nan"),
        ("plausibility.Plausibility", "scale", lambda a: a[:2], "scale has the shape"),
        ("TrainingRows", "hashes", lambda a: a[:0], "hashes are empty"),
    ],
)
def test_invalid_numbers_of_an_explainer(files, kind, field, change, match, tmp_path):
    data = with_array(files["explainer"], kind, field, change)
    refuse(tmp_path / "a.mcce", data, match, lambda path: mcce.MCCE.load(path, model=good.accepted))


def test_codes_that_are_not_levels(files, tmp_path):
    def of_givens(change):
        entries = read_entries(files["marginal"])
        name = f"{json.loads(entries['state.json'])['generator']['training_givens_']['entry']}.npy"
        out = io.BytesIO()
        np.save(out, change(np.load(io.BytesIO(entries[name]))))
        return signed(entries | {name: out.getvalue()})

    for value in (2, -1, 0.5, np.inf):
        refuse(tmp_path / "a.mcce", of_givens(put(0, value)), "training_givens_ holds")


def test_resigned_valid_file_loads(files, tmp_path):
    (tmp_path / "a.mcce").write_bytes(signed(read_entries(files["cart"])))
    assert mcce.ChainModel.load(tmp_path / "a.mcce").sample(3).shape == (3, 7)


@pytest.mark.parametrize("name", ["frame", "measures"])
def test_result_with_missing_ranks(name, tmp_path):
    good.counterfactuals().save(tmp_path / "found.mcce")

    def rename(state):
        state[name]["index"]["names"] = ["id", "sex"]

    data = with_state((tmp_path / "found.mcce").read_bytes(), rename)
    refuse(tmp_path / "a.mcce", data, f"{name} is not indexed by id and rank", mcce.Counterfactuals.load)
