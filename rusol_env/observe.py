"""Observations: what a player sees of a game, as arrays, and back again.

``"cards"``: float32 (52, 24) in [0, 1], a row per card id. Columns:

    0-6    1: lies visible in that column        11     face-down cards below it in its column / 6
    7      1: lies on its foundation             12     1: last card of its column
    8      1: unseen (face down)                 13     1: base of its column
    9      index from the column's base / 51     14     1: lies directly on a face-down card
    10     cards on top of it / 51               15     1: lies directly on its successor in suit
    16-23  1: may move to destination 0-7 (always the action mask's row, so all 1 in a finished game)

Of an unseen card nothing but column 8 is set. Under ``thoughtful`` its columns 0-6 and 9-15 are
filled as well, and 8 stays 1.

``"board"``: int8 (8, 52): rows 0-6 the columns from the base, -1 = nothing there, 0-51 a card, 52 a
face-down card (``thoughtful``: 53 + its id); row 7 the counts of the four foundations, then -1.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from rusol_env._jit import int64, kernel, load64, lowest_bit, store64
from rusol_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.engine import (
    ALL_CARDS,
    BOARD_SIZE,
    COLUMN,
    COUNTS,
    DOWN,
    EMPTY,
    FACE_UP,
    GONE,
    HEIGHTS,
    HIDDEN,
    KINGS,
    UNDER,
    ends,
    moved,
)
from rusol_env.engine import PLACE as PLACE_AT
from rusol_env.rules import FOUNDATION, NUM_COLUMNS, NUM_DESTINATIONS

# Columns of the "cards" observation.
ON_FOUNDATION: Final = FOUNDATION
UNSEEN: Final = 8
PLACE: Final = 9
CARDS_ON_TOP: Final = 10
FACE_DOWN_BELOW: Final = 11
LAST: Final = 12
AT_BASE: Final = 13
ON_FACE_DOWN: Final = 14
ON_SUCCESSOR: Final = 15
LEGAL: Final = 16
NUM_FEATURES: Final = LEGAL + NUM_DESTINATIONS

_DOWN_SCALE: Final = np.float32(NUM_COLUMNS - 1)
# Looked up: three divisions a card would take half of the time that an observation takes.
_PLACES: Final = np.arange(NUM_CARDS, dtype=np.float32) / np.float32(NUM_CARDS - 1)
_DOWNS: Final = np.arange(NUM_CARDS, dtype=np.float32) / _DOWN_SCALE
# Words that hold a column of the board.
_COLUMN_WORDS: Final = (NUM_CARDS + 7) // 8
_CARDS_SIZE: Final = NUM_CARDS * NUM_FEATURES * 4
# "board" under `thoughtful`: a face-down card is this plus its id.
REVEALED: Final = NUM_CARDS + 1


class Observation(StrEnum):
    """The kinds of observation."""

    CARDS = "cards"
    BOARD = "board"


def observation_space(kind: Observation, thoughtful: bool) -> Box:
    """The Gymnasium space of observations of that kind."""
    if kind is Observation.CARDS:
        return Box(0.0, 1.0, (NUM_CARDS, NUM_FEATURES), np.float32)
    highest = REVEALED + NUM_CARDS - 1 if thoughtful else HIDDEN
    return Box(EMPTY, highest, (NUM_COLUMNS + 1, NUM_CARDS), np.int8)


@kernel
def encode_board(row: NDArray[np.int8], mask: NDArray[np.int8], thoughtful: bool, out: NDArray[np.int8]) -> None:
    """Write the "board" observation of the game in `row` into `out`, int8 (8, 52). `mask` is not read."""
    for at in range(0, BOARD_SIZE, 8):
        store64(out, at, load64(row, at))
    if thoughtful:
        for column in range(NUM_COLUMNS):
            down = int64(row[DOWN + column])
            if row[HEIGHTS + column] > 0:
                card = int64(row[column * NUM_CARDS + down])
                for place in range(down - 1, -1, -1):
                    card = int64(row[UNDER + card])
                    out[column, place] = REVEALED + card


@kernel
def encode_cards(row: NDArray[np.int8], mask: NDArray[np.int8], thoughtful: bool, out: NDArray[np.float32]) -> None:
    """Write the "cards" observation of the game in `row` into `out`, float32 (52, 24).

    `mask` is its action mask, int8 (416,). A face-down card's identity is read under `thoughtful` only.
    """
    for at in range(0, _CARDS_SIZE, 8):
        store64(out, at, 0)
    for card in range(NUM_CARDS):
        moves = load64(mask, card * NUM_DESTINATIONS)
        while moves != 0:
            out[card, LEGAL + lowest_bit(moves) // 8] = 1.0
            moves &= moves - 1
    gone = load64(row, GONE)
    face_up = load64(row, FACE_UP)
    unseen = ~(gone | face_up) & ALL_CARDS
    known = face_up | unseen if thoughtful else face_up
    while gone != 0:
        out[lowest_bit(gone), ON_FOUNDATION] = 1.0
        gone &= gone - 1
    while unseen != 0:
        out[lowest_bit(unseen), UNSEEN] = 1.0
        unseen &= unseen - 1
    while known != 0:
        _encode_place(row, lowest_bit(known), thoughtful, out)
        known &= known - 1


@kernel
def _encode_place(row: NDArray[np.int8], card: int, thoughtful: bool, out: NDArray[np.float32]) -> None:
    """Where a card of a column lies; the card's features must be 0 before."""
    column = int64(row[COLUMN + card])
    place = int64(row[PLACE_AT + card])
    down = int64(row[DOWN + column])
    on_top = int64(row[HEIGHTS + column]) - 1 - place
    out[card, column] = 1.0
    out[card, PLACE] = _PLACES[place]
    out[card, CARDS_ON_TOP] = _PLACES[on_top]
    out[card, FACE_DOWN_BELOW] = _DOWNS[min(place, down)]
    out[card, LAST] = on_top == 0
    out[card, AT_BASE] = place == 0
    out[card, ON_FACE_DOWN] = 0 < place <= down
    # What the lowest face-up card lies on is hidden.
    on_successor = int64(row[UNDER + card]) == card + 1 and not (int64(KINGS) >> card) & 1
    out[card, ON_SUCCESSOR] = on_successor and (place > down or thoughtful)


@kernel
def update_board(row: NDArray[np.int8], record: int, out: NDArray[np.int8]) -> None:
    """Bring the "board" observation `out` from before the move of `record` up to date (not `thoughtful`)."""
    source, target = ends(record)
    for column in (source, target):
        if column != FOUNDATION:
            # Whole words, so a few cells of what follows too.
            for word in range(_COLUMN_WORDS):
                at = column * NUM_CARDS + 8 * word
                store64(out, at, load64(row, at))
    store64(out, COUNTS, load64(row, COUNTS))


@kernel
def update_cards(row: NDArray[np.int8], record: int, out: NDArray[np.float32]) -> None:
    """Bring the "cards" observation `out` from before the move of `record` up to date (not `thoughtful`).

    Columns 16 to 23 stay as they are; see `mark_moves`.
    """
    source, target = ends(record)
    for column in (source, target):
        if column != FOUNDATION:
            for place in range(int64(row[DOWN + column]), int64(row[HEIGHTS + column])):
                card = int64(row[column * NUM_CARDS + place])
                _clear_place(card, out)
                _encode_place(row, card, False, out)
    if target == FOUNDATION:
        card = moved(record)
        _clear_place(card, out)
        out[card, ON_FOUNDATION] = 1.0


@kernel
def _clear_place(card: int, out: NDArray[np.float32]) -> None:
    for at in range(0, LEGAL * 4, 8):
        store64(out, card * NUM_FEATURES * 4 + at, 0)


@kernel
def mark_moves(actions: NDArray[np.int16], count: int, legal: int, out: NDArray[np.float32]) -> None:
    """Write `legal`, 1 or 0, for the first `count` of `actions` into a "cards" observation."""
    for k in range(count):
        card = actions[k] // NUM_DESTINATIONS
        out[card, LEGAL + actions[k] - card * NUM_DESTINATIONS] = legal


class Visible(NamedTuple):
    """What a player sees of a position."""

    columns: tuple[tuple[int | None, ...], ...]
    """Seven columns of card ids from the base; None is a face-down card."""
    foundations: tuple[int, ...]
    """How many cards lie on each foundation."""


def decode_board(observation: NDArray[np.int8]) -> Visible:
    """The visible position that a "board" observation (8, 52) shows."""
    columns = tuple(
        tuple(None if cell >= HIDDEN else cell for cell in column if cell != EMPTY)
        for column in observation[:NUM_COLUMNS].tolist()
    )
    return Visible(columns, tuple(observation[NUM_COLUMNS, :NUM_SUITS].tolist()))


def decode_cards(observation: NDArray[np.float32]) -> Visible:
    """The visible position that a "cards" observation (52, 24) shows."""
    seen: NDArray[Any] = observation[:, UNSEEN] == 0
    columns: list[tuple[int | None, ...]] = []
    for column in range(NUM_COLUMNS):
        cards = np.flatnonzero(seen & (observation[:, column] == 1))
        cards = cards[np.argsort(observation[cards, PLACE])]
        down = 0 if len(cards) == 0 else round(float(observation[cards[0], FACE_DOWN_BELOW] * _DOWN_SCALE))
        columns.append((None,) * down + tuple(cards.tolist()))
    on_foundation = observation[:, ON_FOUNDATION].reshape(NUM_SUITS, NUM_RANKS)
    return Visible(tuple(columns), tuple(round(float(count)) for count in on_foundation.sum(axis=1)))


# The kernels above go by whole words.
assert BOARD_SIZE % 8 == 0
assert _CARDS_SIZE % 8 == 0
