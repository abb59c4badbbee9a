"""Power limits of GPUs: the configurations that they make, what they take in time, and what GPUs save.

A limit r lets a board draw at most r times what a full busy one draws. A job that draws a part d of that without a
limit is slower where r < d, by the factor 1 + a · (d/r - 1)^b, as fitted to public sweeps (`power_curves.csv`). What a
node draws for a busy GPU falls to the part r, a node's base power stays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.workload.tables.applications import builtin_application_power, builtin_power_curves

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from gpusched_env.model import Configuration, GpuType
    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.tables.applications import Application

USUAL_TYPE = "V100"
"""GPU type whose curve holds for those without one of their own."""
SAME_LIMIT = 1e-9


class PowerCurve(NamedTuple):
    """Time of a GPU type or of an application at a power limit: 1 + a · (1/r - 1)^b for r of its power without one."""

    a: float
    b: float

    def time(self, r: float) -> float:
        """Return the factor on the time, ≥ 1, at a part r of the power, > 0."""
        return 1.0 + self.a * float(max(0.0, 1.0 / r - 1.0) ** self.b)

    def energy(self, r: float) -> float:
        return r * self.time(r)


class TypePower(NamedTuple):
    """What power limits do on a GPU type.

    Attributes:
        curve: The curve of its applications.
        least: Least limit that is offered.
        waiting: Power of a node whose GPUs wait for other nodes, over that of a full one; 1: not known.
    """

    curve: PowerCurve
    least: float
    waiting: float


def power_of_type(name: str) -> TypePower:
    """Return what limits do on a GPU type; V100's curve, without a least limit, where the type has no row."""
    table = builtin_power_curves()
    if name in table:
        a, b, least, waiting = table[name]
        return TypePower(PowerCurve(a, b), least, waiting)
    return TypePower(PowerCurve(*table[USUAL_TYPE][:2]), 0.0, 1.0)


def limited_time_s(application: Application, configuration: Configuration) -> float:
    """Return the time of an epoch of an application that draws full power, at the limit of a configuration [s]."""
    return application.time_s(configuration) * power_of_type(configuration.gpu_type).curve.time(
        configuration.power_limit
    )


def with_limits(scenario: Scenario, configurations: tuple[Configuration, ...]) -> tuple[Configuration, ...]:
    """Return the configurations, then the same ones with each power limit, from the largest to the smallest.

    A limit of all types below the least of a GPU type is not offered on it.
    """
    names, own = _base_types(scenario), scenario.cluster.overrides
    limits = {
        c.gpu_type: (own[c.gpu_type].power_limits if c.gpu_type in own else None)
        or [r for r in scenario.jobs.power_limits if r >= power_of_type(names.get(c.gpu_type, c.gpu_type)).least]
        for c in configurations
    }
    below = sorted({r for each in limits.values() for r in each if r < 1.0}, reverse=True)
    limited = [replace(c, power_limit=r) for r in below for c in configurations if r in limits[c.gpu_type]]
    return (*configurations, *limited)


def with_power(
    scenario: Scenario,
    applications: tuple[Application, ...],
    gpu_types: Iterable[GpuType],
    configurations: tuple[Configuration, ...],
    seconds: NDArray[np.float64],
) -> tuple[NDArray[np.float64], tuple[tuple[float, ...], ...] | None]:
    """Return the times at power limits, and what GPUs save; both as they were where nothing is limited or measured.

    Args:
        seconds: Times without limits [s], (A, C); inf where not allowed.

    Returns:
        Time of an epoch [s], (A, C), inf for a limit that does nothing; and the saved power [kW], (A, C), or None.
    """
    measured = scenario.jobs.application_power == "measured"
    if not measured and all(c.power_limit == 1.0 for c in configurations):
        return seconds, None
    names, types = _base_types(scenario), {v.name: v for v in gpu_types}
    seconds, saved, full_s = seconds.copy(), np.zeros(seconds.shape), seconds
    index = {c: i for i, c in enumerate(configurations)}
    for i, c in enumerate(configurations):
        name = names.get(c.gpu_type, c.gpu_type)
        for a, application in enumerate(applications):
            drawn, curve = _drawn(application.name, name) if measured else (1.0, power_of_type(name).curve)
            if c.power_limit < 1.0:
                does_nothing = c.power_limit >= drawn - SAME_LIMIT
                seconds[a, i] *= np.inf if does_nothing else curve.time(c.power_limit / drawn)
            efficiency = _efficiency(index, c, full_s[a]) if measured and c.nodes > 1 and not c.spread else 1.0
            saved[a, i] = _saved_w(types[c.gpu_type], c, drawn, efficiency, power_of_type(name).waiting) / 1000.0
    return seconds, tuple(tuple(map(float, row)) for row in saved)


def _base_types(scenario: Scenario) -> Mapping[str, str]:
    return {v.name: v.source for v in scenario.gpu_types if v.source is not None}


def _drawn(application: str, gpu_type: str) -> tuple[float, PowerCurve]:
    own = builtin_application_power().get((application, gpu_type))
    return (1.0, power_of_type(gpu_type).curve) if own is None else (own[0], PowerCurve(*own[1:]))


def _efficiency(index: Mapping[Configuration, int], c: Configuration, full_s: NDArray[np.float64]) -> float:
    """Return the part of its time in which a job on several nodes does not wait for others; 1 where it is not known."""
    one = index.get(replace(c, nodes=1, power_limit=1.0))
    alone, together = (full_s[one] if one is not None else np.inf), full_s[index[c.unlimited]]
    return float(min(1.0, alone / (c.nodes * together))) if np.isfinite(alone) and np.isfinite(together) else 1.0


def _saved_w(gpu_type: GpuType, c: Configuration, drawn: float, efficiency: float, waiting: float) -> float:
    """Return what the GPUs of a configuration draw less than full busy ones [W].

    On several nodes the power falls to that of waiting nodes while the job waits: P_wait + (P_1 - P_wait) · efficiency.
    """
    saved = gpu_type.saved_w(c, drawn)
    if c.nodes == 1 or waiting >= 1.0 or efficiency >= 1.0:
        return saved
    full = gpu_type.power_w(c.gpus_per_node) * c.nodes
    return saved + max(0.0, full - saved - waiting * full) * (1.0 - efficiency)
