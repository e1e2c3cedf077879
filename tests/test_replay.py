"""Replays and their analysis: where a deal was lost, held to a search of every position that can be reached."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_play import won_record

from rusol_env import Arrangement, Game, GreedyPolicy, Move, Record, Recorder, Step, evaluate
from rusol_env.analysis import Analysis, Mistake, analyse, judge, summary
from rusol_env.cli import main
from rusol_env.replay import document, html
from rusol_env.rules import CLASSIC, VARIANTS
from rusol_env.solver import Verdict

WINNABLE, UNWINNABLE, UNDECIDED = Verdict.WINNABLE, Verdict.UNWINNABLE, Verdict.UNDECIDED


@cache
def can_be_won(position: Arrangement) -> bool:
    """Whether a small position of Classic can be won, by trying everything but taking back, which never helps there."""
    seen: set[int] = set()
    waiting = [position]
    while waiting:
        position = waiting.pop()
        # Foundations last, so that they are tried first.
        moves = Game(position).legal_moves(take_back=False, idle_moves=False)
        for move in sorted(moves, key=lambda move: move.destination):
            game = Game(position)
            game.play(move)
            if game.won:
                return True
            if game.key not in seen:
                seen.add(game.key)
                waiting.append(game.arrangement)
    return False


def small_game(chance: random.Random) -> Game:
    """The last nine ranks of the suits, some face down, played at random and now and then undone."""
    cards = [suit * 13 + rank for suit in range(4) for rank in range(4, 13)]
    chance.shuffle(cards)
    columns: list[list[int]] = [[card] for card in cards[:7]]
    for card in cards[7:]:
        columns[chance.randrange(7)].append(card)
    down = [chance.randrange(len(column)) for column in columns]
    game = Game.from_columns(columns, down)
    for _ in range(14):
        moves = game.legal_moves()
        if game.undo_left and (not moves or chance.random() < 0.25):
            game.undo()
        elif moves:
            game.play(chance.choice(moves))
    return game


def test_verdicts_and_mistakes_are_those_of_an_exhaustive_search() -> None:
    chance = random.Random(5)
    found: list[Verdict] = []
    mistakes = 0
    for _ in range(6):
        record = Record.of(small_game(chance))
        analysis = analyse(record)
        positions = [record.game(count) for count in range(len(record.steps) + 1)]
        truth = [game.won or can_be_won(game.arrangement) for game in positions]
        assert [verdict is WINNABLE for verdict in analysis.verdicts] == truth
        assert UNDECIDED not in analysis.verdicts
        found += analysis.verdicts
        lost = [
            step
            for step in range(1, len(truth))
            if record.steps[step - 1].move is not None and truth[step - 1] and not truth[step]
        ]
        assert [mistake.step for mistake in analysis.mistakes] == lost
        for mistake in analysis.mistakes:
            mistakes += 1
            assert (mistake.proved, mistake.unclear) == (mistake.step, ())
            kept: set[Move | None] = set()
            for move in positions[mistake.step - 1].legal_moves(idle_moves=False):
                after = record.game(mistake.step - 1)
                after.play(move)
                if after.won or can_be_won(after.arrangement):
                    kept.add(move)
            assert set(mistake.kept) == kept - {record.steps[mistake.step - 1].move}
    assert {WINNABLE, UNWINNABLE} <= set(found)
    assert mistakes > 0


@pytest.mark.parametrize("rules", VARIANTS)
def test_what_is_not_searched_again_is_the_same_when_it_is(rules: str) -> None:
    """Every position of a game judged by itself, against the analysis, which lets one verdict settle others."""
    chance = random.Random(rules)
    for number in range(4):
        game = Game.from_number(number, rules)
        for _ in range(25):
            moves = game.legal_moves(take_back=False)
            if game.undo_left and (not moves or chance.random() < 0.2):
                game.undo()
            elif moves:
                game.play(chance.choice(moves))
        record = Record.of(game)
        analysis = analyse(record, node_limit=20_000, time_limit=60)
        for count, verdict in enumerate(analysis.verdicts):
            alone = judge(record.game(count), node_limit=20_000, time_limit=60).verdict
            # The analysis may know more than the search of a position alone, never something else.
            assert alone in (verdict, UNDECIDED)


def test_a_game_that_was_won_was_winnable_all_along() -> None:
    record = won_record()
    analysis = analyse(record, node_limit=1, time_limit=0.001)  # nothing needs to be searched
    assert set(analysis.verdicts) == {WINNABLE}
    assert analysis.mistakes == ()
    assert summary(record, analysis) == ["The game was won."]


@pytest.mark.parametrize("rules", VARIANTS)
def test_a_judgement_that_wins_replays_to_a_win(rules: str) -> None:
    judged = 0
    for number in range(12):
        game = Game.from_number(number, rules)
        found = judge(game, time_limit=2.0)
        if found.verdict is WINNABLE:
            judged += 1
            for move in found.moves:
                game.play(move)
            assert game.won
    assert judged > 0 or rules == "classic"


def test_a_lost_game_of_greedy_is_explained() -> None:
    """Of the winnable deals of Classic that greedy loses: after which move they were lost, and what was better."""
    recorder = Recorder()
    result: Any = evaluate(GreedyPolicy(0), "classic", 200, watch=recorder)
    explained = 0
    for (_, record), won in zip(
        recorder.records(result.numbers.tolist(), CLASSIC, {"name": "greedy"}), result.won.tolist(), strict=True
    ):
        if won or judge(Game(record.start)).verdict is not WINNABLE:
            continue
        analysis = analyse(record)
        (mistake,) = analysis.mistakes
        assert set(analysis.verdicts[: mistake.step]) == {WINNABLE}
        assert set(analysis.verdicts[mistake.step :]) == {UNWINNABLE}
        # The deal was winnable there, so some move kept it so.
        assert mistake.kept
        text = " ".join(summary(record, analysis))
        assert (
            f"After step {mistake.step}, {record.steps[mistake.step - 1].move}, the deal could not be won any" in text
        )
        assert str(mistake.kept[0]) in text
        explained += 1
        if explained == 3:
            break
    assert explained == 3


def test_what_the_solver_could_not_decide_is_never_called_lost() -> None:
    record = Record.of(Game.from_number(33))
    unsure = Analysis((UNDECIDED,), ())
    assert summary(record, unsure) == [
        "Whether the game could still be won where it ended, the solver could not decide within its limits."
    ]
    steps = (Step(Move(20, 2)), Step(Move(32, 1)))
    record = Record(CLASSIC, record.start, steps)
    between = Analysis((WINNABLE, UNDECIDED, UNWINNABLE), (Mistake(1, 2, (), (Move(42, 4),)),))
    assert summary(record, between) == [
        "Between step 1, 8♥ → column 3, and step 2 the deal became unwinnable; at which of them, the solver could not "
        "decide.",
        "Of these moves the solver could not tell: 4♣ → column 5.",
    ]
    lost = Analysis((UNWINNABLE,) * 3, ())
    assert summary(record, lost) == [
        "This position cannot be won from its start, even by a player who knows every card."
    ]


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    game = Game.from_code("RU1-C-AAAAABB")
    for move in ("8H > 3", "7D > 2"):
        game.play(move)
    game.undo()
    return Record.of(game, seconds=[1.0, 2.5, 4.0]).save(tmp_path / "game.json")


def test_replay_in_a_pipe_prints_the_whole_game(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(recorded)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].startswith("classic RU1-C-AAAAABB  score 0  moves 0")
    steps = [line for line in lines if (line.startswith("   ") and "→" in line) or "undo" in line]
    verdict = judge(Game.from_code("RU1-C-AAAAABB")).verdict.text
    assert steps[0].split() == ["1", "8♥", "→", "column", "3", "1.0", "s", steps[0].split()[-1]]
    assert steps[2].split()[:2] == ["3", "undo"]
    assert verdict in ("winnable", "unwinnable")


def test_replay_as_json(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(recorded), "--json", "--no-analysis"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["code"] == "RU1-C-AAAAABB"
    assert [step["text"] for step in shown["steps"]] == ["8♥ → column 3", "7♦ → column 2", "undo"]
    assert len(shown["positions"]) == 4
    assert shown["positions"][3]["columns"] == shown["positions"][1]["columns"]
    assert shown["analysis"] == []


def test_replay_steps_in_a_terminal(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["", "n", "b", "3", "e", "99", "l", "q"])

    def type_in(prompt: str) -> str:
        assert prompt == "step of 3 > "
        return next(typed)

    monkeypatch.setattr("builtins.input", type_in)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["replay", str(recorded), "--no-analysis"]) == 0
    out = capsys.readouterr().out
    assert "Type n, b, e, l, q or a step from 0 to 3." in out
    at = [line.split()[0] for line in out.splitlines() if "→ column" in line or "undo" in line]
    assert at == ["1", "2", "1", "3", "3", "1", "2", "3"]


def test_html_is_not_replaced_unasked(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine", encoding="utf-8")
    command = ["replay", str(recorded), "--no-analysis", "--html", str(page)]
    assert main(command) == 2
    assert "is there already" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "mine"
    assert main([*command, "--force"]) == 0
    assert "8♥ → column 3" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf"])
def test_a_time_limit_that_is_none_is_refused(limit: str, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(recorded), "--time-limit", limit]) == 2
    assert "--time-limit" in capsys.readouterr().err


def test_the_page_has_all_of_its_parts() -> None:
    game = Game.from_code("RU1-C-AAAAABB")
    page = html(Record.of(game))
    assert "<!-- " not in page
    assert "import " not in page.partition('<script type="module">')[2]
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_too_long_a_record_makes_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rusol_env.replay.MAX_STEPS", 1)
    record = Record(CLASSIC, Game.from_number(33).start, (Step(Move(20, 2)), Step(None)))
    with pytest.raises(ValueError, match="the record has 2 steps, and a page shows at most 1"):
        document(record, None)
