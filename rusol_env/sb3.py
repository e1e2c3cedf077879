"""Stable-Baselines3 and sb3-contrib (extra ``[agents]``): the games as they take them, their models as policies."""

from __future__ import annotations

import io
import json
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import torch
from gymnasium.spaces import Discrete
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from rusol_env.deals import check_seed, next_below
from rusol_env.engine import NUM_ACTIONS
from rusol_env.env import check_finite
from rusol_env.files import RunsCodeWarning, open_zip
from rusol_env.observe import Observation, observation_space
from rusol_env.policies import SeededPolicy
from rusol_env.rules import CLASSIC, Rules
from rusol_env.solver import Solver
from rusol_env.vector import RussianSolitaireVectorEnv

# The classes whose models are played, and the packages that have them.
CLASSES: Final = {
    "MaskablePPO": "sb3_contrib",
    "PPO": "stable_baselines3",
    "A2C": "stable_baselines3",
    "DQN": "stable_baselines3",
}
_DRAWS: Final = 1 << 31


class SB3VecEnv(VecEnv):
    """N games as a Stable-Baselines3 `VecEnv`; MaskablePPO finds the action masks in it.

    A game that ends is followed by the next in the same step. Its info then holds
    ``terminal_observation``, ``TimeLimit.truncated``, ``episode`` (``r`` its return, ``l`` its length,
    ``t`` the seconds since this environment was made) and ``is_success``, as `Monitor` and SB3's
    callbacks have them, and ``score``, ``foundation_cards``, ``face_down`` and ``deal_number``.
    The infos of all other games are empty.
    """

    def __init__(
        self,
        num_envs: int,
        rules: str | Rules = CLASSIC,
        *,
        seed: int | None = None,
        lost_reward: float | None = None,
        **options: Any,
    ) -> None:
        """Make `num_envs` games.

        Args:
            num_envs: how many games.
            rules: as for `RussianSolitaireEnv`.
            seed: of the first reset: game i draws its deals from the stream of ``seed + i``.
            lost_reward: a game also ends, as terminated, as soon as the solver, which knows all cards, proves in a
                short look that it can no longer be won: so the learner is told at once which move it was. However a
                game is lost, the move that does it has this reward added; what `max_steps` stops is not lost. None
                lets games go on. Observations tell nothing more than before.
            options: the other arguments of `RussianSolitaireVectorEnv`, save ``autoreset_mode``, ``copy`` (learners
                keep what they are handed) and ``render_mode``; ``deals`` must be an iterator without end.

        Raises:
            ValueError: an argument has no valid value, or is one of those.
        """
        for name in ("autoreset_mode", "copy", "render_mode"):
            if name in options:
                raise ValueError(f"{name}= is not for SB3VecEnv: learners need it as it is")
        if not isinstance(options.get("deals"), Iterator | None):
            raise ValueError(
                "deals= is not for SB3VecEnv, save an endless iterator: games with no deal left would keep SB3's "
                "evaluation waiting for ever; use split='eval' and a seed there, and rusol_env.evaluate to play each "
                "of a suite's deals once"
            )
        if lost_reward is not None:
            lost_reward = check_finite("lost_reward", lost_reward)
        self.games = RussianSolitaireVectorEnv(num_envs, rules, autoreset_mode="SameStep", **options)
        spaces: tuple[Any, Any] = (self.games.single.observation_space, self.games.single.action_space)
        super().__init__(num_envs, *spaces)  # pyright: ignore[reportUnknownMemberType]
        if seed is not None:
            self.seed(seed)
        self._actions: NDArray[np.int64] = np.zeros(num_envs, np.int64)
        # float64 (N,) and int64 (N,): return and length of the episodes in progress
        self._returns = np.zeros(num_envs, np.float64)
        self._lengths = np.zeros(num_envs, np.int64)
        self._made = time.time()
        self._lost_reward = 0.0 if lost_reward is None else lost_reward
        take_back = bool(options.get("take_back", False))
        self._solver = None if lost_reward is None else Solver(rules, take_back=take_back)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the next reset: game i draws its deals from the stream of ``seed + i``.

        Raises:
            ValueError: `seed` is not valid, or its last successor is not.
        """
        if seed is not None:
            seed = check_seed(seed)
            check_seed(seed + self.num_envs - 1)
        return super().seed(seed)

    def reset(self) -> NDArray[Any]:
        """Start an episode in each game; seeds and options that were set are used once.

        Raises:
            ValueError: the options set for the games differ, or are not valid.
        """
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ValueError("the games of a batch take the same options: set one dict for all")
        observations, _ = self.games.reset(seed=list(self._seeds), options=options or None)
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0
        self._lengths[:] = 0
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions, (N,), that `step_wait` plays."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play an action in each game: observations, rewards float32 (N,), dones bool (N,) and infos."""
        observations, rewards, terminations, truncations, found = self.games.step(self._actions)
        dones = terminations | truncations
        lost = np.zeros(self.num_envs, np.bool_)
        if self._solver is not None:
            lost = self._solver.lost(self.games.rows) & ~dones
            stuck = terminations & ~found["final_info"]["is_success"] if dones.any() else lost
            rewards = rewards + (lost | stuck) * self._lost_reward
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones).tolist():
            infos[i] = self._last_info(found["final_info"], i, found["final_obs"][i], bool(truncations[i]))
        if lost.any():
            for i in np.flatnonzero(lost).tolist():
                infos[i] = self._last_info(found, i, observations[i], False)
            observations, _ = self.games.reset(options={"reset_mask": lost})
            dones |= lost
        self._returns[dones] = 0
        self._lengths[dones] = 0
        return observations, rewards.astype(np.float32), dones, infos

    def _last_info(self, last: dict[str, Any], i: int, observation: NDArray[Any], truncated: bool) -> dict[str, Any]:
        """What is told of game i where it ends."""
        seconds = round(time.time() - self._made, 6)
        return {
            "terminal_observation": observation,
            "TimeLimit.truncated": truncated,
            "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i]), "t": seconds},
            "is_success": bool(last["is_success"][i]),
            "score": int(last["score"][i]),
            "foundation_cards": int(last["foundation_cards"][i]),
            "face_down": int(last["face_down"][i]),
            "deal_number": int(last["deal_number"][i]),
        }

    def close(self) -> None:
        """End the threads."""
        self.games.close()

    def action_masks(self) -> NDArray[np.bool_]:
        """The action masks of all games, bool (N, 416)."""
        return self.games.action_masks()

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """The attribute of the games of that name, once a game; they all have the same.

        Raises:
            AttributeError: `RussianSolitaireEnv` has no such attribute.
        """
        if attr_name == "action_masks":
            return [partial(self._masks_of, i) for i in self._get_indices(indices)]
        value = getattr(self.games.single, attr_name)
        return [value for _ in self._get_indices(indices)]

    def _masks_of(self, game: int) -> NDArray[np.bool_]:
        return self.action_masks()[game]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Not possible: the games' options are fixed when they are made.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(f"{attr_name} cannot be set: make a new SB3VecEnv with the options you want")

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """``action_masks`` of the games, the one method that they have for learners: bool (N, 416).

        Raises:
            AttributeError: another method is asked for.
        """
        if method_name != "action_masks":
            raise AttributeError(f"games in a batch have no method {method_name!r}: only 'action_masks'")
        masks = self.action_masks()
        # One array, not a list of N: sb3-contrib stacks what it gets.
        return cast(list[Any], masks if indices is None else masks[list(self._get_indices(indices))])

    def env_is_wrapped(self, wrapper_class: type[Any], indices: int | Iterable[int] | None = None) -> list[bool]:
        """True for `Monitor`, whose ``episode`` infos these games give; False for all else."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]


class SB3Policy(SeededPolicy):
    """A model of MaskablePPO, PPO, A2C or DQN as a policy; its `observation` is the one that the model was made for.

    MaskablePPO is handed the masks. The others know none: by default they play what they would play, and an illegal
    action is refused and counted as a step, over and over by a deterministic model, until the game is stopped. That is
    their honest result. With `only_legal` they play the legal action that they hold best instead.

    A model of ``thoughtful=True`` games with "cards" cannot be told apart from others: it plays blindly here.
    """

    def __init__(
        self,
        model: Any,
        *,
        name: str | None = None,
        deterministic: bool = True,
        only_legal: bool = False,
        seed: int = 0,
    ) -> None:
        """
        Args:
            model: the model.
            name: of the policy; by default the model's class in lower case.
            deterministic: play the action with the highest probability or value; if not, draw one by its probability,
                of DQN as it explores: any, at its exploration rate.
            only_legal: of a model without masks, leave illegal actions out.
            seed: what actions are drawn from, if they are.

        Raises:
            ValueError: no model of these classes, or one of other observations or actions.
        """
        super().__init__(seed)
        self.kind: Final = _class_of(model)
        self.model: Final = model
        self.observation = observation_of(model)
        if model.action_space != Discrete(NUM_ACTIONS):
            raise ValueError(f"the model's actions are {model.action_space}: they must be Discrete({NUM_ACTIONS})")
        self.name = name or self.kind.lower()
        self.deterministic: Final = deterministic
        self.only_legal: Final = only_legal or self.kind == "MaskablePPO"
        self._read_from: dict[str, str] = {}

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "model": self.kind,
            "deterministic": self.deterministic,
            "only_legal": self.only_legal,
            **self._read_from,
        }

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        if self.deterministic:
            return self._scores(observations, masks).argmax(axis=1)
        edges = self.probabilities(observations, masks).cumsum(axis=1)
        streams = self._grow(len(masks))
        draws = np.array([next_below(streams, i, _DRAWS) for i in range(len(masks))]) / _DRAWS
        return (edges > (draws * edges[:, -1])[:, None]).argmax(axis=1)

    def probabilities(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.floating[Any]]:
        """The model's distribution, float64 (N, 416), of which a deterministic policy takes the peak."""
        scores = self._scores(observations, masks)
        if self.kind == "DQN":
            rate, allowed = self.model.exploration_rate, np.isfinite(scores)
            shares = allowed * (rate / allowed.sum(axis=1, keepdims=True))
            shares[np.arange(len(shares)), scores.argmax(axis=1)] += 1 - rate
            return shares
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def _scores(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.float64]:
        """Log-probabilities or values of the actions, float64 (N, 416); -inf for those that are left out."""
        policy = self.model.policy
        policy.set_training_mode(False)
        with torch.no_grad():
            seen, _ = policy.obs_to_tensor(observations)
            found = policy.q_net(seen) if self.kind == "DQN" else policy.get_distribution(seen).distribution.logits
        scores: NDArray[np.float64] = found.cpu().numpy().astype(np.float64)
        if self.only_legal:
            scores[masks == 0] = -np.inf
        return scores

    @classmethod
    def load(cls, path: str | Path, *, device: str = "cpu", name: str | None = None, **options: Any) -> SB3Policy:
        """Read a model that Stable-Baselines3 saved. **This runs code that the file holds** (cloudpickle).

        What can be told without running any is looked at first: that it is such a file, of which class the model is
        (from the buffer and the policy that it names, since it does not say), and of which observations and actions.

        Args:
            path: the file, ``.zip``.
            device: where it computes, such as ``"cpu"`` or ``"cuda"``.
            name: of the policy; by default the path.
            options: the others of `SB3Policy`.

        Warns:
            RunsCodeWarning: before any of it is run.

        Raises:
            ValueError: it is damaged, foreign, or of another class or game; the message names the file.
            OSError: it cannot be read.
        """
        path = Path(path)
        data = path.read_bytes()
        kind = _class_in(data, path)
        warnings.warn(
            f"reading {path} runs code that it holds, as every saved model of Stable-Baselines3 does: it must be one "
            "that you trust",
            RunsCodeWarning,
            stacklevel=2,
        )
        try:
            model = getattr(import_module(CLASSES[kind]), kind).load(io.BytesIO(data), device=device)
        except Exception as error:  # what somebody's pickles raise can be anything
            raise ValueError(f"{path} could not be read as a model of {kind}: {error!r}") from error
        try:
            policy = cls(model, name=name or str(path), **options)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        policy._read_from = {"sha256": sha256(data).hexdigest()}
        return policy


def _class_of(model: Any) -> str:
    """Which of `CLASSES` a model is of, or is derived from."""
    for base in type(model).__mro__:
        if base.__module__.split(".")[0] == CLASSES.get(base.__name__):
            return base.__name__
    raise ValueError(f"a {type(model).__name__} cannot be played: models of {', '.join(CLASSES)} can")


def observation_of(model: Any) -> str:
    """The kind of observation that a model was made for, ``"cards"`` or ``"board"``.

    Raises:
        ValueError: it was made for others.
    """
    for kind in Observation:
        if model.observation_space == observation_space(kind, False):
            return kind.value
    spaces = " or ".join(f"{kind.value!r}, {observation_space(kind, False)}" for kind in Observation)
    raise ValueError(f"the model's observations are {model.observation_space}: they must be {spaces}")


def _class_in(file: bytes, path: Path) -> str:
    """Which of `CLASSES` the model in a file is of, told without unpickling; `path` is for messages.

    Such a file holds ``data``, a JSON object of the model's attributes, where whatever is no plain value is an object
    of its pickle and some readable attributes.
    """
    try:
        archive = open_zip(file)
        data: Any = json.loads(archive.read("data")) if "data" in archive.namelist() else None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, or no saved model of Stable-Baselines3: {error}") from error
    if not isinstance(data, dict) or "policy_class" not in data or "observation_space" not in data:
        raise ValueError(f"{path} is no saved model of Stable-Baselines3: there is no data of one in it")
    told = cast(dict[str, Any], data)
    module, buffer = _module_in(told, "policy_class"), _module_in(told, "rollout_buffer_class")
    kind = None
    if "exploration_rate" in told and "n_quantiles" not in told:
        kind = "DQN"
    elif "clip_range" in told and ".recurrent." not in module:
        kind = "MaskablePPO" if ".maskable." in f"{module} {buffer}" else "PPO"
    elif "normalize_advantage" in told and "clip_range" not in told and "cg_max_steps" not in told:
        kind = "A2C"
    if kind is None:
        raise ValueError(
            f"{path} is no model of {', '.join(CLASSES)}: its policy is of {module or 'an unknown module'}"
        )
    _check_importable(path, module)
    return kind


def _module_in(data: dict[str, Any], attribute: str) -> str:
    """The name of the module of a class that is among a saved model's attributes; empty if it is not told."""
    told = data.get(attribute)
    return str(cast(dict[str, Any], told).get("__module__", "")) if isinstance(told, dict) else ""


def _check_importable(path: Path, module: str) -> None:
    # A pickle names the modules of its classes; a policy class of one's own is often in none that is installed.
    package = module.split(".")[0]
    if package and package != "__main__" and find_spec(package) is None:
        raise ValueError(
            f"{path} needs the module {module}, where its policy class is, and there is none here: "
            "set PYTHONPATH to the folder that has it"
        )
