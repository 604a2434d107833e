"""The paper's four data sets, if available."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcce.datasets import load_adult, load_fico, load_german, load_gmc

PAPER = {"adult": load_adult, "gmc": load_gmc, "fico": load_fico, "german": load_german}


def paper_folder(name: str) -> Path:
    """Return the folder with a paper's data set; skip the test without it."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    for place in (os.environ.get("MCCE_DATA"), beside):
        if place and (Path(place) / f"{name}.csv.gz").is_file():
            return Path(place)
    pytest.skip("set MCCE_DATA to a folder with adult.csv.gz, gmc.csv.gz, fico.csv.gz and german.csv.gz")
