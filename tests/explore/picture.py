"""The picture of the explorer on the site: `python -m tests.explore.picture` makes vignettes/images/explorer.png."""

from __future__ import annotations

import io
import socket
import tempfile
import threading
from pathlib import Path

import uvicorn
from PIL import Image
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mcce
from mcce.explore import ExplorerSession
from mcce.explore.server import make_app
from tests.browser import Browser, find_browser

PICTURE = Path(__file__).resolve().parents[2] / "vignettes" / "images" / "explorer.png"
COLUMNS = list(mcce.datasets.load_loans(1).X.columns)
WIDTH, HEIGHT, COLOURS = 1400, 1270, 64
NAMES = {
    "labels": {"loan_amount": "loan", "years_employed": "years employed", "defaulted_last_year": "defaulted last year"},
    "units": {"salary": "$", "savings": "$", "loan_amount": "$"},
    "formats": {"prediction": "0.0 %"},
}


def session() -> ExplorerSession:
    loans = mcce.datasets.load_loans(2000)
    numbers = StandardScaler(), make_column_selector(dtype_include="number")
    encode = make_column_transformer(numbers, remainder=OneHotEncoder(handle_unknown="ignore"))
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(loans.X, loans.y)
    granted = mcce.Interval(0, 0.1, closed="left", of=True, label="the loan is granted")
    fixed = ["age", "sex", "defaulted_last_year"]
    explainer = mcce.MCCE(model, decision=granted, fixed=fixed, names=NAMES, random_state=1, n_jobs=1).fit(loans.X)
    return ExplorerSession(explainer, loans.X.rename(index=lambda i: f"case {i}"))


def button(where: str, text: str) -> str:
    return f"[...document.querySelectorAll('{where}')].find(each => each.textContent.startsWith('{text}'))"


def main(person: int = 8) -> None:
    shown = session()
    program = find_browser()
    assert program is not None
    with socket.create_server(("127.0.0.1", 0)) as listening, tempfile.TemporaryDirectory() as profile:
        port = listening.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(make_app(shown, "token", port), log_level="error"))
        running = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        running.start()
        browser = Browser(program, Path(profile))
        try:
            browser.open(f"http://127.0.0.1:{port}/token/", WIDTH)
            browser.wait("document.querySelectorAll('.people button').length === 50", 60)
            browser.evaluate(f"document.querySelectorAll('.people button')[{person}].click()")
            browser.wait("document.querySelectorAll('.card').length >= 3 && !document.querySelector('[aria-busy]')", 60)
            browser.evaluate(f"document.querySelector('[data-limits=\"{COLUMNS.index('employment')}\"]').click()")
            browser.evaluate(f"document.querySelector('[data-limits=\"{COLUMNS.index('salary')}\"]').click()")
            browser.evaluate(f"{button('.card button', 'Edit by hand')}.click()")
            browser.evaluate(f"{button('.card button', 'Bookmark')}.click()")
            browser.wait("document.querySelector('.hand + .plans .card') && !document.querySelector('[aria-busy]')", 60)
            browser.evaluate("window.scrollTo(0, 0)")
            whole = Path(profile) / "whole.png"
            browser.picture(whole)
        finally:
            browser.close()
            server.should_exit = True
            running.join()
        picture = Image.open(io.BytesIO(whole.read_bytes())).convert("RGB").crop((0, 0, WIDTH, HEIGHT))
        picture.quantize(COLOURS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
