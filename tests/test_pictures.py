"""Pictures of a game: what they show, that they are those in tests/golden, and that no hidden card is in them.

``python tests/test_pictures.py`` draws the golden ones anew (`make golden`): look at them before they are committed.
"""

from __future__ import annotations

import os
import random
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo
from numpy.typing import NDArray
from test_hidden_cards import pair

import rusol_env
from rusol_env import Game, Move, RussianSolitaireEnv, Visible
from rusol_env.faces import palette
from rusol_env.raster import grid, image
from rusol_env.render import Label, Picture, Sprite, fan, scene, svg

# A pixel differs clearly by more than this in a channel, and so many of them may.
CLEAR = 64
TOLERANCE = 0.001
GOLDEN = Path(__file__).parent / "golden" / "pictures"


def pygame() -> Any:
    return pytest.importorskip("pygame", reason="pictures as pixels need the extra [render]")


def in_the_middle() -> Picture:
    """A deal of Relaxed after 45 moves of a player that takes the first legal one."""
    game = Game.from_code("RU1-R-AAAAABB")
    chance = random.Random(4)
    for _ in range(45):
        game.play(chance.choice(game.legal_moves(take_back=False, idle_moves=False)))
    return game.picture


def one_column() -> Picture:
    """The longest column there can be."""
    columns = ((None,) * 6 + tuple(range(51, 5, -1)), *((),) * 6)
    return Picture(Visible(columns, (0, 0, 0, 0)), "classic", 0, 0)


def won() -> Picture:
    return Picture(Visible(((),) * 7, (13,) * 4), "yukon", 625, 104, "RU1-Y-7777777", Move(51, 7), won=True)


PICTURES = {
    "deal": (Game.from_code("RU1-C-AAAAABB").picture, False),
    "middle": (in_the_middle(), False),
    "middle-four-colours": (in_the_middle(), True),
    "longest-column": (one_column(), False),
    "won": (won(), False),
}


def pixels(name: str) -> NDArray[np.uint8]:
    shown, four_colours = PICTURES[name]
    return image(shown, four_colours=four_colours)


@pytest.mark.parametrize("name", PICTURES)
def test_pixels_are_the_golden_ones(name: str) -> None:
    """Up to what another version of the font or of the smoothing changes at edges."""
    loaded = pygame().image.load(str(GOLDEN / f"{name}.png"))
    golden = pygame().surfarray.array3d(loaded).transpose(1, 0, 2).astype(int)
    drawn = pixels(name).astype(int)
    assert drawn.shape == golden.shape == (480, 640, 3)
    different = np.abs(drawn - golden).max(axis=2)
    assert (different > CLEAR).mean() < TOLERANCE


def test_the_tolerance_tells_pictures_apart() -> None:
    """One card that lies elsewhere, or has another face, is more than the tolerance."""
    shown = PICTURES["middle"][0]
    columns = [list(column) for column in shown.position.columns]
    k = next(k for k, column in enumerate(columns) if column and column[-1] is not None)
    card = columns[k][-1]
    assert card is not None
    columns[k][-1] = (card + 13) % 52
    other = shown._replace(position=Visible(tuple(tuple(column) for column in columns), shown.position.foundations))
    pygame()
    different = np.abs(image(shown).astype(int) - image(other).astype(int)).max(axis=2)
    assert (different > CLEAR).mean() > 2 * TOLERANCE


def test_the_svg_is_the_golden_one() -> None:
    assert svg(PICTURES["won"][0]) + "\n" == (GOLDEN / "won.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PICTURES)
def test_svg_is_well_formed_and_asks_for_nothing(name: str) -> None:
    shown, four_colours = PICTURES[name]
    text = svg(shown, four_colours=four_colours)
    root = ElementTree.fromstring(text)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {"svg", "title", "rect", "text", "g", "path"}
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert f">Score {shown.score}<" in text
    assert f">Moves {shown.moves}<" in text
    assert (shown.code or "Classic") in text


def test_a_name_in_a_picture_is_text() -> None:
    hostile = PICTURES["won"][0]._replace(code="<script>alert(1)</script>", rules="<b>")
    text = svg(hostile)
    assert "<script" not in text
    assert "<b>" not in text
    ElementTree.fromstring(text)


@pytest.mark.parametrize(("width", "height"), [(640, 480), (320, 240), (1920, 1080), (400, 1000), (1000, 400)])
@pytest.mark.parametrize("name", PICTURES)
def test_everything_lies_inside_the_picture(name: str, width: int, height: int) -> None:
    drawn = scene(PICTURES[name][0], width=width, height=height)
    for item in drawn.items:
        if isinstance(item, Label):
            assert 0 <= item.y - item.size / 2 < item.y + item.size / 2 <= height
            continue
        for shape in item.shapes:
            numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", shape.path)]
            assert all(-0.01 <= item.x + item.scale * x <= width + 0.01 for x in numbers[::2])
            assert all(-0.01 <= item.y + item.scale * y <= height + 0.01 for y in numbers[1::2])


def test_columns_of_every_height_fit_their_room_in_order() -> None:
    for height in range(1, 53):
        for down in {0, min(6, height - 1)}:
            column = [None] * down + list(range(height - down))
            offsets = fan(column, 400, 90)
            assert len(offsets) == height
            assert offsets[-1] + 90 <= 400 + 1e-9
            assert all(first < second for first, second in pairwise(offsets))


def test_too_small_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="100 by 100 is too small: make it 160 by 120 or more"):
        svg(PICTURES["deal"][0], width=100, height=100)


def linear(colour: str) -> NDArray[np.float64]:
    """A colour of CSS as linear RGB (IEC 61966-2-1)."""
    channels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


# Full protanopia, deuteranopia and tritanopia in linear RGB: Machado, Oliveira & Fernandes, "A physiologically-based
# model for simulation of color vision deficiency" (IEEE TVCG 2009).
VISION = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE 1976 L*a*b* of linear RGB, white D65."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(rgb, 0, 1)
    share = xyz / np.array([0.9505, 1.0, 1.089])
    f = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_four_colours_are_told_apart_with_any_colour_vision(vision: str) -> None:
    seen = [lab(VISION[vision] @ linear(palette(four_colours=True)[f"suit{suit}"])) for suit in range(4)]
    # A difference of 2.3 is the least that is noticed; 20 is seen at a glance.
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) > 20


@pytest.mark.parametrize("four_colours", [False, True])
def test_suits_are_read_on_paper(four_colours: bool) -> None:
    """Contrast of at least 3 to 1, what WCAG 2 asks of large signs."""
    colours = palette(four_colours)
    paper = float(linear(colours["paper"]) @ [0.2126, 0.7152, 0.0722])
    for suit in range(4):
        ink = float(linear(colours[f"suit{suit}"]) @ [0.2126, 0.7152, 0.0722])
        assert (paper + 0.05) / (ink + 0.05) >= 3


# ---- hidden cards ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(5))
def test_pictures_of_deals_that_differ_in_hidden_cards_are_equal(number: int) -> None:
    pygame()
    games = [Game(deal) for deal in pair(number, random.Random(number))]
    assert games[0].arrangement != games[1].arrangement
    assert games[0].picture == games[1].picture
    assert games[0]._repr_svg_() == games[1]._repr_svg_()  # pyright: ignore[reportPrivateUsage]
    envs = [RussianSolitaireEnv(render_mode="rgb_array") for _ in games]
    for env, game in zip(envs, games, strict=True):
        env.reset(options={"columns": game.start.text()})
    np.testing.assert_array_equal(envs[0].render(), envs[1].render())


def test_a_picture_of_a_game_shows_its_last_move_also_after_undo() -> None:
    game = Game.from_code("RU1-C-AAAAABB")
    assert game.picture.last is None
    game.play("8H > 3")
    game.play("7D > 2")
    game.undo()
    assert game.picture.last == rusol_env.parse_move("8H > 3")
    sprites = [item for item in scene(game.picture).items if isinstance(item, Sprite)]
    marked = [item for item in sprites if item.shapes[0].stroke == "last"]
    assert len(marked) == 2  # its name in the bar, and the frame around its cards


# ---- Gymnasium ------------------------------------------------------------------------------------------------------


def test_rgb_array_of_the_environment() -> None:
    pygame()
    env = gymnasium.make(rusol_env.ENV_ID, render_mode="rgb_array", four_colours=True)
    _, info = env.reset(seed=1)
    before: Any = env.render()
    assert (before.shape, before.dtype) == ((480, 640, 3), np.uint8)
    action = int(np.flatnonzero(info["action_mask"])[0])
    env.step(action)
    after: Any = env.render()
    assert (before != after).any()
    env.step(action)  # the same move again is refused: its picture is the same, the last move marked
    np.testing.assert_array_equal(after, env.render())
    assert env.metadata["render_fps"] > 0
    env.close()


def test_record_video_writes_a_film(tmp_path: Path) -> None:
    pygame()
    pytest.importorskip("moviepy", reason="videos need the extra [render]")
    film = RecordVideo(
        gymnasium.make(rusol_env.ENV_ID, render_mode="rgb_array", rules="relaxed"), str(tmp_path / "films")
    )
    _, info = film.reset(seed=0)
    for _ in range(3):
        _, _, _, _, info = film.step(film.action_space.sample(mask=info["action_mask"]))
    film.close()
    (video,) = (tmp_path / "films").glob("*.mp4")
    assert video.stat().st_size > 1000


def test_a_window_shows_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SDL_VIDEODRIVER", "dummy")
    display = pygame().display
    shown: list[int] = []
    flip = display.flip
    monkeypatch.setattr(display, "flip", lambda: (shown.append(1), flip())[1])
    monkeypatch.setattr("rusol_env.env.RENDER_FPS", 1000)
    env = gymnasium.make(rusol_env.ENV_ID, render_mode="human")
    _, info = env.reset(seed=1)
    env.step(int(np.flatnonzero(info["action_mask"])[0]))
    assert len(shown) == 2
    assert display.get_surface().get_size() == (640, 480)
    env.close()
    assert display.get_surface() is None


def test_the_vector_environment_draws_its_first_games(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame()
    envs: Any = gymnasium.make_vec(rusol_env.ENV_ID, num_envs=20, render_mode="rgb_array")
    envs.reset(seed=0)
    pictures = envs.render()
    assert len(pictures) == 20  # what Gymnasium's wrappers tile
    assert pictures[0].shape == (480, 640, 3)
    assert (pictures[0] != pictures[1]).any()
    whole = envs.render_grid()
    assert whole.shape == (4 * 246 - 6, 4 * 326 - 6, 3)
    envs.close()


def test_a_grid_is_about_square() -> None:
    pygame()
    one = np.full((10, 20, 3), 7, np.uint8)
    for number, (rows, columns) in {1: (1, 1), 2: (1, 2), 4: (2, 2), 5: (2, 3), 16: (4, 4)}.items():
        whole = grid([one] * number)
        assert whole.shape == (rows * 16 - 6, columns * 26 - 6, 3)
        assert (whole == 7).all(axis=2).sum() == number * 200


@pytest.mark.parametrize("mode", ["rgb_array", "human"])
def test_without_pygame_the_extra_is_named(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rusol_env.raster._pygame", missing)
    with pytest.raises(ImportError, match=r"pip install 'rusol-env\[render\]'"):
        RussianSolitaireEnv(render_mode=mode)


def missing() -> None:
    raise ImportError("pictures as pixels need the package pygame-ce: pip install 'rusol-env[render]'")


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    import pygame as pg

    for name in PICTURES:
        surface = pg.surfarray.make_surface(pixels(name).transpose(1, 0, 2))
        pg.image.save(surface, str(GOLDEN / f"{name}.png"))
    (GOLDEN / "won.svg").write_text(svg(PICTURES["won"][0]) + "\n", encoding="utf-8")
