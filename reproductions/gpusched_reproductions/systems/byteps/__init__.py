"""BytePS: spare machines that help jobs on several nodes to synchronise (Jiang et al., OSDI 2020)."""

from gpusched_reproductions.systems.byteps import gains, horovod, throughputs
from gpusched_reproductions.systems.checks import Part

PARTS = (
    Part("byteps", "gains", "gains over all-reduce, from bandwidths, published and ours", gains.run),
    Part("byteps", "throughputs", "images a second, by two rates that were chosen for 64 GPUs", throughputs.run),
    Part("byteps", "headlines", "what the gains of the abstract need", gains.headlines),
    Part("byteps", "horovod", "all-reduce and parameter servers, as measured by others", horovod.run),
)

__all__ = ["PARTS"]
