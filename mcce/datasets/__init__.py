"""Example tables: simulated bank loans, R's airquality, and the four tables of the paper's first experiment.

The paper's tables are read from a folder: the argument, else the environment variable ``MCCE_DATA``. Its files are
``adult.csv.gz``, ``gmc.csv.gz``, ``fico.csv.gz`` and ``german.csv.gz`` (or ``.csv``): a header, no index, the features
and the response as their sources have them.
"""

from mcce.datasets.base import Dataset
from mcce.datasets.files import load_adult, load_airquality, load_fico, load_german, load_gmc
from mcce.datasets.loans import load_loans, true_default_probability

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
