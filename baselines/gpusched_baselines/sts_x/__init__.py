"""STS-X: one hull over everything, waiting, consolidation and spreading, a whole round at a time."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_baselines.sts_x.policy import StsX

__all__ = ["StsX"]

__getattr__ = lazy_names(__name__, __file__)
