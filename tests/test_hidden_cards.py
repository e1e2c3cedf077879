"""Hidden cards stay hidden: nothing that a player or policy is shown depends on which card lies face down where.

Scenario 18. Two deals that differ only in face-down cards are played side by side until a card turns up.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rusol_env import Arrangement, Game, IllegalMove, RussianSolitaireEnv
from rusol_env.cards import card_ascii
from rusol_env.deals import NUM_DEALS, deal_arrangement
from rusol_env.engine import NUM_ACTIONS
from rusol_env.models import policy_named
from rusol_env.policies import POLICIES
from rusol_env.rules import DEAL_FACE_DOWN, VARIANTS


def permuted(deal: Arrangement, chance: random.Random) -> Arrangement:
    """The same deal with its face-down cards in another order."""
    hidden = [card for column, down in zip(deal.columns, deal.face_down, strict=True) for card in column[:down]]
    chance.shuffle(hidden)
    cards = iter(hidden)
    return Arrangement(
        tuple(
            tuple(next(cards) for _ in range(down)) + column[down:]
            for column, down in zip(deal.columns, deal.face_down, strict=True)
        )
    )


def pair(number: int, chance: random.Random) -> tuple[Arrangement, Arrangement]:
    deal = deal_arrangement(number)
    other = permuted(deal, chance)
    return Arrangement(deal.columns), other


@pytest.mark.parametrize("rules", VARIANTS)
@pytest.mark.parametrize("observation", ["cards", "board"])
@given(number=st.integers(0, NUM_DEALS - 1), seed=st.integers(0, 1000))
def test_the_environment_tells_two_such_deals_apart_in_nothing(
    rules: str, observation: str, number: int, seed: int
) -> None:
    chance = random.Random(seed)
    deals = pair(number, chance)
    envs = [
        RussianSolitaireEnv(rules, observation=observation, reward="progress", take_back=True, render_mode="ansi")
        for _ in deals
    ]
    results: list[Any] = [
        (*env.reset(seed=0, options={"columns": deal.text()}), 0.0, False, False)
        for env, deal in zip(envs, deals, strict=True)
    ]
    for _ in range(40):
        (first, first_info, *first_rest), (second, second_info, *second_rest) = results
        assert first.tobytes() == second.tobytes()
        assert first_info.keys() == second_info.keys()
        for key, value in first_info.items():
            np.testing.assert_array_equal(value, second_info[key])
        assert first_rest == second_rest
        assert envs[0].render() == envs[1].render()
        actions = np.flatnonzero(first_info["action_mask"]).tolist()
        if len(actions) == NUM_ACTIONS:
            break
        # Illegal actions too: what they are told must not depend on a face-down card either.
        action = chance.choice(actions) if chance.random() < 0.5 else chance.randrange(NUM_ACTIONS)
        assert envs[0].explain(action) == envs[1].explain(action)
        down = first_info["face_down"]
        steps = [env.step(action) for env in envs]
        if steps[0][4]["face_down"] < down:
            # A card turned up: both saw it turn, and from here on they are different games.
            assert steps[1][4]["face_down"] == steps[0][4]["face_down"]
            assert steps[0][1] == steps[1][1]
            break
        results = [(step[0], step[4], *step[1:4]) for step in steps]


@pytest.mark.parametrize("rules", VARIANTS)
def test_all_refusals_are_alike(rules: str) -> None:
    """Every one of the 416 actions, in `Game` and at the environment, for many pairs of deals."""
    chance = random.Random(rules)
    for number in range(15):
        games = [Game(deal, rules) for deal in pair(number, chance)]
        for action in range(NUM_ACTIONS):
            assert games[0].why_not(action) == games[1].why_not(action)


@pytest.mark.parametrize("rules", VARIANTS)
def test_game_text_is_alike_also_after_undo(rules: str) -> None:
    chance = random.Random(1)
    for number in range(30):
        games = [Game(deal, rules) for deal in pair(number, chance)]
        assert repr(games[0]) == repr(games[1])
        turning = [move for move in games[0].legal_moves() if turns(games[0], move.card)]
        for move in turning[:3]:
            for game in games:
                game.play(move)
            for game in games:
                game.undo()
            assert repr(games[0]) == repr(games[1])
            assert games[0].legal_moves() == games[1].legal_moves()
        for game in games:
            with pytest.raises(IllegalMove):
                game.play(f"{hidden_card(games[0])} > F")


def turns(game: Game, card: int) -> bool:
    column = next(column for column in game.columns if card in column)
    place = column.index(card)
    return place > 0 and column[place - 1] is None


def hidden_card(game: Game) -> str:
    seen = {card for column in game.columns for card in column}
    return card_ascii(next(card for card in range(52) if card not in seen))


@pytest.mark.parametrize(
    ("rules", "name"),
    [*itertools.product(VARIANTS, POLICIES), *itertools.product(("classic", "relaxed"), ("distilled", "planner+"))],
)
def test_a_policy_chooses_alike(rules: str, name: str) -> None:
    """With the same generator, up to the first card that turns up."""
    chance = random.Random(rules)
    thinks = name.startswith("planner")
    for number in range(8 if thinks else 40):
        deals = pair(number, chance)
        lines: list[list[int]] = []
        for deal in deals:
            policy = policy_named(name, number, rules, samples=3 if thinks else None)
            env = RussianSolitaireEnv(rules, observation=policy.observation)
            observation, info = env.reset(options={"columns": deal.text()})
            line: list[int] = []
            while info["face_down"] == sum(DEAL_FACE_DOWN) and len(line) < 60:
                line.append(int(policy.act(observation[None], info["action_mask"][None])[0]))
                observation, _, terminated, _, info = env.step(line[-1])
                if terminated:
                    break
            lines.append(line)
        assert lines[0] == lines[1]


def test_this_test_can_fail() -> None:
    """The pairs do differ, and under `thoughtful` the difference is seen."""
    deals = pair(33, random.Random(0))
    assert deals[0] != deals[1]
    for observation in ("cards", "board"):
        env = RussianSolitaireEnv(thoughtful=True, observation=observation)
        first, second = (env.reset(options={"columns": deal.text()})[0] for deal in deals)
        assert first.tobytes() != second.tobytes()
