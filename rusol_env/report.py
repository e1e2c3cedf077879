"""A comparison for people: tables for the terminal, the plot, and a page that holds everything."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.box import SIMPLE
from rich.table import Table

from rusol_env.compare import SOLVER, Comparison, Outcome, Pair, extra
from rusol_env.evaluate import prepare_folder

PLOTS: Final = (".png", ".svg")


class _Rows(NamedTuple):
    """A table: its first column names things, the others hold figures."""

    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


def _word(comparison: Comparison) -> str:
    return "winnable" if comparison.policy == SOLVER else "won"


def _rate(comparison: Comparison) -> str:
    return "winnable" if comparison.policy == SOLVER else "win rate"


def _p(value: float) -> str:
    return "p < 1e-15" if value < 1e-15 else f"p = {value:.2g}"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _rules_rows(comparison: Comparison) -> _Rows:
    solver = comparison.policy == SOLVER
    more = ("undecided", "positions") if solver else ("cut off", "score ± s.e.", "steps")
    rows: list[tuple[str, ...]] = []
    for outcome in comparison.outcomes:
        row = outcome.summary()
        least, most = row["win_rate_bounds"]
        low, high = row["win_rate_ci95"]
        rate = f"{least:.2%}" if least == most else f"{least:.1%} to {most:.1%}"
        cells = (row["rules"], f"{row['wins']:,}", rate, f"{low:.1%} to {high:.1%}")
        if solver:
            cells += (f"{row['undecided']:,}", f"{row['mean_nodes']:,.0f}")
        else:
            error: float | None = row["mean_score_se"]
            score = f"{row['mean_score']:.1f}" + ("" if error is None else f" ± {error:.1f}")
            cells += (f"{row['truncated']:,}", score, f"{row['mean_steps']:.1f}")
        rows.append(cells)
    return _Rows(("rules", "deals" if solver else "wins", _rate(comparison), "95 % interval", *more), rows)


def _pair_rows(comparison: Comparison, entry: Pair) -> _Rows:
    deals, word, rate = len(comparison.numbers), _word(comparison), _rate(comparison)
    counts = [
        (f"{word} under both", entry.both),
        (f"{word} under {entry.first} only", entry.only_first),
        (f"{word} under {entry.second} only", entry.only_second),
        (f"{word} under neither", entry.neither),
    ]
    if comparison.policy == SOLVER:
        counts.append(("undecided under one or both", entry.undecided))
    rows: list[tuple[str, ...]] = [(what, f"{count:,}", f"{count / deals:.1%}") for what, count in counts]
    minus = f"{entry.second} − {entry.first}"
    low, high = entry.win_rate_difference_ci95
    least, most = entry.win_rate_difference_bounds
    difference = _points(least) + ("" if least == most else f" to {_points(most)}")
    rows.append((f"{rate}, {minus}, points", difference, f"{_points(low)} to {_points(high)}"))
    if entry.score_difference is not None:
        interval = entry.score_difference_ci95
        shown = "" if interval is None else f"{interval[0]:+.1f} to {interval[1]:+.1f}"
        rows.append((f"mean score, {minus}", f"{entry.score_difference:+.1f}", shown))
    rows.append(("McNemar's exact test", _p(entry.mcnemar_p), "at most" if entry.undecided else ""))
    return _Rows((f"{entry.first} and {entry.second}", "deals", "share or 95 % interval"), rows)


def _title(comparison: Comparison) -> str:
    seed = "" if comparison.policy == SOLVER else f", seed {comparison.settings['seed']}"
    return f"{comparison.policy} on {comparison.suite}{seed}"


def tables(comparison: Comparison) -> Iterator[Table]:
    """Tables for a terminal of 80 columns: the rule sets, then each pair of them."""
    parts = [_rules_rows(comparison), *(_pair_rows(comparison, entry) for entry in comparison.pairs)]
    for number, (headings, rows) in enumerate(parts):
        made = Table(box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True, title_justify="left")
        made.title = _title(comparison) if number == 0 else None
        for i, heading in enumerate(headings):
            made.add_column(heading, justify="right" if i else "left", no_wrap=True)
        for row in rows:
            made.add_row(*row)
        yield made


# Colours that stand for the page's own, which know whether it is dark. Nothing else in a plot has them.
_INK, _MUTED, _LINE, _NEITHER, _PAPER = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES: Final = {_INK: "--ink", _MUTED: "--muted", _LINE: "--line", _NEITHER: "--neither", _PAPER: "--paper"}
_LIGHT: Final = {_INK: "#1b1e23", _MUTED: "#5b626d", _LINE: "#d9dce1", _NEITHER: "#d3d7dd", _PAPER: "#ffffff"}
_DARK: Final = {_INK: "#e8eaee", _MUTED: "#a3abb8", _LINE: "#3a404a", _NEITHER: "#4a515d", _PAPER: "#16181c"}
_ON_COLOUR: Final = "#14161a"
_COLOURS: Final = {"classic": "#e8875a", "relaxed": "#5aa7e8", "yukon": "#c79ae0", "both": "#3fb58a"}
# Narrower parts of a bar have no room for their figure.
_ROOM: Final = 0.055


def plot(comparison: Comparison, kind: str = "svg") -> bytes:
    """The win rates with their intervals above the paired tables, on one scale.

    The same comparison gives the same bytes, with the same versions of Python's packages.

    Args:
        comparison: what to draw.
        kind: ``"png"`` or ``"svg"``, both on white.

    Raises:
        ImportError: matplotlib is missing.
    """
    return _draw(comparison, kind, _LIGHT)


def _draw(comparison: Comparison, kind: str, colours: dict[str, str]) -> bytes:
    matplotlib = extra("matplotlib")
    with matplotlib.rc_context():
        # Whatever the user's own matplotlibrc says.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "rusol", "svg.fonttype": "none", "font.size": 10.5})
        figure = _figure(comparison, colours)
        data = io.BytesIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type") if kind == "svg" else ("Software",))
        figure.savefig(data, format=kind, dpi=200, metadata=nothing)
        return data.getvalue()


def _figure(comparison: Comparison, colours: dict[str, str]) -> Any:
    figure_of, patch = extra("matplotlib.figure").Figure, extra("matplotlib.patches").Patch
    outcomes, pairs = comparison.outcomes, comparison.pairs
    heights = [0.48 * len(outcomes) + 0.1, 0.62 * len(pairs) + 0.1]
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
        made.grid(axis="x", color=line, linewidth=0.8)
        for side in made.spines.values():
            side.set_visible(False)
        axes.append(made)
    rates, bars = axes
    bars.set_xticks(rates.get_xticks(), [f"{20 * i} %" for i in range(6)], color=muted)
    rates.set_xticklabels([])
    word = _word(comparison)
    for made, title in ((rates, f"Deals {word}, with 95 % intervals"), (bars, "The same deals, pair by pair")):
        made.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=ink, x=0.015 - left / long)

    rates.set_yticks(range(len(outcomes)), [outcome.rules.name for outcome in outcomes])
    for y, outcome in enumerate(outcomes):
        _draw_rate(rates, y, outcome, ink)
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
        bbox_to_anchor=(0.01, 0.0),
        borderaxespad=0.3,
        handlelength=1,
        handleheight=1,
        columnspacing=1.3,
        frameon=False,
        labelcolor=ink,
        fontsize=9.5,
    )
    return figure


def _draw_rate(axes: Any, y: int, outcome: Outcome, ink: str) -> None:
    row = outcome.summary()
    (least, most), (low, high) = row["win_rate_bounds"], row["win_rate_ci95"]
    colour = _COLOURS[outcome.rules.name]
    axes.plot([low, high], [y, y], color=ink, linewidth=1.4, zorder=2)
    for end in (low, high):
        axes.plot([end, end], [y - 0.13, y + 0.13], color=ink, linewidth=1.4, zorder=2)
    if least < most:
        axes.plot([least, most], [y, y], color=colour, linewidth=7, solid_capstyle="butt", zorder=3)
    else:
        axes.plot([least], [y], marker="o", markersize=8, color=colour, markeredgecolor=ink, zorder=3)
    label = f"{least:.1%}" if least == most else f"{least:.1%} to {most:.1%}"
    outside = high < 0.7
    x, side = (high + 0.015, "left") if outside else (low - 0.015, "right")
    axes.text(x, y, label, ha=side, va="center_baseline", color=ink, fontweight="bold")


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
        if share >= _ROOM and colour is not None:
            axes.text(start + share / 2, y, f"{count:,}", ha="center", va="center_baseline", color=text)
        start += share


def _inline(svg: bytes, described: str) -> str:
    """An SVG document as an element of a page, in the page's colours."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    # The style sheet in it would hold for the whole page.
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"font(-family)?: [^;\"]*'DejaVu Sans'[^;\"]*;? ?", _font, text)
    text = re.sub(r'<svg width="[^"]*" height="[^"]*"', f'<svg role="img" aria-label="{escape(described)}"', text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text


def _font(found: re.Match[str]) -> str:
    size = re.search(r"(?:(bold|700) )?([\d.]+px)", found[0])
    if size is None:
        return ""
    return f"font-size: {size[2]}; " + ("font-weight: bold; " if size[1] else "")


def sentences(comparison: Comparison) -> list[str]:
    """The comparison in words: a sentence for the rule sets, and one for each pair."""
    word, deals = _word(comparison), f"{len(comparison.numbers):,}"
    rows = [outcome.summary() for outcome in comparison.outcomes]
    counts = [f"{row['wins']:,} under {row['rules']}" for row in rows]
    listed = ", ".join(counts[:-1]) + f" and {counts[-1]}"
    if comparison.policy == SOLVER:
        first = f"Of {deals} deals, {listed} are proved winnable when all cards are known."
    else:
        first = f"Of {deals} deals, {comparison.policy} won {listed}."
    if any(row["undecided"] for row in rows):
        left = ", ".join(f"{row['undecided']:,} under {row['rules']}" for row in rows if row["undecided"])
        first += f" Undecided: {left}."
    told = [first]
    for entry in comparison.pairs:
        low, high = entry.win_rate_difference_ci95
        told.append(
            f"{entry.only_second:,} are {word} under {entry.second} only and {entry.only_first:,} under {entry.first} "
            f"only: {_rate_of(comparison)} under {entry.second} less that under {entry.first} lies between "
            f"{_points(low)} and {_points(high)} percentage points (95 % interval; McNemar's exact test: "
            f"{_p(entry.mcnemar_p)})."
        )
    return told


def _rate_of(comparison: Comparison) -> str:
    return "the share of winnable deals" if comparison.policy == SOLVER else "the win rate"


_STYLE: Final = """
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) { :root { DARK } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 54rem; padding: 2.5rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .6rem }
.sub { color: var(--muted); margin: .3rem 0 1.6rem }
.lead { font-size: 1.15rem }
figure { margin: 1.8rem 0 0 }
figure svg { width: 100%; height: auto; display: block }
figcaption, .note { color: var(--muted); font-size: .9rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin: 0 0 1.4rem }
th, td { text-align: right; padding: .4rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left; padding-left: 0 }
thead th { color: var(--muted); font-weight: 600; border-bottom-width: 2px }
tbody th { font-weight: 400 }
dt { font-weight: 600; margin-top: .8rem }
dd { margin: 0 }
pre { background: var(--code); padding: .8rem 1rem; border-radius: .4rem; overflow-x: auto; white-space: pre-wrap }
@media print { body { max-width: none; padding: 0 } }
"""


def _table(part: _Rows, caption: str) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in part.headings)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>\n"
        for row in part.rows
    )
    return (
        f'<div class="wide"><table aria-label="{escape(caption)}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>\n"
    )


def _definitions(comparison: Comparison) -> list[tuple[str, str]]:
    """What each figure means, and where its formula comes from."""
    several = len(comparison.pairs) > 1
    settings = comparison.settings
    defined: list[tuple[str, str]] = []
    if comparison.policy == SOLVER:
        defined += [
            (
                "Winnable",
                "A sequence of moves was found that wins, and played through the engine. All cards are known to the "
                "solver, and none come back from the foundations.",
            ),
            (
                "Undecided",
                f"The solver gave up after about {settings['node_limit']:,} positions. Such a deal counts neither as "
                "winnable nor as unwinnable: shares are given both ways (first all such deals as unwinnable, then all "
                "as winnable), and intervals reach from the lower end of the one to the upper end of the other.",
            ),
            ("Positions", "The mean number of positions that the solver looked at for a deal."),
        ]
    else:
        defined += [
            (
                "Won",
                "All 52 cards reached the foundations. Each deal is played once under each rule set; the policy sees "
                "face-up cards only, and no card comes back from a foundation.",
            ),
            (
                "Cut off",
                f"Games stopped after {settings['max_steps']:,} steps; they count as not won. The other games not won "
                "ended without a legal move.",
            ),
            (
                "Score, steps",
                "The mean final score of a game (10 for a card on its foundation, 5 for a card turned up; a game won "
                "has 625) with its standard error, and the mean number of steps.",
            ),
        ]
    defined += [
        (
            "95 % interval of a share",
            "Wilson's score interval (1927). It, and all the others, take the deals for a random sample of all deals.",
        ),
        (
            f"{_rate(comparison).capitalize()}, difference",
            "In percentage points, on the same deals; above 0, the rule set named last is the harder one. Its interval "
            "is Newcombe's for paired proportions (Statistics in Medicine 17, 1998, method 10).",
        ),
    ]
    if comparison.policy != SOLVER:
        defined.append(
            (
                "Mean score, difference",
                "The mean over the deals of the score under the one rule set less that under the other; its interval "
                "is Student's t for paired differences.",
            )
        )
    meaning = (
        "If a deal that counts under one of the two rule sets only were as likely to be the one's as the other's, how "
        "often would chance split those deals at least as unevenly as here? p is that probability (exact, two-sided). "
        "A small p says that there is a difference; how large it is, the interval says."
    )
    if any(entry.undecided for entry in comparison.pairs):
        meaning += " With undecided deals, p is the largest over all ways in which they may turn out."
    if several:
        meaning += " The p-values are not corrected for there being several tests."
    return [*defined, ("McNemar's test", meaning)]


def page(comparison: Comparison) -> bytes:
    """The report: one HTML page in UTF-8 that fetches nothing and runs nothing.

    The same comparison gives the same bytes, with the same versions.

    Raises:
        ImportError: matplotlib is missing.
    """
    names = [outcome.rules.name.capitalize() for outcome in comparison.outcomes]
    title = f"{names[0]} against {names[1]}" if len(names) == 2 else f"{', '.join(names[:-1])} and {names[-1]}"
    told = sentences(comparison)
    palettes = [
        " ".join(f"{name}: {shades[colour]};" for colour, name in _VARIABLES.items()) for shades in (_LIGHT, _DARK)
    ]
    style = _STYLE.replace("LIGHT", f"{palettes[0]} --code: #f1f3f6;").replace(
        "DARK", f"{palettes[1]} --code: #22262d;"
    )
    picture = _inline(_draw(comparison, "svg", {colour: colour for colour in _LIGHT}), " ".join(told))
    pairs = "".join(
        _table(_pair_rows(comparison, entry), f"{entry.first} and {entry.second}") for entry in comparison.pairs
    )
    meanings = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>\n" for name, text in _definitions(comparison))
    document = comparison.summary()
    used = document["versions"] | {"matplotlib": version("matplotlib")}
    settings = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in comparison.settings.items())
    made = f"<pre>{escape(comparison.command)}</pre>" if comparison.command else "<p>Made in Python.</p>"
    classes = sorted({row["policy_class"] for row in (o.details for o in comparison.outcomes) if "policy_class" in row})
    who = f"{comparison.policy} ({', '.join(classes)})" if classes else "the exact solver"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}: {escape(_title(comparison))}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p class="sub">Russian Solitaire, {escape(_title(comparison))}</p>
<p class="lead">{escape(told[0])}</p>
{"".join(f"<p>{escape(sentence)}</p>" for sentence in told[1:])}
<figure>
{picture}
<figcaption>Above: the share of deals {_word(comparison)} under each rule set. Below: each deal counted once
for a pair of rule sets. The figures stand in the tables.</figcaption>
</figure>
<h2>Each rule set</h2>
{_table(_rules_rows(comparison), "rule sets")}
<h2>The same deals, in pairs</h2>
{pairs}
<h2>What the figures mean</h2>
<dl>
{meanings}</dl>
<h2>How they were made</h2>
{made}
<p class="note">By {escape(who)} on the suite {escape(comparison.suite)} ({len(comparison.numbers):,} deals);
{escape(settings)}.
{escape(", ".join(f"{name} {number}" for name, number in used.items()))}.</p>
</main>
</body>
</html>
""".encode()


def prepare_file(path: Path, endings: tuple[str, ...], *, force: bool) -> None:
    """Check that a file can be written, and make its folder, before anything is played.

    Raises:
        ValueError: its name ends in none of `endings`.
        FileExistsError: it is there and `force` is off.
        ImportError: matplotlib is missing.
        OSError: its folder cannot be made or written.
    """
    extra("matplotlib")
    if path.suffix.lower() not in endings:
        raise ValueError(f"{path} must end in {' or '.join(endings)}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    if path.exists() and not force:
        raise FileExistsError(f"{path} is there already: choose another name, or --force to replace it")
    prepare_folder(path.parent, "csv")
