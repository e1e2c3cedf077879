"""The layers of DESIGN 6, and what importing the package may do."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rusol_env

PACKAGE = Path(rusol_env.__file__).parent
ROOT = PACKAGE.parent

# A module imports from the layers above its own, and from the modules named beside it.
LAYERS: list[dict[str, set[str]]] = [
    {
        "_interrupt": set(),
        "_jit": set(),
        "files": set(),
        "model_card": {"files", "rules"},
        "cards": set(),
        "faces": {"cards"},
        "rules": set(),
        "labels": {"rules"},
        "deals": {"_jit", "cards", "rules", "labels"},
    },
    {"engine": set()},
    {
        "observe": set(),
        "episode": set(),
        "relations": {"observe"},
        "faces": set(),
        "render": {"observe", "faces"},
        "raster": {"render", "faces"},
        "game": {"observe", "episode", "render"},
        "record": {"game"},
        "deadlock": set(),
        "search": {"deadlock"},
        "solver": {"deadlock", "game", "search"},
        "planner": {"deadlock", "episode", "search", "observe"},
    },
    {"env": set(), "vector": {"env"}, "games": {"vector"}, "analysis": set()},
    {
        "policies": set(),
        "network": {"policies"},
        "planner_plus": {"policies", "network"},
        "lessons": {"policies", "network", "models"},
        "sb3": {"policies"},
        "models": {"policies", "network", "planner_plus", "sb3"},
        "evaluate": {"policies", "models"},
        "bench": {"policies", "evaluate"},
        "solve_many": {"evaluate"},
        "table": {"policies", "models"},
        "replay": set(),
        "compare": {"evaluate", "models"},
        "leaderboard": {"evaluate", "compare"},
        "plot": {"compare"},
        "report": {"evaluate", "compare", "plot"},
    },
    {"server": set(), "terminal": set()},
    {"cli": set()},
    {"__init__": set(), "__main__": set()},
]
# Third-party packages of the core, and the modules that each may be imported in.
THIRD_PARTY = {
    "numpy": None,
    "gymnasium": {"observe", "env", "vector", "bench", "sb3", "__init__"},
    "numba": {"_jit"},
    "llvmlite": {"_jit"},
    "typer": {"cli"},
    "rich": {"bench", "cli", "report"},
    # Optional: its module is imported by nobody but the user.
    "stable_baselines3": {"sb3"},
    "torch": {"sb3"},
    # Optional; inside a function only.
    "pysol_cards": {"deals"},
    "pygame": {"raster"},
    "starlette": {"server"},
    "uvicorn": {"server"},
    "safetensors": {"network"},
}
INSIDE_FUNCTIONS = {"pysol_cards", "pygame", "starlette", "uvicorn", "safetensors"}


def imports(path: Path) -> list[tuple[str, bool]]:
    """Every module that a file imports, by its full name, and whether it does so at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            module = node.module or ""
            if module == "rusol_env":
                found += [(f"rusol_env.{alias.name}", id(node) in top) for alias in node.names]
            else:
                found.append((module, id(node) in top))
    return found


def test_every_module_has_its_layer() -> None:
    listed = {module for layer in LAYERS for module in layer}
    assert listed == {path.stem for path in PACKAGE.glob("*.py")}


@pytest.mark.parametrize("level", range(len(LAYERS)))
def test_modules_import_from_the_layers_above_only(level: int) -> None:
    above = {module for layer in LAYERS[:level] for module in layer}
    for module, named in LAYERS[level].items():
        for imported, _ in imports(PACKAGE / f"{module}.py"):
            if imported.startswith("rusol_env."):
                assert imported.split(".")[1] in above | named, f"{module} imports {imported}"


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_third_party_packages_are_imported_where_they_belong(path: Path) -> None:
    for imported, at_top in imports(path):
        package = imported.split(".")[0]
        if package in sys.stdlib_module_names or package in ("rusol_env", "__future__"):
            continue
        assert package in THIRD_PARTY, f"{path.stem} imports {package}"
        where = THIRD_PARTY[package]
        assert where is None or path.stem in where, f"{path.stem} imports {package}"
        assert at_top != (package in INSIDE_FUNCTIONS)


def test_the_reference_imports_nothing_of_ours() -> None:
    names = [name.split(".")[0] for name, _ in imports(ROOT / "tests" / "reference.py")]
    assert set(names) <= sys.stdlib_module_names | {"__future__"}


def test_njit_is_spelled_once() -> None:
    for path in [*PACKAGE.glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        assert path.stem == "_jit" or "njit" not in path.read_text(encoding="utf-8")


def test_import_compiles_and_prints_nothing_and_pulls_in_no_extra() -> None:
    script = (
        "import sys, rusol_env\n"
        "from rusol_env import engine, episode, observe, policies\n"
        "for module in (engine, episode, observe, policies):\n"
        "    for kernel in vars(module).values():\n"
        "        assert not getattr(kernel, 'signatures', []), kernel\n"
        "extras = {'torch', 'stable_baselines3', 'pyarrow', 'pysol_cards', 'pygame', 'typer', 'rich', 'matplotlib'}\n"
        "extras |= {'starlette', 'uvicorn'}\n"
        "assert not extras & set(sys.modules), extras & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
