"""Dask's answers are those of `explain` on the whole table, for any partitions and workers, also when one is killed."""

import os
import signal
import time
from uuid import UUID

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


def salary_score(table):
    return table["salary"] / 100


@pytest.fixture(scope="module")
def explainer():
    return mcce.MCCE(score, fixed=["rent", "school"], visit_sequence="reversed", random_state=1).fit(X)


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
    (tmp_path / "parts").mkdir()
    for i in range(2):  # labels 0 to 5 and 5 to 10, between which Dask sees no overlap
        part = rows().head(6)
        part.index = pd.Index(np.arange(5 * i, 5 * i + 6), name="person")
        part.to_parquet(tmp_path / f"parts/{i}.parquet")
    touching = dd.read_parquet(tmp_path / "parts", calculate_divisions=True)
    assert touching.known_divisions
    calls = [
        ((explainer, rows()), {}, "table is a DataFrame; give a Dask DataFrame"),
        ((score, table), {}, "give a fitted mcce.MCCE"),
        ((explainer, table), {"progress": True}, "progress has no effect on Dask"),
        ((explainer, table), {"n_samples": 0}, "n_samples is 0"),
        ((explainer, table.drop(columns="rent")), {}, "lacks the column"),
        ((explainer, files), {}, "holds 0, 1, .* more than once; give each row a label of its own: table.set_index"),
        ((explainer, touching), {}, "holds 5 more than once"),
    ]
    for arguments, options, message in calls:
        with pytest.raises(InputError, match=message):
            explain(*arguments, **options)


def test_columns_and_labels_of_all_kinds(tmp_path):
    """Texts in columns of objects, periods, intervals of which some are missing, values of several types."""
    table = pd.DataFrame(
        {
            "text": pd.Series(np.where(X["age"] > 40, "old", "young"), dtype=object),
            "month": X["since"].dt.to_period("M"),
            "group": pd.cut(X["age"].mask(X["age"] > 60), [10, 30, 60]),
            "mixed": X["job"].astype(object).replace("nurse", 1),
            "salary": X["salary"],
        }
    )
    explainer = mcce.MCCE(salary_score, decision=(0.3, 1), fixed=["month"], random_state=1).fit(table)
    some = table.head(12).set_index(pd.Index([UUID(int=i) for i in range(12)], name="person"))
    some.iloc[3, 0], some.iloc[5, 3] = "unknown", 2
    with dask.config.set({"dataframe.convert-string": False}):  # otherwise Dask makes texts of objects
        delayed_parts = [dask.delayed(some.iloc[[i, i + 6]]) for i in range(6)]
        answers = explain(explainer, dd.from_delayed(delayed_parts, meta=some.head(0)), n_samples=60)
        found = answers.compute(scheduler="sync")
    whole = explainer.explain(some, n_samples=60)
    texts = whole.frame.droplevel("rank").astype({"month": str, "mixed": str})
    texts["group"] = texts["group"].cat.rename_categories(str).astype(object)
    explained = found[found["code"] == "explained"].loc[texts.index, texts.columns]
    pd.testing.assert_frame_equal(explained, texts, check_dtype=False, check_names=False)
    assert found["code"].eq("unknown_level").sum() == 2
    assert found.loc[UUID(int=3), "text"] == "unknown"
    assert found.loc[UUID(int=5), "mixed"] == "2"
    answers.reset_index(drop=True).to_parquet(tmp_path / "out", compute_kwargs={"scheduler": "sync"})
    assert len(pd.read_parquet(tmp_path / "out")) == len(found)


def test_unknown_values_that_the_training_dtype_cannot_hold():
    table = X[["age", "salary"]].assign(zone=np.arange(len(X)) % 3, owner=X["age"] > 40)
    explainer = mcce.MCCE(salary_score, kinds={"zone": "categorical"}, random_state=1).fit(table)
    for name, value, found in (("zone", 7, 7), ("zone", 2.5, None), ("owner", 2, None)):
        some = table.head(4).assign(**{name: [1, value, 0, 1]})
        answers = explain(explainer, dd.from_pandas(some, npartitions=1), n_samples=20)
        if found is None:
            with pytest.raises(InputError, match=f"{name}.* of table holds {value} .row 1., which .* cannot hold"):
                answers.compute(scheduler="sync")
        else:
            assert answers.compute(scheduler="sync").loc[1, name] == found


def test_a_model_that_is_not_thread_safe():
    room = np.zeros(100_000)

    def model(table):
        room[: len(table)] = score(table)
        time.sleep(0.002)
        return room[: len(table)].copy()

    explainer = mcce.MCCE(model, random_state=1).fit(X)
    answers = explain(explainer, dd.from_pandas(rows(), npartitions=6), n_samples=60)
    check_same(answers.compute(scheduler="threads", num_workers=6), explainer.explain(rows(), n_samples=60))


def test_interrupted_run_continues_with_the_missing_partitions(tmp_path, explainer):
    """The recipe of the module's docstring."""
    answers = explain(explainer, dd.from_pandas(rows(), npartitions=6), n_samples=60)
    folder = tmp_path / "answers"
    parts = {f"{i:05}.parquet": part for i, part in enumerate(answers.to_delayed())}
    written, no_space = [], {"00004.parquet"}

    @dask.delayed
    def write(part, name):
        if name in no_space:
            (folder / f"_{name}").write_bytes(b"half a file")
            raise OSError("no space left on device")
        written.append(name)
        part.to_parquet(folder / f"_{name}", index=True)
        os.replace(folder / f"_{name}", folder / name)

    def run():
        os.makedirs(folder, exist_ok=True)
        tasks = [write(part, name) for name, part in parts.items() if not os.path.exists(folder / name)]
        dask.compute(*tasks, scheduler="sync")

    with pytest.raises(OSError, match="no space"):
        run()
    n_rows = len(pd.read_parquet(folder))  # without the half of a file
    assert n_rows >= len(written)
    assert len(written) < 6
    no_space.clear()
    run()
    assert sorted(written) == list(parts)  # none of them twice
    check_same(pd.read_parquet(folder), explainer.explain(rows(), n_samples=60))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Dask's about its own workers
@pytest.mark.parametrize("n_killed", [1, 2])
def test_killed_workers_of_a_cluster(explainer, n_killed):
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
        for pid in list(workers.values())[:n_killed]:
            os.kill(pid, signal.SIGKILL)
        is_done = [future.done() for future in futures]
        parts = client.gather(futures)
    assert not all(is_done)  # killed in the middle
    check_same(pd.concat(parts), explainer.explain(rows(), **SPARSE))
