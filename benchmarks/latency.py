"""CPU milliseconds of one sparse counterfactual from a fitted and from a loaded explainer.

    python -m benchmarks.latency [--other PYTHON] [--people N] [--quick]

Loans, 1,500 rows, a pipeline of scikit-learn with a logistic regression. People are explained one at a time, after a
first one, which learns and compiles; `fitted` by the explainer itself, `bounded` with another constraint in every call,
`loaded` by one that was saved and loaded. `median_ms` is the median of a call, `beside_ms` that beside the model.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.settings import Report, Timed, arguments, emit, interpreters, run_worker


def measure(n_people: int) -> None:
    """Emit the figures of each way for the installed version of mcce."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import mcce

    loans = mcce.datasets.load_loans(1500)
    numbers = StandardScaler(), make_column_selector(dtype_include="number")
    encoder = make_column_transformer(numbers, remainder=OneHotEncoder(handle_unknown="ignore"))
    pipeline = make_pipeline(encoder, LogisticRegression(max_iter=1000)).fit(loans.X, loans.y)
    model = Timed(lambda rows: pipeline.predict_proba(rows)[:, 1])
    people = loans.X[model(loans.X) >= 0.1].head(n_people)
    fixed = ["age", "sex", "defaulted_last_year"]
    fitted = mcce.MCCE(model, decision=(0.0, 0.1), fixed=fixed, random_state=1, n_jobs=1).fit(loans.X)
    fitted.explain(people.iloc[[0]], sparse=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "explainer.mcce"
        fitted.save(path)
        loaded = mcce.load(path, model=model)
    for way, explainer in (("fitted", fitted), ("bounded", fitted), ("loaded", loaded)):
        costs = []
        for i in [0, *range(len(people))]:
            constraints: list[Any] = [mcce.allow("salary", high=80_000.0 + 500.0 * i)] if way == "bounded" else []
            costs.append(model.measure(explainer.explain, people.iloc[[i]], sparse=True, constraints=constraints)[1])
        seconds, of_model, queries, rows = (np.array([cost[name] for cost in costs[1:]]) for name in costs[0])
        emit(
            way=way,
            median_ms=1e3 * np.median(seconds),
            beside_ms=1e3 * np.median(seconds - of_model),
            most_ms=1e3 * seconds.max(),
            queries=queries.mean(),
            rows=rows.mean(),
        )


def main() -> None:
    """Run the benchmark, or one of its workers."""
    parser = arguments(__doc__, "latency")
    parser.add_argument("--other", help="interpreter with another version of mcce")
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--worker", help="(internal)")
    options = parser.parse_args()
    if options.worker:
        measure(json.loads(options.worker))
        return
    report = Report("latency", options)
    for version, python in interpreters(options.other).items():
        people = 3 if options.quick else options.people
        for record in run_worker(python, "benchmarks.latency", ["--worker", json.dumps(people)]):
            report.add(version=version, **record)
    report.write()


if __name__ == "__main__":
    main()
