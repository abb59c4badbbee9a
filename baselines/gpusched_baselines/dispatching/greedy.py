"""Greedy: the whole round at once, from an empty cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.dispatching.idle_gpus import give_idle_gpus
from gpusched_baselines.planning.epochs_left import epochs_left
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.room import measure

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.simulator import View


@dataclass(frozen=True, slots=True)
class Greedy:
    """Greedy: all jobs by decreasing pressure, each the cheapest configuration that fits and meets the due date.

    Afterwards the idle GPUs of a node go to the job there that gains the most speed.
    """

    name: str = "greedy"
    preemption: bool = True

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - Greedy draws nothing
        """Place all active jobs anew."""
        order = ask_order(view, "pressure", waiting_only=False)
        left = epochs_left(view, order, "worst-case")
        dispatch(view.board, order, left)
        give_idle_gpus(view.board, order)
        measure(view.board)
