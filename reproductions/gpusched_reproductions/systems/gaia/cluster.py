"""GAIA's trace as an instance of the simulator: a node of k CPUs for every job that takes k, and the signal as price.

There is room for every job at once, as in the cloud. A CPU draws 1 W, a tick is an epoch, nothing restarts, and no job
is late. So what energy costs is the signal times CPUs and hours. Reserved machines are not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines import PauseByPrice, StartByPrice, edf
from gpusched_baselines.hindsight import with_known_needs
from gpusched_baselines.price_rules.terms import Waiting
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_reproductions.systems.gaia.trace import LIMITS_S, SHORT_S, TICK_S

if TYPE_CHECKING:
    from gpusched_baselines.price_rules.signal import Signal
    from gpusched_env import Policy, Result
    from gpusched_reproductions.systems.gaia.trace import GaiaTrace

DUE_S = 100 * 86_400.0
_WAITING = Waiting(SHORT_S, LIMITS_S, meets_due_dates=False)
POLICIES: dict[str, Policy] = {
    "no-wait": edf(),
    **{
        rule: StartByPrice(rule, waiting=_WAITING, name=rule)
        for rule in ("lowest-slot", "lowest-window", "carbon-time")
    },
    "ecovisor": PauseByPrice("threshold", waiting=_WAITING, name="ecovisor"),
    "wait-awhile": PauseByPrice("cheapest", waiting=_WAITING, name="wait-awhile"),
}
"""The shipped policies, with waiting limits of queues alone, by their names here."""


def run(trace: GaiaTrace, signal: Signal, policy: str) -> Result:
    instance = instance_of(trace, signal)
    return simulate(
        with_known_needs(instance) if isinstance(POLICIES[policy], PauseByPrice) else instance, POLICIES[policy]
    )


def instance_of(trace: GaiaTrace, signal: Signal) -> Instance:
    """Make the instance: an epoch is a tick, and the mean of a job's epochs is the mean length of its queue.

    The price [€/kWh] is a thousandth of the signal.
    """
    types = [GpuType(f"{k} CPUs", float(k), 0.0, 1.0, 1) for k in sorted({*trace.cpus.tolist()})]
    by_cpus = {int(v.gpu_power_w): Configuration(v.name, 1) for v in types}
    queues = {}
    for limit_s in sorted({*trace.limit_s.tolist()}):
        members = trace.limit_s == limit_s
        most_s = float(max(trace.length_s[members].max(), trace.mean_s[members].max()))
        queues[limit_s] = most_s / TICK_S, with_mean(float(trace.mean_s[members][0]) / most_s)
    jobs = []
    rows = np.stack([trace.arrival_s, trace.length_s, trace.cpus, trace.limit_s], axis=1).tolist()
    for arrival_s, length_s, cpus, limit_s in rows:
        most, distribution = queues[limit_s]
        seconds = {by_cpus[int(cpus)]: float(TICK_S)}
        jobs.append(Job(arrival_s, DUE_S, 0.0, most, distribution, length_s / TICK_S, seconds))
    nodes = [Node(by_cpus[int(cpus)].gpu_type, 1) for cpus in trace.cpus]
    instance = Instance.from_jobs(types, nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, name="gaia")
    return instance.with_mechanisms(PriceSeries(signal.start_s, signal.value / 1000.0))


def with_mean(fraction: float) -> EpochDistribution:
    """Make a distribution on two bins whose mean is a fraction of the maximum epochs, in (0, 1]."""
    first = 0.5 * fraction
    return EpochDistribution(np.array([0.0, first, 1.0]), np.array([1.0, (fraction - first) / (1.0 - first)]))
