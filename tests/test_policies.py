"""Policies and the sampler of legal actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import rusol_env
from rusol_env import Game, GreedyPolicy, Policy, RandomPolicy, RussianSolitaireEnv, sample_legal
from rusol_env.engine import NUM_ACTIONS
from rusol_env.models import policy_named
from rusol_env.policies import POLICIES

BOARD = (8, 52)


def masks_of(*sets: list[int]) -> NDArray[np.int8]:
    masks = np.zeros((len(sets), NUM_ACTIONS), np.int8)
    for mask, actions in zip(masks, sets, strict=True):
        mask[actions] = 1
    return masks


@given(st.lists(st.lists(st.integers(0, NUM_ACTIONS - 1), min_size=1, unique=True), min_size=1, max_size=5), st.data())
def test_a_sampled_action_is_legal(sets: list[list[int]], data: st.DataObject) -> None:
    streams = np.array([data.draw(st.integers(0, 2**64 - 1)) for _ in sets], np.uint64)
    masks = masks_of(*sets)
    for dtype in (np.int8, np.bool_):
        actions = sample_legal(masks.astype(dtype), streams)
        assert actions.dtype == np.int64
        assert all(action in legal for action, legal in zip(actions.tolist(), sets, strict=True))


def test_legal_actions_are_drawn_equally_often_and_streams_do_not_mix() -> None:
    legal = [0, 7, 8, 200, 415]
    masks, streams = masks_of(legal, legal), np.array([1, 2], np.uint64)
    drawn = np.array([sample_legal(masks, streams) for _ in range(20_000)])
    counts = np.array([[(drawn[:, i] == action).sum() for action in legal] for i in range(2)])
    assert counts.sum() == 40_000
    # 4 degrees of freedom: a chi-square over 30 has a chance below 1e-5; the seeds are fixed.
    assert (((counts - 4000) ** 2 / 4000).sum(axis=1) < 30).all()
    alone = np.array([2], np.uint64)
    assert drawn[:100, 1].tolist() == [int(sample_legal(masks[1:], alone)[0]) for _ in range(100)]


def test_what_is_no_mask_is_refused() -> None:
    streams = np.array([1], np.uint64)
    for bad in (masks_of([]), masks_of([3]) * 2, -masks_of([3])):
        with pytest.raises(ValueError, match="mask 0 is no action mask"):
            sample_legal(bad, streams)
    for bad in (masks_of([3], [4]), masks_of([3])[:, :-1], masks_of([3])[0]):
        with pytest.raises(ValueError, match="shape"):
            sample_legal(bad, streams)
    with pytest.raises(ValueError, match="int8"):
        sample_legal(masks_of([3]).astype(np.float64), streams)
    for bad in (np.array([7]), np.array([7], np.int32), np.zeros((1, 1), np.uint64), np.zeros(1), np.array([7], ">u8")):
        with pytest.raises(ValueError, match=r"must be uint64 \(N,\)"):
            sample_legal(masks_of([3]), bad)  # pyright: ignore[reportArgumentType]
    for seed in (None, 1.5, -1, 2**64):
        with pytest.raises(ValueError, match="not a seed"):
            RandomPolicy(seed)  # pyright: ignore[reportArgumentType]
    greedy = GreedyPolicy()
    with pytest.raises(ValueError, match="'board' observations"):
        greedy.act(np.zeros((1, 52, 24), np.float32), masks_of([3]))
    with pytest.raises(ValueError, match="unknown policy 'x': use one of random, greedy"):
        policy_named("x")


def test_places_and_seeds_have_streams_of_their_own() -> None:
    masks = np.ones((50, NUM_ACTIONS), np.int8)
    boards = np.zeros((50, *BOARD), np.int8)
    drawn = [RandomPolicy(seed).act(boards, masks).tolist() for seed in (0, 1, np.int64(2))]  # pyright: ignore[reportArgumentType]
    assert len({tuple(actions[offset : offset + 40]) for actions in drawn for offset in range(3)}) == 9


@given(st.binary(min_size=416, max_size=416), st.integers(0, 2**64 - 1))
def test_greedy_survives_any_board_and_any_mask(cells: bytes, seed: int) -> None:
    """Boards that cannot be and masks that allow what is not there: an allowed action comes back, and no crash."""
    board = np.frombuffer(cells, np.int8).reshape(1, *BOARD)
    policy = GreedyPolicy(seed)
    for legal in ([415], [0, 7, 99, 415], list(range(NUM_ACTIONS))):
        assert int(policy.act(board, masks_of(legal))[0]) in legal


def greedy_choice(columns: list[list[str]], face_down: list[int], rules: str = "relaxed") -> set[str]:
    """All moves that greedy makes in a position, over 80 seeds."""
    game = Game.from_columns(columns, face_down, rules)
    board = np.full(BOARD, -1, np.int8)
    for column, cards in enumerate(game.columns):
        board[column, : len(cards)] = [52 if card is None else card for card in cards]
    board[7, :4] = game.foundations
    legal = game.legal_moves(take_back=False, idle_moves=False)
    mask = masks_of([move.action for move in legal])
    made = {rusol_env.decode_action(int(GreedyPolicy(seed).act(board[None], mask)[0])).ascii for seed in range(80)}
    assert made <= {move.ascii for move in legal}
    return made


@pytest.mark.parametrize(
    ("columns", "face_down", "made"),
    [
        # A safe foundation move before one that turns a card up (QD).
        ("KC JS | KH QD | QS KS | JH KD | JD QH | JC QC |", 1, "JS > F"),
        # Turning a card up before all else.
        ("JS KC | KH QD | QS KS | JH KD | JD QH | JC QC |", 1, "QD > 1, QD > 3, QD > 4"),
        # The deeper column first (QH, above two face-down cards).
        ("JS KC | JD JC QH | QS KS | JH KD | KH QD | QC |", 2, "QH > 1, QH > 3"),
        # Emptying a column (QC) before a move that keeps the runs.
        ("KS JS QH | KH JH QS | KD JD JC QD | KC | QC | |", 0, "QC > 4"),
        # No run is broken (QC on KC, JD on QS), and no card is covered with its successor (JS > 2, JH > 1).
        (
            "KH JS QH | KD JH QS JD JC QD | KC QC | KS | | |",
            0,
            "QH > 4, QS > 4, QD > 4, JS > 3, JH > 3, JC > 1, JC > 3",
        ),
        # No king goes to an empty column (KD) while something else keeps the runs.
        ("KH JS KD | KS JH JC QS | KC QC JD QH QD | | | |", 0, "QD > 1, QH > 1, JS > 2, JH > 3, JC > 3"),
    ],
)
def test_greedy_prefers_what_its_docstring_says(columns: str, face_down: int, made: str) -> None:
    """Relaxed positions with the tens up: all that greedy plays over 80 seeds. Column 2 may have cards face down."""
    cards = [column.split() for column in columns.split("|")]
    assert greedy_choice(cards, [0, face_down, 0, 0, 0, 0, 0]) == set(made.split(", "))


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_reproducible_and_each_game_has_its_own_chance(name: str) -> None:
    numbers = list(range(40))
    thinks = name == "planner"
    rules = "classic" if thinks else "relaxed"

    def play(policy_seed: int, count: int, seed: int) -> rusol_env.Evaluation:
        policy = policy_named(name, policy_seed, rules, samples=5 if thinks else None)
        return rusol_env.evaluate(policy, rules, numbers[:count], seed=seed)

    first, again, fewer, other = play(5, 40, 5), play(99, 40, 5), play(5, 7, 5), play(5, 40, 6)
    for field in ("won", "scores", "steps", "truncated"):
        np.testing.assert_array_equal(getattr(first, field), getattr(again, field))
        np.testing.assert_array_equal(getattr(first, field)[:7], getattr(fewer, field))
    assert first.steps.tolist() != other.steps.tolist()


def test_evaluate_plays_as_the_environment_does() -> None:
    """A policy that always takes the lowest legal action: the same score, steps and end in both."""

    class Lowest(Policy):
        name = "lowest"
        observation = "cards"

        def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
            assert observations.shape == (len(masks), 52, 24)
            return masks.argmax(axis=1).astype(np.int64)

    for rules in rusol_env.VARIANTS:
        result = rusol_env.evaluate(Lowest(), rules, 300)
        env = RussianSolitaireEnv(rules)
        for number in range(0, 300, 17):
            _, info = env.reset(options={"deal_number": number})
            steps, terminated, truncated = 0, False, False
            while not (terminated or truncated):
                _, _, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
                steps += 1
            assert result.steps[number] == steps
            assert result.scores[number] == info["score"]
            assert result.won[number] == info["is_success"]
            assert result.truncated[number] == truncated


def test_random_and_greedy_are_as_strong_as_they_are_said_to_be() -> None:
    """On first-2000, wide enough for chance: random wins 2.8 % and 59 %, greedy 3.5 % and 95 %."""
    shares = {
        (name, rules): rusol_env.evaluate(name, rules, 2000).wins / 2000
        for name in (RandomPolicy.name, GreedyPolicy.name)
        for rules in ("classic", "relaxed")
    }
    assert 0.015 < shares["random", "classic"] < 0.045
    assert 0.55 < shares["random", "relaxed"] < 0.63
    assert 0.025 < shares["greedy", "classic"] < 0.05
    assert 0.94 < shares["greedy", "relaxed"] < 0.97
