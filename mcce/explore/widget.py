"""The explorer in a notebook: an anywidget whose messages a session answers.

The front end sends ``{"number": n, "message": {...}}`` and gets ``{"number": n, "answer": {...}}`` back.
"""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import Any

from mcce.exceptions import InputError
from mcce.explore.session import ExplorerSession

STATIC = files("mcce.explore") / "static"


def make_widget(session: ExplorerSession) -> Any:
    try:
        anywidget = import_module("anywidget")
    except ImportError as error:
        raise InputError(
            "the explorer in a notebook needs anywidget, which is not installed; get it by pip install "
            "'mcce[explore]', or use the command line: mcce explore explainer.mcce people.csv."
        ) from error
    front_end = {"_esm": _text("explorer.js"), "_css": _text("explorer.css")}
    widget: Any = type("Explorer", (anywidget.AnyWidget,), front_end)()

    def reply(_: Any, content: Any, buffers: Any) -> None:
        number = content.get("number") if isinstance(content, dict) else None
        message = content.get("message") if isinstance(content, dict) else content
        widget.send({"number": number, "answer": session.answer(message)})

    widget.on_msg(reply)
    return widget


def _text(name: str) -> str:
    return (STATIC / name).read_text("utf-8")
