"""The contract of the environment: spaces, masks, rewards, ends, seeds, options, refusals."""

from __future__ import annotations

import copy
import itertools
import math
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
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

import rusol_env
from rusol_env import ENV_ID, Game, RussianSolitaireEnv, decode_action, decode_board, decode_cards, encode_action
from rusol_env.cards import card_name
from rusol_env.engine import NUM_ACTIONS
from rusol_env.env import _warn_farming  # pyright: ignore[reportPrivateUsage]
from rusol_env.observe import LEGAL, Observation, observation_space
from rusol_env.render import ansi
from rusol_env.rules import Rejection

RULES = list(rusol_env.VARIANTS)
OBSERVATIONS = ["cards", "board"]
REWARDS = ["score", "progress", "win"]
DECODE: dict[str, Any] = {"cards": decode_cards, "board": decode_board}


def make(**options: Any) -> RussianSolitaireEnv:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of farming; it has its own test
        return RussianSolitaireEnv(**options)


def legal_actions(info: dict[str, Any]) -> list[int]:
    return np.flatnonzero(info["action_mask"]).tolist()


def play_randomly(env: RussianSolitaireEnv, chance: random.Random, info: dict[str, Any]) -> list[dict[str, Any]]:
    """Play to the end; returns each step's record."""
    steps: list[dict[str, Any]] = []
    while True:
        action = chance.choice(legal_actions(info))
        observation, reward, terminated, truncated, info = env.step(action)
        steps.append(info | {"reward": reward, "observation": observation, "action": action})
        if terminated or truncated:
            steps[-1] |= {"terminated": terminated, "truncated": truncated}
            return steps


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("reward", REWARDS)
def test_gymnasium_and_sb3_checkers_pass_without_a_warning(rules: str, observation: str, reward: str) -> None:
    """For every combination of options; SB3's remark on two-dimensional observations aside."""
    checker: Any = pytest.importorskip("stable_baselines3.common.env_checker", reason="Stable-Baselines3 is missing")
    for take_back, idle_moves, thoughtful in itertools.product([False, True], repeat=3):
        options: dict[str, Any] = {
            "rules": rules,
            "observation": observation,
            "reward": reward,
            "take_back": take_back,
            "idle_moves": idle_moves,
            "thoughtful": thoughtful,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            env = gymnasium.make(ENV_ID, render_mode="ansi", **options)
            _warn_farming()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            checker.check_env(make(**options))
        assert [text for text in (str(warning.message) for warning in said) if "unconventional shape" not in text] == []


@pytest.mark.parametrize("rules", RULES)
def test_masks_observations_and_infos_agree_with_the_game(rules: str) -> None:
    """Mask, `Game.legal_moves`, observation and info tell the same story at every step, in both observations."""
    chance = random.Random(rules)
    for episode in range(12):
        take_back, idle_moves = episode % 2 == 1, episode % 3 == 1
        envs = {
            kind: make(rules=rules, observation=kind, take_back=take_back, idle_moves=idle_moves) for kind in DECODE
        }
        game = Game.from_number(episode, rules)
        results = {kind: env.reset(options={"deal_number": episode}) for kind, env in envs.items()}
        for _ in range(60):
            infos = [info for _, info in results.values()]
            np.testing.assert_array_equal(infos[0]["action_mask"], infos[1]["action_mask"])
            moves = game.legal_moves(take_back=take_back, idle_moves=idle_moves)
            expected = [move.action for move in moves] or list(range(NUM_ACTIONS))
            assert legal_actions(infos[0]) == expected
            for kind, (observation, info) in results.items():
                env = envs[kind]
                assert observation in env.observation_space
                assert DECODE[kind](observation) == game.visible
                assert info["action_mask"].dtype == np.int8
                np.testing.assert_array_equal(env.action_masks(), info["action_mask"].astype(bool))
                assert np.shares_memory(env.action_masks(), info["action_mask"])
                assert (info["score"], info["moves"]) == (game.score, game.moves)
                assert info["foundation_cards"] == sum(game.foundations)
                assert info["face_down"] == sum(column.count(None) for column in game.columns)
                assert info["is_success"] == game.won
                assert (info["code"], info["deal_number"]) == (game.code, episode)
            cards = results["cards"][0]
            np.testing.assert_array_equal(cards[:, LEGAL:].ravel(), infos[0]["action_mask"])
            if not moves:
                break
            move = chance.choice(moves)
            game.play(move)
            results = {
                kind: (result[0], result[4]) for kind, result in ((k, e.step(move.action)) for k, e in envs.items())
            }


def test_the_cards_observation_says_what_its_columns_mean() -> None:
    """Written out for one deal, from the deal's text alone."""
    observation, info = make().reset(options={"code": "RU1-C-AAAAABB"})
    deal = rusol_env.deal_arrangement(33)
    expected = np.zeros((52, 24), np.float32)
    for column, cards in enumerate(deal.columns):
        for place, card in enumerate(cards):
            if place < column:
                expected[card, 8] = 1
                continue
            expected[card, column] = 1
            expected[card, 9] = place / 51
            expected[card, 10] = (len(cards) - 1 - place) / 51
            expected[card, 11] = column / 6
            expected[card, 12] = place == len(cards) - 1
            expected[card, 13] = place == 0
            expected[card, 14] = place == column > 0
            expected[card, 15] = place > column and cards[place - 1] == card + 1 and card % 13 != 12
    for action in legal_actions(info):
        expected[action // 8, 16 + action % 8] = 1
    np.testing.assert_allclose(observation, expected, rtol=1e-6)


def test_thoughtful_shows_face_down_cards_still_marked_as_such() -> None:
    deal = rusol_env.deal_arrangement(33)
    cards, _ = make(thoughtful=True).reset(options={"deal_number": 33})
    plain, _ = make().reset(options={"deal_number": 33})
    board, _ = make(thoughtful=True, observation="board").reset(options={"deal_number": 33})
    for column, column_cards in enumerate(deal.columns):
        for place, card in enumerate(column_cards):
            face_down = place < column
            assert cards[card, 8] == face_down
            assert cards[card, column] == 1
            assert cards[card, 9] == np.float32(place / 51)
            assert board[column, place] == (53 + card if face_down else card)
            if not face_down:
                np.testing.assert_array_equal(cards[card], plain[card])
    assert board in observation_space(Observation.BOARD, True)
    assert decode_board(board) == Game(deal).visible
    assert decode_cards(cards) == Game(deal).visible


@pytest.mark.parametrize("rules", RULES)
def test_every_feature_varies_and_stays_in_its_space(rules: str) -> None:
    """Scenario 19, over 10^4 random positions a variant; also no two visible positions look alike (18)."""
    chance = random.Random(1)
    envs = {kind: make(rules=rules, observation=kind, take_back=True, max_steps=10_000) for kind in DECODE}
    lows = {kind: np.full(env.observation_space.shape or (), 127.0) for kind, env in envs.items()}
    highs = {kind: np.full(env.observation_space.shape or (), -127.0) for kind, env in envs.items()}
    seen: dict[bytes, Any] = {}
    positions = 0
    deal = 0
    while positions < 10_000:
        results = {kind: env.reset(options={"deal_number": deal}) for kind, env in envs.items()}
        deal += 1
        for _ in range(150):
            positions += 1
            for kind, (observation, _) in results.items():
                lows[kind] = np.minimum(lows[kind], observation)
                highs[kind] = np.maximum(highs[kind], observation)
            visible = decode_board(results["board"][0])
            code = results["cards"][0].tobytes()
            assert seen.setdefault(code, visible) == visible
            actions = legal_actions(results["board"][1])
            if len(actions) == NUM_ACTIONS:
                break
            ups = [action for action in actions if action % 8 == 7]
            action = chance.choice(ups if ups and chance.random() < 0.7 else actions)
            results = {kind: (result[0], result[4]) for kind, result in ((k, e.step(action)) for k, e in envs.items())}
    for kind, env in envs.items():
        space: Any = env.observation_space
        assert (lows[kind] >= space.low).all()
        assert (highs[kind] <= space.high).all()
    varied = (highs["cards"] > lows["cards"]).any(axis=0)
    assert varied.all(), np.flatnonzero(~varied)
    # A board's columns never hold all 52 cards; every place that random play reaches must vary.
    assert (highs["board"][:7, :12] > lows["board"][:7, :12]).all()
    assert (highs["board"][7, :4] > lows["board"][7, :4]).all()
    assert (lows["board"][7, 4:] == highs["board"][7, 4:]).all()
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize("rules", RULES)
def test_returns_are_what_the_rewards_promise(rules: str) -> None:
    """Without taking back: score and progress sum to the final score, win to 0 or 1."""
    for seed in range(20):
        sums: dict[str, float] = {}
        for reward in REWARDS:
            env = make(rules=rules, reward=reward)
            _, info = env.reset(seed=seed)
            steps = play_randomly(env, random.Random(seed), info)
            sums[reward] = sum(step["reward"] for step in steps)
            last = steps[-1]
            assert last["score"] == 10 * last["foundation_cards"] + 5 * (21 - last["face_down"])
            assert sums[reward] == (last["is_success"] if reward == "win" else last["score"])
        assert sums["score"] == sums["progress"]


def farming_loop(env: RussianSolitaireEnv) -> tuple[int, int]:
    """Bring an env to where a card can go up and come back again; returns those two actions."""
    for deal in range(1000):
        _, info = env.reset(options={"deal_number": deal})
        for _ in range(60):
            actions = legal_actions(info)
            back = next((action for action in actions if env._row[468 + action // 8] == 7), None)  # pyright: ignore[reportPrivateUsage]
            if back is not None:
                return back, encode_action(back // 8, 7)
            ups = [action for action in actions if action % 8 == 7]
            _, _, terminated, _, info = env.step((ups or actions)[0])
            if terminated:
                break
    raise AssertionError("no deal allows taking a card back")


def test_a_thousand_loops_of_taking_back(recwarn: pytest.WarningsRecorder) -> None:
    """Scenario 7: `score` pays 10 a loop and is warned about once, `progress` pays nothing."""
    _warn_farming.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        envs = [RussianSolitaireEnv(rules="relaxed", take_back=True, max_steps=10_000) for _ in range(3)]
        RussianSolitaireEnv(rules="relaxed", take_back=True, reward="progress")
        RussianSolitaireEnv(rules="relaxed")
    assert [str(warning.message)[:40] for warning in said] == ["take_back=True with reward='score' can be farmed"[:40]]
    for reward, paid in [("score", 10_000.0), ("progress", 0.0), ("win", 0.0)]:
        env = envs[0] if reward == "score" else make(rules="relaxed", take_back=True, reward=reward, max_steps=10_000)
        back, up = farming_loop(env)
        earned = 0.0
        for _ in range(1000):
            for action in (back, up):
                _, value, terminated, _, info = env.step(action)
                earned += value
                assert not terminated
                assert "rejection" not in info
        assert earned == paid
    assert not recwarn.list


def test_without_take_back_and_idle_moves_they_are_refused_by_name() -> None:
    env = make(rules="relaxed", take_back=True)
    back, _ = farming_loop(env)
    strict = make(rules="relaxed")
    strict.reset(seed=0)
    strict._row[:] = env._row  # pyright: ignore[reportPrivateUsage]
    before = strict._row.tobytes()  # pyright: ignore[reportPrivateUsage]
    _, reward, _, _, info = strict.step(back)
    assert info["rejection"] is Rejection.TAKE_BACK_OFF
    assert "take_back=False" in info["rejection_text"]
    assert reward == 0
    assert strict._row.tobytes() == before  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("rules", RULES)
def test_an_illegal_action_changes_nothing_counts_and_is_reported(rules: str) -> None:
    """All 416 actions of some positions: those off the mask are refused with a sentence, the others are not."""
    env = make(rules=rules, illegal_reward=-0.5, max_steps=100_000)
    chance = random.Random(2)
    observation, info = env.reset(seed=5)
    for step in range(12):
        if info["is_success"]:
            break
        mask = info["action_mask"].copy()
        for action in np.flatnonzero(mask == 0).tolist():
            seen, reward, terminated, truncated, info = env.step(action)
            np.testing.assert_array_equal(seen, observation)
            np.testing.assert_array_equal(info["action_mask"], mask)
            assert (reward, terminated, truncated) == (-0.5, False, False)
            assert info["rejection"] in set(Rejection) - {Rejection.NONE}
            card = decode_action(action).card
            assert card_name(card) in info["rejection_text"]
            assert info["rejection_text"] == env.explain(action)
            assert info["moves"] == step
        action = chance.choice(legal_actions(info))
        assert env.explain(action) == ""
        observation, reward, terminated, _, info = env.step(action)
        assert "rejection" not in info
        assert reward >= 0
        if terminated:
            break


def test_max_steps_ends_play_of_illegal_actions_only() -> None:
    """Scenario 14: also a policy that only plays illegal actions meets an end."""
    env = make(max_steps=7)
    _, info = env.reset(seed=0)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    ends = [env.step(illegal)[2:4] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]
    with pytest.raises(ResetNeeded):
        env.step(illegal)
    # A game cut off is not finished: its mask still shows the legal moves.
    assert not env.action_masks().all()


def winning_line() -> tuple[int, list[int]]:
    """A Relaxed evaluation deal that greedy-like random play wins, and its actions."""
    for deal in range(200):
        env = make(rules="relaxed")
        _, info = env.reset(options={"deal_number": deal})
        chance = random.Random(deal)
        actions: list[int] = []
        for _ in range(500):
            legal = legal_actions(info)
            ups = [action for action in legal if action % 8 == 7]
            actions.append(chance.choice(ups or legal))
            _, _, terminated, _, info = env.step(actions[-1])
            if terminated:
                break
        if info["is_success"]:
            return deal, actions
    raise AssertionError("no deal was won")


def test_a_win_on_the_last_allowed_step_is_terminated() -> None:
    """Scenario 16, and 8: the win scores 625; one step fewer allowed is truncated instead."""
    deal, actions = winning_line()
    for spare, end in [(0, (True, False)), (-1, (False, True))]:
        env = make(rules="relaxed", max_steps=len(actions) + spare)
        env.reset(options={"deal_number": deal})
        taken = actions[: len(actions) + spare]
        for action in taken[:-1]:
            assert env.step(action)[2:4] == (False, False)
        observation, _, terminated, truncated, info = env.step(taken[-1])
        assert (terminated, truncated) == end
        assert info["is_success"] == (spare == 0)
        if spare == 0:
            assert info["score"] == 625
            assert info["action_mask"].all()
            assert decode_cards(observation).foundations == (13, 13, 13, 13)


def test_a_dead_end_is_terminated_never_truncated() -> None:
    """Scenario 16: also when the last move is the last allowed step."""
    env = make()
    _, info = env.reset(seed=2)
    steps = play_randomly(env, random.Random(1), info)
    assert steps[-1]["terminated"]
    assert not steps[-1]["is_success"]
    assert steps[-1]["action_mask"].all()
    short = make(max_steps=len(steps))
    short.reset(seed=2)
    ends = [short.step(step["action"])[2:4] for step in steps]
    assert ends[-1] == (True, False)


def test_a_deal_without_any_move_ends_at_the_first_step() -> None:
    """The mask allowed every action, so none is refused and none is fined."""
    env = make(illegal_reward=-1.0)
    _, info = env.reset(options={"code": "RU1-C-UXTM47X"})
    assert not Game.from_code("RU1-C-UXTM47X").legal_moves()
    assert info["action_mask"].all()
    assert env.explain(5) == ""
    _, reward, terminated, truncated, info = env.step(5)
    assert (reward, terminated, truncated, info["is_success"]) == (0.0, True, False, False)
    assert "rejection" not in info
    assert rusol_env.evaluate("random", "classic", [rusol_env.decode_code("RU1-C-UXTM47X")[1]]).steps.tolist() == [1]


def test_a_long_masked_run_never_meets_an_empty_mask_or_a_refusal() -> None:
    """Scenario 14 at 10^5 steps a variant here (10^6 in all: `python benchmarks/soak.py`)."""
    streams = np.array([1], np.uint64)
    for rules in RULES:
        env = make(rules=rules, observation="board")
        _, info = env.reset(seed=3)
        for _ in range(33_000):
            action = int(rusol_env.sample_legal(info["action_mask"][None], streams)[0])
            assert info["action_mask"][action] == 1
            _, _, terminated, truncated, info = env.step(action)
            assert "rejection" not in info
            if terminated or truncated:
                assert info["action_mask"].any()
                _, info = env.reset()


@pytest.mark.parametrize(
    "action", [416, -1, 10**30, 1.0, 1.5, float("nan"), "3", None, np.float32(2), np.array([1, 2])]
)
def test_an_action_outside_the_space_raises_and_changes_nothing(action: Any) -> None:
    env = make()
    env.reset(seed=0)
    before = pickle.dumps(env.__dict__)
    with pytest.raises(InvalidAction, match="whole numbers, 0 to 415"):
        env.step(action)
    assert pickle.dumps(env.__dict__) == before


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint16, np.array])
def test_whole_numbers_of_any_kind_are_actions(kind: Any) -> None:
    env = make()
    _, info = env.reset(seed=0)
    assert "rejection" not in env.step(kind(legal_actions(info)[0]))[4]


def test_step_and_render_before_reset_and_step_after_the_end_raise() -> None:
    env = make(render_mode="ansi")
    with pytest.raises(ResetNeeded):
        env.step(0)
    with pytest.raises(ResetNeeded):
        env.render()
    with pytest.raises(ResetNeeded):
        env.explain(0)
    _, info = env.reset(seed=1)
    play_randomly(env, random.Random(1), info)
    with pytest.raises(ResetNeeded):
        env.step(0)
    made = gymnasium.make(ENV_ID)
    with pytest.raises(ResetNeeded):
        made.step(0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rules": "bridge"}, "unknown rules 'bridge': use one of classic, relaxed, yukon"),
        ({"observation": "pixels"}, "unknown observation 'pixels': use one of cards, board"),
        ({"reward": "money"}, "unknown reward 'money': use one of score, progress, win"),
        ({"split": "test"}, "unknown split 'test': use one of train, eval"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"max_steps": 1.5}, "max_steps is 1.5"),
        ({"max_steps": True}, "max_steps is True"),
        ({"illegal_reward": math.nan}, "illegal_reward is nan"),
        ({"deals": []}, "deals is empty"),
        ({"deals": "first-10"}, "rusol_env.suite('first-1000')"),
        ({"deals": ["RU1-R-AAAAABB"]}, "the same deal here is RU1-C-AAAAABB"),
        ({"deals": [1.5]}, "1.5 is not a deal"),
        ({"deals": 10}, "deals is 10"),
        ({"deals": b"RU1"}, "deals is b'RU1'"),
        ({"take_back": "False"}, "take_back is 'False'"),
        ({"thoughtful": 1}, "thoughtful is 1"),
        ({"illegal_reward": None}, "illegal_reward is None"),
        ({"illegal_reward": "3"}, "illegal_reward is '3'"),
        ({"rules": rusol_env.CLASSIC._replace(max_group=2)}, "none of the rule sets"),
        ({"render_mode": "hologram"}, "unknown render_mode 'hologram'"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is compared below
        RussianSolitaireEnv(**options)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"seed": -1}, "-1 is not a seed"),
        ({"seed": 2**64}, "is not a seed"),
        ({"seed": 1.5}, "1.5 is not a seed"),
        ({"seed": "1"}, "'1' is not a seed"),
        ({"options": {"code": "RU1-C-1"}}, "letter 1 of the deal"),
        ({"options": {"code": "RU1-R-AAAAABB"}}, "the same deal here is RU1-C-AAAAABB"),
        ({"options": {"code": 33}}, "a code is text"),
        ({"options": {"deal_number": 2**35}}, "not a deal number"),
        ({"options": {"deal_number": "33"}}, "not a deal number"),
        ({"options": {"columns": [["KS"]]}}, "7 columns, not 1"),
        ({"options": {"columns": None}}, "lists of cards"),
        ({"options": 5}, "the reset options are 5"),
        ({"options": {"deal": 3}}, "unknown reset option 'deal': use one of code, deal_number, columns"),
        ({"options": {"code": "RU1-C-AAAAABB", "deal_number": 33}}, "exclude each other"),
    ],
)
def test_a_bad_reset_is_refused_and_the_episode_goes_on(arguments: dict[str, Any], said: str) -> None:
    env = make()
    _, info = env.reset(seed=0)
    before = pickle.dumps(env.__dict__)
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is compared below
        env.reset(**arguments)
    assert said in str(refused.value)
    assert pickle.dumps(env.__dict__) == before
    env.step(legal_actions(info)[0])


def test_exact_deals_and_the_code_that_info_tells() -> None:
    """Scenario 10."""
    env = make()
    _, first = env.reset(options={"code": " ru1-c-aaaaabb "})
    assert (first["code"], first["deal_number"]) == ("RU1-C-AAAAABB", 33)
    start = env._row.copy()  # pyright: ignore[reportPrivateUsage]
    play_randomly(env, random.Random(0), first)
    env.reset(options={"code": "RU1-C-AAAAABB"})
    np.testing.assert_array_equal(env._row, start)  # pyright: ignore[reportPrivateUsage]
    columns = rusol_env.deal_arrangement(33).text()
    _, info = env.reset(options={"columns": columns})
    assert (info["code"], info["deal_number"]) == (None, -1)
    np.testing.assert_array_equal(env._row, start)  # pyright: ignore[reportPrivateUsage]
    _, _, _, _, info = env.step(legal_actions(info)[0])
    assert info["code"] is None


def test_actions_are_made_from_board_cells_of_any_integer_type() -> None:
    board, info = make(observation="board", rules="relaxed").reset(seed=0)
    made = [encode_action(card, int(target)) for card in board[:7].ravel() if 0 <= card < 52 for target in range(8)]
    assert set(legal_actions(info)) <= set(made)


def codes(env: gymnasium.Env[Any, Any], number: int, seed: int | None = None) -> list[str]:
    found = [env.reset(seed=seed)[1]["code"]]
    return found + [env.reset()[1]["code"] for _ in range(number - 1)]


def test_deals_walk_in_order_and_round_again() -> None:
    suite = rusol_env.suite("first-3")
    first = [rusol_env.encode_code(number, "classic") for number in range(3)]
    env = make(deals=suite)
    assert codes(env, 7) == [*first, *first, first[0]]
    assert codes(env, 2, seed=9) == first[:2]
    columns = rusol_env.deal_arrangement(2).text()
    assert codes(make(deals=["RU1-C-AAAAAAB", 0, columns]), 3) == [first[1], first[0], None]


def test_seeds_and_splits() -> None:
    """Scenario 11 and 13."""
    assert codes(make(), 20, seed=1) == codes(make(rules="classic", reward="win"), 20, seed=1)
    assert codes(make(), 20, seed=1) != codes(make(), 20, seed=2)
    assert all(code[6] != "A" for code in codes(make(), 300, seed=3))
    assert all(code[6] == "A" for code in codes(make(split="eval"), 300, seed=3))
    numbers = [rusol_env.decode_code(code)[1] for code in codes(make(), 50, seed=4)]
    relaxed = [rusol_env.decode_code(code)[1] for code in codes(make(rules="relaxed"), 50, seed=4)]
    assert numbers == relaxed
    for seed in (0, 2**63, 2**64 - 1, np.int64(7), np.uint64(2**64 - 1)):
        assert codes(make(), 3, seed=seed) == codes(make(), 3, seed=int(seed))  # pyright: ignore[reportArgumentType]
    assert len(set(codes(make(), 1000))) >= 999
    assert len({codes(make(), 1)[0] for _ in range(50)}) == 50


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_sub_environments_of_one_seed_have_different_deals(mode: str) -> None:
    """Scenario 11: and each is what a single environment of its seed is."""
    envs = gymnasium.make_vec(ENV_ID, num_envs=8, vectorization_mode=mode)
    try:
        _, infos = envs.reset(seed=11)
        assert list(infos["code"]) == [codes(make(), 1, seed=11 + i)[0] for i in range(8)]
        assert len(set(infos["code"])) == 8
        assert infos["action_mask"].shape == (8, NUM_ACTIONS)
    finally:
        envs.close()


def test_nothing_reads_the_global_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a global generator was read")

    for name in ("random", "randint", "choice", "shuffle", "rand", "uniform", "permutation", "integers", "bytes"):
        if hasattr(np.random, name):
            monkeypatch.setattr(np.random, name, refuse)
    for name in ("random", "randint", "choice", "shuffle", "getrandbits", "randrange"):
        monkeypatch.setattr(random, name, refuse)
    env = make()
    env.reset()
    env.reset(seed=1)
    policy = rusol_env.GreedyPolicy(seed=1)
    result = rusol_env.evaluate(policy, "classic", 5)
    assert len(result.numbers) == 5


def through_pickle(env: RussianSolitaireEnv) -> RussianSolitaireEnv:
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, through_pickle])
def test_copies_in_mid_game_go_on_alike(clone: Any) -> None:
    """Scenario 12: same actions, same results, across the next resets too; and the original is untouched."""
    env = make(rules="relaxed")
    _, info = env.reset(seed=2)
    for _ in range(10):
        _, _, _, _, info = env.step(legal_actions(info)[-1])
    other = clone(env)
    np.testing.assert_array_equal(other.action_masks(), env.action_masks())
    runs: list[list[Any]] = []
    for copy_of in (env, other):
        steps = play_randomly(copy_of, random.Random(4), info)
        again = copy_of.reset()[1]["code"]
        runs.append([[s["action"], s["reward"], s["score"], s["observation"].tobytes()] for s in steps] + [again])
    assert runs[0] == runs[1]


def test_what_a_step_hands_out_is_not_changed_by_the_next() -> None:
    """Scenario 17, for the single environment."""
    env = make()
    kept: list[tuple[NDArray[Any], bytes, dict[str, Any], bytes]] = []
    observation, info = env.reset(seed=0)
    for _ in range(40):
        kept.append((observation, observation.tobytes(), info, info["action_mask"].tobytes()))
        observation, _, terminated, _, info = env.step(legal_actions(info)[0])
        if terminated:
            observation, info = env.reset()
    for observation, data, info, mask in kept:
        assert observation.tobytes() == data
        assert info["action_mask"].tobytes() == mask


def test_masks_reach_through_wrappers_and_the_space_samples_by_them() -> None:
    env = gymnasium.make(ENV_ID, rules="relaxed")
    env.action_space.seed(0)
    _, info = env.reset(seed=0)
    np.testing.assert_array_equal(env.get_wrapper_attr("action_masks")(), info["action_mask"].astype(bool))
    for _ in range(30):
        _, _, _, _, info = env.step(env.action_space.sample(mask=info["action_mask"]))
        assert "rejection" not in info


def test_masked_sampling_draws_what_gymnasium_draws() -> None:
    ours, theirs = make().action_space, gymnasium.spaces.Discrete(NUM_ACTIONS)
    assert ours == theirs
    assert repr(ours) == repr(theirs)
    chance = np.random.default_rng(0)
    for seed in range(200):
        ours.seed(seed)
        theirs.seed(seed)
        mask = (chance.random(NUM_ACTIONS) < chance.random()).astype(np.int8)
        for _ in range(3):
            action = ours.sample(mask=mask)
            assert action == theirs.sample(mask=mask)
            assert type(action) is np.int64
        assert ours.sample() == theirs.sample()
        assert ours.sample(mask=mask[::-1]) == theirs.sample(mask=mask[::-1])
    assert ours.sample(mask=np.zeros(NUM_ACTIONS, np.int8)) == 0
    for bad in (np.full(NUM_ACTIONS, 2, np.int8), np.ones(NUM_ACTIONS, bool), np.ones(3, np.int8)):
        with pytest.raises(AssertionError):
            ours.sample(mask=bad)


def test_render_is_text_of_what_is_seen() -> None:
    env = make(render_mode="ansi")
    env.reset(options={"code": "RU1-C-AAAAABB"})
    picture = env.render()
    assert isinstance(picture, str)
    assert "\x1b" not in picture
    assert "RU1" not in picture
    lines = picture.splitlines()
    assert lines[0].split() == ["classic", "score", "0", "moves", "0", "♠", "-", "♥", "-", "♦", "-", "♣", "-"]
    assert lines[2].split() == ["9♣", "░░", "░░", "░░", "░░", "░░", "░░"]
    assert lines[-1].split() == ["9♠"]
    assert lines[-1].index("9♠") + 2 == len(lines[2])
    coloured = ansi(Game.from_number(33).visible, colour=True)
    assert "\x1b[1;31m" in coloured


def test_ids_and_make_from_a_bare_interpreter() -> None:
    registered = [id for id in gymnasium.registry if id.startswith("rusol_env/")]
    assert registered == [ENV_ID, *(f"rusol_env/RussianSolitaire{name.title()}-v0" for name in RULES)]
    for name in RULES:
        env: Any = gymnasium.make(f"rusol_env/RussianSolitaire{name.title()}-v0").unwrapped
        assert env.rules == rusol_env.VARIANTS[name]
    script = (
        "import gymnasium\n"
        "env = gymnasium.make('rusol_env:rusol_env/RussianSolitaire-v0', rules='relaxed')\n"
        "print(env.reset(seed=0)[1]['code'])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == codes(make(rules="relaxed"), 1, seed=0)[0]


@pytest.mark.parametrize("kind", [rusol_env.RussianSolitaireEnv, rusol_env.RussianSolitaireVectorEnv])
def test_more_steps_than_kernels_count_are_refused(kind: Any) -> None:
    options: dict[str, Any] = {"num_envs": 2} if kind is rusol_env.RussianSolitaireVectorEnv else {}
    with pytest.raises(ValueError, match=rf"^max_steps is {10**30}: it must be less than 2\^63$"):
        kind(**options, max_steps=10**30)
    envs: Any = kind(**options, max_steps=2**63 - 1)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
