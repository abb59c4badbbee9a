"""What a bill says of energy: whether it is one of energy at all, and what a kWh emits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusched_env.workload import Scenario


@dataclass(frozen=True, slots=True)
class Billing:
    """What is billed.

    Attributes:
        rented: GPU types whose nodes are paid by the hour: their bill says nothing of energy.
        co2_g_per_kwh: What a kWh emits [g CO₂/kWh], ≥ 0, if that is known.
    """

    rented: tuple[str, ...] = ()
    co2_g_per_kwh: float | None = None

    @classmethod
    def of(cls, scenario: Scenario | None) -> Billing:
        """Take what a scenario says; of an instance nothing is known but its price of energy."""
        if scenario is None:
            return cls()
        rented = (own.name for own in scenario.gpu_types if own.node_eur_per_h is not None)
        return cls(tuple(rented), scenario.prices.co2_g_per_kwh)

    def kwh(self, energy_eur: float, eur_per_kwh: float) -> float:
        """Give the energy that costs so much [kWh]; NaN where the bill does not tell."""
        return energy_eur / eur_per_kwh if eur_per_kwh > 0.0 and not self.rented else float("nan")

    def co2_kg(self, energy_kwh: float) -> float | None:
        """Give what so much energy emits [kg CO₂]; None if that, or the energy, is not known."""
        known = self.co2_g_per_kwh is not None and energy_kwh == energy_kwh  # noqa: PLR0124 - NaN differs from itself
        return energy_kwh * self.co2_g_per_kwh / 1000.0 if known and self.co2_g_per_kwh is not None else None

    def said(self) -> tuple[str, ...]:
        """Say, in sentences, what is not known of energy."""
        if self.rented:
            names = ", ".join(self.rented)
            return (
                f"Nodes of {names} are paid by the hour: that is what is called energy cost here; kWh are not known.",
            )
        return ()


ENERGY = Billing()
"""Energy is billed, and nobody said what it emits."""
