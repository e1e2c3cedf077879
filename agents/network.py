"""The structured network of `rusol_env.network` in PyTorch, as a policy for Stable-Baselines3 and sb3-contrib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import gymnasium
import numpy as np
import torch
from safetensors.numpy import save
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor
from torch import Tensor, nn

from rusol_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from rusol_env.engine import NUM_ACTIONS
from rusol_env.files import write_whole
from rusol_env.network import FORMAT, MLP, NUM_MIXED, STRUCTURED, Network
from rusol_env.observe import LEGAL, NUM_FEATURES, PLACE
from rusol_env.relations import (
    FOUNDATION_ROW,
    NO_CARD,
    NUM_CONCERNED,
    NUM_MOVE_FEATURES,
    NUM_RELATIONS,
    NUM_SPECIALS,
    inputs,
)
from rusol_env.rules import NUM_COLUMNS
from rusol_env.sb3 import observation_of


class Moves(NamedTuple):
    """The legal moves of N positions."""

    worth: Tensor
    """float32 (M,): logits."""
    games: Tensor
    """int64 (M,): the position of each."""
    actions: Tensor
    """int64 (M,): 0 to 415."""
    summary: Tensor
    """float32 (N, hidden): of the positions, for the critic."""
    hidden: Tensor
    """float32 (M, hidden): what `worth` is a weighed sum of."""

    def log_probabilities(self) -> Tensor:
        """The logarithms of the moves' probabilities, float32 (M,): a softmax over the moves of each position."""
        most = self.worth.new_full((len(self.summary),), -torch.inf)
        most = most.scatter_reduce(0, self.games, self.worth.detach(), "amax")
        worth = self.worth - most[self.games]
        return worth - self._sum(worth.exp()).log()[self.games]

    def entropy(self, logs: Tensor) -> Tensor:
        """The entropy of each position's moves, float32 (N,), from their `log_probabilities`."""
        return -self._sum(logs.exp() * logs)

    def of(self, logs: Tensor, actions: Tensor) -> Tensor:
        """The log-probabilities of one action a position, float32 (N,) from int64 (N,)."""
        return self._sum(torch.where(self.actions == actions[self.games], logs, 0))

    def draw(self, logs: Tensor) -> Tensor:
        """One action a position, int64 (N,), by the Gumbel-max trick."""
        noisy = logs - torch.empty_like(logs).exponential_().log()
        scores = noisy.new_full((len(self.summary) * NUM_ACTIONS,), -torch.inf)
        scores[self.games * NUM_ACTIONS + self.actions] = noisy
        return scores.view(-1, NUM_ACTIONS).argmax(1)

    def _sum(self, values: Tensor) -> Tensor:
        return values.new_zeros(len(self.summary)).index_add(0, self.games, values)


class _Near(NamedTuple):
    """Which row lies directly below, or on top, of each of the R rows of all cards; special rows come after them."""

    row: Tensor
    """int64 (R,): 0 to R + 4."""
    back: Tensor
    """int64 (R,): the row whose `row` this one is, or R if it is that of none."""
    special: Tensor
    """float32 (5, R): 1 where `row` is that special one."""

    @classmethod
    def of(cls, row: Tensor, other: Tensor) -> _Near:
        """From those of one direction, and those of the other."""
        number = len(row)
        kinds = torch.arange(number, number + NUM_SPECIALS, device=row.device).view(-1, 1)
        return cls(row, other.clamp(max=number), (row == kinds).float())


class _Take(torch.autograd.Function):
    """The rows at `_Near.row`. No row is taken twice, so a gradient is taken back the same way, which PyTorch's own
    adds up row by row, since it cannot know."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, specials: Tensor, row: Tensor, back: Tensor, special: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(back, special)
        return torch.cat([rows, specials]).index_select(0, row)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        back, special = ctx.saved_tensors
        none = gradient.new_zeros(1, gradient.shape[1])
        return torch.cat([gradient, none]).index_select(0, back), special @ gradient, None, None, None


def _take(rows: Tensor, specials: Tensor, near: _Near) -> Tensor:
    """The rows, or special rows, at ``near.row``, (R, width)."""
    taken: Any = _Take
    return taken.apply(rows, specials, *near)


def _column_means(observations: Tensor) -> list[Tensor]:
    """What takes the means of the cards below each card in its column, and on top of it: float32 (N, 52, 52) each."""
    columns, places = observations[:, :, :NUM_COLUMNS], observations[:, :, PLACE]
    together = columns @ columns.transpose(1, 2)
    below = together * (places[:, None, :] < places[:, :, None])
    return [which / which.sum(2, keepdim=True).clamp(min=1) for which in (below, below.transpose(1, 2))]


def _over_suits(card: Tensor) -> Tensor:
    """The weights of each card, or their gradients, (52, width): in every suit their mean over the suits."""
    return card.view(NUM_SUITS, NUM_RANKS, -1).mean(0).repeat(NUM_SUITS, 1)


def _over_columns(encode: Tensor) -> Tensor:
    """What a row is encoded by, or its gradient: in every column of the tableau the mean over the columns."""
    even = encode.clone()
    # Where a card lies, and where it may move.
    for first in (0, LEGAL):
        even[:, first : first + NUM_COLUMNS] = encode[:, first : first + NUM_COLUMNS].mean(1, keepdim=True)
    return even


class StructuredNetwork(BaseFeaturesExtractor):
    """A row for each card, mixed with the rows it has to do with; the legal moves weighed by the rows they concern.

    Its output, (N, 416 + hidden), is what each action is worth (0 where it is illegal) and a summary of the position.

    A game is the same when suits change places (in Yukon, those of a colour), or columns. A network that is `alike`
    begins with weights that tell neither apart, and since their gradients are made even too, so it stays: what it
    learns of one suit or column it has learnt of all.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        width: int = 32,
        layers: int = 1,
        hidden: int = 64,
        alike: bool = False,
    ):
        if min(width, hidden) < 1 or layers < 0:
            raise ValueError(
                f"width {width}, layers {layers}, hidden {hidden}: layers may be 0, the others must be 1 up"
            )
        super().__init__(observation_space, NUM_ACTIONS + hidden)  # pyright: ignore[reportUnknownMemberType]
        self.width, self.hidden = width, hidden
        self.encode = nn.Linear(NUM_FEATURES + NUM_RELATIONS, width)
        self.card = nn.Parameter(torch.randn(NUM_CARDS, width) * 0.1)
        self.special = nn.Parameter(torch.randn(NUM_SPECIALS, width) * 0.1)
        # a row itself, its neighbours, the means of the next ranks, of all, and of those below and on top in its column
        self.mix = nn.ModuleList(nn.Linear(NUM_MIXED * width, width) for _ in range(layers))
        self.summary = nn.Linear(2 * width, hidden)
        self.weigh = nn.Linear(NUM_CONCERNED * width + NUM_MOVE_FEATURES + hidden, hidden)
        self.worth = nn.Linear(hidden, 1)
        with torch.no_grad():
            self.worth.weight.mul_(0.1)
        self.alike = alike
        self.make_alike()
        if alike:
            self.card.register_hook(_over_suits)  # pyright: ignore[reportUnknownMemberType]
            self.encode.weight.register_hook(_over_columns)  # pyright: ignore[reportUnknownMemberType]

    @torch.no_grad()  # pyright: ignore[reportUntypedFunctionDecorator, reportUnknownMemberType]
    def make_alike(self) -> None:
        """Put in place of weights that tell suits or columns apart their means, if the network is `alike`."""
        if self.alike:
            self.card.copy_(_over_suits(self.card))
            self.encode.weight.copy_(_over_columns(self.encode.weight))

    def weigh_moves(self, observations: Tensor) -> Moves:
        """What the M moves that are legal in N positions are worth."""
        found = self._inputs(observations)
        _, _, games, actions, concerned, moves = found
        rows = self._rows(observations, found)
        summary = self._summary(rows)
        table = torch.cat([rows.reshape(-1, self.width), self.special])
        asked = torch.cat([table.index_select(0, concerned.view(-1)).view(len(moves), -1), moves], 1)
        # The summary once a position, not once a move.
        size = asked.shape[1]
        weights, of_summary = self.weigh.weight[:, :size], self.weigh.weight[:, size:]
        most = nn.functional.linear(summary, of_summary, self.weigh.bias).index_select(0, games)
        hidden = torch.relu(nn.functional.linear(asked, weights) + most)
        return Moves(self.worth(hidden).squeeze(1), games, actions, summary, hidden)

    def summarize(self, observations: Tensor) -> Tensor:
        """`Moves.summary`, float32 (N, hidden), of N positions."""
        return self._summary(self._rows(observations, self._inputs(observations)))

    def _inputs(self, observations: Tensor) -> list[Tensor]:
        found = inputs(observations.detach().cpu().numpy())
        return [torch.as_tensor(array, device=observations.device) for array in found]

    def _rows(self, observations: Tensor, found: list[Tensor]) -> Tensor:
        """The rows of the cards, mixed, float32 (N, 52, width)."""
        features, neighbours = found[:2]
        rows = torch.relu(self.encode(features) + self.card)
        if len(self.mix):
            near = [_Near.of(neighbours[:, :, k].reshape(-1), neighbours[:, :, 1 - k].reshape(-1)) for k in range(2)]
            means = _column_means(observations)
            for mix in self.mix:
                rows = rows + torch.relu(self._mixed(rows, cast(nn.Linear, mix), near, means))
        return rows

    def _summary(self, rows: Tensor) -> Tensor:
        return torch.relu(self.summary(torch.cat([rows.mean(1), rows.amax(1)], 1)))

    def _mixed(self, rows: Tensor, mix: nn.Linear, near: list[_Near], means: list[Tensor]) -> Tensor:
        """``mix`` of each row and of all it is mixed with, (N, 52, width).

        The weights are applied before rows are put beside each other, which moves an eighth of the numbers.
        """
        number, width, linear = len(rows), self.width, nn.functional.linear
        weights = mix.weight.view(width, NUM_MIXED, width).unbind(1)
        each = linear(rows, torch.cat([*weights[:5], *weights[8:]]))
        own, *others = each.view(number, NUM_SUITS, NUM_RANKS, 7, width).unbind(3)
        specials = [linear(self.special, weight) for weight in weights[1:5]]
        below, above = (_take(others[k].reshape(-1, width), specials[k], near[k]) for k in range(2))
        in_column = (means[k] @ others[4 + k].reshape(number, NUM_CARDS, width) for k in range(2))
        king, ace = specials[2][NO_CARD], specials[3][FOUNDATION_ROW]
        successor = torch.cat([others[2][:, :, 1:], king.expand(number, NUM_SUITS, 1, width)], 2)
        predecessor = torch.cat([ace.expand(number, NUM_SUITS, 1, width), others[3][:, :, :-1]], 2)
        ranks = rows.view(number, NUM_SUITS, NUM_RANKS, width).mean(1)
        none = ranks.new_zeros(number, 1, width)
        higher, lower = torch.cat([ranks[:, 1:], none], 1), torch.cat([none, ranks[:, :-1]], 1)
        of_all = linear(ranks.mean(1), weights[7], mix.bias).unsqueeze(1)
        of_rank = (linear(higher, weights[5]) + linear(lower, weights[6]) + of_all).unsqueeze(1)
        mixed = (own + successor + predecessor + of_rank).view(number, NUM_CARDS, width)
        return mixed + (below + above).view(number, NUM_CARDS, width) + sum(in_column)

    def forward(self, observations: Tensor) -> Tensor:
        worth, games, actions, summary, _ = self.weigh_moves(observations)
        logits = worth.new_zeros(len(summary) * NUM_ACTIONS).index_copy(0, games * NUM_ACTIONS + actions, worth)
        return torch.cat([logits.view(-1, NUM_ACTIONS), summary], 1)


class _Split(nn.Module):
    """Parts the network's output into what the actor and what the critic gets."""

    def __init__(self, hidden: int):
        super().__init__()
        self.latent_dim_pi, self.latent_dim_vf = NUM_ACTIONS, hidden

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        return features[:, :NUM_ACTIONS]

    def forward_critic(self, features: Tensor) -> Tensor:
        return features[:, NUM_ACTIONS:]


class MaskedMlpPolicy(MaskableActorCriticPolicy):
    """sb3-contrib's MlpPolicy with less arithmetic: one softmax over 416 masked logits where that takes several."""

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, values and log-probabilities for a rollout; actions are drawn by the Gumbel-max trick."""
        logs, values = self._weigh(obs, action_masks)
        noise = 0 if deterministic else torch.empty_like(logs).exponential_().log()
        actions = (logs - noise).argmax(1)
        return actions, values, logs.gather(1, actions[:, None]).squeeze(1)

    def evaluate_actions(self, obs: Tensor, actions: Tensor, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Values, log-probabilities and entropies for an update."""
        logs, values = self._weigh(obs, action_masks)
        chosen = logs.gather(1, actions.long().view(-1, 1)).squeeze(1)
        return values, chosen, -(logs.exp() * logs).sum(1)

    def _weigh(self, obs: Tensor, action_masks: Any) -> tuple[Tensor, Tensor]:
        """Log-probabilities float32 (N, 416), far below 0 where an action is illegal, and values (N, 1)."""
        latent, latent_value = self.mlp_extractor(self.extract_features(obs))
        logits = self.action_net(latent)
        if action_masks is not None:
            allowed = torch.as_tensor(action_masks, dtype=torch.bool, device=logits.device).view(logits.shape)
            logits = logits.masked_fill(~allowed, -1e8)
        return logits.log_softmax(1), self.value_net(latent_value)


class StructuredPolicy(MaskableActorCriticPolicy):
    """Actor and critic on one `StructuredNetwork`, whose arguments are ``features_extractor_kwargs``."""

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs.setdefault("features_extractor_class", StructuredNetwork)
        super().__init__(*args, **kwargs)  # pyright: ignore[reportUnknownMemberType]

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, values and log-probabilities for a rollout; over the legal moves only, and so several times as fast
        as by a distribution over all 416 actions. The masks are in the observations."""
        if deterministic:
            return super().forward(obs, deterministic, action_masks)
        moves = self._weigh_moves(obs)
        logs = moves.log_probabilities()
        actions = moves.draw(logs)
        return actions, self.value_net(moves.summary), moves.of(logs, actions)

    def evaluate_actions(self, obs: Tensor, actions: Tensor, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Values, log-probabilities and entropies for an update."""
        moves = self._weigh_moves(obs)
        logs = moves.log_probabilities()
        return self.value_net(moves.summary), moves.of(logs, actions), moves.entropy(logs)

    def _weigh_moves(self, obs: Tensor) -> Moves:
        return self.network.weigh_moves(obs)

    @property
    def network(self) -> StructuredNetwork:
        return cast(StructuredNetwork, self.features_extractor)

    def _build(self, lr_schedule: Any) -> None:
        hidden = self.features_dim - NUM_ACTIONS
        self.mlp_extractor = _Split(hidden)
        self.action_net = nn.Identity()
        self.value_net = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        optimizer: Any = self.optimizer_class
        self.optimizer = optimizer(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def export(model: Any, path: Path, told: Mapping[str, str]) -> None:
    """Write the actor of a trained MaskablePPO, with a structured network or an MLP, for `rusol_env.network`.

    Args:
        model: the model.
        path: the file, ``.safetensors``; written whole or not at all.
        told: more metadata, which only people read.

    Raises:
        ValueError: the network is of another kind, or reads other observations.
        OSError: the file cannot be written.
    """
    policy = model.policy
    if isinstance(policy, StructuredPolicy):
        export_network(policy.network, path, told)
        return
    layers = [*policy.mlp_extractor.policy_net, policy.action_net]
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    others: set[Any] = {type(layer) for layer in layers if not isinstance(layer, nn.Linear)}
    if type(policy.features_extractor) is not FlattenExtractor or not others <= {nn.Tanh, nn.ReLU} or len(others) > 1:
        raise ValueError("only MLPs of Tanh or of ReLU on plain observations can be written")
    tensors = {f"{at}.{name}": value for at, layer in enumerate(linear) for name, value in layer.state_dict().items()}
    _write(path, tensors, told, MLP, observation_of(model), "tanh" if nn.Tanh in others else "relu")


def export_network(network: StructuredNetwork, path: Path, told: Mapping[str, str]) -> None:
    """Write a structured network alone, as `export`."""
    _write(path, network.state_dict(), told, STRUCTURED)


def begin_with(network: StructuredNetwork, path: Path) -> None:
    """Give a network the weights of a file, which may have fewer layers that mix rows, or older ones that mix a row
    with less.

    A further layer adds to each row what it makes of the rows around. Its own weights are made small, and so are those
    for what older layers do not mix, so that the network begins by playing much as the file's does.

    Raises:
        ValueError: the file holds no structured network, or one of other sizes.
        OSError: it cannot be read.
    """
    read = Network.load(path)
    wanted = _arrays(network.state_dict())
    found = {name: 0.1 * array for name, array in wanted.items() if name.startswith("mix.")}
    for name, array in read.arrays.items():
        small = found.get(name)
        # What an older layer does not mix comes last.
        if small is not None and small.ndim == 2 and len(array) == len(small) and array.shape[1] < small.shape[1]:
            array = np.concatenate([array, small[:, array.shape[1] :]], 1)
        found[name] = array
    sizes = [{name: array.shape for name, array in arrays.items()} for arrays in (found, wanted)]
    if read.kind != STRUCTURED or sizes[0] != sizes[1]:
        other = next((name for name in wanted if sizes[0].get(name) != sizes[1][name]), "one layer more")
        raise ValueError(
            f"{path} holds no network of the sizes of this run ({other} differs): "
            "give the sizes that it has in policy_kwargs.features_extractor_kwargs"
        )
    network.load_state_dict({name: torch.tensor(np.array(array)) for name, array in found.items()})
    network.make_alike()


def as_network(network: StructuredNetwork, value: nn.Linear | None = None) -> Network:
    """A structured network as it is now, to play with.

    With a `value`, a layer that makes one number of a position's summary, every legal move is worth that number.
    """
    arrays = _arrays(network.state_dict())
    if value is not None:
        # The summary goes to the last layer as it is: it is rectified already.
        hidden = network.hidden
        arrays["weigh.weight"] = np.zeros_like(arrays["weigh.weight"])
        arrays["weigh.weight"][:, -hidden:] = np.eye(hidden)
        arrays["weigh.bias"] = np.zeros(hidden, np.float32)
        arrays |= {f"worth.{name}": array for name, array in _arrays(value.state_dict()).items()}
    return Network(arrays, STRUCTURED)


def _write(
    path: Path,
    tensors: Mapping[str, Tensor],
    told: Mapping[str, str],
    kind: str,
    observation: str = "cards",
    activation: str = "relu",
) -> None:
    arrays = _arrays(tensors)
    Network(arrays, kind, observation, activation)
    metadata = dict(told) | {"format": FORMAT, "kind": kind, "observation": observation, "activation": activation}
    write_whole(path, save(arrays, metadata))


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
