"""The R call of an export, run by R with the R package, gives the row of the explorer.

R loads the explainer from the file that Python wrote; the model is an R function.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.explore import ExplorerSession
from tests.explore.bank import send

ROOT = Path(__file__).parents[2]
ODD, LEVELS = 'fylke på "norsk" (it\'s)', ["Ål 'nord'", 'a "b"', "東京", "back\\slash"]

SCRIPT = """
people <- read.csv("people.csv", check.names = FALSE, encoding = "UTF-8", stringsAsFactors = FALSE)
people[["customer since"]] <- as.Date(people[["customer since"]])
people$education <- factor(people$education, c("school", "bachelor", "master"), ordered = TRUE)
score <- function(rows) rows$salary / 100000 + rows$savings / 200000 - rows[["loan amount"]] / 400000
library(mcce)
explainer <- load_mcce("bank.mcce", score, people)
for (file in list.files(pattern = "^call")) {
  source(file, encoding = "UTF-8")
  row[["customer since"]] <- format(row[["customer since"]])
  con <- file(sub("R$", "txt", file), "w", encoding = "UTF-8")
  cells <- vapply(row, function(x) if (is.numeric(x)) sprintf("%a", x) else as.character(x), "")
  writeLines(enc2utf8(cells), con, useBytes = TRUE)
  close(con)
}
"""


def score(rows):
    return rows["salary"] / 100_000 + rows["savings"] / 200_000 - rows["loan amount"] / 400_000


def people(n=400):
    X = mcce.datasets.load_loans(n).X
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": X["age"],
            "education": pd.Categorical(
                np.array(["school", "bachelor", "master"])[rng.integers(3, size=n)],
                ["school", "bachelor", "master"],
                ordered=True,
            ),
            "salary": X["salary"],
            "savings": X["savings"].astype(float) + 0.1,
            "loan amount": X["loan_amount"],
            "customer since": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n) * 37 % 1500, unit="D"),
            ODD: np.array(LEVELS)[rng.integers(4, size=n)],
        }
    ).reset_index(drop=True)


def rscript():
    """Return the command of R, or skip: the R package needs reticulate, as `.ci/r-package` installs it."""
    found = shutil.which("Rscript")
    if found is None:
        pytest.skip("no R on this machine; install the system's package r-base")
    code = 'quit(status = !requireNamespace("reticulate", quietly = TRUE))'
    if subprocess.run([found, "-e", code], capture_output=True, check=False).returncode:
        pytest.skip("no reticulate in R; install the system's package r-cran-reticulate")
    return found


@pytest.mark.nightly
def test_r_call_gives_the_same_row(tmp_path):
    command = rscript()
    X = people()
    decision = mcce.Interval(0.55, np.inf, label="the loan is granted")
    constraints = [f"`{ODD}` != \"Ål 'nord'\" or salary >= 1"]
    fitted = mcce.MCCE(score, decision=decision, fixed=["age"], constraints=constraints, random_state=1, n_jobs=1).fit(
        X, progress=False
    )
    fitted.save(tmp_path / "bank.mcce")
    X.to_csv(tmp_path / "people.csv", index=False)
    session = ExplorerSession(fitted, X)
    refused = np.flatnonzero((score(X) < 0.45).to_numpy())
    at = {name: str(j) for j, name in enumerate(X.columns)}
    settings = [
        {},
        {"floor": 0.2, "plans": 5},
        {"plans": 1, "floor": 0, "features": {at["salary"]: {"high": 250_000.5, "direction": "increase", "hard": 2}}},
        {"features": {at[ODD]: {"levels": [1, 2, 3], "hard": 0.25}, at["savings"]: {"low": 0.1, "hard": 3}}},
        {"diverse": False, "features": {at["customer since"]: {"low": "2019-12-31", "high": "2030-01-01"}}},
        {"features": {at["education"]: {"low": 0, "high": 1}, at["loan amount"]: {"may": False}}, "floor": 0.01},
    ]
    rows = []
    for i, each in enumerate(settings):
        person = int(refused[i])
        options = {"person": person, "settings": {"draws": 300, **each}}
        plans = send(session, "plans", **options)["plans"]
        assert plans, each
        text = send(session, "export", what="r", rank=len(plans), **options)["text"]
        (tmp_path / f"call{i}.R").write_text(text, encoding="utf-8")
        space = {"explainer": fitted, "people": X}
        exec(send(session, "export", what="python", rank=len(plans), **options)["text"], space)
        rows.append(space["row"].iloc[0])
    library = tmp_path / "library"
    library.mkdir()
    install = [
        shutil.which("R"),
        "CMD",
        "INSTALL",
        "--no-docs",
        "--no-test-load",
        f"--library={library}",
        ROOT / "r_bridge/r",
    ]
    subprocess.run(install, check=True, capture_output=True)
    (tmp_path / "run.R").write_text(SCRIPT, encoding="utf-8")
    environment = os.environ | {
        "R_LIBS": os.pathsep.join([str(library), os.environ.get("R_LIBS", "")]),
        "RETICULATE_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(mcce.__file__).parents[1]),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        [command, "--no-init-file", "run.R"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for i, row in enumerate(rows):
        cells = (tmp_path / f"call{i}.txt").read_text(encoding="utf-8").splitlines()
        for name, cell in zip(X.columns, cells, strict=True):
            value = row[name]
            if name == "customer since":
                assert cell == f"{value:%Y-%m-%d}"
            elif isinstance(value, str):
                assert cell == value
            else:
                assert float.fromhex(cell) == value, (settings[i], name)
