"""Filling gaps by priority, as FIKIT does: jobs of the highest class own GPUs, others run in what they leave idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.shared_gpus.fill_round import FillRule, plan_fill
from gpusched_baselines.shared_gpus.planned_round import carry_out, is_planned, planned_choice
from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel
from gpusched_env.model import checks
from gpusched_env.model.configuration import MOST_PRIORITIES
from gpusched_env.simulator.ordering import ask_order

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.choice import Choice
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class Fill:
    """Priorities that fill gaps: the class of a job is where its tardiness weight is among those submitted so far.

    1. Who runs keeps its GPU; where there is no host, the guest of the highest class becomes host of it.
    2. Jobs that wait come by class, then by pressure. One of the highest class takes an idle GPU, as whole GPUs or a
       host's share, as cheaply as its due date allows; else it becomes host where guests run, else host in place of
       one of a lower class, which stays as a guest if there is room. It does so on the GPU with least work of its own
       class or a higher one.
    3. Others are guests where an epoch takes least now, if that GPU is busy for less than `most_busy` of the time; on
       an idle GPU if they would be late there, or no gap has room.

    Guests' shares have no priority above their job's class, but on an idle GPU for a job to which nothing else is open.

    Args:
        most_busy: M, > 0.
        classes: How many classes there are, from 1 to 10.

    Raises:
        InputError: One of them is out of its range.
    """

    most_busy: float = 0.95
    classes: int = 2
    name: str = "fill"
    job_order: str = "pressure"
    preemption: bool = True

    def __post_init__(self) -> None:
        checks.positive("most_busy", self.most_busy)
        if checks.whole("classes", self.classes) > MOST_PRIORITIES:
            raise InputError("classes", self.classes, f"at most {MOST_PRIORITIES}")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rules draw nothing
        """Place all active jobs."""
        _decide(view.board, ask_order(view, self.job_order, waiting_only=False), self._rule)

    def choose(self, view: View, job: int) -> Choice:
        """Give what the plan of the round, made when it asks its first job, says of a job."""
        if not is_planned(view, job):
            plan_fill(view.board, self._rule)
        return planned_choice(view, job)

    @property
    def _rule(self) -> FillRule:
        return FillRule(float(self.most_busy), int(self.classes))


@kernel
def _decide(board: Board, order: Ints, rule: FillRule) -> None:
    plan_fill(board, rule)
    carry_out(board, order)
