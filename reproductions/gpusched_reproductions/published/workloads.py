"""Workloads that several experiments share: the published inputs, and the package's measured ones beside them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_env.workload import Scenario, load_scenario
from gpusched_experiments.report.cell import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpusched_experiments.report.cell import Change
    from gpusched_experiments.report.experiment import Choice, Sizes
    from gpusched_experiments.report.run import Label

ARRIVALS = ("high", "exponential", "low", "mixed")
"""Arrival rates of the published inputs."""
MEASURED = "measured"
"""Stands beside them: the scenario `default`, with measured applications and powers, at a load of 0.7."""
JOBS_PER_NODE = 10


def published_scenario(
    arrivals: str, nodes: int, jobs_per_node: int = JOBS_PER_NODE, settings: Mapping[str, object] | None = None
) -> Scenario:
    """Make the published workload of an arrival rate, or the measured one, on so many nodes."""
    name = "default" if arrivals == MEASURED else f"published-{arrivals}"
    values = {"cluster.nodes": nodes, "jobs.count": jobs_per_node * nodes}
    return load_scenario(name).replace({**values, **(settings or {})})


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


def published_cells(
    sizes: Sizes, arrivals: tuple[str, ...] = (*ARRIVALS, MEASURED)
) -> Callable[[Choice, tuple[str, ...]], tuple[Cell, ...]]:
    """Give what lists the cells of the published workloads, and of the measured one: all sizes."""

    def cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
        return tuple(
            cell
            for kind, nodes in product(arrivals, sizes.nodes(choice))
            for cell in cells_of(
                {"arrivals": kind, "nodes": nodes}, published_scenario(kind, nodes), choice, policies, sizes
            )
        )

    return cells
