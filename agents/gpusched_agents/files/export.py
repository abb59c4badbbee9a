"""The weights of a trained model as plain arrays (extra `agents`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from gpusched_agents.network.networks import SetNetwork
from gpusched_agents.network.policies import ScoringExtractor
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm
    from torch import Tensor

    from gpusched_agents.network.networks import MlpNetwork


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
