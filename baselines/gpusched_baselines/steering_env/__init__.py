"""The steering environment: a step sets parameters of STS-X, the knobs, and STS-X decides some rounds with them."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_baselines.steering_env.env import GpuSteeringEnv
    from gpusched_baselines.steering_env.vector_env import GpuSteeringVectorEnv

__all__ = ["GpuSteeringEnv", "GpuSteeringVectorEnv"]

__getattr__ = lazy_names(__name__, __file__)
