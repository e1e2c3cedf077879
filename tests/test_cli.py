"""The command `rusol`, run as a person runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import rusol_env
from rusol_env.cli import main


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    # The one line that the first use on a machine prints is not part of any answer.
    return code, out, "".join(line for line in err.splitlines(True) if "compiling its kernels" not in line)


def test_deal_shows_what_a_player_sees(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("deal", "ru1-r-aaaaabb", capsys=capsys)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "RU1-R-AAAAABB  relaxed, deal 33"
    assert lines[3].split() == ["9♣", *["░░"] * 6]
    _, out, _ = run("deal", "RU1-R-AAAAABB", "--reveal", capsys=capsys)
    assert out.splitlines()[3].split() == ["9♣", "8♣", "J♠", "5♦", "A♣", "4♥", "5♠"]


def test_deal_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("deal", "RU1-C-AAAAABB", "--json", capsys=capsys)
    document = json.loads(out)
    assert code == 0
    assert document["columns"][1] == ["8C", "9D", "TC", "KC", "KS", "8D"]
    assert document | {"columns": None} == {
        "code": "RU1-C-AAAAABB",
        "rules": "classic",
        "deal_number": 33,
        "columns": None,
        "face_down": [0, 1, 2, 3, 4, 5, 6],
    }


def test_evaluate_as_json_keeps_the_keys_of_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        "evaluate", "--policy", "greedy", "--rules", "relaxed", "--deals", "50", "--json", capsys=capsys
    )
    document = json.loads(out)
    assert (code, err) == (0, "")
    keys = (
        "policy rules suite deals wins win_rate win_rate_ci95 winnable wins_of_winnable mean_score mean_score_se "
        "mean_steps games_per_second seconds versions"
    )
    assert set(keys.split()) <= document.keys()
    assert (document["policy"], document["rules"], document["suite"], document["deals"]) == (
        "greedy",
        "relaxed",
        "first-50",
        50,
    )
    assert document["win_rate_ci95"][0] < document["win_rate"] < document["win_rate_ci95"][1]
    code, out, _ = run(
        "evaluate",
        "--policy",
        "random",
        "--rules",
        "classic",
        "--rules",
        "yukon",
        "--deals",
        "5",
        "--json",
        capsys=capsys,
    )
    assert [result["rules"] for result in json.loads(out)["results"]] == ["classic", "yukon"]


def test_evaluate_prints_a_row_for_each_rule_set_and_writes_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["evaluate", "--rules", "classic", "--rules", "relaxed", "--deals", "40", "--out", str(tmp_path)]
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if "%–" in line] == ["classic", "relaxed"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"greedy-{rules}-first-40-seed0.{kind}" for rules in ("classic", "relaxed") for kind in ("csv", "json", "npz")
    ]
    code, again, err = run(*arguments, capsys=capsys)
    assert (code, again) == (0, out)
    assert err.count("is there already and was not played again") == 2
    code, forced, err = run(*arguments, "--force", capsys=capsys)
    assert (code, err) == (0, "")
    assert forced.splitlines()[4].split()[:4] == out.splitlines()[4].split()[:4]


def test_the_table_fits_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["evaluate", "--policy", "random", "--rules", "relaxed", "--deals", "1200"]) == 0
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "relaxed" in out
    assert "…" not in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


def test_the_same_command_goes_on_after_an_interruption(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scenario 22: what is whole is kept, what is half is played; what is damaged or another's is refused by name."""
    both = ["evaluate", "--rules", "classic", "--rules", "relaxed", "--deals", "30", "--out", str(tmp_path), "--json"]
    assert run("evaluate", "--rules", "classic", *both[5:], capsys=capsys)[0] == 0
    classic, relaxed = (tmp_path / f"greedy-{rules}-first-30-seed0.json" for rules in ("classic", "relaxed"))
    # As a kill between the two writes leaves it.
    relaxed.with_suffix(".csv").write_text("code,won\n", encoding="utf-8")
    kept = classic.stat().st_mtime_ns
    code, out, err = run(*both, capsys=capsys)
    assert code == 0
    assert [result["rules"] for result in json.loads(out)["results"]] == ["classic", "relaxed"]
    assert err.count("\n") == 1
    assert classic.stat().st_mtime_ns == kept
    assert len(relaxed.with_suffix(".csv").read_text(encoding="utf-8").splitlines()) == 31

    code, out, err = run(*both, "--max-steps", "100", capsys=capsys)
    assert (code, out) == (2, "")
    assert f"{classic} is of a run with max_steps 500, not 100" in err
    assert "is of a run with table" in run(*both, "--format", "parquet", capsys=capsys)[2]
    whole = classic.read_text(encoding="utf-8")
    for damage in ('"win_rate_ci95"', '"mean_score": '):
        classic.write_text(whole.replace(damage, damage.replace("e", "E", 1)), encoding="utf-8")
        assert f"{classic} was changed after it was written" in run(*both, capsys=capsys)[2]
    classic.write_text(whole, encoding="utf-8")

    class Impostor(rusol_env.RandomPolicy):
        name = "greedy"

    rusol_env.save(rusol_env.evaluate(Impostor(), "classic", 30), tmp_path, force=True)
    assert "policy_class 'test_cli." in run(*both, capsys=capsys)[2]
    assert run(*both, "--force", capsys=capsys)[0] == 0

    with classic.with_suffix(".csv").open("a", encoding="utf-8") as file:
        file.write("RU1-C-AAAAAAA,True,625,99,False\n")
    assert "was changed after it was written" in run(*both, capsys=capsys)[2]
    for foreign in ("{}", "[]", "half a docu", '{"table": "none.csv", "table_sha256": ""}'):
        classic.write_text(foreign, encoding="utf-8")
        code, out, err = run(*both, capsys=capsys)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{classic} is no whole result" in err
    assert run(*both, "--force", capsys=capsys)[0] == 0


def test_solve_prints_verdicts_moves_and_figures(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("solve", "ru1-r-aaaaabb", "RU1-C-AAAAABB", "--verify", capsys=capsys)
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert re.match(r"RU1-R-AAAAABB  relaxed: winnable, \d+ moves; [\d,]+ positions, [\d.]+ ms, verified$", lines[0])
    assert re.match(r"RU1-C-AAAAABB  classic: unwinnable; 1 positions, [\d.]+ ms$", lines[-2])
    assert lines[-1].startswith("2 deals: 1 unwinnable, 1 winnable, 0 undecided; ")
    moves = " ".join(line.strip() for line in lines[1:-2]).split(", ")
    game = rusol_env.Game.from_code("RU1-R-AAAAABB")
    for move in moves:
        game.play(move)
    assert game.won
    assert all(len(line) <= 100 for line in lines)


def test_solve_as_json_keeps_the_keys_of_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("solve", "--deals", "30", "--rules", "yukon", "--json", "--node-limit", "20000", capsys=capsys)
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert len(document["results"]) == 30
    for row in document["results"]:
        assert {"code", "rules", "verdict", "moves", "nodes", "seconds"} <= set(row)
        assert row["verdict"] in ("winnable", "unwinnable", "undecided")
        assert bool(row["moves"]) == (row["verdict"] == "winnable")
    summary = document["summary"]
    assert summary["winnable"] + summary["unwinnable"] + summary["undecided"] == summary["deals"] == 30


def test_solve_reads_files_and_says_where_they_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = (Path(__file__).parent / "data" / "classic_verdicts.jsonl").read_text().splitlines()[:20]
    file = tmp_path / "deals.jsonl"
    file.write_text("\n".join(cases))
    code, out, err = run("solve", "--file", str(file), "--json", capsys=capsys)
    assert (code, err) == (0, "")
    assert [row["id"] for row in json.loads(out)["results"]] == [json.loads(line)["id"] for line in cases]
    file.write_text("\n".join([*cases, cases[3].replace('"unwinnable"', '"winnable"').replace("0003", "wrong")]))
    code, _, err = run("solve", "--file", str(file), capsys=capsys)
    assert code == 2
    assert "the verdict is not the file's for classic-wrong" in err
    file.write_text(cases[0].replace('"KH"', '"KX"'))
    code, _, err = run("solve", "--file", str(file), capsys=capsys)
    assert code == 2
    assert "line 1" in err


def test_solve_a_suite_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["solve", "--deals", "1000", "--rules", "classic", "--folder", str(tmp_path)]
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, err) == (0, "")
    row = next(line.split() for line in out.splitlines() if line.startswith("classic"))
    assert row[:3] == ["classic", "65", "6.50%"]
    (tmp_path / "classic" / "000001.npz").unlink()
    _, again, _ = run(*arguments, capsys=capsys)
    assert next(line.split() for line in again.splitlines() if line.startswith("classic"))[:-1] == row[:-1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name the deals in one way"),
        (["--deals", "3", "--suite", "first-3"], "name the deals in one way"),
        (["--deals", "0"], "--deals is 0"),
        (["--suite", "second-3"], "unknown suite"),
        (["--suite", "winnable-999999"], "N goes from 1 to"),
        (["RU1-X-AAAAABB"], "rules letter"),
        (["RU1-C-AAAAABB", "--rules", "relaxed"], "--rules goes with --deals"),
        (["RU1-C-AAAAABB", "--workers", "2"], "--workers is for suites"),
        (["--deals", "3", "--json", "--folder", "x"], "--folder is for suites"),
        (["--deals", "3", "--node-limit", "0"], "node_limit is 0"),
        (["RU1-C-AAAAABB", "--time-limit", "nan"], "time_limit is nan"),
        (["--file", "no-such-file"], "no-such-file"),
    ],
)
def test_solve_refuses_in_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("solve", *arguments, capsys=capsys)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert sentence in err


def test_evaluate_plays_a_suite_of_winnable_deals(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("evaluate", "--suite", "winnable-20", "--rules", "classic", "--json", capsys=capsys)
    document = json.loads(out)
    assert code == 0
    assert (document["suite"], document["deals"], document["winnable"]) == ("winnable-20", 20, 20)
    assert document["wins_of_winnable"] == document["win_rate"]
    code, _, err = run("evaluate", "--suite", "winnable-20", "--deals", "3", capsys=capsys)
    assert code == 2
    assert "name the deals in one way" in err


def test_rules_given_twice_are_played_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        "evaluate", "--rules", "Classic", "--rules", "classic", "--deals", "5", "--out", str(tmp_path), capsys=capsys
    )
    assert (code, err, out.count("classic")) == (0, "", 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["deal", "RU1-C-AAAAAB1"], "letter 7 of the deal, '1'"),
        (["deal"], "Missing argument"),
        (["deal", "RU1-C-AAAAABB", "more"], "unexpected extra argument"),
        (["bridge"], "No such command 'bridge'"),
        (["evaluate", "--polcy", "greedy"], "No such option: --polcy"),
        (["evaluate", "--policy", "nobody"], "unknown policy 'nobody'"),
        (["evaluate", "--rules", "bridge"], "unknown rules 'bridge'"),
        (["evaluate", "--deals", "many"], "--deals"),
        (["evaluate", "--deals", "0"], "--deals is 0"),
        (["evaluate", "--deals", "-5"], "--deals is -5"),
        (["evaluate", "--seed", "-1"], "-1 is not a seed"),
        (["evaluate", "--max-steps", "0"], "--max-steps is 0"),
        (["evaluate", "--format", "xlsx"], "unknown format 'xlsx'"),
        (["evaluate", "--deals", "5", "--out", "/dev/null/here"], "/dev/null"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, out) == (2, "")
    assert err.startswith("rusol: ")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["--help"], ["deal", "--help"], ["evaluate", "--help"]])
def test_help_is_complete(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, err) == (0, "")
    words = {
        "deal": ["--json", "--reveal"],
        "evaluate": ["--policy", "--rules", "--deals", "--out", "--json", "greedy"],
    }
    for word in words.get(arguments[0] if len(arguments) > 1 else "", ["deal", "evaluate"]):
        assert word in out


RUSOL = [sys.executable, "-m", "rusol_env.cli"]


@pytest.mark.parametrize("command", [[*RUSOL, "--version"], [sys.executable, "-m", "rusol_env", "--version"]])
def test_version(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "rusol-env" in done.stdout
    assert "numba" in done.stdout


def test_no_progress_bar_and_no_colour_in_a_pipe() -> None:
    done = subprocess.run([*RUSOL, "evaluate", "--deals", "20"], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr
    assert "compiling" in done.stderr or done.stderr == ""


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = f"{sys.executable} -m rusol_env.cli deal RU1-C-AAAAABB --json | head -c 1 >&2"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_ctrl_c_while_rusol_is_imported_ends_it_without_a_traceback(tmp_path: Path) -> None:
    """A package that Ctrl-C interrupts, in the place of one that takes its time."""
    (tmp_path / "gymnasium.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    script, other = tmp_path / "rusol", tmp_path / "other"
    for program in (script, other):
        program.write_text("import rusol_env\n")
    path = os.pathsep.join([str(tmp_path), str(Path(rusol_env.__file__).parents[1])])
    ended: list[tuple[int, bytes]] = []
    for words in (["-m", "rusol_env"], [str(script)], [str(other)]):
        done = subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path},
        )
        ended.append((done.returncode, done.stderr[:10]))
    # What only uses the package is left as Python made it.
    assert ended == [(-signal.SIGINT, b""), (-signal.SIGINT, b""), (-signal.SIGINT, b"Traceback ")]


def test_the_command_hears_ctrl_c_again() -> None:
    earlier = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        main(["--version"])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, earlier)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", "--deals", "1", "--out", ""], "the word after --out is empty"),
        (["evaluate", "--deals", "1", "--out="], "--out is empty"),
        (["evaluate", "--deals", "1", "--record", ""], "the word after --record is empty"),
        ([""], "the first word is empty"),
    ],
)
def test_an_empty_word_is_not_the_current_folder(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert capsys.readouterr().err == f"rusol: {said}: give a value, or leave it out\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "--deals", "1", "--max-steps"],
        ["compare", "--deals", "1", "--max-steps"],
        ["compare", "--deals", "1", "--policy", "solver", "--node-limit"],
        ["solve", "--deals", "1", "--node-limit"],
        ["evaluate", "--policy", "planner", "--deals", "1", "--samples"],
    ],
)
def test_a_number_too_large_for_the_kernels_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, str(10**30)]) == 2
    assert f"is {10**30}: it must be less than 2^63" in capsys.readouterr().err


def test_an_interrupted_run_says_so_and_writes_nothing(tmp_path: Path) -> None:
    command: list[Any] = [*RUSOL, "evaluate", "--rules", "yukon", "--deals", "5000000", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    # By then it plays; before, Python's own start-up would be interrupted.
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "rusol: interrupted; what was not finished was not written"
    assert list(tmp_path.iterdir()) == []
