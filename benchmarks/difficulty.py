"""How hard Classic, Relaxed and Yukon are when all cards are known: docs/difficulty.md, its figures and its pictures.

`python benchmarks/difficulty.py --solve` solves the deals (about half an hour on two cores; what is solved is kept in
build/difficulty, so that a run that was stopped goes on) and writes benchmarks/results/difficulty.json. Without
--solve only the page and the pictures are made again from that file.
"""

from __future__ import annotations

import io
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rusol_env import Suite, Verdicts, solve_many
from rusol_env.deals import NUM_EVAL_DEALS
from rusol_env.files import write_whole

# Its types are too partial for a strict check.
mpl: Any = import_module("matplotlib")
Figure: Any = import_module("matplotlib.figure").Figure

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "difficulty.json"
DOCS = HERE.parent / "docs"
# Training deals from the first on, and the positions looked at before one is left undecided.
SIZES = {"classic": (1_000_000, 400_000), "relaxed": (100_000, 400_000), "yukon": (100_000, 60_000)}
# Search effort in bins: four to a doubling of the positions looked at.
BINS_A_DOUBLING = 4
COLOURS = {"classic": "#0072b2", "relaxed": "#009e73", "yukon": "#d55e00"}


def training_suite(deals: int) -> Suite:
    """The first `deals` training deals."""
    return Suite(f"train-{deals}", range(NUM_EVAL_DEALS, NUM_EVAL_DEALS + deals))


def solve() -> None:
    rows: dict[str, Any] = {}
    for rules, (deals, node_limit) in SIZES.items():
        folder = HERE.parent / "build" / "difficulty" / rules
        rows[rules] = figures(solve_many(training_suite(deals), rules, node_limit=node_limit, folder=folder))
        print(rules, json.dumps({key: value for key, value in rows[rules].items() if key != "effort"}))
    write_whole(RESULTS, (json.dumps({"rules": rows}, indent=1) + "\n").encode())


def figures(found: Verdicts) -> dict[str, Any]:
    """`Verdicts.summary`, and the distributions of effort and of the lengths of the wins."""
    wins = found.lengths[found.lengths >= 0]
    bins: NDArray[Any] = np.bincount(np.floor(np.log2(found.nodes) * BINS_A_DOUBLING).astype(np.int64))
    lengths = np.bincount(wins)
    return found.summary() | {
        "without_search": int((found.nodes == 1).sum()),
        "nodes_percentiles": {str(q): float(np.percentile(found.nodes, q)) for q in (50, 90, 99, 99.9)},
        "shortest_win": int(wins.min()),
        "effort": bins.tolist(),
        "lengths": lengths.tolist(),
    }


def percent(share: float, interval: list[float]) -> str:
    return f"{share:.3%} ({interval[0]:.3%} to {interval[1]:.3%})"


def page(document: dict[str, Any]) -> str:
    rows: dict[str, dict[str, Any]] = document["rules"]
    first = next(iter(rows.values()))
    limits = ", ".join(f"{name} {row['node_limit']:,}" for name, row in rows.items())
    lines = [
        "# How hard is it? Classic, Relaxed and Yukon with all cards known",
        "",
        "Made by `python benchmarks/difficulty.py --solve`; every figure is from `benchmarks/results/difficulty.json`.",
        "",
        "A deal is *winnable* if some sequence of moves wins it, taking nothing back from the foundations, for a",
        "player who knows all cards (*thoughtful* play). It is the most that any policy can reach. The deals are the",
        f"first of the training split (numbers from {NUM_EVAL_DEALS:,} on), so the evaluation deals stay unseen.",
        "Shares come with 95 % Wilson intervals.",
        "",
        "| rules | deals | winnable | proved unwinnable | undecided | share, undecided as lost | … as won |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {name} | {row['deals']:,} | {row['winnable']:,} | {row['unwinnable']:,} | {row['undecided']:,} "
        f"| {percent(row['winnable_rate'], row['winnable_rate_ci95'])} "
        f"| {percent(row['winnable_rate_most'], row['winnable_rate_most_ci95'])} |"
        for name, row in rows.items()
    ]
    lines += [
        "",
        "Every *winnable* is a sequence of moves that was played through the engine to the win; every *unwinnable* is",
        f"a proof. *Undecided* means that the solver looked at as many positions as its limit allows ({limits})",
        "and gave up.",
        "",
        "![Share of winnable deals](difficulty-winnable.svg)",
        "",
        "## How much search it takes",
        "",
        "| rules | settled without search | positions: mean | median | 99 % need at most | most | wall-clock |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {name} | {row['without_search'] / row['deals']:.1%} | {row['nodes']['mean']:,.0f} "
        f"| {row['nodes']['median']:,.0f} | {row['nodes_percentiles']['99']:,.0f} | {row['nodes']['most']:,} "
        f"| {row['seconds']:,.0f} s, {row['workers']} threads |"
        for name, row in rows.items()
    ]
    lines += [
        "",
        "*Without search*: the relaxation of `rusol_env/deadlock.py` proves the deal lost at its first position.",
        "Positions are those that the search looked at and those that the tries weighed.",
        "",
        "![Share of deals that need more positions](difficulty-effort.svg)",
        "",
        "## How long the wins are",
        "",
        "The shortest solution *found* for each winnable deal, after moves that the win does not need were left out;",
        "it is an upper bound, not proved shortest. 52 moves put the cards up; the rest goes between columns.",
        "",
        "| rules | shortest | mean | median | longest |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {name} | {row['shortest_win']} | {row['moves']['mean']:.1f} | {row['moves']['median']:.0f} "
        f"| {row['moves']['most']} |"
        for name, row in rows.items()
    ]
    versions = first["versions"]
    lines += [
        "",
        "![Lengths of the shortest wins found](difficulty-lengths.svg)",
        "",
        f"rusol-env {versions['rusol-env']}, Python {versions['python']}, Numba {versions['numba']}. Times are of a",
        "shared machine and of the part of the run that was not already on disk.",
        "",
    ]
    return "\n".join(lines)


def pictures(document: dict[str, Any]) -> dict[str, bytes]:
    """The three plots as SVG, the same bytes every time."""
    rows: dict[str, dict[str, Any]] = document["rules"]
    with mpl.rc_context(
        {"svg.hashsalt": "rusol", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    ):
        shares = Figure(figsize=(7, 2.2), layout="constrained")
        axes = shares.subplots()
        for place, (name, row) in enumerate(rows.items()):
            low, high = 100 * row["winnable_rate"], 100 * row["winnable_rate_most"]
            axes.barh(place, low, color=COLOURS[name])
            axes.barh(place, high - low, left=low, color=COLOURS[name], alpha=0.35)
            text = f"{low:.2f} %" if high - low < 0.005 else f"{low:.2f} to {high:.2f} %"
            axes.text(high + 1, place, text, va="center")
        axes.set(
            yticks=range(len(rows)), yticklabels=list(rows), xlim=(0, 118), xlabel="winnable deals, % (pale: undecided)"
        )
        axes.set_xticks(range(0, 101, 20))
        axes.invert_yaxis()

        effort = Figure(figsize=(7, 3.6), layout="constrained")
        axes = effort.subplots()
        for name, row in rows.items():
            bins = np.array(row["effort"])
            above = 1 - np.cumsum(bins) / bins.sum()
            edges = 2.0 ** ((np.arange(len(bins)) + 1) / BINS_A_DOUBLING)
            shown = above > 0
            axes.step(edges[shown], 100 * above[shown], where="post", color=COLOURS[name], label=name)
        axes.set(xscale="log", yscale="log", xlabel="positions looked at", ylabel="deals that need more, %")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)

        lengths = Figure(figsize=(7, 3.2), layout="constrained")
        axes = lengths.subplots()
        for name, row in rows.items():
            counts = np.array(row["lengths"])
            axes.plot(np.arange(len(counts)), 100 * counts / counts.sum(), color=COLOURS[name], label=name)
        axes.set(xlim=(50, None), ylim=(0, None), xlabel="moves of the shortest win found", ylabel="wins, %")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    made: dict[str, bytes] = {}
    for name, figure in (("winnable", shares), ("effort", effort), ("lengths", lengths)):
        made[f"difficulty-{name}.svg"] = svg(figure)
    return made


def svg(figure: Any) -> bytes:
    data = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "rusol"}):
        figure.savefig(data, format="svg", metadata={"Date": None, "Creator": None})
    return data.getvalue()


def write() -> None:
    document: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    DOCS.mkdir(exist_ok=True)
    for name, data in pictures(document).items():
        write_whole(DOCS / name, data)
    write_whole(DOCS / "difficulty.md", page(document).encode())


if __name__ == "__main__":
    if "--solve" in sys.argv[1:]:
        solve()
    write()
