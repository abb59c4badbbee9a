"""Run every agent of a study, and reference policies, on workloads that no training saw."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from gpusched_agents.files.storage import PREFIX
from gpusched_experiments.report.cell import Cell, origin, run_cells
from gpusched_experiments.report.processes import PROCESSES
from gpusched_experiments.report.run import Runs
from gpusched_experiments.report.store import Store, stored_values
from gpusched_reproductions.learning.plan import ON_VALIDATION, REFERENCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpusched_experiments.report.processes import Backend
    from gpusched_reproductions.learning.plan import StudyPlan

STORED, AGENT = "evaluations.csv", "agent"
HELD_OUT, VALIDATION = "held out", "validation"


def evaluate_all(
    plan: StudyPlan,
    folder: Path,
    workers: int,
    on_progress: Callable[[int, int], None],
    backend: Backend = PROCESSES,
) -> Runs:
    """Run the agent of every training, and the reference policies, on the held-out workloads.

    What is finished is stored in `folder` at once, and not run again unless the code or the agent has changed.

    Args:
        plan: The study.
        folder: Folder of the trainings.
        workers: Number of processes, ≥ 1.
        on_progress: Called with the number of finished runs, and of all.
        backend: What makes the processes.

    Returns:
        The runs, with labels `workloads` (held out or validation) and `scenario`; a policy is a reference policy or
        the name of a training. On the validation workloads there are the policies of `ON_VALIDATION` alone.

    Raises:
        InputError: The folder cannot be written, or holds a foreign file.
        WorkerError: A process ended early; what was finished is stored.
    """
    names = {f"{PREFIX}{folder / run.name / AGENT}": run.name for run in plan.trainings()}
    cells = {cell.key(origin(cell.policy)): cell for cell in _cells(plan, (*REFERENCES, *names))}
    store = Store(folder / STORED, ("workloads", "scenario"))
    stored = stored_values(store.path)
    known = {key: stored[key] for key in cells if key in stored}
    store.write((key, cells[key], values) for key, values in known.items())
    finished = count(len(known))
    on_progress(next(finished), len(cells))
    values = run_cells(cells, known, store, workers, lambda: on_progress(next(finished), len(cells)), backend)
    return Runs.of(
        (dict(cell.labels), names.get(cell.policy, cell.policy), cell.seed, values[key]) for key, cell in cells.items()
    )


def _cells(plan: StudyPlan, policies: tuple[str, ...]) -> Iterator[Cell]:
    sets = ((HELD_OUT, policies, plan.test_seeds), (VALIDATION, ON_VALIDATION, plan.base.validation_seeds))
    for workloads, names, seeds in sets:
        for name, scenario in zip(plan.base.scenarios, plan.base.loaded_scenarios(), strict=True):
            labels = (("workloads", workloads), ("scenario", name))
            for policy in names:
                for seed in seeds:
                    yield Cell(labels, scenario, policy, seed)
