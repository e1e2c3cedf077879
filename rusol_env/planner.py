"""The planner's kernels: what each move leads to, over many ways in which the face-down cards may lie.

This is *hindsight optimisation*: a move is worth how often the game can still be won after it, if from then on all
cards were known (S. Yoon, A. Fern, R. Givan & S. Kambhampati, "Probabilistic planning via determinization in
hindsight", AAAI 2008; for Klondike R. Bjarnason, A. Fern & P. Tadepalli, "Lower bounding Klondike Solitaire with
Monte-Carlo planning", ICAPS 2009). That forgets that they will not be known: it is too hopeful, for all moves.

A *completion* is a position that agrees with all that is visible: the cards that are nowhere to be seen lie in the
face-down places, every order equally likely. A row is laid from a completion, never from the game that is played.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import copy_array, count_bits, int64, kernel
from rusol_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.deadlock import is_lost
from rusol_env.deals import next_below
from rusol_env.engine import COUNTS, HIDDEN, MAX_LEGAL, apply, face_down_cards, lay, legal, new_rows
from rusol_env.episode import fill_mask
from rusol_env.observe import encode_cards
from rusol_env.rules import FOUNDATION, NUM_COLUMNS, NUM_DESTINATIONS, Rules
from rusol_env.search import LOST, WON, Work, easy, new_work, safe_card, shorten

# What a move is given for a completion that can still be won after it, and for one of which the solver cannot say.
_CAN_WIN: Final = 2
_MAY_WIN: Final = 1
# What the solver may look at for each move of a completion.
_NODE_LIMIT: Final = 4_000
# Where so many completions that can be won are won by every move, more would hardly tell the moves apart.
_AGREED: Final = 5

# What `begin` says of a board, besides the number of moves to choose from.
NO_POSITION: Final = -1
OTHER_RULES: Final = -2


class Memory(NamedTuple):
    """What one thread needs to think about one move."""

    work: Work
    """The solver's."""
    now: NDArray[np.int8]
    """int8 (ROW,): a completion."""
    deck: NDArray[np.int8]
    """int8 (52,): the cards of the columns, column after column from their bases."""
    heights: NDArray[np.int8]
    """int8 (7,): cards in each column."""
    down: NDArray[np.int8]
    """int8 (7,): face-down cards in each column."""
    places: NDArray[np.int64]
    """int64 (52,): where in `deck` the face-down cards lie."""
    unseen: NDArray[np.int8]
    """int8 (52,): the cards that lie there, in any order."""
    actions: NDArray[np.int16]
    """int16 (MAX_LEGAL,): the moves to choose from."""
    points: NDArray[np.int64]
    """int64 (MAX_LEGAL,): what each of them was given."""


def new_memory(rules: Rules) -> Memory:
    """The memory of a planner under `rules`."""
    return Memory(
        work=new_work(rules, False),
        now=new_rows(1, rules)[0],
        deck=np.zeros(NUM_CARDS, np.int8),
        heights=np.zeros(NUM_COLUMNS, np.int8),
        down=np.zeros(NUM_COLUMNS, np.int8),
        places=np.zeros(NUM_CARDS, np.int64),
        unseen=np.zeros(NUM_CARDS, np.int8),
        actions=np.zeros(MAX_LEGAL, np.int16),
        points=np.zeros(MAX_LEGAL, np.int64),
    )


@kernel
def _read(memory: Memory, board: NDArray[np.int8]) -> int:
    """Read a "board" observation, int8 (8, 52), into the memory: how many cards lie face down, or NO_POSITION."""
    seen = int64(0)
    laid = 0
    hidden = 0
    for suit in range(NUM_SUITS):
        count = int64(board[NUM_COLUMNS, suit])
        if not 0 <= count <= NUM_RANKS:
            return NO_POSITION
        seen |= ((int64(1) << count) - 1) << suit * NUM_RANKS
    up = count_bits(seen)
    for column in range(NUM_COLUMNS):
        height = 0
        down = 0
        while height < NUM_CARDS and board[column, height] >= 0:
            card = int64(board[column, height])
            if laid + up == NUM_CARDS or card > HIDDEN or (card < HIDDEN and (seen >> card) & 1):
                return NO_POSITION
            if card == HIDDEN:
                if down < height:
                    return NO_POSITION
                memory.places[hidden] = laid
                hidden += 1
                down += 1
            else:
                memory.deck[laid] = card
                seen |= int64(1) << card
            laid += 1
            height += 1
        if down == height > 0:
            return NO_POSITION
        memory.heights[column] = height
        memory.down[column] = down
    if laid + up != NUM_CARDS:
        return NO_POSITION
    left = 0
    for card in range(NUM_CARDS):
        if not (seen >> card) & 1:
            memory.unseen[left] = card
            left += 1
    return hidden


@kernel
def _complete(memory: Memory, board: NDArray[np.int8], hidden: int, streams: NDArray[np.uint64], i: int) -> None:
    """Draw a completion of the board that was read from stream `i`, and lay it out in `now`."""
    unseen = memory.unseen
    for k in range(hidden - 1, -1, -1):
        j = next_below(streams, i, k + 1)
        card = unseen[k]
        unseen[k] = unseen[j]
        unseen[j] = card
        memory.deck[memory.places[k]] = unseen[k]
    for suit in range(NUM_SUITS):
        memory.now[COUNTS + suit] = board[NUM_COLUMNS, suit]
    lay(memory.now, memory.deck, memory.heights, memory.down)


@kernel
def lay_out(memory: Memory, board: NDArray[np.int8]) -> int:
    """Lay some completion of a "board" observation, int8 (8, 52), out in `now`; NO_POSITION if it is none."""
    hidden = _read(memory, board)
    if hidden >= 0:
        for k in range(hidden):
            memory.deck[memory.places[k]] = memory.unseen[k]
        for suit in range(NUM_SUITS):
            memory.now[COUNTS + suit] = board[NUM_COLUMNS, suit]
        lay(memory.now, memory.deck, memory.heights, memory.down)
    return hidden


@kernel
def draw(memory: Memory, board: NDArray[np.int8], streams: NDArray[np.uint64], i: int) -> None:
    """Lay a completion of a "board" observation, int8 (8, 52), out in `now`, drawn from stream `i`."""
    hidden = _read(memory, board)
    _complete(memory, board, hidden, streams, i)


@kernel
def begin(
    memory: Memory, board: NDArray[np.int8], mask: NDArray[np.int8], streams: NDArray[np.uint64], i: int
) -> tuple[int, int]:
    """Begin to think about a board: make the mask forbid what needs no thought.

    A safe foundation move is made at once. Taking cards back, and idle moves, are made where there is nothing else.

    Args:
        memory: written anew.
        board: int8 (8, 52).
        mask: int8 (416,), 0 or 1; not of a finished game.
        streams: uint64 (N,).
        i: which of them to draw from.

    Returns:
        the number of moves to choose from, to be weighed if it is over 1, or NO_POSITION, or OTHER_RULES where the
        mask allows a move that the rules of the memory do not; and the number of face-down cards.
    """
    hidden = _read(memory, board)
    if hidden < 0:
        return NO_POSITION, 0
    _complete(memory, board, hidden, streams, i)
    actions = memory.actions
    allowed = 0
    for k in range(legal(memory.now, True, True, actions)):
        allowed += mask[actions[k]]
    for action in range(NUM_CARDS * NUM_DESTINATIONS):
        allowed -= mask[action]
    if allowed != 0:
        return OTHER_RULES, 0
    count = 0
    for k in range(legal(memory.now, False, False, actions)):
        if mask[actions[k]] == 1:
            actions[count] = actions[k]
            count += 1
    safe = safe_card(memory.work, memory.now)
    if safe >= 0 and mask[safe * NUM_DESTINATIONS + FOUNDATION] == 1:
        actions[0] = safe * NUM_DESTINATIONS + FOUNDATION
        count = 1
    if count > 0:
        mask[:] = 0
    for k in range(count):
        mask[actions[k]] = 1
        memory.points[k] = 0
    return count, hidden


@kernel
def weigh(
    memory: Memory,
    board: NDArray[np.int8],
    hidden: int,
    count: int,
    searches: bool,
    samples: int,
    streams: NDArray[np.uint64],
    i: int,
) -> None:
    """Give each move its points for `samples` more completions, the same ones for all moves.

    Args:
        memory: as `begin` left it.
        board: as it was given to `begin`.
        hidden: from `begin`.
        count: from `begin`.
        searches: whether the solver searches, or makes tries, see `rusol_env.solver`.
        samples: how many completions to draw.
        streams: uint64 (N,).
        i: which of them to draw from.
    """
    work = memory.work
    for _ in range(samples):
        _complete(memory, board, hidden, streams, i)
        if is_lost(memory.now, False, work.under, work.hosts, work.states[0]):
            continue
        for k in range(count):
            copy_array(memory.now, work.start)
            apply(work.start, int64(memory.actions[k]))
            status = easy(work, False, searches, _NODE_LIMIT)
            if status != LOST:
                memory.points[k] += _CAN_WIN if status == WON else _MAY_WIN


@kernel
def narrow(memory: Memory, count: int, mask: NDArray[np.int8]) -> None:
    """Forbid the moves that have fewer points than another."""
    most = int64(0)
    for k in range(count):
        most = max(most, memory.points[k])
    for k in range(count):
        if memory.points[k] < most:
            mask[memory.actions[k]] = 0


@kernel
def find_line(
    memory: Memory,
    board: NDArray[np.int8],
    hidden: int,
    searches: bool,
    streams: NDArray[np.uint64],
    i: int,
    line: NDArray[np.int64],
) -> int:
    """Have one more completion solved, and write what the win begins with: its moves to the first that turns a card.

    Where one card lies face down, or none, all is known, and the moves go on to the win.

    Args:
        memory: as `begin` left it.
        board: as it was given to `begin`.
        hidden: from `begin`.
        searches: as in `weigh`.
        streams: uint64 (N,).
        i: which of them to draw from.
        line: int64 (L,), written from its start; what does not fit is left out.

    Returns:
        the number of moves; 0 if the solver finds no win.
    """
    work = memory.work
    _complete(memory, board, hidden, streams, i)
    copy_array(memory.now, work.start)
    if easy(work, False, searches, _NODE_LIMIT) != WON:
        return 0
    count = min(shorten(work, False), len(line))
    copy_array(memory.now, work.row)
    for k in range(count):
        line[k] = work.records[k]
        apply(work.row, line[k])
        if hidden > 1 and face_down_cards(work.row) < hidden:
            return k + 1
    return count


@kernel
def weigh_lines(
    memory: Memory,
    board: NDArray[np.int8],
    hidden: int,
    lines: NDArray[np.int64],
    lengths: NDArray[np.int64],
    searches: bool,
    samples: int,
    streams: NDArray[np.uint64],
    i: int,
    points: NDArray[np.int64],
) -> None:
    """Give each line a point for each of `samples` more completions in which the solver finds a win after it.

    Args:
        memory: as `begin` left it.
        board: as it was given to `begin`.
        hidden: from `begin`.
        lines: int64 (K, L), moves that are legal one after the other, and turn no card but by the last.
        lengths: int64 (K,), how many moves each of them has.
        searches: as in `weigh`.
        samples: how many completions to draw, the same ones for all lines.
        streams: uint64 (N,).
        i: which of them to draw from.
        points: int64 (K,), to which the points are added; where the solver cannot say there is none.
    """
    work = memory.work
    for _ in range(samples):
        _complete(memory, board, hidden, streams, i)
        if is_lost(memory.now, False, work.under, work.hosts, work.states[0]):
            continue
        for k in range(len(lengths)):
            copy_array(memory.now, work.start)
            for j in range(lengths[k]):
                apply(work.start, lines[k, j])
            points[k] += int64(easy(work, False, searches, _NODE_LIMIT) == WON)


@kernel
def see(memory: Memory, mask: NDArray[np.int8], cards: NDArray[np.float32]) -> int:
    """Write the action mask int8 (416,) and the "cards" observation float32 (52, 24) of `now`.

    Returns the number of legal moves, idle ones and taking back left out.
    """
    count = legal(memory.now, False, False, memory.actions)
    fill_mask(memory.actions, count, mask)
    encode_cards(memory.now, mask, False, cards)
    return count


@kernel
def count_wins(
    memory: Memory,
    boards: NDArray[np.int8],
    masks: NDArray[np.bool_],
    searches: bool,
    samples: int,
    streams: NDArray[np.uint64],
    wins: NDArray[np.int8],
) -> None:
    """Count for each move of many positions in how many completions the game can be won after it.

    Args:
        memory: for scratch.
        boards: int8 (N, 8, 52).
        masks: bool (N, 416), the moves, which must be legal. Where there is no choice, nothing is counted.
        searches: as in `weigh`.
        samples: how many completions are drawn for each position, fewer if the moves are all alike.
        streams: uint64 (N,), what they are drawn from.
        wins: int8 (N, 416), to which the numbers are added.
    """
    work = memory.work
    actions = memory.actions
    for i in range(boards.shape[0]):
        count = 0
        for action in range(masks.shape[1]):
            if masks[i, action]:
                actions[count] = action
                count += 1
        hidden = _read(memory, boards[i]) if count > 1 else NO_POSITION
        if hidden < 0:
            continue
        won = 0
        alike = True
        # With one card face down, or none, all is known.
        for _ in range(samples if hidden > 1 else 0):
            _complete(memory, boards[i], hidden, streams, i)
            if is_lost(memory.now, False, work.under, work.hosts, work.states[0]):
                continue
            good = 0
            for k in range(count):
                copy_array(memory.now, work.start)
                apply(work.start, int64(actions[k]))
                if easy(work, False, searches, _NODE_LIMIT) == WON:
                    wins[i, actions[k]] += 1
                    good += 1
            won += good > 0
            alike = alike and (good == 0 or good == count)
            if alike and won == _AGREED:
                break
