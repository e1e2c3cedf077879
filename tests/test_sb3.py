"""Learners take the environment as it is: sb3-contrib's MaskablePPO finds and respects the masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rusol_env
from rusol_env import RussianSolitaireEnv, RussianSolitaireVectorEnv

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
