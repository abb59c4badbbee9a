"""Jobs on several nodes whose time varies: with what others send over the network, and with spare machines."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.mechanism import Mechanism
from gpusched_env.model.synchronisation import BACKENDS, iteration_s, network_load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.configuration import Backend, Configuration
    from gpusched_env.model.instance import Instance


@dataclass(frozen=True, slots=True, eq=False)
class Synchronisation(Mechanism):
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

    mechanism: ClassVar[str] = "network"
    schema: ClassVar[Mapping[str, Any]] = {
        "compute_s": [[float]], "sync_s": [[float]], "cpu_machines": int, "backend?": str, "cpu_machine_w?": float,
        "core_nodes?": float, "inside_s?": [[float]],
    }  # fmt: skip

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

    def check(self, instance: Instance) -> None:
        """Check that there are times for each GPU type and application, and no spread or shared GPUs on several nodes.

        Raises:
            InputError: It has others.
        """
        if instance.most_spread:
            raise InputError("synchronisation", "...", "none with spread configurations, whose times are measured")
        several = next((c.name for c in instance.configurations if c.nodes > 1 and c.share < 1.0), None)
        if several is not None:
            raise InputError("synchronisation", several, "none with shares on several nodes")
        shape = (len(instance.gpu_types), len(instance.jobs.applications))
        if self.compute_s.shape != shape:
            allowed = f"{shape}: GPU types, applications"
            raise InputError("synchronisation.compute_s", self.compute_s.shape, allowed)

    def fields(self) -> dict[str, Any]:
        """Return the fields in files: times in seconds, numbers of machines, and powers in W."""
        entry: dict[str, Any] = {"compute_s": self.compute_s.tolist(), "sync_s": self.sync_s.tolist()}
        entry["cpu_machines"] = int(self.cpu_machines)
        default = {each.name: each.default for each in fields(self)}
        rest = {name: getattr(self, name) for name in ("backend", "cpu_machine_w", "core_nodes")}
        entry |= {name: value for name, value in rest.items() if value != default[name]}
        return entry if self.inside_s is None else entry | {"inside_s": self.inside_s.tolist()}

    @classmethod
    def of_fields(cls, given: Mapping[str, Any]) -> Self:
        """Make the model from its fields in a file.

        Raises:
            InputError: A table has rows of different lengths, or a field has a wrong value.
        """
        read = dict(given)
        for name in (name for name in ("compute_s", "sync_s", "inside_s") if name in read):
            lengths = sorted({len(row) for row in read[name]})
            if len(lengths) != 1:
                raise InputError(f"synchronisation.{name}", f"rows of {lengths} numbers", "equally long rows")
            read[name] = np.array(read[name])
        return cls(**read)

    def fastest(self, instance: Instance, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least seconds per epoch of jobs, (J, C): with all help that there can be on several nodes."""
        types = instance.type_of_configuration.tolist()
        least = self.least_slowdowns(instance.configurations, types, len(instance.nodes))
        return checks.frozen_array(seconds * least[instance.jobs.application])

    @property
    def known_inside_s(self) -> NDArray[np.float64]:
        """Return the time of synchronising inside a machine [s], (V, A)."""
        return np.zeros_like(self.compute_s) if self.inside_s is None else self.inside_s

    def busy(self, nodes: float) -> float:
        """Return how busy the core is with n nodes of jobs on several nodes; 0 without a limit."""
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


MODEL = Synchronisation
