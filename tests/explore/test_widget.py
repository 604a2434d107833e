"""The widget: the same front end, its messages answered by a session."""

import sys
from pathlib import Path

import pytest

import mcce
from mcce.explore import server, widget


def test_messages_are_answered_by_number(fitted, table, monkeypatch):
    pytest.importorskip("anywidget", reason="needs pip install 'mcce[explore]'")
    made = fitted.explore(table)
    sent = []
    monkeypatch.setattr(made, "send", sent.append)
    for number, message in ((7, {"ask": "people"}), (8, {"ask": "nothing"})):
        made._handle_custom_msg({"number": number, "message": message}, [])
    assert sent[0]["number"] == 7
    assert sent[0]["answer"]["total"] == 300
    assert sent[1]["number"] == 8
    assert "no message" in sent[1]["answer"]["error"]
    made._handle_custom_msg("nonsense", [])
    assert "the key" in sent[2]["answer"]["error"]
    front_end = Path(widget.__file__).parent / "static" / "explorer.js"
    assert made._esm == front_end.read_text("utf-8")


def test_front_end_inserts_only_texts():
    text = (Path(widget.__file__).parent / "static" / "explorer.js").read_text("utf-8")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "import "):
        assert way not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_missing_extra_raises_with_install_command(fitted, table, session, monkeypatch):
    for name in ("anywidget", "starlette.applications", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(mcce.InputError, match=r"anywidget.*pip install 'mcce\[explore\]'"):
        fitted.explore(table)
    with pytest.raises(mcce.InputError, match=r"starlette.*pip install 'mcce\[explore\]'"):
        server.make_app(session, "token", 1)
    with pytest.raises(mcce.InputError, match=r"uvicorn.*pip install 'mcce\[explore\]'"):
        server.serve(session)
