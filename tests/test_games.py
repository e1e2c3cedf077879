"""The games of an evaluation in one file: played again they give its results; what anybody hands over is refused."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference import DECK, Reference, start

from rusol_env import Evaluation, Policy, encode_code, evaluate
from rusol_env.games import Games
from rusol_env.rules import VARIANTS


class Stubborn(Policy):
    """Mostly plays what is legal, and now and then what is not."""

    name = "stubborn"
    observation = "board"

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        chosen = masks.argmax(axis=1)
        chosen[observations[:, 0, 0] % 3 == 0] = 7
        return chosen


def again(result: Evaluation) -> Games:
    return Games.parse(result.games.data())


@pytest.mark.parametrize("rules", VARIANTS)
@pytest.mark.parametrize(
    ("policy", "deals"), [("random", 1500), ("greedy", 30), (Stubborn(), 30)], ids=["random", "greedy", "stubborn"]
)
def test_games_played_again_give_the_results(rules: str, policy: Any, deals: int) -> None:
    result = evaluate(policy, rules, deals, seed=3, max_steps=90)
    games = again(result)
    found = games.replay()
    np.testing.assert_array_equal(games.numbers, result.numbers)
    np.testing.assert_array_equal(games.steps, result.steps)
    np.testing.assert_array_equal(found.won, result.won)
    np.testing.assert_array_equal(found.truncated, result.truncated)
    np.testing.assert_array_equal(found.scores, result.scores)
    assert (games.rules, games.suite, games.max_steps) == (VARIANTS[rules], f"first-{deals}", 90)
    assert games.data() == result.games.data()


def played_slowly(games: Games, place: int) -> tuple[Reference, int]:
    """A game by the reference, and how many of its actions were refused; it must be over just then."""
    game, refused = start(encode_code(int(games.numbers[place]), games.rules)), 0
    after = int(games.steps[: place + 1].sum())
    actions: list[int] = games.actions[after - games.steps[place] : after].tolist()
    for action in actions:
        legal = game.legal_moves(take_back=False, idle_moves=False)
        assert legal, "it went on after its end"
        card, destination = DECK[action // 8], action % 8
        if (card, destination) in legal:
            game.play(card, destination)
        else:
            refused += 1
    over = not game.legal_moves(take_back=False, idle_moves=False)
    assert over or len(actions) == games.max_steps
    return game, refused


@pytest.mark.parametrize("rules", VARIANTS)
@pytest.mark.parametrize("policy", ["greedy", Stubborn()], ids=["greedy", "stubborn"])
def test_the_reference_agrees(rules: str, policy: Any) -> None:
    result = evaluate(policy, rules, 12, max_steps=120)
    games, refused = again(result), 0
    for place in range(12):
        game, some = played_slowly(games, place)
        refused += some
        assert (game.score, game.won) == (result.scores[place], result.won[place])
    assert (refused > 0) == (result.policy == "stubborn")


def test_thousand_games_are_a_small_file() -> None:
    assert len(evaluate("greedy", "classic", 1000).games.data()) < 50_000


@pytest.fixture(scope="module")
def games() -> Games:
    return evaluate("greedy", "classic", 5).games


def repacked(games: Games, **changed: Any) -> bytes:
    """The file with arrays changed, left out (None) or added; of ``about`` only the entries that are named."""
    with np.load(io.BytesIO(games.data())) as file:
        arrays: dict[str, Any] = {name: file[name] for name in file.files}
    for name, value in changed.items():
        if isinstance(value, dict):
            text = json.dumps(json.loads(arrays["about"].tobytes()) | value)
            arrays["about"] = np.frombuffer(text.encode(), np.uint8)
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = value
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    return data.getvalue()


def refusal(data: bytes, folder: Path) -> str:
    path = folder / "games.npz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is no file of an evaluation's games") as refused:
        Games.load(path)
    assert str(refused.value).startswith(f"{path} is no file")
    return str(refused.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"steps": None}, "it must hold the arrays about, numbers, steps, actions and nothing else"),
        ({"more": np.zeros(1)}, "and nothing else"),
        ({"actions": np.array([{}], object)}, "allow_pickle"),
        ({"actions": np.zeros(3, np.int32)}, "its 'actions' is int32"),
        ({"numbers": np.zeros((1, 5), np.int64)}, "its 'numbers' is int64 (1, 5) and must be int64 (N,)"),
        ({"numbers": np.arange(4)}, "it has 4 deals and 5 counts of steps"),
        ({"numbers": np.arange(5) - 1}, "no deal number"),
        ({"actions": np.zeros(1, np.int16)}, "do not have 1 to 500 steps that are together its 1"),
        ({"steps": np.zeros(5, np.int32)}, "do not have 1 to 500 steps"),
        ({"about": {"max_steps": 3}}, "do not have 1 to 3 steps"),
        ({"steps": np.ones(5, np.int32), "actions": np.full(5, 416, np.int16)}, "an action outside 0 to 415"),
        ({"about": {"format": "rusol-record"}}, "its format is not 'rusol-games'"),
        ({"about": {"version": 2}}, "its version is not 1"),
        ({"about": {"version": True}}, "its version is not 1"),
        ({"about": {"rules": "bridge"}}, "unknown rules 'bridge'"),
        ({"about": {"suite": "a\x1b[31m"}}, "its 'suite' is missing or no name"),
        ({"about": {"max_steps": "500"}}, "its 'max_steps' is missing"),
        ({"about": {"take_back": True}}, "its 'take_back' is not false"),
        ({"about": {"thoughtful": 0}}, "its 'thoughtful' is not false"),
        ({"about": np.frombuffer(b"[]", np.uint8)}, "its 'about' is no JSON object"),
        ({"about": np.frombuffer(b"{", np.uint8)}, "its 'about' is not JSON"),
    ],
)
def test_what_is_no_file_of_games_is_refused_in_a_sentence(
    changed: dict[str, Any], said: str, games: Games, tmp_path: Path
) -> None:
    assert said in refusal(repacked(games, **changed), tmp_path)


def test_a_damaged_file_is_refused(games: Games, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = games.data()
    for damaged in (b"", b"not a zip at all", data[:-30], data[:200] + bytes([data[200] ^ 1]) + data[201:]):
        refusal(damaged, tmp_path)
    monkeypatch.setattr("rusol_env.games._MAX_BYTES", 1 << 9)
    assert "it unpacks to more than" in refusal(data, tmp_path)


def test_an_array_that_claims_to_be_huge_is_refused(games: Games, tmp_path: Path) -> None:
    """As somebody would write it who wants the reader to run out of memory."""
    data = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(games.data())) as old, zipfile.ZipFile(data, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "actions.npy":
                shape = f"({len(games.actions)},), }}".encode()
                huge = b"(99999999999999,), }"
                assert shape + b" " * (len(huge) - len(shape)) in part
                part = part.replace(shape + b" " * (len(huge) - len(shape)), huge)
            new.writestr(name, part)
    refusal(data.getvalue(), tmp_path)


@pytest.mark.parametrize(
    ("end", "said"),
    [(-1, "is not over after its last action"), (1, "is over before its last action")],
)
def test_a_game_ends_with_its_actions(end: int, said: str, games: Games) -> None:
    steps, last = games.steps.copy(), int(games.steps[:2].sum())
    steps[1] += end
    actions = np.insert(games.actions, last, 0) if end > 0 else np.delete(games.actions, last - 1)
    with pytest.raises(ValueError, match=said) as refused:
        replace(games, steps=steps, actions=actions).replay()
    assert "RU1-C-AAAAAAB" in str(refused.value)
