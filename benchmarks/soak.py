"""A long run of masked random play: `python benchmarks/soak.py [STEPS]` (default 10,000,000 steps a rule set).

For every rule set a batch of 1024 games makes the steps, and a single environment a hundredth of them. Checks
at every step that no legal action is refused and no mask is empty, at every end that the game was won, dead or
cut off, and at the end that memory has not grown. Prints a line a run; exits with 1 if memory grew by more than 4 MiB.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from rusol_env import VARIANTS, RussianSolitaireEnv, RussianSolitaireVectorEnv, sample_legal

BATCH = 1024
MOST_GROWTH = 4096


def memory() -> int:
    """KiB that this process has held at the most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def play_single(rules: str, ends: dict[str, int]) -> Iterator[int]:
    """Steps made, one at a time."""
    env = RussianSolitaireEnv(rules, observation="board")
    streams = np.array([1], np.uint64)
    _, info = env.reset(seed=1)
    while True:
        action = int(sample_legal(info["action_mask"][None], streams)[0])
        _, _, terminated, truncated, info = env.step(action)
        if "rejection" in info or not info["action_mask"].any():
            raise SystemExit(f"{rules}, {info['code']}: action {action} gave {info}")
        if terminated or truncated:
            if terminated and truncated:
                raise SystemExit(f"{rules}, {info['code']}: terminated and truncated at once")
            ends["cut off" if truncated else "won" if info["is_success"] else "dead end"] += 1
            _, info = env.reset()
        yield 1


def play_batch(rules: str, ends: dict[str, int]) -> Iterator[int]:
    """Steps made, a batch at a time."""
    env = RussianSolitaireVectorEnv(BATCH, rules, observation="board")
    streams = np.arange(BATCH, dtype=np.uint64)
    infos: dict[str, Any]
    env.reset(seed=1)
    while True:
        _, _, terminations, truncations, infos = env.step(env.sample_legal(streams))
        if "rejection" in infos or not infos["action_mask"].any(axis=1).all():
            raise SystemExit(f"{rules}: a legal action was refused, or a mask is empty")
        if (terminations & truncations).any():
            raise SystemExit(f"{rules}: terminated and truncated at once")
        won = terminations & infos["is_success"]
        ends["cut off"] += int(truncations.sum())
        ends["won"] += int(won.sum())
        ends["dead end"] += int((terminations & ~won).sum())
        yield BATCH


def main(steps: int) -> int:
    worst = 0
    for rules in VARIANTS:
        for what, play, most in (("single", play_single, steps // 100), ("batch", play_batch, steps)):
            ends = {"won": 0, "dead end": 0, "cut off": 0}
            made, before = 0, 0
            started = time.perf_counter()
            for more in play(rules, ends):
                made += more
                if before == 0 and made >= most // 10:
                    before = memory()
                if made >= most:
                    break
            grown = memory() - before
            worst = max(worst, grown)
            seconds = time.perf_counter() - started
            print(
                f"{rules}, {what}: {made:,} steps in {seconds:.0f} s, {ends}, "
                f"memory {memory():,} KiB, {grown} KiB more than after the first tenth",
                flush=True,
            )
    return int(worst > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000))
