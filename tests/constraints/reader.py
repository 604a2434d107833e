"""An independent reader of constraints: plain Python, one decoded value at a time, decimals instead of floats.

It shares no code with `mcce.constraints`: values come from pandas rows, ordered levels are looked up in a list, and
rules are closures created together with their text.
"""

from decimal import Decimal

import numpy as np
import pandas as pd

EDUCATION = ["none", "school", "college", "phd"]
JOBS = ["clerk", "cook", "pilot"]


def people(n=40, seed=0):
    """Return a table of numbers, levels, ordered levels, booleans and dates, some missing; one label is not text."""
    rng = np.random.default_rng(seed)
    salary = pd.Series(np.round(rng.uniform(0, 50, n), 1))
    edu = pd.Series(pd.Categorical.from_codes(rng.integers(0, 4, n), categories=EDUCATION, ordered=True))
    return pd.DataFrame(
        {
            "age": rng.integers(18, 30, n),
            "salary": salary.mask(rng.random(n) < 0.2),
            "job": pd.Series(np.array(JOBS)[rng.integers(0, 3, n)], dtype=object).mask(rng.random(n) < 0.2),
            "edu": edu.mask(rng.random(n) < 0.2),
            "owner": rng.random(n) < 0.5,
            "hired": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 20, n) * 3, unit="D"),
            "left": pd.Timestamp("2020-01-11") + pd.to_timedelta(rng.integers(0, 40, n), unit="h"),
            7: rng.integers(0, 5, n) * 100,
        }
    )


def known(value):
    """Return a plain value, None if it is missing."""
    if value is None or value is pd.NaT or value != value:
        return None
    return value.item() if isinstance(value, np.generic) else value


def decimal(value):
    return Decimal(repr(value.item() if isinstance(value, np.generic) else value))


def spreads(X):
    """Return the width of each range, exactly."""
    numbers = {name: decimal(X[name].max()) - decimal(X[name].min()) for name in ("age", "salary")}
    return numbers | {"edu": Decimal(len(EDUCATION) - 1), "hired": X["hired"].max() - X["hired"].min()}


def position(value):
    """Return a value that can be subtracted and compared exactly."""
    if isinstance(value, str):
        return EDUCATION.index(value)
    return value if isinstance(value, pd.Timestamp) else decimal(value)


def obeys(said, value, own, spread, *, may_be_missing=None):
    """Return whether a value satisfies the constraint on its feature (a dict); `spread` is the training range."""
    value, own = known(value), known(own)
    limits_change = any(name in said for name in ("direction", "max_step", "max_share"))
    if value is None:
        stays = said.get("direction") == "none" or said.get("max_step") == 0 or said.get("max_share") == 0
        return own is None or (bool(may_be_missing) and not stays)
    if "levels" in said and value not in said["levels"]:
        return False
    if any(value == each for each in said.get("never", ())):
        return False
    if "low" in said and position(value) < position(said["low"]):
        return False
    if "high" in said and position(value) > position(said["high"]):
        return False
    if limits_change and own is None:
        return False
    if value == own:
        return True
    if said.get("direction") == "none":
        return False
    if limits_change and isinstance(value, (bool, np.bool_)):
        return False
    if said.get("direction") == "increase" and position(value) < position(own):
        return False
    if said.get("direction") == "decrease" and position(value) > position(own):
        return False
    if "max_step" in said or "max_share" in said:
        change = abs(position(value) - position(own))
        largest = said.get("max_step", pd.Timedelta.max if isinstance(change, pd.Timedelta) else 10**9)
        if change > (largest if isinstance(change, pd.Timedelta) else decimal(largest)):
            return False
        if "max_share" in said:
            share = said["max_share"]
            if change > (share if isinstance(spread, pd.Timedelta) else decimal(share)) * spread:
                return False
    return "step" not in said or decimal(value) % decimal(said["step"]) == 0
