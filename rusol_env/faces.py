"""Cards as shapes: ranks, suits, courts and backs, drawn here and used by every picture.

A shape is a path in SVG's own letters (absolute ``M``, ``L``, ``C`` and ``Z`` only), so that the same drawing
becomes SVG text, pixels (`rusol_env.raster`) or the sprites of a page. No font is involved. A card is 100 wide
and 140 high.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final, NamedTuple

from rusol_env.cards import NUM_SUITS, rank_of, suit_of

WIDTH: Final = 100.0
HEIGHT: Final = 140.0
CORNER: Final = 9.0
# How much of a card shows its index: what a face-up card under another one needs, unless its column is squeezed.
INDEX_STRIP: Final = 35.0
DOWN_STRIP: Final = 12.0


class Shape(NamedTuple):
    """One painted path. Colours are names of the `Palette`'s roles."""

    path: str
    fill: str | None = None
    stroke: str | None = None
    width: float = 0.0
    """Of the stroke, with round ends and joins."""


# What a picture is painted with. Suits: spades, hearts, diamonds, clubs.
_TABLE: Final = {
    "table": "#1d5b50",
    "bar": "#123c35",
    "ink": "#f3f0e6",
    "faint": "#9fc0b6",
    "well": "#17493f",
    "well-edge": "#3f8274",
    "paper": "#fdfcf7",
    "edge": "#8b8f88",
    "panel": "#f1ecdc",
    "back": "#2f4b86",
    "back-line": "#8fa9de",
    "back-edge": "#e9edf7",
    "crown": "#d9a520",
    "last": "#ffcf3f",
}
_TWO: Final = ("#1c2024", "#c4122f", "#c4122f", "#1c2024")
# Black, vermilion, blue and green after Okabe & Ito, "Color Universal Design" (2008), darkened to be read on paper;
# tests/test_pictures.py computes that any two are told apart with protanopia, deuteranopia and tritanopia.
_FOUR: Final = ("#111418", "#d5431c", "#0b57c9", "#1a8f5f")


def palette(four_colours: bool = False) -> dict[str, str]:
    """The colour of every role: the table's, and ``suit0`` to ``suit3``.

    Args:
        four_colours: a colour for each suit, instead of black and red.
    """
    suits = _FOUR if four_colours else _TWO
    return _TABLE | {f"suit{suit}": suits[suit] for suit in range(NUM_SUITS)}


def rounded(x: float, y: float, width: float, height: float, radius: float) -> str:
    """The path of a rectangle with round corners."""
    # A quarter of a circle as one cubic curve: its handles are this share of the radius.
    k = radius * (1 - 0.5523)
    left, top, right, bottom, r = x, y, x + width, y + height, radius
    return (
        f"M{left + r:g} {top:g} L{right - r:g} {top:g} "
        f"C{right - k:g} {top:g} {right:g} {top + k:g} {right:g} {top + r:g} "
        f"L{right:g} {bottom - r:g} C{right:g} {bottom - k:g} {right - k:g} {bottom:g} {right - r:g} {bottom:g} "
        f"L{left + r:g} {bottom:g} C{left + k:g} {bottom:g} {left:g} {bottom - k:g} {left:g} {bottom - r:g} "
        f"L{left:g} {top + r:g} C{left:g} {top + k:g} {left + k:g} {top:g} {left + r:g} {top:g} Z"
    )


def _circle(x: float, y: float, radius: float) -> str:
    return rounded(x - radius, y - radius, 2 * radius, 2 * radius, radius)


# In a box of 100 by 100. Subpaths add up, none cuts a hole.
_SUITS: Final = (
    "M50 3 C66 26 96 41 96 64 C96 77 86 85 76 85 C66 85 58 80 54 71 C55 83 60 91 69 97 L31 97 "
    "C40 91 45 83 46 71 C42 80 34 85 24 85 C14 85 4 77 4 64 C4 41 34 26 50 3 Z",
    "M50 95 C36 74 4 56 4 31 C4 15 15 6 27 6 C38 6 46 13 50 23 C54 13 62 6 73 6 C85 6 96 15 96 31 C96 56 64 74 50 95 Z",
    "M50 2 C59 20 72 37 88 50 C72 63 59 80 50 98 C41 80 28 63 12 50 C28 37 41 20 50 2 Z",
    f"{_circle(50, 26, 23)} {_circle(25, 61, 23)} {_circle(75, 61, 23)} M50 30 L72 66 L28 66 Z "
    "M46 50 L54 50 C55 76 60 90 69 97 L31 97 C40 90 45 76 46 50 Z",
)
# Strokes in a box of 60 (the ten: 92) by 100.
_RANKS: Final = (
    "M7 92 L30 8 L53 92 M15 66 L45 66",
    "M8 31 C8 1 52 1 52 32 C52 56 16 64 9 92 L53 92",
    "M9 21 C17 1 50 3 50 28 C50 43 40 48 26 48 C41 48 53 54 53 70 C53 98 15 98 7 77",
    "M42 92 L42 8 L6 68 L55 68",
    "M49 8 L16 8 L12 46 C25 35 53 38 53 65 C53 98 16 98 7 78",
    "M46 13 C30 3 8 22 8 60 C8 102 53 102 53 66 C53 35 16 34 9 60",
    "M7 8 L53 8 C42 34 30 56 25 92",
    "M30 48 C8 48 8 8 30 8 C52 8 52 48 30 48 C1 48 1 92 30 92 C59 92 59 48 30 48 Z",
    "M14 87 C30 97 52 78 52 40 C52 -2 7 -2 7 34 C7 65 44 66 51 40",
    "M4 26 L20 8 L20 92 M64 8 C92 8 92 92 64 92 C36 92 36 8 64 8 Z",
    "M24 8 L44 8 L44 64 C44 98 10 98 7 73",
    "M30 8 C60 8 60 92 30 92 C0 92 0 8 30 8 Z M34 70 L54 95",
    "M10 8 L10 92 M51 8 L12 56 M25 42 L53 92",
)
_TEN: Final = 9
_JACK: Final = 10
_RANK_WIDTH: Final = 60.0
_TEN_WIDTH: Final = 92.0
_RANK_STROKE: Final = 15.0
# In a box of 100 by 60: a cap with its feather, a coronet, a crown.
_COURTS: Final = (
    "M16 58 L16 47 L84 47 L84 58 Z M14 43 C-6 22 26 6 52 10 C84 12 104 28 86 43 Z "
    "M50 14 C46 -10 66 -26 88 -22 C92 -6 82 10 60 14 Z",
    f"M14 58 L4 22 L30 38 L50 12 L70 38 L96 22 L86 58 Z {_circle(4, 18, 6)} {_circle(50, 8, 6)} {_circle(96, 18, 6)} "
    f"{_circle(27, 28, 5)} {_circle(73, 28, 5)}",
    "M12 58 L2 14 L27 34 L50 0 L73 34 L98 14 L88 58 Z M46 -18 L54 -18 L54 2 L46 2 Z M40 -14 L60 -14 L60 -6 L40 -6 Z "
    f"{_circle(2, 12, 5)} {_circle(98, 12, 5)}",
)

_TOKEN: Final = re.compile(r"[MLCZ]|-?\d+(?:\.\d+)?")
_COORDINATES: Final = {"M": 2, "L": 2, "C": 6, "Z": 0}


def commands(path: str) -> list[tuple[str, list[float]]]:
    """The commands of a path and their absolute coordinates."""
    found: list[tuple[str, list[float]]] = []
    for token in _TOKEN.findall(path):
        if token in _COORDINATES:
            found.append((token, []))
        else:
            found[-1][1].append(float(token))
    return found


@lru_cache(4096)
def moved(path: str, x: float, y: float, scale: float) -> str:
    """The path scaled about the origin, then moved to (x, y)."""
    parts: list[str] = []
    for letter, numbers in commands(path):
        placed = [
            f"{scale * number + (y if k % 2 else x):.2f}".rstrip("0").rstrip(".") for k, number in enumerate(numbers)
        ]
        parts.append(letter + " ".join(placed))
    return "".join(parts)


def pip(suit: int, x: float, y: float, size: float) -> Shape:
    """A suit's symbol; (x, y) is the top left corner of its square."""
    return Shape(moved(_SUITS[suit], x, y, size / 100), f"suit{suit}")


def figure(rank: int, x: float, y: float, height: float, colour: str) -> Shape:
    """A rank's sign; (x, y) is its top left corner."""
    return Shape(moved(_RANKS[rank], x, y, height / 100), None, colour, _RANK_STROKE * height / 100)


def figure_width(rank: int) -> float:
    """How wide a rank's sign is for a height of 1."""
    return (_TEN_WIDTH if rank == _TEN else _RANK_WIDTH) / 100


def index(card: int, scale: float = 1.0) -> tuple[Shape, ...]:
    """Rank and suit at the top of a card, smaller where its column is squeezed."""
    height, top = 25 * scale, 7 * scale
    return (
        figure(rank_of(card), 9, top, height, f"suit{suit_of(card)}"),
        pip(suit_of(card), WIDTH - 10 - height, top, height),
    )


@cache
def front(card: int) -> tuple[Shape, ...]:
    """A whole face-up card."""
    rank, suit = rank_of(card), suit_of(card)
    shapes = [*blank(), *index(card)]
    if rank >= _JACK:
        shapes += [
            Shape(rounded(20, 44, 60, 84, 6), "panel"),
            Shape(moved(_COURTS[rank - _JACK], 28, 60, 0.44), "crown"),
            pip(suit, 31, 88, 38),
        ]
    else:
        size = 66.0 if rank == 0 else 54.0
        shapes.append(pip(suit, 50 - size / 2, 87 - size / 2, size))
    return tuple(shapes)


@cache
def covered(card: int, scale: float = 1.0) -> tuple[Shape, ...]:
    """A face-up card of which only the upper strip is seen."""
    return (*blank(), *index(card, scale))


@cache
def blank() -> tuple[Shape, ...]:
    """The paper of a card."""
    return (Shape(rounded(0.6, 0.6, WIDTH - 1.2, HEIGHT - 1.2, CORNER), "paper", "edge", 1.2),)


@cache
def back() -> tuple[Shape, ...]:
    """A face-down card."""
    step_x, step_y = 14.0, 16.0
    diamonds = " ".join(
        moved("M0 -6 L5 0 L0 6 L-5 0 Z", x, y, 1.0)
        for row in range(8)
        for x, y in [
            (WIDTH / 2 + step_x * (column - (5 if row % 2 else 4) / 2), HEIGHT / 2 + step_y * (row - 3.5))
            for column in range(6 if row % 2 else 5)
        ]
    )
    return (
        Shape(rounded(0.6, 0.6, WIDTH - 1.2, HEIGHT - 1.2, CORNER), "back-edge", "edge", 1.2),
        Shape(rounded(3.5, 3.5, WIDTH - 7, HEIGHT - 7, 7), "back"),
        Shape(diamonds, "back-line"),
    )


@cache
def well(suit: int | None = None) -> tuple[Shape, ...]:
    """An empty place on the table: a column's, or with its suit a foundation's."""
    place = Shape(rounded(1, 1, WIDTH - 2, HEIGHT - 2, CORNER), "well", "well-edge", 2)
    if suit is None:
        return (place,)
    return place, Shape(moved(_SUITS[suit], 27, 47, 0.46), "well-edge")
