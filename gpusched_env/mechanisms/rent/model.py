"""The price of a GPU for the time for which it is held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpusched_env.model import checks
from gpusched_env.model.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Rent(Mechanism):
    """What held GPUs cost in addition to their energy; it is billed with the energy, and policies plan with it.

    Args:
        gpu_hour_eur: Price of a GPU for each hour for which it is held [€/h], ≥ 0.

    Raises:
        InputError: The price is below 0.
    """

    mechanism: ClassVar[str] = "rent"
    schema: ClassVar[Any] = float
    constants_from: ClassVar[Any] = "nothing"

    gpu_hour_eur: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpu_hour_eur", float(checks.not_negative("gpu_hour_eur", self.gpu_hour_eur)))

    @property
    def rent_eur_per_h(self) -> float:
        """Price of a held GPU [€/h]."""
        return self.gpu_hour_eur


MODEL = Rent
