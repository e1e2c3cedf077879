"""`SB3VecEnv`: the native vector environment as Stable-Baselines3 takes it (extra ``[agents]``)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from rusol_env.deals import check_seed
from rusol_env.rules import CLASSIC, Rules
from rusol_env.vector import RussianSolitaireVectorEnv


class SB3VecEnv(VecEnv):
    """N games as a Stable-Baselines3 `VecEnv`; MaskablePPO finds the action masks in it.

    A game that ends is followed by the next in the same step. Its info then holds
    ``terminal_observation``, ``TimeLimit.truncated``, ``episode`` (``r`` its return, ``l`` its length,
    ``t`` the seconds since this environment was made) and ``is_success``, as `Monitor` and SB3's
    callbacks have them, and ``score``, ``foundation_cards``, ``face_down`` and ``deal_number``.
    The infos of all other games are empty.
    """

    def __init__(self, num_envs: int, rules: str | Rules = CLASSIC, *, seed: int | None = None, **options: Any) -> None:
        """Make `num_envs` games.

        Args:
            num_envs: how many games.
            rules: as for `RussianSolitaireEnv`.
            seed: of the first reset: game i draws its deals from the stream of ``seed + i``.
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
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._returns += rewards
        self._lengths += 1
        ended = np.flatnonzero(dones)
        if ended.size:
            last = found["final_info"]
            seconds = round(time.time() - self._made, 6)
            for i in ended.tolist():
                infos[i] = {
                    "terminal_observation": found["final_obs"][i],
                    "TimeLimit.truncated": bool(truncations[i]),
                    "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i]), "t": seconds},
                    "is_success": bool(last["is_success"][i]),
                    "score": int(last["score"][i]),
                    "foundation_cards": int(last["foundation_cards"][i]),
                    "face_down": int(last["face_down"][i]),
                    "deal_number": int(last["deal_number"][i]),
                }
            self._returns[ended] = 0
            self._lengths[ended] = 0
        return observations, rewards.astype(np.float32), dones, infos

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
