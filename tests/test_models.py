"""Policies by name, from files and from whatever somebody brings; the networks that ship, and their cards."""

from __future__ import annotations

import base64
import io
import json
import pickle
import random
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_hidden_cards import pair
from test_network import mlp_arrays, positions, structured_arrays, write

import rusol_env
from rusol_env import GreedyPolicy, Policy, RandomPolicy, RussianSolitaireEnv, models
from rusol_env.cli import main
from rusol_env.files import RunsCodeWarning
from rusol_env.model_card import ModelCard
from rusol_env.models import (
    TRAINED,
    CallablePolicy,
    as_policy,
    check_policy,
    load_sb3,
    policy_named,
    policy_names,
    shipped,
)
from rusol_env.network import NetworkPolicy
from rusol_env.policies import POLICIES

CLASSES = ("MaskablePPO", "PPO", "A2C", "DQN")
ON_POLICY = {"n_steps": 8}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "MaskablePPO": ON_POLICY | {"batch_size": 16},
    "PPO": ON_POLICY | {"batch_size": 16},
    "A2C": ON_POLICY,
    "DQN": {"buffer_size": 100},
}


def tiny(name: str, observation: str = "cards", module: str | None = None, **options: Any) -> Any:
    """An untrained model of Stable-Baselines3 or sb3-contrib."""
    pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
    from rusol_env import sb3

    package: Any = pytest.importorskip(module or sb3.CLASSES[name])
    env = sb3.SB3VecEnv(2, "relaxed", observation=observation, seed=0)
    arguments = ARGUMENTS.get(name, {}) | {"policy_kwargs": {"net_arch": [8]}} | options
    return getattr(package, name)("MlpPolicy", env, seed=3, device="cpu", **arguments)


@pytest.fixture(scope="module")
def model() -> dict[str, Any]:
    return {name: tiny(name) for name in CLASSES}


@pytest.fixture(scope="module")
def seen() -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Observations and masks of Relaxed games."""
    found = positions("relaxed")
    return found.cards, found.masks


@pytest.fixture(scope="module")
def zips(model: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A saved model of each class."""
    folder = tmp_path_factory.mktemp("models")
    paths = {name: folder / f"{name}.zip" for name in CLASSES}
    for name, path in paths.items():
        model[name].save(path)
    return paths


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the networks that ship: one for Classic."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    monkeypatch.setattr(models, "CHECKPOINTS", folder)
    weights = write(folder / "ppo-classic.safetensors", structured_arrays())
    ModelCard.of(weights, **TOLD).save(folder / "ppo-classic.json")
    return folder


# By name.


def test_the_built_in_policies_have_their_names() -> None:
    for name, kind in POLICIES.items():
        assert type(policy_named(name, 3)) is kind
    assert policy_named("planner", samples=3).settings["samples"] == 3
    assert type(as_policy("greedy")) is GreedyPolicy
    for name, option in (("greedy", "samples"), ("random", "only_legal")):
        with pytest.raises(ValueError, match=f"policy {name} has no {option}: that is of "):
            policy_named(name, 0, "classic", **{option: 1})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "x",
            "unknown policy 'x': use one of random, greedy, planner, ppo, distilled, planner+, or the path of a model",
        ),
        ("", "unknown policy ''"),
        ("none.zip", "there is no model 'none.zip': no such file"),
        ("none.safetensors", "there is no model 'none.safetensors': no such file"),
        ("a.txt", "'a.txt' is a file, and no model: its name must end in .safetensors or .zip"),
        ("folder", "policy 'folder' is a folder: name the model in it"),
    ],
)
def test_what_is_not_there_is_refused(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").touch()
    Path("folder").mkdir()
    for refuse in (check_policy, policy_named, as_policy):
        with pytest.raises(ValueError, match=r"policy|model") as refused:
            refuse(name)
        assert said in str(refused.value)
    # An empty word is refused by the command line.
    said = said if name else "the word after --policy is empty"
    assert refusal(capsys, "evaluate", "--policy", name).startswith(f"rusol: {said}")


# What somebody brings.


def test_a_policy_is_taken_as_it_is() -> None:
    policy = RandomPolicy(5)
    assert as_policy(policy) is policy


def test_a_function_plays() -> None:
    def lowest(observation: NDArray[Any], mask: NDArray[np.int8]) -> int:
        assert observation.shape == (52, 24)
        assert mask.shape == (416,)
        assert not mask.all()
        return int(mask.argmax())

    def lowest_of_boards(observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        assert observations.shape[1:] == (8, 52)
        return masks.argmax(axis=1)

    one = rusol_env.evaluate(lowest, "classic", 30)
    batched = CallablePolicy(lowest_of_boards, observation="board", batched=True, name="low")
    many = rusol_env.evaluate(batched, "classic", 30)
    np.testing.assert_array_equal(one.scores, many.scores)
    assert one.steps.sum() > 30
    assert (one.policy, many.policy) == ("lowest", "low")
    assert one.policy_settings["function"].endswith("lowest")
    assert many.policy_settings["batched"] is True

    class Object:
        def __call__(self, observation: Any, mask: NDArray[np.int8]) -> int:
            return int(mask.argmax())

    policy = as_policy(Object())
    assert policy.name == "Object"
    assert policy.settings["function"].endswith("Object")
    np.testing.assert_array_equal(rusol_env.evaluate(policy, "classic", 30).scores, one.scores)


@pytest.mark.parametrize("bad", [None, 5, 0.5, ["greedy"], b"greedy", GreedyPolicy, Policy, object()], ids=repr)
def test_what_is_no_policy_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="is not a policy: give the name of one, or an instance"):
        as_policy(bad)
    with pytest.raises(ValueError, match="is not a policy"):
        rusol_env.evaluate(bad, "classic", 1)


def test_what_cannot_be_called_is_no_function() -> None:
    with pytest.raises(ValueError, match="5 cannot be called"):
        CallablePolicy(5)  # pyright: ignore[reportArgumentType]


# Models of Stable-Baselines3.


@pytest.mark.parametrize("name", CLASSES)
def test_a_model_plays_as_it_predicts(name: str, model: dict[str, Any], seen: tuple[Any, Any]) -> None:
    cards, masks = seen
    policy: Any = as_policy(model[name])
    assert (policy.name, policy.observation, policy.kind) == (name.lower(), "cards", name)
    known = {"action_masks": masks} if name == "MaskablePPO" else {}
    predicted, _ = model[name].predict(cards, deterministic=True, **known)
    np.testing.assert_array_equal(policy.act(cards, masks), predicted)
    legal = masks[np.arange(len(masks)), predicted] == 1
    assert legal.all() == (name == "MaskablePPO")
    from rusol_env.sb3 import SB3Policy

    shy = SB3Policy(model[name], only_legal=True)
    assert (masks[np.arange(len(masks)), shy.act(cards, masks)] == 1).all()
    np.testing.assert_array_equal(shy.act(cards, masks)[legal], predicted[legal])
    # The likeliest is what is played, and what is left out has no chance.
    shares = shy.probabilities(cards, masks)
    np.testing.assert_array_equal(shares.argmax(axis=1), shy.act(cards, masks))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares[masks == 0] == 0).all()


@pytest.mark.parametrize("name", CLASSES)
def test_a_model_that_draws_does_so_by_its_probabilities(
    name: str, model: dict[str, Any], seen: tuple[Any, Any]
) -> None:
    from rusol_env.sb3 import SB3Policy

    model["DQN"].exploration_rate = 0.4
    number = 20_000
    cards, masks = (np.repeat(part[100:101], number, axis=0) for part in seen)
    policy = SB3Policy(model[name], deterministic=False, only_legal=True)
    actions = policy.act(cards, masks)
    shares = policy.probabilities(cards[:1], masks[:1])[0]
    counts = np.bincount(actions, minlength=416)
    assert counts[shares == 0].sum() == 0
    # The seed is fixed: five standard errors are wide enough.
    assert (np.abs(counts / number - shares) <= 5 * np.sqrt(shares * (1 - shares) / number)).all()
    assert (actions != policy.act(cards, masks)).any()
    if name == "DQN":
        assert shares.max() > 0.6


def test_a_game_is_played_alike_whatever_is_beside_it(model: dict[str, Any]) -> None:
    from rusol_env.sb3 import SB3Policy

    def play(deals: int, seed: int, policy_seed: int = 0) -> rusol_env.Evaluation:
        policy = SB3Policy(model["MaskablePPO"], deterministic=False, seed=policy_seed)
        return rusol_env.evaluate(policy, "classic", deals, seed=seed)

    first, again, fewer, other = play(20, 1), play(20, 1, 9), play(7, 1), play(20, 2)
    np.testing.assert_array_equal(first.scores, again.scores)
    np.testing.assert_array_equal(first.steps[:7], fewer.steps)
    assert first.steps.tolist() != other.steps.tolist()
    assert first.policy_settings == {"model": "MaskablePPO", "deterministic": False, "only_legal": True}


def test_models_of_other_games_are_refused(model: dict[str, Any], tmp_path: Path) -> None:
    stable: Any = pytest.importorskip("stable_baselines3")
    contrib: Any = pytest.importorskip("sb3_contrib")
    pole = stable.PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ValueError, match=r"the model's observations are Box.*they must be 'cards', Box.* or 'board'"):
        as_policy(pole)
    pole.save(tmp_path / "pole.zip")
    with pytest.warns(RunsCodeWarning), pytest.raises(ValueError, match=r"pole\.zip: the model's observations are"):
        load_sb3(tmp_path / "pole.zip")
    with pytest.raises(ValueError, match="a QRDQN cannot be played: models of MaskablePPO, PPO, A2C, DQN can"):
        as_policy(tiny("QRDQN", module=contrib.__name__, buffer_size=100))
    assert as_policy(tiny("PPO", "board")).observation == "board"
    # Of the player's own class, derived from one of these.
    own: Any = type("Mine", (contrib.MaskablePPO,), {})
    model["MaskablePPO"].save(tmp_path / "own.zip")
    policy: Any = as_policy(own.load(tmp_path / "own.zip"))
    assert policy.kind == "MaskablePPO"


@pytest.mark.parametrize("name", CLASSES)
def test_a_saved_model_is_read_after_a_warning(
    name: str, zips: dict[str, Path], model: dict[str, Any], seen: tuple[Any, Any]
) -> None:
    cards, masks = seen
    with pytest.warns(RunsCodeWarning, match=r"reading .*\.zip runs code that it holds") as warned:
        policy: Any = policy_named(str(zips[name]), only_legal=True)
    assert len(warned) == 1
    assert policy.name == str(zips[name])
    assert policy.settings == {
        "model": name,
        "deterministic": True,
        "only_legal": True,
        "sha256": sha256(zips[name].read_bytes()).hexdigest(),
    }
    from rusol_env.sb3 import SB3Policy

    np.testing.assert_array_equal(policy.act(cards, masks), SB3Policy(model[name], only_legal=True).act(cards, masks))
    with pytest.raises(ValueError, match="has no samples: that is of planner"):
        policy_named(str(zips[name]), samples=5)


class Evil:
    """Its pickle makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


def rewritten(path: Path, source: Path, data: Any, compression: int = zipfile.ZIP_STORED) -> Path:
    """A copy of a saved model with other attributes; None leaves them out."""
    out = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(out, "w", compression) as new:
        for name in old.namelist():
            if name != "data":
                new.writestr(name, old.read(name))
        if data is not None:
            new.writestr("data", data if isinstance(data, str) else json.dumps(data))
    path.write_bytes(out.getvalue())
    return path


def test_no_code_is_run_without_a_warning_or_of_a_file_that_is_refused(zips: dict[str, Path], tmp_path: Path) -> None:
    """A pickle that makes a file is in each of these; warnings are errors here."""
    marker, path = tmp_path / "was here", tmp_path / "evil.zip"
    with zipfile.ZipFile(zips["PPO"]) as archive:
        told: Any = json.loads(archive.read("data"))
    evil = {":type:": "Evil", ":serialized:": base64.b64encode(pickle.dumps(Evil(marker))).decode()}

    def refused(data: Any) -> str:
        rewritten(path, zips["PPO"], data)
        with pytest.raises(ValueError, match="evil") as found:
            load_sb3(path)
        assert "\n" not in str(found.value)
        return str(found.value)

    told["evil"] = evil
    for missing in ("policy_class", "observation_space"):
        assert "there is no data of one in it" in refused({key: told[key] for key in told if key != missing})
    assert "there is no data of one in it" in refused(None)
    assert "there is no data of one in it" in refused([told])
    assert f"{path} is damaged, or no saved model" in refused("{" + json.dumps(told))
    assert f"{path} is damaged, or no saved model" in refused("[" * 100_000)
    recurrent = {"__module__": "sb3_contrib.common.recurrent.policies"} | evil
    assert "its policy is of sb3_contrib.common.recurrent.policies" in refused(told | {"policy_class": recurrent})
    assert "its policy is of an unknown module" in refused(
        {"policy_class": evil, "observation_space": evil, "evil": evil}
    )
    foreign = told | {"policy_class": {"__module__": "not_here.policies"} | evil}
    assert "needs the module not_here.policies, where its policy class is, and there is none here" in refused(foreign)
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        whole = rewritten(path, zips["PPO"], told, compression).read_bytes()
        middle = len(whole) // 2
        for damaged in (
            whole[:-30],
            whole[:middle],
            whole[:middle] + b"\x55" * 9 + whole[middle + 9 :],
            b"",
            whole[9:],
        ):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"evil\.zip is (damaged, or )?no saved model of Stable-Baselines3"):
                policy_named(str(path))
    rewritten(path, zips["PPO"], told)
    with pytest.raises(RunsCodeWarning):
        load_sb3(path)
    assert not marker.exists()
    # That file would have been made.
    with pytest.warns(RunsCodeWarning):
        load_sb3(path)
    assert marker.exists()


def test_code_that_fails_is_told_in_a_sentence(zips: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "broken.zip"
    with zipfile.ZipFile(zips["PPO"]) as archive:
        told: Any = json.loads(archive.read("data"))
    rewritten(path, zips["PPO"], told | {"policy_kwargs": {"net_arch": [9]}})
    with (
        pytest.warns(RunsCodeWarning),
        pytest.raises(ValueError, match=r"broken\.zip could not be read as a model of PPO"),
    ):
        load_sb3(path)


def test_a_saved_model_needs_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "rusol_env.sb3", raising=False)
    monkeypatch.delattr(rusol_env, "sb3", raising=False)
    with pytest.raises(ImportError, match=r"needs the package torch: pip install 'rusol-env\[agents\]'"):
        load_sb3(tmp_path / "model.zip")


# Networks.


def test_a_network_is_read_by_its_path(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.safetensors", mlp_arrays("board"), kind="mlp", observation="board")
    for policy in (policy_named(str(path)), as_policy(path), as_policy(str(path))):
        assert type(policy) is NetworkPolicy
        assert (policy.name, policy.observation) == (str(path), "board")
    result = rusol_env.evaluate(path, "classic", 20)
    assert result.policy == str(path)
    assert result.policy_settings["sha256"] == sha256(path.read_bytes()).hexdigest()
    compared = rusol_env.compare(path, 20)
    assert compared.policy == str(path)
    assert compared.outcomes[0].won.tolist() == result.won.tolist()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"mine\.safetensors is damaged, or no network of rusol-env"):
        policy_named(str(path))
    with pytest.raises(ValueError, match=r"has no only_legal: that is of a \.zip"):
        policy_named(str(path), only_legal=True)


@pytest.mark.parametrize("kind", ["network", "MaskablePPO", "PPO"])
@pytest.mark.parametrize("rules", ["classic", "relaxed"])
def test_a_model_plays_alike_whatever_lies_face_down(
    rules: str, kind: str, model: dict[str, Any], tmp_path: Path
) -> None:
    """Up to the first card that turns up."""
    chance = random.Random(rules)
    path = write(tmp_path / "mine.safetensors", structured_arrays())
    policy = as_policy(path if kind == "network" else model[kind])
    for number in range(10):
        lines: list[list[int]] = []
        for deal in pair(number, chance):
            env = RussianSolitaireEnv(rules, observation=policy.observation)
            observation, info = env.reset(options={"columns": deal.text()})
            line: list[int] = []
            while info["face_down"] == 21 and len(line) < 30:
                line.append(int(policy.act(observation[None], info["action_mask"][None])[0]))
                observation, _, terminated, _, info = env.step(line[-1])
                if terminated:
                    break
            lines.append(line)
        assert lines[0] == lines[1]


def test_ppo_is_the_network_of_the_rules(checkpoints: Path, seen: tuple[Any, Any]) -> None:
    weights = checkpoints / "ppo-classic.safetensors"
    assert shipped("ppo") == {"classic": weights}
    assert policy_names("classic") == [*POLICIES, "ppo"]
    assert policy_names("relaxed") == [*POLICIES]
    policy = policy_named("ppo")
    assert policy.name == "ppo"
    assert policy.settings == {"network": "structured", "sha256": sha256(weights.read_bytes()).hexdigest()}
    np.testing.assert_array_equal(policy.act(*seen), NetworkPolicy.load(weights).act(*seen))
    with pytest.raises(ValueError, match="no ppo network for relaxed comes with rusol-env: there is one for classic"):
        policy_named("ppo", rules="relaxed")
    with pytest.raises(ValueError, match=r"there is one for classic; .*, or solver"):
        rusol_env.compare("ppo", 5)
    # One bit of a weight: nothing but its hash can tell.
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert NetworkPolicy.load(weights).name == str(weights)
    with pytest.raises(
        ValueError, match=r"ppo-classic\.safetensors was changed: its SHA-256 is not the one on its card"
    ):
        policy_named("ppo")
    weights.with_suffix(".json").unlink()
    with pytest.raises(FileNotFoundError):
        policy_named("ppo")
    weights.unlink()
    with pytest.raises(ValueError, match="no ppo network for classic comes with rusol-env: use one of random, greedy"):
        policy_named("ppo")


def test_the_networks_that_ship_are_those_of_their_cards() -> None:
    assert {"classic", "relaxed"} <= set(shipped("ppo"))
    for name in TRAINED:
        for rules, weights in shipped(name).items():
            card = ModelCard.load(weights.with_suffix(".json"))
            assert (card.name, card.rules) == (name, rules)
            assert card.bytes == weights.stat().st_size < 5_000_000
            assert card.results["suite"] == "first-10000"
            assert policy_named(name, rules=rules).settings["sha256"] == card.sha256
            assert (Path(__file__).parents[1] / card.config).is_file()


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("rules", ["classic", "relaxed"])
def test_the_cards_tell_the_figures_that_their_command_gives(name: str, rules: str) -> None:
    if rules not in shipped(name):
        pytest.skip(f"no {name} network for {rules} ships")
    card = ModelCard.load(shipped(name)[rules].with_suffix(".json"))
    assert card.evaluation == f"rusol evaluate --policy {name} --rules {rules} --suite first-10000"
    results = Path(__file__).parents[1] / "benchmarks" / "results" / f"{name}-{rules}-first-10000.json"
    played = [json.loads(results.read_text(encoding="utf-8"))]
    if (name, rules) == ("ppo", "classic"):
        # Ten thousand games of the others would take minutes.
        played.append(rusol_env.evaluate(name, rules, "first-10000").summary())
    for again in played:
        for key in ("wins", "wins_of_winnable", "win_rate_ci95", "mean_score", "mean_steps", "truncated", "dead_ends"):
            assert again[key] == card.results[key]
        assert again["policy_settings"]["sha256"] == card.sha256


# Cards.

RESULTS = rusol_env.evaluate("greedy", "classic", 20).summary()
TOLD: dict[str, Any] = {
    "name": "ppo",
    "rules": "classic",
    "config": "configs/ppo-classic.yaml",
    "command": "python agents/train.py configs/ppo-classic.yaml",
    "steps": 1000,
    "hours": 0.5,
    "seed": 0,
    "revision": "0123abc",
    "date": "2025-01-31",
    "versions": {"python": "3.11.7"},
    "curve": [[0, 0.1], [1000, 0.25]],
    "evaluation": "rusol evaluate --policy ppo --deals 20",
    "results": RESULTS,
}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "some.safetensors"
    path.write_bytes(b"any bytes")
    return path


def test_a_card_comes_back_from_its_file(weights: Path, tmp_path: Path) -> None:
    card = ModelCard.of(weights, **TOLD)
    assert (card.bytes, card.sha256) == (9, sha256(b"any bytes").hexdigest())
    path = tmp_path / "some.json"
    card.save(path)
    assert ModelCard.load(path) == card
    card.check(weights)
    weights.write_bytes(b"any bytez")
    with pytest.raises(ValueError, match=r"some\.safetensors was changed"):
        card.check(weights)


BAD: dict[str, list[Any]] = {
    "name": ["", 5, None],
    "rules": ["chess", 5],
    "config": ["", None],
    "command": [""],
    "steps": [-1, 1.5, True, "5"],
    "hours": [-0.1, "1", True, float("nan"), float("inf")],
    "seed": [-1, None],
    "revision": [""],
    "date": ["31 January", "2025-02-30", 5, "20250131"],
    "versions": [[], {"python": 3}, {3: "python"}],
    "curve": [{}, [0, 0.1], [[0]], [[0, 1.5]], [[5, 0.1], [0, 0.1]], [["0", 0.1]], [[0, float("nan")]]],
    "evaluation": [""],
    "results": [{}, 5, {key: RESULTS[key] for key in RESULTS if key != "wins"}, RESULTS | {"rules": "yukon"}],
    "sha256": ["0" * 63, "G" * 64, 5, "A" * 64],
    "bytes": [-1, 0.5],
}


def test_every_field_is_tried() -> None:
    assert set(BAD) == set(TOLD) | {"bytes", "sha256"}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in BAD for value in BAD[field]], ids=str)
def test_a_field_that_cannot_be_is_named(field: str, value: Any, weights: Path) -> None:
    card = ModelCard.of(weights, **TOLD)
    fields: dict[str, Any] = TOLD | {"bytes": card.bytes, "sha256": card.sha256, field: value}
    with pytest.raises(ValueError, match="unknown rules 'chess'" if value == "chess" else f"^{field} is ") as refused:
        ModelCard(**fields)
    assert len(str(refused.value)) < 300


def test_what_is_no_card_is_refused_by_name(weights: Path, tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    ModelCard.of(weights, **TOLD).save(path)
    whole: dict[str, Any] = json.loads(path.read_text())
    for text, said in [
        ("", "Expecting value"),
        ("[]", "it must be a JSON object"),
        (path.read_text()[:-3], "Expecting"),
        ("[" * 100_000, "recursion"),
        ("\xff", ""),
        (json.dumps(whole | {"more": 1}), "unknown: more"),
        (json.dumps({key: whole[key] for key in whole if key != "seed"}), "missing: seed"),
        (json.dumps(whole | {"steps": -5}), "steps is -5 and must be a whole number, 0 or more"),
    ]:
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(ValueError, match="is no model card") as refused:
            ModelCard.load(path)
        assert str(refused.value).startswith(f"{path} is no model card: ")
        assert said in str(refused.value)
    with pytest.raises(FileNotFoundError):
        ModelCard.load(tmp_path / "none.json")
    with pytest.raises(ValueError, match="missing: seed"):
        ModelCard.of(weights, **{key: TOLD[key] for key in TOLD if key != "seed"})


# The command line.


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command says when it refuses: one line."""
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("rusol: ")
    assert said.err.count("\n") == 1
    return said.err


def test_evaluate_plays_models(
    tmp_path: Path, zips: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network = write(Path("mine.safetensors"), structured_arrays())
    assert main(["evaluate", "--policy", "mine.safetensors", "--deals", "10", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert json.loads(said.out)["policy"] == "mine.safetensors"
    # Two rule sets, and one warning, in one line.
    both = ["--rules", "classic", "--rules", "relaxed"]
    assert main(["evaluate", "--policy", str(zips["PPO"]), "--deals", "5", "--max-steps", "9", "--json", *both]) == 0
    said = capsys.readouterr()
    assert said.err.startswith(f"rusol: reading {zips['PPO']} runs code that it holds")
    assert said.err.endswith("it must be one that you trust\n")
    assert said.err.count("\n") == 1
    stuck, _ = json.loads(said.out)["results"]
    assert stuck["policy_settings"]["only_legal"] is False
    assert stuck["truncated"] == 5
    assert main(["evaluate", "--policy", str(zips["PPO"]), "--deals", "5", "--only-legal", "--json"]) == 0
    legal = json.loads(capsys.readouterr().out)
    assert legal["policy_settings"]["only_legal"] is True
    assert legal["truncated"] == 0
    assert "has no samples" in refusal(capsys, "evaluate", "--policy", "mine.safetensors", "--samples", "5")
    assert "policy greedy has no only_legal" in refusal(capsys, "evaluate", "--only-legal")
    network.write_bytes(b"nothing")
    assert "mine.safetensors is damaged" in refusal(capsys, "evaluate", "--policy", "mine.safetensors")
    Path("bad.zip").write_bytes(b"nothing")
    assert "bad.zip is damaged" in refusal(capsys, "evaluate", "--policy", "bad.zip")


def test_compare_and_play_take_a_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("mine.safetensors"), structured_arrays())
    assert main(["compare", "--policy", "mine.safetensors", "--deals", "10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "mine.safetensors"
    assert "no such file" in refusal(capsys, "compare", "--policy", "none.safetensors")
    monkeypatch.setattr(sys, "stdin", io.StringIO("hint mine.safetensors\nhint greedy\nhint other.zip\nquit\n"))
    assert (
        main(["play", "--terminal", "--data", "data", "--policy", "mine.safetensors", "--code", "RU1-C-AAAAABB"]) == 0
    )
    said = capsys.readouterr()
    assert "there is no hint by 'other.zip': use solver, random, greedy" in said.out + said.err


def test_the_policies_are_listed(checkpoints: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    said = capsys.readouterr().out
    for name in (*POLICIES, "ppo"):
        assert any(line.startswith(f"{name} ") for line in said.splitlines())
    assert "A network that MaskablePPO trained. For classic." in said
    assert f"{RESULTS['mean_score']:.1f}" in said
    assert main(["policies", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in told["policies"]] == [*POLICIES, "planner+"]
    assert [entry["observation"] for entry in told["policies"]] == ["board"] * 4
    assert all(entry["what"] for entry in told["policies"])
    assert ModelCard(**told["trained"][0]) == ModelCard.load(checkpoints / "ppo-classic.json")
    assert main(["evaluate", "--policy", "ppo", "--deals", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "ppo"
    (checkpoints / "ppo-classic.json").write_text("{}")
    assert "ppo-classic.json is no model card: missing: " in refusal(capsys, "policies")
    (checkpoints / "ppo-classic.safetensors").unlink()
    assert main(["policies"]) == 0
    assert "A network that MaskablePPO trained. None comes with this rusol-env." in capsys.readouterr().out


def test_a_network_is_compiled_before_anybody_measures_its_time() -> None:
    script = (
        "from rusol_env import evaluate, network\n"
        "from rusol_env.models import policy_named\n"
        "policy = policy_named('ppo')\n"
        "compiled = list(network._structured.signatures)\n"
        "assert compiled\n"
        "evaluate(policy, 'classic', 2)\n"
        "assert network._structured.signatures == compiled\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
