"""Execute the notebooks whole and store their outputs in them: `make notebooks`, or with the paths of some of them."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

from rusol_env.files import write_whole

FOLDER: Final = Path(__file__).parent
NOTEBOOKS: Final = sorted(FOLDER.glob("*.ipynb"))
# What a first start on a machine may say, and what is not the notebook's.
_FIRST_STARTS: Final = ("rusol_env: compiling its kernels", "Matplotlib is building the font cache")


def read(path: Path) -> Any:
    """The notebook in a file, as nbformat's `NotebookNode`."""
    return cast(Any, nbformat).read(path, as_version=4)


def code_cells(notebook: Any) -> list[Any]:
    """Its cells of code, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def sources_hash(notebook: Any) -> str:
    """SHA-256 (hexadecimal) over the sources of its code cells: what the stored outputs are of."""
    return sha256("\0".join(cell.source for cell in code_cells(notebook)).encode()).hexdigest()


def parameters(notebook: Any) -> Any:
    """The cell tagged ``parameters``, as Papermill has it: the sizes of the notebook. None if it has none."""
    tagged = [cell for cell in code_cells(notebook) if "parameters" in cell.metadata.get("tags", [])]
    return tagged[0] if tagged else None


def execute(notebook: Any) -> None:
    """Run all its cells in a fresh kernel of this Python; their outputs take the place of those it had.

    Raises:
        CellExecutionError: a cell raised.
        ValueError: a cell wrote to stderr, such as a warning.
    """
    NotebookClient(
        notebook,
        timeout=1800,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(FOLDER)}},
        # Else the kernel warns of its plain talk with us.
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    ).execute()
    for cell in code_cells(notebook):
        said = [output for output in cell.outputs if output.get("name") == "stderr"]
        lines = [line for output in said for line in output.text.splitlines() if not line.startswith(_FIRST_STARTS)]
        if lines:
            raise ValueError(f"a cell wrote to stderr:\n{cell.source}\n\n" + "\n".join(lines))
        cell.outputs = [output for output in cell.outputs if output not in said]


def main() -> None:
    for path in [Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        print(path.name, flush=True)
        notebook = read(path)
        try:
            execute(notebook)
        except (CellExecutionError, ValueError) as error:
            sys.exit(f"{path} was not stored: {error}")
        notebook.metadata["rusol"] = {"sources": sources_hash(notebook)}
        cast(Any, nbformat).validate(notebook)
        write_whole(path, (cast(Any, nbformat).writes(notebook) + "\n").encode())


if __name__ == "__main__":
    main()
