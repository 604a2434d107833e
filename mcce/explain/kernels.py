"""Three loops over millions of draws: the nearest draws, the distinct tuples of a pool, and the nearest crossings.

Matrices of draws are stored by column (`cells[j, draw]`). A step is |x - y| * scale, or 1 where that has no meaning
(levels, missing values, constant columns), as in `mcce.distances.Gower`.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from mcce._utils import jit


@jit
def _compare(cells, begin, end, factual, columns, scale, may_be_missing, n_changed, sum_of_steps):
    """Write the number of changes of each draw, infinite where a known value is missing, and its sum of steps."""
    n_changed[: end - begin] = 0.0
    sum_of_steps[: end - begin] = 0.0
    for j in columns:
        values, before, factor = cells[j, begin:end], factual[j], scale[j]
        change_of_missing, step_of_missing = (1.0 if may_be_missing[j] else np.inf), 1.0
        if np.isnan(before):
            change_of_missing, step_of_missing = 0.0, 0.0
        if np.isnan(before) or factor == 0.0:
            for i in range(values.size):
                change = 0.0 if values[i] == before else 1.0
                n_changed[i] += change if values[i] == values[i] else change_of_missing
                sum_of_steps[i] += change if values[i] == values[i] else step_of_missing
        else:  # a loop without branches, which runs on several draws at once
            for i in range(values.size):
                change = 0.0 if values[i] == before else 1.0
                step = abs(values[i] - before) * factor
                n_changed[i] += change if values[i] == values[i] else change_of_missing
                sum_of_steps[i] += step if values[i] == values[i] else step_of_missing


@jit
def nearest_draws(cells, begin, end, factuals, columns, scale, may_be_missing, most_changes, most_steps, rows, n_rows):
    """Write the first draws of each factual by (changes, sum of steps, index) into `rows`, and their numbers.

    Of equal draws only the first counts. Draws in which a known value is missing, or beyond the bounds, are left out.
    """
    most = rows.shape[1]
    changes, steps = np.empty(most), np.empty(most)
    n_draws = (end - begin).max() if end.size else 0
    n_changed, sum_of_steps = np.empty(n_draws), np.empty(n_draws)
    for f in range(factuals.shape[0]):
        _compare(cells, begin[f], end[f], factuals[f], columns, scale, may_be_missing, n_changed, sum_of_steps)
        n = 0
        for i in range(end[f] - begin[f]):
            if n_changed[i] > most_changes or n_changed[i] == np.inf or sum_of_steps[i] > most_steps:
                continue
            at = n
            while at > 0 and (
                changes[at - 1] > n_changed[i] or (changes[at - 1] == n_changed[i] and steps[at - 1] > sum_of_steps[i])
            ):
                at -= 1
            if at == most:
                continue
            repeated = False
            earlier = at - 1
            while (
                earlier >= 0 and changes[earlier] == n_changed[i] and steps[earlier] == sum_of_steps[i] and not repeated
            ):
                repeated = True
                for j in columns:
                    a, b = cells[j, rows[f, earlier]], cells[j, begin[f] + i]
                    if a != b and not (np.isnan(a) and np.isnan(b)):
                        repeated = False
                        break
                earlier -= 1
            if repeated:
                continue
            for later in range(min(n, most - 1), at, -1):
                changes[later], steps[later], rows[f, later] = changes[later - 1], steps[later - 1], rows[f, later - 1]
            changes[at], steps[at], rows[f, at] = n_changed[i], sum_of_steps[i], begin[f] + i
            n = min(n + 1, most)
        n_rows[f] = n


@jit
def mark_distinct(codes, sets, slots, is_first):
    """Mark, for every set of columns, the first draw of each distinct tuple of values; codes of -1 are missing.

    `slots` is the room of a hash table whose length is a power of two, at least twice the number of draws.
    """
    n_draws, mask = codes.shape[1], np.uint64(slots.size - 1)
    for s in range(sets.shape[0]):
        slots[:] = -1
        for draw in range(n_draws):
            hashed, is_known = np.uint64(0), True
            for j in sets[s]:
                if codes[j, draw] < 0:
                    is_known = False
                hashed = (hashed ^ np.uint64(codes[j, draw] + 1)) * np.uint64(0x9E3779B97F4A7C15)
                hashed ^= hashed >> np.uint64(29)
            is_first[draw, s] = False
            if not is_known:
                continue
            at = hashed & mask
            while slots[at] >= 0:
                same = True
                for j in sets[s]:
                    if codes[j, draw] != codes[j, slots[at]]:
                        same = False
                        break
                if same:
                    break
                at = (at + np.uint64(1)) & mask
            if slots[at] < 0:
                slots[at] = draw
                is_first[draw, s] = True


@jit
def nearest_tuples(
    cells, begin, factuals, columns, scale, draws, which, sets, most, spread, steps_of_cells, totals, chosen, steps
):
    """Write, for each factual, the `most` nearest tuples, then those of `spread`; -1 and infinite steps are no tuple.

    A tuple differs from the factual in all its columns. The nearest are kept in a heap with the farthest on top, so
    that most tuples cost one comparison; of tuples with equal steps the earlier is nearer. `steps_of_cells` (columns,
    draws) and `totals` (tuples) are room.
    """
    for f in range(factuals.shape[0]):
        for i in range(columns.size):
            before, factor = factuals[f, columns[i]], scale[columns[i]]
            for draw in range(steps_of_cells.shape[1]):
                value = cells[columns[i], begin + draw]
                step = abs(value - before) * factor
                if factor == 0.0 or np.isnan(step):
                    step = 0.0 if value == before else 1.0
                steps_of_cells[i, draw] = step
        n = 0
        for t in range(draws.size):
            total = 0.0
            for i in sets[which[t]]:
                step = steps_of_cells[i, draws[t]]
                total += step if step > 0.0 else np.inf
            totals[t] = total
            if total == np.inf or (n == most and total >= steps[f, 0]):
                continue
            if n < most:
                at = n
                n += 1
                while at > 0 and steps[f, (at - 1) // 2] <= total:
                    steps[f, at], chosen[f, at] = steps[f, (at - 1) // 2], chosen[f, (at - 1) // 2]
                    at = (at - 1) // 2
            else:
                at = 0
                while True:
                    child = 2 * at + 1
                    if child >= most:
                        break
                    if child + 1 < most and (
                        steps[f, child + 1] > steps[f, child]
                        or (steps[f, child + 1] == steps[f, child] and chosen[f, child + 1] > chosen[f, child])
                    ):
                        child += 1
                    if steps[f, child] <= total:
                        break
                    steps[f, at], chosen[f, at] = steps[f, child], chosen[f, child]
                    at = child
            steps[f, at], chosen[f, at] = total, t
        for i in range(n):
            totals[chosen[f, i]] = np.inf  # is chosen already
        for t in spread:
            if totals[t] < np.inf:
                steps[f, n], chosen[f, n] = totals[t], t
                n += 1
        for i in range(n, steps.shape[1]):
            steps[f, i], chosen[f, i] = np.inf, -1
