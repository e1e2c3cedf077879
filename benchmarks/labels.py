"""Make rusol_env/labels.json again: `python benchmarks/labels.py [FOLDER]` (about half an hour on two cores).

FOLDER keeps what is solved, so that a run that was stopped goes on; by default build/labels.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rusol_env import VARIANTS, solve_many
from rusol_env.evaluate import versions
from rusol_env.files import write_whole
from rusol_env.labels import PATH, pack

# Deals, and the positions that are looked at before one is left undecided.
SIZES = {"classic": (200_000, 10_000_000), "relaxed": (10_000, 3_000_000), "yukon": (10_000, 1_500_000)}


def main(folder: Path) -> None:
    entries: dict[str, Any] = {}
    for rules, (deals, node_limit) in SIZES.items():
        found = solve_many(deals, rules, node_limit=node_limit, folder=folder / rules)
        entries[rules] = {
            "command": "python benchmarks/labels.py",
            "rusol-env": versions()["rusol-env"],
            "node_limit": node_limit,
            **pack(found.verdicts),
        }
        print(rules, {key: value for key, value in entries[rules].items() if key != "verdicts"}, found.seconds)
    assert list(entries) == list(VARIANTS)
    write_whole(PATH, (json.dumps({"format": 1, "rules": entries}, indent=1) + "\n").encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/labels"))
