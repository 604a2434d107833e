"""Trees in the rpart dialect compared with the installed rpart on random data, bit for bit.

If R was compiled with fused multiply-adds, our trees use them too (`mcce.base.fused`).
"""

import numpy as np
import pandas as pd
import pytest

from tests.marks import slow
from tests.r_bridge.rpart_cases import FIT, RandomCase, draw_case, fit_with_r
from tests.trees.rpart.rpart_cases import differences, encode, grow

DATA_SETS = 400
CHUNKS = 8


@pytest.fixture(scope="module")
def fit(r, need):
    need("rpart")
    return r.ri.evalr(FIT)


@pytest.mark.parametrize("chunk", [0, *slow(*range(1, CHUNKS))])
def test_live_parity_with_rpart(r, fit, fused, compared, chunk):
    rng = np.random.default_rng([2024, chunk])
    failed = {}
    for k in range(DATA_SETS // CHUNKS):
        case = draw_case(rng)
        answer = fit_with_r(r, fit, case)
        given, target, new = encode(case.frame, "y", case.new)
        found = differences(grow(given, target, case.control, fused=fused), given, target, answer, new)
        if found:
            failed[k] = (found, case.control, case.frame.dtypes.astype(str).tolist())
        compared("trees of rpart", 1)
        compared("rows routed as by rpart", answer.where.size + answer.where_new.size)
        compared("numbers of nodes and splits as in rpart", answer.frame.size + answer.splits.size + answer.csplit.size)
    assert not failed


def test_live_parity_of_a_large_table(r, fit, fused, compared):
    """The number of sorted rows with ties determines how their sums are rounded."""
    rng = np.random.default_rng(7)
    n = 20_000
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n).round(1), "c": rng.integers(0, 3, n) * 1.0})
    frame["y"] = np.sin(frame["a"] * 3.0) + frame["b"] * frame["c"] + rng.normal(size=n)
    case = RandomCase(frame, frame.drop(columns="y").head(100), {"minsplit": 10, "minbucket": 3, "cp": 1e-4})
    answer = fit_with_r(r, fit, case)
    given, target, new = encode(case.frame, "y", case.new)
    assert differences(grow(given, target, case.control, fused=fused), given, target, answer, new) == []
    compared("trees of rpart", 1)
    compared("rows routed as by rpart", answer.where.size)
