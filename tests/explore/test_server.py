"""The server: who may ask, what it hands out, and that it writes nothing."""

import json

import pytest

from mcce.explore.server import MOST_BYTES, make_app
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


def test_the_page_and_its_files_are_handed_out(client):
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


def test_a_message_is_answered(client):
    answer = post(client, {"ask": "people", "page": 0})
    assert answer.status_code == 200
    assert answer.json()["people"][0]["name"] == f"{NASTY} 0"
    assert answer.headers["content-type"] == "application/json"
    assert "did you mean" in post(client, {"ask": "peple"}).json()["error"]


@pytest.mark.parametrize("address", ["/", "/wrong/", "/wrong/explorer.js", "/a-toke/alive", f"/{TOKEN}/../session.py"])
def test_without_the_token_there_is_nothing(client, address):
    assert client.get(address).status_code in (403, 404)
    assert post(client, {"ask": "start"}, address="/wrong/ask").status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8123", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil:8123"]
)
def test_no_other_name_leads_here(client, host):
    assert client.get(f"/{TOKEN}/", headers={"Host": host}).status_code == 421
    assert post(client, {"ask": "start"}, Host=host).status_code == 421


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", f"https://{HOST}", "http://127.0.0.1:9999"])
def test_only_its_own_page_may_ask(client, origin):
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
def test_what_is_no_message_is_refused(client, body, headers, status):
    answer = post(client, body, **headers)
    assert answer.status_code == status
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "POST"])
def test_nothing_else_can_be_done(client, method):
    assert client.request(method, f"/{TOKEN}/", headers={"Origin": f"http://{HOST}"}).status_code == 405
    assert client.request("GET", ASK).status_code == 405


def test_no_message_writes_a_file(client, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"person": refused, "settings": {"draws": 200}}
    for what in ("letter", "page", "row", "python", "r"):
        answer = post(client, {"ask": "export", "what": what, **asked})
        assert answer.json()["text"]
        assert answer.headers["content-type"] == "application/json"
    post(client, {"ask": "edit", "values": {}, **asked})
    assert not list(tmp_path.iterdir())
