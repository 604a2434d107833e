"""Changes and realism of counterfactuals: mcce's modes compared with the plain method, a walk, and other packages.

    python -m benchmarks.quality [--only NAME,...] [--models NAME,...] [--factuals N] [--floors F,...] [--out FILE]

1. For each data set and model (`benchmarks.settings`; the loans as well) take the first factuals. They are training
   rows, as in the paper; in a second run they are held out.
2. Run on the same factuals: the plain method (`benchmarks.plain`); mcce as in the paper; mcce with `sparse=True` at
   each floor, the trade-off between few changes and realistic rows; a walk to the nearest unlike neighbour as in NICE,
   free and held to the fixed values (`benchmarks.walk`); for networks on numbers NICEx and DiCE, if installed
   (`benchmarks.paper.peers`).
3. Judge all rows in the same way (`benchmarks.judging`), and report the floors at which mcce is not worse than the held
   walk in L0, L1, distance to the five nearest training rows, or by independent judges, on the factuals that both
   explain.
4. With `--alike`, compare the walk only, under equal rules: both may return rows with a reason not to be sent, or
   neither (`benchmarks.walk`). `--skip` leaves out the first factuals.
5. With `--joint SHARE`, compare sparse answers with and without the rule `mcce.joint_density` only.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

import mcce
from benchmarks import report
from benchmarks.judging import Judge
from benchmarks.page import Page, read_names, read_shares
from benchmarks.paper import peers
from benchmarks.paper.options import Options, peers_python
from benchmarks.paper.problems import TEXT, Case, Rows
from benchmarks.settings import MODELS, Problem, Setting, find_data, make_problem
from benchmarks.speed import describe_machine
from benchmarks.speed_worker import Counted, Run, run_mcce, run_plain
from benchmarks.walk import run_walk
from mcce.report.suspicious import STOP

DATA = ("adult", "gmc", "fico", "german", "loans")
TITLES = {"adult": "Adult", "gmc": "GMC", "fico": "FICO", "german": "German", "loans": "loans"}
SOURCES = ("training", "held-out")
FLOORS = "0,0.01,0.05,0.1,0.25,0.5"
FLOOR = 0.05  # floor by which the rows of every method are judged
HELD = "walk, held"
PEERS = {
    "nice": "NICEx",
    "nice-fixed": "NICEx, held",
    "dice-random": "DiCE, random",
    "dice-genetic": "DiCE, genetic",
    "dice-kdtree": "DiCE, kdtree",
}
FROM_OUTSIDE = ("near5", "near5 wanted", "odd", "refits")  # figures of the judge
GAPS = ["L0", "L1", "near5", "odd", "refits"]
ABSENT = "To have them: python -m venv peers && peers/bin/pip install dice-ml NICEx; --peers-python peers/bin/python."
HEAD = ["", "expl.", "L0", "L1", "viol.", "valid", "floor", "real", "5 near", "5 n. w.", "odd", "refits"]
HEAD += ["queried", "sec."]
NOTES = """\
Means over the factuals that a method explains (expl.). L1: sum of range-scaled differences (gower_sum). viol.: changed
fixed values. valid: share of rows with the wanted decision when queried again. floor: share of rows at or above the
requested floor. real: share with a plausibility of 0.05 or more, by which sparse rows were selected; 0.95 of
real rows have it. 5 near: mean distance, as L1, to the five nearest training rows; n. w.: to the nearest with the
wanted decision; the factual itself is excluded. odd: share that an isolation forest ranks below 95 % of the training
rows. refits: share of three models, trained from other seeds, that return the wanted decision. queried: rows passed to
the model per factual after the fit. sec.: from frame to frame, warm, one run; for mcce including the fit, with sparse
that of the plausibility. plain: the method as described in the paper
(benchmarks.plain). mcce: as in the paper. sparse: mcce with sparse=True. walk: the walk of NICE for sparsity
(benchmarks.walk), free and held to the fixed values. factuals: the rows to explain. The second table is the trade-off
over floors: means of sparse minus those of the held walk, on the factuals that both explain, with paired standard
errors."""


@dataclass(frozen=True)
class Found:
    """The results of one method: its run, the figures of its rows, and the share at or above its floor, if any."""

    method: str
    run: Run
    figures: pd.DataFrame
    n_factuals: int
    floor: float | None = None
    above: float | None = None

    @property
    def cells(self) -> list[str]:
        """Return a line of the table."""
        f = self.figures
        means = [f"{f[name].mean():.3f}" for name in FROM_OUTSIDE]
        return [
            self.method,
            f"{len(f)}/{self.n_factuals}",
            f"{f['L0'].mean():.3f}",
            f"{f['L1'].mean():.3f}",
            str(f["violations"].sum()),
            f"{f['success'].mean():.3f}",
            "" if self.above is None else f"{self.above:.3f}",
            f"{(f['plausibility'] >= FLOOR).mean():.3f}",
            *means,
            f"{self.run.queried / self.n_factuals:.1f}" if self.run.queried else "",
            f"{self.run.seconds['total']:.2f}" if self.run.seconds["total"] else "",
        ]


def run_sparse(
    problem: Problem, setting: Setting, floors: list[float], joint: float | None = None
) -> Iterator[tuple[float, Run, float]]:
    """Run mcce's sparse mode at each floor; yield the floor, the run, and the share of rows at or above the floor.

    `joint` is the share of `mcce.joint_density` as an additional rule.
    """
    model = Counted(problem.score)
    begun = time.perf_counter()
    rules = [] if joint is None else [mcce.joint_density(problem.X, joint)]
    explainer = mcce.MCCE(
        model, decision=problem.decision, fixed=problem.fixed, kinds=problem.kinds, constraints=rules, random_state=1
    ).fit(problem.X)
    explainer.explain(problem.factuals.iloc[:1], n_samples=1, sparse=True)  # fits the plausibility
    prepared = time.perf_counter() - begun
    for floor in floors:
        begun, before = time.perf_counter(), model.queried
        found = explainer.explain(problem.factuals, n_samples=setting.n_samples, sparse=True, floor=floor)
        seconds = {"total": prepared + time.perf_counter() - begun}
        rows = problem.encode(found.frame.droplevel("rank"))
        above = float((found.measures["plausibility"] >= floor).mean())
        yield floor, Run(seconds, rows, model.queried - before), above


def run_methods(problem: Problem, setting: Setting, floors: list[float]) -> Iterator[Found]:
    """Run and judge all methods but the peers (steps 2 and 3)."""
    few = replace(problem, X=problem.X.iloc[:500], factuals=problem.factuals.iloc[:5])
    if problem.decision.contains(problem.score(few.X)).any():  # compile or load kernels before timing
        small = replace(setting, n_samples=20)
        run_mcce(few, small)
        list(run_sparse(few, small, [FLOOR]))
    judge, n = Judge(problem), len(problem.factuals)

    def found(method: str, run: Run, floor: float | None = None, above: float | None = None) -> Found:
        return Found(method, run, judge.judge(run.rows), n, floor, above)

    yield found("plain", run_plain(problem, setting))
    yield found("mcce", run_mcce(problem, setting))
    for floor, run, above in run_sparse(problem, setting, floors):
        yield found(f"sparse, floor {floor:g}", run, floor, above)
    yield found(HELD, run_walk(problem, held=True))
    yield found("walk, free", run_walk(problem, held=False))
    yield found("factuals", Run({"total": 0.0}, problem.encode(problem.factuals), 0))


def run_peers(problem: Problem, options: Options) -> Iterator[Found | str]:
    """Run and judge the peers on the first factuals; yield the reason if one fails.

    The response is the model's decision, so that they use the same rows as the walk.
    """
    if not options.peers:
        return
    model = getattr(problem.score, "model", None)
    if problem.X.select_dtypes("category").shape[1] or not hasattr(getattr(model, "_final_estimator", None), "coefs_"):
        yield "NICEx and DiCE are run for networks on numbers only (--models mlp; not on the loans)."
        return
    some = replace(problem, factuals=problem.factuals.iloc[: options.peers_factuals])
    y = problem.decision.contains(problem.score(problem.X)).astype(int)
    rows = Rows("", TEXT, problem.X, y, problem.categorical, problem.fixed, problem.standin, 0.0)
    case, judge = Case(rows, some, model, 0, np.nan), Judge(some)
    absent, versions = [], []
    for method in options.peers:
        answer = peers.query_peer(case, some, method, options)
        if "No module named" in answer.why:
            absent.append(PEERS[method])
        elif answer.rows.empty:
            yield f"{PEERS[method]} found nothing: {answer.why}"
        else:
            run = Run({"total": answer.seconds}, answer.rows, 0)
            versions.append(answer.version)
            yield Found(PEERS[method], run, judge.judge(answer.rows), answer.n_queried)
    if versions:
        yield f"{', '.join(dict.fromkeys(versions))}; each peer has {options.peers_limit:g} s, for as many as it can."
    if absent:
        yield f"Not installed: {'; '.join(absent)}.\n{ABSENT}"


def compare(found: list[Found]) -> tuple[list[list[str]], str]:
    """Return sparse minus held walk by floor, and the floors at which no figure is worse than the walk's (step 3)."""
    (held,) = (one for one in found if one.method == HELD)
    lines, good = [], []
    for one in found:
        both = held.figures.index.intersection(one.figures.index)
        if one.floor is None or both.empty:
            continue
        gaps = one.figures.loc[both, GAPS].astype(float) - held.figures.loc[both, GAPS].astype(float)
        mean, error = gaps.mean(), gaps.sem()
        cells = (f"{mean[name]:+.3f} ({error[name]:.3f})" for name in GAPS)
        lines.append([f"{one.floor:g}", str(len(both)), *cells])
        gain = mean * [-1, -1, -1, -1, 1]  # for `refits` more is better
        if not (gain < -2 * error - 1e-9).any():
            good.append(f"{one.floor:g}")
    where = f"at the floor(s) {', '.join(good)}" if good else "at none of these floors"
    return lines, f"Not worse than the held walk in any of these by more than two standard errors: {where}."


def run_setting(
    page: Page, setting: Setting, folder: Path | None, sources: list[str], floors: list[float], options: Options
) -> None:
    """Create the problem and print its tables (steps 1 to 3)."""
    whole = make_problem(setting, folder)
    for source in sources:
        problem = whole if source == "training" else replace(whole, X=whole.X.drop(index=whole.factuals.index))
        where = {"training": "among the training rows", "held-out": "held out"}[source]
        n, p = problem.X.shape
        sizes = f"n = {n:,}, p = {p}, K = {setting.n_samples:,}"
        page.title(f"{setting.title}: {len(problem.factuals):,} factuals {where} ({sizes})")
        if problem.standin:
            page.write_line(report.STANDIN)
        found = list(run_methods(problem, setting, floors))
        said = list(run_peers(problem, options))
        page.table(HEAD, [one.cells for one in [*found, *(peer for peer in said if isinstance(peer, Found))]])
        lines, finding = compare(found)
        page.table(["floor", "both", "L0", "L1", "5 near", "odd", "refits"], lines)
        page.write_line("\n".join([finding, *(peer for peer in said if isinstance(peer, str))]))


class Unrestricted(mcce.MCCE):
    """An explainer that does not avoid the reasons of `suspicious()`."""

    def _stops(self) -> None:
        return None


def run_joint(page: Page, setting: Setting, folder: Path | None, floors: list[float], share: float) -> None:
    """Compare sparse answers with and without the rule `mcce.joint_density` (step 5)."""
    problem = make_problem(setting, folder)
    page.title(f"{setting.title}: {len(problem.factuals):,} factuals, joint density above a share of {share:g}")
    judge, n, lines, gaps, runs = Judge(problem), len(problem.factuals), [], [], []
    few = replace(problem, factuals=problem.factuals.iloc[:2])
    list(run_sparse(few, replace(setting, n_samples=20), [FLOOR], share))  # compile or load kernels before timing
    for joint in (None, share):
        begun = time.process_time()
        runs.append([*run_sparse(problem, setting, floors, joint)])
        page.write_line(f"{'With' if joint else 'Without'} the rule: {time.process_time() - begun:.1f} CPU seconds.")
    for pair in zip(*runs, strict=True):
        free, ruled = (Found("", run, judge.judge(run.rows), n, floor, above) for floor, run, above in pair)
        name, both = f"floor {free.floor:g}", free.figures.index.intersection(ruled.figures.index)
        lines += [[name, *free.cells[1:]], [f"{name}, with the rule", *ruled.cells[1:]]]
        gaps.append([name, str(len(both)), *differences(ruled.figures.loc[both], free.figures.loc[both])])
    page.table(HEAD, lines)
    page.table(["with minus without", "both", "L0", "L1", "5 near", "odd", "refits"], gaps)


def differences(ours: pd.DataFrame, theirs: pd.DataFrame) -> list[str]:
    """Return mean differences with paired standard errors."""
    gaps = ours[GAPS].astype(float) - theirs[GAPS].astype(float)
    return [f"{gaps[name].mean():+.3f} ({gaps[name].sem():.3f})" for name in GAPS]


def run_alike(page: Page, setting: Setting, folder: Path | None, skip: int) -> None:
    """Compare with the walk: as released, both with all rows, both without reasons not to be sent (step 4)."""
    whole = make_problem(setting, folder)
    problem = replace(whole, factuals=whole.factuals.iloc[skip:])
    judge = Judge(problem)

    def explained(maker: type[mcce.MCCE], of: Problem, *, fit: bool = False) -> tuple[mcce.MCCE, pd.DataFrame]:
        explainer = maker(of.score, decision=of.decision, fixed=of.fixed, kinds=of.kinds, random_state=1).fit(of.X)
        found = explainer.explain(of.factuals, n_samples=setting.n_samples, sparse=True)
        rows, listed = found.frame, found.suspicious("all")
        if fit:
            rows = rows.drop(index=listed.index[listed["severity"] == STOP])
        return explainer, judge.judge(of.encode(rows.droplevel("rank")))

    released, by_default = explained(mcce.MCCE, problem)
    advised = replace(problem, fixed=[*problem.fixed, *released.learned_.unchangeable])
    strict, without_reasons = explained(mcce.MCCE, advised, fit=True)
    _, unrestricted = explained(Unrestricted, problem)
    walk = judge.judge(run_walk(problem, held=True).rows)
    strict_walk = judge.judge(run_walk(advised, held=True, rules=strict._stops()).rows)
    n = len(problem.factuals)
    page.title(f"{setting.title}: factuals {skip + 1} to {skip + n}")
    lines = []
    for way, ours, theirs in (
        ("as released, walk unrestricted", by_default, walk),
        ("both unrestricted", unrestricted, walk),
        ("both without reasons, past events fixed", without_reasons, strict_walk),
    ):
        both = theirs.index.intersection(ours.index)
        cells = differences(ours.loc[both], theirs.loc[both])
        lines.append([way, f"{len(ours)}", f"{len(theirs)}", str(len(both)), *cells])
    page.table(["", "mcce expl.", "walk expl.", "both", "L0", "L1", "5 near", "odd", "refits"], lines)


def make_setting(data: str, model: str, chosen: argparse.Namespace) -> Setting:
    """Return the setting with the sizes of the command line."""
    rows = 600 if chosen.quick else chosen.rows
    factuals, samples = (8, 50) if chosen.quick else (chosen.factuals, chosen.samples)
    title = f"{TITLES[data]}, {model}"
    return Setting(data, title, data, model, factuals, samples, binarised=data != "loans", n_train=rows)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", default=",".join(DATA), help=f"comma-separated, of: {', '.join(DATA)}")
    parser.add_argument("--models", default="mlp", help=f"comma-separated, of: {', '.join(MODELS)}")
    parser.add_argument("--factuals", type=int, default=200, help="factuals of each data set")
    parser.add_argument("--samples", type=int, default=1000, help="K, rows drawn for a factual")
    parser.add_argument("--floors", default=FLOORS, help="floors of the sparse mode")
    parser.add_argument("--sources", default=",".join(SOURCES), help="where factuals come from: training,held-out")
    parser.add_argument("--rows", type=int, help="random rows to take of each data set; else all")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma-separated peers, or none")
    parser.add_argument("--peers-python", default=peers_python(), help="Python that has dice-ml and NICEx")
    parser.add_argument("--peers-factuals", type=int, default=50)
    parser.add_argument("--peers-limit", type=float, default=60.0, help="seconds for a peer on a data set")
    parser.add_argument("--alike", action="store_true", help="compare with the walk under equal rules")
    parser.add_argument("--skip", type=int, default=0, help="factuals to skip before these, with --alike")
    parser.add_argument("--joint", type=float, help="compare with the rule mcce.joint_density of this share")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the command")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    chosen = parser.parse_args(arguments)
    names = read_names(parser, "--only", chosen.only, DATA)
    models = read_names(parser, "--models", chosen.models, MODELS)
    sources = read_names(parser, "--sources", chosen.sources, SOURCES)
    floors = read_shares(parser, "--floors", chosen.floors)
    options = Options(
        peers=() if chosen.peers == "none" else tuple(read_names(parser, "--peers", chosen.peers, list(PEERS))),
        peers_python=chosen.peers_python,
        peers_factuals=chosen.peers_factuals,
        peers_limit=chosen.peers_limit,
    )
    page = Page("Changes and realism of counterfactuals")
    page.write_line(report.about(describe_machine()))
    if chosen.quick:
        page.write_line("Tiny sizes (--quick): the numbers are meaningless.")
    page.write_line(NOTES)
    for name in names:
        for model in models:
            setting = make_setting(name, model, chosen)
            if chosen.alike:
                setting = replace(setting, n_factuals=chosen.skip + setting.n_factuals)
                run_alike(page, setting, find_data(chosen.data), chosen.skip)
                continue
            if chosen.joint is not None:
                run_joint(page, setting, find_data(chosen.data), floors, chosen.joint)
                continue
            run_setting(page, setting, find_data(chosen.data), sources, floors, options)
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
