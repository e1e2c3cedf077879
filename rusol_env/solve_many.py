"""The solver over many deals: spread over cores, and resumable on disk."""

from __future__ import annotations

import io
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env.deals import Suite, check_whole
from rusol_env.evaluate import read_suite, versions, wilson_interval
from rusol_env.files import write_whole
from rusol_env.labels import Verdict
from rusol_env.rules import CLASSIC, Rules, rules_named
from rusol_env.solver import DEFAULT_NODE_LIMIT, Solver

FORMAT: Final = 1
CHUNK: Final = 500
"""Deals to a file on disk: what a killed run can lose for each worker."""
# Deals that a worker solves before it hears that it should stop.
_PIECE: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What the solver says of each deal of a suite. All arrays have one entry a deal, in the suite's order."""

    rules: Rules
    suite: str
    numbers: NDArray[np.int64]
    """int64 (N,): the deal numbers."""
    verdicts: NDArray[np.int8]
    """int8 (N,): see `Verdict`."""
    nodes: NDArray[np.int64]
    """int64 (N,): positions looked at."""
    lengths: NDArray[np.int32]
    """int32 (N,): moves of the shortest win that was found, -1 where there is none."""
    node_limit: int
    take_back: bool
    workers: int
    seconds: float
    """Wall-clock time of this run; of what an earlier run left on disk nothing is counted."""

    def count(self, verdict: Verdict) -> int:
        """How many deals have that verdict."""
        return int((self.verdicts == verdict).sum())

    def summary(self) -> dict[str, Any]:
        """The figures, ready for JSON.

        ``winnable_rate`` counts undecided deals as not winnable and ``winnable_rate_most`` counts them as winnable;
        each with its 95 % Wilson interval. ``nodes`` and ``moves`` are over all deals and over all wins.
        """
        deals, winnable, undecided = len(self.numbers), self.count(Verdict.WINNABLE), self.count(Verdict.UNDECIDED)
        wins = self.lengths[self.lengths >= 0]
        return {
            "rules": self.rules.name,
            "suite": self.suite,
            "deals": deals,
            "winnable": winnable,
            "unwinnable": self.count(Verdict.UNWINNABLE),
            "undecided": undecided,
            "winnable_rate": winnable / deals,
            "winnable_rate_ci95": list(wilson_interval(winnable, deals)),
            "winnable_rate_most": (winnable + undecided) / deals,
            "winnable_rate_most_ci95": list(wilson_interval(winnable + undecided, deals)),
            "nodes": _spread(self.nodes),
            "moves": _spread(wins),
            "node_limit": self.node_limit,
            "take_back": self.take_back,
            "workers": self.workers,
            "seconds": self.seconds,
            "versions": versions(),
        }


def _spread(values: NDArray[Any]) -> dict[str, float] | None:
    if len(values) == 0:
        return None
    return {"mean": float(values.mean()), "median": float(np.median(values)), "most": int(values.max())}


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def solve_many(
    deals: Suite | Sequence[int | str] | str | int,
    rules: str | Rules = CLASSIC,
    *,
    workers: int | None = None,
    node_limit: int = DEFAULT_NODE_LIMIT,
    take_back: bool = False,
    folder: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verdicts:
    """Solve each deal of a suite; the answer does not depend on the number of workers.

    Args:
        deals: a suite or its name, N for ``first-N``, or a sequence of deal numbers or codes.
        rules: a rule set or its name.
        workers: threads; by default one a core.
        node_limit: a deal stays undecided after so many positions.
        take_back: whether cards may come back from the foundations.
        folder: keep the verdicts there as they are found, `CHUNK` deals a file; what it holds already is not solved
            again, so that a run that was stopped goes on.
        progress: called now and then with the number of deals that have a verdict.

    Raises:
        ValueError: an argument is not valid, or the folder holds another run or a damaged file; it is named.
        OSError: the folder cannot be written.
        KeyboardInterrupt: on Ctrl-C, once the deals in hand are done.
    """
    rules = rules_named(rules)
    node_limit = check_whole("node_limit", node_limit, 1)
    workers = cores() if workers is None else check_whole("workers", workers, 1)
    chosen = read_suite(deals, rules)
    numbers = np.array(chosen.numbers, np.int64)
    count = len(numbers)
    verdicts, nodes, lengths = np.zeros(count, np.int8), np.zeros(count, np.int64), np.zeros(count, np.int32)
    arrays = {"verdicts": verdicts, "nodes": nodes, "lengths": lengths}
    chunks = [slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    shelf = None
    if folder is not None:
        settings = {
            "format": FORMAT,
            "rules": rules.name,
            "suite": chosen.name,
            "deals": count,
            "numbers_sha256": sha256(numbers.tobytes()).hexdigest(),
            "node_limit": node_limit,
            "take_back": take_back,
            "chunk": CHUNK,
            "rusol-env": versions()["rusol-env"],
        }
        shelf = _Shelf(Path(folder), settings)
    done = 0
    todo: list[int] = []
    for k, part in enumerate(chunks):
        kept = None if shelf is None else shelf.read(k, part.stop - part.start)
        if kept is None:
            todo.append(k)
        else:
            for name, array in arrays.items():
                array[part] = kept[name]
            done += part.stop - part.start
    if progress is not None:
        progress(done)

    stop = threading.Event()
    mine = threading.local()

    def work(k: int) -> int:
        if not hasattr(mine, "solver"):
            mine.solver = Solver(rules, take_back=take_back)
        solver: Solver = mine.solver
        part = chunks[k]
        for start in range(part.start, part.stop, _PIECE):
            if stop.is_set():
                return 0
            piece = slice(start, min(start + _PIECE, part.stop))
            found = solver.solve_deals(numbers[piece], node_limit=node_limit)
            verdicts[piece], nodes[piece], lengths[piece] = found
        if shelf is not None:
            shelf.write(k, {name: array[part] for name, array in arrays.items()})
        return part.stop - part.start

    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        waiting: set[Future[int]] = set()
        try:
            while todo or waiting:
                # A few ahead only, so that a stop is soon heard.
                while todo and len(waiting) < 2 * workers:
                    waiting.add(pool.submit(work, todo.pop(0)))
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                done += sum(future.result() for future in ready)
                if progress is not None:
                    progress(done)
        finally:
            stop.set()
    seconds = time.perf_counter() - began
    return Verdicts(rules, chosen.name, numbers, verdicts, nodes, lengths, node_limit, take_back, workers, seconds)


class _Shelf:
    """A run on disk: ``run.json`` says which, and there is a file ``000000.npz`` for each chunk that is whole."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "run.json"
        if not path.exists():
            if any(folder.glob("*.npz")):
                raise ValueError(f"{folder} holds verdicts but no run.json that says of what: use another folder")
            write_whole(path, (json.dumps(settings, indent=2) + "\n").encode())
            return
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
            other = [key for key in settings if found[key] != settings[key]]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no run of the solver ({error}): use another folder") from error
        if other:
            key = other[0]
            raise ValueError(f"{path} is of a run with {key} {found[key]!r}, not {settings[key]!r}: use another folder")

    def read(self, k: int, count: int) -> dict[str, NDArray[Any]] | None:
        path = self._folder / f"{k:06d}.npz"
        if not path.exists():
            return None
        try:
            # From memory: NumPy leaves a file open that is no archive.
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
                found = {name: file[name] for name in ("verdicts", "nodes", "lengths")}
            if (
                any(array.shape != (count,) for array in found.values())
                or not np.isin(found["verdicts"], list(Verdict)).all()
            ):
                raise ValueError("it does not fit the run")
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is damaged ({error}): remove it, and it is made again") from error
        return found

    def write(self, k: int, arrays: dict[str, NDArray[Any]]) -> None:
        data = io.BytesIO()
        np.savez(data, **arrays)  # pyright: ignore[reportArgumentType]
        write_whole(self._folder / f"{k:06d}.npz", data.getvalue())
