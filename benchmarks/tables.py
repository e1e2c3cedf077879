"""The tables of the README, from the files in benchmarks/results: `python benchmarks/tables.py` writes them in; and
those of docs/leaderboard.md, from the games in leaderboard/; and those of other pages of docs/.

`python benchmarks/tables.py --play` first plays the suites again, which takes more than an hour; words after it, as in
``--play ppo planner-relaxed-first-100``, are the policies, or the result files, to play; all by default.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from ablation import NAMES as TRAINED_BY

from rusol_env import Evaluation, Policy, evaluate
from rusol_env.compare import mcnemar
from rusol_env.files import write_whole
from rusol_env.leaderboard import load as load_board
from rusol_env.leaderboard import markdown, standings
from rusol_env.models import policy_named

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
DOCS = HERE.parent / "docs"
LEADERBOARD = DOCS / "leaderboard.md"
RESULTS = HERE / "results"
BASELINE = "greedy"
RIVAL = "planner"
# policy, its options, rules, suite
Run = tuple[str, dict[str, int], str, str]
# The planner thinks for too long to play more of Relaxed and Yukon.
RUNS: list[Run] = [
    ("random", {}, "classic", "first-10000"),
    (BASELINE, {}, "classic", "first-10000"),
    ("ppo", {}, "classic", "first-10000"),
    ("distilled", {}, "classic", "first-10000"),
    (RIVAL, {"samples": 50}, "classic", "first-10000"),
    ("planner+", {}, "classic", "first-10000"),
    ("random", {}, "relaxed", "first-10000"),
    (BASELINE, {}, "relaxed", "first-10000"),
    ("ppo", {}, "relaxed", "first-10000"),
    ("distilled", {}, "relaxed", "first-10000"),
    ("planner+", {}, "relaxed", "first-10000"),
    (RIVAL, {"samples": 4}, "relaxed", "first-100"),
    ("random", {}, "yukon", "first-10000"),
    (BASELINE, {}, "yukon", "first-10000"),
    (RIVAL, {"samples": 8}, "yukon", "first-100"),
]
# The best of Classic on more of its winnable deals, each beside the rival: in docs/distillation.md.
BEST: list[Run] = [
    ("distilled", {}, "classic", "winnable-10000"),
    (RIVAL, {"samples": 50}, "classic", "winnable-10000"),
    ("planner+", {}, "classic", "winnable-10000"),
]
# What the README's first tables have: the runs of this suite, and these rows of the speed.
IN_SHORT = "first-10000"
PACE = (
    "native, classic, board, 1024 games, copy=False",
    "native, relaxed, board, 1024 games, copy=False",
    "native, board, 1024 games",
    "native, cards, 1024 games",
    "env, classic, cards, sample_legal",
)


def title_of(run: Run) -> str:
    """The name of a run's result, without its ending."""
    name, _, rules, deals = run
    return f"{name}-{rules}-{deals}"


def play(words: list[str]) -> None:
    """Write the summary of every run, or of those that the words name, beside others on the same deals."""
    RESULTS.mkdir(exist_ok=True)
    runs = RUNS + BEST
    known = {word for run in runs for word in (run[0], title_of(run))}
    if strange := [word for word in words if word not in known]:
        raise SystemExit(f"nothing here is called {', '.join(strange)}: name some of {', '.join(sorted(known))}")
    played: dict[str, Evaluation] = {}

    def found(run: Run) -> Evaluation:
        name, options, rules, deals = run
        title = title_of(run)
        if title not in played:
            policy: Policy = policy_named(name, rules=rules, **options)
            played[title] = evaluate(policy, rules, deals, seed=0)
        return played[title]

    for run in runs:
        name, _, rules, deals = run
        if words and name not in words and title_of(run) not in words:
            continue
        summary = found(run).summary()
        others: list[Run] = [(BASELINE, {}, rules, deals)]
        if run in BEST:
            others += [other for other in BEST if other[0] == RIVAL]
        for other in others:
            if other[0] != name:
                summary[f"against_{other[0]}"] = paired(found(run), found(other))
        path = RESULTS / f"{title_of(run)}.json"
        write_whole(path, (json.dumps(summary, indent=2) + "\n").encode())
        print(path.name, summary["win_rate"], flush=True)


def paired(one: Evaluation, other: Evaluation) -> dict[str, Any]:
    """The deals that only one of two policies won, and the p-value of McNemar's test."""
    only, only_other = int((one.won & ~other.won).sum()), int((other.won & ~one.won).sum())
    return {"only": only, "only_other": only_other, "p": mcnemar(only, only_other)}


def load(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return document


def results_table() -> str:
    lines = [
        "| policy | rules | deals | wins | 95 % interval | of the winnable (95 %) | only it / only greedy won "
        "| mean score | ms a move |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, options, rules, deals in RUNS:
        row = load(f"{name}-{rules}-{deals}.json")
        low, high = row["win_rate_ci95"]
        low_share, high_share = row["wins_of_winnable_ci95"]
        share = f"{row['wins_of_winnable']:.1%} of {row['winnable']:,} ({low_share:.1%} to {high_share:.1%})"
        pairs = "" if name == BASELINE else _pairs(**row["against_greedy"])
        lines.append(
            f"| {_title(name, options)} | {rules} | {row['deals']:,} | {row['wins']:,} ({row['win_rate']:.2%}) "
            f"| {low:.2%} to {high:.2%} | {share} | {pairs} "
            f"| {row['mean_score']:.1f} ± {row['mean_score_se']:.1f} | {_ms_a_move(row):.2g} |"
        )
    return "\n".join(lines)


def _pairs(only: int, only_other: int, p: float) -> str:
    return f"{only:,} / {only_other:,} (p {'< 0.0001' if p < 1e-4 else f'= {p:.2g}'})"


def _title(name: str, options: dict[str, int]) -> str:
    return " ".join([name, *(f"K = {value}" for value in options.values())])


def _ms_a_move(row: dict[str, Any]) -> float:
    return 1000 * row["seconds"] / (row["mean_steps"] * row["deals"])


def best_table() -> str:
    """The best policies of Classic on the winnable deals, each beside the planner on the same ones."""
    lines = [
        "| policy | deals | wins | 95 % interval | only it / only planner won | only it / only greedy won "
        "| ms a move |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for run in BEST:
        row = load(f"{title_of(run)}.json")
        low, high = row["win_rate_ci95"]
        against = _pairs(**row["against_planner"]) if "against_planner" in row else ""
        lines.append(
            f"| `{run[0]}`{_title('', run[1])} | {row['suite']} | {row['wins']:,} ({row['win_rate']:.2%}) "
            f"| {low:.2%} to {high:.2%} | {against} | {_pairs(**row['against_greedy'])} | {_ms_a_move(row):.2g} |"
        )
    return "\n".join(lines)


def labels_table() -> str:
    """What more labels were worth, from benchmarks/distillation.py."""
    lines = [
        "| labels | positions | updates | hours | deals | wins | 95 % interval |",
        "| ---: | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for row in load("distillation.json")["rows"]:
        lines.append(
            f"| {row['labels']:,} | {row['steps']:,} | {row['updates']:,} | {row['seconds'] / 3600:.2g} "
            f"| {row['suite']} | {row['win_rate']:.1%} | {row['win_rate_low']:.1%} to {row['win_rate_high']:.1%} |"
        )
    return "\n".join(lines)


def price_table() -> str:
    """What not seeing costs, from benchmarks/price.py."""
    document = load("price.json")
    lines = [
        f"| cards told, of {document['face_down']} | wins of {document['suite']} | 95 % interval "
        "| only told / only untold won | gain, percentage points (95 %) |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in document["rows"]:
        low, high = row["win_rate_ci95"]
        cells = [str(row["known"]), f"{row['wins']:,} ({row['win_rate']:.1%})", f"{low:.1%} to {high:.1%}", "", ""]
        if "gain" in row:
            least, most = row["gain_ci95"]
            cells[3] = f"{row['only_told']} / {row['only_untold']}"
            cells[4] = f"{100 * row['gain']:+.1f} ({100 * least:+.1f} to {100 * most:+.1f})"
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def wins_table() -> str:
    """The results in short: what was won of first-10000 under each rule set, beside what could be won at all."""
    played: dict[str, dict[str, dict[str, Any]]] = {}
    for name, _, rules, deals in RUNS:
        if deals == IN_SHORT:
            played.setdefault(name, {})[rules] = load(f"{name}-{rules}-{deals}.json")
    lines = [
        "| policy | Classic, of the winnable deals | Classic | Relaxed | Yukon |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, rows in played.items():
        shares = {rules: f"{row['win_rate']:.2%}" for rules, row in rows.items()}
        low, high = rows["classic"]["wins_of_winnable_ci95"]
        of_winnable = f"{rows['classic']['wins_of_winnable']:.1%} ({low:.1%} to {high:.1%})"
        cells = [f"`{name}`", of_winnable, *(shares.get(rules, "") for rules in ("classic", "relaxed", "yukon"))]
        lines.append(f"| {' | '.join(cells)} |")
    best = played[BASELINE].values()
    cells = ["the most that can be won", "100%"]
    for row in best:
        least, most = (f"{n / row['deals']:.2%}" for n in (row["winnable"], row["winnable"] + row["undecided"]))
        cells.append(least if least == most else f"{least} to {most}")
    lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def training_table() -> str:
    lines = [
        "| config | algorithm | network | deals | wins after 500,000 steps | 95 % interval | mean score |",
        "| --- | --- | --- | --- | ---: | ---: | ---: |",
    ]
    for name in TRAINED_BY:
        row = load(f"training-{name}.json")
        lines.append(
            f"| `{name}` | {row['algorithm']} | {row['network']} | {row['suite']} | {row['win_rate']:.1%} "
            f"| {row['win_rate_low']:.1%} to {row['win_rate_high']:.1%} | {row['mean_score']:.1f} |"
        )
    speeds = load("training.json")
    told = ", ".join(f"`{row['config']}` {row['steps_per_second']:,}" for row in speeds["rows"])
    lines += ["", f"Steps a second of training, rollouts and updates, on {speeds['cores']} cores: {told}."]
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


def _speed_rows(rows: list[dict[str, Any]]) -> list[str]:
    return [
        "| what | steps/s | against | steps/s | ratio |",
        "| --- | ---: | --- | ---: | ---: |",
        *(
            f"| {row['what']} | {row['steps_per_second']:,} | {row['against']} | {row['against_steps_per_second']:,} "
            f"| {row['ratio']:.2f} |"
            for row in rows
        ),
    ]


def pace_table() -> str:
    """The speed in short: one row for each thing that ours is measured against."""
    rows = {row["what"]: row for row in load("speed.json")["rows"]}
    return "\n".join(_speed_rows([rows[what] for what in PACE]))


def speed_table() -> str:
    document = load("speed.json")
    lines = _speed_rows(document["rows"])
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


def leaderboard_tables() -> str:
    return markdown(standings(load_board(HERE.parent / "leaderboard")))


def filled(text: str) -> str:
    """The README with its tables made anew."""
    return with_tables(
        text,
        {
            "wins": wins_table(),
            "pace": pace_table(),
            "results": results_table(),
        },
    )


def performance(text: str) -> str:
    """The page docs/performance.md with its tables made anew."""
    return with_tables(text, {"speed": speed_table(), "solver": solver_table()})


def training(text: str) -> str:
    """The page docs/agents.md with its table made anew."""
    return with_tables(text, {"training": training_table()})


def distillation(text: str) -> str:
    """The page docs/distillation.md with its tables made anew."""
    return with_tables(text, {"labels": labels_table(), "best": best_table(), "price": price_table()})


# The pages of docs/ whose tables are made from the results, and what makes them.
PAGES = {"performance.md": performance, "agents.md": training, "distillation.md": distillation}


def with_tables(text: str, tables: dict[str, str]) -> str:
    """A page with these tables at their places."""
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text, found = pattern.subn(lambda match, table=table: f"{match[1]}\n{table}\n\n{match[2]}", text)
        if found != 1:
            raise SystemExit(f"the page has {found} places for the table of {name}: it must have one")
    return text


if __name__ == "__main__":
    if sys.argv[1:2] == ["--play"]:
        play(sys.argv[2:])
    write_whole(README, filled(README.read_text(encoding="utf-8")).encode())
    page = with_tables(LEADERBOARD.read_text(encoding="utf-8"), {"leaderboard": leaderboard_tables()})
    write_whole(LEADERBOARD, page.encode())
    for title, with_its_tables in PAGES.items():
        path = DOCS / title
        write_whole(path, with_its_tables(path.read_text(encoding="utf-8")).encode())
