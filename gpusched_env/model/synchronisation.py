"""Time of jobs on several nodes for synchronising: by backend, spare machines, and what the network carries."""

from __future__ import annotations

from typing import get_args

from gpusched_env.kernel import lean_kernel
from gpusched_env.model.configuration import Backend


@lean_kernel
def traffic(nodes: float, spare: float) -> float:
    """Return the traffic over a node's network when n nodes synchronise with k spare machines, in sizes of the model.

    V(n, k) = 2n(n - 1) / (n² + k(n - 2)): that of all-reduce, 2(n - 1)/n, with no spare machine, and 1 with n of them;
    in between each machine sums up the part with which all links are equally busy (Jiang et al., OSDI 2020).

    Args:
        nodes: The nodes n that train, ≥ 1; one has nothing to send.
        spare: The spare machines k whose network they may use, from 0 to n; may be fractional.
    """
    if nodes < 2.0:
        return 0.0
    return 2.0 * nodes * (nodes - 1.0) / (nodes * nodes + spare * (nodes - 2.0))


ALL_REDUCE, PARAMETER_SERVER, BYTEPS = range(3)
BACKENDS: tuple[Backend, ...] = get_args(Backend)
"""The backends; a kernel knows them by their places."""


@lean_kernel
def network_load(backend: int, nodes: float, spare: float, busy: float) -> float:
    """Return how long n nodes synchronise, in the time of a node's network for the size of the model.

    It is the time of the busiest link: of a node or a spare machine, or of the core of the network, on which all jobs
    on several nodes send at once and which each uses by its number of nodes. Spare machines are used only where they
    make it shorter, so it never rises with them.

    - All-reduce, a ring: every node sends 2(n - 1)/n, over the core too.
    - Parameter servers on k machines: a node sends 1, a server n/k each way, and 2 for each node cross the core.
      Without machines, or where they are too few, every node is a server beside: 2(n - 1)/n, as with all-reduce.
    - BytePS: every node and every spare machine sends V(n, k) (`traffic`), with no more spare machines than the core
      carries.

    Args:
        backend: Place of the backend in `BACKENDS`.
        nodes: The nodes n that train, ≥ 1.
        spare: The spare machines k, from 0 to n; may be fractional.
        busy: Nodes of all jobs on several nodes, over the nodes whose full bandwidth the core carries; 0: no limit.
    """
    if nodes < 2.0:
        return 0.0
    alone = traffic(nodes, 0.0) * max(1.0, busy)
    if spare <= 0.0 or backend == ALL_REDUCE:
        return alone
    if backend == PARAMETER_SERVER:
        return min(alone, max(1.0, nodes / spare, 2.0 * busy))
    used = min(spare, nodes * max(0.0, 1.0 / busy - 1.0)) if busy > 0.0 else spare
    return traffic(nodes, used) * max(1.0, busy)


@lean_kernel
def iteration_s(compute_s: float, sync_s: float, inside_s: float, nodes: float, network: float) -> float:
    """Return the time of an iteration of a fixed batch on n nodes [s]: a/n + max(x · load, y).

    Args:
        compute_s: Time a of an iteration on one node, without synchronising [s].
        sync_s: Time x of synchronising that no computing hides, for each size of the model sent [s].
        inside_s: The same y inside a machine, which no spare machine makes shorter [s].
        nodes: The nodes n, ≥ 1.
        network: The load of the network (`network_load`), 0 on one node.
    """
    return compute_s / nodes + (max(sync_s * network, inside_s) if nodes >= 2.0 else 0.0)
