"""Learners take the environment as it is: sb3-contrib's MaskablePPO finds and respects the masks."""

from __future__ import annotations

import random
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_solver import endgame

import rusol_env
from rusol_env import (
    Game,
    RussianSolitaireEnv,
    RussianSolitaireVectorEnv,
    Solver,
    Verdict,
    WinnableDeals,
)
from rusol_env.engine import arrange, new_rows

CONTRIB: Any = pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")


SB3: Any = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is missing: install the extra [agents]")


def batch(number: int, **options: Any) -> Any:
    from rusol_env.sb3 import SB3VecEnv

    return SB3VecEnv(number, **options)


class Watched(RussianSolitaireEnv):
    """Counts the steps, the episodes and the refused actions."""

    steps = episodes = refused = 0

    def step(self, action: Any) -> Any:
        result = super().step(action)
        self.steps += 1
        self.episodes += result[2] or result[3]
        self.refused += "rejection" in result[4]
        return result


@pytest.mark.parametrize("observation", ["cards", "board"])
def test_maskable_ppo_never_plays_an_illegal_action(observation: str) -> None:
    env = Watched(observation=observation)
    model = CONTRIB.MaskablePPO("MlpPolicy", env, n_steps=256, batch_size=128, n_epochs=1, seed=0, device="cpu")
    model.learn(1024)
    assert env.steps >= 1024
    assert env.episodes > 10
    assert env.refused == 0
    observed, info = env.reset(seed=1)
    action, _ = model.predict(observed, action_masks=env.action_masks(), deterministic=True)
    assert info["action_mask"][action] == 1


def test_an_unmasked_evaluation_of_a_masked_model_ends() -> None:
    """Scenario 15: it may only play illegal actions, and still every episode ends."""
    evaluation: Any = pytest.importorskip("stable_baselines3.common.evaluation")
    monitor: Any = pytest.importorskip("stable_baselines3.common.monitor")
    env = monitor.Monitor(RussianSolitaireEnv(max_steps=40, deals=[0, 1, 2]))
    model = CONTRIB.MaskablePPO("MlpPolicy", RussianSolitaireEnv(), n_steps=64, batch_size=64, seed=0, device="cpu")
    returns, lengths = evaluation.evaluate_policy(model, env, n_eval_episodes=3, return_episode_rewards=True)
    assert len(returns) == len(lengths) == 3
    assert np.isfinite(returns).all()
    assert max(lengths) <= 40


@pytest.mark.parametrize("observation", ["cards", "board"])
def test_the_batch_is_what_sb3s_own_makes_of_single_games(observation: str) -> None:
    """Monitored games in a DummyVecEnv: the same observations, rewards, ends and episode infos."""
    options: dict[str, Any] = {"rules": "relaxed", "observation": observation, "max_steps": 25}
    monitor: Any = SB3.common.monitor.Monitor
    theirs: Any = SB3.common.vec_env.DummyVecEnv([lambda: monitor(RussianSolitaireEnv(**options))] * 5)
    theirs.seed(3)
    ours = batch(5, seed=3, **options)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    streams = np.arange(5, dtype=np.uint64)
    ends = 0
    for _ in range(80):
        np.testing.assert_array_equal(ours.env_method("action_masks"), theirs.env_method("action_masks"))
        actions = rusol_env.sample_legal(ours.action_masks(), streams)
        results, expected = ours.step(actions), theirs.step(actions)
        for mine, other in zip(results[:3], expected[:3], strict=True):
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine, other)
        for done, mine, other in zip(results[2], results[3], expected[3], strict=True):
            assert bool(mine) == done
            if done:
                ends += 1
                np.testing.assert_array_equal(mine.pop("terminal_observation"), other["terminal_observation"])
                assert {key: mine["episode"][key] for key in "rl"} == {key: other["episode"][key] for key in "rl"}
                for key in (
                    "TimeLimit.truncated",
                    "is_success",
                    "score",
                    "foundation_cards",
                    "face_down",
                    "deal_number",
                ):
                    assert mine[key] == other[key]
    assert ends > 5
    ours.close()


def test_learners_callbacks_and_wrappers_take_the_batch(tmp_path: Path) -> None:
    """MaskablePPO with the win rate evaluated and kept, on top of VecNormalize, saved and loaded."""
    vec: Any = SB3.common.vec_env
    callbacks: Any = pytest.importorskip("sb3_contrib.common.maskable.callbacks")
    train = vec.VecNormalize(batch(8, rules="relaxed", seed=1, max_steps=40), norm_obs=False)
    test = vec.VecNormalize(batch(4, rules="relaxed", seed=2, max_steps=40), norm_obs=False, training=False)
    callback = callbacks.MaskableEvalCallback(
        test, eval_freq=32, n_eval_episodes=6, log_path=str(tmp_path), verbose=0, deterministic=False
    )
    model = CONTRIB.MaskablePPO("MlpPolicy", train, n_steps=32, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(512, callback=callback)
    told = np.load(tmp_path / "evaluations.npz")
    assert told["successes"].shape == told["results"].shape
    assert told["results"].shape[1] == 6
    assert len(model.ep_info_buffer) > 0
    assert len(model.ep_success_buffer) > 0
    train.save(str(tmp_path / "normalize.pkl"))
    again = vec.VecNormalize.load(str(tmp_path / "normalize.pkl"), batch(8, rules="relaxed", seed=1))
    assert np.isfinite(again.reset()).all()
    stacked = vec.VecFrameStack(batch(3, observation="board"), 2)
    assert stacked.reset().shape == (3, 8, 104)
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        monitored = vec.VecMonitor(batch(2))
    assert monitored.reset().shape == (2, 52, 24)


def test_what_the_batch_cannot_do_it_says() -> None:
    env = batch(3)
    assert env.has_attr("action_masks")
    assert env.get_attr("max_steps", indices=[0, 2]) == [500, 500]
    assert not env.has_attr("nothing")
    assert isinstance(env.games, RussianSolitaireVectorEnv)
    with pytest.raises(AttributeError, match="make a new SB3VecEnv"):
        env.set_attr("max_steps", 3)
    with pytest.raises(AttributeError, match="only 'action_masks'"):
        env.env_method("explain", 3)
    for seed in (-1, 2**64 - 2):
        with pytest.raises(ValueError, match="not a seed"):
            batch(3, seed=seed)
    for option in ({"copy": False}, {"autoreset_mode": "Disabled"}, {"render_mode": "ansi"}):
        with pytest.raises(ValueError, match="is not for SB3VecEnv"):
            batch(3, **option)
    for reward in (float("nan"), float("inf"), "0", True, [0], 1j):
        with pytest.raises(ValueError, match=r"lost_reward is .* must be a finite number"):
            batch(3, lost_reward=reward)
    with pytest.raises(ValueError, match=r"deals= is not for SB3VecEnv.*rusol_env\.evaluate"):
        batch(3, deals=[1, 2])
    env.reset()
    assert [masks().sum() for masks in env.get_attr("action_masks")] == env.action_masks().sum(axis=1).tolist()
    env.set_options([{"deal_number": 1}, {"deal_number": 2}, {"deal_number": 3}])
    with pytest.raises(ValueError, match="the same options"):
        env.reset()
    env.set_options({"deal_number": 1})
    env.reset()
    assert env.games.render() is None


@pytest.mark.parametrize("rules", ["classic", "relaxed"])
def test_a_lost_game_ends_at_the_move_that_loses_it(rules: str) -> None:
    """Games played by chance, each played again move by move with the solver looking on."""
    reward, number = -3.0, 12
    env = batch(number, rules=rules, deals=WinnableDeals(rules, 1), lost_reward=reward, max_steps=100, reward="win")
    plain = batch(1, rules=rules, max_steps=100)
    solver, streams = Solver(rules), np.arange(number, dtype=np.uint64)
    observations = env.reset()
    lines: list[list[tuple[Any, int]]] = [[] for _ in range(number)]
    dealt: list[int] = []
    kept: list[Any] = []
    ends = {"proved": 0, "stuck": 0, "won": 0, "truncated": 0}
    for _ in range(120):
        actions = rusol_env.sample_legal(env.action_masks(), streams)
        before = observations
        observations, rewards, dones, infos = env.step(actions)
        for i in range(number):
            lines[i].append((before[i].copy(), int(actions[i])))
            if not dones[i]:
                assert infos[i] == {}
                assert rewards[i] == 0
                continue
            line, info = lines[i], infos[i]
            lines[i] = []
            dealt.append(info["deal_number"])
            kept.append(info.keys())
            game = Game.from_number(info["deal_number"], rules)
            verdict = Verdict.WINNABLE
            for at, (seen, action) in enumerate(line, 1):
                assert verdict is not Verdict.UNWINNABLE
                np.testing.assert_array_equal(seen, game.observe()[0])
                game.play(action)
                if rules == "classic" or at == len(line):
                    verdict = solver.solve(game).verdict
            over = not game.legal_moves(take_back=False, idle_moves=False)
            how = "won" if game.won else "stuck" if over else "truncated" if len(line) == 100 else "proved"
            ends[how] += 1
            assert how != "proved" or verdict is Verdict.UNWINNABLE
            assert info["TimeLimit.truncated"] == (how == "truncated")
            assert rewards[i] == {"won": 1, "truncated": 0}.get(how, reward)
            np.testing.assert_array_equal(info["terminal_observation"], game.observe()[0])
            assert {key: info["episode"][key] for key in "rl"} == {"r": rewards[i], "l": len(line)}
            assert (info["is_success"], info["score"]) == (game.won, game.score)
            assert info["foundation_cards"] == sum(game.foundations)
            assert info["face_down"] == sum(card is None for column in game.columns for card in column)
    # Each deal that there is was dealt once, and in the order of the walk but for those still on the tables.
    first = [deal for _, deal in zip(range(len(dealt) + number), WinnableDeals(rules, 1), strict=False)]
    assert len(set(dealt)) == len(dealt)
    assert set(dealt) < set(first)
    met = {"proved", "stuck", "won"} if rules == "classic" else {"proved", "truncated"}
    assert {how for how in ends if ends[how]} == met
    # What is told of an end is what is told without.
    plain.reset()
    told: dict[str, Any] = {}
    while not told:
        told = plain.step(rusol_env.sample_legal(plain.action_masks(), streams[:1]))[3][0]
    assert all(keys == told.keys() for keys in kept)


def test_what_can_be_won_by_taking_back_is_not_lost() -> None:
    chance = random.Random(5)
    while True:
        position = endgame(chance)
        env = batch(1, rules="relaxed", deals=repeat(position), take_back=True, lost_reward=0, reward="win")
        env.reset()
        if Solver("relaxed").lost(env.games.rows)[0]:
            moves = rusol_env.solve(position, "relaxed", take_back=True).moves
            if moves:
                break
    ends = [env.step(np.array([move.action])) for move in moves]
    assert [bool(dones[0]) for _, _, dones, _ in ends] == [False] * (len(moves) - 1) + [True]
    assert ends[-1][3][0]["is_success"]


@pytest.mark.parametrize("rules", rusol_env.VARIANTS)
def test_a_short_look_calls_no_winnable_position_lost(rules: str) -> None:
    chance, solver = random.Random(rules), Solver(rules)
    games = [Game(endgame(chance), rules) for _ in range(1000)] + [Game.from_number(k, rules) for k in range(40)]
    rows = new_rows(len(games), games[0].rules)
    for row, game in zip(rows, games, strict=True):
        arrange(row, game.arrangement)
    before = rows.copy()
    lost = solver.lost(rows)
    assert lost.dtype == np.bool_
    np.testing.assert_array_equal(rows, before)
    for game in np.array(games)[lost]:
        assert solver.solve(game).verdict is Verdict.UNWINNABLE
    assert 5 < lost.sum() < len(games) - 5
