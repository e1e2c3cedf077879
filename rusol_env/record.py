"""The record of a game: a JSON file that says how it was dealt and what was done in it, step by step.

Version 1, one object:

    {
      "format": "rusol-record", "version": 1,
      "rules": "classic",
      "code": "RU1-C-AAAAABB",                  or, for an arrangement without number,
      "columns": [["9C"], …], "face_down": [0, 1, …],       seven columns from their bases, as in files of deals
      "player": {"name": "greedy", "class": "…", "seed": 0},     "person" for a person; values are text or numbers
      "started": "2026-11-30T08:35:49+00:00",   or null
      "steps": [
        {"move": "8H > 3", "seconds": 1.25, "probabilities": {"8H > 3": 0.75, "AS > F": 0.25}},
        {"undo": true}, …
      ],
      "result": {"won": false, "score": 15, "moves": 3},
      "versions": {"rusol-env": "…"}
    }

``seconds`` is the time since the start, ``probabilities`` what the policy gave each move; both can be missing.
An undone move stays in the record, with the undo after it. Other keys are ignored. A reader replays every step
under the rules and compares the result, so what `Record.load` returns is a game that could be played.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from rusol_env.deals import Arrangement, arrangement, deal_arrangement, decode_code, encode_code, is_whole
from rusol_env.files import write_whole
from rusol_env.game import Game, IllegalMove, Move, NothingToUndo, decode_action, parse_move
from rusol_env.rules import Rules, rules_named

FORMAT: Final = "rusol-record"
VERSION: Final = 1
# What a record that somebody handed over may be at most; a game of 500 steps with probabilities has 0.3 MB.
MAX_BYTES: Final = 16 << 20
MAX_STEPS: Final = 100_000
_MAX_TEXT: Final = 200
_MAX_REFUSAL: Final = 400
_MAX_SECONDS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Step:
    """One thing done in a game."""

    move: Move | None
    """None: the last move was undone."""
    seconds: float | None = None
    """Since the start of the game."""
    probabilities: Mapping[Move, float] | None = None
    """What the policy gave each move, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Record:
    """A game from its start to its last step.

    Raises:
        ValueError: (on construction) a step cannot be done; the message says which and why.
    """

    rules: Rules
    start: Arrangement
    steps: tuple[Step, ...]
    player: Mapping[str, str | int | float] = field(default_factory=lambda: {"name": "person"})
    """Who played: ``name``, and for a policy what it takes to play again, such as ``class`` and ``seed``."""
    started: str | None = None
    """The time of the deal in ISO 8601."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        self.game()

    @classmethod
    def of(
        cls,
        game: Game,
        *,
        seconds: list[float] | None = None,
        player: Mapping[str, str | int | float] | None = None,
        started: str | None = None,
    ) -> Record:
        """The record of `game` as it is now.

        Args:
            game: its history is what is recorded.
            seconds: for each entry of ``game.history``, when it was done.
            player: by default ``{"name": "person"}``.
            started: the time of the deal in ISO 8601.

        Raises:
            ValueError: there are not as many times as steps.
        """
        history = game.history
        if seconds is not None and len(seconds) != len(history):
            raise ValueError(f"there are {len(seconds)} times for {len(history)} steps: give one a step")
        times = [None] * len(history) if seconds is None else seconds
        steps = tuple(Step(move, time) for move, time in zip(history, times, strict=True))
        return cls(game.rules, game.start, steps, player or {"name": "person"}, started)

    @property
    def code(self) -> str | None:
        """The code of the deal; None for an arrangement without number."""
        return None if self.start.number is None else encode_code(self.start.number, self.rules)

    def game(self, steps: int | None = None) -> Game:
        """The game after so many steps, all by default."""
        game = Game(self.start, self.rules)
        for place, step in enumerate(self.steps[:steps], start=1):
            try:
                if step.move is None:
                    game.undo()
                else:
                    game.play(step.move)
            except (IllegalMove, NothingToUndo) as error:
                what = "the undo" if step.move is None else f"the move {step.move.ascii}"
                raise ValueError(f"step {place}, {what}, cannot be done: {error}") from error
        return game

    def document(self) -> dict[str, Any]:
        """The record as the JSON object that the module describes."""
        game = self.game()
        where: dict[str, Any] = {"code": self.code}
        if self.code is None:
            where = {"columns": self.start.text(), "face_down": list(self.start.face_down)}
        return {
            "format": FORMAT,
            "version": VERSION,
            "rules": self.rules.name,
            **where,
            "player": dict(self.player),
            "started": self.started,
            "steps": [_step_document(step) for step in self.steps],
            "result": {"won": game.won, "score": game.score, "moves": game.moves},
            "versions": {"rusol-env": own_version()},
        }

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the record to a file, whole or not at all.

        Raises:
            FileExistsError: there is such a file and `replace` is off.
            OSError: it cannot be written.
        """
        path = Path(path)
        document = self.document()
        steps = document.pop("steps")
        # A step a line, so that a person can read it and a diff shows what differs.
        lines = ",\n".join(f"    {json.dumps(step, ensure_ascii=False)}" for step in steps)
        head = json.dumps(document, ensure_ascii=False, indent=2).removesuffix("\n}")
        try:
            write_whole(path, f'{head},\n  "steps": [\n{lines}\n  ]\n}}\n'.encode(), replace=replace)
        except FileExistsError as error:
            raise FileExistsError(f"{path} is there already: choose another name") from error
        return path

    @classmethod
    def load(cls, path: str | Path) -> Record:
        """Read a record from a file that anybody may have written: nothing in it is run or trusted.

        Raises:
            ValueError: it is no record of a game that could be played; one sentence says why.
            OSError: it cannot be read.
        """
        path = Path(path)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        try:
            return cls.parse(data)
        except ValueError as error:
            raise ValueError(f"{path} is not a record that can be replayed: {error}") from error

    @classmethod
    def parse(cls, data: bytes | str) -> Record:
        """Read a record from the text of its file.

        Raises:
            ValueError: as `load`.
        """
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
        try:
            return _read(json.loads(data, parse_constant=_refuse_constant))
        except UnicodeDecodeError:
            raise ValueError("it is not text in UTF-8") from None
        except json.JSONDecodeError as error:
            raise ValueError(f"it is not JSON: {error}") from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except ValueError as error:
            # A refusal quotes what it refuses, which may be a megabyte.
            text = str(error)
            raise ValueError(text if len(text) <= _MAX_REFUSAL else f"{text[:_MAX_REFUSAL]}…") from None


class Recorder:
    """Takes down what `rusol_env.evaluate` plays, as its ``watch``, and makes records of it."""

    def __init__(self) -> None:
        self._steps: defaultdict[int, list[Step]] = defaultdict(list)

    def __call__(
        self, games: NDArray[np.int64], actions: NDArray[np.int64], shares: NDArray[np.floating[Any]] | None
    ) -> None:
        """Take down one legal action, int64 (K,), for each of K games, int64 (K,), and what each gave all actions."""
        for k, (game, action) in enumerate(zip(games.tolist(), actions.tolist(), strict=True)):
            given = None
            if shares is not None:
                given = {decode_action(other): float(shares[k, other]) for other in np.flatnonzero(shares[k]).tolist()}
            self._steps[game].append(Step(decode_action(action), None, given))

    def records(
        self, numbers: Iterable[int], rules: Rules, player: Mapping[str, str | int | float]
    ) -> Iterator[tuple[str, Record]]:
        """The name of its file and the record of each game, for the suite's deal numbers in their order."""
        for game, number in enumerate(numbers):
            record = Record(rules, deal_arrangement(number), tuple(self._steps[game]), player)
            yield record_name(player, rules, number), record


def record_name(player: Mapping[str, str | int | float], rules: Rules, number: int) -> str:
    """The name of the file with a player's record of a deal."""
    # A player's name is anybody's text: only what is safe in a file name goes into one.
    who = f"{player['name']}-seed{player['seed']}" if "seed" in player else f"{player['name']}"
    who = re.sub(r"[^A-Za-z0-9_-]", "_", who)
    return f"{who[:_MAX_TEXT]}-{encode_code(number, rules)}.json"


def own_version() -> str:
    """The version of rusol-env, ``"unknown"`` where its sources were never installed."""
    try:
        return version("rusol-env")
    except PackageNotFoundError:
        return "unknown"


def _step_document(step: Step) -> dict[str, Any]:
    document: dict[str, Any] = {"undo": True} if step.move is None else {"move": step.move.ascii}
    if step.seconds is not None:
        document["seconds"] = round(step.seconds, 3)
    if step.probabilities is not None:
        document["probabilities"] = {move.ascii: round(share, 6) for move, share in step.probabilities.items()}
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it has {name} in it, which is no number")


def _short(value: Any) -> str:
    """A value as a refusal quotes it: on one line and not too long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {_short(value)} and must be a JSON object")
    return cast(dict[str, Any], value)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is {_short(value)} and must be a list")
    return cast(list[Any], value)


def _number(value: Any, what: str, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise ValueError(f"{what} is {_short(value)} and must be a number from 0 to {most:g}")
    return float(value)


def _read(value: Any) -> Record:
    document = _object(value, "it")
    if document.get("format") != FORMAT:
        raise ValueError(f'its "format" is {_short(document.get("format"))} and must be "{FORMAT}"')
    if document.get("version") != VERSION or not is_whole(document["version"]):
        raise ValueError(f'its "version" is {_short(document.get("version"))}: this rusol-env reads version {VERSION}')
    if not isinstance(document.get("rules"), str):
        raise ValueError(f'its "rules" are {_short(document.get("rules"))} and must be the name of a rule set')
    rules = rules_named(document["rules"])
    start = _read_start(document, rules)
    steps = _list(document.get("steps"), 'its "steps"')
    if len(steps) > MAX_STEPS:
        raise ValueError(f"it has {len(steps)} steps, and at most {MAX_STEPS} are read")
    record = Record(
        rules,
        start,
        tuple(_read_step(step, f"step {place}") for place, step in enumerate(steps, start=1)),
        _read_player(document.get("player", {})),
        _read_time(document.get("started")),
    )
    game = record.game()
    result = _object(document.get("result"), 'its "result"')
    for key, found in (("won", game.won), ("score", game.score), ("moves", game.moves)):
        if result.get(key) != found:
            raise ValueError(f'its "result" says {key} {_short(result.get(key))}, and its steps give {found!r}')
    return record


def _read_start(document: dict[str, Any], rules: Rules) -> Arrangement:
    if document.get("code") is None:
        columns = _list(document.get("columns"), 'it has no "code", and its "columns"')
        face_down = _list(document.get("face_down"), 'its "face_down"')
        return arrangement([_list(column, "a column") for column in columns], face_down, deal=False)
    code = document["code"]
    if not isinstance(code, str) or len(code) > _MAX_TEXT:
        raise ValueError(f'its "code" is {_short(code)} and must be a game code')
    coded, number = decode_code(code)
    if coded != rules:
        raise ValueError(f'its code is for {coded.name} rules and its "rules" are {rules.name}')
    return deal_arrangement(number)


def _read_step(value: Any, name: str) -> Step:
    step = _object(value, name)
    seconds = None if step.get("seconds") is None else _number(step["seconds"], f"the seconds of {name}", _MAX_SECONDS)
    if step.get("undo") is True and "move" not in step:
        return Step(None, seconds)
    shares = step.get("probabilities")
    if shares is not None:
        what = f"the probabilities of {name}"
        shares = {_read_move(move, name): _number(share, what, 1) for move, share in _object(shares, what).items()}
    return Step(_read_move(step.get("move"), name), seconds, shares)


def _read_move(value: Any, name: str) -> Move:
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise ValueError(f'{name} has no "move" such as "10H > 3", and no "undo": it has {_short(value)}')
    try:
        return parse_move(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _read_player(value: Any) -> dict[str, str | int | float]:
    player = _object(value, 'its "player"')
    for key, detail in player.items():
        if not (_is_plain(key) and (_is_plain(detail) or _is_plain_number(detail))):
            raise ValueError(f'its "player" has {_short(key)}: {_short(detail)}: details are short texts or numbers')
    return {"name": "unknown"} | player


def _is_plain(text: Any) -> bool:
    """Whether it is text that may be shown: short, and without the signs that steer a terminal."""
    return isinstance(text, str) and len(text) <= _MAX_TEXT and text.isprintable()


def _is_plain_number(number: Any) -> bool:
    return isinstance(number, (int, float)) and abs(number) < 2**64


def _read_time(value: Any) -> str | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise ValueError(f'its "started" is {_short(value)} and must be a time in ISO 8601') from None
