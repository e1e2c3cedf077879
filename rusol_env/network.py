"""Small networks that play: read from a file that holds numbers only, and worked out in the same order everywhere.

A *structured* network has a row for each card. Each row starts as what `rusol_env.relations` tells of the card, is
mixed with the rows of the cards that it has to do with, and each legal move is then weighed by the rows of the cards
that it concerns. An *MLP* is the plain network of Stable-Baselines3. `agents/network.py` trains both and writes the
files.

All sums are taken in one order, by kernels, and never by a BLAS: a position is worth the same to the last bit in every
batch and, but for the tanh of an MLP, on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rusol_env._jit import kernel
from rusol_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.engine import NUM_ACTIONS
from rusol_env.observe import NUM_FEATURES, Observation, observation_space
from rusol_env.policies import Policy, read_masks
from rusol_env.relations import (
    NUM_CONCERNED,
    NUM_MOVE_FEATURES,
    NUM_NEIGHBOURS,
    NUM_RELATIONS,
    NUM_SPECIALS,
    inputs,
)

FORMAT: Final = "rusol-env network 1"
"""What the files say that they are, in their metadata."""
STRUCTURED: Final = "structured"
MLP: Final = "mlp"
# A row is mixed with itself, its neighbours, the means of the next higher and lower rank and of all cards; and, but in
# the networks of version 0.1.0, with the means of the cards below it and of those on top of it in its column.
_NUM_MIXED_FIRST: Final = NUM_NEIGHBOURS + 4
NUM_MIXED: Final = _NUM_MIXED_FIRST + 2

Arrays = Mapping[str, NDArray[np.float32]]


@kernel
def _add_products(rows: NDArray[np.float32], weights: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """``out += rows @ weights``, each sum in the order of the row.

    Two rows and four weights at a time: one by one, each addition would wait for the one before it to be stored.
    """
    number, size = weights.shape
    even = len(rows) - len(rows) % 2
    whole = number - number % 4
    for r in range(0, even, 2):
        for k in range(0, whole, 4):
            a0, a1, a2, a3 = rows[r, k], rows[r, k + 1], rows[r, k + 2], rows[r, k + 3]
            b0, b1, b2, b3 = rows[r + 1, k], rows[r + 1, k + 1], rows[r + 1, k + 2], rows[r + 1, k + 3]
            # Most of what a network reads first is 0.
            if a0 == a1 == a2 == a3 == b0 == b1 == b2 == b3 == 0:
                continue
            for j in range(size):
                w0, w1, w2, w3 = weights[k, j], weights[k + 1, j], weights[k + 2, j], weights[k + 3, j]
                out[r, j] = (((out[r, j] + a0 * w0) + a1 * w1) + a2 * w2) + a3 * w3
                out[r + 1, j] = (((out[r + 1, j] + b0 * w0) + b1 * w1) + b2 * w2) + b3 * w3
    for r in range(len(rows)):
        for k in range(whole if r < even else 0, number):
            value = rows[r, k]
            if value != 0:
                for j in range(size):
                    out[r, j] += value * weights[k, j]


@kernel
def _put(row: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    for j in range(len(out)):
        out[j] = row[j]


@kernel
def _rectify(out: NDArray[np.float32]) -> None:
    for j in range(len(out)):
        out[j] = max(out[j], np.float32(0.0))


@kernel
def _mean(rows: NDArray[np.float32], first: int, step: int, number: int, out: NDArray[np.float32]) -> None:
    """The mean of every step-th row from `first`."""
    out[:] = 0
    for r in range(number):
        for j in range(len(out)):
            out[j] += rows[first + r * step, j]
    for j in range(len(out)):
        out[j] /= np.float32(number)


@kernel
def _put_column_means(
    rows: NDArray[np.float32],
    neighbours: NDArray[np.int64],
    base: int,
    toward: int,
    total: NDArray[np.float32],
    out: NDArray[np.float32],
    first: int,
) -> None:
    """Write to columns `first` and up of `out` the mean row of the cards that lie below each (`toward` 1, the way on
    from one to the next being up), or on top of it (0); zeros where there are none.

    Args:
        rows: float32 (57, width).
        neighbours: int64 (52, 4), of one position, whose card c has the number ``base + c``.
        base: the number of the first card.
        toward: 0 or 1.
        total: float32 (width,), for scratch.
        out: float32 (52, 10 width).
        first: where the means go.
    """
    width = len(total)
    for c in range(NUM_CARDS):
        out[c, first : first + width] = 0
    for c in range(NUM_CARDS):
        if base <= neighbours[c, 1 - toward] < base + NUM_CARDS:
            continue
        # The first of its column, as one looks.
        total[:] = 0
        passed = 0
        card = c
        while True:
            for j in range(width):
                out[card, first + j] = total[j] / np.float32(max(passed, 1))
            on = neighbours[card, toward] - base
            if not 0 <= on < NUM_CARDS or passed == NUM_CARDS:
                break
            for j in range(width):
                total[j] += rows[card, j]
            passed += 1
            card = on


@kernel
def _structured(
    features: NDArray[np.float32],
    neighbours: NDArray[np.int64],
    games: NDArray[np.int64],
    actions: NDArray[np.int64],
    concerned: NDArray[np.int64],
    moves: NDArray[np.float32],
    encode: NDArray[np.float32],
    card: NDArray[np.float32],
    special: NDArray[np.float32],
    mix: NDArray[np.float32],
    mix_bias: NDArray[np.float32],
    summary: NDArray[np.float32],
    summary_bias: NDArray[np.float32],
    weigh: NDArray[np.float32],
    weigh_bias: NDArray[np.float32],
    worth: NDArray[np.float32],
    worth_bias: NDArray[np.float32],
    rows: NDArray[np.float32],
    mixed: NDArray[np.float32],
    around: NDArray[np.float32],
    asked: NDArray[np.float32],
    hidden: NDArray[np.float32],
    found: NDArray[np.float32],
    logits: NDArray[np.float32],
) -> None:
    """Fill the logits, float32 (N, 416), zeros before, from `Inputs` and the network's weights.

    Of the last, `rows` float32 (57, width), `mixed` float32 (52, width), `around` float32 (52, 8 or 10 width), `asked`
    float32 (416, 6 width + 10 + hidden), `hidden` float32 (416, hidden) and `found` float32 (416, 1) are for scratch.
    """
    number = features.shape[0]
    width = rows.shape[1]
    some = NUM_CONCERNED * width
    at = 0
    for k in range(NUM_SPECIALS):
        _put(special[k], rows[NUM_CARDS + k])
    for i in range(number):
        first = at
        while at < len(games) and games[at] == i:
            at += 1
        count = at - first
        if count == 0:
            # No moves, as in a finished game.
            continue
        base = i * NUM_CARDS
        # Rows of this position come first in `rows`, the special ones after them.
        specials = number * NUM_CARDS - NUM_CARDS
        for c in range(NUM_CARDS):
            _put(card[c], rows[c])
        _add_products(features[i], encode, rows[:NUM_CARDS])
        for c in range(NUM_CARDS):
            _rectify(rows[c])
        for layer in range(mix.shape[0]):
            for c in range(NUM_CARDS):
                _put(rows[c], around[c, :width])
                for k in range(NUM_NEIGHBOURS):
                    row = neighbours[i, c, k]
                    row -= base if row < number * NUM_CARDS else specials
                    _put(rows[row], around[c, (1 + k) * width : (2 + k) * width])
            for rank in range(NUM_RANKS):
                for k in range(2):
                    start = (NUM_NEIGHBOURS + 1 + k) * width
                    part = around[rank, start : start + width]
                    other = rank + 1 - 2 * k
                    if 0 <= other < NUM_RANKS:
                        _mean(rows, other, NUM_RANKS, NUM_SUITS, part)
                    else:
                        part[:] = 0
                    for suit in range(1, NUM_SUITS):
                        _put(part, around[suit * NUM_RANKS + rank, start : start + width])
            start = (_NUM_MIXED_FIRST - 1) * width
            _mean(rows, 0, 1, NUM_CARDS, around[0, start : start + width])
            for c in range(1, NUM_CARDS):
                _put(around[0, start : start + width], around[c, start : start + width])
            if around.shape[1] == NUM_MIXED * width:
                start += width
                _put_column_means(rows, neighbours[i], base, 1, mixed[0], around, start)
                _put_column_means(rows, neighbours[i], base, 0, mixed[0], around, start + width)
            for c in range(NUM_CARDS):
                _put(mix_bias[layer], mixed[c])
            _add_products(around, mix[layer], mixed)
            for c in range(NUM_CARDS):
                for j in range(width):
                    rows[c, j] += max(mixed[c, j], np.float32(0.0))
        _mean(rows, 0, 1, NUM_CARDS, around[0, :width])
        most = around[0, width : 2 * width]
        _put(rows[0], most)
        for c in range(1, NUM_CARDS):
            for j in range(width):
                most[j] = max(most[j], rows[c, j])
        _put(summary_bias, hidden[0])
        _add_products(around[:1, : 2 * width], summary, hidden[:1])
        _rectify(hidden[0])
        for k in range(count):
            for j in range(NUM_CONCERNED):
                row = concerned[first + k, j]
                row -= base if row < number * NUM_CARDS else specials
                _put(rows[row], asked[k, j * width : (j + 1) * width])
            _put(moves[first + k], asked[k, some : some + NUM_MOVE_FEATURES])
            _put(hidden[0], asked[k, some + NUM_MOVE_FEATURES :])
        for k in range(count):
            _put(weigh_bias, hidden[k])
            found[k, 0] = worth_bias[0]
        _add_products(asked[:count], weigh, hidden[:count])
        for k in range(count):
            _rectify(hidden[k])
        _add_products(hidden[:count], worth, found[:count])
        for k in range(count):
            logits[i, actions[first + k]] = found[k, 0]


@kernel
def _layer(
    rows: NDArray[np.float32], weights: NDArray[np.float32], bias: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """``out = rows @ weights + bias``."""
    for i in range(rows.shape[0]):
        _put(bias, out[i])
    _add_products(rows, weights, out)


class Network:
    """A network that weighs actions. Frozen; `load` reads one from a file."""

    def __init__(self, arrays: Arrays, kind: str, observation: str = "cards", activation: str = "relu") -> None:
        """
        Args:
            arrays: float32, as `shapes` names them; layers have the shape (out, in) of PyTorch's.
            kind: ``"structured"`` or ``"mlp"``.
            observation: what it reads, ``"cards"`` or, an MLP, ``"board"``.
            activation: of an MLP, ``"relu"`` or ``"tanh"``.

        Raises:
            ValueError: the arrays are not those of such a network.
        """
        if kind not in (STRUCTURED, MLP):
            raise ValueError(f"the kind of network is {kind!r}: it must be {STRUCTURED} or {MLP}")
        if observation not in ("cards", "board") or (kind == STRUCTURED and observation != "cards"):
            raise ValueError(f"a {kind} network cannot read the observation {observation!r}")
        if activation not in ("relu", "tanh"):
            raise ValueError(f"the activation is {activation!r}: it must be relu or tanh")
        self.kind: Final = kind
        self.observation: Final = observation
        self.activation: Final = activation
        _check(arrays, kind, observation)
        # Kernels add up along a layer's inputs: those come first. Copies, since a kernel would be compiled anew for
        # arrays that are for reading only, as those of a file are.
        self._arrays: Final = {
            name: np.array(array.T if name.endswith(".weight") else array, order="C") for name, array in arrays.items()
        }
        self._mixes: Final = _stacked(self._arrays) if kind == STRUCTURED else None

    @property
    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Its weights as the constructor takes them."""
        return {name: array.T if name.endswith(".weight") else array for name, array in self._arrays.items()}

    def logits(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """What each action of N positions is worth.

        Args:
            observations: (N, 52, 24) float32 or (N, 8, 52) int8, as `observation` says.

        Returns:
            float32 (N, 416); 0 in a structured network for actions that are not legal by the observation.

        Raises:
            ValueError: they have another shape; or those that a structured network reads have values beyond 0 to 1.
        """
        shape = observation_space(Observation(self.observation), False).shape
        if observations.shape[1:] != shape:
            rest = ", ".join(map(str, shape))
            raise ValueError(
                f"the network reads {self.observation!r} observations, (N, {rest}), not {observations.shape}"
            )
        return self._forward(observations) if self._mixes is None else self._weigh_moves(observations, *self._mixes)

    def _weigh_moves(
        self, observations: NDArray[Any], mix: NDArray[np.float32], mix_bias: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        arrays = self._arrays
        width: int = arrays["special"].shape[1]
        hidden = len(arrays["worth.weight"])
        logits = np.zeros((len(observations), NUM_ACTIONS), np.float32)
        _structured(
            *inputs(observations),
            arrays["encode.weight"],
            arrays["card"] + arrays["encode.bias"],
            arrays["special"],
            mix,
            mix_bias,
            arrays["summary.weight"],
            arrays["summary.bias"],
            arrays["weigh.weight"],
            arrays["weigh.bias"],
            arrays["worth.weight"],
            arrays["worth.bias"],
            np.empty((NUM_CARDS + NUM_SPECIALS, width), np.float32),
            np.empty((NUM_CARDS, width), np.float32),
            np.empty((NUM_CARDS, mix.shape[1]), np.float32),
            np.empty((NUM_ACTIONS, NUM_CONCERNED * width + NUM_MOVE_FEATURES + hidden), np.float32),
            np.empty((NUM_ACTIONS, hidden), np.float32),
            np.empty((NUM_ACTIONS, 1), np.float32),
            logits,
        )
        return logits

    def _forward(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        rows = np.ascontiguousarray(observations, np.float32).reshape(len(observations), len(self._arrays["0.weight"]))
        last = len(self._arrays) // 2 - 1
        for at in range(last + 1):
            weights = self._arrays[f"{at}.weight"]
            out = np.empty((len(rows), weights.shape[1]), np.float32)
            _layer(rows, weights, self._arrays[f"{at}.bias"], out)
            if at < last:
                out = np.maximum(out, 0) if self.activation == "relu" else np.tanh(out)
            rows = out
        return rows

    @classmethod
    def load(cls, path: str | Path) -> Network:
        """Read a network from a safetensors file, which can run no code.

        Raises:
            ValueError: it is damaged, or holds something else; the message names the file.
            OSError: it cannot be read.
            ImportError: safetensors is not installed; the message names the extra.
        """
        return cls.of_bytes(Path(path).read_bytes(), path)

    @classmethod
    def of_bytes(cls, data: bytes, path: str | Path) -> Network:
        """The network in the bytes of such a file; `path` is for messages. Raises as `load`."""
        try:
            from safetensors import SafetensorError, numpy
        except ImportError as error:
            raise ImportError(f"{path} needs the package safetensors: pip install 'rusol-env[ppo]'") from error
        try:
            arrays = numpy.load(data)
            told = _metadata(data)
            if told.get("format") != FORMAT:
                raise ValueError(f"its format is {told.get('format')!r} and not {FORMAT!r}")
            return cls(arrays, *(told.get(key, "") for key in ("kind", "observation", "activation")))
        except KeyError as error:
            raise ValueError(f"{path} is no network of rusol-env: it holds numbers of the type {error}") from error
        except (SafetensorError, ValueError) as error:
            raise ValueError(f"{path} is damaged, or no network of rusol-env: {error}") from error


def _metadata(data: bytes) -> dict[str, str]:
    """The texts at the head of a safetensors file; its library reads them from files on disk only."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]).get("__metadata__") or {}


def _mixes(arrays: Arrays) -> list[str]:
    """The names of the layers that mix rows."""
    number = sum(name.startswith("mix.") and name.endswith(".weight") for name in arrays)
    return [f"mix.{at}" for at in range(number)]


def _stacked(arrays: Arrays) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weights float32 (L, 8 or 10 width, width) and biases float32 (L, width) of the layers that mix; L may be 0."""
    names, width = _mixes(arrays), arrays["special"].shape[1]
    weights = np.array([arrays[f"{name}.weight"] for name in names], np.float32)
    biases = np.array([arrays[f"{name}.bias"] for name in names], np.float32)
    read = weights.shape[1] if names else NUM_MIXED * width
    return weights.reshape(-1, read, width), biases.reshape(-1, width)


def shapes(arrays: Arrays, kind: str, observation: str) -> dict[str, tuple[int, ...]]:
    """The names and shapes of all arrays of a network that has the sizes of this one.

    Raises:
        KeyError: an array is missing that tells a size.
    """
    found: dict[str, tuple[int, ...]] = {}

    def layer(name: str, read: int, wrote: int) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = (wrote, read), (wrote,)

    if kind == MLP:
        size = int(np.prod(observation_space(Observation(observation), False).shape))
        last = max(len(arrays) // 2 - 1, 0)
        for at in range(last + 1):
            wrote = NUM_ACTIONS if at == last else arrays[f"{at}.bias"].size
            layer(str(at), size, wrote)
            size = wrote
        return found
    width, hidden = arrays["special"].size // NUM_SPECIALS, arrays["worth.weight"].size
    found["card"], found["special"] = (NUM_CARDS, width), (NUM_SPECIALS, width)
    layer("encode", NUM_FEATURES + NUM_RELATIONS, width)
    names = _mixes(arrays)
    of_first = bool(names) and arrays[f"{names[0]}.weight"].size == _NUM_MIXED_FIRST * width**2
    for name in names:
        layer(name, (_NUM_MIXED_FIRST if of_first else NUM_MIXED) * width, width)
    layer("summary", 2 * width, hidden)
    layer("weigh", NUM_CONCERNED * width + NUM_MOVE_FEATURES + hidden, hidden)
    layer("worth", hidden, 1)
    return found


def _check(arrays: Arrays, kind: str, observation: str) -> None:
    try:
        wanted = shapes(arrays, kind, observation)
    except KeyError as error:
        raise ValueError(f"a {kind} network has an array {error}, and this has not") from error
    for name, shape in wanted.items():
        if name not in arrays:
            raise ValueError(f"a {kind} network has an array {name!r}, and this has not")
        array = arrays[name]
        if array.shape != shape or array.dtype != np.float32:
            raise ValueError(f"its array {name!r} is {array.dtype} {array.shape}: it must be float32 {shape}")
        if not array.size or not np.isfinite(array).all():
            raise ValueError(f"its array {name!r} is empty, or has an entry that is no number")
    if len(arrays) != len(wanted):
        raise ValueError(f"its array {min(set(arrays) - set(wanted))!r} is of no {kind} network")


class NetworkPolicy(Policy):
    """Plays the legal action that a network holds best; of equal ones the first.

    A network has no memory, and where moves can be taken back by others it may go in circles. So in a position that
    its game was in before, the policy plays the next best action, and so on; `begin` tells it where a game begins.
    """

    def __init__(self, network: Network, name: str = "network", source: Mapping[str, Any] | None = None) -> None:
        """
        Args:
            network: the network.
            name: of the policy.
            source: where it comes from, for `settings`.
        """
        self.network: Final = network
        self.name = name
        self.observation = network.observation
        self.source: Final = dict(source or {})
        # For each place of the batch where a game began: how often it was in each position, by a hash of that.
        self._visits: dict[int, dict[int, int]] = {}

    @classmethod
    def load(cls, path: str | Path, name: str | None = None) -> NetworkPolicy:
        """Read the network of a policy from a file, as `Network.load`; by default the path is its name."""
        data = Path(path).read_bytes()
        return cls(Network.of_bytes(data, path), name or str(path), {"sha256": sha256(data).hexdigest()})

    @property
    def settings(self) -> dict[str, Any]:
        return {"network": self.network.kind} | self.source

    def begin(self, slots: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        self._visits |= {slot: {} for slot in slots.tolist()}

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        masks = read_masks(masks, len(observations))
        logits = self._legal(observations, masks)
        actions = logits.argmax(axis=1)
        # Of a finished game any action is ignored.
        for slot in np.flatnonzero(~masks.all(axis=1)).tolist():
            visits = self._visits.get(slot)
            if visits is None:
                continue
            position = hash(observations[slot].tobytes())
            times = visits[position] = visits.get(position, 0) + 1
            if times > 1:
                best = np.argsort(-logits[slot], kind="stable")[: np.count_nonzero(masks[slot])]
                actions[slot] = best[(times - 1) % len(best)]
        return actions

    def probabilities(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.floating[Any]]:
        """The distribution that was trained, float32 (N, 416)."""
        logits = self._legal(observations, read_masks(masks, len(observations)))
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def _legal(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.float32]:
        none = np.flatnonzero(~masks.any(axis=1))
        if len(none):
            raise ValueError(f"mask {none[0]} is no action mask: it must be 1 somewhere")
        logits = self.network.logits(observations)
        if not np.isfinite(logits).all():
            raise ValueError(f"the weights of {self.name} are too large: what it holds of a move is no finite number")
        return np.where(masks != 0, logits, np.float32(-np.inf))
