"""`ModelCard`: how a trained network that ships was made and how it plays; a JSON file beside its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Final, cast

from rusol_env.files import write_whole
from rusol_env.rules import rules_named

# What a summary of `evaluate` must say to be a card's figures; it may say more.
_FIGURES: Final = [
    "suite",
    "deals",
    "seed",
    "wins",
    "win_rate",
    "win_rate_ci95",
    "winnable",
    "wins_of_winnable",
    "wins_of_winnable_ci95",
    "mean_score",
    "mean_score_se",
    "mean_steps",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What there is to know about a trained network.

    Raises:
        ValueError: a field has another type, or a value that cannot be; the message names the field.
    """

    name: str
    """Such as ``"ppo"``."""
    rules: str
    """The name of the rule set that it was trained under."""
    config: str
    """The file in ``configs/`` that it was trained by."""
    command: str
    """The command that trained it."""
    steps: int
    """Environment steps of the training."""
    hours: float
    """How long that took."""
    seed: int
    """The seed of the training."""
    revision: str
    """The git revision that it was trained at."""
    date: str
    """When the training ended, ``YYYY-MM-DD``."""
    versions: dict[str, str]
    """The versions of Python and the packages that trained it."""
    curve: list[list[float]]
    """The learning curve: pairs of environment steps and the win rate then (0 to 1), in order."""
    evaluation: str
    """The command that gives `results`."""
    results: dict[str, Any]
    """What `Evaluation.summary` said of it, on deals that were never trained on."""
    bytes: int
    """The size of the weights."""
    sha256: str
    """The SHA-256 of the weights, in hexadecimal."""

    def __post_init__(self) -> None:
        for field in ("name", "config", "command", "revision", "evaluation"):
            self._need(field, isinstance(getattr(self, field), str) and getattr(self, field), "text")
        rules: Any = self.rules
        self._need("rules", isinstance(rules, str), "the name of a rule set")
        rules_named(self.rules)
        for field in ("steps", "seed", "bytes"):
            self._need(field, _is_count(getattr(self, field)), "a whole number, 0 or more")
        self._need("hours", _is_number(self.hours) and self.hours >= 0, "a number, 0 or more")
        self._need("date", _is_date(self.date), "a date such as 2025-01-31")
        versions: Any = self.versions
        self._need("versions", _is_texts(versions), "an object of texts")
        curve: Any = self.curve
        self._need("curve", _is_curve(curve), "a list of [steps, win rate 0 to 1], in order")
        results: Any = self.results
        missing = [key for key in _FIGURES if key not in results] if isinstance(results, dict) else _FIGURES
        self._need("results", not missing, f"a summary of evaluate, which has {', '.join(missing)}")
        self._need("results", self.results.get("rules", self.rules) == self.rules, f"of {self.rules} rules")
        digest: Any = self.sha256
        plain = isinstance(digest, str) and len(digest) == 64 and set(digest) <= set("0123456789abcdef")
        self._need("sha256", plain, "64 hexadecimal digits in lower case")

    def _need(self, field: str, fits: Any, what: str) -> None:
        if not fits:
            text = repr(getattr(self, field))
            raise ValueError(f"{field} is {text if len(text) <= 60 else text[:57] + '…'} and must be {what}")

    @classmethod
    def of(cls, weights: Path, **told: Any) -> ModelCard:
        """The card of the weights in a file: `bytes` and `sha256` are the file's, the other fields are told.

        Raises:
            ValueError: a field is missing, unknown or not valid.
            OSError: the file cannot be read.
        """
        data = weights.read_bytes()
        return cls._of_fields(told | {"bytes": len(data), "sha256": sha256(data).hexdigest()})

    @classmethod
    def load(cls, path: Path) -> ModelCard:
        """Read a card.

        Raises:
            ValueError: it is no card; the message names the file and what is wrong with it.
            OSError: it cannot be read.
        """
        try:
            document: Any = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(document, dict):
                raise ValueError("it must be a JSON object")
            return cls._of_fields(cast(dict[str, Any], document))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is no model card: {error}") from error

    @classmethod
    def _of_fields(cls, told: Mapping[str, Any]) -> ModelCard:
        known = {field.name for field in fields(cls)}
        for what, names in (("unknown", set(told) - known), ("missing", known - set(told))):
            if names:
                raise ValueError(f"{what}: {', '.join(sorted(names))}")
        return cls(**told)

    def save(self, path: Path) -> None:
        """Write the card, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        write_whole(path, (json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n").encode())

    def check(self, weights: Path) -> None:
        """See to it that the file holds the weights of this card.

        Raises:
            ValueError: it does not.
            OSError: it cannot be read.
        """
        if sha256(weights.read_bytes()).hexdigest() != self.sha256:
            raise ValueError(f"{weights} was changed: its SHA-256 is not the one on its card; install rusol-env again")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_date(value: Any) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except (TypeError, ValueError):
        return False


def _is_texts(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(isinstance(text, str) for pair in cast(dict[Any, Any], value).items() for text in pair)


def _is_curve(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    points: list[Any] = [point for point in cast(list[Any], value) if isinstance(point, (list, tuple))]
    if len(points) < len(cast(list[Any], value)) or not all(len(p) == 2 and all(map(_is_number, p)) for p in points):
        return False
    steps = [point[0] for point in points]
    return steps == sorted(steps) and all(point[0] >= 0 and 0 <= point[1] <= 1 for point in points)
