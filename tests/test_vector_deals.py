"""`deals=` of the vector environment: walked once over the batch, each deal exactly once, and an end that is told."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import rusol_env
from rusol_env import RussianSolitaireEnv, RussianSolitaireVectorEnv
from rusol_env.observe import decode_board, decode_cards

MODES = list(AutoresetMode)


def play(env: RussianSolitaireVectorEnv, choose: Any) -> list[dict[str, Any]]:
    """Every episode of a walk, as its outcome is told where it ends, in the order of the ends."""
    outcomes: list[dict[str, Any]] = []
    _, infos = env.reset()
    returns = np.zeros(env.num_envs)
    for _ in range(100_000):
        if env.finished:
            return outcomes
        _, rewards, terminations, truncations, infos = env.step(choose(env))
        returns += rewards
        ended = terminations | truncations
        last = infos.get("final_info", infos)
        for i in np.flatnonzero(ended).tolist():
            assert last["_deal_index"][i]
            outcomes.append(
                {key: last[key][i] for key in ("deal_index", "deal_number", "code", "score", "is_success")}
                | {"return": returns[i], "truncated": truncations[i]}
            )
        returns[ended] = 0
        if env.autoreset_mode is AutoresetMode.DISABLED and ended.any() and not env.finished:
            env.reset(options={"reset_mask": ended})
    raise AssertionError("the walk does not end")


def first_legal(env: RussianSolitaireVectorEnv) -> NDArray[np.int64]:
    """The legal action of the highest number: a game is played alike wherever it is played."""
    return (416 - 1 - env.action_masks()[:, ::-1].argmax(axis=1)).astype(np.int64)


def alone(rules: str, deal: Any, max_steps: int) -> tuple[float, float, bool, bool]:
    """Return, score, success and truncation of one deal in a single environment under `first_legal`."""
    env = RussianSolitaireEnv(rules, deals=[deal], observation="board", max_steps=max_steps)
    _, info = env.reset()
    total, truncated, terminated = 0.0, False, False
    while not (terminated or truncated):
        _, reward, terminated, truncated, info = env.step(416 - 1 - info["action_mask"][::-1].argmax())
        total += reward
    return total, info["score"], info["is_success"], truncated


@pytest.mark.parametrize("rules", rusol_env.VARIANTS)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize(("number", "threads", "copy"), [(1, 1, True), (3, 1, False), (8, 2, True), (30, 1, True)])
def test_each_deal_is_played_exactly_once_and_as_alone(
    rules: str, mode: AutoresetMode, number: int, threads: int, copy: bool
) -> None:
    deals = [5, 0, 7, 7, rusol_env.arrangement(rusol_env.deal_arrangement(9).text()), *range(100, 115)]
    env = RussianSolitaireVectorEnv(
        number, rules, deals=deals, autoreset_mode=mode, threads=threads, copy=copy, observation="board", max_steps=40
    )
    assert not env.finished
    outcomes = sorted(play(env, first_legal), key=lambda outcome: outcome["deal_index"])
    assert [outcome["deal_index"] for outcome in outcomes] == list(range(20))
    for deal, outcome in zip(deals, outcomes, strict=True):
        if isinstance(deal, int):
            assert outcome["deal_number"] == deal
            assert outcome["code"] == rusol_env.encode_code(deal, rules)
        else:
            assert (outcome["deal_number"], outcome["code"]) == (-1, None)
        assert alone(rules, deal, 40) == tuple(outcome[key] for key in ("return", "score", "is_success", "truncated"))
    # Again, from the start.
    again = sorted(play(env, first_legal), key=lambda outcome: outcome["deal_index"])
    assert again == outcomes
    env.close()


@pytest.mark.parametrize("observation", ["board", "cards"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("copy", [True, False])
def test_a_game_without_a_deal_is_an_empty_table_where_nothing_happens(
    observation: str, mode: AutoresetMode, copy: bool
) -> None:
    env = RussianSolitaireVectorEnv(
        4, "relaxed", deals=[1, 2], observation=observation, autoreset_mode=mode, copy=copy, max_steps=5
    )
    observations, infos = env.reset(seed=3)
    decode: Any = decode_board if observation == "board" else decode_cards
    nothing = ((),) * 7, (0, 0, 0, 0)
    assert env.single.observation_space.contains(observations[3])
    for _ in range(12):
        assert infos["deal_index"][2:].tolist() == [-1, -1]
        assert (infos["deal_number"][2:] == -1).all()
        assert infos["code"][2:].tolist() == [None, None]
        assert not infos["is_success"].any()
        assert infos["action_mask"][2:].all()
        for key in ("score", "moves", "foundation_cards", "face_down"):
            assert infos[key][2:].tolist() == [0, 0]
        assert all(decode(observations[i]) == nothing for i in (2, 3))
        if env.finished:
            break
        actions = env.sample_legal(np.arange(4, dtype=np.uint64))
        # Where nothing is played the action may be anything.
        actions[2:] = [-1, 10**6]
        observations, rewards, terminations, truncations, infos = env.step(actions)
        assert not (rewards[2:] + terminations[2:] + truncations[2:]).any()
        assert "rejection" not in infos
    assert env.finished
    if mode is AutoresetMode.DISABLED:
        with pytest.raises(ResetNeeded):
            env.step(np.zeros(4, np.int64))
        env.reset(options={"reset_mask": np.array([True, True, False, False])})
    for _ in range(3):
        observations, rewards, terminations, truncations, infos = env.step(np.full(4, -1))
        assert not (rewards + terminations + truncations).any()
    assert env.finished
    assert (infos["deal_index"] == -1).all()
    assert all(decode(one) == nothing for one in observations)
    # A reset of all games starts the walk anew; so does one with a seed, which nothing here depends on.
    for seed in (None, 8):
        _, infos = env.reset(seed=seed)
        assert infos["deal_index"].tolist() == [0, 1, -1, -1]
        assert not env.finished


def test_resets_of_some_games_go_on_with_the_walk_and_exact_deals_are_none_of_it() -> None:
    env = RussianSolitaireVectorEnv(3, deals=rusol_env.suite("first-7"), autoreset_mode="Disabled")
    _, infos = env.reset()
    assert infos["deal_index"].tolist() == [0, 1, 2]
    _, infos = env.reset(options={"reset_mask": np.array([True, False, True])})
    assert infos["deal_index"].tolist() == [3, 0, 4]
    assert infos["_deal_index"].tolist() == [True, False, True]
    _, infos = env.reset(options={"reset_mask": np.array([False, True, False]), "deal_number": 99})
    assert (infos["deal_index"][1], infos["deal_number"][1]) == (-1, 99)
    _, infos = env.reset(options={"reset_mask": np.ones(3, bool)})
    assert infos["deal_index"].tolist() == [5, 6, -1]
    assert not env.finished
    _, infos = env.reset(options={"code": "RU1-C-AAAAABB"})
    assert infos["deal_index"].tolist() == [-1] * 3
    assert infos["deal_number"].tolist() == [33] * 3
    assert not env.finished


def test_without_deals_there_is_no_end_of_them() -> None:
    env = RussianSolitaireVectorEnv(2, max_steps=1)
    _, infos = env.reset(seed=0)
    assert "deal_index" not in infos
    for _ in range(3):
        env.step(np.zeros(2, np.int64))
        assert not env.finished


def test_the_docstrings_loop_counts_every_deal_once() -> None:
    env = RussianSolitaireVectorEnv(16, "relaxed", deals=rusol_env.suite("first-50"), observation="board")
    policy = rusol_env.GreedyPolicy(seed=3)
    scores = np.full(50, -1)
    observations, infos = env.reset()
    while not env.finished:
        actions = policy.act(observations, infos["action_mask"])
        observations, _, terminations, truncations, infos = env.step(actions)
        ended = terminations | truncations
        assert (scores[infos["deal_index"][ended]] == -1).all()
        scores[infos["deal_index"][ended]] = infos["score"][ended]
    assert (scores >= 0).all()


def test_evaluate_plays_a_game_alike_in_a_short_and_a_long_suite() -> None:
    short, long = (rusol_env.evaluate("greedy", "yukon", deals, seed=2) for deals in (100, 700))
    np.testing.assert_array_equal(short.scores, long.scores[:100])
    np.testing.assert_array_equal(short.steps, long.steps[:100])
    np.testing.assert_array_equal(short.truncated, long.truncated[:100])


def test_winnable_deals_are_those_of_the_stream_that_the_solver_wins() -> None:
    drawn = RussianSolitaireVectorEnv(1, observation="board", autoreset_mode="Disabled")
    numbers: list[int] = []
    for at in range(300):
        _, infos = drawn.reset(seed=7 if at == 0 else None)
        numbers.append(int(infos["deal_number"][0]))
    won = [number for number in numbers if rusol_env.solve(number).verdict is rusol_env.Verdict.WINNABLE]
    assert len(won) > 5
    assert list(islice(rusol_env.WinnableDeals("classic", seed=7), len(won))) == won
    assert all(not rusol_env.encode_code(number, "classic").startswith("RU1-C-A") for number in won)


def test_an_endless_iterator_is_walked_through_by_the_batch_and_never_finished() -> None:
    near = rusol_env.Arrangement(((12,), (25,), (38,), (51,), (), (), ()), (0,) * 7)
    env = RussianSolitaireVectorEnv(3, "relaxed", deals=cycle([5, near, 6]), observation="board", max_steps=4)
    dealt: list[int] = []
    observations, infos = env.reset(seed=0)
    dealt += infos["deal_number"].tolist()
    for _ in range(20):
        begins = env._over.copy()  # pyright: ignore[reportPrivateUsage]
        observations, _, _, _, infos = env.step(first_legal(env))
        dealt += infos["deal_number"][begins].tolist()
        assert not env.finished
        assert ((observations[:, :7] >= 0).any(axis=(1, 2)) | infos["is_success"]).all()
    assert len(dealt) > 9
    assert dealt == [(5, -1, 6)[at % 3] for at in range(len(dealt))]


def test_a_single_environment_takes_the_next_of_an_iterator_at_each_reset() -> None:
    env = RussianSolitaireEnv(deals=iter([3, 1]), observation="board")
    assert [env.reset(seed=seed)[1]["deal_number"] for seed in (0, 0)] == [3, 1]
    with pytest.raises(ValueError, match="has ended: give one without end"):
        env.reset()
    env = RussianSolitaireEnv(deals=iter([1.5]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"1\.5 is not a deal"):
        env.reset()
