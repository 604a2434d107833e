"""An explainer on its way to another process: it is sent once, and made once there."""

from __future__ import annotations

import pickle
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError
from mcce.explainer import Explainer

Pickled = npt.NDArray[np.uint8]

_kept: dict[str, Explainer] = {}  # the explainer that was received last, by the checksum of its pickle
_keeping = Lock()


class Shipped:
    """An explainer that pickles to what its receiver needs, which may have got it already."""

    def __init__(self, explainer: Explainer, name: str = "", pickled: Pickled | None = None) -> None:
        self.explainer = explainer
        self.name = name
        self.pickled = pickled

    def __reduce__(self) -> tuple[Any, ...]:
        return receive, (self.name, self.pickled)


def receive(name: str, pickled: Pickled | None) -> Shipped:
    """Return an explainer in another process; it is made once there."""
    with _keeping:
        if name not in _kept:
            if pickled is None:
                raise InputError("this worker was not given the explainer; start the cluster before explain_batches.")
            _kept.clear()
            _kept[name] = pickle.loads(pickled.data)
        return Shipped(_kept[name], name, pickled)
