"""Speed, as ratios measured in one run: `python benchmarks/speed.py` writes benchmarks/results/speed.json.

Every row compares ours with something else, both timed in turn, five times; the row gives the
medians and the ratio of the medians. Compilation is never timed.

- engine: a kernel that plays random games (deal, legal moves, mask, apply; one game at a time)
  against benchmarks/yardstick.c doing the same, one thread (needs gcc; skipped by name without).
- environment: random legal play through `gymnasium.make` against CartPole-v1 through it, both with
  the wrappers that make() adds. Legal actions come from `sample_legal`, or, in the rows that say so,
  from Gymnasium's `action_space.sample(mask=...)`, which costs more than the step.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import rusol_env
from rusol_env import engine
from rusol_env._jit import int64, kernel
from rusol_env.deals import Split, draw_deal, next_below
from rusol_env.env import DEFAULT_MAX_STEPS
from rusol_env.evaluate import versions, write_whole

HERE = Path(__file__).parent
ROUNDS = 5
ENGINE_STEPS = 5_000_000
ENV_STEPS = 30_000


@kernel
def play_games(
    row: NDArray[np.int8],
    streams: NDArray[np.uint64],
    actions: NDArray[np.int16],
    mask: NDArray[np.int8],
    steps: int,
) -> int:
    """`steps` random legal moves from deal to deal, the mask kept up; returns the games won."""
    won = 0
    played = 0
    engine.deal(row, draw_deal(streams, 0, Split.EVAL))
    count = engine.legal(row, False, False, actions)
    for _ in range(steps):
        chosen = int64(actions[next_below(streams, 0, count)]) if count > 0 else 0
        for i in range(count):
            mask[actions[i]] = 0
        if count == 0 or played >= DEFAULT_MAX_STEPS:
            won += engine.is_won(row)
            played = 0
            engine.deal(row, draw_deal(streams, 0, Split.EVAL))
        else:
            engine.apply(row, chosen)
            played += 1
        count = engine.legal(row, False, False, actions)
        for i in range(count):
            mask[actions[i]] = 1
    return won


def engine_speed(rules: str) -> Callable[[], float]:
    row = engine.new_rows(1, rusol_env.VARIANTS[rules])[0]
    streams = np.array([1], np.uint64)
    actions, mask = np.zeros(engine.MAX_LEGAL, np.int16), np.zeros(engine.NUM_ACTIONS, np.int8)
    play_games(row, streams, actions, mask, 1)

    def measure() -> float:
        started = time.perf_counter()
        play_games(row, streams, actions, mask, ENGINE_STEPS)
        return ENGINE_STEPS / (time.perf_counter() - started)

    return measure


def yardstick_speed(program: Path, rules: str) -> Callable[[], float]:
    command = [str(program), str(int(rules == "relaxed")), "1", str(ENGINE_STEPS), "0"]

    def measure() -> float:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout.split("M steps/s")[0].split()[-1]) * 1e6

    return measure


def env_speed(env_id: str, sampler: str, **options: Any) -> Callable[[], float]:
    env = gymnasium.make(env_id, **options)
    streams = np.array([1], np.uint64)
    space: Any = env.action_space
    space.seed(1)
    choose: dict[str, Callable[[dict[str, Any]], int]] = {
        "any": lambda _: space.sample(),
        "sample_legal": lambda info: int(rusol_env.sample_legal(info["action_mask"][None], streams)[0]),
        "space.sample": lambda info: space.sample(mask=info["action_mask"]),
    }
    pick = choose[sampler]
    _, info = env.reset(seed=1)
    env.step(pick(info))

    def measure() -> float:
        _, info = env.reset()
        started = time.perf_counter()
        for _ in range(ENV_STEPS):
            _, _, terminated, truncated, info = env.step(pick(info))
            if terminated or truncated:
                _, info = env.reset()
        return ENV_STEPS / (time.perf_counter() - started)

    return measure


def compare(what: str, ours: Callable[[], float], other: str, theirs: Callable[[], float]) -> dict[str, Any]:
    pairs = [(ours(), theirs()) for _ in range(ROUNDS)]
    fast, slow = (median(values) for values in zip(*pairs, strict=True))
    ratios = sorted(a / b for a, b in pairs)
    return {
        "what": what,
        "against": other,
        "steps_per_second": round(fast),
        "against_steps_per_second": round(slow),
        "ratio": round(fast / slow, 3),
        "ratio_range": [round(ratios[0], 3), round(ratios[-1], 3)],
    }


def start_up(script: str, cache: str) -> float:
    """Wall-clock seconds of a fresh Python process."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def main() -> None:
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "yardstick"
        compiler = shutil.which("gcc")
        if compiler is None:
            print("engine rows skipped: there is no gcc to compile the yardstick with")
        else:
            source = str(HERE / "yardstick.c")
            subprocess.run([compiler, "-O3", "-march=native", source, "-o", str(program)], check=True)
            for rules in ("classic", "relaxed"):
                rows.append(
                    compare(f"engine, {rules}", engine_speed(rules), "yardstick.c", yardstick_speed(program, rules))
                )
        cartpole = env_speed("CartPole-v1", "any")
        for rules in ("classic", "relaxed"):
            for observation in ("cards", "board"):
                for sampler in ("sample_legal", "space.sample"):
                    ours = env_speed(rusol_env.ENV_ID, sampler, rules=rules, observation=observation)
                    rows.append(compare(f"env, {rules}, {observation}, {sampler}", ours, "CartPole-v1", cartpole))
        use = (
            "import gymnasium, rusol_env\n"
            "for kind in ('cards', 'board'):\n"
            "    env = gymnasium.make(rusol_env.ENV_ID, observation=kind)\n"
            "    env.reset(seed=0); env.step(0)\n"
            "rusol_env.evaluate('greedy', 'classic', 10); rusol_env.evaluate('random', 'relaxed', 10)\n"
            "game = rusol_env.Game.from_number(0); game.play(game.legal_moves()[0]); game.undo()\n"
        )
        seconds = {
            "import": median(start_up("import rusol_env", folder) for _ in range(ROUNDS)),
            "first use, compiling": start_up(use, folder),
            "later use": median(start_up(use, folder) for _ in range(ROUNDS)),
        }
    table = Table("what", "steps/s", "against", "steps/s", "ratio")
    for row in rows:
        table.add_row(
            row["what"],
            f"{row['steps_per_second']:,}",
            row["against"],
            f"{row['against_steps_per_second']:,}",
            f"{row['ratio']:.2f} ({row['ratio_range'][0]:.2f} to {row['ratio_range'][1]:.2f})",
        )
    Console(width=110).print(table)
    for what, value in seconds.items():
        print(f"{what}: {value:.2f} s")
    document = {
        "rows": rows,
        "seconds": {what: round(value, 2) for what, value in seconds.items()},
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), **versions()},
    }
    out = HERE / "results" / "speed.json"
    out.parent.mkdir(exist_ok=True)
    write_whole(out, (json.dumps(document, indent=2) + "\n").encode())
    print(f"written to {out.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
