"""The command `rusol`."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rusol_env.deals import check_seed, check_whole, deal_arrangement, decode_code, encode_code, suite
from rusol_env.evaluate import (
    FORMATS,
    class_name,
    evaluate,
    prepare_folder,
    save,
    saved_summary,
    summary_path,
    versions,
)
from rusol_env.game import Game
from rusol_env.observe import Visible
from rusol_env.policies import DEFAULT_SAMPLES, POLICIES, policy_named
from rusol_env.render import ansi
from rusol_env.rules import VARIANTS, Rules, rules_named

app = typer.Typer(
    name="rusol",
    help="Russian Solitaire for reinforcement learning: deals, policies and their results.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
# The base of Typer's errors about options and arguments, wherever this version of Typer keeps it.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
# As shells report a process that SIGINT ended.
_INTERRUPTED = 130


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def _print_versions(wanted: bool) -> None:
    if wanted:
        typer.echo(", ".join(f"{name} {number}" for name, number in versions().items()))
        raise typer.Exit


@app.callback()
def _commands(  # pyright: ignore[reportUnusedFunction]
    _: Annotated[
        bool, typer.Option("--version", callback=_print_versions, is_eager=True, help="Print the versions.")
    ] = False,
) -> None:
    """Russian Solitaire for reinforcement learning: deals, policies and their results."""


@app.command("deal")
def show_deal(
    code: Annotated[str, typer.Argument(help="A game code such as RU1-C-AAAAABB.", show_default=False)],
    reveal: Annotated[bool, typer.Option("--reveal", help="Show the face-down cards too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all cards as one JSON document.")] = False,
) -> None:
    """Show a deal."""
    rules, number = decode_code(code)
    deal = deal_arrangement(number)
    code = encode_code(number, rules)
    if as_json:
        _print_json(
            {
                "code": code,
                "rules": rules.name,
                "deal_number": number,
                "columns": deal.text(),
                "face_down": list(deal.face_down),
            }
        )
        return
    shown = Visible(deal.columns, deal.foundations) if reveal else Game(deal, rules).visible
    typer.echo(f"{code}  {rules.name}, deal {number}")
    typer.echo(ansi(shown), nl=False)


@app.command("evaluate")
def evaluate_policy(
    policy: Annotated[str, typer.Option(help=f"The policy: {', '.join(POLICIES)}.")] = "greedy",
    rules: Annotated[
        list[str] | None,
        typer.Option(help=f"The rule set: {', '.join(VARIANTS)}; give it again for more rows.", show_default="classic"),
    ] = None,
    deals: Annotated[int, typer.Option(help="Play the suite first-N: the evaluation deals 0 to N-1.")] = 1000,
    seed: Annotated[int, typer.Option(help="What the policy's chance is drawn from.")] = 0,
    max_steps: Annotated[int, typer.Option(help="Stop a game after so many steps.")] = 500,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write per-deal rows and a summary into this folder; what it holds already is not played again.",
            show_default=False,
        ),
    ] = None,
    table_format: Annotated[str, typer.Option("--format", help=f"Of the rows: {' or '.join(FORMATS)}.")] = "csv",
    force: Annotated[bool, typer.Option("--force", help="Replace results that --out finds.")] = False,
    samples: Annotated[
        int | None,
        typer.Option(help=f"planner: completions looked at for each move ({DEFAULT_SAMPLES}).", show_default=False),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="planner: seconds a move at most; results can then not be repeated.", show_default=False),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="planner: threads that share the games (1).", show_default=False)
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help='Print one JSON document ({"results": […]} for several rule sets).'),
    ] = False,
) -> None:
    """Play the first N evaluation deals with a policy and report how it did."""
    # Everything that can be refused is refused before the first game.
    chosen = list(dict.fromkeys(rules_named(name) for name in rules or ["classic"]))
    players = {
        rule_set: policy_named(policy, rules=rule_set, samples=samples, time_limit=time_limit, threads=threads)
        for rule_set in chosen
    }
    chosen_suite = suite(f"first-{check_whole('--deals', deals, 1)}")
    check_seed(seed)
    check_whole("--max-steps", max_steps, 1)
    if table_format not in FORMATS:
        raise ValueError(f"unknown format {table_format!r}: use one of {', '.join(FORMATS)}")
    found: dict[Rules, dict[str, Any]] = {}
    if out is not None:
        prepare_folder(out, table_format)
        for rule_set in chosen if not force else []:
            path = summary_path(out, policy, rule_set, chosen_suite.name, seed)
            settings = {
                "policy_class": class_name(players[rule_set]),
                "policy_settings": players[rule_set].settings,
                "rules": rule_set.name,
                "deals": deals,
                "seed": seed,
                "max_steps": max_steps,
                "table": path.with_suffix(f".{table_format}").name,
                "rusol-env": versions()["rusol-env"],
            }
            earlier = saved_summary(path, settings)
            if earlier is not None:
                print(f"rusol: {path} is there already and was not played again (--force does)", file=sys.stderr)
                found[rule_set] = earlier
    summaries: list[dict[str, Any]] = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        for rule_set in chosen:
            if rule_set in found:
                summaries.append(found[rule_set])
                continue
            task = bar.add_task(f"{policy}, {rule_set.name}", total=len(chosen_suite))
            result = evaluate(
                players[rule_set],
                rule_set,
                chosen_suite,
                seed=seed,
                max_steps=max_steps,
                progress=lambda done, task=task: bar.update(task, completed=done),
            )
            summaries.append(result.summary())
            if out is not None:
                try:
                    save(result, out, table_format, force=force)
                except FileExistsError as error:
                    # It was not there before the first game: another run wrote it. The figures are still worth showing.
                    print(f"rusol: not written, since another run wrote it meanwhile: {error}", file=sys.stderr)
    if as_json:
        _print_json(summaries[0] if len(summaries) == 1 else {"results": summaries})
    else:
        # In a pipe there is no width to fit into, and rich would cut the cells to 80 columns.
        console = Console() if sys.stdout.isatty() else Console(width=120)
        console.print(_results_table(summaries))


def _results_table(summaries: list[dict[str, Any]]) -> Table:
    first = summaries[0]
    title = f"{first['policy']} on {first['suite']}, seed {first['seed']}"
    # Tight, so that it fits a terminal of 80 columns.
    table = Table(title=title, title_justify="left", box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True)
    for heading in ("rules", "wins", "win rate", "95 % interval", "cut off", "score ± s.e.", "steps", "games/s"):
        table.add_column(heading, justify="left" if heading == "rules" else "right", no_wrap=True)
    for row in summaries:
        low, high = row["win_rate_ci95"]
        error: float | None = row["mean_score_se"]
        table.add_row(
            row["rules"],
            f"{row['wins']:,}",
            f"{row['win_rate']:.2%}",
            f"{low:.1%} to {high:.1%}",
            f"{row['truncated']:,}",
            f"{row['mean_score']:.1f}" + ("" if error is None else f" ± {error:.1f}"),
            f"{row['mean_steps']:.1f}",
            f"{row['games_per_second']:,.0f}",
        )
    return table


@app.command("bench")
def measure_speed(
    rules: Annotated[str, typer.Option(help=f"The rule set: {', '.join(VARIANTS)}.")] = "classic",
    seconds: Annotated[float, typer.Option(help="How long each way steps in a round.")] = 0.3,
    rounds: Annotated[int, typer.Option(help="The medians are over so many rounds, each way in turn.")] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="A rough look: one short round, no large batches.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure steps a second of every way to step, in one run."""
    from rusol_env.bench import SIZES, bench, table

    rules_named(rules)
    with Console(stderr=True).status("") if sys.stderr.isatty() else nullcontext() as status:
        document = bench(
            rules,
            seconds=0.02 if quick else seconds,
            rounds=1 if quick else rounds,
            sizes=SIZES[:2] if quick else SIZES,
            progress=None if status is None else status.update,
        )
    if as_json:
        _print_json(document)
        return
    console = Console() if sys.stdout.isatty() else Console(width=120)
    console.print(table(document))
    for gone in document["skipped"]:
        console.print(f"skipped: {gone['what']} ({gone['why']})")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the words after ``rusol``; None takes them from the command line.

    Returns:
        the exit code: 0; 2 for bad input, with one line on stderr; 130 when interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        # Commands return None; where Typer hands back a number it is an exit code, 130 for Ctrl-C.
        code: int | None = app(arguments or ["--help"], prog_name="rusol", standalone_mode=False)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
    except _UsageError as error:
        return _refuse(str(getattr(error, "format_message", error.__str__)()))
    except (KeyboardInterrupt, typer.Abort):
        print("rusol: interrupted; what was not finished was not written", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader went away: as other commands do, stop without a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, ImportError) as error:
        return _refuse(str(error))
    return 0


def _refuse(message: str) -> int:
    print(f"rusol: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
