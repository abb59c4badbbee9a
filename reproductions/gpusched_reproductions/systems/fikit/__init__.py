"""FIKIT: a job that comes first, and others in the gaps between its kernels."""

from gpusched_reproductions.systems.fikit import device as kernels
from gpusched_reproductions.systems.fikit import pairs

PARTS = (*pairs.PARTS, *kernels.PARTS)
