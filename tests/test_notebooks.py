"""The notebooks run, at a small size; what is stored in them is what they print, and reads well."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from execute import NOTEBOOKS, code_cells, execute, parameters, read, sources_hash

import rusol_env

# The parameters of each notebook, as small as makes sense.
SMALL: dict[str, dict[str, int]] = {
    "1-tour": {},
    "2-train-a-first-agent": {"ROUNDS": 1, "STEPS": 256, "GAMES": 4, "CURVE_DEALS": 2, "DEALS": 5},
    "3-classic-against-relaxed": {"DEALS": 10},
    "4-look-at-a-lost-game": {"DEALS": 20},
}
MOST_BYTES = 500_000
TITLES = ["Tour", "Train a first agent", "Classic against Relaxed", "Look at a lost game"]

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def texts(cell: Any) -> list[str]:
    """All that a cell's outputs hold as text, pictures by SVG included."""
    found: list[str] = []
    for output in cell.outputs:
        found += [output.text] if output.output_type == "stream" else [str(data) for data in output.data.values()]
    return found


def assigned(source: str) -> set[str]:
    """The names that a cell assigns at its top level."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return {target.id for node in nodes for target in node.targets if isinstance(target, ast.Name)}


def test_these_are_the_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == list(SMALL)
    for path, title in zip(NOTEBOOKS, TITLES, strict=True):
        first = read(path).cells[0]
        heading, _, text = first.source.partition("\n\n")
        assert heading == f"# {title}"
        assert first.cell_type == "markdown"
        assert text.startswith("You will")
        assert " takes " in text


@each_notebook
def test_it_runs_at_a_small_size(path: Path) -> None:
    if path.stem.startswith("2-") and find_spec("sb3_contrib") is None:
        pytest.skip("sb3-contrib is missing: install the extra [agents]")
    notebook, small = read(path), SMALL[path.stem]
    if small:
        cell = parameters(notebook)
        assert set(small) <= assigned(cell.source)
        cell.source += "".join(f"\n{name} = {value}" for name, value in small.items())
    execute(notebook)
    assert any(output.output_type == "display_data" for cell in code_cells(notebook) for output in cell.outputs)


@each_notebook
def test_its_outputs_are_stored(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES
    notebook = read(path)
    cells = code_cells(notebook)
    assert notebook.metadata.get("rusol") == {"sources": sources_hash(notebook)}, "run: make notebooks"
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output.output_type for cell in cells for output in cell.outputs]
    assert {"stream", "display_data"} <= set(kinds)
    assert "error" not in kinds
    for cell in cells:
        assert all(output.get("name", "stdout") == "stdout" for output in cell.outputs)
        for text in texts(cell):
            assert "Warning" not in text
            # No path of the machine that it was executed on, and no object's address.
            assert not re.search(r"(?<![\w.])(/(home|root|work|tmp|usr|Users|opt|var)/|[A-Z]:\\)|\bat 0x", text)


@each_notebook
def test_no_number_stands_in_the_text_that_no_cell_prints(path: Path) -> None:
    notebook = read(path)
    printed = set(re.findall(r"\d+", " ".join(text for cell in code_cells(notebook) for text in texts(cell))))
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", cell.source)
            assert set(re.findall(r"\d+", prose)) <= printed, prose


@each_notebook
def test_it_uses_the_public_api_only(path: Path) -> None:
    for cell in code_cells(read(path)):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Attribute):
                assert not node.attr.startswith("_"), node.attr
                if isinstance(node.value, ast.Name) and node.value.id == "rusol_env":
                    assert node.attr in rusol_env.__all__
            elif isinstance(node, ast.ImportFrom) and node.module == "rusol_env":
                assert {alias.name for alias in node.names} <= set(rusol_env.__all__)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rusol_env."):
                # What the README documents beside the package itself.
                assert node.module == "rusol_env.sb3"
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("rusol_env.") for alias in node.names)


@each_notebook
def test_its_links_lead_somewhere(path: Path) -> None:
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", cell.source):
                assert (path.parent / target).is_file(), target


def test_a_cell_that_warns_is_refused() -> None:
    nbformat: Any = import_module("nbformat.v4")
    warns = nbformat.new_notebook(cells=[nbformat.new_code_cell("import warnings\nwarnings.warn('mind the gap')")])
    with pytest.raises(ValueError, match="mind the gap"):
        execute(warns)
