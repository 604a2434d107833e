"""Dask's answers are those of `explain` on the whole table, for any partitions and workers, also when one is killed."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError
from tests.explain.tables import people, score

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'mcce[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed: pip install 'mcce[dask]'")

from mcce.distributed import explain  # noqa: E402

# `dask.dataframe` writes this about its own use of pandas
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

X = people()
PLAIN = {"n_samples": 60, "n_counterfactuals": 2}
SPARSE = {**PLAIN, "sparse": True, "constraints": ["savings < 40"]}


def rows(n=16):
    """Return persons of all kinds: refused, granted, with an unknown level, with missing values."""
    table = X.head(n).copy()
    table.index = pd.RangeIndex(100, 3 * n + 100, 3, name="person")
    table.iloc[[5, 6, 7], table.columns.get_loc("job")] = "astronaut"
    return table


@pytest.fixture(scope="module")
def explainer():
    return mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)


@pytest.fixture(scope="module")
def whole(explainer):
    return explainer.explain(rows(), **PLAIN)


def check_same(answers, whole):
    """Require the counterfactuals, measures and codes of a result of `explain`, in the order of the persons."""
    explained = answers[answers["code"] == "explained"]
    assert explained.index.tolist() == whole.frame.index.get_level_values("id").tolist()
    assert explained["rank"].tolist() == whole.frame.index.get_level_values("rank").tolist()
    for table in (whole.frame, whole.measures):
        found = explained[table.columns].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, table.reset_index(drop=True), check_dtype=False)
    others = answers[answers["code"] != "explained"]
    assert others["code"].to_dict() == whole.unexplained["code"].to_dict()
    assert (others["rank"] == 0).all()
    assert set(answers.index) == set(whole.predictions.index)


CASES = [(5, PLAIN), pytest.param(1, SPARSE, marks=pytest.mark.slow), pytest.param(16, SPARSE, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("n_partitions", "options"), CASES)
def test_answers_are_those_of_explain(explainer, n_partitions, options):
    lazy = explain(explainer, dd.from_pandas(rows(), npartitions=n_partitions), **options)
    answers = lazy.compute(scheduler="sync")
    check_same(answers, explainer.explain(rows(), **options))
    assert {"explained", "already", "unknown_level"} <= set(answers["code"])
    assert answers.index.name == "person"
    assert answers.index.is_monotonic_increasing  # the order of the table
    pd.testing.assert_series_equal(answers.dtypes, lazy.dtypes)


def test_unexplained_persons_have_their_own_values(explainer):
    table = rows()
    answers = explain(explainer, dd.from_pandas(table, npartitions=3), n_samples=20).compute(scheduler="sync")
    own = answers[answers["rank"] == 0]
    for name in table:
        expected = table.loc[own.index, name]
        assert ((own[name] == expected) | (own[name].isna() & expected.isna())).all(), name


def test_partitions_without_rows_and_of_unknown_levels_only(explainer):
    table = rows()
    lazy = dd.from_pandas(table, npartitions=16)
    lazy = lazy[lazy["job"] == "astronaut"]
    answers = explain(explainer, lazy, n_samples=20).compute(scheduler="sync")
    assert answers["code"].tolist() == ["unknown_level"] * 3
    assert answers["prediction"].isna().all()


def test_labels_as_predictions(tmp_path):
    def label(table):
        return np.where(score(table) >= 0.5, 1, 0)

    explainer = mcce.MCCE(label, decision=1, fixed=["age"], random_state=1).fit(X)
    answers = explain(explainer, dd.from_pandas(rows(), npartitions=4), n_samples=60)
    answers.to_parquet(tmp_path / "answers", compute_kwargs={"scheduler": "sync"})
    table = pd.read_parquet(tmp_path / "answers")
    assert table.loc[table["code"] == "explained", "prediction"].eq(1).all()
    assert table.loc[table["code"] == "unknown_level", "prediction"].isna().all()


def test_csv_in_and_parquet_out(tmp_path, explainer, whole):
    for i, part in enumerate(np.array_split(np.arange(16), 4)):
        rows().iloc[part].to_csv(tmp_path / f"{i}.csv")
    table = dd.read_csv(str(tmp_path / "*.csv"), parse_dates=["since"]).set_index("person")
    explain(explainer, table, **PLAIN).to_parquet(tmp_path / "out", compute_kwargs={"scheduler": "sync"})
    check_same(dd.read_parquet(tmp_path / "out").compute(scheduler="sync"), whole)


def test_bad_input_raises_before_any_work(explainer, tmp_path):
    table = dd.from_pandas(rows(), npartitions=2)
    rows().to_csv(tmp_path / "0.csv", index=False)
    rows().to_csv(tmp_path / "1.csv", index=False)
    files = dd.read_csv(str(tmp_path / "*.csv"), parse_dates=["since"])
    calls = [
        ((explainer, rows()), {}, "table is a DataFrame; give a Dask DataFrame"),
        ((score, table), {}, "give a fitted mcce.MCCE"),
        ((explainer, table), {"progress": True}, "progress has no effect on Dask"),
        ((explainer, table), {"n_samples": 0}, "n_samples is 0"),
        ((explainer, table.drop(columns="rent")), {}, "lacks the column"),
        ((explainer, files), {}, "holds 0, 1, .* more than once; give each row a label of its own: table.set_index"),
    ]
    for arguments, options, message in calls:
        with pytest.raises(InputError, match=message):
            explain(*arguments, **options)
    twice = dd.from_pandas(rows().set_index(np.repeat(np.arange(8), 2)), npartitions=2)
    with pytest.raises(InputError, match="more than once"):  # within a partition, whose limits Dask knows
        explain(explainer, twice, n_samples=20).compute(scheduler="sync")


def test_interrupted_run_continues_with_the_missing_partitions(tmp_path, explainer):
    """The recipe of the module's docstring."""
    answers = explain(explainer, dd.from_pandas(rows(), npartitions=6), n_samples=60)
    paths = [tmp_path / f"{i:05}.parquet" for i in range(answers.npartitions)]
    written, no_space = [], {paths[4]}

    @dask.delayed
    def write(part, path):
        if path in no_space:
            (tmp_path / f"{path}.part").write_bytes(b"half a file")
            raise OSError("no space left on device")
        written.append(path)
        part.to_parquet(f"{path}.part", index=True)
        os.replace(f"{path}.part", path)

    def run():
        tasks = [write(part, path) for part, path in zip(answers.to_delayed(), paths) if not os.path.exists(path)]
        dask.compute(*tasks, scheduler="sync")

    with pytest.raises(OSError, match="no space"):
        run()
    assert len(written) < 6
    no_space.clear()
    run()
    assert sorted(written) == paths  # none of them twice
    check_same(pd.read_parquet(paths), explainer.explain(rows(), n_samples=60))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask's about its own workers
def test_killed_worker_of_a_cluster(explainer):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'mcce[dask]'")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(silence_logs=50, **options) as cluster, distributed.Client(cluster) as client:
        workers = client.run(os.getpid)
        assert len({*workers.values(), os.getpid()}) == 3
        answers = explain(explainer, dd.from_pandas(rows(), npartitions=16), **SPARSE)
        futures = distributed.futures_of(client.persist(answers))
        finished = distributed.as_completed(futures)
        for _ in range(4):
            next(finished)
        os.kill(next(iter(workers.values())), signal.SIGKILL)
        is_done = [future.done() for future in futures]
        parts = client.gather(futures)
    assert not all(is_done)  # killed in the middle
    check_same(pd.concat(parts), explainer.explain(rows(), **SPARSE))
