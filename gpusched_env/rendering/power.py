"""Power over time: what the nodes of a finished run draw, and what energy costs and emits then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpusched_env.model.rates import kilowatts
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.result import gpus_on_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpusched_env.model import Instance
    from gpusched_env.simulator import Result

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Times [s], and a value from each of them on, both (T,)."""

TOLERANCE = 1e-6  # part of the energy by which the integral of the power may differ from it


def summed(changes: Sequence[tuple[float, float]]) -> Curve:
    """Add up changes at times; the value is 0 before the first one."""
    table = np.array(sorted(changes)).reshape(-1, 2)
    times, first = np.unique(table[:, 0], return_index=True)
    return times, np.cumsum(table[:, 1])[np.append(first[1:], len(table)) - 1]


def power_over_time(result: Result, timeline: Timeline | None = None) -> Curve | None:
    """Return times [s], and from each of them on the power of all nodes [kW], both (T,); `timeline` is that of the run.

    A node's power is that of its busy GPUs, less what their power limits and applications save. None where the energy
    of the run is another: GPUs draw less while they do nothing, cells have hosts, CPU machines help, or nothing was
    recorded.
    """
    instance, watts = result.instance, kilowatts(result.instance)
    if not len(result.log):
        return None
    held = [each for each in (timeline or Timeline.of(result)).busy() if each[1] < each[2]]
    ends = [(end, node, -gpus) for node, _, end, gpus in held]
    busy, changes = dict.fromkeys(range(len(instance.nodes)), 0), []
    for time, node, gpus in sorted([*((start, node, gpus) for node, start, _, gpus in held), *ends]):
        of_type = watts[instance.type_of_node[node]]
        before, busy[node] = busy[node], busy[node] + gpus
        changes.append((time, of_type[busy[node]] - of_type[before]))
    changes += _savings(result)
    times, drawn = summed(changes)
    drawn = np.maximum(0.0, drawn)
    kwh = float(np.sum(energy_between(instance, (times, drawn), times)[0]))
    return (times, drawn) if abs(kwh - result.energy_kwh) <= TOLERANCE * max(kwh, result.energy_kwh) else None


def _savings(result: Result) -> Iterator[tuple[float, float]]:
    """Yield when GPUs with a power limit, or of an application that draws less, begin and cease to save power [kW]."""
    instance, model = result.instance, result.instance.find("saved_power")
    if model is None:
        return
    saved = np.array(model.saved_kw)
    for row, gpus in zip(result.log, gpus_on_nodes(instance, result.log).tolist(), strict=True):
        config, own = int(row[at.LOG_CONFIG]), instance.configurations[int(row[at.LOG_CONFIG])]
        of_all = saved[instance.jobs.application[int(row[at.LOG_JOB])], config]
        less = float(of_all) * gpus / (own.gpus_per_node * own.nodes)
        yield float(row[at.LOG_START]), -less
        yield float(row[at.LOG_END]), less


def prices_over_time(instance: Instance) -> Curve:
    """Return times [s], the first one 0 or before, and from each of them on the price at the meter [€/kWh], (P,)."""
    series = instance.find("prices")
    if series is None:
        return np.zeros(1), np.array([instance.energy_price_eur_per_kwh])
    return series.start_s, series.eur_per_kwh


def energy_between(
    instance: Instance, power: Curve, edges: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the energy at the meter [kWh], its price [€] and its emissions [kg CO₂] between edges [s], all (K,).

    Demand charges are not in it; emissions are NaN where the intensity is not known.

    Args:
        power: What `power_over_time` returns.
        edges: Increasing times ≥ 0, (K + 1,).
    """
    series, (times, drawn) = instance.find("prices"), power
    start_s, eur_per_kwh = prices_over_time(instance)
    cuts = np.unique(np.concatenate([times, start_s[start_s > 0.0], edges]))
    cuts = cuts[(cuts >= edges[0]) & (cuts <= edges[-1])]
    begin = cuts[:-1]
    at = np.searchsorted(times, begin, side="right") - 1
    period = np.maximum(0, np.searchsorted(start_s, begin, side="right") - 1)
    pue = np.array([instance.pue]) if series is None else series.known_pue(instance.pue)
    kwh = np.where(at >= 0, drawn[at], 0.0) * pue[period] * np.diff(cuts) / 3600.0
    grams = np.full(1, np.nan) if series is None or series.g_per_kwh is None else series.g_per_kwh
    kilograms = kwh * (grams[period] if len(grams) > 1 else grams[0]) / 1000.0
    into = np.searchsorted(edges, begin, side="right") - 1
    count = len(edges) - 1
    return tuple(np.bincount(into, weights, count) for weights in (kwh, kwh * eur_per_kwh[period], kilograms))  # type: ignore[return-value]


def hours_of(result: Result, hour_s: float = 3600.0) -> dict[str, NDArray[np.float64]] | None:
    """Return what each hour of a finished run costs, or each other stretch of `hour_s` [s].

    Returns:
        Columns `start_s`, `energy_kwh` (at the meter), `energy_eur` (without demand charges), `co2_kg` (NaN if the
        intensity is not known) and `eur_per_kwh` (mean price), all (K,); None where there is no power over time.
    """
    power = power_over_time(result)
    if power is None:
        return None
    edges = np.arange(np.ceil(power[0][-1] / hour_s) + 1.0) * hour_s
    kwh, eur, kilograms = energy_between(result.instance, power, edges)
    flat = np.array([0.0]), np.array([1.0])
    hours, prices, _ = energy_between(result.instance, flat, edges)
    columns = {"start_s": edges[:-1], "energy_kwh": kwh, "energy_eur": eur, "co2_kg": kilograms}
    return columns | {"eur_per_kwh": prices / hours}
