"""What a training run is made of: a YAML file and ``key=value`` words, checked before anything is built."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model, model_validator

from rusol_env.deals import suite
from rusol_env.env import DEFAULT_MAX_STEPS, RussianSolitaireEnv
from rusol_env.rules import rules_named

# Where the class of each algorithm is; all are imported only when one is asked for.
ALGORITHMS: Final = {
    "maskable_ppo": ("sb3_contrib", "MaskablePPO"),
    "ppo": ("stable_baselines3", "PPO"),
    "dqn": ("stable_baselines3", "DQN"),
    "a2c": ("stable_baselines3", "A2C"),
}
# Arguments of those classes that other keys of a config stand for, or that the run folder replaces.
_NOT_OURS: Final = {"policy_kwargs", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model"}
# The most that a number may be: PyTorch's float32 ends a little later, and its integers elsewhere.
_MOST: Final = 1e30
_MOST_WHOLE: Final = 2**31 - 1
# Least and most of hyperparameters; of the others only that PyTorch can hold them is checked.
_RANGES: Final[dict[str, tuple[float, float]]] = {
    "gamma": (0, 1),
    "gae_lambda": (0, 1),
    "tau": (0, 1),
    "exploration_fraction": (0, 1),
    "exploration_initial_eps": (0, 1),
    "exploration_final_eps": (0, 1),
    "learning_rate": (0, math.inf),
    "clip_range": (0, math.inf),
    "clip_range_vf": (0, math.inf),
    "max_grad_norm": (0, math.inf),
    "learning_starts": (0, math.inf),
    "batch_size": (2, math.inf),
    "n_steps": (1, math.inf),
    "n_epochs": (1, math.inf),
    "buffer_size": (1, math.inf),
    "train_freq": (1, math.inf),
    "target_update_interval": (1, math.inf),
    "stats_window_size": (1, math.inf),
}


def _whole(value: Any) -> Any:
    """1e6 is how people write a whole number of steps."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[int, BeforeValidator(_whole), Field(ge=1, lt=2**63)]
# Of a layer: one that is wider does not fit, or takes for ever.
MOST_WIDTH: Final = 16_384
Width = Annotated[Count, Field(le=MOST_WIDTH)]
# PyTorch crashes where the system gives it no more threads.
MOST_THREADS: Final = 1024
MOST_ENVS: Final = 1_000_000


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Linear(Strict):
    """A hyperparameter that goes evenly from `start` to `end` over the run."""

    start: float
    end: float


class EnvOptions(Strict):
    """Options of `RussianSolitaireEnv` that training may choose; the others are as in an evaluation."""

    observation: str = "cards"
    reward: str = "score"
    max_steps: Count = DEFAULT_MAX_STEPS
    illegal_reward: Annotated[float, Field(ge=-_MOST, le=_MOST)] = 0.0


class _Disagreement(ValueError):
    """What is wrong is at one of these places, such as ``env.reward``: the first that a word was said of."""

    def __init__(self, message: object, *places: str) -> None:
        super().__init__(message)
        self.places = places


class Config(Strict):
    """A run. Frozen; `read_config` makes one from a file."""

    algorithm: Literal["maskable_ppo", "ppo", "dqn", "a2c"]
    network: Literal["mlp", "structured"] = "mlp"
    rules: str = "classic"
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    steps: Count
    """Environment steps in all, over all games."""
    num_envs: Annotated[Count, Field(le=MOST_ENVS)] = 256
    threads: Annotated[Count, Field(le=MOST_THREADS)] = 1
    """Of PyTorch."""
    device: str = "cpu"
    deals: Literal["all", "winnable"] = "all"
    """Which deals of the training split are played: those that the solver proves winnable, or all."""
    lost_reward: Annotated[float, Field(ge=-_MOST, le=_MOST)] | None = None
    """Ends a game, with this reward, as soon as the solver proves it lost; see `SB3VecEnv`."""
    env: EnvOptions = EnvOptions()
    reward_scale: Annotated[float, Field(gt=0, le=_MOST)] = 1.0
    """What the learner's rewards are multiplied by; logs and tables have the game's own."""
    net_arch: list[Width] | None = None
    """Widths of the hidden layers of the MLP; None is Stable-Baselines3's own choice."""
    policy_kwargs: dict[str, Any] = {}
    """Further arguments of the policy class."""
    hyperparameters: dict[str, Any] = {}
    """Arguments of the algorithm's class, checked against its signature."""
    start: str | None = None
    """A ``.safetensors`` whose weights the structured network begins with; it may have fewer layers, and is the same
    in its other sizes. None: by chance."""
    eval_every: Count = 1_000_000
    """Steps between evaluations."""
    eval_deals: str = "winnable-1000"
    """The suite that is played then."""
    eval_deterministic: bool = True
    """Whether an evaluation plays the likeliest action; without masks that can repeat an illegal one for ever."""
    checkpoint_every: Count = 1_000_000
    """Steps between checkpoints; there is one at each evaluation too."""

    @model_validator(mode="after")
    def _agrees(self) -> Config:
        # Said by those who know, in their own words.
        with _blaming("rules"):
            rules = rules_named(self.rules)
        for option, value in self.env:
            with _blaming(f"env.{option}"):
                RussianSolitaireEnv(rules, **{option: value})
        with _blaming("eval_deals", "rules"):
            suite(self.eval_deals, rules)
        if re.fullmatch(r"cpu|auto|cuda(:\d+)?", self.device) is None:
            raise _Disagreement(f"unknown device {self.device!r}: use cpu, cuda or auto", "device")
        for place, value in _numbers_in(self.policy_kwargs, "policy_kwargs"):
            if isinstance(value, int) and value > MOST_WIDTH:
                raise _Disagreement(f"{place} is {value}: it must be at most {MOST_WIDTH}", place)
        if self.network == "structured":
            if self.algorithm != "maskable_ppo" or self.env.observation != "cards":
                raise _Disagreement(
                    "network structured reads legal moves: it needs maskable_ppo and observation cards",
                    *("algorithm", "env.observation", "network"),
                )
            if self.net_arch is not None:
                raise _Disagreement(
                    "net_arch is of the mlp: give the structured network's sizes in policy_kwargs",
                    *("net_arch", "network"),
                )
        elif self.start is not None:
            raise _Disagreement(
                "start gives weights to a structured network: it needs network structured", *("start", "network")
            )
        return self


@contextmanager
def _blaming(*places: str) -> Generator[None]:
    """What is refused in here is refused because of these places."""
    try:
        yield
    except ValueError as error:
        raise _Disagreement(error, *places) from None


def _numbers_in(values: Any, place: str) -> Iterator[tuple[str, float]]:
    """The numbers in mappings and lists, and where they stand."""
    if isinstance(values, dict):
        for key, value in cast(dict[Any, Any], values).items():
            yield from _numbers_in(value, f"{place}.{key}")
    elif isinstance(values, list):
        for value in cast(list[Any], values):
            yield from _numbers_in(value, place)
    elif isinstance(values, (int, float)):
        yield place, values


def algorithm_class(name: str) -> Any:
    """The class of Stable-Baselines3 or sb3-contrib that learns."""
    module, attribute = ALGORITHMS[name]
    return getattr(import_module(module), attribute)


@cache
def _hyperparameters(algorithm: str) -> type[BaseModel]:
    """A model of the plain arguments of the algorithm's class: numbers, flags and schedules."""
    found = algorithm_class(algorithm)
    fields: dict[str, Any] = {}
    for name, parameter in signature(found.__init__).parameters.items():
        hint = parameter.annotation
        kinds: tuple[Any, ...] = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        plain: list[Any] = [kind for kind in kinds if kind in (bool, int, float, str, NoneType)]
        if name in _NOT_OURS or parameter.default is parameter.empty or plain in ([], [NoneType]):
            continue
        if any(get_origin(kind) is Callable for kind in kinds):
            plain.append(Linear)
        fields[name] = (Union[tuple(plain)], parameter.default)  # noqa: UP007
    return create_model("Hyperparameters", __base__=Strict, **fields)


def read_values(path: Path, overrides: Sequence[str] = ()) -> tuple[dict[str, Any], Callable[[str], str]]:
    """Read a YAML mapping, with ``key=value`` words on top (``hyperparameters.gamma=1``).

    Returns:
        the values, not checked; and what tells where the value at a place such as ``env.reward`` was said.

    Raises:
        ValueError: it is no such file, or a word changes nothing, in one sentence.
        OSError: the file cannot be read.
    """
    yaml: Any = import_module("yaml")

    def parse(text: str, where: object) -> Any:
        try:
            _refuse_doubles(yaml.compose(text, yaml.SafeLoader), where)
            try:
                return _numbers(yaml.safe_load(text))
            except ValueError as error:
                # What looks like a date and is none.
                raise ValueError(f"{where} has a value that is none: {error}") from None
        except yaml.YAMLError as error:
            raise ValueError(f"{where} is not YAML: {error}") from error
        except RecursionError:
            raise ValueError(f"{where} is nested too deeply, or in itself") from None

    try:
        values = parse(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file in UTF-8: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} is no configuration: it must be a mapping, as in 'algorithm: maskable_ppo'")
    sources: dict[str, str] = {}
    for word in overrides:
        key, equals, text = word.partition("=")
        if not equals or not all(key.split(".")):
            raise ValueError(f"{word!r} changes nothing: write key=value, as in steps=1000000")
        sources[key] = word
        *outer, last = key.split(".")
        inner = cast(dict[str, Any], values)
        for part in outer:
            if not isinstance(inner.setdefault(part, {}), dict):
                raise ValueError(f"{word}: {part} has no keys of its own")
            inner = inner[part]
        inner[last] = parse(text, word)

    def said_in(place: str) -> str:
        return next((word for key, word in sources.items() if f"{place}.".startswith(f"{key}.")), str(path))

    return cast(dict[str, Any], values), said_in


def read_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a run from a YAML file, with ``key=value`` words on top (``hyperparameters.gamma=1``).

    Raises:
        ValueError: an unknown key, a wrong type or a bad value, in one sentence that names it.
        OSError: the file cannot be read.
    """
    return _checked(*read_values(path, overrides))


ModelT = TypeVar("ModelT", bound=BaseModel)


def checked(
    model: type[ModelT], values: Mapping[str, Any], said_in: Callable[[str], str], outer: tuple[str, ...] = ()
) -> ModelT:
    """The values as a model, or a ValueError of one sentence; they stand under the keys `outer`."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ValueError(_sentence(error, model, outer, said_in)) from None


def _checked(values: Mapping[str, Any], said_in: Callable[[str], str]) -> Config:
    config = checked(Config, values, said_in)
    model = _hyperparameters(config.algorithm)
    hyperparameters = checked(model, config.hyperparameters, said_in, ("hyperparameters",)).model_dump()
    for name, value in hyperparameters.items():
        least, most = _RANGES.get(name, (-_MOST, _MOST))
        most = min(most, _MOST_WHOLE if isinstance(value, int) else _MOST)
        of = cast(dict[str, Any], value).values() if isinstance(value, dict) else (value,)
        if any(isinstance(one, (int, float)) and not least <= one <= most for one in of):
            place = f"hyperparameters.{name}"
            limits = f"from {least:g} to {most:{',' if isinstance(most, int) else 'g'}}"
            raise ValueError(f"{said_in(place)}: {place} is {value!r}: it must be {limits}")
    rollout, batch = config.num_envs * hyperparameters.get("n_steps", 1), hyperparameters.get("batch_size")
    if config.algorithm in ("ppo", "maskable_ppo") and batch is not None and rollout % batch:
        place = "hyperparameters.batch_size"
        said = _said(said_in, place, "hyperparameters.n_steps", "num_envs")
        raise ValueError(f"{said}: {place} is {batch}: it must divide num_envs x n_steps, {rollout}")
    return config.model_copy(update={"hyperparameters": hyperparameters})


def _said(said_in: Callable[[str], str], *places: str) -> str:
    """Where the first of these places was said on the command line, or else the file."""
    file = said_in("")
    return next((said for said in map(said_in, places) if said != file), file)


def _sentence(
    error: ValidationError, model: type[BaseModel], outer: tuple[str, ...], said_in: Callable[[str], str]
) -> str:
    """The first thing that is wrong, its place and who said it."""
    first = error.errors(include_url=False)[0]
    # Which member of a union did not fit is of no interest.
    keys = [part for part in first["loc"] if not isinstance(part, str) or part.isidentifier()]
    keys = [part for part in keys if part not in ("int", "float", "bool", "str", "none", "Linear")]
    place = ".".join(map(str, (*outer, *keys)))
    said = said_in(place)
    if first["type"] == "extra_forbidden":
        inner: Any = model
        for key in keys[:-1]:
            inner = inner.model_fields[key].annotation if key in inner.model_fields else Linear
        return f"{said}: unknown key {place!r}: use one of {', '.join(inner.model_fields)}"
    if first["type"] == "missing":
        return f"{said}: the key {place!r} is missing"
    if first["type"] == "value_error":
        error_raised: Any = first.get("ctx", {}).get("error")
        return f"{_said(said_in, place, *getattr(error_raised, 'places', ()))}: {error_raised}"
    what = first["msg"].removeprefix("Input ").replace("should be", "it must be")
    return f"{said}: {place} is {first['input']!r}: {what}"


def _refuse_doubles(node: Any, where: object) -> None:
    """YAML forbids a key that is there twice; PyYAML takes the last."""
    keys: set[str] = set()
    for part in getattr(node, "value", None) or ():
        if isinstance(part, tuple):
            key, value = cast(tuple[Any, Any], part)
            if not isinstance(key.value, str):
                raise ValueError(f"{where}: a key must be a word, and one is a list or a mapping")
            if key.value in keys:
                raise ValueError(f"{where}: the key {key.value!r} is there twice")
            keys.add(key.value)
            _refuse_doubles(value, where)


def _numbers(value: Any) -> Any:
    """3e-4 is a number to everybody but YAML 1.1."""
    if isinstance(value, dict):
        return {key: _numbers(inner) for key, inner in cast(dict[Any, Any], value).items()}
    if isinstance(value, str) and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)e[-+]?\d+", value, re.IGNORECASE):
        return float(value)
    return value
