"""The cache of compiled kernels: used by later processes, and never stale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rusol_env
from rusol_env._jit import kernel_sources, sources_hash

PACKAGE = Path(rusol_env.__file__).parent
PLAY = "import rusol_env; print(rusol_env.Game.from_number(33).play('JC > 4'))"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package without compiled code."""
    return Path(shutil.copytree(PACKAGE, tmp_path / "rusol_env", ignore=shutil.ignore_patterns("__pycache__")))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(package: Path, script: str) -> tuple[str, bool]:
    """What a fresh process prints, and whether it said that it compiles."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"PYTHONPATH": str(package.parent)},
        cwd=package.parent,
    )
    said = done.stderr.splitlines()
    assert all("compiling its kernels" in line for line in said)
    assert len(said) <= 1
    return done.stdout.strip(), bool(said)


def test_an_edited_rule_in_another_file_is_never_played_by_its_old_code(package: Path) -> None:
    """The engine's kernels import the points of a turned card from rules.py: frozen into compiled code."""
    script = (
        "from rusol_env import engine, observe, rules\n"
        "import numpy as np\n"
        "row = engine.new_rows(1, rules.CLASSIC)[0]\n"
        "engine.deal(row, 33)\n"
        "out = np.empty((8, 52), np.int8)\n"
        "observe.encode_board(row, np.zeros(416, np.int8), False, out)\n"
        "print(int(row[engine.HEIGHTS + 1]), int(out[1, 0]))"
    )
    assert run(package, script) == ("6 52", True)
    assert run(package, script) == ("6 52", False)
    edit(package / "rules.py", "(1, 6, 7, 8, 9, 10, 11)", "(0, 7, 7, 8, 9, 10, 11)")
    edit(package / "engine.py", "HIDDEN: Final = NUM_CARDS", "HIDDEN: Final = NUM_CARDS + 1")
    assert run(package, script) == ("7 53", True)


def test_the_hash_covers_kernels_and_what_they_import_and_nothing_else(package: Path) -> None:
    names = {path.stem for path in kernel_sources(package)}
    assert {"_jit", "engine", "observe", "episode", "deals", "rules", "cards", "policies"} <= names
    assert names.isdisjoint({"cli", "__init__"})
    hashes = [sources_hash(package)]
    for name in ("cards", "rules", "engine"):
        with (package / f"{name}.py").open("a", encoding="utf-8") as file:
            file.write("# edited\n")
        sources_hash.cache_clear()
        hashes.append(sources_hash(package))
    with (package / "cli.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    sources_hash.cache_clear()
    assert sources_hash(package) == hashes[-1]
    sources_hash.cache_clear()
    assert len(set(hashes)) == 4


def test_a_damaged_cache_file_is_made_anew(package: Path) -> None:
    script = "import rusol_env; print(rusol_env.Game.from_number(33).score)"
    assert run(package, script) == ("0", True)
    for path in (package / "__pycache__").glob("*.nb[ic]"):
        path.write_bytes(path.read_bytes()[:100])
    assert run(package, script) == ("0", True)
    assert run(package, script) == ("0", False)


def test_without_compilation_it_says_that_it_cannot(package: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import rusol_env"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(package.parent), "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: NUMBA_DISABLE_JIT is set")


def test_it_runs_where_no_cache_can_be_written(package: Path) -> None:
    script = (
        "import rusol_env._jit as jit, sys\n"
        "jit._KernelCacheImpl._locator_classes = []\n"
        "from rusol_env.cards import NUM_CARDS\n"
        "@jit.kernel\n"
        "def double(x):\n"
        "    return 2 * x\n"
        "print('defined', file=sys.stdout)\n"
        "print(double(21))"
    )
    assert run(package, script) == ("defined\n42", True)
    assert "nbi" not in {path.suffix for path in package.rglob("*")}
