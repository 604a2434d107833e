"""A process that starts other processes and kills them.

For each line of its input, a folder and a number of seconds, it forks a process that explains into that folder, kills
it after these seconds (never if there is no number), and prints the signal that ended it, 0 for none, and the
duration.
Fitting once and forking makes a kill cheap.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from tests.batches.problem import explainer

SETTINGS = {"id": "who", "batch_size": 8, "n_samples": 20}


def main(source: str) -> None:
    fitted = explainer()
    print("ready", flush=True)
    for line in sys.stdin:
        folder, *seconds = line.split()
        begun = time.perf_counter()
        pid = os.fork()
        if not pid:
            fitted.explain_batches(source, folder, **SETTINGS)
            os._exit(0)
        if seconds:
            time.sleep(float(seconds[0]))
            os.kill(pid, signal.SIGKILL)  # the id of an ended process stays valid until `wait`
        _, status = os.waitpid(pid, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -status, time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
