"""Comparison: its statistics, its undecided deals, its report."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import import_module
from itertools import product
from math import comb, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import rusol_env
from rusol_env.cli import main
from rusol_env.compare import Comparison, Outcome, compare, mcnemar, mean_interval, pair, paired_interval
from rusol_env.evaluate import wilson_interval
from rusol_env.plot import draw
from rusol_env.report import page, sentences

# The name in the package is the function's.
MODULE = sys.modules["rusol_env.compare"]
NAMES = ("won", "lost", "undecided")


def outcome(rules: str, fates: list[str], scores: list[int] | None = None) -> Outcome:
    """An outcome with such fates of its deals, which `NAMES` lists."""
    told = np.array(fates)
    return Outcome(
        rusol_env.VARIANTS[rules],
        told == "won",
        told == "undecided",
        None if scores is None else np.array(scores, np.int64),
        {"mean_nodes": 1.0, "max_nodes": 1},
    )


@pytest.fixture(scope="module")
def greedy() -> Comparison:
    return compare("greedy", 60)


@pytest.fixture(scope="module")
def limited() -> Comparison:
    """The solver on all rule sets, stopped so soon that deals stay undecided under each."""
    return compare("solver", 60, ("yukon", "classic", "relaxed"), node_limit=1)


def test_paired_interval_is_the_published_one() -> None:
    """As the R package contingencytables (Fagerland, Lydersen and Laake) gives it; first minus second there."""
    assert paired_interval(59, 6, 16, 80) == pytest.approx((0.0046, 0.1186), abs=5e-5)


def test_paired_interval_by_hand() -> None:
    # 30 of 40 against 10 of 40, both 10: phi = (10 * 10 - 20 * 0 - 20) / sqrt(30 * 10 * 10 * 30).
    (low_1, high_1), (low_2, high_2) = wilson_interval(30, 40), wilson_interval(10, 40)
    phi = 80 / 300
    down = sqrt((0.25 - low_2) ** 2 + (high_1 - 0.75) ** 2 - 2 * phi * (0.25 - low_2) * (high_1 - 0.75))
    up = sqrt((high_2 - 0.25) ** 2 + (0.75 - low_1) ** 2 - 2 * phi * (high_2 - 0.25) * (0.75 - low_1))
    assert paired_interval(10, 20, 0, 10) == pytest.approx((-0.5 - down, -0.5 + up))


@given(*[st.integers(0, 60)] * 4)
def test_paired_interval_holds_the_difference_and_turns_round(both: int, one: int, other: int, neither: int) -> None:
    if both + one + other + neither == 0:
        with pytest.raises(ValueError, match="no proportion"):
            paired_interval(both, one, other, neither)
        return
    low, high = paired_interval(both, one, other, neither)
    assert -1 <= low <= (other - one) / (both + one + other + neither) <= high <= 1
    assert paired_interval(both, other, one, neither) == pytest.approx((-high, -low))
    assert low < high


@pytest.mark.parametrize(("one", "other"), [(0, 0), (1, 0), (0, 5), (3, 3), (2, 9), (16, 6), (0, 2000)])
def test_mcnemar_by_counting(one: int, other: int) -> None:
    split = one + other
    tail = sum(comb(split, k) for k in range(min(one, other) + 1))
    assert mcnemar(one, other) == pytest.approx(min(1.0, float(2 * tail / 2**split)))
    assert mcnemar(one, other) == mcnemar(other, one)


@given(st.lists(st.integers(-625, 625), min_size=2, max_size=30))
def test_mean_interval_is_scipys(differences: list[int]) -> None:
    found = mean_interval(np.array(differences))
    assert found is not None
    if len(set(differences)) == 1:
        assert found == (differences[0], differences[0])
        return
    expected = import_module("scipy.stats").ttest_1samp(differences, 0).confidence_interval(0.95)
    assert found == pytest.approx((expected.low, expected.high))


def test_one_deal_has_no_interval_of_the_mean_and_no_nan() -> None:
    assert mean_interval(np.array([5])) is None
    document = json.loads(json.dumps(compare("random", 1).summary(), allow_nan=False))
    assert document["score_difference_ci95"] is None
    assert document["mcnemar_p"] == 1.0 or document["only_relaxed"] + document["only_classic"] == 1


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), min_size=1, max_size=7))
def test_bounds_are_over_all_ways_in_which_undecided_deals_may_turn_out(fates: list[tuple[str, str]]) -> None:
    """Scenario 20: against every way, one by one."""
    found = pair(outcome("classic", [one for one, _ in fates]), outcome("relaxed", [other for _, other in fates]))
    ways: list[tuple[int, int, int, int]] = []
    choices = [["won", "lost"] if fate == "undecided" else [fate] for both in fates for fate in both]
    for way in product(*choices):
        deals = list(zip(way[::2], way[1::2], strict=True))
        cells = [("won", "won"), ("won", "lost"), ("lost", "won"), ("lost", "lost")]
        both, one, other, neither = (deals.count(cell) for cell in cells)
        ways.append((both, one, other, neither))
    ps = [mcnemar(one, other) for _, one, other, _ in ways]
    assert found.mcnemar_p_bounds == pytest.approx((min(ps), max(ps)))
    assert found.mcnemar_p == max(found.mcnemar_p_bounds)
    shares = [(other - one) / len(fates) for _, one, other, _ in ways]
    assert found.win_rate_difference_bounds == (min(shares), max(shares))
    low, high = found.win_rate_difference_ci95
    assert low <= min(shares)
    assert high >= max(shares)
    decided = [both for both in fates if "undecided" not in both]
    assert found.undecided == len(fates) - len(decided)
    assert found.both == decided.count(("won", "won"))
    assert found.only_first == decided.count(("won", "lost"))
    assert found.only_second == decided.count(("lost", "won"))
    assert found.neither == decided.count(("lost", "lost"))
    assert (found.win_rate_difference is None) == (found.undecided > 0)
    assert found.score_difference is None


def test_a_policys_comparison_is_what_evaluate_says(greedy: Comparison) -> None:
    document = json.loads(json.dumps(greedy.summary(), allow_nan=False))
    won: dict[str, NDArray[np.bool_]] = {}
    scores: dict[str, NDArray[np.int64]] = {}
    for rules in ("classic", "relaxed"):
        played = rusol_env.evaluate("greedy", rules, 60)
        won[rules], scores[rules] = played.won, played.scores
        told = played.summary()
        for key in ("wins", "win_rate", "win_rate_ci95", "mean_score", "mean_score_se", "truncated", "dead_ends"):
            assert document[rules][key] == told[key]
        assert document[rules]["undecided"] == 0
    assert document["both"] == (won["classic"] & won["relaxed"]).sum()
    assert document["only_classic"] == (won["classic"] & ~won["relaxed"]).sum()
    assert document["only_relaxed"] == (~won["classic"] & won["relaxed"]).sum() > 0
    assert document["both"] + document["only_classic"] + document["only_relaxed"] + document["neither"] == 60
    difference = document["relaxed"]["win_rate"] - document["classic"]["win_rate"]
    assert document["win_rate_difference"] == pytest.approx(difference)
    assert document["score_difference"] == pytest.approx((scores["relaxed"] - scores["classic"]).mean())
    expected = import_module("scipy.stats").ttest_rel(scores["relaxed"], scores["classic"]).confidence_interval(0.95)
    assert document["score_difference_ci95"] == pytest.approx([expected.low, expected.high])
    split = document["only_classic"] + document["only_relaxed"]
    test = import_module("scipy.stats").binomtest(document["only_classic"], split, 0.5)
    assert document["mcnemar_p"] == test.pvalue
    assert document["mcnemar_p_bounds"] == [test.pvalue] * 2


def test_the_solvers_comparison_is_what_it_says_of_each_deal() -> None:
    document = compare("solver", 40).summary()
    for rules in ("classic", "relaxed"):
        verdicts = [rusol_env.solve(number, rules).verdict.text for number in range(40)]
        assert document[rules]["wins"] == verdicts.count("winnable") > 0
        assert document[rules]["losses"] == verdicts.count("unwinnable")
        assert document[rules]["undecided"] == 0
    assert document["score_difference"] is None
    # Relaxed allows every move that Classic allows.
    assert document["only_classic"] == 0


def test_undecided_deals_are_counted_apart(limited: Comparison) -> None:
    """Scenario 20."""
    document = limited.summary()
    assert document["rules"] == ["classic", "relaxed", "yukon"]
    assert [(entry["first"], entry["second"]) for entry in document["pairs"]] == [
        ("classic", "relaxed"),
        ("classic", "yukon"),
        ("relaxed", "yukon"),
    ]
    truth = {outcome.rules.name: outcome for outcome in limited.outcomes}
    assert truth["yukon"].undecided.sum() > 5
    for rules, row in truth.items():
        told = document[rules]
        assert told["wins"] + told["losses"] + told["undecided"] == told["deals"] == 60
        assert (told["win_rate"] is None) == (told["undecided"] > 0)
        assert told["win_rate_bounds"] == [told["wins"] / 60, (told["wins"] + told["undecided"]) / 60]
        assert told["win_rate_ci95"][0] == wilson_interval(told["wins"], 60)[0]
        assert told["win_rate_ci95"][1] == wilson_interval(told["wins"] + told["undecided"], 60)[1]
        assert not (row.won & row.undecided).any()
    for entry in document["pairs"]:
        count = entry["both"] + entry["only_first"] + entry["only_second"] + entry["neither"] + entry["undecided"]
        assert count == 60
        either = truth[entry["first"]].undecided | truth[entry["second"]].undecided
        assert entry["undecided"] == either.sum()
    assert document["undecided"] == document["pairs"][0]["undecided"]


def test_the_keys_of_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--deals", "30", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    keys = ["policy", "deals", "classic", "relaxed", "both", "only_classic", "only_relaxed", "neither", "mcnemar_p"]
    assert set(keys) <= document.keys()
    assert (document["policy"], document["suite"], document["deals"]) == ("greedy", "first-30", 30)
    assert document["take_back"] is False
    assert {"rusol-env", "numba", "scipy"} <= document["versions"].keys()
    # The command it names is the one that gives the same figures.
    assert main([*document["command"].split()[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    for told in (document, again):
        for rules in ("classic", "relaxed"):
            del told[rules]["seconds"]
    assert again == document


def test_rules_in_any_order_are_compared_alike() -> None:
    one, other = (compare("random", 20, rules).summary() for rules in (("yukon", "relaxed"), ("Relaxed", "yukon")))
    assert one["pairs"] == other["pairs"]
    assert one["command"] == other["command"]
    assert "both" not in one


def test_policies_and_suites_of_ones_own_name_no_command() -> None:
    class Own(rusol_env.RandomPolicy):
        name = "<b>own</b>"

    mine = compare(Own(), rusol_env.Suite("mine & yours", [5, 7]))
    assert mine.command is None
    text = page(mine).decode()
    assert "<b>" not in text
    assert "&lt;b&gt;own&lt;/b&gt; on mine &amp; yours" in text
    assert compare("random", rusol_env.Suite("first-2", [5, 7])).command is None
    assert mine.numbers.tolist() == [5, 7]


class Reader(HTMLParser):
    """What a page holds: its tags, what they refer to, and its table cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.references += [
            value or "" for name, value in attrs if name in ("href", "xlink:href", "src", "data", "action")
        ]
        if tag not in ("meta", "path", "use"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("meta", "path", "use"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


@pytest.mark.parametrize("name", ["greedy", "limited"])
def test_the_page_is_whole_and_fetches_nothing(name: str, request: pytest.FixtureRequest) -> None:
    comparison: Comparison = request.getfixturevalue(name)
    text = page(comparison).decode()
    read = Reader(text)
    assert read.open == []
    assert not read.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert all(reference.startswith("#") for reference in read.references)
    assert not re.search(r"https?:|//[a-z]|@import|javascript:| on\w+=", text)
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)", text))
    # Every colour that stands for the page's own was put in.
    assert not re.search(r"#0[1-5]0[1-5]0[1-5]", text)
    assert "nan" not in text.lower().split()
    document = comparison.summary()
    for entry in document["pairs"]:
        for key in ("both", "only_first", "only_second", "neither"):
            assert f"{entry[key]:,}" in read.cells
    for word in (comparison.command, *document["versions"].values(), comparison.suite, "Wilson", "Newcombe", "McNemar"):
        assert str(word) in text
    for sentence in sentences(comparison):
        assert sentence.split(":")[0].split(";")[0] in text


def test_pages_and_plots_are_the_same_bytes_each_time(limited: Comparison) -> None:
    again = compare("solver", 60, ("classic", "relaxed", "yukon"), node_limit=1)
    assert page(again) == page(limited)
    for kind, begin in (("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml")):
        assert draw(again, kind) == draw(limited, kind)
        assert draw(again, kind).startswith(begin)
    # Whatever the user's own settings of Matplotlib are.
    matplotlib: Any = import_module("matplotlib")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        assert page(again) == page(limited)
        assert matplotlib.rcParams["font.size"] == 30


def test_the_sentences_say_which_is_harder() -> None:
    def told(*fates: tuple[str, str]) -> str:
        outcomes = tuple(outcome(rules, [fate[i] for fate in fates]) for i, rules in enumerate(("classic", "relaxed")))
        made = Comparison("solver", "mine", np.arange(len(fates)), {"node_limit": 1}, outcomes, None)
        return sentences(made)[1]

    up, down, same = ("lost", "won"), ("won", "lost"), ("won", "won")
    assert "20 are winnable under relaxed only and 0 under classic only" in told(*[up] * 20)
    assert "is higher by 100.0 percentage points (95 % interval: 7" in told(*[up] * 20)
    assert "is lower by 100.0 percentage points" in told(*[down] * 20)
    assert "is different by 0.0 percentage points (95 % interval: −" in told(up, down, same).replace("+0.0", "0.0")
    assert re.search(r"is higher by 50\.0 to 100\.0 percentage.* p ≤ ", told(*[up] * 10, *[("undecided", "won")] * 10))


def test_files_are_written_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, plot = tmp_path / "new" / "report.html", tmp_path / "plot.PNG"
    command = ["compare", "--deals", "10", "--out", str(report), "--plot", str(plot)]
    assert main(command) == 0
    assert "won under both" in capsys.readouterr().out
    assert report.read_bytes() == page(compare("greedy", 10))
    assert plot.read_bytes() == draw(compare("greedy", 10), "png")
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["plot.PNG", "report.html"]
    report.write_bytes(b"mine")
    assert main(command) == 2
    assert f"{report} is there already: choose another name, or --force" in capsys.readouterr().err
    assert report.read_bytes() == b"mine"
    assert main([*command, "--force"]) == 0
    assert report.read_bytes() == page(compare("greedy", 10))


def test_a_file_that_came_meanwhile_is_kept_and_the_figures_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.html"
    real: Callable[..., Comparison] = compare

    def slow(*arguments: Any, **options: Any) -> Comparison:
        path.write_bytes(b"another's")
        return real(*arguments, **options)

    monkeypatch.setattr(MODULE, "compare", slow)
    assert main(["compare", "--deals", "5", "--out", str(path)]) == 2
    out, err = capsys.readouterr()
    assert "won under both" in out
    assert err.count("\n") == 1
    assert path.read_bytes() == b"another's"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "nobody"], "or the path of a model (.safetensors or .zip), or solver"),
        (["--rules", "classic"], "one rule set (classic) is nothing to compare: give two or more of classic, relaxed"),
        (["--rules", "classic", "--rules", "Classic"], "one rule set (classic)"),
        (["--rules", "bridge", "--rules", "classic"], "unknown rules 'bridge'"),
        (["--deals", "0"], "--deals is 0"),
        (["--seed", "-1"], "-1 is not a seed"),
        (["--max-steps", "0"], "max_steps is 0"),
        (["--policy", "solver", "--node-limit", "0"], "node_limit is 0"),
        (["--out", "report.pdf"], "report.pdf must end in .html"),
        (["--plot", "plot.gif"], "plot.gif must end in .png or .svg"),
        (["--out", "/dev/null/report.html"], "/dev/null"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rusol: ")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("deals", [None, [1, 2], 1.5])
def test_what_are_no_deals_is_refused(deals: Any) -> None:
    with pytest.raises(ValueError, match=r"are no deals: give a suite"):
        compare("random", deals)


@pytest.mark.parametrize("package", ["scipy", "matplotlib"])
def test_a_missing_package_is_named_before_anything_is_played(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(MODULE, "evaluate", None)
    assert main(["compare", "--deals", "5", "--out", str(tmp_path / "report.html")]) == 2
    err = capsys.readouterr().err
    assert err == f"rusol: a comparison needs the package {package}: pip install 'rusol-env[compare]'\n"
    assert list(tmp_path.iterdir()) == []


def test_the_tables_fit_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    every = [word for rules in rusol_env.VARIANTS for word in ("--rules", rules)]
    assert main(["compare", "--policy", "solver", *every, "--deals", "300", "--node-limit", "1"]) == 0
    assert main(["compare", *every, "--policy", "random", "--deals", "20"]) == 0
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "…" not in out
    assert "share, yukon − relaxed, points" in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--help"]) == 0
    out = capsys.readouterr().out
    for word in (
        "--policy",
        "solver",
        "--rules",
        "--deals",
        "--seed",
        "--node-limit",
        "--out",
        "--plot",
        "--force",
        "--json",
    ):
        assert word in out
