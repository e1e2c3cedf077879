"""Learners take the environment as it is: sb3-contrib's MaskablePPO finds and respects the masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rusol_env import RussianSolitaireEnv

CONTRIB: Any = pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")


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
