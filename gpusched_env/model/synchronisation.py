"""Time of jobs on several nodes for synchronising: by backend, spare machines, and what the network carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.kernel import lean_kernel
from gpusched_env.model import checks
from gpusched_env.model.configuration import Backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Configuration


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


@dataclass(frozen=True, slots=True, eq=False)
class Synchronisation:
    """How long iterations compute and synchronise, how jobs on several nodes do so, and the CPU machines that help.

    With BytePS the jobs on several nodes share the network of K spare machines: the CPU machines, and the nodes that
    are on and have no job on several nodes. If such jobs hold D nodes in all, one on n of them has
    k = n · min(1, K/D) spare machines. Parameter servers run on CPU machines alone, shared in the same way. If the core
    of the network carries c nodes at full bandwidth, D/c is how busy it is. A job takes
    (a/n + max(x · network_load(n, k, D/c), y)) / (a/n + max(x · network_load(n, 0, N/c), y)) of its time in
    `JobTable.seconds_per_epoch`, N all nodes of the cluster: that time holds without help, and whatever others send.

    A CPU machine draws power while it makes a job faster: of K/D spare machines for a node, nodes that are on count
    first.

    Args:
        compute_s: Time a of an iteration on one node [s], by GPU type and application, shape (V, A), > 0; V and A as
            in the instance's `gpu_types` and `jobs.applications`.
        sync_s: Time x of synchronising for each size of the model sent [s], the same shape, ≥ 0; 0 where nothing is
            known: spare machines change nothing then.
        cpu_machines: CPU machines that help, ≥ 0; 0 with all-reduce.
        backend: How jobs synchronise.
        cpu_machine_w: Power of a CPU machine while it helps [W], ≥ 0; 0: the bill does not include them.
        core_nodes: Nodes c whose full bandwidth the core of the network carries, > 0; None: all.
        inside_s: Time y of synchronising inside a machine [s], the same shape, ≥ 0; None: 0.

    Raises:
        InputError: The arrays have another form, or a value is out of its range.
    """

    compute_s: NDArray[np.float64]
    sync_s: NDArray[np.float64]
    cpu_machines: int = 0
    backend: Backend = "byteps"
    cpu_machine_w: float = 0.0
    core_nodes: float | None = None
    inside_s: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for name, least in (("compute_s", "> 0"), ("sync_s", ">= 0"), ("inside_s", ">= 0")):
            if getattr(self, name) is None and name == "inside_s":
                continue
            values = checks.frozen_array(getattr(self, name))
            object.__setattr__(self, name, values)
            if values.ndim != 2 or values.shape != np.shape(self.compute_s):
                allowed = "an array (GPU types, applications), equally large"
                raise InputError(f"synchronisation.{name}", values.shape, allowed)
            good = np.isfinite(values) & (values > 0.0 if least == "> 0" else values >= 0.0)
            if not np.all(good):
                v, a = (int(i) for i in np.argwhere(~good)[0])
                raise InputError(f"synchronisation.{name}[{v}, {a}]", float(values[v, a]), f"a finite number {least}")
        checks.whole("synchronisation.cpu_machines", self.cpu_machines, lowest=0)
        if self.backend not in BACKENDS:
            raise InputError("synchronisation.backend", self.backend, f"one of {', '.join(BACKENDS)}")
        if self.backend == "all-reduce" and self.cpu_machines:
            raise InputError("synchronisation.cpu_machines", self.cpu_machines, "0 with all-reduce")
        checks.not_negative("synchronisation.cpu_machine_w", self.cpu_machine_w)
        if self.core_nodes is not None:
            checks.positive("synchronisation.core_nodes", self.core_nodes)

    @property
    def known_inside_s(self) -> NDArray[np.float64]:
        """Return the time of synchronising inside a machine [s], (V, A)."""
        return np.zeros_like(self.compute_s) if self.inside_s is None else self.inside_s

    def busy(self, nodes: float) -> float:
        """Return how busy so many nodes of jobs on several nodes make the core; 0 without a limit."""
        return 0.0 if self.core_nodes is None else nodes / self.core_nodes

    def least_slowdowns(
        self, configurations: Sequence[Configuration], types: Sequence[int], cluster_nodes: int
    ) -> NDArray[np.float64]:
        """Return the least part of its time that an application can take, with the most help, (A, C); at most 1.

        Args:
            configurations: The configurations C.
            types: The GPU type's index of each.
            cluster_nodes: Nodes of the cluster.
        """
        least, code = np.ones((self.compute_s.shape[1], len(configurations))), BACKENDS.index(self.backend)
        for c, (configuration, v) in enumerate(zip(configurations, types, strict=True)):
            n = float(configuration.nodes)
            best, worst = network_load(code, n, n, self.busy(n)), network_load(code, n, 0.0, self.busy(cluster_nodes))
            for a, own in enumerate(zip(self.compute_s[v], self.sync_s[v], self.known_inside_s[v], strict=True)):
                least[a, c] = iteration_s(*own, n, best) / iteration_s(*own, n, worst)
        return least

    def __repr__(self) -> str:
        return checks.short_repr(self)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        arrays = ("compute_s", "sync_s", "known_inside_s")
        rest = ("cpu_machines", "backend", "cpu_machine_w", "core_nodes")
        return (
            isinstance(other, Synchronisation)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in arrays)
            and all(getattr(self, name) == getattr(other, name) for name in rest)
        )

    __hash__ = None  # type: ignore[assignment]
