"""Put compiled kernels into the wheel, so that the first use of an installed mcce compiles nothing.

A new process runs the calls of README's example, of `mcce demo` and a few others, with kernels compiled for the baseline
CPU of the platform. If this fails, the wheel is built without kernels and is the same on every platform. An editable
install and the sdist contain none. `HATCH_BUILD_NO_HOOKS=true` skips the hook and its build requirements.
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

    loans = mcce.datasets.load_loans()
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0).fit(loans.X, loans.y)
    granted = mcce.Interval(0, 0.1, closed="left", of=True)
    refused = loans.X[model.predict_proba(loans.X)[:, 1] >= 0.1].head(20)
    agreed = [mcce.allow("salary", direction="increase", step=500), mcce.rule("loan_amount <= salary / 5")]
    gaps = loans.X.mask(np.random.default_rng(1).random(loans.X.shape) < 0.02)
    for table in (loans.X, gaps):
        explainer = mcce.MCCE(model, decision=granted, fixed=["age", "sex", "defaulted_last_year"], random_state=1)
        explainer.fit(table)
        for options in ({}, {"n_counterfactuals": 3}, {"constraints": agreed}):
            explainer.explain(refused, **options)
            explainer.explain(refused, sparse=True, **options)
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
                self.app.display_warning(f"mcce: this wheel has no compiled kernels ({why}); they are compiled at first use")
                return
            build_data["force_include"][str(folder)] = "mcce/_kernels"
            build_data |= {"pure_python": False, "infer_tag": True}

        def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
            """Remove the folder of the kernels."""
            if version != "editable":
                self.work.cleanup()
