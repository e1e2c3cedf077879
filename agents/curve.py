"""The learning curve of a run, drawn by matplotlib."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

_WINS, _TRAINING, _SCORE, _GRID = "#1f6fb4", "#9aa5b1", "#2f8f63", "#e3e6ea"


def curve(evaluations: list[dict[str, Any]], progress: list[dict[str, Any]], title: str) -> bytes:
    """Win rate with its interval, and mean score, over steps.

    Args:
        evaluations: rows of ``evaluation.csv``, at least one.
        progress: rows of ``progress.csv``.
        title: stands above.

    Returns:
        a PNG file.
    """
    figure_of: Any = import_module("matplotlib.figure").Figure
    figure = figure_of(figsize=(8, 6.2), layout="constrained")
    wins, score = figure.subplots(2, sharex=True)
    steps = [row["steps"] for row in evaluations]
    low, high = ([100 * row[key] for row in evaluations] for key in ("win_rate_low", "win_rate_high"))
    suite = evaluations[-1]["suite"]
    wins.fill_between(steps, low, high, color=_WINS, alpha=0.18, linewidth=0)
    wins.plot(steps, [100 * row["win_rate"] for row in evaluations], "o-", ms=3, color=_WINS, label=suite)
    played = [row for row in progress if "rollout/success_rate" in row]
    wins.plot(
        [row["steps"] for row in played],
        [100 * row["rollout/success_rate"] for row in played],
        color=_TRAINING,
        linewidth=1,
        zorder=1,
        label="training games, as played",
    )
    wins.set_ylabel("games won, % (95 % interval)")
    wins.set_ylim(bottom=0)
    wins.set_title(title)
    wins.legend(frameon=False)
    score.plot(steps, [row["mean_score"] for row in evaluations], "o-", ms=3, color=_SCORE, label=suite)
    score.set_ylabel("mean score")
    score.set_xlabel("environment steps")
    score.xaxis.set_major_formatter(import_module("matplotlib.ticker").EngFormatter())
    for axes in (wins, score):
        axes.grid(color=_GRID)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120)
    return data.getvalue()
