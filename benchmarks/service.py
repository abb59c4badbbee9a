"""Decisions of a service: from the request to the answer, for 400 jobs on 100 nodes."""

from __future__ import annotations

import gc
import json
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bursts import burst
from benchmarks.figure import Figure, at_most
from gpusched_baselines import usual_policy_names
from gpusched_env.simulator import simulate
from gpusched_operations.service.client import ServicePolicy
from gpusched_operations.service.decision import Decider, PolicyCatalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env import Instance

TARGET_MS = 50.0
PARTS = ("parse", "decide", "answer")
AGENTS = ("agent:default",)
SLOW = ("random-greedy",)


def measure(
    nodes: int = 100, jobs_per_node: int = 4, events: int = 25, repetitions: int = 8, policies: Sequence[str] = ()
) -> list[Figure]:
    """Time the decisions at the first events of a run that begins with all jobs at t = 0.

    Args:
        nodes: Nodes of the cluster.
        jobs_per_node: Jobs at the beginning, for each node.
        events: Events whose requests are made.
        repetitions: How often each request is answered; those of policies that take a second, once.
        policies: The policies; by default the usual ones, and the agent that is shipped.
    """
    instance = burst(nodes, jobs_per_node)
    names = tuple(policies) or (*usual_policy_names(), *AGENTS)
    decider = Decider(PolicyCatalogue.of(",".join(names)), secrets.token_bytes(32))
    figures = []
    for name in names:
        slow = name in SLOW
        bodies = _requests(decider, instance, name, 3 if slow else events)
        figures += _figures(decider, name, bodies, 1 if slow else repetitions)
    return figures


def _figures(decider: Decider, name: str, bodies: Sequence[bytes], repetitions: int) -> list[Figure]:
    spent: dict[str, list[float]] = {part: [] for part in (*PARTS, "all", "processor")}
    gc.collect()
    gc.freeze()  # as the workers of a service do
    for _ in range(repetitions):
        for body in bodies:
            begin, used = time.perf_counter(), time.process_time()
            answer = decider(body)
            spent["processor"].append(1000.0 * (time.process_time() - used))
            spent["all"].append(1000.0 * (time.perf_counter() - begin))
            for part, milliseconds in json.loads(answer)["milliseconds"].items():
                spent[part].append(milliseconds)
    split = ", ".join(f"{part} {np.median(spent[part]):.1f}" for part in PARTS)
    size = max(map(len, bodies)) / 2**10
    note = f"medians [ms]: {split}; {len(spent['all'])} decisions, requests of up to {size:,.0f} KiB"
    gc.unfreeze()
    of_all, of_processor = (float(np.percentile(spent[measured], 99)) for measured in ("all", "processor"))
    return [
        Figure(f"{name}, 99 %", (of_all,), "ms", at_most(TARGET_MS), note),
        Figure(f"  {name}, 99 %, processor time", (of_processor,), "ms"),
    ]


class _EnoughError(Exception):
    """There are enough requests."""


def _requests(decider: Decider, instance: Instance, name: str, events: int) -> list[bytes]:
    """Return the requests of the first events of a run."""
    bodies: list[bytes] = []

    def post(_: str, body: bytes) -> bytes:
        if len(bodies) == events:
            raise _EnoughError
        bodies.append(body)
        return decider(body)

    with suppress(_EnoughError):
        simulate(instance, ServicePolicy("", name, instance, post=post), record=False)
    return bodies
