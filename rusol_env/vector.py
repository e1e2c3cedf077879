"""`RussianSolitaireVectorEnv`: many games as one Gymnasium vector environment, stepped by compiled code.

It gives, bit for bit, what Gymnasium's `SyncVectorEnv` of as many `RussianSolitaireEnv` gives.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rusol_env import engine
from rusol_env._jit import int64, kernel
from rusol_env.deals import Arrangement, check_seed, check_whole, draw_deal, encode_codes
from rusol_env.engine import MAX_LEGAL, NUM_ACTIONS, NUM_CARDS
from rusol_env.env import RENDER_FPS, RussianSolitaireEnv, draw, picture, read_options
from rusol_env.episode import look, try_action
from rusol_env.game import decode_action, explain
from rusol_env.observe import Observation, encode_board, encode_cards, observation_space
from rusol_env.raster import Window, grid, image
from rusol_env.rules import CLASSIC, Rejection, Rules

# How many games a picture of the batch shows, and the size of each in it.
GRID_GAMES: Final = 16
_GRID_WIDTH, _GRID_HEIGHT = 320, 240

# Columns of the array of facts, int64 (N, 4).
_SCORE, _MOVES, _UP, _DOWN = range(4)


@kernel
def _show_game(
    i: int,
    rows: NDArray[np.int8],
    legal: NDArray[np.int16],
    counts: NDArray[np.int64],
    facts: NDArray[np.int64],
    masks: NDArray[np.int8],
    boards: NDArray[np.int8],
    cards: NDArray[np.float32],
    take_back: bool,
    idle_moves: bool,
    thoughtful: bool,
) -> None:
    """Find what is legal, known and seen in game i. Of `boards` and `cards` the one that has rows is written."""
    count, score, moves, up, down = look(rows[i], take_back, idle_moves, legal[i], masks[i])
    counts[i] = count
    facts[i, _SCORE] = score
    facts[i, _MOVES] = moves
    facts[i, _UP] = up
    facts[i, _DOWN] = down
    if boards.shape[0] > 0:
        encode_board(rows[i], masks[i], thoughtful, boards[i])
    else:
        encode_cards(rows[i], masks[i], thoughtful, cards[i])


@kernel
def _deal_game(
    i: int,
    rows: NDArray[np.int8],
    streams: NDArray[np.uint64],
    split: int,
    numbers: NDArray[np.int64],
    steps: NDArray[np.int64],
) -> None:
    """Deal game i the next deal of its stream."""
    numbers[i] = draw_deal(streams, i, split)
    engine.deal(rows[i], int64(numbers[i]))
    steps[i] = 0


@kernel
def _show(
    start: int,
    stop: int,
    which: NDArray[np.bool_],
    rows: NDArray[np.int8],
    legal: NDArray[np.int16],
    counts: NDArray[np.int64],
    facts: NDArray[np.int64],
    masks: NDArray[np.int8],
    boards: NDArray[np.int8],
    cards: NDArray[np.float32],
    take_back: bool,
    idle_moves: bool,
    thoughtful: bool,
) -> None:
    """`_show_game` for the games `start` to `stop` - 1 that `which` names."""
    for i in range(start, stop):
        if which[i]:
            _show_game(i, rows, legal, counts, facts, masks, boards, cards, take_back, idle_moves, thoughtful)


@kernel
def _deal(
    start: int,
    stop: int,
    which: NDArray[np.bool_],
    rows: NDArray[np.int8],
    streams: NDArray[np.uint64],
    split: int,
    numbers: NDArray[np.int64],
    steps: NDArray[np.int64],
) -> None:
    """`_deal_game` for the games `start` to `stop` - 1 that `which` names."""
    for i in range(start, stop):
        if which[i]:
            _deal_game(i, rows, streams, split, numbers, steps)


@kernel
def _advance(
    start: int,
    stop: int,
    resetting: NDArray[np.bool_],
    rows: NDArray[np.int8],
    legal: NDArray[np.int16],
    counts: NDArray[np.int64],
    facts: NDArray[np.int64],
    masks: NDArray[np.int8],
    boards: NDArray[np.int8],
    cards: NDArray[np.float32],
    streams: NDArray[np.uint64],
    numbers: NDArray[np.int64],
    steps: NDArray[np.int64],
    actions: NDArray[np.int64],
    rewards: NDArray[np.float64],
    rejections: NDArray[np.int64],
    split: int,
    take_back: bool,
    idle_moves: bool,
    thoughtful: bool,
    reward: int,
    illegal_reward: float,
) -> None:
    """One step of games `start` to `stop` - 1: an action or, where `resetting`, the next deal; then `_show_game`."""
    for i in range(start, stop):
        rejections[i] = int64(Rejection.NONE)
        rewards[i] = 0.0
        if resetting[i]:
            _deal_game(i, rows, streams, split, numbers, steps)
        else:
            rejection, earned = try_action(
                rows[i], legal[i], int64(counts[i]), int64(actions[i]), take_back, idle_moves, reward, illegal_reward
            )
            rejections[i] = rejection
            rewards[i] = earned
            steps[i] += 1
        _show_game(i, rows, legal, counts, facts, masks, boards, cards, take_back, idle_moves, thoughtful)


class RussianSolitaireVectorEnv(VectorEnv[NDArray[Any], NDArray[np.int64], NDArray[Any]]):
    """N games of Russian Solitaire, stepped together.

    Spaces, rewards, ends and infos are those of `RussianSolitaireEnv`, batched as Gymnasium batches
    them: `observations` (N, 52, 24) float32 or (N, 8, 52) int8, `rewards` float64 (N,), `terminations`
    and `truncations` bool (N,), and `infos` with a presence mask ``_key`` beside each ``key``:
    ``action_mask`` int8 (N, 416), ``score``, ``moves``, ``deal_number``, ``foundation_cards`` and
    ``face_down`` int64 (N,), ``is_success`` bool (N,), ``code`` and, where an action was refused,
    ``rejection`` and ``rejection_text`` as objects. Game i draws its deals from the stream of ``seed + i``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it; instances have their own
        "render_modes": RussianSolitaireEnv.metadata["render_modes"],
        "render_fps": RENDER_FPS,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        rules: str | Rules = CLASSIC,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        copy: bool = True,
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        """Make `num_envs` games.

        Args:
            num_envs: how many games, N.
            rules: as for `RussianSolitaireEnv`.
            autoreset_mode: when a finished game is followed by the next; see Gymnasium's `AutoresetMode`.
            threads: how many threads share the games; results do not depend on it.
            copy: hand out new arrays at every step; False hands out buffers that the next step overwrites.
            max_episode_steps: what `gymnasium.make_vec` passes on; shortens ``max_steps``.
            options: the other arguments of `RussianSolitaireEnv`, ``deals`` excepted.

        Raises:
            ValueError: an argument has no valid value.
            TypeError: an argument is unknown.
        """
        super().__init__()
        if "deals" in options:
            raise ValueError("a vector environment draws its deals by seed: deals= is for a single environment")
        if max_episode_steps is not None:
            options["max_steps"] = min(
                check_whole("max_episode_steps", max_episode_steps, 1),
                check_whole("max_steps", options.get("max_steps", max_episode_steps), 1),
            )
        self.num_envs = check_whole("num_envs", num_envs, 1)
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            modes = ", ".join(repr(mode.value) for mode in AutoresetMode)
            raise ValueError(f"unknown autoreset_mode {autoreset_mode!r}: use one of {modes}") from None
        self.threads = check_whole("threads", threads, 1)
        self.copy = copy
        # A single game that holds the options, read and checked where they are defined; it is never played.
        single = RussianSolitaireEnv(rules, **options)
        self.single = single
        self.render_mode = single.render_mode
        self._window = Window("Russian Solitaire", RENDER_FPS) if self.render_mode == "human" else None
        self.metadata = self.metadata | {"autoreset_mode": self.autoreset_mode}
        self.single_action_space = single.action_space
        self.single_observation_space = single.observation_space
        self.action_space = batch_space(single.action_space, self.num_envs)
        self.observation_space = batch_space(single.observation_space, self.num_envs)
        number = self.num_envs
        # int8 (N, ROW): the games
        self._rows = engine.new_rows(number, single.rules)
        # int16 (N, MAX_LEGAL) and int64 (N,): the legal actions of each game and how many they are
        self._legal = np.zeros((number, MAX_LEGAL), np.int16)
        self._counts = np.zeros(number, np.int64)
        # int8 (N, 416) and the batched observation: handed out, so made anew at each step unless copy=False
        self._masks = np.ones((number, NUM_ACTIONS), np.int8)
        space = observation_space(single.observation_kind, single.thoughtful)
        self._observations: NDArray[Any] = np.zeros((number, *space.shape), space.dtype)
        # Stands for the kind of observation that is not asked for.
        other = Observation.BOARD if single.observation_kind is Observation.CARDS else Observation.CARDS
        unused = observation_space(other, single.thoughtful)
        self._unused: NDArray[Any] = np.zeros((0, *unused.shape), unused.dtype)
        self._every = np.ones(number, np.bool_)
        # int64 (N, 4): score, moves, cards on foundations, cards face down
        self._facts = np.zeros((number, 4), np.int64)
        # uint64 (N,): the stream of deals of each game; `_seeded` bool (N,): whether it has begun
        self._streams = np.zeros(number, np.uint64)
        self._seeded = np.zeros(number, np.bool_)
        # int64 (N,) and object (N,): the deal of each game, -1 and None for an arrangement
        self._numbers = np.full(number, -1, np.int64)
        self._codes = np.full(number, None, object)
        # int64 (N,): steps of the episode in progress
        self._steps = np.zeros(number, np.int64)
        # bool (N,): episodes that have ended and not begun anew
        self._ended = np.zeros(number, np.bool_)
        self._begun = False
        self._pool: ThreadPoolExecutor | None = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode in each game, or in those that ``options["reset_mask"]`` names.

        Args:
            seed: game i begins the stream of ``seed + i``, or of ``seed[i]``; None goes on with its stream.
            options: ``reset_mask``, bool (N,), and the options of `RussianSolitaireEnv.reset`, for every game.

        Raises:
            ValueError, TypeError: a seed or option that is not valid; nothing has changed.
        """
        options = dict(options or {})
        which = self._read_reset_mask(options.pop("reset_mask", None))
        seeds = self._read_seeds(seed)
        fixed = read_options(options, self.single.rules)
        if not self._begun and not which.all():
            raise ResetNeeded("no episode is running yet: reset all games once before resetting some of them")
        self._begun = True
        for i in np.flatnonzero(which).tolist():
            value = seeds[i]
            if value is not None or not self._seeded[i]:
                self._streams[i] = secrets.randbits(64) if value is None else value
        self._seeded |= which
        if fixed is None:
            self._next_deals(which)
        else:
            for i in np.flatnonzero(which).tolist():
                if isinstance(fixed, Arrangement):
                    engine.arrange(self._rows[i], fixed)
                else:
                    engine.deal(self._rows[i], fixed)
            self._numbers[which] = -1 if isinstance(fixed, Arrangement) else fixed
            self._name_deals(which)
            self._steps[which] = 0
        self._ended = self._ended & ~which
        self._renew()
        self._show(self._every)
        if self._window is not None:
            self.render()
        return self._observations, self._infos(which)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play an action in each game.

        Args:
            actions: whole numbers 0 to 415, (N,); ignored where NEXT_STEP begins the next episode.

        Raises:
            InvalidAction: actions of another shape or dtype, or outside the space; nothing has changed.
            ResetNeeded: before the first reset, or, under DISABLED, where an episode has ended.
        """
        if not self._begun:
            raise ResetNeeded("no episode is running: call reset() before step()")
        chosen = self._read_actions(actions)
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            over = np.flatnonzero(self._ended).tolist()
            raise ResetNeeded(f"the episodes of games {over} have ended: reset them with options={{'reset_mask': …}}")
        single, resetting = self.single, self._ended
        rewards = np.empty(self.num_envs, np.float64)
        rejections = np.empty(self.num_envs, np.int64)
        self._renew()
        self._spread(
            _advance,
            resetting,
            *self._shown(),
            self._streams,
            self._numbers,
            self._steps,
            chosen,
            rewards,
            rejections,
            int(single.split),
            single.take_back,
            single.idle_moves,
            single.thoughtful,
            int(single.reward_kind),
            single.illegal_reward,
        )
        self._name_deals(resetting)
        terminations = (self._counts == 0) & ~resetting
        truncations = (self._steps >= single.max_steps) & ~terminations & ~resetting
        ended = self._ended = terminations | truncations
        if self._window is not None:
            self.render()
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or not ended.any():
            infos = self._infos(self._every)
            self._add_rejections(infos, rejections, chosen, self._every)
            return self._observations, rewards, terminations, truncations, infos
        final_obs = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(ended).tolist():
            final_obs[i] = self._observations[i].copy()
        final_info = self._infos(ended)
        final_info["action_mask"] = final_info["action_mask"].copy()
        self._add_rejections(final_info, rejections, chosen, ended)
        going_on: dict[str, Any] = {}
        self._add_rejections(going_on, rejections, chosen, ~ended)
        self._next_deals(ended)
        self._show(ended)
        self._ended = np.zeros(self.num_envs, np.bool_)
        infos = {"final_obs": final_obs, "_final_obs": ended.copy(), "final_info": final_info, "_final_info": ended}
        infos |= self._infos(self._every) | going_on
        return self._observations, rewards, terminations, truncations, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """The current action masks of all games as bool (N, 416)."""
        return self._masks.view(np.bool_)

    def render(self) -> tuple[str, ...] | tuple[NDArray[np.uint8], ...] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Every game as text ("ansi") or pixels ("rgb_array", uint8 (480, 640, 3) each, as Gymnasium's wrappers tile).

        Under "human" it shows `render_grid` in a window and returns None.

        Raises:
            ResetNeeded: there was no reset yet.
            ImportError: pixels are asked for and pygame-ce is not installed.
        """
        if self.render_mode is None:
            return None
        if not self._begun:
            raise ResetNeeded("there is no game to draw: call reset() before render()")
        if self._window is not None:
            self._window.show(self.render_grid())
            return None
        if self.render_mode == "ansi":
            return tuple(draw(row, self.single.rules) for row in self._rows)
        return tuple(self._image(i) for i in range(self.num_envs))

    def render_grid(self) -> NDArray[np.uint8]:
        """One picture of the first 16 games, side by side: uint8 (H, W, 3).

        Raises:
            ResetNeeded: there was no reset yet.
            ImportError: pygame-ce is not installed.
        """
        if not self._begun:
            raise ResetNeeded("there is no game to draw: call reset() before render_grid()")
        shown = range(min(self.num_envs, GRID_GAMES))
        return grid([self._image(i, width=_GRID_WIDTH, height=_GRID_HEIGHT) for i in shown])

    def _image(self, i: int, **size: int) -> NDArray[np.uint8]:
        shown = picture(self._rows[i], self.single.rules, self._codes[i], -1)
        return image(shown, four_colours=self.single.four_colours, **size)

    def close_extras(self, **_: Any) -> None:
        """End the threads and close the window."""
        if self._window is not None:
            self._window.close()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the threads, which a copy starts for itself."""
        return self.__dict__ | {"_pool": None}

    def _spread(self, work: Callable[..., None], *arguments: Any) -> None:
        """Run a kernel over all games, in as many slices as there are threads."""
        if self.threads == 1:
            work(0, self.num_envs, *arguments)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        edges = np.linspace(0, self.num_envs, self.threads + 1).astype(int).tolist()
        running = [self._pool.submit(work, start, stop, *arguments) for start, stop in pairwise(edges) if start < stop]
        for slice_ in running:
            slice_.result()

    def _next_deals(self, which: NDArray[np.bool_]) -> None:
        split = int(self.single.split)
        self._spread(_deal, which, self._rows, self._streams, split, self._numbers, self._steps)
        self._name_deals(which)

    def _name_deals(self, which: NDArray[np.bool_]) -> None:
        numbers = self._numbers[which]
        if len(numbers) == 0:
            return
        self._codes[which] = None if (numbers < 0).any() else encode_codes(numbers, self.single.rules)

    def _renew(self) -> None:
        """Leave the arrays that were handed out to whoever keeps them, and write into new ones."""
        if self.copy:
            self._masks = np.empty_like(self._masks)
            self._observations = np.empty_like(self._observations)

    def _shown(self) -> tuple[NDArray[Any], ...]:
        """The games, what is legal and known in them, and what is handed out of them, as kernels take them."""
        cards, boards = self._observations, self._unused
        if self.single.observation_kind is Observation.BOARD:
            cards, boards = boards, cards
        return self._rows, self._legal, self._counts, self._facts, self._masks, boards, cards

    def _show(self, which: NDArray[np.bool_]) -> None:
        single = self.single
        self._spread(_show, which, *self._shown(), single.take_back, single.idle_moves, single.thoughtful)

    def _infos(self, which: NDArray[np.bool_]) -> dict[str, Any]:
        """The infos of the games that `which` names; nought or None for the others."""
        facts = self._facts
        infos: dict[str, Any] = {
            "action_mask": self._masks,
            "score": facts[:, _SCORE].copy(),
            "moves": facts[:, _MOVES].copy(),
            "code": self._codes.copy(),
            "deal_number": self._numbers.copy(),
            "foundation_cards": facts[:, _UP].copy(),
            "face_down": facts[:, _DOWN].copy(),
            "is_success": facts[:, _UP] == NUM_CARDS,
        }
        if not which.all():
            infos["action_mask"] = self._masks.copy()
            for values in infos.values():
                values[~which] = None if values.dtype == object else 0
        return infos | {f"_{key}": which.copy() for key in infos}

    def _add_rejections(
        self,
        infos: dict[str, Any],
        rejections: NDArray[np.int64],
        actions: NDArray[np.int64],
        which: NDArray[np.bool_],
    ) -> None:
        refused = (rejections != Rejection.NONE) & which
        if not refused.any():
            return
        reasons, texts = np.full(self.num_envs, None, object), np.full(self.num_envs, None, object)
        for i in np.flatnonzero(refused).tolist():
            reasons[i] = Rejection(rejections[i])
            texts[i] = explain(self._rows[i], self.single.rules, decode_action(actions[i]), reasons[i])
        infos |= {"rejection": reasons, "_rejection": refused}
        infos |= {"rejection_text": texts, "_rejection_text": refused.copy()}

    def _read_reset_mask(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return np.ones(self.num_envs, np.bool_)
        named: NDArray[Any] = np.asarray(mask)
        if not isinstance(mask, np.ndarray) or named.dtype != np.bool_:
            raise TypeError(f"reset_mask is {mask!r}: it must be a bool array ({self.num_envs},)")
        if named.shape != (self.num_envs,) or not named.any():
            raise ValueError(
                f"reset_mask is {mask!r}: it must have shape ({self.num_envs},) and name at least one game"
            )
        return named.copy()

    def _read_seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (list, tuple, np.ndarray)) and np.ndim(cast(Any, seed)) > 0:
            seeds: list[Any] = list(cast(Any, seed))
            if len(seeds) != self.num_envs:
                raise ValueError(
                    f"there are {len(seeds)} seeds for {self.num_envs} games: give one a game, or one number"
                )
            return [None if one is None else check_seed(one) for one in seeds]
        first = check_seed(seed)
        check_seed(first + self.num_envs - 1)
        return [first + i for i in range(self.num_envs)]

    def _read_actions(self, actions: Any) -> NDArray[np.int64]:
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or not np.issubdtype(chosen.dtype, np.integer):
            raise InvalidAction(
                f"the actions are {chosen.dtype} {chosen.shape}: they must be whole numbers ({self.num_envs},)"
            )
        # The action of a game that has ended is ignored, so it may be anything.
        if (~self._ended & ((chosen < 0) | (chosen >= NUM_ACTIONS))).any():
            raise InvalidAction(f"there is an action outside 0 to {NUM_ACTIONS - 1}")
        return chosen.astype(np.int64)
