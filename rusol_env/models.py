"""Which policy plays: one by name, one from a file, or whatever else somebody brings, made a `Policy`.

The names are those of `POLICIES`, of the trained networks that ship with the package (`TRAINED`), and paths of models:
``.safetensors``, which holds numbers only, or the ``.zip`` of Stable-Baselines3, which is code (`load_sb3`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env.engine import NUM_ACTIONS
from rusol_env.model_card import ModelCard
from rusol_env.observe import Observation, observation_space
from rusol_env.policies import POLICIES, PlannerPolicy, Policy
from rusol_env.rules import CLASSIC, VARIANTS, Rules, rules_named

if TYPE_CHECKING:
    from rusol_env.sb3 import SB3Policy

TRAINED: Final = {
    "ppo": "A network that MaskablePPO trained.",
    "distilled": "A network that learnt from the solver which moves keep a game winnable.",
}
"""The names of the trained networks that ship, each for some of the rule sets, and what they are."""
PLANNER_PLUS: Final = "planner+"
NETWORK_OF: Final = {name: name for name in TRAINED} | {PLANNER_PLUS: "distilled"}
"""The policies that need a network that ships, and which."""
NETWORK: Final = ".safetensors"
SB3: Final = ".zip"
CHECKPOINTS: Final = Path(__file__).parent / "checkpoints"
ACCEPTED: Final = (
    f"{', '.join(POLICIES)}, {', '.join(NETWORK_OF)} (with trained networks that ship), or the path of a model: "
    f"{NETWORK}, or {SB3} of Stable-Baselines3, which runs code that it holds"
)
"""What `policy_named` takes, for people."""
# Options, and whose they are.
_PLANNER_OPTIONS: Final = ("samples", "time_limit", "threads")
_SB3_OPTIONS: Final = ("only_legal",)

Act = Callable[[NDArray[Any], NDArray[np.int8]], Any]


class CallablePolicy(Policy):
    """A function that chooses actions, as a policy.

    Of one game it is asked ``action = function(observation, mask)``, where the observation is float32 (52, 24) or int8
    (8, 52), and the mask int8 (416,), 1 = legal; not of a game that is over. `batched`, it is `Policy.act`.
    """

    def __init__(
        self, function: Act, *, observation: str = "cards", batched: bool = False, name: str | None = None
    ) -> None:
        """
        Args:
            function: what chooses.
            observation: the kind that it wants, ``"cards"`` or ``"board"``.
            batched: it takes N games at once, as `Policy.act` does, and returns int (N,).
            name: of the policy; by default the function's.

        Raises:
            ValueError: `function` cannot be called.
        """
        if not callable(function):
            raise ValueError(f"{function!r} cannot be called: give a function of an observation and a mask")
        self.function: Final = function
        self.observation = observation
        self.batched: Final = batched
        self.name = name or getattr(function, "__name__", type(function).__name__)

    @property
    def settings(self) -> dict[str, Any]:
        named = self.function if hasattr(self.function, "__qualname__") else type(self.function)
        return {"function": f"{named.__module__}.{named.__qualname__}", "batched": self.batched}

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        if self.batched:
            return self.function(observations, masks)
        return np.asarray(
            [0 if mask.all() else self.function(seen, mask) for seen, mask in zip(observations, masks, strict=True)]
        )


def shipped(name: str) -> dict[str, Path]:
    """The weights of the trained networks of that name, by their rule sets; each has a card beside it."""
    paths = {rules: CHECKPOINTS / f"{name}-{rules}{NETWORK}" for rules in VARIANTS}
    return {rules: path for rules, path in paths.items() if path.is_file()}


def policy_names(rules: str | Rules = CLASSIC) -> list[str]:
    """The names of the policies that come with the package for `rules`."""
    rules = rules_named(rules)
    return [*POLICIES, *(name for name, network in NETWORK_OF.items() if rules.name in shipped(network))]


def check_policy(name: str, rules: str | Rules = CLASSIC) -> None:
    """See to it that `policy_named` finds something of that name, without reading a model.

    Raises:
        ValueError: it does not: the message says what was wrong and what can be named.
    """
    rules = rules_named(rules)
    if name in POLICIES:
        return
    if name in NETWORK_OF:
        network = NETWORK_OF[name]
        found = shipped(network)
        if rules.name not in found:
            raise ValueError(
                f"no {network} network for {rules.name} comes with rusol-env: "
                + (f"there is one for {', '.join(found)}; " if found else "")
                + f"use one of {', '.join(POLICIES)}, or the path of a model"
            )
        return
    path = Path(name)
    if name and path.is_dir():
        raise ValueError(f"policy {name!r} is a folder: name the model in it, a file {NETWORK} or {SB3}")
    if path.suffix not in (NETWORK, SB3):
        kind = f"{name!r} is a file, and no model: its name must end in {NETWORK} or {SB3}" if path.is_file() else ""
        names = f"use one of {', '.join([*POLICIES, *NETWORK_OF])}, or the path of a model ({NETWORK} or {SB3})"
        raise ValueError(kind or f"unknown policy {name!r}: {names}")
    if not path.is_file():
        raise ValueError(f"there is no model {name!r}: no such file")


def policy_named(name: str, seed: int = 0, rules: str | Rules = CLASSIC, **options: Any) -> Policy:
    """The policy of that name, for games of `rules`.

    Args:
        name: one of `policy_names`, or the path of a model.
        seed: what its chance is drawn from.
        rules: the rule set of the games, or its name: planners need to know it; trained networks are each for one.
        options: ``samples``, ``time_limit`` and ``threads`` of the planners, or ``only_legal`` of `SB3Policy`;
            None is as if it was not given.

    Warns:
        RunsCodeWarning: before a ``.zip`` is read.

    Raises:
        ValueError: there is none, or it is damaged or not a model of this game; or it has no such option.
        ImportError: a ``.zip`` needs Stable-Baselines3, which is not installed.
    """
    rules = rules_named(rules)
    check_policy(name, rules)
    options = {option: value for option, value in options.items() if value is not None}
    is_zip = name not in POLICIES and Path(name).suffix == SB3
    own = _PLANNER_OPTIONS if name in (PlannerPolicy.name, PLANNER_PLUS) else _SB3_OPTIONS if is_zip else ()
    foreign = [option for option in options if option not in own]
    if foreign:
        owner = (
            f"{PlannerPolicy.name} and {PLANNER_PLUS}"
            if foreign[0] in _PLANNER_OPTIONS
            else f"a {SB3} of Stable-Baselines3"
        )
        raise ValueError(f"policy {name} has no {' or '.join(foreign)}: that is of {owner}")
    if name == PlannerPolicy.name:
        return PlannerPolicy(seed, rules, **options)
    if name in POLICIES:
        return POLICIES[name](seed)
    if is_zip:
        return load_sb3(name, seed=seed, **options)
    from rusol_env.network import NetworkPolicy

    if name in NETWORK_OF:
        weights = shipped(NETWORK_OF[name])[rules.name]
        ModelCard.load(weights.with_suffix(".json")).check(weights)
    else:
        weights = Path(name)
    player = NetworkPolicy.load(weights, name=name)
    # Compile now, so that no time measured later has it in it.
    space = observation_space(Observation(player.observation), False)
    player.act(np.empty((0, *space.shape), space.dtype), np.empty((0, NUM_ACTIONS), np.int8))
    if name == PLANNER_PLUS:
        from rusol_env.planner_plus import PlannerPlusPolicy

        return PlannerPlusPolicy(player.network, seed, rules, source=player.source, **options)
    return player


def load_sb3(path: str | Path, **options: Any) -> SB3Policy:
    """A saved model of Stable-Baselines3 as a policy. **This runs code that the file holds.**

    Args:
        path: the file, ``.zip``.
        options: of `rusol_env.sb3.SB3Policy.load`.

    Warns:
        RunsCodeWarning: before any of it is run.

    Raises:
        ValueError, OSError: as `rusol_env.sb3.SB3Policy.load`.
        ImportError: Stable-Baselines3 is not installed; the message names the extra.
    """
    try:
        from rusol_env import sb3
    except ImportError as error:
        raise ImportError(
            f"a {SB3} of Stable-Baselines3 needs the package {error.name}: pip install 'rusol-env[agents]'"
        ) from error
    return sb3.SB3Policy.load(path, **options)


def as_policy(policy: Any, seed: int = 0, rules: str | Rules = CLASSIC) -> Policy:
    """Make a policy of what somebody brings.

    Args:
        policy: a `Policy`; a name or path, as for `policy_named`; a model of Stable-Baselines3 or sb3-contrib; or a
            function of the "cards" observation and the mask of one game (`CallablePolicy` has others).
        seed: as for `policy_named`.
        rules: as for `policy_named`.

    Raises:
        ValueError: it is none of these; or as `policy_named` and `SB3Policy`.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, (str, Path)):
        return policy_named(str(policy), seed, rules)
    # A model was made by its library, so that this needs not be imported to know one.
    if any(base.__module__.startswith("stable_baselines3.") for base in type(policy).__mro__):
        from rusol_env.sb3 import SB3Policy

        return SB3Policy(policy, seed=seed)
    if callable(policy) and not isinstance(policy, type):
        return CallablePolicy(policy)
    raise ValueError(
        f"{policy!r} is not a policy: give the name of one, or an instance of a rusol_env.Policy, a function of an "
        "observation and a mask, or a model of Stable-Baselines3"
    )
