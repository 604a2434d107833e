"""The benchmark of constraints runs, and its independent reader finds violations."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from benchmarks import constraints
from benchmarks.settings import SETTINGS, make_problem


@pytest.fixture(scope="module")
def problem():
    (setting,) = (s for s in SETTINGS if s.name == "adult-native")
    return make_problem(replace(setting.tiny(), model="logistic"), None)


@pytest.mark.slow
def test_independent_reader_counts_each_constraint(problem):
    work, education, gain, hours = (problem.X.columns[j] for j in (1, 3, 9, 11))
    some_work = problem.X[work].cat.categories[0]
    own = problem.factuals.iloc[[0]].assign(**{work: some_work, education: 9, gain: 0, hours: 30})
    changes = [
        ({}, 0),
        ({education: 8}, 1),
        ({hours: 51}, 1),
        ({hours: 50}, 0),
        ({gain: 20_001}, 1),
        ({work: constraints.never_used(problem)}, 1),
        ({education: 14, hours: 41}, 1),
        ({education: 14, hours: 40}, 0),
    ]
    for change, expected in changes:
        row = own.assign(**change).set_axis(pd.MultiIndex.from_tuples([(own.index[0], 1)], names=["id", "rank"]))
        one = SimpleNamespace(X=problem.X, factuals=own)
        assert constraints.count_breaking(one, SimpleNamespace(frame=row)) == expected, change


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:X has levels that only one row has")  # the stand-in is small
def test_runs_and_writes(tmp_path, capsys):
    out = tmp_path / "constraints"
    assert constraints.main(["--quick", "--data", str(tmp_path), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "SIMULATED STAND-IN" in said
    for name in ("plain, free", "plain, constrained", "sparse, free", "sparse, constrained"):
        assert re.search(f"^{name} ", said, re.MULTILINE)
    broken = re.findall(r"^(?:plain|sparse), constrained .* (\d+)$", said, re.MULTILINE)
    assert broken == ["0", "0"]
    assert "| plain, constrained |" in out.with_suffix(".md").read_text()
