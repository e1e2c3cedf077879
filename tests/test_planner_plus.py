"""planner+: that lines are what they should be, that it repeats itself, asks its network, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import rusol_env
from rusol_env import CLASSIC, VARIANTS, Arrangement, Game, Solver, Verdict, deal_arrangement, decode_action, solve
from rusol_env.engine import COLUMN, DOWN, HEIGHTS, NUM_ACTIONS, PLACE
from rusol_env.models import policy_named, policy_names, shipped
from rusol_env.network import Network, NetworkPolicy
from rusol_env.planner import Memory, begin, find_line, new_memory, weigh_lines
from rusol_env.planner_plus import PlannerPlusPolicy
from rusol_env.rules import FOUNDATION, rules_named
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


def completion(memory: Memory) -> Arrangement:
    """The position that is laid out in `now`."""
    row = memory.now
    columns: list[list[int]] = [[-1] * int(row[HEIGHTS + column]) for column in range(7)]
    for card in range(52):
        if 0 <= row[COLUMN + card] < 7:
            columns[row[COLUMN + card]][row[PLACE + card]] = card
    return Arrangement(tuple(map(tuple, columns)), tuple(row[DOWN : DOWN + 7].tolist()))


def hidden(game: Game) -> int:
    return sum(card is None for column in game.columns for card in column)


def on_the_way(number: int, rules: str) -> Game:
    """A deal in the middle of its solution, some of the cards still face down."""
    game = Game.from_number(number, rules)
    for move in solve(game).moves:
        if hidden(game) < 14:
            break
        game.play(move)
    return game


@pytest.mark.parametrize("rules", VARIANTS)
def test_a_line_is_what_a_win_begins_with_up_to_the_first_card_that_turns(rules: str) -> None:
    memory = new_memory(rules_named(rules))
    found = 0
    for number in winnable(60):
        game = on_the_way(number, rules)
        board, mask = seen(game)
        streams, line = np.array([number], np.uint64), np.zeros(200, np.int64)
        count, down = begin(memory, board[0], mask[0], streams, 0)
        length = 0
        for _ in range(10 if count > 1 else 0):
            length = length or find_line(memory, board[0], down, rules == "classic", streams, 0, line)
        for k, action in enumerate(line[:length].tolist()):
            assert decode_action(action) in game.legal_moves(take_back=False, idle_moves=False)
            game.play(decode_action(action))
            assert (hidden(game) < down) == (k == length - 1)
        found += length > 1
    assert found >= 5


def test_what_lines_win_is_what_the_solver_says_of_the_completions() -> None:
    memory, solver = new_memory(CLASSIC), Solver("classic")
    wins: list[int] = []
    for number in winnable(12):
        board, mask = seen(on_the_way(number, "classic"))
        streams = np.array([number], np.uint64)
        count, down = begin(memory, board[0], mask[0], streams, 0)
        # Lines of one move each.
        lines, ones = memory.actions[:count].astype(np.int64)[:, None], np.ones(count, np.int64)
        for _ in range(10 if count > 1 else 0):
            points = np.zeros(count, np.int64)
            weigh_lines(memory, board[0], down, lines, ones, True, 1, streams, 0, points)
            for k in range(count):
                game = Game(completion(memory))
                game.play(decode_action(int(lines[k, 0])))
                assert points[k] == (solver.solve(game).verdict == Verdict.WINNABLE)
            wins += points.tolist()
    assert 20 < sum(wins) < len(wins) - 20


def test_a_line_of_the_network_that_always_wins_is_played(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the card that it turns, and so on; the network alone plays the same."""

    def all_won(*args: Any) -> None:
        args[-1][:] += args[-4]

    monkeypatch.setattr("rusol_env.planner_plus.weigh_lines", all_won)
    compared = 0
    for number in winnable(4):
        policy, player = PlannerPlusPolicy(network, number), NetworkPolicy(network)
        game = Game.from_number(number)
        while hidden(game) > 1 and game.legal_moves(take_back=False, idle_moves=False):
            board, mask = seen(game)
            action = int(policy.act(board, mask)[0])
            # Foundation moves that can do no harm come first.
            if not (mask.sum() > 1 and action % 8 == FOUNDATION):
                cards, all_moves = game.observe()
                np.testing.assert_array_equal(mask[0], all_moves)
                assert action == int(player.act(cards[None], mask)[0])
                compared += 1
            game.play(decode_action(action))
    assert compared > 60


@pytest.mark.parametrize(("lost", "tried"), [(None, 256), (3, 16), (255, 256)])
def test_a_line_of_the_network_is_tried_until_it_loses(
    network: Network, monkeypatch: pytest.MonkeyPatch, lost: int | None, tried: int
) -> None:
    """And played at once only if it wins in all of the completions."""
    asked: list[tuple[int, int]] = []

    def one_lost(*args: Any) -> None:
        lengths, samples, points = args[4], args[6], args[-1]
        before = sum(more for _, more in asked)
        asked.append((len(lengths), samples))
        points += samples - (lost is not None and before <= lost < before + samples)

    monkeypatch.setattr("rusol_env.planner_plus.weigh_lines", one_lost)
    policy = PlannerPlusPolicy(network, 1)
    asked.clear()
    policy.act(*seen(Game.from_number(winnable(1)[0])))
    own = asked[: tried // 16]
    assert own == [(1, 16)] * (tried // 16)
    assert bool(asked[len(own) :]) == (lost is not None)
    assert all(lines > 1 for lines, _ in asked[len(own) :])


def test_a_line_is_played_to_its_end_and_forgotten_at_another_board(network: Network) -> None:
    class Counting(PlannerPlusPolicy):
        thoughts = 0

        def _choose(self, *args: Any, **more: Any) -> list[int]:
            self.thoughts += 1
            return super()._choose(*args, **more)

    policy, number = Counting(network, 1, samples=20), winnable(3)[2]
    game = Game.from_number(number)
    before, at = hidden(game), seen(game)
    # Until a thought led to a move that turned no card.
    while not policy.thoughts or hidden(game) < before:
        before, at = hidden(game), seen(game)
        policy.thoughts = 0
        game.play(decode_action(int(policy.act(*at)[0])))
    # In the middle of a line: it goes on without a thought, but not from another board.
    policy.act(*seen(game))
    assert policy.thoughts == 1
    policy.act(*at)
    assert policy.thoughts == 2


def test_where_all_is_known_it_wins(network: Network) -> None:
    asked = 0
    for number in winnable(12):
        game = Game(Arrangement(deal_arrangement(number).columns, (0,) * 7))
        policy = PlannerPlusPolicy(network, number, samples=1)
        other = PlannerPlusPolicy(network, number + 100, samples=1)
        while moves := game.legal_moves(take_back=False, idle_moves=False):
            action = int(policy.act(*seen(game))[0])
            # No chance is left: another seed plays the same.
            assert int(other.act(*seen(game))[0]) == action
            assert decode_action(action) in moves
            asked += len(moves) > 1
            game.play(decode_action(action))
        assert game.won
    assert asked > 100


def test_its_name_gives_it_the_network_that_ships() -> None:
    policy = policy_named("planner+", 3, samples=20)
    assert isinstance(policy, PlannerPlusPolicy)
    assert policy.settings == {
        "samples": 20,
        "time_limit": None,
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
    policy = PlannerPlusPolicy(network, samples=10**9, time_limit=0.01)
    assert mask[0, int(policy.act(board, mask)[0])] == 1


def test_a_move_that_is_forbidden_is_replaced_by_one_that_still_wins(network: Network) -> None:
    asked = 0
    for number in winnable(6):
        game = Game(Arrangement(deal_arrangement(number).columns, (0,) * 7))
        policy = PlannerPlusPolicy(network, samples=1)
        solver = Solver("classic")
        for move in solver.solve(game).moves:
            board, mask = seen(game)
            mask[0, int(policy.act(board, mask)[0])] = 0
            left = np.flatnonzero(mask[0])
            wins: dict[int, bool] = {}
            for action in left.tolist():
                after = Game(game.arrangement)
                after.play(decode_action(action))
                wins[action] = solver.solve(after).verdict == Verdict.WINNABLE
            if len(left):
                # It was in the middle of a line, whose next move is forbidden now.
                chosen = int(policy.act(board, mask)[0])
                assert wins[chosen] or not any(wins.values())
                asked += len(set(wins.values())) == 2
            game.play(move)
    assert asked > 10


def test_a_mask_is_looked_at_in_the_middle_of_a_line_too(network: Network) -> None:
    policy = PlannerPlusPolicy(network, samples=8)
    for number in winnable(5):
        game = on_the_way(number, "classic")
        game.play(decode_action(int(policy.act(*seen(game))[0])))
        board, mask = seen(game)
        mask[0, np.flatnonzero(mask[0] == 0)[0]] = 2
        with pytest.raises(ValueError, match="mask 0 is no action mask"):
            policy.act(board, mask)
