"""A comparison for people: tables for the terminal, the plot, and a page that holds everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

from rich.box import SIMPLE
from rich.table import Table

from rusol_env.compare import SOLVER, Comparison, Pair, extra
from rusol_env.evaluate import prepare_folder
from rusol_env.plot import DARK, LIGHT, VARIABLES, draw
from rusol_env.rules import RELAXED


class _Rows(NamedTuple):
    """A table: its first column names things, the others hold figures."""

    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


def _rate(comparison: Comparison) -> str:
    return "share winnable" if comparison.policy == SOLVER else "win rate"


def _p(entry: Pair) -> str:
    value = entry.mcnemar_p
    return "p < 1e-15" if value < 1e-15 else f"p {'≤' if entry.undecided else '='} {value:.2g}"


def _signed(value: float) -> str:
    """With a sign, and a true minus."""
    return f"{value:+.1f}".replace("-", "−")


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
    return _Rows(("rules", *(("winnable", "share") if solver else ("wins", "win rate")), "95 % interval", *more), rows)


def _pair_rows(comparison: Comparison, entry: Pair) -> _Rows:
    deals, word = len(comparison.numbers), comparison.word
    rate = "share" if comparison.policy == SOLVER else "win rate"
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
    difference = _signed(100 * least) + ("" if least == most else f" to {_signed(100 * most)}")
    rows.append((f"{rate}, {minus}, points", difference, f"{_signed(100 * low)} to {_signed(100 * high)}"))
    if entry.score_difference is not None:
        interval = entry.score_difference_ci95
        shown = "" if interval is None else f"{_signed(interval[0])} to {_signed(interval[1])}"
        rows.append((f"mean score, {minus}", _signed(entry.score_difference), shown))
    rows.append(("McNemar's exact test", _p(entry), ""))
    return _Rows((f"{entry.first} and {entry.second}", "figure", "share or 95 % interval"), rows)


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


def _inline(svg: bytes, described: str) -> str:
    """An SVG document as an element of a page, in the page's colours."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    # The style sheet in it would hold for the whole page.
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"font(-family)?: [^;\"]*'DejaVu Sans'[^;\"]*;? ?", _font, text)
    text = re.sub(r'<svg width="[^"]*" height="[^"]*"', f'<svg role="img" aria-label="{escape(described)}"', text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text


def _font(found: re.Match[str]) -> str:
    size = re.search(r"(?:(bold|700) )?([\d.]+px)", found[0])
    if size is None:
        return ""
    return f"font-size: {size[2]}; " + ("font-weight: bold; " if size[1] else "")


def sentences(comparison: Comparison) -> list[str]:
    """The comparison in words: a sentence for the rule sets, and one for each pair."""
    word, deals = comparison.word, f"{len(comparison.numbers):,}"
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
        told.append(
            f"{entry.only_second:,} are {word} under {entry.second} only and {entry.only_first:,} under {entry.first} "
            f"only: under {entry.second} the {_rate(comparison)} is {_by_how_much(entry)}; McNemar's exact test: "
            f"{_p(entry)}."
        )
    return told


def _by_how_much(entry: Pair) -> str:
    bounds, interval = entry.win_rate_difference_bounds, entry.win_rate_difference_ci95
    # One sign for all needs no signs.
    above, below = interval[0] > 0, interval[1] < 0
    how = "higher by" if above else "lower by" if below else "different by"

    def shown(ends: tuple[float, float]) -> str:
        if not (above or below):
            words = [_signed(100 * end) for end in ends]
        else:
            words = [f"{end:.1f}" for end in sorted(abs(100 * end) for end in ends)]
        return " to ".join(dict.fromkeys(words))

    return f"{how} {shown(bounds)} percentage points (95 % interval: {shown(interval)})"


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
figcaption { margin-top: .8rem }
figcaption, .note { color: var(--muted); font-size: .9rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin: 0 0 1.4rem }
th, td { text-align: right; padding: .4rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap }
th:first-child, td:first-child { text-align: left; padding-left: 0 }
thead th { color: var(--muted); font-weight: 600; border-bottom-width: 2px }
tbody th { font-weight: 400 }
dt { font-weight: 600; margin-top: .8rem }
dd { margin: 0 }
pre { background: var(--code); padding: .8rem 1rem; border-radius: .4rem; overflow-x: auto; font-size: .85rem }
.whole { white-space: nowrap }
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
    pair = comparison.pairs[0]
    minus = f"{pair.second} − {pair.first}"
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
            f"{_rate(comparison).capitalize()}, {minus}",
            f"In percentage points: under {pair.second} less under {pair.first}, on the same deals; above 0, "
            f"{pair.first} is the harder. The interval is Newcombe's for paired proportions (Statistics in Medicine "
            "17, 1998, method 10).",
        ),
    ]
    if comparison.policy != SOLVER:
        defined.append(
            (
                f"Mean score, {minus}",
                f"The mean over the deals of the score under {pair.second} less that under {pair.first}, in points of "
                "the game. The interval is Student's t for paired differences.",
            )
        )
    meaning = (
        "If a deal that counts under one of the two rule sets only were as likely to be the one's as the other's, how "
        "often would chance split those deals at least as unevenly as here? p is that probability (exact, two-sided). "
        "A small p says that there is a difference; how large it is, the interval says."
    )
    if any(entry.undecided for entry in comparison.pairs):
        meaning += " With undecided deals, p is the largest over all ways in which they may turn out."
    if comparison.policy == SOLVER and any(outcome.rules == RELAXED for outcome in comparison.outcomes):
        meaning += (
            " Relaxed allows every move that Classic and Yukon allow, so a deal that is winnable under one of them is "
            "winnable under Relaxed by the rules: there the test is a formality."
        )
    if len(comparison.pairs) > 1:
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
        " ".join(f"{name}: {shades[colour]};" for colour, name in VARIABLES.items()) for shades in (LIGHT, DARK)
    ]
    style = _STYLE.replace("LIGHT", f"{palettes[0]} --code: #f1f3f6;").replace(
        "DARK", f"{palettes[1]} --code: #22262d;"
    )
    picture = _inline(draw(comparison, "svg", {colour: colour for colour in VARIABLES}, margin=0), " ".join(told))
    words = [
        re.sub("p (&lt;|[=≤]) [0-9.e-]+[0-9]", r'<span class="whole">\g<0></span>', escape(text, False))
        for text in told
    ]
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
<p class="lead">{words[0]}</p>
{"".join(f"<p>{text}</p>" for text in words[1:])}
<figure>
{picture}
<figcaption>Above: the share of deals {comparison.word} under each rule set. Below: each deal counted once
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
