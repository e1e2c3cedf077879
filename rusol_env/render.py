"""Pictures of a position, from what a player sees of it: as text, and drawn (`scene`, `svg`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from itertools import accumulate
from typing import Final, NamedTuple

from rusol_env import faces
from rusol_env.cards import (
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    RED_SUITS,
    SUIT_SYMBOLS,
    card_name,
    rank_name,
    rank_of,
    suit_of,
)
from rusol_env.faces import Shape
from rusol_env.observe import Visible
from rusol_env.rules import FOUNDATION, NUM_COLUMNS, destination_name

# SGR codes of ECMA-48: bold red, bold, dim, reset.
_RED: Final = "\x1b[1;31m"
_BLACK: Final = "\x1b[1m"
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"
_BACK: Final = "░░"


def terminal_takes_colour() -> bool:
    """Whether stdout is a terminal and NO_COLOR (https://no-color.org) is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def ansi(position: Visible, *, caption: str = "", colour: bool | None = None) -> str:
    """The position as text: foundations, then the columns side by side, base on top.

    Args:
        position: what a player sees; face-down cards are drawn as backs.
        caption: written on the first line, before the foundations.
        colour: with terminal colours; None: if stdout is a terminal that takes them.
    """
    colour = terminal_takes_colour() if colour is None else colour

    def paint(text: str, sgr: str) -> str:
        return f"{sgr}{text}{_PLAIN}" if colour else text

    def face(card: int | None) -> str:
        if card is None:
            return paint(f" {_BACK}", _DIM)
        return paint(f"{card_name(card):>3}", _RED if suit_of(card) in RED_SUITS else _BLACK)

    ups = "  ".join(
        paint(f"{SUIT_SYMBOLS[suit]} {rank_name(count - 1) if count else '-'}", _RED if suit in RED_SUITS else _BLACK)
        for suit, count in zip(range(NUM_SUITS), position.foundations, strict=True)
    )
    lines = [f"{caption}   {ups}" if caption else ups]
    lines.append(paint("   ".join(f"{k:>3}" for k in range(1, len(position.columns) + 1)), _DIM))
    for place in range(max((len(column) for column in position.columns), default=0)):
        cells = [face(column[place]) if place < len(column) else "   " for column in position.columns]
        lines.append("   ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


# ---- drawn pictures -----------------------------------------------------------------------------------------------

PICTURE_WIDTH: Final = 640
PICTURE_HEIGHT: Final = 480


class Picture(NamedTuple):
    """All that a picture of a game shows."""

    position: Visible
    rules: str
    """The name of the rule set."""
    score: int
    moves: int
    code: str | None = None
    """Of the deal; it gives the hidden cards away to who looks it up, so it is for people and not for agents."""
    last: tuple[int, int] | None = None
    """The last move, a card id and its destination; it is marked."""
    won: bool = False


class Sprite(NamedTuple):
    """Shapes of `rusol_env.faces` at a place of the picture, in pixels."""

    shapes: tuple[Shape, ...]
    x: float
    y: float
    scale: float


class Label(NamedTuple):
    """Text; (x, y) is the middle of its left end, or of its right end."""

    text: str
    x: float
    y: float
    size: float
    colour: str
    right: bool = False


class Scene(NamedTuple):
    """A picture as things to paint, from the back to the front."""

    width: int
    height: int
    items: tuple[Sprite | Label, ...]


def fan(column: Sequence[int | None], room: float, card: float) -> list[float]:
    """How far below its column's top each card lies, in pixels, so that the last one ends within `room`.

    Face-down cards show less than face-up ones; what does not fit is squeezed evenly.

    Args:
        column: the cards from the base; None is a face-down one.
        room: the height that the column may take.
        card: the height of a card.
    """
    unit = card / faces.HEIGHT
    strips = [unit * (faces.DOWN_STRIP if face is None else faces.INDEX_STRIP) for face in column[:-1]]
    squeeze = min(1.0, (room - card) / sum(strips)) if strips else 1.0
    return [0.0, *accumulate(strip * squeeze for strip in strips)][: len(column)]


def scene(picture: Picture, *, width: int = PICTURE_WIDTH, height: int = PICTURE_HEIGHT) -> Scene:
    """The picture laid out: a bar above, seven columns, the foundations at the right.

    Raises:
        ValueError: it is smaller than 160 by 120.
    """
    least_width, least_height = PICTURE_WIDTH // 4, PICTURE_HEIGHT // 4
    if width < least_width or height < least_height:
        raise ValueError(
            f"a picture of {width} by {height} is too small: make it {least_width} by {least_height} or more"
        )
    unit = min(width / PICTURE_WIDTH, height / PICTURE_HEIGHT)
    bar, margin, gap = 38 * unit, 14 * unit, 11 * unit
    places = NUM_COLUMNS + 1
    card_width = (width - 2 * margin - (places - 1) * gap - gap) / places
    scale = min(
        card_width / faces.WIDTH, (height - bar - 2 * margin - (NUM_SUITS - 1) * gap) / NUM_SUITS / faces.HEIGHT
    )
    card_width, card_height = scale * faces.WIDTH, scale * faces.HEIGHT
    gap = (width - 2 * margin - places * card_width) / places
    top, room = bar + margin, height - bar - 2 * margin
    items: list[Sprite | Label] = [*_bar(picture, width, bar, unit)]
    marks: list[Sprite] = []
    for k, column in enumerate(picture.position.columns):
        x = margin + k * (card_width + gap)
        if not column:
            items.append(Sprite(faces.well(), x, top, scale))
        offsets = fan(column, room, card_height)
        for place, (card, offset) in enumerate(zip(column, offsets, strict=True)):
            if card is None:
                shapes = faces.back()
            elif place == len(column) - 1:
                shapes = faces.front(card)
            else:
                strip = (offsets[place + 1] - offset) / scale
                # In steps, so that a picture has few sizes of figures.
                shapes = faces.covered(card, max(0.2, min(1.0, round(strip / faces.INDEX_STRIP, 1))))
            items.append(Sprite(shapes, x, top + offset, scale))
            if picture.last is not None and picture.last == (card, k):
                tall = (offsets[-1] - offset) / scale + faces.HEIGHT
                marks.append(Sprite(_mark(round(tall, 1)), x, top + offset, scale))
    x = width - margin - card_width
    for suit, count in enumerate(picture.position.foundations):
        y = top + suit * (card_height + (room - NUM_SUITS * card_height) / (NUM_SUITS - 1))
        card = suit * NUM_RANKS + count - 1
        items.append(Sprite(faces.front(card) if count else faces.well(suit), x, y, scale))
        if picture.last is not None and picture.last == (card, FOUNDATION):
            marks.append(Sprite(_mark(faces.HEIGHT), x, y, scale))
    return Scene(width, height, (*items, *marks))


@cache
def _mark(height: float) -> tuple[Shape, ...]:
    """The frame around the cards that moved last."""
    return (Shape(faces.rounded(0.5, 0.5, faces.WIDTH - 1, height - 1, faces.CORNER), None, "last", 4.5),)


def _bar(picture: Picture, width: int, bar: float, unit: float) -> Iterator[Sprite | Label]:
    yield Sprite((Shape(f"M0 0 L{width} 0 L{width} {bar:g} L0 {bar:g} Z", "bar"),), 0, 0, 1)
    size, middle, margin = 15 * unit, bar / 2, 14 * unit
    yield Label(f"Score {picture.score}", margin, middle, size, "ink")
    yield Label(f"Moves {picture.moves}", margin + 100 * unit, middle, size, "ink")
    if picture.won:
        yield Label("Won", margin + 204 * unit, middle, size, "last")
    elif picture.last is not None:
        card, destination = picture.last
        rank, tall = rank_of(card), size * 0.78
        wide = faces.figure_width(rank) * tall + 0.2 * size
        # Drawn, since fonts differ in their suits.
        named = faces.figure(rank, 0, 0, tall, "last"), faces.pip(suit_of(card), wide, 0, tall)._replace(fill="last")
        yield Sprite(named, margin + 204 * unit, middle - tall / 2, 1)
        text = f"to {destination_name(destination)}"
        yield Label(text, margin + 204 * unit + wide + tall + 0.5 * size, middle, size, "last")
    title = picture.rules.title()
    yield Label(f"{title} · {picture.code}" if picture.code else title, width - margin, middle, size, "faint", True)


def svg(
    picture: Picture, *, four_colours: bool = False, width: int = PICTURE_WIDTH, height: int = PICTURE_HEIGHT
) -> str:
    """The picture as one SVG element: no script, no link, no font but the reader's own.

    Args:
        picture: what it shows.
        four_colours: a colour for each suit.
        width: in pixels.
        height: in pixels.

    Raises:
        ValueError: it is smaller than 160 by 120.
    """
    colours = faces.palette(four_colours)
    drawn = scene(picture, width=width, height=height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="system-ui, \'DejaVu Sans\', Arial, sans-serif" font-weight="600">'
        f"<title>{escape(_title(picture))}</title>"
        f'<rect width="{width}" height="{height}" fill="{colours["table"]}"/>'
    ]
    for item in drawn.items:
        if isinstance(item, Label):
            anchor = ' text-anchor="end"' if item.right else ""
            parts.append(
                f'<text x="{item.x:.1f}" y="{item.y:.1f}" dy="0.35em" font-size="{item.size:.1f}"{anchor} '
                f'fill="{colours[item.colour]}">{escape(item.text)}</text>'
            )
        else:
            parts.append(f'<g transform="translate({item.x:.2f} {item.y:.2f}) scale({item.scale:.4f})">')
            parts += [shape_svg(shape, colours) for shape in item.shapes]
            parts.append("</g>")
    return "".join([*parts, "</svg>"])


def shape_svg(shape: Shape, colours: Mapping[str, str]) -> str:
    """One shape as an SVG element; `colours` says what each role is painted with."""
    stroke = ""
    if shape.stroke is not None:
        stroke = f' stroke="{colours[shape.stroke]}" stroke-width="{shape.width:g}"'
        stroke += ' stroke-linecap="round" stroke-linejoin="round"'
    return f'<path d="{shape.path}" fill="{colours[shape.fill] if shape.fill else "none"}"{stroke}/>'


def _title(picture: Picture) -> str:
    state = (
        f"score {picture.score}, moves {picture.moves}, {sum(picture.position.foundations)} cards on the foundations"
    )
    return f"Russian Solitaire, {picture.rules}: {state}"


# ---- what pages use -----------------------------------------------------------------------------------------------


def web(name: str) -> str:
    """The text of a file of the pages, from the folder ``web``."""
    return (resources.files("rusol_env") / "web" / name).read_text(encoding="utf-8")


def palette_css() -> str:
    """The colours as custom properties of CSS, with those of four colours under the class ``four-colours``."""

    def properties(colours: Mapping[str, str]) -> str:
        return " ".join(f"--{role}: {colour};" for role, colour in colours.items())

    plain, four = faces.palette(), faces.palette(four_colours=True)
    changed = {role: colour for role, colour in four.items() if plain[role] != colour}
    return f":root {{ {properties(plain)} }}\n.four-colours {{ {properties(changed)} }}\n"


@cache
def sprites() -> str:
    """All cards as symbols of one hidden SVG element, painted with the properties of `palette_css`.

    ``front-N`` for the card id N, and of its index alone ``rank-N`` and ``pip-N``; ``blank``, ``back``, ``well``, and
    ``well-N`` for the suit N.
    """
    drawings = {"blank": faces.blank(), "back": faces.back(), "well": faces.well()}
    drawings |= {f"well-{suit}": faces.well(suit) for suit in range(NUM_SUITS)}
    drawings |= {f"front-{card}": faces.front(card) for card in range(NUM_CARDS)}
    drawings |= {f"rank-{card}": faces.index(card)[:1] for card in range(NUM_CARDS)}
    drawings |= {f"pip-{card}": faces.index(card)[1:] for card in range(NUM_CARDS)}
    colours = {role: f"var(--{role})" for role in faces.palette()}
    symbols = [
        f'<symbol id="{name}" viewBox="0 0 {faces.WIDTH:g} {faces.HEIGHT:g}">'
        f"{''.join(shape_svg(shape, colours) for shape in shapes)}</symbol>"
        for name, shapes in drawings.items()
    ]
    return f'<svg class="sprites" width="0" height="0" aria-hidden="true">{"".join(symbols)}</svg>'
