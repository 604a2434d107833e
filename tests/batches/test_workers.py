"""A Dask cluster of two processes, one of which is killed, writes the same bytes."""

import os
import signal
import threading

import joblib
import pytest

from tests.batches.problem import ROWS, SETTINGS, explainer, written

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'mcce[cluster]'")


@pytest.mark.filterwarnings("ignore")  # warnings of Dask about its own workers
def test_killed_worker_of_a_cluster(tmp_path):
    call = SETTINGS | {"batch_size": 3}
    explainer().explain_batches([ROWS], tmp_path / "alone", **call)
    out = tmp_path / "out"
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(silence_logs=50, **options) as cluster, distributed.Client(cluster) as client:
        workers = client.run(os.getpid)
        assert len({*workers.values()} - {os.getpid()}) == 2
        finished, ended = [], threading.Event()

        def kill_one():
            while len(finished) < 5 and not ended.wait(0.01):
                finished[:] = out.glob("parts/*.json")
            os.kill(next(iter(workers.values())), signal.SIGKILL)

        killer = threading.Thread(target=kill_one)
        killer.start()
        try:
            with joblib.parallel_config("dask"):
                explainer().explain_batches([ROWS], out, **call)
        finally:
            ended.set()
            killer.join()
        assert 5 <= len(finished) < 40  # killed before the end
        kept = [plugin for plugin in client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.worker_plugins])]
        assert not [name for name in kept if name.startswith("mcce-")]
    assert written(out) == written(tmp_path / "alone")
