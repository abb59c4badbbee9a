"""Registration of the environment with Gymnasium."""

from __future__ import annotations

import gymnasium

ENVIRONMENT_ID = "gpusched_env/GpuCluster-v0"


def register_envs() -> None:
    """Register `gpusched_env/GpuCluster-v0`, once."""
    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(
            id=ENVIRONMENT_ID,
            entry_point="gpusched_env.envs.env:GpuClusterEnv",
            vector_entry_point="gpusched_env.envs.vector:GpuClusterVectorEnv",
        )
