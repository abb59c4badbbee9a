"""What jobs that share a GPU do to one another's pace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Interference:
    """Slow-downs of pairs of applications that share one GPU.

    Beside several others, the excesses add up: an application a on a GPU of type v takes 1 + Σ_b (slowdown[v, a, b] -
    1) times as long as alone, over the jobs b beside it. Pairs are what is measured; the sum is an assumption.

    Args:
        slowdown: Factor on the time of application a beside application b on type v, shape (V, A, A), ≥ 1; V and A
            as in the instance's `gpu_types` and `jobs.applications`.
        fastest: Whether a share goes to the open GPU on which it is fastest; else to the fullest.

    Raises:
        InputError: It has another form, or a factor is below 1 or not finite.
    """

    slowdown: NDArray[np.float64]
    fastest: bool = False

    def __post_init__(self) -> None:
        slowdown = checks.frozen_array(self.slowdown)
        object.__setattr__(self, "slowdown", slowdown)
        if slowdown.ndim != 3 or slowdown.shape[1] != slowdown.shape[2]:
            allowed = "an array (GPU types, applications, applications)"
            raise InputError("interference.slowdown", slowdown.shape, allowed)
        good = np.isfinite(slowdown) & (slowdown >= 1.0)
        if not np.all(good):
            v, a, b = (int(i) for i in np.argwhere(~good)[0])
            raise InputError(f"interference.slowdown[{v}, {a}, {b}]", float(slowdown[v, a, b]), "a finite number >= 1")

        if not isinstance(self.fastest, bool):
            raise InputError("interference.fastest", self.fastest, "True or False")

    def most_slowdown(self, least_share: float) -> float:  # noqa: ARG002 - as `Duty` has it
        """Give the greatest factor of a pair."""
        return float(self.slowdown.max(initial=1.0))

    def __repr__(self) -> str:
        """Say in a line how large it is."""
        return checks.short_repr(self)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Give what rebuilds the value, arrays read-only again."""
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interference):
            return False
        return self.fastest == other.fastest and np.array_equal(self.slowdown, other.slowdown)

    __hash__ = None  # type: ignore[assignment]
