"""Constraints about single factuals, handed out to the parts that these are in: `explain` refuses ids it does not find.

A constraint by id holds wherever the id occurs; one that occurs nowhere does nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from mcce.batches.parts import Request
from mcce.batches.sources import Part
from mcce.constraints import Only, PerFactual, read


class Personal:
    """What is asked for, part by part."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._said = read(request.settings["constraints"])
        self._by_id: dict[Hashable, list[tuple[int, Any]]] = {}
        for i, said in enumerate(self._said):
            if isinstance(said, (Only, PerFactual)):
                for entry in said.by_id:
                    self._by_id.setdefault(entry[0], []).append((i, entry))

    def request_for(self, part: Part) -> Request:
        """Return what is asked for, with the constraints of the factuals in a part alone."""
        if not self._by_id:
            return self.request
        mine: dict[int, list[Any]] = {}
        for id in part.factuals(self.request.id).index:
            for i, entry in self._by_id.get(id, ()):
                mine.setdefault(i, []).append(entry)
        said: list[Any] = []
        for i, each in enumerate(self._said):
            if not isinstance(each, (Only, PerFactual)):
                said.append(each)
            elif i in mine:
                kind: Any = type(each)
                said.append(kind(tuple(mine[i])))
        return replace(self.request, settings={**self.request.settings, "constraints": said})
