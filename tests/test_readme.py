"""The README tells the truth: its examples run, its pictures and tables are what the project makes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tables import filled

from rusol_env.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
PYTHON = [block for kind, block in BLOCKS if kind == "python"]
COMMANDS = [
    line.split("#")[0].split()
    for kind, block in BLOCKS
    if kind == "console"
    for line in block.splitlines()
    if line.strip()
]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "console", "text"}
    assert len(PYTHON) >= 3
    assert {command[0] for command in COMMANDS} == {"make", "python", "rusol"}


@pytest.mark.parametrize("code", PYTHON, ids=[str(i) for i in range(len(PYTHON))])
def test_examples_run(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed
    # A comment behind a print says how its line begins.
    for shown in re.findall(r"print\(.*\)  # (.*)…$", code, re.MULTILINE):
        assert any(line.startswith(shown) for line in printed.splitlines()), printed


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] == "rusol"], ids=" ".join)
def test_commands_run(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] == "make"], ids=" ".join)
def test_make_targets_exist(command: list[str]) -> None:
    assert re.search(rf"^{command[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] == "python"], ids=" ".join)
def test_training_commands_can_be_given(command: list[str]) -> None:
    """They would run for hours: their configs and changes are read."""
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
    from agents.config import read_config
    from agents.distill import read_distillation

    script, path, *words = command[1:]
    changes = [word for word in words if "=" in word]
    if script == "agents/distill.py":
        assert read_distillation(ROOT / path, changes).rounds > 1
    else:
        assert script == "agents/train.py"
        assert read_config(ROOT / path, changes).steps > 1_000_000
    options = [word for word in words if word.startswith("--")]
    assert set(options) <= {"--out", "--resume"}


def test_the_picture_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    pictures = [block for kind, block in BLOCKS if kind == "text"]
    assert len(pictures) == 1
    command, _, picture = pictures[0].partition("\n")
    assert main(command.split()[2:]) == 0
    assert capsys.readouterr().out == picture


def test_the_tables_are_those_of_the_result_files() -> None:
    assert filled(README) == README, "run: python benchmarks/tables.py"
