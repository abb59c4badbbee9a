"""The adaptation environment: a step sets controls of STS-X, and STS-X decides some rounds with them."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_baselines.adaptation_env.env import GpuAdaptationEnv
    from gpusched_baselines.adaptation_env.vector_env import GpuAdaptationVectorEnv

__all__ = ["GpuAdaptationEnv", "GpuAdaptationVectorEnv"]

__getattr__ = lazy_names(__name__, __file__)
