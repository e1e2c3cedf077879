"""The engine: one game in one packed row of bytes, and all game logic on it.

A row is a C-contiguous int8 array (ROW,). Kernels take one row; a batch is (N, ROW) and passes
``rows[i]``. The rules of a game lie in its row (`new_rows` writes them), so no kernel is told them.

The first BOARD_SIZE bytes are exactly what a player sees: they *are* the ``"board"`` observation::

    byte    0 …  51   column 0 from its base: a card id, 52 = face down, -1 = nothing there
           52 … 103   column 1
            …
          312 … 363   column 6
          364 … 367   how many cards lie on the foundations (spades, hearts, diamonds, clubs)
          368 … 415   -1

An action is ``card * NUM_DESTINATIONS + destination``; a move that was made is an int64 *record*
(see `apply`), from which `undo` restores the row bit for bit, the move counter excepted.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import count_bits, int64, kernel, load64, lowest_bit, store64
from rusol_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, RED_SUITS
from rusol_env.deals import Arrangement, mix, shuffle
from rusol_env.rules import (
    DEAL_FACE_DOWN,
    DEAL_HEIGHTS,
    FOUNDATION,
    NUM_COLUMNS,
    NUM_DESTINATIONS,
    Build,
    Rejection,
    Rules,
)

NUM_ACTIONS: Final = NUM_CARDS * NUM_DESTINATIONS
# Each column's last card takes at most one card of each suit, or goes to its foundation; an empty
# column takes at most four kings.
MAX_LEGAL: Final = NUM_COLUMNS * NUM_SUITS + NUM_SUITS

# Values of a board cell that are no card.
EMPTY: Final = -1
HIDDEN: Final = NUM_CARDS
# Values of `UNDER` that are no card.
BASE: Final = NUM_CARDS
NOT_IN_COLUMN: Final = NUM_CARDS + 1

# ---- the row's layout: offset of each field, its dtype, shape and meaning --------------------------
BOARD: Final = 0  # int8 (8, 52): what a player sees, above
COUNTS: Final = NUM_COLUMNS * NUM_CARDS  # int8 (4,), inside BOARD: cards on each foundation
BOARD_SIZE: Final = (NUM_COLUMNS + 1) * NUM_CARDS
UNDER: Final = BOARD_SIZE  # int8 (52,): the card that each card lies on, face down or not; BASE; NOT_IN_COLUMN
COLUMN: Final = UNDER + NUM_CARDS  # int8 (52,): the column of each card, or FOUNDATION
PLACE: Final = COLUMN + NUM_CARDS  # int8 (52,): the index of each card in its column, from the base
HEIGHTS: Final = PLACE + NUM_CARDS  # int8 (7,): cards in each column
DOWN: Final = HEIGHTS + NUM_COLUMNS  # int8 (7,): face-down cards in each column
MAX_GROUP: Final = DOWN + NUM_COLUMNS  # int8: from the rules
FOUNDATION_POINTS: Final = MAX_GROUP + 1  # int8: from the rules
TURN_POINTS: Final = FOUNDATION_POINTS + 1  # int8: from the rules
_WORDS: Final = (TURN_POINTS + 8) // 8 * 8  # words start at a multiple of 8 bytes
ACCEPTS: Final = _WORDS  # int64 (4,): for k, the cards that may lie on the k-th suit after their own; from the rules
FACE_UP: Final = ACCEPTS + 8 * NUM_SUITS  # int64: the set of cards that lie face up in a column
LASTS: Final = FACE_UP + 8  # int64: the set of cards that are the last of their column
GONE: Final = LASTS + 8  # int64: the set of cards on the foundations
KEY: Final = GONE + 8  # int64: the key of the position, see `position_key`
SCORE: Final = KEY + 8  # int64
MOVES: Final = SCORE + 8  # int64: moves made, undone ones included
ROW: Final = (MOVES + 8 + 63) // 64 * 64  # whole cache lines

_LAST_COLUMN: Final = (NUM_COLUMNS - 1) * NUM_CARDS
assert _LAST_COLUMN % 8 == 0
_DOWN_BYTES: Final = (1 << 8 * NUM_COLUMNS) - 1
_BYTE_SUM: Final = 0x0101010101010101
assert NUM_COLUMNS < 8
# Sets of cards are int64 with bit `card` set.
_ONE: Final = int64(1)
ALL_CARDS: Final = (1 << NUM_CARDS) - 1
ONE_RANK: Final = sum(1 << suit * NUM_RANKS for suit in range(NUM_SUITS))  # the aces; << r for rank r
KINGS: Final = ONE_RANK << NUM_RANKS - 1

# ---- the record of a move: action | source << SOURCE_SHIFT | turned << TURNED_SHIFT ---------------
SOURCE_SHIFT: Final = 9
TURNED_SHIFT: Final = 12
ACTION_BITS: Final = (1 << SOURCE_SHIFT) - 1
_SOURCE_BITS: Final = (1 << TURNED_SHIFT - SOURCE_SHIFT) - 1

_HEIGHTS: Final = np.array(DEAL_HEIGHTS, np.int8)
_DOWN: Final = np.array(DEAL_FACE_DOWN, np.int8)


def accepts(rules: Rules, under: int, suit: int) -> bool:
    """Whether a card of `suit` may lie on a card of suit `under` in a column, if it is one rank lower."""
    match rules.build:
        case Build.SAME_SUIT:
            return suit == under
        case Build.ANY_SUIT:
            return True
        case Build.OTHER_COLOUR:
            return (suit in RED_SUITS) != (under in RED_SUITS)


def _accepted_cards(rules: Rules, turn: int) -> int:
    """The set of cards that may lie on a card of the suit that comes `turn` suits after their own, round the four."""
    one_suit = (1 << NUM_RANKS) - 1
    suits = [suit for suit in range(NUM_SUITS) if accepts(rules, (suit + turn) % NUM_SUITS, suit)]
    return sum(one_suit << suit * NUM_RANKS for suit in suits)


def new_rows(number: int, rules: Rules) -> NDArray[np.int8]:
    """Rows int8 (number, ROW) for games under `rules`; `deal` or `arrange` each before use."""
    rows = np.zeros((number, ROW), np.int8)
    rows[:, MAX_GROUP] = rules.max_group
    rows[:, FOUNDATION_POINTS] = rules.foundation_points
    rows[:, TURN_POINTS] = rules.turn_points
    accepted = rows[:, ACCEPTS : ACCEPTS + 8 * NUM_SUITS].view(np.int64)
    accepted[:] = [_accepted_cards(rules, turn) for turn in range(NUM_SUITS)]
    return rows


def word(row: NDArray[np.int8], at: int) -> int:
    """The int64 field at offset `at` (KEY, SCORE, MOVES, FACE_UP), read from Python."""
    return int(row[at : at + 8].view(np.int64)[0])


@kernel
def _bond(card: int, under: int) -> int:
    """The key's term for `card` lying on `under` (a card or BASE)."""
    return int64(mix(np.uint64(card * 64 + under + 1)))


@kernel
def _veil(card: int) -> int:
    """The key's term for `card` lying face down."""
    return int64(mix(np.uint64(card * 64 + 63)))


@kernel
def lay(row: NDArray[np.int8], cards: NDArray[np.int8], heights: NDArray[np.int8], down: NDArray[np.int8]) -> None:
    """Lay `cards` (int8, column after column from their bases) out; COUNTS are already written."""
    for at in range(0, _LAST_COLUMN, 8):
        store64(row, at, int64(EMPTY))
    for at in range(COUNTS + NUM_SUITS, BOARD_SIZE):
        row[at] = EMPTY
    for card in range(NUM_CARDS):
        row[COLUMN + card] = FOUNDATION
        row[UNDER + card] = NOT_IN_COLUMN
        row[PLACE + card] = 0
    face_up = int64(0)
    lasts = int64(0)
    gone = int64(ALL_CARDS)
    k = 0
    for column in range(NUM_COLUMNS):
        under = BASE
        row[HEIGHTS + column] = heights[column]
        row[DOWN + column] = down[column]
        for place in range(heights[column]):
            card = int64(cards[k])
            k += 1
            row[UNDER + card] = under
            row[COLUMN + card] = column
            row[PLACE + card] = place
            gone ^= _ONE << card
            if place < down[column]:
                row[column * NUM_CARDS + place] = HIDDEN
            else:
                row[column * NUM_CARDS + place] = card
                face_up |= _ONE << card
            under = card
        if under != BASE:
            lasts |= _ONE << under
    # The cards may have come from there, see `deal`.
    for at in range(_LAST_COLUMN + heights[NUM_COLUMNS - 1], COUNTS):
        row[at] = EMPTY
    store64(row, FACE_UP, face_up)
    store64(row, LASTS, lasts)
    store64(row, GONE, gone)
    store64(row, KEY, position_key(row))
    store64(row, SCORE, int64(0))
    store64(row, MOVES, int64(0))


@kernel
def deal(row: NDArray[np.int8], number: int) -> None:
    """Start the deal `number` (0 to 2^35 - 1, not checked) in `row`."""
    # Shuffled where the last column will lie: it is laid from its base, and never reaches what it still has to read.
    deck = row[_LAST_COLUMN:COUNTS]
    shuffle(number, deck)
    for suit in range(NUM_SUITS):
        row[COUNTS + suit] = 0
    lay(row, deck, _HEIGHTS, _DOWN)


def arrange(row: NDArray[np.int8], position: Arrangement) -> None:
    """Start a game in `row` from any arrangement, with score 0."""
    row[COUNTS : COUNTS + NUM_SUITS] = position.foundations
    lay(
        row,
        np.array([card for column in position.columns for card in column], np.int8),
        np.array([len(column) for column in position.columns], np.int8),
        np.array(position.face_down, np.int8),
    )


def clear(row: NDArray[np.int8]) -> None:
    """Leave `row` without any card: an empty table, which has no legal action and is not won."""
    row[COUNTS : COUNTS + NUM_SUITS] = 0
    nothing = np.zeros(NUM_COLUMNS, np.int8)
    lay(row, np.zeros(0, np.int8), nothing, nothing)
    row[GONE : GONE + 8] = 0


@kernel
def foundation_cards(row: NDArray[np.int8]) -> int:
    """How many cards lie on the foundations."""
    return count_bits(load64(row, GONE))


@kernel
def is_won(row: NDArray[np.int8]) -> bool:
    """Whether all cards lie on the foundations."""
    return load64(row, GONE) == ALL_CARDS


@kernel
def face_down_cards(row: NDArray[np.int8]) -> int:
    """How many cards lie face down."""
    # The bytes of DOWN are the lowest of a word; multiplied so, the highest byte is their sum.
    return (load64(row, DOWN) & _DOWN_BYTES) * _BYTE_SUM >> 56


@kernel
def guests(row: NDArray[np.int8], hosts: int, turn: int) -> int:
    """The set of cards of the suits `turn` before those of `hosts`, round the four, that may lie on one of `hosts`."""
    shift = turn * NUM_RANKS
    one_lower = (hosts >> shift | hosts << (NUM_CARDS - shift)) >> 1
    return one_lower & ~int64(KINGS) & load64(row, ACCEPTS + 8 * turn) & ALL_CARDS


@kernel
def legal(row: NDArray[np.int8], take_back: bool, idle_moves: bool, actions: NDArray[np.int16]) -> int:
    """Write the legal actions into `actions`, int16 (MAX_LEGAL,), and return their number.

    A won game has none. Without `take_back` no card comes back from a foundation; without
    `idle_moves` no king that is its whole column goes to an empty one.
    """
    # Sets of cards, so that what can move is found with no branch a column: those are hard to predict.
    count = 0
    face_up = load64(row, FACE_UP)
    lasts = load64(row, LASTS)
    gone = load64(row, GONE)
    rising = lasts & ((gone << 1) | ONE_RANK) & ~gone
    while rising != 0:
        actions[count] = lowest_bit(rising) * NUM_DESTINATIONS + FOUNDATION
        count += 1
        rising &= rising - 1
    tops = int64(0)
    if take_back and face_up != 0:
        tops = gone & (~(gone >> 1) | KINGS)
    for turn in range(NUM_SUITS):
        if load64(row, ACCEPTS + 8 * turn) == 0:
            continue
        movable = guests(row, lasts, turn) & (face_up | tops)
        while movable != 0:
            card = lowest_bit(movable)
            movable &= movable - 1
            host = card + 1 + turn * NUM_RANKS
            if host >= NUM_CARDS:
                host -= NUM_CARDS
            source = row[COLUMN + card]
            target = int64(row[COLUMN + host])
            actions[count] = card * NUM_DESTINATIONS + target
            group = row[HEIGHTS + source] - row[PLACE + card] if source != FOUNDATION else 1
            # Written in any case, and kept or not: no branch.
            count += int64(source != target and group <= row[MAX_GROUP])
    if count_bits(lasts) < NUM_COLUMNS:
        for column in range(NUM_COLUMNS):
            if row[HEIGHTS + column] == 0:
                movable = (face_up | tops) & KINGS
                while movable != 0:
                    card = lowest_bit(movable)
                    movable &= movable - 1
                    source = row[COLUMN + card]
                    place = row[PLACE + card]
                    if source == FOUNDATION or (
                        row[HEIGHTS + source] - place <= row[MAX_GROUP] and (place > 0 or idle_moves)
                    ):
                        actions[count] = card * NUM_DESTINATIONS + column
                        count += 1
    return count


@kernel
def apply(row: NDArray[np.int8], action: int) -> int:
    """Make a legal move (not checked) and return its record, for `undo` and `gain`.

    The face-down card that becomes the last of its column is turned up.
    """
    card = action // NUM_DESTINATIONS
    target = action - card * NUM_DESTINATIONS
    suit = card // NUM_RANKS
    source = int64(row[COLUMN + card])
    under = int64(row[UNDER + card])
    key = load64(row, KEY)
    face_up = load64(row, FACE_UP)
    lasts = load64(row, LASTS)
    gone = load64(row, GONE)
    score = load64(row, SCORE)
    if target == FOUNDATION:
        height = row[HEIGHTS + source] - 1
        row[HEIGHTS + source] = height
        row[source * NUM_CARDS + height] = EMPTY
        row[COUNTS + suit] += 1
        row[COLUMN + card] = FOUNDATION
        row[UNDER + card] = NOT_IN_COLUMN
        row[PLACE + card] = 0
        face_up &= ~(_ONE << card)
        lasts &= ~(_ONE << card)
        gone |= _ONE << card
        key ^= _bond(card, under)
        score += row[FOUNDATION_POINTS]
    else:
        height = int64(row[HEIGHTS + target])
        onto = int64(row[target * NUM_CARDS + height - 1]) if height > 0 else BASE
        row[UNDER + card] = onto
        key ^= _bond(card, onto)
        lasts &= ~(_ONE << onto)
        if source == FOUNDATION:
            row[COUNTS + suit] -= 1
            row[target * NUM_CARDS + height] = card
            row[COLUMN + card] = target
            row[PLACE + card] = height
            row[HEIGHTS + target] = height + 1
            face_up |= _ONE << card
            lasts |= _ONE << card
            gone &= ~(_ONE << card)
        else:
            key ^= _bond(card, under)
            _move_group(row, source, int64(row[PLACE + card]), target)
    turned = 0
    if source != FOUNDATION:
        height = int64(row[HEIGHTS + source])
        if height > 0:
            lasts |= _ONE << under
        if height > 0 and height == row[DOWN + source]:
            row[DOWN + source] = height - 1
            row[source * NUM_CARDS + height - 1] = under
            face_up |= _ONE << under
            key ^= _veil(under)
            score += row[TURN_POINTS]
            turned = 1
    store64(row, KEY, key)
    store64(row, FACE_UP, face_up)
    store64(row, LASTS, lasts)
    store64(row, GONE, gone)
    store64(row, SCORE, score)
    store64(row, MOVES, load64(row, MOVES) + 1)
    return action | source << SOURCE_SHIFT | turned << TURNED_SHIFT


@kernel
def _move_group(row: NDArray[np.int8], source: int, place: int, target: int) -> None:
    """Move the cards from index `place` of column `source` upwards onto column `target`."""
    old = int64(row[HEIGHTS + source])
    height = int64(row[HEIGHTS + target])
    for i in range(place, old):
        moving = int64(row[source * NUM_CARDS + i])
        row[source * NUM_CARDS + i] = EMPTY
        row[target * NUM_CARDS + height] = moving
        row[COLUMN + moving] = target
        row[PLACE + moving] = height
        height += 1
    row[HEIGHTS + source] = place
    row[HEIGHTS + target] = height


@kernel
def gain(row: NDArray[np.int8], record: int) -> int:
    """The points that the move of `record` earned."""
    points = row[TURN_POINTS] * (record >> TURNED_SHIFT)
    if (record & ACTION_BITS) % NUM_DESTINATIONS == FOUNDATION:
        points += row[FOUNDATION_POINTS]
    return points


@kernel
def ends(record: int) -> tuple[int, int]:
    """Where the move of `record` came from and went to: columns, or FOUNDATION."""
    return (record >> SOURCE_SHIFT) & _SOURCE_BITS, (record & ACTION_BITS) % NUM_DESTINATIONS


@kernel
def moved(record: int) -> int:
    """The card that the move of `record` moved."""
    return (record & ACTION_BITS) // NUM_DESTINATIONS


@kernel
def is_take_back(record: int) -> bool:
    """Whether the move of `record` took a card back from its foundation."""
    return (record >> SOURCE_SHIFT) & _SOURCE_BITS == FOUNDATION


@kernel
def undo(row: NDArray[np.int8], record: int) -> None:
    """Take back the move of `record`, which must be the last one made. The move counter stays."""
    action = record & ACTION_BITS
    source = (record >> SOURCE_SHIFT) & _SOURCE_BITS
    card = action // NUM_DESTINATIONS
    target = action - card * NUM_DESTINATIONS
    suit = card // NUM_RANKS
    key = load64(row, KEY)
    face_up = load64(row, FACE_UP)
    lasts = load64(row, LASTS)
    gone = load64(row, GONE)
    store64(row, SCORE, load64(row, SCORE) - gain(row, record))
    under = BASE
    height = int64(0)
    if source != FOUNDATION:
        height = int64(row[HEIGHTS + source])
        if height > 0:
            under = int64(row[source * NUM_CARDS + height - 1])
            lasts &= ~(_ONE << under)
        if record >> TURNED_SHIFT:
            row[DOWN + source] = height
            row[source * NUM_CARDS + height - 1] = HIDDEN
            face_up &= ~(_ONE << under)
            key ^= _veil(under)
    if target == FOUNDATION:
        row[COUNTS + suit] -= 1
        row[source * NUM_CARDS + height] = card
        row[COLUMN + card] = source
        row[PLACE + card] = height
        row[HEIGHTS + source] = height + 1
        face_up |= _ONE << card
        lasts |= _ONE << card
        gone &= ~(_ONE << card)
    else:
        onto = int64(row[UNDER + card])
        key ^= _bond(card, onto)
        if onto != BASE:
            lasts |= _ONE << onto
        if source == FOUNDATION:
            under = NOT_IN_COLUMN
            last = row[HEIGHTS + target] - 1
            row[HEIGHTS + target] = last
            row[target * NUM_CARDS + last] = EMPTY
            row[COUNTS + suit] += 1
            row[COLUMN + card] = FOUNDATION
            row[PLACE + card] = 0
            face_up &= ~(_ONE << card)
            lasts &= ~(_ONE << card)
            gone |= _ONE << card
        else:
            _move_group(row, target, int64(row[PLACE + card]), source)
    if under != NOT_IN_COLUMN:
        key ^= _bond(card, under)
    row[UNDER + card] = under
    store64(row, KEY, key)
    store64(row, FACE_UP, face_up)
    store64(row, LASTS, lasts)
    store64(row, GONE, gone)


@kernel
def position_key(row: NDArray[np.int8]) -> int:
    """The key of the position, from scratch; the row's KEY field is the same, kept up move by move.

    It is the XOR of a random word for each pair (card, what it lies on) in the columns and for each
    face-down card. So it does not depend on which column is which, nor on score or moves.
    """
    key = int64(0)
    face_up = load64(row, FACE_UP)
    for card in range(NUM_CARDS):
        under = int64(row[UNDER + card])
        in_column = int64(under != NOT_IN_COLUMN)
        # Multiplied, not branched on: so the loop runs in vectors.
        key ^= in_column * (_bond(card, under) ^ (~face_up >> card & 1) * _veil(card))
    return key


@kernel
def refusal(row: NDArray[np.int8], action: int, take_back: bool, idle_moves: bool) -> int:
    """Why `action` is refused: a `Rejection`, NONE for a legal one.

    Whether a card is face down is settled first, so that no answer depends on where it lies.
    """
    actions = np.empty(MAX_LEGAL, np.int16)
    for i in range(legal(row, take_back, idle_moves, actions)):
        if actions[i] == action:
            return int64(Rejection.NONE)
    card = action // NUM_DESTINATIONS
    target = action - card * NUM_DESTINATIONS
    suit = card // NUM_RANKS
    rank = card - suit * NUM_RANKS
    source = row[COLUMN + card]
    place = row[PLACE + card]
    if is_won(row):
        return int64(Rejection.GAME_WON)
    if source != FOUNDATION and not (load64(row, FACE_UP) >> card) & 1:
        return int64(Rejection.FACE_DOWN)
    if target == FOUNDATION:
        if source == FOUNDATION:
            return int64(Rejection.ON_FOUNDATION)
        if row[HEIGHTS + source] != place + 1:
            return int64(Rejection.NOT_LAST)
        return int64(Rejection.FOUNDATION_ORDER)
    if source == FOUNDATION and row[COUNTS + suit] != rank + 1:
        return int64(Rejection.NOT_TOP)
    if source == target:
        return int64(Rejection.SAME_COLUMN)
    height = row[HEIGHTS + target]
    if height == 0:
        if not (int64(KINGS) >> card) & 1:
            return int64(Rejection.EMPTY_NEEDS_KING)
    else:
        last = int64(row[target * NUM_CARDS + height - 1])
        last_suit = last // NUM_RANKS
        turn = (last_suit - suit) % NUM_SUITS
        if last - last_suit * NUM_RANKS != rank + 1 or not (load64(row, ACCEPTS + 8 * turn) >> card) & 1:
            return int64(Rejection.DOES_NOT_FIT)
    if source == FOUNDATION:
        return int64(Rejection.TAKE_BACK_OFF)
    if row[HEIGHTS + source] - place > row[MAX_GROUP]:
        return int64(Rejection.GROUP_TOO_LARGE)
    return int64(Rejection.IDLE_MOVE)
