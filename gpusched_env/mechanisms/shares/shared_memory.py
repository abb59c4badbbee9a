"""Memory of a shared GPU that moves between its jobs while they run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import array_of
from gpusched_env.model import checks


@dataclass(frozen=True, slots=True, eq=False)
class SharedMemory:
    """Memory limits of the jobs with a share of a GPU, and what it costs a job to have less than it needs.

    Shares have no memory of their own. From the highest priority of a GPU down, the jobs of a priority get what they
    need, or, where less is left, the same part of it. What does not fit of a job's peak is in host memory, and is moved
    out and back in every mini-batch: 2 · overflow / bandwidth, in addition to the time of the mini-batch. Where a limit
    is below the job's working minimum, the job nearly stands: it has the least speed of the `UtilisationModel`.

    Limits follow the jobs on a GPU with a delay. For `adapt_s` seconds after others came to a GPU or left it, a job
    that gets faster is as slow as before, and one of the highest priority runs as if the priorities were equal, at
    1 / Σ utilisation, where that is below its speed. What it loses by that is booked as time in which it stands.

    Args:
        need_gib: Peak memory of application a on each of its GPUs in a mini-batch [GiB], (A,), ≥ 0.
        least_gib: Its working minimum there: weights, gradients and the state of the optimiser [GiB], (A,), from 0 to
            the need.
        iteration_s: Time of a mini-batch alone on type v [s], (V, A), > 0.
        host_gb_per_s: Bandwidth between a GPU and the host's memory [GB/s], > 0.
        adapt_s: Seconds until limits are right, ≥ 0.

    Raises:
        InputError: An array has another form, or a number is out of its range.
    """

    need_gib: NDArray[np.float64]
    least_gib: NDArray[np.float64]
    iteration_s: NDArray[np.float64]
    host_gb_per_s: float = 12.0
    adapt_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("need_gib", "least_gib", "iteration_s"):
            object.__setattr__(self, name, checks.frozen_array(getattr(self, name)))
        need, least, iteration = self.need_gib, self.least_gib, self.iteration_s
        if need.ndim != 1 or least.shape != need.shape:
            raise InputError("memory.least_gib", least.shape, "a number for each application, as need_gib")
        if iteration.ndim != 2 or iteration.shape[1:] != need.shape:
            raise InputError("memory.iteration_s", iteration.shape, "an array (GPU types, applications)")
        if not np.all(np.isfinite(need) & (least >= 0.0) & (least <= need)):
            raise InputError("memory.least_gib", least.tolist(), f"numbers from 0 to need_gib: {need.tolist()}")
        if not np.all(np.isfinite(iteration) & (iteration > 0.0)):
            raise InputError("memory.iteration_s", iteration.tolist(), "finite numbers > 0")
        checks.positive("memory.host_gb_per_s", self.host_gb_per_s)
        checks.not_negative("memory.adapt_s", self.adapt_s)

    def fields(self) -> dict[str, Any]:
        """Return the fields in files."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in own.items()}

    @classmethod
    def of_fields(cls, read: dict[str, Any]) -> SharedMemory:
        """Make it from the fields of a file."""
        tables = {name: np.array(read[name], dtype=np.float64) for name in ("need_gib", "least_gib")}
        return cls(**(read | tables | {"iteration_s": array_of("memory.iteration_s", read["iteration_s"], 2)}))

    def added(self) -> NDArray[np.float64]:
        """Return the part of a mini-batch that each GiB in host memory adds to it, out and back, (V, A)."""
        return 2.0 * GIB / (self.host_gb_per_s * 1e9 * self.iteration_s)

    def longest(self) -> float:
        """Return the greatest part of a mini-batch that the move of all memory adds to it."""
        return float((self.need_gib * self.added()).max(initial=0.0))

    def __repr__(self) -> str:
        return checks.short_repr(self)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedMemory):
            return False
        same = (self.host_gb_per_s, self.adapt_s) == (other.host_gb_per_s, other.adapt_s)
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("need_gib", "least_gib", "iteration_s")]
        return same and all(np.array_equal(own, its) for own, its in pairs)

    __hash__ = None  # type: ignore[assignment]


GIB = 2**30
"""Bytes of a GiB."""
SCHEMA: dict[str, Any] = {
    "need_gib": [float],
    "least_gib": [float],
    "iteration_s": [[float]],
    "host_gb_per_s": float,
    "adapt_s": float,
}
"""The fields in files."""
