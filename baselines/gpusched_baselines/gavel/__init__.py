"""Gavel: shares of time by linear programs, and rounds that come near them."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_baselines.gavel.policy import Gavel, GavelCost
    from gpusched_baselines.gavel.program import Demand

__all__ = ["Demand", "Gavel", "GavelCost"]

__getattr__ = lazy_names(__name__, __file__)
