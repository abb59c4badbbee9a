"""Gavel: shares of time by linear programs, and rounds that come near them."""

from gpusched_baselines.gavel.demand import Demand
from gpusched_baselines.gavel.policy import Gavel, GavelCost

__all__ = ["Demand", "Gavel", "GavelCost"]
