"""The native vector environment is, bit for bit, Gymnasium's SyncVectorEnv of single environments."""

from __future__ import annotations

import copy
import os
import pickle
import random
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

import rusol_env
from rusol_env import ENV_ID, RussianSolitaireEnv, RussianSolitaireVectorEnv

MODES = list(AutoresetMode)


def make(number: int, **options: Any) -> RussianSolitaireVectorEnv:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return RussianSolitaireVectorEnv(number, **options)


def sync(number: int, mode: AutoresetMode, **options: Any) -> SyncVectorEnv:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return SyncVectorEnv([lambda: RussianSolitaireEnv(**options)] * number, autoreset_mode=mode)


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    """Equal in type, dtype, shape and every bit, through dicts and object arrays."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key in theirs:  # pyright: ignore[reportUnknownVariableType]
            assert_same(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(theirs, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where  # pyright: ignore[reportUnknownMemberType]
        if theirs.dtype == object:  # pyright: ignore[reportUnknownMemberType]
            for ours_one, theirs_one in zip(ours.tolist(), theirs.tolist(), strict=True):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType, reportUnknownMemberType]
                assert_same(ours_one, theirs_one, where)
        else:
            assert ours.tobytes() == theirs.tobytes(), where
    elif isinstance(theirs, (tuple, list)):
        for place, (ours_one, theirs_one) in enumerate(zip(ours, theirs, strict=True)):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            assert_same(ours_one, theirs_one, f"{where}[{place}]")
    else:
        assert ours == theirs, where


def choose(chance: random.Random, masks: NDArray[np.int8]) -> NDArray[np.int64]:
    """Mostly legal actions, foundations first; some of any kind."""
    actions: list[int] = []
    for mask in masks:
        legal = np.flatnonzero(mask).tolist()
        ups = [action for action in legal if action % 8 == 7]
        actions.append(chance.choice(ups or legal) if chance.random() < 0.9 else chance.randrange(416))
    return np.array(actions)


@pytest.mark.parametrize("rules", rusol_env.VARIANTS)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize(
    "options",
    [
        {"number": 1, "max_steps": 30},
        {"number": 3, "observation": "board", "take_back": True, "max_steps": 40, "illegal_reward": -0.25},
        {"number": 64, "reward": "progress", "take_back": True, "idle_moves": True, "max_steps": 35},
        {"number": 5, "reward": "win", "thoughtful": True, "split": "eval", "max_steps": 30},
        {"number": 4, "observation": "board", "thoughtful": True, "max_steps": 25},
    ],
    ids=lambda options: f"{options['number']}",
)
@pytest.mark.parametrize("threads", [1, 2])
def test_it_is_the_synchronous_vector_of_single_environments(
    rules: str, mode: AutoresetMode, options: dict[str, Any], threads: int
) -> None:
    options = options | {"rules": rules}
    number = options.pop("number")
    chance = random.Random(f"{rules}{mode}{number}")
    ours = make(number, autoreset_mode=mode, threads=threads, **options)
    theirs = sync(number, mode, **options)
    for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(ours, space) == getattr(theirs, space)
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"]
    result: Any = ours.reset(seed=7)
    assert_same(result, theirs.reset(seed=7))
    ends = 0
    for step in range(80):
        actions = choose(chance, result[1]["action_mask"])
        stepped = ours.step(actions)
        expected: Any = theirs.step(actions)
        assert_same(stepped, expected)
        result = (stepped[0], stepped[4])
        ended = expected[2] | expected[3]
        ends += int(ended.sum())
        if mode is AutoresetMode.DISABLED and ended.any():
            seeds = [chance.randrange(2**64) if chance.random() < 0.5 else None for _ in range(number)]
            partial: Any = ours.reset(seed=seeds, options={"reset_mask": ended.copy()})
            assert_same(partial, theirs.reset(seed=seeds, options={"reset_mask": ended.copy()}))  # pyright: ignore[reportArgumentType]
            result = (partial[0], {"action_mask": ours.action_masks().view(np.int8)})
        if step == 50:
            result = ours.reset(options={"code": rusol_env.encode_code(33, rules)})
            assert_same(result, theirs.reset(options={"code": rusol_env.encode_code(33, rules)}))
    assert ends > 0
    assert_same(ours.reset(seed=list(range(number))), theirs.reset(seed=list(range(number))))  # pyright: ignore[reportArgumentType]
    ours.close()


def test_make_vec_reaches_it_and_passes_its_arguments() -> None:
    env: Any = gymnasium.make_vec(ENV_ID, num_envs=3, rules="relaxed", autoreset_mode="SameStep", threads=2)
    assert isinstance(env, RussianSolitaireVectorEnv)
    assert (env.num_envs, env.threads, env.autoreset_mode) == (3, 2, AutoresetMode.SAME_STEP)
    env.close()
    explicit: Any = gymnasium.make_vec(ENV_ID, num_envs=2, vectorization_mode="vector_entry_point", max_episode_steps=9)
    explicit.reset(seed=0)
    ends = [explicit.step(np.zeros(2, np.int64))[3].any() for _ in range(9)]
    assert ends == [False] * 8 + [True]


@pytest.mark.parametrize("observation", ["cards", "board"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_what_a_step_hands_out_is_not_changed_by_the_next_unless_asked(observation: str, mode: AutoresetMode) -> None:
    """Scenario 17; and `copy=False` plays the same games in the same buffers."""
    env = make(8, observation=observation, autoreset_mode=mode, max_steps=10)
    lean = make(8, observation=observation, autoreset_mode=mode, max_steps=10, copy=False)
    kept: list[tuple[Any, bytes]] = []
    chance = random.Random(1)
    result, thin = env.reset(seed=1), lean.reset(seed=1)
    for _ in range(9 if mode is AutoresetMode.DISABLED else 40):
        assert_same(thin, result)
        kept.append((result, pickle.dumps(result)))
        actions = choose(chance, result[1]["action_mask"])
        if mode is AutoresetMode.DISABLED and env._over.any():  # pyright: ignore[reportPrivateUsage]
            break
        stepped, light = env.step(actions), lean.step(actions)
        assert_same(light, stepped)
        assert np.shares_memory(light[0], thin[0])
        result, thin = (stepped[0], stepped[4]), (light[0], light[4])
    for value, data in kept:
        assert pickle.dumps(value) == data


def through_pickle(env: RussianSolitaireVectorEnv) -> RussianSolitaireVectorEnv:
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("clone", [copy.deepcopy, through_pickle])
def test_copies_go_on_alike(clone: Any) -> None:
    env = make(4, threads=2)
    _, infos = env.reset(seed=3)
    actions = choose(random.Random(0), infos["action_mask"])
    env.step(actions)
    other = clone(env)
    assert_same(other.step(actions), env.step(actions))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"num_envs": 1.5}, "num_envs is 1.5"),
        ({"num_envs": 2, "threads": 0}, "threads is 0"),
        ({"num_envs": 2, "autoreset_mode": "Never"}, "use one of 'NextStep', 'SameStep', 'Disabled'"),
        ({"num_envs": 2, "rules": "bridge"}, "unknown rules"),
        ({"num_envs": -1}, "num_envs is -1"),
        ({"num_envs": "many"}, "num_envs is 'many'"),
        ({"num_envs": True}, "num_envs is True"),
        ({"num_envs": 2, "deals": []}, "deals is empty"),
        ({"num_envs": 2, "deals": 5}, "deals is 5"),
        ({"num_envs": 2, "deals": "first-10"}, "deals is 'first-10'"),
        ({"num_envs": 2, "deals": [1, -1]}, "-1 is not a deal number"),
        ({"num_envs": 2, "deals": ["RU1-R-AAAAAAA"]}, "is for relaxed rules"),
        ({"num_envs": 2, "deals": [None]}, "None is not a deal"),
        ({"num_envs": 2, "copy": "no"}, "copy is 'no'"),
        ({"num_envs": 2, "max_episode_steps": 0}, "max_episode_steps is 0"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is compared below
        RussianSolitaireVectorEnv(**options)
    assert said in str(refused.value)


def test_bad_steps_and_resets_are_refused_and_change_nothing() -> None:
    env = make(3)
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(3, np.int64))
    with pytest.raises(ResetNeeded):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(ResetNeeded):
        env.sample_legal(np.zeros(3, np.uint64))
    env.reset(seed=0)
    before = pickle.dumps(env)
    bad: Any
    for bad in (
        np.zeros(2, np.int64),
        np.zeros((3, 1), np.int64),
        np.zeros(3),
        np.zeros(3, np.bool_),
        np.array([0, 1, 2**64 - 1], np.uint64),
        [0, 1, 416],
        [0, 1, -1],
        [0, 1, 2**70],
        [[0], [1, 2], [3]],
        5,
        None,
        "abc",
    ):
        with pytest.raises(InvalidAction):
            env.step(bad)
    for bad in ([1, 2], -1, 2**64 - 2, [1, 2, "x"], 1.5, np.array(5.0)):
        with pytest.raises(ValueError, match="seed"):
            env.reset(seed=bad)
    for bad in (np.zeros(3, bool), np.ones(2, bool)):
        with pytest.raises(ValueError, match="reset_mask"):
            env.reset(options={"reset_mask": bad})
    for bad in ([True] * 3, np.ones(3)):
        with pytest.raises(TypeError, match="reset_mask"):
            env.reset(options={"reset_mask": bad})
    with pytest.raises(ValueError, match="unknown reset option"):
        env.reset(options={"deal": 1})
    with pytest.raises(ValueError, match="not a deal number"):
        env.reset(seed=4, options={"deal_number": -1})
    fixed = np.zeros(3, np.uint64)
    fixed.flags.writeable = False
    for bad in (None, [0, 1, 2], np.zeros(3, np.int64), np.zeros(2, np.uint64), np.zeros((3, 1), np.uint64), fixed):
        with pytest.raises(ValueError, match=r"uint64 \(3,\)"):
            env.sample_legal(bad)
    assert pickle.dumps(env) == before


def test_the_action_of_a_game_that_begins_anew_is_ignored_whatever_it_is() -> None:
    env = make(2, max_steps=1)
    env.reset(seed=0)
    env.step(np.zeros(2, np.int64))
    _, rewards, terminations, truncations, infos = env.step(np.array([-1, 999]))
    assert (rewards.tolist(), terminations.any(), truncations.any()) == ([0.0, 0.0], False, False)
    assert infos["moves"].tolist() == [0, 0]


def test_a_finished_game_waits_for_its_reset_when_autoreset_is_disabled() -> None:
    env = make(2, autoreset_mode="Disabled", max_steps=1)
    env.reset(seed=0)
    env.step(np.zeros(2, np.int64))
    with pytest.raises(ResetNeeded, match=r"\[0, 1\]"):
        env.step(np.zeros(2, np.int64))


def test_games_have_different_deals_and_render() -> None:
    """Scenario 11."""
    env = make(64, render_mode="ansi", rules="yukon")
    with pytest.raises(ResetNeeded):
        env.render()
    _, infos = env.reset()
    assert len(set(infos["code"])) == 64
    pictures = env.render()
    assert pictures is not None
    texts = [picture for picture in pictures if isinstance(picture, str)]
    assert len(set(texts)) == len(pictures) == 64
    assert texts[0].startswith("yukon  score 0")


def test_an_interrupted_step_leaves_no_answer_to_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from rusol_env import vector

    advance: Any = vector._advance  # pyright: ignore[reportPrivateUsage]

    def interrupted(start: int, *arguments: Any) -> Any:
        if start == 0:
            raise KeyboardInterrupt
        return advance(start, *arguments)

    env = make(6, threads=3, max_steps=3)
    streams = np.arange(6, dtype=np.uint64)
    env.reset(seed=0)
    env.step(env.sample_legal(streams))
    with monkeypatch.context() as patched:
        patched.setattr(vector, "_advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            env.step(env.sample_legal(streams))
    ends = 0
    for _ in range(12):
        _, _, terminations, truncations, _ = env.step(env.sample_legal(streams))
        ends += int((terminations | truncations).sum())
        # How many episodes ended is what the threads answer.
        assert env._any_over == (terminations | truncations).any()  # pyright: ignore[reportPrivateUsage]
    assert ends > 6
    env.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    script = (
        "import os, numpy as np, rusol_env\n"
        "env = rusol_env.RussianSolitaireVectorEnv(4, threads=2)\n"
        "env.reset(seed=0)\n"
        "env.step(np.zeros(4, np.int64))\n"
        "child = os.fork()\n"
        "observations, *_ = env.step(np.zeros(4, np.int64))\n"
        "if child == 0:\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "0\n"


def test_actions_drawn_by_the_batch_are_legal_and_each_equally_likely() -> None:
    env = make(4, rules="relaxed")
    _, infos = env.reset(options={"deal_number": 33})
    legal = np.flatnonzero(infos["action_mask"][0])
    streams = np.arange(4, dtype=np.uint64)
    drawn = np.concatenate([env.sample_legal(streams) for _ in range(3000)])
    found, counts = np.unique(drawn, return_counts=True)
    assert found.tolist() == legal.tolist()
    # Five standard deviations of a binomial count.
    expected = len(drawn) / len(legal)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)
    again = np.arange(4, dtype=np.uint64)
    assert np.concatenate([env.sample_legal(again) for _ in range(3000)]).tobytes() == drawn.tobytes()
