"""The game and the replay in a terminal, by typed lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rusol_env.analysis import Analysis, judge, summary
from rusol_env.game import Game, IllegalMove, NothingToUndo, parse_move
from rusol_env.record import Record, Step
from rusol_env.render import ansi
from rusol_env.table import Table

_HELP = """\
A move is a card and a column or F: 10H > 3, or 10h 3, or as f. Also:
  u  undo      h [policy]  hint, by the solver or a policy      m  the legal moves
  n [rules or code]  new game      s  save a record      ?  this help      q  quit (the game is kept)
"""


def _lines(prompt: str) -> Iterator[str]:
    """The lines that are typed, until the input ends."""
    while True:
        try:
            yield input(prompt).strip()
        except EOFError:
            if sys.stdin.isatty():
                print()
            return


def _show(game: Game) -> str:
    named = f"{game.rules.name} {game.code or ''}".strip()
    return ansi(game.visible, caption=f"{named}  score {game.score}  moves {game.moves}")


def play_in_terminal(table: Table) -> None:
    """Play the table's game by typed moves until the input ends or ``q`` is typed."""
    print(_HELP, end="")
    print(_show(table.game), end="")
    for line in _lines("> "):
        word, _, rest = line.partition(" ")
        word = word.lower()
        try:
            match word:
                case "":
                    continue
                case "q" | "quit" | "exit":
                    return
                case "?" | "help":
                    print(_HELP, end="")
                    continue
                case "m" | "moves":
                    moves = [str(move) for move in table.game.legal_moves(idle_moves=False)]
                    print("\n".join(moves) or "No move is left.")
                    continue
                case "h" | "hint":
                    print(_hint(table, rest.strip().lower()))
                    continue
                case "s" | "save":
                    print(f"Saved as {table.save()}")
                    continue
                case "u" | "undo":
                    table.undo()
                case "n" | "new":
                    rest = rest.strip()
                    table.new(**({} if not rest else {"code": rest} if "-" in rest else {"rules": rest}))
                case _:
                    table.play(parse_move(line))
        except (IllegalMove, NothingToUndo) as error:
            print(error)
            continue
        except ValueError as error:
            print(f"{error} (? for help)")
            continue
        print(_show(table.game), end="")
        if table.game.won:
            print(f"You won. The game is saved as {table.saved}")
        elif not table.game.legal_moves(idle_moves=False):
            print("No move is left: u takes the last one back, n deals a new game.")


def _hint(table: Table, by: str) -> str:
    if by and by != "solver":
        if by not in table.policies:
            raise ValueError(f"there is no hint by {by!r}: use solver, {', '.join(table.policies)}")
        move = table.advice(by)
    else:
        found = judge(table.game)
        if not found.moves:
            return f"For who knows all cards, the game is {found.verdict.text} from here."
        move = found.moves[0]
    table.count_hint()
    return "No move is left." if move is None else str(move)


def _step_line(number: int, step: Step, analysis: Analysis | None) -> str:
    text = "undo" if step.move is None else str(step.move)
    verdict = "" if analysis is None else f"  {analysis.verdicts[number].text}"
    time = "" if step.seconds is None else f"  {step.seconds:.1f} s"
    shares = ""
    if step.move is not None and step.probabilities and step.move in step.probabilities:
        shares = f"  {step.probabilities[step.move]:.1%}"
    return f"{number:>4}  {text:<22}{time}{shares}{verdict}"


def print_replay(record: Record, analysis: Analysis | None) -> None:
    """Print a whole game: how it began, every step, how it ended, and the analysis."""
    print(_show(record.game(0)), end="")
    for number, step in enumerate(record.steps, start=1):
        print(_step_line(number, step, analysis))
    print(_show(record.game()), end="")
    for line in [] if analysis is None else summary(record, analysis):
        print(line)


def replay_in_terminal(record: Record, analysis: Analysis | None) -> None:
    """Step through a game by typed letters until the input ends or ``q`` is typed."""
    print("Enter or n: on   b: back   a number: to that step   e: to the end   l: all steps   q: quit")
    for line in [] if analysis is None else summary(record, analysis):
        print(line)
    at, last = 0, len(record.steps)

    def show() -> None:
        print(_show(record.game(at)), end="")
        if at:
            print(_step_line(at, record.steps[at - 1], analysis))

    show()
    for line in _lines(f"step of {last} > "):
        match line.lower():
            case "" | "n":
                at = min(at + 1, last)
            case "b":
                at = max(at - 1, 0)
            case "e":
                at = last
            case "q":
                return
            case "l":
                for number, step in enumerate(record.steps, start=1):
                    print(_step_line(number, step, analysis))
                continue
            case number if number.isascii() and number.isdigit() and int(number) <= last:
                at = int(number)
            case _:
                print(f"Type n, b, e, l, q or a step from 0 to {last}.")
                continue
        show()
