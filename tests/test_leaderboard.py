"""The leaderboard: entries are what their games are, whoever tampered with what."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import leaderboard_tables, with_tables

from rusol_env import evaluate, save
from rusol_env.cli import main
from rusol_env.compare import mcnemar
from rusol_env.evaluate import wilson_interval
from rusol_env.games import Games
from rusol_env.leaderboard import add, check, load, standings

ROOT = Path(__file__).parent.parent
BOARD = ROOT / "leaderboard"
PAGE = (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8")


def run(*arguments: str | Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main([str(word) for word in arguments])
    out, err = capsys.readouterr()
    return code, out, "".join(line for line in err.splitlines(True) if "compiling its kernels" not in line)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def board(tmp_path: Path) -> Path:
    folder = tmp_path / "board"
    folder.mkdir()
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Random and greedy on first-60 of Relaxed, and greedy on winnable-20 of Classic."""
    folder = tmp_path / "results"
    for policy in ("random", "greedy"):
        save(evaluate(policy, "relaxed", 60), folder)
    save(evaluate("greedy", "classic", "winnable-20"), folder)
    return folder


# ---- what is well ------------------------------------------------------------------------------------------------


def test_the_commands_from_an_evaluation_to_a_table(
    tmp_path: Path, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    for policy in ("greedy", "random"):
        assert main(["evaluate", "--policy", policy, "--rules", "relaxed", "--deals", "50", "--out", str(out)]) == 0
    capsys.readouterr()
    words = ("--board", board, "--by", "A. Person", "--url", "https://example.org/a?b=1")
    code, said, err = run("leaderboard", "add", out, *words, capsys=capsys)
    places = [board / "relaxed" / "first-50" / f"{name}.json" for name in ("greedy", "random")]
    assert (code, said.split(), err) == (0, [str(place) for place in places], "")

    code, said, err = run("leaderboard", "show", "--board", board, "--json", capsys=capsys)
    first, second = json.loads(said)["standings"]
    greedy, random = (evaluate(policy, "relaxed", 50) for policy in ("greedy", "random"))
    for row, result, rank in ((first, greedy, 1), (second, random, 2)):
        assert (row["rank"], row["name"], row["by"]) == (rank, result.policy, "A. Person")
        assert (row["url"], row["suite"], row["wins"]) == ("https://example.org/a?b=1", "first-50", result.wins)
        assert row["win_rate_ci95"] == list(wilson_interval(result.wins, 50))
        assert row["mean_score"] == result.scores.mean()
        assert row["ms_a_move"] == pytest.approx(1000 * row["seconds"] / result.steps.sum())
        assert {"rusol-env", "numpy"} <= row["versions"].keys()
    only, only_above = int((random.won & ~greedy.won).sum()), int((greedy.won & ~random.won).sum())
    assert first["against_above"] is None
    assert second["against_above"] == {
        "name": "greedy",
        "only": only,
        "only_above": only_above,
        "p": mcnemar(only, only_above),
    }

    code, said, _ = run("leaderboard", "show", "--board", board, "--markdown", "--rules", "relaxed", capsys=capsys)
    lines = said.splitlines()
    assert (code, lines[0]) == (0, "### Relaxed, first-50")
    assert (
        f"| 1 | [greedy](https://example.org/a?b=1) | A. Person | {greedy.wins} ({greedy.wins / 50:.1%}) |" in lines[4]
    )
    assert f"| {only} / {only_above} (p " in lines[5]
    code, said, _ = run("leaderboard", "show", "--board", board, capsys=capsys)
    assert [line.split()[1] for line in said.splitlines() if line[:1].isdigit()] == ["greedy", "random"]
    code, said, _ = run("leaderboard", "check", "--board", board, capsys=capsys)
    assert said.splitlines()[0] == f"{places[0]}: {greedy.wins} of 50 won, as its games give"


def test_tables_are_apart_by_rules_and_suite_and_ranked(board: Path, results: Path) -> None:
    add(board, results, "somebody")
    save(evaluate("random", "relaxed", 60, seed=1), results.parent / "other")
    add(board, results.parent / "other", "somebody", name="random, seed 1")
    tables = standings(check(board))
    assert [(t[0].entry.result.rules.name, t[0].entry.result.suite, len(t)) for t in tables] == [
        ("classic", "winnable-20", 1),
        ("relaxed", "first-60", 3),
    ]
    wins = [standing.entry.result.wins for standing in tables[1]]
    assert wins == sorted(wins, reverse=True)
    assert [standing.rank for standing in tables[1]] == [1, 2, 3]
    assert [entry.result.rules.name for entry in load(board, "classic")] == ["classic"]


def test_one_summary_of_many_is_added(board: Path, results: Path) -> None:
    (place,) = add(board, results / "greedy-relaxed-first-60-seed0.json", "somebody", name="Mine (50 M)")
    assert place == board / "relaxed" / "first-60" / "mine__50_m_.json"
    assert [entry.name for entry in check(board)] == ["Mine (50 M)"]


def test_parquet_tables_are_read(board: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is missing")
    save(evaluate("greedy", "classic", 20), tmp_path / "results", "parquet")
    add(board, tmp_path / "results", "somebody")
    assert len(check(board)) == 1


def test_an_entry_is_replaced_when_asked_for_only(
    board: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(board, results, "somebody")
    before = files(board)
    greedy = results / "greedy-relaxed-first-60-seed0.json"
    words = ("leaderboard", "add", greedy, "--board", board, "--by", "another")
    code, out, err = run(*words, capsys=capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "greedy.json is there already: choose another --name, or --force to replace it" in err
    # A name that makes the same file name is the same name.
    assert "is there already" in run(*words, "--name", "GREEDY", capsys=capsys)[2]
    assert files(board) == before
    other = save(evaluate("random", "relaxed", 60, seed=5), results.parent / "new")[1]
    code, _, err = run(
        "leaderboard", "add", other, "--board", board, "--by", "another", "--name", "greedy", "--force", capsys=capsys
    )
    assert (code, err) == (0, "")
    assert {entry.by for entry in check(board) if entry.name == "greedy"} == {"somebody", "another"}
    assert len(files(board)) == len(before)


@pytest.mark.parametrize("kind", ["games", "entry"])
@pytest.mark.parametrize("there", [False, True], ids=["new", "replaced"])
def test_an_interrupted_write_leaves_the_entry_as_it_was(
    kind: str, there: bool, board: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    greedy = results / "greedy-relaxed-first-60-seed0.json"
    add(board, results / "random-relaxed-first-60-seed0.json", "somebody")
    if there:
        add(board, save(evaluate("random", "relaxed", 60, seed=9), results.parent / "old")[1], "old", name="greedy")
    before = files(board)
    writes: list[str] = []

    def stopped(path: Path, data: bytes, *, replace: bool = True) -> None:
        writes.append(path.suffix)
        if len(writes) == ["games", "entry"].index(kind) + 1:
            raise KeyboardInterrupt
        path.write_bytes(data)

    with monkeypatch.context() as patched:
        patched.setattr("rusol_env.leaderboard.write_whole", stopped)
        with pytest.raises(KeyboardInterrupt):
            add(board, greedy, "new", force=True)
    assert writes == [".npz", ".json"][: len(writes)]
    left = files(board)
    assert left | before == left, "what was there is there"
    assert {entry.by for entry in load(board)} == ({"somebody", "old"} if there else {"somebody"})
    if kind == "entry":
        with pytest.raises(ValueError, match=r"greedy-\w+\.npz is no entry, nor the games of one: delete it"):
            check(board)
    add(board, greedy, "new", force=True)
    assert {entry.by for entry in check(board)} == {"somebody", "new"}


# ---- what is refused ---------------------------------------------------------------------------------------------


def rewrite(summary: Path, **changed: Any) -> None:
    """Change the summary, and all digests with it, as somebody would who wants to be believed."""
    told = json.loads(summary.read_text(encoding="utf-8")) | changed
    told.pop("summary_sha256")
    for kind in ("table", "games"):
        told[f"{kind}_sha256"] = sha256((summary.parent / told[kind]).read_bytes()).hexdigest()
    told["summary_sha256"] = sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    summary.write_text(json.dumps(told), encoding="utf-8")


def with_games(**changed: Any) -> Callable[[Path], None]:
    def tamper(summary: Path) -> None:
        path = summary.with_suffix(".npz")
        path.write_bytes(replace(Games.load(path), **changed).data())
        rewrite(summary, **{key: value for key, value in changed.items() if key in ("suite", "max_steps")})

    return tamper


def with_table(old: str, new: str) -> Callable[[Path], None]:
    def tamper(summary: Path) -> None:
        path = summary.with_suffix(".csv")
        text = path.read_text(encoding="utf-8")
        assert re.search(old, text, re.MULTILINE)
        path.write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE), encoding="utf-8")
        rewrite(summary)

    return tamper


def says(**changed: Any) -> Callable[[Path], None]:
    return lambda summary: rewrite(summary, **changed)


def other_actions(summary: Path) -> None:
    """Another choice at the first step of the second game."""
    path = summary.with_suffix(".npz")
    games = Games.load(path)
    actions = games.actions.copy()
    actions[games.steps[0]] = (actions[games.steps[0]] + 8) % 416
    path.write_bytes(replace(games, actions=actions).data())
    rewrite(summary)


def gone(suffix: str) -> Callable[[Path], None]:
    return lambda summary: summary.with_suffix(suffix).unlink()


def changed(suffix: str) -> Callable[[Path], None]:
    def tamper(summary: Path) -> None:
        path = summary.with_suffix(suffix)
        path.write_bytes(path.read_bytes() + b" ")

    return tamper


def replaced(text: str) -> Callable[[Path], None]:
    def tamper(path: Path) -> None:
        path.write_text(text, encoding="utf-8")

    return tamper


def foreign_games(summary: Path) -> None:
    summary.with_suffix(".npz").write_bytes(b"not games")
    rewrite(summary)


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (
            with_table(r"^(RU1-R-AAAAAAC),(\w+),\d+", r"\1,\2,7"),
            "says score 7 of RU1-R-AAAAAAC, and its games give",
        ),
        (with_table(r"^(RU1-R-AAAAAAD),\w+", r"\1,Lost"), "says won Lost of RU1-R-AAAAAAD, and its games give"),
        (with_table(r"AAAAAAE", "AAAAAAF"), "says code RU1-R-AAAAAAF of RU1-R-AAAAAAE"),
        (with_table(r"^RU1-R-AAAAAAE.*\n", ""), "is not a row for each deal"),
        (with_table("score", "points"), "is not a row for each deal with code, won, score, steps, truncated"),
        (with_table(r"$", ",more"), "is no table in CSV"),
        (says(wins=60), "says wins 60, and its games give"),
        (says(mean_score=620.5), "says mean_score 620.5, and its games give"),
        (says(mean_steps="many"), "says mean_steps many, and its games give"),
        (says(deals=True), "says deals True, and its games give 60"),
        (says(suite="first-61"), "says suite 'first-61', and its games say 'first-60'"),
        (says(rules="classic"), "says rules 'classic', and its games say 'relaxed'"),
        (says(max_steps=600), "says max_steps 600, and its games say 500"),
        (says(take_back=True), "is of games with take_back: an entry is played without"),
        (says(idle_moves=True), "is of games with idle_moves: an entry is played without"),
        (says(thoughtful=True), "is of games with thoughtful: an entry is played without"),
        (says(seconds=float("nan")), "says that it took nan seconds"),
        (says(seconds=-1), "says that it took -1 seconds"),
        (says(seed=-1), "-1 is not a seed"),
        (says(policy="a\x1b[31m"), "has a name or version that is no line of text"),
        (says(policy="a|b"), "the 'name' of an entry is 60 letters"),
        (says(versions={"rusol-env": "<b>"}), "does not say which version of rusol-env"),
        (says(versions={}), "it has no 'rusol-env'"),
        (other_actions, "its games give"),
        (with_games(suite="winnable-61"), "is of other deals than the suite winnable-61 of relaxed has"),
        (with_games(suite="first-59"), "is of other deals than the suite first-59 of relaxed has"),
        (with_games(suite="FIRST-60"), "is of other deals than the suite FIRST-60"),
        (with_games(suite="best-60"), "is of no suite for all: an entry plays first-N or winnable-N"),
        (with_games(numbers=np.arange(60)[::-1]), "is of other deals than the suite first-60"),
        (with_games(max_steps=501), "is of games of 501 steps at most: an entry plays 500"),
        (foreign_games, "is no file of an evaluation's games: File is not a zip file"),
        (gone(".npz"), "greedy-relaxed-first-60-seed0.npz"),
        (gone(".csv"), "greedy-relaxed-first-60-seed0.csv"),
        (changed(".npz"), "greedy-relaxed-first-60-seed0.npz was changed after it was written"),
        (changed(".csv"), "greedy-relaxed-first-60-seed0.csv was changed after it was written"),
        (replaced("[]"), "is no whole result of an evaluation"),
        (replaced('{"format": "rusol-record"}'), "is no whole result of an evaluation: it has no 'summary_sha256'"),
        (replaced('{"half'), "is no whole result of an evaluation"),
        (replaced("[" * 100_000), "is no whole result of an evaluation"),
    ],
)
def test_a_tampered_result_is_refused_in_one_sentence(
    tamper: Callable[[Path], None], said: str, board: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(results / "greedy-relaxed-first-60-seed0.json")
    code, out, err = run("leaderboard", "add", results, "--board", board, "--by", "me", capsys=capsys)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert said in err
    # Not even those that were well.
    assert files(board) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "nowhere", "--by", "me"], "there is no nowhere: name the folder that `rusol evaluate --out` wrote"),
        (["add", "EMPTY", "--by", "me"], "there is no result in"),
        (["add", "RESULTS"], "Missing option '--by'"),
        (["add", "RESULTS", "--by", ""], "the word after --by is empty"),
        (["add", "RESULTS", "--by", "a  b"], "single blanks"),
        (["add", "RESULTS", "--by", "<script>"], "and not '<script>'"),
        (["add", "RESULTS", "--by", "me", "--name", "x" * 61], "the 'name' of an entry is 60 letters"),
        (["add", "RESULTS", "--by", "me", "--name", "same"], "has two results for the entry"),
        (["add", "RESULTS", "--by", "me", "--url", "javascript:alert(1)"], "the 'url' of an entry is an address such"),
        (["add", "RESULTS", "--by", "me", "--url", "https://a)b"], "the 'url' of an entry is an address such"),
        (["show"], "there is no entry in"),
        (["show", "--rules", "bridge"], "unknown rules 'bridge'"),
        (["show", "--rules", "yukon"], "for yukon yet"),
        (["show", "--json", "--markdown"], "choose one of --markdown and --json"),
        (["check"], "there is no entry in"),
    ],
)
def test_bad_words_are_refused_in_one_sentence(
    words: list[str], said: str, board: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"RESULTS": results, "EMPTY": board}
    given = [str(places.get(word, word)) for word in words]
    code, out, err = run("leaderboard", *given, "--board", board, capsys=capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert files(board) == {}


def test_no_leaderboard_is_made_by_mistake(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["show"], ["check"], ["add", str(results), "--by", "me"]):
        code, _, err = run("leaderboard", *words, capsys=capsys)
        assert code == 2
        assert "there is no leaderboard in leaderboard: run this in a clone" in err
    assert not (tmp_path / "leaderboard").exists()


@pytest.fixture
def entry(board: Path, results: Path) -> Path:
    (place,) = add(board, results / "greedy-relaxed-first-60-seed0.json", "somebody")
    return place


def claims(**changed: Any) -> Callable[[Path], None]:
    def tamper(place: Path) -> None:
        document = json.loads(place.read_text(encoding="utf-8"))
        for key, value in changed.items():
            (document if key in document else document["evaluation"])[key] = value
        place.write_text(json.dumps(document), encoding="utf-8")

    return tamper


def tampered_games(place: Path) -> None:
    (path,) = place.parent.glob("*.npz")
    path.write_bytes(path.read_bytes() + b" ")


def games_of_nobody(place: Path) -> None:
    (path,) = place.parent.glob("*.npz")
    path.unlink()


def better_games(place: Path) -> None:
    """The games of another player, with a digest that is theirs."""
    games = evaluate("random", "relaxed", 60).games.data()
    (path,) = place.parent.glob("*.npz")
    path.write_bytes(games)
    claims(games_sha256=sha256(games).hexdigest())(place)


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (claims(wins=60), "greedy.json says wins 60, and its games give"),
        (claims(wins=10**400), "greedy.json says wins 1000"),
        (claims(format="other"), "greedy.json is no entry of a leaderboard: its format is not"),
        (claims(evaluation=[]), "greedy.json is no entry of a leaderboard: its 'evaluation' is no JSON object"),
        (claims(evaluation={}), "greedy.json does not say policy and policy_class"),
        (claims(name="other"), "first-60/other.json: it lies where it does not belong"),
        (claims(name=5), "greedy.json is no entry of a leaderboard: the 'name'"),
        (claims(by="a\nb"), "greedy.json is no entry of a leaderboard: the 'by'"),
        (claims(url=["x"]), "greedy.json is no entry of a leaderboard: the 'url'"),
        (claims(date="20260101"), "the 'date' of an entry is YYYY-MM-DD"),
        (claims(date=None), "the 'date' of an entry is YYYY-MM-DD"),
        (claims(games="../other.npz"), "there is no other.npz beside it"),
        (claims(policy_settings="none"), "does not say the policy's settings"),
        (tampered_games, "was changed after it was written"),
        (games_of_nobody, "greedy.json is no entry of a leaderboard: there is no greedy-"),
        (better_games, "greedy.json says wins"),
        (replaced("[]"), "greedy.json is no entry of a leaderboard: it is no JSON object"),
        (replaced("{"), "greedy.json is no entry of a leaderboard"),
    ],
)
def test_a_tampered_entry_is_named(
    tamper: Callable[[Path], None], said: str, entry: Path, board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(entry)
    for command in ("check", "show"):
        code, out, err = run("leaderboard", command, "--board", board, capsys=capsys)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err


# ---- the leaderboard of this repository -------------------------------------------------------------------------


def test_our_entries_are_what_their_games_are() -> None:
    found = {(e.result.rules.name, e.result.suite, e.name) for e in check(BOARD)}
    ours = ("random", "greedy", "ppo", "distilled", "planner")
    assert {("classic", f"{kind}-1000", name) for kind in ("first", "winnable") for name in ours} <= found
    assert {("relaxed", "first-1000", name) for name in ours[:3]} <= found


def test_a_quick_entry_can_be_made_again() -> None:
    for entry in load(BOARD, "classic"):
        if entry.result.policy_class == "rusol_env.policies.GreedyPolicy":
            again = evaluate("greedy", "classic", entry.result.suite, seed=entry.result.seed)
            np.testing.assert_array_equal(again.actions, entry.result.actions)


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("leaderboard", "show", "--markdown", "--board", BOARD, capsys=capsys)
    assert code == 0
    assert out.rstrip("\n") == leaderboard_tables()
    assert with_tables(PAGE, {"leaderboard": leaderboard_tables()}) == PAGE, "run: python benchmarks/tables.py"


def test_the_commands_of_the_page_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    shutil.copytree(BOARD, tmp_path / "leaderboard")
    monkeypatch.chdir(tmp_path)
    for command in block.splitlines():
        program, *words = shlex.split(command)
        if program == "rusol":
            assert run(*words, capsys=capsys)[::2] == (0, "")
        else:
            assert (program, (ROOT / words[0]).is_file()) == ("python", True)
    assert "mine" in [entry.name for entry in check(tmp_path / "leaderboard")]
