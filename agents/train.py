"""Train an agent with Stable-Baselines3 or sb3-contrib: ``python agents/train.py CONFIG.yaml [key=value …]``.

A run is a folder: ``config.yaml`` (resolved), ``run.json`` (versions, git revision, command), ``tensorboard/``,
``progress.csv`` (the learner's own figures), ``evaluation.csv``, ``curve.png``, ``last.zip`` and ``best.zip``, and at
the end of a MaskablePPO run its actor as ``policy.safetensors``.
"""

from __future__ import annotations

import io
import signal
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, cast

if not __package__:
    # Run as a script: Python then looks for modules in agents/, and not for `agents`.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    # Ctrl-C while PyTorch is being imported ends the program, without a traceback; `main` hears it again.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import numpy as np
import torch
import typer
from rich.progress import Progress, TaskID
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from torch.utils.tensorboard.writer import SummaryWriter

from agents.config import Config, algorithm_class, read_config
from agents.curve import curve
from agents.runs import (
    check_same,
    keep_memory,
    note_session,
    outcome,
    progress_bar,
    read_rows,
    run,
    stopped_by_signals,
    write_rows,
)
from rusol_env.cli import INTERRUPTED
from rusol_env.deals import Deal
from rusol_env.evaluate import Evaluation, evaluate
from rusol_env.files import only_user, open_zip, write_whole
from rusol_env.sb3 import SB3Policy, SB3VecEnv
from rusol_env.solver import WinnableDeals

# On-policy learners log about so often, in steps, and ten times in a short run; the others once in so many episodes.
_LOG_STEPS: Final = 20_000
_LOG_EPISODES: Final = 1000
# Seconds between two looks of the progress bar.
_LOOK: Final = 0.2


class ScaledRewards(VecEnvWrapper):
    """Multiplies what the learner earns; the episodes' infos keep the game's own returns."""

    def __init__(self, games: VecEnv, scale: float) -> None:
        super().__init__(games)  # pyright: ignore[reportUnknownMemberType]
        self.scale = scale

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = cast(tuple[Any, ...], self.venv.step_wait())  # pyright: ignore[reportUnknownMemberType]
        return observations, rewards * self.scale, dones, infos


class Log(KVWriter):
    """What the learner reports: into TensorBoard at once, and as `rows` for ``progress.csv``."""

    def __init__(self, folder: Path, rows: list[dict[str, Any]], steps: int) -> None:
        self.rows = rows
        # A run that goes on hides what an interrupted one reported after its checkpoint.
        self.board: Any = SummaryWriter(str(folder), purge_step=steps + 1 if steps else None)

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        figures = {key: float(value) for key, value in key_values.items() if not isinstance(value, str)}
        self.rows.append({"steps": step} | figures)
        for key, value in figures.items():
            self.board.add_scalar(key, value, step)

    def close(self) -> None:
        self.board.close()


class Run(BaseCallback):
    """A run folder, and what happens in it while the learner learns.

    All is written between an update and the next rollout, or drops the rollout in progress, so that a checkpoint is a
    state from which training goes on as if nothing had been.
    """

    def __init__(self, folder: Path, config: Config, bar: Progress, stop: threading.Event) -> None:
        super().__init__()
        self.folder, self.config, self.bar, self.stop = folder, config, bar, stop
        self.progress: list[dict[str, Any]] = []
        self.evaluations: list[dict[str, Any]] = []
        self.task: TaskID | None = None
        # Where the rollout in progress began; where the last checkpoint was.
        self.began = self.saved = 0
        self.looked = 0.0

    def go_on(self, steps: int) -> None:
        """Take up the tables of the run so far, less the rows after its last checkpoint: that is done again."""
        path = self.folder / "evaluation.csv"
        tables = [read_rows(self.folder / "progress.csv"), read_rows(path)]
        if not tables[1] or any(not isinstance(row.get("steps"), int) for table in tables for row in table):
            raise ValueError(f"{path} or progress.csv is missing or damaged: put it back, or start anew elsewhere")
        self.progress, self.evaluations = ([row for row in table if row["steps"] <= steps] for table in tables)
        self.began = self.saved = steps

    def _on_training_start(self) -> None:
        last = self.evaluations[-1] if self.evaluations else {"seconds": 0.0, "steps": 0}
        self.clock, self.before = time.perf_counter(), float(last["seconds"])
        self.since, self.at = self.clock, self.num_timesteps
        # The first evaluation is of the untrained model.
        self.next_evaluation = self.after(self.num_timesteps) if self.num_timesteps else 0
        self.task = self.bar.add_task(self.folder.name, total=self.config.steps, completed=self.num_timesteps, now="")

    def _on_rollout_start(self) -> None:
        self.began = self.num_timesteps
        if self.num_timesteps >= self.next_evaluation:
            self.evaluate()
        elif self.num_timesteps - self.saved >= self.config.checkpoint_every:
            self.save()

    def _on_step(self) -> bool:
        if self.stop.is_set():
            # What this rollout played has taught nothing yet.
            self.model.num_timesteps = self.began
            self.save()
            raise KeyboardInterrupt
        now = time.perf_counter()
        if self.task is not None and now - self.looked > _LOOK:
            self.looked = now
            speed = (self.num_timesteps - self.at) / max(now - self.since, 1e-9)
            self.bar.update(
                self.task, completed=self.num_timesteps, now=f"{speed:,.0f} steps/s, {self.training_wins():.1%} won"
            )
        return True

    def training_wins(self) -> float:
        """The share of the last training games that were won."""
        won = cast(Any, self.model.ep_success_buffer)  # pyright: ignore[reportUnknownMemberType]
        return sum(won) / len(won) if won else 0.0

    def evaluate(self) -> None:
        """Play the suite, add its row, and keep the model if it is the best so far."""
        now = time.perf_counter()
        speed = (self.num_timesteps - self.at) / max(now - self.since, 1e-9)
        config = self.config
        player = SB3Policy(self.model, deterministic=config.eval_deterministic)
        result = evaluate(player, config.rules, config.eval_deals, seed=0, max_steps=config.env.max_steps)
        row = self.row(result) | {"steps_per_second": speed, "training_wins": self.training_wins()}
        best = max((_merit(other) for other in self.evaluations), default=(-1.0, 0.0))
        self.evaluations.append(row)
        if _merit(row) > best:
            write_whole(self.folder / "best.zip", self.packed())
        self.save()
        low, high = row["win_rate_low"], row["win_rate_high"]
        print(
            f"{self.num_timesteps:>12,} steps  {row['win_rate']:.1%} of {result.suite} won ({low:.1%} to {high:.1%}), "
            f"mean score {row['mean_score']:.1f}" + (f", {speed:,.0f} steps/s" if speed else ""),
            flush=True,
        )
        self.next_evaluation = self.after(self.num_timesteps)
        self.since, self.at = time.perf_counter(), self.num_timesteps

    def after(self, steps: int) -> int:
        """When the first evaluation after `steps` is due."""
        return (steps // self.config.eval_every + 1) * self.config.eval_every

    def row(self, result: Evaluation) -> dict[str, Any]:
        """A row of ``evaluation.csv``."""
        found = result.summary()
        return {
            "steps": self.num_timesteps,
            "seconds": self.before + time.perf_counter() - self.clock,
            **outcome(result),
            "mean_steps": found["mean_steps"],
            "truncated": found["truncated"],
        }

    def save(self) -> None:
        """Write the checkpoint and the tables that go with it."""
        write_whole(self.folder / "last.zip", self.packed())
        write_rows(self.folder / "progress.csv", self.progress)
        write_rows(self.folder / "evaluation.csv", self.evaluations)
        if self.evaluations:
            write_whole(self.folder / "curve.png", curve(self.evaluations, self.progress, self.folder.name))
        self.saved = self.num_timesteps = self.model.num_timesteps

    def packed(self) -> bytes:
        """The model as Stable-Baselines3 saves it.

        Raises:
            ValueError: its weights are no numbers any more: what was saved before is left.
        """
        if not all(torch.isfinite(weights).all() for weights in self.model.policy.parameters()):
            raise ValueError(
                f"after {self.num_timesteps:,} steps the learner's weights are no numbers any more: lower "
                "hyperparameters.learning_rate, or rewards; nothing was saved over the last checkpoint"
            )
        data = io.BytesIO()
        # The last observations are of games that a loaded model does not go on with.
        self.model.save(data, exclude=["_last_obs", "_last_episode_starts", "_last_original_obs"])
        return data.getvalue()


def _merit(row: dict[str, Any]) -> tuple[float, float]:
    return row["win_rate"], row["mean_score"]


def make_env(config: Config, seed: int, deals: Iterator[Deal] | None = None) -> VecEnv:
    """The games to train on, drawn from `seed`; those of `deals` if there are any."""
    if deals is None and config.deals == "winnable":
        deals = WinnableDeals(config.rules, seed)
    options = config.env.model_dump() | {"lost_reward": config.lost_reward}
    games = SB3VecEnv(config.num_envs, config.rules, seed=seed, deals=deals, **options)
    return games if config.reward_scale == 1 else ScaledRewards(games, config.reward_scale)


def make_model(config: Config, env: VecEnv) -> Any:
    """A new model.

    Raises:
        ValueError: its class refuses the arguments.
    """
    policy: Any = "MlpPolicy"
    if config.algorithm == "maskable_ppo":
        from agents.network import MaskedMlpPolicy, StructuredPolicy

        policy = StructuredPolicy if config.network == "structured" else MaskedMlpPolicy
    policy_kwargs = dict(config.policy_kwargs)
    if config.net_arch is not None:
        policy_kwargs["net_arch"] = list(config.net_arch)
    arguments = {
        name: LinearSchedule(**cast(dict[str, float], value), end_fraction=1.0) if isinstance(value, dict) else value
        for name, value in config.hyperparameters.items()
    }
    try:
        return algorithm_class(config.algorithm)(
            policy, env, policy_kwargs=policy_kwargs, seed=config.seed, device=config.device, **arguments
        )
    except (AssertionError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{config.algorithm} refuses its hyperparameters or policy_kwargs: {error}") from error


def load_model(config: Config, path: Path) -> Any:
    """The model of a checkpoint, without games. Loading runs code from the file.

    Raises:
        ValueError: there is no whole checkpoint at `path`.
    """
    advice = f"put back a copy of it (best.zip may do), or start anew without {path.parent}"
    if not path.exists():
        raise ValueError(f"there is no checkpoint {path}: {advice}")
    try:
        open_zip(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"the checkpoint {path} is damaged ({error}): {advice}") from error
    try:
        model = algorithm_class(config.algorithm).load(path, device=config.device)
    except Exception as error:  # whatever unpickling a foreign file may raise
        raise ValueError(f"{path} is no checkpoint of this run ({error}): {advice}") from error
    if hasattr(model, "learning_starts"):
        # The replay buffer is not kept: fill it again first.
        model.learning_starts = model.num_timesteps + config.hyperparameters["learning_starts"]
    return model


def stream_seed(seed: int, steps: int) -> int:
    """What deals and chance are drawn from when a run goes on after `steps`: the same each time, and not `seed`."""
    return int(np.random.SeedSequence([seed, steps]).generate_state(1)[0])


def train(
    config: Config,
    folder: Path,
    *,
    resume: bool = False,
    deals: Iterator[Deal] | None = None,
    stop: threading.Event | None = None,
) -> Any:
    """Train in a run folder until `config.steps` are done.

    Args:
        config: the run.
        folder: made if it is not there; must hold no run yet, or with `resume` the one to go on with.
        resume: go on from the folder's last checkpoint.
        deals: an endless iterator of deals to train on, in place of those that the config asks for.
        stop: when set, the run is saved and ends.

    Returns:
        the model.

    Raises:
        ValueError: there is a run already; or none to go on with, or one of another config or with a damaged
            checkpoint; or the algorithm refuses the config.
        OSError: the folder cannot be written, or another program uses it.
        KeyboardInterrupt: `stop` was set; the run is saved.
    """
    if config.device.startswith("cuda") and int(config.device.partition(":")[2] or 0) >= torch.cuda.device_count():
        # Stable-Baselines3 would take the CPU and not say so.
        raise ValueError(f"there is no device {config.device!r} here: use cpu, or auto for what there is")
    torch.set_num_threads(config.threads)
    keep_memory()
    # Checks of every tensor that is handed to a distribution: they cost time, and what is handed here is made here.
    torch.distributions.Distribution.set_default_validate_args(False)
    with only_user(folder, "--out"), progress_bar() as bar:
        config_path = folder / "config.yaml"
        if resume:
            if not config_path.exists():
                raise ValueError(f"there is no run in {folder} to go on with: start it without --resume")
            earlier = read_config(config_path)
            check_same(config, earlier, folder, but="steps")
            if config.steps < earlier.steps:
                raise ValueError(f"the run in {folder} has {earlier.steps:,} steps to do: there may be more, not fewer")
        elif any((folder / name).exists() for name in ("last.zip", "best.zip")):
            raise ValueError(f"{folder} holds a run already: go on with it by --resume, or choose another by --out")
        run = Run(folder, config, bar, stop or threading.Event())
        if resume:
            model = load_model(config, folder / "last.zip")
            seed = stream_seed(config.seed, model.num_timesteps)
            env = make_env(config, seed, deals)
            model.set_env(env)
            model.set_random_seed(seed)
            run.go_on(model.num_timesteps)
        else:
            env = make_env(config, config.seed, deals)
            model = make_model(config, env)
            if config.start is not None:
                from agents.network import begin_with

                begin_with(model.policy.network, Path(config.start))
        yaml: Any = import_module("yaml")
        write_whole(config_path, yaml.safe_dump(config.model_dump(), sort_keys=False).encode())
        note_session(folder, config.seed, model.num_timesteps)
        log = Log(folder / "tensorboard", run.progress, model.num_timesteps)
        model.set_logger(Logger(None, [log]))
        every = _LOG_EPISODES
        if config.algorithm != "dqn":
            every = max(1, min(_LOG_STEPS, config.steps // 10) // (model.n_steps * config.num_envs))
        try:
            if model.num_timesteps < config.steps:
                left = config.steps - model.num_timesteps
                model.learn(left, callback=run, log_interval=every, reset_num_timesteps=not resume)
                if not run.evaluations or run.evaluations[-1]["steps"] < model.num_timesteps:
                    run.evaluate()
                run.save()
        finally:
            log.close()
            env.close()
        if config.algorithm == "maskable_ppo":
            from agents.network import export

            told = {"rules": config.rules, "steps": str(model.num_timesteps), "seed": str(config.seed)}
            export(model, folder / "policy.safetensors", told)
    return model


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def run_config(
    config: Annotated[Path, typer.Argument(help="The run, a YAML file as in configs/.", show_default=False)],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Changes, key=value; nested keys by dots: hyperparameters.gamma=1.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder.", show_default="runs/NAME of the config")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the last checkpoint. Loading one runs code: only your own."),
    ] = False,
) -> None:
    """Train an agent."""
    folder = Path("runs") / config.stem if out is None else out
    read = read_config(config, overrides or ())
    with stopped_by_signals("train") as stop:
        try:
            train(read, folder, resume=resume, stop=stop)
        except KeyboardInterrupt:
            saved = "saved" if stop.is_set() and (folder / "last.zip").exists() else "not saved"
            print(f"train: interrupted and {saved}; the same command with --resume goes on", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
    print(f"train: done, see {folder}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line: the exit code, see `agents.runs.run`."""
    return run(app, "train", arguments)


if __name__ == "__main__":
    sys.exit(main())
