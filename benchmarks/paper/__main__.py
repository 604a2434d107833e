"""``python -m benchmarks.paper EXPERIMENT [--data DIR]``: see `benchmarks.paper`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks import paper
from benchmarks.paper.options import DATA, RESULTS, Options, peers_python
from benchmarks.paper.peers import PEERS
from benchmarks.settings import find_data

EXPERIMENTS = ("experiment1", "experiment2", "experiment3", "experiment4", "appendix")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description=paper.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", help=f"comma-separated data sets, of: {', '.join(DATA)}")
    parser.add_argument("--factuals", type=int, help="factuals to explain; without it 1000, of German 200")
    parser.add_argument("--rows", type=int, help="rows to take of each data set at most; without it all")
    parser.add_argument("--samples", type=int, default=1000, help="K of experiment 1 and the appendix")
    parser.add_argument("--networks", type=int, default=3, help="networks for each data set and preparation")
    parser.add_argument("--repeats", type=int, help="runs of each timing; without it as the experiment says")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"peers to run, of: {', '.join(PEERS)}; or none")
    parser.add_argument("--peers-python", default=peers_python(), help="Python that has dice-ml and NICEx")
    parser.add_argument("--peers-factuals", type=int, default=20, help="factuals to explain with the peers")
    parser.add_argument("--peers-limit", type=float, default=15.0, help="seconds for a peer on a data set")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the command")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    return parser


def read_options(arguments: list[str]) -> tuple[list[str], Options]:
    """Return the experiments to run and their sizes."""
    parser = make_parser()
    chosen = parser.parse_args(arguments)
    names = _names(parser, "--only", chosen.only or ",".join(DATA), DATA)
    peers = () if chosen.peers == "none" else _names(parser, "--peers", chosen.peers, PEERS)
    sizes = {"factuals": chosen.factuals, "rows": chosen.rows, "samples": chosen.samples, "networks": chosen.networks}
    if chosen.quick:
        sizes = {"factuals": 20, "rows": 300, "samples": 50, "networks": 1}
    experiments = list(EXPERIMENTS) if chosen.experiment == "all" else [chosen.experiment]
    options = Options(
        folder=find_data(chosen.data),
        names=names,
        repeats=chosen.repeats,
        peers=peers,
        peers_python=chosen.peers_python,
        peers_factuals=min(chosen.peers_factuals, 5) if chosen.quick else chosen.peers_factuals,
        peers_limit=chosen.peers_limit,
        quick=chosen.quick,
        out=chosen.out,
        command=_command(arguments),
        **sizes,
    )
    return experiments, options


def _names(parser: argparse.ArgumentParser, option: str, given: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(given.split(","))
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"{option} names {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def _command(arguments: list[str]) -> str:
    """Return the command without paths, which are meaningless on another machine."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--data", "--out", "--peers-python"):
        parser.add_argument(option)
    _, rest = parser.parse_known_args(arguments)
    return shlex.join(["python", "-m", "benchmarks.paper", *rest])


def main(arguments: list[str] | None = None) -> int:
    """Run experiments."""
    experiments, options = read_options(sys.argv[1:] if arguments is None else arguments)
    for name in experiments:
        run: Callable[[Options], None] = import_module(f"benchmarks.paper.{name}").run
        run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
