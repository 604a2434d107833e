"""Experiment 1: MCCE on the four data sets, K = 1000, next to the paper's tab:results.

1. For each data set and each preparation, from that of the text to that of the authors' code (`problems.LADDERS`),
   train networks with seeds 0, 1, 2 and explain the factuals of each: means over the networks, and their range.
2. The published rows next to the first and the last preparation, with the relative gap to the published MCCE.
3. DiCE and NICE on the first factuals of the text's first network, with MCCE on the same ones.
4. The paper's example (tab:adult_example), explained here.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.paper import peers
from benchmarks.paper.measuring import explain, judge, make_explainer, warm_up
from benchmarks.paper.options import Options
from benchmarks.paper.output import Table, fixed_point, mean_sd, per_cent, whole, write
from benchmarks.paper.problems import CODE, LADDERS, LAST_STEP, TEXT, Case, networks, prepare
from benchmarks.paper.published import TITLES, published

MEANS = ["L0", "L0_sd", "L1", "L1_sd", "violation", "success", "distance", "distance_wanted", "copy"]
LABELS = {"text": "mcce, as in the text", "code": "mcce, as in the code"}
EXAMPLE = {"age": 20, "fnlwgt": 266015}


def run(options: Options) -> None:
    """Run the experiment and write its tables."""
    runs, compared, example = [], [], pd.DataFrame()
    for name in options.names:
        for how in LADDERS[name]:
            options.write_line(f"{name}: {options.networks} networks, {_label(name, how.name)}")
            rows = prepare(name, options.folder, how, most=options.rows)
            for k, case in enumerate(networks(rows, options.n_factuals(name), options.networks)):
                if k == 0:
                    warm_up(case)
                runs.append(measure(case, options))
                if k == 0 and how is TEXT:
                    compared += list(peers.compare(case, options))
                if k == 0 and name == "adult" and how.rows and not how.close and not rows.standin:
                    example = explain_example(case, options)
    each = pd.DataFrame(runs)
    tables = [results_table(each), gaps_table(each), models_table(each), peers_table(pd.DataFrame(compared))]
    tables += [] if example.empty else [example_table(example)]
    write("experiment1", "Experiment 1: MCCE and other methods", tables, options, names=options.names)


def measure(case: Case, options: Options) -> dict[str, Any]:
    """Explain the factuals of one network."""
    found, seconds = explain(case.problem, options.samples, repeats=options.repeats or 2)
    refused = ~case.problem.decision.contains(case.problem.score(case.rows.X))
    return {
        "data": case.rows.name,
        "preparation": case.rows.preparation.name,
        "network": case.seed,
        "auc": case.auc,
        "refused": refused.mean(),
        "n_train": len(case.rows.X),
        **judge(case.problem, found, seconds, manifold=True),
    }


def _label(name: str, preparation: str) -> str:
    return LAST_STEP[name] if preparation == CODE.name else preparation


def _over_networks(each: pd.DataFrame) -> pd.DataFrame:
    """Return means over the networks, in the order of the runs, and the lowest and highest L0 and L1."""
    groups = each.groupby(["data", "preparation"], sort=False)
    means = groups[[*MEANS, "auc", "refused", "N_CE", "n_test", "seconds_total"]].mean()
    for name in ("L0", "L1", "auc"):
        means[f"{name}_low"], means[f"{name}_high"] = groups[name].min(), groups[name].max()
    means["networks"] = groups.size()
    return means.rename(columns={"seconds_total": "seconds"}).reset_index()


def _with_gaps(ours: pd.DataFrame) -> pd.DataFrame:
    bar = published("tab:results").query("method == 'MCCE'").set_index("data")
    for name in ("L0", "L1"):
        ours[f"{name}_paper"] = ours["data"].map(bar[name])
        ours[f"gap_{name}"] = ours[name] / ours[f"{name}_paper"] - 1
    return ours


def results_table(each: pd.DataFrame) -> Table:
    """Return the paper's tab:results with our rows."""
    ours = _with_gaps(_over_networks(each[each["preparation"].isin([TEXT.name, CODE.name])]))
    ours["method"] = ours["preparation"].map(LABELS)
    theirs = published("tab:results").assign(method=lambda t: t["method"] + " (paper)")
    parts = []
    for name in dict.fromkeys(each["data"]):
        parts += [theirs[theirs["data"] == name], ours[ours["data"] == name]]
    numbers = pd.concat(parts, ignore_index=True).drop(columns=["preparation", "L0_paper", "L1_paper"])
    shown = pd.DataFrame(
        {
            "": numbers["data"].map(TITLES) + ": " + numbers["method"],
            "L0": mean_sd(numbers, "L0"),
            "L1": mean_sd(numbers, "L1"),
            "violation": fixed_point(numbers, "violation"),
            "success": fixed_point(numbers, "success"),
            "N_CE": fixed_point(numbers, "N_CE", 0),
            "seconds": fixed_point(numbers, "seconds"),
            "gap L0": numbers["gap_L0"].map(per_cent),
            "gap L1": numbers["gap_L1"].map(per_cent),
        }
    )
    notes = (
        "Means (standard deviations over the factuals); ours are means over networks with several seeds, prepared"
        " as the paper's text says and as its authors' public code does (next table). L1 is the summed Gower "
        "distance. Seconds of the paper: a 16-core desktop, peers on a GPU; ours: fit, generate and select on the"
        " cores named above, the faster of two warm runs. gap: ours over the paper's MCCE, less one."
    )
    return Table("experiment1", "MCCE and the paper's table (tab:results)", numbers, shown, notes)


def gaps_table(each: pd.DataFrame) -> Table:
    """Return the effect of each difference between the text's preparation and that of the authors' code."""
    numbers = _with_gaps(_over_networks(each))
    numbers.insert(1, "step", [_label(d, p) for d, p in zip(numbers["data"], numbers["preparation"])])
    shown = pd.DataFrame({"": numbers["data"].map(TITLES) + ": " + numbers["step"]})
    for name in ("L0", "L1"):
        low, high = fixed_point(numbers, f"{name}_low"), fixed_point(numbers, f"{name}_high")
        shown[name] = mean_sd(numbers, name)
        shown[f"{name} from, to"] = low + ", " + high
        shown[f"{name} paper"] = fixed_point(numbers, f"{name}_paper")
        shown[f"gap {name}"] = numbers[f"gap_{name}"].map(per_cent)
    notes = (
        "Each line adds one difference between the paper's text and its authors' public code to the line before, "
        'and the last line of a data set is "as in the code". from, to: lowest and highest mean of the networks.'
    )
    return Table("experiment1_gaps", "Causes of the gaps", numbers, shown, notes)


def models_table(each: pd.DataFrame) -> Table:
    """Return the AUC of the networks, with the paper's."""
    theirs = published("tab:ann").set_index("data")["auc"]
    numbers = each[["data", "preparation", "network", "auc", "refused", "n_train", "L0", "L1", "N_CE", "n_test"]].copy()
    numbers["auc_paper"] = numbers["data"].map(theirs)
    ends = numbers[numbers["preparation"].isin([TEXT.name, CODE.name])]
    groups = ends.groupby(["data", "preparation"], sort=False)["auc"].agg(["mean", "min", "max"]).reset_index()
    shown = pd.DataFrame(
        {
            "": groups["data"].map(TITLES) + ", " + groups["preparation"],
            "AUC": groups["mean"].map("{:.3f}".format),
            "from": groups["min"].map("{:.3f}".format),
            "to": groups["max"].map("{:.3f}".format),
            "paper": groups["data"].map(theirs).map("{:.2f}".format),
        }
    )
    notes = "Area under the ROC curve of the networks on the quarter of the rows that they were not trained on."
    return Table("experiment1_networks", "The networks (tab:ann)", numbers, shown, notes)


def peers_table(compared: pd.DataFrame) -> Table:
    """Return the results of MCCE and the peers on the same factuals."""
    numbers = compared.drop(columns=[c for c in compared if c.startswith("seconds_") and c != "seconds_per_factual"])
    numbers = numbers.drop(columns="n_test").assign(why=numbers["why"].fillna("") if "why" in numbers else "")
    shown = pd.DataFrame(
        {
            "": numbers["data"].map(TITLES) + ": " + numbers["method"],
            "s a factual": fixed_point(numbers, "seconds_per_factual", 3),
            "explained": whole(numbers, "N_CE") + " of " + whole(numbers, "asked"),
            "L0": mean_sd(numbers, "L0"),
            "L1": mean_sd(numbers, "L1"),
            "violation": fixed_point(numbers, "violation"),
            "success": fixed_point(numbers, "success"),
            "distance": fixed_point(numbers, "distance", 4),
            "to wanted": fixed_point(numbers, "distance_wanted", 4),
            "copies": fixed_point(numbers, "copy"),
        }
    )
    missing = numbers[numbers["asked"] == 0]
    said = "; ".join(f"{d}, {m}: {w}" for d, m, w in zip(missing["data"], missing["method"], missing["why"]))
    notes = (
        "The same network (the text's first) and the same first factuals; a peer is stopped at its limit of "
        "seconds, so it may have explained fewer. Seconds include the set-up, shared by the factuals. "
        "distance: Gower distance to the nearest training row; to wanted: to the nearest one with the wanted "
        "decision. copies: share that equals a training row. violation: fixed features changed."
        + (f" Did not run: {said}." if said else "")
    )
    return Table("experiment1_peers", "DiCE and NICE, run live", numbers, shown, notes)


def explain_example(case: Case, options: Options) -> pd.DataFrame:
    """Explain the paper's factual with K = 1000; empty if the network accepts it."""
    is_example = (case.rows.X["age"] == EXAMPLE["age"]) & (case.rows.X["fnlwgt"] == EXAMPLE["fnlwgt"])
    factual = case.rows.X[is_example]
    found = (
        make_explainer(case.problem).fit(case.rows.X).explain(factual, n_samples=options.samples, n_counterfactuals=3)
    )
    rows = pd.concat([factual, found.frame]).reset_index(drop=True)
    return (
        rows.assign(method=["factual", *(f"mcce {k}" for k in range(1, len(rows)))]) if len(found) else pd.DataFrame()
    )


def example_table(example: pd.DataFrame) -> Table:
    """Return the factual of tab:adult_example, the published counterfactual and ours."""
    theirs = published("tab:adult_example").query("method == 'MCCE'").assign(method="paper")
    codes = {"M": 1, "NM": 0, "US": 1, "MS": 1, "O": 0, "W": 1, "NW": 0, "H": 1, "NH": 0, "P": 1, "NP": 0}
    theirs = theirs.map(lambda cell: codes.get(cell, cell))
    numbers = pd.concat([example.iloc[:1], theirs, example.iloc[1:]], ignore_index=True)
    numbers = numbers[["method", *example.columns.drop("method")]]
    shown = numbers.set_index("method").T.reset_index(names="")
    notes = (
        "Categories: 1 for private, married, managerial or specialist, husband, white, male, United States. The "
        "levels are CARLA's, the network is the first; K as in the first table, the three best counterfactuals."
    )
    return Table("experiment1_example", "The paper's example (tab:adult_example)", numbers, shown, notes)
