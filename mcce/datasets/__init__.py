"""Example data sets.

1. `load_loans` generates the loan example of the paper's introduction from a process whose true default
   probability is known (`true_default_probability`).
2. `load_airquality` reads R's airquality, the data of mcceR's examples, which is part of the package.
3. `load_adult`, `load_gmc`, `load_fico` and `load_german` read the four data sets of the paper's Experiment
   1 from a folder: the argument, else the environment variable ``MCCE_DATA``, else (adult and german) OpenML.

The files of 3 are CSV, plain or gzipped, with a header and no index: ``adult.csv.gz``, ``gmc.csv.gz``,
``fico.csv.gz``, ``german.csv.gz``. Columns are found by name; values are not scaled, encoded or imputed.
"""

from mcce.datasets.airquality import load_airquality
from mcce.datasets.base import Dataset
from mcce.datasets.loans import load_loans, true_default_probability
from mcce.datasets.paper import load_adult, load_fico, load_german, load_gmc

__all__ = [
    "Dataset",
    "load_adult",
    "load_airquality",
    "load_fico",
    "load_german",
    "load_gmc",
    "load_loans",
    "true_default_probability",
]
