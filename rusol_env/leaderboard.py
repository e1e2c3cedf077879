"""The leaderboard: a folder of results that anybody can play again.

An entry is two files: ``RULES/SUITE/NAME.json``, and beside it the file of its games (`rusol_env.games`), which it
names together with its SHA-256. The entry says who played and what came of it. Whoever reads the leaderboard plays the
games again under the rules and takes the results from there: an entry can claim nothing that its games are not. What
cannot be seen from outside is taken on trust: who played, how fast, by which versions, and that the policy saw nothing
but observations and masks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from itertools import groupby
from math import isclose
from pathlib import Path
from typing import Any, Final, cast

from rusol_env.compare import mcnemar
from rusol_env.deals import check_seed, suite
from rusol_env.env import DEFAULT_MAX_STEPS
from rusol_env.evaluate import Evaluation, read_rows, read_summary
from rusol_env.files import write_whole
from rusol_env.games import WITHOUT, Games
from rusol_env.rules import VARIANTS

FORMAT: Final = "rusol-leaderboard-entry"
VERSION: Final = 1
# What an entry keeps of the summary of its evaluation; the figures among it are those that its games must give.
_FIGURES: Final = ("deals", "wins", "dead_ends", "truncated", "mean_score", "mean_steps")
_KEPT: Final = (
    *("policy", "policy_class", "policy_settings", "rules", "suite", "seed", "max_steps", *WITHOUT),
    *_FIGURES,
    *("seconds", "versions"),
)
# Names and addresses go into tables as they are: no sign in them means anything to Markdown, HTML or a terminal.
_NAME: Final = re.compile(r"[\w.,+=@()/'&:-]+( [\w.,+=@()/'&:-]+)*")
_URL: Final = re.compile(r"https?://[\w./~%?#=&+:@-]+")
_MOST_NAME: Final = 60
_MOST_TEXT: Final = 300


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A result on the leaderboard, its games played again.

    Raises:
        ValueError: (on construction) a name, address or date that is none.
    """

    name: str
    """Of the policy: at most 60 letters, digits, blanks and ``.,+=@()/'&:_-``; one entry a suite and rule set."""
    by: str
    """Who made it, as `name`."""
    url: str | None
    """Where to read more."""
    date: str
    """When it was added, ``YYYY-MM-DD``."""
    result: Evaluation
    """What the games give when they are played again; what cannot be played again is as the entry says."""
    versions: Mapping[str, str]
    """Those that the policy played under."""

    def __post_init__(self) -> None:
        for what, value in (("name", self.name), ("by", self.by)):
            if not isinstance(value, str) or len(value) > _MOST_NAME or not _NAME.fullmatch(value):  # pyright: ignore[reportUnnecessaryIsInstance] - it may come from a file
                raise ValueError(
                    f"the {what!r} of an entry is {_MOST_NAME} letters, digits, single blanks and .,+=@()/'&:_- "
                    f"at most, and not {str(value)[:_MOST_TEXT]!r}"
                )
        if self.url is not None and not (len(self.url) <= _MOST_TEXT and _URL.fullmatch(self.url)):
            raise ValueError(
                f"the 'url' of an entry is an address such as https://example.org/a, not {self.url[:_MOST_TEXT]!r}"
            )
        try:
            is_date = date.fromisoformat(self.date).isoformat() == self.date
        except (ValueError, TypeError):
            is_date = False
        if not is_date:
            raise ValueError(f"the 'date' of an entry is YYYY-MM-DD, and not {str(self.date)[:_MOST_TEXT]!r}")

    @property
    def place(self) -> Path:
        """Where its file is, from the leaderboard's folder."""
        return Path(self.result.rules.name) / self.result.suite / f"{_slug(self.name)}.json"

    @property
    def milliseconds(self) -> float:
        """Wall-clock time for a step, on whatever machine it was."""
        return 1000 * self.result.seconds / int(self.result.steps.sum())

    def document(self, games: str, digest: str) -> dict[str, Any]:
        """Its file, where `games` is the name of the file of games and `digest` that file's SHA-256."""
        summary = self.result.summary() | {"versions": dict(self.versions)}
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "by": self.by,
            "url": self.url,
            "date": self.date,
            "games": games,
            "games_sha256": digest,
            "evaluation": {key: summary[key] for key in _KEPT},
        }


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """An entry's place among those of its rules and suite."""

    rank: int
    """From 1: by wins, then by the mean score, then by name."""
    entry: Entry
    above: Entry | None
    """The entry one rank better."""

    @property
    def pairs(self) -> tuple[int, int] | None:
        """Deals that only this entry won, and that only the one above won."""
        if self.above is None:
            return None
        own, other = self.entry.result.won, self.above.result.won
        return int((own & ~other).sum()), int((other & ~own).sum())

    def document(self) -> dict[str, Any]:
        """The figures, ready for JSON: `Evaluation.summary` of the games played again, and who and against whom.

        Raises:
            ImportError: scipy is missing.
        """
        entry, against = self.entry, None
        if self.above is not None and self.pairs is not None:
            only, only_above = self.pairs
            against = {"name": self.above.name, "only": only, "only_above": only_above, "p": mcnemar(only, only_above)}
        return {
            "rank": self.rank,
            "name": entry.name,
            "by": entry.by,
            "url": entry.url,
            "date": entry.date,
            **entry.result.summary(),
            "versions": dict(entry.versions),
            "ms_a_move": entry.milliseconds,
            "against_above": against,
        }


def add(
    board: str | Path,
    results: str | Path,
    by: str,
    *,
    name: str | None = None,
    url: str | None = None,
    force: bool = False,
) -> list[Path]:
    """Make entries of what `rusol_env.save` wrote: all or, where something is refused, none.

    The games are played again and must give what the per-deal table and the summary say. The games are written first
    and the entry, which names them, last: an entry is there whole or as it was before.

    Args:
        board: the leaderboard's folder.
        results: the folder of an evaluation, or of some; or the path of a summary in it.
        by: who made the policy.
        name: of the policy; by default the name that it was evaluated under.
        url: where to read more.
        force: replace entries of the same name, suite and rules.

    Returns:
        the paths of the entries.

    Raises:
        ValueError: what is there is no whole result, is not what its games give, or is not of a suite for all.
        FileExistsError: there is such an entry and `force` is off.
        OSError: a file cannot be read or written.
    """
    board, results = Path(board), Path(results)
    _check_board(board)
    if not results.exists():
        raise ValueError(f"there is no {results}: name the folder that `rusol evaluate --out` wrote into")
    summaries = sorted(results.glob("*.json")) if results.is_dir() else [results]
    if not summaries:
        raise ValueError(f"there is no result in {results}: `rusol evaluate --out {results}` writes one")
    today = datetime.now(UTC).date().isoformat()
    found: dict[Path, tuple[Entry, bytes]] = {}
    for path in summaries:
        result, versions, data = _read_result(path)
        entry = Entry(result.policy if name is None else name, by, url, today, result, versions)
        place = board / entry.place
        if place in found:
            raise ValueError(
                f"{results} has two results for the entry {place}: name the summary of the one that counts"
            )
        if place.exists() and not force:
            raise FileExistsError(f"{place} is there already: choose another --name, or --force to replace it")
        found[place] = entry, data
    for place, (entry, data) in found.items():
        digest = sha256(data).hexdigest()
        games = f"{place.stem}-{digest[:12]}.npz"
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place.with_name(games), data)
        text = json.dumps(entry.document(games, digest), indent=2, ensure_ascii=False) + "\n"
        write_whole(place, text.encode(), replace=force)
        # The games of the entry that was replaced, and what an interrupted run left.
        for other in place.parent.iterdir():
            if other.name != games and re.fullmatch(rf"{re.escape(place.stem)}-[0-9a-f]{{12}}\.npz", other.name):
                other.unlink()
    return list(found)


def load(board: str | Path, rules: str | None = None) -> list[Entry]:
    """All entries of a leaderboard, or those for a rule set, each played again.

    Raises:
        ValueError: there is none, or one is damaged or not what its games give; the message names the file.
        OSError: a file cannot be read.
    """
    board = Path(board)
    _check_board(board)
    paths = sorted(board.glob(f"{rules or '*'}/*/*.json"))
    if not paths:
        raise ValueError(f"there is no entry in {board}{'' if rules is None else f' for {rules}'} yet")
    return [_read_entry(board, path) for path in paths]


def check(board: str | Path) -> list[Entry]:
    """As `load`, and see to it that the folder holds nothing else.

    Raises:
        ValueError: as `load`; or there is a file that is neither an entry nor the games of one.
        OSError: a file cannot be read.
    """
    board = Path(board)
    entries = load(board)
    places = [board / entry.place for entry in entries]
    games = [place.with_name(json.loads(place.read_text(encoding="utf-8"))["games"]) for place in places]
    for path in sorted(board.rglob("*")):
        if path.is_file() and path not in places and path not in games:
            raise ValueError(f"{path} is no entry, nor the games of one: delete it")
    return entries


def standings(entries: Sequence[Entry]) -> list[list[Standing]]:
    """The entries of each rule set and suite, best first; rule sets in the order of `VARIANTS`, then suites by name."""
    order = list(VARIANTS)

    def table(entry: Entry) -> tuple[int, str, int]:
        kind = entry.result.suite.partition("-")[0]
        return order.index(entry.result.rules.name), kind, len(entry.result.numbers)

    def best(entry: Entry) -> tuple[int, float, str]:
        return -entry.result.wins, -float(entry.result.scores.mean()), entry.name

    tables: list[list[Standing]] = []
    for _, group in groupby(sorted(entries, key=table), key=table):
        ranked = sorted(group, key=best)
        tables.append([Standing(k + 1, entry, ranked[k - 1] if k else None) for k, entry in enumerate(ranked)])
    return tables


def title(table: Sequence[Standing]) -> str:
    """What a table is of, such as ``"classic, winnable-1000"``."""
    result = table[0].entry.result
    return f"{result.rules.name}, {result.suite}"


def markdown(tables: Sequence[Sequence[Standing]]) -> str:
    """All tables, each under a heading of the third level.

    Raises:
        ImportError: scipy is missing.
    """
    parts: list[str] = []
    for table in tables:
        rows = [_cells(standing) for standing in table]
        left = ("policy", "by", "date", "rusol-env")
        lines = [
            f"### {title(table).capitalize()}",
            "",
            f"| {' | '.join(rows[0])} |",
            f"| {' | '.join('---' if heading in left else '---:' for heading in rows[0])} |",
            *(f"| {' | '.join(row.values())} |" for row in rows),
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _cells(standing: Standing) -> dict[str, str]:
    row = standing.document()
    low, high = row["win_rate_ci95"]
    cells = {
        "#": str(row["rank"]),
        "policy": row["name"] if row["url"] is None else f"[{row['name']}]({row['url']})",
        "by": row["by"],
        "wins": f"{row['wins']:,} ({row['win_rate']:.1%})",
        "95 % interval": f"{low:.1%} to {high:.1%}",
    }
    # Of a suite of winnable deals this would be the share of the wins again.
    if not row["suite"].startswith("winnable"):
        share, winnable = row["wins_of_winnable"], row["winnable"]
        cells["of the winnable"] = "" if share is None else f"{share:.1%} of {winnable:,}"
    against = row["against_above"]
    cells["only it / only the one above"] = ""
    if against is not None:
        chance = "< 0.0001" if against["p"] < 1e-4 else f"= {against['p']:.2g}"
        cells["only it / only the one above"] = f"{against['only']:,} / {against['only_above']:,} (p {chance})"
    return cells | {
        "mean score": f"{row['mean_score']:.1f}",
        "ms a move": f"{row['ms_a_move']:.2g}",
        "date": row["date"],
        "rusol-env": row["versions"]["rusol-env"],
    }


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "_", name.lower())


def _check_board(board: Path) -> None:
    if not board.is_dir():
        raise ValueError(
            f"there is no leaderboard in {board}: run this in a clone of the repository, or --board FOLDER"
        )


def _read_result(path: Path) -> tuple[Evaluation, dict[str, str], bytes]:
    """What `save` wrote, played again; its versions; and the file of games."""
    summary = read_summary(path)
    source = path.with_name(Path(str(summary["games"])).name)
    data = source.read_bytes()
    result, versions = _replayed(summary, Games.load(source), path)
    table = path.with_name(Path(str(summary["table"])).name)
    told, found = read_rows(table), result.rows()
    if list(told) != list(found) or {len(values) for values in told.values()} != {len(result.numbers)}:
        raise ValueError(f"{table} is not a row for each deal with {', '.join(found)}")
    for heading, values in found.items():
        for code, said, value in zip(found["code"], told[heading], values, strict=True):
            if said != str(value):
                raise ValueError(f"{table} says {heading} {said[:_MOST_TEXT]} of {code}, and its games give {value}")
    return result, versions, data


def _read_entry(board: Path, path: Path) -> Entry:
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
        document = cast(dict[str, Any], document)
        if (document.get("format"), document.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"its format is not {FORMAT} {VERSION}")
        missing = [
            key for key in ("name", "by", "url", "date", "games", "games_sha256", "evaluation") if key not in document
        ]
        if missing:
            raise ValueError(f"it lacks {' and '.join(missing)}")
        games = path.with_name(Path(str(document["games"])).name)
        if not games.is_file():
            raise ValueError(f"there is no {games.name} beside it, the games that it is of")
        if sha256(games.read_bytes()).hexdigest() != document["games_sha256"]:
            raise ValueError(f"{games.name} was changed after it was written")
        claim = document["evaluation"]
        if not isinstance(claim, dict):
            raise ValueError("its 'evaluation' is no JSON object")
        url = None if document["url"] is None else str(document["url"])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no entry of a leaderboard: {error}") from error
    result, versions = _replayed(cast(dict[str, Any], claim), Games.load(games), path)
    try:
        entry = Entry(document["name"], document["by"], url, document["date"], result, versions)
    except ValueError as error:
        raise ValueError(f"{path} is no entry of a leaderboard: {error}") from error
    if board / entry.place != path:
        raise ValueError(f"{path} is the entry {entry.place}: it lies where it does not belong")
    return entry


def _replayed(claim: Mapping[str, Any], games: Games, source: Path) -> tuple[Evaluation, dict[str, str]]:
    """The evaluation that `games` are, played again, and its versions; `claim` is what `source` says of it.

    Raises:
        ValueError: they disagree, or it is not of a suite for all, or not played as all are.
    """
    missing = [key for key in _KEPT if key not in claim]
    if missing:
        raise ValueError(f"{source} does not say {' and '.join(missing)}")
    for key in WITHOUT:
        if claim[key] is not False:
            raise ValueError(f"{source} is of games with {key}: an entry is played without")
    for key, value in (("rules", games.rules.name), ("suite", games.suite), ("max_steps", games.max_steps)):
        if claim[key] != value:
            raise ValueError(f"{source} says {key} {claim[key]!r}, and its games say {value!r}")
    if games.max_steps != DEFAULT_MAX_STEPS:
        raise ValueError(f"{source} is of games of {games.max_steps} steps at most: an entry plays {DEFAULT_MAX_STEPS}")
    try:
        deals = suite(games.suite, games.rules)
    except ValueError as error:
        raise ValueError(f"{source} is of no suite for all: an entry plays first-N or winnable-N ({error})") from error
    if deals.name != games.suite or list(deals) != games.numbers.tolist():
        raise ValueError(f"{source} is of other deals than the suite {games.suite} of {games.rules.name} has")
    settings, seconds, versions = claim["policy_settings"], claim["seconds"], claim["versions"]
    if not isinstance(settings, dict) or not isinstance(versions, dict):
        raise ValueError(f"{source} does not say the policy's settings, or under which versions it played")
    versions = cast(dict[str, Any], versions)
    for text in (claim["policy"], claim["policy_class"], *versions.values()):
        if not (isinstance(text, str) and len(text) <= _MOST_TEXT and text.isprintable()):
            raise ValueError(f"{source} has a name or version that is no line of text")
    if not _NAME.fullmatch(versions.get("rusol-env", "")):
        raise ValueError(f"{source} does not say which version of rusol-env it is of")
    if not _is_number(seconds) or seconds <= 0:
        raise ValueError(f"{source} says that it took {str(seconds)[:_MOST_TEXT]} seconds")
    try:
        found = games.replay()
        seed = check_seed(claim["seed"])
    except ValueError as error:
        raise ValueError(f"{source} is not what was played: {error}") from error
    result = Evaluation(
        claim["policy"],
        claim["policy_class"],
        cast(dict[str, Any], settings),
        games.rules,
        games.suite,
        seed,
        games.max_steps,
        games.numbers,
        found.won,
        found.truncated,
        found.scores,
        games.steps,
        games.actions,
        float(seconds),
    )
    given = result.summary()
    for key in _FIGURES:
        said = claim[key]
        if not _is_number(said) or not isclose(said, given[key], rel_tol=1e-9):
            raise ValueError(f"{source} says {key} {str(said)[:_MOST_TEXT]}, and its games give {given[key]}")
    return result, versions


def _is_number(value: Any) -> bool:
    # Not too large for a float either.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15
