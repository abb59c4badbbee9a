"""STS-X that is tuned in its own run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpusched_baselines.adaptation_env.controls import control_count
from gpusched_baselines.self_tuning.candidates import policy_of
from gpusched_baselines.self_tuning.resampling import forget
from gpusched_baselines.self_tuning.search import TuningSettings, tuned_choice
from gpusched_env.errors import InputError
from gpusched_env.simulator.kernels import FREE_COLUMNS, Choice, Floats, View, at

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env import JobPolicy
    from gpusched_env.model import Instance

CHECKS, WORK, CHOICE = range(3)
"""Columns of what is kept of the run: checks made, the work that they took, and, from the last one on, the choice."""


@dataclass(frozen=True, slots=True)
class SelfTunedStsX:
    """STS-X that is tuned in its own run, our own: it decides as the candidate that would have cost least so far.

    At some submissions, workloads are resampled from the jobs so far, and candidates are tried on them in simulation:
    STS-X with other constant controls, and rules. A candidate takes the place of the present one only
    if it also saves on fresh workloads. It has the information of other policies: what jobs need is drawn from their
    distributions. What it chose is in the policy's memory, in the first row and in those of active jobs.

    Args:
        settings: When and how candidates are tried.
        name: Name, as tables show it.
    """

    settings: TuningSettings = field(default_factory=TuningSettings)
    name: str = "sts-x:tuned"
    job_order: str = "pressure"
    preemption: bool = True
    jobs_over: ClassVar[int] = 5_000  # as many as `fill` needs
    defers: ClassVar[bool] = True

    def memory_columns(self, instance: Instance) -> int:
        """Return the columns of memory that it needs."""
        return _columns(len(instance.gpu_types)).stop

    def decide(self, view: View, rng: Generator) -> None:
        """Decide the round as the present candidate does, after a check if one is due."""
        self._present(view).decide(view, rng)

    def choose(self, view: View, job: int) -> Choice:
        """Choose for one job as the present candidate does, after a check if one is due."""
        return self._present(view).choose(view, job)

    def _present(self, view: View) -> JobPolicy:
        board, columns = view.board, _columns(len(view.gpu_types))
        if board.memory.shape[1] < columns.stop:
            raise InputError("memory_columns", board.memory.shape[1], f"{columns.stop} or more")
        kept = board.memory[:, columns]
        if kept[0, CHECKS] == 0.0:
            kept[0] = kept[kept[:, CHECKS].argmax()]  # another row, in a run that goes on with other jobs (service)
        due = np.searchsorted(self.settings.checks, board.count[at.SUBMITTED], side="right")
        if due > kept[0, CHECKS]:
            self._check(view, kept[0], columns.start)
            kept[0, CHECKS] = due
        kept[board.active[: board.count[at.ACTIVE]]] = kept[0]
        return policy_of(kept[0, CHOICE:], view.gpu_types)

    def _check(self, view: View, kept: Floats, last: int) -> None:
        """Try candidates, and write what was chosen and what that took to `kept`."""
        own = kept[CHOICE:].copy()
        choice, work = tuned_choice(view, own, float(kept[WORK]), self.settings)
        kept[WORK] += work
        kept[CHOICE:] = choice
        if not np.array_equal(choice, own):
            forget(view.board, last)


def _columns(gpu_types: int) -> slice:
    """Return the columns of what is kept, after those of STS-X."""
    first = FREE_COLUMNS + 3 * gpu_types
    return slice(first, first + CHOICE + 1 + control_count(gpu_types))
