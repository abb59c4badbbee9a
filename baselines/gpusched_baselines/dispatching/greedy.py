"""Greedy: the whole round at once, from an empty cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.dispatching.idle_gpus import give_idle_gpus
from gpusched_baselines.planning.epochs_left import left_of_all
from gpusched_env.kernel import kernel
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.room import measure

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class Greedy:
    """Greedy: all jobs by decreasing pressure, each the cheapest configuration that fits and meets the due date.

    Afterwards the idle GPUs of a node go to the job there that gains the most speed.
    """

    name: str = "greedy"
    preemption: bool = True

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - Greedy draws nothing
        """Place all active jobs anew."""
        _decide(view.board, ask_order(view, "pressure", waiting_only=False))


@kernel
def _decide(board: Board, order: Ints) -> None:
    dispatch(board, order, left_of_all(board, order, False))
    give_idle_gpus(board, order)
    measure(board)
