"""How well the planner plays: `python benchmarks/planner.py` writes benchmarks/results/planner.json.

Classic on the first 1000 evaluation deals that can be won, beside greedy on the same; Relaxed and Yukon on a few deals
of first-N. The times are of one core, compilation excluded.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from rusol_env import PlannerPolicy, Solver, Verdict, evaluate
from rusol_env.evaluate import versions, wilson_interval
from rusol_env.files import write_whole

RESULT = Path(__file__).parent / "results" / "planner.json"
# rules, samples, deals
RUNS = (("classic", 50, 1000), ("yukon", 8, 40), ("relaxed", 4, 40))


def winnable(count: int) -> list[int]:
    verdicts, _, _ = Solver("classic").solve_deals(np.arange(20 * count))
    return np.flatnonzero(verdicts == Verdict.WINNABLE)[:count].tolist()


def measure(rules: str, samples: int, count: int) -> dict[str, Any]:
    deals = winnable(count) if rules == "classic" else list(range(count))
    planner = PlannerPolicy(rules=rules, samples=samples)
    began = time.process_time()
    result = evaluate(planner, rules, deals)
    seconds = time.process_time() - began
    greedy = evaluate("greedy", rules, deals)
    return {
        "rules": rules,
        "deals": f"the first {count}" + (" that can be won" if rules == "classic" else ""),
        "samples": samples,
        "wins": result.wins,
        "win_rate": result.wins / count,
        "win_rate_ci95": list(wilson_interval(result.wins, count)),
        "cpu_seconds_a_game": round(seconds / count, 3),
        "greedy_wins": greedy.wins,
        "only_planner": int((result.won & ~greedy.won).sum()),
        "only_greedy": int((greedy.won & ~result.won).sum()),
    }


if __name__ == "__main__":
    rows = [measure(*run) for run in RUNS]
    for row in rows:
        print(row)
    write_whole(RESULT, (json.dumps({"rows": rows, "versions": versions()}, indent=2) + "\n").encode())
