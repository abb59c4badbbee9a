"""Policies that choose who runs beside whom on a shared GPU."""

from gpusched_baselines.neighbours.policy import NeighbourDispatch

__all__ = ["NeighbourDispatch"]
