"""Lessons say what the solver says and show what is seen; `agents/distill.py` learns from them, and goes on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rusol_env
from rusol_env import Game, GreedyPolicy, Solver, Verdict, decode_board, decode_cards, engine
from rusol_env.lessons import Lessons, teach
from rusol_env.network import Network
from rusol_env.planner import count_wins, new_memory

SOME = 3000


@pytest.fixture(scope="module")
def lessons() -> Lessons:
    return teach(GreedyPolicy(0), "classic", 5, SOME, games=10)


@pytest.mark.parametrize("rules", ["classic", "relaxed"])
def test_the_solver_says_of_each_move_what_it_says_of_the_game_after_it(rules: str) -> None:
    solver, chance = Solver(rules), np.random.default_rng(0)
    rows = engine.new_rows(1, rusol_env.VARIANTS[rules])
    told = dict.fromkeys(Verdict, 0)
    for number in islice(rusol_env.WinnableDeals(rules, 3), 4):
        game = Game.from_number(number, rules)
        for _ in range(12):
            moves = game.legal_moves(take_back=False, idle_moves=False)
            if not moves:
                break
            actions = [move.action for move in moves]
            masks = np.zeros((1, engine.NUM_ACTIONS), np.bool_)
            masks[0, actions] = True
            engine.arrange(rows[0], game.arrangement)
            said = solver.after_moves(rows, masks)[0]
            assert ((said >= 0) == masks[0]).all()
            assert not solver.lost(rows)[0] or (said[actions] == Verdict.UNWINNABLE).all()
            for move, action in zip(moves, actions, strict=True):
                game.play(move)
                verdict = Verdict(said[action])
                told[verdict] += 1
                assert verdict in (Verdict.UNDECIDED, rusol_env.solve(game).verdict)
                game.undo()
            game.play(moves[chance.integers(len(moves))])
    assert told[Verdict.WINNABLE] > 50
    assert rules == "relaxed" or told[Verdict.UNWINNABLE] > 20
    assert told[Verdict.UNDECIDED] < 10


def test_a_lesson_is_a_position_where_the_choice_matters(lessons: Lessons) -> None:
    starts = np.concatenate([[0], lessons.ends[:-1]])
    assert len(lessons.ends) > SOME / 50
    assert lessons.states >= SOME
    assert lessons.asked > lessons.states
    for start, end in zip(starts.tolist(), lessons.ends.tolist(), strict=True):
        # Without completions one way is asked about, and a lesson has moves of both kinds.
        assert set(lessons.wins[start:end].tolist()) == {0, 1}
        assert (np.diff(lessons.actions[start:end]) > 0).all()


def test_a_lesson_shows_what_the_board_shows(lessons: Lessons) -> None:
    which = np.arange(0, len(lessons.ends), 5)
    cards, verdicts, _ = lessons.show(which)
    assert cards.shape == (len(which), 52, 24)
    for k, at in enumerate(which.tolist()):
        assert decode_cards(cards[k]) == decode_board(lessons.boards[at])
        np.testing.assert_array_equal(cards[k, :, 16:].reshape(-1) == 1, verdicts[k] >= 0)
    which = np.arange(0, len(lessons.played), 50)
    for at, cards_then in zip(which.tolist(), lessons.show_played(which), strict=True):
        board = decode_board(lessons.played[at])
        assert decode_cards(cards_then) == board


def test_lessons_are_the_same_each_time_and_whatever_the_threads(lessons: Lessons) -> None:
    again = teach(GreedyPolicy(0), "classic", 5, SOME, games=10, threads=2)
    other = teach(GreedyPolicy(0), "classic", 6, SOME, games=10)
    for name in ("boards", "ends", "actions", "wins", "ahead", "played", "outcomes"):
        np.testing.assert_array_equal(getattr(lessons, name), getattr(again, name))
    assert not np.array_equal(lessons.actions, other.actions)
    both = Lessons.joined([lessons, other])
    assert (both.states, both.asked) == (lessons.states + other.states, lessons.asked + other.asked)
    last = np.array([len(both.ends) - 1])
    np.testing.assert_array_equal(both.show(last)[1], other.show(np.array([len(other.ends) - 1]))[1])


def test_one_game_in_four_is_played_on_when_few_cards_lie_face_down() -> None:
    class Watched(GreedyPolicy):
        down = np.full(256, 21)
        reached = dict.fromkeys((8, 5), 0)

        def act(self, observations: Any, masks: Any) -> Any:
            if len(observations):
                before, self.down = self.down, (observations == engine.HIDDEN).sum(axis=(1, 2))
                for most in self.reached:
                    self.reached[most] += int(((self.down <= most) & (before > most)).sum())
            return super().act(observations, masks)

    policy = Watched(0)
    teach(policy, "classic", 1, 20_000, games=256)
    assert policy.reached[8] > 200
    # Four standard deviations; from 8 to 5 greedy loses few games.
    assert 0.12 < policy.reached[5] / policy.reached[8] < 0.38


def test_lessons_are_kept_whole_and_damaged_ones_refused_by_name(lessons: Lessons, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    lessons.save(str(path))
    read = Lessons.load(str(path))
    assert (read.rules, read.states, read.asked) == (lessons.rules, lessons.states, lessons.asked)
    for name in ("boards", "ends", "actions", "wins", "ahead", "played", "outcomes"):
        np.testing.assert_array_equal(getattr(lessons, name), getattr(read, name))
    # Tens of bytes a position.
    assert path.stat().st_size < 40 * (len(lessons.ends) + len(lessons.played))
    whole = path.read_bytes()
    for damaged in (whole[:-100], whole[:2000] + bytes(8) + whole[2008:], b"", b"no zip"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"a\.npz is damaged, or holds no lessons"):
            Lessons.load(path)
    np.savez(path, format=np.array("something else"))
    with pytest.raises(ValueError, match=r"a\.npz is damaged, or holds no lessons"):
        Lessons.load(path)
    replace(lessons, ends=lessons.ends[::-1].copy()).save(path)
    with pytest.raises(ValueError, match="its arrays do not fit together"):
        Lessons.load(path)
    boards = lessons.boards.copy()
    boards[3] = 7
    with pytest.raises(ValueError, match="the board of lesson 3 is none"):
        replace(lessons, boards=boards).show(np.arange(5))
    with pytest.raises(ValueError, match="the board of position 3 is none"):
        replace(lessons, played=boards).show_played(np.arange(5))


def test_completions_are_further_samples_of_what_each_move_is_worth(lessons: Lessons) -> None:
    more = teach(GreedyPolicy(0), "classic", 5, SOME, games=10, completions=30)
    again = teach(GreedyPolicy(0), "classic", 5, SOME, games=10, completions=30, threads=3)
    np.testing.assert_array_equal(more.wins, again.wins)
    assert len(more.ends) > len(lessons.ends)
    assert 5 < more.wins.max() <= 31
    for wins in np.split(more.wins, more.ends[:-1]):
        assert wins.min() < wins.max()


def test_wins_are_counted_over_all_ways_in_which_the_cards_may_lie() -> None:
    """With two cards face down there are two ways: a move's wins are all samples, none, or those of one way."""
    solver, found = Solver("classic"), set[tuple[bool, ...]]()
    memory, samples = new_memory(rusol_env.CLASSIC), 40
    rows = engine.new_rows(2, rusol_env.CLASSIC)
    for number in islice(rusol_env.WinnableDeals("classic", 7), 200):
        game = Game.from_number(number, "classic")
        for move in rusol_env.solve(game).moves:
            cards = game.arrangement
            places = [(c, k) for c in range(7) for k in range(cards.face_down[c])]
            actions = [move.action for move in game.legal_moves(take_back=False, idle_moves=False)]
            if len(places) == 2 and len(actions) > 1:
                masks = np.zeros((1, engine.NUM_ACTIONS), np.bool_)
                masks[0, actions] = True
                engine.arrange(rows[0], cards)
                boards = rows[:1, : engine.BOARD_SIZE].reshape(1, 8, 52).copy()
                columns = [list(column) for column in cards.columns]
                (c, k), (d, m) = places
                columns[c][k], columns[d][m] = columns[d][m], columns[c][k]
                engine.arrange(rows[1], replace(cards, columns=tuple(tuple(column) for column in columns)))
                said = solver.after_moves(rows, masks.repeat(2, axis=0)) == Verdict.WINNABLE
                wins = np.zeros((1, engine.NUM_ACTIONS), np.int8)
                count_wins(memory, boards, masks, True, samples, np.array([number], np.uint64), wins)
                some = wins[0, actions].max()
                for action in actions:
                    both = tuple(said[:, action].tolist())
                    found.add(both)
                    assert wins[0, action] == (some if all(both) else 0) or (
                        any(both) and 0 < wins[0, action] < samples
                    )
                break
            game.play(move)
    # (False, True) is rare here: the moves before were those of a solution of the first way.
    assert found >= {(True, True), (True, False), (False, False)}


def test_lessons_that_there_are_not_are_refused(lessons: Lessons) -> None:
    for which in ([len(lessons.ends)], [-1], [2**62], [0.5], [[0]], [True]):
        with pytest.raises(ValueError, match=r"which (is|must be)"):
            lessons.show(np.array(which))
    with pytest.raises(ValueError, match="no such lesson"):
        lessons.show_played(np.array([len(lessons.played)]))
    assert lessons.show(np.array([0]))[0].shape == (1, 52, 24)
    other = replace(lessons, rules=rusol_env.VARIANTS["yukon"])
    for parts, said in (([], "of none"), ([lessons, other], "of classic, yukon")):
        with pytest.raises(ValueError, match=said):
            Lessons.joined(parts)


@pytest.mark.parametrize(
    "changed",
    [
        {"counts": np.array(3)},
        {"counts": np.array([1.5, np.nan])},
        {"counts": np.array(["a", "b"])},
        {"ends": np.array(3)},
        {"ends": np.array([[4]])},
        {"wins": -1},
        {"ahead": 0},
        {"ahead": np.ones(3)},
        {"outcomes": 2},
        {"outcomes": -1},
        {"outcomes": np.zeros(3, np.int8)},
        {"played": np.zeros((3, 8, 52), np.int8)},
    ],
)
def test_lessons_of_odd_arrays_are_refused_by_name(changed: dict[str, Any], lessons: Lessons, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    lessons.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    # One entry that is wrong, or another array.
    for name, value in changed.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            arrays[name][-1] = value
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"a\.npz is damaged"):
        Lessons.load(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"states": 0}, "states"),
        ({"threads": 0}, "threads"),
        ({"explore": 2}, "explore is 2"),
        ({"seed": -1}, "seed"),
        ({"completions": 127}, "completions is 127"),
    ],
)
def test_teach_refuses_what_makes_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        teach(GreedyPolicy(0), "classic", **options)


def tiny(**changes: Any) -> Any:
    from agents.distill import Distillation

    sizes: dict[str, Any] = {"rounds": 3, "states": 4000, "width": 8, "layers": 1, "hidden": 16, "updates": 60}
    sizes |= {"batch_size": 128, "completions": 5, "eval_deals": "winnable-20"}
    sizes |= {"even": 0.1, "rounds_kept": 2, "guesses": 0.5, "foresight": 0.5} | changes
    return Distillation(**sizes)


def treats_suits_and_columns_alike(network: Network, lessons: Lessons) -> None:
    """The same position with other suits, and its columns elsewhere: the same moves are worth the same."""
    suits, columns = [2, 0, 3, 1], [3, 0, 6, 1, 5, 2, 4]

    def exchanged(rows: Any) -> Any:
        """Rows (N, 52, K) with the suits at other places."""
        return rows.reshape(len(rows), 4, 13, -1)[:, suits].reshape(len(rows), 52, -1)

    cards, *_ = lessons.show(np.arange(50))
    other = exchanged(cards)
    for first in (0, 16):
        other[:, :, first : first + 7] = other[:, :, first : first + 7][:, :, columns]
    wanted = exchanged(network.logits(cards).reshape(50, 52, 8))
    wanted[:, :, :7] = wanted[:, :, :7][:, :, columns]
    found = network.logits(other)
    assert np.abs(found).max() > 0.1
    np.testing.assert_allclose(found, wanted.reshape(50, 416), rtol=1e-4, atol=1e-4)


def test_distillation_learns_and_an_interrupted_run_ends_as_if_it_had_not_been(
    lessons: Lessons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
    from agents import distill
    from agents.runs import read_rows

    # Rounds are so short here that no game that is played to its end began a hundred steps before theirs.
    monkeypatch.setattr("rusol_env.lessons._LONG", 2)
    policy = distill.distil(tiny(), tmp_path / "whole")
    rows = read_rows(tmp_path / "whole" / "evaluation.csv")
    assert [row["round"] for row in rows] == [1, 2, 3]
    assert rows[2]["steps"] == 3 * rows[0]["steps"]
    # Chance alone, a move of each lesson drawn at random, would be near 0.6 to 0.7.
    assert rows[1]["loss"] < -0.75
    # Guessed are the shares of wins, and outcomes; half the time each would be ln 2.
    assert max(rows[2]["loss_shares"], rows[2]["loss_outcomes"]) < 0.6
    assert rows[2]["loss_outcomes"] > 0
    games = rusol_env.evaluate(policy, "classic", "winnable-100")
    assert games.wins > 30

    def interrupted(*arguments: Any, **options: Any) -> Lessons:
        if len(list((tmp_path / "cut" / "lessons").iterdir())) == 2:
            raise KeyboardInterrupt
        return teach(*arguments, **options)

    monkeypatch.setattr(distill, "teach", interrupted)
    with pytest.raises(KeyboardInterrupt):
        distill.distil(tiny(), tmp_path / "cut")
    monkeypatch.setattr(distill, "teach", teach)
    shutil.copytree(tmp_path / "cut", tmp_path / "damaged")
    distill.distil(tiny(), tmp_path / "cut", resume=True)
    seen = rusol_env.RussianSolitaireEnv().reset(seed=1)[0][None]
    whole, cut = (Network.load(tmp_path / name / "policy.safetensors") for name in ("whole", "cut"))
    np.testing.assert_array_equal(whole.logits(seen), cut.logits(seen))
    treats_suits_and_columns_alike(whole, lessons)
    # Another run goes on with all that was learnt, and guesses from its first lessons on.
    last = str(tmp_path / "whole" / "last.pt")
    distill.distil(tiny(start=last, rounds=1, states=500, updates=1, learning_rate=1e-9), tmp_path / "on")
    np.testing.assert_allclose(
        Network.load(tmp_path / "on" / "policy.safetensors").logits(seen), whole.logits(seen), atol=1e-5
    )
    assert Lessons.load(tmp_path / "on" / "lessons" / "0.npz").ahead.min() < 255
    with pytest.raises(ValueError, match=r"last\.pt is damaged, or of a run of other sizes"):
        distill.distil(tiny(start=last, width=16), tmp_path / "wider")
    # What was refused is no run, and the folder is free.
    assert not (tmp_path / "wider" / "config.yaml").exists()
    with pytest.raises(ValueError, match="has seed 0, not 1: nothing may change"):
        distill.distil(tiny(seed=1), tmp_path / "cut", resume=True)
    with pytest.raises(ValueError, match="holds a run already"):
        distill.distil(tiny(), tmp_path / "cut")
    with pytest.raises(ValueError, match="to go on with: start it without --resume"):
        distill.distil(tiny(), tmp_path / "none", resume=True)
    (tmp_path / "damaged" / "last.pt").write_bytes(b"no weights")
    with pytest.raises(ValueError, match=r"last\.pt is damaged"):
        distill.distil(tiny(), tmp_path / "damaged", resume=True)


def test_the_published_distillations_are_valid() -> None:
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
    from agents.distill import is_distillation, read_distillation

    paths = [path for path in (Path(__file__).parents[1] / "configs").glob("*.yaml") if is_distillation(path)]
    assert paths
    for path in paths:
        assert read_distillation(path).rounds > 1
        with pytest.raises(ValueError, match="unknown key 'nonsense'"):
            read_distillation(path, ["nonsense=1"])


def test_lessons_tell_how_games_end_and_what_a_network_guesses(lessons: Lessons) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is missing: install the extra [agents]")
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
    from agents.network import StructuredNetwork, as_network
    from rusol_env.observe import Observation, observation_space

    network = StructuredNetwork(observation_space(Observation.CARDS, False), 8, 1, 16)
    value = torch.nn.Linear(16, 1)
    # Every legal move is worth what the layer makes of the summary.
    cards, wins, ahead = lessons.show(np.arange(40))
    moves = network.weigh_moves(torch.as_tensor(cards))
    worth = value(moves.summary).detach().numpy()
    guesser = as_network(network, value)
    np.testing.assert_allclose(guesser.logits(cards), np.where(wins >= 0, worth, 0), atol=1e-5)
    assert np.ptp(worth) > 0.01
    np.testing.assert_array_equal(ahead, wins >= 0)

    with torch.no_grad():
        value.weight[:] = 0
        value.bias[:] = -1
    guessed = teach(
        GreedyPolicy(0), "classic", 5, SOME, games=10, completions=5, even=0.5, value=as_network(network, value)
    )
    parts = np.split(guessed.wins, guessed.ends[:-1])
    even = np.array([part.min() == part.max() for part in parts])
    assert 0.2 < even.mean() < 0.9
    assert (np.diff(guessed.ends) > 1).all()
    # As log-odds -1 is a chance of 0.27; after hardly any move no other is left.
    assert (guessed.ahead == round(255 / (1 + np.e))).mean() > 0.95
    assert len(guessed.outcomes) > SOME / 4
    # Greedy wins about half of the deals that can be won; those games are longer.
    assert 0.2 < guessed.outcomes.mean() < 0.95
    down = (guessed.played == engine.HIDDEN).sum(axis=(1, 2))
    assert guessed.outcomes[down <= 8].mean() > guessed.outcomes[down > 8].mean() + 0.1
    # One game after the other, and each ends one way: as many outcomes as games, or fewer.
    first = np.flatnonzero(down > 20)
    assert (np.diff(guessed.outcomes) != 0).sum() < len(first)


def test_a_lesson_in_which_no_move_wins_spoils_nothing(lessons: Lessons) -> None:
    """It has no shares: 0 / 0 once made every weight of a network no number, and all updates after it."""
    torch = pytest.importorskip("torch", reason="PyTorch is missing: install the extra [agents]")
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
    from agents.distill import Learner, losses_of

    config = tiny(foresight=1)
    learner = Learner(config)
    wins = lessons.wins.copy()
    wins[: lessons.ends[0]] = 0
    few = replace(lessons, boards=lessons.boards[:2], ends=lessons.ends[:2], wins=wins)
    losses: Any = losses_of(learner, few, np.random.default_rng(0), config)
    losses.weighed(config).backward()
    gradients: dict[str, Any] = {name: weights.grad for name, weights in learner.named_parameters()}
    for name, gradient in gradients.items():
        # The critic weighs no moves.
        assert (gradient is None) == name.startswith(("critic.network.weigh", "critic.network.worth")), name
        assert gradient is None or bool(torch.isfinite(gradient).all()), name
    assert bool(gradients["player.network.worth.weight"].any())
