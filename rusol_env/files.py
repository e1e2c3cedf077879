"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes, *, replace: bool = True) -> None:
    """Write a file so that it is there whole or not at all: beside it, to the disk, then renamed.

    Raises:
        FileExistsError: `replace` is off and a file came to be there, however late.
        OSError: it cannot be written; what was at `path` is unchanged.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            beside.replace(path)
        else:
            path.hardlink_to(beside)
    finally:
        beside.unlink(missing_ok=True)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
