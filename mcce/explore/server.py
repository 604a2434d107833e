"""The explorer in a browser: a small server on this machine.

It listens on 127.0.0.1 under addresses that begin with a secret token. `Host` and `Origin` must be this server's (DNS
rebinding), messages are JSON of bounded length, and the page may load nothing from elsewhere (`POLICY`). The server and
its answers run in daemon threads, so that an interrupt does not wait for them.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.resources import files
from typing import Any

from mcce.base.checks import check_count
from mcce.exceptions import InputError
from mcce.explore.session import ExplorerSession

STATIC = files("mcce.explore") / "static"
HERE = "127.0.0.1"
MOST_BYTES = 1_000_000  # length of a message
CHECK, STOP = 0.5, 2.0  # seconds between checks of the server thread, and to wait for its end
POLICY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FILES = {
    "": ("index.html", "text/html"),
    "explorer.js": ("explorer.js", "text/javascript"),
    "explorer.css": ("explorer.css", "text/css"),
}


def make_app(session: ExplorerSession, token: str, port: int) -> Any:
    """Return the application (ASGI) that answers the messages of a page, for a server on this port."""
    applications, responses = _needed("starlette.applications"), _needed("starlette.responses")
    routing = _needed("starlette.routing")
    run_in_threadpool = _needed("starlette.concurrency").run_in_threadpool
    disconnected = _needed("starlette.requests").ClientDisconnect
    hosts = {f"{name}:{port}" for name in (HERE, "localhost")}
    origins = {f"http://{host}" for host in hosts}

    def text(status: int, words: str) -> Any:
        return responses.PlainTextResponse(words, status, headers=POLICY)

    def refusal(request: Any) -> Any:
        """Return the refusal of a request; None if it is accepted."""
        if request.headers.get("host") not in hosts:
            return text(421, "this server answers requests to its own address only.")
        origin = request.headers.get("origin")
        if (origin is not None or request.method == "POST") and origin not in origins:
            return text(403, "only pages of this server are answered.")
        if not secrets.compare_digest(request.path_params.get("token", "").encode(), token.encode()):
            return text(403, "the token of this address is wrong; use the address that mcce explore printed.")
        return None

    async def page(address: str, request: Any) -> Any:
        name, kind = FILES[address]
        return refusal(request) or responses.Response((STATIC / name).read_bytes(), media_type=kind, headers=POLICY)

    async def alive(request: Any) -> Any:
        return refusal(request) or responses.Response(status_code=204, headers=POLICY)

    async def ask(request: Any) -> Any:
        refused = refusal(request)
        if refused is not None:
            return refused
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return text(415, "a message must be JSON.")
        body = b""
        try:
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    return text(413, "the message is too long.")
        except disconnected:
            return text(400, "the client has disconnected.")
        try:
            message = json.loads(body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return text(400, "the message is not valid JSON.")
        return responses.JSONResponse(await run_in_threadpool(session.answer, message), headers=POLICY)

    async def nothing(request: Any, error: Any) -> Any:
        return text(error.status_code, "there is nothing here.")

    def route(path: str, answer: Any, method: str = "GET") -> Any:
        return routing.Route(f"/{{token}}/{path}", answer, methods=[method])

    return applications.Starlette(
        routes=[
            *(route(name, partial(page, name)) for name in FILES),
            route("alive", alive),
            route("ask", ask, "POST"),
        ],
        exception_handlers={404: nothing, 405: nothing},
    )


def serve(session: ExplorerSession, port: int = 0, announce: Callable[[str], None] = print) -> bool:
    """Serve the explorer until it is interrupted; return whether all answers were finished by then.

    `announce` is called with the address when the server listens. Port 0 selects a free port. An unfinished answer is
    abandoned: it runs in a daemon thread until it or the process ends.
    """
    uvicorn = _needed("uvicorn")
    token = secrets.token_urlsafe(24)
    check_count(port, "port", least=0, most=65_535)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HERE, port))
            listening.listen()
        except OSError as error:
            raise InputError(
                f"port {port} is not free ({error.strerror}); give another one, or leave it out."
            ) from error
        port = listening.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(make_app(session, token, port), log_level="error", access_log=False))
        running = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        running.start()
        try:
            announce(f"http://{HERE}:{port}/{token}/")
            while running.is_alive():
                running.join(CHECK)  # without a timeout, Windows does not interrupt it
        except KeyboardInterrupt:
            pass
        finally:
            server.should_exit = True
            running.join(STOP)
    return not running.is_alive()


def _needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"the explorer in a browser needs {name.partition('.')[0]}, which is not installed; get it by pip install "
            "'mcce[explore]'."
        ) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
