"""The results of `benchmarks.speed` as text of at most 120 columns, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    "asked",
    "peak MB",
]
WIDTHS = [8, 9, 8, 9, 7, 7, 7, 6, 8, 10, 9, 8]
LABEL = 21
STANDIN = "SIMULATED STAND-IN of the same shape: the data file is absent"
NOTES = """\
Seconds: mcce is the faster of two warm runs, the plain method one run, in the same process; total is the
wall clock from frame to frame. ratio: total of plain over total of mcce. L1: sum of range-scaled differences
(gower_sum). viol.: changed fixed values. success: share of rows that are valid when asked again. explained:
factuals with a counterfactual. asked: rows asked of the model per factual after the fit. peak MB: of a
process that runs this method alone, with libraries, data and model. Categories that are not binarised are
levels to mcce, which splits them as sets, and codes to the plain method, which splits them as numbers."""


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
        f"{one['asked_per_factual']:.1f}",
        "-" if peak is None else f"{peak:.0f}",
    ]


def many(results: list[Result]) -> str:
    """Return the lines on many factuals: seconds, and how memory grows."""
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
    """Return the exponents, "explain ~ K^0.97", with the seconds behind them."""
    if "failed" in result:
        return f"\nScaling: FAILED, {result['failed']}"
    lines = [
        "",
        "Growth (Gaussian data, 10 features, own draws; slope of log seconds on log size, least squares):",
    ]
    for curve in result["curves"]:
        formula = f"{curve['step']} ~ {curve['by']}^{curve['exponent']:.2f}"
        points = ", ".join(
            f"{size:,}: {seconds:.3f} s" for size, seconds in zip(curve["sizes"], curve["seconds"])
        )
        lines.append(f"  {formula:<24} {points}")
    return "\n".join(lines)


def first_call(result: Result) -> str:
    """Return the seconds a newcomer waits."""
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
    parts = ["# Speed of mcce beside the plain method", about(results["about"])]
    if results["about"]["sources_changed"]:
        parts.append("mcce was edited during the run: the numbers mix two versions.")
    if results["quick"]:
        parts.append("Tiny sizes (--quick): the numbers say nothing about speed.")
    if results["settings"]:
        lines = [f"| | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
        for one in results["settings"]:
            lines.append(
                f"| **{_title(one) if 'failed' not in one else setting(one)}** |" + " |" * len(COLUMNS)
            )
            if "failed" not in one:
                lines += [f"| {STANDIN} |" + " |" * len(COLUMNS)] if one["standin"] else []
                lines += [f"| {method} | {' | '.join(_cells(one, method))} |" for method in ("plain", "mcce")]
        parts += ["\n".join(lines), NOTES]
    parts += [f"```\n{EXTRAS[name](results[name]).strip()}\n```" for name in EXTRAS if name in results]
    return "\n\n".join(parts) + "\n"
