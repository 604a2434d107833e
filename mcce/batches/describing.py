"""What a folder was begun with, as JSON: settings, explainer, versions.

1. Settings are written as they are if JSON can hold them. Functions are named; refits are told by what they answer;
   anything else by its repr, or the checksum of a long one.
2. An explainer is told by its behaviour: its columns, what it draws for a few training rows, and what the model says of
   those draws. That is the same for one that was saved, or fitted again with the same seed; nothing is pickled.
3. Results may differ between versions of the packages that make them, so these belong to it.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from mcce.arrays import Floats
from mcce.asking.asker import Asker
from mcce.asking.decision import resolve_decision
from mcce.candidates.pools import draw_pools, fixed_columns, pool_keys
from mcce.constraints import read
from mcce.exceptions import InputError, did_you_mean
from mcce.explainer import Explainer

DRAWS = 32  # for each of the training rows that an explainer is told by
LONGEST = 500  # characters of a setting that are written out
PACKAGES = ("mcce", "numpy", "pandas", "pyarrow")
NOT_HERE = {
    "progress": "give it to explain_batches",
    "standard_errors": "it is about the mean over all factuals, and batches are explained one by one",
}


def check_settings(explainer: Explainer, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of `explain`, all of them; unknown ones are errors."""
    known = inspect.signature(explainer.explain).parameters
    names = [name for name in known if name != "X" and name not in NOT_HERE]
    for name in settings:
        if name in NOT_HERE:
            raise InputError(f"explain_batches does not take {name}: {NOT_HERE[name]}.")
        if name not in names:
            raise InputError(f"explain_batches does not take {name!r}; {did_you_mean(name, names)}")
    whole = {name: settings.get(name, known[name].default) for name in names}
    # by itself `explain` looks into the first few of a call, which would depend on the batch
    return {**whole, "tell_reasons": bool(whole["tell_reasons"])}


def describe_settings(explainer: Explainer, settings: Mapping[str, Any], rows: Floats) -> dict[str, Any]:
    """Return settings of `explain` as JSON values (step 1)."""
    described = {name: _plain(value) for name, value in settings.items()}
    described["constraints"] = [_plain(said) for said in read(settings["constraints"])]
    described["refits"] = [f"{type(model).__name__} {_answers(explainer, model, rows)}" for model in settings["refits"]]
    return described


def describe_explainer(explainer: Explainer, rows: Floats) -> dict[str, Any]:
    """Return what tells an explainer from others, given some encoded training rows (step 2)."""
    generator = explainer.generator_
    keys = pool_keys(generator, rows, fixed_columns(generator))
    drawn = draw_pools(generator, rows, keys, DRAWS).rows
    scores, wanted = Asker(explainer.decision_, generator.schema_).ask_encoded(np.concatenate([rows, drawn]))
    return {
        "model": type(explainer.model).__name__,
        "decision": explainer.decision_.describe(),
        "fixed": [str(name) for name in generator.fixed_],
        "generator": type(generator).__name__,
        "sampler": _plain(explainer.sampler),
        "random_state": int(generator.seed_),
        "constraints": [_plain(said) for said in read(explainer.constraints)],
        "columns": {str(f.name): f"{f.kind}, {f.dtype}" for f in generator.schema_.features},
        "draws": _checksum(np.concatenate([rows, drawn]).tobytes()),
        "answers": _checksum(_rounded(scores) + wanted.tobytes()),
    }


def describe_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on (step 3)."""
    return {name: str(sys.modules[name].__version__) for name in PACKAGES}


def _answers(explainer: Explainer, model: Any, rows: Floats) -> str:
    asker = Asker(resolve_decision(explainer.decision, model), explainer.generator_.schema_)
    scores, wanted = asker.ask_encoded(rows)
    return _checksum(_rounded(scores) + wanted.tobytes())


def _rounded(scores: Any) -> bytes:
    """Return scores as text, without the last digits, which may depend on the number of threads."""
    return "\n".join(f"{s:.6g}" if isinstance(s, (float, np.floating)) else str(s) for s in scores).encode()


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if inspect.isfunction(value) or inspect.isclass(value):
        return f"{value.__module__}.{value.__qualname__}"
    said = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    return said if len(said) <= LONGEST else f"{said[:60]}... ({_checksum(said.encode())})"
