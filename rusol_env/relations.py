"""What a structured network reads: the "cards" observation, some relations between its cards, and the legal moves.

There is a row for each card. `rusol_env.network` plays with such networks and `agents/network.py` trains them; both
read their inputs from the kernel here, which knows nothing but the observation.

The relations of a card. Of one on its foundation only 16 to 18 are set, of an unseen one 0 and 1 too::

    0   1: it is the next of its suit to go up        10  the fewest cards that go up before one of the face-up
    1   cards of its suit that go up before it / 12       cards below it, in that one's suit, / 13; 1 if none lies there
    2   1: its successor in suit lies on top of it    11  cards one rank higher in other columns / 4
    3   1: it lies below it, but not directly         12  those of them that are the last of their column / 4
    4   1: it lies in another column                  13  the fewest cards on top of one of them / 20; 1 if none
    5   cards on top of its successor / 20            14  cards one rank lower in other columns / 4
    6   1: its predecessor in suit lies on top of it  15  cards one rank higher on top of it / 4
    7   1: it lies below it                           16  unseen cards / 21
    8   lower cards of its suit below it / 12         17  empty columns / 4
    9   lower cards of its suit on top of it / 12     18  cards on the foundations / 52
                                                      19  face-down cards in its column / 6

The features of a move::

    0   1: to the foundation                          5   1: it turns a card up
    1   1: and no lower card could want to lie on it  6   face-down cards in its column / 6, if it does
    2   1: to an empty column                         7   1: it empties its column
    3   1: onto the successor in suit                 8   1: it leaves a card one rank higher, of any suit
    4   cards of the column it goes to whose          9   cards that move / 20
        successor comes to lie on top of them / 5
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import kernel
from rusol_env.cards import KING, NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.observe import FACE_DOWN_BELOW, LEGAL, NUM_FEATURES, ON_FOUNDATION, PLACE, UNSEEN
from rusol_env.rules import FOUNDATION, NUM_COLUMNS, NUM_DESTINATIONS

# Rows that are no cards, by their place after the rows of all cards.
NO_CARD: Final = 0
FACE_DOWN_CARD: Final = 1
EMPTY_COLUMN: Final = 2
ON_TOP_OF_NONE: Final = 3
FOUNDATION_ROW: Final = 4
NUM_SPECIALS: Final = 5
# What a card's row is mixed with: the card it lies on, the one that lies on it, its successor and predecessor in suit.
NUM_NEIGHBOURS: Final = 4
NUM_RELATIONS: Final = 20
# The rows that a move is weighed by: the moved card, its four neighbours, the card it goes to.
NUM_CONCERNED: Final = NUM_NEIGHBOURS + 2
NUM_MOVE_FEATURES: Final = 10
# Numbers of cards on top are given as shares of this.
_MANY: Final = 20


class Inputs(NamedTuple):
    """What a structured network reads of N positions with M legal moves in all.

    Rows are numbered through the batch: card c of position i is row 52 i + c, and the five special rows (no card, a
    face-down card, an empty column, nothing on top, a foundation) follow after all cards, from 52 N.
    """

    features: NDArray[np.float32]
    """float32 (N, 52, 24 + 20): the "cards" observation, then the relations, see above."""
    neighbours: NDArray[np.int64]
    """int64 (N, 52, 4): the rows of the card below, the card on top, the successor and the predecessor in suit."""
    games: NDArray[np.int64]
    """int64 (M,): which position a move belongs to, ascending."""
    actions: NDArray[np.int64]
    """int64 (M,): the moves, 0 to 415."""
    concerned: NDArray[np.int64]
    """int64 (M, 6): the rows a move is weighed by."""
    moves: NDArray[np.float32]
    """float32 (M, 10): the features of moves, see above."""


@kernel
def _relate(
    cards: NDArray[np.float32],
    features: NDArray[np.float32],
    neighbours: NDArray[np.int64],
    games: NDArray[np.int64],
    actions: NDArray[np.int64],
    concerned: NDArray[np.int64],
    moves: NDArray[np.float32],
    table: NDArray[np.int64],
    columns: NDArray[np.int64],
    places: NDArray[np.int64],
    heights: NDArray[np.int64],
    downs: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Fill the arrays of `Inputs`; the last six are for scratch. Returns the number of moves."""
    number = cards.shape[0]
    special = number * NUM_CARDS
    total = 0
    for i in range(number):
        columns[:] = -1
        # So that what is no position of a game has nothing out of bounds either.
        table[:] = 0
        heights[:] = 0
        downs[:] = 0
        counts[:] = 0
        unseen = 0
        for card in range(NUM_CARDS):
            for k in range(NUM_FEATURES):
                features[i, card, k] = cards[i, card, k]
            if cards[i, card, ON_FOUNDATION] > 0:
                counts[card // NUM_RANKS] += 1
                continue
            if cards[i, card, UNSEEN] > 0:
                unseen += 1
                continue
            for column in range(NUM_COLUMNS):
                if cards[i, card, column] > 0:
                    place = int(cards[i, card, PLACE] * (NUM_CARDS - 1) + 0.5)
                    columns[card] = column
                    places[card] = place
                    table[column * NUM_CARDS + place] = card
                    heights[column] = max(heights[column], place + 1)
                    downs[column] = int(cards[i, card, FACE_DOWN_BELOW] * (NUM_COLUMNS - 1) + 0.5)
        empty = 0
        up = 0
        lowest = NUM_RANKS
        for column in range(NUM_COLUMNS):
            empty += heights[column] == 0
        for suit in range(NUM_SUITS):
            up += counts[suit]
            lowest = min(lowest, counts[suit])
        for card in range(NUM_CARDS):
            rank = card % NUM_RANKS
            suit = card // NUM_RANKS
            base = i * NUM_CARDS
            neighbours[i, card, 0] = special + NO_CARD
            neighbours[i, card, 1] = special + ON_TOP_OF_NONE
            neighbours[i, card, 2] = base + card + 1 if rank != KING else special + NO_CARD
            neighbours[i, card, 3] = base + card - 1 if rank != 0 else special + FOUNDATION_ROW
            at = NUM_FEATURES
            for k in range(NUM_RELATIONS):
                features[i, card, at + k] = 0.0
            features[i, card, at + 16] = unseen / 21
            features[i, card, at + 17] = empty / NUM_SUITS
            features[i, card, at + 18] = up / NUM_CARDS
            if rank < counts[suit]:
                continue
            away = rank - counts[suit]
            features[i, card, at] = away == 0
            features[i, card, at + 1] = away / KING
            column = columns[card]
            if column < 0:
                continue
            place = places[card]
            if place > downs[column]:
                neighbours[i, card, 0] = base + table[column * NUM_CARDS + place - 1]
            elif place > 0:
                neighbours[i, card, 0] = special + FACE_DOWN_CARD
            if place < heights[column] - 1:
                neighbours[i, card, 1] = base + table[column * NUM_CARDS + place + 1]
            if rank != KING:
                other = card + 1
                if columns[other] == column:
                    features[i, card, at + 2] = places[other] > place
                    features[i, card, at + 3] = places[other] < place - 1
                elif columns[other] >= 0:
                    features[i, card, at + 4] = 1.0
                if columns[other] >= 0:
                    features[i, card, at + 5] = (heights[columns[other]] - 1 - places[other]) / _MANY
            if rank != 0 and columns[card - 1] == column:
                features[i, card, at + 6] = places[card - 1] > place
                features[i, card, at + 7] = places[card - 1] < place
            soonest = NUM_RANKS
            for k in range(downs[column], heights[column]):
                other = table[column * NUM_CARDS + k]
                if k < place:
                    soonest = min(soonest, other % NUM_RANKS - counts[other // NUM_RANKS])
                if other // NUM_RANKS == suit and other < card:
                    features[i, card, at + 8 + (k > place)] += 1 / KING
                if k > place and other % NUM_RANKS == rank + 1:
                    features[i, card, at + 15] += 1 / NUM_SUITS
            features[i, card, at + 10] = soonest / NUM_RANKS
            nearest = 1.0
            for other_suit in range(NUM_SUITS):
                other = other_suit * NUM_RANKS + rank + 1
                if rank != KING and columns[other] >= 0 and columns[other] != column:
                    above = heights[columns[other]] - 1 - places[other]
                    features[i, card, at + 11] += 1 / NUM_SUITS
                    features[i, card, at + 12] += (above == 0) / NUM_SUITS
                    nearest = min(nearest, above / _MANY)
                other -= 2
                if rank != 0 and columns[other] >= 0 and columns[other] != column:
                    features[i, card, at + 14] += 1 / NUM_SUITS
            features[i, card, at + 13] = nearest
            features[i, card, at + 19] = downs[column] / (NUM_COLUMNS - 1)
        for card in range(NUM_CARDS):
            column = columns[card]
            if column < 0:
                # A finished game's mask allows what is nowhere, and a game that takes cards back what is gone.
                continue
            place = places[card]
            rank = card % NUM_RANKS
            for target in range(NUM_DESTINATIONS):
                if cards[i, card, LEGAL + target] == 0:
                    continue
                games[total] = i
                actions[total] = card * NUM_DESTINATIONS + target
                concerned[total, 0] = i * NUM_CARDS + card
                for k in range(NUM_NEIGHBOURS):
                    concerned[total, 1 + k] = neighbours[i, card, k]
                for k in range(NUM_MOVE_FEATURES):
                    moves[total, k] = 0.0
                if target == FOUNDATION:
                    concerned[total, 5] = special + FOUNDATION_ROW
                    moves[total, 0] = 1.0
                    # Safe: no lower card that is out could want to lie on it.
                    moves[total, 1] = rank <= lowest + 1
                elif heights[target] == 0:
                    concerned[total, 5] = special + EMPTY_COLUMN
                    moves[total, 2] = 1.0
                else:
                    on = table[target * NUM_CARDS + heights[target] - 1]
                    concerned[total, 5] = i * NUM_CARDS + on
                    moves[total, 3] = on == card + 1
                    locks = 0
                    for k in range(downs[target], heights[target]):
                        other = table[target * NUM_CARDS + k]
                        if other % NUM_RANKS != KING and columns[other + 1] == column and places[other + 1] >= place:
                            locks += 1
                    moves[total, 4] = locks / 5
                if place > 0 and place == downs[column]:
                    moves[total, 5] = 1.0
                    moves[total, 6] = downs[column] / (NUM_COLUMNS - 1)
                elif place == 0:
                    moves[total, 7] = 1.0
                else:
                    moves[total, 8] = table[column * NUM_CARDS + place - 1] % NUM_RANKS == rank + 1
                moves[total, 9] = (heights[column] - place) / _MANY
                total += 1
    return total


def inputs(cards: NDArray[Any]) -> Inputs:
    """What a structured network reads of these "cards" observations.

    Args:
        cards: float32 (N, 52, 24), not `thoughtful`.

    Returns:
        the inputs; a move of a card that cannot be seen, as the mask of a finished game allows, is left out.

    Raises:
        ValueError: they have another shape, or values that are not from 0 to 1.
    """
    if cards.shape[1:] != (NUM_CARDS, NUM_FEATURES):
        raise ValueError(f"'cards' observations have the shape (N, {NUM_CARDS}, {NUM_FEATURES}), not {cards.shape}")
    cards = np.ascontiguousarray(cards, np.float32)
    number = len(cards)
    if number and not (cards.min() >= 0 and cards.max() <= 1):
        raise ValueError("'cards' observations have values from 0 to 1, and these have others")
    most = int((cards[:, :, LEGAL:] != 0).sum())
    found = Inputs(
        np.empty((number, NUM_CARDS, NUM_FEATURES + NUM_RELATIONS), np.float32),
        np.empty((number, NUM_CARDS, NUM_NEIGHBOURS), np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty((most, NUM_CONCERNED), np.int64),
        np.empty((most, NUM_MOVE_FEATURES), np.float32),
    )
    scratch = [np.empty(s, np.int64) for s in (NUM_COLUMNS * NUM_CARDS, NUM_CARDS, NUM_CARDS)]
    scratch += [np.empty(s, np.int64) for s in (NUM_COLUMNS, NUM_COLUMNS, NUM_SUITS)]
    total = _relate(cards, *found, *scratch)
    return found._replace(
        games=found.games[:total],
        actions=found.actions[:total],
        concerned=found.concerned[:total],
        moves=found.moves[:total],
    )
