"""An explainer on its way to another process: it is sent once, and made once there."""

from __future__ import annotations

import pickle
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.exceptions import MCCEError
from mcce.explainer import Explainer

Pickled = npt.NDArray[np.uint8]

_kept: dict[str, Explainer] = {}  # the explainer that was received last, by the checksum of its pickle
_keeping = Lock()


class Shipped:
    """An explainer that pickles to its name and what its receiver needs, which may have got it already.

    It is unpickled where it is first used, not where it passes through, as a cluster's scheduler.
    """

    def __init__(self, explainer: Explainer | None, name: str = "", pickled: Pickled | None = None) -> None:
        self._explainer = explainer
        self.name = name
        self.pickled = pickled

    @property
    def explainer(self) -> Explainer:
        """The explainer, made once in a process."""
        if self._explainer is None:
            self._explainer = receive(self.name, self.pickled)
        return self._explainer

    def __reduce__(self) -> tuple[Any, ...]:
        return Shipped, (None, self.name, self.pickled)


def receive(name: str, pickled: Pickled | None = None) -> Explainer:
    """Return an explainer in another process; None for one that it has got already."""
    with _keeping:
        if name not in _kept:
            if pickled is None:
                raise MCCEError("this worker has not got the explainer; restart the cluster, and run it again.")
            _kept.clear()
            _kept[name] = pickle.loads(pickled.data)
        return _kept[name]
