"""`Table`: a game that somebody plays, with its options, kept on disk so that it outlives the program.

What the page (`rusol_env.server`) and the terminal (`rusol_env.terminal`) play on. It decides nothing about the
rules: it asks `Game`.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from rusol_env.deals import NUM_DEALS, NUM_EVAL_DEALS, decode_code
from rusol_env.files import write_whole
from rusol_env.game import Game, Move, decode_action
from rusol_env.models import policy_named, policy_names
from rusol_env.policies import Policy
from rusol_env.record import Record, Step
from rusol_env.rules import VARIANTS, Rules, rules_named

# The options of the page and what each is before anybody chooses.
OPTIONS: Final[dict[str, bool]] = {
    "double_click": True,
    "placement_help": True,
    "interactive_rules": True,
    "auto_placement": False,
    "four_colours": False,
}
_MAX_SECONDS: Final = 1e8
_STATE: Final = "play.json"
_GAMES: Final = "games"


class Table:
    """One game in progress and the options, in a folder."""

    def __init__(self, folder: str | Path, guest: Policy | None = None) -> None:
        """Go on with the game that `folder` holds, or deal a new one.

        A state that cannot be read is put aside under another name, and said so on stderr.

        Args:
            folder: made if it is not there.
            guest: a policy that plays and gives hints besides those that come with the package.

        Raises:
            OSError: the folder cannot be made or written.
        """
        self.folder = Path(folder)
        self._guest = guest
        (self.folder / _GAMES).mkdir(parents=True, exist_ok=True)
        self.options = dict(OPTIONS)
        # Counts the changes of the game, so that a window knows whether it shows the latest.
        self.version = 0
        self._start(Game.from_number(_any_deal()))
        path = self.folder / _STATE
        if path.exists():
            try:
                self._restore(json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                aside = path.with_name(f"play.damaged-{secrets.token_hex(4)}.json")
                path.rename(aside)
                print(f"rusol: the kept game could not be read and is now {aside}: {error}", file=sys.stderr)
                self._start(Game.from_number(_any_deal()))
        self._keep()

    def _start(self, game: Game) -> None:
        self.game = game
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.seconds = 0.0
        self.saved: Path | None = None
        # When each entry of the game's history was done, in seconds since the start.
        self._times: list[float] = []
        # Who made moves, in order: "person" and names of policies.
        self._players: list[str] = []
        self._hints = 0
        self._policies: dict[tuple[str, Rules], Policy] = {}
        # A way to win that the solver found, from the version of the game that it belongs to.
        self.plan: tuple[int, tuple[Move, ...]] = (-1, ())

    # ---- what a player does -----------------------------------------------------------------------------------

    def new(self, rules: str | Rules | None = None, code: str | None = None) -> None:
        """Deal a new game: that of `code`, or any deal under `rules` (by default the same ones).

        A game that was begun and not finished is saved as a record first.

        Raises:
            ValueError: no such code or rules; nothing has changed.
        """
        if code is not None:
            coded, number = decode_code(code)
            game = Game.from_number(number, coded)
        else:
            game = Game.from_number(_any_deal(), rules_named(self.game.rules if rules is None else rules))
        if self.game.line and self.saved is None:
            self.save()
        self._start(game)
        self._changed()

    def play(self, move: Move, seconds: float = 0.0, player: str = "person") -> None:
        """Make a move; a game that it wins is saved as a record.

        Args:
            move: the move.
            seconds: how long the game has been played, by the player's clock.
            player: who made it.

        Raises:
            IllegalMove: the move is refused; nothing has changed.
        """
        self.game.play(move)
        self._done(seconds)
        if player not in self._players:
            self._players.append(player)
        if self.game.won and self.saved is None:
            self.saved = self.save()
        self._changed()

    def undo(self, seconds: float = 0.0) -> None:
        """Take back the last move.

        Raises:
            NothingToUndo: there is none; nothing has changed.
        """
        self.game.undo()
        self._done(seconds)
        self._changed()

    def choose(self, options: Mapping[str, Any]) -> None:
        """Set options.

        Raises:
            ValueError: there is no such option, or the value is not True or False; nothing has changed.
        """
        _check_options(options)
        self.options |= dict(options)
        self._keep()

    @property
    def policies(self) -> list[str]:
        """The names of the policies that can be asked for advice under the rules of the game."""
        return [*policy_names(self.game.rules), *([] if self._guest is None else [self._guest.name])]

    def advice(self, name: str) -> Move | None:
        """What the policy of that name would play here; None where it finds no move.

        It sees what a player sees. The same position gets the same advice from a policy without chance.

        Raises:
            ValueError: there is no such policy.
        """
        rules = self.game.rules
        # Whoever asks, asks by name: a name that is a path must never make this program read a model.
        if name not in self.policies:
            raise ValueError(f"unknown policy {name!r}: use one of {', '.join(self.policies)}")
        is_guest = self._guest is not None and name == self._guest.name
        policy = self._guest if is_guest else self._policies.get((name, rules))
        if policy is None:
            policy = self._policies[name, rules] = policy_named(name, secrets.randbits(64), rules)
        if not self.game.legal_moves(take_back=False, idle_moves=False):
            return None
        observation, mask = self.game.observe(policy.observation)
        return decode_action(int(policy.act(observation[None], mask[None])[0]))

    def count_hint(self) -> None:
        """Note that a hint was given: a record says how many were."""
        self._hints += 1
        self._keep()

    def tick(self, seconds: float) -> None:
        """Note how long the game has been played."""
        self._clock(seconds)
        self._keep()

    # ---- what a player sees -----------------------------------------------------------------------------------

    def view(self) -> dict[str, Any]:
        """All that the page shows, ready for JSON; nothing in it but the code depends on a face-down card."""
        game = self.game
        legal = game.legal_moves()
        line = game.line
        cards = {move.card for move in legal}
        return {
            "version": self.version,
            "columns": [list(column) for column in game.columns],
            "foundations": list(game.foundations),
            "score": game.score,
            "moves": game.moves,
            "seconds": round(self.seconds, 1),
            "code": game.code,
            "rules": game.rules.name,
            "won": game.won,
            "stuck": not game.won and not game.legal_moves(idle_moves=False),
            "undo": game.undo_left,
            "legal": [list(move) for move in legal],
            "place": {str(card): move.destination for card in cards if (move := game.double_tap(card)) is not None},
            "last": {"card": line[-1].card, "to": line[-1].destination, "text": str(line[-1])} if line else None,
            "options": self.options,
            "policies": self.policies,
            "variants": list(VARIANTS),
            "saved": None if self.saved is None else self.saved.name,
        }

    def record(self) -> Record:
        """The record of the game as it stands."""
        player: dict[str, str | int | float] = {"name": " and ".join(self._players) or "person"}
        if self._hints:
            player["hints"] = self._hints
        steps = tuple(Step(move, time) for move, time in zip(self.game.history, self._times, strict=True))
        return Record(self.game.rules, self.game.start, steps, player, self.started)

    def save(self) -> Path:
        """Write the record of the game into the folder ``games`` and return its path.

        Raises:
            OSError: it cannot be written.
        """
        name = f"{self.started[:19].replace(':', '')}-{self.game.code or 'arrangement'}"
        path = self.folder / _GAMES / f"{name}.json"
        while path.exists():
            path = path.with_name(f"{name}-{secrets.token_hex(2)}.json")
        return self.record().save(path)

    # ---- the disk ---------------------------------------------------------------------------------------------

    def _clock(self, seconds: float) -> None:
        # The player's clock never runs backwards: a second window may have been open for less long.
        if np.isfinite(seconds):
            self.seconds = min(max(self.seconds, float(seconds)), _MAX_SECONDS)

    def _done(self, seconds: float) -> None:
        self._clock(seconds)
        self._times.append(self.seconds)

    def _changed(self) -> None:
        self.version += 1
        self._keep()

    def _keep(self) -> None:
        document = {
            "version": self.version,
            "options": self.options,
            "seconds": self.seconds,
            "players": self._players,
            "hints": self._hints,
            "saved": None if self.saved is None else self.saved.name,
            "record": self.record().document(),
        }
        write_whole(self.folder / _STATE, json.dumps(document).encode())

    def _restore(self, document: dict[str, Any]) -> None:
        record = Record.parse(json.dumps(document["record"]))
        players = cast(list[Any], document["players"])
        saved = document["saved"]
        options = {key: value for key, value in document["options"].items() if key in OPTIONS}
        _check_options(options)
        self.options |= options
        self._start(record.game())
        self.started = record.started or self.started
        self._times = [step.seconds or 0.0 for step in record.steps]
        self._clock(float(document["seconds"]))
        self._players = [str(player) for player in players]
        self._hints = int(document["hints"])
        self.saved = None if saved is None else self.folder / _GAMES / Path(str(saved)).name
        self.version = int(document["version"])


def _check_options(options: Mapping[str, Any]) -> None:
    for key, value in options.items():
        if key not in OPTIONS or not isinstance(value, bool):
            raise ValueError(f"{key!r}: {value!r} is not an option: {', '.join(OPTIONS)} are true or false")


def _any_deal() -> int:
    """Any deal that evaluations do not use."""
    return NUM_EVAL_DEALS + secrets.randbelow(NUM_DEALS - NUM_EVAL_DEALS)
