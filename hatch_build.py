"""Put compiled kernels into the wheel if HATCH_BUILD_HOOKS_ENABLE=true: its first use compiles nothing.

A new process fits the default chain to a table without and with missing values and explains rows, with kernels compiled
for the baseline CPU of the platform. The options of `explain` use no other kernels; other samplers do, and compile them
at first use. If compiling fails, the wheel is built without kernels. An editable install contains none.

The hook is off by default. In an isolated environment `pip install .` has to install numba and all other requirements
twice, which takes longer than compiling at first use.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

BASELINE = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_INTEL_SVML": "1"}


def compile_kernels(folder: Path) -> None:
    """Write the kernels that common calls use into a folder."""
    import numpy as np
    from numba.core.dispatcher import Dispatcher
    from sklearn.ensemble import HistGradientBoostingClassifier

    import mcce
    from mcce.base.compiling import pack
    from mcce.distances.measures import gower

    loans = mcce.datasets.load_loans()
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0).fit(loans.X, loans.y)
    fixed = ["age", "sex", "defaulted_last_year"]
    refused = model.predict_proba(loans.X)[:, 1] >= 0.1
    gaps = loans.X.mask(np.random.default_rng(1).random(loans.X.shape) < 0.02)
    for table in (loans.X, gaps):
        explainer = mcce.MCCE(model, decision=mcce.Interval(0, 0.1, of=True), fixed=fixed, random_state=1)
        explainer.fit(table)
        explainer.explain(table[refused].head(20))
        explainer.explain(table[refused].head(20), sparse=True)
    schema = explainer.generator_.schema_
    rows = schema.encode(loans.X.head(2)).matrix
    gower(schema.features)._measure(rows, rows, np.arange(2), np.arange(1, 3))  # explain needs it if few rows are valid
    folder.mkdir()
    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    written = pack([each for each in kernels if not each.targetoptions.get("no_cpython_wrapper")], folder)
    print(f"mcce: {written} compiled kernels")


if __name__ == "__main__":
    compile_kernels(Path(sys.argv[1]))
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class KernelHook(BuildHookInterface):
        """Compile the kernels before a wheel is built."""

        def initialize(self, version: str, build_data: dict) -> None:
            """Compile the kernels and add their folder to the wheel."""
            if version == "editable":
                return
            self.work = TemporaryDirectory()
            folder = Path(self.work.name, "kernels")
            path = os.pathsep.join(filter(None, [self.root, os.environ.get("PYTHONPATH")]))
            settings = {**BASELINE, "NUMBA_CACHE_DIR": self.work.name, "PYTHONPATH": path}
            command = [sys.executable, __file__, str(folder)]
            done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
            if done.returncode:
                why = done.stderr.strip().rpartition("\n")[2]
                self.app.display_warning(f"this wheel has no compiled kernels ({why}); first use compiles them")
                return
            build_data["force_include"][str(folder)] = "mcce/_kernels"
            build_data |= {"pure_python": False, "infer_tag": True}

        def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
            """Remove the folder of the kernels."""
            if version != "editable":
                self.work.cleanup()
