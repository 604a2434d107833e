"""A process to be killed: for each line of its input, a folder, it forks one that explains into it.

It says the number of the forked process when that is begun, and how it ended. Fitting once and forking makes a kill
cheap; what is killed is a process of its own.
"""

from __future__ import annotations

import os
import sys

from tests.batches.problem import explainer

SETTINGS = {"id": "who", "batch_size": 6, "n_samples": 40}


def main(source: str) -> None:
    asked = explainer()
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            asked.explain_batches(source, line.strip(), **SETTINGS)
            os._exit(0)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(status, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
