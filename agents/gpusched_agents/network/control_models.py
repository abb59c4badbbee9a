"""Models of Stable-Baselines3 that set controls: the policy on rows of jobs, and their networks as plain arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, FlattenExtractor
from torch import Tensor, nn

from gpusched_agents.network.actors import ControlActor, JobSetActor, LstmActor, MlpActor
from gpusched_agents.network.policies import plain_array
from gpusched_baselines.adaptation_env.observation import ROW
from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    import numpy as np
    from gymnasium import spaces
    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm

ACTIVATIONS = {nn.Tanh: "tanh", nn.ReLU: "relu"}
TAKEN = "a perceptron (MlpPolicy or MultiInputPolicy) of PPO, A2C, SAC, TD3, TQC, DQN or MaskablePPO"
LSTM = "MlpLstmPolicy of RecurrentPPO with one layer, on an adaptation environment"


class JobSetExtractor(BaseFeaturesExtractor):
    """Averages the codes of single jobs by attention: the features extractor of `JobSetActor`, which has the formula.

    Args:
        observation_space: That of an adaptation environment with `job_features`.
        rows: Their number, K ≥ 1.
        width: Width of the codes, ≥ 1.
    """

    def __init__(self, observation_space: spaces.Box, rows: int, width: int = 16) -> None:
        super().__init__(observation_space, observation_space.shape[0] - ROW * rows + width)
        self.rows = rows
        self.code = nn.Linear(ROW, width)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the other numbers of an observation, and the average of the codes, (B, features)."""
        size = ROW * self.rows
        rows = observations[:, -size:].reshape(len(observations), self.rows, ROW)
        there = rows[..., -1] > 0.0
        codes = torch.tanh(self.code(rows))
        scores = self.score(codes).squeeze(-1).masked_fill(~there, -1e30)
        weights = torch.softmax(scores, dim=1) * there
        return torch.cat([observations[:, :-size], (weights[..., None] * codes).sum(dim=1)], dim=1)


def job_set_policy(rows: int, width: int = 16) -> dict[str, Any]:
    """Return `policy_kwargs` of Stable-Baselines3 for `MlpPolicy` on observations with rows of single jobs.

    Args:
        rows: The environment's `job_features`, ≥ 1.
        width: Width of the codes of jobs, ≥ 1.
    """
    kwargs = {"rows": checks.whole("rows", rows), "width": checks.whole("width", width)}
    return {"features_extractor_class": JobSetExtractor, "features_extractor_kwargs": kwargs}


def actor_of_model(model: BaseAlgorithm) -> ControlActor:
    """Return the network with which a model acts: mean actions, logits or values.

    Raises:
        InputError: The model has none, or one with other layers than linear ones with tanh or ReLU between them.
    """
    policy: Any = model.policy
    if hasattr(policy, "mlp_extractor"):  # PPO, A2C, MaskablePPO; for RecurrentPPO the part after the LSTM
        layers, squash = [*policy.mlp_extractor.policy_net, policy.action_net], bool(policy.squash_output)
    elif hasattr(policy, "q_net"):  # DQN
        layers, squash = list(policy.q_net.q_net), False
    elif hasattr(policy.actor, "latent_pi"):  # SAC, TQC
        layers, squash = [*policy.actor.latent_pi, policy.actor.mu], True
    else:  # TD3, whose last layer is tanh
        layers, squash = list(policy.actor.mu)[:-1], True
    kinds = {type(layer) for layer in layers} - {nn.Linear}
    acting = next(part for part in (getattr(policy, "q_net", None), getattr(policy, "actor", None), policy) if part)
    extractor = acting.features_extractor
    known = isinstance(extractor, FlattenExtractor | CombinedExtractor | JobSetExtractor)
    if len(kinds) > 1 or not kinds <= set(ACTIVATIONS) or not known:
        raise InputError("model.policy", f"{type(policy).__name__} with {type(extractor).__name__}", TAKEN)
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    activation = ACTIVATIONS[kinds.pop()] if kinds else "tanh"
    head = MlpActor(tuple((plain_array(one.weight), plain_array(one.bias)) for one in linear), activation, squash)
    if not isinstance(extractor, JobSetExtractor):
        return head
    code = plain_array(extractor.code.weight), plain_array(extractor.code.bias)
    return JobSetActor(code, plain_array(extractor.score.weight)[0], extractor.rows, head)


def lstm_of_model(model: BaseAlgorithm) -> LstmActor:
    """Return the LSTM with which a recurrent model acts, with the perceptron after it.

    Raises:
        InputError: It has several layers.
    """
    policy: Any = model.policy
    lstm = policy.lstm_actor
    if lstm.num_layers > 1:
        raise InputError("model.policy", f"an LSTM of {lstm.num_layers} layers", LSTM)
    bias: NDArray[np.float32] = plain_array(lstm.bias_ih_l0) + plain_array(lstm.bias_hh_l0)
    head = actor_of_model(model)
    if not isinstance(head, MlpActor):
        raise InputError("model.policy", "an LSTM on codes of jobs", LSTM)
    return LstmActor(plain_array(lstm.weight_ih_l0), plain_array(lstm.weight_hh_l0), bias, head)
