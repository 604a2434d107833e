"""Run the program of a page in a separate process without repeating the imports.

1. A server waits that has imported the packages of every page, and no test modules.
2. It forks for each page: registrations, settings and random state of a page stay in its process.
3. Warnings are errors, except for advice on what to fix; standard error is returned with the exit code.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import runpy
import traceback
import warnings
from pathlib import Path

import matplotlib

import mcce

IMPORTED = [
    "mcce.diagnostics",
    "mcce.batches",
    "mcce.datasets",
    "matplotlib.pyplot",
    "sklearn.ensemble",
    "sklearn.pipeline",
]


def run(program: Path, folder: Path) -> tuple[int | None, str]:
    """Return the exit code and standard error of a program that starts in a folder."""
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forks else "spawn")
    context.set_forkserver_preload(IMPORTED)
    said = program.with_suffix(".err")
    process = context.Process(target=_run, args=(program, folder, said))
    process.start()
    process.join()
    return process.exitcode, said.read_text(encoding="utf-8")


def _run(program: Path, folder: Path, said: Path) -> None:
    matplotlib.use("Agg")
    os.chdir(folder)
    warnings.simplefilter("error")
    warnings.simplefilter(
        "ignore", mcce.exceptions.AdviceWarning
    )  # about a past event of the loans; a separate page explains it
    with said.open("w", encoding="utf-8") as file, contextlib.redirect_stderr(file):
        try:
            runpy.run_path(str(program), run_name="__main__")
        except BaseException:
            traceback.print_exc()
            raise
