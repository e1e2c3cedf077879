"""Deal numbers, codes, suites and deals from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import rusol_env
from rusol_env import Game
from rusol_env.cards import NUM_CARDS, card_ascii, card_name, card_text, parse_card
from rusol_env.deals import (
    NUM_DEALS,
    NUM_EVAL_DEALS,
    Split,
    check_number,
    draw_deal,
    pysolfc_arrangement,
    read_deals,
)
from rusol_env.rules import VARIANTS

DATA = Path(__file__).parent / "data"

# From DESIGN 3, to the letter.
FIXED_POINTS = {
    "RU1-C-AAAAAAA": (
        0,
        "KS | TD 9S TC 3S JC KC | QS 3D KH 6H AH JH 3C | 4S QC 4D 2H JD AS 5S 5D | KD 6C 8D 5C 8C QH TS 4C AC"
        " | 7D 2D 7S QD 5H 7H AD 9H 8H 6D | 4H 2C JS 9D 8S 3H 6S 9C 2S TH 7C",
    ),
    "RU1-C-AAAAABB": (
        33,
        "9C | 8C 9D TC KC KS 8D | JS 6D 4C 4D 6H TS 9H | 5D TH JC 3S 3C 8H 5H JD | AC 3H KH 6C 2S AD AH AS 5C"
        " | 4H 7C 7S QH 7H 6S KD 3D 2D JH | 5S QD 2C TD QS QC 7D 8S 2H 4S 9S",
    ),
    "RU1-C-7777777": (
        2**35 - 1,
        "AS | 6S 8H KS AH 8D QC | 2D 6C AC 2S JD 9H 6D | 3D JH AD 9D JS 2H 7H TD | KH 7C 7D 5S 8S 3H 4H 2C TC"
        " | 9S 6H 3S 4S QH 8C 3C QD KC JC | 4C 5C 5H KD TH TS QS 7S 4D 5D 9C",
    ),
}
PYSOLFC_MS1 = (
    "3D | JD AS QH TD 7D 8C | 2D 7C AH 4H 4S 6D TC | 9H 5H 5S 3C AC TH 8S 6S | JC KD AD 3H 4C 4D 8H 8D 9C"
    " | 5D KC QC 2S 9D 5C 7S 2C QS 2H | 7H 9S KH KS QD JS TS 3S JH 6C 6H"
)


def one_line(columns: list[list[str]]) -> str:
    return " | ".join(" ".join(column) for column in columns)


@pytest.mark.parametrize("code", FIXED_POINTS)
def test_fixed_points(code: str) -> None:
    number, cards = FIXED_POINTS[code]
    assert rusol_env.decode_code(code) == (rusol_env.CLASSIC, number)
    assert rusol_env.encode_code(number, "classic") == code
    assert one_line(rusol_env.deal_arrangement(number).text()) == cards


@given(st.integers(0, NUM_DEALS - 1), st.sampled_from(list(VARIANTS)))
def test_codes_go_both_ways_and_deals_are_those_of_the_reference(number: int, rules: str) -> None:
    code = rusol_env.encode_code(number, rules)
    assert rusol_env.decode_code(f"  {code.lower()}\n") == (VARIANTS[rules], number)
    assert reference.decode(code) == (rules, number)
    assert rusol_env.deal_arrangement(number).text() == reference.deal(number)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("RU1-C-AAAAAB1", "letter 7 of the deal, '1'"),
        ("RU1-C-AAAAAB", "6 letters instead of 7"),
        ("RU1-C-AAAAABBB", "8 letters instead of 7"),
        ("RU1-X-AAAAABB", "the rules letter 'X' is not one of C (classic), R (relaxed), Y (yukon)"),
        ("RU2-C-AAAAABB", "the dealing algorithm 'RU2'"),
        ("AAAAABB", "1 parts"),
        ("", "1 parts"),
        ("RU1-C-AAAA-BB", "4 parts"),
        ("RU1-C-ÄAAAABB", "letter 1 of the deal, 'Ä'"),
        # Letters that upper() turns into plain ones.
        ("RU1-C-AAAAAß", "letter 6 of the deal, 'ß'"),
        ("RU1-C-AAAAAıı", "letter 6 of the deal, 'ı'"),
        ("RU1-C-AAAAAAſ", "letter 7 of the deal, 'ſ'"),
    ],
)
def test_a_bad_code_is_refused_with_what_is_wrong_and_a_good_one(code: str, said: str) -> None:
    with pytest.raises(ValueError, match="RU1-C-AAAAABB") as refused:
        rusol_env.decode_code(code)
    assert said in str(refused.value)


@pytest.mark.parametrize("number", [-1, NUM_DEALS, 1.0, True, "3", None, float("nan")])
def test_a_bad_deal_number_is_refused(number: Any) -> None:
    with pytest.raises(ValueError, match="deal number"):
        check_number(number)


def test_card_text_goes_both_ways_in_every_spelling() -> None:
    for card in range(NUM_CARDS):
        for text in (card_text(card), card_ascii(card), card_name(card), card_text(card).lower()):
            assert parse_card(text) == card
    assert (card_text(35), card_ascii(35), card_name(35)) == ("TD", "10D", "10♦")
    for bad in ("", "1S", "11H", "S", "10", "TDD", "XS", "2ſ", "♠", "ß"):
        with pytest.raises(ValueError, match="not a card"):
            parse_card(bad)


def deal_text() -> list[list[str]]:
    return rusol_env.deal_arrangement(0).text()


def test_a_bad_arrangement_is_refused_with_what_is_wrong() -> None:
    def said(columns: Any, face_down: Any = None) -> str:
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is compared below
            rusol_env.arrangement(columns, face_down)
        return str(refused.value)

    columns = deal_text()
    columns[1][0] = "KS"
    assert said(columns) == "a deal has each of the 52 cards once; doubled: KS; missing: TD"
    columns[1][0] = "1S"
    assert "'1S' is not a card" in said(columns)
    columns[1][0] = 52  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert "52 is not a card id" in said(columns)
    columns = deal_text()
    assert "missing: 7C" in said([*columns[:6], columns[6][:-1]])
    moved = deal_text()
    moved[0].append(moved[6].pop())
    assert said(moved) == "column 1 of a deal has 1 cards, not 2"
    assert "7 columns, not 6" in said(columns[:6])
    assert "face down" in said(columns, [0, 0, 0, 0, 0, 0, 0])
    assert "7 counts" in said(columns, [0, 1, 2])
    assert "not 'KS'" in said(["KS"] * 7)
    assert "lists of cards" in said("KS")
    assert "lists of cards" in said(None)


def test_positions_that_cannot_be_are_refused() -> None:
    def said(columns: list[list[str]], face_down: list[int]) -> str:
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is compared below
            Game.from_columns(columns, face_down)
        return str(refused.value)

    empty: list[list[str]] = [[] for _ in range(6)]
    assert "column 1 cannot have 1 of its 1 cards face down" in said([["KS"], *empty], [1, 0, 0, 0, 0, 0, 0])
    assert "column 2 cannot have 1 of its 0" in said([["KS"], *empty], [0, 1, 0, 0, 0, 0, 0])
    assert "column 1 cannot have -1" in said([["KS"], *empty], [-1, 0, 0, 0, 0, 0, 0])
    assert "the card KS is missing" in said([["QS"], *empty], [0] * 7)
    assert "the card KS is there twice" in said([["KS", "KS"], *empty], [0] * 7)


def test_arrangements_are_what_they_say() -> None:
    """A number is believed only with its own cards, is no part of equality, and nobody's list changes a position."""
    deal = rusol_env.deal_arrangement(3)
    with pytest.raises(ValueError, match="not those of deal 4"):
        rusol_env.Arrangement(deal.columns, number=4)
    with pytest.raises(ValueError, match="deal number"):
        rusol_env.Arrangement(deal.columns, number=-1)
    lists: Any = [list(column) for column in deal.columns]
    built = rusol_env.Arrangement(lists)
    lists[0].clear()
    assert built == deal
    assert hash(built) == hash(deal)
    assert rusol_env.arrangement(iter(deal.text())) == deal
    for face_down in ("0123456", 5, [0.5] * 7):
        with pytest.raises(ValueError, match=r"face_down|face down"):
            rusol_env.arrangement(deal.text(), face_down)  # pyright: ignore[reportArgumentType]


def test_changed_rules_do_not_pass_for_published_ones() -> None:
    changed = rusol_env.CLASSIC._replace(max_group=2)
    for use in (lambda: Game.from_number(0, changed), lambda: rusol_env.encode_code(0, changed)):
        with pytest.raises(ValueError, match="none of the rule sets classic, relaxed, yukon"):
            use()


def test_suites_are_the_evaluation_deals_in_order() -> None:
    assert list(rusol_env.suite("first-3")) == [0, 1, 2]
    assert len(rusol_env.suite("FIRST-1000")) == 1000
    for numbers in ([], [2**35], [-1], [1.5], range(-1, 5), range(2**35 + 1)):
        with pytest.raises(ValueError, match=r"empty|not a deal number"):
            rusol_env.Suite("mine", numbers)  # pyright: ignore[reportArgumentType]
    for bad in ("first-0", "first-", "first", "last-3", "first--1", f"first-{NUM_EVAL_DEALS + 1}", "first-1.5"):
        with pytest.raises(ValueError, match="suite"):
            rusol_env.suite(bad)


@pytest.mark.parametrize("split", Split)
def test_drawn_deals_keep_to_their_split_and_cover_it(split: Split) -> None:
    """Scenario 13: the first letters of 10^5 drawn codes are those of the split, all about equally often."""
    stream = np.array([3], np.uint64)
    numbers = np.array([draw_deal(stream, 0, int(split)) for _ in range(100_000)])
    block = numbers // NUM_EVAL_DEALS if split is Split.TRAIN else numbers * 32 // NUM_EVAL_DEALS
    counts = np.bincount(block, minlength=32)
    expected = [0, *[100_000 / 31] * 31] if split is Split.TRAIN else [100_000 / 32] * 32
    assert (counts[np.array(expected) == 0] == 0).all()
    # Chi-square with 30 or 31 degrees of freedom: over 80 has a chance below 1e-5; the seed is fixed.
    assert sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True) if e) < 80


def test_pysolfc_deals() -> None:
    assert one_line(pysolfc_arrangement("ms1").text()) == PYSOLFC_MS1
    assert pysolfc_arrangement(1) == pysolfc_arrangement("ms1")
    assert pysolfc_arrangement(123456) != pysolfc_arrangement("ms123456")
    for bad in (0, -1, "ms", "x1", 10**20 + 1, f"ms{2**33}", 1.5):
        with pytest.raises(ValueError, match="PySolFC deal"):
            pysolfc_arrangement(bad)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("file", "count"), [("classic_verdicts.jsonl", 500), ("relaxed_verdicts.jsonl", 427)])
def test_all_cases_load_and_the_moves_printed_for_them_replay(file: str, count: int) -> None:
    records = read_deals(DATA / file)
    assert len(records) == count
    assert {record.fields["verdict"] for record in records} <= {"winnable", "unwinnable"}
    for record in records:
        game = Game(record.arrangement, record.rules)
        judge = reference.Reference(record.rules.name, record.arrangement.text(), list(record.arrangement.face_down))
        for _ in range(30):
            texts = [move.ascii for move in game.legal_moves(take_back=False, idle_moves=False)]
            if not texts:
                break
            game.play(texts[-1])
            # An independent reading of the printed text.
            card, place = texts[-1].replace("10", "T").split(" > ")
            judge.play(card, 7 if place == "F" else int(place) - 1)
        assert ([list(column) for column in game.visible.columns], list(game.foundations)) == (
            [[None if card is None else parse_card(card) for card in column] for column in judge.visible()[0]],
            judge.visible()[1],
        )


def test_a_bad_line_of_a_file_of_deals_is_named(tmp_path: Path) -> None:
    """Scenario 21."""
    good: dict[str, Any] = {"id": "a", "rules": "classic", "columns": deal_text(), "face_down": [0, 1, 2, 3, 4, 5, 6]}
    file = tmp_path / "deals.jsonl"
    doubled = deal_text()
    doubled[0][0] = "TD"
    for bad, said in [
        (json.dumps(good | {"columns": doubled}), "doubled: TD"),
        (json.dumps(good | {"columns": [["ZZ"], *deal_text()[1:]]}), "'ZZ' is not a card"),
        (json.dumps(good | {"rules": "bridge"}), "unknown rules 'bridge': use one of classic, relaxed, yukon"),
        (json.dumps({"id": 1}), "lacks 'rules' and 'columns'"),
        ("[1]", "not a JSON object"),
        ("{", "line 2"),
        (json.dumps(good | {"columns": 5}), "lists of cards"),
        (json.dumps(good | {"face_down": 5}), "line 2"),
    ]:
        file.write_text(json.dumps(good) + "\n" + bad + "\n", encoding="utf-8")
        with pytest.raises(ValueError, match="line 2") as refused:
            read_deals(file)
        assert said in str(refused.value)
        assert str(file) in str(refused.value)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"deals.jsonl is not a text file in UTF-8"):
        read_deals(file)
    file.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ValueError, match="line 1"):
        read_deals(file)
    file.write_text(json.dumps(good | {"note": "\u2028"}, ensure_ascii=False) + "\n", encoding="utf-8-sig")
    assert len(read_deals(file)) == 1
    file.write_text(json.dumps(good) + "\n\n", encoding="utf-8")
    assert [record.id for record in read_deals(file)] == ["a"]
