"""The kernels of the solver on one `Work`: safe moves, tries, the depth-first search, and making wins short.

`rusol_env.solver` says how they work together.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusol_env import deadlock
from rusol_env._jit import copy_array, int64, kernel, load64, lowest_bit
from rusol_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.deadlock import is_lost, is_lost_by_cases, list_hosts
from rusol_env.deals import Arrangement, mix, next_below
from rusol_env.engine import (
    ACTION_BITS,
    ALL_CARDS,
    BASE,
    COUNTS,
    DOWN,
    FACE_UP,
    GONE,
    HEIGHTS,
    KEY,
    KINGS,
    LASTS,
    MAX_LEGAL,
    NOT_IN_COLUMN,
    ONE_RANK,
    UNDER,
    accepts,
    apply,
    arrange,
    deal,
    is_won,
    legal,
    new_rows,
    undo,
)
from rusol_env.engine import COLUMN as COLUMN_AT
from rusol_env.engine import PLACE as PLACE_AT
from rusol_env.rules import FOUNDATION, NUM_COLUMNS, NUM_DESTINATIONS, Rules


class Work(NamedTuple):
    """The memory of one search; kernels take it whole."""

    row: NDArray[np.int8]
    """int8 (ROW,): the position being looked at."""
    start: NDArray[np.int8]
    """int8 (ROW,): the position asked about."""
    scratch: NDArray[np.int8]
    """int8 (ROW,)"""
    hosts: NDArray[np.int64]
    """int64 (52,): for each card the set of cards that it may lie on."""
    guests: NDArray[np.int64]
    """int64 (52,): for each card the set of cards that must be up before putting it up is safe."""
    under: NDArray[np.int64]
    """int64 (52,): work of `deadlock`."""
    narrowed: NDArray[np.int64]
    """int64 (52,): work of `deadlock`."""
    states: NDArray[np.int64]
    """int64 (4, NUM_WORDS): work of `deadlock`."""
    stream: NDArray[np.uint64]
    """uint64 (1,): what the tries draw from."""
    control: NDArray[np.int64]
    """int64 (NUM_CONTROLS,): where the search stands, see _DEPTH and so on."""
    records: NDArray[np.int64]
    """int64 (R,): the moves made from `start` to `row`."""
    levels: NDArray[np.int64]
    """int64 (D, NUM_FIELDS): one row for each position from `start` to `row` that the search chose a move in."""
    moves: NDArray[np.int16]
    """int16 (D, MAX_LEGAL): the moves of each level that are still to be tried."""
    table: NDArray[np.int64]
    """int64 (T, 3): the positions that were looked at, T a power of two; see `_code`."""


# control
_DEPTH, _RECORDS, NODES, _USED, _STAMP = range(5)
_NUM_CONTROLS: Final = 5
# levels: records before the level's move was made, moves left, the key's three words, the cards that are up
_BEGAN, _LEFT, _KEY, _UP = 0, 1, 2, 5
_NUM_FIELDS: Final = 6

# How the kernels report.
LOST, WON, PAUSED, FULL = 0, 1, 2, 3

# The key of a position, exact: a code of three bits for each card, 18 cards a word. (Word 2 has room for the search's
# number, so that one table serves many searches without being cleared.) From the position asked about they say where
# every card lies, columns being alike: a card that never left still lies on its first card, which is face down exactly
# if it was so at first.
_CODES_A_WORD: Final = 18
_STAMP_SHIFT: Final = 3 * (NUM_CARDS - 2 * _CODES_A_WORD)
_MOST_STAMPS: Final = 1 << 15
_UNMOVED: Final = 0  # on the card it lay on at first, face down or one that it could not move to; or at its base
_ON_SUIT: Final = 1  # 1 to 4: on the face-up host of suit 0 to 3; 1 for a king at a base
_ON_FOUNDATION: Final = 6

_ONE: Final = int64(1)
_EASY_TRIES: Final = 20
_EASY_NODES: Final = 4_000
# The most moves that are replayed to make a solution shorter.
_SHORTEN_MOVES: Final = 1_000_000
_FIRST_LEVELS: Final = 1 << 10
_FIRST_TABLE: Final = 1 << 13


@kernel
def _code(work: Work, card: int) -> int:
    under = int64(work.row[UNDER + card])
    if under == NOT_IN_COLUMN:
        return _ON_FOUNDATION
    if under == BASE:
        return _ON_SUIT if (int64(KINGS) >> card) & 1 else _UNMOVED
    if work.hosts[card] & load64(work.row, FACE_UP) & (_ONE << under):
        return _ON_SUIT + under // NUM_RANKS
    return _UNMOVED


@kernel
def _set_code(key: NDArray[np.int64], card: int, code: int) -> None:
    at = _KEY + card // _CODES_A_WORD
    shift = 3 * (card % _CODES_A_WORD)
    key[at] = (key[at] & ~(int64(7) << shift)) | (code << shift)


@kernel
def _is_new(work: Work, key: NDArray[np.int64]) -> bool:
    """Put the key of a level into the table; False if it is there already."""
    table = work.table
    a, b, c = key[_KEY], key[_KEY + 1], key[_KEY + 2]
    last = table.shape[0] - 1
    i = int64(mix(np.uint64(a) ^ mix(np.uint64(b) ^ mix(np.uint64(c))))) & last
    while (table[i, 2] >> _STAMP_SHIFT) == (c >> _STAMP_SHIFT):
        if table[i, 0] == a and table[i, 1] == b and table[i, 2] == c:
            return False
        i = (i + 1) & last
    table[i, 0] = a
    table[i, 1] = b
    table[i, 2] = c
    work.control[_USED] += 1
    return True


@kernel
def _rehash(work: Work, larger: NDArray[np.int64]) -> None:
    """Copy the positions of this search into a larger table, all zero."""
    last = larger.shape[0] - 1
    stamp = work.control[_STAMP]
    for k in range(work.table.shape[0]):
        a, b, c = work.table[k, 0], work.table[k, 1], work.table[k, 2]
        if c >> _STAMP_SHIFT == stamp:
            i = int64(mix(np.uint64(a) ^ mix(np.uint64(b) ^ mix(np.uint64(c))))) & last
            while larger[i, 2] != 0:
                i = (i + 1) & last
            larger[i, 0] = a
            larger[i, 1] = b
            larger[i, 2] = c


@kernel
def _prepare(work: Work, take_back: bool) -> None:
    """Set up what depends on the rules and on `take_back` only."""
    list_hosts(work.start, work.hosts)
    for card in range(NUM_CARDS):
        work.guests[card] = 0
    # Ranks upwards, so that the guests of guests are known.
    for rank in range(NUM_RANKS - 1):
        for suit in range(NUM_SUITS):
            card = suit * NUM_RANKS + rank
            hosts = work.hosts[card]
            while hosts != 0:
                host = lowest_bit(hosts)
                hosts &= hosts - 1
                work.guests[host] |= _ONE << card
                if take_back:
                    # Cards can come back to carry others, so what could lie on a guest matters too.
                    work.guests[host] |= work.guests[card]


@kernel
def safe_card(work: Work, row: NDArray[np.int8]) -> int:
    """A card of the game in `row` that can go to its foundation and that nothing could want to lie on; -1 for none."""
    up = load64(row, GONE)
    rising = load64(row, LASTS) & ((up << 1) | ONE_RANK) & ~up
    while rising != 0:
        card = lowest_bit(rising)
        if work.guests[card] & ~up == 0:
            return card
        rising &= rising - 1
    return int64(-1)


@kernel
def _put_up(work: Work, level: NDArray[np.int64]) -> None:
    """Make all safe foundation moves, and note them in the records, the key and the set of cards up of `level`."""
    while True:
        card = safe_card(work, work.row)
        if card < 0:
            return
        work.records[work.control[_RECORDS]] = apply(work.row, card * NUM_DESTINATIONS + FOUNDATION)
        work.control[_RECORDS] += 1
        level[_UP] |= _ONE << card
        _set_code(level, card, _ON_FOUNDATION)


@kernel
def _list_moves(work: Work, take_back: bool, depth: int) -> None:
    """Write the moves of the position in `row` into its level."""
    moves = work.moves[depth]
    count = legal(work.row, take_back, False, moves)
    first_empty = -1
    kept = 0
    for i in range(count):
        target = moves[i] % NUM_DESTINATIONS
        if target != FOUNDATION and work.row[HEIGHTS + target] == 0:
            if first_empty < 0:
                first_empty = target
            if target != first_empty:
                continue
        moves[kept] = moves[i]
        kept += 1
    work.levels[depth, _LEFT] = kept


@kernel
def _take_back_to(work: Work, count: int) -> None:
    """Undo moves until `count` are left."""
    while work.control[_RECORDS] > count:
        work.control[_RECORDS] -= 1
        undo(work.row, int64(work.records[work.control[_RECORDS]]))


@kernel
def begin(work: Work, take_back: bool) -> int:
    """Begin the search at the position asked about: WON, or PAUSED before its first move."""
    copy_array(work.start, work.row)
    work.control[_DEPTH] = 0
    work.control[_RECORDS] = 0
    work.control[_USED] = 0
    level = work.levels[0]
    level[:] = 0
    level[_UP] = load64(work.row, GONE)
    for card in range(NUM_CARDS):
        _set_code(level, card, _code(work, card))
    level[_KEY + 2] |= work.control[_STAMP] << _STAMP_SHIFT
    _put_up(work, level)
    if level[_UP] == ALL_CARDS:
        return WON
    _is_new(work, level)
    _list_moves(work, take_back, 0)
    return PAUSED


@kernel
def search(work: Work, take_back: bool, node_limit: int) -> int:
    """Go on with the search until it is WON (the records are the moves) or LOST.

    Or until it has looked at `node_limit` positions (PAUSED), or its memory is FULL and must grow.
    """
    row, control, levels = work.row, work.control, work.levels
    while control[_DEPTH] >= 0:
        depth = control[_DEPTH]
        level = levels[depth]
        if level[_LEFT] == 0:
            _take_back_to(work, level[_BEGAN])
            control[_DEPTH] -= 1
            continue
        if control[NODES] >= node_limit:
            return PAUSED
        if (
            2 * (control[_USED] + 2) > work.table.shape[0]
            or depth + 1 == levels.shape[0]
            or control[_RECORDS] + 1 + NUM_CARDS > work.records.shape[0]
        ):
            return FULL
        level[_LEFT] -= 1
        action = int64(work.moves[depth, level[_LEFT]])
        card = action // NUM_DESTINATIONS
        target = action % NUM_DESTINATIONS
        child = levels[depth + 1]
        copy_array(level, child)
        child[_BEGAN] = control[_RECORDS]
        if target == FOUNDATION:
            child[_UP] |= _ONE << card
            _set_code(child, card, _ON_FOUNDATION)
        else:
            child[_UP] &= ~(_ONE << card)
            height = int64(row[HEIGHTS + target])
            suit = int64(row[target * NUM_CARDS + height - 1]) // NUM_RANKS if height > 0 else int64(0)
            _set_code(child, card, _ON_SUIT + suit)
        # The position before safe moves is looked up first: most are known, and need not be reached.
        if not _is_new(work, child):
            continue
        work.records[control[_RECORDS]] = apply(row, action)
        control[_RECORDS] += 1
        reached = control[_RECORDS]
        _put_up(work, child)
        if child[_UP] == ALL_CARDS:
            return WON
        if control[_RECORDS] > reached and not _is_new(work, child):
            _take_back_to(work, child[_BEGAN])
            continue
        control[NODES] += 1
        if is_lost(row, take_back, work.under, work.hosts, work.states[0]):
            _take_back_to(work, child[_BEGAN])
            continue
        _list_moves(work, take_back, depth + 1)
        control[_DEPTH] += 1
    return LOST


# What a try prefers, in points, measured on the first 300 deals of Yukon; chance is added up to a spread drawn anew for
# each try, and so is what it makes of each suit's foundation.
_PUT_UP: Final = 70
_PUT_UP_SPREAD: Final = 100
_TURN: Final = 60
_TURN_DEPTH: Final = 5  # for each face-down card in the column
_EMPTY_COLUMN: Final = 50
_FREE_NEXT: Final = 20  # uncovers a card that goes to its foundation next
_BREAK_RUN: Final = -40  # leaves a card that it could move onto
_MOVE_AGAIN: Final = -30
_LOCK: Final = -20  # for each card that comes to lie under its successor in suit, or over its predecessor
_CHANCE: Final = 100  # halved, or doubled up to twice
_TRY_LENGTH: Final = 300
_LOSES: Final = -(1 << 40)  # less than any move is worth


@kernel
def _worth(work: Work, action: int, last: int) -> int:
    """How much a try likes a move, chance and foundations aside; `last` is the card that moved last."""
    row = work.row
    card = action // NUM_DESTINATIONS
    target = action % NUM_DESTINATIONS
    column = int64(row[COLUMN_AT + card])
    place = int64(row[PLACE_AT + card])
    under = int64(row[UNDER + card])
    worth = _MOVE_AGAIN if card == last and target != FOUNDATION else 0
    if under == BASE:
        if target == FOUNDATION or not (int64(KINGS) >> card) & 1:
            worth += _EMPTY_COLUMN
    elif under != NOT_IN_COLUMN:
        if place == row[DOWN + column]:
            worth += _TURN + _TURN_DEPTH * row[DOWN + column]
        elif (work.hosts[card] >> under) & 1:
            worth += _BREAK_RUN
        if row[COUNTS + under // NUM_RANKS] == under % NUM_RANKS:
            worth += _FREE_NEXT
    if target != FOUNDATION and under != NOT_IN_COLUMN:
        for i in range(row[HEIGHTS + target]):
            x = int64(row[target * NUM_CARDS + i])
            if x < NUM_CARDS:
                rank = x % NUM_RANKS
                higher, lower = x + 1, x - 1
                if (
                    rank < NUM_RANKS - 1
                    and higher != card
                    and row[COLUMN_AT + higher] == column
                    and row[PLACE_AT + higher] >= place
                ):
                    worth += _LOCK
                if rank > 0 and row[COLUMN_AT + lower] == column and row[PLACE_AT + lower] > place:
                    worth += _LOCK
    return worth


@kernel
def _try(work: Work, take_back: bool, dives: bool) -> bool:
    """Play one game from the position asked about; True if it is won (the records are the moves).

    Each move is the one liked best of those that are not proved to lose. A dive does not ask for the proof, nor is
    there chance in it, so that it takes under half of the time.
    """
    row, control, level, moves = work.row, work.control, work.levels[0], work.moves[0]
    copy_array(work.start, row)
    control[_RECORDS] = 0
    level[:] = 0
    level[_UP] = load64(row, GONE)
    worths = np.empty(MAX_LEGAL, np.int64)
    chance = int64(1)
    likings = int64(0)
    if not dives:
        chance = int64(_CHANCE) << next_below(work.stream, 0, 4) >> 1
        likings = next_below(work.stream, 0, _PUT_UP_SPREAD**NUM_SUITS)
    last = -1
    while control[_RECORDS] < _TRY_LENGTH:
        _put_up(work, level)
        if level[_UP] == ALL_CARDS:
            return True
        count = legal(row, take_back, False, moves)
        for i in range(count):
            action = int64(moves[i])
            worths[i] = _worth(work, action, last)
            if not dives:
                worths[i] += next_below(work.stream, 0, chance)
            if action % NUM_DESTINATIONS == FOUNDATION:
                liking = likings
                for _ in range(action // NUM_DESTINATIONS // NUM_RANKS):
                    liking //= _PUT_UP_SPREAD
                worths[i] += _PUT_UP + liking % _PUT_UP_SPREAD
        chosen = -1
        for _ in range(count):
            best = 0
            for i in range(count):
                if worths[i] > worths[best]:
                    best = i
            control[NODES] += 1
            lost = False
            if not dives:
                record = apply(row, int64(moves[best]))
                lost = is_lost(row, take_back, work.under, work.hosts, work.states[0])
                undo(row, record)
            if not lost:
                chosen = int64(moves[best])
                break
            worths[best] = _LOSES
        if chosen < 0:
            return False
        last = chosen // NUM_DESTINATIONS
        if chosen % NUM_DESTINATIONS == FOUNDATION:
            level[_UP] |= _ONE << last
        else:
            level[_UP] &= ~(_ONE << last)
        work.records[control[_RECORDS]] = apply(row, chosen)
        control[_RECORDS] += 1
    return False


@kernel
def tries(work: Work, take_back: bool, dives: bool, most: int, node_limit: int) -> int:
    """Make up to `most` tries, see `_try`: WON or PAUSED."""
    for _ in range(most):
        if work.control[NODES] >= node_limit:
            break
        # The position itself counts too, so that tries end even where it has no move.
        work.control[NODES] += 1
        if _try(work, take_back, dives):
            return WON
    return PAUSED


@kernel
def _is_legal(row: NDArray[np.int8], take_back: bool, action: int, moves: NDArray[np.int16]) -> bool:
    for i in range(legal(row, take_back, False, moves)):  # noqa: SIM110 (a kernel)
        if moves[i] == action:
            return True
    return False


@kernel
def _cut_detours(work: Work, take_back: bool) -> int:
    """From each position of a win go straight to its latest one that a single move reaches; returns the moves left.

    A win that the search found wanders, and can be ten thousand moves long before this.
    """
    row, plan = work.row, work.records
    count = work.control[_RECORDS]
    size = 4
    while size < 4 * count:
        size *= 2
    keys = np.empty(size, np.int64)
    steps = np.full(size, -1, np.int64)
    onto = np.empty(count + 1, np.int64)
    draft = np.empty(count, np.int64)
    copy_array(work.start, row)
    for step in range(count + 1):
        key = load64(row, KEY)
        slot = key & (size - 1)
        while steps[slot] >= 0 and keys[slot] != key:
            slot = (slot + 1) & (size - 1)
        keys[slot] = key
        steps[slot] = step
        if step < count:
            apply(row, plan[step])
            onto[step] = row[UNDER + plan[step] // NUM_DESTINATIONS]
    copy_array(work.start, row)
    made = 0
    step = 0
    while step < count:
        # The win's own next move. Keys do not tell columns apart, so its column may be another one by now.
        card = plan[step] // NUM_DESTINATIONS
        target = int64(FOUNDATION)
        if onto[step] == BASE:
            target = 0
            while row[HEIGHTS + target] > 0:
                target += 1
        elif onto[step] != NOT_IN_COLUMN:
            target = int64(row[COLUMN_AT + onto[step]])
        chosen = card * NUM_DESTINATIONS + target
        latest = step + 1
        for i in range(legal(row, take_back, False, work.moves[0])):
            action = int64(work.moves[0, i])
            record = apply(row, action)
            key = load64(row, KEY)
            undo(row, record)
            slot = key & (size - 1)
            while steps[slot] >= 0 and keys[slot] != key:
                slot = (slot + 1) & (size - 1)
            if steps[slot] > latest:
                latest = steps[slot]
                chosen = action
        draft[made] = chosen
        made += 1
        apply(row, chosen)
        step = latest
    for i in range(made):
        plan[i] = draft[i]
    return made


@kernel
def shorten(work: Work, take_back: bool) -> int:
    """Leave out of the winning records what the win does not need; they become actions. Returns their number."""
    row, scratch, plan = work.row, work.scratch, work.records
    count = work.control[_RECORDS]
    for i in range(count):
        plan[i] &= ACTION_BITS
    count = _cut_detours(work, take_back)
    draft = np.empty(count, np.int64)
    played = 0
    shorter = True
    while shorter:
        shorter = False
        copy_array(work.start, row)
        i = 0
        while i < count and played < _SHORTEN_MOVES:
            won = False
            kept = i
            if take_back or plan[i] % NUM_DESTINATIONS != FOUNDATION:
                copy_array(row, scratch)
                for j in range(i + 1, count):
                    played += 1
                    if _is_legal(scratch, take_back, plan[j], work.moves[0]):
                        apply(scratch, plan[j])
                        draft[kept] = plan[j]
                        kept += 1
                    elif not take_back and plan[j] % NUM_DESTINATIONS == FOUNDATION:
                        break
                won = is_won(scratch)
            if won:
                plan[i:kept] = draft[i:kept]
                count = kept
                shorter = True
            else:
                apply(row, plan[i])
                i += 1
    return count


@kernel
def wins(work: Work, take_back: bool, count: int) -> bool:
    """Whether the first `count` actions in the records are legal moves, one after the other, that win."""
    copy_array(work.start, work.row)
    for i in range(count):
        if not _is_legal(work.row, take_back, work.records[i], work.moves[0]):
            return False
        apply(work.row, work.records[i])
    return is_won(work.row)


@kernel
def easy(work: Work, take_back: bool, joins_last: bool, node_limit: int) -> int:
    """What settles nearly every position, in under ten milliseconds: WON, LOST, or PAUSED or FULL as `search`."""
    # A new number for this search, by which it knows its own positions in the table.
    work.control[_STAMP] += 1
    if work.control[_STAMP] >= _MOST_STAMPS:
        work.table[:] = 0
        work.control[_STAMP] = 1
    work.control[NODES] = 1
    work.control[_RECORDS] = 0
    work.stream[0] = np.uint64(0)
    if is_won(work.start):
        return WON
    if is_lost(work.start, take_back, work.under, work.hosts, work.states[0]):
        return LOST
    if joins_last:
        if begin(work, take_back) == WON:
            return WON
        return search(work, take_back, min(node_limit, _EASY_NODES))
    # A second dive would be the first again.
    if tries(work, take_back, True, 1, node_limit) == WON:
        return WON
    return tries(work, take_back, False, _EASY_TRIES - 1, node_limit)


@kernel
def easy_deals(
    work: Work,
    take_back: bool,
    joins_last: bool,
    node_limit: int,
    numbers: NDArray[np.int64],
    first: int,
    verdicts: NDArray[np.int8],
    nodes: NDArray[np.int64],
    lengths: NDArray[np.int32],
) -> int:
    """`easy` for the deals `numbers` (N,) from place `first` on.

    Returns the place of the first one that it leaves open, or N.

    Writes `verdicts` int8 (N,), `nodes` int64 (N,) and `lengths` int32 (N,), moves to the win or -1.
    """
    for i in range(first, numbers.shape[0]):
        deal(work.start, numbers[i])
        status = easy(work, take_back, joins_last, node_limit)
        if status > WON:
            return i
        verdicts[i] = status
        nodes[i] = work.control[NODES]
        lengths[i] = -1
        if status == WON:
            count = shorten(work, take_back)
            lengths[i] = count
            if not wins(work, take_back, count):
                return -1 - i
    return numbers.shape[0]


@kernel
def easy_rows(
    work: Work, take_back: bool, joins_last: bool, node_limit: int, rows: NDArray[np.int8], statuses: NDArray[np.int8]
) -> None:
    """`easy` for the positions in engine rows (N, row), into `statuses` int8 (N,)."""
    for i in range(rows.shape[0]):
        copy_array(rows[i], work.start)
        statuses[i] = easy(work, take_back, joins_last, node_limit)


@kernel
def label_moves(
    work: Work,
    take_back: bool,
    joins_last: bool,
    node_limit: int,
    rows: NDArray[np.int8],
    masks: NDArray[np.bool_],
    labels: NDArray[np.int8],
) -> None:
    """`easy` after each move that a mask allows, into `labels` int8 (N, 416), which keeps the rest."""
    for i in range(rows.shape[0]):
        for action in range(masks.shape[1]):
            if masks[i, action]:
                copy_array(rows[i], work.start)
                apply(work.start, int64(action))
                labels[i, action] = easy(work, take_back, joins_last, node_limit)


def joins_last(rules: Rules) -> bool:
    """Whether a card fits on one card only, so that it can never leave it again but for its foundation.

    The tries, which look for one of many ways, find nothing there that the search does not find sooner.
    """
    suits = range(NUM_SUITS)
    return all(sum(accepts(rules, under, suit) for under in suits) == 1 for suit in suits)


def new_work(rules: Rules, take_back: bool) -> Work:
    """The memory of a search under `rules`, as small as it can be."""
    rows = new_rows(3, rules)
    work = Work(
        row=rows[0],
        start=rows[1],
        scratch=rows[2],
        hosts=np.zeros(NUM_CARDS, np.int64),
        guests=np.zeros(NUM_CARDS, np.int64),
        under=np.zeros(NUM_CARDS, np.int64),
        narrowed=np.zeros(NUM_CARDS, np.int64),
        states=np.zeros((4, deadlock.NUM_WORDS), np.int64),
        stream=np.zeros(1, np.uint64),
        control=np.zeros(_NUM_CONTROLS, np.int64),
        records=np.empty(2 * _FIRST_LEVELS + _TRY_LENGTH, np.int64),
        levels=np.empty((_FIRST_LEVELS, _NUM_FIELDS), np.int64),
        moves=np.empty((_FIRST_LEVELS, MAX_LEGAL), np.int16),
        table=np.zeros((_FIRST_TABLE, 3), np.int64),
    )
    _prepare(work, take_back)
    return work


def grown(work: Work, memory_limit: int) -> Work | None:
    """The search that reported FULL in four times the memory; None if that is more than `memory_limit` MiB."""
    table = work.table
    if 2 * (work.control[_USED] + 2) > len(table):
        if 4 * table.nbytes > memory_limit << 20:
            return None
        table = np.zeros((4 * len(table), 3), np.int64)
        _rehash(work, table)
        return work._replace(table=table)
    levels = np.empty((4 * len(work.levels), _NUM_FIELDS), np.int64)
    moves = np.empty((4 * len(work.moves), MAX_LEGAL), np.int16)
    records = np.empty(4 * len(work.records), np.int64)
    for old, new in ((work.levels, levels), (work.moves, moves), (work.records, records)):
        new[: len(old)] = old
    return work._replace(levels=levels, moves=moves, records=records)


_compiled = False


def compile_kernels(work: Work) -> None:
    """Compile (or load) the kernels, once a process, so that no answer's time holds that."""
    global _compiled
    if not _compiled:
        empty: tuple[int, ...] = ()
        arrange(work.start, Arrangement((empty,) * NUM_COLUMNS, (0,) * NUM_COLUMNS))
        none = np.zeros(0, np.int64)
        easy_deals(work, False, True, 1, none, 0, none.astype(np.int8), none, none.astype(np.int32))
        easy(work, False, True, 1)
        is_lost_by_cases(work.start, False, work.under, work.narrowed, work.hosts, work.states)
        tries(work, False, False, 0, 0)
        begin(work, False)
        search(work, False, 0)
        _rehash(work, np.zeros_like(work.table))
        work.control[_RECORDS] = 0
        wins(work, False, shorten(work, False))
        _compiled = True
