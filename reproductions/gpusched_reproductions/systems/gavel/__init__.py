"""Gavel (OSDI 2020): our event loop and our port of its policies beside the figures of its authors' simulator."""

from gpusched_reproductions.systems.gavel.completion import MULTI_GPU, SINGLE_GPU
from gpusched_reproductions.systems.gavel.makespan import MAKESPAN

PARTS = (MAKESPAN, SINGLE_GPU, MULTI_GPU)

__all__ = ["PARTS"]
