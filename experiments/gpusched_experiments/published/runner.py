"""Run the cells that are not finished yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from gpusched_agents.any_policy import make_any_policy
from gpusched_experiments.published.choice import is_slow
from gpusched_experiments.report.processes import run_in_processes
from gpusched_experiments.report.warm_up import warm_up

if TYPE_CHECKING:
    from gpusched_experiments.published.cell import Cell
    from gpusched_experiments.published.run import Values

OnFinished: TypeAlias = Callable[[str, "Values"], None]


def run_cells(cells: Mapping[str, Cell], workers: int, on_finished: OnFinished) -> None:
    """Run every cell, long ones first, so that all processes end at about the same time.

    Args:
        cells: The cells by key.
        workers: Number of processes, ≥ 1; with 1 everything happens in this process, in the order given.
        on_finished: Called in this process after every cell with its key and what was measured.

    Raises:
        WorkerError: A process ended early.
    """
    if not cells:
        return
    policies = tuple(make_any_policy(name) for name in dict.fromkeys(cell.policy for cell in cells.values()))
    warm_up(policies)  # here first: workers find compiled what one process has compiled
    if workers == 1:
        for key, cell in cells.items():
            on_finished(key, cell.run())
        return
    keys = sorted(cells, key=lambda key: -_weight(cells[key]))
    for index, values in run_in_processes([cells[key].run for key in keys], policies, workers):
        on_finished(keys[index], values)


def _weight(cell: Cell) -> float:
    """Guess how long the cell takes, in any unit."""
    return cell.scenario.jobs.count**2 * (100.0 if is_slow(cell.policy) else 1.0)
