"""Corrupted files: as bytes, or entry by entry with corrected checksums.

Loading a corrupted file raises an `MCCEError`, or gives an object that draws or raises an `MCCEError`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import warnings
import zipfile

import numpy as np

import mcce
from mcce.cli.inspect import describe, text
from mcce.storage.archive import write_entries
from tests.storage import good

NUMBERS = [-1, 0, 1, 2, 3, 7, 59, 60, 61, 127, -128, 255, 2**15, 2**31 - 1, -(2**31), 2**31, 2**53, 2**63 - 1, 10**30]
FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.5, -3.7, 1e-320, 1e300, -1e300, 1.7976931348623157e308]
TEXTS = ["", "cart", "copula", "Tree", "RpartTree", "os.system", "../x", "numeric", "ordered", "dateutil//x", "O"]
DTYPES = ["f8", "i8", "i4", "u1", "?", "M8[ns]", "U3", "f4", "u8"]
OTHERS = [None, True, False, [], {}, [[]], {"type": "tuple", "items": []}, {"type": "nothing"}]
VALUES = [*NUMBERS, *FLOATS, *TEXTS, *OTHERS]


def spoil_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return a file with bytes changed, removed, doubled or truncated."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 3, 20])):
        at = chance.randrange(len(data))
        size = chance.choice([1, 4, 64, 1000])
        what = chance.randrange(6)
        if what <= 1:
            data[at] = chance.randrange(256)
        elif what == 2:
            data[at] ^= 1 << chance.randrange(8)
        elif what == 3:
            del data[at : at + size]
        elif what == 4:
            data[at:at] = data[at : at + size]
        else:
            del data[at:]
        if not data:
            break
    return bytes(data)


def read_entries(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def signed(entries: dict[str, bytes]) -> bytes:
    """Return a file of these entries with correct sizes and checksums in its manifest."""
    manifest = json.loads(entries["manifest.json"])
    manifest["entries"] = {
        name: [len(part), hashlib.sha256(part).hexdigest()] for name, part in entries.items() if name != "manifest.json"
    }
    file = io.BytesIO()
    write_entries(file, entries | {"manifest.json": json.dumps(manifest).encode()})
    return file.getvalue()


def spoil_entries(data: bytes, chance: random.Random) -> bytes:
    """Return a file with arrays or JSON changed, and signed again."""
    entries = read_entries(data)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        arrays = [name for name in entries if name.endswith(".npy")]
        if arrays and chance.random() < 0.6:
            name = chance.choice(arrays)
            if chance.random() < 0.08:
                other = chance.choice(arrays)
                entries[name], entries[other] = entries[other], entries[name]
            else:
                entries[name] = _spoil_array(entries[name], chance)
        else:
            state = json.loads(entries["state.json"])
            _spoil_json(state, chance)
            entries["state.json"] = json.dumps(state).encode()
    return signed(entries)


def _spoil_array(data: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.05:
        return spoil_bytes(data, chance)
    try:
        array = np.load(io.BytesIO(data))
    except Exception:  # corrupted before
        return data
    what = chance.randrange(20) if array.size else 15 + chance.randrange(5)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if what <= 14:
            flat = array.ravel(order="K").copy()
            for _ in range(chance.choice([1, 1, 1, 3, flat.size])):
                at = chance.randrange(flat.size)
                value = chance.choice(NUMBERS[:-1] + (FLOATS if array.dtype.kind == "f" else []))
                if what <= 3:
                    value = flat[chance.randrange(flat.size)]
                elif what <= 6 and flat.dtype.kind in "iuf":
                    value = float(flat[at]) + chance.choice([-1, 1, 1e-9, -0.5])
                with contextlib.suppress(ValueError, TypeError, OverflowError):
                    flat[at] = np.array(value).astype(flat.dtype)
            array = flat.reshape(array.shape, order="F" if array.flags.f_contiguous else "C")
        elif what == 15:
            try:
                array = array.astype(chance.choice(DTYPES))
            except (ValueError, TypeError, OverflowError, RuntimeError):
                array = array[..., None]
        elif what == 16:
            array = array[: chance.randrange(len(array) + 1)] if array.ndim else array[None]
        elif what == 17 and array.ndim:
            array = np.concatenate([array, array[: chance.choice([1, 2, 50])]])
        elif what == 18:
            array = array[::-1] if array.ndim else array
        else:
            array = array.T if array.ndim > 1 else np.asfortranarray(array.reshape(1, -1))
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _spoil_json(value, chance: random.Random) -> None:
    places = []
    _find_places(value, places)
    if chance.random() < 0.9:  # without a reference to each array, a file is rejected before anything is built
        places = [place for place in places if not place[2]]
    part, key, _ = chance.choice(places)
    what = chance.randrange(8)
    if what <= 3:
        part[key] = chance.choice(VALUES)
    elif what == 4:
        del part[key]
    elif what == 5:
        other, place, _ = chance.choice(places)
        try:
            part[key], other[place] = other[place], part[key]
            json.dumps(value)
        except (KeyError, IndexError, ValueError, RecursionError):
            other[place] = None
    elif what == 6 and isinstance(part, dict):
        part[chance.choice([*TEXTS, *(name for other, name, _ in places if isinstance(other, dict))])] = part.pop(key)
    elif what == 6:
        part.insert(key, part[key] if not isinstance(part[key], (dict, list)) else None)
    elif isinstance(part[key], (int, float)) and not isinstance(part[key], bool):
        part[key] = part[key] * chance.choice([-1, 2, 1000]) + chance.choice([-1, 0, 1])
    else:
        part[key] = chance.choice(VALUES)


def _find_places(part, places) -> bool:
    """List the positions of values in JSON and whether they name an array; return whether any part does."""
    if isinstance(part, dict) and part.get("type") == "array":
        places += [(part, key, True) for key in part]
        return True
    keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    named = [_find_places(part[key], places) for key in keys]
    places += [(part, key, names) for key, names in zip(keys, named)]
    return any(named)


def good_files(folder) -> dict[str, tuple[str, bytes]]:
    """Return the bytes of files of every kind, and their kinds."""
    made = {}
    for name in good.CHAINS:
        for decision in (False, True) if name in ("cart", "copula", "coefficients") else (False,):
            path = folder / f"{name}.mcce"
            good.chain(name, decision=decision).save(path)
            made[f"{name}{'+' * decision}"] = "chain", path.read_bytes()
    good.explainer().save(folder / "explainer.mcce")
    good.counterfactuals().save(folder / "found.mcce")
    made["explainer"] = "explainer", (folder / "explainer.mcce").read_bytes()
    made["counterfactuals"] = "counterfactuals", (folder / "found.mcce").read_bytes()
    return made


def use(kind: str, path, *, inspect: bool) -> str:
    """Load a file and use its object; return the outcome: "refused", "refused later" or "used"."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if inspect:
            with contextlib.suppress(mcce.MCCEError):
                text(describe(path))
        try:
            loaded = LOAD[kind](path)
        except mcce.MCCEError as error:
            if isinstance(error.__cause__, MemoryError):
                raise error.__cause__ from error
            return "refused"
        try:
            USE[kind](loaded)
        except mcce.MCCEError:
            return "refused later"
        return "used"


def _use_chain(chain):
    X = good.table(20, missing=False)
    fixed = X[["sex"]].head(5) if chain.fixed_ == ["sex"] else None
    chain.sample(30)
    chain.sample(4, given=fixed)
    chain.sample(4, given=fixed, within={"n": (2, 9), "job": good.LEVELS[:4]}, importance=True)
    again = chain.sample(12)
    if all(getattr(sampler, "smoothing", None) is None for sampler in chain.samplers_.values()):
        chain.log_density(again)
    for sampler in chain.samplers_.values():
        repr(sampler)


def _use_explainer(explainer):
    X = good.table(6, seed=4)
    explainer.explain(X, n_samples=20)
    explainer.explain(X, n_samples=20, sparse=True)


def _use_counterfactuals(found):
    repr(found)
    found.summary()
    found.changes()
    found.to_frame()
    found.changed_features()
    found.below_floor()
    for id in [*found.frame.index.get_level_values("id")[:2], *found.unexplained.index[:2]]:
        found.sentence(id)


LOAD = {
    "chain": mcce.ChainModel.load,
    "explainer": lambda path: mcce.MCCE.load(path, model=good.accepted),
    "counterfactuals": mcce.Counterfactuals.load,
}
USE = {"chain": _use_chain, "explainer": _use_explainer, "counterfactuals": _use_counterfactuals}
