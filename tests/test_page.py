"""The pages in a real browser: Debian's Chromium without a window, moved by mouse and keys through Playwright.

Where there is no browser these tests are skipped and say so; ``.ci/run`` installs one.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_play import Server, big_group, won_record

from rusol_env import Game, Move, Record, Step
from rusol_env.cards import parse_card
from rusol_env.replay import html
from rusol_env.rules import FOUNDATION

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

# No wizard, no updates, no requests of its own; root in a container has no sandbox.
ARGUMENTS = [
    f"--{switch}"
    for switch in (
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
    )
]
PATIENCE = 8.0


def executable() -> str | None:
    """A Chromium that is on this machine."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="no browser tests: playwright is not installed ([dev])")
    path = executable()
    if path is None:
        pytest.skip("no browser tests: there is no Chromium here (apt-get install chromium, or set CHROMIUM)")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    pytest.importorskip("uvicorn", reason="the page needs the extra [play]")
    running = Server(tmp_path)
    yield running
    running.close()


@pytest.fixture
def problems() -> Iterator[list[str]]:
    """What a page complains of, in its console or by an exception: nothing."""
    found: list[str] = []
    yield found
    assert found == []


def open_page(browser: Browser, address: str, problems: list[str], **context: Any) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 800}, **context).new_page()
    # A refused call is an answer with a status, which Chromium notes in the console.
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" and "status of" not in m.text else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    page.locator(".card").first.wait_for()
    return page


@pytest.fixture
def page(browser: Browser, server: Server, problems: list[str]) -> Iterator[Page]:
    server.table.new(code="RU1-C-AAAAABB")
    opened = open_page(browser, server.origin, problems)
    yield opened
    opened.context.close()


def card(page: Page, name: str) -> Locator:
    return page.locator(f'.card[data-card="{parse_card(name)}"]')


def point(page: Page, name: str) -> tuple[float, float]:
    """A point of a card that no other card covers."""
    box = card(page, name).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + 6


def drag(page: Page, name: str, to: tuple[float, float], *, steps: int = 4) -> None:
    page.mouse.move(*point(page, name))
    page.mouse.down()
    page.mouse.move(*to, steps=steps)
    page.mouse.up()


def column(page: Page, number: int) -> tuple[float, float]:
    """A point over a column, numbered from 1."""
    box = page.locator(f'.well[data-place="{number - 1}"]').bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + 90


def foundation(page: Page, suit: int) -> tuple[float, float]:
    box = page.locator(f'.well[data-place="{FOUNDATION + suit}"]').bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + 40


def until(page: Page, script: str, value: Any) -> None:
    """Wait until `script` gives `value`; the page's policy forbids Playwright's own way, which is eval."""
    ends = time.monotonic() + PATIENCE
    while (found := page.evaluate(script)) != value:
        assert time.monotonic() < ends, f"{script} is {found!r}, not {value!r}"
        page.wait_for_timeout(20)


def moves(page: Page, number: int) -> None:
    until(page, "document.getElementById('moves').textContent", str(number))


def settle(page: Page) -> None:
    """Until the board is drawn for the size of the window (in the frame after next), and no card is on its way."""
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    until(page, "document.getAnimations().length", 0)


def notice(page: Page) -> str:
    page.locator("#notice").wait_for(state="visible")
    return page.locator("#notice").inner_text()


def test_a_card_is_dragged_with_its_group(page: Page, server: Server) -> None:
    x, y = point(page, "8H")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 80, y + 60, steps=4)
    assert page.locator(".dragging").count() == 3  # the 8♥ with the 5♥ and the J♦ on it
    assert page.locator(".fits").count() == 1  # placement help: the 9♥
    page.mouse.move(*column(page, 3), steps=4)
    assert page.locator(".fits.over").count() == 1
    page.mouse.up()
    moves(page, 1)
    assert server.table.game.line == (Move(20, 2),)
    settle(page)
    assert page.locator('.card[data-column="2"]').count() == 10
    assert page.locator(".dragging, .fits").count() == 0
    assert page.locator(".last-move").is_visible()


def test_a_refused_move_flies_back_and_says_why(page: Page, server: Server) -> None:
    settle(page)
    before = point(page, "JH")
    drag(page, "JH", column(page, 7))
    assert notice(page) == "The J♥ needs the Q♥ to lie on: same suit, one higher."
    settle(page)
    assert point(page, "JH") == pytest.approx(before, abs=1)
    assert server.table.game.line == ()
    page.click("#options-open")
    page.uncheck("input[name=interactive_rules]")
    page.click("#options button.main")
    page.evaluate("document.getElementById('notice').hidden = true")
    drag(page, "JH", column(page, 7))
    page.wait_for_timeout(200)
    assert not page.locator("#notice").is_visible()


def test_a_group_of_21_flies_back(page: Page, server: Server) -> None:
    server.table.game = big_group(21)
    page.reload()
    page.locator(".card").first.wait_for()
    settle(page)
    page.mouse.move(*(at := point(page, "QS")))
    page.mouse.down()
    page.mouse.move(at[0] + 60, at[1] + 20, steps=3)
    assert page.locator(".dragging").count() == 21
    assert page.locator(".fits").count() == 0
    page.mouse.move(*column(page, 2), steps=3)
    page.mouse.up()
    assert notice(page) == "The Q♠ and the cards on it are 21 cards: at most 20 move at once."
    settle(page)
    assert page.locator('.card[data-column="0"]').count() == 21


def test_placement_help_can_be_switched_off(page: Page) -> None:
    page.click("#options-open")
    page.uncheck("input[name=placement_help]")
    page.click("#options button.main")
    x, y = point(page, "8H")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 80, y + 60, steps=4)
    assert page.locator(".dragging").count() == 3
    assert page.locator(".fits").count() == 0
    page.mouse.up()


def test_a_tap_sends_a_last_card_to_its_foundation(page: Page, server: Server) -> None:
    server.table.new(code="RU1-R-AAAAABB")
    game = server.table.game
    while not any(move.destination == FOUNDATION for move in game.legal_moves()):
        server.table.play(next(move for move in game.legal_moves() if game.double_tap(move.card) == move))
    up = next(move for move in game.legal_moves() if move.destination == FOUNDATION)
    page.reload()
    page.locator(f'.card[data-card="{up.card}"]').click()
    until(page, _on_foundation(up.card), True)
    assert server.table.game.line[-1] == up


def _on_foundation(card_id: int) -> str:
    return f"document.querySelector('.card[data-card=\"{card_id}\"]')?.dataset.column === '{FOUNDATION}'"


def test_a_double_tap_places_a_card_and_can_be_switched_off(page: Page, server: Server) -> None:
    page.mouse.dblclick(*point(page, "8H"))
    moves(page, 1)
    assert server.table.game.line == (Move(20, 2),)
    page.keyboard.press("u")
    until(page, "document.getElementById('undo').disabled", True)
    settle(page)
    page.click("#options-open")
    page.uncheck("input[name=double_click]")
    page.click("#options button.main")
    page.mouse.dblclick(*point(page, "8H"))
    page.wait_for_timeout(200)
    assert server.table.game.line == ()


def test_auto_placement_is_off_by_default(page: Page, server: Server) -> None:
    drag(page, "8H", column(page, 4))
    page.wait_for_timeout(150)
    assert server.table.game.line == ()
    page.click("#options-open")
    page.check("input[name=auto_placement]")
    page.click("#options button.main")
    settle(page)
    drag(page, "8H", column(page, 4))
    moves(page, 1)
    assert server.table.game.line == (Move(20, 2),)


def test_a_card_comes_back_from_its_foundation(page: Page, server: Server) -> None:
    """In Relaxed: a card that is up is dragged onto a column that takes it."""
    server.table.new(code="RU1-R-AAAAABB")
    game = server.table.game
    back: Move | None = None
    for _ in range(200):
        back = next((move for move in game.legal_moves() if _is_up(game, move.card)), None)
        if back is not None:
            break
        legal = game.legal_moves(take_back=False)
        ups = [move for move in legal if move.destination == FOUNDATION]
        server.table.play((ups or legal)[0])
    assert back is not None
    page.reload()
    page.locator(".card").first.wait_for()
    before = game.score
    source = page.locator(f'.card[data-card="{back.card}"]').bounding_box()
    assert source is not None
    page.mouse.move(source["x"] + 30, source["y"] + 30)
    page.mouse.down()
    page.mouse.move(*column(page, back.destination + 1), steps=4)
    page.mouse.up()
    until(page, f"document.querySelector('.card[data-card=\"{back.card}\"]')?.dataset.column", str(back.destination))
    assert server.table.game.line[-1] == back
    assert server.table.game.score == before


def _is_up(game: Game, card_id: int) -> bool:
    return all(card_id not in column_ for column_ in game.columns)


def test_undo_by_button_and_key(page: Page, server: Server) -> None:
    drag(page, "8H", column(page, 3))
    moves(page, 1)
    assert page.locator("#undo-left").inner_text() == "(1)"
    page.click("#undo")
    until(page, "document.getElementById('undo').disabled", True)
    assert server.table.game.line == ()
    assert page.locator("#moves").inner_text() == "1"  # it does not go down
    settle(page)
    drag(page, "8H", column(page, 3))
    moves(page, 2)
    page.keyboard.press("Control+z")
    until(page, "document.getElementById('undo').disabled", True)


def test_the_keyboard_plays_alone(page: Page, server: Server) -> None:
    page.locator('.board [tabindex="0"]').focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused) == "jack of diamonds, column 4, card 8 of 8"
    while "8 of hearts" not in page.evaluate(focused):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert page.locator(".chosen").count() == 3
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    moves(page, 1)
    assert server.table.game.line == (Move(20, 2),)
    page.keyboard.press("u")
    until(page, "document.getElementById('undo').disabled", True)
    page.keyboard.press("f")
    assert notice(page).startswith("The foundation of ")


def test_a_screen_reader_finds_names_and_news(page: Page) -> None:
    assert card(page, "8H").get_attribute("aria-label") == "8 of hearts, column 4, card 6 of 8"
    assert card(page, "8H").get_attribute("role") == "button"
    assert "Column 1: 9 of clubs" in page.locator("#text").inner_text()
    assert "Column 7: 6 face down, 7 of diamonds" in page.locator("#text").inner_text()
    drag(page, "8H", column(page, 3))
    until(page, "document.getElementById('announce').textContent", "8♥ → column 3")


def test_a_whole_win_by_mouse(server: Server, browser: Browser, problems: list[str]) -> None:
    record = won_record()
    # Cards that jump instead of gliding, for who prefers that: no waiting for them.
    page = open_page(browser, server.origin, problems, reduced_motion="reduce")
    page.keyboard.press("n")
    page.fill("#code-input", str(record.code))
    page.click("#deal")
    until(page, "document.getElementById('code').textContent", record.code)
    for number, step in enumerate(record.steps, start=1):
        assert step.move is not None
        to = step.move.destination
        source = page.locator(f'.card[data-card="{step.move.card}"]')
        settle(page)
        box = source.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 8)
        page.mouse.down()
        target = foundation(page, step.move.card // 13) if to == FOUNDATION else column(page, to + 1)
        page.mouse.move(*target, steps=2)
        page.mouse.up()
        moves(page, number)
    page.locator("#won").wait_for(state="visible")
    assert page.locator("#score").inner_text() == "625"
    assert "625 points" in page.locator("#won-text").inner_text()
    (saved,) = (server.table.folder / "games").iterdir()
    assert saved.name in page.locator("#won-saved").inner_text()
    found = Record.load(saved)
    assert found.game().won
    assert [step.move for step in found.steps] == [step.move for step in record.steps]
    page.context.close()


def test_reload_and_restart_keep_game_and_options(
    page: Page, server: Server, browser: Browser, problems: list[str]
) -> None:
    drag(page, "8H", column(page, 3))
    moves(page, 1)
    page.click("#options-open")
    page.check("input[name=four_colours]")
    page.click("#options button.main")
    until(page, "document.getElementById('time').textContent", "0:01")
    page.reload()
    page.locator(".card").first.wait_for()
    moves(page, 1)
    assert page.evaluate("document.body.classList.contains('four-colours')")
    until(page, "document.getElementById('time').textContent !== '0:00'", True)
    again = Server(server.table.folder)
    try:
        other = open_page(browser, again.origin, problems)
        moves(other, 1)
        assert other.locator("#code").inner_text() == "RU1-C-AAAAABB"
        assert other.evaluate("document.body.classList.contains('four-colours')")
        assert other.locator("#time").inner_text() != ""
        other.context.close()
    finally:
        again.close()


def test_two_tabs_show_one_game(page: Page, server: Server) -> None:
    second = page.context.new_page()
    second.goto(server.origin)
    second.locator(".card").first.wait_for()
    page.bring_to_front()
    drag(page, "8H", column(page, 3))
    moves(page, 1)
    moves(second, 1)  # told by the first tab
    settle(second)
    second.bring_to_front()
    drag(second, "7D", column(second, 2))
    moves(second, 2)
    moves(page, 2)
    assert server.table.game.line == (Move(20, 2), Move(32, 1))


def test_a_window_that_has_not_heard_cannot_overwrite(
    page: Page, server: Server, browser: Browser, problems: list[str]
) -> None:
    other = open_page(browser, server.origin, problems)  # another browser: no channel between them
    drag(page, "8H", column(page, 3))
    moves(page, 1)
    drag(other, "7D", column(other, 2))
    assert "another window" in notice(other)
    moves(other, 1)
    settle(other)
    drag(other, "7D", column(other, 2))
    moves(other, 2)
    other.context.close()


def test_a_hostile_code_is_shown_as_text(page: Page, server: Server) -> None:
    page.keyboard.press("n")
    page.fill("#code-input", "<img src=x onerror=document.title=1>")
    page.click("#deal")
    until(page, "document.getElementById('code-problem').textContent !== ''", True)
    assert "<img src=x" in page.locator("#code-problem").inner_text()
    assert page.locator("#code-problem img").count() == 0
    assert page.title() == "Russian Solitaire"
    assert server.table.game.code == "RU1-C-AAAAABB"


def test_a_policy_is_watched_and_stopped(page: Page, server: Server) -> None:
    server.table.new(code="RU1-R-AAAAABB")
    page.reload()
    page.locator(".card").first.wait_for()
    page.click("#watch")
    moves(page, 3)
    page.click("#watch")
    page.wait_for_timeout(600)
    at = server.table.game.moves
    page.wait_for_timeout(600)
    assert server.table.game.moves == at
    assert server.table.record().player["name"] == "greedy"


def test_a_hint_lights_up(page: Page) -> None:
    page.keyboard.press("h")
    assert "Greedy would play" in notice(page)
    until(page, "document.querySelectorAll('.hinted').length > 0", True)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (820, 1100), (390, 780), (1024, 420)])
def test_everything_is_on_the_screen(page: Page, server: Server, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    until(page, "innerWidth", width)
    settle(page)
    board = page.locator("#board").bounding_box()
    assert board is not None
    for element in page.locator(".card, .well").all():
        box = element.bounding_box()
        assert box is not None
        assert board["x"] <= box["x"] + 0.5
        assert board["y"] <= box["y"] + 0.5
        assert box["x"] + box["width"] <= board["x"] + board["width"] + 0.5
        assert box["y"] + box["height"] <= board["y"] + board["height"] + 0.5


# ---- the replay -----------------------------------------------------------------------------------------------------


def test_the_replay_steps_and_asks_nobody(browser: Browser, tmp_path: Path, problems: list[str]) -> None:
    game = Game.from_code("RU1-C-AAAAABB")
    for move in ("8H > 3", "7D > 2"):
        game.play(move)
    game.undo()
    history = game.history
    shares = [{Move(20, 2): 0.75, Move(32, 1): 0.25}, None, None]
    steps = tuple(Step(move, 1.5 * k, share) for k, (move, share) in enumerate(zip(history, shares, strict=True)))
    record = Record(game.rules, game.start, steps, {"name": "</script><img src=x onerror=alert(1)>"})
    path = tmp_path / "replay.html"
    path.write_text(html(record), encoding="utf-8")
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.locator(".card").first.wait_for()
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
    assert page.locator("#player").inner_text() == record.player["name"]
    assert page.locator("img").count() == 0
    where = "document.getElementById('where').textContent"
    assert page.evaluate(where) == "0 of 3"
    assert page.locator("#share-list b").inner_text() == "8♥ → column 3"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(where) == "1 of 3"
    assert page.locator("[aria-current]").inner_text().startswith("1")
    assert "8♥ → column 3" in page.locator("[aria-current]").inner_text()
    page.keyboard.press("End")
    assert page.evaluate(where) == "3 of 3"
    assert "undo" in page.locator("[aria-current]").inner_text()
    assert page.locator("#moves-made").inner_text() == "2"
    page.locator(".moves li").nth(2).click()
    assert page.evaluate(where) == "2 of 3"
    page.locator("#slider").fill("1")
    assert page.evaluate(where) == "1 of 3"
    assert page.locator(".down").count() == 21
    page.keyboard.press("r")
    assert page.locator(".revealed").count() == 21
    page.click("#play")
    until(page, where, "3 of 3")
    context.close()


def test_the_game_in_progress_is_looked_back_at(page: Page, server: Server, problems: list[str]) -> None:
    drag(page, "8H", column(page, 3))
    moves(page, 1)
    page.click("#options-open")
    with page.context.expect_page() as opened:
        page.click("text=Analyse")
    back = opened.value
    back.on("pageerror", lambda error: problems.append(str(error)))
    back.locator(".card").first.wait_for()
    assert back.locator("#where").inner_text() == "0 of 1"
    assert back.locator("#analysis p").count() > 0
    assert back.locator("#list li").nth(1).inner_text().split("\n")[1] == "8♥ → column 3"


def test_the_data_of_a_replay_cannot_end_its_script() -> None:
    game = Game.from_code("RU1-C-AAAAABB")
    record = Record(game.rules, game.start, (), {"name": "</script><!--<script>"})
    page = html(record)
    data = page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    assert json.loads(data)["player"] == "</script><!--<script>"
    assert "<" not in data
    assert page.count("</script>") == 2
