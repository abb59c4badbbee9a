"""Run the cells that are not finished yet, and store each the moment it is finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_agents.any_policy import make_any_policy
from gpusched_baselines.registry import POLICIES
from gpusched_env.errors import InputError
from gpusched_experiments.report.processes import PROCESSES, call_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpusched_experiments.report.backends.backend import Backend
    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.run import Values
    from gpusched_experiments.report.store import Store


def run_cells(
    cells: Mapping[str, Cell],
    known: Mapping[str, Values],
    store: Store,
    workers: int,
    on_finished: Callable[[], None],
    backend: Backend = PROCESSES,
) -> dict[str, Values]:
    """Run every cell that is not known, long ones first, so that all processes end at about the same time.

    Args:
        cells: The cells by key.
        known: What was measured in those that are finished, by key.
        store: Where every cell is added when it is finished.
        workers: Number of processes, ≥ 1; with 1 the cells run in the order given.
        on_finished: Called in this process after every cell.
        backend: What makes the processes.

    Returns:
        What was measured in every cell, by key.

    Raises:
        WorkerError: A process ended early; what was finished is stored.
    """
    values = dict(known)
    left = [key for key in cells if key not in values]
    if workers > 1:
        left.sort(key=lambda key: -_weight(cells[key]))
    policies = tuple(make_any_policy(name) for name in dict.fromkeys(cells[key].policy for key in left))
    for index, measured in call_all([cells[key].run for key in left], policies, workers, backend):
        key = left[index]
        store.append(key, cells[key], measured)
        values[key] = measured
        on_finished()
    return values


def _weight(cell: Cell) -> float:
    """Guess how long the cell takes, in any unit."""
    return cell.scenario.jobs.count**2 * (100.0 if is_slow(cell.policy) else 1.0)


def is_slow(policy: str) -> bool:
    """Say whether a policy tries a thousand constructions a round: it runs on fewer seeds where clusters are large."""
    return policy in POLICIES and POLICIES[policy].slow


def each_once(field: str, values: Sequence[object]) -> None:
    """Check that there are one or more of these values, each once.

    Raises:
        InputError: There is none, or one stands twice.
    """
    if not values or len(set(values)) != len(values):
        raise InputError(field, list(values), "one or more, each once")
