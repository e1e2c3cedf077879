"""Positions with the solver's word on each legal move: what an agent can learn from that no longer has to ask.

A game is played on a deal that can be won. At each decision the solver, which knows the cards that lie face down, says
of each legal move whether the game can still be won after it. For somebody who sees only what lies face up that is a
fair sample of the move's chance; completions, other ways in which the face-down cards may lie, are more samples of it.
Only the positions are kept where one move wins more often than another: where all moves are as good, there is nothing
to choose. A game that is lost ends, and so do three of four games when nearly all cards lie face up: what follows is
long and seldom a choice.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import kernel
from rusol_env.cards import NUM_CARDS
from rusol_env.deals import check_seed, check_whole, mix
from rusol_env.engine import BOARD_SIZE, NUM_ACTIONS
from rusol_env.env import check_finite
from rusol_env.files import open_zip, write_whole
from rusol_env.labels import Verdict
from rusol_env.models import as_policy
from rusol_env.observe import NUM_FEATURES, encode_cards
from rusol_env.planner import Memory, count_wins, lay_out, new_memory
from rusol_env.policies import read_actions
from rusol_env.rules import CLASSIC, NUM_COLUMNS, Rules, rules_named
from rusol_env.search import joins_last
from rusol_env.solver import Solver, WinnableDeals
from rusol_env.vector import RussianSolitaireVectorEnv

_FORMAT: Final = "rusol-env lessons 2"
# Wins are counted in int8.
MOST_COMPLETIONS: Final = 126
# With so many face-down cards one game in four is played on.
_FEW: Final = 5
_PLAYED_ON: Final = 0.25


@kernel
def _show(
    memory: Memory,
    boards: NDArray[np.int8],
    ends: NDArray[np.int64],
    actions: NDArray[np.int16],
    wins: NDArray[np.int8],
    which: NDArray[np.int64],
    masks: NDArray[np.int8],
    cards: NDArray[np.float32],
    shown: NDArray[np.int8],
) -> int:
    """Write the "cards" observations float32 (K, 52, 24) and wins int8 (K, 416) of the positions `which` (K,).

    Returns the first place of a board that is none, or K.
    """
    for k in range(len(which)):
        at = which[k]
        if lay_out(memory, boards[at]) < 0:
            return k
        masks[:] = 0
        shown[k, :] = -1
        for move in range(0 if at == 0 else ends[at - 1], ends[at]):
            masks[actions[move]] = 1
            shown[k, actions[move]] = wins[move]
        encode_cards(memory.now, masks, False, cards[k])
    return len(which)


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """S positions, and M moves in them."""

    rules: Rules
    boards: NDArray[np.int8]
    """int8 (S, 8, 52): the "board" observations."""
    ends: NDArray[np.int64]
    """int64 (S,): where the moves of each position end among all moves."""
    actions: NDArray[np.int16]
    """int16 (M,): the legal moves, 0 to 415."""
    wins: NDArray[np.int8]
    """int8 (M,): in how many ways in which the face-down cards may lie the solver says the game can be won after each;
    the way in which they do lie is one of them."""
    states: int
    """Positions that were played through, of which these were kept."""
    asked: int
    """Moves that the solver was asked about, of which these were kept."""

    def show(self, which: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """The positions `which`, int64 (K,), as a network reads them.

        Returns:
            "cards" observations, float32 (K, 52, 24), and int8 (K, 416): `wins` for each legal move, else -1.

        Raises:
            ValueError: `which` is not of that kind, or names a lesson that there is none of; or a board is none.
        """
        which = np.asarray(which)
        if which.ndim != 1 or not np.issubdtype(which.dtype, np.integer):
            raise ValueError(f"which is {which.dtype} {which.shape}: it must be whole numbers (K,)")
        if len(which) and not (which.min() >= 0 and which.max() < len(self.ends)):
            raise ValueError(f"there is no such lesson: which must be from 0 to {len(self.ends) - 1}")
        which = np.ascontiguousarray(which, np.int64)
        cards = np.empty((len(which), NUM_CARDS, NUM_FEATURES), np.float32)
        wins = np.empty((len(which), NUM_ACTIONS), np.int8)
        masks = np.empty(NUM_ACTIONS, np.int8)
        found = self.boards, self.ends, self.actions, self.wins
        done = _show(new_memory(self.rules), *found, which, masks, cards, wins)
        if done < len(which):
            raise ValueError(f"the board of lesson {which[done]} is none: the lessons are damaged")
        return cards, wins

    @staticmethod
    def joined(parts: Sequence[Lessons]) -> Lessons:
        """The lessons of all parts, one or more, of one rule set.

        Raises:
            ValueError: there are none, or they are of several rule sets.
        """
        found = sorted({part.rules.name for part in parts})
        if len(found) != 1:
            raise ValueError(f"lessons of one rule set can be joined, and these are of {', '.join(found) or 'none'}")
        before = np.cumsum([0, *(len(part.actions) for part in parts[:-1])])
        return Lessons(
            parts[0].rules,
            np.concatenate([part.boards for part in parts]),
            np.concatenate([part.ends + more for part, more in zip(parts, before, strict=True)]),
            np.concatenate([part.actions for part in parts]),
            np.concatenate([part.wins for part in parts]),
            sum(part.states for part in parts),
            sum(part.asked for part in parts),
        )

    def save(self, path: str | Path) -> None:
        """Write a compressed ``.npz``, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        data = io.BytesIO()
        np.savez_compressed(
            data,
            format=np.array(f"{_FORMAT} {self.rules.name}"),
            boards=self.boards,
            ends=self.ends,
            actions=self.actions,
            wins=self.wins,
            counts=np.array([self.states, self.asked], np.int64),
        )
        write_whole(Path(path), data.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Lessons:
        """Read what `save` wrote; no code is run.

        Raises:
            ValueError: it is damaged, or something else; the message names the file.
            OSError: it cannot be read.
        """
        data = Path(path).read_bytes()
        try:
            open_zip(data).close()
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                name = str(file["format"])
                if not name.startswith(_FORMAT):
                    raise ValueError(f"its format is {name!r}")
                rules = rules_named(name.removeprefix(f"{_FORMAT} "))
                boards, ends, actions, wins = (file[key] for key in ("boards", "ends", "actions", "wins"))
                states, asked = (int(count) for count in file["counts"].astype(np.int64, casting="safe"))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged, or holds no lessons of rusol-env: {error}") from error
        fits = (
            boards.dtype == np.int8
            and ends.ndim == 1
            and boards.shape == (len(ends), NUM_COLUMNS + 1, NUM_CARDS)
            and (ends.dtype, actions.dtype, wins.dtype) == (np.int64, np.int16, np.int8)
            and actions.shape == wins.shape == (int(ends[-1]) if len(ends) else 0,)
            and bool((np.diff(ends, prepend=0) > 0).all())
            and bool(((actions >= 0) & (actions < NUM_ACTIONS)).all())
            and bool((wins >= 0).all())
        )
        if not fits:
            raise ValueError(f"{path} is damaged: its arrays do not fit together")
        return cls(rules, boards, ends, actions, wins, states, asked)


def teach(
    policy: Any,
    rules: str | Rules = CLASSIC,
    seed: int = 0,
    states: int = 100_000,
    *,
    completions: int = 0,
    explore: float = 0.1,
    games: int = 512,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Lessons:
    """Let a policy play deals of the training split that can be won, and ask the solver about every legal move.

    Args:
        policy: plays, in a batch; whatever `evaluate` takes.
        rules: the rule set, or its name.
        seed: what the deals and random moves are drawn from, 0 to 2^64 - 1.
        states: play through so many positions, or a few more: whole steps of the batch.
        completions: ways in which the face-down cards may lie that the solver is asked about too, at most 126.
        explore: how often a random legal move is made instead of the policy's, 0 to 1.
        games: played at once.
        threads: that ask the solver.
        progress: called with the number of positions now and then.

    Raises:
        ValueError: an argument is not valid.
    """
    rules = rules_named(rules)
    seed, states = check_seed(seed), check_whole("states", states, 1)
    policy = as_policy(policy, seed, rules)
    completions = check_whole("completions", completions, 0)
    if completions > MOST_COMPLETIONS:
        raise ValueError(f"completions is {completions}: it must be {MOST_COMPLETIONS} at most")
    threads = check_whole("threads", threads, 1)
    games = check_whole("games", games, 1)
    if not 0 <= check_finite("explore", explore) <= 1:
        raise ValueError(f"explore is {explore}: it must be from 0 to 1")
    env = RussianSolitaireVectorEnv(
        games,
        rules,
        observation=policy.observation,
        autoreset_mode="SameStep",
        deals=WinnableDeals(rules, seed),
    )
    solvers = [Solver(rules) for _ in range(threads)]
    memories = [new_memory(rules) for _ in range(threads)]
    # The games of each thread; slices, since the kernel writes to what they are of.
    bounds = np.linspace(0, games, threads + 1).astype(int).tolist()
    parts = [slice(first, last) for first, last in pairwise(bounds)]
    searches = joins_last(rules)
    chance = np.random.default_rng(seed)
    slots = np.arange(games)
    streams = np.array([mix(np.uint64(seed) ^ np.uint64(slot)) for slot in slots], np.uint64)
    policy.begin(slots, streams.copy())
    boards: list[NDArray[np.int8]] = []
    counts: list[NDArray[np.int64]] = []
    actions: list[NDArray[np.int16]] = []
    wins: list[NDArray[np.int8]] = []
    played = asked = 0
    few = np.zeros(games, np.bool_)
    observations, _ = env.reset(seed=seed)
    with ThreadPoolExecutor(threads) as pool:
        while played < states:
            masks = env.action_masks()

            boards_now = env.rows[:, :BOARD_SIZE].reshape(-1, NUM_COLUMNS + 1, NUM_CARDS)
            verdicts = np.empty(masks.shape, np.int8)
            won = np.empty(masks.shape, np.int8)

            def ask(
                k: int,
                masks: NDArray[np.bool_] = masks,
                boards_now: NDArray[np.int8] = boards_now,
                verdicts: NDArray[np.int8] = verdicts,
                won: NDArray[np.int8] = won,
            ) -> None:
                part = parts[k]
                verdicts[part] = solvers[k].after_moves(env.rows[part], masks[part])
                won[part] = verdicts[part] == Verdict.WINNABLE
                count_wins(memories[k], boards_now[part], masks[part], searches, completions, streams[part], won[part])

            list(pool.map(ask, range(threads)))
            least = np.where(masks, won, MOST_COMPLETIONS + 1).min(axis=1)
            kept = np.flatnonzero(least < won.max(axis=1))
            boards.append(boards_now[kept])
            counts.append(masks[kept].sum(axis=1))
            actions.append(np.nonzero(masks[kept])[1].astype(np.int16))
            wins.append(won[kept][masks[kept]])
            played += games
            asked += int(masks.sum())
            chosen = read_actions(policy, policy.act(observations, masks.view(np.int8)), games)
            random = chance.random(games) < explore
            drawn = np.where(masks, chance.random(masks.shape, np.float32), -1).argmax(axis=1)
            chosen = np.where(random, drawn, chosen)
            lost = verdicts[slots, chosen] == Verdict.UNWINNABLE
            observations, _, terminated, truncated, infos = env.step(chosen)
            before, few = few, infos["face_down"] <= _FEW
            over = lost | (few & ~before & (chance.random(games) >= _PLAYED_ON))
            over &= ~(terminated | truncated)
            if over.any():
                observations, _ = env.reset(options={"reset_mask": over})
            if progress is not None:
                progress(played)
    env.close()
    return Lessons(
        rules,
        np.concatenate(boards),
        np.concatenate(counts).cumsum(),
        np.concatenate(actions),
        np.concatenate(wins),
        played,
        asked,
    )
