"""What of each node is held: by jobs that can be seen, and by others.

Jobs that other users hide, pods that no file has, and shares of GPUs show only in what a node tells of itself. GPUs
that a node tells are held, and that no job holds, are held by jobs that cannot be seen: no job may start on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpusched_operations.live.state import LiveCluster

HOLDING = ("running", "ending")


@dataclass(slots=True)
class NodeUse:
    """GPUs of a node that are held.

    Attributes:
        gpus: GPUs that it has, ≥ 0.
        whole: Whole GPUs that jobs hold.
        shared: Names of GPUs of which jobs hold shares.
        slices: Slices that jobs hold, which are none of its whole GPUs.
        shares: Shares that jobs hold.
        unseen: Further GPUs that are held by jobs that cannot be seen.
        stranded: GPUs that nobody holds, and on which no job starts, as others hold all CPUs of the node.
    """

    gpus: int
    whole: int = 0
    shared: set[str] = field(default_factory=set)
    slices: int = 0
    shares: int = 0
    unseen: int = 0
    stranded: int = 0

    @property
    def by_jobs(self) -> int:
        return self.whole + min(len(self.shared), max(0, self.gpus - self.whole))

    @property
    def held(self) -> int:
        return self.by_jobs + self.unseen

    @property
    def free(self) -> int:
        return self.gpus - self.held - self.stranded


def occupancy(cluster: LiveCluster) -> dict[str, NodeUse]:
    """Return what of each node is held, by name: the larger of what jobs hold and what the node tells."""
    found = {node.name: NodeUse(node.gpus) for node in cluster.nodes}
    for job in cluster.jobs:
        if job.phase not in HOLDING:
            continue
        for name, many in job.holds:
            found.setdefault(name, NodeUse(0)).whole += many
        for name, gpu, many in job.parts:
            held = found.setdefault(name, NodeUse(0))
            if gpu:
                held.shared.add(gpu)
                held.shares += many
            else:
                held.slices += many
    for node in cluster.nodes:
        held = found[node.name]
        told = max(node.allocated, node.allocated_any - held.slices)
        more = max(0, told - (held.whole if node.allocated_shares else held.by_jobs))
        more += max(0, node.allocated_shares - held.shares)  # each may be on a GPU of its own
        held.unseen = max(0, min(more, node.gpus - held.by_jobs))
        held.stranded = 0 if node.has_cpus else max(0, node.gpus - held.held)
    return found
