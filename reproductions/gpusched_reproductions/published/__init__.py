"""The published experiments, run again: tables with intervals, figures, and beside them what the sources reported."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_reproductions.published.experiments import EXPERIMENTS

__all__ = ["EXPERIMENTS"]

__getattr__ = lazy_names(__name__, __file__)
