"""STS: each job planned against the distribution of its epochs, by the exact plan or by a solver."""

from gpusched_baselines.sts.sts import Sts

__all__ = ["Sts"]
