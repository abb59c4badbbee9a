"""The section `site` of a scenario: a cap on the power of all nodes, events at which it falls, the price of GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from gpusched_env.errors import InputError
from gpusched_env.model import Instance, peak_kw
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_env.model.mechanism import model_of
from gpusched_env.workload.scenario.settings import (
    Duration,
    NotNegative,
    Part,
    Positive,
    Seconds,
    Settings,
    number_range,
    setting,
)

if TYPE_CHECKING:
    from numpy.random import Generator

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
    cap = None
    if cap_kw is not None:
        events = site.events or _drawn(site, 2.0 * float(instance.jobs.due_s.max()), rng)
        kind: Any = model_of("cap")
        cap = kind.with_events(cap_kw, events, site.soft_eur_per_kwh)
    rented = replace(instance, gpu_hour_eur=site.gpu_hour_eur)
    return rented if cap is None else rented.with_mechanisms(cap)


def _drawn(site: SitePower, until_s: float, rng: Generator) -> list[Event]:
    """Draw events with exponential gaps from the end of one to the next, and uniform notice."""
    events: list[Event] = []
    start = float(rng.exponential(site.event_gap_s)) if site.event_gap_s else until_s
    while start < until_s:
        events.append((start, site.event_length_s, site.event_part, float(rng.uniform(*site.event_notice_s))))
        start += site.event_length_s + float(rng.exponential(site.event_gap_s))
    return events
