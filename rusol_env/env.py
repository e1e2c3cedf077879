"""`RussianSolitaireEnv`: one game as a Gymnasium environment."""

from __future__ import annotations

import copy
import math
import operator
import secrets
import warnings
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Final, SupportsIndex, TypeVar

import gymnasium
import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from rusol_env import engine, episode
from rusol_env.deals import (
    Arrangement,
    Deal,
    Split,
    Suite,
    arrangement,
    check_number,
    check_seed,
    check_whole,
    decode_code,
    draw_deal,
    encode_code,
    read_deal,
)
from rusol_env.episode import Reward
from rusol_env.game import decode_action, explain
from rusol_env.observe import Observation, decode_board, encode_board, encode_cards, observation_space
from rusol_env.raster import Window, check_installed, image
from rusol_env.render import Picture, ansi
from rusol_env.rules import CLASSIC, Rejection, Rules, rules_named

DEFAULT_MAX_STEPS: Final = 500
# Moves a second in a window or a video: slow enough to follow.
RENDER_FPS: Final = 4

E = TypeVar("E", bound=Enum)


def option(name: str, value: str | E, kind: type[E]) -> E:
    """The member of the enum `kind` of that (lower-case) name.

    Raises:
        ValueError: there is none; the message lists the valid names.
    """
    if isinstance(value, kind):
        return value
    members = {member.name.lower(): member for member in kind}
    found = members.get(str(value).lower())
    if found is None:
        raise ValueError(f"unknown {name} {value!r}: use one of {', '.join(members)}")
    return found


@cache
def _warn_farming() -> None:
    warnings.warn(
        "take_back=True with reward='score' can be farmed: taking a card back costs nothing and putting it up again "
        "earns 10 each time; reward='progress' pays no loop",
        UserWarning,
        stacklevel=4,
    )


def flag(name: str, value: Any) -> bool:
    if type(value) not in (bool, np.bool_):
        raise ValueError(f"{name} is {value!r}: it must be True or False")
    return bool(value)


def check_finite(name: str, value: Any) -> float:
    """`value` as a float, if it is a finite number; `name` is what it is called.

    Raises:
        ValueError: it is not.
    """
    try:
        number = math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} is {value!r}: it must be a finite number")
    return number


class MaskedDiscrete(Discrete[np.int64]):
    """Gymnasium's `Discrete(416)` with a compiled `sample(mask=...)`: the same draws in a fraction of the time."""

    def sample(self, mask: NDArray[np.int8] | None = None, probability: NDArray[Any] | None = None) -> np.int64:
        """A random action; see `gymnasium.spaces.Discrete.sample`.

        Args:
            mask: int8 (416,), 1 = may be drawn; as in Gymnasium, all 0 gives action 0.
            probability: float64 (416,), the chance of each action, instead of `mask`.

        Raises:
            AssertionError: Gymnasium's own, for a mask or probabilities that are none.
        """
        if (
            probability is None
            and isinstance(mask, np.ndarray)
            and mask.dtype == np.int8
            and mask.shape == (engine.NUM_ACTIONS,)
            and mask.flags.c_contiguous
        ):
            count = episode.count_legal(mask, 0)
            if count > 0:
                return np.int64(episode.nth_legal(mask, 0, int(self.np_random.integers(count))))
        return super().sample(mask, probability)


class RussianSolitaireEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """
    ## Description

    Russian Solitaire: 52 cards in seven columns, 21 of them face down. Any face-up card moves with all
    cards on top of it (20 cards at most) onto a column whose last card it fits; only kings go to empty
    columns. The goal is to build the four foundations up from ace to king. A face-down card that becomes
    the last of its column is turned up.

    It is a partly observed, deterministic task: chance is in the deal alone. A card once face up stays so,
    so an observation tells all that a player can know, and no memory is needed.

    ## Action Space

    `Discrete(416)`: `card * 8 + destination`. A card is `suit * 13 + rank` (spades, hearts, diamonds,
    clubs; ace 0 to king 12); destination 0-6 is a column, 7 the card's foundation. The card says where
    it comes from: one in a column moves with all on top of it; a foundation's top card comes back
    (`take_back=True`). Every legal move is exactly one action. `rusol_env.encode_action` and
    `decode_action` convert. An illegal action changes nothing, costs nothing by default
    (`illegal_reward`), counts as a step and is reported in `info`; one outside the space raises.

    ## Observation Space

    - `observation="cards"`: `Box(0, 1, (52, 24), float32)`, a row per card.
    - `observation="board"`: `Box(-1, 52, (8, 52), int8)`, a row per column and one for the foundations
      (up to 104 under `thoughtful=True`).

    `rusol_env.observe` says what each entry means and decodes both. Neither depends on which card lies
    face down where, unless `thoughtful=True`.

    ## Starting State

    `reset(seed=...)` starts a stream of deals drawn from the `split`, each equally likely; `reset()`
    deals the next one. `reset(options={"code": ...})`, `{"deal_number": ...}` or `{"columns": ...}`
    starts an exact deal. With `deals=` resets walk through those deals in order, and round again;
    a seed starts the walk anew. (Each game of Gymnasium's `SyncVectorEnv` walks through all of them; those of
    `RussianSolitaireVectorEnv` walk through them together, once.)
    `deals=` may also be an iterator without end, such as `rusol_env.WinnableDeals`: each reset takes its next
    deal, and a seed does not start it anew.

    ## Rewards

    - `reward="score"`: the change of the score: +10 a card put on a foundation, +5 a card turned up.
    - `reward="progress"`: the same, but taking a card back costs 10.
    - `reward="win"`: 1 for the move that wins, else 0.

    The score never falls below 0, and a win without taking cards back is 52 * 10 + 21 * 5 = 625. Without
    discount, the return of `"score"` is the final score and that of `"progress"` is 10 a card up and 5 a card
    turned. With `take_back=True`, `"score"` pays for taking a card back and putting it up again; a warning
    says so.

    ## Episode End

    - Termination: the game is won, or no move is left. Some deals of Classic have no move at all: the mask
      is then all 1, as in any finished game, and the first step ends the episode whatever the action.
    - Truncation: after `max_steps` steps, illegal ones included.

    ## Information

    `reset()` and `step()` return a dict with

    - `action_mask`: int8 `(416,)`, 1 = legal; all 1 in a finished game. `action_masks()` is it as bool.
    - `score`, `moves`, `foundation_cards`, `face_down`: int.
    - `code` (None for an explicit arrangement) and `deal_number` (-1 then). They give the hidden cards
      away: they are for people and logs, not for a policy.
    - `is_success`: bool, whether the game is won.
    - `rejection`, `rejection_text`: after an illegal action only, a `rusol_env.Rejection` and a sentence.

    ## Arguments

    ```python
    gymnasium.make(
        "rusol_env:rusol_env/RussianSolitaire-v0",
        rules="classic",        # "classic", "relaxed" or "yukon"
        observation="cards",    # "cards" or "board"
        reward="score",         # "score", "progress" or "win"
        take_back=False,        # allow taking cards back from foundations
        idle_moves=False,       # allow moving a king that is its whole column to an empty one
        thoughtful=False,       # show the identities of face-down cards
        max_steps=500,          # truncate after so many steps (make's max_episode_steps can only shorten that)
        illegal_reward=0.0,     # the reward of an illegal action
        split="train",          # which deals are drawn: "train" or "eval"
        deals=None,             # a sequence of deals, a suite, or an endless iterator, to walk through instead
        render_mode=None,       # None, "ansi" (text), "rgb_array" or "human" (pixels and a window, extra [render])
        four_colours=False,     # pictures with a colour for each suit instead of black and red
    )
    ```

    ## Version History

    - v0: first version.
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "render_modes": ["ansi", "rgb_array", "human"],
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        rules: str | Rules = CLASSIC,
        *,
        observation: str = "cards",
        reward: str = "score",
        take_back: bool = False,
        idle_moves: bool = False,
        thoughtful: bool = False,
        max_steps: int = DEFAULT_MAX_STEPS,
        illegal_reward: float = 0.0,
        split: str = "train",
        deals: Sequence[Deal] | Suite | Iterator[Deal] | None = None,
        render_mode: str | None = None,
        four_colours: bool = False,
    ) -> None:
        """See the class for the arguments.

        Raises:
            ValueError: an argument has no valid value; the message lists those that are.
        """
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            modes = ", ".join(repr(mode) for mode in self.metadata["render_modes"])
            raise ValueError(f"unknown render_mode {render_mode!r}: use None or one of {modes}")
        self.render_mode = render_mode
        self.four_colours: Final = flag("four_colours", four_colours)
        self.rules: Final = rules_named(rules)
        self.observation_kind: Final = option("observation", observation, Observation)
        self.reward_kind: Final = option("reward", reward, Reward)
        self.split: Final = option("split", split, Split)
        self.take_back: Final = flag("take_back", take_back)
        self.idle_moves: Final = flag("idle_moves", idle_moves)
        self.thoughtful: Final = flag("thoughtful", thoughtful)
        self.max_steps: Final = check_whole("max_steps", max_steps, 1)
        self.illegal_reward: Final = check_finite("illegal_reward", illegal_reward)
        self.deals: Final = None if deals is None else _read_deals(deals, self.rules)
        if self.take_back and self.reward_kind is Reward.SCORE:
            _warn_farming()
        self.action_space = MaskedDiscrete(engine.NUM_ACTIONS)
        self.observation_space = observation_space(self.observation_kind, self.thoughtful)
        # Plain ints for the kernels: Numba takes 12 us to recognise an enum member, and 0.3 us an int.
        self._reward: Final = int(self.reward_kind)
        self._split: Final = int(self.split)
        self._shape: Final = self.observation_space.shape
        self._dtype: Final = self.observation_space.dtype
        self._encode: Final = encode_cards if self.observation_kind is Observation.CARDS else encode_board
        # int8 (ROW,): the game, see rusol_env.engine
        self._row: NDArray[np.int8] = engine.new_rows(1, self.rules)[0]
        # int16 (MAX_LEGAL,): the legal actions, the first `_count` of them
        self._actions: NDArray[np.int16] = np.zeros(engine.MAX_LEGAL, np.int16)
        self._count = 0
        # int8 (416,): the action mask handed out last
        self._mask: NDArray[np.int8] = np.ones(engine.NUM_ACTIONS, np.int8)
        # uint64 (1,): the state of the stream that deals are drawn from; None before the first reset
        self._stream: NDArray[np.uint64] | None = None
        self._next_deal = 0
        self._deal_number = -1
        self._code: str | None = None
        self._steps = 0
        self._running = False
        # The last action that was played, for pictures; -1: none yet.
        self._last = -1
        self._window = Window("Russian Solitaire", RENDER_FPS) if render_mode == "human" else None
        if render_mode == "rgb_array":
            check_installed()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode.

        Args:
            seed: start the stream of deals anew from any whole number 0 to 2^64 - 1; None goes on with it.
            options: ``{"code": …}``, ``{"deal_number": …}`` or ``{"columns": …}`` for an exact deal.

        Returns:
            the observation and the info dict.

        Raises:
            ValueError: a seed or option that is not valid; the episode in progress goes on.
        """
        if seed is not None:
            seed = check_seed(seed)
        fixed = read_options(options, self.rules)
        super().reset(seed=seed)
        if seed is not None or self._stream is None:
            self._stream = np.array([secrets.randbits(64) if seed is None else seed], np.uint64)
            self._next_deal = 0
        if fixed is None:
            if self.deals is None:
                fixed = draw_deal(self._stream, 0, self._split)
            else:
                fixed = deal_at(self.deals, self._next_deal, self.rules)
                self._next_deal += 1
        if isinstance(fixed, Arrangement):
            engine.arrange(self._row, fixed)
            self._deal_number, self._code = -1, None
        else:
            engine.deal(self._row, int(fixed))
            self._deal_number, self._code = int(fixed), encode_code(fixed, self.rules)
        self._steps = 0
        self._mask = np.empty(engine.NUM_ACTIONS, np.int8)
        self._count, score, moves, up, down = episode.look(
            self._row, self.take_back, self.idle_moves, self._actions, self._mask
        )
        self._running = True
        self._last = -1
        if self._window is not None:
            self.render()
        return self._observe(), self._info(score, moves, up, down)

    def step(self, action: SupportsIndex) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Play one action.

        Returns:
            observation, reward, terminated, truncated and the info dict.

        Raises:
            InvalidAction: `action` is not a whole number from 0 to 415; nothing has changed.
            ResetNeeded: no episode is running.
        """
        if not self._running:
            raise ResetNeeded("no episode is running: call reset() before step(), and again after an episode has ended")
        chosen = self._read_action(action)
        nothing_legal = self._count == 0
        self._mask = np.empty(engine.NUM_ACTIONS, np.int8)
        refused, reward, self._count, score, moves, up, down = episode.step(
            self._row,
            self._actions,
            self._count,
            chosen,
            self.take_back,
            self.idle_moves,
            self._reward,
            self.illegal_reward,
            self._mask,
        )
        self._steps += 1
        terminated = self._count == 0
        truncated = not terminated and self._steps >= self.max_steps
        self._running = not (terminated or truncated)
        info = self._info(score, moves, up, down)
        if refused:
            info["rejection"], info["rejection_text"] = self._refusal(chosen)
        elif not nothing_legal:
            self._last = chosen
        if self._window is not None:
            self.render()
        return self._observe(), reward, terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """The current action mask as bool (416,), as sb3-contrib asks for it; a view of ``info["action_mask"]``."""
        return self._mask.view(np.bool_)

    def explain(self, action: SupportsIndex) -> str:
        """Why `action` is illegal now, in a sentence; empty if the mask allows it.

        Raises:
            InvalidAction: `action` is not in the action space.
            ResetNeeded: there was no reset yet.
        """
        if self._stream is None:
            raise ResetNeeded("there is no game yet: call reset() before explain()")
        chosen = self._read_action(action)
        if self._count == 0:
            return ""
        return self._refusal(chosen)[1]

    def render(self) -> str | NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The game as text ("ansi", in colour on a terminal) or as pixels ("rgb_array", uint8 (480, 640, 3)).

        Under "human" `reset` and `step` show it in a window, and this returns None. A picture names the deal's
        code, for people; do not train on it.

        Raises:
            ResetNeeded: there was no reset yet.
            ImportError: pixels are asked for and pygame-ce is not installed.
        """
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() was called without a render mode: make the environment with render_mode='ansi'"
            )
            return None
        if self._stream is None:
            raise ResetNeeded("there is no game to draw: call reset() before render()")
        if self.render_mode == "ansi":
            return draw(self._row, self.rules)
        pixels = image(picture(self._row, self.rules, self._code, self._last), four_colours=self.four_colours)
        if self._window is None:
            return pixels
        self._window.show(pixels)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()

    def __copy__(self) -> RussianSolitaireEnv:
        """A copy that plays on by itself, as `copy.deepcopy` makes it."""
        return copy.deepcopy(self)

    def _refusal(self, action: int) -> tuple[Rejection, str]:
        return refusal(self._row, action, self.rules, self.take_back, self.idle_moves)

    def _observe(self) -> NDArray[Any]:
        observation: NDArray[Any] = np.empty(self._shape, self._dtype)
        self._encode(self._row, self._mask, self.thoughtful, observation)
        return observation

    def _info(self, score: int, moves: int, up: int, down: int) -> dict[str, Any]:
        return {
            "action_mask": self._mask,
            "score": score,
            "moves": moves,
            "code": self._code,
            "deal_number": self._deal_number,
            "foundation_cards": up,
            "face_down": down,
            "is_success": up == engine.NUM_CARDS,
        }

    def _read_action(self, action: SupportsIndex) -> int:
        try:
            chosen = operator.index(action)
        except TypeError:
            chosen = -1
        if not 0 <= chosen < engine.NUM_ACTIONS:
            raise InvalidAction(f"{action!r} is not an action: they are whole numbers, 0 to {engine.NUM_ACTIONS - 1}")
        return chosen


def refusal(
    row: NDArray[np.int8], action: int, rules: Rules, take_back: bool, idle_moves: bool
) -> tuple[Rejection, str]:
    """Why `action` is refused in the game in `row`, int8 (ROW,), and the sentence that says so."""
    reason = Rejection(engine.refusal(row, action, take_back, idle_moves))
    return reason, explain(row, rules, decode_action(action), reason)


def draw(row: NDArray[np.int8], rules: Rules) -> str:
    """The game in `row`, int8 (ROW,), as text: its rules, score and moves, and what a player sees."""
    board = row[: engine.BOARD_SIZE].reshape(-1, engine.NUM_CARDS)
    score, moves = engine.word(row, engine.SCORE), engine.word(row, engine.MOVES)
    return ansi(decode_board(board), caption=f"{rules.name}  score {score}  moves {moves}")


def picture(row: NDArray[np.int8], rules: Rules, code: str | None, last: int) -> Picture:
    """What a picture of the game in `row`, int8 (ROW,), shows; `last` is the last action played, or -1."""
    return Picture(
        decode_board(row[: engine.BOARD_SIZE].reshape(-1, engine.NUM_CARDS)),
        rules.name,
        engine.word(row, engine.SCORE),
        engine.word(row, engine.MOVES),
        code,
        None if last < 0 else decode_action(last),
        engine.is_won(row),
    )


def read_options(options: dict[str, Any] | None, rules: Rules) -> int | Arrangement | None:
    """The exact deal that the options of a reset ask for; None if they ask for none.

    Raises:
        ValueError: unknown options, several at once, or what is no deal.
    """
    if options is None:
        return None
    if not isinstance(options, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"the reset options are {options!r}: give a dict such as {{'code': …}}")
    if not options:
        return None
    valid = ("code", "deal_number", "columns")
    unknown = [key for key in options if key not in valid]
    if unknown:
        raise ValueError(f"unknown reset option {unknown[0]!r}: use one of {', '.join(valid)}")
    if len(options) > 1:
        raise ValueError(f"the reset options {' and '.join(options)} exclude each other: give one of them")
    key, value = next(iter(options.items()))
    match key:
        case "code":
            if not isinstance(value, str):
                decode_code(value)  # says what a code is
            return read_deal(value, rules)
        case "deal_number":
            return check_number(value)
        case _:
            return read_deal(value, rules) if isinstance(value, Arrangement) else arrangement(value)


def deal_at(deals: Sequence[int | Arrangement] | Iterator[Deal], place: int, rules: Rules) -> int | Arrangement:
    """The deal at `place` of a walk that goes round; of an iterator, its next.

    Raises:
        ValueError: the iterator has ended, or gave what is no deal.
    """
    if not isinstance(deals, Iterator):
        return deals[place % len(deals)]
    try:
        return read_deal(next(deals), rules)
    except StopIteration:
        raise ValueError(
            "deals is an iterator that has ended: give one without end, or a sequence of deals to walk through"
        ) from None


def _read_deals(
    deals: Sequence[Deal] | Suite | Iterator[Deal], rules: Rules
) -> Sequence[int | Arrangement] | Iterator[Deal]:
    if isinstance(deals, Suite):
        return deals.numbers
    if isinstance(deals, Iterator):
        return deals
    if isinstance(deals, (str, bytes)) or not isinstance(deals, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"deals is {deals!r}: give a sequence of deals, as in deals=rusol_env.suite('first-1000')")
    read = [read_deal(deal, rules) for deal in deals]
    if not read:
        raise ValueError("deals is empty: give at least one deal, or None to draw them")
    return read
