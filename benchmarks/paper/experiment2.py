"""Experiment 2: how L0, L1, N_CE and seconds vary with K (the paper's tab:timing_increase_K), on Adult.

For each network of the authors' preparation one fit, then counterfactuals with K from 10 to 25,000.
"""

from __future__ import annotations

from benchmarks.paper.growth_in_k import growth_table, measure_growth
from benchmarks.paper.options import Options
from benchmarks.paper.output import write


def run(options: Options) -> None:
    """Run the experiment and write its table."""
    ours = measure_growth(options, condition_on_decision=True)
    title = "More samples (tab:timing_increase_K)"
    table = growth_table("experiment2", title, ours, "tab:timing_increase_K", options.networks)
    write("experiment2", "Experiment 2: how the results vary with K", [table], options, names=["adult"])
