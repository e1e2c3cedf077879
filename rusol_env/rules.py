"""Rule sets as data, and the reasons for which a move is refused.

Only this module and the engine know how rule sets differ; everything else follows from `VARIANTS`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

NUM_COLUMNS: Final = 7
# Where a card may go: a tableau column, or its own foundation.
FOUNDATION: Final = NUM_COLUMNS
NUM_DESTINATIONS: Final = NUM_COLUMNS + 1


def destination_name(destination: int) -> str:
    """What people call a destination: ``"column 3"`` (counted from 1) or ``"foundation"``."""
    return "foundation" if destination == FOUNDATION else f"column {destination + 1}"


# The deal: how many cards each column starts with, and how many of them lie face down at its base.
DEAL_HEIGHTS: Final = (1, 6, 7, 8, 9, 10, 11)
DEAL_FACE_DOWN: Final = (0, 1, 2, 3, 4, 5, 6)


class Variant(IntEnum):
    """Which rule set; its member name is its public name, the first letter its letter in codes."""

    CLASSIC = 0
    RELAXED = 1
    YUKON = 2


class Build(IntEnum):
    """Which suits may lie on a card in a column (always exactly one rank lower)."""

    SAME_SUIT = 0
    ANY_SUIT = 1
    OTHER_COLOUR = 2


class Rules(NamedTuple):
    """One rule set. All fields are integers, so that the engine can keep them in a game's row."""

    variant: Variant
    build: Build
    max_group: int = 20
    """The most cards that move at once, from a column to another."""
    foundation_points: int = 10
    """Points for each card put on a foundation."""
    turn_points: int = 5
    """Points for each face-down card turned up."""
    undo_limit: int = 100
    """How many moves can be undone."""

    @property
    def name(self) -> str:
        """``"classic"``, ``"relaxed"`` or ``"yukon"``."""
        return self.variant.name.lower()

    @property
    def letter(self) -> str:
        """The letter of this rule set in a game code: ``"C"``, ``"R"`` or ``"Y"``."""
        return self.variant.name[0]


CLASSIC: Final = Rules(Variant.CLASSIC, Build.SAME_SUIT)
RELAXED: Final = Rules(Variant.RELAXED, Build.ANY_SUIT)
YUKON: Final = Rules(Variant.YUKON, Build.OTHER_COLOUR)

VARIANTS: Final[dict[str, Rules]] = {rules.name: rules for rules in (CLASSIC, RELAXED, YUKON)}


def rules_named(rules: str | Rules) -> Rules:
    """The rule set of that name (any letter case); one of the `VARIANTS` is handed back as it is.

    Raises:
        ValueError: no rule set has that name, or the value is none of them (codes and results name only those).
    """
    if isinstance(rules, Rules):
        if rules not in VARIANTS.values():
            raise ValueError(f"{rules} is none of the rule sets {', '.join(VARIANTS)}, which codes and results name")
        return rules
    found = VARIANTS.get(str(rules).lower())
    if found is None:
        raise ValueError(f"unknown rules {rules!r}: use one of {', '.join(VARIANTS)}")
    return found


class Rejection(IntEnum):
    """Why a move was refused. `rusol_env.game.explain` makes the sentence for a given move."""

    NONE = 0
    """The move is legal."""
    FACE_DOWN = 1
    """The card lies face down."""
    NOT_LAST = 2
    """Only a column's last card goes to a foundation."""
    FOUNDATION_ORDER = 3
    """Its foundation needs another card first."""
    ON_FOUNDATION = 4
    """The card lies on its foundation already."""
    NOT_TOP = 5
    """Only a foundation's top card comes back."""
    SAME_COLUMN = 6
    """The card is in that column already."""
    EMPTY_NEEDS_KING = 7
    """An empty column takes only a king."""
    DOES_NOT_FIT = 8
    """The column's last card is not one that this card may lie on."""
    GROUP_TOO_LARGE = 9
    """More cards would move than move at once."""
    TAKE_BACK_OFF = 10
    """Taking cards back from foundations is switched off in this environment."""
    IDLE_MOVE = 11
    """A king that is its whole column would only change columns; switched off in this environment."""
    GAME_WON = 12
    """The game is won: there is nothing left to move."""
