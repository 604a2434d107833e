"""The results of `benchmarks.speed` and `benchmarks.samplers` as text of at most 120 columns, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Result = dict[str, Any]

COLUMNS = [
    "fit",
    "generate",
    "select",
    "total",
    "ratio",
    "L0",
    "L1",
    "viol.",
    "success",
    "explained",
    "queried",
    "peak MB",
]
WIDTHS = [8, 9, 8, 9, 7, 7, 7, 6, 8, 10, 9, 8]
LABEL = 21
STANDIN = "SIMULATED STAND-IN of the same shape: the data file is absent"
QUICK = "Tiny sizes (--quick): the numbers are not a measure of speed."
NOTES = """\
Seconds: mcce is the faster of two warm runs, the plain method one run, in the same process; total is the
wall clock from frame to frame. ratio: total of plain over total of mcce. L1: sum of range-scaled differences
(gower_sum). viol.: changed fixed values. success: share of rows that are valid when queried again. explained:
factuals with a counterfactual. queried: rows passed to the model per factual after the fit. peak MB: of a
process that runs only this method, with libraries, data and model. Categories that are not binarised are
levels in mcce, which splits them as sets, and codes in the plain method, which splits them as numbers."""


def about(result: Result) -> str:
    """Return date, cores and versions."""
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return f"{result['date']}, {result['machine']}, {result['cores']} cores\n{versions}"


def head() -> str:
    """Return the head of the table of settings."""
    return "\n" + " " * LABEL + "".join(name.rjust(width) for name, width in zip(COLUMNS, WIDTHS))


def setting(result: Result) -> str:
    """Return the lines of one setting: a title, the plain method, mcce."""
    if "failed" in result:
        return f"{result['title']}: FAILED, {result['failed']}"
    lines = [_title(result), *([f"  {STANDIN}"] if result["standin"] else [])]
    for method in ("plain", "mcce"):
        cells = _cells(result, method)
        lines.append(f"  {method}".ljust(LABEL) + "".join(c.rjust(width) for c, width in zip(cells, WIDTHS)))
    return "\n".join(lines)


def _title(result: Result) -> str:
    sizes = f"n = {result['n_train']:,}, p = {result['n_features']}, {result['n_factuals']:,} factuals"
    return f"{result['name']}: {result['title']} ({sizes}, K = {result['n_samples']:,})"


def _cells(result: Result, method: str) -> list[str]:
    one = result[method]
    steps = [f"{one['seconds'][step]:.3f}" for step in ("fit", "generate", "select", "total")]
    peak = one.get("peak_mb")
    return [
        *steps,
        f"{result['ratio']:.1f}" if method == "mcce" else "",
        f"{one['L0']:.3f}",
        f"{one['gower_sum']:.3f}",
        str(one["violations"]),
        "-" if one["success"] is None else f"{one['success']:.3f}",
        f"{one['explained']}",
        f"{one['queried_per_factual']:.1f}",
        "-" if peak is None else f"{peak:.0f}",
    ]


def many(results: list[Result]) -> str:
    """Return the lines on many factuals: seconds and growth of memory."""
    lines = ["", "Many factuals (loans, gradient boosting, mcce alone, each line a fresh process):"]
    for one in results:
        if "failed" in one:
            lines.append(f"  {one['name']}: FAILED, {one['failed']}")
            continue
        draws = "own draws" if one["independent"] else "shared pools"
        seconds = one["seconds"]
        explain = seconds["total"] - seconds["fit"]
        lines.append(
            f"  {one['n_factuals']:>7,} factuals, K = {one['n_samples']}, {draws:<12}"
            f"  explain {explain:7.2f} s  explained {one['explained']:>7,}"
            f"  memory at start {one['start_mb']:5.0f} MB, peak {one['peak_mb']:5.0f} MB"
        )
    return "\n".join(lines)


def scaling(result: Result) -> str:
    """Return the exponents, "explain ~ K^0.97", with the seconds they are fitted to."""
    if "failed" in result:
        return f"\nScaling: FAILED, {result['failed']}"
    lines = [
        "",
        "Growth (Gaussian data, 10 features, own draws; slope of log seconds on log size, least squares):",
    ]
    for curve in result["curves"]:
        formula = f"{curve['step']} ~ {curve['by']}^{curve['exponent']:.2f}"
        points = ", ".join(f"{size:,}: {seconds:.3f} s" for size, seconds in zip(curve["sizes"], curve["seconds"]))
        lines.append(f"  {formula:<24} {points}")
    return "\n".join(lines)


def first_call(result: Result) -> str:
    """Return the seconds of the first call."""
    failed = [one["failed"] for one in result.values() if "failed" in one]
    if failed:
        return f"\nFirst call: FAILED, {failed[0]}"
    fresh, cached = result["fresh"], result["cached"]
    return (
        f"\nFirst call (500 loans): compiling takes {fresh['first'] - fresh['second']:.2f} s"
        f" (first fit and explain {fresh['first']:.2f} s, second {fresh['second']:.3f} s);"
        f"\n  with the kernels on disk the first call of a process takes {cached['first']:.2f} s"
    )


def import_seconds(result: Result) -> str:
    """Return the seconds of the import."""
    return f"\nimport mcce: {result['seconds']:.2f} s (best of five processes)"


EXTRAS: dict[str, Callable[[Any], str]] = {
    "many": many,
    "scaling": scaling,
    "compile": first_call,
    "import": import_seconds,
}


def markdown(results: Result) -> str:
    """Return everything as one Markdown page."""
    parts = ["# Speed of mcce compared with the plain method", about(results["about"])]
    if results["about"]["sources_changed"]:
        parts.append("mcce was edited during the run: the numbers mix two versions.")
    if results["quick"]:
        parts.append(QUICK)
    if results["settings"]:
        lines = [f"| | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
        for one in results["settings"]:
            lines.append(f"| **{_title(one) if 'failed' not in one else setting(one)}** |" + " |" * len(COLUMNS))
            if "failed" not in one:
                lines += [f"| {STANDIN} |" + " |" * len(COLUMNS)] if one["standin"] else []
                lines += [f"| {method} | {' | '.join(_cells(one, method))} |" for method in ("plain", "mcce")]
        parts += ["\n".join(lines), NOTES]
    parts += [f"```\n{EXTRAS[name](results[name]).strip()}\n```" for name in EXTRAS if name in results]
    return "\n\n".join(parts) + "\n"


# ---------------------------------------------------------------- benchmarks.samplers

SAMPLER_LABEL = 13
SAMPLER_COLUMNS = ["fit", "draw", "log", "(se)", "skill", "new", "(sd)", "seen", "pMSE", "L0 seen", "L0", "L1"]
SAMPLER_COLUMNS += ["sparse", "L1", "expl.", "MB"]
SAMPLER_WIDTHS = [8, 7, 8, 7, 7, 6, 8, 6, 6, 8, 6, 6, 7, 6, 6, 5]
SAMPLER_NOTES = """
fit: seconds of CPU time, of all threads, for the chain, the choice of auto included. draw: the same to draw 1000 rows.
log: mean log score of rows that the chain has not seen (se); skill: 1 - loss / loss of the marginal distribution, mean
over the features, by CRPS or Brier score from draws. new, seen: accuracy of the discriminator, a random forest of 100
trees that distinguishes generated from real rows, mean (sd) over its seeds; 0.5 is chance. new: the chain was fitted on
half of the rows and is compared with the other half. seen: compared with the rows it was fitted on; a value below 0.5
indicates near-copies. pMSE: S_pMSE of new rows, by a logistic regression; 2 at best. L0 seen: changes of the
counterfactuals of rows that the chain was fitted on, as in the paper. L0, L1 (gower_sum), expl.: of the same factuals,
held out in five parts; sparse, L1: of the sparse method for these. MB: peak of the process. norm, gaussian, pmm and
vine model the numbers, parametric the other features."""


def samplers_head() -> str:
    """Return the head of the table of samplers."""
    return "\n" + " " * SAMPLER_LABEL + "".join(n.rjust(width) for n, width in zip(SAMPLER_COLUMNS, SAMPLER_WIDTHS))


def data_set(result: Result) -> str:
    """Return the line about a data set, above those of its samplers."""
    if "failed" in result:
        return f"{result['name']}: FAILED, {result['failed']}"
    sizes = f"n = {result['n_rows']:,}, p = {result['n_features']}, {result['n_factuals']:,} factuals"
    real = f"two halves of the real rows: {result['real']['accuracy']:.3f} ({result['real']['sd']:.3f})"
    return f"{result['name']} ({sizes}; {real})" + (f"\n  {STANDIN}" if result["standin"] else "")


def sampler(result: Result) -> str:
    """Return the line of one sampler, followed by its failure and its warnings."""
    cells = "".join(c.rjust(width) for c, width in zip(_sampler_cells(result), SAMPLER_WIDTHS))
    return "\n".join([f"  {result['sampler']}".ljust(SAMPLER_LABEL) + cells, *(f"    {r}" for r in _remarks(result))])


def _sampler_cells(result: Result) -> list[str]:
    def cells(name: str) -> list[str]:
        return [f"{result[name]['accuracy']:.3f}", f"({result[name]['sd']:.3f})"] if name in result else ["-", ""]

    def number(name: str) -> str:
        return "-" if result.get(name) is None else f"{result[name]:.3f}"

    log = [f"{result['log_score']:.2f}", f"({result['log_se']:.2f})"] if "log_score" in result else ["-", ""]
    return [
        number("fit"),
        number("draw"),
        *log,
        number("skill"),
        *cells("new"),
        cells("seen")[0],
        "-" if result.get("S_pMSE") is None else f"{result['S_pMSE']:.1f}",
        *(number(name) for name in ("L0", "L0_new", "gower_sum_new", "L0_sparse", "gower_sum_sparse")),
        str(result.get("explained_new", "-")),
        f"{result['peak_mb']:.0f}" if "peak_mb" in result else "-",
    ]


def choice(found: Result | None) -> str:
    """Return the gain of the choice by evidence over the best single sampler and over cart; "" without one."""
    if found is None:
        return ""
    gains = [f"{found['best']}, the best single one, {_gain(found['ahead_of_best'])}"]
    gains += [f"cart {_gain(found['ahead_of_cart'])}"] if found["ahead_of_cart"] else []
    accuracies = {name: f"{accuracy:.3f} ({sd:.3f})" for name, (accuracy, sd) in found["discriminator"].items()}
    lines = [f"  auto: log score relative to {'; relative to '.join(gains)}"]
    stacked = found.get("stack") or {}
    lines += [f"  stack: log score relative to {name} {_gain(gain)}" for name, gain in stacked.items()]
    lines.append(
        f"  auto: discriminator {accuracies.pop('auto')}; "
        + ", ".join(f"{name} {accuracies[name]}" for name in accuracies)
    )
    return "\n".join(lines)


def _gain(figures: tuple[float, float]) -> str:
    return f"{figures[0]:+.3f} (se {figures[1]:.3f})"


def _remarks(result: Result) -> list[str]:
    failed = [f"FAILED: {result['failed']}"] if "failed" in result else []
    return [*failed, *(f"warned: {text}" for text in result.get("warnings", []))]


def visit(result: Result) -> str:
    """Return the accuracies of the two visit sequences on one data set, and their difference."""
    if "failed" in result:
        return f"  FAILED: {result['failed']}"
    lines = []
    for name in ("data", "correlation"):
        one = result[name]["accuracies"]
        each = "  ".join(f"{accuracy:.3f}" for accuracy in one)
        lines.append(f"  {name:<12} {np.mean(one):.3f}   by seed  {each}")
    mean, error = _difference(result)
    lines.append(f"  correlation minus data: {mean:+.4f} +- {error:.4f} (95 per cent over the seeds)")
    return "\n".join(lines)


def _difference(result: Result) -> tuple[float, float]:
    """Return the mean difference of accuracies, paired by seed, and half of its 95 per cent interval."""
    from scipy.stats import t  # imported here to keep the workers fast

    steps = np.subtract(result["correlation"]["accuracies"], result["data"]["accuracies"])
    half = t.ppf(0.975, len(steps) - 1) * steps.std(ddof=1) / np.sqrt(len(steps))
    return float(steps.mean()), float(half)


def visit_finding(results: Result) -> str:
    """Return a sentence on whether correlation order makes the sample more realistic than data order."""
    found = {one["name"]: _difference(one["visit"][0]) for one in results["data"] if _has_visit(one)}
    by_verdict: dict[str, list[str]] = {"more realistic": [], "less realistic": [], "no clear difference": []}
    for name, (mean, error) in found.items():
        verdict = "no clear difference" if abs(mean) <= error else f"{'more' if mean < 0 else 'less'} realistic"
        by_verdict[verdict].append(f"{name} ({100 * mean:+.1f} points)")
    said = "; ".join(f"{verdict} on {', '.join(names)}" for verdict, names in by_verdict.items() if names)
    return (
        f"\nTrees in correlation order compared with trees in data order: {said or 'nothing was measured'}."
        "\nPoints: difference in the discriminator's accuracy (new rows), per cent; below 0 is more realistic. The"
        "\ninterval is that of the draws, splits and forests; the rows are the same for all seeds."
    )


def _has_visit(one: Result) -> bool:
    return bool(one.get("visit")) and "failed" not in one["visit"][0]


def samplers_markdown(results: Result) -> str:
    """Return the samplers, or the visit sequences, as one Markdown page."""
    is_visit = any("visit" in one for one in results["data"])
    title = "Order of the features: data or correlation" if is_visit else "Comparison of samplers"
    parts = [f"# {title}", about(results["about"])]
    parts += [QUICK] if results["quick"] else []
    if is_visit:
        each = ["\n".join([data_set(one), *map(visit, one["visit"])]) for one in results["data"]]
        return "\n\n".join([*parts, "```\n" + "\n".join(each) + "\n```", visit_finding(results).strip()]) + "\n"
    lines = [f"| | {' | '.join(SAMPLER_COLUMNS)} |", "|---|" + "---:|" * len(SAMPLER_COLUMNS)]
    for one in results["data"]:
        lines.append(f"| **{data_set(one)}** |".replace("\n", " ") + " |" * len(SAMPLER_COLUMNS))
        for each in one["samplers"]:
            lines.append(f"| {each['sampler']} | {' | '.join(_sampler_cells(each))} |")
            lines += [f"| {r.replace('|', '/')} |" + " |" * len(SAMPLER_COLUMNS) for r in _remarks(each)]
        lines += [f"| {line.strip()} |" + " |" * len(SAMPLER_COLUMNS) for line in choice(one.get("auto")).splitlines()]
    return "\n\n".join([*parts, "\n".join(lines), SAMPLER_NOTES.strip()]) + "\n"
