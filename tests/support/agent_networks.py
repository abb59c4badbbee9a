"""Networks with random weights, and what they see in real rounds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import torch

from any_instance import AnyInstance
from gpusched_agents.network.inference import flat_weights
from gpusched_agents.network.policies import NETWORKS
from gpusched_agents.policy import AgentPolicy
from gpusched_agents.spec import AgentSpec
from gpusched_agents.training.algorithms import TRAINED_UNDER
from gpusched_env import load_scenario, make_instance
from instances import random_instance

if TYPE_CHECKING:
    from gpusched_agents.network.policies import MlpNetwork, SetNetwork
    from gpusched_env import Instance

HIDDEN = 8
ENVIRONMENT = asdict(TRAINED_UNDER)
SCENARIOS = ("tiny", "sharing", "multi-node")


def small_instance(seed: int = 0) -> Instance:
    """Make an instance with all kinds of configurations, restarts and interference."""
    return random_instance(seed, restart_s=5.0, kinds=True, interference=True)


def any_of(name: str) -> Instance:
    """Return a small instance of a scenario, `small_instance` for "all kinds", or one where consolidation matters."""
    if name == "crowded":
        return random_instance(2, jobs=16, nodes=6, types=1, span_s=500.0)
    return small_instance() if name == "all kinds" else make_instance(load_scenario(name).replace({"jobs.count": 8}), 0)


def seen(instance: Instance, steps: int = 60, seed: int = 0) -> tuple[dict[str, torch.Tensor], np.ndarray]:
    """Play at random; give the observations of every step, (B, ...), and its masks, bool (B, 1 + C)."""
    env, rng = AnyInstance(instance, **ENVIRONMENT), np.random.default_rng(seed)
    observation, info = env.reset()
    observations, masks = [], []
    for _ in range(steps):
        observations.append(observation)
        masks.append(info["action_mask"].astype(np.bool_))
        over = env.step(int(rng.choice(np.flatnonzero(masks[-1]))))
        observation, info = (over[0], over[4]) if not over[2] else env.reset()
    batch = {name: torch.from_numpy(np.stack([one[name] for one in observations])) for name in observations[0]}
    return batch, np.stack(masks)


def network(
    instance: Instance, kind: str = "set", seed: int = 0, *, hidden: int = HIDDEN, waits: float = 0.0, **named: bool
) -> SetNetwork | MlpNetwork:
    """Make a network with random weights; the larger `waits`, the more it likes to wait."""
    torch.manual_seed(seed)
    made = NETWORKS[kind](instance.type_of_configuration.tolist(), hidden, **named)
    made.outputs()[-1].bias.data[0] += waits
    return made


def policy(instance: Instance, made: SetNetwork | MlpNetwork, kind: str = "set", **settings: object) -> AgentPolicy:
    """Make the agent that decides by a network, under the settings of training unless others are given."""
    most = {"max_configurations": 256, "max_gpu_types": 32} if kind == "set" else {}
    spec = AgentSpec.of(kind, instance.configurations, instance.gpu_types, **(most | ENVIRONMENT | settings))
    weights = {name: tensor.numpy() for name, tensor in made.state_dict().items()}
    return AgentPolicy("agent:tested", spec, flat_weights(kind, weights), made.width)
