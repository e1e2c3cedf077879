"""What more labels are worth: `python benchmarks/distillation.py RUN…` reads finished runs of `agents/distill.py`.

It writes benchmarks/results/distillation.json and docs/distillation.png: the share of ``winnable-1000`` that the last
network of each run wins, over the labels that the run asked for, and what planner wins of the same deals
(benchmarks/results/planner.json). A label is what the solver says of one move of one position: the deal as it lies, and
up to `completions` drawn orders of its face-down cards, are counted once. The runs in the file are

    python agents/distill.py configs/distilled-classic.yaml rounds=2 states=11_000 --out runs/labels-100k
    python agents/distill.py configs/distilled-classic.yaml rounds=2 states=125_000 --out runs/labels-1m
    python agents/distill.py configs/distilled-classic.yaml

The second figure of the page, what it costs not to see, is made by benchmarks/price.py.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agents.distill import read_distillation
from agents.runs import command_of, read_rows, read_sessions
from rusol_env.files import write_whole

HERE = Path(__file__).parent
RESULT = HERE / "results" / "distillation.json"
PLANNER = HERE / "results" / "planner.json"
PICTURE = HERE.parent / "docs" / "distillation.png"
_RUNS, _PLANNER, _GRID = "#1f6fb4", "#d55e00", "#e3e6ea"


def read(folder: Path) -> dict[str, Any]:
    """The last row of a run.

    Raises:
        ValueError: the run is not finished.
    """
    config = read_distillation(folder / "config.yaml")
    rows = read_rows(folder / "evaluation.csv")
    if len(rows) < config.rounds:
        raise ValueError(f"the run in {folder} is not finished: go on with it by --resume")
    keys = ("steps", "labels", "lessons", "suite", "wins", "win_rate", "win_rate_low", "win_rate_high", "seconds")
    session = read_sessions(folder)[-1]
    return {key: rows[-1][key] for key in keys} | {
        "rounds": config.rounds,
        "updates": config.rounds * config.updates,
        "completions": config.completions,
        "command": shlex.join(command_of(session)),
        "revision": session["git"],
    }


def draw(rows: list[dict[str, Any]], planner: dict[str, Any]) -> bytes:
    """The share of wins over labels, as a PNG."""
    figure_of: Any = import_module("matplotlib.figure").Figure
    figure = figure_of(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    rates = [100 * row["win_rate"] for row in rows]
    errors = [[100 * abs(row["win_rate"] - row[f"win_rate_{side}"]) for row in rows] for side in ("low", "high")]
    labels = [row["labels"] for row in rows]
    axes.errorbar(labels, rates, errors, fmt="o-", color=_RUNS, capsize=3, label="distilled (95 % interval)")
    axes.axhline(
        100 * planner["win_rate"], color=_PLANNER, linestyle="--", label=f"planner, {planner['samples']} completions"
    )
    axes.set_xscale("log")
    axes.set_xlabel("labels: moves that the solver was asked about")
    axes.set_ylabel(f"games won of {rows[-1]['suite']}, %")
    axes.grid(color=_GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120)
    return data.getvalue()


if __name__ == "__main__":
    if sys.argv[1:]:
        found = sorted((read(Path(folder)) for folder in sys.argv[1:]), key=lambda row: row["labels"])
        write_whole(RESULT, (json.dumps({"rows": found}, indent=2) + "\n").encode())
    shown = json.loads(RESULT.read_text(encoding="utf-8"))["rows"]
    write_whole(PICTURE, draw(shown, json.loads(PLANNER.read_text(encoding="utf-8"))["rows"][0]))
    for row in shown:
        print(f"{row['labels']:>12,} labels, {row['updates']:,} updates: {row['win_rate']:.1%} of {row['suite']}")
