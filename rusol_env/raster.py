"""Pictures as pixels, by pygame-ce (extra ``[render]``): what `rusol_env.render.scene` lays out, painted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import ceil, hypot, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env.faces import Shape, commands, palette
from rusol_env.render import PICTURE_HEIGHT, PICTURE_WIDTH, Label, Picture, scene

# Sprites are painted this much larger and then shrunk, which smooths their edges.
_OVERSAMPLING: Final = 4
# Pixels between the pictures of a grid.
_GRID_GAP: Final = 6


@cache
def _pygame() -> Any:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise ImportError("pictures as pixels need the package pygame-ce: pip install 'rusol-env[render]'") from error
    pygame.font.init()
    return pygame


def _curve(points: list[tuple[float, float]], numbers: list[float]) -> Iterator[tuple[float, float]]:
    """Points along the cubic Bézier curve from the last of `points`."""
    (ax, ay), (bx, by, cx, cy, dx, dy) = points[-1], numbers
    steps = max(2, ceil(hypot(dx - ax, dy - ay, bx - cx, by - cy) / 4))
    for k in range(1, steps + 1):
        t, u = k / steps, 1 - k / steps
        yield (
            u**3 * ax + 3 * u * u * t * bx + 3 * u * t * t * cx + t**3 * dx,
            u**3 * ay + 3 * u * u * t * by + 3 * u * t * t * cy + t**3 * dy,
        )


def outlines(path: str, scale: float = 1.0) -> list[list[tuple[float, float]]]:
    """The subpaths of a path as polygons, scaled; one that is closed ends where it begins."""
    found: list[list[tuple[float, float]]] = []
    for letter, numbers in commands(path):
        numbers = [number * scale for number in numbers]
        match letter:
            case "M":
                found.append([(numbers[0], numbers[1])])
            case "L":
                found[-1].append((numbers[0], numbers[1]))
            case "C":
                found[-1] += _curve(found[-1], numbers)
            case _:
                found[-1].append(found[-1][0])
    return found


def _paint(surface: Any, shape: Shape, scale: float, colours: dict[str, str]) -> None:
    draw = _pygame().draw
    for line in outlines(shape.path, scale):
        if shape.fill is not None and len(line) > 2:
            draw.polygon(surface, colours[shape.fill], line)
        if shape.stroke is not None:
            width = shape.width * scale
            for point in line:
                draw.circle(surface, colours[shape.stroke], point, width / 2)
            for start, end in pairwise(line):
                draw.polygon(surface, colours[shape.stroke], _band(start, end, width / 2))


def _band(start: tuple[float, float], end: tuple[float, float], half: float) -> list[tuple[float, float]]:
    """The rectangle around a piece of line."""
    (ax, ay), (bx, by) = start, end
    length = hypot(bx - ax, by - ay) or 1.0
    x, y = (by - ay) / length * half, (ax - bx) / length * half
    return [(ax + x, ay + y), (bx + x, by + y), (bx - x, by - y), (ax - x, ay - y)]


@lru_cache(4096)
def _sprite(shapes: tuple[Shape, ...], scale: float, four_colours: bool) -> Any:
    """A small surface with the shapes painted on it, kept for the next picture."""
    pygame = _pygame()
    points = [point for shape in shapes for line in outlines(shape.path, scale) for point in line]
    margin = max((shape.width for shape in shapes if shape.stroke), default=0.0) * scale
    width = ceil(max(x for x, _ in points) + margin) + 1
    height = ceil(max(y for _, y in points) + margin) + 1
    colours = palette(four_colours)
    surface = pygame.Surface((width * _OVERSAMPLING, height * _OVERSAMPLING), pygame.SRCALPHA)
    # What is transparent has the colour of the rim, else the smoothing would draw a dark line around it.
    rim = shapes[0].stroke or shapes[0].fill or "edge"
    surface.fill((*pygame.Color(colours[rim])[:3], 0))
    for shape in shapes:
        _paint(surface, shape, scale * _OVERSAMPLING, colours)
    return pygame.transform.smoothscale(surface, (width, height))


@cache
def _font(size: int) -> Any:
    return _pygame().font.Font(None, size)


def image(
    picture: Picture, *, four_colours: bool = False, width: int = PICTURE_WIDTH, height: int = PICTURE_HEIGHT
) -> NDArray[np.uint8]:
    """The picture as pixels, uint8 (height, width, 3).

    Raises:
        ImportError: pygame-ce is not installed.
        ValueError: it is smaller than 160 by 120.
    """
    pygame = _pygame()
    drawn = scene(picture, width=width, height=height)
    colours = palette(four_colours)
    surface = pygame.Surface((width, height), 0, 32)
    surface.fill(colours["table"])
    for item in drawn.items:
        if isinstance(item, Label):
            # The height of this font's line is about 1.4 times the size that SVG means.
            text = _font(round(item.size * 1.45)).render(item.text, True, colours[item.colour])
            x = item.x - text.get_width() if item.right else item.x
            surface.blit(text, (round(x), round(item.y - text.get_height() / 2)))
        else:
            surface.blit(_sprite(item.shapes, item.scale, four_colours), (round(item.x), round(item.y)))
    return np.ascontiguousarray(pygame.surfarray.array3d(surface).transpose(1, 0, 2))


def grid(pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Pictures of one size side by side, row after row, about as many columns as rows: uint8 (H, W, 3)."""
    columns = ceil(sqrt(len(pictures)))
    rows = ceil(len(pictures) / columns)
    height, width, _ = pictures[0].shape
    size = rows * (height + _GRID_GAP) - _GRID_GAP, columns * (width + _GRID_GAP) - _GRID_GAP, 3
    whole = np.full(size, tuple(_pygame().Color(palette()["bar"]))[:3], np.uint8)
    for k, picture in enumerate(pictures):
        y, x = k // columns * (height + _GRID_GAP), k % columns * (width + _GRID_GAP)
        whole[y : y + height, x : x + width] = picture
    return whole


def check_installed() -> None:
    """Raises `ImportError`, which names the extra, if pygame-ce is not installed."""
    _pygame()


class Window:
    """A window of the desktop that shows one picture after another."""

    def __init__(self, title: str, fps: float) -> None:
        """Make it; it opens with the first picture.

        Raises:
            ImportError: pygame-ce is not installed.
        """
        self._pygame = _pygame()
        self._title = title
        self._fps = fps
        self._clock = self._pygame.time.Clock()
        self._screen: Any = None

    def show(self, pixels: NDArray[np.uint8]) -> None:
        """Show a picture, uint8 (H, W, 3), and wait as long as the frame rate asks."""
        pygame = self._pygame
        size = pixels.shape[1], pixels.shape[0]
        if self._screen is None or self._screen.get_size() != size:
            pygame.display.init()
            self._screen = pygame.display.set_mode(size)
            pygame.display.set_caption(self._title)
        pygame.surfarray.blit_array(self._screen, pixels.transpose(1, 0, 2))
        # Without this the desktop takes the window for a hung one.
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._fps)

    def __reduce__(self) -> tuple[type[Window], tuple[str, float]]:
        """A copy is a window of its own, not opened yet."""
        return Window, (self._title, self._fps)

    def close(self) -> None:
        """Close the window; the next picture opens it again."""
        if self._screen is not None:
            self._pygame.display.quit()
            self._screen = None
