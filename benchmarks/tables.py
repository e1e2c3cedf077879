"""The tables of the README, from the files in benchmarks/results: `python benchmarks/tables.py` writes them in.

`python benchmarks/tables.py --play` first plays the suites again, which takes a minute or two.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rusol_env import VARIANTS, evaluate, suite
from rusol_env.evaluate import write_whole

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
RESULTS = HERE / "results"
SUITE = "first-10000"
# The planner thinks for too long to play these.
POLICIES = ("random", "greedy")


def play() -> None:
    """Write the summary of every policy under every rule set."""
    RESULTS.mkdir(exist_ok=True)
    for policy in POLICIES:
        for rules in VARIANTS:
            summary = evaluate(policy, rules, suite(SUITE), seed=0).summary()
            path = RESULTS / f"{policy}-{rules}-{SUITE}.json"
            write_whole(path, (json.dumps(summary, indent=2) + "\n").encode())
            print(path.name, summary["win_rate"])


def load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return document


def results_table() -> str:
    lines = [
        "| policy | rules | wins of 10,000 | 95 % interval | of the winnable | mean score | mean steps |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for rules in VARIANTS:
        for policy in POLICIES:
            row = load(f"{policy}-{rules}-{SUITE}.json")
            low, high = row["win_rate_ci95"]
            share = f"{row['wins_of_winnable']:.1%} of {row['winnable']:,}"
            lines.append(
                f"| {policy} | {rules} | {row['wins']:,} ({row['win_rate']:.2%}) | {low:.2%} to {high:.2%} | {share} "
                f"| {row['mean_score']:.1f} ± {row['mean_score_se']:.1f} | {row['mean_steps']:.1f} |"
            )
    return "\n".join(lines)


def solver_table() -> str:
    document = load("solver.json")
    lines = [
        "| rules | deals | winnable | unwinnable | undecided | mean | median | most |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in document["rows"]:
        deals = row["what"]
        if row["agree"] is not None:
            deals = f"{row['deals']} cases of an independent solver, {row['agree']} alike"
        lines.append(
            f"| {row['rules']} | {deals} | {row['winnable']:,} | {row['unwinnable']:,} | {row['undecided']:,} "
            f"| {row['mean_ms']:.3f} ms | {row['median_ms']:.3f} ms | {row['most_ms']:,.0f} ms |"
        )
    return "\n".join(lines)


def speed_table() -> str:
    document = load("speed.json")
    lines = ["| what | steps/s | against | steps/s | ratio |", "| --- | ---: | --- | ---: | ---: |"]
    lines += [
        f"| {row['what']} | {row['steps_per_second']:,} | {row['against']} | {row['against_steps_per_second']:,} "
        f"| {row['ratio']:.2f} |"
        for row in document["rows"]
    ]
    times = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in document["seconds"].items())
    machine = document["machine"]
    lines += ["", f"Start-up: {times}. {machine['cores']} cores, Python {machine['python']}, Numba {machine['numba']}."]
    sizes = ", ".join(f"{size} MiB ({kind})" for kind, size in document["memory_of_8192_games_mib"].items())
    if sizes:
        lines += ["", f"Memory of 8192 games beyond the import, at the most: {sizes}."]
    if document["env_share_of_rollout"]:
        shares = ", ".join(f"{share:.1%} ({kind})" for kind, share in document["env_share_of_rollout"].items())
        lines += [
            "",
            "Share of a MaskablePPO rollout that is spent in the environment, 256 games, a 256 x 256 MLP on the "
            f"CPU: {shares}.",
        ]
    return "\n".join(lines)


def filled(text: str) -> str:
    """The README with its tables made anew."""
    for name, table in (("results", results_table()), ("solver", solver_table()), ("speed", speed_table())):
        pattern = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text, found = pattern.subn(lambda match, table=table: f"{match[1]}\n{table}\n\n{match[2]}", text)
        if found != 1:
            raise SystemExit(f"the README has {found} places for the table of {name}: it must have one")
    return text


if __name__ == "__main__":
    if "--play" in sys.argv[1:]:
        play()
    write_whole(README, filled(README.read_text(encoding="utf-8")).encode())
