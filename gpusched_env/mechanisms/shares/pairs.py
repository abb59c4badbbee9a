"""Interference by measured pairs: the slow-down of co-runners on a shared GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import array_of
from gpusched_env.mechanisms.shares.co_runners import CoRunners, checked_factors
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Interference(CoRunners):
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

    table: ClassVar[str] = "slowdown"
    schema: ClassVar[Mapping[str, Any]] = {"slowdown": [[[float]]], "fastest?": bool}

    slowdown: NDArray[np.float64]
    fastest: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "slowdown", checked_factors("interference.slowdown", self.slowdown))
        if not isinstance(self.fastest, bool):
            raise InputError("interference.fastest", self.fastest, "True or False")

    def fields(self) -> dict[str, Any]:
        """Return the fields in files, the table first."""
        return {"slowdown": self.slowdown.tolist(), **({"fastest": True} if self.fastest else {})}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Make it from the fields of a file."""
        return cls(**{**fields, "slowdown": array_of("interference.slowdown", fields["slowdown"], 3)})

    def alike(self, types: Sequence[int], configurations: Sequence[int]) -> Self:  # noqa: ARG002 - of others
        """Return the model for GPU types that are each like one of the present ones."""
        return replace(self, slowdown=self.slowdown[list(types)])

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
