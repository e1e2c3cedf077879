"""Make a checkpoint that ships of a finished run: ``python agents/publish.py RUN``.

The run's final network goes to ``rusol_env/checkpoints/``, with a card beside it that says how it was made and how it
plays: the network is evaluated anew on ``first-10000``, of which no run trains a deal.
"""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Final

if not __package__:
    # Run as a script: Python then looks for modules in agents/, and not for `agents`.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import typer

from agents.config import read_config
from agents.distill import is_distillation, read_distillation
from agents.runs import command_of, read_rows, read_sessions, run
from rusol_env.evaluate import evaluate
from rusol_env.files import write_whole
from rusol_env.model_card import ModelCard
from rusol_env.models import CHECKPOINTS, NETWORK, TRAINED
from rusol_env.network import NetworkPolicy

SUITE: Final = "first-10000"


def publish(folder: Path, checkpoints: Path = CHECKPOINTS, deals: str = SUITE, name: str | None = None) -> ModelCard:
    """Write the weights and the card of the run in `folder`.

    Args:
        folder: of the run.
        checkpoints: where they go.
        deals: the suite of the card.
        name: of the policy; by default ``ppo`` of MaskablePPO, ``distilled`` of a distillation.

    Raises:
        ValueError: the run is not finished, or its network damaged.
        OSError: a file cannot be read or written.
    """
    path = folder / "config.yaml"
    if is_distillation(path):
        config = read_distillation(path)
        usual, unit, number = "distilled", "round", config.rounds
    else:
        config = read_config(path)
        usual, unit, number = "ppo", "steps", config.steps
    name = usual if name is None else name
    if name not in TRAINED:
        raise ValueError(f"--name is {name!r}: it must be {' or '.join(TRAINED)}")
    sessions = read_sessions(folder)
    evaluations = read_rows(folder / "evaluation.csv")
    if not evaluations or evaluations[-1][unit] < number:
        raise ValueError(f"the run in {folder} is not finished: go on with it by --resume")
    path = folder / f"policy{NETWORK}"
    result = evaluate(NetworkPolicy.load(path, name), config.rules, deals, seed=0).summary()
    weights = checkpoints / f"{name}-{config.rules}{NETWORK}"
    checkpoints.mkdir(parents=True, exist_ok=True)
    # The session that wrote the network; one before it may have run in other code.
    last = sessions[-1]
    command = command_of(last)
    card = ModelCard.of(
        path,
        name=name,
        rules=config.rules,
        config=next((word for word in command if word.endswith((".yaml", ".yml"))), ""),
        command=shlex.join(command),
        steps=evaluations[-1]["steps"],
        hours=round(evaluations[-1]["seconds"] / 3600, 2),
        seed=config.seed,
        revision=last["git"] or "unknown",
        date=time.strftime("%Y-%m-%d", time.localtime(path.stat().st_mtime)),
        versions=last["versions"],
        curve=[[row["steps"], row["win_rate"]] for row in evaluations],
        evaluation=f"rusol evaluate --policy {name} --rules {config.rules} --suite {deals}",
        results=result,
    )
    write_whole(weights, path.read_bytes())
    card.save(weights.with_suffix(".json"))
    return card


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def publish_run(
    folder: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    name: Annotated[
        str | None,
        typer.Option(help="Of the policy, such as distilled of a run that went on from one.", show_default=False),
    ] = None,
) -> None:
    """Put the network of a finished run, and its card, into the package."""
    card = publish(folder, name=name)
    print(f"{card.name}-{card.rules}: {card.results['wins']} of {SUITE}, {card.bytes:,} bytes")


if __name__ == "__main__":
    sys.exit(run(app, "publish"))
