"""What a policy chooses for a job, and doing it: a policy that is asked changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import forget_place

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class Choice:
    """What a policy chooses for a job.

    Args:
        config: The configuration's index, or -1 to wait.
        wake_s: When the job shall be asked again [s]: inf for never, -inf for never and to say that no plan holds;
            None leaves the wake-up that it has.
        leaves: Whether it is placed as if it came anew: where it fits best, and not on its previous node first.
        node: The node, the first of several, on which it is placed if it fits there, in place of its previous one; if
            it does not, it is placed as if it came anew. None leaves the previous one.
        gpu: The shared GPU of that node, likewise; a share without one goes where it fits best. None without a node.
    """

    config: int
    wake_s: float | None = None
    leaves: bool = False
    node: int | None = None
    gpu: int | None = None


@kernel
def apply_choice(board: Board, job: int, leaves: bool, wake_s: float) -> None:
    """Do what was chosen for a job, but the placing; NaN leaves its wake-up as it is."""
    if leaves:
        forget_place(board, job)
    if not np.isnan(wake_s):
        board.jobs[job, at.WAKE_S] = wake_s
