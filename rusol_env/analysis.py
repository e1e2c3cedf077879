"""What a finished game was worth: after which step its deal could not be won any more, as the solver proves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from rusol_env.game import Game, Move
from rusol_env.record import Record
from rusol_env.solver import Verdict, solve

# What the solver may spend on one position.
NODE_LIMIT: Final = 2_000_000
TIME_LIMIT: Final = 10.0


class Judgement(NamedTuple):
    """What is known of a position when all cards are known."""

    verdict: Verdict
    moves: tuple[Move, ...] = ()
    """Moves that win, where it is winnable."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A step after which a winnable deal could not be won any more."""

    step: int
    """The step, counted from 1: after it the deal is not known to be winnable."""
    proved: int
    """The step after which it is proved that it is not: `step`, unless the solver was undecided between."""
    kept: tuple[Move, ...]
    """The other legal moves before `step` that would have kept it winnable."""
    unclear: tuple[Move, ...]
    """Those of which the solver could not tell."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The verdicts of a game, position by position."""

    verdicts: tuple[Verdict, ...]
    """Of the position after so many steps: one more than there are steps."""
    mistakes: tuple[Mistake, ...]
    """In order; more than one only where moves were undone."""


def judge(game: Game, *, node_limit: int = NODE_LIMIT, time_limit: float = TIME_LIMIT) -> Judgement:
    """Whether `game` can be won from where it stands, by a player who knows all cards."""
    if game.won:
        return Judgement(Verdict.WINNABLE)
    # Under the rules as they are: cards may be taken back, whatever the player's environment allows.
    solution = solve(game, game.rules, node_limit=node_limit, time_limit=time_limit, take_back=True)
    return Judgement(solution.verdict, solution.moves)


def analyse(
    record: Record,
    *,
    node_limit: int = NODE_LIMIT,
    time_limit: float = TIME_LIMIT,
    progress: Callable[[int], None] | None = None,
) -> Analysis:
    """Judge every position of a game.

    What one verdict settles is not searched again: a position is winnable if one that follows it is, and the
    move that a known solution begins with leads to a winnable one; nothing winnable follows an unwinnable one.

    Args:
        record: the game.
        node_limit: what the solver may visit at each position.
        time_limit: the seconds that it may take at each position.
        progress: called with the number of steps judged.
    """

    def ask(game: Game) -> Judgement:
        return judge(game, node_limit=node_limit, time_limit=time_limit)

    # The positions are a tree, since moves are undone: `path` leads from the start to the position of each step.
    path, found = [0], 1
    parents, nodes = [-1], [0]
    moves: list[Move | None] = [None]
    children: dict[tuple[int, Move], int] = {}
    for step in record.steps:
        if step.move is None:
            path.pop()
        else:
            edge = path[-1], step.move
            if edge not in children:
                children[edge] = found
                parents.append(path[-1])
                moves.append(step.move)
                found += 1
            path.append(children[edge])
        nodes.append(path[-1])

    known: dict[int, Judgement] = {}
    # A game that was won shows its own solution.
    if record.game().won:
        for node in path:
            known[node] = Judgement(Verdict.WINNABLE)
    game = Game(record.start, record.rules)
    for count, node in enumerate(nodes):
        if count:
            move = record.steps[count - 1].move
            if move is None:
                game.undo()
            else:
                game.play(move)
        if node not in known:
            before = known.get(parents[node])
            if before is not None and before.verdict is Verdict.UNWINNABLE:
                known[node] = before
            elif before is not None and before.moves[:1] == (moves[node],):
                known[node] = Judgement(Verdict.WINNABLE, before.moves[1:])
            else:
                known[node] = ask(game)
            if known[node].verdict is Verdict.WINNABLE:
                above = parents[node]
                while above >= 0 and known[above].verdict is Verdict.UNDECIDED:
                    known[above] = Judgement(Verdict.WINNABLE)
                    above = parents[above]
        if progress is not None:
            progress(count)

    verdicts = tuple(known[node].verdict for node in nodes)
    mistakes: list[Mistake] = []
    for step in range(1, len(verdicts)):
        if verdicts[step - 1] is not Verdict.WINNABLE or verdicts[step] is Verdict.WINNABLE:
            continue
        proved = step
        while proved < len(verdicts) and verdicts[proved] is Verdict.UNDECIDED:
            proved += 1
        if proved == len(verdicts) or verdicts[proved] is not Verdict.UNWINNABLE:
            continue
        before = record.game(step - 1)
        kept: list[Move] = []
        unclear: list[Move] = []
        for move in before.legal_moves(idle_moves=False):
            if move == record.steps[step - 1].move:
                continue
            after = record.game(step - 1)
            after.play(move)
            verdict = ask(after).verdict
            if verdict is Verdict.WINNABLE:
                kept.append(move)
            elif verdict is Verdict.UNDECIDED:
                unclear.append(move)
        mistakes.append(Mistake(step, proved, tuple(kept), tuple(unclear)))
    return Analysis(verdicts, tuple(mistakes))


def summary(record: Record, analysis: Analysis) -> list[str]:
    """The analysis in sentences."""
    first, last = analysis.verdicts[0], analysis.verdicts[-1]
    won = record.game().won
    if first is Verdict.UNWINNABLE:
        return ["This position cannot be won from its start, even by a player who knows every card."]
    lines: list[str] = []
    for mistake in analysis.mistakes:
        move = record.steps[mistake.step - 1].move
        where = f"step {mistake.step}, {move}"
        if mistake.proved == mistake.step:
            lines.append(f"After {where}, the deal could not be won any more.")
        else:
            lines.append(
                f"Between {where}, and step {mistake.proved} the deal became unwinnable; "
                "at which of them, the solver could not decide."
            )
        if mistake.kept:
            lines.append(f"These moves would have kept it winnable: {_list(mistake.kept)}.")
        if mistake.unclear:
            lines.append(f"Of these moves the solver could not tell: {_list(mistake.unclear)}.")
    if won:
        lines.append("The game was won.")
    elif last is Verdict.WINNABLE:
        lines.append("The game could still be won where it ended.")
    elif last is Verdict.UNDECIDED:
        lines.append(
            "Whether the game could still be won where it ended, the solver could not decide within its limits."
        )
    return lines


def _list(moves: tuple[Move, ...]) -> str:
    return ", ".join(str(move) for move in moves)
