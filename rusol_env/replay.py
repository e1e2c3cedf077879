"""A replay as one page that needs nothing else: board, steps and the analysis inside one HTML file."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from typing import Any, Final

from rusol_env.analysis import Analysis, summary
from rusol_env.record import Record
from rusol_env.render import palette_css, sprites, web

# A page of this many steps has about 10 MB; nobody steps through a longer one.
MAX_STEPS: Final = 10_000


def document(record: Record, analysis: Analysis | None) -> dict[str, Any]:
    """What the page shows, ready for JSON: the position after every step, and what is known of it.

    Raises:
        ValueError: the record has more than 10,000 steps.
    """
    if len(record.steps) > MAX_STEPS:
        raise ValueError(f"the record has {len(record.steps)} steps, and a page shows at most {MAX_STEPS}")
    game = record.game(0)
    positions: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    verdicts = [None] * (len(record.steps) + 1) if analysis is None else [verdict.text for verdict in analysis.verdicts]
    mistakes = [] if analysis is None else [mistake.step for mistake in analysis.mistakes]

    def look() -> None:
        last = game.line[-1:]
        positions.append(
            {
                "columns": game.columns,
                "hidden": [
                    [card if seen is None else None for card, seen in zip(whole, column, strict=True)]
                    for whole, column in zip(game.arrangement.columns, game.columns, strict=True)
                ],
                "foundations": game.foundations,
                "score": game.score,
                "moves": game.moves,
                "last": {"card": last[0].card, "to": last[0].destination} if last else None,
            }
        )

    look()
    for number, step in enumerate(record.steps, start=1):
        if step.move is None:
            game.undo()
        else:
            game.play(step.move)
        look()
        shown: dict[str, Any] = {"text": "undo" if step.move is None else str(step.move)}
        if step.seconds is not None:
            shown["seconds"] = step.seconds
        if step.probabilities is not None:
            ranked = sorted(step.probabilities.items(), key=lambda item: -item[1])
            shown["probabilities"] = [[str(move), share, move == step.move] for move, share in ranked]
        if verdicts[number] is not None:
            shown["verdict"] = verdicts[number]
        if number in mistakes:
            shown["mistake"] = True
        steps.append(shown)
    return {
        "rules": record.rules.name,
        "code": record.code,
        "player": str(record.player["name"]),
        "verdict": verdicts[0],
        "positions": positions,
        "steps": steps,
        "analysis": [] if analysis is None else summary(record, analysis),
    }


def html(record: Record, analysis: Analysis | None = None) -> str:
    """The page of a replay.

    Its policy allows the script and the style that it brings, by their hashes, and no request at all; what comes
    from the record is data that the script sets as text.

    Raises:
        ValueError: the record has more than 10,000 steps.
    """
    script = _without_modules(web("board.js")) + _without_modules(web("replay.js"))
    style = palette_css() + web("style.css")
    # Inside a script element only "</" and "<!" could end or change it; as escapes they are the same JSON.
    data = json.dumps(document(record, analysis), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "script-hash": _hash(script),
        "style-hash": _hash(style),
        "style": style,
        "sprites": sprites(),
        "data": data,
        "script": script,
    }
    return re.sub(r"<!-- ([a-z-]+) -->", lambda found: parts[found[1]], web("replay.html"))


def _without_modules(script: str) -> str:
    """The script of a module for a page that has all of them in one."""
    return re.sub(r"^import .*?;\n", "", re.sub(r"^export ", "", script, flags=re.MULTILINE), flags=re.MULTILINE)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
