"""Evaluation: a policy on a fixed suite of deals, with intervals, and its results on disk."""

from __future__ import annotations

import csv
import io
import json
import platform
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryFile
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import kernel
from rusol_env.deals import Suite, check_seed, check_whole, encode_code, is_whole, next_word, read_deal, suite
from rusol_env.env import DEFAULT_MAX_STEPS, option
from rusol_env.files import write_whole
from rusol_env.games import WITHOUT, Games
from rusol_env.labels import Verdict, labels_of
from rusol_env.models import as_policy
from rusol_env.observe import Observation
from rusol_env.policies import Policy, read_actions
from rusol_env.rules import CLASSIC, Rules, rules_named
from rusol_env.vector import RussianSolitaireVectorEnv

BATCH: Final = 256
# Is told the games (places in the suite, int64 (K,)), the legal actions played in them, int64 (K,), and where the
# policy says so the probability of every action, (K, 416).
Watch = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.floating[Any]] | None], None]
FORMATS: Final = ("csv", "parquet")
# The files beside a summary, as it names them; and what it says of them.
_FILES: Final = ("table", "games")
_OF_FILES: Final = tuple(f"{kind}{end}" for kind in _FILES for end in ("", "_sha256"))


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of
    the American Statistical Association 22 (1927).

    Raises:
        ValueError: there are no trials, or more successes than trials.
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} successes in {trials} trials make no proportion")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    # At the ends the formula gives 0 and 1 exactly; rounding would not.
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == trials else (centre + half) / scale
    return low, high


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in ("rusol-env", "gymnasium", "numba", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a policy did on each deal of a suite. All arrays have one entry a deal, in the suite's order."""

    policy: str
    policy_class: str
    """Which class played: two policies can have one name."""
    policy_settings: dict[str, Any]
    """The policy's `Policy.settings`."""
    rules: Rules
    suite: str
    seed: int
    max_steps: int
    numbers: NDArray[np.int64]
    """int64 (N,): the deal numbers."""
    won: NDArray[np.bool_]
    """bool (N,)"""
    truncated: NDArray[np.bool_]
    """bool (N,): stopped after `max_steps`; a game neither won nor truncated ended without a legal move."""
    scores: NDArray[np.int64]
    """int64 (N,): the final score of the game."""
    steps: NDArray[np.int64]
    """int64 (N,): steps played, refused ones included."""
    actions: NDArray[np.int16]
    """int16 (sum of `steps`,): the action of each step, refused ones included, game after game."""
    seconds: float
    """Wall-clock time of the games, the compilation of kernels excluded."""

    @property
    def games(self) -> Games:
        """The games, as they can be written and played again."""
        return Games(self.rules, self.suite, self.max_steps, self.numbers, self.steps, self.actions)

    @property
    def wins(self) -> int:
        """Games won."""
        return int(self.won.sum())

    def summary(self) -> dict[str, Any]:
        """The figures, ready for JSON.

        ``winnable`` counts the deals that the shipped labels (`rusol_env.labels`) call winnable, ``undecided`` those
        that they leave open, and ``wins_of_winnable`` is the share of the winnable ones that were won; all None if
        a deal of the suite has no label. ``dead_ends`` and ``truncated`` count the games not won; ``mean_score_se``
        is the standard error of the mean, None for a single deal.
        """
        deals = len(self.numbers)
        truncated = int(self.truncated.sum())
        labels = labels_of(self.numbers, self.rules)
        winnable = None if labels is None else labels == Verdict.WINNABLE
        of_winnable = None if winnable is None or not winnable.any() else self.won[winnable]
        return {
            "policy": self.policy,
            "policy_class": self.policy_class,
            "policy_settings": self.policy_settings,
            "rules": self.rules.name,
            "suite": self.suite,
            "deals": deals,
            "wins": self.wins,
            "win_rate": self.wins / deals,
            "win_rate_ci95": list(wilson_interval(self.wins, deals)),
            "winnable": None if winnable is None else int(winnable.sum()),
            "undecided": None if labels is None else int((labels == Verdict.UNDECIDED).sum()),
            "wins_of_winnable": None if of_winnable is None else float(of_winnable.mean()),
            "wins_of_winnable_ci95": None
            if of_winnable is None
            else list(wilson_interval(int(of_winnable.sum()), len(of_winnable))),
            "dead_ends": deals - self.wins - truncated,
            "truncated": truncated,
            "mean_score": float(self.scores.mean()),
            "mean_score_se": float(self.scores.std(ddof=1)) / sqrt(deals) if deals > 1 else None,
            "mean_steps": float(self.steps.mean()),
            "games_per_second": deals / self.seconds,
            "seconds": self.seconds,
            "seed": self.seed,
            "max_steps": self.max_steps,
            **dict.fromkeys(WITHOUT, False),
            "versions": versions(),
        }

    def rows(self) -> dict[str, list[Any]]:
        """The per-deal table: ``code``, ``won``, ``score``, ``steps``, ``truncated``."""
        return {
            "code": [encode_code(number, self.rules) for number in self.numbers.tolist()],
            "won": self.won.tolist(),
            "score": self.scores.tolist(),
            "steps": self.steps.tolist(),
            "truncated": self.truncated.tolist(),
        }


@kernel
def _game_seeds(seed: NDArray[np.uint64], seeds: NDArray[np.uint64]) -> None:
    for i in range(seeds.shape[0]):
        seeds[i] = next_word(seed, 0)


def evaluate(
    policy: Any,
    rules: str | Rules = CLASSIC,
    deals: Suite | Sequence[int | str] | str | int = 1000,
    *,
    seed: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    progress: Callable[[int], None] | None = None,
    watch: Watch | None = None,
) -> Evaluation:
    """Play each deal once with a policy, without taking cards back.

    The policy sees observations and masks only. Each game gets a seed of its own from `seed` and its
    place in the suite, so a game is played alike in ``first-100`` and in ``first-10000``.

    Args:
        policy: a `Policy`, the name of one or the path of a model, a function, or a model of Stable-Baselines3: see
            `rusol_env.models.as_policy`.
        rules: a rule set or its name.
        deals: a suite or its name, N for ``first-N``, or a sequence of deal numbers or codes.
        seed: what the policy's chance is drawn from, 0 to 2^64 - 1.
        max_steps: a game is stopped after so many steps.
        progress: called now and then with the number of games finished.
        watch: called with each legal step of the batch, such as a `rusol_env.record.Recorder`.

    Warns:
        RunsCodeWarning: the policy is the path of a ``.zip``.

    Raises:
        ValueError: an argument is not valid, or the policy returned something that is no batch of actions.
    """
    rules = rules_named(rules)
    seed = check_seed(seed)
    max_steps = check_whole("max_steps", max_steps, 1)
    policy = as_policy(policy, seed, rules)
    deals = read_suite(deals, rules)
    name, numbers = deals.name, np.array(deals.numbers, np.int64)
    kind = option("observation", policy.observation, Observation)

    total, batch = len(numbers), min(BATCH, len(numbers))
    seeds = np.empty(total, np.uint64)
    _game_seeds(np.array([seed], np.uint64), seeds)
    won, truncated = np.zeros(total, np.bool_), np.zeros(total, np.bool_)
    scores, steps = np.zeros(total, np.int64), np.zeros(total, np.int64)

    games = RussianSolitaireVectorEnv(batch, rules, observation=kind.value, max_steps=max_steps, deals=numbers.tolist())
    # Compile before the clock starts.
    games.reset()
    games.step(np.zeros(batch, np.int64))
    started = time.perf_counter()
    observations, infos = games.reset()
    policy.begin(np.arange(batch), seeds[:batch])
    # When the episodes in progress began, in steps of the batch; and which have just ended.
    first = np.zeros(batch, np.int64)
    # int16 (batch,) a step: all actions. Where each game's are: in which column, from which step on.
    chosen: list[NDArray[np.int16]] = []
    table, begin = np.zeros(total, np.int64), np.zeros(total, np.int64)
    ended = np.empty(0, np.int64)
    done = 0
    for now in count(1):
        masks = infos["action_mask"].copy() if watch is not None else None
        actions = read_actions(policy, policy.act(observations, infos["action_mask"]), batch)
        if watch is not None and masks is not None:
            shares = policy.probabilities(observations, masks.copy())
            # Not those whose episode is over, where the next begins and any action is ignored.
            played = (infos["deal_index"] >= 0) & (masks[np.arange(batch), actions] == 1) & ~masks.all(axis=1)
            played[ended] = False
            watch(infos["deal_index"][played], actions[played], None if shares is None else shares[played])
        chosen.append(actions.astype(np.int16))
        observations, _, terminations, truncations, infos = games.step(actions)
        begun = ended[infos["deal_index"][ended] >= 0]
        if begun.size:
            first[begun] = now
            policy.begin(begun, seeds[infos["deal_index"][begun]])
        ended = np.flatnonzero(terminations | truncations)
        if ended.size:
            place = infos["deal_index"][ended]
            won[place], truncated[place] = infos["is_success"][ended], truncations[ended]
            scores[place], steps[place] = infos["score"][ended], now - first[ended]
            table[place], begin[place] = ended, first[ended]
            done += len(ended)
            if progress is not None:
                progress(done)
            if games.finished:
                break
    seconds = time.perf_counter() - started
    every = np.stack(chosen)
    played_actions = [every[begin[k] : begin[k] + steps[k], table[k]] for k in range(total)]
    return Evaluation(
        policy.name,
        class_name(policy),
        policy.settings,
        rules,
        name,
        seed,
        max_steps,
        numbers,
        won,
        truncated,
        scores,
        steps,
        np.concatenate(played_actions),
        seconds,
    )


def class_name(policy: Policy) -> str:
    """The module and name of a policy's class."""
    return f"{type(policy).__module__}.{type(policy).__qualname__}"


def read_suite(deals: Any, rules: Rules) -> Suite:
    """A suite from itself, its name, N for ``first-N``, or a sequence of deal numbers or codes.

    Raises:
        ValueError: `deals` is none of these.
    """
    if isinstance(deals, Suite):
        return deals
    if isinstance(deals, str):
        return suite(deals, rules)
    if is_whole(deals):
        return suite(f"first-{check_whole('the number of deals', deals, 1)}")
    if not isinstance(deals, Iterable):
        raise ValueError(f"{deals!r} are no deals: give a suite, its name, N for first-N, or deal numbers or codes")
    numbers: list[int] = []
    for deal_ in cast(Iterable[Any], deals):
        number = read_deal(deal_, rules)
        if not isinstance(number, int):
            raise ValueError("evaluate plays numbered deals, and an arrangement has no number")
        numbers.append(number)
    return Suite(f"custom-{sha256(repr(numbers).encode()).hexdigest()[:8]}", numbers)


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")  # it ships no types
    except ImportError as error:
        raise ImportError("Parquet needs the package pyarrow: pip install 'rusol-env[parquet]'") from error


def _table(rows: dict[str, list[Any]], kind: str) -> bytes:
    if kind == "csv":
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
        return text.getvalue().encode()
    arrow = _pyarrow()
    sink = arrow.BufferOutputStream()
    import_module("pyarrow.parquet").write_table(arrow.table(rows), sink)
    return sink.getvalue().to_pybytes()


def read_rows(path: Path) -> dict[str, list[str]]:
    """The per-deal table that `save` wrote, all values as text.

    Raises:
        ValueError: it is no table.
        ImportError: it is Parquet, and pyarrow is not installed.
        OSError: it cannot be read.
    """
    if path.suffix == ".parquet":
        _pyarrow()
        try:
            columns: dict[str, list[Any]] = import_module("pyarrow.parquet").read_table(path).to_pydict()
        except OSError:
            raise
        except Exception as error:  # pyarrow has errors of its own
            raise ValueError(f"{path} is no table in Parquet: {error}") from error
        return {name: [str(value) for value in values] for name, values in columns.items()}
    with path.open(newline="", encoding="utf-8") as file:
        try:
            header, *lines = csv.reader(file)
            return {name: list(values) for name, *values in zip(header, *lines, strict=True)}
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path} is no table in CSV: {error}") from error


def summary_path(folder: str | Path, policy: str, rules: Rules, suite_name: str, seed: int) -> Path:
    """Where `save` writes the summary of such an evaluation; its per-deal table lies beside it."""
    # A policy's name is anybody's text: only what is safe in a file name goes into one.
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", f"{policy}-{rules.name}-{suite_name}-seed{seed}")
    return Path(folder) / f"{stem}.json"


def saved_summary(path: Path, settings: dict[str, Any]) -> dict[str, Any] | None:
    """The summary that an earlier run left at `path`, None if there is none.

    Args:
        path: from `summary_path`.
        settings: what the run about to begin would play: each entry must be the summary's.

    Raises:
        ValueError: what is there is no whole result, or one of other settings; the message names the file.
        OSError: it cannot be read.
    """
    if not path.exists():
        return None
    try:
        summary = read_summary(path)
    except ValueError as error:
        raise ValueError(f"{error}: move it away, or --force") from error
    found = summary | {"rusol-env": summary["versions"]["rusol-env"]}
    for key, value in settings.items():
        if found.get(key) != value:
            raise ValueError(f"{path} is of a run with {key} {found.get(key)!r}, not {value!r}: move it, or --force")
    return {key: value for key, value in summary.items() if key not in _OF_FILES}


def read_summary(path: Path) -> dict[str, Any]:
    """The summary that `save` wrote, which names the files of the table and the games, both unchanged.

    Raises:
        ValueError: it is no whole result, or was changed; the message names the file.
        OSError: it cannot be read.
    """
    try:
        summary: Any = json.loads(path.read_text(encoding="utf-8"))
        digest = summary.pop("summary_sha256")
        changed = None if _digest(summary) == digest else path
        if not summary["versions"]["rusol-env"]:
            raise ValueError("no version")
        for kind in _FILES:
            beside = path.parent / Path(str(summary[kind])).name
            if changed is None and sha256(beside.read_bytes()).hexdigest() != summary[f"{kind}_sha256"]:
                changed = beside
    except KeyError as error:
        raise ValueError(f"{path} is no whole result of an evaluation: it has no {error}") from error
    except (ValueError, TypeError, AttributeError, FileNotFoundError, RecursionError) as error:
        raise ValueError(f"{path} is no whole result of an evaluation ({error})") from error
    if changed is not None:
        raise ValueError(f"{changed} was changed after it was written")
    return summary


def _digest(summary: dict[str, Any]) -> str:
    return sha256(json.dumps(summary, sort_keys=True).encode()).hexdigest()


def prepare_folder(folder: str | Path, kind: str) -> Path:
    """Make the folder for results and check that they can be written, before anything is played.

    Raises:
        ValueError: unknown `kind` of table.
        ImportError: Parquet is asked for and pyarrow is not installed.
        OSError: the folder cannot be made or written.
    """
    if kind not in FORMATS:
        raise ValueError(f"unknown format {kind!r}: use one of {', '.join(FORMATS)}")
    if kind == "parquet":
        _pyarrow()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # A nameless file, so that runs beside this one do not meet it.
    TemporaryFile(dir=folder).close()
    return folder


def save(evaluation: Evaluation, folder: str | Path, kind: str = "csv", *, force: bool = False) -> tuple[Path, Path]:
    """Write the per-deal table, the games (`rusol_env.games`) and the summary into `folder`.

    The summary names the other two and their SHA-256 and is written last: where it is, all is whole. Files without
    one are what an interrupted run left, and are replaced.

    Args:
        evaluation: what to write.
        folder: made if it is not there.
        kind: of the table, ``"csv"`` or ``"parquet"``.
        force: replace a result of the same name.

    Returns:
        the paths of the table and the summary.

    Raises:
        FileExistsError: a result of that name is there and `force` is off.
        ValueError, ImportError, OSError: as `prepare_folder`.
    """
    folder = prepare_folder(folder, kind)
    path = summary_path(folder, evaluation.policy, evaluation.rules, evaluation.suite, evaluation.seed)
    if path.exists() and not force:
        raise FileExistsError(f"{path} is there already: choose another folder, or --force to replace it")
    table_path, games_path = path.with_suffix(f".{kind}"), path.with_suffix(".npz")
    table, games = _table(evaluation.rows(), kind), evaluation.games.data()
    summary = evaluation.summary()
    summary |= {"table": table_path.name, "table_sha256": sha256(table).hexdigest()}
    summary |= {"games": games_path.name, "games_sha256": sha256(games).hexdigest()}
    summary["summary_sha256"] = _digest(summary)
    text = json.dumps(summary, indent=2) + "\n"
    write_whole(table_path, table)
    write_whole(games_path, games)
    write_whole(path, text.encode(), replace=force)
    # Only now is an earlier result in the other format replaced by a whole one.
    for other in FORMATS:
        if other != kind:
            path.with_suffix(f".{other}").unlink(missing_ok=True)
    return table_path, path
