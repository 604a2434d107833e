"""Answers do not depend on names, order, dates, other factuals, threads, blocks, or the process."""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.explain import problem as problem_module
from tests.explain.tables import people, refused, score

WAYS = [{}, {"sparse": True}]
VISIT = ["salary", "bonus", "total", "savings", "job", "school", "rent", "since"]


def answer(X, factuals, *, model=score, visit=VISIT, fixed=("age",), n_jobs=None, constraints=(), **options):
    explainer = mcce.MCCE(
        model, fixed=list(fixed), visit_sequence=list(visit), constraints=constraints, random_state=4, n_jobs=n_jobs
    )
    return explainer.fit(X).explain(factuals, n_samples=200, **options)


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found.frame, expected.frame)
    pd.testing.assert_frame_equal(found.measures, expected.measures)


@pytest.mark.parametrize("options", WAYS)
def test_names_do_not_matter(options):
    X = people()
    names = {name: f"x{j}" for j, name in enumerate(X.columns)}
    expected = answer(X, refused(X), constraints=["savings <= 2 * salary"], **options)
    renamed = X.rename(columns=names)
    found = answer(
        renamed,
        refused(X).rename(columns=names),
        model=partial(score, names=names),
        visit=[names[name] for name in VISIT],
        fixed=[names["age"]],
        constraints=[f"{names['savings']} <= 2 * {names['salary']}"],
        **options,
    )
    pd.testing.assert_frame_equal(found.frame, expected.frame.rename(columns=names))
    pd.testing.assert_frame_equal(found.measures, expected.measures)


@pytest.mark.parametrize("options", WAYS)
def test_the_order_of_columns_does_not_matter(options):
    X = people()
    turned = X[X.columns[::-1]]
    found = answer(turned, refused(X)[turned.columns], **options)
    expected = answer(X, refused(X), **options)
    pd.testing.assert_frame_equal(found.frame[X.columns], expected.frame)
    pd.testing.assert_frame_equal(found.measures, expected.measures)


@pytest.mark.parametrize("options", WAYS)
def test_a_shift_of_all_dates_does_not_matter(options):
    X, ten_years = people(), pd.Timedelta(days=3652)
    found = answer(
        X.assign(since=X["since"] + ten_years), refused(X).assign(since=refused(X)["since"] + ten_years), **options
    )
    expected = answer(X, refused(X), **options)
    shifted = expected.frame.assign(since=expected.frame["since"] + ten_years)
    pd.testing.assert_frame_equal(found.frame, shifted.astype(found.frame.dtypes))


@pytest.mark.parametrize("options", WAYS)
def test_other_factuals_and_their_order_do_not_matter(options):
    X = people()
    factuals = refused(X, 12)
    together = answer(X, factuals, **options)
    turned = answer(X, factuals.iloc[::-1], **options)
    pd.testing.assert_frame_equal(turned.frame.sort_index(), together.frame.sort_index())
    alone = answer(X, factuals.iloc[[5]], **options)
    pd.testing.assert_frame_equal(alone.frame, together.frame.loc[[factuals.index[5]]])


@pytest.mark.parametrize("options", WAYS)
def test_threads_and_blocks_do_not_matter(options, monkeypatch):
    X = people()
    expected = answer(X, refused(X), **options)
    assert_same(answer(X, refused(X), n_jobs=2, **options), expected)
    monkeypatch.setattr(problem_module, "POOL_BYTES", 40_000)
    assert_same(answer(X, refused(X), **options), expected)


def test_dtype_width_does_not_matter():
    X = people()
    narrow = X.astype({"age": np.int16})
    pd.testing.assert_frame_equal(
        answer(narrow, refused(narrow)).frame.astype({"age": np.int64}), answer(X, refused(X)).frame
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS)
def test_the_process_and_the_day_do_not_matter(options):
    code = f"""
import datetime, time
time.time = lambda: 2e9
from tests.explain.test_invariances import answer, people, refused
X = people()
print(answer(X, refused(X), **{options!r}).frame.to_csv())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    X = people()
    assert run.stdout.strip() == answer(X, refused(X), **options).frame.to_csv().strip()
