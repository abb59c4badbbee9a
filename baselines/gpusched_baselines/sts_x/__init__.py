"""STS-X: one hull over everything, waiting, consolidation and spreading, a whole round at a time."""

from gpusched_baselines.sts_x.policy import StsX

__all__ = ["StsX"]
