"""Speed of mcce beside the plain method and another version, in one run, with one thread.

    python -m benchmarks.speed [--only adult,...] [--other PYTHON] [--rounds N] [--quick]

1. A process loads the problem (data, network and fixed features of the paper, K = 1,000, 1,000 factuals, 200 of German
   Credit; `adult-forest`: a forest of 200 trees), and runs the plain method (`benchmarks.plain`) and mcce: `fit` and
   `explain` from frame to frame. A first run, which compiles, is not counted. CPU seconds; the least of the rounds.
   `ratio` is the plain method's time over mcce's, both with the model.
2. Sparse: CPU seconds beside the model for all factuals, after the first sparse call, whose learning of score and
   relations is in `learning`; queries, and rows of the model per person; changes per answer.
3. `two_threads`: seconds of the clock with one thread over those with two (`n_jobs`), of the same work.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib

from benchmarks import plain
from benchmarks.settings import DATA, Problem, Report, Timed, arguments, emit, interpreters, make_problem, run_worker

SETTINGS = (*DATA, "adult-forest")
FACTUALS = {"german": 200}


def measure_plain(problem: Problem, n_samples: int) -> None:
    """Emit the CPU seconds of the plain method."""
    model = Timed(problem.score)

    def work() -> Any:
        return plain.explain(
            problem.encode(problem.X),
            problem.encode(problem.factuals),
            wanted=lambda codes: model(problem.decode(codes)) >= problem.decision[0],
            fixed=problem.fixed,
            categorical=problem.categorical,
            n_samples=n_samples,
        )[0]

    rows, cost = model.measure(work)
    own = problem.encode(problem.factuals.loc[rows.index])
    emit(method="plain", total=cost["seconds"], model=cost["model"], L0=float((rows != own).sum(axis=1).mean()))


def measure_mcce(problem: Problem, n_samples: int) -> None:
    """Emit the CPU seconds of the installed version of mcce."""
    import mcce

    model = Timed(problem.score)

    options = {"decision": problem.decision, "fixed": problem.fixed, "kinds": problem.kinds, "random_state": 1}
    people = problem.factuals
    for _ in range(2):  # the first one compiles
        explainer, of_fit = model.measure(mcce.MCCE(model, **options).fit, problem.X)
        found, of_explain = model.measure(explainer.explain, people, n_samples=n_samples)
    fitted, explained = of_fit["seconds"], of_explain["seconds"]

    def both(n_jobs: int) -> None:
        mcce.MCCE(model, **options, n_jobs=n_jobs).fit(problem.X).explain(people, n_samples=n_samples)

    def sparse(n_jobs: int) -> None:
        explainer.set_params(n_jobs=n_jobs).explain(people, n_samples=n_samples, sparse=True)

    emit(
        method="mcce",
        total=fitted + explained,
        model=of_fit["model"] + of_explain["model"],
        fit=fitted,
        explain=explained,
        L0=float(found.measures["L0"].mean()),
        two_threads=gain(both),
    )
    _, first = model.measure(explainer.explain, people.head(1), n_samples=20, sparse=True)
    found, cost = model.measure(explainer.explain, people, n_samples=n_samples, sparse=True)
    emit(
        method="mcce, sparse",
        total=cost["seconds"],
        model=cost["model"],
        beside_model=cost["seconds"] - cost["model"],
        learning=first["seconds"] - first["model"],
        queries=cost["queries"],
        rows_per_person=cost["rows"] / len(people),
        L0=float(found.measures["L0"].mean()),
        two_threads=gain(sparse),
    )


def gain(work: Callable[[int], None]) -> float:
    """Return the seconds of the clock with one thread over those with two."""
    seconds = []
    for n_jobs in (1, 2):
        begun = time.perf_counter()
        work(n_jobs)
        seconds.append(time.perf_counter() - begun)
    return seconds[0] / seconds[1]


def main() -> None:
    """Run the benchmark, or one of its workers."""
    parser = arguments(__doc__, "speed")
    parser.add_argument("--only", default=",".join(SETTINGS), help="settings (%(default)s)")
    parser.add_argument("--other", help="interpreter with another version of mcce, measured in turns")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each; the least time counts (%(default)s)")
    parser.add_argument("--worker", help="(internal)")
    options = parser.parse_args()
    if options.worker:
        task = json.loads(options.worker)
        problem = joblib.load(task["problem"])
        (measure_plain if task["plain"] else measure_mcce)(problem, task["n_samples"])
        return
    report = Report("speed", options)
    for setting in options.only.split(","):
        data, _, model = setting.partition("-")
        n = 20 if options.quick else FACTUALS.get(data, 1000)
        size = 1000 if options.quick else None
        problem = make_problem(data, model or "mlp", n, folder=options.data, n_train=size)
        with tempfile.TemporaryDirectory() as folder:
            task = {"problem": str(Path(folder) / "problem"), "n_samples": 50 if options.quick else 1000}
            joblib.dump(problem, task["problem"])
            run_setting(report, setting, task, options)
    report.write()


def run_setting(report: Report, setting: str, task: dict[str, Any], options: Any) -> None:
    """Measure one setting, all versions in turns, and report the fastest of the rounds."""
    fastest: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(1 if options.quick else options.rounds):
        runs = [("plain", next(iter(interpreters(None).values())), True)]
        runs += [(version, python, False) for version, python in interpreters(options.other).items()]
        for version, python, is_plain in runs:
            arguments = ["--worker", json.dumps({**task, "plain": is_plain})]
            for record in run_worker(python, "benchmarks.speed", arguments):
                key = (version, record.pop("method"))
                if key not in fastest or record["total"] < fastest[key]["total"]:
                    fastest[key] = record
    reference = fastest["plain", "plain"]["total"]
    for (version, method), record in fastest.items():
        ratio = {"ratio": reference / record["total"]} if method == "mcce" else {}
        report.add(setting=setting, version=version, method=method, **record, **ratio)


if __name__ == "__main__":
    main()
