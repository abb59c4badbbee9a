"""The steering environment: a step sets parameters of STS-X, the knobs, and STS-X decides some rounds with them."""

from gpusched_baselines.steering_env.env import GpuSteeringEnv
from gpusched_baselines.steering_env.vector_env import GpuSteeringVectorEnv

__all__ = ["GpuSteeringEnv", "GpuSteeringVectorEnv"]
