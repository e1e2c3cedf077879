"""`rusol bench`: steps a second of every way to step, and the solver's deals a second, all timed in turn in one run.

A *way* is a function that steps for about so many seconds and returns steps a second; making one also
compiles what it needs. Legal actions are drawn at random by the fastest means that each has, and that is timed too.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from rich.box import SIMPLE
from rich.table import Table

from rusol_env.deals import check_whole, suite
from rusol_env.env import RussianSolitaireEnv
from rusol_env.evaluate import versions
from rusol_env.observe import Observation
from rusol_env.policies import sample_legal
from rusol_env.rules import CLASSIC, Rules, rules_named
from rusol_env.solver import Solver
from rusol_env.vector import RussianSolitaireVectorEnv

Way = Callable[[float], float]

SIZES: Final = (1, 64, 1024, 8192)
# Processes of AsyncVectorEnv, and games of the learner that stands for all learners.
WORKERS: Final = 8
LEARNERS: Final = 256
ENV_ID: Final = "rusol_env:rusol_env/RussianSolitaire-v0"


def timed(step: Callable[[], object], steps: int) -> Way:
    """The way that calls `step`, which makes so many steps; called once now, so that it is compiled."""
    step()
    # The clock takes a hundredth of the time of a single step.
    calls = max(1, 64 // steps)

    def way(seconds: float) -> float:
        done = 0
        started = time.perf_counter()
        while True:
            for _ in range(calls):
                step()
            done += calls * steps
            passed = time.perf_counter() - started
            if passed >= seconds:
                return done / passed

    return way


def single(env_id: str, pick: Callable[[Any, dict[str, Any]], Any], **options: Any) -> Way:
    """One environment through `gymnasium.make`, with the wrappers that it adds; `pick` chooses from space and info."""
    env = gymnasium.make(env_id, **options)
    env.action_space.seed(1)
    _, info = env.reset(seed=1)

    def step() -> None:
        nonlocal info
        _, _, terminated, truncated, info = env.step(pick(env.action_space, info))
        if terminated or truncated:
            _, info = env.reset()

    return timed(step, 1)


def scalar(rules: Rules, observation: str, *, by_space: bool = False) -> Way:
    """One game; actions from `sample_legal`, or `by_space` from Gymnasium's ``space.sample(mask=…)``."""
    streams = np.array([1], np.uint64)
    pick: Callable[[Any, dict[str, Any]], Any] = lambda _, info: sample_legal(info["action_mask"][None], streams)[0]  # noqa: E731
    if by_space:
        pick = lambda space, info: space.sample(mask=info["action_mask"])  # noqa: E731
    return single(ENV_ID, pick, rules=rules, observation=observation)


def cartpole() -> Way:
    """CartPole through `gymnasium.make`."""
    return single("CartPole-v1", lambda space, _: space.sample())


def native(rules: Rules, observation: str, envs: int, **options: Any) -> Way:
    """The native vector environment; actions from its `sample_legal`."""
    env = RussianSolitaireVectorEnv(envs, rules, observation=observation, **options)
    streams = np.arange(envs, dtype=np.uint64)
    env.reset(seed=1)
    return timed(lambda: env.step(env.sample_legal(streams)), envs)


def gymnasiums(make: Callable[..., Any], rules: Rules, observation: str, envs: int) -> Way:
    """Gymnasium's own vector environment, synchronous or asynchronous, of single games."""
    env = make([partial(RussianSolitaireEnv, rules, observation=observation)] * envs)
    streams = np.arange(envs, dtype=np.uint64)
    _, infos = env.reset(seed=1)

    def step() -> None:
        nonlocal infos
        *_, infos = env.step(sample_legal(infos["action_mask"], streams))

    return timed(step, envs)


def adapter(rules: Rules, observation: str, envs: int) -> Way:
    """`SB3VecEnv` alone.

    Raises:
        ImportError: Stable-Baselines3 is not installed.
    """
    env = import_module("rusol_env.sb3").SB3VecEnv(envs, rules, seed=1, observation=observation)
    streams = np.arange(envs, dtype=np.uint64)
    env.reset()
    return timed(lambda: env.step(env.games.sample_legal(streams)), envs)


def rollout(rules: Rules, observation: str, envs: int, shares: list[float]) -> Way:
    """`SB3VecEnv` in rollouts of a MaskablePPO with an MLP of 256 x 256 on the CPU; learning is not counted.

    Each call adds to `shares` the share of its time that was spent in the environment, masks included.

    Raises:
        ImportError: Stable-Baselines3 or sb3-contrib is not installed.
    """
    module, contrib = import_module("rusol_env.sb3"), import_module("sb3_contrib")
    callbacks = import_module("stable_baselines3.common.callbacks")
    spent = {"env": 0.0, "rollout": 0.0}
    length = 4

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            result = call(*arguments, **options)
            spent["env"] += time.perf_counter() - started
            return result

        return counting

    class Watch(callbacks.BaseCallback):
        started = 0.0

        def _on_rollout_start(self) -> None:
            self.started = time.perf_counter()

        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            spent["rollout"] += time.perf_counter() - self.started

    env = module.SB3VecEnv(envs, rules, observation=observation)
    # How the learner steps and how it asks for masks.
    env.step, env.env_method = counted(env.step), counted(env.env_method)
    model = contrib.MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=length,
        n_epochs=1,
        batch_size=length * envs,
        policy_kwargs={"net_arch": [256, 256]},
        seed=0,
        device="cpu",
    )

    def way(seconds: float) -> float:
        spent.update(env=0.0, rollout=0.0)
        steps = 0
        while spent["rollout"] < seconds:
            model.learn(length * envs, callback=Watch(), reset_num_timesteps=False)
            steps += length * envs
        shares.append(spent["env"] / spent["rollout"])
        return steps / spent["rollout"]

    way(0.001)
    shares.clear()
    return way


def klondike() -> Way:
    """OpenSpiel's Klondike, a state at a time; dealing a card is no step.

    Raises:
        ImportError: OpenSpiel is not installed.
    """
    pyspiel = import_module("pyspiel")
    game = pyspiel.load_game("solitaire")
    chance = np.random.default_rng(1)
    state = game.new_initial_state()

    def step() -> None:
        nonlocal state
        while state.is_chance_node():
            outcomes = state.chance_outcomes()
            state.apply_action(outcomes[chance.integers(len(outcomes))][0])
        if state.is_terminal():
            state = game.new_initial_state()
            return
        legal = state.legal_actions()
        state.apply_action(legal[chance.integers(len(legal))])
        state.observation_tensor(0)

    return timed(step, 1)


def solver(rules: Rules) -> Way:
    """Deals a second that the exact solver settles, of first-1000 in turn."""
    numbers = suite("first-1000").numbers
    solver_, at, piece = Solver(rules), 0, 10

    def step() -> None:
        nonlocal at
        solver_.solve_deals(np.array(numbers[at : at + piece], np.int64))
        at = (at + piece) % len(numbers)

    return timed(step, piece)


@dataclass(frozen=True, slots=True)
class _Entry:
    what: str
    envs: int
    observation: str | None
    threads: int
    make: Callable[[], Way]
    # Shares of time spent in the environment, which some ways note.
    shares: list[float] | None = None


def _entries(rules: Rules, sizes: tuple[int, ...]) -> Iterator[_Entry]:
    cores = os.cpu_count() or 1
    largest = max(size for size in sizes if size <= 1024)
    kinds = [kind.value for kind in Observation]
    # Processes before threads: a fork should find none. PyTorch last: its threads stay busy for a while.
    for seen in kinds:
        yield _Entry("AsyncVectorEnv", WORKERS, seen, 1, partial(gymnasiums, AsyncVectorEnv, rules, seen, WORKERS))
    for seen in kinds:
        yield _Entry("single, gymnasium.make", 1, seen, 1, partial(scalar, rules, seen))
        yield _Entry("SyncVectorEnv", largest, seen, 1, partial(gymnasiums, SyncVectorEnv, rules, seen, largest))
        for envs in sizes:
            for threads in sorted({1, min(cores, envs)}):
                yield _Entry("native", envs, seen, threads, partial(native, rules, seen, envs, threads=threads))
            yield _Entry("native, copy=False", envs, seen, 1, partial(native, rules, seen, envs, copy=False))
        yield _Entry("SB3VecEnv", LEARNERS, seen, 1, partial(adapter, rules, seen, LEARNERS))
    yield _Entry("CartPole-v1, gymnasium.make", 1, None, 1, cartpole)
    yield _Entry("OpenSpiel, Klondike", 1, None, 1, klondike)
    yield _Entry("solver, deals a second", 1, None, 1, partial(solver, rules))
    for seen in kinds:
        shares: list[float] = []
        what = "MaskablePPO rollout"
        yield _Entry(what, LEARNERS, seen, 1, partial(rollout, rules, seen, LEARNERS, shares), shares)


def machine() -> dict[str, Any]:
    """What the figures depend on: processor, cores and versions."""
    return {"processor": _processor(), "cores": os.cpu_count(), **versions()}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - of Linux only
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def bench(
    rules: str | Rules = CLASSIC,
    *,
    seconds: float = 0.3,
    rounds: int = 5,
    sizes: tuple[int, ...] = SIZES,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Time every way to step, each for `seconds` in each of so many `rounds`, all in turn.

    Args:
        rules: the rule set or its name.
        seconds: how long each way steps in a round.
        rounds: the medians are over these.
        sizes: how many games the native vector environment has; at least one is at most 1024.
        progress: called with the name of what is made or timed next.

    Returns:
        ``rows`` (``what``, ``envs``, ``observation``, ``threads``, ``steps_per_second``, its ``range`` over the rounds,
        and ``env_share`` where it is known), ``skipped`` (``what``, ``why``), ``machine`` and the settings.

    Raises:
        ValueError: unknown rules, or a time or number that is not positive.
    """
    rules = rules_named(rules)
    rounds = check_whole("rounds", rounds, 1)
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds is {seconds!r}: it must be a number above 0")
    ways: list[tuple[_Entry, Way, list[float]]] = []
    skipped: list[dict[str, str]] = []
    for entry in _entries(rules, sizes):
        if progress is not None:
            progress(f"making {entry.what}")
        try:
            ways.append((entry, entry.make(), []))
        except ImportError as error:
            skipped.append({"what": entry.what, "why": str(error)})
    for number in range(rounds):
        for entry, way, speeds in ways:
            if progress is not None:
                progress(f"round {number + 1} of {rounds}: {entry.what}")
            speeds.append(way(seconds))
    rows: list[dict[str, Any]] = []
    for entry, _, speeds in ways:
        row: dict[str, Any] = {
            "what": entry.what,
            "envs": entry.envs,
            "observation": entry.observation,
            "threads": entry.threads,
            "steps_per_second": round(median(speeds)),
            "range": [round(min(speeds)), round(max(speeds))],
        }
        if entry.shares:
            row["env_share"] = round(median(entry.shares), 4)
        rows.append(row)
    return {
        "rows": rows,
        "skipped": skipped,
        "rules": rules.name,
        "seconds": seconds,
        "rounds": rounds,
        "machine": machine(),
    }


def table(document: dict[str, Any]) -> Table:
    """What `bench` returned as a table for people."""
    facts = document["machine"]
    title = f"steps a second, {document['rules']}: {facts['processor']}, {facts['cores']} cores, Numba {facts['numba']}"
    made = Table(title=title, title_justify="left", box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True)
    for heading in ("what", "envs", "observation", "threads", "steps/s", "in the env"):
        made.add_column(heading, justify="left" if heading in ("what", "observation") else "right", no_wrap=True)
    for row in document["rows"]:
        made.add_row(
            row["what"],
            f"{row['envs']:,}",
            row["observation"] or "",
            str(row["threads"]),
            f"{row['steps_per_second']:,}",
            f"{row['env_share']:.1%}" if "env_share" in row else "",
        )
    return made
