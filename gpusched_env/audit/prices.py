"""Prices by period in the audit: the price of each stretch of time, the meter, and the demand charge."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpusched_env.audit.reading import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, FieldReader, Range, anything, number
from gpusched_env.errors import InputError

_FIELDS = (
    "start_s", "eur_per_kwh", "g_per_kwh", "pue", "published_s", "demand", "monday_s", "forecast_noise",
    "forecast_seed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EnergyDrawn:
    """Energy that nodes draw for a job between two times in one period, at constant power [kWh]."""

    job: int
    start_s: float
    end_s: float
    kwh: float


@dataclass(frozen=True, slots=True)
class PricesRecord:
    """Starts of the periods [s], and in each the price [€/kWh] and emissions [g/kWh] at the meter, and the PUE.

    One period without starts stands for prices that do not change. `kw_eur` is the demand charge of a billing month
    [€/kW], for the largest mean of `interval_s`; further months begin at `months_s`. `reference` is the price of a kWh
    of the nodes by which power above a soft cap is split among jobs [€/kWh].
    """

    start_s: list[float]
    eur_per_kwh: list[float]
    pue: list[float]
    g_per_kwh: list[float] | None = None
    kw_eur: float = 0.0
    interval_s: float = 900.0
    months_s: tuple[float, ...] = ()
    reference: float = 0.0

    def at(self, time_s: float) -> int:
        return bisect_right(self.start_s, time_s) - 1 if self.start_s else 0

    def interval_of(self, time_s: float) -> int:
        """Return the number n of the interval in which a time is: n · interval ≤ time < (n + 1) · interval."""
        number = math.floor(time_s / self.interval_s)  # by rounding it may be one off
        number -= number * self.interval_s > time_s
        return number + ((number + 1) * self.interval_s <= time_s)

    def eur(self, drawn: EnergyDrawn) -> float:
        p = self.at(drawn.start_s)
        return drawn.kwh * self.eur_per_kwh[p] * self.pue[p]

    def cuts(self, start: float, end: float) -> list[tuple[float, float, int]]:
        first = bisect_right(self.start_s, start)
        inside = [time for time in self.start_s[first:] if time < end] if self.start_s else []
        return [(low, high, self.at(low)) for low, high in pairwise([start, *inside, end])]


def read_prices(instance: FieldReader) -> PricesRecord:
    """Read the prices of an instance: the series, or the one price."""
    price = instance.get("energy_price_eur_per_kwh", number, NOT_NEGATIVE)
    usual = instance.get("pue", number, AT_LEAST_ONE)
    if not instance.has("prices"):
        return PricesRecord([], [price], [usual], reference=price * usual)
    own = instance.get("prices", FieldReader).only(*_FIELDS)
    POSITIVE.check(instance.name("energy_price_eur_per_kwh"), price)
    starts = own.column("start_s", number)
    if not starts or starts[0] > 0.0 or any(low >= high for low, high in pairwise(starts)):
        raise InputError(own.name("start_s"), starts[:3], "one or more increasing numbers, the first <= 0")
    prices = own.column("eur_per_kwh", number, len(starts), NOT_NEGATIVE)
    pue = own.column("pue", number, len(starts), AT_LEAST_ONE, default=usual)
    emitted = own.column("g_per_kwh", number, len(starts), NOT_NEGATIVE) if own.has("g_per_kwh") else None
    for p, told in enumerate(own.column("published_s", anything, len(starts)) if own.has("published_s") else ()):
        if told is not None:
            Range("a number <= start_s, or null", -math.inf, starts[p]).check(f"{own.name('published_s')}[{p}]", told)
    if not own.has("demand"):
        return PricesRecord(starts, prices, pue, emitted, reference=price * usual)
    demand = own.get("demand", FieldReader).only("eur_per_kw", "interval_s", "months_s")
    per_kw, interval = (demand.get(name, number, POSITIVE) for name in ("eur_per_kw", "interval_s"))
    months = tuple(demand.column("months_s", number))
    return PricesRecord(starts, prices, pue, emitted, per_kw, interval, months, price * usual)


def metered(prices: PricesRecord, drawn: Sequence[EnergyDrawn]) -> dict[str, float]:
    """Return what the meter of the site says: kWh, and kg if the carbon intensity is known."""
    at_meter = [(each.kwh * prices.pue[p], p) for each in drawn for p in [prices.at(each.start_s)]]
    found = {"energy_kwh": math.fsum(kwh for kwh, _ in at_meter)}
    if prices.g_per_kwh is not None:
        found["co2_kg"] = math.fsum(kwh * prices.g_per_kwh[p] / 1000.0 for kwh, p in at_meter)
    return found


def demand_eur(prices: PricesRecord, drawn: Sequence[EnergyDrawn]) -> dict[int, list[float]]:
    """Return what each job pays of the demand charges [€]: by its part of the power while the maximum rises."""
    costs: dict[int, list[float]] = defaultdict(list)
    if prices.kw_eur == 0.0:
        return costs
    highest, month, number_of, so_far = 0.0, 0, -1, 0.0
    for start, end, jobs in _together(prices, drawn):
        if prices.interval_of(start) != number_of:
            number_of, so_far = prices.interval_of(start), 0.0
        if bisect_right(prices.months_s, start) != month:
            month, highest = bisect_right(prices.months_s, start), 0.0
        kw = math.fsum(jobs.values())
        so_far += kw * (end - start)
        if so_far / prices.interval_s > highest:
            for job, own in jobs.items():
                costs[job].append(prices.kw_eur * (so_far / prices.interval_s - highest) * own / kw)
            highest = so_far / prices.interval_s
    return costs


def _together(prices: PricesRecord, drawn: Sequence[EnergyDrawn]) -> Iterator[tuple[float, float, dict[int, float]]]:
    """Yield the stretches of time in which no power changes, each in one interval, and the kW of each job."""
    coming = sorted(drawn, key=lambda each: each.start_s, reverse=True)
    now: list[EnergyDrawn] = []
    for start, end in pairwise(sorted({time for each in drawn for time in (each.start_s, each.end_s)})):
        now = [each for each in now if each.end_s > start]
        while coming and coming[-1].start_s <= start:
            now.append(coming.pop())
        jobs: dict[int, float] = defaultdict(float)
        for each in now:
            jobs[each.job] += each.kwh * 3600.0 / (each.end_s - each.start_s) * prices.pue[prices.at(each.start_s)]
        low = start
        while now and low < end:
            high = min(end, (prices.interval_of(low) + 1) * prices.interval_s)
            yield low, high, jobs
            low = high
