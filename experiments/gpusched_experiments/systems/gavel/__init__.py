"""Gavel (OSDI 2020): our event loop and our port of its policies beside the figures of its authors' simulator."""

from gpusched_experiments.systems.gavel.completion import MULTI_GPU, SINGLE_GPU
from gpusched_experiments.systems.gavel.makespan import MAKESPAN

PARTS = (MAKESPAN, SINGLE_GPU, MULTI_GPU)

__all__ = ["PARTS"]
