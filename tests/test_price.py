"""The price of not seeing (benchmarks/price.py): the planner is told what it shall be told, and nothing else."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import price
import pytest
from test_hidden_cards import permuted
from test_planner import seen

from rusol_env import Arrangement, Game, PlannerPolicy, deal_arrangement, decode_action, evaluate, suite
from rusol_env.engine import COUNTS, EMPTY, UNDER
from rusol_env.planner import begin, new_memory, weigh
from rusol_env.rules import CLASSIC

DEALS = suite("winnable-5", CLASSIC)
ARRANGEMENTS = [deal_arrangement(number) for number in DEALS]


def bases(columns: tuple[tuple[int | None, ...], ...], down: tuple[int, ...]) -> list[tuple[int | None, ...]]:
    return [column[:count] for column, count in zip(columns, down, strict=True)]


def test_told_all_it_wins_what_can_be_won() -> None:
    assert evaluate(price.ToldPlanner(ARRANGEMENTS, 21), CLASSIC, DEALS).wins == len(DEALS)


def test_told_nothing_it_is_the_planner() -> None:
    told, planner = (
        evaluate(player, CLASSIC, DEALS)
        for player in (price.ToldPlanner(ARRANGEMENTS, 0, samples=8), PlannerPolicy(samples=8))
    )
    np.testing.assert_array_equal(told.actions, planner.actions)


def choice(deal: Arrangement, known: int, game: Game) -> int:
    """What it would do in a later position of the game, told of `deal`, which began alike."""
    player = price.ToldPlanner([deal], known, samples=2)
    player.begin(np.array([0]), np.array([known], np.uint64))
    player.act(*seen(Game(deal)))
    return int(player.act(*seen(game))[0])


def test_the_cards_that_it_is_not_told_do_not_matter_and_those_that_it_is_told_do() -> None:
    chance = random.Random(0)
    differ = 0
    for deal in ARRANGEMENTS:
        game = Game(deal)
        while any(game.arrangement.face_down):
            action = choice(deal, 21, game)
            # Another order of the cards that are still face down.
            other = permuted(Arrangement(deal.columns, game.arrangement.face_down), chance)
            assert choice(other, 0, game) == choice(deal, 0, game)
            differ += choice(other, 21, game) != action
            game.play(decode_action(action))
    assert differ > 0


@pytest.mark.parametrize("known", [1, 7, 20, 21])
def test_completions_have_the_told_cards_where_they_lie_and_the_others_anywhere_else(known: int) -> None:
    memory, chance = new_memory(CLASSIC), random.Random(known)
    streams = np.array([7], np.uint64)
    wrong = 0
    for place, deal in enumerate(ARRANGEMENTS):
        told = price.told_cards(deal, place, known)
        assert (told != EMPTY).sum() == known
        more = price.told_cards(deal, place, known + 1)
        assert (more[told != EMPTY] == told[told != EMPTY]).all()
        game = Game(deal)
        while moves := game.legal_moves(take_back=False, idle_moves=False):
            board, mask = seen(game)
            _, hidden = begin(memory, board[0], mask[0], streams, 0)
            left = price.put_told(memory, told)
            position = game.arrangement
            truth = bases(position.columns, position.face_down)
            assert hidden == sum(position.face_down)
            assert left == sum((told[column, : len(cards)] == EMPTY).sum() for column, cards in enumerate(truth))
            for _ in range(3):
                weigh(memory, board[0], left, 0, True, 1, streams, 0)
                now = memory.now
                assert (now[COUNTS : COUNTS + 4] == board[0, 7, :4]).all()
                # Every card is in the completion once, each on the one that it lies on.
                drawn = drawn_columns(now[UNDER : UNDER + 52].tolist(), position)
                assert sorted(card for cards in drawn for card in cards) == sorted(
                    card for cards in position.columns for card in cards
                )
                for column, (cards, true) in enumerate(zip(drawn, position.columns, strict=True)):
                    down = position.face_down[column]
                    assert cards[down:] == list(true[down:])
                    for k in range(down):
                        if told[column, k] != EMPTY:
                            assert cards[k] == true[k] == told[column, k]
                        else:
                            wrong += cards[k] != true[k]
            game.play(moves[chance.randrange(len(moves))])
    assert (wrong > 0) == (known < 20)


def drawn_columns(under: list[int], position: Arrangement) -> list[list[int]]:
    """The columns of an engine row, each from its last card, which is face up, down to its base."""
    columns: list[list[int]] = []
    for cards in position.columns:
        column: list[int] = []
        card = cards[-1] if cards else 52
        while card < 52:
            column.insert(0, card)
            card = under[card]
        columns.append(column)
    return columns


def test_deals_that_look_alike_are_refused() -> None:
    with pytest.raises(ValueError, match="two of the deals look alike"):
        price.ToldPlanner([ARRANGEMENTS[0], permuted(ARRANGEMENTS[0], random.Random(0))], 1)


def test_the_results_are_of_the_benchmark_as_it_stands() -> None:
    document: dict[str, Any] = json.loads(price.RESULT.read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = document["rows"]
    assert [row["known"] for row in rows] == list(price.KNOWN)
    assert (document["suite"], document["samples"]) == (f"winnable-{price.DEALS}", price.SAMPLES)
    assert document["order_seed"] == price.ORDER_SEED
    assert price.picture(document) == price.picture(document)
