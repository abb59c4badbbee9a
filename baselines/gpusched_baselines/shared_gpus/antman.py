"""AntMan: guaranteed jobs run as hosts, opportunistic ones as guests that fill what hosts leave idle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.shared_gpus.antman_round import AntManRule, plan_antman
from gpusched_baselines.shared_gpus.planned_round import carry_out, is_planned, planned_choice
from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel
from gpusched_env.model import checks
from gpusched_env.simulator.ordering import ask_order

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.choice import Choice
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class AntMan:
    """AntMan's rules for a cluster whose jobs are guaranteed or opportunistic (`Job.opportunistic`).

    1. Who runs keeps its place; nobody is evicted but guests, by gangs that need their GPUs.
    2. Guaranteed jobs that wait, by submission, take the cheapest of whole GPUs and hosts' shares that meets the due
       date; who may be host of a GPU does not take it whole. A GPU on which there are guests only counts as free for a
       host; idle ones come first. For the first job on whole GPUs that finds no room the nodes with most GPUs free of
       hosts are kept: jobs behind it pass elsewhere.
    3. Opportunistic jobs that wait, by submission, take a guest's share of the GPU that is least busy, if that is less
       than `most_busy` of the time: idle GPUs first, kept ones too. They leave room for a host, where both fit on one
       GPU. Guaranteed jobs to which nothing but guests' shares is open do the same.
    4. If no guaranteed job waits, the slowest guest moves to an idle GPU as a host, if it expects to gain more time
       than a restart takes, and so on.

    Where shares have one priority they all count as guests'; where there are none, opportunistic jobs come last.

    Args:
        most_busy: M, > 0.
        auto_after_s: How long a guaranteed job waits before it may run as a guest [s], ≥ 0; inf: never.
        promotes: Whether rule 4 holds.

    Raises:
        InputError: One of them is out of its range.
    """

    most_busy: float = 0.8
    auto_after_s: float = math.inf
    promotes: bool = True
    name: str = "antman"
    job_order: str = "submission"
    preemption: bool = True

    def __post_init__(self) -> None:
        checks.positive("most_busy", self.most_busy)
        if not self.auto_after_s >= 0.0:
            raise InputError("auto_after_s", self.auto_after_s, "a number >= 0, or inf")
        if not isinstance(self.promotes, bool):
            raise InputError("promotes", self.promotes, "True or False")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rules draw nothing
        """Place all active jobs."""
        _decide(view.board, ask_order(view, self.job_order, waiting_only=False), self._rule)

    def choose(self, view: View, job: int) -> Choice:
        """Give what the plan of the round, made when it asks its first job, says of a job."""
        if not is_planned(view, job):
            plan_antman(view.board, self._rule)
        return planned_choice(view, job)

    @property
    def _rule(self) -> AntManRule:
        return AntManRule(float(self.most_busy), float(self.auto_after_s), self.promotes)


@kernel
def _decide(board: Board, order: Ints, rule: AntManRule) -> None:
    plan_antman(board, rule)
    carry_out(board, order)
