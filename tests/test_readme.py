"""The README tells the truth: its examples and commands run, its pictures and tables are what the project makes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from picture import PICTURE, drawn
from tables import filled

from rusol_env.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
PYTHON = [block for kind, block in BLOCKS if kind == "python"]
CONSOLE = [
    [shlex.split(line, comments=True) for line in block.splitlines() if line.strip()]
    for kind, block in BLOCKS
    if kind == "console"
]
# What a README's run of hours becomes in a test.
A_MOMENT = ["steps=512", "num_envs=8", "eval_deals=first-2", "env.max_steps=20", "hyperparameters.batch_size=64"]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "console", "text"}
    assert len(PYTHON) >= 3
    programs = {command[0] for block in CONSOLE for command in block}
    assert programs == {"make", "source", "pip", "python", "rusol"}


@pytest.mark.parametrize("code", PYTHON, ids=[str(i) for i in range(len(PYTHON))])
def test_examples_run(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed
    # A comment behind a print says how its line begins.
    for shown in re.findall(r"print\(.*\)  # (.*)…$", code, re.MULTILINE):
        assert any(line.startswith(shown) for line in printed.splitlines()), printed


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a clone to the commands, and that they may write into."""
    for name in ("configs", "leaderboard"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: "; ".join(map(shlex.join, block)))
@pytest.mark.usefixtures("clone")
def test_commands_run(block: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of a block one after the other, as they stand; what takes hours, sets up or needs a network less."""
    for program, *words in block:
        if program == "rusol":
            # A policy that was trained for a moment knows nothing, and its games are long.
            untrained = any(word.startswith("runs/") and word.endswith(".safetensors") for word in words)
            assert main(["20" if untrained and word == "1000" else word for word in words]) == 0
            assert capsys.readouterr().out
        elif program == "make":
            assert re.search(rf"^{words[0]}:", MAKEFILE, re.MULTILINE)
        elif program == "source":
            assert words == [f"{re.findall('^VENV := (.*)$', MAKEFILE, re.MULTILINE)[0]}/bin/activate"]
        elif program == "pip":
            assert words[0] == "install"
            (extras,) = re.findall(r"^\.(?:\[(.*)\])?$", words[1])
            assert set(extras.split(",")) <= {*EXTRAS, ""}
        else:
            train(words)


def train(words: list[str]) -> None:
    """Run ``python agents/train.py …`` for a moment; of a distillation, only read the file."""
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
    from agents import train
    from agents.config import read_config
    from agents.distill import read_distillation

    script, path, *more = words
    changes = [word for word in more if "=" in word]
    if script == "agents/distill.py":
        assert read_distillation(Path(path), changes).rounds > 1
        assert not more
        return
    assert script == "agents/train.py"
    assert read_config(Path(path), changes).steps > 100_000
    assert train.main([path, *more, *A_MOMENT]) == 0


def test_every_extra_is_named() -> None:
    named = set(re.findall(r"`\[([a-z]+)\]`", README))
    # Not those that only work on the project itself needs.
    assert set(EXTRAS) - {"dev", "docs", "notebooks"} <= named <= set(EXTRAS)


def test_make_train_is_what_the_readme_runs() -> None:
    recipe = re.findall(r"^train:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[0]
    made = [line.strip().replace("$(BIN)/", "").partition(" $(if")[0] for line in recipe.splitlines()]
    assert made in [[shlex.join(command) for command in block] for block in CONSOLE]


def test_the_labels_reach_as_far_as_it_says() -> None:
    told = json.loads((ROOT / "rusol_env" / "labels.json").read_text(encoding="utf-8"))["rules"]
    last = {rules: f"{entry['deals'] - 1:,}" for rules, entry in told.items()}
    assert last["relaxed"] == last["yukon"]
    assert f"(0 to {last['classic']} in Classic, 0 to {last['yukon']} in Relaxed and Yukon, checked" in README


def test_links_lead_somewhere() -> None:
    def headings(text: str) -> set[str]:
        return {line.strip("# ").lower().replace(" ", "-") for line in text.splitlines() if line.startswith("#")}

    targets = re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", README)
    assert len(targets) > 5
    for target in (link or source for link, source in targets):
        if not target.startswith("https://"):
            path, _, heading = target.partition("#")
            text = (ROOT / path).read_text(encoding="utf-8") if path else README
            assert not heading or heading in headings(text), target


def test_the_picture_is_what_the_command_draws() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn(), "run: make picture"


def test_the_deal_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    pictures = [block for kind, block in BLOCKS if kind == "text"]
    assert len(pictures) == 1
    command, _, picture = pictures[0].partition("\n")
    assert main(command.split()[2:]) == 0
    assert capsys.readouterr().out == picture


def test_the_tables_are_those_of_the_result_files() -> None:
    assert filled(README) == README, "run: python benchmarks/tables.py"
