"""The documentation tells the truth: its examples run and print what it says, and the site builds without a warning.

`python tests/test_docs.py` writes the outputs, and the picture, into the pages anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

import rusol_env
from rusol_env.cli import app, main
from rusol_env.files import write_whole
from rusol_env.render import svg

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
# A block, and a block of text right after it, which is what it prints.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
# Run in tests/test_leaderboard.py, in a copy of the leaderboard.
ELSEWHERE = {"leaderboard.md"}
# What serves a page until it is interrupted, or measures for long: these are only read.
ONLY_READ = {"play", "bench"}


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def blocks_of(page: str) -> list[tuple[str, str, str | None]]:
    """The kind, code and output (None: not shown) of each block of a page."""
    return [(match[1], match[2], match[3]) for match in BLOCK.finditer(text_of(page))]


def commands(code: str) -> list[list[str]]:
    """The words of each line of a console block."""
    return [words for line in code.splitlines() if (words := shlex.split(line, comments=True))]


CASES = [
    pytest.param(kind, code, output, id=f"{page}-{i}")
    for page in PAGES
    if page not in ELSEWHERE
    for i, (kind, code, output) in enumerate(blocks_of(page))
    if kind != "diff"
]
CONSOLE = [code for page in PAGES for kind, code, _ in blocks_of(page) if kind == "console"]
COMMANDS = sorted({shlex.join(words) for code in CONSOLE for words in commands(code)})
# `rusol`, as Typer makes it of the application.
COMMAND: Any = typer.main.get_command(app)


# ---- blocks ------------------------------------------------------------------------------------------------------


def printed_by(kind: str, code: str) -> str:
    """What a block prints, run in the folder that we are in."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if kind == "python":
            exec(compile(code, "<docs>", "exec"), {"__name__": "example"})
        else:
            for program, *words in commands(code):
                if program == "rusol" and words[0] not in ONLY_READ:
                    assert main(words) == 0
    return out.getvalue()


@pytest.mark.parametrize(("kind", "code", "output"), CASES)
def test_blocks_run_and_print_what_the_page_says(
    kind: str, code: str, output: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kind in ("python", "console")
    monkeypatch.chdir(tmp_path)
    printed = printed_by(kind, code)
    if output is not None:
        assert printed == output, "if the page is wrong, run: python tests/test_docs.py"
    elif kind == "python":
        assert "print" not in code, "a block that prints is followed by a block of text"


def check_options(words: list[str]) -> None:
    """Read a `rusol` command without running it; an unknown command, option or value raises."""
    command = COMMAND
    while commands := getattr(command, "commands", None):
        name, *words = words
        command = commands[name]
    command.make_context("rusol", words)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_can_be_given(command: str) -> None:
    """Those too that no test runs: training, benchmarks, what serves a page."""
    program, *words = shlex.split(command)
    if program == "rusol":
        check_options(words)
    elif program == "make":
        assert set(words) <= make_targets()
    elif program == "git":
        assert words[0] == "apply"
        assert (ROOT / words[1]).is_file()
    elif program == "pip":
        assert words[0] == "install"
        assert set(re.findall(r"[\w-]+", words[1])) <= extras()
    else:
        assert program == "python"
        check_script(words)


def check_script(words: list[str]) -> None:
    """Check the words after ``python``: a script that is there, with options and files that it knows."""
    script, *more = words
    source = (ROOT / script).read_text(encoding="utf-8")
    assert all(f'"{word}"' in source for word in more if word.startswith("--")), f"{script} has no such option"
    if script.startswith("agents/train"):
        from agents.config import read_config

        read_config(ROOT / more[0], [word for word in more if "=" in word])
    elif script.startswith("agents/distill"):
        from agents.distill import read_distillation

        read_distillation(ROOT / more[0], [word for word in more if "=" in word])


@cache
def make_targets() -> set[str]:
    return set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@cache
def extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])


# ---- words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_what_pages_name_is_there(page: str) -> None:
    """Files, commands, extras and names of the package that stand between backticks in a sentence."""
    sentences = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    for name in re.findall(r"`([^`\n]+)`", sentences):
        if match := re.fullmatch(r"(?:rusol_env|agents|benchmarks|configs|tests|leaderboard)/[\w./-]*", name):
            assert (ROOT / name).exists() or "-v0" in name, name
        elif match := re.fullmatch(r"make (\w+)", name):
            assert match[1] in make_targets(), name
        elif match := re.fullmatch(r"\[(\w+)\]", name):
            assert match[1] in extras(), name
        elif match := re.fullmatch(r"python (\S+\.py.*)", name):
            check_script(match[1].split())
        elif match := re.fullmatch(r"rusol (\w+).*", name):
            assert match[1] in COMMAND.commands, name
        elif re.fullmatch(r"rusol_env(\.\w+)+", name):
            value: Any = rusol_env
            for part in name.split(".")[1:]:
                value = getattr(value, part) if hasattr(value, part) else __import__(f"rusol_env.{part}").__dict__[part]


def test_the_reference_has_every_public_name_once() -> None:
    shown = [name for page in PAGES for name in re.findall(r"^::: rusol_env\.(?:\w+\.)?(\w+)$", text_of(page), re.M)]
    constants = {"ENV_ID", "VARIANTS"}
    assert set(rusol_env.__all__) - constants <= set(shown)
    for name in set(rusol_env.__all__) - {"RussianSolitaireEnv"}:
        assert shown.count(name) <= 1, name


def test_the_environments_spaces_are_those_of_the_page() -> None:
    page = text_of("environment.md")
    for kind in ("cards", "board"):
        env = rusol_env.RussianSolitaireEnv(observation=kind)
        assert f"| `{env.observation_space}` |" in page
        assert f"| `{env.action_space}` |" in page


def test_tables_are_those_of_the_result_files() -> None:
    from tables import PAGES as WITH_TABLES

    for page, filled in WITH_TABLES.items():
        assert filled(text_of(page)) == text_of(page), "run: python benchmarks/tables.py"


def picture() -> str:
    return svg(rusol_env.Game.from_code("RU1-C-AAAAABB").picture) + "\n"


def test_the_picture_is_what_the_project_draws() -> None:
    assert (DOCS / "deal.svg").read_text(encoding="utf-8") == picture(), "run: python tests/test_docs.py"


# ---- the site ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: it keeps warnings from --strict.
    words = ["build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_without_a_warning_and_has_every_page(site: Path) -> None:
    assert {path.stem for path in site.glob("*.html")} == {Path(page).stem for page in PAGES} | {"404"}


def test_the_site_fetches_nothing_from_other_hosts(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"'\s>]+)", page)
        fetched += re.findall(r"<link\b(?![^>]*\brel=[\"']?canonical)[^>]*\bhref=[\"']?([^\"'\s>]+)", page)
        assert len(fetched) > 3
        assert not [url for url in fetched if re.match(r"(?:https?:)?//", url)], path.name
    for path in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", path.read_text(encoding="utf-8")), path.name


# ---- another rule set --------------------------------------------------------------------------------------------

SIDE_BY_SIDE = """
import gymnasium, reference, rusol_env

def text(card):
    return reference.DECK[card]

env = gymnasium.make("rusol_env/RussianSolitaireMoosehide-v0").unwrapped
steps = refused = 0
for number in range(20):
    code = rusol_env.encode_code(number, "moosehide")
    _, info = env.reset(options={"code": code})
    game = reference.position(code)
    done = False
    while not done:
        legal = info["action_mask"].nonzero()[0].tolist()
        moves = [rusol_env.decode_action(action) for action in legal]
        assert sorted((text(move.card), move.destination) for move in moves) == game.legal_moves(False, False)
        move = moves[(7 * steps + 3) % len(moves)]
        game.play(text(move.card), move.destination)
        _, _, terminated, truncated, info = env.step(move.action)
        assert (info["score"], info["is_success"]) == (game.score, game.won)
        steps += 1
        done = terminated or truncated
print(info["code"], steps > 200)
print(env.explain(rusol_env.parse_move("8H > 4").action))
"""


def test_the_diff_of_a_rule_set_applies_and_its_games_are_the_references(tmp_path: Path) -> None:
    """In a copy of the package: environment and reference play twenty games side by side."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "rusol_env", tmp_path / "rusol_env", ignore=ignore)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "reference.py", tmp_path / "tests")
    diff = ["git", "apply", "--verbose", str(DOCS / "moosehide.diff")]
    applied = subprocess.run(diff, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert applied.returncode == 0, applied.stderr
    folders = os.pathsep.join([str(tmp_path), str(tmp_path / "tests")])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    played = subprocess.run(
        [sys.executable, "-c", SIDE_BY_SIDE],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stderr
    told = "The 8♥ needs the 9♠ or the 9♦ or the 9♣ to lie on: another suit, one higher."
    assert played.stdout.splitlines() == ["RU1-M-AAAAAAT True", told]


if __name__ == "__main__":

    def anew(match: re.Match[str]) -> str:
        if match[1] not in ("python", "console") or match[3] is None:
            return match[0]
        return f"```{match[1]}\n{match[2]}```\n\n```text\n{printed_by(match[1], match[2])}```"

    for page in PAGES:
        if page not in ELSEWHERE:
            before = text_of(page)
            here = Path.cwd()
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                after = BLOCK.sub(anew, before)
                os.chdir(here)
            write_whole(DOCS / page, after.encode())
    write_whole(DOCS / "deal.svg", picture().encode())
