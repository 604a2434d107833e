"""The server: access control, served files, no writing, start and stop."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import joblib
import pytest

import mcce
from mcce.explore.server import MOST_BYTES, make_app, serve
from tests.explore.bank import NASTY

testclient = pytest.importorskip("starlette.testclient", reason="needs pip install 'mcce[explore]' httpx")

TOKEN, HOST = "a-token", "127.0.0.1:8123"
ASK = f"/{TOKEN}/ask"


@pytest.fixture(scope="module")
def client(session):
    return testclient.TestClient(make_app(session, TOKEN, 8123), base_url=f"http://{HOST}")


def post(client, message, address=ASK, **headers):
    given = {"Origin": f"http://{HOST}", "Content-Type": "application/json", **headers}
    body = message if isinstance(message, (str, bytes)) else json.dumps(message)
    return client.post(address, content=body, headers={name: text for name, text in given.items() if text})


def test_page_and_its_files_are_served(client):
    page = client.get(f"/{TOKEN}/")
    assert page.status_code == 200
    assert "explorer.js" in page.text
    for name, kind in (("explorer.js", "text/javascript"), ("explorer.css", "text/css")):
        file = client.get(f"/{TOKEN}/{name}")
        assert file.status_code == 200
        assert file.headers["content-type"].startswith(kind)
        assert "http://www.w3.org/2000/svg" in file.text or "http" not in file.text  # nothing is loaded from elsewhere
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"
    assert client.get(f"/{TOKEN}/alive").status_code == 204


def test_message_is_answered(client):
    answer = post(client, {"ask": "people", "page": 0})
    assert answer.status_code == 200
    assert answer.json()["people"][0]["name"] == f"{NASTY} 0"
    assert answer.headers["content-type"] == "application/json"
    assert "did you mean" in post(client, {"ask": "peple"}).json()["error"]


@pytest.mark.parametrize("address", ["/", "/wrong/", "/wrong/explorer.js", "/a-toke/alive", f"/{TOKEN}/../session.py"])
def test_requests_without_the_token_are_rejected(client, address):
    assert client.get(address).status_code in (403, 404)
    assert post(client, {"ask": "start"}, address="/wrong/ask").status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8123", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil:8123"]
)
def test_other_host_names_are_rejected(client, host):
    assert client.get(f"/{TOKEN}/", headers={"Host": host}).status_code == 421
    assert post(client, {"ask": "start"}, Host=host).status_code == 421


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", f"https://{HOST}", "http://127.0.0.1:9999"])
def test_other_origins_are_rejected(client, origin):
    assert post(client, {"ask": "start"}, Origin=origin).status_code == 403
    assert post(client, {"ask": "people"}, Origin="http://localhost:8123").status_code == 200


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("{", {}, 400),
        ('{"ask": NaN}', {}, 400),
        ("[" * 100_000, {}, 400),
        (b"\xff", {}, 400),
        ("{}", {"Content-Type": "text/plain"}, 415),
        (" " * (MOST_BYTES + 1), {}, 413),
    ],
)
def test_invalid_messages_are_rejected(client, body, headers, status):
    answer = post(client, body, **headers)
    assert answer.status_code == status
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "POST"])
def test_other_requests_are_rejected(client, method):
    assert client.request(method, f"/{TOKEN}/", headers={"Origin": f"http://{HOST}"}).status_code == 405
    assert client.request("GET", ASK).status_code == 405


@pytest.mark.slow
def test_no_message_writes_a_file(client, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"person": refused, "settings": {"draws": 200}}
    for what in ("letter", "page", "row", "python", "r"):
        answer = post(client, {"ask": "export", "what": what, **options})
        assert answer.json()["text"]
        assert answer.headers["content-type"] == "application/json"
    post(client, {"ask": "edit", "values": {}, **options})
    assert not list(tmp_path.iterdir())


def test_address_is_printed_when_the_server_answers(session):
    pytest.importorskip("uvicorn", reason="needs pip install 'mcce[explore]'")
    opened = []

    def open_at_once(address):
        opened.append(urlopen(address, timeout=60).status)
        raise KeyboardInterrupt

    assert serve(session, announce=open_at_once)
    assert opened == [200]


def test_unusable_port_raises(session):
    pytest.importorskip("uvicorn", reason="needs pip install 'mcce[explore]'")
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(mcce.InputError, match="is not free"):
        serve(session, taken.getsockname()[1])
    with pytest.raises(mcce.InputError, match="port is 65536; it must be a whole number of at least 0 and at most 655"):
        serve(session, 65_536)


BLOCKING = """
import pathlib, threading

class Blocking:
    def predict(self, rows):
        if pathlib.Path("block").exists():
            pathlib.Path("blocked").touch()
            threading.Event().wait()
        return rows["salary"] > 40_000
"""


@pytest.fixture
def explore(tmp_path):
    """Start `mcce explore` with a model that never answers once the file `block` exists."""
    pytest.importorskip("uvicorn", reason="needs pip install 'mcce[explore]'")
    (tmp_path / "blocking.py").write_text(BLOCKING, "utf-8")
    X = mcce.datasets.load_loans(200).X[["age", "salary", "savings"]]
    mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X).save(tmp_path / "bank.mcce")
    X.to_csv(tmp_path / "people.csv", index=False)
    path = os.pathsep.join([str(Path(mcce.__file__).parents[1]), str(tmp_path)])
    sys.path.insert(0, str(tmp_path))
    try:
        from blocking import Blocking  # type: ignore[import-not-found]

        joblib.dump(Blocking(), tmp_path / "model.joblib")
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("blocking", None)
    command = ["explore", "bank.mcce", "people.csv", "--model", "model.joblib", "--no-browser"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mcce", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def begin_post(address, body, length=None):
    """Send a message, or the beginning of one, and return the connection."""
    host, token = re.fullmatch(r"http://(.*?)/(.*)/", address).groups()
    head = {"Host": host, "Origin": f"http://{host}", "Content-Type": "application/json"}
    lines = [f"POST /{token}/ask HTTP/1.1", *(f"{name}: {text}" for name, text in head.items())]
    lines.append(f"Content-Length: {len(body) if length is None else length}")
    name, port = host.split(":")
    connection = socket.create_connection((name, int(port)))
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
    return connection


def post_to(address, message):
    origin = re.match("http://[^/]*", address)[0]
    headers = {"Origin": origin, "Content-Type": "application/json"}
    with urlopen(Request(address + "ask", json.dumps(message).encode(), headers)) as answer:
        return json.load(answer)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="an interrupt is sent otherwise")
def test_interrupt_does_not_wait_for_an_answer(explore, tmp_path):
    process, address = explore
    (tmp_path / "block").touch()
    with begin_post(address, json.dumps({"ask": "start"})):
        while not (tmp_path / "blocked").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert all(line.startswith("mcce: ") for line in said.splitlines())  # no traceback


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="an interrupt is sent otherwise")
def test_clients_that_disconnect_leave_no_traceback(explore):
    process, address = explore
    begin_post(address, "{", length=1000).close()
    begin_post(address, json.dumps({"ask": "plans", "person": 0})).close()
    assert post_to(address, {"ask": "people"})["total"] == 200
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert all(line.startswith("mcce: ") for line in said.splitlines())
