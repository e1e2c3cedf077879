"""The solver over many deals, its files, the labels that are shipped, and the suites made of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rusol_env import VARIANTS, Solver, Verdict, evaluate, solve_many, suite
from rusol_env import labels as labels_of_rules
from rusol_env import solve_many as solve_many_function
from rusol_env.evaluate import Evaluation
from rusol_env.rules import CLASSIC, RELAXED, YUKON
from rusol_env.solve_many import CHUNK

EVERY = pytest.mark.parametrize("rules", list(VARIANTS))


@EVERY
def test_the_answer_does_not_depend_on_workers(rules: str) -> None:
    one = solve_many(90, rules, workers=1, node_limit=3000)
    three = solve_many("first-90", rules, workers=3, node_limit=3000)
    alone = Solver(rules).solve_deals(np.arange(90), node_limit=3000)
    for name, array in zip(("verdicts", "nodes", "lengths"), alone, strict=True):
        assert (getattr(one, name) == array).all()
        assert (getattr(three, name) == array).all()


def test_the_summary_counts_undecided_deals_both_ways() -> None:
    found = solve_many(range(40), "yukon", node_limit=300)
    summary = found.summary()
    assert summary["undecided"] == found.count(Verdict.UNDECIDED) > 0
    assert summary["winnable"] + summary["unwinnable"] + summary["undecided"] == summary["deals"] == 40
    assert summary["winnable_rate"] == summary["winnable"] / 40
    assert summary["winnable_rate_most"] == 1 - summary["unwinnable"] / 40
    low, high = summary["winnable_rate_ci95"]
    assert 0 <= low < summary["winnable_rate"] < high <= 1
    assert summary["moves"]["most"] == found.lengths.max()
    json.dumps(summary)


def test_a_run_on_disk_goes_on_where_it_stopped(tmp_path: Path) -> None:
    deals = 2 * CHUNK + 30
    whole = solve_many(deals, folder=tmp_path)
    files = sorted(tmp_path.glob("*.npz"))
    assert len(files) == 3
    # As after a kill: one part is missing, and half a file lies beside it under another name.
    files[1].unlink()
    (tmp_path / ".000001.npz.77.part").write_bytes(b"half")
    stamps = [files[0].stat().st_mtime_ns, files[2].stat().st_mtime_ns]
    seen: list[int] = []
    again = solve_many(deals, folder=tmp_path, progress=seen.append)
    assert (again.verdicts == whole.verdicts).all()
    assert (again.nodes == whole.nodes).all()
    assert (again.lengths == whole.lengths).all()
    assert seen[0] == deals - CHUNK
    assert seen[-1] == deals
    assert stamps == [files[0].stat().st_mtime_ns, files[2].stat().st_mtime_ns]


def test_a_killed_run_loses_only_what_was_in_hand(tmp_path: Path) -> None:
    script = f"from rusol_env import solve_many; solve_many(20000, folder={str(tmp_path)!r}, workers=1)"
    run = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("*.npz"))) < 3 and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    run.wait()
    kept = len(list(tmp_path.glob("*.npz")))
    assert kept >= 3
    seen: list[int] = []
    found = solve_many(20000, folder=tmp_path, progress=seen.append)
    assert seen[0] == kept * CHUNK
    assert found.count(Verdict.WINNABLE) == (labels_of_rules(CLASSIC)[:20000] == Verdict.WINNABLE).sum()


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 nothing", b"\x93NUMPY"])
def test_a_damaged_or_foreign_file_is_refused_by_name(tmp_path: Path, damage: bytes) -> None:
    solve_many(20, folder=tmp_path)
    part = tmp_path / "000000.npz"
    part.write_bytes(damage)
    with pytest.raises(ValueError, match=r"000000\.npz is damaged"):
        solve_many(20, folder=tmp_path)
    part.unlink()
    with pytest.raises(ValueError, match="suite 'first-20', not 'first-21'"):
        solve_many(21, folder=tmp_path)
    with pytest.raises(ValueError, match="rules 'classic', not 'yukon'"):
        solve_many(20, "yukon", folder=tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(ValueError, match=r"run\.json is no run of the solver"):
        solve_many(20, folder=tmp_path)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    solve_many(20, folder=tmp_path)
    np.savez(tmp_path / "000000.npz", verdicts=np.array([{}], object), nodes=np.zeros(1), lengths=np.zeros(1))
    with pytest.raises(ValueError, match="is damaged"):
        solve_many(20, folder=tmp_path)


@pytest.mark.parametrize(
    ("deals", "options", "sentence"),
    [
        (0, {}, "the number of deals is 0"),
        ("first-0", {}, "no such size"),
        ([], {}, "is empty"),
        ([-3], {}, "not a deal number"),
        (3, {"rules": "spider"}, "unknown rules"),
        (3, {"workers": 0}, "workers is 0"),
        (3, {"node_limit": -1}, "node_limit is -1"),
    ],
)
def test_bad_input_is_named(deals: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        solve_many_function(deals, **options)


def test_the_labels_are_those_that_design_and_the_independent_solver_give() -> None:
    classic = labels_of_rules(CLASSIC)
    assert len(classic) == 200_000
    assert (classic[:1000] == Verdict.WINNABLE).sum() == 65
    assert (classic[:10_000] == Verdict.WINNABLE).sum() == 693
    assert (classic == Verdict.WINNABLE).sum() > 13_000
    assert (classic == Verdict.UNDECIDED).sum() == 0
    assert len(labels_of_rules(RELAXED)) == len(labels_of_rules(YUKON)) == 10_000


@EVERY
def test_the_labels_are_what_the_solver_says(rules: str) -> None:
    known = labels_of_rules(VARIANTS[rules])
    found = solve_many(150, rules).verdicts
    decided = found != Verdict.UNDECIDED
    assert decided.sum() >= 140
    assert (known[:150][decided] == found[decided]).all()


def test_changed_labels_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rusol_env import labels as module_function

    module = sys.modules[module_function.__module__]
    document = json.loads(module.PATH.read_text())
    changed = tmp_path / "labels.json"
    monkeypatch.setattr(module, "PATH", changed)
    entry: dict[str, Any] = document["rules"]["classic"]

    def write(rules: dict[str, Any]) -> None:
        module.labels.cache_clear()
        changed.write_text(json.dumps({"format": 1, "rules": rules}))

    write({"classic": entry | {"sha256": "0" * 64}})
    with pytest.raises(ValueError, match="was changed"):
        module.labels(CLASSIC)
    write({"classic": entry | {"verdicts": "AAAA"}})
    with pytest.raises(ValueError, match="is damaged"):
        module.labels(CLASSIC)
    write({})
    assert len(module.labels(CLASSIC)) == 0
    module.labels.cache_clear()


@EVERY
def test_winnable_suites(rules: str) -> None:
    known = labels_of_rules(VARIANTS[rules])
    chosen = suite("winnable-50", rules)
    assert chosen.name == "winnable-50"
    assert len(chosen) == 50
    assert list(chosen) == np.flatnonzero(known == Verdict.WINNABLE)[:50].tolist()
    result = evaluate("greedy", rules, chosen).summary()
    assert (result["winnable"], result["undecided"]) == (50, 0)
    assert result["wins_of_winnable"] == result["win_rate"]
    with pytest.raises(ValueError, match="N goes from 1 to"):
        suite(f"winnable-{len(known)}", rules)
    with pytest.raises(ValueError, match="depends on the rules"):
        suite("winnable-50")


@EVERY
def test_no_policy_wins_a_deal_that_is_called_unwinnable(rules: str) -> None:
    known = labels_of_rules(VARIANTS[rules])
    for policy in ("random", "greedy"):
        played = evaluate(policy, rules, 2000)
        assert not (played.won & (known[:2000] == Verdict.UNWINNABLE)).any()


def test_wins_among_the_winnable_deals() -> None:
    played = evaluate("greedy", "classic", 1000)
    row = played.summary()
    assert row["winnable"] == 65
    assert row["wins_of_winnable"] == row["wins"] / 65
    low, high = row["wins_of_winnable_ci95"]
    assert low < row["wins_of_winnable"] < high
    unlabelled = evaluate("greedy", "classic", [5, 200_000]).summary()
    assert (unlabelled["winnable"], unlabelled["undecided"], unlabelled["wins_of_winnable"]) == (None, None, None)
    lost = evaluate("greedy", "classic", [0]).summary()
    assert (lost["winnable"], lost["wins_of_winnable"]) == (0, None)
    assert isinstance(played, Evaluation)
