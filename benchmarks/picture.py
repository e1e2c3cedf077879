"""The README's picture: `python benchmarks/picture.py` (`make picture`) draws docs/game.svg, a game in the middle."""

from __future__ import annotations

from pathlib import Path

from rusol_env import evaluate
from rusol_env.files import write_whole
from rusol_env.record import Recorder
from rusol_env.render import svg
from rusol_env.rules import RELAXED

PICTURE = Path(__file__).parent.parent / "docs" / "game.svg"
DEAL, MOVES = "RU1-R-AAAAAAA", 55


def drawn() -> str:
    """Greedy's game of that deal after so many moves, as SVG."""
    recorder = Recorder()
    result = evaluate("greedy", RELAXED, [DEAL], watch=recorder)
    ((_, record),) = recorder.records(result.numbers.tolist(), RELAXED, {"name": result.policy})
    return svg(record.game(MOVES).picture) + "\n"


if __name__ == "__main__":
    write_whole(PICTURE, drawn().encode())
    print(PICTURE)
