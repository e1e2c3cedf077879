"""What masks and the network's structure are worth: `python benchmarks/ablation.py [NAME …]`.

Trains each configuration for the same number of steps and plays its last policy, which writes
benchmarks/results/training-NAME.json; a learning rate that falls does so within these steps.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.config import read_config
from agents.runs import read_rows
from agents.train import train
from rusol_env.evaluate import versions
from rusol_env.files import write_whole

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NAMES = (
    "ppo-classic",
    "ppo-mlp-classic",
    "ppo-unmasked-classic",
    "a2c-unmasked-classic",
    "dqn-unmasked-classic",
    "ppo-relaxed",
    "ppo-mlp-relaxed",
)
STEPS = 500_000


def run(name: str) -> None:
    """Train by the configuration of that name, and write what its last policy did."""
    changes = [f"steps={STEPS}", f"eval_every={STEPS}", f"checkpoint_every={STEPS}", "threads=1"]
    config = read_config(ROOT / "configs" / f"{name}.yaml", changes)
    with TemporaryDirectory() as folder:
        train(config, Path(folder))
        row = read_rows(Path(folder) / "evaluation.csv")[-1]
    row |= {"config": name, "rules": config.rules, "algorithm": config.algorithm, "network": config.network}
    path = RESULTS / f"training-{name}.json"
    write_whole(path, (json.dumps(row | {"versions": versions()}, indent=2) + "\n").encode())


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NAMES:
        run(chosen)
