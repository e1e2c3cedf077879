"""The rules of the game again, slow and obvious: the independent judge of the engine.

Written from the design's sections on the game and on deal numbers alone. It shares nothing with the package and
must never import it. Cards are two-character texts such as "TD", columns are lists of them, base first, and every
sentence of the rules stands in one place here, above the code that says the same.

`python tests/reference.py` rewrites the files in tests/perft/.
"""

from __future__ import annotations

from pathlib import Path

SUITS = "SHDC"  # spades, hearts, diamonds, clubs
RANKS = "A23456789TJQK"  # ace (low) to king
DECK = [rank + suit for suit in SUITS for rank in RANKS]  # card number suit * 13 + rank
COLOURS = {"S": "black", "H": "red", "D": "red", "C": "black"}

COLUMNS = 7
FOUNDATION = 7  # the destination after the columns 0 to 6: the card's own foundation
LARGEST_GROUP = 20
UNDO_LIMIT = 100
POINTS_FOR_FOUNDATION = 10
POINTS_FOR_TURNING_UP = 5

RULES_OF_LETTER = {"C": "classic", "R": "relaxed", "Y": "yukon"}

Canonical = tuple[tuple[tuple[tuple[str, ...], int], ...], tuple[int, ...]]
Snapshot = tuple[list[list[str]], list[int], list[int], int]


def rank_of(card: str) -> int:
    """0 for an ace, 12 for a king."""
    return RANKS.index(card[0])


def suit_of(card: str) -> int:
    """The suit's place in the order spades, hearts, diamonds, clubs."""
    return SUITS.index(card[1])


class Reference:
    """One game. Cards in no column are on the foundations."""

    def __init__(self, rules: str, columns: list[list[str]], face_down: list[int]) -> None:
        if rules not in RULES_OF_LETTER.values():
            raise ValueError(f"unknown rules {rules!r}")
        if len(columns) != COLUMNS or len(face_down) != COLUMNS:
            raise ValueError("a game has seven columns")
        in_columns = [card for column in columns for card in column]
        if len(set(in_columns)) != len(in_columns) or not set(in_columns) <= set(DECK):
            raise ValueError("the columns hold a card twice or something that is no card")
        for column, down in zip(columns, face_down, strict=True):
            # The last card of a column is never face down.
            if down < 0 or down > max(0, len(column) - 1):
                raise ValueError(f"{down} face-down cards in a column of {len(column)}")

        self.rules = rules
        self.columns = [list(column) for column in columns]  # base first
        self.face_down = list(face_down)  # how many cards at each column's base are face down
        self.foundations: list[int] = []  # how many cards lie on each foundation, in suit order
        self.score = 0  # Starts at 0.
        self.moves = 0
        self._history: list[Snapshot] = []

        for suit in SUITS:
            missing = [rank for rank in RANKS if rank + suit not in in_columns]
            if missing != list(RANKS[: len(missing)]):
                raise ValueError(f"the cards of suit {suit} in no column do not make a foundation: {missing}")
            self.foundations.append(len(missing))

    def copy(self) -> Reference:
        """The same position, score and move count, with nothing to undo."""
        twin = Reference(self.rules, self.columns, self.face_down)
        twin.score = self.score
        twin.moves = self.moves
        return twin

    @property
    def won(self) -> bool:
        """The game is won with all 52 cards on the foundations."""
        return sum(self.foundations) == len(DECK)

    def visible(self) -> tuple[list[list[str | None]], list[int]]:
        """What a player sees: the columns with None for each face-down card, and the foundations' counts."""
        columns: list[list[str | None]] = []
        for column, down in zip(self.columns, self.face_down, strict=True):
            columns.append([None if place < down else card for place, card in enumerate(column)])
        return columns, list(self.foundations)

    def canonical(self) -> Canonical:
        """The position, all cards known, with the columns in no order: equal exactly if only columns changed places."""
        columns = [(tuple(column), down) for column, down in zip(self.columns, self.face_down, strict=True)]
        return tuple(sorted(columns)), tuple(self.foundations)

    def _fits(self, card: str, column: int) -> bool:
        """Whether this card may be put on this column, whatever lies on the card and wherever it comes from."""
        # An empty column takes only a king (with whatever lies on it). Never anything else.
        if not self.columns[column]:
            return card[0] == "K"
        last = self.columns[column][-1]
        one_rank_higher = rank_of(last) == rank_of(card) + 1
        # Classic: the target column's last card has the same suit and is exactly one rank higher.
        if self.rules == "classic":
            return one_rank_higher and last[1] == card[1]
        # Relaxed: any suit, exactly one rank higher.
        if self.rules == "relaxed":
            return one_rank_higher
        # Yukon: the other colour, exactly one rank higher.
        return one_rank_higher and COLOURS[last[1]] != COLOURS[card[1]]

    def _top_of_foundation(self, suit: int) -> str | None:
        """The card that was put on this foundation last."""
        count = self.foundations[suit]
        return None if count == 0 else RANKS[count - 1] + SUITS[suit]

    def legal_moves(self, take_back: bool = True, idle_moves: bool = True) -> list[tuple[str, int]]:
        """All moves as (card, destination), sorted by the card's text and then the destination."""
        # A game that is won is over.
        if self.won:
            return []
        moves: list[tuple[str, int]] = []

        for source, column in enumerate(self.columns):
            # Column to column: any face-up card, with all the cards on top of it, in sequence or not.
            for place in range(self.face_down[source], len(column)):
                card = column[place]
                # At most 20 cards move at once; a larger group is refused.
                if len(column) - place > LARGEST_GROUP:
                    continue
                for target in range(COLUMNS):
                    # A card moves to another column, not to its own.
                    if target == source:
                        continue
                    # Only the moved card itself (the lowest of the group) must fit.
                    if not self._fits(card, target):
                        continue
                    # Moving a king that is its whole column to an empty column is an idle move.
                    if place == 0 and not self.columns[target] and not idle_moves:
                        continue
                    moves.append((card, target))

            # To a foundation: a column's last card, ace first, then up by suit, one card at a time.
            if column:
                last = column[-1]
                if rank_of(last) == self.foundations[suit_of(last)]:
                    moves.append((last, FOUNDATION))

        # Back from a foundation: a foundation's top card onto a column where it fits.
        if take_back:
            for suit in range(len(SUITS)):
                top = self._top_of_foundation(suit)
                if top is not None:
                    moves.extend((top, target) for target in range(COLUMNS) if self._fits(top, target))

        return sorted(moves)

    def play(self, card: str, destination: int) -> int:
        """Make a move and return the points it gains."""
        if (card, destination) not in self.legal_moves():
            raise ValueError(f"{card} to {destination} is not legal")

        # Undo: the last 100 moves.
        self._history.append(
            ([list(column) for column in self.columns], list(self.face_down), list(self.foundations), self.score)
        )
        self._history = self._history[-UNDO_LIMIT:]

        # Lift the card with all the cards on top of it, or take it back from its foundation (costs no points).
        group = [card]
        taken_back = True
        for column in self.columns:
            if card in column:
                taken_back = False
                place = column.index(card)
                group = column[place:]
                del column[place:]
        if taken_back:
            self.foundations[suit_of(card)] -= 1

        # Put it down: +10 for each card put on a foundation.
        points = 0
        if destination == FOUNDATION:
            self.foundations[suit_of(card)] += 1
            points += POINTS_FOR_FOUNDATION
        else:
            self.columns[destination].extend(group)

        # A face-down card that becomes a column's last card is turned up at once: +5 for each card turned up.
        for index, column in enumerate(self.columns):
            if column and self.face_down[index] == len(column):
                self.face_down[index] -= 1
                points += POINTS_FOR_TURNING_UP

        # The score is never below 0: nothing takes points away.
        self.score += points
        self.moves += 1
        return points

    def undo(self) -> None:
        """Take the last move back."""
        # Restores the cards, their faces and the score; the move counter keeps what it had.
        if not self._history:
            raise IndexError("no move is left to undo")
        self.columns, self.face_down, self.foundations, self.score = self._history.pop()


# Deal numbers and game codes

CODE_PREFIX = "RU1"
BASE_32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # RFC 4648
SIXTY_FOUR_BITS = 2**64 - 1
COLUMN_LENGTHS = [1, 6, 7, 8, 9, 10, 11]


def decode(code: str) -> tuple[str, int]:
    """The rules' name and the deal number of a game code, read in any case and with surrounding blanks."""
    prefix, letter, digits = code.strip().upper().split("-")
    if prefix != CODE_PREFIX or letter not in RULES_OF_LETTER or len(digits) != 7:
        raise ValueError(f"{code!r} is no game code; RU1-C-AAAAABB is one")
    number = 0
    for digit in digits:  # most significant first
        number = number * 32 + BASE_32.index(digit)
    return RULES_OF_LETTER[letter], number


def deal(number: int) -> list[list[str]]:
    """The seven columns of a deal number, base first. Column k starts with k cards face down."""
    state = number  # SplitMix64 with the number as its 64-bit state
    cards = list(DECK)  # Start with cards 0 to 51 in order;
    for i in range(51, 0, -1):  # for i from 51 down to 1
        state = (state + 0x9E3779B97F4A7C15) & SIXTY_FOUR_BITS
        bits = state
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & SIXTY_FOUR_BITS
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & SIXTY_FOUR_BITS
        bits = bits ^ (bits >> 31)
        j = ((bits >> 32) * (i + 1)) >> 32  # draw j = (top 32 bits × (i + 1)) >> 32
        cards[i], cards[j] = cards[j], cards[i]  # and swap cards i and j.
    # Deal the result column by column, left to right, each from its base up.
    columns: list[list[str]] = []
    for length in COLUMN_LENGTHS:
        columns.append(cards[:length])
        cards = cards[length:]
    return columns


def start(code: str) -> Reference:
    """The game of a code before its first move."""
    rules, number = decode(code)
    return Reference(rules, deal(number), face_down=[0, 1, 2, 3, 4, 5, 6])


def scripted(code: str, steps: int) -> Reference:
    """The game of a code after `steps` moves that a fixed script chose; fewer where no plain move is left.

    At step i, counted from 0, the script plays the move with index (7 * i + 3) % n of the n plain legal moves (no
    taking back, no idle moves), sorted by the card's text and then the destination.
    """
    game = start(code)
    for i in range(steps):
        moves = game.legal_moves(take_back=False, idle_moves=False)
        if not moves:
            break
        game.play(*moves[(7 * i + 3) % len(moves)])
    return game


# Perft: counting move sequences


def perft(game: Reference, depth: int, take_back: bool, idle_moves: bool) -> int:
    """The number of move sequences of exactly this length. The game itself stays as it is."""
    if depth == 0:
        return 1
    moves = game.legal_moves(take_back, idle_moves)
    if depth == 1:
        return len(moves)
    total = 0
    for card, destination in moves:
        after = game.copy()
        after.play(card, destination)
        total += perft(after, depth - 1, take_back, idle_moves)
    return total


PERFT_FOLDER = Path(__file__).parent / "perft"
PERFT_MODES = {"plain": False, "all": True}  # whether taking back and idle moves are among the moves

# What the files count: the position and the largest depth. A position is a code, or CODE/STEPS for `scripted`.
# The deals 0, 33 and 2^35 - 1; Classic has one more, which can be won, since two of the three soon end.
PERFT_POSITIONS = {
    "classic": [
        ("RU1-C-AAAAAAA", 7),
        ("RU1-C-AAAAABB", 5),
        ("RU1-C-7777777", 7),
        ("RU1-C-AAAAAAM", 6),
        ("RU1-C-AAAAAAC/19", 4),  # an empty column, a king's idle move, an ace to take back
        ("RU1-C-AAAAADI/29", 4),  # a group of more than 20 that would fit
        ("RU1-C-AAAAAAM/57", 4),
        ("RU1-C-AAAAAAM/87", 4),  # a win after exactly four plain moves
        ("RU1-C-AAAAAAM/88", 4),  # a win after exactly three: no plain sequence of four
    ],
    "relaxed": [
        ("RU1-R-AAAAAAA", 5),
        ("RU1-R-AAAAABB", 5),
        ("RU1-R-7777777", 5),
        ("RU1-R-AAAAAAA/43", 4),
        ("RU1-R-AAAAAAB/51", 4),  # groups of more than 20 that would fit
        ("RU1-R-AAAAAAB/66", 4),
        ("RU1-R-AAAAAZN/226", 3),  # close to a win
    ],
    "yukon": [
        ("RU1-Y-AAAAAAA", 5),
        ("RU1-Y-AAAAABB", 5),
        ("RU1-Y-7777777", 5),
        ("RU1-Y-AAAAAAY/30", 4),  # a group of more than 20 that would fit
        ("RU1-Y-AAAAAAB/30", 4),
        ("RU1-Y-AAAAAAM/37", 4),  # a group of more than 20 that would fit
        ("RU1-Y-AAAAAPP/132", 3),  # close to a win
    ],
}

PERFT_HEADER = """\
# Perft, {rules}: a line `POSITION MODE DEPTH COUNT` says that COUNT sequences of exactly DEPTH legal moves start there.
# POSITION is a game code, or CODE/STEPS: the deal after STEPS moves, at step i (from 0) the move with index
# (7 * i + 3) % n of the n plain legal moves, sorted by the card's text ("TD") and then the destination (0 to 6 a
# column, 7 the foundation); fewer steps where no plain move is left.
# MODE is `plain` (no taking back from a foundation, no idle moves) or `all` (both). A won game has no moves.
# Counted by the reference, never by the engine. Made by: python tests/reference.py
"""


def position(name: str) -> Reference:
    """The game that a perft file calls CODE or CODE/STEPS."""
    code, _, steps = name.partition("/")
    return scripted(code, int(steps or 0))


def write_perft_files() -> None:
    """Count everything in PERFT_POSITIONS anew."""
    PERFT_FOLDER.mkdir(exist_ok=True)
    for rules, positions in PERFT_POSITIONS.items():
        lines: list[str] = []
        for name, deepest in positions:
            game = position(name)
            for mode, allowed in PERFT_MODES.items():
                for depth in range(1, deepest + 1):
                    lines.append(f"{name} {mode} {depth} {perft(game, depth, allowed, allowed)}\n")
        path = PERFT_FOLDER / f"{rules}.txt"
        path.write_text(PERFT_HEADER.format(rules=rules) + "".join(lines), encoding="utf-8")
        print(f"{path}: {len(lines)} counts")


if __name__ == "__main__":
    write_perft_files()
