"""Metrics of jobs and machines in a run: waiting, completion, slowdown, energy, bills, and how busy the cluster was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_env.simulator import Result
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import MISSED_S
from gpusched_env.simulator.result import gpus_on_nodes
from gpusched_env.workload import Scenario
from gpusched_env.workload.mixture import variants_of


@dataclass(frozen=True, slots=True)
class Billing:
    """What is billed.

    Attributes:
        rented: GPU types whose nodes are paid by the hour: their bill says nothing of energy.
        co2_g_per_kwh: What a kWh emits [g CO₂/kWh], ≥ 0, if that is known.
    """

    rented: tuple[str, ...] = ()
    co2_g_per_kwh: float | None = None

    @classmethod
    def of(cls, scenario: Scenario | None) -> Billing:
        """Take what a scenario, or all of a mixture, say; of an instance nothing is known but its price of energy."""
        if scenario is None:
            return cls()
        variants = variants_of(scenario)
        rented = (own.name for each in variants for own in each.gpu_types if own.node_eur_per_h is not None)
        emitted = {each.prices.co2_g_per_kwh for each in variants}
        return cls(tuple(dict.fromkeys(rented)), emitted.pop() if len(emitted) == 1 else None)

    def kwh(self, energy_kwh: float) -> float:
        """Return the energy of a run [kWh]; NaN where nodes are paid by the hour, whose bill tells nothing of it."""
        return float("nan") if self.rented else energy_kwh

    def co2_kg(self, result: Result) -> float | None:
        """Return what a run emitted [kg CO₂], by its prices or else by the scenario; None if it is not known."""
        if np.isfinite(result.co2_kg):
            return result.co2_kg
        energy_kwh = self.kwh(result.energy_kwh)
        known = self.co2_g_per_kwh is not None and energy_kwh == energy_kwh  # noqa: PLR0124 - NaN differs from itself
        return energy_kwh * self.co2_g_per_kwh / 1000.0 if known and self.co2_g_per_kwh is not None else None

    def said(self) -> tuple[str, ...]:
        if self.rented:
            names = ", ".join(self.rented)
            return (
                f"Nodes of {names} are paid by the hour: that is what is called energy cost here; kWh are not known.",
            )
        return ()


ENERGY = Billing()
"""Energy is billed, and nobody said what it emits."""


LEAST_RUN_S = 10.0
"""Jobs that need less are counted as if they needed this, so that the shortest do not outweigh all others [s]."""

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Metrics of jobs and machines.

    Attributes:
        energy_kwh: Energy, with that of the data centre around the nodes (its PUE) [kWh]; NaN if the bill says nothing
            of it (`Billing.kwh`).
        waiting_s: Mean time from submission to the first start [s].
        p95_waiting_s: Its 95th percentile over the jobs [s].
        median_completion_s: Median time from submission to completion [s].
        p95_completion_s: Its 95th percentile over the jobs [s].
        p99_completion_s: Its 99th percentile [s].
        longest_completion_s: The longest of it [s].
        slowdown: Mean bounded slowdown, `slowdowns`.
        makespan_s: Time from the first submission to the last completion [s].
        busy_gpus: Part of the GPU time of the makespan in which a GPU was held, 0 to 1; NaN without intervals.
        busy_nodes: Part of the node time of the makespan in which a node held a job, 0 to 1; NaN without intervals.
    """

    energy_kwh: float = NAN
    waiting_s: float = NAN
    p95_waiting_s: float = NAN
    median_completion_s: float = NAN
    p95_completion_s: float = NAN
    p99_completion_s: float = NAN
    longest_completion_s: float = NAN
    slowdown: float = NAN
    makespan_s: float = NAN
    busy_gpus: float = NAN
    busy_nodes: float = NAN

    @property
    def percentiles_s(self) -> tuple[float, float, float]:
        return self.median_completion_s, self.p95_completion_s, self.p99_completion_s

    @classmethod
    def of(cls, result: Result, billing: Billing = ENERGY) -> RunMetrics:
        """Measure a finished run; without its intervals all but how busy the cluster was."""
        instance = result.instance
        submission_s = instance.jobs.submission_s
        completion_s = result.completion_s - submission_s
        median, p95, p99 = np.percentile(completion_s, (50, 95, 99)).tolist()
        makespan_s = float(result.completion_s.max() - submission_s.min())
        gpus, nodes = busy_s(result) if len(result.log) else (NAN, NAN)
        nodes_there = instance.machines
        return cls(
            energy_kwh=billing.kwh(result.energy_kwh),
            waiting_s=float(np.mean(result.start_s - submission_s)),
            p95_waiting_s=float(np.percentile(result.start_s - submission_s, 95)),
            median_completion_s=median,
            p95_completion_s=p95,
            p99_completion_s=p99,
            longest_completion_s=float(completion_s.max()),
            slowdown=float(slowdowns(result).mean()),
            makespan_s=makespan_s,
            busy_gpus=gpus / (sum(node.gpus for node in nodes_there) * makespan_s),
            busy_nodes=nodes / (len(nodes_there) * makespan_s),
        )


UNKNOWN = RunMetrics()
"""Nothing is known of them."""


@dataclass(frozen=True, slots=True)
class GroupMetrics:
    """Metrics of the jobs of a tenant, or of a class, in a run.

    Attributes:
        kind: What makes the group: `tenant`, or `class` (guaranteed or opportunistic).
        name: Its name.
        jobs: How many they are.
        late_jobs: How many ended after their due date.
        energy_eur: Energy cost attributed to them [€].
        tardiness_eur: Their tardiness cost [€].
        waiting_s: Mean time from submission to the first start [s].
        mean_completion_s: Mean time from submission to completion [s].
        p95_completion_s: Its 95th percentile over the jobs [s].
        slowdown: Mean bounded slowdown, `slowdowns`.
    """

    kind: Literal["tenant", "class"]
    name: str
    jobs: int
    late_jobs: int
    energy_eur: float
    tardiness_eur: float
    waiting_s: float
    mean_completion_s: float
    p95_completion_s: float
    slowdown: float


def group_metrics(result: Result) -> tuple[GroupMetrics, ...]:
    """Measure the jobs of every tenant and every class, where there are several; those without jobs are left out."""
    jobs = result.instance.jobs
    completion_s, slowdown = result.completion_s - jobs.submission_s, slowdowns(result)
    late = result.completion_s > jobs.due_s + MISSED_S
    found = []
    for kind, name, chosen in _groups(result):
        found.append(
            GroupMetrics(
                kind=kind,
                name=name,
                jobs=int(chosen.sum()),
                late_jobs=int(late[chosen].sum()),
                energy_eur=float(result.job_energy_eur[chosen].sum()),
                tardiness_eur=float(result.job_tardiness_eur[chosen].sum()),
                waiting_s=float((result.start_s - jobs.submission_s)[chosen].mean()),
                mean_completion_s=float(completion_s[chosen].mean()),
                p95_completion_s=float(np.percentile(completion_s[chosen], 95)),
                slowdown=float(slowdown[chosen].mean()),
            )
        )
    return tuple(found)


def slowdowns(result: Result) -> NDArray[np.float64]:
    """Return the bounded slowdown of every job, (J,), ≥ 1.

    max(1, (C_j - a_j) / max(10 s, X_j · min_c τ_jc)): the time from submission to completion over that of its epochs on
    the configuration on which they are fastest, alone and at once (Feitelson and Rudolph, JSSPP 1998).
    """
    jobs = result.instance.jobs
    seconds = np.where(np.isfinite(jobs.seconds_per_epoch), jobs.seconds_per_epoch, np.inf).min(axis=1)
    alone_s = np.maximum(LEAST_RUN_S, jobs.epochs_needed * seconds)
    slowdown: NDArray[np.float64] = np.maximum(1.0, (result.completion_s - jobs.submission_s) / alone_s)
    return slowdown


def busy_s(result: Result) -> tuple[float, float]:
    """Return the GPU time in which GPUs were held, and the node time in which nodes held a job, of a recorded run [s].

    A shared GPU counts once, however many jobs it holds.
    """
    log = result.log
    node = log[:, at.LOG_HOST if result.instance.first_machine else at.LOG_NODE].astype(np.int64)
    start_s, end_s = log[:, at.LOG_START], log[:, at.LOG_END]
    gpus = gpus_on_nodes(result.instance, log)
    slot = log[:, at.LOG_SLOT].astype(np.int64)
    shared = slot >= 0
    whole_s = float((gpus * (end_s - start_s))[~shared].sum())
    each = np.repeat(np.flatnonzero(shared), gpus[shared])  # a row for each GPU of a share
    first = np.repeat(np.cumsum(gpus[shared]) - gpus[shared], gpus[shared])
    number = slot[each] + np.arange(len(each)) - first
    place = node[each] * (number.max(initial=0) + 2) + number
    return whole_s + _union_s(place, start_s[each], end_s[each]), _union_s(node, start_s, end_s)


def _union_s(place: NDArray[np.int64], start_s: NDArray[np.float64], end_s: NDArray[np.float64]) -> float:
    """Return for how long places were taken by any of these intervals, added up over the places [s]."""
    if not len(place):
        return 0.0
    order = np.lexsort((start_s, place))
    place, start_s, end_s = place[order], start_s[order], end_s[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    total = 0.0
    for begin, end in zip(first, [*first[1:], len(place)], strict=True):
        until = np.maximum.accumulate(end_s[begin:end])
        since = np.maximum(start_s[begin:end], np.concatenate(([-np.inf], until[:-1])))
        total += float(np.maximum(0.0, until - since).sum())
    return total


def _groups(result: Result) -> list[tuple[Literal["tenant", "class"], str, NDArray[np.bool_]]]:
    instance = result.instance
    groups: list[tuple[Literal["tenant", "class"], str, NDArray[np.bool_]]] = []
    tenants = Tenants.of(instance).tenants
    if len(tenants) > 1:
        groups += [("tenant", tenant.name, instance.jobs.tenant == i) for i, tenant in enumerate(tenants)]
    label = instance.jobs.opportunistic
    if label.any():
        groups += [("class", "guaranteed", ~label), ("class", "opportunistic", label)]
    return [group for group in groups if group[2].any()]
