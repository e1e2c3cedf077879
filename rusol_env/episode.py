"""One step of an episode on one game's row: refuse or play, reward, mask, end.

What the scalar environment and any batch of them share; a batch calls these kernels on ``rows[i]``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import int64, kernel, load64, lowest_bit, places_of, store64
from rusol_env.cards import NUM_CARDS
from rusol_env.engine import FOUNDATION_POINTS as FOUNDATION_POINTS_AT
from rusol_env.engine import (
    MAX_LEGAL,
    MOVES,
    SCORE,
    apply,
    face_down_cards,
    foundation_cards,
    gain,
    is_take_back,
    is_won,
    legal,
)
from rusol_env.rules import NUM_DESTINATIONS


class Reward(IntEnum):
    """The kinds of reward."""

    SCORE = 0
    """The change of the game's score."""
    PROGRESS = 1
    """The same, but taking a card back costs the points that putting it back will earn."""
    WIN = 2
    """1 for the move that wins, else 0."""


# In place of the record of a move that was not made.
REFUSED: Final = -1
IGNORED: Final = -2

# Eight mask bytes, each 0 or 1, are one word: its bits are a card's legal destinations.
_MASK_BITS = int64(0x0101010101010101)


@kernel
def fill_mask(actions: NDArray[np.int16], count: int, mask: NDArray[np.int8]) -> None:
    """Write the action mask, int8 (416,): 1 for each of the first `count` of `actions`; all 1 if there are none."""
    fill = _MASK_BITS if count == 0 else 0
    for card in range(NUM_CARDS):
        store64(mask, card * NUM_DESTINATIONS, fill)
    mark(actions, count, 1, mask)


@kernel
def mark(actions: NDArray[np.int16], count: int, legal: int, mask: NDArray[np.int8]) -> None:
    """Write `legal`, 1 or 0, for each of the first `count` of `actions` into a mask."""
    for i in range(count):
        mask[actions[i]] = legal


@kernel
def count_legal(masks: NDArray[np.int8], i: int) -> int:
    """The number of ones in mask `i` of masks (N, 416); -1 if one of its entries is neither 0 nor 1."""
    count = 0
    for card in range(NUM_CARDS):
        word = load64(masks, (i * NUM_CARDS + card) * NUM_DESTINATIONS)
        if word & ~_MASK_BITS:
            return -1
        while word != 0:
            word &= word - 1
            count += 1
    return count


@kernel
def nth_legal(masks: NDArray[np.int8], i: int, n: int) -> int:
    """The action of the one number `n`, from 0, in mask `i` of masks (N, 416), which has more than `n`."""
    for card in range(NUM_CARDS):
        word = load64(masks, (i * NUM_CARDS + card) * NUM_DESTINATIONS)
        while word != 0:
            if n == 0:
                return card * NUM_DESTINATIONS + lowest_bit(word) // 8
            word &= word - 1
            n -= 1
    return -1


@kernel
def look(
    row: NDArray[np.int8], take_back: bool, idle_moves: bool, actions: NDArray[np.int16], mask: NDArray[np.int8]
) -> tuple[int, int, int, int, int]:
    """List the legal actions and the mask of the game in `row`.

    Returns:
        the number of legal actions (0: the episode is over), the score, the moves made, the cards
        on the foundations and the cards face down.
    """
    count = legal(row, take_back, idle_moves, actions)
    fill_mask(actions, count, mask)
    return count, load64(row, SCORE), load64(row, MOVES), foundation_cards(row), face_down_cards(row)


@kernel
def try_action(
    row: NDArray[np.int8],
    actions: NDArray[np.int16],
    count: int,
    action: int,
    reward: int,
    illegal_reward: float,
) -> tuple[int, float]:
    """Play `action` if it is one of the `count` legal `actions`; else change nothing.

    Where nothing is legal (some deals begin so) the mask allows every action: it is ignored, and not refused.

    Returns:
        the record of the move, REFUSED or IGNORED; and the reward.
    """
    if count == 0:
        return IGNORED, 0.0
    # All places at once: how far a search would go is hard to predict.
    if places_of(action, actions) & ((int64(1) << count) - 1) == 0:
        return REFUSED, illegal_reward
    record = apply(row, action)
    if reward == Reward.WIN:
        return record, 1.0 if is_won(row) else 0.0
    points = gain(row, record)
    if reward == Reward.PROGRESS and is_take_back(record):
        points -= row[FOUNDATION_POINTS_AT]
    return record, np.float64(points)


@kernel
def step(
    row: NDArray[np.int8],
    actions: NDArray[np.int16],
    count: int,
    action: int,
    take_back: bool,
    idle_moves: bool,
    reward: int,
    illegal_reward: float,
    mask: NDArray[np.int8],
) -> tuple[bool, float, int, int, int, int, int]:
    """`try_action`, then `look`; `actions` and `mask` are written anew.

    Returns:
        whether the action was refused, the reward, and what `look` returns.
    """
    record, earned = try_action(row, actions, count, action, reward, illegal_reward)
    left, score, moves, up, down = look(row, take_back, idle_moves, actions, mask)
    return record == REFUSED, earned, left, score, moves, up, down


# `places_of` looks at so many entries.
assert MAX_LEGAL == 32
