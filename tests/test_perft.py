"""Perft: the engine counts the same move sequences as the reference wrote into tests/perft/."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import reference
from numpy.typing import NDArray

from rusol_env import VARIANTS, arrangement, decode_code, engine

FOLDER = Path(__file__).parent / "perft"
MODES = {"plain": False, "all": True}
# The reference is slow: it recounts the lines up to this depth.
RECOUNTED_DEPTH = 3

Counts = dict[int, int]


@cache
def perft_file(rules: str) -> dict[tuple[str, str], Counts]:
    """The file of one variant: position and mode -> depth -> count."""
    counts: dict[tuple[str, str], Counts] = {}
    for line in (FOLDER / f"{rules}.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            position, mode, depth, count = line.split()
            known = counts.setdefault((position, mode), {})
            assert int(depth) not in known, f"{line!r} is there twice"
            known[int(depth)] = int(count)
    return counts


def has_file(rules: str) -> bool:
    """Whether the variant has its perft file; `test_every_variant_has_its_file` fails if not."""
    return (FOLDER / f"{rules}.txt").exists()


CASES = [(rules, *case) for rules in VARIANTS if has_file(rules) for case in perft_file(rules)]


def row_at(position: str) -> NDArray[np.int8]:
    """The row of a position that a file names as CODE or CODE/STEPS."""
    code, _, steps = position.partition("/")
    rules, number = decode_code(code)
    row = engine.new_rows(1, rules)[0]
    if steps:
        game = reference.position(position)
        engine.arrange(row, arrangement(game.columns, game.face_down, deal=False))
    else:
        engine.deal(row, number)
    return row


def count(row: NDArray[np.int8], depth: int, take_back: bool, idle_moves: bool) -> int:
    """The number of sequences of exactly `depth` legal moves from the position in `row`."""
    actions = np.empty(engine.MAX_LEGAL, np.int16)
    legal = engine.legal(row, take_back, idle_moves, actions)
    if depth == 1:
        return legal
    total = 0
    for action in actions[:legal].tolist():
        record = engine.apply(row, action)
        total += count(row, depth - 1, take_back, idle_moves)
        engine.undo(row, record)
    return total


def without_move_counter(row: NDArray[np.int8]) -> bytes:
    """All bytes of a row but the move counter."""
    return row[: engine.MOVES].tobytes() + row[engine.MOVES + 8 :].tobytes()


def test_every_variant_has_its_file() -> None:
    """There is one file for each variant, and none besides."""
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{rules}.txt" for rules in VARIANTS)


@pytest.mark.parametrize("rules", VARIANTS)
def test_file_is_deep_enough(rules: str) -> None:
    """A file counts at least three deals to depth 5 or more in both modes; all of its positions have its rules."""
    counts = perft_file(rules)
    for (position, mode), known in counts.items():
        assert decode_code(position.partition("/")[0])[0].name == rules
        assert mode in MODES
        assert sorted(known) == list(range(1, max(known) + 1))
    for mode in MODES:
        deals = [position for position, of in counts if of == mode and "/" not in position]
        assert len([position for position in deals if max(counts[position, mode]) >= 5]) >= 3


@pytest.mark.parametrize(("rules", "position", "mode"), CASES)
def test_engine_counts_the_same(rules: str, position: str, mode: str) -> None:
    """Each line's count is the engine's, and undo leaves the row as it was."""
    row = row_at(position)
    before = without_move_counter(row)
    expected = perft_file(rules)[position, mode]
    assert {depth: count(row, depth, MODES[mode], MODES[mode]) for depth in expected} == expected
    assert without_move_counter(row) == before


@pytest.mark.parametrize(("rules", "position", "mode"), CASES)
def test_file_is_not_stale(rules: str, position: str, mode: str) -> None:
    """The reference still counts what the file says, up to depth 3."""
    game = reference.position(position)
    expected = {depth: count for depth, count in perft_file(rules)[position, mode].items() if depth <= RECOUNTED_DEPTH}
    assert {depth: reference.perft(game, depth, MODES[mode], MODES[mode]) for depth in expected} == expected
