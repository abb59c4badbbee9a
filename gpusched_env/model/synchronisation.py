"""Time of jobs on several nodes for synchronising, and how spare machines shorten it (BytePS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.kernel import lean_kernel
from gpusched_env.model import checks

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


@lean_kernel
def iteration_s(compute_s: float, sync_s: float, nodes: float, spare: float) -> float:
    """Return the time of an iteration of a fixed batch on n nodes [s]: a/n + x · V(n, k).

    Args:
        compute_s: Time a of an iteration on one node, without synchronising [s].
        sync_s: Time x of synchronising that no computing hides, for each size of the model sent [s].
        nodes: The nodes n, ≥ 1.
        spare: The spare machines k, from 0 to n.
    """
    return compute_s / nodes + sync_s * traffic(nodes, spare)


@dataclass(frozen=True, slots=True, eq=False)
class Synchronisation:
    """How long iterations compute and synchronise, and the CPU machines that help: jobs on several nodes use BytePS.

    The jobs on several nodes share the network of K spare machines: the CPU machines, and the nodes that are on and
    have no job on several nodes. If such jobs hold D nodes in all, one on n of them has k = n · min(1, K/D) spare
    machines, and takes (a/n + x·V(n, k)) / (a/n + x·V(n, 0)) of its time in `JobTable.seconds_per_epoch`, which holds
    without help.

    Args:
        compute_s: Time a of an iteration on one node [s], by GPU type and application, shape (V, A), > 0; V and A as
            in the instance's `gpu_types` and `jobs.applications`.
        sync_s: Time x of synchronising for each size of the model sent [s], the same shape, ≥ 0; 0 where nothing is
            known: spare machines change nothing then.
        cpu_machines: CPU machines that help, ≥ 0. They run anyway, and the bill does not include them.

    Raises:
        InputError: The arrays have another form, or a value is out of its range.
    """

    compute_s: NDArray[np.float64]
    sync_s: NDArray[np.float64]
    cpu_machines: int = 0

    def __post_init__(self) -> None:
        for name, least in (("compute_s", "> 0"), ("sync_s", ">= 0")):
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

    def least_slowdowns(self, configurations: Sequence[Configuration], types: Sequence[int]) -> NDArray[np.float64]:
        """Return the least part of its time that an application can take, with the most help, (A, C); at most 1.

        Args:
            configurations: The configurations C.
            types: The GPU type's index of each.
        """
        least = np.ones((self.compute_s.shape[1], len(configurations)))
        for c, (configuration, v) in enumerate(zip(configurations, types, strict=True)):
            nodes = configuration.nodes
            for a, own in enumerate(zip(self.compute_s[v], self.sync_s[v], strict=True)):
                least[a, c] = iteration_s(*own, nodes, nodes) / iteration_s(*own, nodes, 0.0)
        return least

    def __repr__(self) -> str:
        """Return a line with its size."""
        return checks.short_repr(self)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Return the constructor and arguments that rebuild the value, arrays read-only again."""
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Synchronisation)
            and np.array_equal(self.compute_s, other.compute_s)
            and np.array_equal(self.sync_s, other.sync_s)
            and self.cpu_machines == other.cpu_machines
        )

    __hash__ = None  # type: ignore[assignment]
