"""Workloads that several experiments share."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_env.workload import Scenario, load_scenario
from gpusched_experiments.report.cell import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpusched_experiments.published.choice import Choice, Sizes
    from gpusched_experiments.report.cell import Change
    from gpusched_experiments.report.run import Label

ARRIVALS = ("high", "exponential", "low", "mixed")
JOBS_PER_NODE = 10


def thesis_scenario(
    arrivals: str, nodes: int, jobs_per_node: int = JOBS_PER_NODE, settings: Mapping[str, object] | None = None
) -> Scenario:
    """Make the thesis's workload: its GPU types and rules, no node base power, and so many jobs a node."""
    values = {"cluster.nodes": nodes, "jobs.count": jobs_per_node * nodes, "cluster.node_base_power_w": 0.0}
    return load_scenario(arrivals).replace({**values, **(settings or {})})


def cells_of(
    labels: Mapping[str, Label],
    scenario: Scenario,
    choice: Choice,
    policies: tuple[str, ...],
    sizes: Sizes,
    change: Change | None = None,
) -> Iterator[Cell]:
    """List the whole runs of every policy on a scenario, with the seeds of its size."""
    from_labels = tuple(labels.items())
    for policy in policies:
        for seed in sizes.seeds(choice, scenario.cluster.nodes, policy):
            yield Cell(from_labels, scenario, policy, seed, change)


def thesis_cells(sizes: Sizes) -> Callable[[Choice, tuple[str, ...]], tuple[Cell, ...]]:
    """Give what lists the cells of the thesis's workloads: all arrival rates and sizes."""

    def cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
        return tuple(
            cell
            for arrivals, nodes in product(ARRIVALS, sizes.nodes(choice))
            for cell in cells_of(
                {"arrivals": arrivals, "nodes": nodes}, thesis_scenario(arrivals, nodes), choice, policies, sizes
            )
        )

    return cells
