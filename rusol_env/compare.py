"""Comparison: rule sets on the same deals, for a policy or for the solver, deal by deal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from rusol_env.deals import Suite, check_seed, check_whole, is_whole, suite
from rusol_env.env import DEFAULT_MAX_STEPS
from rusol_env.evaluate import evaluate, versions, wilson_interval
from rusol_env.models import as_policy, check_policy
from rusol_env.rules import VARIANTS, Rules, rules_named
from rusol_env.solver import DEFAULT_NODE_LIMIT, Solver, Verdict

SOLVER: Final = "solver"
# Deals that the solver answers between two calls of `progress`.
_CHUNK: Final = 50


def extra(module: str) -> Any:
    """A module of the extra ``[compare]``, which ships no types or only half of them.

    Raises:
        ImportError: it is not installed; the message names the extra.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(f"a comparison needs the package {package}: pip install 'rusol-env[compare]'") from error


def mcnemar(only_first: int, only_second: int) -> float:
    """The p-value of McNemar's test, exact and two-sided; 1.0 where no deal tells the two apart.

    If a deal won under one of two rule sets only were as likely to be won under either, how often would the split be at
    least as uneven as this one? Q. McNemar, "Note on the sampling error of the difference between correlated
    proportions or percentages", Psychometrika 12 (1947); exact by the binomial distribution. 0.0 is what lies below the
    smallest float.
    """
    discordant = only_first + only_second
    return float(extra("scipy.stats").binomtest(only_first, discordant, 0.5).pvalue) if discordant else 1.0


def paired_interval(both: int, only_first: int, only_second: int, neither: int) -> tuple[float, float]:
    """The 95 % interval for the difference of two proportions of the same deals, second minus first.

    Method 10 of R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions based on
    paired data", Statistics in Medicine 17 (1998): the Wilson intervals of the two, put together by their correlation.

    Raises:
        ValueError: there are no deals.
    """
    deals = both + only_first + only_second + neither
    wins = (both + only_first, both + only_second)
    (low_1, high_1), (low_2, high_2) = (wilson_interval(count, deals) for count in wins)
    share_1, share_2 = (count / deals for count in wins)
    product = both * neither - only_first * only_second
    if product > 0:
        product = max(product - deals / 2, 0)
    # With all won or none won under one of the two, the product is 0 as well.
    phi = product / sqrt(wins[0] * (deals - wins[0]) * wins[1] * (deals - wins[1])) if product else 0.0

    def half(one: float, other: float) -> float:
        return sqrt(max(one * one + other * other - 2 * phi * one * other, 0.0))

    difference = share_2 - share_1
    low = difference - half(share_2 - low_2, high_1 - share_1)
    high = difference + half(high_2 - share_2, share_1 - low_1)
    return max(low, -1.0), min(high, 1.0)


def mean_interval(differences: NDArray[np.int64]) -> tuple[float, float] | None:
    """The 95 % interval for the mean of paired differences (N,), by Student's t; None for a single one."""
    count = len(differences)
    if count < 2:
        return None
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / sqrt(count)
    half = float(extra("scipy.stats").t.ppf(0.975, count - 1)) * error
    return mean - half, mean + half


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of each deal under one rule set. Arrays have one entry a deal, in the suite's order."""

    rules: Rules
    won: NDArray[np.bool_]
    """bool (N,): won by the policy, or proved winnable."""
    undecided: NDArray[np.bool_]
    """bool (N,): the solver hit its limit. Counted neither as won nor as lost."""
    scores: NDArray[np.int64] | None
    """int64 (N,): the final scores of a policy's games; None for the solver."""
    details: dict[str, Any]
    """More figures of this rule set, ready for JSON."""

    def summary(self) -> dict[str, Any]:
        """The figures, ready for JSON.

        ``win_rate`` is None where a deal is undecided; ``win_rate_bounds`` then counts those deals as lost and as won,
        and ``win_rate_ci95`` goes from the lower end of Wilson's interval for the one to the upper end for the other.
        """
        deals, wins, undecided = len(self.won), int(self.won.sum()), int(self.undecided.sum())
        most = wins + undecided
        return {
            "rules": self.rules.name,
            "deals": deals,
            "wins": wins,
            "losses": deals - most,
            "undecided": undecided,
            "win_rate": None if undecided else wins / deals,
            "win_rate_bounds": [wins / deals, most / deals],
            "win_rate_ci95": [wilson_interval(wins, deals)[0], wilson_interval(most, deals)[1]],
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rule sets, deal by deal. Differences are second minus first: above 0, the first is harder.

    A deal that is undecided under one of the two is counted in `undecided` only. Bounds are over all ways in which
    those deals may turn out; without any, their two ends are equal.
    """

    first: str
    second: str
    both: int
    """Deals won under both."""
    only_first: int
    only_second: int
    neither: int
    undecided: int
    mcnemar_p: float
    """See `mcnemar`; the upper end of its bounds, so that undecided deals never make a difference look surer."""
    mcnemar_p_bounds: tuple[float, float]
    win_rate_difference: float | None
    """As a share, -1 to 1; None where a deal is undecided."""
    win_rate_difference_bounds: tuple[float, float]
    win_rate_difference_ci95: tuple[float, float]
    """See `paired_interval`; lower end from the lower bound, upper end from the upper bound."""
    score_difference: float | None
    """The mean over the deals, in points of the game; None for the solver."""
    score_difference_ci95: tuple[float, float] | None
    """See `mean_interval`."""


def _counts(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    cells = (first & second, first & ~second, ~first & second, ~first & ~second)
    both, only_first, only_second, neither = (int(cell.sum()) for cell in cells)
    return both, only_first, only_second, neither


def pair(first: Outcome, second: Outcome) -> Pair:
    """Compare two outcomes of the same deals."""
    decided = ~(first.undecided | second.undecided)
    both, only_first, only_second, neither = _counts(first.won[decided], second.won[decided])
    # Undecided deals all in favour of the one rule set, and all in favour of the other.
    against = _counts(first.won | first.undecided, second.won)
    favour = _counts(first.won, second.won | second.undecided)
    bounds = tuple((table[2] - table[1]) / len(decided) for table in (against, favour))
    # p grows as the split evens out: it is highest where the undecided deals even it out as far as they can.
    most_1, most_2 = against[1], favour[2]
    if only_first <= only_second:
        highest = mcnemar(min(most_1, only_second), only_second)
    else:
        highest = mcnemar(only_first, min(most_2, only_first))
    lowest = min(mcnemar(most_1, only_second), mcnemar(only_first, most_2))
    score, score_interval = None, None
    if first.scores is not None and second.scores is not None:
        differences = second.scores - first.scores
        score, score_interval = float(differences.mean()), mean_interval(differences)
    return Pair(
        first=first.rules.name,
        second=second.rules.name,
        both=both,
        only_first=only_first,
        only_second=only_second,
        neither=neither,
        undecided=int((~decided).sum()),
        mcnemar_p=highest,
        mcnemar_p_bounds=(lowest, highest),
        win_rate_difference=bounds[0] if decided.all() else None,
        win_rate_difference_bounds=(bounds[0], bounds[1]),
        win_rate_difference_ci95=(paired_interval(*against)[0], paired_interval(*favour)[1]),
        score_difference=score,
        score_difference_ci95=score_interval,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Rule sets on the same deals."""

    policy: str
    """The policy's name, or ``"solver"``: then *won* means proved winnable when all cards are known."""
    suite: str
    numbers: NDArray[np.int64]
    """int64 (N,): the deal numbers."""
    settings: dict[str, Any]
    """``seed`` and ``max_steps`` of a policy, ``node_limit`` of the solver; ``take_back``."""
    outcomes: tuple[Outcome, ...]
    """One a rule set, in the order of `VARIANTS`."""
    command: str | None
    """The command that gives these figures; None if there is none (a policy or suite made in Python)."""

    @property
    def word(self) -> str:
        """What a deal is that counts: ``"winnable"`` by the solver, ``"won"`` by a policy."""
        return "winnable" if self.policy == SOLVER else "won"

    @property
    def pairs(self) -> list[Pair]:
        """Each rule set with each later one."""
        return [pair(first, second) for first, second in combinations(self.outcomes, 2)]

    def summary(self) -> dict[str, Any]:
        """The figures, ready for JSON: an entry a rule set under its name (`Outcome.summary`), and ``pairs``.

        The figures of Classic and Relaxed stand at the top level too, ``only_classic`` for ``only_first`` and
        ``only_relaxed`` for ``only_second``.
        """
        pairs = [asdict(entry) for entry in self.pairs]
        document: dict[str, Any] = {"policy": self.policy, "suite": self.suite, "deals": len(self.numbers)}
        document |= {outcome.rules.name: outcome.summary() for outcome in self.outcomes}
        if pairs[0]["first"] == "classic" and pairs[0]["second"] == "relaxed":
            names = {"only_first": "only_classic", "only_second": "only_relaxed"}
            document |= {
                names.get(key, key): value for key, value in pairs[0].items() if key not in ("first", "second")
            }
        return document | {
            "rules": [outcome.rules.name for outcome in self.outcomes],
            "pairs": pairs,
            **self.settings,
            "command": self.command,
            "versions": versions() | {"scipy": version("scipy")},
        }


def compare(
    policy: Any,
    deals: Suite | str | int = 1000,
    rules: Iterable[str | Rules] = ("classic", "relaxed"),
    *,
    seed: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    node_limit: int = DEFAULT_NODE_LIMIT,
    progress: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Play, or solve, the same deals under each rule set, without taking cards back.

    Args:
        policy: what `evaluate` takes, or ``"solver"``: then a deal is won if it can be won at all. A name or path is
            read anew for each rule set.
        deals: a suite or its name, or N for ``first-N``.
        rules: two rule sets or more, or their names; compared in the order of `VARIANTS`.
        seed: what a policy's chance is drawn from, as in `evaluate`. The solver has none.
        max_steps: a policy's game is stopped after so many steps.
        node_limit: the solver leaves a deal undecided after about so many positions.
        progress: called now and then with a rule set's name and the number of its deals done.

    Raises:
        ValueError: an argument is not valid.
        ImportError: scipy is missing.
    """
    extra("scipy.stats")
    policy = str(policy) if isinstance(policy, Path) else policy
    chosen = check_comparison(policy, rules)
    seed = check_seed(seed)
    node_limit = check_whole("node_limit", node_limit, 1)
    max_steps = check_whole("max_steps", max_steps, 1)
    if is_whole(deals):
        deals = f"first-{check_whole('the number of deals', deals, 1)}"
    if isinstance(deals, str):
        deals = suite(deals)
    if not isinstance(deals, Suite):
        raise ValueError(f"{deals!r} are no deals: give a suite, its name, or N for first-N")
    numbers = np.array(deals.numbers, np.int64)
    outcomes: list[Outcome] = []
    for rule_set in chosen:

        def tell(done: int, name: str = rule_set.name) -> None:
            if progress is not None:
                progress(name, done)

        if policy == SOLVER:
            outcomes.append(_solved(rule_set, numbers, node_limit, tell))
        else:
            outcomes.append(_played(policy, rule_set, deals, seed, max_steps, tell))
    settings: dict[str, Any] = (
        {"node_limit": node_limit} if policy == SOLVER else {"seed": seed, "max_steps": max_steps}
    )
    command = None
    if isinstance(policy, str) and _is_named(deals):
        options = "".join(f" --rules {rule_set.name}" for rule_set in chosen)
        options += f" --deals {len(deals)}"
        options += "".join(f" --{key.replace('_', '-')} {value}" for key, value in settings.items())
        command = f"rusol compare --policy {policy}{options}"
    name = policy if isinstance(policy, str) else as_policy(policy).name
    return Comparison(name, deals.name, numbers, settings | {"take_back": False}, tuple(outcomes), command)


def check_comparison(policy: Any, rules: Iterable[str | Rules]) -> list[Rules]:
    """The rule sets to compare, each once, in the order of `VARIANTS`.

    No model is read.

    Raises:
        ValueError: unknown policy or rules, or fewer than two rule sets.
    """
    wanted = {rules_named(name) for name in ([rules] if isinstance(rules, str) else rules)}
    if isinstance(policy, str) and policy != SOLVER:
        for rule_set in wanted:
            try:
                check_policy(policy, rule_set)
            except ValueError as error:
                raise ValueError(f"{error}, or {SOLVER}") from error
    if len(wanted) < 2:
        names = "".join(f" ({rule_set.name})" for rule_set in wanted)
        raise ValueError(f"one rule set{names} is nothing to compare: give two or more of {', '.join(VARIANTS)}")
    return [rule_set for rule_set in VARIANTS.values() if rule_set in wanted]


def _is_named(deals: Suite) -> bool:
    """Whether the command line's ``--deals`` gives these deals."""
    return deals.name == f"first-{len(deals)}" and list(deals.numbers) == list(range(len(deals)))


def _played(policy: Any, rules: Rules, deals: Suite, seed: int, max_steps: int, tell: Callable[[int], None]) -> Outcome:
    result = evaluate(policy, rules, deals, seed=seed, max_steps=max_steps, progress=tell)
    kept = (
        "policy_class",
        "policy_settings",
        "dead_ends",
        "truncated",
        "mean_score",
        "mean_score_se",
        "mean_steps",
        "seconds",
    )
    details = {key: value for key, value in result.summary().items() if key in kept}
    return Outcome(rules, result.won, np.zeros(len(deals), np.bool_), result.scores, details)


def _solved(rules: Rules, numbers: NDArray[np.int64], node_limit: int, tell: Callable[[int], None]) -> Outcome:
    solver = Solver(rules)
    verdicts = np.zeros(len(numbers), np.int8)
    nodes = np.zeros(len(numbers), np.int64)
    for at in range(0, len(numbers), _CHUNK):
        part = slice(at, at + _CHUNK)
        verdicts[part], nodes[part], _ = solver.solve_deals(numbers[part], node_limit=node_limit)
        tell(min(at + _CHUNK, len(numbers)))
    won = cast(NDArray[np.bool_], verdicts == Verdict.WINNABLE)
    undecided = cast(NDArray[np.bool_], verdicts == Verdict.UNDECIDED)
    return Outcome(rules, won, undecided, None, {"mean_nodes": float(nodes.mean()), "max_nodes": int(nodes.max())})
