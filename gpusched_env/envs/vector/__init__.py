"""Many environments at once, stepped by one compiled call."""

from gpusched_env.envs.vector.vector_env import GpuClusterVectorEnv

__all__ = ["GpuClusterVectorEnv"]
