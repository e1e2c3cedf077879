"""The solver against the verdicts of an independent one, and its speed: `python benchmarks/solver.py` (five minutes).

Each deal is solved by `Solver.solve` on one thread, the solution made short and played again included; medians are
over the deals.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rusol_env import Arrangement, Solver, read_deals, suite
from rusol_env.evaluate import versions
from rusol_env.files import write_whole

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "solver.json"
CASES = HERE.parent / "tests" / "data"


def measure(
    what: str, rules: str, positions: list[int] | list[Arrangement], expected: list[str] | None
) -> dict[str, Any]:
    solver = Solver(rules)
    found = [solver.solve(position) for position in positions]
    seconds = np.array([solution.seconds for solution in found])
    verdicts = [solution.verdict.text for solution in found]
    row = {
        "what": what,
        "rules": rules,
        "deals": len(found),
        "winnable": verdicts.count("winnable"),
        "unwinnable": verdicts.count("unwinnable"),
        "undecided": verdicts.count("undecided"),
        "agree": None if expected is None else sum(a == b for a, b in zip(verdicts, expected, strict=True)),
        "mean_ms": 1000 * float(seconds.mean()),
        "median_ms": 1000 * float(np.median(seconds)),
        "most_ms": 1000 * float(seconds.max()),
    }
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    rows: list[dict[str, Any]] = []
    for rules in ("classic", "relaxed"):
        records = read_deals(CASES / f"{rules}_verdicts.jsonl")
        expected = [str(record.fields["verdict"]) for record in records]
        rows.append(measure("cases", rules, [record.arrangement for record in records], expected))
    for rules in ("classic", "relaxed", "yukon"):
        rows.append(measure("first-10000", rules, list(suite("first-10000")), None))
    write_whole(RESULTS, (json.dumps({"rows": rows, "versions": versions()}, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
