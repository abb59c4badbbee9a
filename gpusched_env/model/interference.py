"""Interference: the slow-down of co-runners on a shared GPU, by measured pairs or by their utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.configuration import FILLED, LEAST_SPEED, OVERHEAD
from gpusched_env.model.shared_memory import SharedMemory


def _checked_factors(field: str, given: NDArray[np.float64]) -> NDArray[np.float64]:
    factors = checks.frozen_array(given)
    if factors.ndim != 3 or factors.shape[1] != factors.shape[2]:
        raise InputError(field, factors.shape, "an array (GPU types, applications, applications)")
    good = np.isfinite(factors) & (factors >= 1.0)
    if not np.all(good):
        v, a, b = (int(i) for i in np.argwhere(~good)[0])
        raise InputError(f"{field}[{v}, {a}, {b}]", float(factors[v, a, b]), "a finite number >= 1")
    return factors


@dataclass(frozen=True, slots=True, eq=False)
class Interference:
    """Slow-downs of pairs of applications that share one GPU.

    With several co-runners, the excesses add up: an application a on a GPU of type v takes 1 + Σ_b (slowdown[v, a, b] -
    1) times as long as alone, over its co-runners b. The pairs are measured; the sum is an assumption.

    Args:
        slowdown: Factor on the time of application a with co-runner b on type v, shape (V, A, A), ≥ 1; V and A
            as in the instance's `gpu_types` and `jobs.applications`.
        fastest: Whether a share goes to the open GPU on which it is fastest; else to the fullest.

    Raises:
        InputError: It has another form, or a factor is below 1 or not finite.
    """

    slowdown: NDArray[np.float64]
    fastest: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "slowdown", _checked_factors("interference.slowdown", self.slowdown))
        if not isinstance(self.fastest, bool):
            raise InputError("interference.fastest", self.fastest, "True or False")

    def most_slowdown(self, least_share: float) -> float:  # noqa: ARG002 - as `UtilisationModel` has it
        """Return the greatest factor of a pair."""
        return float(self.slowdown.max(initial=1.0))

    def __repr__(self) -> str:
        return checks.short_repr(self)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interference):
            return False
        return self.fastest == other.fastest and np.array_equal(self.slowdown, other.slowdown)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, eq=False)
class UtilisationModel:
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
        below: Factor on the time of application a beside an application b of higher priority on type v, (V, A, A),
            ≥ 1, in place of what the utilisations leave: a job below another one takes 1 + Σ_b (below - 1) times as
            long, b all its co-runners. None: by utilisation.
        memory: The memory of GPUs moves between jobs while they run; None: every share has its part of it.
        profile_s: Time for which a job of an application must have run on whole GPUs, without a change, before shares
            are open to jobs of that application [s], ≥ 0; 0: they always are.

    Raises:
        InputError: It has another form, or a number is out of its range.
    """

    utilisation: NDArray[np.float64]
    overhead: float = OVERHEAD
    filled: float | NDArray[np.float64] = FILLED
    least_speed: float = LEAST_SPEED
    idle_power_w: NDArray[np.float64] | None = None
    fastest: bool = True
    below: NDArray[np.float64] | None = None
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
        if self.below is not None:
            object.__setattr__(self, "below", _checked_factors("interference.below", self.below))
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

    def most_slowdown(self, least_share: float) -> float:
        """Return the greatest possible factor, where no share is smaller than `least_share`."""
        pairs = 1.0 if self.below is None else 1.0 + (float(self.below.max(initial=1.0)) - 1.0) / least_share
        moved = 0.0 if self.memory is None else self.memory.longest()
        return moved + max(pairs, (1.0 + self.overhead) * max(1.0, 1.0 / least_share) / self.least_speed)

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
        for own, its in ((self.idle_power_w, other.idle_power_w), (self.below, other.below)):
            same = same and (own is its if own is None or its is None else np.array_equal(own, its))
        return same

    __hash__ = None  # type: ignore[assignment]
