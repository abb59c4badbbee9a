"""The choice of a policy for a job, and its effect beside the placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import clear_preferred_node

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy's choice for a job.

    Args:
        config: The configuration's index, or -1 to wait.
        timer_s: When the job is re-evaluated [s]: inf for never, -inf for never and to mark that no plan holds; None
            keeps its timer.
        leaves: Whether it is placed as a new job: where it fits best, and not on its previous node first.
        node: The node, the first of several, on which it is placed if it fits there, in place of its previous one; if
            it does not, it is placed as a new job. None keeps the previous one.
        gpu: The shared GPU of that node, likewise; a share without one goes where it fits best. None without a node.
    """

    config: int
    timer_s: float | None = None
    leaves: bool = False
    node: int | None = None
    gpu: int | None = None


@kernel
def apply_choice(board: Board, job: int, leaves: bool, timer_s: float) -> None:
    """Apply a choice for a job except its placement; NaN keeps its timer."""
    if leaves:
        clear_preferred_node(board, job)
    if not np.isnan(timer_s):
        board.jobs[job, at.TIMER_S] = timer_s
