"""Labels: which evaluation deals can be won, as the exact solver found once and for all; shipped with the package.

``labels.json`` beside this file says how each rule set's labels were made (command, version, limit) and holds their
SHA-256, which is checked when they are first asked for. `benchmarks/labels.py` makes the file again.
"""

from __future__ import annotations

import base64
import json
import zlib
from enum import IntEnum
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env.rules import Rules

PATH: Final = Path(__file__).parent / "labels.json"


class Verdict(IntEnum):
    """What the solver says of a position: whether it can be won when all cards are known."""

    UNWINNABLE = 0
    """Proved: no sequence of moves wins."""
    WINNABLE = 1
    """A winning sequence is known."""
    UNDECIDED = 2
    """A limit was hit first. Never to be counted as unwinnable."""

    @property
    def text(self) -> str:
        """``"winnable"``, ``"unwinnable"`` or ``"undecided"``."""
        return self.name.lower()


def pack(verdicts: NDArray[np.int8]) -> dict[str, Any]:
    """The entry of ``labels.json`` for the verdicts, int8 (N,), of evaluation deals 0 to N - 1."""
    data = verdicts.astype(np.int8).tobytes()
    return {
        "deals": len(verdicts),
        **{verdict.text: int((verdicts == verdict).sum()) for verdict in Verdict},
        "sha256": sha256(data).hexdigest(),
        "verdicts": base64.b64encode(zlib.compress(data, 9)).decode(),
    }


@cache
def labels(rules: Rules) -> NDArray[np.int8]:
    """The verdicts, int8 (N,) of `Verdict`, of the evaluation deals 0 to N - 1 under `rules`; N is 0 for none.

    Raises:
        ValueError: the shipped file is damaged.
    """
    try:
        entry: dict[str, Any] | None = json.loads(PATH.read_text(encoding="utf-8"))["rules"].get(rules.name)
        if entry is None:
            return np.zeros(0, np.int8)
        data = zlib.decompress(base64.b64decode(entry["verdicts"], validate=True))
        whole = sha256(data).hexdigest() == entry["sha256"] and len(data) == entry["deals"]
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise ValueError(f"{PATH} is damaged ({error}): install rusol-env again") from error
    if not whole:
        raise ValueError(f"{PATH} was changed: the labels of {rules.name} are not those of its SHA-256")
    verdicts = np.frombuffer(data, np.int8)
    verdicts.setflags(write=False)
    return verdicts


def labels_of(numbers: NDArray[np.int64], rules: Rules) -> NDArray[np.int8] | None:
    """The verdicts, int8 (N,), of the deals `numbers` (N,) under `rules`; None if one of them has no label."""
    known = labels(rules)
    if len(numbers) == 0 or numbers.min() < 0 or numbers.max() >= len(known):
        return None
    return known[numbers]
