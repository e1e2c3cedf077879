"""Deals: their numbers, codes and suites, the split into training and evaluation, and foreign deals.

A deal number (0 to 2^35 - 1) is one deal for ever. Its code, ``RU1-C-AAAAABB``, is the algorithm
(``RU1``), the letter of the rules and the number in seven base-32 digits. See `shuffle`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import int64, kernel
from rusol_env.cards import KING, NUM_CARDS, NUM_RANKS, NUM_SUITS, card_text, parse_card, suit_of
from rusol_env.labels import Verdict, labels
from rusol_env.rules import DEAL_FACE_DOWN, DEAL_HEIGHTS, NUM_COLUMNS, VARIANTS, Rules, rules_named

PREFIX: Final = "RU1"
# RFC 4648, base 32.
ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
CODE_LETTERS: Final = 7
BITS: Final = 5 * CODE_LETTERS
NUM_DEALS: Final = 1 << BITS
# Codes that begin with A are for evaluation: the numbers below this one.
NUM_EVAL_DEALS: Final = NUM_DEALS // len(ALPHABET)
EXAMPLE_CODE: Final = "RU1-C-AAAAABB"
CODE_LENGTH: Final = len(EXAMPLE_CODE)
_LETTERS: Final = np.array([ord(letter) for letter in ALPHABET], np.uint32)


class Split(IntEnum):
    """Which deals an unfixed reset draws from."""

    TRAIN = 0
    """Codes whose first letter is not A."""
    EVAL = 1
    """Codes whose first letter is A."""


# SplitMix64: Steele, Lea & Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_TRAIN_SHIFT: Final = np.uint64(64 - BITS)
_EVAL_SHIFT: Final = np.uint64(64 - BITS + 5)


@kernel
def mix(word: np.uint64) -> np.uint64:
    """SplitMix64's finaliser: a bijection of 64-bit words that looks random."""
    word = (word ^ (word >> _30)) * _MIX_1
    word = (word ^ (word >> _27)) * _MIX_2
    return word ^ (word >> _31)


@kernel
def next_word(streams: NDArray[np.uint64], i: int) -> np.uint64:
    """The next 64 random bits of stream `i`; `streams` is uint64 (N,), a SplitMix64 state each."""
    streams[i] += GAMMA
    return mix(streams[i])


@kernel
def next_below(streams: NDArray[np.uint64], i: int, bound: int) -> int:
    """A number 0 to `bound` - 1 from stream `i` (bound at most 2^31; the bias is under 2^-32 a value)."""
    return int64(((next_word(streams, i) >> _32) * np.uint64(bound)) >> _32)


@kernel
def draw_deal(streams: NDArray[np.uint64], i: int, split: int) -> int:
    """The next deal number of stream `i` in `split`, each equally likely.

    The top bits of a word are the number: 35 bits in training, drawn again while the code would
    begin with A; 30 bits in evaluation.
    """
    if split == Split.EVAL:
        return int64(next_word(streams, i) >> _EVAL_SHIFT)
    while True:
        number = int64(next_word(streams, i) >> _TRAIN_SHIFT)
        if number >= NUM_EVAL_DEALS:
            return number


@kernel
def shuffle(number: int, deck: NDArray[np.int8]) -> None:
    """Write deal `number`'s cards into `deck`, int8 (52,), in dealing order.

    The algorithm RU1: SplitMix64 with the number as its state; from the sorted deck, for i from 51
    down to 1, j = (top 32 bits * (i + 1)) >> 32 and cards i and j change places.
    """
    for i in range(NUM_CARDS):
        deck[i] = i
    state = np.uint64(number)
    for i in range(NUM_CARDS - 1, 0, -1):
        state += GAMMA
        j = int64(((mix(state) >> _32) * np.uint64(i + 1)) >> _32)
        card = deck[i]
        deck[i] = deck[j]
        deck[j] = card


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Where every card lies: a deal, or any other position.

    Raises:
        ValueError: (on construction) cards or counts that make no position; the message says which.
    """

    columns: tuple[tuple[int, ...], ...]
    """Seven columns of card ids, each from its base up. Cards in none of them are on the foundations."""
    face_down: tuple[int, ...] = DEAL_FACE_DOWN
    """For each column, how many cards at its base lie face down."""
    number: int | None = field(default=None, compare=False)
    """The deal number of these cards, if they have one; it is no part of what makes two arrangements equal."""

    def __post_init__(self) -> None:
        # Tuples, so that nobody's list can change a position later.
        object.__setattr__(self, "columns", tuple(tuple(column) for column in self.columns))
        object.__setattr__(self, "face_down", tuple(self.face_down))
        _check_arrangement(self.columns, self.face_down)
        if self.number is not None:
            number = check_number(self.number)
            if (self.columns, self.face_down) != (_dealt(number), DEAL_FACE_DOWN):
                raise ValueError(f"these cards are not those of deal {number}: leave the number out")

    @property
    def foundations(self) -> tuple[int, ...]:
        """For each suit, how many cards lie on its foundation."""
        counts = [NUM_RANKS] * NUM_SUITS
        for column in self.columns:
            for card in column:
                counts[suit_of(card)] -= 1
        return tuple(counts)

    def text(self) -> list[list[str]]:
        """The columns in two-character cards, as `arrangement` and files of deals take them."""
        return [[card_text(card) for card in column] for column in self.columns]


def _check_arrangement(columns: Sequence[Sequence[int]], face_down: Sequence[int]) -> None:
    if len(columns) != NUM_COLUMNS:
        raise ValueError(f"an arrangement has {NUM_COLUMNS} columns, not {len(columns)}")
    if len(face_down) != NUM_COLUMNS:
        raise ValueError(f"face_down has {NUM_COLUMNS} counts, one a column, not {len(face_down)}")
    seen: set[int] = set()
    for column in columns:
        for card in column:
            if not is_whole(card) or not 0 <= card < NUM_CARDS:
                raise ValueError(f"{card!r} is not a card id: they go from 0 (AS) to {NUM_CARDS - 1} (KC)")
            if card in seen:
                raise ValueError(f"the card {card_text(card)} is there twice")
            seen.add(card)
    for suit in range(NUM_SUITS):
        ranks = [rank for rank in range(NUM_RANKS) if suit * NUM_RANKS + rank in seen]
        if ranks and ranks != list(range(ranks[0], NUM_RANKS)):
            missing = next(rank for rank in range(ranks[0], KING + 1) if rank not in ranks)
            raise ValueError(
                f"the card {card_text(suit * NUM_RANKS + missing)} is missing: a card can be absent from the columns "
                "only when all lower cards of its suit are (they lie on the foundation)"
            )
    for k, (column, down) in enumerate(zip(columns, face_down, strict=True), start=1):
        if not is_whole(down):
            raise ValueError(f"face_down has {down!r} for column {k}: it must be a whole number")
        if not (0 <= down < len(column) or down == len(column) == 0):
            raise ValueError(
                f"column {k} cannot have {down} of its {len(column)} cards face down: its last card is always face up"
            )


def arrangement(
    columns: Iterable[Iterable[str | int]], face_down: Iterable[int] | None = None, *, deal: bool = True
) -> Arrangement:
    """An arrangement from seven lists of cards (text or ids), each from the column's base up.

    Args:
        columns: the seven columns.
        face_down: for each column, how many cards at its base are face down; by default 0 to 6, as dealt.
        deal: also demand that it is a whole deal: 52 cards in columns of 1, 6, 7, 8, 9, 10 and 11.

    Raises:
        ValueError: a card is missing, doubled or unknown, or a column's size is wrong; it says which.
    """
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"an arrangement is {NUM_COLUMNS} lists of cards, not {columns!r}")
    columns = list(columns)
    for k, column in enumerate(columns, start=1):
        if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"column {k} of an arrangement is a list of cards, as in ['KS', '10D'], not {column!r}")
    ids = tuple(tuple(card_id(card) for card in column) for column in columns)
    if face_down is not None and not isinstance(face_down, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"face_down is {NUM_COLUMNS} counts, one a column, not {face_down!r}")
    down = DEAL_FACE_DOWN if face_down is None else tuple(face_down)
    if deal and len(ids) == NUM_COLUMNS:
        counts = [0] * NUM_CARDS
        for column in ids:
            for card in column:
                counts[card] += 1
        doubled = [card_text(card) for card in range(NUM_CARDS) if counts[card] > 1]
        missing = [card_text(card) for card in range(NUM_CARDS) if counts[card] == 0]
        if doubled or missing:
            wrong = [f"doubled: {', '.join(doubled)}"] if doubled else []
            wrong += [f"missing: {', '.join(missing)}"] if missing else []
            raise ValueError(f"a deal has each of the {NUM_CARDS} cards once; {'; '.join(wrong)}")
        for k, (column, height) in enumerate(zip(ids, DEAL_HEIGHTS, strict=True), start=1):
            if len(column) != height:
                raise ValueError(f"column {k} of a deal has {height} cards, not {len(column)}")
        if len(down) == NUM_COLUMNS and down != DEAL_FACE_DOWN:
            raise ValueError(f"a deal has {list(DEAL_FACE_DOWN)} cards face down in its columns, not {list(down)}")
    return Arrangement(ids, down)


def card_id(card: str | int) -> int:
    """The id, 0 to 51, of a card given as text or as its id.

    Raises:
        ValueError: it is no card.
    """
    if isinstance(card, str):
        return parse_card(card)
    if not is_whole(card):
        raise ValueError(f"{card!r} is not a card: give text such as '10D', or an id from 0 to {NUM_CARDS - 1}")
    if not 0 <= card < NUM_CARDS:
        raise ValueError(f"{card} is not a card id: they go from 0 (AS) to {NUM_CARDS - 1} (KC)")
    return int(card)


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether `value` is a Python or NumPy integer, and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_whole(name: str, value: Any, least: int) -> int:
    """`value` as an int, if it is a whole number of at least `least` and below 2^63, which is what kernels take.

    Args:
        name: what it is called.
        value: what somebody gave.
        least: the least that it may be.

    Raises:
        ValueError: it is not.
    """
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} is {value!r}: it must be a whole number, at least {least}")
    if value >= 2**63:
        raise ValueError(f"{name} is {value!r}: it must be less than 2^63")
    return int(value)


def check_seed(seed: Any) -> int:
    """`seed` as an int, if it is a seed.

    Raises:
        ValueError: it is not a whole number from 0 to 2^64 - 1.
    """
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise ValueError(f"{seed!r} is not a seed: give a whole number from 0 to 2^64 - 1")
    return int(seed)


def check_streams(streams: Any, number: int | None = None) -> None:
    """Check that `streams` can be the states of `number` SplitMix64 streams (None: of any number).

    Raises:
        ValueError: it is no writeable uint64 (number,).
    """
    array = cast("NDArray[Any]", streams) if isinstance(streams, np.ndarray) else None
    if (
        array is None
        or array.dtype != np.uint64
        or array.ndim != 1
        or number not in (None, len(array))
        or not (array.flags.writeable and array.flags.c_contiguous)
    ):
        kind = repr(cast(object, streams)) if array is None else f"{array.dtype} {array.shape}"
        size = "N" if number is None else number
        raise ValueError(
            f"the streams are {kind}: they must be uint64 ({size},), writeable and in one piece, "
            f"as in np.arange({size}, dtype=np.uint64)"
        )


def check_number(number: int) -> int:
    """`number` as an int, if it is a deal number.

    Raises:
        ValueError: it is not a whole number from 0 to 2^35 - 1.
    """
    if not is_whole(number):
        raise ValueError(f"{number!r} is not a deal number: they are whole numbers from 0 to {NUM_DEALS - 1}")
    if not 0 <= number < NUM_DEALS:
        raise ValueError(f"{number} is not a deal number: they go from 0 to {NUM_DEALS - 1}")
    return int(number)


def deal_arrangement(number: int) -> Arrangement:
    """The deal of that number (the same under every rule set).

    Raises:
        ValueError: `number` is no deal number.
    """
    number = check_number(number)
    return Arrangement(_dealt(number), number=number)


def _dealt(number: int) -> tuple[tuple[int, ...], ...]:
    deck = np.empty(NUM_CARDS, np.int8)
    shuffle(number, deck)
    cards = iter(deck.tolist())
    return tuple(tuple(next(cards) for _ in range(height)) for height in DEAL_HEIGHTS)


def encode_code(number: int, rules: str | Rules) -> str:
    """The code of deal `number` under `rules`: ``encode_code(33, "classic") == "RU1-C-AAAAABB"``.

    Raises:
        ValueError: no such deal number or rules.
    """
    number = check_number(number)
    letters = "".join(ALPHABET[number >> shift & 31] for shift in range(BITS - 5, -1, -5))
    return f"{PREFIX}-{rules_named(rules).letter}-{letters}"


def blank_codes(number: int, rules: Rules) -> NDArray[np.uint32]:
    """Codes that `write_code` completes, uint32 (number, 13): a letter each, as NumPy's text ``U13`` has them."""
    codes = np.empty((number, CODE_LENGTH), np.uint32)
    codes[:] = [ord(letter) for letter in encode_code(0, rules)]
    return codes


@kernel
def write_code(codes: NDArray[np.uint32], i: int, number: int) -> None:
    """Write the letters of deal `number` (not checked) into code i."""
    for place in range(CODE_LETTERS):
        codes[i, CODE_LENGTH - 1 - place] = _LETTERS[(number >> 5 * place) & 31]


def decode_code(code: str) -> tuple[Rules, int]:
    """The rules and the deal number of a code, read in any letter case and with blanks around it.

    Raises:
        ValueError: `code` is no code; the message says what is wrong and shows a valid one.
    """

    def refuse(what: str) -> ValueError:
        return ValueError(f"{what} in the code {code!r}; a valid code looks like {EXAMPLE_CODE}")

    if not isinstance(code, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"a code is text that looks like {EXAMPLE_CODE}, not {code!r}")
    # Plain letters only have other cases here: upper() also turns some foreign letters into plain ones.
    parts = "".join(char.upper() if char.isascii() else char for char in code.strip()).split("-")
    if len(parts) != 3:
        raise refuse(f"there are {len(parts)} parts between hyphens instead of 3")
    prefix, letter, letters = parts
    if prefix != PREFIX:
        raise refuse(f"the dealing algorithm {prefix!r} is not {PREFIX}")
    rules = next((rules for rules in VARIANTS.values() if rules.letter == letter), None)
    if rules is None:
        known = ", ".join(f"{rules.letter} ({rules.name})" for rules in VARIANTS.values())
        raise refuse(f"the rules letter {letter!r} is not one of {known}")
    for place, char in enumerate(letters, start=1):
        if char not in ALPHABET:
            raise refuse(f"letter {place} of the deal, {char!r}, is not one of A-Z and 2-7")
    if len(letters) != CODE_LETTERS:
        raise refuse(f"the deal has {len(letters)} letters instead of {CODE_LETTERS}")
    number = 0
    for char in letters:
        number = number << 5 | ALPHABET.index(char)
    return rules, number


@dataclass(frozen=True, slots=True)
class Suite(Sequence[int]):
    """A named, fixed sequence of deal numbers, so that two papers can compare results."""

    name: str
    numbers: Sequence[int]

    def __post_init__(self) -> None:
        if not isinstance(self.numbers, range):
            object.__setattr__(self, "numbers", tuple(check_number(number) for number in self.numbers))
        if len(self.numbers) == 0:
            raise ValueError(f"the suite {self.name!r} is empty: it must have at least one deal")
        check_number(min(self.numbers[0], self.numbers[-1]))
        check_number(max(self.numbers[0], self.numbers[-1]))

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        return cast(Any, self.numbers[index])

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)


def suite(name: str, rules: str | Rules | None = None) -> Suite:
    """The suite of that name.

    ``"first-N"`` is the evaluation deals 0 to N - 1; ``"winnable-N"`` the first N evaluation deals that can be won
    under `rules`, by the labels that the package ships (`rusol_env.labels`).

    Raises:
        ValueError: there is no suite of that name or size, or the rules that it needs were not given.
    """
    kind, _, digits = str(name).strip().lower().partition("-")
    if kind not in ("first", "winnable") or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"unknown suite {name!r}: use 'first-N' or 'winnable-N', as in 'first-1000'")
    count = int(digits)
    if kind == "first":
        if not 1 <= count <= NUM_EVAL_DEALS:
            raise ValueError(f"the suite {name!r} has no such size: N goes from 1 to {NUM_EVAL_DEALS}")
        return Suite(f"first-{count}", range(count))
    if rules is None:
        raise ValueError(f"the suite {name!r} depends on the rules: say which")
    winnable = np.flatnonzero(labels(rules_named(rules)) == Verdict.WINNABLE)
    if not 1 <= count <= len(winnable):
        raise ValueError(
            f"the suite {name!r} has no such size: under {rules_named(rules).name} rules "
            f"N goes from 1 to {len(winnable)}"
        )
    return Suite(f"winnable-{count}", winnable[:count].tolist())


def pysolfc_arrangement(number: int | str) -> Arrangement:
    """PySolFC's numbered deal of Russian Solitaire, through the package pysol-cards (extra ``[pysol]``).

    Args:
        number: PySolFC's game number (1 to 10^20, or as text), or ``"ms…"`` (1 to 2^33 - 1) for the generator that
            Microsoft's FreeCell used; numbers up to 32000 use it as well. KPatience lays the same numbers out
            differently.

    Raises:
        ValueError: `number` is not of that form.
        ImportError: pysol-cards is not installed.
    """
    text = str(number).strip().lower()
    digits = text.removeprefix("ms")
    microsoft = text.startswith("ms")
    most = 2**33 - 1 if microsoft else 10**20
    if not (digits.isascii() and digits.isdigit() and 1 <= int(digits) <= most):
        raise ValueError(f"{number!r} is not a PySolFC deal: use a number such as 12345 or 'ms1', at most {most}")
    try:
        from pysol_cards.cards import CardRenderer
        from pysol_cards.deal_game import Game
        from pysol_cards.random_base import RandomBase
    except ImportError as error:
        raise ImportError("PySolFC's deals need the package pysol-cards: pip install 'rusol-env[pysol]'") from error
    which = RandomBase.DEALS_MS if microsoft else RandomBase.DEALS_PYSOLFC
    game = cast(Any, Game("yukon", int(digits), which))
    layout: str = game.calc_layout_string(CardRenderer(True))
    rows = layout.replace("<", "").replace(">", "").splitlines()
    return arrangement([row.split() for row in rows if row.strip()])


# How a deal is named: its number, its code, an arrangement, or seven lists of cards.
Deal = int | str | Arrangement | Sequence[Sequence[str | int]]


def read_deal(deal: Deal, rules: Rules) -> int | Arrangement:
    """A deal number where `deal` has one, else its arrangement.

    Raises:
        ValueError: `deal` is no deal, or a code for other rules; the message says what is wrong.
    """
    if isinstance(deal, Arrangement):
        return deal if deal.number is None else deal.number
    if isinstance(deal, str):
        coded, number = decode_code(deal)
        if coded != rules:
            raise ValueError(
                f"the code {deal.strip().upper()} is for {coded.name} rules and the rules here are {rules.name}: "
                f"the same deal here is {encode_code(number, rules)}"
            )
        return number
    if is_whole(deal):
        return check_number(deal)
    if isinstance(deal, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        return arrangement(deal)
    raise ValueError(f"{deal!r} is not a deal: give a deal number, a code, or seven lists of cards")


@dataclass(frozen=True, slots=True)
class DealRecord:
    """One deal of a file."""

    id: str
    rules: Rules
    arrangement: Arrangement
    fields: dict[str, Any]
    """The line's other fields, such as a solver's verdict."""


def read_deals(path: str | Path) -> list[DealRecord]:
    """The deals of a JSON-lines file: an object a line with ``id``, ``rules``, ``columns`` and ``face_down``.

    Raises:
        ValueError: a line is not such an object or its cards make no deal; it names the file and line.
        OSError: the file cannot be read.
    """
    records: list[DealRecord] = []
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file in UTF-8: {error}") from error
    for place, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            fields: Any = json.loads(line)
            if not isinstance(fields, dict):
                raise ValueError("it is not a JSON object")
            fields = cast(dict[str, Any], fields)
            missing = [key for key in ("rules", "columns") if key not in fields]
            if missing:
                raise ValueError(f"it lacks {' and '.join(repr(key) for key in missing)}")
            rules = rules_named(fields.pop("rules"))
            position = arrangement(fields.pop("columns"), fields.pop("face_down", None))
            records.append(DealRecord(str(fields.pop("id", place)), rules, position, fields))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}, line {place}: {error}") from error
    return records
