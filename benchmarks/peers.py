"""NICE and DiCE beside mcce: the same people, models, fixed features and judges.

    python -m benchmarks.peers --peers PYTHON [--only adult,...] [--people N] [--limit SECONDS] [--quick]

1. For each data set the first people that the network refuses are explained by mcce, sparse and as in the paper, and by
   the peers. NICEx 0.2.3: reward "sparsity", as published, and with the neighbour among training rows with the person's
   own fixed values ("held"). DiCE 0.11: "random" and "genetic", varying the features that are not fixed.
2. The peers need older versions of numpy and pandas, so they run with the interpreter `--peers` (a virtual environment
   after `pip install NICEx dice-ml`). Rows are numbers there, with the codes of levels; the network stays here and
   answers over a pipe. A peer is stopped after the limit of seconds; `asked` counts the people until then.
3. All rows are judged alike (`benchmarks.judging`): means over the people that a method explains, and mean differences
   from sparse mcce, with paired standard errors, over the people that both explain. CPU seconds per person: of all
   (`seconds`) and without the model (`beside_model`); `prepare` is what comes before the first person.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.judging import GAPS, Judge, paired
from benchmarks.settings import DATA, ROOT, Problem, Report, Timed, arguments, make_problem

SPARSE = "mcce, sparse"
OURS = {SPARSE: {"sparse": True}, "mcce, plain": {}}
PEERS = ("NICE", "NICE, held", "DiCE, random", "DiCE, genetic")


def explain_by_mcce(
    score: Callable[[pd.DataFrame], np.ndarray], X: pd.DataFrame, people: pd.DataFrame, how: dict, **options: Any
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the rows of mcce, indexed by person, and their cost."""
    import mcce

    model = Timed(score)
    for _ in range(2):  # the first one compiles
        explainer, of_fit = model.measure(mcce.MCCE(model, random_state=1, **options).fit, X)
        _, of_first = model.measure(explainer.explain, people.head(2), **{**how, "n_samples": 20})
    found, cost = model.measure(explainer.explain, people, **how)
    return found.frame.droplevel("rank"), {
        "seconds": cost["seconds"] / len(people),
        "beside_model": (cost["seconds"] - cost["model"]) / len(people),
        "prepare": of_fit["seconds"] + of_first["seconds"],
    }


def explain_by_peer(problem: Problem, method: str, python: str, limit: float) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the rows of a peer, as numbers, and their cost; its process asks for predictions over a pipe (step 2)."""
    model = Timed(problem.score)
    places = problem.X.columns.get_indexer
    task = {
        "method": method,
        "fixed": places(problem.fixed).tolist(),
        "categorical": places(problem.categorical).tolist(),
        "whole": [i for i, c in enumerate(problem.X) if pd.api.types.is_integer_dtype(problem.X[c].dtype)],
    }
    here, there = Pipe()
    with tempfile.TemporaryDirectory() as folder:
        arrays = {"X": problem.encode(problem.X), "y": problem.y, "factuals": problem.encode(problem.factuals)}
        np.savez(Path(folder) / "arrays.npz", **{name: np.asarray(values) for name, values in arrays.items()})
        (Path(folder) / "task.json").write_text(json.dumps(task))
        command = [python, "-W", "ignore", "-m", "benchmarks.peers", "--worker", folder, "--pipe", str(there.fileno())]
        process = subprocess.Popen(
            command, cwd=ROOT, pass_fds=[there.fileno()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        there.close()
        try:
            records = list(serve(problem, model, here, limit))
        finally:
            process.kill()
            process.wait()
    if not records:
        raise SystemExit(f"{method} ended without an answer in {python}")
    prepared, *answers = records
    rows = {problem.factuals.index[i]: answer["row"] for i, answer in enumerate(answers) if answer["row"]}
    cost = pd.DataFrame(answers, columns=["seconds", "model"]).mean()
    return pd.DataFrame.from_dict(rows, orient="index", columns=problem.X.columns, dtype=float), {
        "asked": len(answers),
        "seconds": cost["seconds"] + cost["model"],
        "beside_model": cost["seconds"],
        "prepare": prepared["seconds"] + prepared["model"],
    }


def serve(problem: Problem, model: Timed, peer: Connection, limit: float) -> Iterator[dict[str, Any]]:
    """Answer a peer's queries until the limit, and yield its records with the seconds of the model for each."""
    before, end = 0.0, time.monotonic() + limit
    while time.monotonic() < end and peer.poll(limit):
        try:
            asked = peer.recv_bytes()
        except EOFError:
            return
        if asked.startswith(b"{"):
            yield {**json.loads(asked), "model": model.seconds - before}
            before = model.seconds
        else:
            codes = np.frombuffer(asked[1:]).reshape(-1, problem.X.shape[1])
            peer.send_bytes(model(problem.decode(pd.DataFrame(codes, columns=problem.X.columns))).tobytes())


# ------------------------------------------------------------------------------------------- in the peers' interpreter


class Remote:
    """The model of the other process, as scikit-learn's classifiers."""

    classes_ = np.array([0, 1])

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Return the probabilities of both responses."""
        self.connection.send_bytes(b"?" + np.ascontiguousarray(np.asarray(rows), dtype=float).tobytes())
        wanted = np.frombuffer(self.connection.recv_bytes())
        return np.column_stack([1.0 - wanted, wanted])


Explain = Callable[[np.ndarray], "list[float] | None"]


def make_nice(model: Remote, task: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Explain:
    """Return a function that explains one person by NICE; "held" restricts the candidates for neighbours."""
    from nice import NICE

    nice = NICE(predict_fn=model.predict_proba, X_train=X.copy(), y_train=y, cat_feat=task["categorical"])
    candidates, fixed = nice.data.candidates_mask, task["fixed"]

    def explain(person: np.ndarray) -> list[float] | None:
        if task["method"].endswith("held"):
            nice.data.candidates_mask = candidates & (X[:, fixed] == person[fixed]).all(axis=1)
            if not (nice.data.candidates_mask & (nice.data.X_train_class == 1)).any():
                return None
        return nice.explain(person[None, :].copy(), target_class=[1])[0].tolist()

    return explain


def make_dice(model: Remote, task: dict[str, Any], X: np.ndarray, y: np.ndarray) -> Explain:
    """Return a function that explains one person by DiCE, with levels as strings and whole numbers as such."""
    import dice_ml

    names = [f"x{i}" for i in range(X.shape[1])]
    types = {**{names[i]: int for i in task["whole"]}, **{names[i]: str for i in task["categorical"]}}
    numbers = [name for i, name in enumerate(names) if i not in task["categorical"]]
    table = pd.DataFrame(X, columns=names).astype(types).assign(wanted=y.astype(int))
    data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name="wanted")
    kind = task["method"].split(", ")[1]
    dice = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=kind)
    mutable = [name for i, name in enumerate(names) if i not in task["fixed"]]
    seed = {"random_seed": 1} if kind == "random" else {}

    def explain(person: np.ndarray) -> list[float] | None:
        query = pd.DataFrame(person[None, :], columns=names).astype(types)
        found = dice.generate_counterfactuals(
            query, total_CFs=1, desired_class=1, features_to_vary=mutable, verbose=False, **seed
        )
        rows = found.cf_examples_list[0].final_cfs_df
        if rows is None or rows.empty:
            return None
        values = rows[names].iloc[0].to_numpy(dtype=float)
        return np.where(np.isclose(values, person, rtol=1e-6, atol=1e-6), person, values).tolist()  # DiCE rounds

    return explain


def work(folder: Path, pipe: int) -> None:
    """Explain person by person."""
    warnings.simplefilter("ignore")
    np.random.seed(1)  # noqa: NPY002  DiCE draws from the global generator
    task = json.loads((folder / "task.json").read_text())
    arrays = np.load(folder / "arrays.npz")
    connection = Connection(pipe)
    begun = time.process_time()
    make = make_nice if task["method"].startswith("NICE") else make_dice
    explain = make(Remote(connection), task, arrays["X"], arrays["y"])
    connection.send_bytes(json.dumps({"seconds": time.process_time() - begun}).encode())
    for person in arrays["factuals"]:
        begun = time.process_time()
        try:
            row = explain(person)
        except Exception:  # DiCE raises if it finds none
            row = None
        connection.send_bytes(json.dumps({"row": row, "seconds": time.process_time() - begun}).encode())


# ---------------------------------------------------------------------------------------------------------- comparison


def compare(report: Report, problem: Problem, judge: Judge, options: Any) -> None:
    """Explain by all methods, judge their rows, and subtract the figures of sparse mcce (step 3)."""
    told = {"decision": problem.decision, "fixed": problem.fixed, "kinds": problem.kinds}
    methods: dict[str, Callable[[], Any]] = {
        name: partial(explain_by_mcce, problem.score, problem.X, problem.factuals, how, **told)
        for name, how in OURS.items()
    }
    methods |= {name: partial(explain_by_peer, problem, name, options.peers, options.limit) for name in PEERS}
    figures: dict[str, pd.DataFrame] = {}
    for method, explain in methods.items():
        with threadpool_limits(1):
            rows, cost = explain()
        row = {"data": problem.name, "method": method, "asked": len(problem.factuals), "explained": len(rows), **cost}
        if len(rows):
            figures[method] = judge.judge(rows if method in PEERS else problem.encode(rows))
            row |= figures[method].mean()
        report.add(**row)
        if len(rows) and method != SPARSE:
            report.rows[-1].update(paired(figures[method][GAPS], figures[SPARSE][GAPS], "sparse"))


def main() -> None:
    """Run the benchmark, or a peer in its own interpreter."""
    parser = arguments(__doc__, "peers")
    parser.add_argument("--peers", help="interpreter that imports nice and dice_ml; without it nothing is compared")
    parser.add_argument("--only", default=",".join(DATA), help="data sets, also loans (%(default)s)")
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds of each peer and data set (%(default)s)")
    parser.add_argument("--worker", type=Path, help="(internal)")
    parser.add_argument("--pipe", type=int, help="(internal)")
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.pipe)
        return
    if not options.peers:
        print("skipped: --peers names no interpreter that has the packages NICEx and dice-ml")
        return
    report = Report("peers", options)
    people, size = (5, 1000) if options.quick else (options.people, None)
    for data in options.only.split(","):
        problem = make_problem(data, "mlp", people, folder=options.data, n_train=size)
        compare(report, problem, Judge(problem, "mlp", 1 if options.quick else 3), options)
    report.write()


if __name__ == "__main__":
    main()
