"""FIKIT: a job that comes first, and others in the gaps between its kernels."""

from gpusched_reproductions.systems.fikit import kernels, pairs

PARTS = (*pairs.PARTS, *kernels.PARTS)
