"""Dispatch rules that choose neighbours on shared GPUs, in place of planning with the worst there can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.neighbours.choice import best_offer
from gpusched_baselines.planning.cheapest import any_room
from gpusched_baselines.planning.epochs_left import RECKONED, Epochs, check_epochs, left_of, left_of_all
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.choice import Choice
from gpusched_env.simulator.ordering import Order, ask_order, check_order
from gpusched_env.simulator.placement.placement import place, prefer_place

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class NeighbourDispatch:
    """Waiting jobs, in order, take what costs least of all that fits and is in time; running jobs keep what they have.

    That is as `DispatchPolicy`, but on a shared GPU a job counts with the time that it takes beside the jobs that are
    there, and costs what it lengthens the GPU's busy time by. A job that runs is never made late by one that comes: so
    due dates hold as far as the times do that were reckoned with, although nobody plans with the worst neighbour.

    Args:
        name: Name, as tables show it.
        job_order: As in `DispatchPolicy`.
        preemption: Whether a round begins from an empty cluster.
        epochs: The epochs that jobs are taken to need, as in `DispatchPolicy`.

    Raises:
        InputError: There is no such order, or no such `epochs`.
    """

    name: str = "edf-neighbours"
    job_order: Order = "due"
    preemption: bool = False
    epochs: Epochs = "worst-case"

    def __post_init__(self) -> None:
        check_order(self.job_order)
        check_epochs(self.epochs)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place the waiting jobs in order."""
        if any_room(view.board):
            order = ask_order(view, self.job_order, waiting_only=not self.preemption)
            _decide(view.board, order, RECKONED[self.epochs])

    def choose(self, view: View, job: int) -> Choice:
        """Choose what costs least of all that fits and is in time, and the GPU if it is a share."""
        config, node, gpu = _choose(view.board, job, RECKONED[self.epochs])
        return Choice(int(config)) if node < 0 else Choice(int(config), node=int(node), gpu=int(gpu))


@kernel
def _decide(board: Board, order: Ints, reckoned: int) -> None:
    for job in order:
        if not any_room(board):
            return
        if board.jobs[job, at.CONFIG] >= 0:
            continue
        config, node, gpu = _choose(board, job, reckoned)
        if node >= 0:
            prefer_place(board, job, node, gpu)
        if config >= 0:
            place(board, job, config)


@kernel
def _choose(board: Board, job: int, reckoned: int) -> tuple[int, int, int]:
    left = left_of_all(board, board.active[: board.count[at.ACTIVE]], reckoned)
    return best_offer(board, job, left_of(board, job, reckoned), left)
