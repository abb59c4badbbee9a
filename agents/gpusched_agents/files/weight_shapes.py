"""The arrays that an agent's network consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_agents.steering.network import shapes
from gpusched_baselines.steering_env.knobs import knob_count
from gpusched_baselines.steering_env.observation import feature_count

if TYPE_CHECKING:
    from gpusched_agents.spec import AgentSpec
    from gpusched_agents.training.config import NetworkConfig

Shapes = dict[str, tuple[int, ...]]


def weight_shapes(spec: AgentSpec, network: NetworkConfig) -> Shapes:
    """Return the shapes of a network's arrays by name: matrices are (outputs, inputs).

    Args:
        spec: What the network was trained for.
        network: Its settings.
    """
    hidden = network.hidden
    if spec.network == "knobs":
        types = len(spec.gpu_types)
        sizes = [feature_count(types), *[hidden] * network.layers, knob_count(types, network.knobs)]
        layers = [_layer(str(index), sizes[index + 1], sizes[index]) for index in range(network.layers + 1)]
        return {name: shape for layer in layers for name, shape in layer.items()}
    if spec.network == "steering":
        jobs, options = len(spec.job_features), len(spec.cluster_features) + len(spec.option_features)
        return shapes(jobs, options, len(spec.queue_features), hidden)
    return _set(spec, hidden) if spec.network == "set" else _mlp(spec, hidden)


def _set(spec: AgentSpec, hidden: int) -> Shapes:
    common = len(spec.job_features) + len(spec.queue_features)
    return {
        **_layer("option", hidden, len(spec.option_features)),
        "gpu_type.weight": (hidden, len(spec.cluster_features)),
        "common.weight": (hidden, common),
        **_layer("context", hidden, 2 * hidden + common),
        **_layer("score", hidden, hidden),
        "score_context.weight": (hidden, hidden),
        **_layer("score_out", 1, hidden),
        **_layer("wait", hidden, hidden),
        **_layer("wait_out", 1, hidden),
    }


def _mlp(spec: AgentSpec, hidden: int) -> Shapes:
    configurations, types = len(spec.configurations), len(spec.gpu_types)
    inputs = len(spec.job_features) + configurations * len(spec.option_features)
    inputs += types * len(spec.cluster_features) + len(spec.queue_features)
    return {
        **_layer("first", hidden, inputs),
        **_layer("second", hidden, hidden),
        **_layer("out", 1 + configurations, hidden),
    }


def _layer(name: str, outputs: int, inputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
