"""Observations: what a player sees of a game, as arrays, and back again.

``"cards"``: float32 (52, 24) in [0, 1], a row per card id. Columns::

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

from rusol_env._jit import int64, kernel, load64, store64
from rusol_env.cards import KING, NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.engine import BASE, BOARD_SIZE, COUNTS, DOWN, EMPTY, HEIGHTS, HIDDEN, UNDER
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

_PLACE_SCALE: Final = np.float32(NUM_CARDS - 1)
_DOWN_SCALE: Final = np.float32(NUM_COLUMNS - 1)
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
    for card in range(NUM_CARDS):
        for feature in range(LEGAL):
            out[card, feature] = 0.0
        for target in range(NUM_DESTINATIONS):
            out[card, LEGAL + target] = mask[card * NUM_DESTINATIONS + target]
        out[card, UNSEEN] = 1.0
    for suit in range(NUM_SUITS):
        for rank in range(row[COUNTS + suit]):
            out[suit * NUM_RANKS + rank, UNSEEN] = 0.0
            out[suit * NUM_RANKS + rank, ON_FOUNDATION] = 1.0
    for column in range(NUM_COLUMNS):
        height = int64(row[HEIGHTS + column])
        down = int64(row[DOWN + column])
        if height == 0:
            continue
        under = HIDDEN if down > 0 else EMPTY
        if thoughtful:
            # Walk down from the first face-up card: only here does a face-down card become known.
            card = int64(row[column * NUM_CARDS + down])
            for place in range(down - 1, -1, -1):
                card = int64(row[UNDER + card])
                below = int64(row[UNDER + card])
                _encode_place(card, column, place, height, place, EMPTY if below == BASE else HIDDEN, out)
                out[card, ON_SUCCESSOR] = below == card + 1 and card % NUM_RANKS != KING
                if place == down - 1:
                    under = card
        for place in range(down, height):
            card = int64(row[column * NUM_CARDS + place])
            out[card, UNSEEN] = 0.0
            _encode_place(card, column, place, height, down, HIDDEN if place == down > 0 else under, out)
            out[card, ON_SUCCESSOR] = under == card + 1 and card % NUM_RANKS != KING
            under = card


@kernel
def _encode_place(
    card: int, column: int, place: int, height: int, down: int, under: int, out: NDArray[np.float32]
) -> None:
    """Where a card of a column lies; `under` is the cell below it (EMPTY: it is the base)."""
    out[card, column] = 1.0
    out[card, PLACE] = np.float32(place) / _PLACE_SCALE
    out[card, CARDS_ON_TOP] = np.float32(height - 1 - place) / _PLACE_SCALE
    out[card, FACE_DOWN_BELOW] = np.float32(down) / _DOWN_SCALE
    out[card, LAST] = place == height - 1
    out[card, AT_BASE] = under == EMPTY
    out[card, ON_FACE_DOWN] = under == HIDDEN


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


# The copy above goes by whole words.
assert BOARD_SIZE % 8 == 0
