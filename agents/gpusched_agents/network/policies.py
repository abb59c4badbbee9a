"""The networks as policies of Stable-Baselines3 and sb3-contrib (extra `agents`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from gpusched_agents.network.networks import NETWORKS, SetNetwork
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from gymnasium import spaces
    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.type_aliases import Schedule

    from gpusched_agents.network.networks import MlpNetwork

SMALL = 0.01  # gain of the layers that end in scores: at first all actions are about equally likely


class ScoringExtractor(BaseFeaturesExtractor):
    """A network of `networks` as a features extractor: its scores, then its context, end to end.

    Args:
        observation_space: The environment's.
        kind: `set` or `mlp`.
        type_of_configuration: Index of each configuration's GPU type, (C,).
        hidden: Width of its layers, ≥ 1.
        distribution: Whether it sees what comes from the distribution of epochs.
        masks: Whether what cannot be placed now is never chosen.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        kind: str,
        type_of_configuration: Sequence[int],
        hidden: int,
        *,
        distribution: bool,
        masks: bool,
    ) -> None:
        super().__init__(observation_space, 1 + len(type_of_configuration) + hidden)
        self.kind, self.distribution = kind, distribution
        self.scores = True  # a critic's are 0: nobody asks for them
        self.network = NETWORKS[kind](type_of_configuration, hidden, distribution=distribution, masks=masks)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Give scores and context, (B, 1 + C + hidden)."""
        if self.scores:
            return torch.cat(self.network(observations), dim=1)
        context = self.network.summary(observations)
        return torch.cat([context.new_zeros(len(context), self.network.actions), context], dim=1)


class _Split(nn.Module):
    """Takes the actor's part (scores) and the critic's (context) from what the extractor gives."""

    def __init__(self, actions: int, width: int) -> None:
        super().__init__()
        self.latent_dim_pi, self.latent_dim_vf = actions, width

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        return features[:, : self.latent_dim_pi]

    def forward_critic(self, features: Tensor) -> Tensor:
        return features[:, self.latent_dim_pi :]


class _Scoring:
    """Mixed into a policy: actor and critic each have a network; the actor's scores are the logits of the actions."""

    def _build_mlp_extractor(self: Any) -> None:
        actions = int(self.action_space.n)
        self.mlp_extractor = _Split(actions, self.features_dim - actions)

    def _build(self: Any, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)  # type: ignore[misc]
        self.action_net = nn.Identity()
        self.vf_features_extractor.scores = self.share_features_extractor
        for extractor in (self.pi_features_extractor, self.vf_features_extractor):
            for layer in extractor.network.outputs():
                layer.apply(partial(self.init_weights, gain=SMALL))
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


class ScoringPolicy(_Scoring, ActorCriticPolicy):  # type: ignore[misc]
    """For PPO and A2C."""


class MaskableScoringPolicy(_Scoring, MaskableActorCriticPolicy):  # type: ignore[misc]
    """For MaskablePPO."""


class ScoringQNetwork(QNetwork):
    """The scores are the values of the actions."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.q_net = nn.Sequential()

    def forward(self, obs: Any) -> Tensor:
        """Give the value of every action, (B, 1 + C)."""
        scored: Tensor = self.extract_features(obs, self.features_extractor)
        return scored[:, : int(self.action_space.n)]


class ScoringDqnPolicy(DQNPolicy):
    """For DQN."""

    def make_q_net(self) -> QNetwork:
        """Make the network of the values."""
        named = self._update_features_extractor(self.net_args, features_extractor=None)
        return ScoringQNetwork(**named).to(self.device)


def actor_of(model: BaseAlgorithm) -> ScoringExtractor:
    """Give the network with which a model chooses.

    Raises:
        InputError: Its policy is none of `gpusched_agents.network.policies`.
    """
    policy: Any = model.policy
    extractor = getattr(policy, "pi_features_extractor", None) or getattr(
        getattr(policy, "q_net", None), "features_extractor", None
    )
    if not isinstance(extractor, ScoringExtractor):
        raise InputError("model.policy", type(policy).__name__, "a policy of gpusched_agents.network.policies")
    return extractor


def export_model(model: BaseAlgorithm) -> tuple[str, dict[str, Any], dict[str, NDArray[np.float32]]]:
    """Give the kind of a model's network, its settings, and its weights, by name, as `AgentPolicy` takes them.

    Raises:
        InputError: Its policy is none of `gpusched_agents.network.policies`.
    """
    extractor = actor_of(model)
    network = extractor.network
    settings = {"kind": extractor.kind, "hidden": network.width, "distribution": extractor.distribution}
    return extractor.kind, {"network": settings}, export_network(network)


def export_network(network: SetNetwork | MlpNetwork) -> dict[str, NDArray[np.float32]]:
    """Give the weights of a network by name; those of features that it may not see are 0."""
    weights = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
    if isinstance(network, SetNetwork):
        job, width = len(network.job_seen), network.width
        weights["option.weight"] *= network.option_seen
        weights["common.weight"][:, :job] *= network.job_seen
        weights["context.weight"][:, 2 * width : 2 * width + job] *= network.job_seen
    else:
        weights["first.weight"][:, : len(network.seen)] *= network.seen
    return {name: _array(tensor) for name, tensor in weights.items()}


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.to(torch.float32).cpu().numpy().copy()
    return array
