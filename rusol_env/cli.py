"""The command `rusol`."""

from __future__ import annotations

import json
import os
import sys
import warnings
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rusol_env._interrupt import hear
from rusol_env.analysis import TIME_LIMIT, analyse
from rusol_env.deals import (
    Arrangement,
    Suite,
    check_seed,
    check_whole,
    deal_arrangement,
    decode_code,
    encode_code,
    read_deals,
    suite,
)
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
from rusol_env.files import RunsCodeWarning, only_user, write_whole
from rusol_env.game import Game
from rusol_env.labels import Verdict
from rusol_env.model_card import ModelCard
from rusol_env.models import ACCEPTED, NETWORK_OF, TRAINED, check_policy, policy_named, shipped
from rusol_env.observe import Visible
from rusol_env.planner_plus import DEFAULT_WEIGHED, PlannerPlusPolicy
from rusol_env.policies import DEFAULT_SAMPLES, POLICIES
from rusol_env.record import Record, Recorder, record_name
from rusol_env.render import ansi
from rusol_env.replay import document as replay_document
from rusol_env.replay import html as replay_page
from rusol_env.rules import VARIANTS, Rules, rules_named
from rusol_env.server import DEFAULT_PORT, serve
from rusol_env.solve_many import solve_many
from rusol_env.solver import DEFAULT_NODE_LIMIT, Solver
from rusol_env.table import Table as CardTable
from rusol_env.terminal import play_in_terminal, print_replay, replay_in_terminal

app = typer.Typer(
    name="rusol",
    help="Russian Solitaire for reinforcement learning: deals, policies and their results.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
board_app = typer.Typer(help="Results that anybody can play again: add one, show all, check them.")
app.add_typer(board_app, name="leaderboard")
# The base of Typer's errors about options and arguments, wherever this version of Typer keeps it.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
# As shells report a process that SIGINT ended.
INTERRUPTED = 130


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def _progress() -> Progress:
    """A progress bar on a terminal, and nothing in a pipe."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


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
    policy: Annotated[str, typer.Option(help=f"The policy: {ACCEPTED}.")] = "greedy",
    rules: Annotated[
        list[str] | None,
        typer.Option(help=f"The rule set: {', '.join(VARIANTS)}; give it again for more rows.", show_default="classic"),
    ] = None,
    deals: Annotated[
        int | None,
        typer.Option(help="Play the suite first-N: the evaluation deals 0 to N-1.", show_default="1000"),
    ] = None,
    suite_name: Annotated[
        str | None, typer.Option("--suite", help="Play a suite: first-N or winnable-N.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="What the policy's chance is drawn from.")] = 0,
    max_steps: Annotated[int, typer.Option(help="Stop a game after so many steps.")] = 500,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write rows, games and a summary into this folder; what it holds already is not played again.",
            show_default=False,
        ),
    ] = None,
    table_format: Annotated[str, typer.Option("--format", help=f"Of the rows: {' or '.join(FORMATS)}.")] = "csv",
    record: Annotated[
        Path | None,
        typer.Option(help="Also write a record of each game into this folder (see rusol replay).", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace results and records that are there.")] = False,
    samples: Annotated[
        int | None,
        typer.Option(
            help=f"planner, planner+: completions looked at for each choice ({DEFAULT_SAMPLES}; {DEFAULT_WEIGHED}).",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="planner, planner+: seconds a move at most; results can then not be repeated.", show_default=False
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="The planners: threads that share the games (1).", show_default=False)
    ] = None,
    only_legal: Annotated[
        bool,
        typer.Option(
            "--only-legal", help="A .zip whose model knows no masks: play the best legal action, not the best of all."
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help='Print one JSON document ({"results": […]} for several rule sets).'),
    ] = False,
) -> None:
    """Play evaluation deals with a policy and report how it did."""
    # Everything that can be refused is refused before the first game.
    chosen = list(dict.fromkeys(rules_named(name) for name in rules or ["classic"]))
    if deals is not None and suite_name is not None:
        raise ValueError("name the deals in one way: --deals N or --suite NAME")
    named = suite_name or f"first-{check_whole('--deals', 1000 if deals is None else deals, 1)}"
    suites = {rule_set: suite(named, rule_set) for rule_set in chosen}
    check_seed(seed)
    check_whole("--max-steps", max_steps, 1)
    if table_format not in FORMATS:
        raise ValueError(f"unknown format {table_format!r}: use one of {', '.join(FORMATS)}")
    options: dict[str, Any] = {"samples": samples, "time_limit": time_limit, "threads": threads}
    options["only_legal"] = only_legal or None
    players = {rule_set: policy_named(policy, rules=rule_set, **options) for rule_set in chosen}
    found: dict[Rules, dict[str, Any]] = {}
    if out is not None:
        prepare_folder(out, table_format)
        for rule_set in chosen if not force else []:
            path = summary_path(out, policy, rule_set, suites[rule_set].name, seed)
            settings = {
                "policy_class": class_name(players[rule_set]),
                "policy_settings": players[rule_set].settings,
                "rules": rule_set.name,
                "deals": len(suites[rule_set]),
                "seed": seed,
                "max_steps": max_steps,
                "table": path.with_suffix(f".{table_format}").name,
                "rusol-env": versions()["rusol-env"],
            }
            earlier = saved_summary(path, settings)
            if earlier is not None:
                again = "not written" if record is not None else "not played"
                print(f"rusol: {path} is there already and was {again} again (--force does)", file=sys.stderr)
                found[rule_set] = earlier
    if record is not None:
        record.mkdir(parents=True, exist_ok=True)
        for rule_set in chosen if not force else []:
            for number in suites[rule_set]:
                path = record / record_name({"name": policy, "seed": seed}, rule_set, number)
                if path.exists():
                    raise FileExistsError(f"{path} is there already: choose another folder, or --force to replace it")
    summaries: list[dict[str, Any]] = []
    with _progress() as bar:
        for rule_set in chosen:
            if rule_set in found and record is None:
                summaries.append(found[rule_set])
                continue
            task = bar.add_task(f"{policy}, {rule_set.name}", total=len(suites[rule_set]))
            recorder = None if record is None else Recorder()
            result = evaluate(
                players[rule_set],
                rule_set,
                suites[rule_set],
                seed=seed,
                max_steps=max_steps,
                progress=lambda done, task=task: bar.update(task, completed=done),
                watch=recorder,
            )
            if record is not None and recorder is not None:
                who = {"name": policy, "seed": seed, "class": class_name(players[rule_set])}
                for name, game in recorder.records(suites[rule_set], rule_set, who):
                    game.save(record / name, replace=force)
            summaries.append(found.get(rule_set, result.summary()))
            if out is not None and rule_set not in found:
                try:
                    save(result, out, table_format, force=force)
                except FileExistsError as error:
                    # It was not there before the first game: another run wrote it. The figures are still worth showing.
                    print(f"rusol: not written, since another run wrote it meanwhile: {error}", file=sys.stderr)
    if as_json:
        _print_json(summaries[0] if len(summaries) == 1 else {"results": summaries})
    else:
        _print_table(_results_table(summaries))


def _tight_table(title: str) -> Table:
    """A table that fits a terminal of 80 columns."""
    return Table(title=title, title_justify="left", box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True)


def _console() -> Console:
    # In a pipe there is no width to fit into, and rich would cut the cells to 80 columns.
    return Console() if sys.stdout.isatty() else Console(width=120)


def _print_table(table: Table) -> None:
    _console().print(table)


def _results_table(summaries: list[dict[str, Any]]) -> Table:
    first = summaries[0]
    title = f"{first['policy']} on {first['suite']}, seed {first['seed']}"
    table = _tight_table(title)
    for heading in ("rules", "wins", "win rate", "95 % CI", "of winnable", "score ± s.e.", "steps", "games/s"):
        table.add_column(heading, justify="left" if heading == "rules" else "right", no_wrap=True)
    for row in summaries:
        low, high = row["win_rate_ci95"]
        error: float | None = row["mean_score_se"]
        table.add_row(
            row["rules"],
            f"{row['wins']:,}",
            f"{row['win_rate']:.2%}",
            f"{low:.1%}–{high:.1%}",
            "" if row.get("wins_of_winnable") is None else f"{row['wins_of_winnable']:.1%}",
            f"{row['mean_score']:.1f}" + ("" if error is None else f" ± {error:.1f}"),
            f"{row['mean_steps']:.1f}",
            f"{row['games_per_second']:,.0f}",
        )
    return table


@app.command("policies")
def list_policies(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, with the cards whole.")] = False,
) -> None:
    """List the policies that come with rusol, and how the trained ones were made and play."""
    cards = {
        name: [ModelCard.load(weights.with_suffix(".json")) for weights in shipped(name).values()] for name in TRAINED
    }
    all_cards = [card for some in cards.values() for card in some]
    built_in = [
        {"name": name, "observation": policy.observation, "what": (policy.__doc__ or "").partition("\n")[0]}
        for name, policy in (POLICIES | {PlannerPlusPolicy.name: PlannerPlusPolicy}).items()
    ]
    if as_json:
        _print_json({"policies": built_in, "trained": [asdict(card) for card in all_cards]})
        return
    for entry in built_in:
        network = NETWORK_OF.get(entry["name"])
        typer.echo(f"{entry['name']:<9}  {entry['what']}" + (f" {_rule_sets(cards[network])}" if network else ""))
    for name, what in TRAINED.items():
        typer.echo(f"{name:<9}  {what} {_rule_sets(cards[name])}")
    if not all_cards:
        return
    typer.echo()
    table = _tight_table("trained networks, by their cards")
    for heading in ("name", "rules", "suite", "wins", "95 % CI", "of winnable", "score", "steps trained", "hours"):
        table.add_column(heading, justify="left" if heading in ("name", "rules", "suite") else "right", no_wrap=True)
    for card in all_cards:
        found = card.results
        low, high = found["win_rate_ci95"]
        table.add_row(
            card.name,
            card.rules,
            found["suite"],
            f"{found['wins']:,}",
            f"{low:.1%}–{high:.1%}",
            "" if found["wins_of_winnable"] is None else f"{found['wins_of_winnable']:.1%}",
            f"{found['mean_score']:.1f}",
            f"{card.steps:,}",
            f"{card.hours:.1f}",
        )
    _print_table(table)


def _rule_sets(cards: list[ModelCard]) -> str:
    return f"For {', '.join(card.rules for card in cards)}." if cards else "None comes with this rusol-env."


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
    console = _console()
    console.print(table(document))
    for gone in document["skipped"]:
        console.print(f"skipped: {gone['what']} ({gone['why']})")


@app.command("solve")
def solve_deals(
    codes: Annotated[
        list[str] | None, typer.Argument(help="Game codes such as RU1-C-AAAAABB.", show_default=False)
    ] = None,
    deals: Annotated[
        int | None, typer.Option(help="Solve the suite first-N: the evaluation deals 0 to N-1.", show_default=False)
    ] = None,
    suite_name: Annotated[
        str | None, typer.Option("--suite", help="Solve a suite: first-N or winnable-N.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Solve the deals of a JSON-lines file of arrangements.", show_default=False)
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            help=f"For --deals and --suite: {', '.join(VARIANTS)}; give it again for more.", show_default="classic"
        ),
    ] = None,
    node_limit: Annotated[
        int, typer.Option(help="Leave a deal undecided after so many positions.")
    ] = DEFAULT_NODE_LIMIT,
    time_limit: Annotated[
        float | None, typer.Option(help="Leave a deal undecided after so many seconds.", show_default=False)
    ] = None,
    take_back: Annotated[bool, typer.Option("--take-back", help="Cards may come back from foundations.")] = False,
    workers: Annotated[int | None, typer.Option(help="Threads for a suite.", show_default="one a core")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Keep the verdicts of a suite there; the same command goes on where it stopped.", show_default=False
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Play each solution's text, move by move, as a game.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document with all moves.")] = False,
) -> None:
    """Say of each deal whether it can be won when all cards are known, and how."""
    if sum((bool(codes), deals is not None, suite_name is not None, file is not None)) != 1:
        raise ValueError("name the deals in one way: codes, --deals N, --suite NAME or --file FILE")
    of_suite = deals is not None or suite_name is not None
    if rules and not of_suite:
        raise ValueError("--rules goes with --deals and --suite: a code or a line of a file says its own rules")
    alone = as_json or verify or time_limit is not None
    if not of_suite or alone:
        for option_, given in (("--workers", workers), ("--folder", folder)):
            if given is not None:
                raise ValueError(f"{option_} is for suites, without --json, --verify and --time-limit")
    chosen = list(dict.fromkeys(rules_named(name) for name in rules or ["classic"]))
    named = f"first-{check_whole('--deals', deals, 1)}" if deals is not None else suite_name
    suites = [(rule_set, suite(named, rule_set)) for rule_set in chosen] if named is not None else []
    if suites and not alone:
        _solve_suites(suites, node_limit, take_back, workers, folder)
        return
    questions: list[tuple[dict[str, str], Rules, Any, Any]] = []
    for rule_set, numbers in suites:
        questions += [({"code": encode_code(number, rule_set)}, rule_set, number, None) for number in numbers]
    for code in codes or []:
        rule_set, number = decode_code(code)
        questions.append(({"code": encode_code(number, rule_set)}, rule_set, number, None))
    for record in [] if file is None else read_deals(file):
        questions.append(({"id": record.id}, record.rules, record.arrangement, record.fields.get("verdict")))
    _solve_each(questions, node_limit, time_limit, take_back, verify, as_json, show_moves=not of_suite)


def _solve_suites(
    suites: list[tuple[Rules, Suite]], node_limit: int, take_back: bool, workers: int | None, folder: Path | None
) -> None:
    table = _tight_table(f"solver on {suites[0][1].name}")
    for heading in ("rules", "winnable", "share", "95 % interval", "undecided", "nodes", "moves", "ms/deal"):
        table.add_column(heading, justify="left" if heading == "rules" else "right", no_wrap=True)
    with _progress() as bar:
        for rule_set, numbers in suites:
            task = bar.add_task(rule_set.name, total=len(numbers))
            found = solve_many(
                numbers,
                rule_set,
                workers=workers,
                node_limit=node_limit,
                take_back=take_back,
                folder=None if folder is None else folder / rule_set.name,
                progress=lambda done, task=task: bar.update(task, completed=done),
            ).summary()
            low, high = found["winnable_rate_ci95"]
            table.add_row(
                rule_set.name,
                f"{found['winnable']:,}",
                f"{found['winnable_rate']:.2%}",
                f"{low:.2%} to {high:.2%}",
                f"{found['undecided']:,}",
                f"{found['nodes']['mean']:,.0f}",
                "" if found["moves"] is None else f"{found['moves']['mean']:.1f}",
                f"{1000 * found['seconds'] / found['deals']:.3f}",
            )
    _print_table(table)


def _solve_each(
    questions: list[tuple[dict[str, str], Rules, Any, Any]],
    node_limit: int,
    time_limit: float | None,
    take_back: bool,
    verify: bool,
    as_json: bool,
    *,
    show_moves: bool,
) -> None:
    solvers: dict[Rules, Solver] = {}
    results: list[dict[str, Any]] = []
    differ: list[str] = []
    with _progress() as bar:
        for name, rule_set, position, expected in bar.track(questions, description="solving"):
            if rule_set not in solvers:
                solvers[rule_set] = Solver(rule_set, take_back=take_back)
            found = solvers[rule_set].solve(position, node_limit=node_limit, time_limit=time_limit)
            moves = [move.ascii for move in found.moves]
            results.append(
                {
                    **name,
                    "rules": rule_set.name,
                    "verdict": found.verdict.text,
                    "moves": moves,
                    "nodes": found.nodes,
                    "seconds": found.seconds,
                }
            )
            if verify and moves:
                _replay(position, rule_set, moves)
                results[-1]["verified"] = True
            if expected is not None and expected != found.verdict.text and found.verdict is not Verdict.UNDECIDED:
                differ.append(next(iter(name.values())))
            if not as_json:
                kind = f"{found.verdict.text}, {len(moves)} moves" if moves else found.verdict.text
                checked = ", verified" if verify and moves else ""
                typer.echo(
                    f"{next(iter(name.values()))}  {rule_set.name}: {kind}; "
                    f"{found.nodes:,} positions, {1000 * found.seconds:.1f} ms{checked}"
                )
                if show_moves and moves:
                    # No line ends inside a move.
                    text = ", ".join(moves).replace(" > ", "\0>\0")
                    typer.echo(fill(text, 100, initial_indent="  ", subsequent_indent="  ").replace("\0", " "))
    seconds = [result["seconds"] for result in results]
    summary: dict[str, Any] = {
        "deals": len(results),
        **{verdict.text: sum(result["verdict"] == verdict.text for result in results) for verdict in Verdict},
        "mean_seconds": sum(seconds) / max(1, len(seconds)),
        "most_seconds": max(seconds, default=0.0),
        "differ_from_file": differ,
        "versions": versions(),
    }
    if as_json:
        _print_json({"results": results, "summary": summary})
    elif len(results) > 1:
        counts = ", ".join(f"{summary[verdict.text]} {verdict.text}" for verdict in Verdict)
        typer.echo(
            f"{len(results)} deals: {counts}; {1000 * summary['mean_seconds']:.2f} ms on average, "
            f"{summary['most_seconds']:.2f} s at the most"
        )
    if differ:
        raise ValueError(f"the verdict is not the file's for {', '.join(differ)}: one of the two solvers is wrong")


def _replay(position: Any, rules: Rules, moves: list[str]) -> None:
    """Play printed moves as a person would type them; a solution that does not win is a bug."""
    game = Game(position, rules) if isinstance(position, Arrangement) else Game.from_number(position, rules)
    for move in moves:
        game.play(move)
    if not game.won:
        raise RuntimeError(f"the solution of {position} does not win: please report it")


@app.command("play")
def play_game(
    terminal: Annotated[bool, typer.Option("--terminal", help="Play here, by typed moves.")] = False,
    code: Annotated[str | None, typer.Option(help="Begin with this deal.", show_default=False)] = None,
    rules: Annotated[
        str | None, typer.Option(help="Begin with a new deal under these rules.", show_default=False)
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to serve on; others than 127.0.0.1 let others in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to serve on; 0 takes a free one.")] = DEFAULT_PORT,
    data: Annotated[
        Path | None, typer.Option(help="The folder that keeps the game and the records.", show_default="the user's own")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="A model, by its path, that can play and give hints besides the policies that come with rusol.",
            show_default=False,
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
) -> None:
    """Play in the browser, or with --terminal here."""
    if not 0 <= port < 1 << 16:
        raise ValueError(f"--port is {port}: it must be a whole number from 0 to {(1 << 16) - 1}")
    folder = data or Path(typer.get_app_dir("rusol"))
    # Those that come with the package are there without being asked for.
    guest = None if policy is None or policy in (*POLICIES, *NETWORK_OF) else policy_named(policy)
    with only_user(folder):
        table = CardTable(folder, guest)
        if code is not None or rules is not None:
            table.new(rules, code)
        if policy in NETWORK_OF:
            check_policy(policy, table.game.rules)
        if terminal:
            play_in_terminal(table)
            return

        def ready(address: str) -> None:
            typer.echo(f"The game is at {address} (Ctrl-C ends it; the game is kept in {folder})")
            if browser:
                typer.launch(address)

        with suppress(KeyboardInterrupt):
            serve(table, host, port, ready)


@app.command("replay")
def replay_game(
    file: Annotated[Path, typer.Argument(help="A record of a game.", show_default=False)],
    html: Annotated[
        Path | None, typer.Option(help="Write one page to look at in a browser instead.", show_default=False)
    ] = None,
    analysis: Annotated[
        bool, typer.Option("--analysis/--no-analysis", help="Ask the solver where the game was lost.")
    ] = True,
    time_limit: Annotated[float, typer.Option(help="Seconds that the solver may take at each position.")] = TIME_LIMIT,
    force: Annotated[bool, typer.Option("--force", help="Replace the page that --html finds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print positions and analysis as one JSON document.")] = False,
) -> None:
    """Look at a recorded game, step by step, with the solver's verdict at every step."""
    if not 0 < time_limit < float("inf"):
        raise ValueError(f"--time-limit is {time_limit}: it must be a number of seconds above 0")
    if html is not None and html.exists() and not force:
        raise FileExistsError(f"{html} is there already: choose another name, or --force to replace it")
    record = Record.load(file)
    judged = None
    if analysis:
        with _progress() as bar:
            task = bar.add_task("analysis", total=len(record.steps))
            judged = analyse(record, time_limit=time_limit, progress=lambda done: bar.update(task, completed=done))
    if html is not None:
        write_whole(html, replay_page(record, judged).encode(), replace=force)
    if as_json:
        _print_json(replay_document(record, judged))
    elif html is not None:
        typer.echo(f"{html}: {len(record.steps)} steps")
    elif sys.stdin.isatty() and sys.stdout.isatty():
        replay_in_terminal(record, judged)
    else:
        print_replay(record, judged)


@app.command("compare")
def compare_rules(
    policy: Annotated[
        str, typer.Option(help=f"The policy: {ACCEPTED}; or solver, for what can be won at all.")
    ] = "greedy",
    rules: Annotated[
        list[str] | None,
        typer.Option(help=f"Two or more of {', '.join(VARIANTS)}, one a --rules.", show_default="classic, relaxed"),
    ] = None,
    deals: Annotated[int, typer.Option(help="The suite first-N: the evaluation deals 0 to N-1.")] = 1000,
    seed: Annotated[int, typer.Option(help="What the policy's chance is drawn from; the solver has none.")] = 0,
    max_steps: Annotated[int, typer.Option(help="Stop a policy's game after so many steps.")] = 500,
    node_limit: Annotated[int, typer.Option(help="The solver gives up on a deal after so many positions.")] = 400_000,
    out: Annotated[
        Path | None, typer.Option(help="Also write a report, one HTML page, to this file.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also write the plot to this file, .png or .svg.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare rule sets on the same deals: what is won under both, under one, under neither."""
    from rusol_env.compare import check_comparison, compare
    from rusol_env.plot import draw
    from rusol_env.report import page, prepare_file, tables

    chosen = check_comparison(policy, rules or ["classic", "relaxed"])
    chosen_suite = suite(f"first-{check_whole('--deals', deals, 1)}")
    for path, endings in ((out, (".html", ".htm")), (plot, (".png", ".svg"))):
        if path is not None:
            prepare_file(path, endings, force=force)
    with _progress() as bar:
        tasks = {r.name: bar.add_task(f"{policy}, {r.name}", total=len(chosen_suite), start=False) for r in chosen}

        def tell(name: str, done: int) -> None:
            bar.start_task(tasks[name])
            bar.update(tasks[name], completed=done)

        result = compare(
            policy,
            chosen_suite,
            chosen,
            seed=seed,
            max_steps=max_steps,
            node_limit=node_limit,
            progress=tell,
        )
    try:
        if out is not None:
            write_whole(out, page(result), replace=force)
        if plot is not None:
            write_whole(plot, draw(result, plot.suffix[1:].lower()), replace=force)
    finally:
        # The figures are worth showing even where a file could not be written.
        if as_json:
            _print_json(result.summary())
        else:
            console = _console()
            for number, part in enumerate(tables(result)):
                console.print(part, new_line_start=number > 0)


_Board = Annotated[Path, typer.Option("--board", help="The folder of the leaderboard.")]
_BOARD = Path("leaderboard")


@board_app.command("add")
def add_to_board(
    results: Annotated[
        Path,
        typer.Argument(
            help="The folder that rusol evaluate --out wrote, or one summary (.json) in it.", show_default=False
        ),
    ],
    by: Annotated[str, typer.Option(help="Who made the policy.", show_default=False)],
    name: Annotated[
        str | None, typer.Option(help="The entry's name.", show_default="the policy's as it was evaluated")
    ] = None,
    url: Annotated[str | None, typer.Option(help="Where to read more.", show_default=False)] = None,
    board: _Board = _BOARD,
    force: Annotated[bool, typer.Option("--force", help="Replace entries of the same name, suite and rules.")] = False,
) -> None:
    """Play the games of an evaluation again and, where they give its figures, enter it."""
    from rusol_env.leaderboard import add

    for path in add(board, results, by, name=name, url=url, force=force):
        typer.echo(f"{path}")


@board_app.command("show")
def show_board(
    rules: Annotated[
        str | None, typer.Option(help=f"Only this rule set: {', '.join(VARIANTS)}.", show_default=False)
    ] = None,
    board: _Board = _BOARD,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Rank the entries of each rule set and suite, by their games played again."""
    from rusol_env.leaderboard import load, markdown, standings, title

    if as_markdown and as_json:
        raise ValueError("choose one of --markdown and --json")
    tables = standings(load(board, None if rules is None else rules_named(rules).name))
    if as_markdown:
        typer.echo(markdown(tables))
        return
    rows = [[standing.document() for standing in table] for table in tables]
    if as_json:
        _print_json({"standings": [row for part in rows for row in part]})
        return
    for table, part in zip(tables, rows, strict=True):
        _print_table(_standings_table(title(table), part))
        typer.echo()
    typer.echo("winnable: won of the deals that can be won; p: McNemar's test against the entry above; ms: a move.")


def _standings_table(heading: str, rows: list[dict[str, Any]]) -> Table:
    table = _tight_table(heading)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("policy", min_width=9)
    for name in ("wins", "95 % CI", "winnable", "p", "score", "ms"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("by", min_width=9)
    for row in rows:
        low, high = row["win_rate_ci95"]
        p = None if row["against_above"] is None else row["against_above"]["p"]
        table.add_row(
            str(row["rank"]),
            row["name"],
            f"{row['wins']:,}",
            f"{low:.1%}–{high:.1%}",
            "" if row["wins_of_winnable"] is None else f"{row['wins_of_winnable']:.1%}",
            "" if p is None else "<0.0001" if p < 1e-4 else f"{p:.2g}",
            f"{row['mean_score']:.1f}",
            f"{row['ms_a_move']:.2g}",
            row["by"],
        )
    return table


@board_app.command("check")
def check_board(board: _Board = _BOARD) -> None:
    """Play the games of all entries again, and see to it that each entry says what they give."""
    from rusol_env.leaderboard import check

    for entry in check(board):
        result = entry.result
        typer.echo(f"{board / entry.place}: {result.wins:,} of {len(result.numbers):,} won, as its games give")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the words after ``rusol``; None takes them from the command line.

    Returns:
        the exit code: 0; 2 for bad input, with one line on stderr; 130 when interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    hear()
    try:
        refuse_empty(arguments)
        # Commands return None; where Typer hands back a number it is an exit code, 130 for Ctrl-C.
        with warnings.catch_warnings():
            warnings.simplefilter("default", RunsCodeWarning)
            warnings.showwarning = _show_warning
            code: int | None = app(arguments or ["--help"], prog_name="rusol", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
    except UsageError as error:
        return _refuse(str(getattr(error, "format_message", error.__str__)()))
    except (KeyboardInterrupt, typer.Abort):
        print("rusol: interrupted; what was not finished was not written", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away: as other commands do, stop without a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, ImportError) as error:
        return _refuse(str(error))
    return 0


def refuse_empty(arguments: list[str]) -> None:
    """See to it that no word of a command line is empty: as a path it would be the current folder.

    Raises:
        ValueError: one is; the message names it by the word before.
    """
    for place, word in enumerate(arguments):
        if not word or (word.startswith("--") and word.endswith("=")):
            before = word[:-1] or (f"the word after {arguments[place - 1]}" if place else "the first word")
            raise ValueError(f"{before} is empty: give a value, or leave it out")


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """In place of `warnings.showwarning`: a user of the command is told what, not where in the program."""
    kind = "" if issubclass(category, RunsCodeWarning) else f"{category.__name__}: "
    print(f"rusol: {kind}{' '.join(str(message).split())}", file=sys.stderr)


def _refuse(message: str) -> int:
    print(f"rusol: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
