"""Prices of energy by period: hours, quarter hours or any others, with carbon intensity, PUE and a demand charge."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_lengths, value_of
from gpusched_env.model import checks
from gpusched_env.model.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.model.instance import Instance

LEAST_INTERVAL_S = 1.0  # of a demand charge: a run meters them one by one


@dataclass(frozen=True, slots=True)
class DemandCharge:
    """A charge for the largest mean power of an interval in each billing month.

    The bill grows as the maximum does: κ · (new maximum - old one). The energy of the present interval so far, over the
    whole interval, counts at once: then nothing is left to charge when the run ends.

    Args:
        eur_per_kw: The charge κ for a billing month [€/kW at the meter], > 0.
        interval_s: Length of the intervals whose mean power counts [s], ≥ 1; they begin at multiples of it.
        months_s: Times at which further billing months begin [s], increasing multiples of `interval_s`, > 0. The first
            one begins with the run.

    Raises:
        InputError: A value is out of its range.
    """

    eur_per_kw: float
    interval_s: float = 900.0
    months_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        checks.positive("prices.demand.eur_per_kw", self.eur_per_kw)
        if checks.duration("prices.demand.interval_s", self.interval_s) < LEAST_INTERVAL_S:
            raise InputError("prices.demand.interval_s", self.interval_s, f"at least {LEAST_INTERVAL_S:g} s")
        before = 0.0
        for index, month_s in enumerate(self.months_s):
            where = f"prices.demand.months_s[{index}]"
            number = round(checks.duration(where, month_s) / self.interval_s)
            if month_s <= before or abs(month_s - number * self.interval_s) > 1e-12 * month_s:
                raise InputError(where, month_s, f"a larger time than those before it, a multiple of {self.interval_s}")
            before = month_s


@dataclass(frozen=True, slots=True, eq=False)
class PriceSeries(Mechanism):
    """What a kWh costs and emits by period, and when policies may know it.

    Period p holds from `start_s[p]` until `start_s[p + 1]`; the last one goes on. Periods before time 0 are history,
    from which policies may forecast. A run is billed the integral of price · PUE · power of its nodes. Policies plan
    with the rates at the instance's own price and PUE, the reference.

    Args:
        start_s: Start of every period [s], shape (P,), increasing, the first one ≤ 0.
        eur_per_kwh: Price at the meter, with all levies [€/kWh], (P,), ≥ 0: clip negative prices, at which the best is
            to waste energy.
        g_per_kwh: Carbon intensity [g CO₂/kWh at the meter], (P,), ≥ 0; None: not known.
        pue: Energy at the meter over energy of the nodes, (P,), ≥ 1; None: that of the instance.
        published_s: From when policies may know the price and all else of a period [s], (P,), not decreasing, and
            at most the start of the period; -inf: from the beginning. None: -inf for all.
        demand: A demand charge; None: there is none.
        monday_s: Beginning of a Monday, local time [s]: forecasts tell days of the weekend from others.
        forecast_noise: σ of the noise of forecasts: they are multiplied by exp(σ z - σ²/2), z standard normal.
        forecast_seed: Seed of that noise.

    Raises:
        InputError: The arrays have another form, or a value is out of its range.
    """

    mechanism: ClassVar[str] = "prices"
    constants_from = "nothing"
    schema: ClassVar[Mapping[str, Any]] = {
        "start_s": [float],
        "eur_per_kwh": [float],
        "g_per_kwh?": [float],
        "pue?": [float],
        "published_s?": [None],
        "demand?": {"eur_per_kw": float, "interval_s": float, "months_s": [float]},
        "monday_s?": float,
        "forecast_noise?": float,
        "forecast_seed?": int,
    }

    start_s: NDArray[np.float64]
    eur_per_kwh: NDArray[np.float64]
    g_per_kwh: NDArray[np.float64] | None = None
    pue: NDArray[np.float64] | None = None
    published_s: NDArray[np.float64] | None = None
    demand: DemandCharge | None = None
    monday_s: float = 0.0
    forecast_noise: float = 0.0
    forecast_seed: int = 0

    def __post_init__(self) -> None:
        for name in ARRAYS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.frozen_array(getattr(self, name)))
        for name in ARRAYS:
            values = getattr(self, name)
            if values is not None and (values.ndim != 1 or values.shape != self.start_s.shape or not values.size):
                raise InputError(f"prices.{name}", values.shape, "an array of one axis, one or more values, all alike")
        self._check("start_s", np.abs(self.start_s) <= checks.LONGEST_S, f"a number from -{checks.LONGEST} to it")
        self._check("start_s", np.diff(self.start_s, prepend=-np.inf) > 0.0, "a later time than the one before")
        if self.start_s[0] > 0.0:
            raise InputError("prices.start_s[0]", float(self.start_s[0]), "a time <= 0: runs begin at 0")
        for name, least in (("eur_per_kwh", 0.0), ("g_per_kwh", 0.0), ("pue", 1.0)):
            values = getattr(self, name)
            if values is not None:
                self._check(name, np.isfinite(values) & (values >= least), f"a finite number >= {least:g}")
        if self.published_s is not None:
            self._check("published_s", self.published_s <= self.start_s, "at most the start of the period")
            steps = np.diff(np.maximum(self.published_s, -checks.LONGEST_S), prepend=-np.inf)
            self._check("published_s", steps >= 0.0, "at least the one before")
        checks.finite("prices.monday_s", self.monday_s)
        checks.not_negative("prices.forecast_noise", self.forecast_noise)
        checks.seed(self.forecast_seed, "prices.forecast_seed")

    def _check(self, name: str, good: NDArray[np.bool_], allowed: str) -> None:
        if not np.all(good):
            p = int(np.argmin(good))
            raise InputError(f"prices.{name}[{p}]", float(getattr(self, name)[p]), allowed)

    def check(self, instance: Instance) -> None:
        """Check that the reference, the price of the instance, is > 0.

        Raises:
            InputError: It is 0.
        """
        if instance.energy_price_eur_per_kwh == 0.0:
            raise InputError("energy_price_eur_per_kwh", 0.0, "a number > 0 with prices: rates are those at this price")

    def fields(self) -> dict[str, Any]:
        """Return the fields in files; null in `published_s` is a price that was known from the beginning."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        made: dict[str, Any] = {name: column.tolist() for name, column in columns.items() if column is not None}
        if "published_s" in made:
            made["published_s"] = [None if value == -np.inf else value for value in made["published_s"]]
        if self.demand is not None:
            own = self.demand
            made["demand"] = {
                "eur_per_kw": float(own.eur_per_kw),
                "interval_s": float(own.interval_s),
                "months_s": [float(month) for month in own.months_s],
            }
        numbers = {"monday_s": float(self.monday_s), "forecast_noise": float(self.forecast_noise)}
        return made | {k: v for k, v in (numbers | {"forecast_seed": int(self.forecast_seed)}).items() if v}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Make it from the fields of a file, which have a value for each period."""
        columns: dict[str, Any] = {name: fields[name] for name in ARRAYS if name in fields}
        check_lengths("prices", columns)
        for index, value in enumerate(columns.get("published_s", ())):
            if value is not None:
                value_of(f"prices.published_s[{index}]", value, float)
        if "published_s" in columns:
            columns["published_s"] = [-np.inf if value is None else value for value in columns["published_s"]]
        if not columns["start_s"]:
            raise InputError("prices.start_s", [], "at least one value")
        rest = {name: value for name, value in fields.items() if name not in ARRAYS}
        if "demand" in rest:
            rest["demand"] = DemandCharge(**(rest["demand"] | {"months_s": tuple(rest["demand"]["months_s"])}))
        arrays: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
        return cls(**arrays, **rest)

    def known_pue(self, usual: float) -> NDArray[np.float64]:
        """Return the PUE of every period, `usual` where the series has none, (P,)."""
        return np.full(len(self.start_s), usual) if self.pue is None else self.pue

    def from_then(self, time_s: float) -> PriceSeries:
        """Return the series on a clock that begins at a later time [s]; demand intervals begin at that time, too."""
        demand = self.demand
        if demand is not None:
            months = sorted(
                {round((month - time_s) / demand.interval_s) for month in demand.months_s if month > time_s}
            )
            demand = replace(demand, months_s=tuple(number * demand.interval_s for number in months if number > 0))
        published = None if self.published_s is None else self.published_s - time_s
        return replace(
            self, start_s=self.start_s - time_s, published_s=published, demand=demand, monday_s=self.monday_s - time_s
        )

    @property
    def noise(self) -> NDArray[np.float64]:
        """Return the factor of the forecast of every period, (P,), > 0, of mean 1; the same for all runs."""
        sigma, rng = self.forecast_noise, np.random.default_rng(self.forecast_seed)
        return np.exp(sigma * rng.standard_normal(len(self.start_s)) - sigma**2 / 2.0)

    def __repr__(self) -> str:
        return checks.short_repr(self)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PriceSeries):
            return False
        pairs = [(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)]
        return all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else type(a) is type(b) and a == b for a, b in pairs
        )

    __hash__ = None  # type: ignore[assignment]


ARRAYS = ("start_s", "eur_per_kwh", "g_per_kwh", "pue", "published_s")
"""The arrays of a series, each with a value for every period."""
MODEL = PriceSeries
