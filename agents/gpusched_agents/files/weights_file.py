"""An agent's weights as the bytes of a safetensors file, and the shapes that they must have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gpusched_agents.steering.network import shapes
from gpusched_baselines.steering_env.features import feature_count
from gpusched_baselines.steering_env.knobs import knob_count
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_agents.spec import AgentSpec
    from gpusched_agents.training.config import NetworkConfig

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def weights_bytes(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """Write `weights`: the same arrays give the same bytes.

    Args:
        weights: Arrays of any shapes, float32 and finite, by names of letters, digits, dots, dashes and underscores.

    Raises:
        InputError: There are none, or an array or a name is another one.
    """
    _check(weights)
    # safetensors copies memory as it lies, so strided views must be laid out first.
    return save({name: np.array(weights[name], order="C") for name in sorted(weights)})


def read_weights(data: bytes) -> dict[str, NDArray[np.float32]]:
    """Read what `weights_bytes` wrote; the arrays are the caller's own.

    Raises:
        InputError: It is no safetensors file, or holds other arrays than float32 and finite ones.
    """
    try:
        weights = load(data)
    except (SafetensorError, KeyError, ValueError) as error:  # KeyError: a kind of number that NumPy does not have
        raise InputError("weights", str(error), "a whole safetensors file with arrays of float32") from error
    _check(weights)
    return {name: array.copy() for name, array in weights.items()}


def check_shapes(weights: Mapping[str, NDArray[np.float32]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that `weights` are those of a network, whose arrays have these names and shapes.

    Raises:
        InputError: An array is missing, unknown, or has another shape; names the first.
    """
    for name in sorted(shapes.keys() - weights.keys()):
        raise InputError(f"weights.{name}", None, f"an array of shape {shapes[name]}: it is missing")
    for name in sorted(weights.keys() - shapes.keys()):
        raise InputError(f"weights.{name}", "...", f"no such array; one of {', '.join(sorted(shapes))}")
    for name, shape in shapes.items():
        if weights[name].shape != tuple(shape):
            raise InputError(f"weights.{name}", f"shape {weights[name].shape}", f"shape {tuple(shape)}")


def _check(weights: Mapping[str, NDArray[np.float32]]) -> None:
    if not weights:
        raise InputError("weights", dict(weights), "one array or more")
    for name, array in weights.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError("weights", name, "names of letters, digits, dots, dashes and underscores")
        if not isinstance(array, np.ndarray) or array.dtype != np.float32:
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise InputError(f"weights.{name}", str(kind), "an array of float32")
        if not np.isfinite(array).all():
            raise InputError(f"weights.{name}", "NaN or inf", "finite numbers")


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
