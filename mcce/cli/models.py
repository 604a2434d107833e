"""The model that `mcce explain --model` loads, by the ending of its name.

.skops   only types that are trusted are made; others are refused and can be named by `--trusted`
.onnx    a graph of computations, run by onnxruntime (`mcce.cli.onnx_model`)
others   joblib's pickles: opening one runs whatever code it holds, and that is said
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcce.cli.console import say
from mcce.cli.onnx_model import load_onnx
from mcce.exceptions import InputError, listing


def load_model(path: str, trusted: Sequence[str] = ()) -> Any:
    """Load a model."""
    where = f"--model {path}"
    if not Path(path).is_file():
        raise InputError(f"{where}: there is no such file; check its name and folder.")
    suffix = Path(path).suffix.lower()
    if trusted and suffix != ".skops":
        raise InputError(f"--trusted goes with a model saved by skops, but --model is {path}; leave --trusted out.")
    if suffix == ".onnx":
        return load_onnx(where, path)
    return _load_skops(where, path, trusted) if suffix == ".skops" else load_joblib(where, path)


def load_joblib(where: str, path: str) -> Any:
    """Load what joblib wrote, and say that this runs code."""
    import joblib

    say(f"opening {where} runs the code that it holds; .skops and .onnx files run none")
    try:
        return joblib.load(path)
    except Exception as error:
        raise InputError(
            f"{where} cannot be loaded ({_problem(error)}). It must be written by joblib.dump, and the "
            "packages that made it must be installed."
        ) from None


def _load_skops(where: str, path: str, trusted: Sequence[str]) -> Any:
    try:
        from skops import io
    except ImportError:
        raise InputError(f"{where}: .skops files need skops; pip install 'mcce[skops]'.") from None
    try:
        unknown = [name for name in io.get_untrusted_types(file=path) if name not in trusted]
        if not unknown:
            return io.load(path, trusted=list(trusted))
    except Exception as error:
        raise InputError(
            f"{where} cannot be loaded ({_problem(error)}). It must be written by skops.io.dump, and the packages "
            "that made it must be installed."
        ) from None
    raise InputError(
        f"{where} holds types that are not trusted: {listing(unknown)}. If you trust them, add --trusted "
        f"{','.join(unknown)}."
    )


def _problem(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
