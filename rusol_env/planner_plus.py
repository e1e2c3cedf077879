"""The planner with a network beside it, that plans from one turned card to the next."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env.cards import NUM_CARDS
from rusol_env.engine import BOARD_SIZE, NUM_ACTIONS, apply, deal, face_down_cards
from rusol_env.episode import count_legal
from rusol_env.network import Network, NetworkPolicy
from rusol_env.observe import NUM_FEATURES
from rusol_env.planner import Memory, begin, find_line, lay_out, new_memory, see, weigh_lines
from rusol_env.policies import PlannerPolicy
from rusol_env.rules import CLASSIC, NUM_COLUMNS, Rules

DEFAULT_WEIGHED: Final = 256
"""Completions that lines are weighed in, at most."""
# The wins of so many show which lines there are besides the network's own.
_SHOWN: Final = 64
# After so many completions a time limit is heard.
_SLICE: Final = 16
# Moves of a line, at most; wins have fewer.
_LONGEST: Final = 200
# Of a line of the network that turns no card: what is played of it before others are looked for again.
_PATIENCE: Final = 80


class PlannerPlusPolicy(PlannerPolicy):
    """Plans as planner, but from one turned card to the next, and asks a network first.

    What will lie face up until a card turns can be seen: so the moves up to there, a *line*, are one choice. (To
    planner, which chooses each move by itself, one that turns a card looks no better than one that puts it off.) The
    network's own line is played if the solver finds a win after it in each of `samples` completions. Otherwise other
    lines are what wins begin with in some more; all are tried in the same `samples` completions, and the one is played
    after which most of them are won, the network's if it is as good. When all is known, a win is played to its end; a
    game that is lost, as far as one can see, is played as the network plays it.

    It plays a game alike whatever the batch and the number of threads are, if there is no time limit.
    """

    name = "planner+"

    def __init__(
        self,
        network: Network,
        seed: int = 0,
        rules: str | Rules = CLASSIC,
        *,
        samples: int = DEFAULT_WEIGHED,
        time_limit: float | None = None,
        threads: int = 1,
        source: dict[str, Any] | None = None,
    ) -> None:
        """
        Args:
            network: that reads "cards", such as those of `distilled`.
            seed: as for the others.
            rules: as for planner.
            samples: completions that lines are weighed in, at most.
            time_limit: as for planner.
            threads: as for planner.
            source: where the network comes from, for `settings`.

        Raises:
            ValueError: an argument is not valid.
        """
        if network.observation != "cards":
            raise ValueError(f"planner+ shows its network 'cards', and this reads {network.observation!r}")
        self.network: Final = network
        self._source: Final = dict(source or {})
        # For each place of the batch that is in the middle of a line: the board that comes next, and the moves from it.
        self._lines: dict[int, tuple[bytes, list[int]]] = {}
        super().__init__(seed, rules, samples=samples, time_limit=time_limit, threads=threads)
        self._compile()

    def _compile(self) -> None:
        """Compile all that a thought needs, on some deal, so that no time measured later has it in it."""
        memory, stream, line = new_memory(self.rules), np.zeros(1, np.uint64), np.zeros((1, _LONGEST), np.int64)
        deal(memory.now, 0)
        board = memory.now[:BOARD_SIZE].reshape(NUM_COLUMNS + 1, NUM_CARDS).copy()
        mask = self._seen(memory)[1]
        _, hidden = begin(memory, board, mask[0], stream, 0)
        find_line(memory, board, hidden, self._searches, stream, 0, line[0])
        one, points = np.zeros((2, 1), np.int64)
        weigh_lines(memory, board, hidden, line, one, self._searches, 0, stream, 0, points)
        self._own(memory, board)

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | {"network": self.network.kind} | self._source

    def begin(self, slots: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        super().begin(slots, seeds)
        for slot in slots.tolist():
            self._lines.pop(slot, None)

    def _think(
        self, memory: Memory, board: NDArray[np.int8], masks: NDArray[np.int8], streams: NDArray[np.uint64], i: int
    ) -> None:
        awaited, line = self._lines.pop(i, (b"", []))
        if not (board.tobytes() == awaited and masks[i, line[0]] == 1 and count_legal(masks, i) > 0):
            count, hidden = self._begin(memory, board, masks, streams, i)
            if count < 2:
                return
            line = self._choose(memory, board, hidden, memory.actions[:count].tolist(), streams, i)
        masks[i] = 0
        masks[i, line[0]] = 1
        if len(line) > 1:
            lay_out(memory, board)
            apply(memory.now, line[0])
            self._lines[i] = memory.now[:BOARD_SIZE].tobytes(), line[1:]

    def _choose(
        self,
        memory: Memory,
        board: NDArray[np.int8],
        hidden: int,
        allowed: list[int],
        streams: NDArray[np.uint64],
        i: int,
    ) -> list[int]:
        """The line that is played from a board that `begin` has read, one move or more; its first is an allowed one."""
        started = time.perf_counter()

        def late() -> bool:
            return self.time_limit is not None and time.perf_counter() - started >= self.time_limit

        def points(lines: list[list[int]], samples: int, flawless: bool = False) -> tuple[NDArray[np.int64], int]:
            """Those of the lines, int64 (K,), and in how many completions: fewer if they are to be `flawless` and the
            first is not."""
            moves = np.zeros((len(lines), _LONGEST), np.int64)
            lengths = np.array([len(line) for line in lines])
            for k, line in enumerate(lines):
                moves[k, : len(line)] = line
            found, done = np.zeros(len(lines), np.int64), 0
            while done < samples and not (done and (late() or (flawless and found[0] < done))):
                more = min(samples - done, _SLICE)
                weigh_lines(memory, board, hidden, moves, lengths, self._searches, more, streams, i, found)
                done += more
            return found, done

        known = hidden < 2
        own, turns = ([], False) if known else self._own(memory, board)
        turns = turns and own[0] in allowed
        if turns:
            found, done = points([own], self.samples, flawless=True)
            if found[0] == done:
                return own
        # By the boards that they lead to, so that none is weighed twice.
        lines = {self._end(memory, board, own): own} if turns else {}
        others: list[list[int]] = []
        moves = np.zeros(_LONGEST, np.int64)
        for k in range(1 if known else min(self.samples, _SHOWN)):
            if k and late():
                break
            length = find_line(memory, board, hidden, self._searches, streams, i, moves)
            if length and moves[0] in allowed:
                others.append(moves[:length].tolist())
        for line in sorted(others, key=lambda line: (len(line), line)):
            lines.setdefault(self._end(memory, board, line), line)
        if not lines:
            # Lost, as far as one can see.
            own = own or self._own(memory, board)[0]
            if own[0] in allowed:
                return own
        each = list(lines.values()) or [[action] for action in allowed]
        return each[0] if len(each) == 1 else each[int(points(each, self.samples)[0].argmax())]

    def _own(self, memory: Memory, board: NDArray[np.int8]) -> tuple[list[int], bool]:
        """What the network would play until a card turns, or until it has played long enough; and whether one does."""
        lay_out(memory, board)
        down = face_down_cards(memory.now)
        player = NetworkPolicy(self.network)
        player.begin(np.zeros(1, np.int64), np.zeros(1, np.uint64))
        line: list[int] = []
        while len(line) < _PATIENCE:
            cards, mask, count = self._seen(memory)
            if count == 0:
                break
            line.append(int(player.act(cards, mask)[0]))
            apply(memory.now, line[-1])
            if face_down_cards(memory.now) < down:
                return line, True
        return line, False

    @staticmethod
    def _seen(memory: Memory) -> tuple[NDArray[np.float32], NDArray[np.int8], int]:
        """The "cards" observation (1, 52, 24) and the mask (1, 416) of `now`, and how many moves are legal."""
        cards, mask = np.empty((1, NUM_CARDS, NUM_FEATURES), np.float32), np.empty((1, NUM_ACTIONS), np.int8)
        return cards, mask, see(memory, mask[0], cards[0])

    @staticmethod
    def _end(memory: Memory, board: NDArray[np.int8], line: list[int]) -> bytes:
        """The board that a line leads to, the same card turned whenever it is turned in the same column."""
        lay_out(memory, board)
        for action in line:
            apply(memory.now, action)
        return memory.now[:BOARD_SIZE].tobytes()
