"""STS-X that is tuned in its own run, by simulations of workloads that are resampled from it."""

from gpusched_baselines.self_tuning.policy import SelfTunedStsX
from gpusched_baselines.self_tuning.search import TuningSettings

__all__ = ["SelfTunedStsX", "TuningSettings"]
