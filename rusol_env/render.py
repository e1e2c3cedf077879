"""Pictures of a position, from what a player sees of it."""

from __future__ import annotations

import os
import sys
from typing import Final

from rusol_env.cards import NUM_SUITS, RED_SUITS, SUIT_SYMBOLS, card_name, rank_name, suit_of
from rusol_env.observe import Visible

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
