"""The rules of DESIGN 2 one sentence at a time, on small positions made by hand with their exact moves.

A position is written as its columns from the base, ``"KS QS | (9S) JS | -"``: a card in brackets lies face down, ``-``
is an empty column, and so are those left out at the end. ``...`` stands for all cards that must lie in some column and
do not: those above a card of their suit that does. Cards in no column are on the foundations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rusol_env import (
    VARIANTS,
    Game,
    IllegalMove,
    Move,
    NothingToUndo,
    Rejection,
    RussianSolitaireEnv,
    decode_action,
    encode_action,
    engine,
    parse_move,
)
from rusol_env.cards import card_name, card_text, parse_card
from rusol_env.game import explain

EVERY_VARIANT = pytest.mark.parametrize("rules", VARIANTS)
MODES = [(take_back, idle_moves) for take_back in (False, True) for idle_moves in (False, True)]
UNDO_LIMIT = 100

# What is different under each rule set.
ByRules = dict[str, str]


def position(text: str, rules: str) -> Game:
    """The game that starts in a position written as above."""
    columns = [column.split() for column in text.replace("-", "").split("|")]
    columns += [[] for _ in range(7 - len(columns))]
    face_down = [sum(card.startswith("(") for card in column) for column in columns]
    columns = [[card.strip("()") for card in column] for column in columns]
    there = {parse_card(card) for column in columns for card in column if card != "..."}
    rest = [
        card for card in range(52) if card not in there and any(low in there for low in range(card - card % 13, card))
    ]
    for column in columns:
        if "..." in column:
            at = column.index("...")
            column[at : at + 1] = [card_text(card) for card in reversed(rest)]
    return Game.from_columns(columns, face_down, rules)


def row_of(game: Game) -> NDArray[np.int8]:
    """The packed row of a game."""
    return game._row  # pyright: ignore[reportPrivateUsage]


def without_move_counter(game: Game) -> bytes:
    """All bytes of a game's row but the move counter."""
    row = row_of(game).tobytes()
    return row[: engine.MOVES] + row[engine.MOVES + 8 :]


def assert_moves(game: Game, expected: str, *, take_back: bool = False, idle_moves: bool = False) -> None:
    """The legal moves are exactly those written ``"JS > 1 3, 10C > F"``: a card, and all places it may go to."""
    listed: list[str] = []
    for moves in expected.split(", ") if expected else []:
        card, _, places = moves.partition(" > ")
        listed += [f"{card} > {place}" for place in places.split()]
    legal = game.legal_moves(take_back=take_back, idle_moves=idle_moves)
    assert sorted(move.ascii for move in legal) == sorted(listed)


def of(game: Game, column: int) -> str:
    """A column, counted from 1, as text: its cards from the base, ``##`` for a face-down one."""
    return " ".join("##" if card is None else card_text(card) for card in game.columns[column - 1])


def assert_refused(game: Game, move: str, rejection: Rejection) -> str:
    """The move is refused for that reason and changes no byte; returns the sentence."""
    before = row_of(game).tobytes()
    with pytest.raises(IllegalMove) as refused:
        game.play(move)
    assert row_of(game).tobytes() == before
    assert refused.value.rejection is rejection
    assert refused.value.move == parse_move(move)
    assert game.why_not(move) == (rejection, str(refused.value))
    return str(refused.value)


# ---- The deal ----------------------------------------------------------------------------------------------------

FIRST_MOVES: ByRules = {
    "classic": "8H > 3, 7D > 2, 4C > 5",
    "relaxed": "8D > 1 3 7, 8H > 1 3 7, 8S > 1 3, 7D > 2, 10S > 4 6, 10C > 4 6, 4C > 5, 4D > 5, 4S > 5",
    "yukon": "8D > 1 7, 8H > 1 7, 8S > 3, 10S > 4 6, 10C > 4 6, 4D > 5",
}


@EVERY_VARIANT
def test_deal(rules: str) -> None:
    """Seven columns of 1, 6, 7, 8, 9, 10, 11 cards, column k starting with k face-down ones; score and moves are 0."""
    game = Game.from_number(33, rules)
    assert [of(game, column) for column in range(1, 8)] == [
        "9C",
        "## 9D TC KC KS 8D",
        "## ## 4C 4D 6H TS 9H",
        "## ## ## 3S 3C 8H 5H JD",
        "## ## ## ## 2S AD AH AS 5C",
        "## ## ## ## ## 6S KD 3D 2D JH",
        "## ## ## ## ## ## 7D 8S 2H 4S 9S",
    ]
    assert game.foundations == (0, 0, 0, 0)
    assert (game.score, game.moves, game.won) == (0, 0, False)
    for take_back, idle_moves in MODES:
        assert_moves(game, FIRST_MOVES[rules], take_back=take_back, idle_moves=idle_moves)


# ---- Column to column --------------------------------------------------------------------------------------------

JACKS = "KS QS | KH JS QC | KD JH QD | KC JD QH | JC"
JACKS_MOVES: ByRules = {
    "classic": "JS > 1, JC > 2 F, JD > 3, JH > 4",
    "relaxed": "JS > 1 3 4, JH > 1 2 4, JD > 1 2 3, JC > 1 2 3 4 F",
    "yukon": "JH > 1 2, JD > 1 2, JS > 3 4, JC > 3 4 F",
}
JACKS_TAKEN_BACK: ByRules = {
    "classic": "10C > 5",
    "relaxed": "10S > 5, 10H > 5, 10D > 5, 10C > 5",
    "yukon": "10H > 5, 10D > 5",
}
JACKS_IDLE = "KS > 6 7, KH > 6 7, KD > 6 7, KC > 6 7"


@EVERY_VARIANT
def test_any_face_up_card_moves_onto_what_it_fits(rules: str) -> None:
    """Classic: the same suit, one higher; Relaxed: any suit, one higher; Yukon: the other colour, one higher."""
    game = position(JACKS, rules)
    assert_moves(game, JACKS_MOVES[rules])
    assert_moves(game, f"{JACKS_MOVES[rules]}, {JACKS_TAKEN_BACK[rules]}", take_back=True)
    assert_moves(game, f"{JACKS_MOVES[rules]}, {JACKS_IDLE}", idle_moves=True)
    everything = f"{JACKS_MOVES[rules]}, {JACKS_TAKEN_BACK[rules]}, {JACKS_IDLE}"
    assert_moves(game, everything, take_back=True, idle_moves=True)


@EVERY_VARIANT
def test_a_card_moves_with_all_cards_on_top_of_it(rules: str) -> None:
    """The group lies in its order on the target, and nothing else has moved."""
    move, target, after = {
        "classic": ("JS > 1", 1, "KS QS JS QC"),
        "relaxed": ("JS > 4", 4, "KC JD QH JS QC"),
        "yukon": ("JS > 4", 4, "KC JD QH JS QC"),
    }[rules]
    game = position(JACKS, rules)
    others = {column: of(game, column) for column in range(1, 8) if column not in (2, target)}
    assert game.play(move) == 0
    assert of(game, target) == after
    assert of(game, 2) == "KH"
    assert {column: of(game, column) for column in others} == others
    assert game.moves == 1


RANKS = "KS QS | JS 9S 10S | KH JH QH"
RANKS_MOVES: ByRules = {"classic": "JS > 1", "relaxed": "JS > 1 3, JH > 1", "yukon": "JS > 3, JH > 1"}


@EVERY_VARIANT
def test_exactly_one_rank_higher(rules: str) -> None:
    """No card goes onto one that is two ranks higher, of the same rank, or lower."""
    game = position(RANKS, rules)
    assert_moves(game, RANKS_MOVES[rules])
    for move in ("10S > 1", "9S > 1", "10S > 3", "QS > 3", "QH > 1", "KH > 1", "KS > 2"):
        assert_refused(game, move, Rejection.DOES_NOT_FIT)


@EVERY_VARIANT
def test_no_king_on_an_ace(rules: str) -> None:
    """Ranks do not go round: a king fits on no ace."""
    game = position("KS | ... AH", rules)
    assert_moves(game, {"classic": "", "relaxed": "QH > 1, ", "yukon": "QH > 1, "}[rules] + "KS > F, AH > F")
    assert_refused(game, "KS > 2", Rejection.DOES_NOT_FIT)


# Scenario 1: 4C lies face down under 3C, and a five that it would fit on is open.
SEQUENCE: ByRules = {"classic": "(4C) 3C | ... 5C", "relaxed": "(4C) 3C | ... 5C", "yukon": "(4C) 3C | ... 5H"}
SEQUENCE_REST: ByRules = {"classic": "", "relaxed": "", "yukon": ", 5H > F, KH > 3 4 5 6 7"}


@EVERY_VARIANT
def test_a_group_cannot_start_at_a_face_down_card(rules: str) -> None:
    """Though it is in sequence and its base would fit; once turned up the card moves."""
    game = position(SEQUENCE[rules], rules)
    assert_moves(game, "3C > F" + SEQUENCE_REST[rules])
    assert_refused(game, "4C > 2", Rejection.FACE_DOWN)
    assert game.play("3C > F") == 15
    assert_moves(game, "4C > 2 F" + SEQUENCE_REST[rules])


# Scenario 3.
UNORDERED: ByRules = {
    "classic": "4C | 3C 7D AS 4S 10H | ...",
    "relaxed": "4C | 3C 7D AS 4S 10H | ...",
    "yukon": "4D | 3C 7D AS 4S 10H | ...",
}


@EVERY_VARIANT
def test_a_group_in_no_order_moves(rules: str) -> None:
    """Only the moved card must fit; what lies on it need not be in sequence."""
    game = position(UNORDERED[rules], rules)
    four = of(game, 1)
    assert_refused(game, "7D > 1", Rejection.DOES_NOT_FIT)
    assert parse_move("3C > 1") in game.legal_moves(take_back=False, idle_moves=False)
    game.play("3C > 1")
    assert of(game, 1) == f"{four} 3C 7D AS 4S TH"
    assert of(game, 2) == ""


HEARTS = "AH 2H 3H 4H 5H 6H 7H 8H 9H 10H JH QH KH"
GROUP_OF_20 = f"KS QS | JS {HEARTS} 8C 9C 10C JC QC KC | KD QD"
GROUP_OF_21 = f"KS QS | JS {HEARTS} 7C 8C 9C 10C JC QC KC | KD QD"
LARGE_MOVE: ByRules = {"classic": "JS > 1", "relaxed": "JS > 1", "yukon": "JS > 3"}
GROUP_MOVES: ByRules = {
    "classic": "QD > F, KC > 4 5 6 7, KH > 4 5 6 7",
    "relaxed": "QD > F, KC > 4 5 6 7, KH > 4 5 6 7, JH > 1 3, JC > 1 3, QS > 2, QD > 2",
    "yukon": "QD > F, KC > 4 5 6 7, KH > 4 5 6 7, JH > 1, JC > 3, QD > 2",
}
GROUP_LARGE_MOVES: ByRules = {"classic": "JS > 1", "relaxed": "JS > 1 3", "yukon": "JS > 3"}


@EVERY_VARIANT
def test_20_cards_move(rules: str) -> None:
    """A group of exactly 20 moves, in the game and in the environment."""
    game = position(GROUP_OF_20, rules)
    assert_moves(game, f"{GROUP_MOVES[rules]}, {GROUP_LARGE_MOVES[rules]}")
    move = parse_move(LARGE_MOVE[rules])
    env = RussianSolitaireEnv(rules, deals=[game.arrangement])
    env.reset(seed=0)
    assert env.action_masks()[move.action]
    group = of(game, 2)
    game.play(move)
    assert of(game, move.destination + 1).endswith(group)
    assert len(group.split()) == 20
    info = env.step(move.action)[4]
    assert "rejection" not in info
    assert info["moves"] == 1


@EVERY_VARIANT
def test_21_cards_do_not_move(rules: str) -> None:
    """At most 20 cards move at once: 21 are refused in every layer, with a reason that names the 20."""
    game = position(GROUP_OF_21, rules)
    move = parse_move(LARGE_MOVE[rules])
    assert_moves(game, GROUP_MOVES[rules])
    for take_back, idle_moves in MODES:
        actions = np.empty(engine.MAX_LEGAL, np.int16)
        count = engine.legal(row_of(game), take_back, idle_moves, actions)
        assert move.action not in actions[:count].tolist()
        assert engine.refusal(row_of(game), move.action, take_back, idle_moves) == Rejection.GROUP_TOO_LARGE
    sentence = assert_refused(game, LARGE_MOVE[rules], Rejection.GROUP_TOO_LARGE)
    assert "20" in sentence
    assert "21" in sentence

    env = RussianSolitaireEnv(rules, deals=[game.arrangement])
    before = env.reset(seed=0)[0]
    assert not env.action_masks()[move.action]
    assert env.explain(move.action) == sentence
    after, reward, terminated, _, info = env.step(move.action)
    assert (after == before).all()
    assert (reward, terminated) == (0, False)
    assert info["rejection"] is Rejection.GROUP_TOO_LARGE
    assert info["rejection_text"] == sentence


# ---- Empty columns -----------------------------------------------------------------------------------------------

BURIED_KING = "QS KS JS"


@EVERY_VARIANT
def test_an_empty_column_takes_a_king_with_what_lies_on_it(rules: str) -> None:
    """The king takes the cards on it along; no other card goes to an empty column."""
    game = position(BURIED_KING, rules)
    assert_moves(game, "KS > 2 3 4 5 6 7, JS > F")
    for move in ("QS > 2", "JS > 7"):
        assert_refused(game, move, Rejection.EMPTY_NEEDS_KING)
    game.play("KS > 5")
    assert (of(game, 1), of(game, 5)) == ("QS", "KS JS")
    assert_moves(game, {"classic": "JS > 1 F", "relaxed": "JS > 1 F", "yukon": "JS > F"}[rules])


KING_WITH_19 = f"QS KS JS {HEARTS} 9C 10C JC QC KC"
KING_WITH_20 = f"QS KS JS {HEARTS} 8C 9C 10C JC QC KC"


@EVERY_VARIANT
def test_20_cards_move_to_an_empty_column_and_21_do_not(rules: str) -> None:
    """The limit holds for empty columns as well."""
    assert_moves(position(KING_WITH_19, rules), "KS > 2 3 4 5 6 7, KH > 2 3 4 5 6 7, KC > 2 3 4 5 6 7")
    game = position(KING_WITH_20, rules)
    assert_moves(game, "KH > 2 3 4 5 6 7, KC > 2 3 4 5 6 7")
    assert_refused(game, "KS > 2", Rejection.GROUP_TOO_LARGE)


IDLE = "KS QS"


@EVERY_VARIANT
def test_an_idle_move_renames_columns(rules: str) -> None:
    """A king that is its whole column may go to another empty one where that is allowed: nothing else changes."""
    game = position(IDLE, rules)
    assert_moves(game, "QS > F")
    assert_moves(game, "QS > F, KS > 2 3 4 5 6 7", idle_moves=True)
    key = game.key
    assert game.play("KS > 4") == 0
    assert (of(game, 1), of(game, 4)) == ("", "KS QS")
    assert (game.key, game.score, game.moves) == (key, 0, 1)


@EVERY_VARIANT
def test_a_king_on_a_face_down_card_is_not_idle(rules: str) -> None:
    """Its move turns the card up, so it is among the plain moves."""
    game = position("(QS) KS", rules)
    assert_moves(game, "KS > 2 3 4 5 6 7")
    assert game.play("KS > 2") == 5
    assert_moves(game, {"classic": "QS > 2 F", "relaxed": "QS > 2 F", "yukon": "QS > F"}[rules])


# ---- Foundations -------------------------------------------------------------------------------------------------

ACES = "... 3S | 2S AS"


@EVERY_VARIANT
def test_a_foundation_is_built_from_the_ace_up(rules: str) -> None:
    """Only a column's last card goes there, and only the next one of its suit."""
    beside: str = {"classic": ", 2S > 1", "relaxed": ", 2S > 1", "yukon": ""}[rules]
    game = position(ACES, rules)
    assert_moves(game, "AS > F" + beside)
    assert_refused(game, "2S > F", Rejection.NOT_LAST)
    assert_refused(game, "3S > F", Rejection.FOUNDATION_ORDER)
    assert game.play("AS > F") == 10
    assert game.foundations == (1, 13, 13, 13)
    assert_moves(game, "2S > F" + beside)
    assert_refused(game, "AS > F", Rejection.ON_FOUNDATION)
    assert_refused(game, "3S > F", Rejection.FOUNDATION_ORDER)


@EVERY_VARIANT
def test_one_card_at_a_time_to_a_foundation(rules: str) -> None:
    """No run goes up at once, and nothing goes up by itself."""
    game = position("... 3S 2S AS", rules)
    assert_moves(game, "AS > F")
    assert_refused(game, "2S > F", Rejection.NOT_LAST)
    for rank, card in enumerate(["AS", "2S", "3S"], start=1):
        assert game.play(f"{card} > F") == 10
        assert game.foundations == (rank, 13, 13, 13)
        assert game.score == 10 * rank


TENS = "KS QS JS | KH QH JH | KD QD JD | KC QC JC"
TENS_PLAIN = "JS > F, JH > F, JD > F, JC > F"
TENS_TAKEN_BACK: ByRules = {
    "classic": "10S > 1, 10H > 2, 10D > 3, 10C > 4",
    "relaxed": "10S > 1 2 3 4, 10H > 1 2 3 4, 10D > 1 2 3 4, 10C > 1 2 3 4",
    "yukon": "10S > 2 3, 10H > 1 4, 10D > 1 4, 10C > 2 3",
}
TENS_IDLE = "KS > 5 6 7, KH > 5 6 7, KD > 5 6 7, KC > 5 6 7"


@EVERY_VARIANT
def test_a_foundations_top_card_comes_back_where_it_fits(rules: str) -> None:
    """Only the top card, and only where taking back is allowed."""
    game = position(TENS, rules)
    assert_moves(game, TENS_PLAIN)
    assert_moves(game, f"{TENS_PLAIN}, {TENS_TAKEN_BACK[rules]}", take_back=True)
    assert_moves(game, f"{TENS_PLAIN}, {TENS_IDLE}", idle_moves=True)
    assert_moves(game, f"{TENS_PLAIN}, {TENS_TAKEN_BACK[rules]}, {TENS_IDLE}", take_back=True, idle_moves=True)
    assert_refused(game, "9S > 1", Rejection.NOT_TOP)
    assert_refused(game, "10S > 5", Rejection.EMPTY_NEEDS_KING)


@EVERY_VARIANT
def test_a_king_comes_back_to_an_empty_column(rules: str) -> None:
    """From its foundation a king may go to any empty column: no idle move."""
    jack: str = {"classic": ", JS > 1", "relaxed": ", JS > 1", "yukon": ""}[rules]
    game = position(IDLE, rules)
    assert_moves(game, "QS > F, KH > 2 3 4 5 6 7, KD > 2 3 4 5 6 7, KC > 2 3 4 5 6 7" + jack, take_back=True)
    assert game.play("KD > 3") == 0
    assert of(game, 3) == "KD"
    assert game.foundations == (11, 13, 12, 13)


TEN_BACK: ByRules = {"classic": "10S", "relaxed": "10S", "yukon": "10H"}


@EVERY_VARIANT
def test_taking_back_costs_nothing_and_putting_up_earns_again(rules: str) -> None:
    """The score goes 0, 10, 10, 20, 20, 30: never down."""
    game = position(TENS, rules)
    ten = TEN_BACK[rules]
    assert game.play("JD > F") == 10
    for score in (20, 30):
        assert game.play(f"{ten} > 1") == 0
        assert game.score == score - 10
        assert of(game, 1) == f"KS QS JS {card_text(parse_card(ten))}"
        assert game.play(f"{ten} > F") == 10
        assert game.score == score
    assert game.moves == 5


# ---- Turning up --------------------------------------------------------------------------------------------------

TURN = "(8S) (7S) 9S | KS QS JS 10S | KH QH JH 10H"
TURN_MOVES: ByRules = {
    "classic": "9S > 2, 10H > F",
    "relaxed": "9S > 2 3, 10H > F",
    "yukon": "9S > 3, 10H > F",
}
TURN_MOVE: ByRules = {"classic": "9S > 2", "relaxed": "9S > 2", "yukon": "9S > 3"}
TURNED_MOVES: ByRules = {"classic": "7S > F, 10H > F", "relaxed": "7S > F, 9S > 3, 10H > F", "yukon": "7S > F"}


@EVERY_VARIANT
def test_a_face_down_card_that_becomes_the_last_is_turned_up(rules: str) -> None:
    """It is turned at once, is the card that lay there, earns 5, and can move; the one below stays face down."""
    game = position(TURN, rules)
    assert_moves(game, TURN_MOVES[rules])
    assert game.play(TURN_MOVE[rules]) == 5
    assert of(game, 1) == "## 7S"
    assert_moves(game, TURNED_MOVES[rules])
    assert game.play("7S > F") == 15
    assert of(game, 1) == "8S"
    assert game.play("8S > F") == 10
    assert of(game, 1) == ""
    assert game.score == 30


@EVERY_VARIANT
def test_a_turned_card_is_hidden_again_by_undo(rules: str) -> None:
    """Scenario 6: face down again, unknown again, and refused as such."""
    game = position(TURN, rules)
    shown = repr(game)
    game.play(TURN_MOVE[rules])
    game.undo()
    assert of(game, 1) == "## ## 9S"
    assert game.score == 0
    assert repr(game) == shown.replace("moves 0", "moves 1")
    assert game.destinations("7S") == []
    for destination in range(8):
        assert_refused(game, Move(parse_card("7S"), destination).ascii, Rejection.FACE_DOWN)
    assert_moves(game, TURN_MOVES[rules])


# ---- The end -----------------------------------------------------------------------------------------------------


@EVERY_VARIANT
def test_a_won_game_has_no_moves(rules: str) -> None:
    """Won with the 52nd card on the foundations and not before; then every action is refused."""
    game = position(IDLE, rules)
    game.play("QS > F")
    assert not game.won
    assert of(game, 1) == "KS"
    assert game.play("KS > F") == 10
    assert game.won
    for take_back, idle_moves in MODES:
        assert_moves(game, "", take_back=take_back, idle_moves=idle_moves)
        for action in range(engine.NUM_ACTIONS):
            assert engine.refusal(row_of(game), action, take_back, idle_moves) == Rejection.GAME_WON
    assert_refused(game, "KS > 1", Rejection.GAME_WON)
    game.undo()
    assert not game.won
    assert_moves(game, "KS > F")


# ---- Undo --------------------------------------------------------------------------------------------------------


@EVERY_VARIANT
def test_the_last_100_moves_can_be_undone(rules: str) -> None:
    """The 101st undo is refused and changes nothing; the move counter keeps what it had."""
    game = position(TENS, rules)
    ten = TEN_BACK[rules]
    game.play("JD > F")
    game.play("QD > F")
    after_two = without_move_counter(game)
    for _ in range(UNDO_LIMIT // 2):
        game.play(f"{ten} > 1")
        game.play(f"{ten} > F")
    assert (game.score, game.moves) == (20 + 10 * UNDO_LIMIT // 2, UNDO_LIMIT + 2)
    for _ in range(UNDO_LIMIT):
        game.undo()
    assert without_move_counter(game) == after_two
    assert game.score == 20
    before = row_of(game).tobytes()
    with pytest.raises(NothingToUndo, match="100"):
        game.undo()
    assert row_of(game).tobytes() == before
    assert game.moves == UNDO_LIMIT + 2


@EVERY_VARIANT
def test_a_new_game_has_nothing_to_undo(rules: str) -> None:
    """Nor has one where a move was only attempted."""
    game = position(TENS, rules)
    assert_refused(game, "9S > 1", Rejection.NOT_TOP)
    with pytest.raises(NothingToUndo):
        game.undo()


@EVERY_VARIANT
def test_a_move_and_its_turned_card_are_one_undo_step(rules: str) -> None:
    """Scenario 5: after one undo the row, the legal moves, key and score are what they were, bit for bit."""
    game = position(TURN, rules)
    states: list[tuple[bytes, int, int, list[list[Move]]]] = []

    def state() -> tuple[bytes, int, int, list[list[Move]]]:
        legal = [game.legal_moves(take_back=take_back, idle_moves=idle_moves) for take_back, idle_moves in MODES]
        return without_move_counter(game), game.key, game.score, legal

    moves = [TURN_MOVE[rules], "7S > F", "8S > F"]  # two of them turn a card up
    for move in moves:
        states.append(state())
        game.play(move)
    for expected in reversed(states):
        game.undo()
        assert state() == expected
    assert game.moves == len(moves)
    with pytest.raises(NothingToUndo):
        game.undo()


# ---- Every layer says the same -----------------------------------------------------------------------------------

NAMED: dict[str, str | ByRules] = {
    "jacks": JACKS,
    "ranks": RANKS,
    "sequence": SEQUENCE,
    "unordered": UNORDERED,
    "group of 20": GROUP_OF_20,
    "group of 21": GROUP_OF_21,
    "buried king": BURIED_KING,
    "king with 20": KING_WITH_20,
    "idle": IDLE,
    "aces": ACES,
    "tens": TENS,
    "turn": TURN,
}


@EVERY_VARIANT
@pytest.mark.parametrize("name", NAMED)
def test_every_layer_says_the_same(name: str, rules: str) -> None:
    """Mask, explanation, step and refusal call the same moves legal as `Game.legal_moves`, in all modes."""
    text = NAMED[name]
    game = position(text if isinstance(text, str) else text[rules], rules)
    for take_back, idle_moves in MODES:
        legal = {move.action for move in game.legal_moves(take_back=take_back, idle_moves=idle_moves)}
        env = RussianSolitaireEnv(
            rules, deals=[game.arrangement], take_back=take_back, idle_moves=idle_moves, reward="progress"
        )
        env.reset(seed=0)
        assert set(np.flatnonzero(env.action_masks()).tolist()) == legal
        assert {action for action in range(engine.NUM_ACTIONS) if env.explain(action) == ""} == legal
        row = row_of(game)
        refusals = [engine.refusal(row, action, take_back, idle_moves) for action in range(engine.NUM_ACTIONS)]
        assert {action for action, refusal in enumerate(refusals) if refusal == Rejection.NONE} == legal
        for action in range(engine.NUM_ACTIONS):
            env.reset()
            info = env.step(action)[4]
            assert ("rejection" not in info) == (action in legal)
            assert info.get("rejection", Rejection.NONE) == refusals[action]


# ---- Reasons for refusals ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A position and a move that is refused in it."""

    position: str
    move: str | ByRules
    take_back: bool = True
    idle_moves: bool = True


CASES = {
    Rejection.FACE_DOWN: Case("(9S) ... 10S", "9S > 2"),
    Rejection.NOT_LAST: Case("KS JS QS", "JS > F"),
    Rejection.FOUNDATION_ORDER: Case("QS KS", "KS > F"),
    Rejection.ON_FOUNDATION: Case("KS", "10D > F"),
    Rejection.NOT_TOP: Case("KS QS", "10S > 1"),
    Rejection.SAME_COLUMN: Case("KS QS", "QS > 1"),
    Rejection.EMPTY_NEEDS_KING: Case("KS QS", "QS > 2"),
    Rejection.DOES_NOT_FIT: Case("KS | KH JS QS", "JS > 1"),
    Rejection.GROUP_TOO_LARGE: Case(GROUP_OF_21, LARGE_MOVE),
    Rejection.TAKE_BACK_OFF: Case("KS QS", "KH > 2", take_back=False),
    Rejection.IDLE_MOVE: Case("KS QS", "KS > 2", idle_moves=False),
    Rejection.GAME_WON: Case("-", "KS > 1"),
}


@EVERY_VARIANT
@pytest.mark.parametrize("rejection", [member for member in Rejection if member is not Rejection.NONE])
def test_every_reason_has_its_sentence(rejection: Rejection, rules: str) -> None:
    """Some position produces each reason; its sentence is one line that names the card and ends with a full stop."""
    case = CASES[rejection]
    game = position(case.position, rules)
    move = parse_move(case.move if isinstance(case.move, str) else case.move[rules])
    row = row_of(game)
    assert engine.refusal(row, move.action, case.take_back, case.idle_moves) == rejection
    sentence = explain(row, game.rules, move, rejection)
    # The end of the game is no fault of the card.
    assert (card_name(move.card) in sentence) == (rejection is not Rejection.GAME_WON)
    assert sentence == sentence.strip()
    assert "\n" not in sentence
    assert sentence.endswith(".")
    if case.take_back and case.idle_moves:
        assert assert_refused(game, move.ascii, rejection) == sentence
        # What is switched off is no other move's reason.
        for take_back, idle_moves in MODES:
            assert engine.refusal(row, move.action, take_back, idle_moves) == rejection
    else:
        assert engine.refusal(row, move.action, True, True) == Rejection.NONE
        game.play(move)
        assert game.moves == 1


@EVERY_VARIANT
def test_a_legal_move_has_no_reason(rules: str) -> None:
    """NONE has an empty sentence."""
    game = position(TENS, rules)
    assert game.why_not("JS > F") == (Rejection.NONE, "")


NEEDS: ByRules = {
    "classic": "The 7♥ needs the 8♥ to lie on: same suit, one higher.",
    "relaxed": "The 7♥ needs an 8 to lie on: any suit, one higher.",
    "yukon": "The 7♥ needs the 8♠ or the 8♣ to lie on: the other colour, one higher.",
}


@EVERY_VARIANT
def test_a_card_that_does_not_fit_is_told_what_it_needs(rules: str) -> None:
    """In the words of the rule set that is played."""
    game = position("7H | ... KS", rules)
    assert assert_refused(game, "7H > 2", Rejection.DOES_NOT_FIT) == NEEDS[rules]


@EVERY_VARIANT
def test_the_reason_does_not_tell_where_a_face_down_card_lies(rules: str) -> None:
    """Every move of a face-down card is refused as face down, in all modes, also onto its own column."""
    game = position("(9S) (QS) 10S | (JS) KS", rules)
    for card in ("9S", "QS", "JS"):
        sentences = {assert_refused(game, f"{card} > {place}", Rejection.FACE_DOWN) for place in "1234567F"}
        assert len(sentences) == 1


# ---- Placement help ----------------------------------------------------------------------------------------------

DESTINATIONS: dict[str, dict[str, list[int]]] = {
    "classic": {"JS": [0], "JH": [3], "JD": [2], "JC": [1, 7], "QS": [], "KH": [5, 6], "10C": [4], "10S": [], "9C": []},
    "relaxed": {"JS": [0, 2, 3], "JH": [0, 1, 3], "JD": [0, 1, 2], "JC": [0, 1, 2, 3, 7], "QS": [], "10S": [4]},
    "yukon": {"JS": [2, 3], "JH": [0, 1], "JD": [0, 1], "JC": [2, 3, 7], "QC": [], "10H": [4], "10S": []},
}


@EVERY_VARIANT
def test_placement_help(rules: str) -> None:
    """All places a card may go to, by its text or id."""
    game = position(JACKS, rules)
    for card, expected in DESTINATIONS[rules].items():
        assert game.destinations(card) == expected
        assert game.destinations(parse_card(card)) == expected


DOUBLE_TAPS: dict[str, dict[str, str]] = {
    # Columns 1 to 5 of JACKS hold 2, 3, 3, 3 and 1 cards.
    "classic": {"JC": "JC > F", "JS": "JS > 1", "JD": "JD > 3", "KH": "KH > 6", "10C": "10C > 5"},
    "relaxed": {"JC": "JC > F", "JS": "JS > 3", "JH": "JH > 2", "JD": "JD > 2", "KC": "KC > 6", "10S": "10S > 5"},
    "yukon": {"JC": "JC > F", "JS": "JS > 3", "JH": "JH > 2", "JD": "JD > 2", "KS": "KS > 6", "10D": "10D > 5"},
}


@EVERY_VARIANT
def test_double_tap(rules: str) -> None:
    """The foundation; else the longest column that fits, the leftmost of equals; else an empty column for a king."""
    game = position(JACKS, rules)
    for card, expected in DOUBLE_TAPS[rules].items():
        assert game.double_tap(card) == game.double_tap(parse_card(card)) == parse_move(expected)
    for card in ("QS", "QD", "9S"):
        assert game.double_tap(card) is None
    assert position(TURN, rules).double_tap("7S") is None


@EVERY_VARIANT
def test_double_tap_prefers_the_foundation(rules: str) -> None:
    """Also to a column where the card fits."""
    game = position("KS QS | KH QH | KD QD | KC QC | JS JH JD JC", rules)
    fits = {"classic": [3, 7], "relaxed": [0, 1, 2, 3, 7], "yukon": [1, 2, 7]}
    assert game.destinations("JC") == fits[rules]
    assert game.double_tap("JC") == parse_move("JC > F")
    assert position(BURIED_KING, rules).double_tap("KS") == parse_move("KS > 2")


def test_double_tap_counts_face_down_cards() -> None:
    """The longest column is the one with the most cards, whatever faces they show."""
    game = position("KS KC QS | (KH) (KD) (QD) QC | QH | 10S JH JS", "relaxed")
    assert game.destinations("JS") == [0, 1, 2]
    assert game.double_tap("JS") == parse_move("JS > 2")


def test_placement_help_refuses_what_is_no_card() -> None:
    """Text or an id that is no card is an error, not an empty answer."""
    game = position(JACKS, "classic")
    for card in ("1H", "", 52, -1):
        with pytest.raises(ValueError, match="not a card"):
            game.destinations(card)
        with pytest.raises(ValueError, match="not a card"):
            game.double_tap(card)


# ---- Moves as text and numbers -----------------------------------------------------------------------------------


def test_all_actions_are_read_back_from_their_text() -> None:
    """Both texts of each of the 416 actions, in any letter case, give it back; so does its number."""
    texts: set[str] = set()
    for action in range(52 * 8):
        move = decode_action(action)
        assert move == Move(action // 8, action % 8)
        assert move.action == encode_action(move.card, move.destination) == action
        for text in (str(move), move.ascii):
            assert parse_move(text) == parse_move(text.lower()) == parse_move(f"  {text.upper()} ") == move
            texts.add(text)
    assert len(texts) == 2 * 416


@pytest.mark.parametrize(
    ("text", "card", "destination"),
    [
        ("10H > 3", "10H", 2),
        ("TH > 3", "10H", 2),
        ("10♥ → column 3", "10H", 2),
        ("10h>3", "10H", 2),
        ("10H -> 3", "10H", 2),
        ("10H->3", "10H", 2),
        ("10H 3", "10H", 2),
        ("AS > F", "AS", 7),
        ("as f", "AS", 7),
        ("A♠ → foundation", "AS", 7),
        ("kc > 1", "KC", 0),
        ("KC > 7", "KC", 6),
    ],
)
def test_ways_to_write_a_move(text: str, card: str, destination: int) -> None:
    """What people write is read."""
    assert parse_move(text) == Move(parse_card(card), destination)


def test_how_a_move_is_written() -> None:
    """Columns are numbered from 1 in text and from 0 in the API."""
    assert (str(Move(22, 2)), Move(22, 2).ascii) == ("10♥ → column 3", "10H > 3")
    assert (str(Move(0, 7)), Move(0, 7).ascii) == ("A♠ → foundation", "AS > F")


NO_CARD = ["", " ", "> 3", "1H > 3", "11H > 3", "XX > F", "10 > 3", "3 > 10H"]
NO_PLACE = ["10H", "10H >", "10H > 0", "10H > 8", "10H > -1", "10H > G", "10H > FF", "10H > 3.0"]
NO_MOVE = ["10H3", "10H >> 3", "10H > 3 > 4", "10H > 3, 9H > 4"]


@pytest.mark.parametrize("text", NO_CARD + NO_PLACE + NO_MOVE)
def test_bad_text_is_no_move(text: str) -> None:
    """It raises ValueError with a message, in the game as well, and changes nothing."""
    with pytest.raises(ValueError, match=r"\w"):
        parse_move(text)
    game = position(TENS, "classic")
    before = row_of(game).tobytes()
    with pytest.raises(ValueError, match=r"\w") as bad:
        game.play(text)
    assert not isinstance(bad.value, IllegalMove)
    assert row_of(game).tobytes() == before


def test_bad_numbers_are_no_move() -> None:
    """Neither actions outside 0 to 415 nor cards or destinations that do not exist."""
    game = position(TENS, "classic")
    for action in (-1, 416):
        with pytest.raises(ValueError, match="not an action"):
            decode_action(action)
        with pytest.raises(ValueError, match="not an action"):
            game.play(action)
    for card, destination in ((-1, 0), (52, 0), (0, -1), (0, 8)):
        with pytest.raises(ValueError, match="is not a"):
            encode_action(card, destination)
        with pytest.raises(ValueError, match="is not a"):
            game.play(Move(card, destination))


@pytest.mark.parametrize("move", [95.7, True, None, float("nan"), -1, 416, b"QS > F", Move(11.5, 7), Move(60, 0)])  # pyright: ignore[reportArgumentType]
def test_what_is_no_move_is_refused(move: Any) -> None:
    game = Game.from_columns([["KS", "QS"], [], [], [], [], [], []], [0] * 7)
    with pytest.raises(ValueError, match="is not"):
        game.play(move)
    assert game.moves == 0


@pytest.mark.parametrize(
    "text", ["QS > ٣", "QS > " + "9" * 50, "QS > 0", "QS > 8", "QS >", "> 3", "", "QS to 3", "1S > 2"]
)
def test_text_that_is_no_move_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|there is no column"):
        parse_move(text)
