"""Published figures of power caps: throughput of a hall with power limits, and an event that takes a quarter of it.

    python -m gpusched_reproductions.systems.power_cap

The speed under a limit r is 1 / (1 + a (1/r - 1)^b) with a = 0.507 and b = 1.703, fitted to Zeus's sweeps of V100
(Apache-2.0); no sweep of newer GPUs is public.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_baselines import make_policy
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.rent.model import Rent
from gpusched_env.model import peak_kw
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at

A, B = 0.507, 1.703  # of V100
HOUR = 3600.0
FINE = (1.0, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)
SLACK = (0.05, 0.15, 0.4, 1.2)  # of the jobs of tiers 0 to 3
A100_W, REST = 382.0, 0.31  # a busy GPU of a server of 8, and the rest of the node as a part of its GPUs


def seconds_factor(limit: float) -> float:
    return 1.0 + A * (1.0 / limit - 1.0) ** B


def best_limit(rest: float) -> float:
    """Return the limit with the most throughput per watt of the node; `rest` is the rest of the node over its GPUs."""
    limits = np.arange(0.5, 1.0, 0.001)
    return float(limits[np.argmax(1.0 / (1.0 + A * (1.0 / limits - 1.0) ** B) / (rest + limits))])


def hall(nodes: int, rest: float, limits: tuple[float, ...], slack: tuple[float, ...], hours: float) -> Instance:
    """Make a hall of nodes of 8 GPUs with one job of 8 GPUs for each, of so many hours; its slack is by turns."""
    gpu = GpuType("A100", A100_W, 8 * rest * A100_W, 80.0, 8)
    configurations = [Configuration("A100", 8, power_limit=r) for r in limits]
    jobs = []
    for i in range(nodes):
        times = {c: HOUR * seconds_factor(c.power_limit) for c in configurations}
        due = hours * HOUR * (1.0 + slack[i % len(slack)])
        jobs.append(Job(0.0, due, 10.0 / HOUR, hours, EpochDistribution.certain(), hours, times))
    return Instance.from_jobs([gpu], [Node("A100", 8)] * nodes, jobs, configurations)


def gain_of_limits(rest: float, nodes: int = 300) -> tuple[float, float]:
    best = best_limit(rest)
    with_limits = hall(nodes, rest, (1.0, best), (0.5,), 10.0)
    cap = PowerCap((0.0,), (peak_kw(with_limits) * (rest + best) / (1.0 + rest),))
    without = hall(nodes, rest, (1.0,), (0.5,), 10.0)
    speeds = [_first_speed(each.with_mechanisms(cap)) for each in (with_limits, without)]
    return best, speeds[0] / speeds[1]


def _first_speed(instance: Instance) -> float:
    result = simulate(instance, make_policy("cap:uniform"))
    first = result.log[result.log[:, at.LOG_START] == 0.0]
    jobs, configs = first[:, at.LOG_JOB].astype(int), first[:, at.LOG_CONFIG].astype(int)
    return float((HOUR / instance.jobs.seconds_per_epoch[jobs, configs]).sum())


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """What an event took.

    Attributes:
        power: Power during the event over that before it, the largest.
        loss: Part of its progress that each tier lost during the event.
        total_loss: The same of all jobs.
        forced_s: Seconds for which the simulator throttled jobs.
    """

    power: float
    loss: tuple[float, ...]
    total_loss: float
    forced_s: float


def quarter_off(policy: str = "cap:tiers", nodes: int = 32, length_h: float = 3.0) -> EventOutcome:
    """Run the event: a quarter of the power of 256 GPUs is taken for 3 h without notice; tiers may lose 0 to 50 %.

    A GPU-hour costs 2 €, so that no job takes a limit to save energy.
    """
    made = hall(nodes, REST, FINE, SLACK, 12.0)
    peak, start, end = peak_kw(made), HOUR, (1.0 + length_h) * HOUR
    cap = PowerCap.with_events(peak, [(start, end - start, 0.25, 0.0)])
    most = 0.0

    def watch(state: State) -> None:
        nonlocal most
        if start <= state.board.clock[at.NOW] < end:
            most = max(most, float(state.board.clock[at.KW]) / peak)

    result = simulate(made.with_mechanisms(cap, Rent(2.0)), make_policy(policy), on_round=watch)
    done = np.zeros(len(made.jobs))
    for row in result.log:
        inside = max(0.0, min(end, row[at.LOG_END]) - max(start, row[at.LOG_READY]))
        job, config = int(row[at.LOG_JOB]), int(row[at.LOG_CONFIG])
        done[job] += inside / made.jobs.seconds_per_epoch[job, config]
    lost = 1.0 - done / length_h
    tiers = np.arange(nodes) % len(SLACK)
    loss = tuple(float(lost[tiers == t].mean()) for t in range(len(SLACK)))
    return EventOutcome(most, loss, float(lost.mean()), result.cap_forced_s)


def main() -> None:
    for rest in (0.2, 0.4, 0.5, 0.6, 1.0):
        best, gain = gain_of_limits(rest)
        print(f"rest of node {rest:.1f} of its GPUs: best limit {best:.3f}, throughput {100.0 * (gain - 1.0):+.1f} %")  # noqa: T201
    for policy in ("cap:tiers", "cap:uniform", "sts-x"):
        found = quarter_off(policy)
        losses = ", ".join(f"{100.0 * each:.1f}" for each in found.loss)
        print(  # noqa: T201
            f"a quarter of the power for 3 h, {policy}: {found.power:.3f} of the peak; tiers lose {losses} %, all "
            f"{100.0 * found.total_loss:.1f} %; throttled by the simulator {found.forced_s:.0f} s"
        )


if __name__ == "__main__":
    main()
