"""Workloads that several experiments share, published and measured, and what is measured of a decision round."""

from __future__ import annotations

import statistics
import time
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.workload import Scenario, load_scenario
from gpusched_experiments.report.cell import Cell, Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gpusched_env.model import Instance
    from gpusched_env.simulator import Policy
    from gpusched_experiments.report.cell import Change
    from gpusched_experiments.report.experiment import Selection, Sizes
    from gpusched_experiments.report.run import Label, Values

    Place: TypeAlias = tuple[Mapping[str, Label], Scenario, Change | None]

ARRIVALS = ("high", "exponential", "low", "mixed")
"""Arrival rates of the published inputs."""
MEASURED = "measured"
"""Stands beside them: the scenario `default`, with measured applications and powers, at a load of 0.7."""
JOBS_PER_NODE = 10


def published_scenario(
    arrivals: str, nodes: int, jobs_per_node: int = JOBS_PER_NODE, settings: Mapping[str, object] | None = None
) -> Scenario:
    name = "default" if arrivals == MEASURED else f"published-{arrivals}"
    values = {"cluster.nodes": nodes, "jobs.count": jobs_per_node * nodes}
    return load_scenario(name).replace({**values, **(settings or {})})


def cells_of(
    labels: Mapping[str, Label],
    scenario: Scenario,
    choice: Selection,
    policies: tuple[str, ...],
    sizes: Sizes,
    change: Change | None = None,
) -> Iterator[Cell]:
    from_labels = tuple(labels.items())
    for policy in policies:
        for seed in sizes.seeds(choice, scenario.cluster.nodes, policy):
            yield Cell(from_labels, scenario, policy, seed, change)


def listed(
    sizes: Sizes, places: Callable[[tuple[int, ...]], Iterable[Place]]
) -> Callable[[Selection, tuple[str, ...]], tuple[Cell, ...]]:
    def cells(choice: Selection, policies: tuple[str, ...]) -> tuple[Cell, ...]:
        found: list[Cell] = []
        for labels, scenario, change in places(sizes.nodes(choice)):
            found += cells_of(labels, scenario, choice, policies, sizes, change)
        return tuple(found)

    return cells


def published_places(sizes: tuple[int, ...]) -> Iterator[Place]:
    for kind, nodes in product((*ARRIVALS, MEASURED), sizes):
        yield {"arrivals": kind, "nodes": nodes}, published_scenario(kind, nodes), None


REPEATS = 15
LONG_S = 0.5  # after rounds that took so long together three are enough, after rounds that each did two
VERY_LONG_S = 20.0  # after a round that took so long one is enough


def one_round(instance: Instance, policy: Policy, seed: int) -> Values:
    """Time the first decision round, each time on a fresh state with the same randomness.

    Returns:
        `jobs` that the round asks, `placed` jobs, `repeats`, the median `round_s`, the `least_round_s`, of a policy
        with another solver `solver_share` (of the time of all repetitions that in the solver) and `fallbacks` (the
        plans in a round that the exact one gave instead), else 0, and `run_s`, the seconds it all took.
    """
    begin, before_s = time.perf_counter(), getattr(policy, "solver_s", 0.0)
    seconds: list[float] = []
    placed = jobs = 0
    while len(seconds) < REPEATS:
        state = State(instance, record=False)
        state.advance()
        state.begin_round(policy.preemption)
        rng = np.random.default_rng(seed)
        start = time.perf_counter()
        policy.decide(state.view, rng)
        seconds.append(time.perf_counter() - start)
        active = state.view.active
        jobs, placed = len(active), int(np.sum(state.view.jobs[active, at.CONFIG] >= 0))
        if _long_enough(seconds):
            break
    return {
        "jobs": jobs,
        "placed": placed,
        "repeats": len(seconds),
        "round_s": statistics.median(seconds),
        "least_round_s": min(seconds),
        "solver_share": (getattr(policy, "solver_s", 0.0) - before_s) / sum(seconds),
        "fallbacks": getattr(policy, "fallbacks", 0) / len(seconds),
        "run_s": time.perf_counter() - begin,
    }


def _long_enough(seconds: list[float]) -> bool:
    """Return whether these times are enough although more could be taken; the first may hold what later ones do not."""
    if len(seconds) == 1:
        return seconds[0] >= VERY_LONG_S
    if len(seconds) == 2:
        return min(seconds) >= LONG_S
    return sum(seconds) >= LONG_S


ONE_ROUND = Measure("round", one_round, timing=True)
