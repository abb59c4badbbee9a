"""The true pace of every job, whatever it depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel
from gpusched_env.simulator.pace.by_duty import write_duty_paces
from gpusched_env.simulator.pace.interconnect import write_interconnect_paces
from gpusched_env.simulator.pace.pairs import write_pair_paces

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board


@kernel
def write_paces(board: Board, paces: Floats) -> None:
    """Write the true seconds per epoch over the planned ones of every active job to `paces`, (A,)."""
    paces[:] = 1.0
    if board.facts.slowdown.shape[0] > 0:
        write_pair_paces(board, paces)
    if board.facts.duty.shape[0] > 0:
        write_duty_paces(board, paces)
    if board.facts.iteration.shape[0] > 0:
        write_interconnect_paces(board, paces)
