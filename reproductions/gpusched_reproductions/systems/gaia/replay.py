"""A replay of GAIA's trace by the rules of the shipped policies: when jobs run, what they emit and cost."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.price_rules import rules
from gpusched_baselines.price_rules.rules import HOUR
from gpusched_reproductions.systems.gaia.queue import TickQueue
from gpusched_reproductions.systems.gaia.trace import TICK_S, GaiaTrace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.price_rules.rules import StartRule
    from gpusched_baselines.price_rules.signal import Signal

DOLLARS_PER_HOUR = 0.0624
"""Price of a machine with one CPU that is taken on demand [$/h]."""
RESERVED_DISCOUNT = 0.4
"""What a reserved one costs, as a part of that, until the last start."""
STARTS: dict[str, tuple[StartRule, bool]] = {
    "no-wait": (rules.at_once, False),
    "lowest-slot": (rules.lowest_slot, False),
    "lowest-window": (rules.lowest_window, False),
    "carbon-time": (rules.carbon_time, False),
    "all-wait": (rules.at_limit, True),
    "res-first": (rules.carbon_time, True),
}
"""By name of a policy that does not pause: its rule, and whether free reserved machines start a job before."""
PAUSING = ("ecovisor", "wait-awhile")


@dataclass(frozen=True, slots=True, eq=False)
class ReplayOfTrace:
    """What ran when: a job, or with a policy that pauses a piece of one, by number and begin.

    Attributes:
        job: Number of the job, (K,).
        begin_s: When it begins [s], (K,).
        length_s: How long it runs [s], (K,).
        on_demand: CPUs that are not reserved ones, (K,).
        signal_cost: Integral of the signal times its CPUs, in thousandths of value · h · CPU, (K,).
        dollars: Cost of all machines [$].
        mean_wait_h: Mean of the time from arrival to begin [h].
    """

    job: NDArray[np.int64]
    begin_s: NDArray[np.float64]
    length_s: NDArray[np.float64]
    on_demand: NDArray[np.int64]
    signal_cost: NDArray[np.float64]
    dollars: float
    mean_wait_h: float


def replay(trace: GaiaTrace, signal: Signal, policy: str, reserved: int = 0) -> ReplayOfTrace:
    """Run the trace by a policy.

    Args:
        signal: The signal, [g/kWh].
        reserved: Reserved machines with one CPU; jobs take them where enough are free.
    """
    if policy in PAUSING:
        pieces = [(job, *piece) for job in range(len(trace.cpus)) for piece in _pieces(trace, signal, policy, job)]
        job = np.array([number for number, _, _ in pieces], dtype=np.int64)
        begin_s, end_s = np.array([piece[1] for piece in pieces]), np.array([piece[2] for piece in pieces])
        on_demand = trace.cpus[job]
    else:
        job = np.arange(len(trace.cpus))
        begin_s, on_demand = _run(trace, signal, policy, reserved)
        end_s = begin_s + trace.length_s
    rented_h = float((on_demand * (end_s - begin_s)).sum()) / HOUR
    reserved_h = reserved * RESERVED_DISCOUNT * float(begin_s.max()) / HOUR
    return ReplayOfTrace(
        job=job,
        begin_s=begin_s,
        length_s=end_s - begin_s,
        on_demand=on_demand,
        signal_cost=signal.integral(begin_s, end_s) * trace.cpus[job] / HOUR / 1000.0,
        dollars=DOLLARS_PER_HOUR * (rented_h + reserved_h),
        mean_wait_h=float((begin_s - trace.arrival_s[job]).mean()) / HOUR,
    )


def _pieces(trace: GaiaTrace, signal: Signal, policy: str, job: int) -> list[tuple[float, float]]:
    now_s, length_s, limit_s = (float(x[job]) for x in (trace.arrival_s, trace.length_s, trace.limit_s))
    if policy == "ecovisor":
        return rules.below_threshold_pieces(signal, now_s, length_s, limit_s)
    return rules.cheapest_hours(signal, now_s, length_s, now_s + length_s + limit_s)


def _run(trace: GaiaTrace, signal: Signal, policy: str, reserved: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return when jobs start [s], (J,), and their CPUs that are not reserved, (J,).

    Reserved machines are free for others from the tick after the end of a job.
    """
    rule, before = STARTS[policy]
    told = np.stack([trace.arrival_s, trace.mean_s, trace.limit_s], axis=1).tolist()
    planned = [rule(signal, *of_job) for of_job in told]
    start_s, on_demand, free = np.array(planned), trace.cpus.copy(), reserved
    arriving, queue, last_s = list(range(len(planned)))[::-1], TickQueue(), 0.0
    times, ends = [*trace.arrival_s.tolist(), *planned], list[tuple[float, int]]()
    heapq.heapify(times)
    while times:
        now_s = _next_time(times)
        queue.pass_ticks(round((now_s - last_s) / TICK_S) - 1)
        last_s = now_s
        while ends and ends[0][0] < now_s:
            free += heapq.heappop(ends)[1]
        while arriving and trace.arrival_s[arriving[-1]] <= now_s:
            queue.add(arriving[-1], float(trace.arrival_s[arriving.pop()]))
        for job in queue.emptied():
            cpus = int(trace.cpus[job])
            if not rules.may_start(now_s, planned[job], cpus, free if before else 0):
                queue.add(job, float(trace.arrival_s[job]))
                continue
            start_s[job] = now_s
            if cpus <= free:
                free, on_demand[job] = free - cpus, 0
                heapq.heappush(ends, (now_s + float(trace.length_s[job]), cpus))
                heapq.heappush(times, now_s + float(trace.length_s[job]) + TICK_S)
    return start_s, on_demand


def _next_time(times: list[float]) -> float:
    """Take the least time, as often as it is there."""
    now_s = heapq.heappop(times)
    while times and times[0] <= now_s:
        heapq.heappop(times)
    return now_s
