"""Interference by utilisation: jobs that share a GPU divide its time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import array_of, value_of
from gpusched_env.mechanisms.shares.co_runners import CoRunners
from gpusched_env.mechanisms.shares.shared_memory import SCHEMA, SharedMemory
from gpusched_env.model import checks
from gpusched_env.model.configuration import FILLED, LEAST_SPEED, OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.model.instance import Instance


@dataclass(frozen=True, slots=True, eq=False)
class UtilisationModel(CoRunners):
    """Jobs that share a GPU divide its time: a job alone keeps the GPU busy for a part of the time, its utilisation.

    From the highest priority of a share down, with R = 1 at first, all jobs of a priority, of utilisations D in sum,
    run at the speed min(1, R / D), where 1 is alone; those with jobs below them lose a part: speed / (1 + `overhead`).
    R falls by the time that they took, and after the highest priority to the part `filled` of the rest, since the
    others cannot use every gap between kernels. The speed of the others is at least `least_speed` / max(1, G), G the
    sum of their utilisations.

    One priority alone is fair sharing, slow-down max(1, D) (Salus, Gandiva's packing, MPS); two are guaranteed and
    opportunistic shares (AntMan, FIKIT, Orion, TGS).

    Args:
        utilisation: Part of the time for which application a keeps a GPU of type v busy while it is alone there,
            (V, A), in (0, 1]; V and A as in the instance's `gpu_types` and `jobs.applications`.
        overhead: Time that a job loses to co-runners of lower priority, as a part of its time, > 0.
        filled: Part of the time left by the highest priority that others can use, in [0, 1]: a number, or a table by
            application of the highest priority and number of other jobs on the GPU, (A, M), whose last column is for M
            and more; of several applications of the highest priority, the least counts.
        least_speed: Least speed of those below the highest priority, however busy the GPU is, > 0; if their
            utilisations sum to more than 1 it is divided by the sum. At most overhead / (1 + overhead), the time that
                the overhead leaves free.
        idle_power_w: Power of a held, idle GPU of each type [W], (V,), ≥ 0: a GPU then draws idle +
            (busy - idle) · Σ utilisation · speed. None: a GPU that is held draws the power of a busy one.
        fastest: Whether a share goes to the open GPU on which it is fastest; else to the fullest.
        memory: The memory of GPUs moves between jobs while they run; None: every share has its part of it.
        profile_s: Time for which a job of an application must have run on whole GPUs, without a change, before shares
            are open to jobs of that application [s], ≥ 0; 0: they always are.

    Raises:
        InputError: It has another form, or a number is out of its range.
    """

    table: ClassVar[str] = "utilisation"
    divides_time = True
    schema: ClassVar[Mapping[str, Any]] = {
        "utilisation": [[float]],
        "overhead": float,
        "filled": None,
        "least_speed": float,
        "idle_power_w": ([float], None),
        "fastest": bool,
        "profile_s?": float,
        "memory?": SCHEMA,
    }

    utilisation: NDArray[np.float64]
    overhead: float = OVERHEAD
    filled: float | NDArray[np.float64] = FILLED
    least_speed: float = LEAST_SPEED
    idle_power_w: NDArray[np.float64] | None = None
    fastest: bool = True
    memory: SharedMemory | None = None
    profile_s: float = 0.0

    def __post_init__(self) -> None:
        utilisation = checks.frozen_array(self.utilisation)
        object.__setattr__(self, "utilisation", utilisation)
        if utilisation.ndim != 2:
            raise InputError("interference.utilisation", utilisation.shape, "an array (GPU types, applications)")
        good = (utilisation > 0.0) & (utilisation <= 1.0)
        if not np.all(good):
            v, a = (int(i) for i in np.argwhere(~good)[0])
            raise InputError(f"interference.utilisation[{v}, {a}]", float(utilisation[v, a]), "a number > 0 and <= 1")
        checks.positive("interference.overhead", self.overhead)
        self._check_filled()
        most = self.overhead / (1.0 + self.overhead)
        if checks.positive("interference.least_speed", self.least_speed) > most:
            allowed = f"at most overhead / (1 + overhead) = {most:.6g}: the time that the highest priority leaves free"
            raise InputError("interference.least_speed", self.least_speed, allowed)
        if not isinstance(self.fastest, bool):
            raise InputError("interference.fastest", self.fastest, "True or False")
        checks.seconds("interference.profile_s", self.profile_s)
        self._check_power()

    def _check_filled(self) -> None:
        if not isinstance(self.filled, np.ndarray):
            if checks.not_negative("interference.filled", self.filled) > 1.0:
                raise InputError("interference.filled", self.filled, "a number from 0 to 1")
            return
        table, rows = checks.frozen_array(self.filled), self.utilisation.shape[1]
        object.__setattr__(self, "filled", table)
        if table.ndim != 2 or len(table) != rows or table.shape[1] == 0:
            allowed = f"a number, or an array (applications, numbers of other jobs) of {rows} rows"
            raise InputError("interference.filled", table.shape, allowed)
        good = (table >= 0.0) & (table <= 1.0)
        if not np.all(good):
            a, m = (int(i) for i in np.argwhere(~good)[0])
            raise InputError(f"interference.filled[{a}, {m}]", float(table[a, m]), "a number from 0 to 1")

    def filled_by(self, first: Sequence[int], others: int) -> float:
        """Return the part that `others` jobs can use of what applications of the highest priority leave.

        Args:
            first: The applications of the highest priority, at least one.
            others: How many jobs are below them.
        """
        if not isinstance(self.filled, np.ndarray):
            return self.filled
        return float(self.filled[first, min(max(others, 1), self.filled.shape[1]) - 1].min())

    def _check_power(self) -> None:
        if self.idle_power_w is None:
            return
        idle = checks.frozen_array(self.idle_power_w)
        object.__setattr__(self, "idle_power_w", idle)
        if idle.shape != self.utilisation.shape[:1]:
            raise InputError(
                "interference.idle_power_w", idle.shape, f"{len(self.utilisation)} numbers, one for each GPU type"
            )
        for v, watts in enumerate(idle.tolist()):
            checks.not_negative(f"interference.idle_power_w[{v}]", watts)

    @property
    def moves_memory(self) -> bool:
        """Whether a share has all memory of its GPUs, since it moves between their jobs."""
        return self.memory is not None

    def check(self, instance: Instance) -> None:
        """Check it for an instance, as `CoRunners`, with the power of idle GPUs and the jobs to profile.

        Raises:
            InputError: An idle GPU saves more than its node draws for it, or a job that is to be profiled may use no
                whole GPUs.
        """
        CoRunners.check(self, instance)
        memory = self.memory
        if memory is not None and memory.adapt_s and instance.decision_interval_s:
            raise InputError("interference.memory.adapt_s", memory.adapt_s, "0 with a decision_interval_s")
        self._check_idle_power(instance)
        whole = np.array([c.kind != "shared" for c in instance.configurations])
        able = np.isfinite(instance.jobs.seconds_per_epoch[:, whole]).any(axis=1)
        if self.profile_s and not np.all(able):
            allowed = f"0, since job {int(np.argmin(able))} may use no whole GPUs, on which it would be profiled"
            raise InputError("interference.profile_s", self.profile_s, allowed)

    def check_tables(self, types: int, applications: int) -> None:
        """Check that tables are those of so many GPU types and applications."""
        CoRunners.check_tables(self, types, applications)
        shape = (types, applications)
        if self.memory is not None and self.memory.iteration_s.shape != shape:
            found = self.memory.iteration_s.shape
            raise InputError("interference.memory.iteration_s", found, f"{shape}: types, applications")

    def _check_idle_power(self, instance: Instance) -> None:
        """Check that the idle-power saving of a GPU is at most the power that its node draws for it."""
        for v, gpu_type in enumerate(instance.gpu_types if self.idle_power_w is not None else ()):
            most = range(1, instance.largest_node.get(gpu_type.name, 0) + 1)
            each_w = min((gpu_type.power_w(busy) / busy for busy in most), default=np.inf)
            low, high = max(0.0, gpu_type.gpu_power_w - each_w), gpu_type.gpu_power_w
            idle_w = float(self.idle_power_w[v])  # type: ignore[index]
            if not low <= idle_w <= high:
                allowed = f"from {low:g} to {high:g} W, the power of a busy {gpu_type.name}"
                raise InputError(f"interference.idle_power_w[{v}]", idle_w, allowed)

    def fields(self) -> dict[str, Any]:
        """Return the fields in files, the table first; `memory` and `profile_s` only where it has them."""
        values = {name: getattr(self, name) for name in (field.rstrip("?") for field in self.schema)}
        values["memory"] = None if self.memory is None else self.memory.fields()
        for name in ("memory", "profile_s"):
            if values[name] is None or (name == "profile_s" and not self.profile_s):
                del values[name]
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Make it from the fields of a file."""
        read = {**fields, "utilisation": array_of("interference.utilisation", fields["utilisation"], 2)}
        if isinstance(read["filled"], list):
            read["filled"] = array_of("interference.filled", read["filled"], 2)
        else:
            read["filled"] = value_of("interference.filled", read["filled"], float)
        if read["idle_power_w"] is not None:
            read["idle_power_w"] = np.array(read["idle_power_w"])
        if "memory" in read:
            read["memory"] = SharedMemory.of_fields(read["memory"])
        return cls(**read)

    def alike(self, types: Sequence[int], configurations: Sequence[int]) -> Self:  # noqa: ARG002 - of others
        """Return the model for GPU types that are each like one of the present ones."""
        base, idle, memory = list(types), self.idle_power_w, self.memory
        return replace(
            self,
            utilisation=self.utilisation[base],
            idle_power_w=None if idle is None else idle[base],
            memory=None if memory is None else replace(memory, iteration_s=memory.iteration_s[base]),
        )

    def most_slowdown(self, least_share: float) -> float:
        """Return the greatest possible factor, where no share is smaller than `least_share`."""
        moved = 0.0 if self.memory is None else self.memory.longest()
        return moved + (1.0 + self.overhead) * max(1.0, 1.0 / least_share) / self.least_speed

    def __repr__(self) -> str:
        return checks.short_repr(self)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UtilisationModel):
            return False
        numbers = (self.overhead, self.least_speed, self.fastest, self.profile_s)
        same = numbers == (other.overhead, other.least_speed, other.fastest, other.profile_s)
        same = same and np.array_equal(self.filled, other.filled)
        same = same and np.array_equal(self.utilisation, other.utilisation) and self.memory == other.memory
        own, its = self.idle_power_w, other.idle_power_w
        return same and (own is its if own is None or its is None else np.array_equal(own, its))

    __hash__ = None  # type: ignore[assignment]
