"""A browser for tests: the system's headless Chromium, controlled through a pipe.

1. It is started with `--remote-debugging-pipe`: commands and answers of its DevTools protocol are lines of JSON that
   end with a zero byte, on two file descriptors. No port, no driver and no package are needed.
2. A page is opened from its file at a given width, in a light or dark scheme, on screen or as printed.
3. `evaluate` runs JavaScript in it and returns the value; `picture` and `sheets` return its appearance.
4. `press`, `write` and `drag` simulate the keyboard and the mouse; `wait` waits until a condition holds.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
FLAGS += ["--no-first-run", "--hide-scrollbars=false", "--disable-background-networking", "--disable-extensions"]

# it reads commands from descriptor 3 and writes answers to descriptor 4
START = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(text), fcntl.F_DUPFD, 20) for text in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """Return the path of a Chromium; None if not found."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A Chromium with one page."""

    def __init__(self, program: str, profile: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._count, self._session = b"", 0, None
        target = next(t for t in self._send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self._send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        self._send("Page.enable")

    def open(self, page: Path | str, width: int, *, scheme: str = "light", media: str = "") -> None:
        """Open a file or an address at this width; `media` "print" shows the print layout on screen."""
        self._send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme_of = [{"name": "prefers-color-scheme", "value": scheme}]
        self._send("Emulation.setEmulatedMedia", media=media, features=scheme_of)
        self._send("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)
        self._wait_for("Page.loadEventFired")

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self._send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = 20.0) -> Any:
        """Evaluate an expression until its value is true, and return it; fail the test if it never is."""
        until = time.monotonic() + seconds
        while (found := self.evaluate(script)) in (None, False, "", 0):  # an element is an empty dict
            assert time.monotonic() < until, (
                f"not within {seconds} seconds: {script}\n{self.evaluate('document.body.innerText')}"
            )
            time.sleep(0.03)
        return found

    def press(self, *keys: str) -> None:
        """Press keys in sequence, by their names: Tab, Enter, ArrowRight, ..."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
        texts = {"Enter": "\r", " ": " "}
        for key in keys:
            pressed = {"key": key, "windowsVirtualKeyCode": codes[key], "text": texts.get(key, "")}
            self._send("Input.dispatchKeyEvent", type="keyDown" if key in texts else "rawKeyDown", **pressed)
            self._send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes[key])

    def write(self, text: str) -> None:
        """Type a text at the cursor."""
        self._send("Input.insertText", text=text)

    def drag(self, begin: tuple[float, float], end: tuple[float, float], steps: int = 10) -> None:
        """Move the mouse with its button down, in some steps."""
        places = [tuple(a + (b - a) * k / steps for a, b in zip(begin, end)) for k in range(steps + 1)]
        for k, (x, y) in enumerate(places):
            kind = "mousePressed" if k == 0 else "mouseMoved"
            self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        x, y = end
        self._send("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", clickCount=1)

    def picture(self, path: Path) -> None:
        """Write the whole page as a PNG."""
        shot = self._send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def sheets(self) -> int:
        """Return the number of A4 sheets on which the page is printed."""
        pdf = self._send("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True)["data"]
        return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(pdf)))

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self._send("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._read)
        os.close(self._write)

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer)
                return dict(answer.get("result", {}))

    def _wait_for(self, event: str) -> None:
        while self._receive().get("method") != event:
            pass

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 20)
            assert more, "the browser ended"
            self._rest += more
        first, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(first))
