"""Drawing again until a draw is allowed, and what the number of draws says of the probability of being allowed.

1. A row is drawn again and again, by streams of its own for each attempt, until one draw is allowed: the row's value.
2. To estimate the probability p of what is allowed, go on to the second allowed draw. If that is number n,

       1 / (n - 1)

   has the mean p (Girshick, Mosteller and Savage 1946, "Unbiased estimates for certain binomial sampling problems": of
   the n - 1 ways to get there, one begins with an allowed draw). 1 / n at the first one would be too large on average.
3. After `most` draws a row ends: with one allowed draw its estimate is 1 / most (by the same count of ways), with none
   the row is dead and its estimate 0. So the mean stays p, whatever the cap.

When the allowed draws come says nothing of what they are: the estimate and the value are independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcce.arrays import Ints
from mcce.samplers.within import RestrictedDraw


def draw_until_allowed(
    draw: Callable[[Ints, int], RestrictedDraw], n_rows: int, most: int, *, estimate: bool
) -> RestrictedDraw:
    """Return the first allowed draw of each row, of `most` at most.

    ``draw(rows, attempt)`` draws some of the rows once more, and marks those as dead whose draw is not allowed. Its log
    masses are those of what it draws from; with `estimate`, that of what is allowed of it is added to them.
    """
    values, log_mass = np.full(n_rows, np.nan), np.full(n_rows, -np.inf)
    has_mass = estimate
    n_found = np.zeros(n_rows, dtype=np.int64)
    waiting = np.arange(n_rows)
    for attempt in range(most):
        if not waiting.size:
            break
        tried = draw(waiting, attempt)
        allowed = waiting[~tried.dead]
        is_first = n_found[allowed] == 0
        first, second = allowed[is_first], allowed[~is_first]
        values[first] = tried.values[~tried.dead][is_first]
        has_mass = tried.log_mass is not None
        if tried.log_mass is not None:
            log_mass[first] = tried.log_mass[~tried.dead][is_first]
        log_mass[second] -= np.log(max(attempt, 1))  # the second one is never that of attempt 0
        n_found[allowed] += 1
        waiting = waiting[n_found[waiting] < (2 if estimate else 1)]
    dead = n_found == 0
    if estimate:
        log_mass[n_found == 1] -= np.log(most)
    return RestrictedDraw(values, dead, log_mass if has_mass else None)
