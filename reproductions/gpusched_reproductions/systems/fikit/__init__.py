"""FIKIT (Wu, arXiv 2311.10359): kernels of jobs with lower priority in the gaps of a job that comes first."""

from gpusched_reproductions.systems.checks import Part
from gpusched_reproductions.systems.fikit import parts
from gpusched_reproductions.systems.fikit.cases import GAVEL, KERNELS

PARTS = (
    Part("fikit", "speed-up", "Speed-up of the first job over a FIFO queue, kernel by kernel", parts.speed_up, KERNELS),
    Part(
        "fikit", "filled", "Share of idle time filled, by waiting jobs and gaps; what it costs", parts.filled, KERNELS
    ),
    Part("fikit", "training", "Training jobs in pairs: default sharing over filling", parts.training, GAVEL),
)

__all__ = ["PARTS"]
