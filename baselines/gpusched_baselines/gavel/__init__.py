"""Gavel: shares of time by linear programs, and rounds that come near them."""

from gpusched_baselines.gavel.policy import Gavel

__all__ = ["Gavel"]
