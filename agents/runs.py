"""What the programs here share: the folder of a run, its tables, and how a program is stopped and refuses."""

from __future__ import annotations

import csv
import ctypes
import io
import json
import platform
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rusol_env._interrupt import hear
from rusol_env.cli import INTERRUPTED, UsageError, refuse_empty
from rusol_env.evaluate import Evaluation, versions
from rusol_env.files import write_whole

ROOT: Final = Path(__file__).resolve().parents[1]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table that `write_rows` wrote: numbers where they are numbers, no entry where there is none."""
    if not path.exists():
        return []

    def value(text: str) -> Any:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    try:
        with path.open(newline="", encoding="utf-8") as file:
            # What a row has more than the head stands under None.
            return [{key: value(text) for key, text in row.items() if key and text} for row in csv.DictReader(file)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a table whole; its columns are all that a row has."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def check_same(config: BaseModel, earlier: BaseModel, folder: Path, but: str | None = None) -> None:
    """See to it that a run goes on as it began, save for the key `but`.

    Raises:
        ValueError: another key has changed; the message names it.
    """
    for key, value in config:
        if key != but and getattr(earlier, key) != value:
            raise ValueError(
                f"the run in {folder} has {key} {getattr(earlier, key)!r}, not {value!r}: "
                f"{f'only {but}' if but else 'nothing'} may change when it goes on; choose another folder by --out"
            )


def outcome(result: Evaluation) -> dict[str, Any]:
    """What the tables have of an evaluation."""
    found = result.summary()
    low, high = found["win_rate_ci95"]
    return {
        "suite": result.suite,
        "wins": result.wins,
        "win_rate": found["win_rate"],
        "win_rate_low": low,
        "win_rate_high": high,
        "mean_score": found["mean_score"],
    }


def keep_memory() -> None:
    """Let this process keep the memory that it frees, where the C library is glibc.

    By default glibc gives large blocks back to the system and takes them anew, page by page: an update of a network
    then takes about twice as long.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        # M_MMAP_THRESHOLD, at most this; M_TRIM_THRESHOLD, never; M_TOP_PAD (malloc.h)
        for parameter, value in ((-3, 32 << 20), (-1, 2**31 - 1), (-2, 64 << 20)):
            libc.mallopt(parameter, value)


def progress_bar() -> Progress:
    """A progress bar on a terminal, and nothing in a pipe."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[now]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def read_sessions(folder: Path) -> list[dict[str, Any]]:
    """What `note_session` wrote.

    Raises:
        ValueError: it is damaged; the message names the file.
        OSError: it cannot be read.
    """
    path = folder / "run.json"
    try:
        sessions: Any = json.loads(path.read_text(encoding="utf-8"))["sessions"]
        if not isinstance(sessions, list) or not sessions:
            raise ValueError("it has no list of sessions")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return cast(list[dict[str, Any]], sessions)


def command_of(session: dict[str, Any]) -> list[str]:
    """The words of the command that a session ran, without the folder that it wrote to and went on with."""
    words = shlex.split(session["command"])
    while "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    return ["python", *(word for word in words if word != "--resume" and not word.startswith("--out="))]


def note_session(folder: Path, seed: int, steps: int) -> None:
    """Add to ``run.json`` what is about to run: a run that goes on may do so with other versions."""
    path = folder / "run.json"
    sessions = read_sessions(folder) if path.exists() else []
    packages = ("torch", "stable-baselines3", "sb3-contrib")
    session = {
        "command": shlex.join(sys.argv),
        "from_steps": steps,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seed": seed,
        "git": _git("rev-parse", "HEAD"),
        "git_dirty": bool(_git("status", "--porcelain")),
        "versions": versions() | {package: version(package) for package in packages},
    }
    write_whole(path, (json.dumps({"sessions": [*sessions, session]}, indent=2) + "\n").encode())


def _git(*words: str) -> str | None:
    """What git says of the sources; None where there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@contextmanager
def stopped_by_signals(program: str) -> Generator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; a second Ctrl-C ends the program where it is."""
    stop = threading.Event()

    def hear(*_: Any) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print(f"{program}: stopping after this update; Ctrl-C again stops at once, unsaved", file=sys.stderr)

    earlier = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def run(app: typer.Typer, program: str, arguments: list[str] | None = None) -> int:
    """Run a command line.

    Returns:
        the exit code: 0; 2 for bad input, or too little memory, with one line on stderr; 130 when interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    hear()
    try:
        refuse_empty(arguments)
        code: int | None = app(arguments, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except UsageError as error:
        message = str(getattr(error, "format_message", error.__str__)())
    except (ValueError, OSError, ImportError) as error:
        message = str(error)
    except MemoryError as error:
        message = f"there is too little memory for this: {error}"
    else:
        return code or 0
    print(f"{program}: {' '.join(message.split())}", file=sys.stderr)
    return 2
