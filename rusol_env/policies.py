"""Policies: what plays. A policy is handed observations and action masks, and nothing else."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import int64, kernel, load64, lowest_bit
from rusol_env.cards import KING, NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.deals import check_seed, check_streams, check_whole, mix, next_below
from rusol_env.engine import EMPTY, HIDDEN, NUM_ACTIONS
from rusol_env.episode import count_legal, nth_legal
from rusol_env.planner import NO_POSITION, OTHER_RULES, Memory, begin, narrow, new_memory, weigh
from rusol_env.rules import CLASSIC, FOUNDATION, NUM_COLUMNS, NUM_DESTINATIONS, Rules, rules_named
from rusol_env.search import joins_last
from rusol_env.solver import check_time_limit

DEFAULT_SAMPLES: Final = 50
# After so many a time limit and Ctrl-C are heard.
_SAMPLES_A_SLICE: Final = 10


class Policy(ABC):
    """Chooses actions for a batch of games.

    Implement `act`; set `observation` to the kind of observation it wants (``"cards"`` or ``"board"``).
    """

    name: str = "policy"
    observation: str = "cards"

    @abstractmethod
    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """Choose one action for each of N games.

        Args:
            observations: (N, 52, 24) float32 or (N, 8, 52) int8, as `observation` asks.
            masks: int8 (N, 416), 1 = legal; all 1 where the game is over and the action is ignored.

        Returns:
            int64 (N,), an action 0 to 415 each.
        """

    def probabilities(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.floating[Any]] | None:
        """How likely `act` would choose each action, for records of games; None (the default) if it does not say.

        Args:
            observations: as for `act`.
            masks: as for `act`.

        Returns:
            floats (N, 416) that sum to 1 for each game; asking does not move the policy's chance on.
        """
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """What results depend on besides the seed, ready for JSON: `evaluate` writes it beside the figures."""
        return {}

    def begin(self, slots: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """New games begin in these places of the batch: a policy with chance or memory resets them.

        `evaluate` gives each game a seed of its own (uint64), so that what a policy does in a game does
        not depend on which other games are in the batch. By default nothing happens.

        Args:
            slots: int64 (K,), indices into the batch that `act` will see.
            seeds: uint64 (K,), a seed each.
        """
        return


@kernel
def _sample(masks: NDArray[np.int8], streams: NDArray[np.uint64], actions: NDArray[np.int64]) -> int:
    """Write an action for each mask; returns the index of the first mask that is none, or -1."""
    for i in range(masks.shape[0]):
        count = count_legal(masks, i)
        if count < 1:
            return i
        actions[i] = nth_legal(masks, i, next_below(streams, i, count))
    return -1


def read_masks(masks: NDArray[Any], number: int) -> NDArray[np.int8]:
    """Action masks of `number` games as int8 (N, 416).

    Raises:
        ValueError: they have another shape or dtype.
    """
    shape = (number, NUM_CARDS * NUM_DESTINATIONS)
    if masks.shape != shape:
        raise ValueError(f"the masks have shape {masks.shape}: it must be {shape}")
    if masks.dtype != np.int8 and masks.dtype != np.bool_:
        raise ValueError(f"the masks are {masks.dtype}: they must be int8 (0 or 1) or bool")
    return np.ascontiguousarray(masks).view(np.int8)


def read_actions(policy: Policy, actions: Any, batch: int) -> NDArray[np.int64]:
    """What a policy returned for `batch` games, as actions int64 (N,).

    Raises:
        ValueError: it is no batch of actions; the message names the policy.
    """
    actions = np.asarray(actions)
    if actions.shape != (batch,) or not np.issubdtype(actions.dtype, np.integer):
        raise ValueError(
            f"policy {policy.name!r} returned {actions.dtype} {actions.shape}: it must return whole numbers ({batch},)"
        )
    if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
        raise ValueError(f"policy {policy.name!r} returned an action outside 0 to {NUM_ACTIONS - 1}")
    return actions.astype(np.int64)


def read_boards(policy: str, observations: NDArray[Any], number: int) -> NDArray[np.int8]:
    """The "board" observations of `number` games as int8 (N, 8, 52).

    Raises:
        ValueError: they are others; the message names the policy.
    """
    if observations.shape != (number, NUM_COLUMNS + 1, NUM_CARDS) or observations.dtype != np.int8:
        raise ValueError(
            f"{policy} wants 'board' observations, int8 ({number}, {NUM_COLUMNS + 1}, {NUM_CARDS}), "
            f"not {observations.dtype} {observations.shape}"
        )
    return np.ascontiguousarray(observations)


def _refuse_mask(bad: int) -> None:
    if bad >= 0:
        raise ValueError(f"mask {bad} is no action mask: it must be 0 or 1 everywhere and 1 somewhere")


def sample_legal(masks: NDArray[Any], streams: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Draw one legal action for each of N games, each equally likely.

    Args:
        masks: int8 or bool (N, 416), each with a 1 somewhere.
        streams: uint64 (N,), the states of N SplitMix64 streams, moved on in place; any words will do.

    Returns:
        int64 (N,), the actions.

    Raises:
        ValueError: the masks or streams have another shape or dtype, or a mask other values or no 1.
    """
    check_streams(streams)
    actions = np.zeros(len(streams), np.int64)
    _refuse_mask(_sample(read_masks(masks, len(streams)), streams, actions))
    return actions


class SeededPolicy(Policy):
    """A policy with one random stream for each place of the batch.

    `seed` (0 to 2^64 - 1) is what the streams come from until `begin` gives a game its own, as `evaluate` does.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed: Final = check_seed(seed)
        # uint64 (N,): the streams' states; places that no game began in are seeded from `seed`
        self._streams: NDArray[np.uint64] = np.empty(0, np.uint64)

    def begin(self, slots: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        if len(slots):
            self._grow(int(slots.max()) + 1)
            self._streams[slots] = seeds

    def _grow(self, number: int) -> NDArray[np.uint64]:
        """The streams of the first `number` places, uint64 (number,), to be moved on in place."""
        have = len(self._streams)
        if number > have:
            start = int(mix(np.uint64(self.seed)))
            fresh = [mix(np.uint64(start ^ place)) for place in range(have, number)]
            self._streams = np.concatenate([self._streams, np.array(fresh, np.uint64)])
        return self._streams[:number]


class _CompiledPolicy(SeededPolicy):
    """One whose `act` runs in kernels."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        # Compile now, so that no time measured later has it in it.
        self.act(
            np.empty((0, NUM_COLUMNS + 1, NUM_CARDS), np.int8), np.empty((0, NUM_CARDS * NUM_DESTINATIONS), np.int8)
        )


class RandomPolicy(_CompiledPolicy):
    """Plays any legal action, each equally likely."""

    name = "random"
    observation = "board"

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        return sample_legal(masks, self._grow(len(masks)))

    def probabilities(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.floating[Any]]:
        return masks / masks.sum(axis=1, keepdims=True)


# What greedy prefers, best first; each is worth more than all below it together. Of moves that turn a
# card up, those in the column with the most face-down cards (1 to 6) come first; then those that lock
# the fewest cards (0 to 15, see `_locks`).
_SAFE_UP: Final = 1 << 11
_TURNS: Final = 1 << 10
_EMPTIES: Final = 1 << 9
_KEEPS_RUN: Final = 1 << 8
_UP: Final = 1 << 7
_DEPTH: Final = 1 << 4
_MOST_LOCKS: Final = _DEPTH - 1


@kernel
def _in_run(board: NDArray[np.int8], card: int, column: int, place: int) -> bool:
    """Whether `card` lies on a face-up card one rank higher, of any suit."""
    under = board[column, place - 1] if place > 0 else EMPTY
    return 0 <= under < HIDDEN and under % NUM_RANKS == card % NUM_RANKS + 1


@kernel
def _locks(
    board: NDArray[np.int8],
    columns: NDArray[np.int64],
    places: NDArray[np.int64],
    column: int,
    place: int,
    target: int,
) -> int:
    """How many face-up cards of column `target` could not reach their successor in suit any more.

    The group from `place` of `column` would lie on them with that successor in it, and no card moves
    onto its own column. `columns` and `places` say where each visible card lies.
    """
    locks = 0
    for i in range(NUM_CARDS):
        card = int64(board[target, i])
        if card < 0:
            break
        if card < HIDDEN and card % NUM_RANKS != KING and columns[card + 1] == column and places[card + 1] >= place:
            locks += 1
    return min(locks, _MOST_LOCKS)


@kernel
def _greedy(
    boards: NDArray[np.int8], masks: NDArray[np.int8], streams: NDArray[np.uint64], actions: NDArray[np.int64]
) -> int:
    """Write an action for each board; returns the index of the first mask that is none, or -1."""
    columns = np.empty(NUM_CARDS, np.int64)
    places = np.empty(NUM_CARDS, np.int64)
    down = np.empty(NUM_COLUMNS, np.int64)
    for i in range(masks.shape[0]):
        if count_legal(masks, i) < 1:
            return i
        board = boards[i]
        # A finished game's mask allows cards that cannot be seen: those are worth nothing.
        columns[:] = -1
        lowest = NUM_RANKS
        for suit in range(NUM_SUITS):
            lowest = min(lowest, board[NUM_COLUMNS, suit])
        for column in range(NUM_COLUMNS):
            down[column] = 0
            for place in range(NUM_CARDS):
                card = int64(board[column, place])
                if card <= EMPTY:
                    break
                if card < HIDDEN:
                    columns[card] = column
                    places[card] = place
                else:
                    down[column] += 1
        best = -1
        ties = 0
        for card in range(NUM_CARDS):
            word = load64(masks, (i * NUM_CARDS + card) * NUM_DESTINATIONS)
            while word != 0:
                target = lowest_bit(word) // 8
                word &= word - 1
                worth = 0
                rank = card % NUM_RANKS
                column = columns[card]
                if column >= 0:
                    place = places[card]
                    if target == FOUNDATION:
                        worth += _UP
                        if rank <= lowest + 1:
                            worth += _SAFE_UP
                    if place > 0 and board[column, place - 1] == HIDDEN:
                        worth += _TURNS + _DEPTH * down[column]
                    elif place == 0:
                        if target == FOUNDATION or rank != KING:
                            worth += _EMPTIES
                    elif not _in_run(board, card, column, place) and (
                        target == FOUNDATION or board[target, 0] != EMPTY
                    ):
                        worth += _KEEPS_RUN
                    if target != FOUNDATION:
                        worth += _MOST_LOCKS - _locks(board, columns, places, column, place, target)
                if worth > best:
                    best = worth
                    ties = 0
                if worth == best:
                    ties += 1
                    # Reservoir sampling: each of the ties is kept with the same chance.
                    if ties == 1 or next_below(streams, i, ties) == 0:
                        actions[i] = card * NUM_DESTINATIONS + target
    return -1


class GreedyPolicy(_CompiledPolicy):
    """A simple player that looks one move ahead, at what it can see.

    A foundation move is *safe*, and comes first, when no lower card that is still out could want to lie
    on it: all foundations are at most one card behind. Then a move that turns a card up, the deepest
    column first; then one that empties a column; then one that neither pulls a card off a face-up card
    one rank higher nor fills an empty column; then any other foundation move; then the rest. Of equals,
    the move that covers the fewest cards with their own successors; then chance.
    """

    name = "greedy"
    observation = "board"

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        streams = self._grow(len(masks))
        masks = read_masks(masks, len(streams))
        boards = read_boards(self.name, observations, len(masks))
        actions = np.zeros(len(masks), np.int64)
        _refuse_mask(_greedy(boards, masks, streams, actions))
        return actions


class PlannerPolicy(_CompiledPolicy):
    """Looks ahead: draws ways in which the face-down cards may lie, and asks the solver of each move in each of them.

    The moves after which most of them can still be won are the best, see `rusol_env.planner`; of these, greedy's
    choice. A foundation move that can do no harm is made at once. It sees only what the others see, and needs to be
    told the rules.

    It plays a game alike whatever the batch and the number of threads are, if there is no time limit.
    """

    name = "planner"
    observation = "board"

    def __init__(
        self,
        seed: int = 0,
        rules: str | Rules = CLASSIC,
        *,
        samples: int = DEFAULT_SAMPLES,
        time_limit: float | None = None,
        threads: int = 1,
    ) -> None:
        """
        Args:
            seed: as for the others.
            rules: the rule set of the games, or its name.
            samples: how many completions of the face-down cards are looked at for each move, at most.
            time_limit: stop looking at more after so many seconds a move; games can then not be repeated exactly.
            threads: how many share the games of a batch; results do not depend on it.

        Raises:
            ValueError: an argument is not valid.
        """
        self.rules: Final = rules_named(rules)
        self.samples: Final = check_whole("samples", samples, 1)
        self.time_limit: Final = time_limit
        check_time_limit(time_limit)
        self.threads: Final = check_whole("threads", threads, 1)
        self._searches = joins_last(self.rules)
        self._memories = [new_memory(self.rules) for _ in range(self.threads)]
        # Compiles the kernels, on the board of an empty table, which is no position.
        board, mask = np.full((NUM_COLUMNS + 1, NUM_CARDS), EMPTY, np.int8), np.zeros(0, np.int8)
        stream = np.zeros(1, np.uint64)
        begin(self._memories[0], board, mask, stream, 0)
        weigh(self._memories[0], board, 0, 0, self._searches, 0, stream, 0)
        narrow(self._memories[0], 0, mask)
        super().__init__(seed)

    @property
    def settings(self) -> dict[str, Any]:
        return {"samples": self.samples, "time_limit": self.time_limit}

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """As `Policy.act`.

        Raises:
            ValueError: observations that are no boards of games, or masks that allow moves against the rules.
        """
        streams = self._grow(len(masks))
        masks = read_masks(masks, len(streams)).copy()
        boards = read_boards(self.name, observations, len(masks))
        places = iter(range(len(masks)))

        def think(memory: Memory) -> None:
            # Whoever is free takes the next game.
            for i in places:
                self._think(memory, boards[i], masks, streams, i)

        if min(self.threads, len(masks)) > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                try:
                    list(pool.map(think, self._memories))
                finally:
                    # Interrupted: no thread begins another game.
                    for _ in places:
                        pass
        else:
            think(self._memories[0])
        actions = np.zeros(len(masks), np.int64)
        _refuse_mask(_greedy(boards, masks, streams, actions))
        return actions

    def _think(
        self, memory: Memory, board: NDArray[np.int8], masks: NDArray[np.int8], streams: NDArray[np.uint64], i: int
    ) -> None:
        """Make mask `i` forbid all moves but the best."""
        started = time.perf_counter()
        count, hidden = self._begin(memory, board, masks, streams, i)
        if count < 2:
            return
        # With one card face down, or none, all is known.
        left = self.samples if hidden > 1 else 1
        while left > 0:
            weigh(memory, board, hidden, count, self._searches, min(left, _SAMPLES_A_SLICE), streams, i)
            left -= _SAMPLES_A_SLICE
            if self.time_limit is not None and time.perf_counter() - started >= self.time_limit:
                break
        narrow(memory, count, masks[i])

    def _begin(
        self, memory: Memory, board: NDArray[np.int8], masks: NDArray[np.int8], streams: NDArray[np.uint64], i: int
    ) -> tuple[int, int]:
        """As `rusol_env.planner.begin`: the moves to choose from, under 2 if there is no choice, and the hidden cards.

        Raises:
            ValueError: the board is no position, or the mask allows a move against the rules.
        """
        if not 1 < count_legal(masks, i) < NUM_ACTIONS:
            return 0, 0
        count, hidden = begin(memory, board, masks[i], streams, i)
        if count == NO_POSITION:
            raise ValueError(f"board {i} is no position of a game")
        if count == OTHER_RULES:
            raise ValueError(f"mask {i} allows a move that {self.rules.name} rules do not: give {self.name} the rules=")
        return count, hidden


POLICIES: Final[dict[str, type[SeededPolicy]]] = {
    policy.name: policy for policy in (RandomPolicy, GreedyPolicy, PlannerPolicy)
}
"""The built-in policies; `rusol_env.models` knows those that are read from files too."""
