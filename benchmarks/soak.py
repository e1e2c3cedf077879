"""A long run of masked random play: `python benchmarks/soak.py [STEPS]` (default 1,000,000 steps a variant).

Checks at every step that no legal action is refused and no mask is empty, at every end that the
game was won, dead or cut off, and at the end that memory has not grown. Prints a line a variant.
"""

from __future__ import annotations

import resource
import sys

import numpy as np

from rusol_env import VARIANTS, RussianSolitaireEnv, sample_legal


def main(steps: int) -> None:
    for rules in VARIANTS:
        env = RussianSolitaireEnv(rules, observation="board")
        streams = np.array([1], np.uint64)
        _, info = env.reset(seed=1)
        ends = {"won": 0, "dead end": 0, "cut off": 0}
        memory = 0
        for step in range(steps):
            if step == steps // 10:
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            action = int(sample_legal(info["action_mask"][None], streams)[0])
            _, _, terminated, truncated, info = env.step(action)
            if "rejection" in info or not info["action_mask"].any():
                raise SystemExit(f"{rules}, {info['code']}: action {action} gave {info}")
            if terminated or truncated:
                if terminated and truncated:
                    raise SystemExit(f"{rules}, {info['code']}: terminated and truncated at once")
                ends["cut off" if truncated else "won" if info["is_success"] else "dead end"] += 1
                _, info = env.reset()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        print(f"{rules}: {steps:,} steps, {ends}, memory grew by {grown} KiB after the first tenth", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
