"""R's airquality, the data of mcceR's examples."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd

from mcce.datasets.base import Dataset, read_carried


def load_airquality(*, dropna: bool = False) -> Dataset:
    """Load R's ``airquality``: daily air measurements in New York, May to September 1973.

    Parameters
    ----------
    dropna
        Keep only the 111 of 153 rows without a missing value, as mcceR's examples do. Otherwise Ozone (37
        missing) and Solar.R (7 missing) are float columns with NaN.

    Returns
    -------
    Dataset
        Features Solar.R, Wind, Temp, Month, Day; ``y`` is Ozone (parts per billion). ``fixed`` is Wind, as in
        mcceR's examples. The response is a number, so ``desired`` is None and ``wanted`` raises; mcceR's
        examples want a predicted Ozone of at most 15.

    Notes
    -----
    Written by R's ``write.csv(airquality, row.names = FALSE)``. Source: Chambers et al. (1983), *Graphical
    Methods for Data Analysis*; from the New York State Department of Conservation and the National Weather
    Service.

    Examples
    --------
    >>> from mcce.datasets import load_airquality
    >>> load_airquality(dropna=True)
    Dataset 'airquality': 111 rows, 5 features (5 numeric, 0 categorical)
      response 'Ozone'
      fixed 'Wind'
    """
    frame = pd.read_csv(io.StringIO(read_carried("airquality.csv")))
    if dropna:
        frame = frame.dropna(ignore_index=True).astype({"Ozone": np.int64, "Solar.R": np.int64})
    rows = "complete rows only" if dropna else "with missing values in Ozone and Solar.R"
    description = (
        f"Daily air quality in New York, May to September 1973 (R's airquality), {rows}. The response is the mean "
        "Ozone in parts per billion."
    )
    features = ["Solar.R", "Wind", "Temp", "Month", "Day"]
    return Dataset("airquality", frame[features], frame["Ozone"], ["Wind"], None, description)
