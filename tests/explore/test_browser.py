"""The explorer in a browser: sliders, keys, bookmarks, exports, 2,000 rows, and errors.

One server and one browser for all tests; each opens the page anew.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import joblib
import pytest
from sklearn.tree import DecisionTreeClassifier

import mcce
from mcce.explore import ExplorerSession
from mcce.explore.server import make_app
from tests.explore import bank
from tests.marks import nightly, nightly_rows

pytestmark = pytest.mark.slow
uvicorn = pytest.importorskip("uvicorn", reason="needs pip install 'mcce[explore]'")

CARDS = "[...document.querySelectorAll('section .plans:not(.hand + .plans) .card')]"
HAND = "document.querySelector('.hand + .plans .card')"
TEXT = "document.querySelector('.mcce-explorer').innerText"
QUIET = "!document.querySelector('[aria-busy]')"
BUTTON = "[...document.querySelectorAll('{}')].find(each => each.textContent.startsWith('{}'))"

# contrast by the formula of WCAG 2.1 for every element with text: those below 4.5
FAINT = """
(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll(".mcce-explorer *")].filter((e) => e.getClientRects().length && !e.disabled &&
    [...e.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())).map((e) => {
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent.slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
})()
"""
# controls without a name, ids that occur twice, references that lead nowhere
UNNAMED = """
(() => {
  const named = (e) => (e.labels && e.labels.length) || e.getAttribute("aria-label") ||
    document.getElementById(e.getAttribute("aria-labelledby")) || (e.tagName === "BUTTON" && e.textContent.trim());
  const controls = [...document.querySelectorAll("input, select, textarea, button, [role=img], [role=region]")];
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const refers = ["aria-labelledby", "aria-controls", "aria-describedby", "for"];
  const lost = refers.flatMap((name) => [...document.querySelectorAll(`[${name}]`)].map((e) => e.getAttribute(name)))
    .filter((id) => !document.getElementById(id));
  return [...controls.filter((e) => !named(e)).map((e) => e.outerHTML), ...lost,
    ...ids.filter((id, k) => ids.indexOf(id) !== k)];
})()
"""
# elements that overflow their container
OUTSIDE = """
[...document.querySelectorAll(".side, .settings, .results, .card")].flatMap((part) => {
  const edge = part.getBoundingClientRect().right + 0.5;
  return [...part.querySelectorAll("*")].filter((e) => !e.closest(".scroll") && e.getBoundingClientRect().right > edge)
    .map((e) => e.outerHTML.slice(0, 80));
})
"""
SIDEWAYS = "document.documentElement.scrollWidth > innerWidth"


@contextmanager
def running(session):
    """Yield the address of a served session."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(make_app(session, "token", port), log_level="error"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        serving.start()
        try:
            yield f"http://127.0.0.1:{port}/token/"
        finally:
            server.should_exit = True
            serving.join()


@pytest.fixture(scope="module")
def served():
    """The address of a page with 2,000 rows, and its model."""
    model, X = bank.Moody(), bank.people(2000)
    session = ExplorerSession(bank.explainer(model, X.head(400)), X)
    assert session.answer({"ask": "plans", "person": 1})["plans"]  # learned once
    with running(session) as address:
        yield address, model


def opened(browser, address, width=1400, scheme="light", person=1):
    """Open the page and select the first rejected row."""
    browser.open(address, width, scheme=scheme)
    browser.wait("document.querySelectorAll('.people button').length === 50")
    browser.evaluate(f"document.querySelectorAll('.people button')[{person}].click()")
    browser.wait(f"{CARDS}.length >= 1 && {QUIET}")


def column(name):
    return bank.people(3).columns.get_loc(name)


def place_of(browser, script):
    box = browser.evaluate(
        f"(() => {{ const e = {script}; e.scrollIntoView({{block: 'center'}}); "
        "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
    )
    return box


def test_dragged_slider_updates_the_plans(browser, served):
    opened(browser, served[0])
    salary = column("salary")
    browser.evaluate(f"document.querySelector('[data-limits=\"{salary}\"]').click()")
    slider = f"document.querySelector('[data-end=\"{salary}-high\"]')"
    left, top, width, height = place_of(browser, slider)
    browser.evaluate(
        "window.asked = []; const fetched = window.fetch; "
        "window.fetch = (...g) => { if (g[0] === 'ask') asked.push(g[1].body); return fetched(...g); }"
    )
    browser.drag((left + width - 8, top + height / 2), (left + 0.3 * width, top + height / 2), steps=25)
    browser.wait(f"{QUIET} && asked.length > 0")
    time.sleep(0.3)
    browser.wait(QUIET)
    queried = [json.loads(each) for each in browser.evaluate("asked")]
    assert 0 < len(queried) < 25  # not one message per move
    high = queried[-1]["settings"]["features"][str(salary)]["high"]
    stops = browser.evaluate(f"[{slider}.value, {slider}.max].map(Number)")
    assert 0 < stops[0] < stops[1]
    answer = browser.evaluate(
        "fetch('ask', {method: 'POST', headers: {'Content-Type': 'application/json'}, "
        f"body: {json.dumps(json.dumps(queried[-1]))}}}).then(r => r.json())"
    )
    assert all(plan["cells"][salary]["value"] <= high for plan in answer["plans"])
    shown = browser.evaluate(f"{CARDS}.map(each => each.querySelector('.move strong').textContent)")
    assert shown == [plan["changes"][0]["to"] for plan in answer["plans"]]


def test_typed_value_is_judged(browser, served):
    opened(browser, served[0])
    savings = column("savings")
    browser.evaluate(f"document.querySelector('[data-hand=\"{savings}\"]').select()")
    browser.write("400000")
    browser.wait(f"{HAND} && {HAND}.innerText.includes('granted')")
    assert "400,000" in browser.evaluate(f"{HAND}.innerText")
    browser.evaluate(f"document.querySelector('[data-hand=\"{savings}\"]').select()")
    browser.write("1")
    browser.wait(f"{HAND}.innerText.includes('refused')")
    browser.evaluate(f"document.querySelector('[data-hand=\"{savings}\"]').select()")
    browser.write("1.5")
    browser.wait("document.querySelector('.hand + .plans .alert')")
    assert "cannot hold exactly" in browser.evaluate("document.querySelector('.hand + .plans').innerText")


def test_plans_are_bookmarked_and_compared(browser, served):
    opened(browser, served[0])
    browser.evaluate(f"{BUTTON.format('.card button', 'Bookmark')}.click()")
    browser.evaluate("document.querySelectorAll('.people button')[3].click()")
    browser.wait(
        f"{CARDS}.length >= 1 && {QUIET} && document.querySelector('h2[tabindex]').textContent.endsWith(' ' + "
        "document.querySelectorAll('.people button .name')[3].textContent.split(' ').pop())"
    )
    browser.evaluate(f"{BUTTON.format('.card button', 'Bookmark')}.click()")
    heads = browser.evaluate("[...document.querySelectorAll('.bookmarks thead th')].map(each => each.textContent)")
    assert len(heads) == 3
    assert heads[1] != heads[2]
    assert all("Plan 1" in head for head in heads[1:])
    browser.evaluate("document.querySelector('.bookmarks thead button').click()")
    assert browser.evaluate("document.querySelectorAll('.bookmarks thead th').length") == 2


def test_export_equals_the_display(browser, served):
    opened(browser, served[0])
    browser.evaluate("window.kept = []; URL.createObjectURL = (blob) => { kept.push(blob); return '#'; }")
    browser.evaluate(f"{BUTTON.format('.card button', 'Export')}.click()")
    said = browser.wait("document.querySelector('dialog textarea').value")
    assert said.startswith("What would have led to another decision")
    new = browser.evaluate(f"{CARDS}[0].querySelector('.move strong').textContent")
    assert new in said
    for what, words in (
        ("python", "explainer.explain("),
        ("r", "found <- explain("),
        ("row", "plausibility"),
        ("page", "<!doctype"),
    ):
        browser.evaluate(
            f"(() => {{ const e = document.querySelector('dialog select'); e.value = '{what}'; "
            "e.dispatchEvent(new Event('change')); })()"
        )
        browser.wait(f"document.querySelector('dialog textarea').value.includes({json.dumps(words)})")
    browser.evaluate(f"{BUTTON.format('dialog button', 'Download')}.click()")
    assert browser.evaluate("kept[0].text()").startswith("<!doctype html>")
    browser.press("Escape")
    assert not browser.evaluate("document.querySelector('dialog').open")


def test_two_thousand_rows_are_paged_and_searched(browser, served):
    browser.open(served[0], 1400)
    browser.wait("document.querySelectorAll('.people button').length === 50")
    browser.evaluate(
        "document.querySelector('.side select').value = 'all'; "
        "document.querySelector('.side select').dispatchEvent(new Event('change'))"
    )
    browser.wait(f"{TEXT}.includes('2,000 people, page 1 of 40')")
    browser.evaluate(f"{BUTTON.format('.pager button', 'Next')}.click()")
    browser.wait(f"{TEXT}.includes('page 2 of 40')")
    assert browser.evaluate("document.querySelector('.people .name').textContent") == f"{bank.NASTY} 50"
    browser.evaluate("document.querySelector('input[type=search]').focus()")
    browser.write("</script> 1999")
    browser.wait(f"{TEXT}.includes('1 people, page 1 of 1')")
    assert browser.evaluate("document.querySelector('.people .name').textContent") == f"{bank.NASTY} 1999"


def test_executable_names_are_texts(browser, served):
    opened(browser, served[0])
    assert browser.evaluate("document.title") == "mcce explorer"
    assert bank.NASTY in browser.evaluate("document.querySelector('h2[tabindex]').textContent")
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate(
        "performance.getEntriesByType('resource').every(each => each.name.startsWith(location.origin))"
    )


def test_model_error_is_shown(browser, served):
    address, model = served
    opened(browser, address)
    floor = "document.querySelector('.request input[type=range]')"
    try:
        model.raises = True
        browser.evaluate(f"{floor}.value = 0.2; {floor}.dispatchEvent(new Event('input'))")
        browser.wait("document.querySelector('.plans .alert')")
        assert "the scoring service is down" in browser.evaluate("document.querySelector('.plans .alert').textContent")
    finally:
        model.raises = False
    browser.evaluate(f"{floor}.value = 0.1; {floor}.dispatchEvent(new Event('input'))")
    browser.wait(f"{CARDS}.length >= 1 && !document.querySelector('.plans .alert')")


@pytest.mark.nightly
def test_row_without_a_plan_names_the_limit_to_relax(browser, served):
    opened(browser, served[0])
    browser.evaluate("document.querySelectorAll('[data-may]').forEach(each => each.click())")
    browser.wait(BUTTON.format(".why button", "Why not?"))
    browser.evaluate(f"{BUTTON.format('.why button', 'Why not?')}.click()")
    browser.wait(BUTTON.format(".why button", "Lift the limit"))
    browser.evaluate(f"{BUTTON.format('.why button', 'Lift the limit')}.click()")
    browser.wait(f"{CARDS}.length >= 1")


def test_keyboard_suffices(browser, served):
    browser.open(served[0], 1400)
    browser.wait("document.querySelectorAll('.people button').length === 50")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.getAttribute('role')") == "tab"
    browser.press("ArrowRight")
    assert browser.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    assert browser.evaluate(f"{TEXT}.includes('Who has to change more?')")
    browser.press("Home")
    while browser.evaluate("!document.activeElement.closest('.people')"):
        browser.press("Tab")
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    browser.wait(f"{CARDS}.length >= 1 && {QUIET}")
    assert browser.evaluate("document.activeElement.tagName") == "H2"  # the focus moves to the selection
    floor = "document.querySelector('.request input[type=range]')"
    browser.evaluate(f"{floor}.focus()")
    browser.press("ArrowRight")
    assert browser.evaluate(f"{floor}.getAttribute('aria-valuetext')") == "6%"


@pytest.mark.parametrize(
    ("width", "scheme"), [(320, "dark"), *nightly_rows((1400, "light"), (1200, "dark"), (400, "light"))]
)
def test_names_contrast_and_width(browser, served, width, scheme):
    opened(browser, served[0], width, scheme)
    browser.evaluate("document.querySelectorAll('[data-limits]').forEach(each => each.click())")
    browser.evaluate(
        f"{BUTTON.format('.card button', 'Edit by hand')}.click(); {BUTTON.format('.card button', 'Bookmark')}.click()"
    )
    browser.wait(HAND)
    assert browser.evaluate(UNNAMED) == []
    assert browser.evaluate(FAINT) == []
    assert browser.evaluate(OUTSIDE) == []
    assert not browser.evaluate(SIDEWAYS)
    three = browser.evaluate(f"new Set({CARDS}.map(each => Math.round(each.getBoundingClientRect().top))).size")
    assert three == 1 or width < 1000  # side by side


# how many lines each name in the list of people takes
LINES = """
[...document.querySelectorAll(".people .name")].map((name) => {
  const range = document.createRange();
  range.selectNodeContents(name);
  return new Set([...range.getClientRects()].map((line) => Math.round(line.top))).size;
})
"""


@pytest.mark.parametrize("first", [100_000, *nightly(10_000_000, -100_050)])
def test_numeric_id_stays_on_one_line(browser, first):
    X = bank.people(60).rename(index=lambda name: first + int(name.split()[-1]))
    model = bank.explainer(X=X)
    with running(ExplorerSession(model, X)) as address:
        for width in (1300, 400):
            browser.open(address, width)
            browser.evaluate(f"{BUTTON.format('.side option', 'all')}.selected = true")
            browser.evaluate("document.querySelector('.side select').dispatchEvent(new Event('change'))")
            browser.wait(f"document.querySelectorAll('.people button').length === 50 && {QUIET}")
            names = browser.evaluate("[...document.querySelectorAll('.people .name')].map(each => each.textContent)")
            assert names == [f"case {first + k}" for k in range(50)]
            assert browser.evaluate(LINES) == [1] * 50


def test_actions_and_consequences_are_distinguished(browser, served):
    X = bank.people(250)[["age", "education", "salary", "savings", "loan_amount"]]
    graph = "age -> education; age, education -> salary; age, salary -> savings"
    options = {"decision": bank.GRANTED, "fixed": ["age"], "graph": graph, "sampler": "parametric", "random_state": 1}
    session = ExplorerSession(mcce.MCCE(bank.risk, **options).fit(X), X)
    with running(session) as address:
        opened(browser, address)
        browser.evaluate("document.querySelector('[data-recourse]').click()")
        browser.wait(f"{QUIET} && {CARDS}.some(each => each.innerText.includes('of 100 cases, if the graph is right'))")
        roles = browser.evaluate("[...document.querySelectorAll('.plans .role')].map(each => each.textContent)")
        assert {"action", "consequence"} == set(roles)
        assert "usually " in browser.evaluate(f"{CARDS}[0].innerText")
        assert browser.evaluate(UNNAMED) == []
        assert browser.evaluate(FAINT) == []
        assert browser.evaluate(OUTSIDE) == []
    opened(browser, served[0])
    assert browser.evaluate("document.querySelector('[data-recourse]').getClientRects().length") == 0  # without a graph


# a notebook's model as passed by anywidget; its messages go to the server here
NOTEBOOK = """
import("./explorer.js").then((module) => {
  const heard = [];
  const model = {
    on: (name, run) => heard.push([name, run]),
    send: ({ number, message }) => fetch("ask", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message),
    }).then((response) => response.json()).then((answer) =>
      heard.filter(([name]) => name === "msg:custom").forEach(([, run]) => run({ number, answer }))),
  };
  const root = document.createElement("div");
  root.id = "cell";
  document.body.append(root);
  module.default.render({ model, el: root });
})
"""


def test_notebook_shows_the_same(browser, served):
    browser.open(served[0], 1400)
    browser.wait("document.querySelectorAll('.people button').length === 50")
    browser.evaluate(NOTEBOOK)
    browser.wait("document.querySelectorAll('#cell .people button').length === 50")
    browser.evaluate("document.querySelectorAll('#cell .people button')[1].click()")
    browser.wait("document.querySelectorAll('#cell .card').length >= 1")
    assert browser.evaluate(UNNAMED) == []  # two explorers on one page have different ids


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The text of axe-core, which is downloaded for this test and not part of the project."""
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("axe-core comes from npm, which is not installed")
    try:
        packed = subprocess.run(["npm", "pack", "axe-core@4"], cwd=folder, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        packed = None
    if packed is None or packed.returncode:
        pytest.skip("npm cannot fetch axe-core here")
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder, "gztar", **_filter())
    return (folder / "package" / "axe.min.js").read_text("utf-8")


def _filter():
    return {"filter": "data"} if sys.version_info >= (3, 12) else {}


@pytest.mark.parametrize("scheme", ["dark", *nightly("light")])
def test_axe_finds_no_violations(browser, served, axe, scheme):
    opened(browser, served[0], scheme=scheme)
    browser.evaluate("document.querySelectorAll('[data-limits]').forEach(each => each.click())")
    browser.evaluate(f"{BUTTON.format('.card button', 'Bookmark')}.click()")
    run = "axe.run(document).then(found => found.violations.map(each => [each.id, each.nodes[0].html]))"
    browser.evaluate(f"{axe};0")
    assert browser.evaluate(run) == []
    browser.evaluate(f"{BUTTON.format('.card button', 'Export')}.click()")
    browser.wait("document.querySelector('dialog textarea').value")
    assert browser.evaluate(run) == []
    browser.press("Escape")
    if scheme == "dark":
        return  # explaining all people once is enough
    browser.evaluate(
        "document.querySelectorAll('[role=tab]')[1].click(); document.querySelector('.whole button').click()"
    )
    browser.wait("document.querySelectorAll('.whole table').length > 1", 60)
    assert browser.evaluate(run) == []


@pytest.mark.nightly
def test_killed_server_is_reported(browser, tmp_path):
    X = mcce.datasets.load_loans(200).X[["age", "salary", "savings"]]
    model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    mcce.MCCE(model, fixed=["age"], random_state=1).fit(X).save(tmp_path / "bank.mcce")
    joblib.dump(model, tmp_path / "model.joblib")
    X.to_csv(tmp_path / "people.csv", index=False)
    command = [
        sys.executable,
        "-m",
        "mcce",
        "explore",
        "bank.mcce",
        "people.csv",
        "--model",
        "model.joblib",
        "--no-browser",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(mcce.__file__).parents[1])}
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        opened(browser, address, person=0)
        process.send_signal(signal.SIGKILL)
        process.wait()
        browser.wait("document.querySelector('.alert[role=alert]:not([hidden])')", 15)  # without a click
        assert "has ended" in browser.evaluate("document.querySelector('.alert[role=alert]').textContent")
        browser.evaluate("document.querySelectorAll('.people button')[2].click()")
        browser.wait("document.querySelector('.says').textContent.includes('has ended')")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
