"""All games of an evaluation in one small file, so that others can play them again and see that the figures are true.

Version 1 is a NumPy ``.npz`` without pickles, with these arrays:

- ``about`` uint8: a JSON object in UTF-8, ``{"format": "rusol-games", "version": 1, "rules": "classic", "suite":
  "first-1000", "max_steps": 500, "take_back": false, "idle_moves": false, "thoughtful": false, "rusol-env": "…"}``;
- ``numbers`` int64 (N,): the deal numbers, in the suite's order;
- ``steps`` int32 (N,): the steps of each game;
- ``actions`` int16 (sum of the steps,): what was chosen at each step, game after game, refused actions included.

It holds no result: `Games.replay` plays the actions under the rules and finds the results.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from rusol_env.deals import NUM_DEALS, encode_code, is_whole
from rusol_env.engine import NUM_ACTIONS
from rusol_env.files import open_zip
from rusol_env.record import own_version
from rusol_env.rules import Rules, rules_named
from rusol_env.vector import RussianSolitaireVectorEnv

FORMAT: Final = "rusol-games"
VERSION: Final = 1
# What every evaluation plays without; the file says so, so that no reader has to know.
WITHOUT: Final = ("take_back", "idle_moves", "thoughtful")
_ARRAYS: Final[dict[str, str]] = {"about": "|u1", "numbers": "<i8", "steps": "<i4", "actions": "<i2"}
# What the file that somebody handed over may unpack to at most: two hundred thousand games of 500 steps.
_MAX_BYTES: Final = 256 << 20
_MAX_TEXT: Final = 200
_BATCH: Final = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What became of each game. All arrays have one entry a game, in the suite's order."""

    won: NDArray[np.bool_]
    """bool (N,)"""
    truncated: NDArray[np.bool_]
    """bool (N,): stopped after `Games.max_steps`."""
    scores: NDArray[np.int64]
    """int64 (N,): final scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Games:
    """What a policy chose in each game of an evaluation."""

    rules: Rules
    suite: str
    max_steps: int
    numbers: NDArray[np.int64]
    """int64 (N,): the deal numbers."""
    steps: NDArray[np.int64]
    """int64 (N,): the steps of each game."""
    actions: NDArray[np.int16]
    """int16 (sum of `steps`,): the action of each step, game after game."""

    def data(self) -> bytes:
        """The file; the same games make the same bytes."""
        about: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "rules": self.rules.name,
            "suite": self.suite,
            "max_steps": self.max_steps,
            **dict.fromkeys(WITHOUT, False),
            "rusol-env": own_version(),
        }
        arrays: dict[str, NDArray[Any]] = {
            "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
            "numbers": self.numbers,
            "steps": self.steps,
            "actions": self.actions,
        }
        data = io.BytesIO()
        typed: dict[str, Any] = {name: arrays[name].astype(kind) for name, kind in _ARRAYS.items()}
        np.savez_compressed(data, **typed)
        return data.getvalue()

    @classmethod
    def load(cls, path: str | Path) -> Games:
        """Read a file that anybody may have written: nothing in it is run or trusted.

        Raises:
            ValueError: it is no file of games, or damaged; one sentence says why.
            OSError: it cannot be read.
        """
        data = Path(path).read_bytes()
        try:
            return cls.parse(data)
        except ValueError as error:
            raise ValueError(f"{path} is no file of an evaluation's games: {error}") from error

    @classmethod
    def parse(cls, data: bytes) -> Games:
        """Read games from the bytes of their file.

        Raises:
            ValueError: as `load`.
        """
        arrays = _arrays(data)
        about = _about(arrays["about"])
        rules = rules_named(about["rules"])
        numbers, steps = arrays["numbers"], arrays["steps"].astype(np.int64)
        actions, max_steps = arrays["actions"], about["max_steps"]
        if len(numbers) == 0 or len(numbers) != len(steps):
            raise ValueError(f"it has {len(numbers)} deals and {len(steps)} counts of steps")
        if numbers.min() < 0 or numbers.max() >= NUM_DEALS:
            raise ValueError("it has something in it that is no deal number")
        if steps.min() < 1 or steps.max() > max_steps or steps.sum() != len(actions):
            raise ValueError(f"its games do not have 1 to {max_steps} steps that are together its {len(actions)}")
        if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
            raise ValueError(f"it has an action outside 0 to {NUM_ACTIONS - 1}")
        return cls(rules, about["suite"], max_steps, numbers, steps, actions)

    def replay(self) -> Replay:
        """Play all games again, each to the end of its actions, without taking back and idle moves.

        Raises:
            ValueError: a game is over before its last action, or not over after it.
        """
        total, batch = len(self.numbers), min(_BATCH, len(self.numbers))
        env = RussianSolitaireVectorEnv(
            batch,
            self.rules,
            observation="board",
            max_steps=self.max_steps,
            deals=self.numbers.tolist(),
            copy=False,
        )
        won, truncated = np.zeros(total, np.bool_), np.zeros(total, np.bool_)
        scores = np.zeros(total, np.int64)
        after = np.cumsum(self.steps)
        # Where the next action of each game stands.
        at = after - self.steps
        ended = np.zeros(batch, np.bool_)
        _, infos = env.reset()
        while not env.finished:
            # Not those whose episode is over, where the next begins and any action is ignored.
            playing = np.flatnonzero((infos["deal_index"] >= 0) & ~ended)
            place = infos["deal_index"][playing]
            self._refuse(place[at[place] >= after[place]], "is not over after its last action")
            chosen = np.zeros(batch, np.int64)
            chosen[playing] = self.actions[at[place]]
            at[place] += 1
            _, _, terminations, truncations, infos = env.step(chosen)
            ended = terminations | truncations
            over = np.flatnonzero(ended)
            if over.size:
                place = infos["deal_index"][over]
                self._refuse(place[at[place] < after[place]], "is over before its last action")
                won[place], truncated[place] = infos["is_success"][over], truncations[over]
                scores[place] = infos["score"][over]
        return Replay(won, truncated, scores)

    def _refuse(self, places: NDArray[np.int64], what: str) -> None:
        if places.size:
            raise ValueError(f"the game of {encode_code(int(self.numbers[places[0]]), self.rules)} {what}")


def _arrays(data: bytes) -> dict[str, NDArray[Any]]:
    with open_zip(data) as archive:
        names = sorted(part.filename for part in archive.infolist())
        if names != sorted(f"{name}.npy" for name in _ARRAYS):
            raise ValueError(f"it must hold the arrays {', '.join(_ARRAYS)} and nothing else")
        if sum(part.file_size for part in archive.infolist()) > _MAX_BYTES:
            raise ValueError(f"it unpacks to more than {_MAX_BYTES >> 20} MiB")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays: dict[str, NDArray[Any]] = {name: file[name] for name in _ARRAYS}
    except Exception as error:  # what a damaged array makes NumPy raise can be anything
        raise ValueError(str(error) or type(error).__name__) from error
    for name, kind in _ARRAYS.items():
        found = arrays[name]
        if found.ndim != 1 or found.dtype != np.dtype(kind):
            raise ValueError(f"its {name!r} is {found.dtype} {found.shape} and must be {np.dtype(kind)} (N,)")
    return arrays


def _about(packed: NDArray[np.uint8]) -> dict[str, Any]:
    try:
        about: Any = json.loads(packed.tobytes())
    except (ValueError, RecursionError):
        raise ValueError("its 'about' is not JSON") from None
    if not isinstance(about, dict):
        raise ValueError("its 'about' is no JSON object")
    about = cast(dict[str, Any], about)
    if about.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    if about.get("version") != VERSION or not is_whole(about["version"]):
        raise ValueError(f"its version is not {VERSION}, which this rusol-env reads")
    for key in ("rules", "suite"):
        if not isinstance(about.get(key), str) or len(about[key]) > _MAX_TEXT or not about[key].isprintable():
            raise ValueError(f"its {key!r} is missing or no name")
    if not is_whole(about.get("max_steps")) or about["max_steps"] < 1:
        raise ValueError("its 'max_steps' is missing or no number of steps")
    for key in WITHOUT:
        if about.get(key) is not False:
            raise ValueError(f"its {key!r} is not false: its games are no evaluation's")
    return about
