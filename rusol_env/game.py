"""`Game`: one game as a person handles it, with moves by name, undo, and a reason for every refusal."""

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rusol_env import engine
from rusol_env.cards import (
    NUM_CARDS,
    NUM_SUITS,
    SUIT_NAMES,
    SUIT_SYMBOLS,
    card_ascii,
    card_name,
    card_text,
    parse_card,
    rank_name,
    rank_of,
    suit_of,
)
from rusol_env.deals import Arrangement, arrangement, card_id, deal_arrangement, decode_code, encode_code, is_whole
from rusol_env.episode import look
from rusol_env.observe import Observation, Visible, decode_board, encode_board, encode_cards, observation_space
from rusol_env.render import Picture, svg
from rusol_env.rules import (
    CLASSIC,
    FOUNDATION,
    NUM_COLUMNS,
    NUM_DESTINATIONS,
    Build,
    Rejection,
    Rules,
    destination_name,
    rules_named,
)


class Move(NamedTuple):
    """A card and where it goes; all cards on top of it go along."""

    card: int
    """Card id, 0 to 51."""
    destination: int
    """A column, 0 to 6, or 7: the card's foundation."""

    @property
    def action(self) -> int:
        """Its number in the environment's action space, 0 to 415."""
        return encode_action(self.card, self.destination)

    @property
    def ascii(self) -> str:
        """In plain letters, columns numbered from 1: ``"10H > 3"``, ``"AS > F"``."""
        return f"{card_ascii(self.card)} > {'F' if self.destination == FOUNDATION else self.destination + 1}"

    def __str__(self) -> str:
        """For people, columns numbered from 1: ``"10♥ → column 3"``, ``"A♠ → foundation"``."""
        return f"{card_name(self.card)} → {destination_name(self.destination)}"


def encode_action(card: int, destination: int) -> int:
    """The action that moves `card` (0 to 51) to `destination` (a column 0 to 6, or 7 its foundation).

    Raises:
        ValueError: no such card or destination.
    """
    if not is_whole(card) or not 0 <= card < NUM_CARDS:
        raise ValueError(f"{card!r} is not a card id: they go from 0 (AS) to {NUM_CARDS - 1} (KC)")
    if not is_whole(destination) or not 0 <= destination < NUM_DESTINATIONS:
        raise ValueError(f"{destination!r} is not a destination: they go from 0 to {FOUNDATION} (the foundation)")
    return int(card) * NUM_DESTINATIONS + int(destination)


def decode_action(action: int) -> Move:
    """The move of an action, 0 to 415.

    Raises:
        ValueError: `action` is outside the action space.
    """
    if not is_whole(action) or not 0 <= action < engine.NUM_ACTIONS:
        raise ValueError(f"{action!r} is not an action: they go from 0 to {engine.NUM_ACTIONS - 1}")
    return Move(*divmod(int(action), NUM_DESTINATIONS))


_MOVE = re.compile(r"\s*(\S+?)\s*(?:>|→|->|\s)\s*(?:column\s*)?([0-9]{1,9}|f|foundation)\s*", re.IGNORECASE)


def parse_move(text: str) -> Move:
    """The move written ``10H > 3``, ``10♥ → column 3``, ``AS > F`` or ``as f``; columns count from 1.

    Raises:
        ValueError: `text` is no move.
    """
    match = _MOVE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a move: write a card and a column from 1 or F, as in '10H > 3' or 'AS > F'")
    card, place = parse_card(match[1]), match[2].lower()
    if place in ("f", "foundation"):
        return Move(card, FOUNDATION)
    if not 1 <= int(place) <= NUM_COLUMNS:
        raise ValueError(f"there is no column {place}: they are numbered from 1 to {NUM_COLUMNS}")
    return Move(card, int(place) - 1)


class IllegalMove(ValueError):
    """A move was refused; nothing has changed."""

    def __init__(self, move: Move, rejection: Rejection, sentence: str) -> None:
        super().__init__(sentence)
        self.move = move
        self.rejection = rejection

    def __reduce__(self) -> tuple[type[IllegalMove], tuple[Move, Rejection, str]]:
        return type(self), (self.move, self.rejection, str(self))


class NothingToUndo(ValueError):
    """There is no move left to undo; nothing has changed."""


_SUITS_WORDING = {
    Build.SAME_SUIT: "same suit, one higher",
    Build.ANY_SUIT: "any suit, one higher",
    Build.OTHER_COLOUR: "the other colour, one higher",
}


def explain(row: NDArray[np.int8], rules: Rules, move: Move, rejection: Rejection) -> str:
    """The sentence that tells a player why `move` was refused in the game in `row`; empty for NONE."""
    card, target = move
    name, suit = card_name(card), suit_of(card)
    match rejection:
        case Rejection.NONE:
            return ""
        case Rejection.FACE_DOWN:
            return f"The {name} still lies face down: only a face-up card can move."
        case Rejection.NOT_LAST:
            return f"The {name} has cards on top of it: only the last card of a column goes to a foundation."
        case Rejection.FOUNDATION_ORDER:
            due = f"{rank_name(int(row[engine.COUNTS + suit]))}{SUIT_SYMBOLS[suit]}"
            return f"The foundation of {SUIT_NAMES[suit]} needs the {due} next, not the {name}."
        case Rejection.ON_FOUNDATION:
            return f"The {name} lies on its foundation already."
        case Rejection.NOT_TOP:
            return f"The {name} lies under other cards of its foundation: only the top card comes back."
        case Rejection.SAME_COLUMN:
            return f"The {name} is in column {target + 1} already."
        case Rejection.EMPTY_NEEDS_KING:
            return f"Column {target + 1} is empty and takes only a king, not the {name}."
        case Rejection.DOES_NOT_FIT:
            return _does_not_fit(rules, card)
        case Rejection.GROUP_TOO_LARGE:
            column = int(row[engine.COLUMN + card])
            group = int(row[engine.HEIGHTS + column]) - int(row[engine.PLACE + card])
            return f"The {name} and the cards on it are {group} cards: at most {rules.max_group} move at once."
        case Rejection.TAKE_BACK_OFF:
            return f"The {name} lies on its foundation, and taking cards back is switched off here (take_back=False)."
        case Rejection.IDLE_MOVE:
            return f"The {name} is its whole column: moving that to an empty one changes nothing (idle_moves=False)."
        case Rejection.GAME_WON:
            return "The game is won: there is nothing left to move."


def _does_not_fit(rules: Rules, card: int) -> str:
    name, rank = card_name(card), rank_of(card)
    if rank == rank_of(NUM_CARDS - 1):
        return f"The {name} lies only at the base of an empty column."
    higher = rank_name(rank + 1)
    hosts = [suit for suit in range(NUM_SUITS) if engine.accepts(rules, suit, suit_of(card))]
    wanted = f"an {higher}" if higher in ("8", "A") else f"a {higher}"
    if len(hosts) == 1:
        wanted = f"the {higher}{SUIT_SYMBOLS[hosts[0]]}"
    elif len(hosts) < NUM_SUITS:
        wanted = "the " + " or the ".join(f"{higher}{SUIT_SYMBOLS[host]}" for host in hosts)
    return f"The {name} needs {wanted} to lie on: {_SUITS_WORDING[rules.build]}."


class Game:
    """One game of Russian Solitaire.

    Columns are numbered from 0 in the API and from 1 in text. Cards are ids (see `rusol_env.cards`)
    or text. A won game has no legal moves.
    """

    def __init__(self, position: Arrangement, rules: str | Rules = CLASSIC) -> None:
        """Start a game from a deal or any other arrangement.

        Raises:
            ValueError: unknown rules.
        """
        self.rules: Rules = rules_named(rules)
        self.start: Arrangement = position
        # int8 (ROW,): see `rusol_env.engine`
        self._row: NDArray[np.int8] = engine.new_rows(1, self.rules)[0]
        engine.arrange(self._row, position)
        self._records: deque[int] = deque(maxlen=self.rules.undo_limit)
        self._history: list[Move | None] = []

    @classmethod
    def from_code(cls, code: str) -> Game:
        """The deal of a code such as ``RU1-C-AAAAABB``.

        Raises:
            ValueError: `code` is no code.
        """
        rules, number = decode_code(code)
        return cls(deal_arrangement(number), rules)

    @classmethod
    def from_number(cls, number: int, rules: str | Rules = CLASSIC) -> Game:
        """The deal of that number.

        Raises:
            ValueError: no such deal number or rules.
        """
        return cls(deal_arrangement(number), rules)

    @classmethod
    def from_columns(
        cls, columns: Iterable[Iterable[str | int]], face_down: Iterable[int], rules: str | Rules = CLASSIC
    ) -> Game:
        """Any position: seven columns of cards; cards in none of them lie on the foundations.

        Raises:
            ValueError: the cards make no position.
        """
        return cls(arrangement(columns, face_down, deal=False), rules)

    @property
    def code(self) -> str | None:
        """The code of the deal, which gives the hidden cards away; None for an arrangement without number."""
        return None if self.start.number is None else encode_code(self.start.number, self.rules)

    @property
    def visible(self) -> Visible:
        """What a player sees: columns (None is a face-down card) and foundation counts."""
        return decode_board(self._row[: engine.BOARD_SIZE].reshape(-1, NUM_CARDS))

    @property
    def columns(self) -> tuple[tuple[int | None, ...], ...]:
        """The seven columns from the base; None is a face-down card."""
        return self.visible.columns

    @property
    def foundations(self) -> tuple[int, ...]:
        """How many cards lie on each foundation: spades, hearts, diamonds, clubs."""
        return self.visible.foundations

    @property
    def arrangement(self) -> Arrangement:
        """Where every card lies now, face-down ones included (thoughtful play only)."""
        columns: list[tuple[int, ...]] = []
        for column in self.columns:
            cards: list[int] = []
            for card in reversed(column):
                cards.append(int(self._row[engine.UNDER + cards[-1]]) if card is None else card)
            columns.append(tuple(reversed(cards)))
        return Arrangement(tuple(columns), tuple(column.count(None) for column in self.columns))

    @property
    def score(self) -> int:
        """10 for each card put on a foundation, 5 for each card turned up."""
        return engine.word(self._row, engine.SCORE)

    @property
    def moves(self) -> int:
        """Moves made; undo does not lower it."""
        return engine.word(self._row, engine.MOVES)

    @property
    def key(self) -> int:
        """A 64-bit key of the position, the same whichever column is which; it depends on hidden cards."""
        return engine.word(self._row, engine.KEY)

    @property
    def won(self) -> bool:
        """Whether all cards lie on the foundations."""
        return engine.is_won(self._row)

    def legal_moves(self, *, take_back: bool = True, idle_moves: bool = True) -> list[Move]:
        """The legal moves, by card and destination; see `rusol_env.engine.legal` for what can be left out."""
        actions = np.empty(engine.MAX_LEGAL, np.int16)
        count = engine.legal(self._row, take_back, idle_moves, actions)
        return [decode_action(action) for action in sorted(actions[:count].tolist())]

    def why_not(self, move: Move | str | int) -> tuple[Rejection, str]:
        """Why a move is refused: the reason and its sentence; ``(Rejection.NONE, "")`` if it is legal.

        Raises:
            ValueError: `move` is no move at all.
        """
        move = self._move(move)
        rejection = Rejection(engine.refusal(self._row, move.action, True, True))
        return rejection, explain(self._row, self.rules, move, rejection)

    def play(self, move: Move | str | int) -> int:
        """Make a move, given as a `Move`, as text (`parse_move`) or as an action number.

        Returns:
            the points it earned.

        Raises:
            IllegalMove: the move is refused; its message is a sentence for the player.
            ValueError: `move` is no move at all.
        """
        move = self._move(move)
        rejection, sentence = self.why_not(move)
        if rejection:
            raise IllegalMove(move, rejection, sentence)
        record = engine.apply(self._row, move.action)
        self._records.append(record)
        self._history.append(move)
        return engine.gain(self._row, record)

    def undo(self) -> None:
        """Take back the last move: cards, their faces and the score; the move counter keeps what it had.

        Raises:
            NothingToUndo: no move was made, or the last 100 are undone.
        """
        if not self._records:
            raise NothingToUndo(f"There is no move to undo; of a long game the last {self.rules.undo_limit} can be.")
        engine.undo(self._row, self._records.pop())
        self._history.append(None)

    @property
    def history(self) -> tuple[Move | None, ...]:
        """All that was done since the start, in order: a move, or None where one was undone."""
        return tuple(self._history)

    @property
    def line(self) -> tuple[Move, ...]:
        """The moves that lead from the start to here: those of `history` that were not undone."""
        moves: list[Move] = []
        for move in self._history:
            if move is None:
                moves.pop()
            else:
                moves.append(move)
        return tuple(moves)

    @property
    def undo_left(self) -> int:
        """How many moves can be undone now, at most 100."""
        return len(self._records)

    def observe(self, observation: str = "cards") -> tuple[NDArray[Any], NDArray[np.int8]]:
        """What a policy is shown of this game, as the environment shows it by default.

        Args:
            observation: ``"cards"`` or ``"board"``.

        Returns:
            the observation, (52, 24) float32 or (8, 52) int8, and the action mask int8 (416,): without taking
            back and idle moves, and all 1 where no move is left.

        Raises:
            ValueError: there is no such observation.
        """
        kind = Observation(observation)
        space = observation_space(kind, thoughtful=False)
        seen: NDArray[Any] = np.empty(space.shape, space.dtype)
        mask = np.empty(engine.NUM_ACTIONS, np.int8)
        look(self._row, False, False, np.empty(engine.MAX_LEGAL, np.int16), mask)
        encode: Callable[..., None] = encode_cards if kind is Observation.CARDS else encode_board
        encode(self._row, mask, False, seen)
        return seen, mask

    @property
    def picture(self) -> Picture:
        """What a picture of this game shows; it names the deal's code."""
        line = self.line
        last = line[-1] if line else None
        return Picture(self.visible, self.rules.name, self.score, self.moves, self.code, last, self.won)

    def _repr_svg_(self) -> str:
        """The picture that a notebook shows."""
        return svg(self.picture)

    def destinations(self, card: int | str) -> list[int]:
        """Where a card may go now (placement help): columns 0 to 6, and 7 for its foundation."""
        card = card_id(card)
        return [move.destination for move in self.legal_moves() if move.card == card]

    def double_tap(self, card: int | str) -> Move | None:
        """The move that a double tap on `card` makes, None if it can go nowhere.

        Its foundation first; else the longest column that it fits (the leftmost of equals); else,
        for a king, the leftmost empty column.
        """
        card = card_id(card)
        destinations = self.destinations(card)
        if not destinations:
            return None
        if FOUNDATION in destinations:
            return Move(card, FOUNDATION)
        return Move(card, max(destinations, key=lambda column: len(self.columns[column])))

    def __copy__(self) -> Game:
        """A copy that plays on by itself, as `copy.deepcopy` makes it."""
        return copy.deepcopy(self)

    def _move(self, move: Move | str | int) -> Move:
        if isinstance(move, str):
            return parse_move(move)
        return decode_action(move.action if isinstance(move, Move) else move)

    def __repr__(self) -> str:
        """The visible position in one line: face-down cards are ``##``, and the deal's code is not told."""
        columns = " | ".join(
            " ".join("##" if card is None else card_text(card) for card in column) or "-" for column in self.columns
        )
        ups = " ".join(f"{symbol}{count}" for symbol, count in zip(SUIT_SYMBOLS, self.foundations, strict=True))
        return f"<Game {self.rules.name}, score {self.score}, moves {self.moves}: {columns} ; {ups}>"
