"""What is published: a wheel and an sdist that hold what they need and no more, and a citation of the same version."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hatchling", reason="hatchling is missing: install the extra [dev]")

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = {"gymnasium", "numpy", "numba", "typer", "rich"}
# Ten lines, from outside the clone, by the wheel alone.
GAME = """
import gymnasium, rusol_env
env = gymnasium.make(rusol_env.ENV_ID, rules="relaxed")
observation, info = env.reset(seed=42)
done = False
while not done:
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample(mask=info["action_mask"]))
    done = terminated or truncated
print(rusol_env.__version__, rusol_env.__file__, info["code"])
"""


def build(source: Path, into: Path, *kinds: str) -> None:
    """Build the distributions of a folder without a network: hatchling is here."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into), *kinds]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


def files_of(wheel: Path) -> set[str]:
    """The files of the package in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist of this clone."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def sources() -> Iterator[str]:
    """The package's files here, less what running it left."""
    for path in (ROOT / "rusol_env").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT).as_posix()


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(built: tuple[Path, Path]) -> None:
    held = files_of(built[0])
    assert held == set(sources())
    for data in ("labels.json", "py.typed", "web/play.html", "checkpoints/ppo-classic.safetensors"):
        assert f"rusol_env/{data}" in held


def test_the_core_asks_for_little(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(metadata))
    asked: list[str] = told.get_all("Requires-Dist") or []
    core = {re.split(r"[^\w-]", line)[0] for line in asked if "extra ==" not in line}
    assert core == CORE
    assert any(line.startswith("torch") for line in asked)
    assert told["Version"] == PROJECT["version"]


def test_the_sdist_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    for name in (
        "tests/test_package.py",
        "configs/quick.yaml",
        "docs/game.svg",
        "CITATION.cff",
        "README.md",
        "Makefile",
    ):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes()
    build(unpacked, tmp_path / "dist", "-t", "wheel")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert files_of(wheel) == files_of(built[0])


def test_the_wheel_plays_outside_the_clone(built: tuple[Path, Path], tmp_path: Path) -> None:
    """In an environment of its own, which borrows only what the package depends on."""
    home = tmp_path / "venv"
    venv.create(home, symlinks=os.name == "posix")
    base = {"base": str(home), "platbase": str(home)}
    scripts, site = (Path(sysconfig.get_path(kind, "venv", base)) for kind in ("scripts", "purelib"))
    python = scripts / Path(sys.executable).name
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(built[0])], check=True, capture_output=True)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def told(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    version, file, code = told(str(python), "-c", GAME).split()
    assert version == PROJECT["version"]
    assert Path(file).is_relative_to(site)
    assert code.startswith("RU1-R-")
    listed = json.loads(told(str(scripts / "rusol"), "policies", "--json"))
    assert {card["name"] for card in listed["trained"]} >= {"ppo", "distilled"}


def test_the_citation_is_of_this_version() -> None:
    yaml: Any = pytest.importorskip("yaml", reason="PyYAML is missing: install the extra [agents]")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    # What version 1.2.0 of the format asks for.
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "type"} <= set(citation)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {citation['version']} ({citation['date-released']})" in changes
