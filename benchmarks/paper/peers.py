"""DiCE and NICE run live on the models and factuals of Experiment 1, compared with MCCE.

1. Store the problem, its first factuals and the network's weights in a folder (`store`).
2. Run ``peers_worker.py`` on it with the Python that has the peers, under a limit of seconds (`run_peer`).
3. Evaluate the rows as those of MCCE (`benchmarks.paper.measuring.judge`).

NICEx requires numpy below 2 and pandas below 2, DiCE 0.11 pandas below 2, mcce pandas 2.1 or newer. So the peers can
run in a separate environment: ``--peers-python`` or MCCE_PEERS_PYTHON names its Python.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.measuring import explain, judge
from benchmarks.paper.options import Options
from benchmarks.paper.problems import Case
from benchmarks.settings import Problem

TITLES = {
    "dice-random": "DiCE, random",
    "dice-genetic": "DiCE, genetic",
    "dice-kdtree": "DiCE, kdtree",
    "nice": "NICE, sparsity",
    "nice-fixed": "NICE, same fixed values",
}
PEERS = tuple(TITLES)
GRACE = 20.0  # seconds beyond the limit, for a slow start or a factual that does not finish


def compare(case: Case, options: Options) -> Iterator[dict[str, Any]]:
    """Yield the figures of MCCE and of each peer on the first factuals of a case."""
    problem = replace(case.problem, factuals=case.problem.factuals.iloc[: options.peers_factuals])
    found, seconds = explain(problem, options.samples)
    n = len(problem.factuals)
    yield {
        "data": case.rows.name,
        "method": "mcce",
        "asked": n,
        **judge(problem, found, seconds, manifold=True),
        "seconds_per_factual": seconds["total"] / n,
    }
    for method in options.peers:
        options.write_line(f"{case.rows.name}: {TITLES[method]}, at most {options.peers_limit:g} s")
        yield {"data": case.rows.name, "method": TITLES[method], **_run_and_judge(case, problem, method, options)}


@dataclass(frozen=True)
class Answers:
    """The answers of a peer: its rows by factual, the number of queried factuals, seconds, version, and errors."""

    rows: pd.DataFrame
    n_queried: int
    seconds: float
    version: str
    why: str


def query_peer(case: Case, problem: Problem, method: str, options: Options) -> Answers:
    """Store the problem, run the peer on it and read its answers (steps 1 and 2)."""
    with tempfile.TemporaryDirectory() as name:
        store(case, problem, Path(name))
        lines, why = run_peer(Path(name), method, options)
    head = next((line for line in lines if "prepared" in line), None)
    answers = [line for line in lines if "place" in line]
    if head is None or not answers:
        return Answers(problem.X.iloc[:0], 0, 0.0, "", why or "no answer within the limit")
    rows = {problem.factuals.index[line["place"]]: line["row"] for line in answers if line["row"]}
    reasons = pd.Series([line["why"] for line in answers if line["why"]], dtype=object)
    return Answers(
        pd.DataFrame.from_dict(rows, orient="index", columns=problem.X.columns),
        len(answers),
        head["prepared"] + sum(line["seconds"] for line in answers),
        head["version"],
        "" if reasons.empty else f"{len(reasons)}: {reasons.mode()[0]}",
    )


def _run_and_judge(case: Case, problem: Problem, method: str, options: Options) -> dict[str, Any]:
    answer = query_peer(case, problem, method, options)
    if not answer.n_queried:
        return {"asked": 0, "N_CE": 0, "why": answer.why}
    answered = replace(problem, factuals=problem.factuals.iloc[: answer.n_queried])
    figures = {"N_CE": 0, "n_test": answer.n_queried}
    if len(answer.rows):
        figures = judge(answered, answer.rows, answer.seconds, manifold=True)
    return {
        "version": answer.version,
        "asked": answer.n_queried,
        **figures,
        "seconds_per_factual": answer.seconds / answer.n_queried,
        "why": answer.why,
    }


def store(case: Case, problem: Problem, folder: Path) -> None:
    """Write a problem in a format readable without mcce and scikit-learn."""
    scaler, network = case.model[0], case.model[-1]
    if case.rows.preparation.unit:
        shift, factor = scaler.data_min_, scaler.scale_
    else:
        shift, factor = scaler.mean_, 1 / scaler.scale_
    layers = {f"weights{k}": w for k, w in enumerate(network.coefs_)}
    layers |= {f"biases{k}": b for k, b in enumerate(network.intercepts_)}
    np.savez(
        folder / "problem.npz",
        X=problem.X.to_numpy(dtype=float),
        y=case.rows.y,
        factuals=problem.factuals.to_numpy(dtype=float),
        shift=shift,
        factor=factor,
        n_layers=len(network.coefs_),
        **layers,
    )
    stored = {
        "columns": list(problem.X.columns),
        "fixed": problem.fixed,
        "categorical": problem.categorical,
        "whole": [c for c in problem.X.columns if pd.api.types.is_integer_dtype(problem.X[c].dtype)],
    }
    (folder / "problem.json").write_text(json.dumps(stored), encoding="utf-8")


def run_peer(folder: Path, method: str, options: Options) -> tuple[list[dict[str, Any]], str]:
    """Return the lines that the worker printed, and its last message if it failed or was stopped."""
    worker = Path(__file__).with_name("peers_worker.py")
    command = [options.peers_python, str(worker), str(folder), method, str(options.peers_limit)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as caught:
        try:
            code = subprocess.run(
                command, stdout=out, stderr=caught, timeout=options.peers_limit + GRACE, check=False
            ).returncode
            why = ""
        except subprocess.TimeoutExpired:
            code, why = 0, f"stopped {GRACE:g} s after the limit"
        out.seek(0)
        caught.seek(0)
        lines, errors = out.read().splitlines(), caught.read().strip().splitlines()
    if code:
        why = (errors or ["no message"])[-1]
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")], why
