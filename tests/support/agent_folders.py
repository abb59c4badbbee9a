"""Agents on disk that several tests share."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_agents.files.description import AgentDescription
from gpusched_agents.files.storage import save_agent, weight_shapes
from gpusched_agents.spec import AgentSpec, NetworkConfig
from gpusched_env.model import Configuration, GpuType
from gpusched_env.provenance import provenance

GPU_TYPES = (GpuType("T4", 70.0, 200.0, 16.0, 2), GpuType("V100", 250.0, 300.0, 32.0, 2))
SINGLE = tuple(Configuration(gpu_type.name, gpus) for gpu_type in GPU_TYPES for gpus in (1, 2))
SHARED = Configuration("V100", 1, share=0.5)
HIDDEN = 4
SEVERAL = Configuration("T4", 2, nodes=2)


def spec(network: str = "control-set", **changes: Any) -> AgentSpec:
    """Make the spec of an agent trained on four single-node configurations; it may take six, and a set three types."""
    most = {"max_configurations": 6} | ({"max_gpu_types": 3} if network == "control-set" else {})
    return replace(AgentSpec.of(network, SINGLE, GPU_TYPES, **most), **changes)


def network(kind: str, hidden: int = HIDDEN) -> dict[str, Any]:
    return asdict(NetworkConfig(kind, hidden))


def controls_description(**changes: Any) -> AgentDescription:
    return description(**({"spec": spec("controls"), "config": {"network": network("controls")}} | changes))


def description(**changes: Any) -> AgentDescription:
    values: dict[str, Any] = {
        "name": "tested",
        "algorithm": "es",
        "spec": spec(),
        "config": {"network": network("control-set"), "learning_rate": 3e-4, "anneal": True, "note": "ω"},
        "provenance": provenance("gpusched train --seed 3", seed=3),
        "curve": [
            {"steps": 0, "seconds": 0.0, "total_eur": 12.5, "phase": "beginning"},
            {"steps": 1000, "seconds": 1.5, "total_eur": 11.0, "entropy": 0.25},
        ],
    }
    return AgentDescription(**(values | changes))


def single_node_agent(folder: Path) -> str:
    """Write an agent that decides on any number of configurations on one node, and no others; give its name."""
    save_agent(folder, description(spec=spec(max_configurations=256, max_gpu_types=32)), weights())
    return f"agent:{folder}"


def weights(seed: int = 0, of: AgentSpec | None = None) -> dict[str, NDArray[np.float32]]:
    """Draw the weights of a small network; one of `spec()` if none is given."""
    rng = np.random.default_rng(seed)
    chosen = of or spec()
    shapes = weight_shapes(chosen, NetworkConfig(chosen.network, HIDDEN))
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
