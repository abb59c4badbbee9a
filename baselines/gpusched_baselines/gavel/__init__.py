"""Gavel: shares of time by linear programs, and rounds that approximate them."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_baselines.gavel.cost import GavelCost
    from gpusched_baselines.gavel.policy import Gavel
    from gpusched_baselines.gavel.program import GavelDemand
    from gpusched_baselines.gavel.round import StepSpeeds

__all__ = ["Gavel", "GavelCost", "GavelDemand", "StepSpeeds"]

__getattr__ = lazy_names(__name__, __file__)
