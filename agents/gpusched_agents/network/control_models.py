"""Models of Stable-Baselines3: the features extractor for rows of jobs, and their networks as plain arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, FlattenExtractor
from torch import Tensor, nn

from gpusched_agents.network.actors import ControlActor, JobSetActor, LstmActor, MlpActor
from gpusched_baselines.adaptation_env.observation import ROW
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.observation import JOBS_FEATURES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm

ACTIVATIONS = {nn.Tanh: "tanh", nn.ReLU: "relu"}
TAKEN = "a perceptron (MlpPolicy or MultiInputPolicy) of PPO, A2C, SAC, TD3, TQC, DQN or MaskablePPO"
LSTM = "MlpLstmPolicy of RecurrentPPO with one layer, on an adaptation environment"


class JobSetExtractor(BaseFeaturesExtractor):
    """Averages the codes of single jobs by attention: the features extractor of `JobSetActor`, which has the formula.

    Args:
        observation_space: That of an environment with `job_features`: one vector that ends with the rows, or a `Dict`
            with the part `jobs`.
        rows: Their number, K ≥ 1.
        width: Width of the codes, ≥ 1.
        row_size: Numbers of a row of a vector; a row of a `Dict` has those of `JOBS_FEATURES`.

    Raises:
        InputError: The `Dict` has no such part, or one of other rows.
    """

    def __init__(self, observation_space: spaces.Space[Any], rows: int, width: int = 16, row_size: int = ROW) -> None:
        parts: tuple[str, ...] = ()
        if isinstance(observation_space, spaces.Dict):
            parts, row_size = jobs_last(observation_space), len(JOBS_FEATURES)
            there = spaces.flatdim(observation_space[parts[-1]]) // row_size if parts[-1] == "jobs" else 0
            if there != rows:
                raise InputError("rows", rows, f"{there}: the environment's job_features")
        super().__init__(observation_space, spaces.flatdim(observation_space) - row_size * rows + width)
        self.rows, self.parts = rows, parts
        self.code = nn.Linear(row_size, width)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, observations: Tensor | dict[str, Tensor]) -> Tensor:
        """Return the other numbers of an observation, and the average of the codes, (B, features)."""
        if isinstance(observations, dict):
            observations = torch.cat([observations[part].flatten(1) for part in self.parts], dim=1)
        size = self.rows * self.code.in_features
        rows = observations[:, -size:].reshape(len(observations), self.rows, -1)
        there = rows[..., -1] > 0.0
        codes = torch.tanh(self.code(rows))
        scores = self.score(codes).squeeze(-1).masked_fill(~there, -1e30)
        weights = torch.softmax(scores, dim=1) * there
        return torch.cat([observations[:, :-size], (weights[..., None] * codes).sum(dim=1)], dim=1)


def jobs_last(space: spaces.Dict) -> tuple[str, ...]:
    return tuple(sorted(space.spaces, key=lambda part: part == "jobs"))


def job_set_policy(rows: int, width: int = 16, row_size: int = ROW) -> dict[str, Any]:
    """Return `policy_kwargs` of Stable-Baselines3 for `MlpPolicy` or `MultiInputPolicy` on rows of single jobs.

    Args:
        rows: The environment's `job_features`, ≥ 1.
        width: Width of the codes of jobs, ≥ 1.
        row_size: Numbers of a row where an observation is one vector: `len(JOBS_FEATURES)` in flat environments of
            single decisions, else left alone.
    """
    given = {"rows": rows, "width": width, "row_size": row_size}
    kwargs = {name: checks.whole(name, value) for name, value in given.items()}
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


def plain_array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().to(torch.float32).cpu().numpy().copy()
    return array


def lstm_of_model(model: BaseAlgorithm) -> LstmActor:
    """Return the LSTM with which a recurrent model acts, with the perceptron after it."""
    policy: Any = model.policy
    lstm = policy.lstm_actor
    if lstm.num_layers > 1:
        raise InputError("model.policy", f"an LSTM of {lstm.num_layers} layers", LSTM)
    bias: NDArray[np.float32] = plain_array(lstm.bias_ih_l0) + plain_array(lstm.bias_hh_l0)
    head = actor_of_model(model)
    if not isinstance(head, MlpActor):
        raise InputError("model.policy", "an LSTM on codes of jobs", LSTM)
    return LstmActor(plain_array(lstm.weight_ih_l0), plain_array(lstm.weight_hh_l0), bias, head)
