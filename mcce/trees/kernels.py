"""Numba kernels that grow a tree and send rows down: node by node, depth first.

1. The rows of a node are collected into *runs*: the distinct values of one column in order, with the number of rows
   and the sum of the centred response in each (for classes, the responses themselves, run after run).
2. A scan over the runs finds the cut with the largest decrease of impurity: squared error for numbers and two classes,
   Gini for more. Only a strictly better cut replaces the best one, so the first column and the first cut win ties.
   Missing values are tried on both sides. With the response centred, the decrease of squared error of a cut is
   S_left^2 n / (n_left n_right), without cancellation.
3. Unordered levels, and missing as one more, are sorted by mean response for numbers and two classes, where the best of
   all subsets is a cut of that order (Breiman et al. 1984, theorem 4.5). For more classes all subsets of up to 8 levels
   are tried; more are sorted by the first principal component of their class shares (Coppersmith et al. 1999).
4. The node's rows, and every sorted column, are partitioned stably.

`mcce.trees.cart` makes the arrays. Plain loops compile faster than array expressions.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import njit, types, uint64
from numba.extending import intrinsic

from mcce._utils import jit

# mypy: disable-error-code="no-untyped-def"

HISTOGRAM, SORTED, UNORDERED, PAIR = 0, 1, 2, 3  # how a column is searched; PAIR: two values, none missing
LEAF = -1
ABSENT = 2  # in `masks`: a level that no row of the node has
MAX_SUBSET_LEVELS = 8
POWER_STEPS = 60
SMALLEST_GAIN = 1e-12  # smallest improvement as a share of the node's impurity; less is rounding
CHUNK, STRIDE = 256, 4
LOW = np.uint64(0xFFFFFFFF)  # the lower half of a word: of rank << 32 | row in a sorted column, the row

# for kernels without allocations, slices and array expressions, which take long to compile
LEAN: dict[str, Any] = {"no_rewrites": True, "no_cfunc_wrapper": True, "_nrt": False}
inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, **LEAN)  # called from kernels only

Columns = namedtuple("Columns", "how slot n_values codes packed")  # read-only except `packed`, which is partitioned
Nodes = namedtuple("Nodes", "feature cut after left missing_left mask_at masks start size impurity")
Work = namedtuple(
    "Work",
    "order side spare active n_active stack count total words run_code run_n run_sum "
    "centred node_count left_count present position classes table axis key",
)


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Return the position of the lowest set bit of a uint64 (64 if there is none)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


# ---------------------------------------------------------------- step 1: runs


@inner
def _collect_codes(codes, slot, n_codes, order, start, end, centred, count, total, words, run_code, run_n, run_sum):
    """Collect the runs of a column of codes, numeric response; only codes that occur are visited and cleared."""
    for i in range(start, end):
        c = codes[order[i], slot]
        count[c] += 1
        total[c] += centred[i - start]
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
def _collect_pair(codes, slot, order, start, end, centred, run_code, run_n, run_sum):
    """Collect the runs of two values: no histogram, no branches, two sums to hide latency."""
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
def _collect_sorted(packed, slot, start, end, response, mean, run_code, run_n, run_sum):
    """Collect the runs of a sorted column, numeric response."""
    runs = -1
    last = np.int64(-1)
    for i in range(start, end):
        entry = packed[slot, i]
        rank = np.int64(entry >> uint64(32))
        value = response[np.int64(entry & LOW)] - mean
        if rank == last:
            run_n[runs] += 1
            run_sum[runs] += value
        else:
            runs += 1
            run_code[runs] = rank
            run_n[runs] = 1
            run_sum[runs] = value
            last = rank
    return runs + 1


@inner
def _classes_by_code(codes, slot, n_codes, order, start, end, labels, count, words, run_code, run_n, classes):
    """Collect the runs of a column of codes, and sort the node's classes by them, by counting."""
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
        classes[count[c]] = labels[row]
        count[c] += 1
    for r in range(runs):
        count[run_code[r]] = 0
    return runs


@inner
def _classes_by_order(packed, slot, start, end, labels, run_code, run_n, classes):
    """Collect the runs of a sorted column, and the classes in its order."""
    runs = -1
    last = np.int64(-1)
    for i in range(start, end):
        entry = packed[slot, i]
        rank = np.int64(entry >> uint64(32))
        classes[i - start] = labels[np.int64(entry & LOW)]
        if rank == last:
            run_n[runs] += 1
        else:
            runs += 1
            run_code[runs] = rank
            run_n[runs] = 1
            last = rank
    return runs + 1


# ------------------------------------------------- step 2: cuts of ordered runs


@inner
def _scan_runs(run_n, run_sum, last_cut, n, n_left, s_left, min_leaf, best):
    """Find the best cut after a run; `n_left`, `s_left`: missing rows that start on the left. Return (score, run)."""
    at = -2
    if n_left >= min_leaf and n - n_left >= min_leaf and s_left * s_left > best * (n_left * (n - n_left)):
        best = s_left * s_left / (n_left * (n - n_left))
        at = -1
    for r in range(last_cut):
        n_left += run_n[r]
        s_left += run_sum[r]
        if n_left < min_leaf:
            continue
        n_right = n - n_left
        if n_right < min_leaf:
            break
        weight = float(n_left * n_right)
        square = s_left * s_left
        if square > best * weight:
            best = square / weight
            at = r
    return best, at


@inner
def _scan_classes(run_n, last_cut, classes, in_node, in_left, n, missing_from, min_leaf, base, best):
    """Find the best cut after a run; rows from `missing_from` on start on the left. Return (score, run).

    The decrease of Gini is proportional to sum L_k^2 / n_left + sum R_k^2 / n_right - base; moving one row of class k
    changes the sums of squares by 2 L_k + 1 and 1 - 2 R_k, so a scan costs one step per row for any number of classes.
    """
    square_left = 0.0
    square_right = base * n
    n_left = 0
    at = -2
    row = missing_from
    for r in range(-1, last_cut):
        length = run_n[r] if r >= 0 else n - missing_from
        for _ in range(length):
            k = classes[row]
            square_left += 2 * in_left[k] + 1
            square_right += 1 - 2 * (in_node[k] - in_left[k])
            in_left[k] += 1
            row += 1
        n_left += length
        if r < 0:
            row = 0
        n_right = n - n_left
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


@inner
def _search_ordered(
    levels, runs, run_code, run_n, run_sum, classes, in_node, in_left, n_classes, n, min_leaf, base, best
):
    """Try missing values on both sides. Return (score, last code on the left, first on the right, missing side)."""
    n_missing = 0
    if run_code[runs - 1] == levels:
        runs -= 1
        n_missing = run_n[runs]
    cut = after = missing_side = np.int64(-1)
    for missing_first in range(2 if n_missing else 1):
        last_cut = runs - 1 + (n_missing > 0) - missing_first
        moved = missing_first * n_missing
        if n_classes:
            score, at = _scan_classes(
                run_n, last_cut, classes, in_node, in_left, n, n - moved, min_leaf, base, best
            )  # fmt: skip
        else:
            start_sum = run_sum[runs] if missing_first else 0.0
            score, at = _scan_runs(run_n, run_sum, last_cut, n, moved, start_sum, min_leaf, best)
        if score > best:
            best = score
            cut = run_code[at] if at >= 0 else np.int64(-1)
            after = run_code[at + 1] if at + 1 < runs else np.int64(-1)
            missing_side = np.int64(missing_first) if n_missing else np.int64(-1)
    return best, cut, after, missing_side


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
def _count_table(run_n, run_place, runs, classes, present, n_present, position, table):
    """Count the classes in each run: table[run_place[run], class among those present in the node]."""
    for j in range(n_present):
        position[present[j]] = j
    row = 0
    for r in range(runs):
        run_place[r] = r  # moved together with its run
        for j in range(n_present):
            table[r, j] = 0.0
        for _ in range(run_n[r]):
            table[r, position[classes[row]]] += 1.0
            row += 1


@inner
def _principal_scores(run_n, runs, table, n_present, n, axis, score):
    """Score the class shares of each run on their first principal component, by power iteration.

    Runs are weighted by their size. Scores are centred in each step, so centring the shares is unnecessary.
    """
    for r in range(runs):
        score[r] = np.sqrt(r + 1.0)  # an asymmetric start vector: the shares may be symmetric
    for _ in range(POWER_STEPS):
        mean = 0.0
        for r in range(runs):
            mean += run_n[r] * score[r] / n
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
    run_n, run_place, runs, table, all_subsets, left, in_node, present, n_present, n, min_leaf, base, best
):
    """Find the best of all two-way partitions of the runs, in Gray-code order, or of the cuts of their order.

    Return (score, bits of the left runs, or the last of them).
    """
    for j in range(n_present):
        left[j] = 0.0
    n_left = 0
    bits = 0
    chosen = -1
    for step in range(1, 1 << (runs - 1) if all_subsets else runs):
        r = trailing_zeros(uint64(step)) if all_subsets else step - 1
        sign = 1 if bits >> r & 1 == 0 or not all_subsets else -1
        if all_subsets:
            bits ^= 1 << r
        n_left += sign * run_n[r]
        n_right = n - n_left
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
    """Write side[row] = 1 for the node's rows that go left, 0 for the others."""
    for i in range(start, end):
        if how == SORTED:
            entry = packed[slot, i]
            row = np.int64(entry & LOW)
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
    """Put the entries of side 1 first, keeping their order."""
    at = start
    kept = 0
    for i in range(start, end):
        entry = packed[slot, i]
        goes_left = side[np.int64(entry & LOW)]
        packed[slot, at] = entry
        spare[kept] = entry
        at += goes_left
        kept += 1 - goes_left
    for i in range(kept):
        packed[slot, at + i] = spare[i]


# ---------------------------------------------------------------- the whole tree


@inner
def _summarise_numbers(order, start, end, response, centred):
    """Centre the node's responses; return (mean, sum of squares around it).

    The first response is subtracted before averaging, so that equal responses are centred to exact zeros.
    """
    n = end - start
    first = response[order[start]]
    mean = 0.0
    for i in range(n):
        centred[i] = response[order[start + i]] - first
        mean += centred[i]
    mean /= n
    spread = 0.0
    for i in range(n):
        centred[i] -= mean
        spread += centred[i] * centred[i]
    return first + mean, spread


@inner
def _summarise_classes(order, start, end, labels, n_classes, in_node, present):
    """Count the node's classes; return (sum of squared counts / size, number of classes present)."""
    for k in range(n_classes):
        in_node[k] = 0
    for i in range(start, end):
        in_node[labels[order[i]]] += 1
    base = 0.0
    n_present = 0
    for k in range(n_classes):
        if in_node[k]:
            base += float(in_node[k]) * in_node[k]
            present[n_present] = k
            n_present += 1
    return base / (end - start), n_present


@inner
def _shuffle(active, depth, n_here, n_tried, words, node):
    """Move `n_tried` random columns in a row of `active` to its front, by the random words of the node."""
    for a in range(n_tried):
        chosen = a + np.int64(words[node, a] % uint64(n_here - a))
        f = active[depth, chosen]
        active[depth, chosen] = active[depth, a]
        active[depth, a] = f


@jit(**LEAN)
def grow_nodes(columns, nodes, work, response, labels, n_classes, min_split, min_leaf, max_depth, n_tried, words):
    """Grow the whole tree; return the number of nodes and of mask entries.

    A node tries `n_tried` of its columns, drawn by the random `words` in its row, or all if it has no more. Columns
    that are constant in a node are not tried below it.
    """
    codes, packed, order = columns.codes, columns.packed, work.order
    active, n_active, centred = work.active, work.n_active, work.centred
    run_code, run_n, run_sum = work.run_code, work.run_n, work.run_sum
    classes, in_node, present = work.classes, work.node_count, work.present
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
        mean = base = 0.0
        n_present = 0
        if n_classes:
            base, n_present = _summarise_classes(order, start, end, labels, n_classes, in_node, present)
            impurity = n - base if n_present > 1 else 0.0
        else:
            mean, impurity = _summarise_numbers(order, start, end, response, centred)
        nodes.feature[node] = LEAF
        nodes.mask_at[node] = -1
        nodes.impurity[node] = impurity
        if n < min_split or n < 2 * min_leaf or depth >= max_depth or impurity <= 0.0:
            continue

        best = SMALLEST_GAIN * (impurity if n_classes else impurity / n)
        split = cut = after = missing_side = np.int64(-1)
        below = 0
        n_looked = n_active[depth]
        if n_tried < n_looked:
            _shuffle(active, depth, n_looked, n_tried, words, node)
            n_looked = n_tried
        for a in range(n_looked):
            f = np.int64(active[depth, a])
            how, slot, levels = columns.how[f], columns.slot[f], columns.n_values[f]
            if n_classes and how == SORTED:
                runs = _classes_by_order(packed, slot, start, end, labels, run_code, run_n, classes)
            elif n_classes:
                runs = _classes_by_code(
                    codes, slot, levels, order, start, end, labels, work.count, work.words, run_code, run_n, classes
                )
            elif how == SORTED:
                runs = _collect_sorted(packed, slot, start, end, response, mean, run_code, run_n, run_sum)
            elif how == PAIR:
                runs = _collect_pair(codes, slot, order, start, end, centred, run_code, run_n, run_sum)
            else:
                runs = _collect_codes(
                    codes, slot, levels, order, start, end, centred, work.count, work.total, work.words, run_code,
                    run_n, run_sum,
                )  # fmt: skip
            if runs == 1:
                continue
            active[depth + 1, below] = f
            below += 1
            if how == UNORDERED:
                as_bits = n_classes > 0 and runs <= MAX_SUBSET_LEVELS
                if n_classes:
                    _count_table(run_n, run_sum, runs, classes, present, n_present, work.position, work.table)
                    if not as_bits:
                        _principal_scores(run_n, runs, work.table, n_present, n, work.axis, work.key)
                else:
                    for r in range(runs):
                        work.key[r] = run_sum[r] / run_n[r]
                if not as_bits:
                    _order_runs(work.key, runs, run_code, run_n, run_sum)
                if n_classes:
                    score, chosen = _scan_partitions(
                        run_n, run_sum, runs, work.table, as_bits, work.axis, in_node, present, n_present, n, min_leaf,
                        base, best,
                    )  # fmt: skip
                else:
                    score, chosen = _scan_runs(run_n, run_sum, runs - 1, n, np.int64(0), 0.0, min_leaf, best)
                if score > best:
                    best = score
                    split = f
                    _note_levels(masks, n_masks, levels, run_code, runs, chosen, as_bits)
            else:
                score, low, high, side = _search_ordered(
                    levels, runs, run_code, run_n, run_sum, classes, in_node, work.left_count, n_classes, n, min_leaf,
                    base, best,
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
        nodes.feature[node] = split
        nodes.left[node] = n_nodes
        nodes.cut[node] = cut
        nodes.after[node] = after
        larger_left = middle - start >= end - middle
        if how == UNORDERED:
            nodes.mask_at[node] = n_masks
            for c in range(levels + 1):  # levels that the node has not seen go to its larger child
                if masks[n_masks + c] == ABSENT:
                    masks[n_masks + c] = larger_left
            missing_side = np.int64(masks[n_masks + levels])
            n_masks += levels
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


@jit(**LEAN)
def route(values, steps, threshold, missing_left, number, mask_at, masks, plain, walking_rows, leaf):
    """Write the leaf of each row; `values` has the columns one after the other, of which a `plain` tree splits numbers.

    A step is left child << 32 | start of the column. A leaf leads to itself, so several steps are taken without a test,
    and rows at a leaf are removed between such strides. The steps of different rows of a chunk are independent, so that
    their memory loads overlap. Indices are unsigned, which avoids the test for negative ones. `walking_rows` is scratch
    for one chunk.
    """
    for begin in range(0, leaf.size, walking_rows.size):
        walking = min(walking_rows.size, leaf.size - begin)
        for a in range(walking):
            walking_rows[a] = begin + a
            leaf[begin + a] = 0
        while walking:
            kept = 0
            for a in range(walking):
                row = walking_rows[a]
                node = uint64(leaf[row])
                if plain:
                    for _ in range(STRIDE):
                        step = steps[node]
                        goes_right = values[row + (step & LOW)] >= threshold[node]
                        node = (step >> uint64(32)) + uint64(goes_right)
                else:
                    for _ in range(STRIDE):
                        step = steps[node]
                        x = values[row + (step & LOW)]
                        goes_right = x >= threshold[node]
                        if np.isnan(x):
                            goes_right = not missing_left[node]
                        elif mask_at[node] >= 0:
                            goes_right = not masks[mask_at[node] + np.int64(x)]
                        node = (step >> uint64(32)) + uint64(goes_right)
                leaf[row] = node
                walking_rows[kept] = row
                kept += steps[node] >> uint64(32) != node
            walking = kept
    for i in range(leaf.size):
        leaf[i] = number[leaf[i]]
