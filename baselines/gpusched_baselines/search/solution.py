"""A round's solution: what every job holds, kept and restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def keep(board: Board, order: Ints, held: Floats, kept: Ints) -> None:
    """Write what every job of the round holds to `held`, (A, 3), and the state of the nodes to `kept`."""
    jobs, nodes = board.jobs, board.nodes
    for i in range(order.shape[0]):
        held[i, 0] = jobs[order[i], at.CONFIG]
        held[i, 1] = jobs[order[i], at.NODE]
        held[i, 2] = jobs[order[i], at.SLOT]
    kept[:, :] = nodes


@kernel
def restore(board: Board, order: Ints, held: Floats, kept: Ints) -> None:
    """Give every job of the round what `keep` wrote; `room` is not kept up to date."""
    jobs, nodes = board.jobs, board.nodes
    for i in range(order.shape[0]):
        jobs[order[i], at.CONFIG] = held[i, 0]
        jobs[order[i], at.NODE] = held[i, 1]
        jobs[order[i], at.SLOT] = held[i, 2]
    nodes[:, :] = kept
