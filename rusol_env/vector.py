"""`RussianSolitaireVectorEnv`: many games as one Gymnasium vector environment, stepped by compiled code.

It gives, bit for bit, what Gymnasium's `SyncVectorEnv` of as many `RussianSolitaireEnv` gives.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, cast

import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rusol_env import engine
from rusol_env._jit import int64, kernel, load64
from rusol_env.deals import (
    CODE_LENGTH,
    Arrangement,
    blank_codes,
    check_seed,
    check_streams,
    check_whole,
    draw_deal,
    next_below,
    write_code,
)
from rusol_env.engine import MAX_LEGAL, MOVES, NUM_ACTIONS, NUM_CARDS, SCORE
from rusol_env.env import RENDER_FPS, RussianSolitaireEnv, deal_at, draw, flag, picture, read_options, refusal
from rusol_env.episode import IGNORED, REFUSED, fill_mask, mark, try_action
from rusol_env.observe import (
    Observation,
    encode_board,
    encode_cards,
    mark_moves,
    observation_space,
    update_board,
    update_cards,
)
from rusol_env.raster import Window, grid, image
from rusol_env.rules import CLASSIC, Rules

# How many games a picture of the batch shows, and the size of each in it.
GRID_GAMES: Final = 16
_GRID_WIDTH, _GRID_HEIGHT = 320, 240

# Rows of the array of facts, int64 (4, N).
_SCORE, _MOVES, _UP, _DOWN = range(4)
# What a call of `_advance` is for: a step; showing all games; or only those that begin anew.
_STEP, _SHOW, _BEGIN = range(3)


@kernel
def _advance(
    start: int,
    stop: int,
    task: int,
    begins: NDArray[np.bool_],
    empty: NDArray[np.bool_],
    rows: NDArray[np.int8],
    legal: NDArray[np.int16],
    counts: NDArray[np.int64],
    streams: NDArray[np.uint64],
    numbers: NDArray[np.int64],
    codes: NDArray[np.uint32],
    steps: NDArray[np.int64],
    over: NDArray[np.bool_],
    actions: NDArray[np.int64],
    refused: NDArray[np.bool_],
    masks: NDArray[np.int8],
    boards: NDArray[np.int8],
    cards: NDArray[np.float32],
    facts: NDArray[np.int64],
    rewards: NDArray[np.float64],
    terminations: NDArray[np.bool_],
    truncations: NDArray[np.bool_],
    anew: bool,
    drawing: bool,
    split: int,
    take_back: bool,
    idle_moves: bool,
    thoughtful: bool,
    reward: int,
    illegal_reward: float,
    max_steps: int,
) -> tuple[int, int]:
    """Deal to the games among `start` to `stop` - 1 that begin anew, play the others' actions, and show them all.

    Where `drawing`, a game that begins draws its deal; else it gets the deal of its number, or keeps the row
    that it was given if that is negative. Nothing is played at an `empty` table. Of `boards` and `cards` the one
    that has rows is written: all of it if `anew`, else what the move changed.

    Returns:
        how many episodes ended, and how many actions were refused.
    """
    ended = 0
    refusals = 0
    for i in range(start, stop):
        row = rows[i]
        if begins[i]:
            if drawing:
                numbers[i] = draw_deal(streams, i, split)
            if numbers[i] >= 0:
                engine.deal(row, int64(numbers[i]))
                write_code(codes, i, int64(numbers[i]))
            steps[i] = 0
        elif task == _BEGIN:
            continue
        played = task == _STEP and not begins[i] and not empty[i]
        record, earned = IGNORED, 0.0
        if played:
            record, earned = try_action(row, legal[i], int64(counts[i]), int64(actions[i]), reward, illegal_reward)
            steps[i] += 1
        whole = anew or begins[i] or task == _SHOW
        if whole or record >= 0:
            if not whole:
                mark(legal[i], int64(counts[i]), 0, masks[i])
                if cards.shape[0] > 0:
                    mark_moves(legal[i], int64(counts[i]), 0, cards[i])
            count = engine.legal(row, take_back, idle_moves, legal[i])
            counts[i] = count
            if whole or count == 0:
                fill_mask(legal[i], count, masks[i])
                if cards.shape[0] > 0:
                    encode_cards(row, masks[i], thoughtful, cards[i])
                else:
                    encode_board(row, masks[i], thoughtful, boards[i])
            else:
                mark(legal[i], count, 1, masks[i])
                if cards.shape[0] > 0:
                    mark_moves(legal[i], count, 1, cards[i])
                    update_cards(row, record, cards[i])
                else:
                    update_board(row, record, boards[i])
        facts[_SCORE, i] = load64(row, SCORE)
        facts[_MOVES, i] = load64(row, MOVES)
        facts[_UP, i] = engine.foundation_cards(row)
        facts[_DOWN, i] = engine.face_down_cards(row)
        if task == _STEP:
            terminated = played and counts[i] == 0
            truncated = played and counts[i] > 0 and steps[i] >= max_steps
            terminations[i] = terminated
            truncations[i] = truncated
            over[i] = terminated or truncated
            rewards[i] = earned
            refused[i] = record == REFUSED
            ended += int64(terminated or truncated)
            refusals += int64(record == REFUSED)
    return ended, refusals


@kernel
def _sample(
    legal: NDArray[np.int16], counts: NDArray[np.int64], streams: NDArray[np.uint64], actions: NDArray[np.int64]
) -> None:
    """Draw one of the legal actions of each game; of all actions where a game is finished, whose mask is all 1."""
    for i in range(counts.shape[0]):
        count = int64(counts[i])
        actions[i] = legal[i, next_below(streams, i, count)] if count > 0 else next_below(streams, i, NUM_ACTIONS)


class _Crew:
    """Threads that run slices of `_advance`; a fifth of the delay of a `ThreadPoolExecutor`."""

    def __init__(self, number: int) -> None:
        self._number = number
        # A forked process has a copy of this, but none of the threads.
        self.process = os.getpid()
        self._slices: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        self._counts: SimpleQueue[tuple[int, int]] = SimpleQueue()
        for _ in range(number):
            Thread(target=_work, args=(self._slices, self._counts), daemon=True).start()

    def run(self, slices: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
        """Run the first slice here and the others on the threads; what `_advance` returned of each, in any order."""
        for slice_ in slices[1:]:
            self._slices.put(slice_)
        counts = [_advance(*slices[0])]
        return counts + [self._counts.get() for _ in slices[1:]]

    def dismiss(self) -> None:
        """End the threads."""
        for _ in range(self._number):
            self._slices.put(None)


def _work(slices: SimpleQueue[tuple[Any, ...] | None], counts: SimpleQueue[tuple[int, int]]) -> None:
    while (slice_ := slices.get()) is not None:
        counts.put(_advance(*slice_))


class RussianSolitaireVectorEnv(VectorEnv[NDArray[Any], NDArray[np.int64], NDArray[Any]]):
    """N games of Russian Solitaire, stepped together.

    Spaces, rewards, ends and infos are those of `RussianSolitaireEnv`, batched as Gymnasium batches
    them: `observations` (N, 52, 24) float32 or (N, 8, 52) int8, `rewards` float64 (N,), `terminations`
    and `truncations` bool (N,), and `infos` with a presence mask, bool (N,), ``_key`` beside each ``key``:
    ``action_mask`` int8 (N, 416), ``score``, ``moves``, ``deal_number``, ``foundation_cards`` and
    ``face_down`` int64 (N,), ``is_success`` bool (N,), ``code`` and, where an action was refused,
    ``rejection`` and ``rejection_text`` as objects. Game i draws its deals from the stream of ``seed + i``.

    With ``deals=`` the games walk through these together: whichever begins an episode takes the next, so each deal is
    dealt exactly once, however long its game. ``infos["deal_index"]``, int64 (N,), is its place in `deals`. When none
    is left, a game that would begin stands at an empty table instead: its deal index is -1, nothing ends or is earned
    there, and actions are ignored. `finished` turns True with the end of the last episode. (An endless iterator as
    ``deals=`` never leaves a table empty, and a reset goes on with it.) Each game's outcome counts once if it is taken
    where its episode ends, by its deal index:

        env = RussianSolitaireVectorEnv(64, deals=rusol_env.suite("first-1000"))
        won = np.zeros(1000, bool)
        observations, infos = env.reset()
        while not env.finished:
            actions = ...
            observations, rewards, terminations, truncations, infos = env.step(actions)
            ended = terminations | truncations
            won[infos["deal_index"][ended]] = infos["is_success"][ended]
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
            copy: hand out new arrays at every step; False hands out the buffers themselves, for reading only: the
                next step writes into them what has changed.
            max_episode_steps: what `gymnasium.make_vec` passes on; shortens ``max_steps``.
            options: the other arguments of `RussianSolitaireEnv`. The games walk through ``deals`` together, once.

        Raises:
            ValueError: an argument has no valid value.
            TypeError: an argument is unknown.
        """
        super().__init__()
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
        self.copy = flag("copy", copy)
        # A single game that holds the options, read and checked where they are defined; it is never played.
        single = RussianSolitaireEnv(rules, **options)
        self.single = single
        self.render_mode = single.render_mode
        self._window = Window("Russian Solitaire", RENDER_FPS) if self.render_mode == "human" else None
        self.metadata = self.metadata | {"autoreset_mode": self.autoreset_mode}
        self.single_action_space = single.action_space
        self.single_observation_space = single.observation_space
        self.action_space = batch_space(single.action_space, self.num_envs)
        number = self.num_envs
        # The games. int8 (N, ROW): see rusol_env.engine
        self._rows = engine.new_rows(number, single.rules)
        # int16 (N, MAX_LEGAL) and int64 (N,): the legal actions of each game and how many they are
        self._legal = np.zeros((number, MAX_LEGAL), np.int16)
        self._counts = np.zeros(number, np.int64)
        # uint64 (N,): the stream of deals of each game; `_seeded` bool (N,): whether it has begun
        self._streams = np.zeros(number, np.uint64)
        self._seeded = np.zeros(number, np.bool_)
        # int64 (N,) and object (N,): the deal of each game, -1 and None for an arrangement
        self._numbers = np.full(number, -1, np.int64)
        self._codes = np.full(number, None, object)
        self._letters = blank_codes(number, single.rules)
        # int64 (N,): the place of each game's deal in `deals`, -1 for none; and how many of them were dealt
        self._places = np.full(number, -1, np.int64)
        self._dealt = 0
        # int64 (N,): steps of the episode in progress
        self._steps = np.zeros(number, np.int64)
        # bool (N,): episodes that have ended and not begun anew; tables without a game, since no deal was left
        self._over = np.zeros(number, np.bool_)
        self._empty = np.zeros(number, np.bool_)
        self._any_over = False
        # bool (N,): actions refused in the last step
        self._refused = np.zeros(number, np.bool_)
        self._begun = False
        # What is handed out, made anew at each step unless copy=False.
        space = observation_space(single.observation_kind, single.thoughtful)
        self._observation_shape = (number, *space.shape)
        self._make_buffers()
        # Stands for the kind of observation that is not asked for.
        other = Observation.BOARD if single.observation_kind is Observation.CARDS else Observation.CARDS
        unused = observation_space(other, single.thoughtful)
        self._unused: NDArray[Any] = np.zeros((0, *unused.shape), unused.dtype)
        self._no_actions = np.zeros(number, np.int64)
        # bool (N,): all and none; read-only, since infos share them
        self._every, self._none = np.ones(number, np.bool_), np.zeros(number, np.bool_)
        self._every.flags.writeable = False
        self._slices = list(pairwise(np.linspace(0, number, min(self.threads, number) + 1).astype(int).tolist()))
        self._crew: _Crew | None = None

    @cached_property
    def observation_space(self) -> Space[Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The space of batched observations; made when first asked for, since it takes more memory than they do."""
        return batch_space(self.single.observation_space, self.num_envs)

    @property
    def finished(self) -> bool:
        """Whether each of the `deals` was dealt and its episode has ended; never True without, or with endless ones."""
        deals = self.single.deals
        if deals is None or isinstance(deals, Iterator):
            return False
        return self._dealt == len(deals) and bool((self._over | self._empty).all())

    @property
    def rows(self) -> NDArray[np.int8]:
        """The positions as the engine keeps them, int8 (N, ...), face-down cards too: for reading only."""
        return self._rows

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode in each game, or in those that ``options["reset_mask"]`` names.

        Args:
            seed: game i begins the stream of ``seed + i``, or of ``seed[i]``; None goes on with its stream.
            options: ``reset_mask``, bool (N,), and the options of `RussianSolitaireEnv.reset`, for every game.
                Without a ``reset_mask`` the walk through `deals` starts anew.

        Raises:
            ValueError, TypeError: a seed or option that is not valid; nothing has changed.
        """
        options = dict(options or {})
        partial = options.get("reset_mask") is not None
        which = self._read_reset_mask(options.pop("reset_mask", None))
        seeds = self._read_seeds(seed)
        fixed = read_options(options, self.single.rules)
        if not self._begun and not which.all():
            raise ResetNeeded("no episode is running yet: reset all games once before resetting some of them")
        self._begun = True
        games = np.flatnonzero(which).tolist()
        for i in games:
            value = seeds[i]
            if value is not None or not self._seeded[i]:
                self._streams[i] = secrets.randbits(64) if value is None else value
        self._seeded |= which
        if not partial:
            self._dealt = 0
        if fixed is not None:
            for i in games:
                self._give(i, fixed)
            self._places[which] = -1
            self._empty[which] = False
        elif self.single.deals is not None:
            self._walk_on(which)
        self._over &= ~which
        self._any_over = bool(self._over.any())
        if self.copy:
            self._make_buffers()
        self._run(_SHOW, which, self._no_actions, drawing=fixed is None and self.single.deals is None)
        self._name_deals(which)
        if self._window is not None:
            self.render()
        return self._observations, self._infos(None if which.all() else which)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play an action in each game.

        Args:
            actions: whole numbers 0 to 415, (N,); ignored where NEXT_STEP begins the next episode, and where
                no deal is left.

        Raises:
            InvalidAction: actions of another shape or dtype, or outside the space; nothing has changed.
            ResetNeeded: before the first reset, or, under DISABLED, where an episode has ended.
        """
        if not self._begun:
            raise ResetNeeded("no episode is running: call reset() before step()")
        chosen = self._read_actions(actions)
        begins = self._none
        if self._any_over:
            if self.autoreset_mode is AutoresetMode.DISABLED:
                over = np.flatnonzero(self._over).tolist()
                raise ResetNeeded(
                    f"the episodes of games {over} have ended: reset them with options={{'reset_mask': …}}"
                )
            begins = self._over.copy()
            self._walk_on(begins)
        if self.copy:
            self._make_buffers()
        ended, refused = self._run(_STEP, begins, chosen)
        if begins is not self._none:
            self._name_deals(begins)
        if self._window is not None:
            self.render()
        results = self._observations, self._rewards, self._terminations, self._truncations
        self._any_over = ended > 0
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or ended == 0:
            infos = self._infos()
            if refused:
                self._add_rejections(infos, chosen, self._every)
            return *results, infos
        begins = self._over.copy()
        games = np.flatnonzero(begins)
        final_obs = np.full(self.num_envs, None, object)
        for i, last in zip(games.tolist(), self._observations[games], strict=True):
            final_obs[i] = last
        final_info = self._infos(begins)
        going_on: dict[str, Any] = {}
        if refused:
            self._add_rejections(final_info, chosen, begins)
            self._add_rejections(going_on, chosen, ~begins)
        self._walk_on(begins)
        self._run(_BEGIN, begins, chosen)
        self._name_deals(begins)
        self._over[:] = False
        self._any_over = False
        infos = {"final_obs": final_obs, "_final_obs": begins.copy(), "final_info": final_info, "_final_info": begins}
        return *results, infos | self._infos() | going_on

    def sample_legal(self, streams: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Draw one legal action for each game, each equally likely; faster than by `rusol_env.sample_legal`.

        Args:
            streams: uint64 (N,), the states of N SplitMix64 streams, moved on in place; any words will do.

        Returns:
            int64 (N,), the actions.

        Raises:
            ValueError: the streams have another shape or dtype, or cannot be written.
            ResetNeeded: there was no reset yet.
        """
        if not self._begun:
            raise ResetNeeded("there are no legal actions yet: call reset() before sample_legal()")
        check_streams(streams, self.num_envs)
        actions = np.empty(self.num_envs, np.int64)
        _sample(self._legal, self._counts, streams, actions)
        return actions

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
        if self._crew is not None:
            self._crew.dismiss()
            self._crew = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the threads, which a copy starts for itself."""
        return self.__dict__ | {"_crew": None}

    def _run(
        self, task: int, begins: NDArray[np.bool_], actions: NDArray[np.int64], *, drawing: bool | None = None
    ) -> tuple[int, int]:
        """`_advance` all games, in as many slices as there are threads."""
        single = self.single
        cards, boards = self._observations, self._unused
        if single.observation_kind is Observation.BOARD:
            cards, boards = boards, cards
        arguments = (
            task,
            begins,
            self._empty,
            self._rows,
            self._legal,
            self._counts,
            self._streams,
            self._numbers,
            self._letters,
            self._steps,
            self._over,
            actions,
            self._refused,
            self._masks,
            boards,
            cards,
            self._facts,
            self._rewards,
            self._terminations,
            self._truncations,
            self.copy or single.thoughtful,
            single.deals is None if drawing is None else drawing,
            int(single.split),
            single.take_back,
            single.idle_moves,
            single.thoughtful,
            int(single.reward_kind),
            single.illegal_reward,
            single.max_steps,
        )
        if len(self._slices) == 1:
            return _advance(0, self.num_envs, *arguments)
        if self._crew is None or self._crew.process != os.getpid():
            self._crew = _Crew(len(self._slices) - 1)
        try:
            counts = self._crew.run([(*slice_, *arguments) for slice_ in self._slices])
        except BaseException:
            # Interrupted: what these threads still send belongs to no later step.
            self.close_extras()
            raise
        return sum(ended for ended, _ in counts), sum(refused for _, refused in counts)

    def _give(self, i: int, deal: int | Arrangement | None) -> None:
        """Let game i begin with that deal; None is an empty table."""
        self._numbers[i] = deal if isinstance(deal, int) else -1
        if deal is None:
            engine.clear(self._rows[i])
        elif isinstance(deal, Arrangement):
            engine.arrange(self._rows[i], deal)

    def _walk_on(self, which: NDArray[np.bool_]) -> None:
        """Give the next of `deals` to the games that `which` names, in order, and empty tables where none is left."""
        deals = self.single.deals
        if deals is None:
            return
        for i in np.flatnonzero(which).tolist():
            left = isinstance(deals, Iterator) or self._dealt < len(deals)
            self._give(i, deal_at(deals, self._dealt, self.single.rules) if left else None)
            self._places[i] = self._dealt if left else -1
            self._empty[i] = not left
            self._dealt += left

    def _name_deals(self, which: NDArray[np.bool_]) -> None:
        games = np.flatnonzero(which)
        self._codes[games] = self._letters[games].view(f"U{CODE_LENGTH}")[:, 0]
        if self.single.deals is not None:
            self._codes[self._numbers < 0] = None

    def _make_buffers(self) -> None:
        """New arrays to hand out: those handed out before are left to whoever keeps them."""
        number = self.num_envs
        self._masks = np.empty((number, NUM_ACTIONS), np.int8)
        self._observations: NDArray[Any] = np.empty(self._observation_shape, self.single.observation_space.dtype)
        self._facts = np.empty((4, number), np.int64)
        self._rewards = np.empty(number, np.float64)
        self._terminations = np.empty(number, np.bool_)
        self._truncations = np.empty(number, np.bool_)

    def _infos(self, which: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """The infos of all games, or of those that `which` names and nought or None for the others."""
        score, moves, up, down = self._facts
        infos: dict[str, Any] = {
            "action_mask": self._masks,
            "score": score,
            "moves": moves,
            "code": self._codes,
            "deal_number": self._numbers,
            "foundation_cards": up,
            "face_down": down,
            "is_success": up == NUM_CARDS,
        }
        if self.single.deals is not None:
            infos["deal_index"] = self._places
        if which is not None:
            games = np.flatnonzero(which)
            for key, values in infos.items():
                named = np.full(values.shape, None) if values.dtype == object else np.zeros(values.shape, values.dtype)
                named[games] = values[games]
                infos[key] = named
        elif self.copy:
            for key in ("code", "deal_number", "deal_index"):
                if key in infos:
                    infos[key] = infos[key].copy()
        there = self._every if which is None else which
        return infos | {f"_{key}": there for key in infos}

    def _add_rejections(
        self,
        infos: dict[str, Any],
        actions: NDArray[np.int64],
        which: NDArray[np.bool_],
    ) -> None:
        refused = self._refused & which
        if not refused.any():
            return
        single = self.single
        reasons, texts = np.full(self.num_envs, None, object), np.full(self.num_envs, None, object)
        for i in np.flatnonzero(refused).tolist():
            reasons[i], texts[i] = refusal(
                self._rows[i], int(actions[i]), single.rules, single.take_back, single.idle_moves
            )
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
        try:
            chosen = np.asarray(actions)
        except ValueError:
            raise InvalidAction(f"the actions are no array: they must be whole numbers ({self.num_envs},)") from None
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise InvalidAction(
                f"the actions are {chosen.dtype} {chosen.shape}: they must be whole numbers ({self.num_envs},)"
            )
        chosen = chosen.astype(np.int64)
        # Read as unsigned, negative ones are large.
        unsigned = chosen.view(np.uint64)
        # The action where no game is played is ignored: it may be anything.
        if unsigned.max() >= NUM_ACTIONS and ((unsigned >= NUM_ACTIONS) & ~self._over & ~self._empty).any():
            raise InvalidAction(f"there is an action outside 0 to {NUM_ACTIONS - 1}")
        return chosen
