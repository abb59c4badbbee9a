"""The published experiments, run again: tables with intervals, figures, and beside them what the sources reported."""

from gpusched_reproductions.published.experiments import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
