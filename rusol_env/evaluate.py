"""Evaluation: a policy on a fixed suite of deals, with intervals, and its results on disk."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env import engine
from rusol_env._jit import int64, kernel, load64
from rusol_env.deals import Suite, check_number, encode_code, next_word, suite
from rusol_env.engine import MAX_LEGAL, NUM_ACTIONS, SCORE, deal, is_won, new_rows
from rusol_env.env import DEFAULT_MAX_STEPS, option
from rusol_env.episode import Reward, fill_mask, try_action
from rusol_env.observe import Observation, encode_board, encode_cards, observation_space
from rusol_env.policies import Policy, policy_named
from rusol_env.rules import CLASSIC, Rules, rules_named

BATCH: Final = 256
FORMATS: Final = ("csv", "parquet")


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of
    the American Statistical Association 22 (1927).

    Raises:
        ValueError: there are no trials, or more successes than trials.
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} successes in {trials} trials make no proportion")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in ("rusol-env", "gymnasium", "numba", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a policy did on each deal of a suite. All arrays have one entry a deal, in the suite's order."""

    policy: str
    rules: Rules
    suite: str
    seed: int
    max_steps: int
    numbers: NDArray[np.int64]
    """int64 (N,): the deal numbers."""
    won: NDArray[np.bool_]
    """bool (N,)"""
    truncated: NDArray[np.bool_]
    """bool (N,): stopped after `max_steps`; a game neither won nor truncated ended without a legal move."""
    scores: NDArray[np.int64]
    """int64 (N,): the final score of the game."""
    steps: NDArray[np.int64]
    """int64 (N,): steps played, refused ones included."""
    seconds: float
    """Wall-clock time of the games, the compilation of kernels excluded."""

    @property
    def wins(self) -> int:
        """Games won."""
        return int(self.won.sum())

    def summary(self) -> dict[str, Any]:
        """The figures, ready for JSON: see DESIGN 7; `dead_ends` and `truncated` count the other games."""
        deals = len(self.numbers)
        spread = float(self.scores.std(ddof=1)) if deals > 1 else 0.0
        truncated = int(self.truncated.sum())
        return {
            "policy": self.policy,
            "rules": self.rules.name,
            "suite": self.suite,
            "deals": deals,
            "wins": self.wins,
            "win_rate": self.wins / deals,
            "win_rate_ci95": list(wilson_interval(self.wins, deals)),
            "winnable": None,
            "wins_of_winnable": None,
            "dead_ends": deals - self.wins - truncated,
            "truncated": truncated,
            "mean_score": float(self.scores.mean()),
            "mean_score_se": spread / sqrt(deals),
            "mean_steps": float(self.steps.mean()),
            "games_per_second": deals / self.seconds,
            "seconds": self.seconds,
            "seed": self.seed,
            "max_steps": self.max_steps,
            "take_back": False,
            "idle_moves": False,
            "versions": versions(),
        }

    def rows(self) -> dict[str, list[Any]]:
        """The per-deal table: ``code``, ``won``, ``score``, ``steps``, ``truncated``."""
        return {
            "code": [encode_code(number, self.rules) for number in self.numbers.tolist()],
            "won": self.won.tolist(),
            "score": self.scores.tolist(),
            "steps": self.steps.tolist(),
            "truncated": self.truncated.tolist(),
        }


@kernel
def _begin(
    rows: NDArray[np.int8],
    slots: NDArray[np.int64],
    numbers: NDArray[np.int64],
    legal: NDArray[np.int16],
    counts: NDArray[np.int64],
    masks: NDArray[np.int8],
) -> None:
    """Deal `numbers` (K,) in the places `slots` (K,) of the batch."""
    for k in range(slots.shape[0]):
        i = int64(slots[k])
        deal(rows[i], numbers[k])
        counts[i] = engine.legal(rows[i], False, False, legal[i])
        fill_mask(legal[i], counts[i], masks[i])


@kernel
def _step(
    rows: NDArray[np.int8],
    slots: NDArray[np.int64],
    actions: NDArray[np.int64],
    legal: NDArray[np.int16],
    counts: NDArray[np.int64],
    masks: NDArray[np.int8],
) -> None:
    """Play actions (N,) in the places `slots` (K,) of the batch."""
    for k in range(slots.shape[0]):
        i = int64(slots[k])
        try_action(rows[i], legal[i], counts[i], actions[i], False, False, Reward.SCORE, 0.0)
        counts[i] = engine.legal(rows[i], False, False, legal[i])
        fill_mask(legal[i], counts[i], masks[i])


@kernel
def _outcome(
    rows: NDArray[np.int8], slots: NDArray[np.int64], won: NDArray[np.bool_], scores: NDArray[np.int64]
) -> None:
    for k in range(slots.shape[0]):
        won[k] = is_won(rows[slots[k]])
        scores[k] = load64(rows[slots[k]], SCORE)


@kernel
def _encode_boards(rows: NDArray[np.int8], masks: NDArray[np.int8], out: NDArray[np.int8]) -> None:
    for i in range(rows.shape[0]):
        encode_board(rows[i], masks[i], False, out[i])


@kernel
def _encode_cards(rows: NDArray[np.int8], masks: NDArray[np.int8], out: NDArray[np.float32]) -> None:
    for i in range(rows.shape[0]):
        encode_cards(rows[i], masks[i], False, out[i])


@kernel
def _game_seeds(seed: NDArray[np.uint64], seeds: NDArray[np.uint64]) -> None:
    for i in range(seeds.shape[0]):
        seeds[i] = next_word(seed, 0)


def evaluate(
    policy: Policy | str,
    rules: str | Rules = CLASSIC,
    deals: Suite | Sequence[int] | int = 1000,
    *,
    seed: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Play each deal once with a policy, without taking cards back.

    The policy sees observations and masks only. Each game gets a seed of its own from `seed` and its
    place in the suite, so a game is played alike in ``first-100`` and in ``first-10000``.

    Args:
        policy: a `Policy`, or the name of one.
        rules: a rule set or its name.
        deals: a suite, a sequence of deal numbers, or N for ``first-N``.
        seed: what the policy's chance is drawn from, 0 to 2^64 - 1.
        max_steps: a game is stopped after so many steps.
        progress: called now and then with the number of games finished.

    Raises:
        ValueError: an argument is not valid, or the policy returned something that is no batch of actions.
    """
    rules = rules_named(rules)
    if not 0 <= seed < 2**64:
        raise ValueError(f"{seed!r} is not a seed: give a whole number from 0 to 2^64 - 1")
    if max_steps < 1:
        raise ValueError(f"max_steps is {max_steps}: it must be at least 1")
    if isinstance(policy, str):
        policy = policy_named(policy, seed)
    if isinstance(deals, int):
        deals = suite(f"first-{deals}")
    name = deals.name if isinstance(deals, Suite) else "custom"
    numbers = np.array([check_number(number) for number in deals], np.int64)
    if len(numbers) == 0:
        raise ValueError("there are no deals to play")
    kind = option("observation", policy.observation, Observation)

    total, batch = len(numbers), min(BATCH, len(numbers))
    seeds = np.empty(total, np.uint64)
    _game_seeds(np.array([seed], np.uint64), seeds)
    won, truncated = np.zeros(total, np.bool_), np.zeros(total, np.bool_)
    scores, steps = np.zeros(total, np.int64), np.zeros(total, np.int64)

    space = observation_space(kind, thoughtful=False)
    rows = new_rows(batch, rules)
    legal = np.zeros((batch, MAX_LEGAL), np.int16)
    counts = np.zeros(batch, np.int64)
    masks = np.ones((batch, NUM_ACTIONS), np.int8)
    encode: Callable[..., None] = _encode_cards if kind is Observation.CARDS else _encode_boards
    # Which game of the suite each place of the batch plays; -1: none any more.
    playing = np.full(batch, -1, np.int64)
    begun = 0

    def begin(free: NDArray[np.int64]) -> None:
        nonlocal begun
        slots = free[: total - begun]
        playing[free] = -1
        playing[slots] = np.arange(begun, begun + len(slots))
        begun += len(slots)
        _begin(rows, slots, numbers[playing[slots]], legal, counts, masks)
        policy.begin(slots, seeds[playing[slots]])

    # Compile before the clock starts.
    none = np.empty(0, np.int64)
    _begin(rows, none, none, legal, counts, masks)
    _step(rows, none, np.zeros(batch, np.int64), legal, counts, masks)
    _outcome(rows, none, won, scores)
    encode(rows[:0], masks[:0], np.empty((0, *space.shape), space.dtype))
    started = time.perf_counter()
    begin(np.arange(batch))
    while (active := np.flatnonzero(playing >= 0)).size:
        observations: NDArray[Any] = np.empty((batch, *space.shape), space.dtype)
        encode(rows, masks, observations)
        actions = _read_actions(policy, policy.act(observations, masks.copy()), batch)
        _step(rows, active, actions, legal, counts, masks)
        steps[playing[active]] += 1
        stuck = counts[active] == 0
        ended = active[stuck | (steps[playing[active]] >= max_steps)]
        if ended.size:
            games = playing[ended]
            ended_won, ended_scores = np.zeros(len(ended), np.bool_), np.zeros(len(ended), np.int64)
            _outcome(rows, ended, ended_won, ended_scores)
            won[games], scores[games], truncated[games] = ended_won, ended_scores, counts[ended] > 0
            # A place that plays nothing more shows a finished game.
            masks[ended] = 1
            begin(ended)
            if progress is not None:
                progress(begun - int((playing >= 0).sum()))
    seconds = time.perf_counter() - started
    return Evaluation(policy.name, rules, name, seed, max_steps, numbers, won, truncated, scores, steps, seconds)


def _read_actions(policy: Policy, actions: Any, batch: int) -> NDArray[np.int64]:
    actions = np.asarray(actions)
    if actions.shape != (batch,) or not np.issubdtype(actions.dtype, np.integer):
        raise ValueError(
            f"policy {policy.name!r} returned {actions.dtype} {actions.shape}: it must return whole numbers ({batch},)"
        )
    if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
        raise ValueError(f"policy {policy.name!r} returned an action outside 0 to {NUM_ACTIONS - 1}")
    return actions.astype(np.int64)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all: beside it, to the disk, then renamed.

    Raises:
        OSError: it cannot be written; what was at `path` is unchanged.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _table(rows: dict[str, list[Any]], kind: str) -> bytes:
    if kind == "csv":
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
        return text.getvalue().encode()
    try:
        arrow: Any = import_module("pyarrow")  # it ships no types
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError("Parquet needs the package pyarrow: pip install 'rusol-env[parquet]'") from error
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(rows), sink)
    return sink.getvalue().to_pybytes()


def result_paths(evaluation: Evaluation, folder: Path, kind: str = "csv") -> tuple[Path, Path]:
    """Where `save` writes: the per-deal table and the summary.

    Raises:
        ValueError: `kind` is neither ``"csv"`` nor ``"parquet"``.
    """
    if kind not in FORMATS:
        raise ValueError(f"unknown format {kind!r}: use one of {', '.join(FORMATS)}")
    stem = f"{evaluation.policy}-{evaluation.rules.name}-{evaluation.suite}-seed{evaluation.seed}"
    return folder / f"{stem}.{kind}", folder / f"{stem}.json"


def save(evaluation: Evaluation, folder: str | Path, kind: str = "csv", *, force: bool = False) -> tuple[Path, Path]:
    """Write the per-deal table and the summary (which names the table and its SHA-256) into `folder`.

    The summary is written last: where it is, the table is whole.

    Raises:
        FileExistsError: results of that name are there and `force` is off.
        ValueError: unknown `kind`.
        ImportError: Parquet is asked for and pyarrow is not installed.
        OSError: the folder cannot be written.
    """
    folder = Path(folder)
    table_path, summary_path = result_paths(evaluation, folder, kind)
    for path in (table_path, summary_path):
        if path.exists() and not force:
            raise FileExistsError(f"{path} is there already: choose another folder, or --force to replace it")
    table = _table(evaluation.rows(), kind)
    folder.mkdir(parents=True, exist_ok=True)
    summary = evaluation.summary() | {"table": table_path.name, "table_sha256": sha256(table).hexdigest()}
    summary_path.unlink(missing_ok=True)
    write_whole(table_path, table)
    write_whole(summary_path, (json.dumps(summary, indent=2) + "\n").encode())
    return table_path, summary_path
