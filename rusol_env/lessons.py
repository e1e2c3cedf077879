"""Positions with the solver's word on each legal move: what an agent can learn from that no longer has to ask.

A game is played on a deal that can be won. At each decision the solver, which knows the cards that lie face down, says
of each legal move whether the game can still be won after it. For somebody who sees only what lies face up that is a
fair sample of the move's chance; completions, other ways in which the face-down cards may lie, are more samples of it.
A game that is lost ends, and so do three of four games when nearly all cards lie face up: what follows is long and
seldom a choice.

The solver sees all cards, and he who plays does not: of two moves after which the game can be won he may need the one
that shows him more. So lessons also hold all positions that were played through, with how their games ended, and say of
each move how likely the game is won after it, by a network that has learnt that from such positions before.
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

from rusol_env._jit import int64, kernel
from rusol_env.cards import NUM_CARDS
from rusol_env.deals import check_seed, check_whole, mix
from rusol_env.engine import BOARD_SIZE, NUM_ACTIONS, apply, legal
from rusol_env.env import check_finite
from rusol_env.files import open_zip, write_whole
from rusol_env.labels import Verdict
from rusol_env.models import as_policy
from rusol_env.network import Network
from rusol_env.observe import NUM_FEATURES, encode_cards
from rusol_env.planner import Memory, count_wins, draw, lay_out, new_memory
from rusol_env.policies import read_actions
from rusol_env.rules import CLASSIC, NUM_COLUMNS, Rules, rules_named
from rusol_env.search import joins_last
from rusol_env.solver import Solver, WinnableDeals
from rusol_env.vector import RussianSolitaireVectorEnv

_FORMAT: Final = "rusol-env lessons 4"
# Wins are counted in int8.
MOST_COMPLETIONS: Final = 126
# With so many face-down cards one game in four is played on.
_FEW: Final = 5
_PLAYED_ON: Final = 0.25
# Of games that begin in the last so many steps outcomes are not told: they would be known of the short ones only.
_LONG: Final = 100
# In half of the games random moves are made, in as many as so many first steps.
_EXPLORED: Final = 30
# A move that wins less often than this, beside the most that a move does, is not worth a guess.
_WORTH_A_GUESS: Final = 0.6
# Chances are kept as so many parts; the least that is guessed is one.
_SURE: Final = 255
# Positions that are looked at together.
_TOGETHER: Final = 1000


@kernel
def _show(
    memory: Memory,
    boards: NDArray[np.int8],
    ends: NDArray[np.int64],
    actions: NDArray[np.int16],
    wins: NDArray[np.int8],
    ahead: NDArray[np.uint8],
    which: NDArray[np.int64],
    masks: NDArray[np.int8],
    cards: NDArray[np.float32],
    shown: NDArray[np.int8],
    likely: NDArray[np.float32],
) -> int:
    """Write the "cards" observations float32 (K, 52, 24), wins int8 (K, 416) and what is ahead, float32 (K, 416), of
    the positions `which` (K,).

    Returns the first place of a board that is none, or K.
    """
    for k in range(len(which)):
        at = which[k]
        if lay_out(memory, boards[at]) < 0:
            return k
        masks[:] = 0
        shown[k, :] = -1
        likely[k, :] = 0
        for move in range(0 if at == 0 else ends[at - 1], ends[at]):
            masks[actions[move]] = 1
            shown[k, actions[move]] = wins[move]
            likely[k, actions[move]] = ahead[move] / np.float32(_SURE)
        encode_cards(memory.now, masks, False, cards[k])
    return len(which)


@kernel
def _show_after(
    memory: Memory,
    boards: NDArray[np.int8],
    actions: NDArray[np.int16],
    streams: NDArray[np.uint64],
    legals: NDArray[np.int16],
    masks: NDArray[np.int8],
    cards: NDArray[np.float32],
    some: NDArray[np.int64],
) -> int:
    """Write what is seen in each of K positions, or after one move in each, in a completion that is drawn.

    Args:
        memory: for scratch.
        boards: int8 (K, 8, 52).
        actions: int16 (K,), a legal move in each; or -1 for none.
        streams: uint64 (1,), what completions are drawn from.
        legals: int16 (MAX_LEGAL,), for scratch.
        masks: int8 (416,), for scratch.
        cards: the "cards" observations, float32 (K, 52, 24).
        some: int64 (K,), a move that is legal then, or -1 if none is.

    Returns the first place of a board that is none, or K.
    """
    for k in range(len(actions)):
        if actions[k] >= 0:
            draw(memory, boards[k], streams, 0)
            apply(memory.now, int64(actions[k]))
        elif lay_out(memory, boards[k]) < 0:
            return k
        masks[:] = 0
        count = legal(memory.now, True, True, legals)
        for j in range(count):
            masks[legals[j]] = 1
        some[k] = legals[0] if count > 0 else -1
        encode_cards(memory.now, masks, False, cards[k])
    return len(actions)


def _guess(
    value: Network,
    memory: Memory,
    boards: NDArray[np.int8],
    ends: NDArray[np.int64],
    actions: NDArray[np.int16],
    wins: NDArray[np.int8],
    streams: NDArray[np.uint64],
) -> NDArray[np.uint8]:
    """How likely it is that the game is won after each of M moves in S positions, `Lessons.ahead`.

    Args:
        value: its logits of any legal move are that chance, as log-odds.
        memory: for scratch.
        boards: int8 (S, 8, 52).
        ends: int64 (S,), as `Lessons.ends`.
        actions: int16 (M,).
        wins: int8 (M,).
        streams: uint64 (1,), what completions are drawn from.
    """
    lesson = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    most, least = np.zeros(len(ends)), np.ones(len(ends), np.float32)
    np.maximum.at(most, lesson, wins)
    worth = np.flatnonzero(wins >= _WORTH_A_GUESS * most[lesson])
    likely = np.empty(len(worth), np.float32)
    cards = np.empty((_TOGETHER, NUM_CARDS, NUM_FEATURES), np.float32)
    some = np.empty(_TOGETHER, np.int64)
    scratch = np.empty_like(memory.actions), np.empty(NUM_ACTIONS, np.int8)
    for first in range(0, len(worth), _TOGETHER):
        part = worth[first : first + _TOGETHER]
        number = len(part)
        seen = cards[:number]
        _show_after(memory, boards[lesson[part]], actions[part], streams, *scratch, seen, some)
        odds = value.logits(seen)[np.arange(number), some[:number]]
        # No move is left in a game that is lost, or won: with all cards face up there is nothing to guess.
        likely[first : first + number] = np.where(some[:number] >= 0, 1 / (1 + np.exp(-odds)), 0)
    np.minimum.at(least, lesson[worth], likely)
    ahead = least[lesson]
    ahead[worth] = likely
    return np.maximum(np.rint(_SURE * ahead), 1).astype(np.uint8)


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
    ahead: NDArray[np.uint8]
    """uint8 (M,): the guessed chance, 1 to 255 parts of 255, that the policy wins the game after each, if it can be won
    then; 255 where nothing was guessed."""
    played: NDArray[np.int8]
    """int8 (P, 8, 52): the "board" observations of the positions from which the policy itself played on to the end."""
    outcomes: NDArray[np.int8]
    """int8 (P,): whether it won that, 1 or 0."""
    states: int
    """Positions that were played through, of which these were kept."""
    asked: int
    """Moves that the solver was asked about, of which these were kept."""

    def show(self, which: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int8], NDArray[np.float32]]:
        """The positions `which`, int64 (K,), as a network reads them.

        Returns:
            "cards" observations, float32 (K, 52, 24); int8 (K, 416): `wins` for each legal move, else -1; and float32
            (K, 416): `ahead` for each legal move as a share of 1, else 0.

        Raises:
            ValueError: `which` is not of that kind, or names a lesson that there is none of; or a board is none.
        """
        which = self._checked(which, len(self.ends))
        cards = np.empty((len(which), NUM_CARDS, NUM_FEATURES), np.float32)
        wins = np.empty((len(which), NUM_ACTIONS), np.int8)
        ahead = np.empty((len(which), NUM_ACTIONS), np.float32)
        masks = np.empty(NUM_ACTIONS, np.int8)
        found = self.boards, self.ends, self.actions, self.wins, self.ahead
        done = _show(new_memory(self.rules), *found, which, masks, cards, wins, ahead)
        if done < len(which):
            raise ValueError(f"the board of lesson {which[done]} is none: the lessons are damaged")
        return cards, wins, ahead

    def show_played(self, which: NDArray[np.int64]) -> NDArray[np.float32]:
        """The positions `which`, int64 (K,), of `played`, as a network reads them: float32 (K, 52, 24).

        Raises:
            ValueError: as `show`.
        """
        which = self._checked(which, len(self.played))
        memory = new_memory(self.rules)
        cards = np.empty((len(which), NUM_CARDS, NUM_FEATURES), np.float32)
        none, some = np.full(len(which), -1, np.int16), np.empty(len(which), np.int64)
        scratch = np.zeros(1, np.uint64), np.empty_like(memory.actions), np.empty(NUM_ACTIONS, np.int8)
        done = _show_after(memory, self.played[which], none, *scratch, cards, some)
        if done < len(which):
            raise ValueError(f"the board of position {which[done]} is none: the lessons are damaged")
        return cards

    @staticmethod
    def _checked(which: NDArray[np.int64], number: int) -> NDArray[np.int64]:
        which = np.asarray(which)
        if which.ndim != 1 or not np.issubdtype(which.dtype, np.integer):
            raise ValueError(f"which is {which.dtype} {which.shape}: it must be whole numbers (K,)")
        if len(which) and not (which.min() >= 0 and which.max() < number):
            raise ValueError(f"there is no such lesson: which must be from 0 to {number - 1}")
        return np.ascontiguousarray(which, np.int64)

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
            np.concatenate([part.ahead for part in parts]),
            np.concatenate([part.played for part in parts]),
            np.concatenate([part.outcomes for part in parts]),
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
            ahead=self.ahead,
            played=self.played,
            outcomes=self.outcomes,
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
                ahead, played, outcomes = (file[key] for key in ("ahead", "played", "outcomes"))
                states, asked = (int(count) for count in file["counts"].astype(np.int64, casting="safe"))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged, or holds no lessons of rusol-env: {error}") from error
        fits = (
            boards.dtype == played.dtype == np.int8
            and ends.ndim == outcomes.ndim == 1
            and boards.shape == (len(ends), NUM_COLUMNS + 1, NUM_CARDS)
            and played.shape == (len(outcomes), NUM_COLUMNS + 1, NUM_CARDS)
            and (ends.dtype, actions.dtype, wins.dtype) == (np.int64, np.int16, np.int8)
            and (ahead.dtype, outcomes.dtype) == (np.uint8, np.int8)
            and actions.shape == wins.shape == ahead.shape == (int(ends[-1]) if len(ends) else 0,)
            and bool((np.diff(ends, prepend=0) > 0).all())
            and bool(((actions >= 0) & (actions < NUM_ACTIONS)).all())
            and bool((wins >= 0).all())
            and bool((ahead > 0).all())
            and bool(((outcomes >= 0) & (outcomes <= 1)).all())
        )
        if not fits:
            raise ValueError(f"{path} is damaged: its arrays do not fit together")
        return cls(rules, boards, ends, actions, wins, ahead, played, outcomes, states, asked)


def teach(
    policy: Any,
    rules: str | Rules = CLASSIC,
    seed: int = 0,
    states: int = 100_000,
    *,
    completions: int = 0,
    explore: float = 0.1,
    even: float = 0.0,
    value: Network | None = None,
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
        explore: how often a random legal move is made instead of the policy's, 0 to 1, in half of the games, and in
            those in as many as thirty first steps.
        even: the share that is kept, 0 to 1, of the positions where all moves win as often; all others are kept.
        value: guesses what lies ahead of each move: its logit of any legal move is the chance, as log-odds, that
            the policy wins the game if it can be won. None: nothing is guessed.
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
    for name, share in (("explore", explore), ("even", even)):
        if not 0 <= check_finite(name, share) <= 1:
            raise ValueError(f"{name} is {share}: it must be from 0 to 1")
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
    ahead: list[NDArray[np.uint8]] = []
    # Positions that no random move may follow, the game of each, and of each game whether it was won, or -1.
    through: list[NDArray[np.int8]] = []
    numbers: list[NDArray[np.int64]] = []
    outcomes: list[int] = [-1] * games
    begun = [0] * games
    number = np.arange(games)
    played = asked = 0
    few = np.zeros(games, np.bool_)

    def explored(count: int) -> NDArray[np.int64]:
        """In how many first steps of games random moves may be made."""
        return np.maximum(chance.integers(-_EXPLORED, _EXPLORED, count), 0)

    steps_left = explored(games)
    guesses = np.array([mix(np.uint64(seed))], np.uint64)
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
            choices = masks.sum(axis=1)
            kept = least < won.max(axis=1)
            if even:
                # Where no move wins there is nothing to learn.
                kept |= (choices > 1) & (least > 0) & ~few & (chance.random(games) < even)
            kept = np.flatnonzero(kept)
            boards.append(boards_now[kept])
            counts.append(choices[kept])
            actions.append(np.nonzero(masks[kept])[1].astype(np.int16))
            wins.append(won[kept][masks[kept]])
            alone = steps_left <= 0
            through.append(boards_now[alone])
            numbers.append(number[alone])
            if value is None:
                ahead.append(np.full(len(wins[-1]), _SURE, np.uint8))
            else:
                ahead.append(
                    _guess(value, memories[0], boards[-1], counts[-1].cumsum(), actions[-1], wins[-1], guesses)
                )
            played += games
            asked += int(masks.sum())
            chosen = read_actions(policy, policy.act(observations, masks.view(np.int8)), games)
            random = (chance.random(games) < explore) & (steps_left > 0)
            steps_left -= 1
            drawn = np.where(masks, chance.random(masks.shape, np.float32), -1).argmax(axis=1)
            chosen = np.where(random, drawn, chosen)
            lost = verdicts[slots, chosen] == Verdict.UNWINNABLE
            observations, _, terminated, truncated, infos = env.step(chosen)
            before, few = few, infos["face_down"] <= _FEW
            over = lost | (few & ~before & (chance.random(games) >= _PLAYED_ON))
            ended = over | terminated | truncated
            for slot in np.flatnonzero(ended).tolist():
                # With few cards left face down the game is as good as won.
                outcomes[number[slot]] = int(not (lost[slot] or truncated[slot]))
                number[slot] = len(outcomes)
                outcomes.append(-1)
                begun.append(played // games)
            steps_left[ended] = explored(int(ended.sum()))
            over &= ~(terminated | truncated)
            if over.any():
                observations, _ = env.reset(options={"reset_mask": over})
            if progress is not None:
                progress(played)
    env.close()
    told = np.where(np.array(begun) > played // games - _LONG, -1, outcomes).astype(np.int8)
    of_games = np.concatenate(numbers)
    # One game after the other, which packs best.
    order = np.argsort(of_games, kind="stable")
    order = order[told[of_games[order]] >= 0]
    return Lessons(
        rules,
        np.concatenate(boards),
        np.concatenate(counts).cumsum(),
        np.concatenate(actions),
        np.concatenate(wins),
        np.concatenate(ahead),
        np.concatenate(through)[order],
        told[of_games[order]],
        played,
        asked,
    )
