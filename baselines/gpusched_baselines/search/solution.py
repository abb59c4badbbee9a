"""Solutions of a round: what every job holds, kept and restored; and the best few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.model import Instance, Tenancy
    from gpusched_env.simulator.run import Board

HELD = 3  # what a job holds: configuration, node, shared GPU


def refuse_tenancy(instance: Instance, *refused: Tenancy) -> None:
    """Refuse an instance with certain tenancies.

    Raises:
        InputError: It has one of them.
    """
    if instance.tenancy in refused:
        raise InputError("tenancy", instance.tenancy, f"none of {', '.join(refused)}")


@kernel
def keep(board: Board, order: Ints, held: Floats, kept: Ints) -> None:
    """Write what every job of the round holds to `held`, (A, HELD), and the state of the nodes to `kept`."""
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


@kernel
def offer(board: Board, order: Ints, cost: float, costs: Floats, held: Floats, kept: Ints) -> None:
    """Keep what the jobs of the round hold in place of the dearest of the elite, if it is cheaper.

    One that costs the same as one of the elite is taken for the same, and is not kept.

    Args:
        order: The jobs of the round, (A,).
        cost: What the construction costs.
        costs: What the elite cost, (K,); inf where there is none yet.
        held: What the jobs of the round hold in each, (K, A, HELD).
        kept: The state of the nodes in each, (K, N, columns of `layout`).
    """
    dearest = 0
    for k in range(costs.shape[0]):
        if cost == costs[k]:
            return
        if costs[k] > costs[dearest]:
            dearest = k
    if cost < costs[dearest]:
        costs[dearest] = cost
        keep(board, order, held[dearest], kept[dearest])
