"""planner+: that moves race fairly, that it repeats itself exactly, asks its network, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import rusol_env
from rusol_env import Arrangement, Game, deal_arrangement
from rusol_env.engine import NUM_ACTIONS
from rusol_env.models import policy_named, policy_names, shipped
from rusol_env.network import Network
from rusol_env.planner import are_alike, begin, drop_beaten, new_memory, race
from rusol_env.planner_plus import PlannerPlusPolicy
from tests.test_planner import seen, winnable


@pytest.fixture(scope="module")
def network() -> Network:
    return Network.load(shipped("distilled")["classic"])


def test_it_beats_greedy_on_the_winnable_deals(network: Network) -> None:
    """The 65 of the first 1000 deals of Classic: it wins about 48 of them, greedy about 36."""
    deals = winnable(65)
    found = rusol_env.evaluate(PlannerPlusPolicy(network, samples=48), "classic", deals)
    assert found.wins >= rusol_env.evaluate("greedy", "classic", deals).wins + 6


def test_a_game_is_played_alike_in_every_batch_and_on_any_number_of_threads(network: Network) -> None:
    deals = winnable(6)
    one = rusol_env.evaluate(PlannerPlusPolicy(network, samples=32), "classic", deals)
    two = rusol_env.evaluate(PlannerPlusPolicy(network, samples=32, threads=2), "classic", deals)
    alone = rusol_env.evaluate(PlannerPlusPolicy(network, samples=32), "classic", deals[:1])
    for field in ("won", "scores", "steps", "truncated"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
        np.testing.assert_array_equal(getattr(one, field)[:1], getattr(alone, field))


def test_what_a_race_counts_is_so() -> None:
    """In each completion a move has its point or not, and beats those that have not."""
    memory, streams = new_memory(rusol_env.CLASSIC), np.array([5], np.uint64)
    compared = 0
    for number in winnable(65):
        board, mask = seen(Game.from_number(number))
        count, hidden = begin(memory, board[0], mask[0], streams, 0)
        if count < 2:
            continue
        total, beats = np.zeros(count, np.int64), np.zeros((count, count), np.int64)
        for _ in range(40):
            before = memory.points[:count].copy()
            won = race(memory, board[0], hidden, count, True, 1, streams, 0)
            points = memory.points[:count] - before
            assert won == points.max() in (0, 1)
            total += points
            beats += points[:, None] > points
        np.testing.assert_array_equal(memory.points[:count], total)
        found = memory.beats[:count, :count].copy()
        np.fill_diagonal(found, 0)
        np.testing.assert_array_equal(found, beats)
        assert are_alike(memory, count) == (beats.sum() == 0)
        compared += int(beats.sum() > 0)
    assert compared >= 5


@pytest.mark.parametrize(
    ("beats", "left"),
    [
        ([[0, 9], [0, 0]], [10]),  # nine to none is over two deviations, 6, and one
        ([[0, 0], [9, 0]], [11]),
        ([[0, 6], [0, 0]], [10]),  # 6 > 2 * 2.45 + 1
        ([[0, 5], [0, 0]], [10, 11]),  # 5 < 2 * 2.24 + 1
        ([[0, 30], [20, 0]], [10, 11]),
        ([[0, 9, 9], [0, 0, 0], [0, 0, 0]], [10]),
        ([[0, 0, 0], [9, 0, 0], [0, 9, 0]], [12]),  # what is beaten is out, whatever it beats
        ([[0, 0, 1], [0, 0, 9], [2, 0, 0]], [10, 11]),
    ],
)
def test_a_move_that_is_clearly_beaten_is_dropped(beats: list[list[int]], left: list[int]) -> None:
    memory, count = new_memory(rusol_env.CLASSIC), len(beats)
    memory.actions[:count] = 10 + np.arange(count)
    memory.points[:count] = 100 + np.arange(count)
    memory.beats[:count, :count] = beats
    rest = drop_beaten(memory, count, 2.0)
    actions = memory.actions[:rest].tolist()
    assert sorted(actions) == left
    assert memory.points[:rest].tolist() == [90 + action for action in actions]
    kept = np.array(actions) - 10
    np.testing.assert_array_equal(memory.beats[:rest, :rest], np.array(beats)[np.ix_(kept, kept)])


def test_where_all_is_known_it_wins_and_of_equal_moves_the_network_chooses(network: Network) -> None:
    asked = 0
    for number in winnable(12):
        game = Game(Arrangement(deal_arrangement(number).columns, (0,) * 7))
        policy = PlannerPlusPolicy(network, number, samples=1)
        other = PlannerPlusPolicy(network, number + 100, samples=1)
        while moves := game.legal_moves(take_back=False, idle_moves=False):
            action = int(policy.act(*seen(game))[0])
            # No chance is left: another seed plays the same.
            assert int(other.act(*seen(game))[0]) == action
            assert rusol_env.decode_action(action) in moves
            asked += len(moves) > 1
            game.play(rusol_env.decode_action(action))
        assert game.won
    assert asked > 100


def test_its_name_gives_it_the_network_that_ships() -> None:
    policy = policy_named("planner+", 3, samples=20)
    assert isinstance(policy, PlannerPlusPolicy)
    assert policy.settings == {
        "samples": 20,
        "time_limit": None,
        "deviations": 2.0,
        "trust": 1.0,
        **policy_named("distilled").settings,
    }
    assert "planner+" in policy_names("classic")
    assert "planner+" not in policy_names("yukon")
    with pytest.raises(ValueError, match="no distilled network for yukon comes with rusol-env: there is one for"):
        policy_named("planner+", rules="yukon")


def test_bad_input_gets_one_clear_sentence(network: Network) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"samples": 0}, "samples"),
        ({"threads": 0}, "threads"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"deviations": 0}, "deviations is 0: it must be over 0"),
        ({"deviations": float("nan")}, "deviations"),
        ({"trust": -1}, "trust is -1: it must be 0 or more"),
        ({"trust": float("inf")}, "trust"),
    ]
    for options, match in bad:
        with pytest.raises(ValueError, match=match):
            PlannerPlusPolicy(network, **options)
    arrays = {"0.weight": np.zeros((NUM_ACTIONS, 8 * 52), np.float32), "0.bias": np.zeros(NUM_ACTIONS, np.float32)}
    with pytest.raises(ValueError, match=r"planner\+ shows its network 'cards', and this reads 'board'"):
        PlannerPlusPolicy(Network(arrays, "mlp", "board"))
    policy = PlannerPlusPolicy(network, samples=1)
    board, mask = seen(Game.from_number(0))
    with pytest.raises(ValueError, match=r"planner\+ wants 'board' observations"):
        policy.act(np.zeros((1, 52, 24), np.float32), mask)
    with pytest.raises(ValueError, match="mask 0 is no action mask"):
        policy.act(board, np.zeros_like(mask))
    _, relaxed = seen(Game.from_number(0, "relaxed"))
    with pytest.raises(ValueError, match=r"mask 0 allows a move that classic rules do not: give planner\+ the rules="):
        policy.act(board, relaxed)


def test_boards_of_noise_are_refused_or_played(network: Network) -> None:
    rng = np.random.default_rng(0)
    policy = PlannerPlusPolicy(network, samples=1)
    mask = seen(Game.from_number(0))[1]
    refused = played = 0
    for _ in range(1000):
        board = seen(Game.from_number(0))[0]
        for _ in range(rng.integers(1, 4)):
            board[0, rng.integers(8), rng.integers(12)] = rng.integers(-128, 128)
        try:
            action = int(policy.act(board, mask)[0])
        except ValueError as error:
            refused += re.match(r"(board|mask) 0 ", str(error)) is not None
        else:
            played += int(mask[0, action])
    assert refused + played == 1000
    assert refused > 500


def test_a_finished_game_and_a_time_limit_end_the_thought(network: Network) -> None:
    over = np.full((1, 8, 52), -1, np.int8)
    assert PlannerPlusPolicy(network).act(over, np.ones((1, NUM_ACTIONS), np.int8)).shape == (1,)
    board, mask = seen(Game.from_number(winnable(1)[0]))
    policy = PlannerPlusPolicy(network, samples=10**9, deviations=1e9, time_limit=0.01)
    assert mask[0, int(policy.act(board, mask)[0])] == 1
