"""Speed, as ratios measured in one run: `python benchmarks/speed.py` writes benchmarks/results/speed.json.

Every row compares ours with something else, both timed in turn, five times; the row gives the medians of both
and the median of the ratios. Compilation is never timed. `rusol bench` shows all ways to step in one table.

- engine: a kernel that plays random games (deal, legal moves, mask, apply; one game at a time)
  against benchmarks/yardstick.c doing the same, one thread (needs gcc; skipped by name without).
- native: the vector environment, actions from its `sample_legal`, against the yardstick with as many games and
  observations like "board", against Gymnasium's SyncVectorEnv, and against itself with other options. The
  yardstick writes into the same arrays at every step, as `copy=False` does, and makes no infos.
- env: random legal play through `gymnasium.make` against CartPole-v1 through it, both with the wrappers that make()
  adds. Legal actions come from `sample_legal`, or, in the rows that say so, from Gymnasium's
  `action_space.sample(mask=...)`, which costs more than the step.

Then, in fresh processes, start-up times and the memory of 8192 games; and the share of a MaskablePPO rollout's
time that is spent in the environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from rusol_env import VARIANTS, engine
from rusol_env._jit import int64, kernel
from rusol_env.bench import LEARNERS, Way, cartpole, gymnasiums, machine, native, rollout, scalar, timed
from rusol_env.deals import Split, draw_deal, next_below
from rusol_env.env import DEFAULT_MAX_STEPS
from rusol_env.files import write_whole

HERE = Path(__file__).parent
ROUNDS = 5
SECONDS = 0.5
ENGINE_STEPS = 100_000
BATCH = 1024


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


def engine_way(rules: str) -> Way:
    row = engine.new_rows(1, VARIANTS[rules])[0]
    streams = np.array([1], np.uint64)
    actions, mask = np.zeros(engine.MAX_LEGAL, np.int16), np.zeros(engine.NUM_ACTIONS, np.int8)
    return timed(lambda: play_games(row, streams, actions, mask, ENGINE_STEPS), ENGINE_STEPS)


def yardstick(program: Path, rules: str, envs: int, *, observe: bool) -> Way:
    def way(seconds: float) -> float:
        # It is told a number of steps; most machines make a few millions a second.
        steps = str(int(4_000_000 * seconds / envs))
        command = [str(program), str(int(rules == "relaxed")), str(envs), steps, str(int(observe))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout.split("M steps/s")[0].split()[-1]) * 1e6

    return way


def compare(what: str, ours: Way, other: str, theirs: Way) -> dict[str, Any]:
    pairs = [(ours(SECONDS), theirs(SECONDS)) for _ in range(ROUNDS)]
    fast, slow = (median(values) for values in zip(*pairs, strict=True))
    ratios = sorted(a / b for a, b in pairs)
    print(f"{what}: {median(ratios):.2f} of {other}", flush=True)
    return {
        "what": what,
        "against": other,
        "steps_per_second": round(fast),
        "against_steps_per_second": round(slow),
        "ratio": round(median(ratios), 3),
        "ratio_range": [round(ratios[0], 3), round(ratios[-1], 3)],
    }


def against_yardstick(program: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for rules in ("classic", "relaxed"):
        theirs = yardstick(program, rules, 1, observe=False)
        rows.append(compare(f"engine, {rules}", engine_way(rules), "yardstick.c", theirs))
    for rules in ("classic", "relaxed"):
        for copy in (False, True):
            ours = native(VARIANTS[rules], "board", BATCH, copy=copy)
            theirs = yardstick(program, rules, BATCH, observe=True)
            rows.append(compare(f"native, {rules}, board, {BATCH} games, copy={copy}", ours, "yardstick.c", theirs))
    return rows


def against_itself_and_gymnasium() -> list[dict[str, Any]]:
    classic = VARIANTS["classic"]
    rows: list[dict[str, Any]] = []
    for copy in (False, True):
        board, cards = (native(classic, kind, BATCH, copy=copy) for kind in ("board", "cards"))
        rows.append(compare(f"native, cards, {BATCH} games, copy={copy}", cards, "board", board))
    for kind in ("board", "cards"):
        for envs in (BATCH, 8 * BATCH, 32 * BATCH):
            one, two = (native(classic, kind, envs, copy=False, threads=threads) for threads in (1, 2))
            rows.append(compare(f"native, {kind}, {envs} games, 2 threads", two, "1 thread", one))
    for kind in ("board", "cards"):
        theirs = gymnasiums(SyncVectorEnv, classic, kind, BATCH)
        rows.append(compare(f"native, {kind}, {BATCH} games", native(classic, kind, BATCH), "SyncVectorEnv", theirs))
    theirs = cartpole()
    for rules in ("classic", "relaxed"):
        for kind in ("cards", "board"):
            for by_space in (False, True):
                what = f"env, {rules}, {kind}, {'space.sample' if by_space else 'sample_legal'}"
                rows.append(compare(what, scalar(VARIANTS[rules], kind, by_space=by_space), "CartPole-v1", theirs))
    return rows


def memory(observation: str) -> float:
    """MiB that 8192 games add to a process that has imported the package, at their largest, over 30 steps (Linux)."""
    script = (
        "import numpy as np, rusol_env\n"
        # Not getrusage: a child begins with the largest size of its parent.
        "used = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
        "before = used()\n"
        f"env = rusol_env.RussianSolitaireVectorEnv(8192, observation={observation!r})\n"
        "env.reset(seed=0)\n"
        "streams = np.arange(8192, dtype=np.uint64)\n"
        "for _ in range(30):\n"
        "    result = env.step(env.sample_legal(streams))\n"
        "print((used() - before) / 1024)\n"
    )
    # The first run may compile, which takes memory of its own.
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in "ab"]
    return float(runs[-1].stdout)


def env_shares() -> dict[str, float]:
    found: dict[str, float] = {}
    for kind in ("cards", "board"):
        shares: list[float] = []
        try:
            way = rollout(VARIANTS["classic"], kind, LEARNERS, shares)
        except ImportError as error:
            print(f"rollouts skipped: {error}")
            return {}
        for _ in range(ROUNDS):
            way(SECONDS)
        found[kind] = round(median(shares), 4)
    return found


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
            print("rows against the yardstick skipped: there is no gcc to compile it with")
        else:
            source = str(HERE / "yardstick.c")
            subprocess.run([compiler, "-O3", "-march=native", source, "-o", str(program)], check=True)
            rows += against_yardstick(program)
        rows += against_itself_and_gymnasium()
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
    document = {
        "rows": rows,
        "seconds": {what: round(value, 2) for what, value in seconds.items()},
        "memory_of_8192_games_mib": {
            kind: round(memory(kind)) for kind in ("cards", "board") if Path("/proc/self/status").exists()
        },
        "env_share_of_rollout": env_shares(),
        "machine": machine(),
    }
    print(json.dumps({key: value for key, value in document.items() if key != "rows"}, indent=2))
    out = HERE / "results" / "speed.json"
    out.parent.mkdir(exist_ok=True)
    write_whole(out, (json.dumps(document, indent=2) + "\n").encode())
    print(f"written to {out.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
