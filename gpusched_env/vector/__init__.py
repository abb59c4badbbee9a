"""Many environments at once: batched state, stepped by one compiled call."""

from gpusched_env.vector.vector_env import GpuClusterVectorEnv

__all__ = ["GpuClusterVectorEnv"]
