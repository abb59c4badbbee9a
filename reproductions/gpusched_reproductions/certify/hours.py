"""Prices of energy and the cap of a site by time, for the programs of small instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.bounds.periods import PriceFactors, least_factors, prices_of
from gpusched_env.errors import InputError
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.model.rates import rent_eur_per_h

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """What changes with time.

    Attributes:
        prices: Prices of energy over the price of the rates; None: always that price.
        cap_start_s: When each cap begins [s], (P,).
        cap_eur_per_s: The cost rate at the price of the rates that power may have under each [€/s], (P,).
    """

    prices: PriceFactors | None = None
    cap_start_s: tuple[float, ...] = ()
    cap_eur_per_s: tuple[float, ...] = ()

    @classmethod
    def of(cls, instance: Instance) -> Hours:
        """Return what changes with time in an instance.

        Raises:
            InputError: The cap is soft, or held GPUs have a price: then costs do not follow from power alone.
        """
        site, prices = instance.of(PowerCap), prices_of(instance)
        if site is not None and not site.is_hard:
            raise InputError("site.soft_eur_per_kwh", site.soft_eur_per_kwh, "None: the cap is hard")
        rent = rent_eur_per_h(instance)
        if rent > 0.0 and (site is not None or prices is not None):
            raise InputError("gpu_hour_eur", rent, "0 with prices by time or a cap")
        if site is None:
            return cls(prices)
        eur = instance.energy_price_eur_per_kwh * instance.pue / 3600.0
        return cls(prices, site.start_s, tuple(kw * eur for kw in site.cap_kw))

    @property
    def change(self) -> bool:
        return self.prices is not None or len(self.cap_start_s) > 1

    def starts_s(self) -> list[float]:
        """Return when prices or caps change after 0 [s]."""
        of_prices = [] if self.prices is None else self.prices.start_s.tolist()
        return [start_s for start_s in (*of_prices, *self.cap_start_s) if start_s > 0.0]

    def factors(self, starts_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the price of each interval over that of the rates, of the last one the least from then on, (K,)."""
        return np.ones(len(starts_s)) if self.prices is None else least_factors(self.prices, starts_s)

    def allowed(self, starts_s: NDArray[np.float64], rate_eur_per_s: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which cost rates, (P,), the cap allows in each interval, (K, P): the highest cap of the last one."""
        if not self.cap_start_s:
            return np.ones((len(starts_s), len(rate_eur_per_s)), dtype=np.bool_)
        caps = np.array(self.cap_eur_per_s)
        held = np.searchsorted(self.cap_start_s, starts_s, side="right") - 1
        own = caps[held]
        own[-1] = caps[held[-1] :].max()
        return rate_eur_per_s[None, :] <= own[:, None] * (1.0 + 1e-9)

    def priced_s(self, start_s: float, end_s: float) -> float:
        """Return the priced length of a time: ∫ price / price of the rates [s]."""
        if self.prices is None:
            return end_s - start_s
        edges = np.append(self.prices.start_s[1:], np.inf)
        begins = np.append(-np.inf, self.prices.start_s[1:])
        inside = np.maximum(0.0, np.minimum(edges, end_s) - np.maximum(begins, start_s))
        return float((inside * self.prices.factor).sum())
