"""The planner with a network beside it."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env.cards import NUM_CARDS
from rusol_env.engine import NUM_ACTIONS
from rusol_env.env import check_finite
from rusol_env.network import Network
from rusol_env.observe import NUM_FEATURES
from rusol_env.planner import Memory, are_alike, drop_beaten, new_memory, race, show_cards
from rusol_env.policies import PlannerPolicy, read_boards, read_masks
from rusol_env.rules import CLASSIC, Rules, rules_named

DEFAULT_MOST: Final = 400
"""Completions looked at for each move, at most."""
# After so many completions the moves that are clearly beaten are dropped, and a time limit is heard.
_SLICE: Final = 16
# Where the moves win in the same completions, so many that can be won are enough.
_ENOUGH: Final = 24


class PlannerPlusPolicy(PlannerPolicy):
    """Looks ahead as planner, at more completions where the choice is close, and asks a network where they are equal.

    The moves race: all that are left are tried in the same completions, and one that is clearly beaten by another is
    dropped (`rusol_env.planner.drop_beaten`). The race ends when one is left, when those that are left have won in the
    same completions, or after `samples`. The network's share of a move counts as `trust` more wins.

    It plays a game alike whatever the batch and the number of threads are, if there is no time limit.
    """

    name = "planner+"

    def __init__(
        self,
        network: Network,
        seed: int = 0,
        rules: str | Rules = CLASSIC,
        *,
        samples: int = DEFAULT_MOST,
        deviations: float = 2.0,
        trust: float = 1.0,
        time_limit: float | None = None,
        threads: int = 1,
        source: dict[str, Any] | None = None,
    ) -> None:
        """
        Args:
            network: that reads "cards", such as those of `distilled`.
            seed: as for the others.
            rules: as for planner.
            samples: as for planner.
            deviations: standard deviations by which a move is clearly beaten, over 0.
            trust: how many wins the network's whole word is worth, 0 or more.
            time_limit: as for planner.
            threads: as for planner.
            source: where the network comes from, for `settings`.

        Raises:
            ValueError: an argument is not valid.
        """
        if network.observation != "cards":
            raise ValueError(f"planner+ shows its network 'cards', and this reads {network.observation!r}")
        if check_finite("deviations", deviations) <= 0:
            raise ValueError(f"deviations is {deviations}: it must be over 0")
        if check_finite("trust", trust) < 0:
            raise ValueError(f"trust is {trust}: it must be 0 or more")
        self.network: Final = network
        self.deviations: Final = float(deviations)
        self.trust: Final = float(trust)
        self._source: Final = dict(source or {})
        self._shown: Final = new_memory(rules_named(rules))
        # float32 (N, 416): what the network holds of each move of the batch that is being thought about
        self._logits: NDArray[np.float32] = np.empty((0, NUM_ACTIONS), np.float32)
        super().__init__(seed, rules, samples=samples, time_limit=time_limit, threads=threads)
        board, stream = np.full((8, NUM_CARDS), -1, np.int8), np.zeros(1, np.uint64)
        race(self._shown, board, 0, 0, self._searches, 0, stream, 0)
        drop_beaten(self._shown, 0, self.deviations)
        are_alike(self._shown, 0)

    @property
    def settings(self) -> dict[str, Any]:
        own = {"deviations": self.deviations, "trust": self.trust, "network": self.network.kind}
        return super().settings | own | self._source

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        """As `PlannerPolicy.act`."""
        boards = read_boards(self.name, observations, len(masks))
        cards = np.empty((len(boards), NUM_CARDS, NUM_FEATURES), np.float32)
        show_cards(self._shown, boards, read_masks(masks, len(boards)), cards)
        self._logits = self.network.logits(cards)
        return super().act(observations, masks)

    def _think(
        self, memory: Memory, board: NDArray[np.int8], masks: NDArray[np.int8], streams: NDArray[np.uint64], i: int
    ) -> None:
        started = time.perf_counter()
        count, hidden = self._begin(memory, board, masks, streams, i)
        if count < 2:
            return
        left = self.samples if hidden > 1 else 1
        won = 0
        while left > 0:
            won += race(memory, board, hidden, count, self._searches, min(left, _SLICE), streams, i)
            left -= _SLICE
            count = drop_beaten(memory, count, self.deviations)
            if count == 1 or (won >= _ENOUGH and are_alike(memory, count)):
                break
            if self.time_limit is not None and time.perf_counter() - started >= self.time_limit:
                break
        actions = memory.actions[:count]
        logits = self._logits[i, actions]
        shares = np.exp(logits - logits.max())
        worth = memory.points[:count] + self.trust * shares / shares.sum()
        masks[i] = 0
        masks[i, actions[worth.argmax()]] = 1
