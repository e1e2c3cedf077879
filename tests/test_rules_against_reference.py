"""The engine against the independent judge in reference.py: long walks through random games of every variant."""

from __future__ import annotations

import random
from enum import Enum, auto
from hashlib import blake2b
from itertools import count
from unittest import TestCase

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.typing import NDArray
from reference import DECK, FOUNDATION, PERFT_POSITIONS, UNDO_LIMIT, Reference, deal, position, scripted

from rusol_env import VARIANTS, Game, IllegalMove, Move, NothingToUndo, Rejection, encode_code, engine
from rusol_env.cards import card_text
from rusol_env.deals import NUM_DEALS
from rusol_env.rules import DEAL_FACE_DOWN

MODES = [(take_back, idle_moves) for take_back in (False, True) for idle_moves in (False, True)]
WIN_SCORE = 52 * 10 + 21 * 5
TAKE_BACK_POINTS = 10

JudgeMove = tuple[str, int]


def row_of(game: Game) -> NDArray[np.int8]:
    """The packed row of a game."""
    return game._row  # pyright: ignore[reportPrivateUsage]


def bytes_without(row: NDArray[np.int8], *fields: int) -> bytes:
    """All bytes of a row, those of the given 8-byte fields set to 0."""
    copy = row.copy()
    for field in fields:
        copy[field : field + 8] = 0
    return copy.tobytes()


def in_judges_words(move: Move) -> JudgeMove:
    """A move of the package as the reference writes it."""
    return card_text(move.card), move.destination


def in_our_words(move: JudgeMove) -> Move:
    """A move of the reference as the package writes it."""
    return Move(DECK.index(move[0]), move[1])


def legal_moves(game: Game, take_back: bool, idle_moves: bool) -> list[JudgeMove]:
    """The game's legal moves, as the reference lists its own."""
    return sorted(in_judges_words(move) for move in game.legal_moves(take_back=take_back, idle_moves=idle_moves))


def seen(game: Game) -> tuple[list[list[str | None]], list[int]]:
    """What a player sees of the game, as `Reference.visible` says it."""
    columns = [[None if card is None else card_text(card) for card in column] for column in game.columns]
    return columns, list(game.foundations)


def assert_same_position(game: Game, judge: Reference) -> None:
    """Both hold the same cards in the same places, none lost and none doubled, with the same score."""
    assert seen(game) == judge.visible()
    arrangement = game.arrangement
    assert arrangement.text() == judge.columns
    assert list(arrangement.face_down) == judge.face_down
    up = [suit * 13 + rank for suit, count in enumerate(game.foundations) for rank in range(count)]
    assert sorted(up + [card for column in arrangement.columns for card in column]) == list(range(52))
    assert game.score == judge.score
    assert game.moves == judge.moves
    assert game.won == judge.won


def choose(rng: random.Random, moves: list[JudgeMove], upwards: float) -> JudgeMove:
    """Any of the moves; with probability `upwards` one to a foundation, if there is one."""
    up = [move for move in moves if move[1] == FOUNDATION]
    return rng.choice(up if up and rng.random() < upwards else moves)


class Start(Enum):
    """Where a walk starts."""

    DEAL = auto()
    MIDDLE = auto()
    LATE = auto()


class Walk(RuleBasedStateMachine):
    """A `Game` and a `Reference` that do the same things and must stay the same."""

    variant: str

    def __init__(self) -> None:
        super().__init__()
        self.game = Game.from_number(0, self.variant)
        self.judge = Reference(self.variant, deal(0), list(DEAL_FACE_DOWN))
        # The row before each move that can still be undone, and the move.
        self.history: list[tuple[bytes, JudgeMove]] = []

    @initialize(number=st.integers(0, NUM_DEALS - 1), steps=st.integers(0, 150), start=st.sampled_from(Start))
    def start(self, number: int, steps: int, start: Start) -> None:
        """A random deal, the position some moves later, or one of the late positions that perft counts from."""
        if start is Start.DEAL:
            self.game = Game.from_number(number, self.variant)
            self.judge = Reference(self.variant, deal(number), list(DEAL_FACE_DOWN))
        else:
            late = [name for name, _ in PERFT_POSITIONS[self.variant] if "/" in name]
            code = encode_code(number, self.variant)
            middle = scripted(code, steps) if start is Start.MIDDLE else position(late[number % len(late)])
            self.judge = Reference(self.variant, middle.columns, middle.face_down)
            self.game = Game.from_columns(middle.columns, middle.face_down, self.variant)
        self.history = []

    def snapshot(self) -> bytes:
        """All of the row but the move counter."""
        return bytes_without(row_of(self.game), engine.MOVES)

    def make(self, move: JudgeMove) -> None:
        """Play a legal move in both games; both say the same points."""
        self.history = [*self.history, (self.snapshot(), move)][-UNDO_LIMIT:]
        assert self.game.play(in_our_words(move)) == self.judge.play(*move)

    def unmake(self) -> JudgeMove:
        """Undo in both games: all but the move counter is bit for bit what it was. Returns the undone move."""
        before, move = self.history.pop()
        moves = self.game.moves
        self.game.undo()
        self.judge.undo()
        assert self.snapshot() == before
        assert self.game.moves == moves
        return move

    def assert_refused(self, move: Move) -> None:
        """The move is refused with a reason and a sentence, and changes no byte."""
        before = row_of(self.game).tobytes()
        with pytest.raises(IllegalMove) as refused:
            self.game.play(move)
        assert row_of(self.game).tobytes() == before
        assert refused.value.move == move
        assert refused.value.rejection is not Rejection.NONE
        assert self.game.why_not(move) == (refused.value.rejection, str(refused.value))

    def assert_nothing_to_undo(self) -> None:
        """Undo is refused in both games and changes no byte."""
        before = row_of(self.game).tobytes()
        with pytest.raises(NothingToUndo):
            self.game.undo()
        assert row_of(self.game).tobytes() == before
        with pytest.raises(IndexError):
            self.judge.undo()

    @precondition(lambda self: bool(self.judge.legal_moves()))
    @rule(choice=st.integers(0, 2**16))
    def play(self, choice: int) -> None:
        """Any legal move, taking back and idle moves included."""
        moves = self.judge.legal_moves()
        self.make(moves[choice % len(moves)])

    @precondition(lambda self: bool(self.judge.legal_moves(take_back=False)))
    @rule(seed=st.integers(0, 2**16), length=st.integers(1, 60))
    def burst(self, seed: int, length: int) -> None:
        """Many moves at once, most of them upwards, to come to late positions."""
        rng = random.Random(seed)
        for _ in range(length):
            moves = self.judge.legal_moves(take_back=False)
            if not moves:
                break
            self.make(choose(rng, moves, upwards=0.9))
            assert_same_position(self.game, self.judge)

    @rule(times=st.integers(1, 6))
    def undo(self, times: int) -> None:
        """Several undos in a row; one too many is refused."""
        for _ in range(times):
            if not self.history:
                self.assert_nothing_to_undo()
                break
            self.unmake()

    @precondition(lambda self: bool(self.history))
    @rule()
    def undo_all_and_play_again(self) -> None:
        """Undo as far as it goes, then make the same moves again: the same position comes back."""
        end, moves = self.snapshot(), [self.unmake() for _ in range(len(self.history))]
        assert_same_position(self.game, self.judge)
        self.assert_nothing_to_undo()
        for move in reversed(moves):
            self.make(move)
        assert self.snapshot() == end

    @rule(card=st.integers(0, 51), destination=st.integers(0, FOUNDATION))
    def attempt(self, card: int, destination: int) -> None:
        """Any card to anywhere: played if the judge calls it legal, else refused."""
        move = Move(card, destination)
        if in_judges_words(move) in self.judge.legal_moves():
            self.make(in_judges_words(move))
        else:
            self.assert_refused(move)
            with pytest.raises(ValueError, match="not legal"):
                self.judge.play(*in_judges_words(move))

    @rule()
    def attempt_everything_illegal(self) -> None:
        """Every illegal card and destination is refused."""
        legal = {in_our_words(move) for move in self.judge.legal_moves()}
        for card in range(52):
            for destination in range(FOUNDATION + 1):
                if (card, destination) not in legal:
                    self.assert_refused(Move(card, destination))

    @invariant()
    def same_position(self) -> None:
        """Cards, faces, score, moves and end agree, and the cards are conserved."""
        assert_same_position(self.game, self.judge)

    @invariant()
    def same_legal_moves(self) -> None:
        """The lists of legal moves agree in all modes, and exactly the moves in them are not refused."""
        row = row_of(self.game)
        for take_back, idle_moves in MODES:
            expected = self.judge.legal_moves(take_back, idle_moves)
            assert legal_moves(self.game, take_back, idle_moves) == expected
            accepted = [
                action
                for action in range(engine.NUM_ACTIONS)
                if engine.refusal(row, action, take_back, idle_moves) == Rejection.NONE
            ]
            assert accepted == sorted(in_our_words(move).action for move in expected)

    @invariant()
    def row_is_consistent(self) -> None:
        """The key kept up move by move, and every other byte, are as if the position were laid out anew."""
        row = row_of(self.game)
        assert self.game.key == engine.position_key(row)
        anew = row_of(Game(self.game.arrangement, self.variant))
        fields = (engine.SCORE, engine.MOVES)
        assert bytes_without(row, *fields) == bytes_without(anew, *fields)


def walk_test(rules: str) -> type[TestCase]:
    """The state machine under one rule set as a test case."""

    class Machine(Walk):
        variant = rules

    Machine.__name__ = Machine.__qualname__ = f"Walk{rules.title()}"
    Machine.TestCase.settings = settings(
        max_examples=50,
        stateful_step_count=30,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    return Machine.TestCase


for _name in VARIANTS:
    globals()[f"TestWalk{_name.title()}"] = walk_test(_name)


class Positions:
    """All positions met so far, to hold their keys against `Reference.canonical`."""

    def __init__(self) -> None:
        self.canonical_of: dict[int, bytes] = {}
        self.key_of: dict[bytes, int] = {}

    def meet(self, game: Game, judge: Reference) -> None:
        """Equal positions have equal keys, different ones different keys."""
        canonical = blake2b(repr(judge.canonical()).encode(), digest_size=16).digest()
        assert self.canonical_of.setdefault(game.key, canonical) == canonical, "two positions have one key"
        assert self.key_of.setdefault(canonical, game.key) == game.key, "one position has two keys"

    def meet_renamed(self, rng: random.Random, judge: Reference, rules: str) -> None:
        """The same position with its columns in another order."""
        order = rng.sample(range(7), 7)
        columns, face_down = [judge.columns[k] for k in order], [judge.face_down[k] for k in order]
        self.meet(Game.from_columns(columns, face_down, rules), Reference(rules, columns, face_down))


@pytest.mark.parametrize("rules", VARIANTS)
def test_random_games(rules: str) -> None:
    """300 games, or as many as give 12,000 positions, agree with the judge from the deal to the end.

    A win scores 625, and 10 more for each card taken back; no other game without taking back comes to 625. Every
    third game also takes cards back and makes idle moves. Over all positions of all games, keys are equal exactly if
    the positions are.
    """
    positions = Positions()
    moves_made = plain_wins = 0
    for number in count():
        if number >= 300 and moves_made >= 12_000:
            break
        rng = random.Random(f"{rules} {number}")
        everything = number % 3 == 0
        deal_number = rng.randrange(NUM_DEALS)
        game = Game.from_number(deal_number, rules)
        judge = Reference(rules, deal(deal_number), list(DEAL_FACE_DOWN))
        positions.meet_renamed(rng, judge, rules)
        taken_back = 0
        while True:
            positions.meet(game, judge)
            moves = judge.legal_moves(everything, everything)
            assert legal_moves(game, everything, everything) == moves
            over = not moves or judge.moves == 150
            if over or judge.moves % 10 == 0:
                assert_same_position(game, judge)
            if over:
                break
            move = choose(rng, moves, upwards=0.95)
            taken_back += all(move[0] not in column for column in judge.columns)
            assert game.play(in_our_words(move)) == judge.play(*move)
        positions.meet_renamed(rng, judge, rules)
        moves_made += game.moves
        if game.won:
            assert game.score == WIN_SCORE + TAKE_BACK_POINTS * taken_back
            for take_back, idle_moves in MODES:
                assert legal_moves(game, take_back, idle_moves) == []
            plain_wins += taken_back == 0
        elif taken_back == 0:
            assert game.score < WIN_SCORE
    assert plain_wins > 0, "no game was won: the walks come to no late position"
