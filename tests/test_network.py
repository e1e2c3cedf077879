"""Networks without PyTorch: what they read, what they say, the files that they come from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import rusol_env
from rusol_env import GreedyPolicy, RussianSolitaireVectorEnv, sample_legal
from rusol_env.engine import accepts
from rusol_env.network import FORMAT, Network, NetworkPolicy, shapes
from rusol_env.observe import Visible, decode_board
from rusol_env.relations import EMPTY_COLUMN, FACE_DOWN_CARD, FOUNDATION_ROW, NO_CARD, ON_TOP_OF_NONE, inputs

FOUNDATION = 7
Arrays = dict[str, NDArray[np.float32]]


class Positions(NamedTuple):
    """Of N games: both kinds of observation, and the masks."""

    cards: NDArray[np.float32]
    board: NDArray[np.int8]
    masks: NDArray[np.int8]


def positions(rules: str, games: int = 12, steps: int = 80, every: int = 4) -> Positions:
    """Positions of games played by chance and by greedy, from the deal to the last cards; none that is over."""
    by_kind = [
        RussianSolitaireVectorEnv(games, rules, observation=kind, autoreset_mode="SameStep")
        for kind in ("cards", "board")
    ]
    (cards, infos), (board, _) = (env.reset(seed=3) for env in by_kind)
    greedy, streams = GreedyPolicy(), np.arange(games, dtype=np.uint64)
    half = np.arange(games) < games // 2
    found: list[tuple[NDArray[Any], ...]] = []
    for step in range(steps):
        masks = infos["action_mask"]
        if step % every == 0:
            found.append((cards, board, masks))
        actions = np.where(half, greedy.act(board, masks), sample_legal(masks, streams))
        (cards, *_, infos), (board, *_) = (env.step(actions) for env in by_kind)
    return Positions(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


@pytest.fixture(scope="module")
def played() -> dict[str, Positions]:
    return {rules: positions(rules) for rules in rusol_env.VARIANTS}


# What a structured network reads, told once more from the board.


class Slow:
    """One position, in lists; `special` is the number of the first special row."""

    def __init__(self, seen: Visible, mask: NDArray[np.int8], game: int, special: int) -> None:
        self.columns, self.foundations = seen.columns, seen.foundations
        self.mask, self.game, self.special = mask, game, special
        self.place = {
            card: (k, place)
            for k, column in enumerate(self.columns)
            for place, card in enumerate(column)
            if card is not None
        }

    def row(self, card: int | None) -> int:
        return self.special + FACE_DOWN_CARD if card is None else 52 * self.game + card

    def down(self, column: int) -> int:
        return sum(card is None for card in self.columns[column])

    def up(self, card: int) -> bool:
        return card % 13 < self.foundations[card // 13]

    def away(self, card: int) -> int:
        """How many of its suit go up before it."""
        return card % 13 - self.foundations[card // 13]

    def below(self, card: int) -> list[int | None]:
        column, place = self.place[card]
        return list(self.columns[column][:place])

    def above(self, card: int) -> list[int]:
        column, place = self.place[card]
        return [other for other in self.columns[column][place + 1 :] if other is not None]

    def neighbours(self, card: int) -> list[int]:
        found = [self.special + NO_CARD, self.special + ON_TOP_OF_NONE]
        if card in self.place:
            if self.below(card):
                found[0] = self.row(self.below(card)[-1])
            if self.above(card):
                found[1] = self.row(self.above(card)[0])
        found.append(self.special + NO_CARD if card % 13 == 12 else self.row(card + 1))
        found.append(self.special + FOUNDATION_ROW if card % 13 == 0 else self.row(card - 1))
        return found

    def moves(self) -> Iterator[tuple[int, int]]:
        for action in np.flatnonzero(self.mask).tolist():
            if action // 8 in self.place:
                yield action // 8, action % 8

    def concerned(self, card: int, target: int) -> list[int]:
        if target == FOUNDATION:
            goes_to = self.special + FOUNDATION_ROW
        elif not self.columns[target]:
            goes_to = self.special + EMPTY_COLUMN
        else:
            goes_to = self.row(self.columns[target][-1])
        return [self.row(card), *self.neighbours(card), goes_to]

    def relations(self, card: int) -> dict[int, float]:
        """The features after those of the observation that are not 0, by their places."""
        found = {
            16: (52 - len(self.place) - sum(self.foundations)) / 21,
            17: sum(not column for column in self.columns) / 4,
            18: sum(self.foundations) / 52,
        }
        if self.up(card):
            return found
        rank, suit = card % 13, card // 13
        found |= {0: float(self.away(card) == 0), 1: self.away(card) / 12}
        if card not in self.place:
            return found
        column = self.place[card][0]
        below = [other for other in self.below(card) if other is not None]
        above = self.above(card)
        if rank < 12:
            successor = card + 1
            found[2] = successor in above
            found[3] = successor in below[:-1]
            found[4] = successor in self.place and self.place[successor][0] != column
            found[5] = len(self.above(successor)) / 20 if successor in self.place else 0
        found[6], found[7] = (rank > 0 and card - 1 in cards for cards in (above, below))
        found[8], found[9] = (
            sum(other // 13 == suit and other < card for other in cards) / 12 for cards in (below, above)
        )
        found[10] = min((self.away(other) for other in below), default=13) / 13
        elsewhere = [other for other in self.place if self.place[other][0] != column]
        higher = [other for other in elsewhere if other % 13 == rank + 1]
        found[11] = len(higher) / 4
        found[12] = sum(not self.above(other) for other in higher) / 4
        found[13] = min([len(self.above(other)) / 20 for other in higher] + [1])
        found[14] = sum(other % 13 == rank - 1 for other in elsewhere) / 4
        found[15] = sum(other % 13 == rank + 1 for other in above) / 4
        found[19] = self.down(column) / 6
        return found

    def features(self, card: int, target: int) -> dict[int, float]:
        """The features of a move that are not 0."""
        column, place = self.place[card]
        group = [card, *self.above(card)]
        found: dict[int, float] = {9: len(group) / 20}
        if target == FOUNDATION:
            found |= {0: 1, 1: card % 13 <= min(self.foundations) + 1}
        elif not self.columns[target]:
            found[2] = 1
        else:
            found[3] = self.columns[target][-1] == card + 1 and card % 13 < 12
            under = [other for other in self.columns[target] if other is not None and other % 13 < 12]
            found[4] = sum(other + 1 in group for other in under) / 5
        below = self.below(card)
        if place == 0:
            found[7] = 1
        elif below[-1] is None:
            found |= {5: 1, 6: self.down(column) / 6}
        else:
            found[8] = below[-1] % 13 == card % 13 + 1
        return found


def spread(found: dict[int, float], size: int) -> NDArray[np.float32]:
    out = np.zeros(size, np.float32)
    for at, value in found.items():
        out[at] = value
    return out


@pytest.mark.parametrize("rules", rusol_env.VARIANTS)
def test_what_a_network_reads_is_what_the_board_shows(rules: str, played: dict[str, Positions]) -> None:
    cards, boards, masks = (part[:240] for part in played[rules])
    found = inputs(cards)
    slow = [
        Slow(decode_board(board), mask, game, 52 * len(cards))
        for game, (board, mask) in enumerate(zip(boards, masks, strict=True))
    ]
    moves = [(position, *move) for position in slow for move in position.moves()]
    assert found.games.tolist() == [position.game for position, _, _ in moves]
    assert found.actions.tolist() == [8 * card + target for _, card, target in moves]
    assert found.neighbours.tolist() == [[position.neighbours(card) for card in range(52)] for position in slow]
    assert found.concerned.tolist() == [position.concerned(card, target) for position, card, target in moves]
    np.testing.assert_array_equal(found.features[:, :, :24], cards)
    relations = [[spread(position.relations(card), 20) for card in range(52)] for position in slow]
    np.testing.assert_allclose(found.features[:, :, 24:], relations, atol=1e-6)
    features = [spread(position.features(card, target), 10) for position, card, target in moves]
    np.testing.assert_allclose(found.moves, features, atol=1e-6)
    # There are moves of each kind among them, where a card may lie on its own suit that too.
    missing = {3} - ({3} if accepts(rusol_env.VARIANTS[rules], 0, 0) else set())
    assert set(np.flatnonzero(found.moves.max(axis=0) > 0)) == set(range(10)) - missing


def test_a_move_of_what_cannot_be_seen_is_left_out() -> None:
    """The mask of a finished game allows all; a card that is up or face down has no place to move from."""
    env = RussianSolitaireVectorEnv(8, "classic", autoreset_mode="SameStep")
    _, infos = env.reset(seed=1)
    streams = np.arange(8, dtype=np.uint64)
    while True:
        _, _, ended, _, infos = env.step(sample_legal(infos["action_mask"], streams))
        if ended.any():
            break
    cards = np.stack([infos["final_obs"][i] for i in np.flatnonzero(ended)])
    assert (cards[:, :, 16:] == 1).all()
    found = inputs(cards)
    visible = (cards[:, :, :7] > 0).any(axis=2)
    assert len(found.actions) == 8 * visible.sum() < 416 * len(cards)
    actions = NetworkPolicy(structured()).act(cards, np.ones((len(cards), 416), np.int8))
    assert ((actions >= 0) & (actions < 416)).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.2, 1.0]))
def test_what_is_no_position_is_refused_or_survived(seed: int, density: float) -> None:
    chance = np.random.default_rng(seed)
    cards = (chance.random((2, 52, 24)) * (chance.random((2, 52, 24)) < density)).astype(np.float32)
    assert np.isfinite(structured().logits(cards)).all()
    cards.flat[seed % cards.size] = [np.nan, 1.1, -0.1, np.inf][seed % 4]
    with pytest.raises(ValueError, match="values from 0 to 1"):
        inputs(cards)


def test_other_observations_are_refused(played: dict[str, Positions]) -> None:
    cards, boards, _ = played["classic"]
    for network, seen in (
        (structured(), boards),
        (Network(mlp_arrays(), "mlp"), boards),
        (Network(mlp_arrays("board"), "mlp", "board"), cards),
        (structured(), cards[0]),
    ):
        with pytest.raises(ValueError, match=rf"the network reads '{network.observation}' observations"):
            network.logits(seen)
    with pytest.raises(ValueError, match=r"have the shape \(N, 52, 24\), not"):
        inputs(boards)


# Networks made by hand, without PyTorch.


def drawn(kind: str, sizes: Arrays, observation: str = "cards", seed: int = 0) -> Arrays:
    """Arrays of a network with the sizes of `sizes`, drawn by chance."""
    chance = np.random.default_rng(seed)
    return {
        name: chance.normal(0, 1 / np.sqrt(shape[-1]), shape).astype(np.float32)
        for name, shape in shapes(sizes, kind, observation).items()
    }


def structured_arrays(width: int = 8, layers: int = 1, hidden: int = 16, seed: int = 0) -> Arrays:
    sizes = {"special": np.zeros((5, width), np.float32), "worth.weight": np.zeros((1, hidden), np.float32)}
    sizes |= {f"mix.{at}.weight": np.zeros(0, np.float32) for at in range(layers)}
    return drawn("structured", sizes, seed=seed)


def structured(seed: int = 0) -> Network:
    return Network(structured_arrays(seed=seed), "structured")


def mlp_arrays(observation: str = "cards", seed: int = 0) -> Arrays:
    sizes = {f"{at}.{part}": np.zeros(12, np.float32) for at in range(3) for part in ("weight", "bias")}
    return drawn("mlp", sizes, observation, seed)


@pytest.mark.parametrize("kind", ["structured", "mlp relu", "mlp tanh", "board"])
def test_a_position_is_worth_the_same_in_every_batch(kind: str, played: dict[str, Positions]) -> None:
    if kind == "structured":
        network = structured()
    else:
        observation = "board" if kind == "board" else "cards"
        network = Network(mlp_arrays(observation), "mlp", observation, kind.split()[-1] if " " in kind else "relu")
    seen: NDArray[Any] = played["relaxed"].board if kind == "board" else played["relaxed"].cards
    whole = network.logits(seen)
    assert whole.dtype == np.float32
    assert whole.shape == (len(seen), 416)
    assert np.abs(whole).max() > 0.1
    for size in (1, 7, 64):
        parts = [network.logits(seen[at : at + size]) for at in range(0, len(seen), size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()
    assert network.logits(seen[::-1])[::-1].tobytes() == whole.tobytes()
    assert network.logits(seen[:0]).shape == (0, 416)


def test_networks_that_look_at_neighbours_only_are_still_read(played: dict[str, Positions]) -> None:
    """A layer of 0.1.0 is one that gives the means of a column no weight; without a layer there is no difference."""
    first = structured_arrays(layers=2)
    mixes = [f"mix.{at}.weight" for at in range(2)]
    blind = first | {name: first[name][:, : 8 * 8] for name in mixes}
    first = first | {name: np.pad(blind[name], ((0, 0), (0, 2 * 8))) for name in mixes}
    cards = played["classic"].cards
    wanted = Network(first, "structured").logits(cards)
    np.testing.assert_array_equal(Network(blind, "structured").logits(cards), wanted)
    assert not np.array_equal(Network(structured_arrays(layers=2), "structured").logits(cards), wanted)
    blind["mix.1.weight"] = first["mix.1.weight"]
    with pytest.raises(ValueError, match=r"'mix\.1\.weight' is float32 \(8, 80\): it must be float32 \(8, 64\)"):
        Network(blind, "structured")


def test_a_network_whose_numbers_burst_does_not_play(played: dict[str, Positions]) -> None:
    arrays = {name: array * np.float32(1e30) for name, array in mlp_arrays().items()}
    policy = NetworkPolicy(Network(arrays, "mlp"), "mine")
    cards, _, masks = played["classic"]
    for ask in (policy.act, policy.probabilities):
        with pytest.raises(ValueError, match="the weights of mine are too large"):
            ask(cards, masks)


def test_the_policy_plays_the_legal_action_that_is_worth_most(played: dict[str, Positions]) -> None:
    network = Network(mlp_arrays(), "mlp")
    policy = NetworkPolicy(network, "mine", {"from": "here"})
    assert (policy.name, policy.observation) == ("mine", "cards")
    assert policy.settings == {"network": "mlp", "from": "here"}
    cards, _, masks = played["classic"]
    logits, actions, shares = network.logits(cards), policy.act(cards, masks), policy.probabilities(cards, masks)
    for row, mask, action, share in zip(logits, masks, actions.tolist(), shares, strict=True):
        legal = np.flatnonzero(mask)
        assert action == legal[row[legal].argmax()]
        expected = np.exp(row[legal].astype(np.float64))
        np.testing.assert_allclose(share[legal], expected / expected.sum(), rtol=1e-5)
        assert share.argmax() == action
        assert share.sum() == pytest.approx(1)


def test_what_is_no_network_is_refused() -> None:
    arrays = structured_arrays()
    for wrong, said in [
        (("tree",), "the kind of network is 'tree': it must be structured or mlp"),
        (("structured", "board"), "a structured network cannot read the observation 'board'"),
        (("mlp", "pixels"), "a mlp network cannot read the observation 'pixels'"),
        (("structured", "cards", "gelu"), "the activation is 'gelu': it must be relu or tanh"),
        (("mlp",), "and this has not"),
    ]:
        with pytest.raises(ValueError, match=said):
            Network(arrays, *wrong)


# Files.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A structured network in a file."""
    return write(tmp_path / "network.safetensors", structured_arrays())


def write(path: Path, arrays: Any, **told: str) -> Path:
    """Write a structured network, or what is told that it is."""
    numpy: Any = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: install the extra [ppo]")
    metadata = {"format": FORMAT, "kind": "structured", "observation": "cards", "activation": "relu"} | told
    path.write_bytes(numpy.save(arrays, metadata))
    return path


def said_of(path: Path) -> str | None:
    """What is said of a file that is refused: one sentence, which names it. None if it is taken."""
    try:
        Network.load(path)
    except ValueError as error:
        said = str(error)
    else:
        return None
    assert said.startswith(f"{path} is ")
    assert "no network of rusol-env" in said
    assert "\n" not in said
    return said


def refusal(path: Path) -> str:
    said = said_of(path)
    assert said is not None
    return said


def test_a_network_comes_back_from_its_file(file: Path, played: dict[str, Positions]) -> None:
    cards = played["classic"].cards
    assert Network.load(file).logits(cards).tobytes() == structured().logits(cards).tobytes()
    policy = NetworkPolicy.load(file)
    assert policy.name == str(file)
    assert policy.settings["network"] == "structured"
    assert len(policy.settings["sha256"]) == 64
    assert NetworkPolicy.load(file, "short").name == "short"
    board = write(file.with_name("board.safetensors"), mlp_arrays("board"), kind="mlp", observation="board")
    assert NetworkPolicy.load(board).observation == "board"
    with pytest.raises(FileNotFoundError):
        Network.load(file.with_name("none.safetensors"))


def test_a_damaged_file_is_refused_or_still_whole(file: Path) -> None:
    """Every byte of the head changed in turn, and the file cut everywhere there and at its end."""
    whole = file.read_bytes()
    head = 8 + int.from_bytes(whole[:8], "little")
    loaded = 0
    for at in range(head):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        loaded += said_of(file) is None
    # Among those that are taken: another blank at the head's end.
    assert loaded < head / 20
    for size in (*range(0, head + 8, 5), len(whole) - 1, len(whole) - 4):
        file.write_bytes(whole[:size])
        refusal(file)
    file.write_bytes(whole + b"\0\0\0\0")
    refusal(file)


@pytest.mark.parametrize("name", [*structured_arrays()])
def test_an_array_that_is_missing_or_wrong_is_named(name: str, file: Path) -> None:
    arrays = structured_arrays()
    write(file, {other: array for other, array in arrays.items() if other != name})
    refusal(file)
    for wrong in (
        arrays[name][..., :-1],
        arrays[name][None],
        arrays[name].astype(np.float64),
        np.float32(1).reshape(()),
        arrays[name] * np.float32(np.nan),
        arrays[name] * np.float32(np.inf),
        arrays[name][:0],
    ):
        write(file, arrays | {name: np.ascontiguousarray(wrong).reshape(wrong.shape)})
        assert "array" in refusal(file)
    # One entry is enough.
    arrays[name].flat[-1] = np.nan
    write(file, arrays)
    assert f"its array {name!r} is empty, or has an entry that is no number" in refusal(file)


def test_a_foreign_file_is_refused_by_name(file: Path) -> None:
    arrays = structured_arrays()
    write(file, arrays | {"more": np.zeros(3, np.float32)})
    assert "its array 'more' is of no structured network" in refusal(file)
    for told, said in [
        ({"format": "rusol-env network 2"}, "its format is 'rusol-env network 2' and not 'rusol-env network 1'"),
        ({"kind": "mlp"}, "a mlp network has an array"),
        ({"kind": ""}, "the kind of network is ''"),
        ({"observation": "board"}, "cannot read the observation 'board'"),
        ({"activation": "gelu"}, "the activation is 'gelu'"),
    ]:
        write(file, arrays, **told)
        assert said in refusal(file)
    numpy: Any = pytest.importorskip("safetensors.numpy")
    file.write_bytes(numpy.save(arrays))
    assert "its format is None" in refusal(file)
    # Whole, but of numbers that NumPy does not know; and with metadata that says nothing.
    for head in (
        {"a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}},
        {"__metadata__": None, "a": {"dtype": "I16", "shape": [1], "data_offsets": [0, 2]}},
    ):
        text = json.dumps(head).encode()
        file.write_bytes(len(text).to_bytes(8, "little") + text + b"\0\0")
        refusal(file)


def test_a_file_needs_its_library(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"needs the package safetensors: pip install 'rusol-env\[ppo\]'"):
        Network.load(file)


# Against PyTorch.


def trained(observation: str = "cards", network: str = "mlp", **policy_kwargs: Any) -> Any:
    """A MaskablePPO with weights drawn by chance."""
    contrib: Any = pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: install the extra [agents]")
    import torch

    from rusol_env.sb3 import SB3VecEnv

    policy: Any = "MlpPolicy"
    if network != "mlp":
        from agents.network import MaskedMlpPolicy, StructuredPolicy

        policy = {"structured": StructuredPolicy, "masked mlp": MaskedMlpPolicy}[network]
    env = SB3VecEnv(2, "relaxed", observation=observation, seed=0)
    model = contrib.MaskablePPO(
        policy, env, n_steps=8, batch_size=16, seed=0, device="cpu", policy_kwargs=policy_kwargs
    )
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.copy_(torch.randn(parameter.shape) / max(parameter.shape[-1], 4) ** 0.5)
    return model


KINDS: dict[str, dict[str, Any]] = {
    f"structured, {layers} layers": {
        "network": "structured",
        "features_extractor_kwargs": {"width": 12, "layers": layers, "hidden": 20},
    }
    for layers in range(3)
} | {
    "mlp of tanh": {"net_arch": [24, 16]},
    "mlp of relu on the board": {"net_arch": [24], "observation": "board"},
    "mlp of one layer": {"net_arch": []},
    "masked mlp": {"net_arch": [16], "network": "masked mlp"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_what_pytorch_says(kind: str, tmp_path: Path, played: dict[str, Positions]) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is missing: install the extra [agents]")
    options = dict(KINDS[kind])
    if "relu" in kind:
        options["activation_fn"] = torch.nn.ReLU
    model = trained(**options)
    from agents.network import export

    path = tmp_path / "policy.safetensors"
    export(model, path, {"rules": "relaxed"})
    policy = NetworkPolicy.load(path)
    for rules in ("classic", "relaxed"):
        position = played[rules]
        seen: NDArray[Any] = position.board if policy.observation == "board" else position.cards
        with torch.no_grad():
            features = model.policy.extract_features(model.policy.obs_to_tensor(seen)[0])
            expected = model.policy.action_net(model.policy.mlp_extractor.forward_actor(features)).numpy()
        found = policy.network.logits(seen)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        assert np.abs(found).max() > 0.5
        # Where two actions are worth the same but for rounding, either will do.
        legal = np.sort(np.where(position.masks, expected, -np.inf), axis=1)
        clear = legal[:, -1] - legal[:, -2] > 1e-3
        assert clear.mean() > 0.8
        predicted, _ = model.predict(seen, action_masks=position.masks, deterministic=True)
        np.testing.assert_array_equal(policy.act(seen, position.masks)[clear], predicted[clear])


@pytest.mark.parametrize("kind", ["structured, 1 layers", "masked mlp"])
def test_our_policies_learn_from_the_distribution_that_the_masks_make(kind: str, played: dict[str, Positions]) -> None:
    """With less arithmetic, they give what sb3-contrib's policy works out."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch is missing: install the extra [agents]")
    model = trained(**KINDS[kind])
    from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

    policy, (cards, _, masks) = model.policy, played["relaxed"]
    seen = torch.as_tensor(cards)
    with torch.no_grad():
        torch.manual_seed(5)
        actions, values, logs = policy(seen, action_masks=masks)
        assert masks[np.arange(len(masks)), actions.numpy()].all()
        over_all: Any = MaskableActorCriticPolicy.evaluate_actions
        expected = over_all(policy, seen, actions, masks)
        for found, other in zip(policy.evaluate_actions(seen, actions, masks), expected, strict=True):
            np.testing.assert_allclose(found, other, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(values, expected[0], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(logs, expected[1], rtol=1e-4, atol=1e-4)
        # Drawn by those probabilities: one position, many times.
        number = 20_000
        at = int(masks.sum(axis=1).argmax())
        drawn = policy(seen[at : at + 1].expand(number, -1, -1), action_masks=masks[at : at + 1].repeat(number, 0))[0]
        shares = policy.get_distribution(seen[at : at + 1], masks[at : at + 1]).distribution.probs[0].numpy()
    counts = np.bincount(drawn.numpy(), minlength=416)
    assert counts[masks[at] == 0].sum() == 0
    # The seed is fixed: five standard errors are wide enough.
    assert (np.abs(counts / number - shares) <= 5 * np.sqrt(shares * (1 - shares) / number) + 1e-4).all()


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is missing: install the extra [agents]")
    from agents.network import export

    path = tmp_path / "policy.safetensors"
    with pytest.raises(ValueError, match="only MLPs of Tanh or of ReLU"):
        export(trained(net_arch=[8], activation_fn=torch.nn.GELU), path, {})
    model = trained(net_arch=[8])
    shutil.rmtree(tmp_path)
    with pytest.raises(OSError, match="No such file or directory"):
        export(model, path, {})
