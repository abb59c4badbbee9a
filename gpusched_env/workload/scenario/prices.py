"""The sections `prices` and `site`: what energy and GPUs cost, and a cap on the power of all nodes."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.model import Instance, peak_kw
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.model.mechanism import model_of
from gpusched_env.workload.scenario.settings import (
    AtLeastOne,
    Duration,
    Many,
    NotNegative,
    Part,
    Positive,
    Seconds,
    Settings,
    number,
    number_range,
    setting,
)
from gpusched_env.workload.tables import PRICE_FIELDS, PRICE_SERIES

if TYPE_CHECKING:
    from numpy.random import Generator

DEFAULTS = {each.name: each.default for each in fields(Instance)}
RANDOM = "random"
VALIDATION_SEEDS, TEST_SEEDS = range(20_000, 30_000), range(30_000, 40_000)
_FLOOR = "a number >= 0: at negative prices it would be best to waste energy"


def is_price_file(series: str) -> bool:
    return bool(PurePath(series).suffix) or PurePath(series).name != series


class Prices(Settings):
    """The price of energy."""

    energy_price_eur_per_kwh: NotNegative = setting(
        DEFAULTS["energy_price_eur_per_kwh"],
        "Energy price [€/kWh]. With a series, plans use the mean of the 28 days before the run, if there are any.",
    )
    pue: AtLeastOne = setting(DEFAULTS["pue"], "Power usage effectiveness of the data centre.")
    co2_g_per_kwh: NotNegative | None = setting(
        None, "Emissions of a kWh [g CO₂/kWh], where the series has none; only for kg CO₂ in results."
    )
    series: str | None = setting(
        None,
        "Prices by period: a file, or de-lu, caiso or ercot (2020 to 2024), or one year of them, as de-lu-2024. By "
        "default the one price.",
    )
    columns: dict[str, str] = Field(
        default_factory=dict, description="Columns of the file where they have other names: field = column."
    )
    where: Many[str] = setting((), 'Conditions that rows of the file must meet, such as "LMP_TYPE = LMP".')
    time_zone: str | None = setting(None, "Time zone of times without an offset, such as Europe/Berlin.")
    start: str = setting(
        RANDOM,
        "Local time of the market at which the run begins, as 2024-03-01T00:00; random: a day drawn by the seed.",
    )
    first_month: str | None = setting(None, "First month of random starts, as 2020-01. By default that of the series.")
    last_month: str | None = setting(None, "Last month of random starts. By default that of the series.")
    validation_from: str | None = setting(
        None, "Month from which validation seeds, 20000 to 29999, start; others before it. By default none."
    )
    test_from: str | None = setting(None, "Month from which test seeds, 30000 to 39999, start; others before it.")
    levy_eur_per_kwh: NotNegative = setting(
        0.0, "Levies and charges that are added to the price of the series [€/kWh]."
    )
    carbon_eur_per_t: NotNegative = setting(0.0, "Price of emissions, added too [€/t CO₂].")
    floor_eur_per_kwh: Annotated[float, number(_FLOOR, lambda x: x >= 0.0)] = setting(
        0.005, "Least price that is billed [€/kWh]: at negative prices it would be best to waste energy."
    )
    known: Literal["day-ahead", "all", "none"] = setting(
        "day-ahead",
        "What policies know: day-ahead (prices of a day from published_at of the day before on), all, or none (that of "
        "the present period).",
    )
    published_at: str = setting("12:45", "Local time at which the prices of the next day are published.")
    forecast_noise: NotNegative = setting(0.0, "Noise of forecasts: standard deviation of their logarithm.")
    demand_charge_eur_per_kw: NotNegative = setting(
        0.0, "Demand charge for the largest mean power of an interval in each calendar month [€/kW]."
    )
    demand_interval_s: Duration = setting(
        900.0, "Length of these intervals [s]; a month begins with the one that begins nearest to its midnight."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.series is not None and not is_price_file(self.series) and self.series not in PRICE_SERIES:
            raise InputError("series", self.series, f"a file, such as prices.csv, or one of {', '.join(PRICE_SERIES)}")
        for field in self.columns:
            if field not in PRICE_FIELDS:
                raise InputError("columns", field, f"the fields {', '.join(PRICE_FIELDS)}")
        if self.start != RANDOM:
            _local("start", self.start)
        for name in ("first_month", "last_month", "validation_from", "test_from"):
            month = getattr(self, name)
            if month is not None and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
                raise InputError(name, month, "a month, as 2024-03")
        if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", self.published_at):
            raise InputError("published_at", self.published_at, "a time of the day, as 12:45")
        given = self.model_dump(exclude_defaults=True, exclude={"energy_price_eur_per_kwh", "pue", "co2_g_per_kwh"})
        if given and self.series is None:
            name, value = next(iter(given.items()))
            raise InputError(name, value, "the default without a series")
        if self.series is not None and self.energy_price_eur_per_kwh == 0.0:
            raise InputError("energy_price_eur_per_kwh", 0.0, "a number > 0 with a series")
        return self

    def months(self, seed: int) -> tuple[str | None, str | None]:
        """Return the month from which random starts of a seed are, and the month before which; None: of the series."""
        held_out = [month for month in (self.validation_from, self.test_from) if month is not None]
        if seed in TEST_SEEDS and self.test_from is not None:
            return self.test_from, None
        if seed in VALIDATION_SEEDS and self.validation_from is not None:
            return self.validation_from, self.test_from
        return self.first_month, min(held_out, default=None)

    @property
    def published_h(self) -> float:
        """Return the hour of the day at which prices of the next day are published."""
        hours, minutes = self.published_at.split(":")
        return int(hours) + int(minutes) / 60.0


def _local(name: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(name, text, "random, or a local time, as 2024-03-01T00:00") from None
    if time.tzinfo is not None:
        raise InputError(name, text, "a local time of the market, without a time zone")
    return time


Event = tuple[float, float, float, float]


def _events(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise InputError("", value, "a list of events: [start_s, length_s, part, notice_s]")
    for i, each in enumerate(value):
        good = isinstance(each, list | tuple) and len(each) == 4
        if not good or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in each):
            raise InputError(f"[{i}]", each, "four numbers: start_s, length_s, part, notice_s")
    return tuple(tuple(float(x) for x in each) for each in value)


NoticeRange = Annotated[
    tuple[float, float], number_range(f"a number >= 0 and <= {LONGEST}", lambda x: 0.0 <= x <= LONGEST_S)
]


class SitePower(Settings):
    """A cap on the power of all nodes, events at which it falls, and the price of held GPUs."""

    cap_kw: Positive | None = setting(None, "Cap on the power of all nodes, without the PUE [kW]; by default none.")
    cap_part: Part | None = setting(None, "Or the cap as a part of their power with all GPUs busy.")
    soft_eur_per_kwh: Positive | None = setting(
        None, "What a kWh above the cap costs in addition [€/kWh]; by default the cap is never exceeded."
    )
    events: Annotated[tuple[Event, ...], BeforeValidator(_events)] = setting(
        (), "Events: [start_s, length_s, part of the cap that is lost, notice_s] of each."
    )
    event_gap_s: Seconds = setting(0.0, "Mean time from the end of a drawn event to the next; 0: none are drawn [s].")
    event_length_s: Duration = setting(10_800.0, "Length of drawn events [s].")
    event_part: Part = setting(0.25, "Part of the cap that is lost in drawn events.")
    event_notice_s: NoticeRange = setting((0.0, 86_400.0), "Range of the notice of drawn events [s].")
    gpu_hour_eur: NotNegative = setting(0.0, "Price of a GPU for each hour for which it is held [€/h].")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.cap_kw is not None and self.cap_part is not None:
            raise InputError("cap_part", self.cap_part, "nothing beside cap_kw")
        if self.cap_part == 0.0:
            raise InputError("cap_part", self.cap_part, "a number > 0")
        has_cap = self.cap_kw is not None or self.cap_part is not None
        for name in ("soft_eur_per_kwh", "events", "event_gap_s"):
            if getattr(self, name) and not has_cap:
                raise InputError(name, getattr(self, name), "nothing without cap_kw or cap_part")
        if self.events and self.event_gap_s:
            raise InputError("event_gap_s", self.event_gap_s, "0 beside events, which are given")
        return self


def with_site(instance: Instance, site: SitePower, rng: Generator) -> Instance:
    """Return an instance with the cap and the price of GPUs of a section, and events up to twice the due dates."""
    if site == SitePower():
        return instance
    cap_kw = site.cap_kw
    if site.cap_part is not None:
        cap_kw = site.cap_part * peak_kw(instance)
    rent: Any = model_of("rent")
    made = [rent(site.gpu_hour_eur)] if site.gpu_hour_eur else []
    if cap_kw is not None:
        events = site.events or _drawn(site, 2.0 * float(instance.jobs.due_s.max()), rng)
        kind: Any = model_of("cap")
        made.append(kind.with_events(cap_kw, events, site.soft_eur_per_kwh))
    return instance.with_mechanisms(*made)


def _drawn(site: SitePower, until_s: float, rng: Generator) -> list[Event]:
    """Draw events with exponential gaps from the end of one to the next, and uniform notice."""
    events: list[Event] = []
    start = float(rng.exponential(site.event_gap_s)) if site.event_gap_s else until_s
    while start < until_s:
        events.append((start, site.event_length_s, site.event_part, float(rng.uniform(*site.event_notice_s))))
        start += site.event_length_s + float(rng.exponential(site.event_gap_s))
    return events
