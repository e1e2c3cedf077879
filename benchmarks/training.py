"""How fast MaskablePPO trains: `python benchmarks/training.py` writes benchmarks/results/training.json.

Each configuration trains on this machine's cores, as configured but for its evaluations: environment steps a second of
whole updates (rollout and learning), the median of three turns, which the configurations take in turn.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from agents.config import read_config
from agents.train import make_env, make_model
from rusol_env.evaluate import versions
from rusol_env.files import write_whole

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "training.json"
NAMES = ("ppo-mlp-classic", "ppo-classic", "ppo-mlp-relaxed", "ppo-relaxed")
TURNS = 3
# Updates in a turn.
UPDATES = 2


def measure() -> list[dict[str, Any]]:
    configs = {name: read_config(ROOT / "configs" / f"{name}.yaml") for name in NAMES}
    models = {name: make_model(config, make_env(config, config.seed)) for name, config in configs.items()}
    speeds: dict[str, list[float]] = {name: [] for name in NAMES}
    for turn in range(TURNS + 1):
        for name, model in models.items():
            torch.set_num_threads(configs[name].threads)
            steps = UPDATES * model.n_steps * model.n_envs
            began = time.perf_counter()
            model.learn(steps, reset_num_timesteps=False)
            # The first turn compiles and fills caches.
            if turn:
                speeds[name].append(steps / (time.perf_counter() - began))
    return [
        {"config": name, "threads": configs[name].threads, "steps_per_second": round(statistics.median(found))}
        for name, found in speeds.items()
    ]


if __name__ == "__main__":
    rows = measure()
    for row in rows:
        print(row)
    document = {"rows": rows, "cores": os.cpu_count(), "versions": versions() | {"torch": torch.__version__}}
    write_whole(RESULT, (json.dumps(document, indent=2) + "\n").encode())
