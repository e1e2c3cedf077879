"""Evaluation: its figures, and its results on disk."""

from __future__ import annotations

import csv
import json
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import rusol_env
from rusol_env import Policy
from rusol_env.evaluate import save, wilson_interval
from rusol_env.files import write_whole


class Constant(Policy):
    """Returns what it was made with, whatever it sees."""

    name = "constant"
    observation = "board"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> Any:
        return self.answer


@given(st.integers(1, 100_000), st.data())
def test_wilson_interval_is_scipys(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    binomtest: Any = import_module("scipy.stats").binomtest
    expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize(("successes", "trials"), [(1, 0), (0, 0), (3, 2), (-1, 5)])
def test_what_is_no_proportion_is_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(successes, trials)


@pytest.mark.parametrize("rules", rusol_env.VARIANTS)
def test_the_summary_is_what_the_rows_say(rules: str) -> None:
    """Scenario 9: won, dead ends and cut off are all the deals, none twice, none missing."""
    result = rusol_env.evaluate("greedy", rules, 300, seed=3, max_steps=120)
    assert result.numbers.tolist() == list(range(300))
    summary, rows = result.summary(), result.rows()
    assert len(set(rows["code"])) == 300
    assert summary["wins"] == sum(rows["won"])
    assert summary["wins"] + summary["dead_ends"] + summary["truncated"] == summary["deals"] == 300
    assert summary["win_rate"] == summary["wins"] / 300
    assert summary["win_rate_ci95"] == list(wilson_interval(summary["wins"], 300))
    assert summary["mean_score"] == pytest.approx(np.mean(rows["score"]))
    assert summary["mean_score_se"] == pytest.approx(np.std(rows["score"], ddof=1) / np.sqrt(300))
    assert summary["mean_steps"] == pytest.approx(np.mean(rows["steps"]))
    labels = rusol_env.labels(rusol_env.VARIANTS[rules])[:300]
    if len(labels) == 300:
        known = labels == rusol_env.Verdict.WINNABLE
        assert summary["winnable"] == known.sum()
        assert summary["wins_of_winnable"] == (result.won & known).sum() / known.sum()
    else:  # a new rule set, for which no labels were made
        assert summary["winnable"] is summary["wins_of_winnable"] is None
    assert summary["games_per_second"] == pytest.approx(300 / summary["seconds"])
    for won, score, steps, truncated in zip(
        *(rows[key] for key in ("won", "score", "steps", "truncated")), strict=True
    ):
        # Scenario 8: exactly the games that are won reach 625.
        assert won == (score == 625)
        assert not (won and truncated)
        assert (steps == 120) >= truncated


def test_one_deal_makes_a_summary_without_nan() -> None:
    text = json.dumps(rusol_env.evaluate("random", "classic", 1).summary(), allow_nan=False)
    assert json.loads(text)["mean_score_se"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "nobody"}, "unknown policy 'nobody': use one of random, greedy"),
        ({"rules": "bridge"}, "unknown rules"),
        ({"deals": 0}, "the number of deals is 0"),
        ({"deals": []}, "is empty"),
        ({"deals": [2**35]}, "not a deal number"),
        ({"seed": -1}, "not a seed"),
        ({"seed": 1.5}, "1.5 is not a seed"),
        ({"seed": True}, "True is not a seed"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"max_steps": float("nan")}, "max_steps is nan"),
        ({"policy": rusol_env.RandomPolicy}, "an instance of a rusol_env.Policy"),
        ({"policy": None}, "is not a policy"),
        ({"deals": None}, "None are no deals"),
        ({"deals": "last-10"}, "unknown suite 'last-10'"),
        ({"deals": ["RU1-R-AAAAAAA"]}, "is for relaxed rules"),
        ({"deals": [rusol_env.deal_arrangement(0).text()]}, "an arrangement has no number"),
        ({"policy": Constant(np.zeros(3, np.int64))}, "policy 'constant' returned int64 (3,)"),
        ({"policy": Constant(np.zeros(5))}, "policy 'constant' returned float64 (5,)"),
        ({"policy": Constant(None)}, "policy 'constant' returned object ()"),
        ({"policy": Constant(np.full(5, 416))}, "an action outside 0 to 415"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments: dict[str, Any], said: str) -> None:
    call: dict[str, Any] = {"policy": "random", "deals": 5} | arguments
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is compared below
        rusol_env.evaluate(**call)
    assert said in str(refused.value)


def test_a_policy_of_illegal_moves_only_ends() -> None:
    result = rusol_env.evaluate(Constant(np.zeros(5, np.int64)), "relaxed", [0, 1, 2, 3, 4], max_steps=50)
    assert result.steps.tolist() == [50] * 5
    assert result.truncated.all()
    assert result.suite.startswith("custom-")
    assert rusol_env.evaluate("random", "classic", [5]).suite != rusol_env.evaluate("random", "classic", [6]).suite


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_results_on_disk_are_whole_and_kept(tmp_path: Path) -> None:
    result = rusol_env.evaluate("greedy", "relaxed", 50, seed=1)
    table, summary = save(result, tmp_path / "new" / "folder")
    rows = read_rows(table)
    assert list(rows[0]) == ["code", "won", "score", "steps", "truncated"]
    assert [row["code"] for row in rows] == [rusol_env.encode_code(number, "relaxed") for number in range(50)]
    assert [row["won"] == "True" for row in rows] == result.won.tolist()
    assert [int(row["score"]) for row in rows] == result.scores.tolist()
    assert [int(row["steps"]) for row in rows] == result.steps.tolist()
    told = json.loads(summary.read_text(encoding="utf-8"))
    assert told["table"] == table.name
    assert told["table_sha256"] == sha256(table.read_bytes()).hexdigest()
    assert {
        "seed": 1,
        "max_steps": 500,
        "policy": "greedy",
        "rules": "relaxed",
        "suite": "first-50",
    }.items() <= told.items()
    assert {"rusol-env", "numba", "numpy", "gymnasium", "python"} <= told["versions"].keys()

    before = table.read_bytes()
    with pytest.raises(FileExistsError, match="--force"):
        save(result, table.parent)
    assert table.read_bytes() == before
    save(result, table.parent, force=True)
    assert table.read_bytes() == before
    games = summary.with_suffix(".npz")
    assert told["games"] == games.name
    assert told["games_sha256"] == sha256(games.read_bytes()).hexdigest()
    assert {path.name for path in table.parent.iterdir()} == {table.name, summary.name, games.name}


def test_deals_and_numbers_of_any_kind_are_taken() -> None:
    plain = rusol_env.evaluate("random", "classic", 5, seed=3)
    for deals in (np.int64(5), "first-5", range(5), np.arange(5), ["RU1-C-AAAAAAA", 1, 2, 3, 4], iter(range(5))):
        other = rusol_env.evaluate("random", "classic", deals, seed=np.int64(3))  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(other.scores, plain.scores)
        np.testing.assert_array_equal(other.steps, plain.steps)
    json.dumps(rusol_env.evaluate("random", "classic", 2, max_steps=np.int64(5)).summary())  # pyright: ignore[reportArgumentType]


def test_a_policys_name_stays_in_the_folder(tmp_path: Path) -> None:
    policy = Constant(np.zeros(3, np.int64))
    policy.name = "../../ppo/seed 1"  # pyright: ignore[reportAttributeAccessIssue]
    table, summary = save(rusol_env.evaluate(policy, "classic", 3), tmp_path / "results")
    assert table.parent == summary.parent == tmp_path / "results"
    assert len(list(tmp_path.rglob("*.*"))) == 3


def test_a_result_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_whole(path, b"first", replace=False)
    with pytest.raises(FileExistsError):
        write_whole(path, b"second", replace=False)
    assert path.read_bytes() == b"first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


def test_another_format_leaves_no_stale_table(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is missing")
    result = rusol_env.evaluate("random", "classic", 3)
    save(result, tmp_path, "csv")
    save(result, tmp_path, "parquet", force=True)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".npz", ".parquet"]


def test_parquet_holds_the_same_rows(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is missing")
    result = rusol_env.evaluate("greedy", "classic", 20)
    table, _ = save(result, tmp_path, "parquet")
    assert parquet.read_table(table).to_pydict() == result.rows()
    with pytest.raises(ValueError, match="use one of csv, parquet"):
        save(result, tmp_path, "xlsx")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.json"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.json"]
