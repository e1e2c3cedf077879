"""Records of games: what is written is what was played, and what anybody hands over is refused in one sentence."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rusol_env import Game, GreedyPolicy, Move, RandomPolicy, Record, Recorder, Step, evaluate
from rusol_env.cli import main
from rusol_env.evaluate import Evaluation
from rusol_env.record import MAX_BYTES
from rusol_env.rules import CLASSIC, VARIANTS


def played(rules: str, seed: int, steps: int = 60) -> Game:
    """A game with undone moves and cards taken back."""
    chance = random.Random(seed)
    game = Game.from_number(chance.randrange(1000), rules)
    for _ in range(steps):
        moves = game.legal_moves()
        if game.undo_left and (not moves or chance.random() < 0.2):
            game.undo()
        elif moves:
            game.play(chance.choice(moves))
    return game


@pytest.mark.parametrize("rules", VARIANTS)
@pytest.mark.parametrize("seed", range(5))
def test_a_record_is_the_game_again(rules: str, seed: int, tmp_path: Path) -> None:
    game = played(rules, seed)
    record = Record.of(game, seconds=[0.5 * k for k in range(len(game.history))], started="2026-11-30T08:35:49+00:00")
    read = Record.load(record.save(tmp_path / "game.json"))
    assert read == record
    again = read.game()
    assert (again.history, again.line) == (game.history, game.line)
    assert (again.columns, again.foundations, again.score, again.moves) == (
        game.columns,
        game.foundations,
        game.score,
        game.moves,
    )
    assert again.key == game.key
    assert again.code == game.code


def test_line_and_history_of_a_game() -> None:
    game = Game.from_code("RU1-C-AAAAABB")
    first, second = (Move(20, 2), Move(32, 1))
    game.play(first)
    game.play(second)
    game.undo()
    game.play(second)
    assert game.history == (first, second, None, second)
    assert game.line == (first, second)
    assert game.undo_left == 2
    assert game.moves == 3


def test_an_arrangement_without_number_is_recorded_whole(tmp_path: Path) -> None:
    game = Game.from_columns([["KS", "QS"], [], [], [], [], [], ["KH"]], [1, 0, 0, 0, 0, 0, 0], "relaxed")
    game.play("QS > F") if not game.why_not("QS > F")[0] else game.play("QS > 7")
    record = Record.of(game)
    assert record.code is None
    assert "code" not in record.document()
    assert Record.load(record.save(tmp_path / "game.json")) == record


def test_a_record_is_never_replaced_unasked(tmp_path: Path) -> None:
    record = Record.of(Game.from_number(1))
    path = record.save(tmp_path / "game.json")
    with pytest.raises(FileExistsError, match="is there already"):
        record.save(path)
    record.save(path, replace=True)
    assert [file.name for file in tmp_path.iterdir()] == ["game.json"]


def test_a_record_that_could_not_be_played_is_refused() -> None:
    start = Game.from_number(33).start
    with pytest.raises(ValueError, match=r"step 1, the move JH > 7, cannot be done: The J♥ needs the Q♥"):
        Record(CLASSIC, start, (Step(Move(23, 6)),))
    with pytest.raises(ValueError, match="step 1, the undo, cannot be done: There is no move to undo"):
        Record(CLASSIC, start, (Step(None),))
    with pytest.raises(ValueError, match="there are 1 times for 0 steps"):
        Record.of(Game(start), seconds=[1.0])


def document(**changes: Any) -> dict[str, Any]:
    game = Game.from_code("RU1-C-AAAAABB")
    game.play("8H > 3")
    game.play("7D > 2")
    return json.loads(json.dumps(Record.of(game).document())) | changes


def test_a_record_needs_no_key_that_nothing_depends_on() -> None:
    whole = document()
    bare = {key: whole[key] for key in ("format", "version", "rules", "code", "steps", "result")}
    read = Record.parse(json.dumps(bare | {"note": "other keys are ignored"}))
    assert read.player == {"name": "unknown"}
    assert read.game().score == whole["result"]["score"]


HOSTILE: list[tuple[str | bytes, str]] = [
    (b"", "it is not JSON"),
    (b"\xff\xfe\x00", "it is not text in UTF-8"),
    (b"\x80\x81", "it is not text in UTF-8"),
    ("[]", "it is [] and must be a JSON object"),
    ("null", "must be a JSON object"),
    ("[" * 100_000, "nested too deeply"),
    ('{"format": ' * 100_000, "nested too deeply"),
    (" " * (MAX_BYTES + 1), "larger than 16 MiB"),
    ("NaN", "NaN"),
    (json.dumps(document(format="other")), "its \"format\" is 'other'"),
    (json.dumps(document(version=2)), "reads version 1"),
    (json.dumps(document(version=True)), "reads version 1"),
    (json.dumps(document(rules="poker")), "unknown rules 'poker'"),
    (json.dumps(document(rules=["classic"])), "must be the name of a rule set"),
    (json.dumps(document(rules="relaxed")), "its code is for classic rules"),
    (json.dumps(document(code="RU1-C-AAAAAB")), "a valid code looks like"),
    (json.dumps(document(code=33)), "and must be a game code"),
    (json.dumps(document(code="<script>alert(1)</script>" * 10_000)), "and must be a game code"),
    (json.dumps(document(code=None)), '"columns" is None and must be a list'),
    (json.dumps(document(code=None, columns=[["KS"]] * 7, face_down=[0] * 7)), "KS is there twice"),
    (
        json.dumps(document(code=None, columns=[["ZZ"], [], [], [], [], [], []], face_down=[0] * 7)),
        "'ZZ' is not a card",
    ),
    (json.dumps(document(code=None, columns=[[]] * 7, face_down=[10**30] * 7)), "face down"),
    (json.dumps(document(steps={})), '"steps" is {} and must be a list'),
    (json.dumps(document(steps=[{}])), 'step 1 has no "move"'),
    (json.dumps(document(steps=[{"move": "8H > 9"}])), "step 1: there is no column 9"),
    (json.dumps(document(steps=[{"move": "9C > F"}])), "step 1, the move 9C > F, cannot be done"),
    (json.dumps(document(steps=[{"undo": True}])), "step 1, the undo, cannot be done"),
    (json.dumps(document(steps=[{"move": "8H > 3", "seconds": -1}])), "the seconds of step 1 is -1"),
    (json.dumps(document(steps=[{"move": "8H > 3", "seconds": 10**400}])), "must be a number from 0 to 1e+09"),
    (json.dumps(document(steps=[{"move": "8H > 3", "probabilities": {"8H > 3": 2}}])), "a number from 0 to 1"),
    (json.dumps(document(steps=[{"move": "8H > 3", "probabilities": {"?": 1}}])), "step 1: '?' is not a move"),
    (json.dumps(document(steps=[{"undo": True}] * 100_001)), "at most 100000 are read"),
    (json.dumps(document(player="me")), "its \"player\" is 'me'"),
    (json.dumps(document(player={"name": "\x1b[2Jgone"})), "details are short texts or numbers"),
    (json.dumps(document(player={"name": "x" * 1000})), "details are short texts or numbers"),
    (json.dumps(document(player={"name": 10**400})), "details are short texts or numbers"),
    (json.dumps(document(started="yesterday")), "must be a time in ISO 8601"),
    (json.dumps(document(result={"won": False, "score": 625, "moves": 2})), 'its "result" says score 625'),
    (json.dumps(document(result=None)), 'its "result" is None'),
    (json.dumps(document()).replace('"moves": 2', '"moves": ' + "9" * 5000), "digits"),
]


@pytest.mark.parametrize(("text", "sentence"), HOSTILE, ids=[str(k) for k in range(len(HOSTILE))])
def test_what_is_no_record_is_refused_in_one_sentence(
    text: str | bytes, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    page = tmp_path / "page.html"
    assert main(["replay", str(path), "--html", str(page)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"rusol: {path} is not a record that can be replayed: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert len(err) < 800
    assert err.strip().isprintable()
    assert not page.exists()


def test_a_missing_record_and_a_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        assert main(["replay", str(path)]) == 2
        assert str(path) in capsys.readouterr().err


# ---- records of an evaluation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [RandomPolicy, GreedyPolicy])
@pytest.mark.parametrize("rules", VARIANTS)
def test_evaluate_is_recorded_game_by_game(policy: type[RandomPolicy | GreedyPolicy], rules: str) -> None:
    recorder = Recorder()
    result: Evaluation = evaluate(policy(0), rules, 30, watch=recorder)
    plain = evaluate(policy(0), rules, 30)
    np.testing.assert_array_equal(result.scores, plain.scores)
    who = {"name": policy.name, "seed": 0}
    records = [record for _, record in recorder.records(result.numbers.tolist(), VARIANTS[rules], who)]
    assert len(records) == 30
    for k, record in enumerate(records):
        game = record.game()
        assert (game.won, game.score) == (bool(result.won[k]), int(result.scores[k]))
        # A deal without any move takes one step, in which nothing is played.
        assert len(record.steps) == (int(result.steps[k]) if record.game(0).legal_moves(take_back=False) else 0)
        for at, step in enumerate(record.steps):
            if policy is RandomPolicy:
                assert step.probabilities is not None
                assert sum(step.probabilities.values()) == pytest.approx(1)
                legal = record.game(at).legal_moves(take_back=False, idle_moves=False) if at % 50 == 0 else None
                assert legal is None or set(step.probabilities) == set(legal)
            else:
                assert step.probabilities is None


def test_evaluate_record_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "--policy", "greedy", "--deals", "4", "--seed", "7", "--record", str(tmp_path / "games")]
    assert main(command) == 0
    files = sorted((tmp_path / "games").iterdir())
    assert [file.name for file in files] == [f"greedy-seed7-RU1-C-AAAAAA{letter}.json" for letter in "ABCD"]
    record = Record.load(files[1])
    assert record.player["name"] == "greedy"
    assert record.player["seed"] == 7
    assert record.start.number == 1
    capsys.readouterr()
    before = [file.read_bytes() for file in files]
    assert main(command) == 2
    assert "is there already: choose another folder, or --force" in capsys.readouterr().err
    assert [file.read_bytes() for file in files] == before
    assert main([*command, "--force"]) == 0


def test_a_result_that_is_there_and_records_that_are_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "--deals", "3", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert main([*command, "--record", str(tmp_path / "games")]) == 0
    out, err = capsys.readouterr()
    assert out == first
    assert "is there already and was not written again" in err
    assert len(list((tmp_path / "games").iterdir())) == 3
