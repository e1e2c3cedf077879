"""Gymnasium's vector wrappers take the native batch as they take its own SyncVectorEnv: the same numbers come out."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import gymnasium.wrappers.vector
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from test_vector import assert_same

from rusol_env import ENV_ID, RussianSolitaireEnv, RussianSolitaireVectorEnv, sample_legal

# Gymnasium leaves their types open.
wrappers: Any = gymnasium.wrappers.vector


def several(env: Any) -> Any:
    return wrappers.NormalizeReward(wrappers.RecordEpisodeStatistics(wrappers.FlattenObservation(env)), gamma=0.9)


WRAPPERS: dict[str, Any] = {
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "NormalizeReward": wrappers.NormalizeReward,
    "NormalizeObservation": wrappers.NormalizeObservation,
    "RescaleObservation": partial(wrappers.RescaleObservation, min_obs=np.float32(-1), max_obs=np.float32(1)),
    "FlattenObservation": wrappers.FlattenObservation,
    "ClipReward": partial(wrappers.ClipReward, min_reward=0, max_reward=5),
    "DictInfoToList": wrappers.DictInfoToList,
    "several": several,
}


def without_times(infos: Any) -> Any:
    """Infos without the seconds that episodes took."""
    if "episode" not in infos:
        return infos
    return infos | {"episode": {key: infos["episode"][key] for key in infos["episode"] if key not in ("t", "_t")}}


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=lambda mode: mode.value)
def test_wrapped_it_gives_what_the_wrapped_synchronous_vector_gives(name: str, mode: AutoresetMode) -> None:
    options: dict[str, Any] = {"rules": "relaxed", "max_steps": 20}
    ours_bare = RussianSolitaireVectorEnv(5, autoreset_mode=mode, **options)
    theirs_bare = SyncVectorEnv([lambda: RussianSolitaireEnv(**options)] * 5, autoreset_mode=mode)
    # Some take only some modes: they must then say the same of ours.
    refused: list[str] = []
    for bare in (ours_bare, theirs_bare):
        try:
            WRAPPERS[name](bare)
        except (ValueError, AssertionError) as error:
            refused.append(str(error).replace(str(bare), "it"))
    if refused:
        assert len(refused) == 2
        assert refused[0] == refused[1]
        return
    theirs: Any = WRAPPERS[name](theirs_bare)
    ours: Any = WRAPPERS[name](ours_bare)
    assert ours.observation_space == theirs.observation_space
    mine, expected = ours.reset(seed=4), theirs.reset(seed=4)
    assert_same(mine, expected)
    streams = np.arange(5, dtype=np.uint64)
    ends = 0
    for _ in range(70):
        actions = sample_legal(ours_bare.action_masks(), streams)
        mine, expected = ours.step(actions), theirs.step(actions)
        assert_same((*mine[:4], without_times(mine[4])), (*expected[:4], without_times(expected[4])))
        ends += int((mine[2] | mine[3]).sum())
    assert ends >= 10


def test_statistics_of_episodes_are_their_scores() -> None:
    bare: Any = gymnasium.make_vec(ENV_ID, num_envs=8, rules="yukon", max_steps=60)
    env = wrappers.RecordEpisodeStatistics(bare)
    env.reset(seed=0)
    streams = np.arange(8, dtype=np.uint64)
    episodes = 0
    for _ in range(300):
        _, _, _, _, infos = env.step(bare.sample_legal(streams))
        if "episode" in infos:
            ended = infos["_episode"]
            assert infos["episode"]["r"][ended].tolist() == infos["score"][ended].tolist()
            assert infos["episode"]["l"][ended].tolist() == infos["moves"][ended].tolist()
            episodes += int(ended.sum())
    assert episodes > 30


def test_a_walk_through_deals_gives_one_record_a_deal() -> None:
    bare = RussianSolitaireVectorEnv(8, deals=list(range(30)), observation="board")
    env = wrappers.RecordEpisodeStatistics(bare)
    env.reset()
    streams = np.arange(8, dtype=np.uint64)
    seen: list[int] = []
    while not bare.finished:
        _, _, _, _, infos = env.step(bare.sample_legal(streams))
        if "episode" in infos:
            seen += infos["deal_index"][infos["_episode"]].tolist()
    for _ in range(5):
        assert "episode" not in env.step(bare.sample_legal(streams))[4]
    assert sorted(seen) == list(range(30))
