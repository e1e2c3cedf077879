"""Proofs that a position is lost, without search: what could ever happen if nothing stood in the way twice.

The proof is the *delete relaxation* of AI planning (B. Bonet & H. Geffner, "Planning as heuristic search",
Artificial Intelligence 129, 2001), fitted to the game. A move opens something (the card it uncovers) and shuts
something (the card it covers, the column that both lie in from now on). Here a move only opens: sets of cards
grow until nothing is added, and every real game stays inside them. A position whose sets do not reach the won
game is lost. That takes a microsecond, and settles most Classic deals that cannot be won.

A *state* of the relaxation is an int64 array (NUM_WORDS,) of sets of cards (bit ``card``) and flags:
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import copy_array, count_bits, int64, kernel, load64, lowest_bit
from rusol_env.cards import KING, NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.engine import ACCEPTS, ALL_CARDS, BASE, FACE_UP, GONE, KINGS, LASTS, UNDER, guests
from rusol_env.rules import NUM_COLUMNS

# The words of a state; each set holds at least all cards of which it is true in some continuation of the game.
UP: Final = 0  # cards that have been put on their foundation
OPEN: Final = 1  # cards that have been the last of their column (or, taking back, the top of a foundation)
LEFT: Final = 2  # cards that have left the card they lay on, by themselves (not carried along)
SEEN: Final = 3  # cards that lie face up, besides those in OPEN
ROOM: Final = 4  # 1 if some column has been empty
FROZEN: Final = 5  # cards that are assumed not to leave: a restriction, not a bound
NUM_WORDS: Final = 6

_ONE: Final = int64(1)
_SUIT: Final = (1 << NUM_RANKS) - 1


@kernel
def list_hosts(row: NDArray[np.int8], hosts: NDArray[np.int64]) -> None:
    """Write into `hosts`, int64 (52,), the set of cards that each card may lie on under the row's rules."""
    for card in range(NUM_CARDS):
        rank = card % NUM_RANKS
        hosts[card] = 0
        if rank != KING:
            for turn in range(NUM_SUITS):
                if (load64(row, ACCEPTS + 8 * turn) >> card) & 1:
                    hosts[card] |= _ONE << (card + 1 + turn * NUM_RANKS) % NUM_CARDS


@kernel
def look(row: NDArray[np.int8], take_back: bool, under: NDArray[np.int64], state: NDArray[np.int64]) -> None:
    """Begin the relaxation at the game in `row`: write `under`, int64 (52,), and `state`."""
    for card in range(NUM_CARDS):
        under[card] = row[UNDER + card]
    state[UP] = load64(row, GONE)
    state[OPEN] = load64(row, LASTS)
    if take_back:
        state[OPEN] |= state[UP]
    state[LEFT] = 0
    state[SEEN] = load64(row, FACE_UP)
    state[ROOM] = int64(count_bits(load64(row, LASTS)) < NUM_COLUMNS)
    state[FROZEN] = 0


@kernel
def _locked(under: NDArray[np.int64], gone: int, card: int, host: int) -> bool:
    """Whether `host` lies above `card` in its column, with nothing between that could have left: no move."""
    x = host
    while x < BASE:
        if x == card:
            return True
        if (gone >> x) & 1:
            return False
        x = int64(under[x])
    return False


@kernel
def spread(
    row: NDArray[np.int8],
    take_back: bool,
    under: NDArray[np.int64],
    hosts: NDArray[np.int64],
    state: NDArray[np.int64],
) -> None:
    """Grow the sets of `state` until nothing is added, or all cards are up.

    Args:
        row: any row of these rules.
        take_back: whether cards come back from foundations.
        under: int64 (52,): the card that each card lies on; BASE and above for none.
        hosts: int64 (52,): the cards that each card may move to when it leaves.
        state: int64 (NUM_WORDS,).
    """
    up = state[UP]
    opened = state[OPEN]
    gone = state[LEFT]
    seen = state[SEEN]
    room = state[ROOM]
    frozen = state[FROZEN]
    growing = True
    while growing:
        growing = False
        for suit in range(NUM_SUITS):
            while True:
                missing = ~(up >> (suit * NUM_RANKS)) & _SUIT
                if missing == 0:
                    break
                card = suit * NUM_RANKS + lowest_bit(missing)
                if not ((opened & ~frozen) >> card) & 1:
                    break
                up |= _ONE << card
                growing = True
                if under[card] < BASE:
                    opened |= _ONE << int64(under[card])
                elif under[card] == BASE:
                    room = 1
        if up == ALL_CARDS:
            break
        if take_back:
            opened |= up
        leaving = int64(0)
        for turn in range(NUM_SUITS):
            leaving |= guests(row, opened, turn)
        if room == 1:
            leaving |= int64(KINGS)
        leaving &= ~(gone | up | frozen) & (seen | opened)
        while leaving != 0:
            card = lowest_bit(leaving)
            leaving &= leaving - 1
            free = False
            if (int64(KINGS) >> card) & 1:
                free = under[card] != BASE
            else:
                left = hosts[card] & opened
                while left != 0 and not free:
                    free = not _locked(under, gone | up, card, lowest_bit(left))
                    left &= left - 1
            if free:
                gone |= _ONE << card
                growing = True
                if under[card] < BASE:
                    opened |= _ONE << int64(under[card])
                else:
                    room = 1
    state[UP] = up
    state[OPEN] = opened
    state[LEFT] = gone
    state[ROOM] = room


@kernel
def is_lost(
    row: NDArray[np.int8],
    take_back: bool,
    under: NDArray[np.int64],
    hosts: NDArray[np.int64],
    state: NDArray[np.int64],
) -> bool:
    """Whether the relaxation proves the game in `row` lost; `under` and `state` are written over."""
    look(row, take_back, under, state)
    spread(row, take_back, under, hosts, state)
    return state[UP] != ALL_CARDS


@kernel
def _leave(under: NDArray[np.int64], state: NDArray[np.int64], card: int) -> None:
    """What `card` opens by leaving the card it lies on."""
    if under[card] < BASE:
        state[OPEN] |= _ONE << int64(under[card])
    elif under[card] == BASE:
        state[ROOM] = 1


@kernel
def _goes_on(
    row: NDArray[np.int8],
    take_back: bool,
    under: NDArray[np.int64],
    hosts: NDArray[np.int64],
    state: NDArray[np.int64],
    card: int,
) -> bool:
    """Whether all cards can be up after `card` (if it is one) has left, as `state` says already, what it lay on."""
    if card >= 0:
        state[SEEN] |= state[OPEN]
        _leave(under, state, card)
    state[FROZEN] = 0
    spread(row, take_back, under, hosts, state)
    return state[UP] == ALL_CARDS


@kernel
def _rivals(hosts: NDArray[np.int64], every: NDArray[np.int64], state: NDArray[np.int64], card: int, host: int) -> int:
    """The cards of `card`'s rank that cannot have left before `card` goes onto `host`.

    They would lie on `host` still, since no other host was ever open to them and they are not up.
    """
    rivals = int64(0)
    bit = _ONE << host
    for suit in range(NUM_SUITS):
        other = suit * NUM_RANKS + card % NUM_RANKS
        if (
            other != card
            and hosts[other] & bit != 0
            and (state[LEFT] & ~state[UP]) >> other & 1
            and every[other] & state[OPEN] & ~bit == 0
        ):
            rivals |= _ONE << other
    return rivals


@kernel
def _shut(hosts: NDArray[np.int64], cards: int, host: int, shut: bool) -> None:
    """Take `host` from the hosts of `cards`, or give it back."""
    bit = _ONE << host
    while cards != 0:
        card = lowest_bit(cards)
        cards &= cards - 1
        hosts[card] = hosts[card] & ~bit if shut else hosts[card] | bit


@kernel
def is_lost_by_cases(
    row: NDArray[np.int8],
    take_back: bool,
    under: NDArray[np.int64],
    hosts: NDArray[np.int64],
    every: NDArray[np.int64],
    states: NDArray[np.int64],
) -> bool:
    """`is_lost`, and where that proves nothing, by telling cases apart; about fifty times the work.

    Each card has to leave the card it lies on some day: first for its foundation, or for one of its hosts; until then
    it lies still. If the relaxation proves each of these cases lost, before the card leaves or after, the game is.

    Args:
        row: the game.
        take_back: whether cards come back from foundations.
        under: int64 (52,), written over.
        hosts: int64 (52,), written over.
        every: int64 (52,): `list_hosts`.
        states: int64 (4, NUM_WORDS), written over.
    """
    start, without, before, after = states[0], states[1], states[2], states[3]
    look(row, take_back, under, start)
    copy_array(every, hosts)
    copy_array(start, after)
    spread(row, take_back, under, hosts, after)
    if after[UP] != ALL_CARDS:
        return True
    for card in range(NUM_CARDS):
        bit = _ONE << card
        if start[UP] & bit:
            continue
        below = int64(under[card])
        copy_array(start, without)
        without[FROZEN] = bit
        spread(row, take_back, under, hosts, without)
        possible = False
        lower = int64(0) if card % NUM_RANKS == 0 else bit >> 1
        if without[OPEN] & bit and lower & ~without[UP] == 0:
            copy_array(without, after)
            after[UP] |= bit
            possible = _goes_on(row, take_back, under, hosts, after, card)
        if (without[SEEN] | without[OPEN]) & bit == 0:
            hosts[card] = 0
        elif card % NUM_RANKS == KING:
            if not possible and below != BASE and without[ROOM] == 1:
                copy_array(without, after)
                after[LEFT] |= bit
                possible = _goes_on(row, take_back, under, hosts, after, card)
        else:
            left = hosts[card] & without[OPEN]
            hosts[card] = 0
            while left != 0:
                host = lowest_bit(left)
                left &= left - 1
                copy_array(without, before)
                rivals = _rivals(hosts, every, without, card, host)
                if rivals != 0:
                    copy_array(start, before)
                    before[FROZEN] = bit
                    _shut(hosts, rivals, host, True)
                    spread(row, take_back, under, hosts, before)
                    _shut(hosts, rivals, host, False)
                if (
                    not (before[OPEN] >> host) & 1
                    or (before[SEEN] | before[OPEN]) & bit == 0
                    or _locked(under, before[LEFT] | before[UP], card, host)
                ):
                    continue
                copy_array(before, after)
                after[OPEN] &= ~(_ONE << host)
                after[SEEN] |= before[OPEN] | bit
                # From now on it lies on the host, and leaves that for another one or for its foundation.
                known = hosts[card]
                hosts[card] = every[card] & ~(_ONE << host)
                _leave(under, after, card)
                under[card] = host
                if _goes_on(row, take_back, under, hosts, after, -1):
                    known |= _ONE << host
                    possible = True
                under[card] = below
                hosts[card] = known
        if not possible:
            return True
    return False
