"""Cards: their ids and their text.

A card's id is ``suit * NUM_RANKS + rank``: suits spades, hearts, diamonds, clubs; rank 0 (ace) to
12 (king). Ids 0 to 51 are the deck.
"""

from __future__ import annotations

from typing import Final

SUIT_LETTERS: Final = "SHDC"
SUIT_SYMBOLS: Final = "♠♥♦♣"
SUIT_NAMES: Final = ("spades", "hearts", "diamonds", "clubs")
RED_SUITS: Final = (1, 2)
RANK_LETTERS: Final = "A23456789TJQK"

NUM_SUITS: Final = 4
NUM_RANKS: Final = 13
NUM_CARDS: Final = NUM_SUITS * NUM_RANKS
KING: Final = NUM_RANKS - 1


def suit_of(card: int) -> int:
    """0 to 3: spades, hearts, diamonds, clubs."""
    return card // NUM_RANKS


def rank_of(card: int) -> int:
    """0 (ace) to 12 (king)."""
    return card % NUM_RANKS


def rank_name(rank: int) -> str:
    """``"A"``, ``"2"`` … ``"10"``, ``"J"``, ``"Q"``, ``"K"``."""
    return "10" if RANK_LETTERS[rank] == "T" else RANK_LETTERS[rank]


def card_text(card: int) -> str:
    """Two characters, for fixed-width text and files: ``"TD"``."""
    return RANK_LETTERS[rank_of(card)] + SUIT_LETTERS[suit_of(card)]


def card_ascii(card: int) -> str:
    """For people, in plain letters: ``"10D"``."""
    return rank_name(rank_of(card)) + SUIT_LETTERS[suit_of(card)]


def card_name(card: int) -> str:
    """For people, with the suit's symbol: ``"10♦"``."""
    return rank_name(rank_of(card)) + SUIT_SYMBOLS[suit_of(card)]


def _spellings() -> dict[str, int]:
    return {
        rank + suit: card
        for card in range(NUM_CARDS)
        for rank in {RANK_LETTERS[rank_of(card)], rank_name(rank_of(card))}
        for suit in (SUIT_LETTERS[suit_of(card)], SUIT_SYMBOLS[suit_of(card)])
    }


_CARDS: Final = _spellings()


def parse_card(text: str) -> int:
    """The id of a card written ``TD``, ``10D`` or ``10♦``, in any letter case.

    Raises:
        ValueError: `text` is no card.
    """
    text = text.strip()
    # Only plain letters have other cases here: upper() also turns some foreign letters into S.
    plain = text[:-1].isascii() and (text[-1:].isascii() or text[-1] in SUIT_SYMBOLS)
    card = _CARDS.get(text.upper()) if plain else None
    if card is None:
        raise ValueError(
            f"{text!r} is not a card: write a rank (A, 2 to 10 or T, J, Q, K) and a suit (S, H, D, C), as in '10D'"
        )
    return card
