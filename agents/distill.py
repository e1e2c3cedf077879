"""Distil the solver's word into a network: ``python agents/distill.py CONFIG.yaml [key=value …]``.

The planner asks the solver about many ways in which the face-down cards may lie, before each move. Here a network
learns the answer: it plays training deals, the solver says of each legal move whether the deal can still be won after
it, as it truly lies and as it may lie (`rusol_env.lessons`), and the network learns to put its weight on the moves that
keep it so most often. What it sees is what lies face up, so it learns each move's chance. By what it has learnt it
then plays the deals of the round after the next: while it learns, the solver is asked what the next round needs. It is
taught all suits, and all columns, alike.

The solver sees all cards, so to it a move that shows a card is as good as one that does not. Another network, the
critic, learns how often the first wins from each position itself, and a move is worth the more, the better that fares
after it.

A run is a folder: ``config.yaml`` (resolved), ``run.json``, ``lessons/ROUND.npz``, ``evaluation.csv``, ``curve.png``,
``last.pt`` from which an interrupted run goes on, and the network after each round as ``policy.safetensors``.
"""

from __future__ import annotations

import io
import math
import sys
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Final, NamedTuple

if not __package__:
    # Run as a script: Python then looks for modules in agents/, and not for `agents`.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np
import torch
import typer
from pydantic import Field, model_validator

from agents.config import MOST_THREADS, Count, Strict, checked, read_values
from agents.curve import curve
from agents.network import StructuredNetwork, as_network, begin_with, export_network
from agents.runs import (
    INTERRUPTED,
    check_same,
    keep_memory,
    note_session,
    outcome,
    progress_bar,
    read_rows,
    run,
    write_rows,
)
from rusol_env.deals import suite
from rusol_env.evaluate import evaluate
from rusol_env.files import only_user, write_whole
from rusol_env.lessons import MOST_COMPLETIONS, Lessons, teach
from rusol_env.network import NetworkPolicy
from rusol_env.observe import Observation, observation_space
from rusol_env.policies import GreedyPolicy
from rusol_env.rules import rules_named

_SPREAD: Final = 1_000_003


class Distillation(Strict):
    """A run. Frozen; `read_distillation` makes one from a file."""

    rules: str = "classic"
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    start: str | None = None
    """A ``.safetensors`` whose weights the network begins with, or the ``last.pt`` of a run, of the same sizes: then
    what guesses chances goes on too. None: by chance."""
    rounds: Count
    """In the first two, greedy plays, or what the network begins with; in the others the network, as it is after the
    round before the last."""
    states: Count
    """Positions that are played through in each round."""
    completions: Annotated[int, Field(ge=0, le=MOST_COMPLETIONS)] = 40
    """Ways in which the face-down cards may lie that the solver is asked about, besides that in which they do."""
    explore: Annotated[float, Field(ge=0, le=1)] = 0.1
    """How often a random move is played, see `teach`."""
    even: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share that is kept of the positions where all moves win as often."""
    rounds_kept: Count = 1_000_000
    """Only the lessons of so many rounds are learnt from, the last ones."""
    threads: Annotated[Count, Field(le=MOST_THREADS)] = 1
    """That learn, and as many beside them that make the lessons of the next round."""
    width: Count = 32
    layers: Annotated[int, Field(ge=0)] = 1
    hidden: Count = 64
    """Sizes of the structured network."""
    updates: Count
    """Of the network's weights, in each round, on all lessons so far."""
    batch_size: Count = 256
    learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    """At the start; it goes down to 0 by a cosine over the run."""
    surprise: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The share of the loss that is -log of how good the play is; the rest is how good it is, see `losses_of`."""
    guesses: Annotated[float, Field(ge=0)] = 0.0
    """How much it counts in the loss how well the moves' shares of wins are guessed, see `losses_of`."""
    foresight: Annotated[float, Field(ge=0)] = 0.0
    """The power to which the critic's guess of what lies ahead of a move is taken, as a factor of its wins; 0: there is
    no critic. The first two rounds are taught without, unless the run goes on from another."""
    eval_deals: str = "winnable-1000"

    @property
    def goes_on(self) -> bool:
        """Whether it begins with all that another run has learnt, and not with its network only."""
        return self.start is not None and self.start.endswith(".pt")

    @model_validator(mode="after")
    def _agrees(self) -> Distillation:
        suite(self.eval_deals, rules_named(self.rules))
        return self


class Player(torch.nn.Module):
    """The network, and beside it what guesses shares. A network whose insides have to tell chances apart chooses better
    too."""

    def __init__(self, network: StructuredNetwork) -> None:
        super().__init__()
        self.network = network
        # Logits of a move's wins beside the most that a move has.
        self.share = torch.nn.Linear(network.hidden, 1)


class Critic(torch.nn.Module):
    """Guesses how likely the player wins from a position. It has a network of its own: one that shared the player's
    guessed worse."""

    def __init__(self, network: StructuredNetwork) -> None:
        super().__init__()
        self.network = network
        # Logits.
        self.value = torch.nn.Linear(network.hidden, 1)


class Learner(torch.nn.Module):
    """Player and critic."""

    def __init__(self, config: Distillation) -> None:
        super().__init__()
        space = observation_space(Observation.CARDS, False)
        networks = [
            StructuredNetwork(space, config.width, config.layers, config.hidden, alike=True)
            for _ in range(2 if config.foresight else 1)
        ]
        self.player = Player(networks[0])
        self.critic = Critic(networks[1]) if config.foresight else None

    def begin_with(self, path: Path) -> None:
        """Give both networks the weights of a file; see `begin_with`."""
        for part in (self.player, self.critic):
            if part is not None:
                begin_with(part.network, path)


class Losses(NamedTuple):
    """Of some lessons; scalars."""

    play: torch.Tensor
    """Minus how good the play is, or nearly so: -1 is best."""
    shares: torch.Tensor
    """The cross-entropy of the guessed shares of wins."""
    outcomes: torch.Tensor
    """The critic's: the cross-entropy of the guessed chances that the game is won; 0 without one."""

    def weighed(self, config: Distillation) -> torch.Tensor:
        """What is made small: the player's loss and the critic's, which share no weights."""
        return self.play + config.guesses * self.shares + self.outcomes


_cross_entropy: Final = torch.nn.functional.binary_cross_entropy_with_logits


def losses_of(learner: Learner, lessons: Lessons, chance: np.random.Generator, config: Distillation) -> Losses:
    """How far the player is from playing the moves after which the game can be won most often, and the critic from
    knowing how games end, in lessons and positions that are drawn.

    Play is as good as its moves' wins are in the mean, the most that a move has being 1; of wins, so many count as the
    guess of what lies ahead says, to the power `foresight`. With `surprise` its logarithm counts too.
    """
    player, critic, size = learner.player, learner.critic, config.batch_size
    cards, wins, ahead = lessons.show(chance.integers(len(lessons.ends), size=size))
    moves = player.network.weigh_moves(torch.as_tensor(cards))
    found = torch.as_tensor(wins)[moves.games, moves.actions].float()
    most = found.new_zeros(size).scatter_reduce(0, moves.games, found, "amax")
    # Where no move wins, all have no share; 0 / 0 would spoil every weight.
    shares = found / most[moves.games].clamp(min=1e-6)
    likely = torch.as_tensor(ahead)[moves.games, moves.actions]
    weights = moves.log_probabilities().exp() * shares * likely**config.foresight
    good = weights.new_zeros(size).index_add(0, moves.games, weights)
    outcomes = good.new_zeros(())
    if critic is not None and len(lessons.played):
        which = chance.integers(len(lessons.played), size=size)
        value = critic.value(critic.network.summarize(torch.as_tensor(lessons.show_played(which)))).squeeze(1)
        outcomes = _cross_entropy(value, torch.as_tensor(lessons.outcomes[which]).float())
    return Losses(
        -(config.surprise * (good + 1e-6).log() + (1 - config.surprise) * good).mean(),
        _cross_entropy(player.share(moves.hidden).squeeze(1), shares),
        outcomes,
    )


class _Teacher:
    """Has lessons made in a thread of its own, while the network learns from those that there are."""

    def __init__(self, config: Distillation, paths: list[Path]) -> None:
        self._config, self._paths = config, paths
        self._pool = ThreadPoolExecutor(1)
        self._stopped = Event()

    def teach(self, at: int, learner: Learner | None) -> Future[Lessons]:
        """Begin with the lessons of round `at`, written to its path: what was learnt so far plays, or greedy."""
        config, seed = self._config, self._config.seed * _SPREAD + at
        network = value = None
        if learner is not None:
            network = as_network(learner.player.network)
            # In the first two rounds nothing has been learnt of outcomes, unless that went on.
            if learner.critic is not None and (at > 1 or config.goes_on):
                value = as_network(learner.critic.network, learner.critic.value)

        def lessons() -> Lessons:
            shard = teach(
                GreedyPolicy(seed) if network is None else NetworkPolicy(network),
                config.rules,
                seed,
                config.states,
                completions=config.completions,
                explore=config.explore,
                even=config.even,
                value=value,
                threads=config.threads,
                progress=self._heed,
            )
            shard.save(self._paths[at])
            return shard

        return self._pool.submit(lessons)

    def _heed(self, _: int) -> None:
        if self._stopped.is_set():
            raise CancelledError

    def __enter__(self) -> _Teacher:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._pool.shutdown()


def distil(config: Distillation, folder: Path, *, resume: bool = False) -> NetworkPolicy:
    """Run all rounds in a folder.

    Args:
        config: the run.
        folder: made if it is not there; must hold no run yet, or with `resume` the one to go on with.
        resume: go on after the last whole round.

    Raises:
        ValueError: there is a run already; or none to go on with, or one of another config, or a damaged one.
        OSError: the folder cannot be written, or another program uses it.
    """
    torch.set_num_threads(config.threads)
    keep_memory()
    paths = [folder / "lessons" / f"{at}.npz" for at in range(config.rounds)]
    with only_user(folder, "--out"), progress_bar() as bar, _Teacher(config, paths) as teacher:
        begun = (folder / "config.yaml").exists()
        if resume != begun:
            raise ValueError(
                f"{folder} holds a run already: go on with it by --resume, or choose another by --out"
                if begun
                else f"there is no run in {folder} to go on with: start it without --resume"
            )
        if resume:
            check_same(config, read_distillation(folder / "config.yaml"), folder)
        torch.manual_seed(config.seed)  # pyright: ignore[reportUnknownMemberType]
        learner = Learner(config)
        network = learner.player.network
        optimizer = torch.optim.Adam(learner.parameters(), lr=config.learning_rate)
        rows: list[dict[str, Any]] = []
        if resume:
            rows = _load(folder, learner, optimizer)
        elif config.goes_on:
            _read_last(Path(str(config.start)), learner)
        elif config.start is not None:
            learner.begin_with(Path(config.start))
        yaml: Any = import_module("yaml")
        write_whole(folder / "config.yaml", yaml.safe_dump(config.model_dump(), sort_keys=False).encode())
        note_session(folder, config.seed, len(rows))
        # A whole round has left the lessons of the next one too.
        there = paths[: len(rows) + 1][-config.rounds_kept :] if rows else []
        for path in there:
            if not path.exists():
                raise ValueError(f"{path} is missing: put it back, or start anew without {folder}")
        shards = [Lessons.load(path) for path in there]
        (folder / "lessons").mkdir(exist_ok=True)
        policy_path = folder / "policy.safetensors"
        task = bar.add_task(folder.name, total=config.rounds * config.updates, now="")
        began = time.perf_counter()
        # Of the first two rounds greedy plays the games, where the network has learnt nothing yet.
        first = None if config.start is None else learner
        if not rows:
            shards.append(teacher.teach(0, first).result())
        for at in range(len(rows), config.rounds):
            shards = shards[-config.rounds_kept :]
            lessons = Lessons.joined(shards)
            steps, labels = shards[-1].states, shards[-1].asked
            if rows:
                steps, labels = rows[-1]["steps"] + steps, rows[-1]["labels"] + labels
            taught = teacher.teach(at + 1, learner if at else first) if at + 1 < config.rounds else None
            chance = np.random.default_rng([config.seed, at])
            losses: list[list[float]] = []
            for k in range(config.updates):
                done = (at * config.updates + k) / (config.rounds * config.updates)
                for group in optimizer.param_groups:
                    group["lr"] = config.learning_rate * (1 + math.cos(math.pi * done)) / 2
                parts = losses_of(learner, lessons, chance, config)
                optimizer.zero_grad()
                parts.weighed(config).backward()  # pyright: ignore[reportUnknownMemberType]
                for part in (learner.player, learner.critic):
                    if part is not None:
                        torch.nn.utils.clip_grad_norm_(part.parameters(), 1.0)
                optimizer.step()  # pyright: ignore[reportUnknownMemberType]
                losses.append([part.item() for part in parts])
                bar.update(task, completed=at * config.updates + k + 1, now=f"round {at + 1}, loss {losses[-1][0]:.4f}")
            if taught is not None:
                shards.append(taught.result())
            told = {"rules": config.rules, "labels": str(labels), "seed": str(config.seed)}
            export_network(network, policy_path, told)
            policy = NetworkPolicy.load(policy_path)
            found = outcome(evaluate(policy, config.rules, config.eval_deals, seed=0))
            rows.append(
                {
                    "round": at + 1,
                    "steps": steps,
                    "labels": labels,
                    "lessons": len(lessons.ends),
                    **dict(
                        zip(
                            ("loss", "loss_shares", "loss_outcomes"),
                            np.mean(losses[-200:], axis=0).tolist(),
                            strict=True,
                        )
                    ),
                    **found,
                    "seconds": (rows[-1]["seconds"] if rows else 0.0) + time.perf_counter() - began,
                }
            )
            began = time.perf_counter()
            _save(folder, learner, optimizer, rows)
            print(
                f"round {at + 1}: {steps:,} positions, {len(lessons.ends):,} lessons, "
                f"loss {rows[-1]['loss']:.4f}, "
                f"{found['win_rate']:.1%} of {found['suite']} won "
                f"({found['win_rate_low']:.1%} to {found['win_rate_high']:.1%}), {rows[-1]['seconds']:.0f} s",
                flush=True,
            )
        return NetworkPolicy.load(policy_path)


def _save(folder: Path, learner: Learner, optimizer: torch.optim.Optimizer, rows: list[dict[str, Any]]) -> None:
    data = io.BytesIO()
    torch.save({"learner": learner.state_dict(), "optimizer": optimizer.state_dict(), "rounds": len(rows)}, data)
    # The table first: a row that the checkpoint has not is dropped when the run goes on; a missing one cannot be made.
    write_rows(folder / "evaluation.csv", rows)
    write_whole(folder / "last.pt", data.getvalue())
    write_whole(folder / "curve.png", curve(rows, [], folder.name))


def _read_last(path: Path, learner: Learner, optimizer: torch.optim.Optimizer | None = None) -> int:
    """Read what `_save` wrote: how many rounds the run had ended.

    Raises:
        ValueError: it is damaged, or of other sizes.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    try:
        # `weights_only` reads tensors and plain values, and runs no code.
        state: Any = torch.load(io.BytesIO(data), weights_only=True)
        learner.load_state_dict(state["learner"])
        if optimizer is not None:
            optimizer.load_state_dict(state["optimizer"])
        return int(state["rounds"])
    except Exception as error:  # whatever a damaged file may raise
        raise ValueError(
            f"{path} is damaged, or of a run of other sizes ({type(error).__name__}): start without it"
        ) from error


def _load(folder: Path, learner: Learner, optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Take up a run where its last whole round ended: its rows."""
    path = folder / "last.pt"
    if not path.exists():
        return []
    rounds = _read_last(path, learner, optimizer)
    rows = read_rows(folder / "evaluation.csv")[:rounds]
    # A round that is not in the table would be learnt twice.
    if [row.get("round") for row in rows] != list(range(1, rounds + 1)):
        raise ValueError(f"{folder / 'evaluation.csv'} lacks rounds that {path} has: start anew without {folder}")
    return rows


def read_distillation(path: Path, overrides: list[str] | None = None) -> Distillation:
    """Read a run from a YAML file, with ``key=value`` words on top.

    Raises:
        ValueError: an unknown key, a wrong type or a bad value, in one sentence that names it.
        OSError: the file cannot be read.
    """
    return checked(Distillation, *read_values(path, overrides or ()))


def is_distillation(path: Path) -> bool:
    """Whether a YAML file is a run of this script, and not one of agents/train.py.

    Raises:
        ValueError: it is no YAML file of keys.
        OSError: it cannot be read.
    """
    return "rounds" in read_values(path)[0]


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def distil_config(
    config: Annotated[Path, typer.Argument(help="The run, a YAML file as in configs/.", show_default=False)],
    overrides: Annotated[list[str] | None, typer.Argument(help="Changes, key=value.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder.", show_default="runs/NAME of the config")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after the last whole round.")] = False,
) -> None:
    """Distil the solver's word into a network."""
    folder = Path("runs") / config.stem if out is None else out
    try:
        distil(read_distillation(config, overrides), folder, resume=resume)
    except KeyboardInterrupt:
        print(
            "distill: interrupted; the same command with --resume goes on after the last whole round", file=sys.stderr
        )
        raise typer.Exit(INTERRUPTED) from None
    print(f"distill: done, see {folder}")


if __name__ == "__main__":
    sys.exit(run(app, "distill"))
