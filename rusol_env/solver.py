"""The exact solver: whether a position can be won when all cards are known (*thoughtful* play), and how.

Three things answer, each as long as the cheaper one before it did not:

1. `rusol_env.deadlock` proves most lost positions lost without search.
2. Tries: games played by a simple rule. The first, a dive, makes the move that it likes best; the others have chance in
   them, and never make a move which 1. proves lost. Nearly every winnable deal of Relaxed and Yukon is won within a
   few. (Left out where a card fits on one card only.)
3. A depth-first search through all positions, each looked at once, which 1. prunes. Its keys are exact, not hashes:
   when it ends without a win, that is a proof.

Two facts make positions fewer. A foundation move is *safe*, and made at once, when nothing that could lie on the card
is still out; so every foundation move is in Classic, where only the card just put up could. Empty columns are alike,
so a king goes to the first of them only.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rusol_env.deadlock import is_lost_by_cases
from rusol_env.deals import (
    Arrangement,
    Split,
    check_seed,
    check_whole,
    deal_arrangement,
    decode_code,
    draw_deal,
    read_deal,
)
from rusol_env.engine import arrange
from rusol_env.game import Game, Move, decode_action
from rusol_env.labels import Verdict
from rusol_env.rules import CLASSIC, Rules, rules_named
from rusol_env.search import (
    FULL,
    LOST,
    NODES,
    PAUSED,
    WON,
    begin,
    compile_kernels,
    easy,
    easy_deals,
    easy_rows,
    grown,
    joins_last,
    label_moves,
    new_work,
    search,
    shorten,
    tries,
    wins,
)

DEFAULT_NODE_LIMIT: Final = 400_000
# What the tries may use of the node limit, and at most; what is done before Ctrl-C and the clock are heard again.
_TRIES_SHARE: Final = 4
_TRIES_MOST: Final = 1_000_000
_TRIES_A_SLICE: Final = 50
_NODES_A_SLICE: Final = 20_000
# Deals that `WinnableDeals` solves at once.
_DEALS_A_SLICE: Final = 100


@dataclass(frozen=True, slots=True)
class Solution:
    """The solver's answer."""

    verdict: Verdict
    moves: tuple[Move, ...]
    """The moves that win, in order; empty unless WINNABLE. They were played through the engine to the win."""
    nodes: int
    """Positions looked at."""
    seconds: float
    """Wall-clock time, the compilation of kernels excluded."""


class Solver:
    """The solver for one rule set, with its memory: made once, it answers many positions.

    It is deterministic: a position gets the same answer and the same moves every time, unless a time limit is hit.
    One thread at a time may use it.
    """

    def __init__(self, rules: str | Rules = CLASSIC, *, take_back: bool = False, memory_limit: int = 512) -> None:
        """
        Args:
            rules: a rule set or its name.
            take_back: whether cards may come back from the foundations. (In Classic that never helps.)
            memory_limit: MiB that the positions looked at may fill; what needs more stays UNDECIDED.

        Raises:
            ValueError: an argument is not valid.
        """
        self.rules: Rules = rules_named(rules)
        self.take_back = take_back
        self.memory_limit: int = check_whole("memory_limit", memory_limit, 1)
        self._joins_last = joins_last(self.rules)
        self._small = new_work(self.rules, take_back)
        self._work = self._small
        compile_kernels(self._small)

    def solve(
        self,
        position: Arrangement | Game | int | str,
        *,
        node_limit: int = DEFAULT_NODE_LIMIT,
        time_limit: float | None = None,
    ) -> Solution:
        """Whether `position` can be won, and how.

        Args:
            position: a deal number, a code, an `Arrangement`, or a `Game` as it stands.
            node_limit: give up after looking at about so many positions.
            time_limit: give up after so many seconds.

        Raises:
            ValueError: no such deal, one for other rules, or a limit that is none.
            KeyboardInterrupt: Ctrl-C is answered within a tenth of a second.
        """
        node_limit = check_whole("node_limit", node_limit, 1)
        deadline = _deadline(time_limit)
        work = self._work = self._small
        if isinstance(position, Game):
            if position.rules != self.rules:
                raise ValueError(f"the game is of {position.rules.name} and this solver of {self.rules.name} rules")
            position = position.arrangement
        deal_ = read_deal(position, self.rules)
        arrange(work.start, deal_ if isinstance(deal_, Arrangement) else deal_arrangement(deal_))
        began = time.perf_counter()
        status = self._settle(easy(work, self.take_back, self._joins_last, node_limit), node_limit, deadline)
        nodes = int(work.control[NODES])
        moves: tuple[Move, ...] = ()
        if status == WON:
            moves = tuple(decode_action(action) for action in self._plan().tolist())
        self._work = self._small
        return Solution(_VERDICTS[status], moves, nodes, time.perf_counter() - began)

    def solve_deals(
        self, numbers: NDArray[np.int64], *, node_limit: int = DEFAULT_NODE_LIMIT, time_limit: float | None = None
    ) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int32]]:
        """`solve` for many deals, several times as fast for easy ones.

        Args:
            numbers: int64 (N,), deal numbers that are not checked.
            node_limit: as in `solve`, for each deal.
            time_limit: as in `solve`, for each deal; looked at after a hundredth of a second.

        Returns:
            verdicts int8 (N,), see `Verdict`; positions looked at, int64 (N,); moves to the win that was found, int32
            (N,), -1 where there is none.
        """
        count = len(numbers)
        verdicts, nodes = np.zeros(count, np.int8), np.zeros(count, np.int64)
        lengths = np.full(count, -1, np.int32)
        self._work = self._small
        at = 0
        while at < count:
            at = easy_deals(
                self._work, self.take_back, self._joins_last, node_limit, numbers, at, verdicts, nodes, lengths
            )
            if at < 0:
                raise _no_win()
            if at < count:
                status = self._settle(PAUSED, node_limit, _deadline(time_limit))
                verdicts[at], nodes[at] = _VERDICTS[status], self._work.control[NODES]
                if status == WON:
                    lengths[at] = len(self._plan())
                self._work = self._small
                at += 1
        return verdicts, nodes, lengths

    def lost(self, rows: NDArray[np.int8], *, node_limit: int = DEFAULT_NODE_LIMIT) -> NDArray[np.bool_]:
        """Which positions a short look proves lost; those that are left may still be.

        Args:
            rows: the positions as the engine keeps them, int8 (N, ...), of this solver's rules.
            node_limit: look at no more positions for each.

        Returns:
            bool (N,).
        """
        statuses = np.empty(len(rows), np.int8)
        easy_rows(self._small, self.take_back, self._joins_last, node_limit, rows, statuses)
        return statuses == LOST

    def after_moves(
        self, rows: NDArray[np.int8], masks: NDArray[np.bool_], *, node_limit: int = DEFAULT_NODE_LIMIT
    ) -> NDArray[np.int8]:
        """What a short look says of the positions after moves.

        Args:
            rows: positions as the engine keeps them, int8 (N, ...), of this solver's rules.
            masks: bool (N, 416), the moves, which must be legal.
            node_limit: look at no more positions for each move.

        Returns:
            int8 (N, 416), a `Verdict` for each move, -1 for all else.
        """
        statuses = np.full(masks.shape, -1, np.int8)
        label_moves(self._small, self.take_back, self._joins_last, node_limit, rows, masks, statuses)
        return _VERDICT_OF[statuses]

    def _settle(self, status: int, node_limit: int, deadline: float) -> int:
        """Go on where `easy` stopped, in slices, so that Ctrl-C and the clock are heard."""
        control = self._work.control

        def over() -> bool:
            return control[NODES] >= node_limit or time.perf_counter() >= deadline

        if status in (WON, LOST):
            return status
        if not self._joins_last:
            work = self._work
            if is_lost_by_cases(work.start, self.take_back, work.under, work.narrowed, work.hosts, work.states):
                return LOST
            tried = min(node_limit // _TRIES_SHARE, _TRIES_MOST)
            while control[NODES] < tried and time.perf_counter() < deadline:
                if tries(work, self.take_back, False, _TRIES_A_SLICE, tried) == WON:
                    return WON
            status = begin(work, self.take_back)
        while status != WON and status != LOST and not over():
            if status == FULL:
                larger = grown(self._work, self.memory_limit)
                if larger is None:
                    break
                self._work = larger
            limit = min(int(control[NODES]) + _NODES_A_SLICE, node_limit)
            status = search(self._work, self.take_back, limit)
        return status

    def _plan(self) -> NDArray[np.int64]:
        """The actions of the win just found, int64 (N,), played through the engine once more."""
        count = shorten(self._work, self.take_back)
        if not wins(self._work, self.take_back, count):
            raise _no_win()
        return self._work.records[:count]


def solve(
    position: Arrangement | Game | int | str,
    rules: str | Rules | None = None,
    *,
    node_limit: int = DEFAULT_NODE_LIMIT,
    time_limit: float | None = None,
    take_back: bool = False,
) -> Solution:
    """Whether a position can be won when all cards are known, and how: see `Solver.solve`.

    Args:
        position: a deal number, a code, an `Arrangement`, or a `Game` as it stands.
        rules: by default those of the code or the game, else Classic.
        node_limit: give up after looking at so many positions.
        time_limit: give up after so many seconds.
        take_back: whether cards may come back from the foundations.

    Raises:
        ValueError: an argument is not valid.
    """
    if rules is None:
        rules = CLASSIC
        if isinstance(position, Game):
            rules = position.rules
        elif isinstance(position, str):
            rules, _ = decode_code(position)
    return Solver(rules, take_back=take_back).solve(position, node_limit=node_limit, time_limit=time_limit)


class WinnableDeals(Iterator[int]):
    """Deals of the training split that can be won, for ever: for ``deals=`` of an environment.

    They are drawn as a game draws them from the stream of `seed`; those that the solver does not prove winnable are
    left out. Most deals of Classic cannot be won, and have little to teach.
    """

    def __init__(self, rules: str | Rules = CLASSIC, seed: int = 0, *, node_limit: int = DEFAULT_NODE_LIMIT) -> None:
        """
        Args:
            rules: a rule set or its name.
            seed: 0 to 2^64 - 1; the same seed gives the same deals.
            node_limit: a deal is left out that takes a longer search.

        Raises:
            ValueError: an argument is not valid.
        """
        self._solver = Solver(rules)
        self._node_limit = check_whole("node_limit", node_limit, 1)
        # uint64 (1,): the state of the stream
        self._stream = np.array([check_seed(seed)], np.uint64)
        self._ready: deque[int] = deque()

    def __next__(self) -> int:
        while not self._ready:
            numbers = np.array([draw_deal(self._stream, 0, int(Split.TRAIN)) for _ in range(_DEALS_A_SLICE)], np.int64)
            verdicts, _, _ = self._solver.solve_deals(numbers, node_limit=self._node_limit)
            self._ready.extend(numbers[verdicts == Verdict.WINNABLE].tolist())
        return self._ready.popleft()


_VERDICTS: Final = {
    LOST: Verdict.UNWINNABLE,
    WON: Verdict.WINNABLE,
    PAUSED: Verdict.UNDECIDED,
    FULL: Verdict.UNDECIDED,
}

# int8 (5,): the verdict of each status, and -1 for -1, by NumPy's indexing from the end
_VERDICT_OF: Final = np.array([*(_VERDICTS[status] for status in range(len(_VERDICTS))), -1], np.int8)


def check_time_limit(time_limit: float | None) -> None:
    """Raise a ValueError if it is neither None nor a number of seconds, more than 0."""
    if time_limit is None:
        return
    if not (isinstance(time_limit, (int, float)) and not isinstance(time_limit, bool) and time_limit > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"time_limit is {time_limit!r}: it must be a number of seconds, more than 0")


def _deadline(time_limit: float | None) -> float:
    check_time_limit(time_limit)
    return math.inf if time_limit is None else time.perf_counter() + time_limit


def _no_win() -> RuntimeError:
    return RuntimeError("the solver found moves that do not win: this is a bug, please report the deal")
