"""The planner: how well it plays, that it repeats itself exactly, and what it refuses."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rusol_env
from rusol_env import VARIANTS, Arrangement, Game, PlannerPolicy, Solver, Verdict, deal_arrangement
from rusol_env.cli import main
from rusol_env.engine import NUM_ACTIONS


@functools.cache
def winnable(count: int) -> list[int]:
    verdicts, _, _ = Solver("classic").solve_deals(np.arange(1000))
    return np.flatnonzero(verdicts == Verdict.WINNABLE)[:count].tolist()


def seen(game: Game, take_back: bool = False) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """The "board" observation and the action mask, with a batch axis."""
    board = np.full((1, 8, 52), -1, np.int8)
    for column, cards in enumerate(game.columns):
        board[0, column, : len(cards)] = [52 if card is None else card for card in cards]
    board[0, 7, :4] = game.foundations
    mask = np.zeros((1, NUM_ACTIONS), np.int8)
    mask[0, [move.action for move in game.legal_moves(take_back=take_back, idle_moves=take_back)]] = 1
    return board, mask


def test_it_beats_greedy_on_the_winnable_deals() -> None:
    """The 65 of the first 1000 deals of Classic: it wins about 46 of them, greedy about 36."""
    deals = winnable(65)
    planner = rusol_env.evaluate(PlannerPolicy(samples=15), "classic", deals)
    greedy = rusol_env.evaluate("greedy", "classic", deals)
    assert planner.wins >= greedy.wins + 5


@pytest.mark.parametrize("rules", VARIANTS)
def test_it_plays_every_rule_set_alike_on_any_number_of_threads(rules: str) -> None:
    deals = winnable(6) if rules == "classic" else [0, 1]
    samples = 10 if rules == "classic" else 1
    one, two = (
        rusol_env.evaluate(PlannerPolicy(rules=rules, samples=samples, threads=threads), rules, deals, max_steps=60)
        for threads in (1, 2)
    )
    assert one.scores.max() > 0
    for field in ("won", "scores", "steps", "truncated"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))


def test_it_wins_what_can_be_won_when_all_cards_are_face_up() -> None:
    for number in winnable(12):
        game = Game(Arrangement(deal_arrangement(number).columns, (0,) * 7))
        planner = PlannerPolicy(number, samples=1)
        while game.legal_moves(take_back=False, idle_moves=False):
            action = int(planner.act(*seen(game))[0])
            assert game.legal_moves(take_back=False, idle_moves=False).count(rusol_env.decode_action(action)) == 1
            game.play(rusol_env.decode_action(action))
        assert game.won


def test_it_takes_no_card_back_while_there_is_another_move() -> None:
    spades = ["KS", "QS", "JS", "TS", "9S", "8S", "7S", "6S", "5S"]
    game = Game.from_columns([spades, ["4S"], [], [], [], [], []], [0] * 7, "classic")
    board, mask = seen(game, take_back=True)
    useful = [move.action for move in game.legal_moves(take_back=False, idle_moves=False)]
    for seed in range(10):
        assert int(PlannerPolicy(seed, samples=2).act(board, mask)[0]) in useful
    mask[0, useful] = 0
    assert mask.sum() > 0
    assert mask[0, int(PlannerPolicy(samples=2).act(board, mask)[0])] == 1


def test_bad_input_gets_one_clear_sentence() -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"samples": 0}, "samples"),
        ({"samples": 1.5}, "samples"),
        ({"threads": 0}, "threads"),
        ({"time_limit": -1}, "time_limit is -1: it must be a number of seconds"),
        ({"time_limit": float("nan")}, "time_limit is nan"),
        ({"rules": "klondike"}, "unknown rules 'klondike'"),
        ({"seed": -1}, "not a seed"),
    ]
    for options, match in bad:
        with pytest.raises(ValueError, match=match):
            PlannerPolicy(**options)
    planner = PlannerPolicy(samples=1)
    board, mask = seen(Game.from_number(0))
    with pytest.raises(ValueError, match="planner wants 'board' observations"):
        planner.act(np.zeros((1, 52, 24), np.float32), mask)
    with pytest.raises(ValueError, match="mask 0 is no action mask"):
        planner.act(board, np.zeros_like(mask))
    _, relaxed = seen(Game.from_number(0, "relaxed"))
    with pytest.raises(ValueError, match="mask 0 allows a move that classic rules do not"):
        planner.act(board, relaxed)


@pytest.mark.parametrize(
    ("row", "place", "value"),
    [
        (0, 0, -1),  # a card is missing
        (0, 0, 52),  # a column whose last card is face down
        (0, 1, 52),  # a card face down on one that is face up
        (0, 0, 53),
        (1, 5, 45),  # a card twice: the 7C is the last of column 7
        (1, 6, 52),
        (7, 0, 1),
        (7, 1, 14),
        (7, 2, -1),
    ],
)
def test_a_board_that_cannot_be_is_refused(row: int, place: int, value: int) -> None:
    board, mask = seen(Game.from_number(0))
    board[0, row, place] = value
    with pytest.raises(ValueError, match="board 0 is no position of a game"):
        PlannerPolicy(samples=1).act(board, mask)


def test_boards_of_noise_are_refused_or_played() -> None:
    rng = np.random.default_rng(0)
    planner = PlannerPolicy(samples=1)
    mask = seen(Game.from_number(0))[1]
    refused = played = 0
    for _ in range(2000):
        board = seen(Game.from_number(0))[0]
        for _ in range(rng.integers(1, 4)):
            board[0, rng.integers(8), rng.integers(12)] = rng.integers(-128, 128)
        try:
            action = int(planner.act(board, mask)[0])
        except ValueError as error:
            refused += re.match(r"(board|mask) 0 ", str(error)) is not None
        else:
            played += int(mask[0, action])
    assert refused + played == 2000
    assert refused > 1000


def test_a_finished_game_needs_no_thought() -> None:
    board = np.full((1, 8, 52), -1, np.int8)
    action = PlannerPolicy().act(board, np.ones((1, NUM_ACTIONS), np.int8))
    assert action.shape == (1,)


def test_a_time_limit_ends_the_thought() -> None:
    board, mask = seen(Game.from_number(winnable(1)[0]))
    assert mask[0, int(PlannerPolicy(samples=10**9, time_limit=0.01).act(board, mask)[0])] == 1


def test_the_command_takes_its_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["evaluate", "--deals", "3", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    planner = ["--policy", "planner", "--json", "--out", str(tmp_path)]
    code, out, _ = run(*planner, "--samples", "2", "--threads", "2")
    document: dict[str, Any] = json.loads(out)
    assert code == 0
    assert document["policy_settings"] == {"samples": 2, "time_limit": None}
    code, out, err = run(*planner, "--samples", "2")
    assert (code, json.loads(out)) == (0, document)
    assert "was not played again" in err
    code, _, err = run(*planner, "--samples", "3")
    assert (code, "policy_settings" in err) == (2, True)
    code, _, err = run("--policy", "greedy", "--samples", "3")
    assert (code, err) == (2, "rusol: policy greedy has no samples: that is of planner and planner+\n")
    code, _, err = run("--policy", "planner", "--samples", "0")
    assert (code, err.count("\n")) == (2, 1)
