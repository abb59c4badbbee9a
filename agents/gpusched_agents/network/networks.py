"""Networks that score what a job may be given: one that shares its weights over configurations, and a plain one.

Both give a score for waiting and one for every configuration, and a summary of the state for a value estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from gpusched_env.observation import CLUSTER_FEATURES, JOB_FEATURES, OPTION_FEATURES, QUEUE_FEATURES
from gpusched_env.observation.job import EXPECTED, SURVIVAL, SURVIVAL_POINTS
from gpusched_env.observation.options import EXPECTED_COST, IN_TIME_EXPECTED, PLACEABLE, SHARE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

NOT_NOW = -1e8  # score of a configuration that cannot be placed now
JOB_DISTRIBUTION = {EXPECTED, *range(SURVIVAL, SURVIVAL + SURVIVAL_POINTS)}  # features made from that of its epochs
OPTION_DISTRIBUTION = {IN_TIME_EXPECTED, EXPECTED_COST}


def sees(features: int, without: Collection[int]) -> Tensor:
    """Give 1 for each of a number of features that a network may see, (F,), and 0 for those that it goes `without`."""
    return torch.tensor([0.0 if feature in without else 1.0 for feature in range(features)])


class SetNetwork(nn.Module):
    """Scores every configuration with the same weights, given the job, the cluster, the queue and all the others.

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
        """Give the scores, (B, 1 + C), waiting first, and the context, (B, hidden)."""
        code, context = self.codes(observation)
        scored = torch.relu(self.score(code) + self.score_context(context)[:, None])
        scores = self.score_out(scored).squeeze(2)
        if self.masks:
            options = observation["options"].reshape(len(scores), self.actions - 1, -1)
            scores = torch.where(options[..., PLACEABLE] > 0.0, scores, NOT_NOW)
        waiting = self.wait_out(torch.relu(self.wait(context)))
        return torch.cat([waiting, scores], dim=1), context

    def summary(self, observation: dict[str, Tensor]) -> Tensor:
        """Give the context alone, (B, hidden), which is all that a value estimate needs."""
        return self.codes(observation)[1]

    def codes(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Give the codes of the configurations, (B, C, hidden), and the context, (B, hidden)."""
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
        """Give the layers that end in scores."""
        return self.score_out, self.wait_out

    def _constant(self, name: str, value: Tensor) -> None:
        self.register_buffer(name, value, persistent=False)


class MlpNetwork(nn.Module):
    """A plain perceptron over the whole observation, for comparison: it fits the configurations of its training only.

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
        """Give the scores, (B, 1 + C), waiting first, and the context, (B, hidden)."""
        context = self.summary(observation)
        scores = self.out(context)
        if self.masks:
            placeable = observation["options"].reshape(len(scores), self.actions - 1, -1)[..., PLACEABLE] > 0.0
            scores = torch.cat([scores[:, :1], torch.where(placeable, scores[:, 1:], NOT_NOW)], dim=1)
        return scores, context

    def summary(self, observation: dict[str, Tensor]) -> Tensor:
        """Give the context alone, (B, hidden), which is all that a value estimate needs."""
        known = torch.cat([observation["job"], observation["options"]], dim=1) * self.seen
        inputs = torch.cat([known, observation["cluster"], observation["queue"]], dim=1)
        return torch.relu(self.second(torch.relu(self.first(inputs))))

    def outputs(self) -> tuple[nn.Linear, ...]:
        """Give the layers that end in scores."""
        return (self.out,)


NETWORKS: dict[str, type[SetNetwork | MlpNetwork]] = {"set": SetNetwork, "mlp": MlpNetwork}
