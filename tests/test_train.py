"""`agents/train.py`: it learns, repeats itself, goes on where it was stopped, and refuses in one sentence."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rusol_env

pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
pytest.importorskip("tensorboard", reason="tensorboard is missing: install the extra [agents]")

from agents import train as training
from agents.config import Config, read_config
from agents.distill import is_distillation
from agents.publish import publish
from agents.train import main, read_rows, train
from rusol_env import Game, models
from rusol_env.model_card import ModelCard
from rusol_env.network import Network
from rusol_env.sb3 import SB3VecEnv

ROOT = Path(__file__).parents[1]
CONFIGS = [path for path in sorted((ROOT / "configs").glob("*.yaml")) if not is_distillation(path)]
MAX_STEPS = 16
TINY = """
algorithm: maskable_ppo
rules: relaxed
steps: 4096
num_envs: 32
reward_scale: 0.05
env: {max_steps: 16}
net_arch: [32]
hyperparameters: {learning_rate: 1e-2, n_steps: 32, batch_size: 256, n_epochs: 4, gamma: 0.9}
eval_every: 1024
eval_deals: first-20
checkpoint_every: 1024
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


class NearTheEnd(Iterator[rusol_env.Arrangement]):
    """Positions of the last twelve cards, in four columns: twelve steps would do, sixteen are allowed."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)

    def __next__(self) -> rusol_env.Arrangement:
        cards = self.chance.permutation([suit * 13 + rank for suit in range(4) for rank in (10, 11, 12)]).tolist()
        return rusol_env.Arrangement((*(tuple(cards[k::4]) for k in range(4)), (), (), ()), (0,) * 7)


class StopsAfter:
    """In place of an event: set after so many questions."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def wins(act: Any) -> float:
    """The share of 300 games near the end, on positions that training did not see, that are won."""
    env: Any = SB3VecEnv(50, "relaxed", deals=NearTheEnd(99), max_steps=MAX_STEPS)
    observations = env.reset()
    won: list[bool] = []
    while len(won) < 300:
        observations, _, _, infos = env.step(act(observations, env.action_masks()))
        won += [info["is_success"] for info in infos if info]
    return float(np.mean(won))


def curves(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tables of a run, less what the clock says."""

    def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {key: value for key, value in row.items() if "second" not in key and not key.startswith("time/")}
            for row in rows
        ]

    return timeless(read_rows(folder / "evaluation.csv")), timeless(read_rows(folder / "progress.csv"))


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command says when it refuses: one line."""
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("train: ")
    assert said.err.count("\n") == 1
    return said.err


def test_a_tiny_run_beats_random_on_an_easy_task_and_leaves_a_whole_folder(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    config = read_config(tiny, ["steps=16384", "eval_every=8192"])
    model = train(config, folder, deals=NearTheEnd(0))
    streams = np.arange(50, dtype=np.uint64)

    def at_random(_: Any, masks: Any) -> Any:
        return rusol_env.sample_legal(masks, streams)

    def as_learned(observations: Any, masks: Any) -> Any:
        return model.predict(observations, action_masks=masks, deterministic=True)[0]

    assert wins(as_learned) > wins(at_random) + 0.25
    evaluations, progress = curves(folder)
    assert [row["steps"] for row in evaluations] == [0, 8192, 16384]
    assert {row["suite"] for row in evaluations} == {"first-20"}
    assert progress[-1]["steps"] > 10_000
    assert "train/value_loss" in progress[-1]
    assert read_config(folder / "config.yaml") == config
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert list((folder / "tensorboard").iterdir())
    for name in ("best.zip", "last.zip", "run.json", "policy.safetensors"):
        assert (folder / name).stat().st_size > 0
    assert not list(folder.glob(".*.part"))


def test_a_finished_run_is_published_with_a_card_whose_figures_its_command_gives(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, shelf = tmp_path / "run", tmp_path / "checkpoints"
    monkeypatch.setattr(sys, "argv", ["agents/train.py", str(tiny), "--out", str(folder), "seed=0"])
    train(read_config(tiny), folder)
    card = publish(folder, checkpoints=shelf, deals="first-50")
    assert ModelCard.load(shelf / "ppo-relaxed.json") == card
    assert card.command == f"python agents/train.py {tiny} seed=0"
    assert (card.config, card.steps, [steps for steps, _ in card.curve]) == (
        str(tiny),
        4096,
        [0, 1024, 2048, 3072, 4096],
    )
    monkeypatch.setattr(models, "CHECKPOINTS", shelf)
    again = rusol_env.evaluate("ppo", "relaxed", "first-50").summary()
    for key in ("wins", "mean_score", "mean_steps", "truncated", "policy_settings"):
        assert again[key] == card.results[key]
    # An unfinished one has nothing to show yet.
    rows = read_rows(folder / "evaluation.csv")
    training.write_rows(folder / "evaluation.csv", rows[:-1])
    with pytest.raises(ValueError, match="is not finished: go on with it by --resume"):
        publish(folder, checkpoints=shelf, deals="first-50")


def test_two_runs_of_one_seed_have_the_same_curves_and_the_saved_model_plays_alike(tiny: Path, tmp_path: Path) -> None:
    models = [train(read_config(tiny, [f"seed={seed}"]), tmp_path / name) for seed, name in ((3, "a"), (3, "b"))]
    assert curves(tmp_path / "a") == curves(tmp_path / "b")
    train(read_config(tiny, ["seed=4"]), tmp_path / "c")
    assert curves(tmp_path / "a") != curves(tmp_path / "c")
    loaded = training.load_model(read_config(tiny), tmp_path / "a" / "last.zip")
    assert loaded.num_timesteps == 4096
    games: Any = SB3VecEnv(40, "relaxed", seed=5)
    observations = games.reset()
    for _ in range(20):
        actions = [
            model.predict(observations, action_masks=games.action_masks(), deterministic=True)[0]
            for model in (*models, loaded)
        ]
        np.testing.assert_array_equal(actions[0], actions[1])
        np.testing.assert_array_equal(actions[0], actions[2])
        observations, _, _, _ = games.step(actions[0])


def test_an_interrupted_run_goes_on_and_no_row_is_there_twice(tiny: Path, tmp_path: Path) -> None:
    folder, config = tmp_path / "run", read_config(tiny)
    # In the middle of the third rollout.
    with pytest.raises(KeyboardInterrupt):
        train(config, folder, stop=StopsAfter(80))  # pyright: ignore[reportArgumentType]
    stopped = training.load_model(config, folder / "last.zip")
    assert stopped.num_timesteps == 2048
    assert [row["steps"] for row in curves(folder)[0]] == [0, 1024, 2048]
    # As if killed after an evaluation whose checkpoint was not written.
    rows = read_rows(folder / "evaluation.csv")
    training.write_rows(folder / "evaluation.csv", [*rows, rows[-1] | {"steps": 3072}])
    model = train(config, folder, resume=True)
    assert model.num_timesteps == 4096
    evaluations, progress = curves(folder)
    assert [row["steps"] for row in evaluations] == [0, 1024, 2048, 3072, 4096]
    steps = [row["steps"] for row in progress]
    assert steps == sorted(set(steps))
    seconds = [row["seconds"] for row in read_rows(folder / "evaluation.csv")]
    assert seconds == sorted(seconds)
    # Longer than it was meant to be, and the same from the same checkpoint.
    shutil.copytree(folder, tmp_path / "copy")
    longer = read_config(tiny, ["steps=6144"])
    for place in (folder, tmp_path / "copy"):
        assert train(longer, place, resume=True).num_timesteps == 6144
    assert curves(folder) == curves(tmp_path / "copy")


def test_what_cannot_go_on_is_refused_by_name(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    command = (str(tiny), "--out", str(folder), "steps=1024")
    assert f"there is no run in {folder}" in refusal(capsys, *command, "--resume")
    assert main([*command]) == 0
    assert "1,024 steps" in capsys.readouterr().out
    assert f"{folder} holds a run already" in refusal(capsys, *command)
    assert "has num_envs 32, not 16" in refusal(capsys, *command, "--resume", "num_envs=16")
    assert "has seed 0, not 1" in refusal(capsys, *command, "--resume", "seed=1")
    last = folder / "last.zip"
    whole = last.read_bytes()
    for damaged in (whole[:-200], whole[:5000] + b"!" + whole[5001:], b"", b"no zip"):
        last.write_bytes(damaged)
        assert f"the checkpoint {last} is damaged" in refusal(capsys, *command, "--resume")
    last.unlink()
    assert f"there is no checkpoint {last}" in refusal(capsys, *command, "--resume")
    last.write_bytes(whole)
    assert main([*command, "--resume"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stepz=1"], "stepz=1: unknown key 'stepz': use one of algorithm, network, rules"),
        (["env.gamma=1"], "unknown key 'env.gamma': use one of observation, reward"),
        (["hyperparameters.lr=1"], "unknown key 'hyperparameters.lr': use one of learning_rate, n_steps"),
        (["steps=many"], "steps=many: steps is 'many': it must be a valid integer"),
        (["steps=true"], "steps is True: it must be a valid integer"),
        (["steps=1.5"], "steps is 1.5: it must be a valid integer"),
        (["steps=0"], "steps is 0: it must be greater than or equal to 1"),
        (["algorithm=sac"], "algorithm is 'sac': it must be 'maskable_ppo', 'ppo', 'dqn' or 'a2c'"),
        (["rules=chess"], "unknown rules 'chess': use one of classic, relaxed, yukon"),
        (["env.reward=money"], "unknown reward 'money': use one of score, progress, win"),
        (["eval_deals=all"], "unknown suite 'all': use 'first-N' or 'winnable-N'"),
        (["hyperparameters.gamma=2"], "hyperparameters.gamma is 2.0: it must be from 0 to 1"),
        (["hyperparameters.gamma=high"], "hyperparameters.gamma is 'high': it must be a valid number"),
        (["hyperparameters.batch_size=100"], "it must divide num_envs x n_steps, 1024"),
        (["hyperparameters={gamma: 1, gamma: 2}"], "the key 'gamma' is there twice"),
        (["network=structured"], "net_arch is of the mlp"),
        (["algorithm=dqn", "network=structured"], "it needs maskable_ppo"),
        (["policy_kwargs={nonsense: 1}"], "maskable_ppo refuses its hyperparameters or policy_kwargs"),
        (["steps.more=1"], "steps has no keys of its own"),
        (["steps"], "'steps' changes nothing: write key=value"),
        (["steps={"], "is not YAML"),
        (["policy_kwargs={[a]: 1}"], "a key must be a word"),
        (["policy_kwargs=&a {y: *a}"], "is nested too deeply, or in itself"),
        (["policy_kwargs=" + "[" * 3000], "is nested too deeply, or in itself"),
        (["env.max_steps=1e30"], "must be less than"),
        (
            ["hyperparameters.learning_rate=1e300"],
            "hyperparameters.learning_rate is 1e+300: it must be from 0 to 1e+30",
        ),
        (["hyperparameters.learning_rate={start: 1e300, end: 0}"], "it must be from 0 to 1e+30"),
        (["hyperparameters.vf_coef=1e300"], "it must be from -1e+30 to 1e+30"),
        (["hyperparameters.stats_window_size=1_000_000_000_000"], "it must be from 1 to 2,147,483,647"),
        (["reward_scale=1e300"], "reward_scale is 1e+300: it must be less than or equal to"),
        (["num_envs=1_000_000_000"], "num_envs is 1000000000: it must be less than or equal to 1000000"),
        (["net_arch=[1_000_000]"], "net_arch.0 is 1000000: it must be less than or equal to 16384"),
        (
            ["policy_kwargs={features_extractor_kwargs: {width: 1_000_000}}"],
            "policy_kwargs.features_extractor_kwargs.width is 1000000: it must be at most 16384",
        ),
        (["steps=2020-99-99"], "steps=2020-99-99 has a value that is none: month must be in 1..12"),
        (["--out="], "--out is empty: give a value, or leave it out"),
        (["threads=100000"], "must be less than or equal to 1024"),
        (["device=cuda:99"], "there is no device 'cuda:99' here"),
        (["hyperparameters.n_steps=1_000_000_000"], "too little memory"),
        (["--nonsense"], "No such option"),
    ],
)
def test_a_bad_config_is_refused_in_one_sentence(
    words: list[str], said: str, tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert said in refusal(capsys, str(tiny), *words, "--out", str(folder))
    assert not (folder / "config.yaml").exists()


@pytest.mark.parametrize(
    ("words", "blamed"),
    [
        (["seed=1", "env.reward=money"], "env.reward=money"),
        (["env={reward: money}"], "env={reward: money}"),
        (["rules=chess"], "rules=chess"),
        (["device=tpu"], "device=tpu"),
        (["eval_deals=winnable-100_000_000"], "eval_deals=winnable-100_000_000"),
        (["env.observation=board", "net_arch=null", "network=structured"], "env.observation=board"),
        (["seed=1", "network=structured"], "network=structured"),
        (["seed=1", "num_envs=3"], "num_envs=3"),
        (["hyperparameters.n_steps=9"], "hyperparameters.n_steps=9"),
    ],
)
def test_the_word_that_is_wrong_is_named_and_not_the_file(
    words: list[str], blamed: str, tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(capsys, str(tiny), *words, "--out", str(tmp_path / "run")).startswith(f"train: {blamed}: ")


def test_sizes_of_no_network_are_refused(tmp_path: Path) -> None:
    for sizes in ({"width": 0}, {"hidden": 0}, {"layers": -1}):
        config = Config(
            algorithm="maskable_ppo",
            network="structured",
            steps=1,
            num_envs=2,
            policy_kwargs={"features_extractor_kwargs": sizes},
            hyperparameters={"n_steps": 2, "batch_size": 4},
        )
        with pytest.raises(ValueError, match="layers may be 0"):
            train(config, tmp_path)


def test_a_learner_whose_weights_burst_ends_in_a_sentence(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    words = ("hyperparameters.learning_rate=1e30", "--out", str(folder))
    assert main([str(tiny), *words]) == 2
    assert "the learner's weights are no numbers any more" in capsys.readouterr().err
    # What was saved before it did is there, and its weights are numbers.
    model = training.load_model(read_config(folder / "config.yaml"), folder / "last.zip")
    assert all(weights.isfinite().all() for weights in model.policy.parameters())
    for text in ("garbage", "[]", "{}", '{"sessions": 3}'):
        (folder / "run.json").write_text(text)
        assert "run.json is damaged" in refusal(capsys, str(tiny), *words, "--resume")


def test_a_config_file_is_named_when_it_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    assert str(path) in refusal(capsys, str(path))
    for text, said in [
        ("steps: 5\n", "the key 'algorithm' is missing"),
        ("algorithm: ppo\nsteps: 5\nsteps: 6\n", "the key 'steps' is there twice"),
        ("- 5\n", "it must be a mapping"),
        ("a: [\n", "is not YAML"),
        ("algorithm: ppo\nsteps: 2020-99-99\n", "has a value that is none: month must be in 1..12"),
        ("algorithm: ppo\nsteps: 5\nrules: chess\n", "unknown rules 'chess'"),
    ]:
        path.write_text(text)
        message = refusal(capsys, str(path))
        assert message.startswith(f"train: {path}")
        assert said in message


def small_structured(*changes: str) -> Config:
    small = ["steps=256", "num_envs=8", "eval_deals=first-5", "env.max_steps=20", "hyperparameters.n_steps=8"]
    small += [
        "hyperparameters.batch_size=64",
        "policy_kwargs.features_extractor_kwargs={width: 8, layers: 1, hidden: 8}",
    ]
    return read_config(ROOT / "configs" / "ppo-relaxed.yaml", [*small, *changes])


def test_a_run_starts_from_the_weights_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["agents/train.py", "configs/ppo-relaxed.yaml"])
    first, second = tmp_path / "first" / "policy.safetensors", tmp_path / "second" / "policy.safetensors"
    train(small_structured("policy_kwargs.features_extractor_kwargs.alike=true"), first.parent)
    began = small_structured(f"start={first}", "hyperparameters.learning_rate=0", "seed=9")
    train(began, second.parent)
    read = [Network.load(path).arrays for path in (first, second)]
    assert read[0].keys() == read[1].keys()
    for name, array in read[0].items():
        np.testing.assert_array_equal(array, read[1][name])
    # Trained, and still alike: suits, and columns.
    suits, columns = read[0]["card"].reshape(4, 13, 8), read[0]["encode.weight"][:, :7]
    assert (suits == suits[0]).all()
    assert (columns == columns[:, :1]).all()
    assert publish(second.parent, tmp_path, "first-5").name == "ppo"
    assert publish(second.parent, tmp_path, "first-5", name="distilled").name == "distilled"
    wider = small_structured(f"start={first}", "policy_kwargs.features_extractor_kwargs.width=16")
    shallower = small_structured(f"start={first}", "policy_kwargs.features_extractor_kwargs.layers=0")
    for config in (wider, shallower):
        with pytest.raises(ValueError, match=r"first/policy\.safetensors holds no network of the sizes of this run"):
            train(config, tmp_path / "third")
    with pytest.raises(FileNotFoundError, match=r"none\.safetensors"):
        train(small_structured(f"start={tmp_path / 'none.safetensors'}"), tmp_path / "third")
    with pytest.raises(ValueError, match="it needs network structured"):
        small_structured(f"start={first}", "network=mlp", "policy_kwargs={}")


def test_a_network_that_starts_from_one_with_fewer_layers_begins_by_playing_much_as_that(tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "policy.safetensors", tmp_path / "second" / "policy.safetensors"
    train(small_structured(), first.parent)
    deeper = "policy_kwargs.features_extractor_kwargs={width: 8, layers: 3, hidden: 8, alike: true}"
    train(small_structured(f"start={first}", "hyperparameters.learning_rate=0", deeper), second.parent)
    shallow, deep = Network.load(first), Network.load(second)
    for name in ("mix.0.weight", "summary.weight", "weigh.weight", "worth.weight"):
        np.testing.assert_array_equal(deep.arrays[name], shallow.arrays[name])
    # Suits and columns are now alike, and were not.
    before, after = shallow.arrays["card"].reshape(4, 13, 8), deep.arrays["card"].reshape(4, 13, 8)
    assert not np.array_equal(before[0], before[1])
    np.testing.assert_allclose(after, np.broadcast_to(before.mean(0), before.shape), rtol=1e-5, atol=1e-6)
    cards, masks = Game.from_number(3, "relaxed").observe()
    logits = [network.logits(cards[None])[0, masks == 1] for network in (shallow, deep)]
    apart = np.abs(logits[0] - logits[1]).max()
    assert 0 < apart < np.ptp(logits[0])


def test_a_network_starts_from_one_of_the_first_version_whose_layers_mix_less(tmp_path: Path) -> None:
    from agents.network import StructuredNetwork, begin_with
    from rusol_env.observe import Observation, observation_space

    safetensors: Any = pytest.importorskip("safetensors")
    files: Any = pytest.importorskip("safetensors.numpy")
    checkpoint = ROOT / "rusol_env" / "checkpoints" / "distilled-relaxed.safetensors"
    arrays = dict(Network.load(checkpoint).arrays)
    width = arrays["mix.0.weight"].shape[0]
    arrays["mix.0.weight"] = np.ascontiguousarray(arrays["mix.0.weight"][:, : 8 * width])
    with safetensors.safe_open(checkpoint, "np") as file:
        files.save_file(arrays, tmp_path / "first.safetensors", file.metadata())
    network = StructuredNetwork(observation_space(Observation.CARDS, False), width, 2, len(arrays["weigh.bias"]))
    begin_with(network, tmp_path / "first.safetensors")
    begun = {name: value.numpy() for name, value in network.state_dict().items()}
    np.testing.assert_array_equal(begun["mix.0.weight"][:, : 8 * width], arrays["mix.0.weight"])
    rest = np.abs(begun["mix.0.weight"][:, 8 * width :])
    assert rest.shape == (width, 2 * width)
    assert 0 < rest.max() < 0.1 * np.abs(arrays["mix.0.weight"]).max()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_published_config_trains(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ["steps=256", "num_envs=8", "eval_deals=first-5", "threads=1", "env.max_steps=20"]
    small += ["hyperparameters.n_steps=8"] if "dqn" not in path.stem else []
    batches = "batch_size:" in path.read_text() and "dqn" not in path.stem
    small += ["hyperparameters.batch_size=64"] if batches else []
    small += ["hyperparameters.buffer_size=500", "hyperparameters.learning_starts=64"] if "dqn" in path.stem else []
    # The network that a run starts from is named from the root.
    monkeypatch.chdir(ROOT)
    config = read_config(path, small)
    folder = tmp_path / "run"
    assert train(config, folder).num_timesteps >= 256
    assert read_rows(folder / "evaluation.csv")[0]["steps"] == 0
    # What is learned off-policy goes on too, with an empty buffer.
    longer = config.model_copy(update={"steps": 512})
    assert train(longer, folder, resume=True).num_timesteps >= 512
    assert read_config(path).steps >= (1_000_000 if path.stem != "quick" else 100_000)


def test_winnable_deals_are_what_a_run_asks_for() -> None:
    config = Config(algorithm="ppo", steps=1, num_envs=4, deals="winnable", env={"max_steps": 1})  # pyright: ignore[reportArgumentType]
    env: Any = training.make_env(config, 5)
    env.reset()
    dealt = [info["deal_number"] for _ in range(3) for info in env.step(np.zeros(4, np.int64))[3]]
    assert dealt == [number for number, _ in zip(rusol_env.WinnableDeals("classic", 5), range(12), strict=False)]


def test_ctrl_c_while_pytorch_is_imported_ends_it_without_a_traceback(tmp_path: Path) -> None:
    if os.name != "posix":
        pytest.skip("signals are POSIX's")
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    command = [sys.executable, str(ROOT / "agents" / "train.py"), "--help"]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONPATH": str(tmp_path)}, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_ctrl_c_saves_and_says_how_to_go_on(tiny: Path, tmp_path: Path) -> None:
    if os.name != "posix":
        pytest.skip("signals are POSIX's")
    folder = tmp_path / "run"
    command = [sys.executable, str(ROOT / "agents" / "train.py"), str(tiny), "steps=100_000_000", "--out", str(folder)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert program.stdout is not None
    # The first line is of the evaluation before training.
    assert program.stdout.readline().strip().startswith("0 steps")
    time.sleep(0.2)
    program.send_signal(signal.SIGINT)
    _, said = program.communicate(timeout=60)
    assert program.returncode == 130
    assert "Traceback" not in said
    assert "train: interrupted and saved; the same command with --resume goes on" in said
    training.load_model(read_config(tiny), folder / "last.zip")
