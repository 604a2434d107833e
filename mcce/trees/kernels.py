"""Numba kernels that grow a tree: node by node, depth first.

1. The rows of a node are collected into *runs*: the distinct values of one column in order, with the number of rows
   and the sum of the centred response in each (for classes, the responses themselves, run after run).
2. A scan over the runs finds the cut with the largest decrease of impurity: squared error for numbers and two
   classes, Gini for more. Each side keeps at least `min_leaf` rows; only a strictly better cut replaces the best one,
   so the first variable and the first cut win ties. Missing values are tried on both sides.
3. Unordered levels are runs too, sorted first: by mean response for numbers and two classes, where the best
   of all subsets is a cut of that order (Fisher 1958; Breiman et al. 1984, theorem 4.5; with `min_leaf` > 1 the best
   admissible cut of that order is taken, though another subset may be better). For more classes all
   subsets are tried for up to 8 levels in the node; above that the levels are ordered by the first principal
   component of their class shares (Coppersmith, Hong and Hosking 1999).
4. The node's rows, and every sorted column, are partitioned stably.

Rows may have weights, which count as copies: numbers of rows are then sums of weights, also in `min_split` and
`min_leaf`. `weights` is None for rows without weights; the number of copies is then the constant 1. Numba compiles the
same code into two kernels.

With the response centred at the node's mean, the decrease of squared error of a cut is S_left^2 n / (n_left n_right):
no cancellation, and no division unless a cut is better.

The arrays come in three bundles made by `mcce.trees.cart`: `Columns` (read only, except `packed`), `Nodes` (the result)
and `Work` (scratch). All kernels are in this one file, because numba invalidates its cache by file. They use plain
loops instead of array expressions, which compile more slowly.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import types, uint64
from numba.extending import intrinsic, overload

from mcce.base.compiling import INNER, entry, inner

HISTOGRAM, SORTED, UNORDERED, PAIR = 0, 1, 2, 3
LEAF = -1
MAX_SUBSET_LEVELS = 8
_POWER_STEPS = 60
_SMALLEST_GAIN = 1e-12  # smallest improvement as a share of the node's impurity; less is rounding
ROW = 0xFFFFFFFF  # the row in a sorted entry, rank << 32 | row
_NO_RANK = 0xFFFFFFFFFFFFFFFF
ABSENT = 2  # in `masks`: a level that no row of the node has

Columns = namedtuple("Columns", "how slot n_values codes packed")
Nodes = namedtuple("Nodes", "feature cut after left missing_left mask_at masks start size impurity")
Work = namedtuple(
    "Work",
    "order side spare active n_active stack count total words run_code run_n run_sum "
    "centred node_count left_count present position classes class_weight table axis key",
)


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Position of the lowest set bit of a uint64 (64 if there is none)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


# ---------------------------------------------------------------- weights


def copies_of(weights: Any, row: Any) -> Any:
    """Return the weight of a row; 1 without weights."""


def note_copies(copies: Any, place: Any, weights: Any, row: Any) -> Any:
    """Write a row's weight at a position; a no-op without weights."""


def weigh(weights: Any, order: Any, start: Any, end: Any) -> Any:
    """Return the total weight of the rows in a part of `order`; their number without weights."""


@overload(copies_of, jit_options=INNER)
def _copies_of(weights, row):
    if isinstance(weights, types.NoneType):
        return lambda weights, row: 1
    return lambda weights, row: weights[row]


@overload(note_copies, jit_options=INNER)
def _note_copies(copies, place, weights, row):
    if isinstance(weights, types.NoneType):
        return lambda copies, place, weights, row: None

    def note(copies, place, weights, row):
        copies[place] = weights[row]

    return note


@overload(weigh, jit_options=INNER)
def _weigh(weights, order, start, end):
    if isinstance(weights, types.NoneType):
        return lambda weights, order, start, end: end - start

    def total(weights, order, start, end):
        summed = 0.0
        for i in range(start, end):
            summed += weights[order[i]]
        return summed

    return total


# ---------------------------------------------------------------- step 1: runs


@inner
def _collect_codes(
    codes, slot, n_codes, order, start, end, centred, weights, count, total, words, run_code, run_n, run_sum
):
    """Histogram over the codes of a column, numeric response; only codes that occur are visited and cleared."""
    for i in range(start, end):
        c = codes[order[i], slot]
        copies = copies_of(weights, order[i])
        count[c] += copies
        total[c] += copies * centred[i - start]
        words[c >> 6] |= uint64(1) << uint64(c & 63)
    runs = 0
    for w in range((n_codes >> 6) + 1):
        bits = words[w]
        while bits:
            c = (w << 6) + trailing_zeros(bits)
            bits &= bits - uint64(1)
            run_code[runs] = c
            run_n[runs] = count[c]
            run_sum[runs] = total[c]
            runs += 1
            count[c] = 0
            total[c] = 0.0
        words[w] = 0
    return runs


@inner
def _collect_two(codes, slot, order, start, end, centred, run_code, run_n, run_sum):
    """Count a column of two values without missing ones: no histogram, no branches, two sums to hide latency."""
    ones = np.int64(0)
    even = odd = 0.0
    for i in range(start, end - 1, 2):
        a, b = codes[order[i], slot], codes[order[i + 1], slot]
        ones += a + b
        even += a * centred[i - start]
        odd += b * centred[i + 1 - start]
    if (end - start) & 1:
        a = codes[order[end - 1], slot]
        ones += a
        even += a * centred[end - 1 - start]
    zeros = end - start - ones
    run_code[0] = 0
    run_code[1] = 1
    run_n[0] = zeros
    run_n[1] = ones
    run_sum[0] = -(even + odd)
    run_sum[1] = even + odd
    return 2 if ones and zeros else 1


@inner
def _collect_sorted(packed, slot, start, end, response, mean, weights, run_code, run_n, run_sum):
    """Walk along a sorted column, numeric response."""
    runs = -1
    last = uint64(_NO_RANK)
    for i in range(start, end):
        entry = packed[slot, i]
        rank = entry >> uint64(32)
        row = np.int64(entry & uint64(ROW))
        copies = copies_of(weights, row)
        value = copies * (response[row] - mean)
        if rank == last:
            run_n[runs] += copies
            run_sum[runs] += value
        else:
            runs += 1
            run_code[runs] = np.int64(rank)
            run_n[runs] = copies
            run_sum[runs] = value
            last = rank
    return runs + 1


@inner
def _classes_by_code(
    codes, slot, n_codes, order, start, end, labels, weights, count, words, run_code, run_n, classes, class_weight
):
    """Sort the node's classes by the codes of a column, by counting; `run_n` counts rows, not weights."""
    for i in range(start, end):
        c = codes[order[i], slot]
        count[c] += 1
        words[c >> 6] |= uint64(1) << uint64(c & 63)
    runs = 0
    place = 0
    for w in range((n_codes >> 6) + 1):
        bits = words[w]
        while bits:
            c = (w << 6) + trailing_zeros(bits)
            bits &= bits - uint64(1)
            run_code[runs] = c
            run_n[runs] = count[c]
            place += count[c]
            count[c] = place - count[c]
            runs += 1
        words[w] = 0
    for i in range(start, end):
        row = order[i]
        c = codes[row, slot]
        classes[np.int64(count[c])] = labels[row]
        note_copies(class_weight, np.int64(count[c]), weights, row)
        count[c] += 1
    for r in range(runs):
        count[run_code[r]] = 0
    return runs


@inner
def _classes_by_order(packed, slot, start, end, labels, weights, run_code, run_n, classes, class_weight):
    """Walk along a sorted column, classes; `run_n` counts rows, not weights."""
    runs = -1
    last = uint64(_NO_RANK)
    for i in range(start, end):
        entry = packed[slot, i]
        rank = entry >> uint64(32)
        row = np.int64(entry & uint64(ROW))
        classes[i - start] = labels[row]
        note_copies(class_weight, i - start, weights, row)
        if rank == last:
            run_n[runs] += 1
        else:
            runs += 1
            run_code[runs] = np.int64(rank)
            run_n[runs] = 1
            last = rank
    return runs + 1


# ------------------------------------------------- step 2: cuts of ordered runs


@inner
def _scan_runs(run_n, run_sum, last_cut, m, n_left, s_left, min_leaf, best):
    """Find the best cut after a run; `n_left`, `s_left`: missing rows that start on the left. Return (score, run)."""
    at = -2
    if n_left >= min_leaf and m - n_left >= min_leaf and s_left * s_left > best * (n_left * (m - n_left)):
        best = s_left * s_left / (n_left * (m - n_left))
        at = -1
    for r in range(last_cut):
        n_left += run_n[r]
        s_left += run_sum[r]
        if n_left < min_leaf:
            continue
        n_right = m - n_left
        if n_right < min_leaf:
            break
        weight = float(n_left * n_right)
        square = s_left * s_left
        if square > best * weight:
            best = square / weight
            at = r
    return best, at


@inner
def _scan_classes(
    run_n, last_cut, classes, class_weight, in_node, in_left, n, m, missing_from, min_leaf, base, best
):  # fmt: skip
    """Find the best cut after a run; rows from `missing_from` on start on the left. Return (score, run).

    The decrease of Gini is proportional to sum L_k^2 / n_left + sum R_k^2 / n_right - base; moving one row of class k
    changes the sums of squares by 2 L_k + 1 and 1 - 2 R_k, so a scan costs one step per row for any number of classes.
    """
    square_left = 0.0
    square_right = base * m
    n_left = m - m
    at = -2
    row = missing_from
    for r in range(-1, last_cut):
        length = np.int64(run_n[r]) if r >= 0 else n - missing_from
        for _ in range(length):
            k = classes[row]
            copies = copies_of(class_weight, row)
            square_left += copies * (2 * in_left[k] + copies)
            square_right += copies * (copies - 2 * (in_node[k] - in_left[k]))
            in_left[k] += copies
            n_left += copies
            row += 1
        if r < 0:
            row = 0
        n_right = m - n_left
        if n_left < min_leaf:
            continue
        if n_right < min_leaf:
            break
        weight = float(n_left * n_right)
        score = square_left * n_right + square_right * n_left - base * weight
        if score > best * weight:
            best = score / weight
            at = r
    for i in range(n):
        in_left[classes[i]] = 0
    return best, at


# --------------------------------------------- step 3: subsets of unordered runs


@inner
def _order_runs(key, runs, run_code, run_n, run_sum):
    """Sort the runs by `key`, stably (insertion: levels in a node are few)."""
    for i in range(1, runs):
        k = key[i]
        code, n, total = run_code[i], run_n[i], run_sum[i]
        j = i - 1
        while j >= 0 and key[j] > k:
            key[j + 1] = key[j]
            run_code[j + 1] = run_code[j]
            run_n[j + 1] = run_n[j]
            run_sum[j + 1] = run_sum[j]
            j -= 1
        key[j + 1] = k
        run_code[j + 1] = code
        run_n[j + 1] = n
        run_sum[j + 1] = total


@inner
def _mean_scores(run_n, run_sum, runs, score):
    for r in range(runs):
        score[r] = run_sum[r] / run_n[r]


@inner
def _count_table(run_n, run_place, runs, classes, class_weight, present, n_present, position, table):
    """Count the classes in each run: table[run_place[run], class among those present in the node].

    With weights, `run_n` becomes the weight of each run.
    """
    for j in range(n_present):
        position[present[j]] = j
    row = 0
    for r in range(runs):
        run_place[r] = r  # moved together with its run
        for j in range(n_present):
            table[r, j] = 0.0
        n = np.int64(run_n[r])
        run_n[r] = 0
        for _ in range(n):
            copies = copies_of(class_weight, row)
            table[r, position[classes[row]]] += copies
            run_n[r] += copies
            row += 1


@inner
def _principal_scores(run_n, runs, table, n_present, m, axis, score):
    """Score the class shares of each run on their first principal component, by power iteration.

    Runs are weighted by their size. Scores are centred in each step, so centring the shares is unnecessary.
    """
    for r in range(runs):
        score[r] = np.sqrt(r + 1.0)  # an asymmetric start vector: the shares may be symmetric
    for _ in range(_POWER_STEPS):
        mean = 0.0
        for r in range(runs):
            mean += run_n[r] * score[r] / m
        length = 0.0
        for r in range(runs):
            score[r] -= mean
            length += score[r] * score[r]
        if length == 0.0:
            return
        length = np.sqrt(length)
        for j in range(n_present):
            axis[j] = 0.0
            for r in range(runs):
                axis[j] += score[r] / length * table[r, j]
        for r in range(runs):
            score[r] = 0.0
            for j in range(n_present):
                score[r] += table[r, j] / run_n[r] * axis[j]


@inner
def _scan_partitions(
    run_n, run_place, runs, table, all_subsets, left, in_node, present, n_present, m, min_leaf, base, best
):
    """Best of all two-way partitions of the runs, in Gray-code order, or of the cuts of the runs in their order.

    Return (score, bits of the left runs, or the last of them).
    """
    for j in range(n_present):
        left[j] = 0.0
    n_left = m - m
    bits = 0
    chosen = -1
    for step in range(1, 1 << (runs - 1) if all_subsets else runs):
        r = trailing_zeros(uint64(step)) if all_subsets else step - 1
        sign = 1 if bits >> r & 1 == 0 or not all_subsets else -1
        if all_subsets:
            bits ^= 1 << r
        n_left += sign * run_n[r]
        n_right = m - n_left
        square_left = 0.0
        square_right = 0.0
        counts = np.int64(run_place[r])
        for j in range(n_present):
            left[j] += sign * table[counts, j]
            right = in_node[present[j]] - left[j]
            square_left += left[j] * left[j]
            square_right += right * right
        if n_left < min_leaf or n_right < min_leaf:
            continue
        weight = float(n_left * n_right)
        score = square_left * n_right + square_right * n_left - base * weight
        if score > best * weight:
            best = score / weight
            chosen = bits if all_subsets else r
    return best, chosen


@inner
def _note_levels(masks, at, n_levels, run_code, runs, chosen, as_bits):
    """Write from `at` on which levels, and missing values, go left: the runs in `chosen`, or up to it."""
    for c in range(n_levels + 1):
        masks[at + c] = ABSENT
    for r in range(runs):
        masks[at + run_code[r]] = (chosen >> r & 1) if as_bits else r <= chosen


# ------------------------------------------------------------- step 4: partition


@inner
def _mark_sides(codes, packed, how, slot, n_values, order, start, end, cut, missing_left, masks, at, side):
    """side[row] = 1 for the node's rows that go left, 0 for the others."""
    for i in range(start, end):
        if how == SORTED:
            entry = packed[slot, i]
            row = np.int64(entry & uint64(ROW))
            code = np.int64(entry >> uint64(32))
        else:
            row = np.int64(order[i])
            code = np.int64(codes[row, slot])
        if how == UNORDERED:
            side[row] = masks[at + code]
        else:
            side[row] = missing_left if code == n_values else code <= cut


@inner
def _partition_rows(order, start, end, side, spare):
    """Put the rows of side 1 first, keeping their order; return where the others begin."""
    at = start
    kept = 0
    for i in range(start, end):
        row = order[i]
        goes_left = side[row]
        order[at] = row
        spare[kept] = row
        at += goes_left
        kept += 1 - goes_left
    for i in range(kept):
        order[at + i] = spare[i]
    return at


@inner
def _partition_sorted(packed, slot, start, end, side, spare):
    at = start
    kept = 0
    for i in range(start, end):
        entry = packed[slot, i]
        goes_left = side[np.int64(entry & uint64(ROW))]
        packed[slot, at] = entry
        spare[kept] = entry
        at += goes_left
        kept += 1 - goes_left
    for i in range(kept):
        packed[slot, at + i] = spare[i]


# ---------------------------------------------------------------- the whole tree


@inner
def _shuffle(active, depth, n_here, n_tried, words, node):
    """Move `n_tried` random columns in a row of `active` to its front, by the random words of the node."""
    for a in range(n_tried):
        chosen = a + np.int64(words[node, a] % uint64(n_here - a))
        f = active[depth, chosen]
        active[depth, chosen] = active[depth, a]
        active[depth, a] = f


@inner
def _summarise_numbers(order, start, end, response, weights, m, centred):
    """Centre the node's responses; return (mean, sum of squares around it).

    The first response is subtracted before averaging, so that equal responses are centred to exact zeros.
    """
    n = end - start
    first = response[order[start]]
    mean = 0.0
    for i in range(n):
        centred[i] = response[order[start + i]] - first
        mean += copies_of(weights, order[start + i]) * centred[i]
    mean /= m
    spread = 0.0
    for i in range(n):
        centred[i] -= mean
        spread += copies_of(weights, order[start + i]) * centred[i] * centred[i]
    return first + mean, spread


@inner
def _summarise_classes(order, start, end, labels, weights, m, n_classes, in_node, present):
    """Count the node's classes; return (sum of squared counts / size, number of classes present)."""
    for k in range(n_classes):
        in_node[k] = 0
    for i in range(start, end):
        in_node[labels[order[i]]] += copies_of(weights, order[i])
    base = 0.0
    n_present = 0
    for k in range(n_classes):
        if in_node[k]:
            base += float(in_node[k]) * in_node[k]
            present[n_present] = k
            n_present += 1
    return base / m, n_present


@inner
def _search_ordered(
    levels, runs, run_code, run_n, run_sum, classes, class_weight, in_node, in_left, n_classes, n, m, min_leaf, base,
    best,
):  # fmt: skip
    """Step 2, with missing values tried on both sides. Return (score, last code left, first right, missing side)."""
    n_missing = m - m
    if run_code[runs - 1] == levels:
        runs -= 1
        n_missing = run_n[runs]
    cut = after = missing_side = np.int64(-1)
    for missing_first in range(2 if n_missing else 1):
        last_cut = runs - 1 + (n_missing > 0) - missing_first
        moved = missing_first * n_missing
        if n_classes:
            score, at = _scan_classes(
                run_n, last_cut, classes, class_weight, in_node, in_left, n, m, n - np.int64(moved), min_leaf, base,
                best,
            )  # fmt: skip
        else:
            start_sum = run_sum[runs] if missing_first else 0.0
            score, at = _scan_runs(run_n, run_sum, last_cut, m, moved, start_sum, min_leaf, best)
        if score > best:
            best = score
            cut = run_code[at] if at >= 0 else np.int64(-1)
            after = run_code[at + 1] if at + 1 < runs else np.int64(-1)
            missing_side = np.int64(missing_first) if n_missing else np.int64(-1)
    return best, cut, after, missing_side


@entry
def grow_nodes(
    columns, nodes, work, response, labels, weights, n_classes, min_split, min_leaf, max_depth, n_tried, words
):
    """Grow the whole tree; return the number of nodes and of mask entries.

    A node tries `n_tried` of its columns, drawn by the random `words` in its row, or all if it has no more.
    """
    codes, packed, order = columns.codes, columns.packed, work.order
    active, n_active, centred = work.active, work.n_active, work.centred
    run_code, run_n, run_sum = work.run_code, work.run_n, work.run_sum
    classes, class_weight, in_node, present = work.classes, work.class_weight, work.node_count, work.present
    masks = nodes.masks
    stack = work.stack  # nodes to visit, with their depths
    stack[0, 0] = stack[0, 1] = 0
    nodes.start[0] = 0
    nodes.size[0] = order.size
    waiting = np.int64(1)
    n_nodes = np.int64(1)
    n_masks = np.int64(0)
    while waiting:
        waiting -= 1
        node, depth = stack[waiting, 0], stack[waiting, 1]
        start, n = np.int64(nodes.start[node]), np.int64(nodes.size[node])
        end = start + n
        m = weigh(weights, order, start, end)
        mean = base = 0.0
        n_present = 0
        if n_classes:
            base, n_present = _summarise_classes(order, start, end, labels, weights, m, n_classes, in_node, present)
            impurity = m - base if n_present > 1 else 0.0
        else:
            mean, impurity = _summarise_numbers(order, start, end, response, weights, m, centred)
        nodes.feature[node] = LEAF
        nodes.mask_at[node] = -1
        nodes.impurity[node] = impurity
        if m < min_split or m < 2 * min_leaf or depth >= max_depth or impurity <= 0.0:
            continue

        best = _SMALLEST_GAIN * (impurity if n_classes else impurity / m)
        split = cut = after = missing_side = np.int64(-1)
        below = 0
        n_looked = n_active[depth]
        if n_tried < n_looked:
            _shuffle(active, depth, n_looked, n_tried, words, node)
            n_looked = n_tried
        for a in range(n_looked):
            f = np.int64(active[depth, a])
            how, slot, levels = columns.how[f], columns.slot[f], columns.n_values[f]
            if n_classes:
                if how == SORTED:
                    runs = _classes_by_order(
                        packed, slot, start, end, labels, weights, run_code, run_n, classes, class_weight
                    )  # fmt: skip
                else:
                    runs = _classes_by_code(
                        codes, slot, levels, order, start, end, labels, weights, work.count, work.words, run_code,
                        run_n, classes, class_weight,
                    )  # fmt: skip
            elif how == SORTED:
                runs = _collect_sorted(packed, slot, start, end, response, mean, weights, run_code, run_n, run_sum)
            elif how == PAIR:
                runs = _collect_two(codes, slot, order, start, end, centred, run_code, run_n, run_sum)
            else:
                runs = _collect_codes(
                    codes, slot, levels, order, start, end, centred, weights, work.count, work.total, work.words,
                    run_code, run_n, run_sum,
                )  # fmt: skip
            if runs == 1:
                continue
            active[depth + 1, below] = f
            below += 1
            if how == UNORDERED:
                as_bits = n_classes > 0 and runs <= MAX_SUBSET_LEVELS
                if n_classes:
                    _count_table(
                        run_n, run_sum, runs, classes, class_weight, present, n_present, work.position, work.table
                    )  # fmt: skip
                    if not as_bits:
                        _principal_scores(run_n, runs, work.table, n_present, m, work.axis, work.key)
                else:
                    _mean_scores(run_n, run_sum, runs, work.key)
                if not as_bits:
                    _order_runs(work.key, runs, run_code, run_n, run_sum)
                if n_classes:
                    score, chosen = _scan_partitions(
                        run_n, run_sum, runs, work.table, as_bits, work.axis, in_node, present, n_present, m, min_leaf,
                        base, best,
                    )  # fmt: skip
                else:
                    score, chosen = _scan_runs(run_n, run_sum, runs - 1, m, m - m, 0.0, min_leaf, best)
                if score > best:
                    best = score
                    split = f
                    _note_levels(masks, n_masks, levels, run_code, runs, chosen, as_bits)
            else:
                score, low, high, side = _search_ordered(
                    levels, runs, run_code, run_n, run_sum, classes, class_weight, in_node, work.left_count, n_classes,
                    n, m, min_leaf, base, best,
                )  # fmt: skip
                if score > best:
                    best = score
                    split, cut, after, missing_side = f, low, high, side
        for a in range(n_looked, n_active[depth]):
            active[depth + 1, below] = active[depth, a]
            below += 1
        n_active[depth + 1] = below
        if split < 0:
            continue

        how, slot, levels = columns.how[split], columns.slot[split], columns.n_values[split]
        _mark_sides(
            codes, packed, how, slot, levels, order, start, end, cut, missing_side == 1, masks, n_masks, work.side
        )
        middle = _partition_rows(order, start, end, work.side, work.spare)
        for a in range(below):
            g = active[depth + 1, a]
            if columns.how[g] == SORTED:
                _partition_sorted(packed, columns.slot[g], start, end, work.side, work.spare)
        larger_left = weigh(weights, order, start, middle) >= weigh(weights, order, middle, end)
        nodes.feature[node] = split
        nodes.left[node] = n_nodes
        nodes.cut[node] = cut
        nodes.after[node] = after
        if how == UNORDERED:
            nodes.mask_at[node] = n_masks
            n_masks += levels
            missing_side = -1 if masks[n_masks] == ABSENT else np.int64(masks[n_masks])
        nodes.missing_left[node] = larger_left if missing_side < 0 else missing_side == 1
        nodes.start[n_nodes] = start
        nodes.size[n_nodes] = middle - start
        nodes.start[n_nodes + 1] = middle
        nodes.size[n_nodes + 1] = end - middle
        for right_first in range(2):
            stack[waiting, 0] = n_nodes + 1 - right_first
            stack[waiting, 1] = depth + 1
            waiting += 1
        n_nodes += 2
    return n_nodes, n_masks


@entry
def collapse(feature, left, impurity, penalty, cost):
    """Make a leaf of each node whose subtree does not lower the impurity by more than `penalty` per split."""
    for node in range(feature.size - 1, -1, -1):
        cost[node] = impurity[node] + penalty
        if feature[node] >= 0:
            below = cost[left[node]] + cost[left[node] + 1]
            if below < cost[node]:
                cost[node] = below
            else:
                feature[node] = LEAF
