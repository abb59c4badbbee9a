"""Greedy: the whole round at once, from an empty cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.dispatching.idle_gpus import give_idle_gpus, give_left_shares
from gpusched_baselines.planning.cheapest import WORST_CASE, left_of_all
from gpusched_env.kernel import kernel
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.room import measure

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class Greedy:
    """Greedy: all jobs by decreasing pressure, each the cheapest configuration that fits and meets the due date.

    Afterwards what is left of shared GPUs speeds up jobs there, as published.

    Args:
        fill: Whether idle whole GPUs go to jobs, too: those of a node that is in use to the job there that gains the
            most speed. That is ours; the published program does not.
        name: Name, as tables show it; with `fill` by default "greedy-fill".
    """

    fill: bool = False
    name: str = "greedy"
    preemption: bool = True

    def __post_init__(self) -> None:
        if self.fill and self.name == "greedy":
            object.__setattr__(self, "name", "greedy-fill")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - Greedy draws nothing
        """Place all active jobs anew."""
        _decide(view.board, ask_order(view, "pressure", waiting_only=False), self.fill)


@kernel
def _decide(board: Board, order: Ints, fill: bool) -> None:
    left = left_of_all(board, order, WORST_CASE)
    dispatch(board, order, left)
    finish_round(board, order, left, fill)
    measure(board)


@kernel
def finish_round(board: Board, order: Ints, left: Floats, fill: bool) -> None:
    """Speed up jobs of a round by what is left of shared GPUs and, with `fill`, by idle ones.

    `room` is not kept up to date.

    Args:
        order: The jobs of the round, (A,).
        left: The epochs that they are taken to have left, (A,).
        fill: Whether idle whole GPUs are given, too.
    """
    give_left_shares(board, order, left)
    if fill:
        give_idle_gpus(board, order)
