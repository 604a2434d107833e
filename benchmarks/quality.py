"""Changes and realism of counterfactuals, by judges that took no part; floors; known processes.

    python -m benchmarks.quality [--only adult,...] [--models mlp,...] [--factuals N] [--floors F,...]
                                 [--other PYTHON] [--known] [--quick]

1. For each data set and model the first factuals are explained by the plain method (`benchmarks.plain`), mcce as in the
   paper, mcce with `sparse=True` at each floor, and a walk as in NICE, free and held to the fixed values
   (`benchmarks.walk`). `--other` adds the same of another version. Factuals themselves are judged too.
2. All rows are judged alike (`benchmarks.judging`): means over the explained factuals. The first table compares with
   the held walk on the factuals that both explain: mean differences with paired standard errors (columns `_se`).
3. `--known`: six processes whose density is known (`benchmarks.known`): share of likely answers, changes and CPU
   seconds at each floor, and of the plain method with draws of each factual's own; standard errors over data seeds.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from benchmarks import plain
from benchmarks.judging import GAPS, Judge, paired
from benchmarks.known import KNOWN
from benchmarks.settings import DATA, Problem, Report, Timed, arguments, emit, interpreters, make_problem, run_worker
from benchmarks.walk import walk

FLOORS = "0.01,0.05,0.1,0.25"
KNOWN_FLOORS = "0,0.05,0.1,0.25"
HELD = "walk, held"
SEEDS = 4


def explain_by_mcce(problem: Problem, floors: list[float], n_samples: int, out: Path) -> None:
    """Explain by the installed version of mcce; write rows, and emit seconds beside the model and queried rows."""
    import mcce

    model = Timed(problem.score)
    explainer = mcce.MCCE(model, decision=problem.decision, fixed=problem.fixed, kinds=problem.kinds, random_state=1)
    explainer.fit(problem.X)
    ways: dict[str, dict[str, Any]] = {"paper": {}}
    ways |= {f"sparse, floor {floor:g}": {"sparse": True, "floor": floor} for floor in floors}
    for way, how in ways.items():
        explainer.explain(problem.factuals.head(2), n_samples=20, **how)  # compiles and learns
        found, cost = model.measure(explainer.explain, problem.factuals, n_samples=n_samples, **how)
        problem.encode(found.frame.droplevel("rank")).to_pickle(out / f"{way}.pkl")
        emit(way=way, beside_model=cost["seconds"] - cost["model"], queried=cost["rows"] / len(problem.factuals))


def explain_all(problem: Problem, options: Any, floors: list[float], n_samples: int) -> Iterator[tuple[str, Any, dict]]:
    """Yield for each method its name, its rows and its cost (step 1)."""
    model = Timed(problem.score)

    def by_plain() -> pd.DataFrame:
        return plain.explain(
            problem.encode(problem.X),
            problem.encode(problem.factuals),
            wanted=lambda codes: model(problem.decode(codes)) >= problem.decision[0],
            fixed=problem.fixed,
            categorical=problem.categorical,
            n_samples=n_samples,
        )[0]

    ways: dict[str, Any] = {"plain": by_plain, HELD: lambda: walk(problem, model, held=True)}
    ways["walk, free"] = lambda: walk(problem, model, held=False)
    for way, work in ways.items():
        rows, cost = model.measure(work)
        cost = {"beside_model": cost["seconds"] - cost["model"], "queried": cost["rows"] / len(problem.factuals)}
        yield way, rows, cost
    yield "factuals", problem.encode(problem.factuals), {"beside_model": 0.0, "queried": 0.0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        joblib.dump(problem, folder / "problem")
        for version, python in interpreters(options.other).items():
            task = {"folder": name, "floors": floors, "n_samples": n_samples}
            for record in run_worker(python, "benchmarks.quality", ["--worker", json.dumps(task)]):
                way = record.pop("way")
                yield f"{way} ({version})", pd.read_pickle(folder / f"{way}.pkl"), record


def compare(report: Report, options: Any, floors: list[float]) -> None:
    """Judge all methods on all problems (steps 1 and 2)."""
    n_factuals, n_samples = (20, 50) if options.quick else (options.factuals, 1000)
    for data in options.only.split(","):
        for model in options.models.split(","):
            size = 1000 if options.quick else None
            problem = make_problem(data, model, n_factuals, folder=options.data, n_train=size)
            judge = Judge(problem, model, 1 if options.quick else 3)
            methods = list(explain_all(problem, options, floors, n_samples))
            figures = {way: judge.judge(rows) for way, rows, _ in methods if len(rows)}
            held = figures.get(HELD)
            for way, rows, cost in methods:
                if not len(rows):
                    continue
                row = {"data": data, "model": model, "method": way, "explained": len(rows)}
                report.add(**row, **figures[way].mean().to_dict(), **cost)
                if held is not None and way != HELD:
                    report.rows[-1].update(paired(figures[way][GAPS], held[GAPS], "held"))


def known(report: Report, options: Any, floors: list[float]) -> None:
    """Measure the known processes (step 3)."""
    task = {"known": True, "quick": options.quick, "floors": floors}
    for version, python in interpreters(options.other).items():
        records = pd.DataFrame(run_worker(python, "benchmarks.quality", ["--worker", json.dumps(task)]))
        for (process, way), group in records.groupby(["process", "way"], sort=False):
            means = group[["likely", "L0", "answers", "seconds"]].mean().to_dict()
            error = group["likely"].sem() if len(group) > 1 else np.nan
            report.add(version=version, process=process, method=way, **means, se=error)


def explain_known(floors: list[float], quick: bool) -> None:
    """Explain refused people of the known processes by the installed version of mcce."""
    import mcce

    n_train, n_cases, seeds = (500, 5, 1) if quick else (3000, 75, SEEDS)
    ways = {
        "plain": {"independent": True},
        **{f"floor {floor:g}": {"sparse": True, "floor": floor} for floor in floors},
    }
    for process in KNOWN:
        for seed in range(seeds):
            X, factuals = process.cases(seed, n_train, n_cases)
            model = Timed(process.score)
            explainer = mcce.MCCE(model, fixed=list(process.fixed), random_state=1).fit(X)
            for way, how in ways.items():
                explainer.explain(factuals.head(2), n_samples=20, **how)
                found, cost = model.measure(explainer.explain, factuals, **how)
                likely = float(process.is_likely(found.frame).mean())
                figures = {"likely": likely, "L0": float(found.measures["L0"].mean()), "answers": len(found)}
                emit(process=process.name, way=way, **figures, seconds=cost["seconds"] - cost["model"])
        real = process.draw(np.random.default_rng(7), 5000)
        emit(process=process.name, way="real rows", likely=float(process.is_likely(real).mean()), answers=5000)


def main() -> None:
    """Run the benchmark, or one of its workers."""
    parser = arguments(__doc__, "quality")
    parser.add_argument("--only", default=",".join(DATA), help="data sets, also loans (%(default)s)")
    parser.add_argument("--models", default="mlp", help="of mlp, forest, boosting, logistic (%(default)s)")
    parser.add_argument("--factuals", type=int, default=300)
    parser.add_argument("--floors", help=f"({FLOORS}; with --known {KNOWN_FLOORS})")
    parser.add_argument("--other", help="interpreter with another version of mcce")
    parser.add_argument("--known", action="store_true", help="known processes instead (step 3)")
    parser.add_argument("--worker", help="(internal)")
    options = parser.parse_args()
    if options.worker:
        task = json.loads(options.worker)
        if task.get("known"):
            explain_known(task["floors"], task["quick"])
        else:
            folder = Path(task["folder"])
            explain_by_mcce(joblib.load(folder / "problem"), task["floors"], task["n_samples"], folder)
        return
    floors = [float(floor) for floor in (options.floors or (KNOWN_FLOORS if options.known else FLOORS)).split(",")]
    report = Report("known" if options.known else "quality", options)
    (known if options.known else compare)(report, options, floors)
    report.write()


if __name__ == "__main__":
    main()
