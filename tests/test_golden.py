"""Fixed seeds give fixed episodes: `tests/golden/episodes.txt`, which a person can read and diff.

The actions come from the test's own little generator over the sorted legal actions, so the file
pins seeds, deals, rules and scores, and no library's random numbers. `python tests/test_golden.py`
writes the file again; a change in it breaks every number that was ever published with a seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rusol_env import VARIANTS, RussianSolitaireEnv, decode_action

FILE = Path(__file__).parent / "golden" / "episodes.txt"
SEEDS = (0, 1, 2**64 - 1)


def episodes() -> str:
    lines = [
        "# rules, seed, reset, code, final score, won, then the moves played (cut at 30 steps).",
        "# Step i (from 0) plays the legal action with index (7 * i + 3) % n of the n in ascending order.",
        "# Made by: python tests/test_golden.py",
    ]
    for rules in VARIANTS:
        for seed in SEEDS:
            env = RussianSolitaireEnv(rules)
            for reset in range(3):
                _, info = env.reset(seed=seed if reset == 0 else None)
                moves: list[str] = []
                for i in range(30):
                    legal = np.flatnonzero(info["action_mask"]).tolist()
                    action = legal[(7 * i + 3) % len(legal)]
                    moves.append(decode_action(action).ascii)
                    _, _, terminated, _, info = env.step(action)
                    if terminated:
                        break
                head = f"{rules} {seed} {reset} {info['code']} {info['score']} {info['is_success']}"
                lines.append(f"{head}: {', '.join(moves)}")
    return "\n".join(lines) + "\n"


def test_fixed_seeds_give_fixed_episodes() -> None:
    assert episodes() == FILE.read_text(encoding="utf-8")


if __name__ == "__main__":
    FILE.write_text(episodes(), encoding="utf-8")
