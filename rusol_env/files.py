"""Files that are there whole or not at all, and folders that one program uses at a time."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


class RunsCodeWarning(UserWarning):
    """A file is about to be read that can run code, since it holds pickles: one must trust whoever made it."""


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


def open_zip(data: bytes) -> zipfile.ZipFile:
    """The zip file in `data`, when all its parts agree with their checksums.

    Raises:
        ValueError: it is damaged, or no zip file.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        changed = archive.testzip()
    except Exception as error:  # what a damaged file makes zipfile and zlib raise can be anything
        raise ValueError(str(error) or type(error).__name__) from error
    if changed is not None:
        raise ValueError(f"{changed} in it has changed")
    if min((part.header_offset for part in archive.infolist()), default=0) > 0:
        # What zipfile found is a zip file within the file.
        raise ValueError("its end is missing")
    return archive


@contextmanager
def only_user(folder: Path, option: str = "--data") -> Generator[None]:
    """Use a folder alone: while this lasts, nobody else who asks gets it. A program that is killed lets go.

    Args:
        folder: made if it is not there.
        option: of the command line, which chooses another.

    Raises:
        OSError: another program uses it, or it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as file:
        # Where there is no fcntl (Windows), nobody is kept out.
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OSError(f"another rusol uses {folder}: end it, or choose another folder with {option}") from error
        yield
