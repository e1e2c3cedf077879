"""The plot of a comparison, drawn by matplotlib."""

from __future__ import annotations

import io
from typing import Any, Final

from rusol_env.compare import Comparison, Outcome, Pair, extra

# Colours that stand for the page's own, which know whether it is dark. Nothing else in a plot has them.
_INK, _MUTED, _LINE, _NEITHER, _PAPER = "#010101", "#020202", "#030303", "#040404", "#050505"
VARIABLES: Final = {_INK: "--ink", _MUTED: "--muted", _LINE: "--line", _NEITHER: "--neither", _PAPER: "--paper"}
LIGHT: Final = {_INK: "#1b1e23", _MUTED: "#5b626d", _LINE: "#d9dce1", _NEITHER: "#d3d7dd", _PAPER: "#ffffff"}
DARK: Final = {_INK: "#e8eaee", _MUTED: "#a3abb8", _LINE: "#3a404a", _NEITHER: "#4a515d", _PAPER: "#16181c"}
_ON_COLOUR: Final = "#14161a"
_COLOURS: Final = {"classic": "#e8875a", "relaxed": "#5aa7e8", "yukon": "#c79ae0", "both": "#3fb58a"}
# Narrower parts of a bar have no room for their figure.
_ROOM: Final = 0.055


def draw(comparison: Comparison, kind: str = "svg", colours: dict[str, str] = LIGHT, *, margin: float = 0.15) -> bytes:
    """The win rates with their intervals above the paired tables, on one scale.

    The same comparison gives the same bytes, with the same versions of the packages.

    Args:
        comparison: what to draw.
        kind: ``"png"`` or ``"svg"``.
        colours: a colour for each of `VARIABLES`; the default is for white paper.
        margin: around the plot, in inches.

    Raises:
        ImportError: matplotlib is missing.
    """
    matplotlib = extra("matplotlib")
    with matplotlib.rc_context():
        # Whatever the user's own matplotlibrc says.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "rusol", "svg.fonttype": "none", "font.size": 10.5})
        figure = _figure(comparison, colours)
        data = io.BytesIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type") if kind == "svg" else ("Software",))
        width, height = figure.get_size_inches()
        box = extra("matplotlib.transforms").Bbox([[-margin, -margin], [width + margin, height + margin]])
        figure.savefig(data, format=kind, dpi=200, metadata=nothing, bbox_inches=box)
        return data.getvalue()


def _figure(comparison: Comparison, colours: dict[str, str]) -> Any:
    figure_of, patch = extra("matplotlib.figure").Figure, extra("matplotlib.patches").Patch
    outcomes, pairs = comparison.outcomes, comparison.pairs
    heights = [0.56 * len(outcomes) + 0.1, 0.62 * len(pairs) + 0.1]
    # Inches: a title above each part, the scale and the legend below.
    figure = figure_of(figsize=(7.6, sum(heights) + 1.75), facecolor=colours[_PAPER])
    width, height = figure.get_size_inches()
    left, right = 1.35, 0.35
    long = width - left - right
    tops = [height - 0.4, height - 0.4 - heights[0] - 0.5]
    ink, muted, line = colours[_INK], colours[_MUTED], colours[_LINE]
    axes: list[Any] = []
    for top, part, rows in zip(tops, heights, (len(outcomes), len(pairs)), strict=True):
        box = (left / width, (top - part) / height, long / width, part / height)
        made = figure.add_axes(box, facecolor="none")
        made.set(xlim=(0, 1), ylim=(rows - 0.5, -0.5), xticks=[i / 5 for i in range(6)])
        made.tick_params(length=0, colors=muted, labelcolor=ink, pad=7)
        made.set_axisbelow(True)
        made.grid(axis="x", color=line, linewidth=0.8, clip_on=False)
        for side in made.spines.values():
            side.set_visible(False)
        axes.append(made)
    rates, bars = axes
    bars.set_xticks(rates.get_xticks(), [f"{20 * i} %" for i in range(6)], color=muted)
    rates.set_xticklabels([])
    word = comparison.word
    for made, title in ((rates, f"Deals {word}, with 95 % intervals"), (bars, "The same deals, pair by pair")):
        made.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=ink, x=-left / long)

    rates.set_yticks(range(len(outcomes)), [_draw_rate(rates, y, outcome, ink) for y, outcome in enumerate(outcomes)])
    bars.set_yticks(range(len(pairs)), [f"{entry.first}\nand {entry.second}" for entry in pairs])
    for y, entry in enumerate(pairs):
        _draw_bar(bars, y, entry, len(comparison.numbers), colours)
    legend = [patch(color=_COLOURS["both"], label=f"{word} under both")]
    legend += [patch(color=_COLOURS[outcome.rules.name], label=f"{outcome.rules.name} only") for outcome in outcomes]
    legend.append(patch(color=colours[_NEITHER], label="neither"))
    if any(entry.undecided for entry in pairs):
        legend.append(patch(facecolor="none", edgecolor=muted, hatch="////", linewidth=0, label="undecided"))
    figure.legend(
        handles=legend,
        ncols=len(legend),
        loc="lower left",
        bbox_to_anchor=(0, 0),
        borderaxespad=0,
        borderpad=0.2,
        handlelength=1,
        handleheight=1,
        columnspacing=1.3,
        frameon=False,
        labelcolor=ink,
        fontsize=9.5,
    )
    return figure


def _draw_rate(axes: Any, y: int, outcome: Outcome, ink: str) -> str:
    """Draw a rule set's rate; its label."""
    row = outcome.summary()
    (least, most), (low, high) = row["win_rate_bounds"], row["win_rate_ci95"]
    colour = _COLOURS[outcome.rules.name]
    axes.plot([low, high], [y, y], color=ink, linewidth=1.4, clip_on=False, zorder=2)
    for end in (low, high):
        axes.plot([end, end], [y - 0.13, y + 0.13], color=ink, linewidth=1.4, clip_on=False, zorder=2)
    if least < most:
        axes.plot([least, most], [y, y], color=colour, linewidth=7, solid_capstyle="butt", clip_on=False, zorder=3)
    else:
        axes.plot([least], [y], "o", markersize=7, color=colour, markeredgecolor=ink, clip_on=False, zorder=3)
    shown = f"{least:.1%}" if least == most else f"{least:.1%} to {most:.1%}"
    return f"{outcome.rules.name}\n{shown}"


def _draw_bar(axes: Any, y: int, entry: Pair, deals: int, colours: dict[str, str]) -> None:
    start = 0.0
    for count, colour, text in (
        (entry.both, _COLOURS["both"], _ON_COLOUR),
        (entry.only_first, _COLOURS[entry.first], _ON_COLOUR),
        (entry.only_second, _COLOURS[entry.second], _ON_COLOUR),
        (entry.neither, colours[_NEITHER], colours[_INK]),
        (entry.undecided, None, colours[_INK]),
    ):
        share = count / deals
        if colour is None:
            axes.barh(y, share, 0.62, start, color="none", edgecolor=colours[_MUTED], hatch="////", linewidth=0)
        else:
            axes.barh(y, share, 0.62, start, color=colour, edgecolor=colours[_PAPER], linewidth=0.8)
        if share >= _ROOM:
            patch = None if colour else {"facecolor": colours[_PAPER], "linewidth": 0, "pad": 2}
            axes.text(start + share / 2, y, f"{count:,}", ha="center", va="center_baseline", color=text, bbox=patch)
        start += share
