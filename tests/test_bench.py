"""`rusol bench`: one row for every way to step, what is missing named, and the same figures as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from rusol_env.bench import bench, timed
from rusol_env.cli import main

KEYS = {"what", "envs", "observation", "threads", "steps_per_second", "range"}


def test_a_way_counts_its_steps_and_runs_for_its_time() -> None:
    calls: list[int] = []
    way = timed(lambda: calls.append(1), 7)
    assert len(calls) == 1
    speed = way(0.01)
    assert speed > 0
    made = (len(calls) - 1) * 7
    # Its own clock: at least the time asked for has passed.
    assert made / speed >= 0.01


def test_every_way_has_a_row_and_every_missing_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # As where they are not installed.
    for module in ("stable_baselines3", "sb3_contrib", "pyspiel", "rusol_env.sb3"):
        monkeypatch.setitem(sys.modules, module, None)
    told: list[str] = []
    document = bench("relaxed", seconds=0.001, rounds=2, sizes=(1, 3), progress=told.append)
    rows: list[dict[str, Any]] = document["rows"]
    assert {row["what"] for row in document["skipped"]} == {"SB3VecEnv", "MaskablePPO rollout", "OpenSpiel, Klondike"}
    assert all(row["why"] for row in document["skipped"])
    assert {row["what"] for row in rows} == {
        "single, gymnasium.make",
        "SyncVectorEnv",
        "AsyncVectorEnv",
        "native",
        "native, copy=False",
        "CartPole-v1, gymnasium.make",
        "solver, deals a second",
    }
    for row in rows:
        assert row.keys() == KEYS
        assert row["range"][0] <= row["steps_per_second"] <= row["range"][1]
        assert row["range"][0] > 0
    native = [(row["envs"], row["observation"]) for row in rows if row["what"] == "native" and row["threads"] == 1]
    assert sorted(native) == [(1, "board"), (1, "cards"), (3, "board"), (3, "cards")]
    assert (document["rules"], document["rounds"]) == ("relaxed", 2)
    assert {"processor", "cores", "python", "numba"} <= document["machine"].keys()
    assert any("round 2 of 2" in line for line in told)


def test_the_command_prints_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--quick", "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == ""
    assert all(row.keys() >= KEYS for row in document["rows"])
    sb3 = [row for row in document["rows"] if row["what"] == "MaskablePPO rollout"]
    assert all(0 < row["env_share"] < 1 for row in sb3)
    named = {row["what"] for row in document["rows"]} | {row["what"] for row in document["skipped"]}
    assert "MaskablePPO rollout" in named
    from rusol_env import bench as module

    made = module.table(document)
    assert made.row_count == len(document["rows"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rules", "bridge"], "unknown rules 'bridge'"),
        (["--rounds", "0"], "rounds is 0"),
        (["--seconds", "0"], "seconds is 0"),
        (["--seconds", "nan"], "seconds is nan"),
        (["--seconds", "x"], "a valid number"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert printed.err.count("\n") == 1
