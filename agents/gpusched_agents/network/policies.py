"""Networks that score the choices for a job: one that shares its weights over configurations, and a plain one.

Both return a score for waiting and one for every configuration, and a summary of the state for a value estimate.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from gpusched_env.errors import InputError
from gpusched_env.observation import CLUSTER_FEATURES, JOB_FEATURES, OPTION_FEATURES, QUEUE_FEATURES
from gpusched_env.observation.job import EXPECTED, SURVIVAL, SURVIVAL_POINTS
from gpusched_env.observation.observe import EXPECTED_COST, IN_TIME_EXPECTED, PLACEABLE, SHARE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gymnasium import spaces
    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.type_aliases import Schedule

NOT_NOW = -1e8  # score of a configuration that cannot be placed now
JOB_DISTRIBUTION = {EXPECTED, *range(SURVIVAL, SURVIVAL + SURVIVAL_POINTS)}  # features of the distribution
OPTION_DISTRIBUTION = {IN_TIME_EXPECTED, EXPECTED_COST}


def sees(features: int, without: Collection[int]) -> Tensor:
    """Return 1 for each feature that a network may see, (F,), and 0 for those in `without`."""
    return torch.tensor([0.0 if feature in without else 1.0 for feature in range(features)])


class SetNetwork(nn.Module):
    """A network that scores every configuration with the same weights, from the features of all.

    Each configuration's features, those of its GPU type and those of job and queue make its code h_c; the largest and
    the mean code, with job and queue, make the context g; a second layer on (h_c, g) scores the configuration, one on g
    scores waiting. So the weights fit any number of configurations and GPU types, and their order does not matter.

    Args:
        type_of_configuration: Index of each configuration's GPU type, (C,).
        hidden: Width of every layer, ≥ 1.
        distribution: Whether it sees what comes from the distribution of epochs.
        masks: Whether what cannot be placed now gets the score `NOT_NOW`.
    """

    job_seen: Tensor
    option_seen: Tensor
    types: Tensor

    def __init__(
        self,
        type_of_configuration: Sequence[int],
        hidden: int = 64,
        *,
        distribution: bool = True,
        masks: bool = True,
    ) -> None:
        super().__init__()
        common = len(JOB_FEATURES) + len(QUEUE_FEATURES)
        self.masks, self.width = masks, hidden
        self.actions = 1 + len(type_of_configuration)
        self.option = nn.Linear(len(OPTION_FEATURES), hidden)
        self.gpu_type = nn.Linear(len(CLUSTER_FEATURES), hidden, bias=False)
        self.common = nn.Linear(common, hidden, bias=False)
        self.context = nn.Linear(2 * hidden + common, hidden)
        self.score = nn.Linear(hidden, hidden)
        self.score_context = nn.Linear(hidden, hidden, bias=False)
        self.score_out = nn.Linear(hidden, 1)
        self.wait = nn.Linear(hidden, hidden)
        self.wait_out = nn.Linear(hidden, 1)
        self._constant("types", torch.as_tensor(np.asarray(type_of_configuration), dtype=torch.long))
        self._constant("job_seen", sees(len(JOB_FEATURES), () if distribution else JOB_DISTRIBUTION))
        self._constant("option_seen", sees(len(OPTION_FEATURES), () if distribution else OPTION_DISTRIBUTION))

    def forward(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the scores, (B, 1 + C), waiting first, and the context, (B, hidden)."""
        code, context = self.codes(observation)
        scored = torch.relu(self.score(code) + self.score_context(context)[:, None])
        scores = self.score_out(scored).squeeze(2)
        if self.masks:
            options = observation["options"].reshape(len(scores), self.actions - 1, -1)
            scores = torch.where(options[..., PLACEABLE] > 0.0, scores, NOT_NOW)
        waiting = self.wait_out(torch.relu(self.wait(context)))
        return torch.cat([waiting, scores], dim=1), context

    def summary(self, observation: dict[str, Tensor]) -> Tensor:
        """Return the context alone, (B, hidden), which is all that a value estimate needs."""
        return self.codes(observation)[1]

    def codes(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the codes of the configurations, (B, C, hidden), and the context, (B, hidden)."""
        batch = len(observation["job"])
        options = observation["options"].reshape(batch, self.actions - 1, -1)
        cluster = observation["cluster"].reshape(batch, -1, len(CLUSTER_FEATURES))
        common = torch.cat([observation["job"] * self.job_seen, observation["queue"]], dim=1)
        # A configuration that the job may not use has a share of 0.
        code = self.option(options * self.option_seen) + self.gpu_type(cluster)[:, self.types]
        code = torch.relu(code + self.common(common)[:, None]) * (options[..., SHARE : SHARE + 1] > 0.0)
        allowed = (options[..., SHARE] > 0.0).sum(dim=1, keepdim=True).clamp(min=1)
        mean = code.sum(dim=1) / allowed
        context = torch.relu(self.context(torch.cat([code.amax(dim=1), mean, common], dim=1)))
        return code, context

    def outputs(self) -> tuple[nn.Linear, ...]:
        """Return the layers that end in scores."""
        return self.score_out, self.wait_out

    def _constant(self, name: str, value: Tensor) -> None:
        self.register_buffer(name, value, persistent=False)


class MlpNetwork(nn.Module):
    """A plain perceptron over the whole observation, for comparison: it fits only the configurations of its training.

    Args:
        type_of_configuration: Index of each configuration's GPU type, (C,).
        hidden: Width of the two hidden layers, ≥ 1.
        distribution: Whether it sees what comes from the distribution of epochs.
        masks: Whether what cannot be placed now gets the score `NOT_NOW`.
    """

    seen: Tensor

    def __init__(
        self,
        type_of_configuration: Sequence[int],
        hidden: int = 64,
        *,
        distribution: bool = True,
        masks: bool = True,
    ) -> None:
        super().__init__()
        configurations, types = len(type_of_configuration), max(type_of_configuration) + 1
        inputs = len(JOB_FEATURES) + configurations * len(OPTION_FEATURES)
        inputs += types * len(CLUSTER_FEATURES) + len(QUEUE_FEATURES)
        self.masks, self.width, self.actions = masks, hidden, 1 + configurations
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, self.actions)
        job = sees(len(JOB_FEATURES), () if distribution else JOB_DISTRIBUTION)
        option = sees(len(OPTION_FEATURES), () if distribution else OPTION_DISTRIBUTION)
        self.register_buffer("seen", torch.cat([job, option.repeat(configurations)]), persistent=False)

    def forward(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the scores, (B, 1 + C), waiting first, and the context, (B, hidden)."""
        context = self.summary(observation)
        scores = self.out(context)
        if self.masks:
            placeable = observation["options"].reshape(len(scores), self.actions - 1, -1)[..., PLACEABLE] > 0.0
            scores = torch.cat([scores[:, :1], torch.where(placeable, scores[:, 1:], NOT_NOW)], dim=1)
        return scores, context

    def summary(self, observation: dict[str, Tensor]) -> Tensor:
        """Return the context alone, (B, hidden), which is all that a value estimate needs."""
        known = torch.cat([observation["job"], observation["options"]], dim=1) * self.seen
        inputs = torch.cat([known, observation["cluster"], observation["queue"]], dim=1)
        return torch.relu(self.second(torch.relu(self.first(inputs))))

    def outputs(self) -> tuple[nn.Linear, ...]:
        """Return the layers that end in scores."""
        return (self.out,)


NETWORKS: dict[str, type[SetNetwork | MlpNetwork]] = {"set": SetNetwork, "mlp": MlpNetwork}


SMALL = 0.01  # gain of the layers that end in scores: at first all actions are almost equally likely


class ScoringExtractor(BaseFeaturesExtractor):
    """A network as a features extractor: its scores, then its context, concatenated.

    Args:
        observation_space: The environment's.
        kind: `set` or `mlp`.
        type_of_configuration: Index of each configuration's GPU type, (C,).
        hidden: Width of its layers, ≥ 1.
        distribution: Whether it sees what comes from the distribution of epochs.
        masks: Whether actions that cannot be placed now are never chosen.
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
        self.scores = True  # those of a critic are 0, since they are not used
        self.network = NETWORKS[kind](type_of_configuration, hidden, distribution=distribution, masks=masks)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Return scores and context, (B, 1 + C + hidden)."""
        if self.scores:
            return torch.cat(self.network(observations), dim=1)
        context = self.network.summary(observations)
        return torch.cat([context.new_zeros(len(context), self.network.actions), context], dim=1)


class _Split(nn.Module):
    """The split of the extractor's output into the actor's part (scores) and the critic's (context)."""

    def __init__(self, actions: int, width: int) -> None:
        super().__init__()
        self.latent_dim_pi, self.latent_dim_vf = actions, width

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Tensor) -> Tensor:
        return features[:, : self.latent_dim_pi]

    def forward_critic(self, features: Tensor) -> Tensor:
        return features[:, self.latent_dim_pi :]


def score(policy: Any, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the scores of all actions, (B, 1 + C), and the values, (B,), by actor and critic of `policy`."""
    features = policy.extract_features(observation)
    actor, critic = features if isinstance(features, tuple) else (features, features)
    scores = policy.mlp_extractor.forward_actor(actor)
    return scores, policy.value_net(policy.mlp_extractor.forward_critic(critic)).squeeze(1)


class _Scoring:
    """A mixin for policies: actor and critic each have a network; the actor's scores are the logits of the actions.

    Attributes:
        imitated: The network that the policy stays near to, alone in a tuple, so that it is no part of the policy;
            empty at first. With one, `evaluate_actions` returns minus the KL divergence from its chances in place of
            the entropy, so that the entropy coefficient of an algorithm weighs the divergence.
    """

    imitated: tuple[SetNetwork | MlpNetwork, ...] = ()

    def evaluate_actions(self: Any, obs: Any, actions: Tensor, **masks: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return values, logarithms of the chances of the actions, and entropies or minus KL divergences, (B,) each."""
        if not self.imitated:
            evaluated: tuple[Tensor, Tensor, Tensor | None] = super().evaluate_actions(obs, actions, **masks)  # type: ignore[misc]
            return evaluated
        scores, values = score(self, obs)
        chances = torch.log_softmax(scores, dim=1)
        with torch.no_grad():
            imitated = torch.log_softmax(self.imitated[0](obs)[0], dim=1)
        divergence = (chances.exp() * (chances - imitated)).sum(dim=1)
        return values, chances.gather(1, actions.long().reshape(-1, 1)).squeeze(1), -divergence

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
    """The policy for PPO and A2C."""


class MaskableScoringPolicy(_Scoring, MaskableActorCriticPolicy):  # type: ignore[misc]
    """The policy for MaskablePPO."""


class ScoringQNetwork(QNetwork):
    """A Q-network whose scores are the values of the actions."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.q_net = nn.Sequential()

    def forward(self, obs: Any) -> Tensor:
        """Return the value of every action, (B, 1 + C)."""
        scored: Tensor = self.extract_features(obs, self.features_extractor)
        return scored[:, : int(self.action_space.n)]


class ScoringDqnPolicy(DQNPolicy):
    """The policy for DQN."""

    def make_q_net(self) -> QNetwork:
        """Make the network of the values."""
        named = self._update_features_extractor(self.net_args, features_extractor=None)
        return ScoringQNetwork(**named).to(self.device)


def actor_of(model: BaseAlgorithm) -> ScoringExtractor:
    """Return the network with which a model chooses.

    Raises:
        InputError: Its policy is not one of `gpusched_agents.network.policies`.
    """
    policy: Any = model.policy
    extractor = getattr(policy, "pi_features_extractor", None) or getattr(
        getattr(policy, "q_net", None), "features_extractor", None
    )
    if not isinstance(extractor, ScoringExtractor):
        raise InputError("model.policy", type(policy).__name__, "a policy of gpusched_agents.network.policies")
    return extractor


def export_model(model: BaseAlgorithm) -> tuple[str, dict[str, Any], dict[str, NDArray[np.float32]]]:
    """Return the kind of a model's network, its settings, and its weights by name, as for `AgentPolicy`.

    Raises:
        InputError: Its policy is not one of `gpusched_agents.network.policies`.
    """
    extractor = actor_of(model)
    network = extractor.network
    settings = {"kind": extractor.kind, "hidden": network.width, "distribution": extractor.distribution}
    return extractor.kind, {"network": settings}, export_network(network)


def export_network(network: SetNetwork | MlpNetwork) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a network by name; those of features that it may not see are 0."""
    weights = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
    if isinstance(network, SetNetwork):
        job, width = len(network.job_seen), network.width
        weights["option.weight"] *= network.option_seen
        weights["common.weight"][:, :job] *= network.job_seen
        weights["context.weight"][:, 2 * width : 2 * width + job] *= network.job_seen
    else:
        weights["first.weight"][:, : len(network.seen)] *= network.seen
    return {name: plain_array(tensor) for name, tensor in weights.items()}


def plain_array(tensor: Tensor) -> NDArray[np.float32]:
    """Return a tensor as an array of its own."""
    array: NDArray[np.float32] = tensor.detach().to(torch.float32).cpu().numpy().copy()
    return array
